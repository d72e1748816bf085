"""What limits the chain, what one more unit is worth, and what would limit it next.

    report(solution) -> BottleneckReport        binding rows with price, range, +1 % gains, next binding, rents, limits
    embodied(solution) -> Embodied              a[r, s], for translation into $/GPU-hour, $/Mtoken, $/task

A price is the value to the marginal user at fixed product values, in money of its period; it is not what anyone pays.
Prices are shown where the limit is positive, something uses it and the rent exceeds 1 % of the largest of the period.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from supply.network import Array
from supply.optimizer.embodied import Embodied, embodied
from supply.optimizer.evidence import matrix_of
from supply.optimizer.prices import Perturbed, PriceError
from supply.optimizer.solution import Solution
from supply.optimizer.tables import finished_material
from supply.potentials import limits, rents_by_owner, stranded

__all__ = [
    "Binding",
    "BottleneckReport",
    "Embodied",
    "embodied",
    "limits",
    "next_binding",
    "price_without",
    "rents_by_owner",
    "report",
    "stranded",
]

RENT_SHARE = 0.01
"""Rows with less than this share of the largest rent of their period are not shown."""
GIVES_WAY = 0.05
"""A limit has given way to the next one when its price has fallen below this share."""
GROWTH_STEPS = (0.01, 0.05, 0.2, 0.5, 1.0, 3.0)
"""Relative rises of a limit at which the price is looked up, until it has fallen."""
RIVALS = ("limit", "power", "contract_share_limit", "contract_greatest_limit", "demand_limit")
"""Families of rows that may be the next to bind."""


@dataclass(frozen=True)
class Binding:
    """One binding row of one period; money in USD of the period (`objective: value`), else objective units.

    `shares`: contracts whose greatest share of the resource binds (the price holds them; the whole may have room left).
    """

    resource: str
    title: str
    stage: str
    region: str
    owner: str
    unit: str
    period: str
    t: int
    capacity: float
    utilisation: float
    price: float
    price_low: float
    price_high: float
    lasting_price: float
    rent: float
    plus_1_percent: dict[str, float] | None = None
    next_resource: str | None = None
    next_at: float | None = None
    shares: tuple[str, ...] = ()

    @property
    def is_range(self) -> bool:
        """True where the price is an interval wider than 1 % (a kink of the optimum): print the range."""
        return self.price_high - self.price_low > 0.01 * max(abs(self.price), abs(self.price_high))


@dataclass
class BottleneckReport:
    """Binding rows in order of period and rent, with what goes around them."""

    bindings: list[Binding]
    unit: str
    notes: list[str] = field(default_factory=list)

    def of(self, period: str) -> list[Binding]:
        """Binding rows of one period, largest rent first."""
        return [b for b in self.bindings if b.period == period]

    @property
    def table(self) -> pd.DataFrame:
        """All binding rows as a frame; gains as columns finished, energised, h100e."""
        records = []
        for b in self.bindings:
            record: dict[str, Any] = {k: v for k, v in vars(b).items() if k != "plus_1_percent"}
            records.append(record | {f"plus_1_percent_{k}": v for k, v in (b.plus_1_percent or {}).items()})
        return pd.DataFrame(records)


def report(
    solution: Solution,
    periods: Iterable[str] | None = None,
    *,
    ranges: bool = True,
    gains: bool = True,
    next_for: int = 1,
) -> BottleneckReport:
    """Bottleneck report of the named periods (default all reported ones).

    `ranges`: check every price by finite differences both ways; `gains`: re-solve with the limit up by 1 % in its
    period; `next_for`: for how many rows of each period (by rent) the next binding row is searched.
    Raises `PriceError` where a dual lies outside its finite differences.

    >>> from supply.network_examples import course_11_1
    >>> from supply.optimizer.compiled import optimize
    >>> [(b.resource, b.price, b.plus_1_percent["finished"]) for b in report(optimize(course_11_1())).bindings]
    [('cowos', 1.0, 100.0)]
    """
    labels = solution.network.horizon.labels()[: solution.network.horizon.periods]
    chosen = set(periods) if periods is not None else set(labels)
    if solution.plans is not None:
        options = {"ranges": ranges, "gains": gains, "next_for": next_for}
        parts = [_report_of_plan(solution.plans[t], p, options) for t, p in enumerate(labels) if p in chosen]
        return BottleneckReport([b for part in parts for b in part], solution.objective_unit, solution.notes)
    shown = _shown(solution, chosen)
    bindings, notes = [], []
    with Perturbed(solution) as perturbed:
        totals = Totals.of(solution)
        for rank, row in shown:
            rows = solution.limit_rows(row.resource, int(row.t))
            unit = _unit(solution, row.resource, row.t)
            low = high = row.price
            if ranges and row.price != 0:
                try:
                    found = perturbed.price_range(rows)
                    low, high = min(found.low * unit, row.price), max(found.high * unit, row.price)
                except PriceError as error:
                    notes.append(f"{row.resource} in {row.period}: {error}")
                    low, high = np.nan, np.nan
            gain = totals.gain(perturbed, [i for i, _ in rows]) if gains else None
            following = next_binding(perturbed, rows) if rank < next_for and row.price > 0 else (None, None)
            shares = tuple(solution.binding_shares(row.resource, int(row.t)))
            bindings.append(_binding(row, low, high, gain, following, shares))
    if notes:
        raise PriceError("; ".join(notes))
    if len(solution.compiled.engine.matrix.integer):
        notes.append("prices hold given the plan of lumpy expansions")
    return BottleneckReport(bindings, solution.objective_unit, notes)


def _report_of_plan(plan: Solution, period: str, options: dict[str, Any]) -> list[Binding]:
    return report(plan, [period], **options).bindings


def _binding(
    row: Any,
    low: float,
    high: float,
    gain: dict[str, float] | None,
    following: tuple[Any, Any],
    shares: tuple[str, ...],
) -> Binding:
    return Binding(
        row.resource, row.title, row.stage, row.region, row.owner, row.unit, row.period, int(row.t),
        float(row.capacity), float(row.utilisation), float(row.price), float(low), float(high),
        float(row.lasting_price), float(row.rent), gain, *following, shares,
    )  # fmt: skip


def _shown(solution: Solution, periods: set[str]) -> list[tuple[int, Any]]:
    """(rank in its period, table row) of the rows that are worth printing."""
    table = solution.resources
    table = table[table.period.isin(periods) & (table.capacity > 0) & (table.used > 0)]
    power = table.resource.map(lambda r: solution.network.resources[r].is_power)
    binds = (table.utilisation >= 1 - 1e-6) | (table.price > 0)  # a share may bind where the whole has room left
    # one-period prices of power jump: its weight is the mean price of the periods to come, or this one's where higher
    mean_later = table.lasting_price * table.capacity / (solution.network.horizon.length - table.t)
    worth = np.where(power, np.maximum(table.rent, mean_later), table.rent)
    table = table.assign(worth=np.where(binds, worth, 0.0))
    largest = table.groupby("t").worth.transform("max")
    table = table[(table.worth > RENT_SHARE * largest) & (table.worth > 0)]
    table = table.sort_values(["t", "worth"], ascending=[True, False])
    return [(rank, row) for _, group in table.groupby("t") for rank, row in enumerate(group.itertuples())]


def _unit(solution: Solution, resource: str, t: int) -> float:
    return float(solution.worth / solution.structure.natural[resource] / solution.discount[t])


@dataclass
class Totals:
    """Weights that turn primal values into finished, energised and H100-equivalent accelerators (reported periods)."""

    weights: dict[str, Array]

    @classmethod
    def of(cls, solution: Solution) -> Totals:
        """Weights for the compiled programme of a solution."""
        network, engine = solution.network, solution.compiled.engine
        length, periods = len(engine.matrix.columns), network.horizon.periods
        weights = {name: np.zeros(length) for name in ("finished", "energised", "h100e")}
        for j, (name, key) in enumerate(engine.matrix.columns):
            if name == "energise" and key[-1] < periods:
                weights["energised"][j] = solution.flow
                ratio = solution.values.get(f"fleet.{key[0]}.h100e")
                weights["h100e"][j] = solution.flow * (float(ratio[key[-1]]) if ratio is not None else 0.0)
            elif name == "sold" and key[-1] < periods:
                weights["finished"][j] = solution.flow
        finals = {finished_material(network, s) for s in network.fleet}
        rows = [solution.structure.row["balance", (m, t)] for m in sorted(finals) for t in range(periods)]
        if rows:
            started = np.array([name == "start" for name, _ in engine.matrix.columns])
            matrix = matrix_of(engine, engine.matrix.coefficient.fill(solution.theta))[rows]
            arrivals = np.asarray(np.maximum(matrix.toarray(), 0.0).sum(axis=0)).ravel()
            weights["finished"] += np.where(started, arrivals, 0.0) * solution.flow
        return cls(weights)

    def gain(self, perturbed: Perturbed, rows: list[int], factor: float = 1.01) -> dict[str, float]:
        """Change of each total after the rows' limits are multiplied by `factor`."""
        moved = perturbed.moved(rows, factor)[1]
        change = {name: float(w @ (moved - perturbed.vertex)) for name, w in self.weights.items()}
        return {name: 0.0 if abs(v) < 1e-6 * perturbed.solution.flow else round(v, 6) for name, v in change.items()}


