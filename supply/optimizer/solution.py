"""The optimum in natural units, as tidy tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from supply.network import Array, Network
from supply.optimizer.context import Context
from supply.optimizer.evidence import Evidence, Programme, prove
from supply.optimizer.matrix import Matrix
from supply.optimizer.parameters import Values, discount

if TYPE_CHECKING:
    from supply.optimizer.compiled import Compiled

OBJECTIVE_UNITS = {"value": "USD", "compute": "H100-equivalent periods", "units": "accelerators"}


@dataclass(frozen=True)
class Group:
    """Rows or columns of one component: positions in the programme, keys without the period, periods."""

    position: NDArray[np.int64]
    key: list[tuple[Any, ...]]
    period: NDArray[np.int64]


@dataclass(frozen=True)
class Structure:
    """Where each component lies in the compiled programme."""

    rows: dict[str, Group]
    columns: dict[str, Group]
    column: dict[tuple[str, tuple[Any, ...]], int]
    row: dict[tuple[str, tuple[Any, ...]], int]
    natural: dict[str, float]

    @classmethod
    def of(cls, context: Context, matrix: Matrix) -> Structure:
        """Structure tables of a compiled matrix."""
        return cls(
            _groups(matrix.rows),
            _groups(matrix.columns),
            {c: j for j, c in enumerate(matrix.columns)},
            {r: i for i, r in enumerate(matrix.rows)},
            {r: context.natural(r) for r in context.network.resources},
        )


def _groups(names: list[tuple[str, Any]]) -> dict[str, Group]:
    found: dict[str, list[tuple[int, tuple[Any, ...]]]] = defaultdict(list)
    for position, (name, key) in enumerate(names):
        found[name].append((position, key))
    return {
        name: Group(
            np.array([p for p, _ in items], dtype=np.int64),
            [key[:-1] for _, key in items],
            np.array([key[-1] for _, key in items], dtype=np.int64),
        )
        for name, items in found.items()
    }


@dataclass
class Solution:
    """One optimum: primal values and prices of the compiled programme with the numbers that produced them.

    Tables are pandas frames with one row per observation; `period` is the label, `t` its number; tail periods are left
    out. Prices: USD of the period per natural unit (`objective: value`), otherwise objective units per natural unit.
    `x` is the plan (ties settled), `vertex` the solver's own point; `plans` are those of a rolling run, one a period;
    `bounds` (rows low and high, columns low and high) are set where they differ from those of the numbers.
    """

    compiled: Compiled
    values: Mapping[str, Array]
    theta: Array
    x: Array
    y: Array
    proof: Evidence | None
    basis: Any
    vertex: Array | None = None
    status: str = "optimal"
    notes: list[str] = field(default_factory=list)
    regime: str = "foresight"
    bounds: tuple[Array, Array, Array, Array] | None = None
    plans: list[Solution] | None = None

    @property
    def network(self) -> Network:
        """Structure of the network that was solved (its numbers are `values`)."""
        return self.compiled.network

    @cached_property
    def structure(self) -> Structure:
        """Component positions."""
        return self.compiled.structure

    @cached_property
    def evidence(self) -> Evidence:
        """Residuals, gap and complementarity of the optimum, computed from the arrays alone."""
        if self.proof is not None:
            return self.proof
        from supply.optimizer.compiled import SOLVER

        return prove(Programme.of(self.compiled.engine, self.theta), self.x, self.y, SOLVER)

    @property
    def flow(self) -> float:
        """Natural units in one model unit of flow."""
        return self.compiled.scale.flow

    @property
    def worth(self) -> float:
        """Objective units (USD, accelerators ...) in one model unit of the objective."""
        return self.compiled.scale.flow * self.compiled.scale.money

    @cached_property
    def discount(self) -> Array:
        """Discount factor per period (1 for `units`, which is not discounted)."""
        network = self.network
        if network.objective.kind == "units":
            return np.ones(network.horizon.length)
        return discount(Values(self.values, network.horizon.length), network.horizon.years)

    @property
    def objective_unit(self) -> str:
        """Unit of `objective`."""
        return OBJECTIVE_UNITS[self.network.objective.kind]

    @property
    def objective(self) -> float:
        """Objective of the reported periods (discounted), without the tail."""
        cost = self._cost
        reported = self._column_period < self.network.horizon.periods
        return float(cost[reported] @ self.x[reported]) * self.worth

    @property
    def objective_total(self) -> float:
        """Objective with the tail: what the solver maximised."""
        return float(self._cost @ self.x) * self.worth

    @property
    def _cost(self) -> Array:
        return self.compiled.engine.matrix.cost.fill(self.theta)

    @cached_property
    def _column_period(self) -> NDArray[np.int64]:
        return np.array([key[-1] for _, key in self.compiled.engine.matrix.columns], dtype=np.int64)

    def column(self, name: str, *key: Any) -> Array:
        """Values of a variable over all periods (tail included) in natural units, zero where it does not exist."""
        numbers = np.zeros(self.network.horizon.length)
        for t in range(len(numbers)):
            j = self.structure.column.get((name, (*key, t)))
            if j is not None:
                numbers[t] = self.x[j] * self._unit(name, key)
        return numbers

    def _unit(self, name: str, key: tuple[Any, ...]) -> float:
        if name in ("build", "added"):
            return self.structure.natural[self.network.expansions[key[0]].resource]
        if name == "short":
            return self.structure.natural[self.network.contracts[key[0]].resource]
        if name == "cash":
            return self.flow * 1000.0
        return 1.0 if name == "lumps" else self.flow

    def frame(self, name: str, names: list[str], value: str) -> pd.DataFrame:
        """Tidy table of a variable: key columns `names`, period, t, value (reported periods only)."""
        group = self.structure.columns.get(name)
        if group is None:
            return pd.DataFrame({column: [] for column in [*names, "period", "t", value]})
        labels = self.network.horizon.labels()
        keep = np.flatnonzero(group.period < self.network.horizon.periods)
        units = np.array([self._unit(name, group.key[i]) for i in keep])
        table: dict[str, Any] = {column: [group.key[i][k] for i in keep] for k, column in enumerate(names)}
        table["period"] = [labels[t] for t in group.period[keep]]
        table["t"] = group.period[keep]
        # the solver's tolerance leaves specks like 1e-12: below a millionth of a unit nothing is there
        amount = self.x[group.position[keep]] * units
        table[value] = np.where(np.abs(amount) < 1e-9 * self.flow, 0.0, amount)
        return pd.DataFrame(table)

    @cached_property
    def activities(self) -> pd.DataFrame:
        """process, period, t, starts."""
        return self.frame("start", ["process"], "starts")

    @cached_property
    def stocks(self) -> pd.DataFrame:
        """material, period, t, stock at the end of the period."""
        return self.frame("stock", ["material"], "stock")

    @cached_property
    def sold(self) -> pd.DataFrame:
        """material, period, t, sold."""
        return self.frame("sold", ["material"], "sold")

    @cached_property
    def energised(self) -> pd.DataFrame:
        """sku, region, period, t, energised."""
        return self.frame("energise", ["sku", "region"], "energised")

    @cached_property
    def fleet(self) -> pd.DataFrame:
        """sku, region, period, t, fleet at the end of the period."""
        return self.frame("fleet", ["sku", "region"], "fleet")

    @cached_property
    def built(self) -> pd.DataFrame:
        """expansion, period, t, built (capacity units)."""
        return self.frame("build", ["expansion"], "built")

    @cached_property
    def finished(self) -> pd.DataFrame:
        """sku (or final material), period, t, finished: see `supply.optimizer.tables.finished`."""
        from supply.optimizer.tables import finished

        return finished(self)

    @cached_property
    def resources(self) -> pd.DataFrame:
        """One row per resource and period: see `supply.optimizer.tables.resources`."""
        from supply.optimizer.tables import resources

        return resources(self)

    @cached_property
    def contracts(self) -> pd.DataFrame:
        """Use and price of every contract limit: see `supply.optimizer.tables.contracts`."""
        from supply.optimizer.tables import contracts

        return contracts(self)

    @cached_property
    def demand_steps(self) -> pd.DataFrame:
        """How deep each designer's demand is filled: see `supply.optimizer.tables.demand_steps`."""
        from supply.optimizer.tables import demand_steps

        return demand_steps(self)

    def limit_rows(self, resource: str, t: int) -> list[tuple[int, float]]:
        """Rows that move with the capacity of a resource, with their weights: its own limit (1), and the greatest
        shares that contracts give of it (the share). Empty where nothing uses the resource in period `t`.

        Least shares are left out: what a take-or-pay contract charges is a fee, not the worth of capacity.
        """
        name = "power" if self.network.resources[resource].is_power else "limit"
        own = self.structure.row.get((name, (resource, t)))
        rows = [] if own is None else [(own, 1.0)]
        for k, contract in self.network.contracts.items():
            share = self.structure.row.get(("contract_share_limit", (k, t)))
            if contract.resource == resource and share is not None:
                rows.append((share, float(self.values[f"contracts.{k}.greatest_share"][t])))
        return rows

    def price(self, resource: str, t: int) -> float:
        """Price of one more natural unit of a resource in period `t`, in money (or objective units) of that period.

        One more unit raises the limit and, in proportion, the greatest shares that contracts give of it.
        """
        total = sum(weight * self.y[i] for i, weight in self.limit_rows(resource, t))
        return float(total * self.worth / self.structure.natural[resource] / self.discount[t])

    def binding_shares(self, resource: str, t: int) -> list[str]:
        """Contracts whose greatest share of a resource carries a price in period `t`, dearest first."""
        names = self.compiled.engine.matrix.rows
        found = [(float(self.y[i]) * w, names[i][1][0]) for i, w in self.limit_rows(resource, t)[1:]]
        return [k for price, k in sorted(found, reverse=True) if price > 1e-9]

    def lasting_price(self, resource: str, t: int) -> float:
        """Price of capacity added from period `t` on: sum of later discounted prices, in money of period `t`."""
        later = [self.price(resource, k) * self.discount[k] for k in range(t, self.network.horizon.length)]
        return float(sum(later) / self.discount[t])
