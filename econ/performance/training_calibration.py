"""Fit of the training constants on published runs, with cross-validation by whole (model, accelerator) pairs.

Run `python -m econ.performance.training_calibration` to rebuild `data/calibration/parameters_training.json`. Least
squares on log step time with a robust loss; every constant is held by its physical spread. Bands are quantiles of
left-out residuals.
"""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from econ.performance.training import peak_flop_per_s, step_time, training_flops_per_token
from econ.performance.training_accuracy import training_accuracy
from econ.performance.training_metrics import step_from_metric
from econ.performance.training_parameters import FAMILIES, SPECS, TrainingConstants, default_constants, family_of
from econ.performance.training_rows import MEMORY_METRICS, RowError, TrainingCase, training_case
from supply.paths import data_file

__all__ = [
    "Run",
    "calibrate",
    "calibration_rows",
    "fit_constants",
    "measured_runs",
]

Array = NDArray[np.float64]
#: Noise of a published step time (log): dense runs differ by 2 to 10 % between releases, expert models by up to 2x.
DENSE_NOISE, EXPERT_FACTOR, ASSUMED_FACTOR, HUBER = 0.04, 2.5, 1.7, 2.0
#: Rows of one (model, accelerator) pair share their error: each counts as n^-1/2 of an independent one.
PAIR_POWER = 0.25
FOLDS = 10
#: Families of one shape under several names count as one model when pairs are left out.
SAME_MODEL = {"Llama-2-70B": "Llama-70B", "Llama-3-70B": "Llama-70B", "Llama-3.1-70B": "Llama-70B",
              "Llama-3-8B": "Llama-8B", "Llama-3.1-8B": "Llama-8B"}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One published run: its case, the measured step time (geometric mean over its metrics) and the row ids."""

    case: TrainingCase
    step_s: float
    ids: tuple[str, ...]


def calibration_rows() -> list[dict[str, str]]:
    """The published training rows."""
    with data_file("calibration", "training.csv").open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def pair_of(run: Run) -> tuple[str, str]:
    """The (model, accelerator) pair that cross-validation leaves out as a whole."""
    name = run.case.model.name
    return SAME_MODEL.get(name, name), run.case.hw.name


def measured_runs(rows: Sequence[Mapping[str, str]], constants: TrainingConstants, unknown: bool = False) -> list[Run]:
    """Runs that can be fitted, the speed metrics of one set-up joined; `unknown`: those of which no set-up is told."""
    groups: dict[object, list[tuple[TrainingCase, float, str]]] = {}
    for row in rows:
        if row.get("metric") in MEMORY_METRICS:
            continue
        try:
            case = training_case(row, constants)
        except RowError:
            continue
        if case.unknown != unknown:
            continue
        key = (case.model.name, case.hw.name, case.setup, row.get("source"))
        groups.setdefault(key, []).append((case, step_from_metric(case, float(row["value"])), row["id"]))
    return [
        Run(v[0][0], math.exp(float(np.mean([math.log(s) for _, s, _ in v]))), tuple(i for _, _, i in v))
        for v in groups.values()
    ]


def _vector() -> tuple[list[tuple[str, str]], Array, Array, Array, Array]:
    keys = [(name, "") for name in SPECS]
    keys += [(name, family) for name, spec in SPECS.items() if spec.family_spread for family in FAMILIES[:-1]]
    prior = np.array([math.log(SPECS[n].value) if not f else 0.0 for n, f in keys])
    spread = np.array([SPECS[n].family_spread if f else SPECS[n].spread for n, f in keys])
    low = np.array([-1.0 if f else math.log(SPECS[n].low) for n, f in keys])
    high = np.array([1.0 if f else math.log(SPECS[n].high) for n, f in keys])
    return keys, prior, spread, low, high


def _unpack(keys: Sequence[tuple[str, str]], vector: Array) -> TrainingConstants:
    values: dict[str, float] = {}
    offsets: dict[str, dict[str, float]] = {}
    for (name, family), number in zip(keys, vector, strict=True):
        if family:
            offsets.setdefault(name, {})[family] = round(float(number), 5)
        else:
            values[name] = float(f"{math.exp(float(number)):.5g}")
    return TrainingConstants(values, offsets)


def predicted_steps(runs: Sequence[Run], constants: TrainingConstants) -> Array:
    """Step times in seconds of the runs' set-ups."""
    return np.array([step_time(r.case.model, r.case.hw, r.case.setup, constants).total_s for r in runs])


