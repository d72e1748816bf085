"""Rows that cannot be: every cell of a set-up is checked, every refusal says which, and no number is ever made up."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from econ.performance.calibration_data import read_rows
from econ.performance.predict import predict_rows
from econ.performance.prediction import CONFIDENCE_CLASSES, LIMITS, Prediction
from econ.performance.row_units import UnitError, unit_factor
from econ.performance.training_metrics import unit_of_row
from econ.performance.training_rows import METRICS as METRICS_OF_TRAINING

SERVED = {
    "model": "Llama-3.1-8B",
    "hardware": "H100",
    "n_accelerators": "1",
    "weight_format": "BF16",
    "framework": "vLLM",
    "isl": "1024",
    "osl": "512",
    "concurrency_or_batch": "8",
    "scenario": "closed_loop_concurrency",
    "metric": "tpot_mean",
    "unit": "ms",
}
TRAINED = {
    "model": "Llama-3.1-8B",
    "hardware": "H100",
    "n_accelerators": "64",
    "seq": "8192",
    "global_batch": "128",
    "micro_batch": "1",
    "tp": "2",
    "dp": "32",
    "precision": "bf16",
    "recompute": "none",
    "metric": "step_time_s",
}
BAD = ["0", "-1", "inf", "-inf", "1e30", "1e300", "abc", "1024-2048"]


def answer(row: dict[str, str]) -> Prediction:
    return predict_rows([row])[0]


def legal(a: Prediction) -> bool:
    if not a.answered:
        return bool(a.reason)
    assert a.low is not None and a.predicted is not None and a.high is not None
    numbers = all(math.isfinite(x) and x > 0 for x in (a.low, a.predicted, a.high))
    return numbers and a.low <= a.predicted <= a.high and a.confidence in CONFIDENCE_CLASSES and a.limited_by in LIMITS


@pytest.mark.parametrize("text", BAD)
@pytest.mark.parametrize("column", ["osl", "n_accelerators", "tp", "pp", "ep", "dp", "concurrency_or_batch"])
def test_a_served_set_up_cell_that_cannot_be_is_refused_by_name(column: str, text: str) -> None:
    if (column, text) == ("concurrency_or_batch", "inf"):
        assert answer(SERVED | {column: text, "scenario": "offline"}).answered  # an infinite load is the offline one
        return
    found = answer(SERVED | {column: text})
    assert not found.answered and column in found.reason


@pytest.mark.parametrize("text", BAD)
@pytest.mark.parametrize("column", ["n_accelerators", "seq", "global_batch", "tp", "pp", "dp", "params"])
def test_a_training_set_up_cell_that_cannot_be_is_refused_by_name(column: str, text: str) -> None:
    found = answer(TRAINED | {column: text})
    assert not found.answered and column in found.reason


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tp": "1024", "dp": ""}, "attention heads"),
        ({"tp": "2", "pp": "16", "cp": "4", "dp": ""}, "more than n_accelerators"),
        ({"dp": "7"}, "is not n_accelerators"),
        ({"ep": "8"}, "no experts"),
        ({"micro_batch": "64"}, "more than global_batch"),
        ({"unit": "tokens/s"}, "step_time_s"),
        ({"hardware": "RTX-3070", "conditions": "DDP, not sharded"}, "does not fit"),
        ({"model": "GPT-4"}, "not published"),
    ],
)
def test_training_rows_that_contradict_themselves(changes: dict[str, str], words: str) -> None:
    found = answer(TRAINED | changes)
    assert not found.answered and words in found.reason


def test_a_model_that_no_replica_could_hold_is_taken_as_sharded() -> None:
    row = TRAINED | {"model": "Llama-3.1-70B", "n_accelerators": "512", "dp": "256", "global_batch": "512"}
    found = answer(row)
    assert found.answered and "zero3" in found.reason
    told = answer(row | {"conditions": "DDP, not sharded"})
    assert not told.answered and "does not fit" in told.reason


def test_a_format_in_the_name_is_no_other_training_model() -> None:
    plain, named = (answer(TRAINED | {"model": m}) for m in ("Llama-3.1-8B", "Llama-3.1-8B-FP8"))
    assert plain.answered and plain == named


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tp": "8"}, "more than n_accelerators"),
        ({"osl": ""}, "output length"),
        ({"concurrency_or_batch": ""}, "number of users"),
        ({"hardware": "RTX-3060"}, "does not fit"),
        ({"scenario": "sharegpt qps=0"}, "arrival rate"),
        ({"unit": "requests/s", "metric": "throughput_tokens_total"}, "token rate"),
    ],
)
def test_served_rows_that_cannot_be(changes: dict[str, str], words: str) -> None:
    found = answer(SERVED | changes)
    assert not found.answered and words in found.reason


def test_one_bad_row_leaves_the_others_alone() -> None:
    rows = [SERVED, *(SERVED | {"isl": text} for text in BAD), TRAINED, *(TRAINED | {"seq": text} for text in BAD)]
    found = predict_rows(rows)
    assert found[0] == answer(SERVED) and found[9] == answer(TRAINED)
    assert all(legal(a) for a in found)


@pytest.mark.parametrize("part", ["no-such-chip", ""])
def test_a_benchmark_row_on_an_unknown_accelerator_is_refused_alone(part: str) -> None:
    row = {"model": "llama2-70b-99", "scenario": "Offline", "metric": "throughput_tokens_total", "hardware": "H100"}
    row |= {"n_accelerators": "8", "conditions": "mean_output_tokens_accuracy_run=0"}
    found = predict_rows([row | {"hardware": part}, row])
    assert not found[0].answered and "unknown hardware" in found[0].reason
    assert found[1].answered and legal(found[1])


def test_data_parallel_attention_inside_the_tensor_width() -> None:
    row = SERVED | {"model": "DeepSeek-V3", "hardware": "H200", "weight_format": "FP8", "n_accelerators": "8"}
    inside, apart = answer(row | {"tp": "8", "dp": "8"}), answer(row | {"tp": "1", "dp": "8"})
    assert inside.answered and inside == apart


def test_a_context_beyond_the_limit_is_said() -> None:
    found = answer(SERVED | {"model": "Llama-2-70B", "n_accelerators": "4", "isl": "8192"})
    assert found.answered and "context limit 4096" in found.reason


KERNELS: dict[str, dict[str, object]] = {
    "gemm": {"m": 64, "n": 4096, "k": 4096, "gemm_dtype": "fp8"},
    "moe": {"num_tokens": 64, "hidden_size": 4096, "inter_size": 2048, "num_experts": 64, "topk": 4},
    "context_attention": {"batch_size": 1, "isl": 1024, "num_heads": 32, "num_key_value_heads": 8, "head_dim": 128},
    "nccl_all_reduce": {"message_size": 1024, "num_gpus": 8},
}


@pytest.mark.parametrize("op", KERNELS)
def test_operators_without_a_dimension_or_with_an_impossible_one_are_refused(op: str) -> None:
    def ask(params: dict[str, object]) -> Prediction:
        return answer({"op": op, "system": "h100_sxm", "params_json": json.dumps(params)})

    params = KERNELS[op]
    assert legal(ask(params)) and ask(params).answered
    for name, value in params.items():
        if isinstance(value, str) or name == "num_key_value_heads":
            continue
        without = {k: v for k, v in params.items() if k != name}
        assert not ask(without).answered, name
        for bad in (0, -1, None, "x", float("inf"), float("nan"), 1e308, True, 10**400):
            found = ask(params | {name: bad})
            assert not found.answered and found.reason, (name, bad)


@pytest.mark.parametrize(
    ("kernel", "metric"),
    [("NCCL all_reduce", "tflops"), ("GEMM", "busbw"), ("GEMM", "dispatch_us"), ("BabelStream copy", "latency_ms")],
)
def test_a_metric_that_a_kernel_does_not_have(kernel: str, metric: str) -> None:
    found = answer({"kernel": kernel, "hardware": "H100", "shape": "m=64 n=64 k=64, 8 GPUs 1 MiB", "metric": metric})
    assert not found.answered and metric in found.reason


@pytest.mark.parametrize(
    ("changes", "unit", "factor"),
    [
        ({"metric": "latency_ms"}, "us", 1e3),
        ({"metric": "tflops"}, "PFLOP/s", 1e-3),
        ({"metric": "memory_bandwidth"}, "TB/s", 1e-3),
    ],
)
def test_kernel_rows_are_answered_in_their_own_unit(changes: dict[str, str], unit: str, factor: float) -> None:
    row = {"kernel": "GEMM", "hardware": "H100", "shape": "m=64 n=4096 k=4096", "dtype": "bf16"} | changes
    plain, scaled = answer(row | {"unit": ""}), answer(row | {"unit": unit})
    assert plain.predicted is not None and scaled.predicted == pytest.approx(plain.predicted * factor)


def test_training_rows_are_answered_in_their_own_unit() -> None:
    for metric, unit, factor in (("step_time_s", "ms", 1e3), ("mfu", "percent", 100), ("peak_memory_gib", "MiB", 1024)):
        plain, scaled = answer(TRAINED | {"metric": metric}), answer(TRAINED | {"metric": metric, "unit": unit})
        assert plain.predicted is not None and scaled.predicted == pytest.approx(plain.predicted * factor)


def test_every_unit_of_the_benchmarks_is_the_metrics_own() -> None:
    seen = {(r["metric"], r["unit"]) for r in read_rows("training.csv")}
    known = {(m, u) for m, u in seen if m in METRICS_OF_TRAINING}
    assert len(known) > 8
    for metric, unit in known:
        assert unit_of_row(metric, unit) == 1.0, (metric, unit)


@pytest.mark.parametrize(("unit", "kind"), [("MWh", "flops"), ("Gb", "memory"), ("count", "share"), ("ms", "tokens")])
def test_units_of_another_kind_are_refused(unit: str, kind: str) -> None:
    with pytest.raises(UnitError, match=unit):
        unit_factor(unit, kind)


CELLS = st.sampled_from(["", "1", "2", "8", "128", "4096", "0", "-3", "nan", "inf", "1e9", "1e-9", "x", "1,024", "3.5"])
COLUMNS = ("isl", "osl", "concurrency_or_batch", "n_accelerators", "tp", "pp", "ep", "dp", "seq", "global_batch")
WORDS = st.sampled_from(
    ["closed_loop_concurrency", "fixed_batch", "offline", "single_stream_decode", "qps=2", "Server", "wide EP", ""]
)
MODELS = st.sampled_from(["Llama-3.1-8B", "DeepSeek-R1-NVFP4", "Mixtral-8x7B", "llama2-70b-99", "Nemotron-H-56B"])
PARTS = st.sampled_from(["H100", "MI355X", "TPU-v6e", "RTX-4090", "M2-Ultra", "Gaudi3", "nonsense"])
METRICS = st.sampled_from(["tpot_mean", "ttft_p99", "throughput_tokens_total", "prefill_tokens_per_s", "mfu", "power"])


@settings(max_examples=150, deadline=None)
@given(st.fixed_dictionaries(dict.fromkeys(COLUMNS, CELLS)), WORDS, MODELS, PARTS, METRICS)
def test_any_row_is_answered_or_refused_with_a_reason(
    cells: dict[str, str], scenario: str, model: str, part: str, metric: str
) -> None:
    found = answer(cells | {"scenario": scenario, "model": model, "hardware": part, "metric": metric})
    assert legal(found)
