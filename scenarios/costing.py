"""Money of a run: owner hours, token and task costs of its SKUs, and the rents that its prices add to them.

Route (b) of `econ.scarcity`: an hour costs the owner's observed purchase price plus the rents of limits *after* the
sale (racks, power).
Owner cost, operating points and task profiles depend on facts only, so they are found once; a draw moves the rents,
and hours, tokens and tasks follow linearly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scenarios.nodes import Array, outer_range
from supply.facts.dating import span

if TYPE_CHECKING:
    from econ.chain import CostChoice
    from econ.owner_cost import StatedPart
    from scenarios.resolve import Resolved
    from supply.optimizer.solution import Solution

__all__ = ["CostModel", "build_cost_model", "middle_of"]

CLASSES = ("uncached_input", "cache_write", "cache_read", "output")
HOURS_PER_YEAR = 8766.0
#: What a scenario states of a part that it prices itself.
_STATED = ("purchase_cost", "kw_planning")


def middle_of(period: str) -> date:
    """The day in the middle of a period: the day of its purchase.

    >>> middle_of("2026-Q1")
    datetime.date(2026, 2, 14)
    """
    first, last = span(period)
    return first + timedelta(days=(last - first).days // 2)


@dataclass(frozen=True)
class Move:
    """How the owner cost of a row follows a stated number: USD per sold hour for one of its unit."""

    row: int
    path: str
    nominal: float
    slope: float


@dataclass
class CostModel:
    """Costs as linear functions of the hour of each SKU and period.

    `rows` are the SKU-period pairs in order; `owner` their owner cost, USD per sold hour, with low and high;
    `power_use` the MW of a
    unit in its region's power row, `rack_use` the amounts of rack limits embodied in a unit; `costs` and `tasks` the
    nominal rows. `stated` are the parts that the scenario prices itself, `moves` how their hours follow its numbers.
    """

    rows: list[tuple[str, str, str, int]]
    owner: Array
    owner_low: Array
    owner_high: Array
    sold: float
    rate: float
    life_years: float
    length: int
    years_per_period: float
    power: list[tuple[int, str, float]]
    racks: list[tuple[int, str, float]]
    costs: list[dict[str, Any]] = field(default_factory=list)
    tasks: list[dict[str, Any]] = field(default_factory=list)
    problems: list[dict[str, str]] = field(default_factory=list)
    sources: tuple[str, ...] = ()
    stated: dict[tuple[str, str], StatedPart] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)

    def choice(self, row: int) -> CostChoice:
        """The question whose answer is the owner cost of a row."""
        from econ.chain import CostChoice

        sku, region, period, _ = self.rows[row]
        return CostChoice(sku, period, middle_of(period), region=region, stated=self.stated.get((sku, period)))

    def owner_at(self, values: Mapping[str, Array]) -> Array:
        """Owner cost of each row at the numbers of a draw: `owner`, moved by what the scenario states of a part."""
        if not self.moves:
            return self.owner
        out = self.owner.copy()
        for move in self.moves:
            out[move.row] += move.slope * (float(values[move.path][self.rows[move.row][3]]) - move.nominal)
        return out

    def spread(self, t: int) -> float:
        """Annuity factor of a lasting price of period t, over the years that it covers."""
        from econ.finance import capital_recovery_factor

        return float(capital_recovery_factor(self.rate, covered_years(self.length - t, self.years_per_period)))

    def rent_terms(self, row: int) -> list[tuple[str, bool, float]]:
        """The rent of a row as a sum over resources: (resource, whether its lasting price counts, USD an hour per USD
        of price)."""
        from econ.finance import capital_recovery_factor

        hours = HOURS_PER_YEAR * self.sold
        unit = float(capital_recovery_factor(self.rate, self.life_years))
        lasting = self.spread(self.rows[row][3])
        power = [(r, True, use * lasting / hours) for k, r, use in self.power if k == row]
        return power + [(r, False, use * unit / hours) for k, r, use in self.racks if k == row]

    def weights(self, resources: list[str]) -> RentWeights:
        """The rents as a fixed linear map of price tables whose rows are `resources` (see `rents`)."""
        from econ.finance import capital_recovery_factor

        hours = HOURS_PER_YEAR * self.sold
        unit = float(capital_recovery_factor(self.rate, self.life_years)) if self.racks else 0.0
        place = {r: k for k, r in enumerate(resources)}
        years = {t: self.spread(t) for t in sorted({self.rows[row][3] for row, _, _ in self.power})}

        def table(entries: list[tuple[int, str, float]], factor: Callable[[int], float]) -> RentTable:
            found = [(row, place[r], self.rows[row][3], use) for row, r, use in entries if r in place]
            index = np.array([f[:3] for f in found], dtype=np.int64).reshape(-1, 3)
            return RentTable(index, np.array([use * factor(t) / hours for _, _, t, use in found]))

        return RentWeights(len(self.rows), table(self.power, years.__getitem__), table(self.racks, lambda t: unit))

    def rents(self, lasting: Mapping[str, Array], price: Mapping[str, Array]) -> Array:
        """Rents after the sale per sold hour for each row, from arrays of lasting and one-period prices by resource.

        Power: planning MW x lasting price, spread as an annuity over the years that the lasting price covers (to the
        end of the tail); racks: amount x price x CRF over the life of the unit; both over the sold hours of a year.
        """
        names = list(price)
        weights = self.weights(names)
        return weights(np.array([lasting[r] for r in names]), np.array([price[r] for r in names]))


@dataclass(frozen=True)
class RentTable:
    """Row, resource and period of each contribution, and its factor."""

    index: NDArray[np.int64]
    factor: Array

    def add(self, out: Array, prices: Array) -> None:
        """Add the contributions of a price table (resources x periods)."""
        if len(self.factor):
            np.add.at(out, self.index[:, 0], self.factor * prices[self.index[:, 1], self.index[:, 2]])


@dataclass(frozen=True)
class RentWeights:
    """Rents per sold hour as a linear map of prices."""

    size: int
    power: RentTable
    racks: RentTable

    def __call__(self, lasting: Array, price: Array) -> Array:
        """USD per sold hour of each SKU-period row."""
        out = np.zeros(self.size)
        self.power.add(out, lasting)
        self.racks.add(out, price)
        return np.maximum(out, 0.0)


def covered_years(periods_left: int, years_per_period: float) -> float:
    """Years from a period to the end of the tail: what a lasting price covers."""
    return periods_left * years_per_period


def no_costs() -> CostModel:
    """The empty model: a study of volumes and prices only."""
    none = np.zeros(0)
    return CostModel([], none, none, none, 1.0, 0.1, 5.0, 0, 0.25, [], [])


def build_cost_model(resolved: Resolved, solution: Solution) -> CostModel:
    """Owner cost, token points and tasks of every SKU that runs in a reported period.

    Without a fleet, or under an objective without money, there is nothing to cost and the model is empty.
    """
    network = resolved.network
    rows = _rows(solution) if network.objective.kind == "value" and network.fleet else []
    from econ.owner_cost import default_use

    rate = network.scalar("discount_rate", 0.1)
    life = network.scalar("costs.life", 5.0)
    model = CostModel(
        rows,
        np.zeros(len(rows)),
        np.zeros(len(rows)),
        np.zeros(len(rows)),
        float(default_use().sold),
        rate,
        life,
        network.horizon.length,
        network.horizon.years,
        [],
        [],
    )
    if rows:
        _owner_costs(model, resolved)
        _uses(model, solution)
    return model


def _rows(solution: Solution) -> list[tuple[str, str, str, int]]:
    """(sku, region with most of its fleet, period, t) of every SKU that is installed in a reported period."""
    fleet = solution.fleet
    if fleet.empty:
        return []
    some = fleet[fleet["fleet"] > 1e-6].sort_values(
        ["sku", "t", "fleet", "region"], ascending=[True, True, False, True]
    )
    first = some.drop_duplicates(["sku", "t"])
    return [
        (str(s), str(g), str(p), int(t)) for s, g, p, t in first[["sku", "region", "period", "t"]].to_numpy().tolist()
    ]


def _owner_costs(model: CostModel, resolved: Resolved) -> None:
    from econ.chain import hour_cost
    from econ.owner_cost import known_skus

    known_skus()  # a table that is wrong is refused as a whole, not part by part
    kept: list[int] = []
    found = []
    for row, (sku, _, period, t) in enumerate(model.rows):
        if (stated := _stated_part(resolved, sku, t)) is not None:
            model.stated[sku, period] = stated
        try:
            found.append(hour_cost(model.choice(row)))
        except ValueError as problem:
            model.problems.append({"sku": sku, "period": period, "reason": str(problem)})
            continue
        kept.append(row)
    model.rows = [model.rows[row] for row in kept]
    model.owner, model.owner_low, model.owner_high = (
        np.array([getattr(hour, name) for hour in found], dtype=float) for name in ("usd", "low", "high")
    )
    bars = (bar for hour in found for bar in hour.breakdown or ())
    model.sources = tuple(dict.fromkeys(f for bar in bars for f in bar.fact_ids))
    model.moves = [move for row in range(len(model.rows)) for move in _moves(model, row)]


def _stated_part(resolved: Resolved, sku: str, t: int) -> StatedPart | None:
    """Price and watts of a part whose `purchase_cost` the scenario states."""
    from econ.owner_cost import StatedPart

    price, power = (resolved.nodes.get(f"fleet.{sku}.{key}") for key in _STATED)
    if price is None or power is None:
        return None
    numbers = [(node.value[t], *(end[t] for end in outer_range(node))) for node in (price, power)]
    purchase, watts = ((float(v), float(low), float(high)) for v, low, high in numbers)
    return StatedPart(purchase, watts)


def _moves(model: CostModel, row: int) -> Iterator[Move]:
    """An hour is linear in the price and in the watts of its part, so one step of each gives its slope."""
    from econ.chain import hour_cost

    choice = model.choice(row)
    if choice.stated is None:
        return
    for key, name in zip(_STATED, ("purchase_usd", "planning_kw"), strict=True):
        nominal = getattr(choice.stated, name)[0]
        moved = replace(choice.stated, **{name: (2.0 * nominal,) * 3})
        slope = (hour_cost(replace(choice, stated=moved)).usd - float(model.owner[row])) / nominal if nominal else 0.0
        yield Move(row, f"fleet.{choice.sku}.{key}", nominal, slope)


def _uses(model: CostModel, solution: Solution) -> None:
    network = solution.network
    power = {row.region: r for r, row in network.resources.items() if row.is_power}
    for index, (sku, region, _, t) in enumerate(model.rows):
        if region in power:
            planning = solution.values.get(f"fleet.{sku}.kw_planning")
            if planning is not None:
                model.power.append((index, power[region], float(planning[t]) / 1000.0))
        for resource, amount in _rack_use(solution, sku, t).items():
            model.racks.append((index, resource, amount))


def _rack_use(solution: Solution, sku: str, t: int) -> dict[str, float]:
    """Rack limits per unit of a SKU: those of the processes that make its material, weighted by what each makes."""
    network = solution.network
    makers = [p for p in network.processes.values() if network.fleet[sku].material in p.output]
    made = {p.id: solution.column("start", p.id)[t] for p in makers}
    total = sum(made.values())
    if total <= 0:
        return {}
    out: dict[str, float] = {}
    for p in makers:
        for r in p.uses:
            if network.resources[r].stage == "rack":
                use = float(solution.values[f"processes.{p.id}.uses.{r}"][t]) * made[p.id] / total
                out[r] = out.get(r, 0.0) + use
    return {r: use for r, use in out.items() if use > 0}


def fill_cost_tables(model: CostModel, rents: Array, models: list[Any], tasks: list[str]) -> None:
    """Token and task rows at the owner cost plus the rents of a solution."""
    from econ.chain import cost_tables

    choices = [
        replace(
            model.choice(k),
            usd_per_gpu_hour=float(model.owner[k] + rents[k]),
            usd_low=float(model.owner_low[k] + rents[k]),
            usd_high=float(model.owner_high[k] + rents[k]),
        )
        for k in range(len(model.rows))
    ]
    tables = cost_tables(choices, models, tasks)
    model.costs, model.tasks = tables.costs, tables.tasks
    model.problems += [p for p in tables.problems if p not in model.problems]