def next_binding(
    perturbed: Perturbed, rows: list[tuple[int, float]], rounds: int = 7
) -> tuple[str | None, float | None]:
    """Least relative rise of a limit at which its price falls below 5 %, and the resource whose rent rose most by then.

    `rows`: `Solution.limit_rows`. (None, None) where it still pays at four times the limit. The rise is sought by
    turns where the tangents at both ends meet (exact for a single kink: the optimum is concave) and in the middle.
    """
    index = np.array([i for i, _ in rows])
    limits_ = np.where(np.isfinite(perturbed.upper[index]), perturbed.upper[index], 0.0)

    def slope(prices: Array) -> float:
        return float(prices[index] @ limits_)

    first = slope(perturbed.solution.y)
    below, above = (0.0, perturbed.objective, first), None
    for step in GROWTH_STEPS:
        objective, _, prices = perturbed.moved(index, 1 + step, chain=step > GROWTH_STEPS[0])
        if slope(prices) < GIVES_WAY * first:
            above = (step, objective, slope(prices), prices)
            break
        below = (step, objective, slope(prices))
    if above is None:
        return None, None
    for turn in range(rounds):
        if above[0] - below[0] <= 0.02 * above[0]:
            break
        rise = (below[0] + above[0]) / 2
        if turn % 2 == 0:
            kink = (above[1] - below[1] + below[2] * below[0] - above[2] * above[0]) / (below[2] - above[2])
            rise = float(np.clip(kink, below[0], above[0]))
        objective, _, prices = perturbed.moved(index, 1 + rise * (1 + 1e-6), chain=True)
        if slope(prices) < GIVES_WAY * first:
            above = (rise, objective, slope(prices), prices)
        else:
            below = (rise, objective, slope(prices))
    return _risen(perturbed, int(index[0]), above[3]), above[0]


