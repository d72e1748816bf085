"""Why a run's finished units differ from an outside estimate: the run solved again with the limits that the estimate
needs.

For each designer and year: theirs = ours + products that the run does not make + what each raised limit adds + rest.
The limits are raised to what the estimate's units need (`scenarios.outside_needs`); their parts are Shapley values.
Where the estimate's interval is still missed, the worth of an hour of the designer's products is moved until the plan
makes the estimate. A what-if for this comparison alone: the run, its inputs and its results stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from scenarios.compare import shapley
from scenarios.outcomes import TheirUnits, finished_by_year, their_units
from scenarios.outside_needs import CAUSES, Raised, needs_of, raised_limits
from supply.optimizer.compiled import Compiled
from supply.optimizer.errors import SolveError

if TYPE_CHECKING:
    from scenarios.nodes import Array
    from supply.optimizer.solution import Solution

__all__ = ["FARTHEST_WORTH", "GAP_COLUMNS", "LIMIT_COLUMNS", "PART_COLUMNS", "explain_gap"]

GAP_COLUMNS = (
    "group", "year", "ours", "theirs", "low", "high", "outside", "made_low", "made_high", "reached", "rest",
    "worth_factor", "worth_units",
)  # fmt: skip
PART_COLUMNS = ("group", "year", "cause", "units")
LIMIT_COLUMNS = ("cause", "path", "title", "year", "unit", "ours", "needed")
#: The worth of an hour is moved up to this multiple, or down to its inverse.
FARTHEST_WORTH = 2.0
_BISECTIONS = 5

Row = tuple[str, str]


def explain_gap(solution: Solution, compared: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Tables `shipments_gap`, `shipments_parts` and `shipments_limits` for a table of `shipments_compared`.

    `outside`: their units of products that the run does not make; `made_low`, `made_high`: the interval of the others.
    `reached`: finished units with all limits raised.
    `rest`: theirs less outside and reached. `worth_factor`: the multiple of the worth of an hour at which the plan,
    with the limits raised, makes their units (missing where none was sought or none is within reach); `worth_units`:
    finished units at the farthest multiple tried. Empty where the plan cannot be solved again cheaply (rolling or
    lumpy), where nothing is compared, or where a what-if has no plan.
    """
    lumpy = len(solution.compiled.engine.matrix.integer) > 0
    if not len(compared) or solution.plans is not None or lumpy:
        return {}
    labels = solution.network.horizon.labels()
    length = max(t for t, label in enumerate(labels) if label[:4] == compared["year"].max()) + 1
    theirs = their_units(solution.network, length)
    if not theirs.units:
        return {}
    raised = raised_limits(solution, needs_of(solution, theirs.units))
    rows = list(zip(compared["group"], compared["year"], strict=True))
    try:
        return _tables(_WhatIf.of(solution, raised, rows), compared, theirs, raised)
    except SolveError:
        return {}


@dataclass
class _WhatIf:
    """The run's programme with some limits raised; finished units by designer and year."""

    compiled: Compiled
    moves: Mapping[str, Mapping[str, Array]]
    rows: list[Row]
    known: dict[frozenset[str], Array] = field(default_factory=dict)

    @classmethod
    def of(cls, solution: Solution, raised: Iterable[Raised], rows: list[Row]) -> _WhatIf:
        moves: dict[str, dict[str, Array]] = {}
        for limit in raised:
            moves.setdefault(limit.cause, {})[limit.path] = limit.values
        absent = {path: 0.0 for held in moves.values() for path in held if path not in solution.values}
        network = solution.network.with_values({**solution.values, **absent})
        return cls(Compiled(network), moves, rows)

    def __call__(self, causes: frozenset[str]) -> Array:
        """Finished units with the limits of some causes raised."""
        if causes not in self.known:
            self.known[causes] = self.units(self.solve(causes))
        return self.known[causes]

    def solve(self, causes: frozenset[str]) -> Solution:
        """The plan with the limits of some causes raised."""
        changes = {p: v for c in causes for p, v in self.moves[c].items()}
        return self.compiled.reset().update(changes).solve()

    def units(self, solution: Solution) -> Array:
        """Finished units in the order of `rows`."""
        designers = {s.id: s.designer for s in solution.network.fleet.values()}
        made = finished_by_year(solution.finished.rename(columns={"finished": "value"}), designers)
        return np.array([float(made.get(row, 0.0)) for row in self.rows])

    def worth(self, place: int) -> Callable[[float], float]:
        """Finished units of a row with all limits raised, by the multiple of what an hour of its designer's products
        is worth. Only costs move, so each solve starts from the plan before it."""
        self.solve(frozenset(self.moves))
        group = self.rows[place][0]
        paths = [f"fleet.{s.id}.value" for s in self.compiled.network.fleet.values() if s.designer == group]

        def made(factor: float) -> float:
            self.compiled.update({path: factor * self.compiled.original[path] for path in paths})
            return float(self.units(self.compiled.solve(chain=True, far=True))[place])

        return made


def _tables(
    what_if: _WhatIf, compared: pd.DataFrame, theirs: TheirUnits, raised: list[Raised]
) -> dict[str, pd.DataFrame]:
    causes = [cause for cause in CAUSES if cause in what_if.moves]
    parts, _ = shapley(what_if, causes, len(what_if.rows))
    reached = what_if(frozenset(causes))
    gaps, split = [], []
    for k, r in enumerate(compared.to_dict("records")):
        row = what_if.rows[k]
        value, low, high = theirs.totals.get(row, (0.0, 0.0, 0.0))
        missed = 0 if r["low"] <= r["ours"] <= r["high"] else int(reached[k] < low) - int(reached[k] > high)
        factor, units = _worth(what_if.worth(k), value, missed) if missed else (math.nan, math.nan)
        told = (r["ours"], r["theirs"], r["low"], r["high"])
        gaps.append((*row, *told, r["theirs"] - value, low, high, reached[k], value - reached[k], factor, units))
        split += [(*row, cause, float(parts[i, k])) for i, cause in enumerate(causes)]
    limits = [(x.cause, x.path, x.title, x.year, x.unit, x.ours, x.needed) for x in raised]
    return {
        "shipments_gap": pd.DataFrame(gaps, columns=list(GAP_COLUMNS)),
        "shipments_parts": pd.DataFrame(split, columns=list(PART_COLUMNS)),
        "shipments_limits": pd.DataFrame(limits, columns=list(LIMIT_COLUMNS)),
    }


def _worth(made: Callable[[float], float], target: float, direction: int) -> tuple[float, float]:
    """The multiple of the worth of an hour that makes a number of units, and the units at the farthest multiple.

    `made`: units by multiple. `direction`: 1 where more units are wanted, -1 where fewer. The multiple is missing where
    the farthest one does not suffice.

    >>> factor, units = _worth(lambda f: 100 * f, 140, 1)
    >>> round(factor, 1), units, _worth(lambda f: 100 * f, 300, 1)
    (1.4, 200.0, (nan, 200.0))
    """
    far = FARTHEST_WORTH if direction > 0 else 1.0 / FARTHEST_WORTH
    units = made(far)
    if direction * units < direction * target:
        return math.nan, units
    near = 1.0
    for _ in range(_BISECTIONS):
        middle = math.sqrt(near * far)
        if direction * made(middle) < direction * target:
            near = middle
        else:
            far = middle
    return math.sqrt(near * far), units
