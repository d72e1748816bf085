"""The scarcest stage with all its capacities at the low, and at the high, ends of their ranges together.

The study of weak inputs moves one input at a time; where a stage has several limits (power in each region) its answer
may hang on all of them at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from scenarios.headline import Reading, Watched, read
from scenarios.headline_inputs import Inputs, WeakInput

if TYPE_CHECKING:
    from scenarios.resolve import Resolved

__all__ = ["JOINT_COLUMNS", "joint_ends", "stage_capacities"]

#: `input` and `input_base`: mean over the year of the sum of the moved capacities, where they share one unit.
JOINT_COLUMNS = (
    "stage_base", "year", "end", "limits", "input_unit", "input_base", "input", "stage", "share_base", "share",
    "energised_base", "energised", "finished_base", "finished",
)  # fmt: skip


def stage_capacities(resolved: Resolved, stage: str) -> WeakInput | None:
    """All uncertain capacities of a stage as one input, None where fewer than two are uncertain."""
    named = [f"resources.{name}.capacity" for name, r in resolved.network.resources.items() if r.stage == stage]
    paths = [path for path in named if resolved.uncertain.get(path)]
    drivers = sorted({driver for path in paths for driver in resolved.uncertain[path]})
    return WeakInput(tuple(drivers), tuple(paths), stage, "joint") if len(paths) > 1 else None


def joint_ends(resolved: Resolved, year: str) -> pd.DataFrame:
    """The headline of a year at both joint ends, columns as `JOINT_COLUMNS`; empty for a stage with one such limit.

    An end at which no plan exists has missing values, and no stage.
    """
    from supply.optimizer.compiled import Compiled
    from supply.optimizer.errors import SolveError

    compiled = Compiled(resolved.network)
    base = read(compiled.solve(), year, Watched())
    moved = stage_capacities(resolved, base.stage)
    rows: list[tuple[object, ...]] = []
    if moved is None:
        return pd.DataFrame(rows, columns=list(JOINT_COLUMNS))
    for end, rank in (("low", 0.0), ("high", 1.0)):
        changes = Inputs(resolved, year).at_rank(moved, rank)
        try:
            found = read(compiled.update(changes).solve(), year, Watched())
        except SolveError:
            found = None
        unit, sums = _sums(resolved, moved, year, (0.5, rank))
        head = (base.stage, year, end, len(moved.paths), unit, *sums, found.stage if found else "")
        rows.append(
            (*head, *(n for pair in zip(_numbers(base, base), _numbers(found, base), strict=True) for n in pair))
        )
    return pd.DataFrame(rows, columns=list(JOINT_COLUMNS))


def _numbers(reading: Reading | None, base: Reading) -> list[float]:
    """Share of the stage that leads the base, accelerators energised and finished."""
    if reading is None:
        return [float("nan")] * 3
    return [reading.share(base.stage), reading.numbers["energised"], reading.numbers["finished"]]


def _sums(resolved: Resolved, moved: WeakInput, year: str, ranks: tuple[float, float]) -> tuple[str, list[float]]:
    """Unit and summed capacities at two ranks, mean over the year; missing where the limits have several units."""
    units = {resolved.measures[path].label for path in moved.paths}
    if len(units) > 1:
        return "", [float("nan")] * len(ranks)
    inside = [label.startswith(year) for label in resolved.horizon.labels()]
    inputs = Inputs(resolved, year)
    sums = [sum(float(v[inside].mean()) for v in inputs.at_rank(moved, rank).values()) for rank in ranks]
    return units.pop(), sums
