"""The fit on made-up measurements: it finds what made them, keeps to priors, and shrugs off outliers."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from econ.performance.bands import band_of_errors, nested
from econ.performance.calibration import solve
from econ.performance.calibration_data import Measurement, inference_measurements, kernel_measurements, suspect_reason
from econ.performance.calibration_fit import KernelProblem, fit, leave_out
from econ.performance.kernel_engine import KernelBatch, in_metric, members_of
from econ.performance.kernel_rows import KernelCase
from econ.performance.parameters import ParameterVector, Spec, from_mapping, to_json
from econ.performance.specs import KERNEL_LEVELS, KERNEL_SPECS, present_levels
from supply.paths import data_file


def made_up(noise: float = 0.0, outlier: bool = False) -> tuple[KernelProblem, ParameterVector, np.ndarray]:
    """All-reduce rows computed from known constants."""
    cases = [
        KernelCase("all_reduce", part, "bf16", "nccl", "latency_ms", "ms", {"ranks": n, "bytes": float(size)})
        for part in ("H100", "A100")
        for n in (2.0, 4.0, 8.0)
        for size in (1e4, 1e6, 1e8, 1e9)
    ]
    levels = present_levels(KERNEL_LEVELS, [members_of(c) for c in cases])
    vector = ParameterVector(KERNEL_SPECS["collective"], levels)
    truth = vector.prior.copy()
    truth[0] += np.log(1.5)
    batch = KernelBatch(cases)
    values = in_metric(batch, batch.seconds(vector.unpack(truth)))
    values = values * np.exp(noise * np.random.default_rng(1).standard_normal(len(values)))
    if outlier:
        values[3] *= 30
    rows = [
        Measurement(str(i), "x", c, c.metric, float(v), "") for i, (c, v) in enumerate(zip(cases, values, strict=True))
    ]
    return KernelProblem(rows), vector, truth


def test_fit_recovers_the_predictions_of_the_truth() -> None:
    problem, vector, truth = made_up()
    mask = np.ones(len(problem.measurements), dtype=bool)
    found = fit(problem, vector, mask)
    error = problem.log_values(vector.unpack(found)) - problem.log_values(vector.unpack(truth))
    assert np.abs(error).max() < 0.05


def test_one_outlier_moves_little() -> None:
    problem, vector, truth = made_up(outlier=True)
    mask = np.ones(len(problem.measurements), dtype=bool)
    found = fit(problem, vector, mask)
    error = problem.log_values(vector.unpack(found)) - problem.log_values(vector.unpack(truth))
    assert np.median(np.abs(error)) < 0.05


def test_without_rows_the_priors_stand() -> None:
    problem, vector, _ = made_up()
    none = np.zeros(len(problem.measurements), dtype=bool)
    none[0] = True
    found = fit(problem, vector, none)
    assert np.abs(found - vector.prior).max() < 0.5


def test_left_out_rows_are_predicted_without_themselves() -> None:
    problem, vector, _ = made_up(noise=0.05)
    mask = np.ones(len(problem.measurements), dtype=bool)
    keys = [m.pair for m in problem.measurements]
    errors = leave_out(problem, vector, mask, keys, vector.prior, folds=2)
    assert np.isfinite(errors).all()
    changed = [Measurement(m.identity, m.file, m.case, m.metric, m.value * 9, "") for m in problem.measurements]
    out = [k == keys[0] for k in keys]
    mixed = [c if o else m for c, m, o in zip(changed, problem.measurements, out, strict=True)]
    moved = leave_out(KernelProblem(mixed), vector, mask, keys, vector.prior, folds=2)
    # Values of a key do not reach its own left-out prediction: only the comparison shifts, by log 9.
    assert moved[out] - errors[out] == pytest.approx(-np.log(9.0), abs=1e-6)


def test_solve_reports_constants_and_rows() -> None:
    problem, vector, _ = made_up()
    text = io.StringIO()
    result = solve("demo", problem, vector, 5, text)
    assert f"{len(vector)} constants, 24 rows" in text.getvalue()
    assert set(result.errors) == {"none", "pair", "hardware", "family"}


def test_parameters_survive_their_file() -> None:
    vector = ParameterVector([Spec("a", 2.0, 0.1, {"k": 0.2})], {"k": ("", "x")})
    stored = vector.unpack(np.array([0.7, -0.3]))
    back = from_mapping(json.loads(to_json(stored, {"note": "n"})))
    codes = {"k": np.array([0, 1])}
    assert back.value("a", codes) == pytest.approx(stored.value("a", codes), rel=1e-4)
    assert back.code("k", "never seen") == 0


def test_bands_hold_their_errors_and_nest() -> None:
    errors = np.random.default_rng(2).normal(0.0, 0.2, 2000)
    band = band_of_errors(errors.tolist())
    inside = np.mean((np.exp(-errors) >= band.low) & (np.exp(-errors) <= band.high))
    assert inside == pytest.approx(0.9, abs=0.02)
    wider = nested({"measured_nearby": band, "same_hardware": band_of_errors([0.0] * 50)})
    assert wider["same_hardware"].low <= band.low and wider["same_hardware"].high >= band.high
    assert band_of_errors([]).rows == 0


def test_suspect_rows_are_named_and_kept_out_of_training() -> None:
    assert suspect_reason("ifx-01048", {"framework": "vLLM"})
    assert not suspect_reason("ifx-00207", {"framework": "SGLang"})
    suspects = {m.identity for m in inference_measurements() if m.suspect}
    stored = json.loads(data_file("calibration", "parameters_inference.json").read_text(encoding="utf-8"))
    assert suspects and not suspects & set(stored["training_ids"])


def test_stored_files_name_their_date_and_training_rows() -> None:
    for name, rows in (("inference", inference_measurements()), ("kernel", kernel_measurements())):
        body = json.loads(data_file("calibration", f"parameters_{name}.json").read_text(encoding="utf-8"))
        assert body["fitted_on"][:2] == "20"
        assert set(body["training_ids"]) <= {m.identity for m in rows}


def test_no_level_names_a_model_a_row_or_a_load() -> None:
    for name in ("inference", "kernel"):
        text = Path(data_file("calibration", f"parameters_{name}.json")).read_text(encoding="utf-8")
        body = json.loads(text)
        blocks = [body["serving"], body["local"]] if name == "inference" else list(body["operations"].values())
        allowed = {"framework", "generation", "era", "family", "format_dense", "format_expert", "place", "engine"}
        allowed |= {"quantised", "format", "backend", "op", "cell"}
        for block in blocks:
            assert set(block["levels"]) <= allowed


def test_make_calibrate_rebuilds_every_parameter_file(monkeypatch: pytest.MonkeyPatch) -> None:
    from econ.performance import calibration, training_calibration

    called: list[str] = []

    def serving_and_kernels(folder: Path) -> dict[str, float]:
        called.append(folder.name)
        return {"serving": 60.0}

    monkeypatch.setattr(calibration, "calibrate", serving_and_kernels)
    monkeypatch.setattr(training_calibration, "calibrate", lambda: called.append("training"))
    assert calibration.main() == 0
    assert called == ["calibration", "training"]
