"""The contract of `predict`: order, columns, columns never read, units, reasons, anchors."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest

from econ.performance.calibration_data import read_rows
from econ.performance.predict import FORBIDDEN, kind_of, predict_file, predict_rows
from econ.performance.prediction import CONFIDENCE_CLASSES, LIMITS, Prediction
from econ.performance.validate import accuracy_table

SERVED = {
    "model": "Llama-3.1-70B",
    "hardware": "H100",
    "n_accelerators": "4",
    "weight_format": "FP8",
    "framework": "vLLM",
    "isl": "1024",
    "osl": "1024",
    "concurrency_or_batch": "16",
    "tp": "4",
    "scenario": "closed_loop_concurrency",
    "metric": "tpot_mean",
    "unit": "ms",
}
KERNEL = {"kernel": "GEMM", "hardware": "H100", "shape": "m=64 n=4096 k=4096", "dtype": "bf16", "metric": "latency_ms"}
OPERATOR = {"op": "gemm", "system": "h100_sxm", "params_json": '{"gemm_dtype": "fp8", "m": 8, "n": 4096, "k": 4096}'}


def sample() -> list[dict[str, str]]:
    """A mixed bag from every file, every kind."""
    rows: list[dict[str, str]] = []
    names = ("inferencex", "local", "mlperf", "serving_misc", "splitwise", "trtllm")
    for name in names:
        found = read_rows(f"inference_{name}.csv")
        rows += found[:: max(len(found) // 6, 1)]
    for name in ("kernels", "silicon_points"):
        found = read_rows(f"{name}.csv")
        rows += found[:: max(len(found) // 10, 1)]
    return rows


def columns(answers: list[Prediction]) -> list[dict[str, str]]:
    return [a.as_columns() for a in answers]


def test_forbidden_columns_order_and_company_change_nothing() -> None:
    rows = sample()
    first = columns(predict_rows(rows))
    blanked = [{k: ("" if k in FORBIDDEN else v) for k, v in row.items()} for row in rows]
    assert columns(predict_rows(blanked)) == first
    order = list(range(len(rows)))
    random.Random(3).shuffle(order)
    shuffled = columns(predict_rows([rows[i] for i in order]))
    assert [shuffled[order.index(i)] for i in range(len(rows))] == first
    for i in range(0, len(rows), 7):
        assert columns(predict_rows([rows[i]]))[0] == first[i]


def test_answers_are_banded_and_classed() -> None:
    answers = predict_rows(sample())
    assert sum(a.answered for a in answers) / len(answers) >= 0.95
    for a in answers:
        if a.answered:
            assert a.low is not None and a.predicted is not None and a.high is not None
            assert 0 < a.low <= a.predicted <= a.high
            assert a.confidence in CONFIDENCE_CLASSES and a.limited_by in LIMITS
        else:
            assert a.reason


def test_kinds_are_told_by_filled_columns() -> None:
    union = {key: "" for row in (SERVED, KERNEL, OPERATOR) for key in row} | {
        "global_batch": "",
        "seq": "",
        "precision": "",
    }
    union["metric"] = ""
    kinds = [kind_of(union | row) for row in (SERVED, KERNEL, OPERATOR, {"model": "GPT-3", "global_batch": "1536"})]
    assert kinds == ["inference", "kernel", "operator", "training"]
    assert kind_of(union) is None
    assert kind_of(union | {"metric": "mfu", "precision": "bf16", "seq": "2048"}) == "training"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "no-such-model"}, "unknown model"),
        ({"hardware": "no-such-chip"}, "no-such-chip"),
        ({"metric": "joules"}, "joules"),
        ({"isl": ""}, "isl"),
        ({"unit": "tokens/s"}, "not a time"),
        ({"weight_format": "QQ77"}, "QQ77"),
    ],
)
def test_unanswerable_rows_have_a_reason_and_no_numbers(changes: dict[str, str], words: str) -> None:
    answer = predict_rows([SERVED | changes])[0]
    assert not answer.answered and words in answer.reason
    assert answer.as_columns()["predicted"] == ""


def test_local_model_beyond_the_memory_is_refused() -> None:
    row = {
        "model": "Llama-3.1-405B",
        "hardware": "RTX-4090",
        "weight_format": "GGUF Q4_K_M",
        "framework": "llama.cpp",
        "scenario": "single_stream_decode",
        "metric": "decode_tokens_per_s",
        "unit": "tokens/s",
    }
    answer = predict_rows([row])[0]
    assert not answer.answered and "does not fit" in answer.reason
    assert predict_rows([row | {"model": "Llama-3.1-8B"}])[0].answered


def test_units_are_those_of_the_row() -> None:
    in_ms, in_s = (predict_rows([SERVED | {"unit": u}])[0].predicted for u in ("ms", "s"))
    assert in_ms is not None and in_s is not None and in_ms == pytest.approx(1e3 * in_s)


def test_metrics_of_one_set_up_agree() -> None:
    def get(metric: str, unit: str) -> float:
        answer = predict_rows([SERVED | {"metric": metric, "unit": unit}])[0]
        assert answer.predicted is not None, answer.reason
        return answer.predicted

    tpot, ttft = get("tpot_mean", "s"), get("ttft_mean", "s")
    total = get("throughput_output_tokens_total", "tokens/s")
    assert total == pytest.approx(16 * 1024 / (ttft + 1024 * tpot), rel=1e-6)
    assert get("throughput_output_tokens_per_gpu", "tokens/s per GPU") == pytest.approx(total / 4)
    assert get("throughput_output_tokens_per_node", "tokens/s") == pytest.approx(total * 2)
    assert get("throughput_tokens_total", "tokens/s") == pytest.approx(2 * total)
    assert get("e2e_latency_mean", "s") == pytest.approx(ttft + 1023 * tpot)
    assert get("tokens_per_s_per_user", "tokens/s") == pytest.approx(1 / tpot)
    assert get("tpot_p99", "s") > tpot and get("ttft_p99", "s") > ttft


def test_file_keeps_rows_columns_and_comments_are_skipped(tmp_path: Path) -> None:
    cases, out = tmp_path / "cases.csv", tmp_path / "out.csv"
    header = [*SERVED, "my_note", "value"]
    with cases.open("w", newline="", encoding="utf-8") as handle:
        handle.write("# a comment\n")
        writer = csv.DictWriter(handle, header)
        writer.writeheader()
        writer.writerow(SERVED | {"my_note": "kept, with comma", "value": "12"})
        writer.writerow(SERVED | {"model": "no-such-model"})
    predict_file(cases, out)
    with out.open(encoding="utf-8", newline="") as handle:
        reader = csv.DictReader(handle)
        rows = list(reader)
    assert reader.fieldnames == [*header, "predicted", "low", "high", "confidence", "limited_by", "reason"]
    assert rows[0]["my_note"] == "kept, with comma" and rows[0]["value"] == "12" and float(rows[0]["predicted"]) > 0
    assert rows[1]["predicted"] == "" and "unknown model" in rows[1]["reason"]


@pytest.mark.parametrize("text", ["", "a,a\n1,2\n", "a,b\n1,2,3\n"])
def test_unreadable_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"bad\.csv"):
        predict_file(path, tmp_path / "out.csv")


def test_anchor_shifts_the_level_of_like_rows_only_and_shrinks() -> None:
    plain = predict_rows([SERVED])[0]
    assert plain.predicted is not None
    anchor = SERVED | {"concurrency_or_batch": "4", "value": ""}
    level = predict_rows([anchor])[0].predicted
    assert level is not None
    measured = anchor | {"value": str(level * 1.5)}
    near = predict_rows([SERVED], anchors=[measured])[0]
    assert near.confidence == "measured_nearby" and near.predicted is not None
    assert plain.predicted < near.predicted < 1.5 * plain.predicted
    many = predict_rows([SERVED], anchors=[measured] * 20)[0]
    assert many.predicted is not None and many.predicted == pytest.approx(1.5 * plain.predicted, rel=0.02)
    assert many.high is not None and near.high is not None
    assert many.high / many.predicted <= near.high / near.predicted
    other = predict_rows([SERVED | {"metric": "ttft_mean"}], anchors=[measured])[0]
    assert other == predict_rows([SERVED | {"metric": "ttft_mean"}])[0]


def test_prediction_record_keeps_its_promises() -> None:
    with pytest.raises(ValueError, match="band must hold"):
        Prediction(1.0, 2.0, 3.0, "same_family", "compute")
    with pytest.raises(ValueError, match="together"):
        Prediction(1.0, None, 3.0, "same_family", "compute")


def at_level(row: dict[str, str], factor: float) -> dict[str, str]:
    """The row with a measured value a factor above what the engine says without anchors."""
    level = predict_rows([row])[0].predicted
    assert level is not None
    return row | {"value": repr(level * factor)}


def test_anchor_recognises_other_spellings_and_no_other_group() -> None:
    anchor = at_level(SERVED | {"model": "llama3.1 70B", "framework": "vllm 0.9.1", "hardware": "h100"}, 1.4)
    plain = predict_rows([SERVED])[0]
    near = predict_rows([SERVED], anchors=[anchor])[0]
    assert plain.predicted is not None and near.predicted is not None and near.predicted > 1.1 * plain.predicted
    for other in ({"model": "Llama-3.1-8B"}, {"hardware": "H200"}, {"framework": "SGLang"}, {"weight_format": "BF16"}):
        row = SERVED | other
        assert predict_rows([row], anchors=[anchor]) == predict_rows([row]), other


def test_anchor_of_an_operator_stays_on_its_accelerator_and_format() -> None:
    anchor = at_level(OPERATOR, 2.0)
    anchor = {k: v for k, v in anchor.items() if k != "value"} | {"latency_ms": anchor["value"]}
    like = OPERATOR | {"params_json": '{"gemm_dtype": "fp8", "m": 64, "n": 4096, "k": 4096}'}
    shifted, plain = predict_rows([like], anchors=[anchor])[0], predict_rows([like])[0]
    assert shifted.predicted is not None and plain.predicted is not None and shifted.predicted > plain.predicted
    for other in (
        OPERATOR | {"system": "a100_sxm"},
        OPERATOR | {"params_json": '{"gemm_dtype": "bfloat16", "m": 64, "n": 4096, "k": 4096}'},
        KERNEL,
    ):
        assert predict_rows([other], anchors=[anchor]) == predict_rows([other])


def test_anchors_that_say_nothing_change_nothing() -> None:
    silent = [SERVED | {"value": v} for v in ("", "0", "-3", "nan", "inf", "fast")]
    silent += [SERVED | {"value": "3", "unit": "tokens/s"}, {"value": "5"}]
    assert predict_rows([SERVED], anchors=silent) == predict_rows([SERVED])


def test_anchored_bands_come_from_left_out_errors_and_hold_most_rows() -> None:
    rows = {r.slice: r for r in accuracy_table("family", ("anchored",))}
    plain = {r.slice: r for r in accuracy_table("family", ("pair",))}
    for name in ("closed/tpot", "offline/rate", "mlperf/rate", "local/decode", "closed/ttft"):
        assert rows[name].mape < plain[name].mape, name
        assert 80 <= rows[name].coverage <= 98, name


def test_notes_survive_an_anchor() -> None:
    long = SERVED | {"model": "Llama-2-70B", "isl": "8000"}
    assert "context limit" in predict_rows([long], anchors=[at_level(long, 1.2)])[0].reason
