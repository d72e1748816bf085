"""Rebuilds every fitted parameter of the engine from `data/calibration`: ``python -m econ.performance.calibration``.

Least squares on logs with a robust loss, priors from physics and offsets by hardware family and software; bands from
errors
of rows that were left out of the fit: a pair of model and accelerator, an accelerator, a whole family. Writes
`parameters_inference.json`, `parameters_kernel.json` and `out_of_fold.csv` (left-out predictions that `validate`
reads), and, by `training_calibration`, `parameters_training.json` and `training_left_out.csv`.
"""

from __future__ import annotations

import csv
import datetime
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from econ.performance.answers import evaluate
from econ.performance.bands import Band, band_of_errors, band_topic, nested
from econ.performance.calibration_data import Measurement, inference_measurements, kernel_measurements
from econ.performance.calibration_fit import KernelProblem, LocalProblem, Problem, ServingProblem, fit, leave_out
from econ.performance.inference_rows import InferenceCase
from econ.performance.kernel_engine import COLLECTIVES, device_of, members_of
from econ.performance.kernel_rows import KernelCase
from econ.performance.local import LocalCase
from econ.performance.parameters import ParameterSet, ParameterVector, to_json
from econ.performance.prediction import Confidence
from econ.performance.specs import (
    KERNEL_LEVELS,
    KERNEL_SPECS,
    LOCAL_LEVELS,
    LOCAL_SPECS,
    SERVING_LEVELS,
    SERVING_SPECS,
    present_levels,
)
from supply.paths import data_dir

__all__ = ["calibrate", "main"]

Array = NDArray[np.float64]
LEFT_OUT: Mapping[str, Confidence] = {"pair": "same_hardware", "hardware": "same_family", "family": "first_principles"}
#: In-sample errors understate those of a new run of a known pair.
NEARBY_INFLATION = 1.15
#: Solver steps of a left-out fit, which starts from the full one.
CHECK_STEPS = 5
SCORED_ONLY = ("open", "wide", "mlperf_latency")


@dataclass(frozen=True)
class Result:
    """One fitted problem: parameters, left-out errors by scheme and the in-sample errors."""

    name: str
    problem: Problem
    vector: ParameterVector
    parameters: ParameterSet
    errors: Mapping[str, Array]


def family_of(m: Measurement) -> str:
    """Hardware family of a measurement."""
    if isinstance(m.case, InferenceCase):
        return m.case.request.members["family"]
    if isinstance(m.case, LocalCase):
        return m.case.members["place"]
    return device_of(m.case.hardware.replace("-class SM90", "").replace("-class SM100", "").strip()).family


def hardware_of(m: Measurement) -> str:
    """Accelerator name of a measurement."""
    if isinstance(m.case, KernelCase):
        return device_of(m.case.hardware.replace("-class SM90", "").replace("-class SM100", "").strip()).name
    return m.pair[1]


def topic_of(m: Measurement) -> str:
    """Band topic of a measurement."""
    if isinstance(m.case, KernelCase):
        return "kernel/" + ("collective" if m.case.op in COLLECTIVES else m.case.op)
    return band_topic(m.case.mode, m.metric)


def solve(name: str, problem: Problem, vector: ParameterVector, steps: int, report: TextIO) -> Result:
    """Fit a problem and its left-out schemes."""
    began = time.perf_counter()
    usable = np.array([not m.suspect for m in problem.measurements])
    best = fit(problem, vector, usable, steps=steps)
    target = np.log(np.array([m.value for m in problem.measurements]))
    parameters = vector.unpack(best)
    errors = {"none": problem.log_values(parameters) - target}
    keys: Mapping[str, Callable[[Measurement], object]] = {
        "pair": lambda m: m.pair,
        "hardware": hardware_of,
        "family": family_of,
    }
    for scheme, key in keys.items():
        labels = [key(m) for m in problem.measurements]
        folds = 6 if scheme == "pair" else min(len(set(labels)), 6)
        errors[scheme] = leave_out(problem, vector, usable, labels, best, folds, steps=CHECK_STEPS)
    seconds = time.perf_counter() - began
    print(f"{name}: {len(vector)} constants, {len(target)} rows, {seconds:.0f} s", file=report)
    for scheme, error in errors.items():
        print(f"   left out {scheme:9s} {summary(error[usable])}", file=report)
    return Result(name, problem, vector, parameters, errors)


def summary(errors: Array) -> str:
    """Mean and median absolute percentage error of log errors."""
    share = np.abs(np.expm1(errors[np.isfinite(errors)])) * 100
    return f"MAPE {share.mean():5.1f}  median {np.median(share):5.1f}  n {len(share)}" if len(share) else "no rows"


def bands_of(result: Result) -> dict[str, dict[Confidence, Band]]:
    """Bands by topic and class, suspect rows included: a reader's row may be of that kind too."""
    topics = np.array([topic_of(m) for m in result.problem.measurements])
    out: dict[str, dict[Confidence, Band]] = {}
    for topic in sorted(set(topics)):
        mine = topics == topic
        bands: dict[Confidence, Band] = {
            "measured_nearby": band_of_errors(result.errors["none"][mine].tolist(), NEARBY_INFLATION)
        }
        for scheme, name in LEFT_OUT.items():
            bands[name] = band_of_errors(result.errors[scheme][mine].tolist())
        out[topic] = nested(bands)
    return out


def knowledge_of(measurements: Sequence[Measurement]) -> dict[str, Any]:
    """Pairs, accelerators and families seen."""
    return {
        "pairs": sorted({m.pair for m in measurements}),
        "hardware": sorted({hardware_of(m) for m in measurements}),
        "families": sorted({family_of(m) for m in measurements}),
    }