def _weights(runs: Sequence[Run]) -> Array:
    count = Counter(pair_of(r) for r in runs)
    noise = [
        DENSE_NOISE
        * (EXPERT_FACTOR if r.case.model.moe_layers else 1.0)
        * (1.0 if r.case.stated else ASSUMED_FACTOR)
        * count[pair_of(r)] ** PAIR_POWER
        for r in runs
    ]
    return 1.0 / np.array(noise)


def _robust(z: Array) -> Array:
    """Residuals whose square is the pseudo-Huber loss."""
    return np.asarray(np.sign(z) * np.sqrt(2 * HUBER**2 * (np.sqrt(1 + (z / HUBER) ** 2) - 1)))


def fit_constants(runs: Sequence[Run], start: TrainingConstants | None = None, steps: int = 25) -> TrainingConstants:
    """Constants that fit the runs, each held by its spread; `start` only speeds the search up."""
    keys, prior, spread, low, high = _vector()
    measured, weights = np.log([r.step_s for r in runs]), _weights(runs)
    first = prior
    if start is not None:
        first = np.array([start.offsets.get(n, {}).get(f, 0.0) if f else math.log(start.values[n]) for n, f in keys])
        first = np.clip(first, low + 1e-9, high - 1e-9)

    def residuals(vector: Array) -> Array:
        error = np.log(predicted_steps(runs, _exact(keys, vector))) - measured
        return np.concatenate([_robust(weights * error), (vector - prior) / spread])

    solved = least_squares(
        residuals, first, bounds=(low, high), max_nfev=steps, diff_step=1e-3, x_scale=spread, ftol=1e-5, xtol=1e-5
    )
    return _unpack(keys, solved.x)


def _exact(keys: Sequence[tuple[str, str]], vector: Array) -> TrainingConstants:
    values = {n: math.exp(float(v)) for (n, f), v in zip(keys, vector, strict=True) if not f}
    offsets: dict[str, dict[str, float]] = {}
    for (name, family), number in zip(keys, vector, strict=True):
        if family:
            offsets.setdefault(name, {})[family] = float(number)
    return TrainingConstants(values, offsets)


def cross_validated_ratios(
    runs: Sequence[Run],
    group: Callable[[Run], object],
    folds: int = FOLDS,
    start: TrainingConstants | None = None,
    seed: int = 1,
) -> Array:
    """Predicted over measured step time of each run, from constants fitted without any run of its group."""
    names = sorted({str(group(r)) for r in runs})
    order = np.random.default_rng(seed).permutation(len(names))
    fold = {names[k]: i % folds for i, k in enumerate(order)}
    ratios = np.full(len(runs), np.nan)
    for k in range(min(folds, len(names))):
        kept = [r for r in runs if fold[str(group(r))] != k]
        left = [i for i, r in enumerate(runs) if fold[str(group(r))] == k]
        constants = fit_constants(kept, start, steps=8)
        predicted = predicted_steps([runs[i] for i in left], constants)
        ratios[left] = predicted / np.array([runs[i].step_s for i in left])
    return ratios


#: Confidence class -> what is left out to learn its band.
LEFT_OUT: Mapping[str, Callable[[Run], object]] = {
    "measured_nearby": lambda r: r.ids,
    "same_hardware": pair_of,
    "same_family": lambda r: r.case.hw.name,
    "first_principles": lambda r: family_of(r.case.hw),
}


KINDS = ("dense_stated", "dense_assumed", "expert_stated", "expert_assumed")
#: Second-hand figures of whole runs: as many as are known give one slowdown and one band for both model kinds.
UNKNOWN = ("dense_unknown", "expert_unknown")


def _band(errors: Sequence[float], before: tuple[float, float]) -> tuple[float, float]:
    """90 % factors (measured over predicted step time) from log errors, widened for few runs, never under `before`."""
    widen = 1 + 2 / math.sqrt(len(errors))
    low, high = np.quantile(errors, [0.05, 0.95])
    return (
        min(before[0], math.exp(min(float(low), -0.02) * widen)),
        max(before[1], math.exp(max(float(high), 0.02) * widen)),
    )