def _risen(perturbed: Perturbed, row: int, prices: Array) -> str | None:
    """Resource whose rent rose most, another one than that of `row` where any did."""
    names = perturbed.engine.matrix.rows
    rivals = [i for i, (name, _) in enumerate(names) if i != row and name in RIVALS]
    size = np.abs(np.where(np.isfinite(perturbed.upper), perturbed.upper, 0.0))
    rise = (prices - perturbed.solution.y) * size
    by_name: dict[str, float] = {}
    contracts = perturbed.solution.network.contracts
    for i in rivals:
        name, subject = names[i][0], names[i][1][0]
        subject = contracts[subject].resource if name.startswith("contract_") else subject
        by_name[subject] = by_name.get(subject, 0.0) + float(rise[i])
    risen = {name: amount for name, amount in by_name.items() if amount > 1e-9}
    others = {name: amount for name, amount in risen.items() if name != names[row][1][0]} or risen
    return max(others, key=lambda name: others[name]) if others else None


def price_without(solution: Solution, resource: str, t: int, processes: Iterable[str]) -> tuple[float, float]:
    """Price of a resource with and without substitutes: (as planned, after the named processes are closed).

    Raises `ValueError` for a process that is not there.
    """
    missing = [p for p in processes if p not in solution.network.processes]
    if missing:
        raise ValueError(f"no such process: {', '.join(missing)}")
    closed = set(processes)
    engine = solution.compiled.engine
    rows = solution.limit_rows(resource, t)
    with Perturbed(solution) as perturbed:
        lower, upper = engine.col_lower.copy(), engine.col_upper.copy()
        shut = upper.copy()
        shut[[j for j, (name, key) in enumerate(engine.matrix.columns) if name == "start" and key[0] in closed]] = 0.0
        try:
            engine.set_col_bounds(lower, shut)
            _, _, prices = perturbed.moved([i for i, _ in rows])
        finally:
            engine.set_col_bounds(lower, upper)
    without = sum(weight * prices[i] for i, weight in rows)
    return solution.price(resource, t), float(without * _unit(solution, resource, t))
