"""Draws of a rolling plan: inputs are drawn, and each draw is planned quarter by quarter without knowing what follows.

One compile serves all draws. In a draw the capacities are known for the look-ahead of the scenario, then continued by
their trend (`supply.optimizer.rolling`), so that a draw does not foresee its own shocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from scenarios.backtest_components import Components
from scenarios.costing import CostModel
from scenarios.extract import Extractor, Reading
from scenarios.nodes import Array, Draw
from scenarios.sampling import factors, ranks_by_driver

if TYPE_CHECKING:
    from scenarios.resolve import Resolved
    from supply.optimizer.compiled import Compiled

__all__ = ["RollingDraws", "rolling_draws"]

#: Numbers that decide which entries a programme has: kept at their value in draws.
HELD = (".lead_time", ".life", ".ramp_back", ".look_ahead")
Progress = Callable[[str], None]


@dataclass(frozen=True)
class RollingDraws:
    """Outputs of rolling draws: rows are draws, columns `names`; the draws without a plan, and why; the nominal row."""

    names: list[str]
    values: Array
    failed: dict[int, str]
    nominal: Array

    def column(self, name: str) -> Array:
        """One output over the draws that have a plan."""
        found = self.values[:, self.names.index(name)]
        return np.asarray(found[~np.isnan(found)])


class _Rolling:
    """One compile of a scenario, rolled once per draw."""

    def __init__(self, resolved: Resolved) -> None:
        self.compiled = _quick(resolved)
        self.nominal = self.compiled.network
        none = np.zeros(0)
        self.extractor = Extractor(self.compiled, CostModel([], none, none, none, 1.0, 0.1, 5.0, 0, 0.25, [], []))
        labels = self.nominal.horizon.labels()[: self.nominal.horizon.periods]
        power = [f"power_mw:world@{p}" for p in labels]
        self.components = Components(self.compiled)
        self.names = [*self.extractor.names, *power, *self.components.names]

    def run(self, changes: dict[str, Array]) -> Array:
        """Outputs of one draw. Raises `SolveError` when some quarter has no plan."""
        from supply.optimizer.rolling import _Roller

        compiled = self.compiled
        compiled.network = self.nominal.with_values(changes)
        compiled.reset()
        compiled.update(changes)
        compiled.changed |= set(changes)
        roller = _Roller(compiled, self.nominal.regime.look_ahead)
        if compiled.engine.first_basis is not None:  # every draw starts from the same basis, whatever came before it
            compiled.engine.restore_basis()
        try:
            for t in range(self.nominal.horizon.periods):
                roller.step(t, False)
            roller.finish()
        finally:
            engine = compiled.engine
            engine.set_col_bounds(np.zeros(len(roller.x)), roller.free_upper)
            compiled.reset()
            engine.set_row_bounds(*engine.nominal_rows())
        read = self.extractor.read(self._reading(roller.x, roller.y))
        parts = self.components.read(self.nominal, compiled.values, roller.x)
        return np.concatenate([read, self._power(read), parts])

    def _reading(self, x: Array, y: Array) -> Reading:
        engine = self.compiled.engine
        product = engine.data * x[engine.column_of_entry]
        activity = np.bincount(engine.matrix.index, weights=product, minlength=len(engine.matrix.rows))
        return Reading(x, y, np.asarray(activity, dtype=float))

    def _power(self, read: Array) -> Array:
        """Planning power of the fleet at the end of each quarter, MW."""
        place = {n: k for k, n in enumerate(self.extractor.names)}
        labels = self.nominal.horizon.labels()[: self.nominal.horizon.periods]
        values = self.compiled.values
        return np.array(
            [
                sum(
                    read[place[f"fleet:{s}@{p}"]] * values[f"fleet.{s}.kw_planning"][t] / 1e3
                    for s in self.nominal.fleet
                )
                for t, p in enumerate(labels)
            ]
        )


def _quick(resolved: Resolved) -> Compiled:
    """A compile whose solves leave out the optimality evidence, which no draw reports."""
    from supply.optimizer.compiled import Compiled
    from supply.optimizer.solution import Solution

    class Quick(Compiled):
        """Solves without evidence."""

        def solve(
            self, *, tidy: bool = False, warm: bool = True, chain: bool = False, quick: bool = True, far: bool = False
        ) -> Solution:
            return super().solve(tidy=tidy, warm=warm, chain=chain, quick=quick, far=far)

    return Quick(resolved.network)


def rolling_draws(resolved: Resolved, draws: int, seed: int = 0, progress: Progress | None = None) -> RollingDraws:
    """Draw all uncertain inputs of a scenario (Latin hypercube) and roll each draw; the nominal case is rolled first.

    Raises:
        SolveError: when the nominal case has no plan.
    """
    from supply.optimizer.errors import SolveError

    worker = _Rolling(resolved)
    ranks = ranks_by_driver(resolved, factors(resolved), draws, seed)
    arrays = _arrays(resolved, ranks, draws)
    nominal = worker.run({})
    values = np.full((draws, len(worker.names)), np.nan)
    failed: dict[int, str] = {}
    for k in range(draws):
        try:
            values[k] = worker.run({path: a[k if len(a) > 1 else 0] for path, a in arrays.items()})
        except SolveError as exc:
            failed[k] = str(exc).splitlines()[0]
        if progress is not None and (k + 1) % 20 == 0:
            progress(f"{resolved.scenario.name}: {k + 1} of {draws} draws")
    return RollingDraws(worker.names, values, failed, nominal)


def _arrays(resolved: Resolved, ranks: dict[str, Array], draws: int) -> dict[str, Array]:
    from scenarios.structure import network_path

    draw = Draw(ranks, {})
    out = {}
    for path, drivers in resolved.uncertain.items():
        if drivers & set(ranks) and not path.endswith(HELD):
            out[network_path(path)] = resolved.nodes[path].at(draw)
    return out