def _bands(runs: Sequence[Run], ratios: Mapping[str, Array]) -> dict[str, dict[str, list[float]]]:
    """Bands by confidence class and kind of case; a kind with fewer than twelve runs borrows those of its models."""
    bands: dict[str, dict[str, list[float]]] = {}
    for kind in KINDS:
        before = (1.0, 1.0)
        for name, values in ratios.items():
            pairs = list(zip(values, runs, strict=True))
            errors = [-math.log(x) for x, r in pairs if r.case.kind == kind]
            if len(errors) < 12:
                errors = [-math.log(x) for x, r in pairs if r.case.kind.startswith(kind.split("_")[0])]
            before = _band(errors, before)
            bands.setdefault(name, {})[kind] = [round(x, 4) for x in before]
    return bands


def _unknown_setups(rows: Sequence[Mapping[str, str]], constants: TrainingConstants) -> tuple[float, list[float]]:
    """How much slower runs of unknown set-up are than the best layout (median), and the band around that."""
    runs = measured_runs(rows, constants, unknown=True)
    errors = np.array([math.log(r.step_s) for r in runs]) - np.log(predicted_steps(runs, constants))
    level = float(np.median(errors))
    band = _band(list(errors - level), (1.0, 1.0))
    return round(math.exp(level), 4), [round(x, 4) for x in band]


def _summary(ratios: Array) -> dict[str, float]:
    error = np.abs(ratios - 1)
    return {
        "runs": len(ratios),
        "mape": round(float(error.mean()), 4),
        "median": round(float(np.median(error)), 4),
        "p90": round(float(np.quantile(error, 0.9)), 4),
        "bias": round(float(np.median(ratios)), 4),
    }


def _roofline(run: Run) -> float:
    """Step time at the dense peak of the format, nothing else, over the measured one."""
    case, setup = run.case, run.case.setup
    flops = training_flops_per_token(case.model, setup.sequence, "causal", adapters_only=setup.adapters_only)
    peak = peak_flop_per_s(case.hw, setup.number_format)
    return setup.tokens_per_step * flops / (setup.accelerators * peak) / run.step_s


def _write_left_out(
    runs: Sequence[Run], ratios: Mapping[str, Array], bands: Mapping[str, Mapping[str, Sequence[float]]]
) -> None:
    with (data_file("calibration") / "training_left_out.csv").open("w", encoding="utf-8", newline="") as handle:
        out = csv.writer(handle, lineterminator="\n")
        out.writerow(["id", "model", "hardware", "kind", "left_out", "ratio", "covered", "roofline"])
        for i, run in enumerate(runs):
            for name, values in ratios.items():
                low, high = bands[name][run.case.kind]
                row = [run.ids[0], run.case.model.name, run.case.hw.name, run.case.kind, name, f"{values[i]:.4f}"]
                out.writerow([*row, int(low <= 1 / values[i] <= high), f"{_roofline(run):.4f}"])


def calibrate() -> TrainingConstants:
    """Fit, cross-validate, write the parameter file and the left-out ratios; returns the constants."""
    rows = calibration_rows()
    constants = default_constants()
    runs: list[Run] = []
    for _ in range(2):  # layouts that a row leaves open are searched with the constants of the round before
        runs = measured_runs(rows, constants)
        constants = fit_constants(runs, constants if constants.offsets else None)
    ratios = {
        name: cross_validated_ratios(runs, group, FOLDS if name != "first_principles" else len(FAMILIES), constants)
        for name, group in LEFT_OUT.items()
    }
    bands = _bands(runs, ratios)
    _write_left_out(runs, ratios, bands)
    slowdown, unknown = _unknown_setups(rows, constants)
    for table in bands.values():
        table.update(dict.fromkeys(UNKNOWN, unknown))
    body = {
        "values": dict(constants.values),
        "offsets": {n: dict(v) for n, v in constants.offsets.items()},
        "unknown_setup_slowdown": slowdown,
        "pairs": sorted({f"{r.case.model.name}/{r.case.hw.name}" for r in runs}),
        "hardware": sorted({r.case.hw.name for r in runs}),
        "families": sorted({family_of(r.case.hw) for r in runs} - {"other"}),
        "bands": bands,
        "constants": len(constants.values) + sum(map(len, constants.offsets.values())),
        "fit": _summary(predicted_steps(runs, constants) / np.array([r.step_s for r in runs])),
        "left_out": {name: _summary(x) for name, x in ratios.items()},
    }
    with (data_file("calibration") / "parameters_training.json").open("w", encoding="utf-8") as handle:
        json.dump(body, handle, indent=1)
        handle.write("\n")
    return constants


if __name__ == "__main__":
    calibrate()
    for line in training_accuracy():
        print(line)
