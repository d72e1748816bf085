"""Which value of an input brings an output to a target, and whether there is more than one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq

from scenarios.draw_outputs import selection
from scenarios.errors import Problem, ScenarioError
from scenarios.evaluators import Chunk, Worker
from scenarios.load import Scenario
from scenarios.nodes import outer_range
from scenarios.output_words import input_title, output_unit, output_words
from scenarios.resolve import Resolved
from scenarios.study import prepare

__all__ = ["BreakEven", "breakeven"]

SCAN = 17
#: Factors of the value that are tried where an input has no range of its own.
WIDE = (0.25, 4.0)


@dataclass(frozen=True)
class BreakEven:
    """The break-even value of an input (in its first `period`), and what was found on the way.

    `unique` is False where the output crosses the target more than once inside the bracket; `all_values` lists every
    crossing.
    """

    input: str
    output: str
    target: float
    value: float
    unit: str
    bracket: tuple[float, float]
    unique: bool
    all_values: tuple[float, ...]
    nominal_input: float
    nominal_output: float
    scale: float
    input_title: str = ""
    output_title: str = ""
    output_unit: str = ""
    period: str = ""

    def json(self) -> dict[str, Any]:
        """{"input", "value", "unit", "bracket", "unique", ...}."""
        return {**vars(self), "bracket": list(self.bracket), "all_values": list(self.all_values)}


def breakeven(
    scenario: str | Path | Scenario,
    input: str,
    target: str | tuple[str, float],
    *,
    bracket: tuple[float, float] | None = None,
    sets: Sequence[tuple[str, Any]] = (),
) -> BreakEven:
    """Value of an input at which an output reaches a target; an input that varies over time is scaled as a whole.

    `target` is `("energised:*@2026", 1e7)` or text such as `energised:*@2026=1e7`. `bracket` bounds the value in its
    first period; by
    default the printed range of the input, widened to a quarter and four times its value. A group moves all its
    numbers by one factor.

    Raises:
        ScenarioError: unknown input or output, or a target that is not reached inside the bracket (the message says
        what is).
    """
    output, wanted = _target(target)
    resolved, _, worker = prepare(scenario, sets)
    pick = selection(worker.extractor.names, [output])[0]
    paths = resolved.matching(input)
    base = float(resolved.nodes[paths[0]].value[0])
    low, high = _bounds(resolved, paths, base, bracket)

    def gap(scale: float) -> float:
        return _output(worker, resolved, paths, scale, pick) - wanted

    nominal = gap(1.0) + wanted
    scales = np.unique(np.append(np.linspace(low, high, SCAN), np.clip(1.0, low, high)))
    values = np.array([gap(s) for s in scales])
    roots = _roots(gap, scales, values)
    unit = resolved.measures[paths[0]].label
    if not roots:
        good = values[np.isfinite(values)] + wanted
        reach = f"{good.min():g} to {good.max():g}" if len(good) else "no optimum anywhere"
        span = f"between {low * base:g} and {high * base:g} {unit}"
        message = f"{output} does not reach {wanted:g}: {span} it runs from {reach}; ask for a value in between"
        raise ScenarioError([Problem(resolved.scenario.position(()), input, message)])
    first = min(roots, key=lambda s: (abs(s - 1.0), s))
    shown = tuple(float(s * base) for s in roots)
    return BreakEven(
        input,
        output,
        wanted,
        float(first * base),
        unit,
        (low * base, high * base),
        len(roots) == 1,
        shown,
        base,
        nominal,
        first,
        input_title(input, resolved),
        output_words(output, resolved.network),
        output_unit(output, resolved.network),
        resolved.horizon.labels()[0],
    )


def _target(target: str | tuple[str, float]) -> tuple[str, float]:
    if not isinstance(target, str):
        return target
    output, _, value = target.rpartition("=")
    try:
        return output, float(value)
    except ValueError as exc:
        raise ValueError(f"--target {target!r}: write OUTPUT=VALUE, e.g. energised:*@2026=1e7") from exc


def _bounds(
    resolved: Resolved, paths: list[str], base: float, bracket: tuple[float, float] | None
) -> tuple[float, float]:
    """Least and greatest factor of the input, its own upper bound respected."""
    upper = np.inf
    for path in paths:
        leaf = resolved.scenario.leaves.get(path)
        top = float(np.max(resolved.nodes[path].value))
        if leaf is not None and np.isfinite(leaf.spec.upper) and top > 0:
            upper = min(upper, leaf.spec.upper / top)
    if base == 0.0:
        where = resolved.scenario.position(())
        raise ScenarioError([Problem(where, paths[0], "is zero in its first period: give it a value to scale")])
    if bracket is not None:
        low, high = sorted(b / base for b in bracket)
        return low, min(high, upper)
    ends = [outer_range(resolved.nodes[p]) for p in paths]
    low = min(WIDE[0], *(float(lo[0]) / base for lo, _ in ends))
    high = max(WIDE[1], *(float(hi[0]) / base for _, hi in ends))
    return max(low, 1e-6), min(high, upper)


def _output(worker: Worker, resolved: Resolved, paths: list[str], scale: float, pick: Any) -> float:
    replaced = {p: (resolved.nodes[p].value * scale)[None, :] for p in paths}
    return float(pick @ worker.evaluate(Chunk(0, 0, replaced=replaced, size=1)).values[0])


def _roots(gap: Any, scales: Any, values: Any) -> list[float]:
    """Every crossing between neighbouring scan points, each refined; touching points count once."""
    roots: list[float] = []
    for k, value in enumerate(values):
        if value == 0.0:
            roots.append(float(scales[k]))
    for k in range(len(scales) - 1):
        a, b = values[k], values[k + 1]
        if np.isfinite(a) and np.isfinite(b) and a * b < 0:
            roots.append(float(brentq(gap, scales[k], scales[k + 1], xtol=1e-9, rtol=1e-10, maxiter=60)))
    roots.sort()
    return [r for k, r in enumerate(roots) if k == 0 or r - roots[k - 1] > 1e-7]
