"""Which inputs move an answer: tornado with price-based slopes, Morris, Sobol, PAWN, and two-input maps.

A factor is a driver (a fact, a series, an assumption), or all drivers behind a path, pattern or group, which then
move together: rank 0 is their low end, rank 1 their high end (yields of a group rise together).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scenarios.evaluators import Chunk, InProcess, Processes, Worker
from scenarios.load import Scenario
from scenarios.nodes import Array
from scenarios.output_words import input_title, input_values, output_unit, output_words
from scenarios.outputs import parse_output
from scenarios.sampling import Factor, factors
from scenarios.study import default_outputs, prepare
from scenarios.surrogate import NODES, check_points, grid_points, interpolators

if TYPE_CHECKING:
    from scenarios.resolve import Resolved

__all__ = ["METHODS", "Sensitivity", "analyse", "grid", "problem_of", "sample_ranks", "sensitivity"]

METHODS = ("tornado", "morris", "sobol", "pawn")
CHUNK = 128
#: Base samples of an interpolated grid: they cost no solve.
SURROGATE_SAMPLES = 8192
#: Inputs of a tornado between two words of progress.
STEP = 25
#: Share of an input's range over which the price-based slope is taken.
SLOPE_STEP = 0.02


@dataclass
class Sensitivity:
    """Result of a study: for each output a list of inputs, the most important first.

    `titles` and `units` are those of the outputs; a row of a tornado holds the title of its input and a number that it
    moves (`input_name`, `input_unit`) at both ends. `slope` is in `slope_unit`: the objective gained from the low to
    the high end if the prices of today's plan held.
    """

    scenario: str
    method: str
    outputs: dict[str, list[dict[str, Any]]]
    nominal: dict[str, float] = field(default_factory=dict)
    evaluations: int = 0
    titles: dict[str, str] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    slope_unit: str = ""
    second: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    surrogate: dict[str, float] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        """{"method", "outputs": {NAME: [...]}} and, for Sobol, the second-order indices."""
        out: dict[str, Any] = {"scenario": self.scenario, "method": self.method, "outputs": self.outputs}
        out |= {"nominal": self.nominal, "evaluations": self.evaluations}
        out |= {"titles": self.titles, "units": self.units}
        out |= {"slope_unit": self.slope_unit} if self.method == "tornado" else {}
        out |= {"second": self.second} if self.second else {}
        return out | ({"surrogate_error": self.surrogate} if self.surrogate else {})


def sensitivity(
    scenario: str | Path | Scenario,
    method: str = "tornado",
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    sets: Sequence[tuple[str, Any]] = (),
    samples: int | None = None,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[str], None] | None = None,
) -> Sensitivity:
    """Sensitivity of outputs to inputs; by default every driver is an input and the scenario names the outputs.

    `samples`: Sobol and PAWN base samples (default 256), Morris trajectories (default 20). Sobol of two or three inputs
    without `samples` interpolates a grid of solves (see `scenarios.surrogate`); `surrogate` then gives its error.

    Raises:
        ValueError: unknown method. ScenarioError: wrong scenario, input or output.
    """
    if method not in METHODS:
        raise ValueError(f"--method {method!r} is not one of {', '.join(METHODS)}")
    resolved, _, worker = prepare(scenario, sets)
    wanted = list(outputs) if outputs is not None else default_outputs(resolved)
    worker.names, worker._pick = wanted, _pick(worker, wanted)
    chosen = factors(resolved, inputs)
    nominal = dict(zip(wanted, worker.evaluate(Chunk(0, 0, size=1)).values[0].tolist(), strict=True))
    result = Sensitivity(resolved.scenario.name, method, {}, nominal)
    result.titles = {name: output_words(name, resolved.network) for name in wanted}
    result.units = {name: output_unit(name, resolved.network) for name in wanted}
    if method == "tornado":
        result.slope_unit = f"{output_unit('objective', resolved.network)} over the range of the input"
        result.outputs = _tornado(worker, resolved, chosen, wanted, nominal, progress)
        result.evaluations = 2 * len(chosen) + 1
        return result
    names = [f.name for f in chosen]
    if method == "sobol" and samples is None and len(names) in NODES:
        _by_grid(result, worker, chosen, seed, workers, progress)
    else:
        _by_draws(result, worker, chosen, (method, samples, seed), workers, progress)
    for rows in result.outputs.values():
        for row in rows:
            row["title"] = input_title(row["input"], resolved)
    return result


def _by_draws(
    result: Sensitivity,
    worker: Worker,
    chosen: Sequence[Factor],
    how: tuple[str, int | None, int],
    workers: int,
    progress: Callable[[str], None] | None,
) -> None:
    """Indices of a method from its own points; `how`: method, samples, seed."""
    method, samples, seed = how
    names = [f.name for f in chosen]
    points = sample_ranks(names, method, samples, seed)
    values = _evaluate(worker, chosen, points, workers, progress)
    result.evaluations = len(points)
    for k, name in enumerate(worker.names):
        rows, second = analyse(names, method, points, values[:, k], seed)
        result.outputs[name] = rows
        if second:
            result.second[name] = second


def _by_grid(
    result: Sensitivity,
    worker: Worker,
    chosen: Sequence[Factor],
    seed: int,
    workers: int,
    progress: Callable[[str], None] | None,
) -> None:
    """Sobol indices of two or three factors from an interpolated grid; its error, as a share of the sd, is measured."""
    names = [f.name for f in chosen]
    grid_ranks, checks = grid_points(len(names)), check_points(len(names), seed)
    values = _evaluate(worker, chosen, np.vstack([grid_ranks, checks]), workers, progress)
    wanted = worker.names
    result.evaluations = len(values)
    points = sample_ranks(names, "sobol", SURROGATE_SAMPLES, seed)
    for k, interpolate in enumerate(interpolators(values[: len(grid_ranks)], len(names))):
        drawn = interpolate(points)
        rows, second = analyse(names, "sobol", points, drawn, seed)
        missed = interpolate(checks) - values[len(grid_ranks) :, k]
        spread = float(np.std(drawn))
        result.outputs[wanted[k]] = rows
        result.second[wanted[k]] = second
        result.surrogate[wanted[k]] = float(np.sqrt(np.mean(missed**2)) / spread) if spread > 0 else 0.0


def _pick(worker: Worker, wanted: Sequence[str]) -> Array:
    from scenarios.draw_outputs import selection

    return selection(worker.extractor.names, wanted)


def _tornado(
    worker: Worker,
    resolved: Resolved,
    chosen: Sequence[Factor],
    wanted: Sequence[str],
    nominal: Mapping[str, float],
    progress: Callable[[str], None] | None,
) -> dict[str, list[dict[str, Any]]]:
    """Swing of each output between the ends of each factor, and the slope at its value from the nominal prices."""
    slopes = _slopes(worker, chosen)
    ends = {}
    for number, factor in enumerate(chosen, start=1):
        ranks = {d: np.array([0.0, 1.0]) for d in factor.drivers}
        ends[factor.name] = worker.evaluate(Chunk(0, 0, ranks, size=2)).values
        if progress is not None and (number % STEP == 0 or number == len(chosen)):
            progress(f"{number} of {len(chosen)} inputs moved")
    out: dict[str, list[dict[str, Any]]] = {}
    for k, name in enumerate(wanted):
        rows = []
        for factor in chosen:
            low, high = (float(v) for v in ends[factor.name][:, k])
            row = {"input": factor.name, "low": low, "high": high, "nominal": nominal[name]}
            row |= {"slope": slopes[factor.name], "one_sided": one_sided(low, nominal[name], high)}
            rows.append(row | _moved(resolved, factor, parse_output(name).period))
        out[name] = sorted(rows, key=lambda r: (-_swing(r), r["input"]))
    return out


def one_sided(low: float, nominal: float, high: float) -> bool:
    """Whether both ends of an input move an output the same way.

    >>> one_sided(9.0, 8.0, 11.0), one_sided(7.0, 8.0, 11.0), one_sided(8.0, 8.0, 11.0)
    (True, False, False)
    """
    return (low - nominal) * (high - nominal) > 1e-12 * nominal**2


def _moved(resolved: Resolved, factor: Factor, period: str) -> dict[str, Any]:
    """Title of an input, and a number that it moves at its ends and as it stands."""
    found = input_values(resolved, factor.drivers, (0.0, 1.0), period)
    row: dict[str, Any] = {"title": input_title(factor.name, resolved)}
    if found is not None:
        low, high = found.values
        row |= {"low_input": low, "high_input": high, "input_unit": found.unit}
        row |= {"input_name": found.name, "input_period": found.period}
    return row


def _swing(row: Mapping[str, Any]) -> float:
    width = max(row["low"], row["high"], row["nominal"]) - min(row["low"], row["high"], row["nominal"])
    return float(width) if np.isfinite(width) else float("inf")


def _slopes(worker: Worker, chosen: Sequence[Factor]) -> dict[str, float]:
    """Objective gained over the whole range of a factor if the nominal prices held: duals, no further solve.

    Central difference of the nominal Lagrangian over the middle of the range, divided by the share of the range that
    it covers.
    """
    out = {}
    low, high = 0.5 - SLOPE_STEP, 0.5 + SLOPE_STEP
    worth = worker.compiled.scale.flow * worker.compiled.scale.money
    for factor in chosen:
        arrays = worker._arrays(Chunk(0, 0, {d: np.array([low, high]) for d in factor.drivers}, size=2))
        found = []
        for k in range(2):
            worker._set({path: a[k if len(a) > 1 else 0] for path, a in arrays.items()})
            found.append(worker.lagrangian())
        moved = 1.0 - np.sqrt(2.0 * low)  # share of each half range that the step covers
        out[factor.name] = float((found[1] - found[0]) * worth / moved)
    worker._set({})
    return out


def _evaluate(
    worker: Worker, chosen: Sequence[Factor], points: Array, workers: int, progress: Callable[[str], None] | None
) -> Array:
    worker.study.outputs = list(worker.names)
    chunks = []
    for index, first in enumerate(range(0, len(points), CHUNK)):
        part = points[first : first + CHUNK]
        ranks = {d: part[:, k] for k, f in enumerate(chosen) for d in f.drivers}
        chunks.append(Chunk(index, first, ranks, size=len(part)))
    values = np.full((len(points), len(worker.names)), np.nan)
    many = workers > 1 and len(chunks) > 1
    with Processes(worker.study, workers) if many else InProcess(worker.study, worker) as evaluator:
        for result in evaluator.map(chunks):
            values[result.first : result.first + len(result.values)] = result.values
            if progress is not None:
                progress(f"{int((~np.isnan(values[:, 0])).sum())} of {len(points)} evaluations")
    return values


def problem_of(names: Sequence[str]) -> dict[str, Any]:
    """SALib's description of independent ranks."""
    return {"num_vars": len(names), "names": list(names), "bounds": [[1e-6, 1.0 - 1e-6]] * len(names)}