def scored_only_bands(p: ParameterSet, measurements: Sequence[Measurement]) -> dict[str, dict[Confidence, Band]]:
    """Bands of load models that no constant is fitted to: their plain errors, wider for what was not seen."""
    errors: dict[str, list[float]] = {}
    for scored in SCORED_ONLY:
        mode = scored.removesuffix("_latency")
        mine = [m for m in measurements if isinstance(m.case, InferenceCase) and m.case.mode == mode]
        mine = [m for m in mine if topic_of(m).startswith(scored + "/")]
        if not mine:
            continue
        cases = [m.case for m in mine if isinstance(m.case, InferenceCase)]
        metrics = evaluate(mode, cases, p).metrics
        for n, m in enumerate(mine):
            if m.metric in metrics:
                errors.setdefault(band_topic(mode, m.metric), []).append(float(np.log(metrics[m.metric][n] / m.value)))
    out: dict[str, dict[Confidence, Band]] = {}
    for topic, found in errors.items():
        scale: dict[Confidence, float] = {
            "measured_nearby": 1.0,
            "same_hardware": 1.1,
            "same_family": 1.25,
            "first_principles": 1.5,
        }
        out[topic] = nested({name: band_of_errors(found, factor) for name, factor in scale.items()})
    return out


def _bands_json(bands: Mapping[str, Mapping[Confidence, Band]]) -> dict[str, Any]:
    return {topic: {name: asdict(band) for name, band in by.items()} for topic, by in bands.items()}


def _block(result: Result) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(to_json(result.parameters, {}))
    rows = len(result.problem.measurements)
    body["constants"] = len(result.vector)
    body["rows"] = rows
    body["rows_per_constant"] = round(rows / len(result.vector), 1)
    return body


def _ids(problem: Problem) -> list[str]:
    return sorted({m.identity for m in problem.measurements if not m.suspect})


def write_out_of_fold(path: Path, results: Sequence[Result]) -> None:
    """Left-out predictions in the units of the rows (seconds as milliseconds)."""
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(["id", "topic", "left_out", "log_error"])
        for result in results:
            for n, m in enumerate(result.problem.measurements):
                for scheme in LEFT_OUT:
                    writer.writerow([m.identity, topic_of(m), scheme, f"{result.errors[scheme][n]:.4f}"])


def calibrate(folder: Path, report: TextIO = sys.stdout, today: str | None = None) -> dict[str, float]:
    """Fit everything and write the files into ``folder``; returns rows per constant by problem."""
    date = today or datetime.date.today().isoformat()
    inference = inference_measurements()
    served = [m.case.request.members for m in inference if isinstance(m.case, InferenceCase)]
    serving_vector = ParameterVector(SERVING_SPECS, present_levels(SERVING_LEVELS, served))
    serving = solve(
        "serving", ServingProblem(inference, serving_vector.unpack(serving_vector.prior)), serving_vector, 25, report
    )
    places = [m.case.members for m in inference if isinstance(m.case, LocalCase)]
    local_vector = ParameterVector(LOCAL_SPECS, present_levels(LOCAL_LEVELS, places))
    start = local_vector.unpack(local_vector.prior)
    local = solve("local", LocalProblem(inference, start), local_vector, 25, report)
    kernels = []
    for op, specs in KERNEL_SPECS.items():
        rows = [m for m in kernel_measurements() if topic_of(m) == f"kernel/{op}"]
        levels = present_levels(KERNEL_LEVELS, [members_of(m.case) for m in rows if isinstance(m.case, KernelCase)])
        vector = ParameterVector(specs, levels)
        kernels.append(solve(op, KernelProblem(rows), vector, 25, report))
    bands = bands_of(serving) | bands_of(local) | scored_only_bands(serving.parameters, inference)
    body = {
        "fitted_on": date,
        "serving": _block(serving),
        "local": _block(local),
        "known": {"serving": knowledge_of(_measured(inference)), "local": knowledge_of(local.problem.measurements)},
        "bands": _bands_json(bands),
        "training_ids": sorted(_ids(serving.problem) + _ids(local.problem)),
    }
    _write(folder / "parameters_inference.json", body)
    kernel_bands: dict[str, dict[Confidence, Band]] = {}
    for result in kernels:
        kernel_bands |= bands_of(result)
    body = {
        "fitted_on": date,
        "operations": {r.name: _block(r) for r in kernels},
        "known": {r.name: knowledge_of(r.problem.measurements) for r in kernels},
        "bands": _bands_json(kernel_bands),
        "training_ids": sorted(i for r in kernels for i in _ids(r.problem)),
    }
    _write(folder / "parameters_kernel.json", body)
    write_out_of_fold(folder / "out_of_fold.csv", [serving, local, *kernels])
    return {r.name: len(r.problem.measurements) / len(r.vector) for r in (serving, local, *kernels)}


def _measured(inference: Sequence[Measurement]) -> list[Measurement]:
    return [m for m in inference if isinstance(m.case, InferenceCase)]


def _write(path: Path, body: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """Entry of ``python -m econ.performance.calibration``."""
    ratios = calibrate(data_dir() / "calibration")
    for name, ratio in ratios.items():
        print(f"{name}: {ratio:.1f} rows per constant")
    # `validate` imports this module for its names; the training fit is only needed here.
    from econ.performance import training_calibration
    from econ.performance.training_accuracy import training_accuracy

    training_calibration.calibrate()
    for line in training_accuracy():
        print(line)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
