"""Embodied use: how much of every limit one more energised accelerator holds, yields and lags included.

Value flows back along the routes that are in use. A pool (a material in a period) consists of what arrived and of what
was kept; an active route earns nothing beyond its limits, so the price of a pool is exactly the cost and the rents of
what went into it. Joint outputs (a lead time spread over two periods, bins) share a start by value. Hence the identity

    value over life = cost + sum_r a[r,s] lambda_r

for every SKU that is energised; `identity` prints both sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from supply.fleet import has_vintages
from supply.network import Array
from supply.optimizer.evidence import matrix_of
from supply.optimizer.families.fleet import vintage_left
from supply.optimizer.parameters import Values

if TYPE_CHECKING:
    from supply.optimizer.solution import Solution

SMALL = 1e-9


def embodied(solution: Solution) -> Embodied:
    """Embodied use of every resource per energised accelerator of every SKU, region and period.

    >>> from supply.network_examples import power_chain
    >>> from supply.optimizer.compiled import Compiled
    >>> found = embodied(Compiled(power_chain(4, life_years=5.0)).solve())
    >>> float(found.amounts(0).loc["fab", "big"]), bool(found.identity.gap.max() < 1e-9)
    (0.05, True)
    """
    return Embodied(solution)


@dataclass
class _Pools:
    """W: pools per unit of pool; use: other rows per unit; cost per unit."""

    lu: Any
    use: sp.csr_matrix
    cost: Array
    place: dict[int, int]


@dataclass
class Embodied:
    """Tables of embodied use of one solution (see module text)."""

    solution: Solution

    @cached_property
    def _matrix(self) -> sp.csc_matrix:
        engine = self.solution.compiled.engine
        return matrix_of(engine, engine.matrix.coefficient.fill(self.solution.theta))

    @cached_property
    def _y(self) -> Array:
        """Row prices; a balance row holds the price of a unit in the pool (its right-hand side counts units taken)."""
        y = self.solution.y.copy()
        y[[name == "balance" for name, _ in self.solution.compiled.engine.matrix.rows]] *= -1.0
        return y

    @cached_property
    def _x(self) -> Array:
        return self.solution.x if self.solution.vertex is None else self.solution.vertex

    @cached_property
    def _pools(self) -> _Pools:
        engine, matrix, x, y = self.solution.compiled.engine, self._matrix, self._x, self._y
        rows = [i for i, (name, _) in enumerate(engine.matrix.rows) if name == "balance"]
        place = {i: k for k, i in enumerate(rows)}
        opening = np.abs(engine.matrix.rhs.fill(self.solution.theta)[rows])
        inflow = np.where(opening > SMALL, opening, 0.0)
        bounds = self.solution.bounds
        decided = np.zeros(len(x), dtype=bool) if bounds is None else bounds[2] == bounds[3]
        flows = []  # (column, pool, share of the start)
        for j, (name, _) in enumerate(engine.matrix.columns):
            if name not in ("start", "stock") or x[j] <= SMALL:
                continue
            if decided[j]:  # started before this plan was made: sunk, its arrivals are like opening stock
                for k in range(matrix.indptr[j], matrix.indptr[j + 1]):
                    i, v = int(matrix.indices[k]), float(matrix.data[k])
                    if i in place and v > 0:
                        inflow[place[i]] += v * x[j]
                        opening[place[i]] += v * x[j]
                continue
            span = slice(matrix.indptr[j], matrix.indptr[j + 1])
            entries = zip(matrix.indices[span].tolist(), matrix.data[span].tolist(), strict=True)
            made = [(i, v) for i, v in entries if i in place and v > 0]
            worth = sum(v * y[i] for i, v in made)
            for i, v in made:
                flows.append((j, i, v * y[i] / worth if abs(worth) > SMALL else 1 / len(made)))
                inflow[place[i]] += v * x[j]
        return self._assemble(flows, inflow, opening, rows, place)

    def _assemble(
        self, flows: list[tuple[int, int, float]], inflow: Array, opening: Array, rows: list[int], place: dict[int, int]
    ) -> _Pools:
        matrix, cost = self._matrix, self.solution._cost
        w: list[tuple[int, int, float]] = []
        use: list[tuple[int, int, float]] = []
        spent = np.zeros(len(rows))
        for j, i, share in flows:
            k = place[i]
            per_unit = share * self._x[j] / inflow[k]
            spent[k] -= cost[j] * per_unit
            span = slice(matrix.indptr[j], matrix.indptr[j + 1])
            for other, v in zip(matrix.indices[span].tolist(), matrix.data[span].tolist(), strict=True):
                if other not in place:
                    use.append((k, other, v * per_unit))
                elif v < 0:
                    w.append((k, place[other], -v * per_unit))
        # opening stock has no cost: its price is a rent of whoever holds it
        use += [(k, i, opening[k] / inflow[k]) for i, k in place.items() if opening[k] > SMALL]
        eye = sp.identity(len(rows), format="csc")
        return _Pools(
            splu((eye - _sparse(w, len(rows), len(rows))).tocsc()),
            _sparse(use, len(rows), matrix.shape[0]),
            spent,
            place,
        )

    def _one(self, s: str, g: str, t: int) -> tuple[Array, float, float]:
        """Use of every row, cost and value of one accelerator energised in period t (model money)."""
        solution, structure, pools = self.solution, self.solution.structure, self._pools
        network, cost = solution.network, solution._cost
        target = np.zeros(len(pools.cost))
        target[pools.place[structure.row["balance", (network.fleet[s].material, t)]]] = 1.0
        z = pools.lu.solve(target, trans="T")
        use = np.asarray(pools.use.T @ z).ravel()
        spent, value, kept = float(pools.cost @ z), 0.0, 1.0
        j = structure.column["energise", (s, g, t)]
        spent -= float(cost[j])
        self._add(use, j, 1.0, ("balance", "fleet_balance"))
        numbers = Values(solution.values, network.horizon.length)
        survival, by_age = numbers(f"fleet.{s}.survival", 1.0), has_vintages(network, s)
        for later in range(t, network.horizon.length):
            off = structure.column.get(("retire", (s, g, later)))
            if off is not None and self._x[off] > SMALL:
                break  # an accelerator that may as well be switched off is worth nothing from here on
            kept *= 1.0 if later == t else float(survival[later])
            if by_age:
                kept = float(vintage_left(s, later - t, numbers)[later])
            f = structure.column["fleet", (s, g, later)]
            value += kept * float(cost[f])
            self._add(use, f, kept, ("fleet_balance",))
        return use, spent, value

    def _add(self, use: Array, column: int, weight: float, without: tuple[str, ...]) -> None:
        rows = self.solution.compiled.engine.matrix.rows
        for k in range(self._matrix.indptr[column], self._matrix.indptr[column + 1]):
            i = self._matrix.indices[k]
            if rows[i][0] not in without:
                use[i] += weight * self._matrix.data[k]

    @cached_property
    def _cases(self) -> list[tuple[str, str, int, Array, float, float, Array]]:
        """(sku, region, t, use, cost, value, prices) for everything that is energised in the reported periods."""
        periods = range(self.solution.network.horizon.periods)
        if self.solution.plans is not None:
            return [c for t in periods for c in Embodied(self.solution.plans[t])._cases if c[2] == t]
        found = []
        for (name, key), j in self.solution.structure.column.items():
            if name == "energise" and self._x[j] > 1e-7 and key[-1] in periods:
                found.append((*key, *self._one(*key), self._y))
        return found

    @cached_property
    def identity(self) -> pd.DataFrame:
        """sku, region, period, t, value_usd, cost_usd, rents_usd (of the period, per accelerator), gap (relative)."""
        solution, records = self.solution, []
        labels = solution.network.horizon.labels()
        for s, g, t, use, cost, value, y in self._cases:
            rents = float(use @ y)
            gap = abs(value - cost - rents) / max(abs(value), abs(cost), 1e-12)
            unit = solution.worth / solution.flow / solution.discount[t]
            records.append((s, g, labels[t], t, value * unit, cost * unit, rents * unit, gap))
        columns = ["sku", "region", "period", "t", "value_usd", "cost_usd", "rents_usd", "gap"]
        return pd.DataFrame(records, columns=columns)

    @cached_property
    def table(self) -> pd.DataFrame:
        """sku, region, period, t, row, subject, row_period, amount (natural units per accelerator), contribution_usd.

        `row` is the family: limit and power are resources, balance is opening stock, others are contracts, demand steps
        and the like. Contributions are in money of the period in which the accelerator is energised.
        """
        solution, records = self.solution, []
        rows, labels = solution.compiled.engine.matrix.rows, solution.network.horizon.labels()
        for s, g, t, use, _, _, y in self._cases:
            unit = solution.worth / solution.flow / solution.discount[t]
            for i in np.flatnonzero(np.abs(use) > SMALL):
                name, key = rows[i]
                natural = (
                    solution.structure.natural.get(str(key[0]), solution.flow)
                    if name in ("limit", "power")
                    else solution.flow
                )
                amount = float(use[i]) * natural / solution.flow
                records.append((s, g, labels[t], t, name, key[0], labels[key[-1]], amount, float(use[i] * y[i]) * unit))
        columns = ["sku", "region", "period", "t", "row", "subject", "row_period", "amount", "contribution_usd"]
        return pd.DataFrame(records, columns=columns)

    def amounts(self, t: int) -> pd.DataFrame:
        """a[r, s]: manufacturing resources (rows) per accelerator of each SKU (columns) energised in period t, over all
        periods in which they were used; regions averaged."""
        mine = self.table[(self.table.t == t) & (self.table.row == "limit")]
        per_region = mine.groupby(["subject", "sku", "region"]).amount.sum()
        return per_region.groupby(level=["subject", "sku"]).mean().unstack("sku").fillna(0.0)


def _sparse(items: list[tuple[int, int, float]], rows: int, columns: int) -> sp.csr_matrix:
    i, j, v = zip(*items, strict=True) if items else ((), (), ())
    return sp.csr_matrix((v, (i, j)), shape=(rows, columns))