def sample_ranks(names: Sequence[str], method: str, samples: int | None = None, seed: int = 0) -> Array:
    """Ranks at which a method wants the model, one row an evaluation (SALib)."""
    problem = problem_of(names)
    if method == "morris":
        from SALib.sample import morris

        return np.asarray(morris.sample(problem, samples or 20, num_levels=6, seed=seed))
    if method == "sobol":
        from SALib.sample import sobol

        return np.asarray(sobol.sample(problem, samples or 256, calc_second_order=True, scramble=True, seed=seed))
    from SALib.sample import latin

    return np.asarray(latin.sample(problem, samples or 256, seed=seed))


def analyse(
    names: Sequence[str], method: str, points: Array, values: Array, seed: int = 0
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Indices of one output with their 95 % half widths, the most important input first; second order for Sobol.

    `first` and `total` are Sobol indices; for Morris mu* (and sigma), for PAWN the median Kolmogorov-Smirnov distance.

    Raises:
        ValueError: when some evaluations have no value (an infeasible corner of the inputs).
    """
    missing = int(np.isnan(values).sum())
    if missing:
        raise ValueError(f"{missing} of {len(values)} evaluations have no optimum: narrow the ranges of the inputs")
    problem = problem_of(names)
    if float(np.ptp(values)) <= 1e-12 * max(1.0, float(np.max(np.abs(values)))):
        return [_index(n, 0.0, 0.0, 0.0, 0.0) for n in sorted(names)], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows, second = _indices(names, method, problem, points, values, seed)
    return sorted(rows, key=lambda r: (-r["total"], r["input"])), second


def _indices(
    names: Sequence[str], method: str, problem: dict[str, Any], points: Array, values: Array, seed: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    if method == "morris":
        from SALib.analyze import morris

        found = morris.analyze(problem, points, values, num_levels=6, seed=seed)
        return [
            _index(n, float(m), float(c), float(m), float(c)) | {"sigma": float(s), "mu": float(mu)}
            for n, m, c, s, mu in zip(
                names, found["mu_star"], found["mu_star_conf"], found["sigma"], found["mu"], strict=True
            )
        ], []
    if method == "pawn":
        from SALib.analyze import pawn

        found = pawn.analyze(problem, points, values, seed=seed)
        return [_index(n, float(m), 0.0, float(m), 0.0) for n, m in zip(names, found["median"], strict=True)], []
    from SALib.analyze import sobol

    centred = (values - values.mean()) / values.std()
    found = sobol.analyze(problem, centred, calc_second_order=True, seed=seed)
    columns = (found["S1"], found["S1_conf"], found["ST"], found["ST_conf"])
    rows = [_index(n, *(float(c[k]) for c in columns)) for k, n in enumerate(names)]
    pairs = [
        {"inputs": [names[i], names[j]], "second": float(found["S2"][i, j]), "second_ci": float(found["S2_conf"][i, j])}
        for i in range(len(names))
        for j in range(i + 1, len(names))
    ]
    return rows, pairs


def _index(name: str, first: float, first_ci: float, total: float, total_ci: float) -> dict[str, Any]:
    return {"input": name, "first": first, "first_ci": first_ci, "total": total, "total_ci": total_ci}


def grid(
    scenario: str | Path | Scenario,
    x: str,
    y: str,
    *,
    outputs: Sequence[str] | None = None,
    steps: int = 7,
    span: tuple[float, float] = (0.8, 1.2),
    sets: Sequence[tuple[str, Any]] = (),
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """A map of outputs over two inputs scaled from `span[0]` to `span[1]`, and what binds hardest in each cell.

    Scaled fractions stay below 1. Returns {"x", "y", "x_scale", "y_scale", "outputs": {NAME: rows of y}, "binding":
    rows of y, of "binding_period": that of the first output, else the last}.

    Raises:
        ScenarioError: wrong scenario, input or output.
    """
    resolved, _, worker = prepare(scenario, sets)
    wanted = list(outputs) if outputs is not None else default_outputs(resolved)
    pick = _pick(worker, wanted)
    scales = np.linspace(span[0], span[1], steps)
    paths = {name: resolved.matching(name) for name in (x, y)}
    table = {name: np.full((steps, steps), np.nan) for name in wanted}
    binding = [[""] * steps for _ in range(steps)]
    periods = _binding_periods(wanted, resolved)
    for row, by in enumerate(scales):
        for column, bx in enumerate(scales):
            replaced = _scaled(resolved, {**dict.fromkeys(paths[x], bx), **dict.fromkeys(paths[y], by)})
            vector = worker.evaluate(Chunk(0, 0, replaced=replaced, size=1)).values[0]
            for name, value in zip(wanted, pick @ vector, strict=True):
                table[name][row, column] = value
            binding[row][column] = _hardest(worker.names, vector, periods)
        if progress is not None:
            progress(f"{(row + 1) * steps} of {steps * steps} cells")
    return {
        "x": x,
        "y": y,
        "x_scale": scales.tolist(),
        "y_scale": scales.tolist(),
        "outputs": {name: t.tolist() for name, t in table.items()},
        "binding": binding,
        "binding_period": periods[0],
    }


def _scaled(resolved: Resolved, scale: Mapping[str, float]) -> dict[str, Array]:
    out = {}
    for path, factor in scale.items():
        spec = resolved.scenario.leaves[path].spec if path in resolved.scenario.leaves else None
        array = resolved.nodes[path].value * factor
        out[path] = np.minimum(array, spec.upper)[None, :] if spec is not None else array[None, :]
    return out


def _binding_periods(wanted: Sequence[str], resolved: Resolved) -> tuple[str, ...]:
    named = [n.split("@")[1] for n in wanted if "@" in n]
    return (named[0],) if named else tuple(resolved.horizon.labels()[resolved.horizon.periods - 1 :][:1])


def _hardest(names: Sequence[str], vector: Array, periods: tuple[str, ...]) -> str:
    """Resource with the largest rent over the periods; empty where nothing binds."""
    rents: dict[str, float] = {}
    for name, value in zip(names, vector, strict=True):
        if name.startswith("rent:"):
            resource, period = name[5:].split("@")
            if any(period.startswith(p) for p in periods):
                rents[resource] = rents.get(resource, 0.0) + float(value)
    best = max(rents, key=lambda r: (rents[r], r), default="")
    return best if best and rents[best] > 0 else ""
