"""Rows of the training format: accuracy on published tables, what is read, refusals, bands."""

from __future__ import annotations

import csv
import math
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from econ.performance.hardware import hardware
from econ.performance.prediction import CONFIDENCE_CLASSES, LIMITS
from econ.performance.training_accuracy import training_accuracy
from econ.performance.training_calibration import (
    calibration_rows,
    fit_constants,
    measured_runs,
    predicted_steps,
)
from econ.performance.training_metrics import metric_from_step, step_from_metric
from econ.performance.training_parameters import FAMILIES, SPECS, family_of, training_constants
from econ.performance.training_predict import predict_training_row, predict_training_rows
from econ.performance.training_rows import METRICS, training_case

NEVER_READ = ("value", "id", "source", "url", "as_of")
ROW = {
    "model": "MPT-7b", "params": "6658859008", "hardware": "A100-40", "n_accelerators": "64", "seq": "2048",
    "global_batch": "1152", "micro_batch": "18", "tp": "1", "pp": "1", "dp": "64", "precision": "bf16",
    "recompute": "full (activation checkpointing)", "metric": "tokens_per_s_per_gpu", "unit": "",
    "conditions": "FSDP FULL_SHARD, MP mode PURE",
}  # fmt: skip


@lru_cache(maxsize=1)
def rows() -> tuple[dict[str, str], ...]:
    return tuple(calibration_rows())


def test_a100_scaling_table() -> None:
    """P13 on the rows present here: mean step-time error 4 % or less; no constant is fitted to this table alone."""
    table = [r for r in rows() if r["model"] in ("GPT-22B", "MT-NLG-530B") and "memory" not in r["metric"]]
    errors = [
        abs(p.predicted / float(r["value"]) - 1) for r, p in zip(table, predict_training_rows(table), strict=True)
    ]
    assert len(errors) == 6 and float(np.mean(errors)) <= 0.04
    other = {family_of(hardware(r["hardware"])) for r in rows() if r["hardware"] in ("A100-40", "A100-80")}
    assert other == {"ampere"}  # its constants are shared with every other A100 run


def test_memory_where_layout_is_stated() -> None:
    table = [r for r in rows() if r["metric"].endswith("memory_gib")]
    answers = [(float(r["value"]), p) for r, p in zip(table, predict_training_rows(table), strict=True)]
    assert sum(p.answered for _, p in answers) == 8
    for measured, p in answers:
        if p.answered:
            assert p.predicted == pytest.approx(measured, rel=0.10) and p.low <= measured <= p.high
        else:
            assert "follows from layout, batch and sequence" in p.reason


def test_left_out_accuracy_meets_the_target() -> None:
    table = {(str(line["group"]), str(line["left_out"])): line for line in training_accuracy()}
    stated, every = table["layout stated", "pair"], table["all", "pair"]
    assert float(stated["mape"]) <= 10 and float(every["mape"]) <= 10
    assert 80 <= float(every["coverage"]) <= 97 and 0.93 <= float(every["bias"]) <= 1.07
    assert float(every["roofline_mape"]) > 3 * float(every["mape"])
    with pytest.raises(ValueError, match="by = 'source'"):
        training_accuracy("source")


def test_coverage_of_bands_on_calibration_rows() -> None:
    inside = [
        p.low <= float(r["value"]) <= p.high
        for r, p in zip(rows(), predict_training_rows(rows()), strict=True)
        if p.answered
    ]
    assert 0.85 <= float(np.mean(inside)) <= 0.97


def test_never_read_columns_change_nothing() -> None:
    some = rows()[::23]
    blanked = [r | dict.fromkeys(NEVER_READ, "") for r in some]
    assert predict_training_rows(some) == predict_training_rows(blanked)
    assert predict_training_rows(some[::-1])[::-1] == predict_training_rows(some)
    assert [predict_training_row(r) for r in some] == predict_training_rows(some)


def test_answers_are_well_formed() -> None:
    for row, p in zip(rows(), predict_training_rows(rows()), strict=True):
        if not p.answered:
            assert p.reason and p.predicted is None
            continue
        assert row["metric"] in METRICS
        assert 0 < p.low <= p.predicted <= p.high < math.inf
        assert p.confidence in CONFIDENCE_CLASSES and p.limited_by in LIMITS
        if row["metric"] == "mfu":
            assert p.predicted < 1


