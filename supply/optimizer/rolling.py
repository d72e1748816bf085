"""Rolling information: each period is decided knowing only what is known by then.

At period t the plan sees capacities for `look_ahead` periods; beyond that they go on with the mean change of that time
(growth is held, not level). Disruptions and ends of windows are seen from their `known_from` on. What was decided
before t is fixed; only period t of each plan is carried out. The look-ahead is a first-order input: print it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from supply.network import Array, Network
from supply.optimizer.errors import SolveError
from supply.optimizer.solution import Solution

if TYPE_CHECKING:
    from supply.optimizer.compiled import Compiled

DECISIONS = ("start", "energise", "retire", "sold", "discard", "build", "short", "lumps")
"""Variables that are decided; stocks, fleets and the like follow from them."""
SLACK = 1e-6
"""Room (model units) for what the solver's tolerance left over from past periods."""


def known_capacity(array: Array, now: int, look_ahead: int) -> Array:
    """Capacity as seen in period `now`: known for `look_ahead` periods, then continued with their mean change.

    >>> known_capacity(np.array([1.0, 2.0, 4.0, 9.0, 9.0]), 0, 2)
    array([1. , 2. , 4. , 5.5, 7. ])
    """
    last = min(now + look_ahead, len(array) - 1)
    seen = array.copy()
    change = (array[last] - array[now]) / max(last - now, 1)
    beyond = np.arange(1, len(array) - last)
    seen[last + 1 :] = np.maximum(array[last] + change * beyond, 0.0)
    return seen


def view(network: Network, now: int, look_ahead: int | None = None) -> dict[str, Array]:
    """Numbers that a decision in period `now` is based on (only those that differ from the true ones)."""
    ahead = network.regime.look_ahead if look_ahead is None else look_ahead
    seen = {
        f"resources.{r}.capacity": known_capacity(network.get(f"resources.{r}.capacity"), now, ahead)
        for r in network.resources
    }
    for d, event in network.disruptions.items():
        known = event.first if event.known_from is None else event.known_from
        path = f"disruptions.{d}.remaining"
        seen[path] = network.get(path) if known <= now else np.ones(network.horizon.length)
    return seen


class RollingError(SolveError):
    """A period of a rolling run without a plan; the message names the period."""


def solve_rolling(network: Network, *, look_ahead: int | None = None, tidy: bool = True) -> Solution:
    """Plan as carried out period by period; prices of each period are those of the plan made in it.

    Raises `RollingError` naming the period, with the explanation of what cannot be kept.

    >>> from supply.network_examples import course_11_1
    >>> round(solve_rolling(course_11_1()).objective)
    10000
    """
    from supply.optimizer.compiled import Compiled

    compiled = Compiled(network)
    ahead = network.regime.look_ahead if look_ahead is None else look_ahead
    roller = _Roller(compiled, ahead)
    for t in range(network.horizon.periods):
        roller.step(t, tidy)
    return roller.finish()


class _Roller:
    def __init__(self, compiled: Compiled, look_ahead: int) -> None:
        self.compiled, self.look_ahead = compiled, look_ahead
        engine = compiled.engine
        self.names = [name for name, _ in engine.matrix.columns]
        self.period = np.array([key[-1] for _, key in engine.matrix.columns])
        self.row_period = np.array([key[-1] for _, key in engine.matrix.rows])
        self.decided = np.isin(self.names, DECISIONS)
        self.equal = engine.matrix.kind == 0
        self.free_upper = engine.matrix.col_upper.copy()
        self.x = np.zeros(len(self.names))
        self.y = np.zeros(len(engine.matrix.rows))
        self.plans: list[Solution] = []

    def step(self, now: int, tidy: bool) -> None:
        """Decide period `now`."""
        compiled, engine, network = self.compiled, self.compiled.engine, self.compiled.network
        compiled.update(view(network, now, self.look_ahead))
        past = self.decided & (self.period < now)
        lower = np.where(past, self.x, 0.0)
        upper = np.where(past, self.x, self._upper(now))
        derived = ~self.decided & (self.period < now)
        lower[derived] = -SLACK  # specks of the tolerance in past stocks must not make the future infeasible
        engine.set_col_bounds(lower, upper)
        rows_low, rows_up = engine.nominal_rows()
        gone = ~self.equal & (self.row_period < now)
        engine.set_row_bounds(np.where(gone, -np.inf, rows_low), np.where(gone, np.inf, rows_up))
        try:
            solution = compiled.solve(tidy=tidy, chain=True)
        except SolveError as error:
            label = network.horizon.labels()[now]
            raise RollingError(f"rolling plan of {label}: {error}") from error
        solution.bounds = (engine.row_lower.copy(), engine.row_upper.copy(), lower, upper)
        self.plans.append(solution)
        here = self.period == now
        self.x[here] = np.maximum(solution.x[here], 0.0)
        future = self.period > now
        self.x[future] = solution.x[future]
        self.y[self.row_period >= now] = solution.y[self.row_period >= now]

    def _upper(self, now: int) -> Array:
        """Column bounds of the plan: a window's end that is not known yet is not there."""
        upper = self.free_upper.copy()
        for j, (name, key) in enumerate(self.compiled.engine.matrix.columns):
            if name == "start" and np.isfinite(upper[j]):
                known = self.compiled.network.processes[key[0]].known_from
                upper[j] = 0.0 if known is None or known <= now else np.inf
        return upper

    def finish(self) -> Solution:
        """The plan as carried out, on the true numbers."""
        compiled, engine = self.compiled, self.compiled.engine
        engine.set_col_bounds(np.zeros(len(self.x)), self.free_upper)
        compiled.reset()
        engine.set_row_bounds(*engine.nominal_rows())
        true = dict(compiled.network.values)
        notes = [
            f"rolling information, {self.look_ahead} periods ahead; a price is that of the plan made in its period",
            "evidence is that of the last plan",
        ]
        last = self.plans[-1]
        return replace(
            last,
            bounds=None,
            plans=self.plans,
            values=true,
            theta=compiled.theta.copy(),
            x=self.x,
            y=self.y,
            notes=[*last.notes, *notes],
            vertex=None,
            regime="rolling",
        )