def test_metrics_of_one_run_agree() -> None:
    values = {m: predict_training_row(ROW | {"metric": m}).predicted for m in METRICS[:5]}
    step = values["step_time_s"]
    assert values["tokens_per_s_per_gpu"] == pytest.approx(1152 * 2048 / 64 / step)
    assert values["samples_per_s_total"] == pytest.approx(1152 / step)
    assert values["mfu"] == pytest.approx(values["tflops_per_gpu"] * 1e12 / hardware("A100-40").peak("bf16"))
    per_token = 6 * 6658859008 + 12 * 32 * 4096 * 2048
    assert values["tflops_per_gpu"] == pytest.approx(values["tokens_per_s_per_gpu"] * per_token / 1e12)
    case = training_case(ROW)
    assert step_from_metric(case, metric_from_step(case, 7.0)) == pytest.approx(7.0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"metric": "energy"}, "metric 'energy' is not predicted"),
        ({"model": "Unheard-of", "params": ""}, "unknown model 'Unheard-of'"),
        ({"hardware": "H1000"}, "unknown hardware 'H1000'; did you mean H100"),
        ({"n_accelerators": "", "dp": "", "metric": "step_time_s"}, "neither n_accelerators nor dp"),
        ({"n_accelerators": "many"}, "n_accelerators = 'many' is not a number"),
        ({"tp": "7", "dp": ""}, "do not divide"),
        ({"precision": "int3"}, "precision 'int3' is not one of"),
        ({"recompute": "maybe"}, "recompute 'maybe' is not none, selective or full"),
        ({"seq": "-4"}, "seq = '-4' must be above 0"),
    ],
)
def test_refusals_name_the_cause(change: dict[str, str], reason: str) -> None:
    answer = predict_training_row(ROW | change)
    assert not answer.answered and reason in answer.reason


def test_rows_with_little_said_are_answered_with_wider_bands() -> None:
    stated = predict_training_row(ROW | {"metric": "mfu"})
    bare = {"model": "Some 40B", "params": "40e9", "hardware": "A100-80", "n_accelerators": "512", "metric": "mfu"}
    unknown = predict_training_row(bare)
    assert "layout by search" in unknown.reason and unknown.predicted < 0.5
    assert unknown.high / unknown.low > 2 * stated.high / stated.low


def test_unseen_part_is_first_principles() -> None:
    answer = predict_training_row(ROW | {"hardware": "MI300X"})
    assert answer.confidence == "first_principles"
    assert answer.high / answer.low > predict_training_row(ROW).high / predict_training_row(ROW).low


def test_constants_are_few_and_within_physics() -> None:
    constants = training_constants()
    assert set(constants.values) == set(SPECS)
    for name, value in constants.values.items():
        assert SPECS[name].low <= value <= SPECS[name].high, name
    count = len(constants.values) + sum(len(v) for v in constants.offsets.values())
    assert count <= 48 and len(measured_runs(rows(), constants)) / count > 4
    for family in FAMILIES:
        assert constants.at(family, "fp8")["gemm"] < 0.95


def test_fit_recovers_known_constants() -> None:
    """Runs made by the model itself are fitted back: a planted 10 % slower link and matrix share show in the times."""
    constants = training_constants()
    runs = measured_runs([r for r in rows() if r["hardware"] == "A100-40"], constants)[:8]
    planted = [
        type(r)(r.case, float(s) * 1.1, r.ids) for r, s in zip(runs, predicted_steps(runs, constants), strict=True)
    ]
    fitted = predicted_steps(planted, fit_constants(planted, constants, steps=6))
    assert np.allclose(fitted, [r.step_s for r in planted], rtol=0.03)


def test_calibration_copy_has_no_results_in_conditions() -> None:
    for row in rows():
        assert "419" not in row["conditions"] and "%" not in row["conditions"]


def test_header_of_the_calibration_file() -> None:
    from supply.paths import data_file

    with data_file("calibration", "training.csv").open(encoding="utf-8", newline="") as handle:
        header = next(csv.reader(handle))
    assert header[:5] == ["id", "source", "url", "as_of", "model"] and header[-1] == "conditions"


@settings(max_examples=120, deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "model": st.sampled_from(["MPT-7b", "Mixtral-8x7B", "Llama-2-70B-LoRA", "Nobody", ""]),
            "params": st.sampled_from(["", "7e9", "1e20", "x"]),
            "hardware": st.sampled_from(["H100", "TPU-v5e", "MI300X", "V100S-PCIe", "H101", ""]),
            "n_accelerators": st.sampled_from(["", "1", "7", "64", "100000"]),
            "seq": st.sampled_from(["", "1", "4096", "1000000"]),
            "global_batch": st.sampled_from(["", "1", "4096", "0.5"]),
            "micro_batch": st.sampled_from(["", "1", "16"]),
            "tp": st.sampled_from(["", "1", "8"]),
            "pp": st.sampled_from(["", "1", "64"]),
            "ep": st.sampled_from(["", "8"]),
            "precision": st.sampled_from(["", "BF16", "FP8", "NVFP4", "FP16", "fp32", "int3"]),
            "recompute": st.sampled_from(["", "none", "full", "selective (attention only)"]),
            "metric": st.sampled_from([*METRICS, "energy", ""]),
            "conditions": st.sampled_from(["", "virtual pipeline 4", "FSDP FULL_SHARD", "4x100 Gb/s per node"]),
        }
    )
)
def test_any_row_gets_an_answer_or_a_reason(row: dict[str, str]) -> None:
    answer = predict_training_row(row)
    if answer.predicted is None:
        assert answer.reason
    else:
        assert 0 < answer.low <= answer.predicted <= answer.high < math.inf


def test_contradictions_are_refused() -> None:
    assert "contradicts the" in predict_training_row(ROW | {"params": "70e9"}).reason
