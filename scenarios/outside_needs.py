"""What an outside estimate of units would need of a run's limits: its units followed back through the run's network.

Estimates of shipments are outcomes and never inputs of a scenario. Here they are turned round: how many wafers, stacks,
trays and MW would those units need with the yields, uses and lead times of this run, and how does that stand beside its
limits? The what-if of `scenarios.outside_gap` raises the limits that fall short, for a comparison and nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from scenarios.titles import contract_title
from supply.optimizer.parameters import lag_weight
from supply.optimizer.tables import finished_material

if TYPE_CHECKING:
    from scenarios.nodes import Array
    from supply.network import Network
    from supply.optimizer.solution import Solution

__all__ = ["CAUSES", "OPENING", "OTHER", "Needs", "Raised", "needs_of", "raised_limits"]

#: What holds units back: what was in the making at the start, three stages, and all other stages together.
OPENING, OTHER = "opening", "other"
CAUSES = (OPENING, "hbm", "packaging", OTHER, "power")
#: Periods before the horizon in which starts are followed.
_BEFORE = 40
#: A limit falls short when the need is above it by more than this share.
_SPECK = 1e-3


@dataclass(frozen=True)
class Needs:
    """Starts by process, from `_BEFORE` periods before the horizon on, and planning MW of the fleet by period.

    Periods end with the last one that the estimate covers.
    """

    starts: Mapping[str, Array]
    megawatts: Array

    def use(self, network: Network, resource: str, processes: tuple[str, ...] | None = None) -> Array:
        """Units of a resource that the starts (of some processes) use in each period of the horizon."""
        total = np.zeros(len(self.megawatts))
        for name, starts in self.starts.items():
            if resource in network.processes[name].uses and (processes is None or name in processes):
                total += starts[_BEFORE:] * network.get(f"processes.{name}.uses.{resource}")[: len(total)]
        return total

    def opening(self, network: Network, process: str) -> float:
        """Mean starts a period of a process before the horizon, over its lead time; 0 where it has none."""
        lead = int(np.ceil(network.scalar(f"processes.{process}.lead_time", 0.0)))
        return float(self.starts[process][_BEFORE - lead : _BEFORE].mean()) if lead else 0.0


@dataclass(frozen=True)
class Raised:
    """A limit below the need in a year: its cause (one of `CAUSES`), both amounts, and its raised numbers.

    `ours` and `needed` are sums over the year, with what is needed in the periods that fall short; for power means over
    the year, and for what is in the making at the start, starts a period. `values` replaces the numbers of `path` over
    the whole horizon.
    """

    cause: str
    path: str
    title: str
    year: str
    unit: str
    ours: float
    needed: float
    values: Array


def needs_of(solution: Solution, units: Mapping[str, Array]) -> Needs:
    """Starts and power that units a period (by product, from the start of the horizon) need.

    Where a material has several makers, the need is split as the plan splits what it makes; without any, the first
    takes all. Inputs and uses are taken at the start, as in the optimum; steps after the last test take no time, for
    units count as finished there.
    """
    network = solution.network
    length = len(next(iter(units.values())))
    demand: dict[str, Array] = defaultdict(lambda: np.zeros(_BEFORE + length))
    late = set()
    for sku, amount in units.items():
        demand[network.fleet[sku].material][_BEFORE:] += amount
        late |= _after(network, network.fleet[sku].material, finished_material(network, sku))
    table = solution.activities[solution.activities["t"] < length]
    planned = {str(p): float(v) for p, v in table.groupby("process")["starts"].sum().items()}
    starts: dict[str, Array] = {}
    for material in _downstream_first(network):
        if not demand[material].any():
            continue
        for name, share in _makers(network, material, planned):
            made = _starts(network, name, material, share * demand[material], name in late)
            starts[name] = starts.get(name, 0.0) + made
            for part in network.processes[name].input:
                demand[part] += made * _held(network, f"processes.{name}.input.{part}", len(made))
    return Needs(starts, _megawatts(network, units, length))


def _held(network: Network, path: str, length: int, default: float | None = None) -> Array:
    """Numbers of a path over the periods followed; before the horizon the first one."""
    known = network.get(path, default)[: length - _BEFORE]
    return np.concatenate([np.full(_BEFORE, known[0]), known])


def _starts(network: Network, name: str, material: str, amount: Array, at_once: bool) -> Array:
    """Starts of a process that deliver an amount of a material a period."""
    head = f"processes.{name}"
    own = f"{head}.yield.{material}"
    good = _held(network, own if own in network.values else f"{head}.yield", len(amount), 1.0)
    wanted = amount / (good * _held(network, f"{head}.output.{material}", len(amount)))
    lead = np.atleast_1d(0.0 if at_once else network.scalar(f"{head}.lead_time", 0.0))
    out = np.zeros(len(amount))
    for lag in (int(np.floor(lead[0])), int(np.floor(lead[0])) + 1):
        out[: len(out) - lag] += float(lag_weight(lead, lag)[0]) * wanted[lag:]
    return out


def _makers(network: Network, material: str, planned: Mapping[str, float]) -> list[tuple[str, float]]:
    names = [p.id for p in network.processes.values() if material in p.output]
    made = [planned.get(name, 0.0) * _good(network, name, material) for name in names]
    if sum(made) <= 0:
        return [(name, 1.0) for name in names[:1]]
    return [(name, one / sum(made)) for name, one in zip(names, made, strict=True) if one > 0]


def _good(network: Network, name: str, material: str) -> float:
    """Good units of a material for each start of a process in the first period."""
    head = f"processes.{name}"
    own = f"{head}.yield.{material}"
    good = network.scalar(own) if own in network.values else network.scalar(f"{head}.yield", 1.0)
    return good * network.scalar(f"{head}.output.{material}")


def _after(network: Network, material: str, finished: str) -> set[str]:
    """Processes between the finished accelerator and the one that is energised."""
    found: set[str] = set()
    front = [material] if material != finished else []
    while front:
        made = front.pop()
        makers = [p for p in network.processes.values() if made in p.output and p.id not in found]
        found |= {p.id for p in makers}
        front += [m for p in makers for m in p.input if m != finished]
    return found


def _downstream_first(network: Network) -> list[str]:
    """Materials so that each stands behind everything that is made of it."""
    into: dict[str, set[str]] = defaultdict(set)
    for process in network.processes.values():
        for part in process.input:
            into[part] |= set(process.output)
    order: dict[str, None] = {}

    def visit(material: str, path: frozenset[str]) -> None:
        for made in sorted(into[material] - path):
            if made not in order:
                visit(made, path | {made})
        order.setdefault(material)

    for material in network.materials:
        visit(material, frozenset([material]))
    return list(order)


def _megawatts(network: Network, units: Mapping[str, Array], length: int) -> Array:
    """Planning MW of the opening fleet and of the units, energised as they come."""
    total = np.zeros(length)
    for sku in network.fleet.values():
        fleet = sum(network.scalar(f"fleet.{sku.id}.opening.{g}", 0.0) for g in sku.regions)
        kept = network.get(f"fleet.{sku.id}.survival", 1.0)
        watts = network.get(f"fleet.{sku.id}.kw_planning")
        added = units.get(sku.id, np.zeros(length))
        for t in range(length):
            fleet = fleet * kept[t] + added[t]
            total[t] += fleet * watts[t] / 1e3
    return total


def raised_limits(solution: Solution, needs: Needs) -> list[Raised]:
    """Limits below the need, with the numbers that meet it; limits that suffice are left as they are.

    Capacities and greatest shares are raised in the periods in which they fall short; power in all regions in
    proportion, and what is added stays after the last period of the estimate.
    """
    network, length = solution.network, len(needs.megawatts)
    out = [*_opening(solution, needs)]
    held = _capacities(solution, length)
    raised: dict[str, Array] = {}
    for name, resource in network.resources.items():
        if not resource.is_power:
            need = needs.use(network, name)
            raised[name] = np.maximum(held[name], need)
            about = (_cause(resource.stage), f"resources.{name}.capacity", resource.title or name, resource.unit)
            out += _yearly(solution, about, held[name], held[name], need)
    return [*out, *_shares(solution, needs, held, raised), *_power(solution, needs, held)]


def _opening(solution: Solution, needs: Needs) -> Iterator[Raised]:
    """What is in the making at the start, material by material: starts that are given are raised in proportion, or
    those of the makers that the plan uses where none are given."""
    network = solution.network
    first = network.horizon.label(0)
    for material in network.materials:
        makers = {p.id: _good(network, p.id, material) for p in network.processes.values() if material in p.output}
        given = {name: network.scalar(f"opening.pipeline.{name}", 0.0) for name in makers}
        needed = {name: needs.opening(network, name) if name in needs.starts else 0.0 for name in makers}
        have, wanted = (sum(starts[name] * good for name, good in makers.items()) for starts in (given, needed))
        if wanted <= have * (1 + _SPECK):
            continue
        starts = {n: x * wanted / have for n, x in given.items() if x > 0} if have > 0 else needed
        for name, value in starts.items():
            title = network.processes[name].title or name
            values = np.full(network.horizon.length, value)
            path = f"opening.pipeline.{name}"
            yield Raised(OPENING, path, title, first, "", given[name], value, values)


def _capacities(solution: Solution, length: int) -> dict[str, Array]:
    """Capacity by period with what the plan adds to it."""
    table = solution.resources
    out = {r: solution.values[f"resources.{r}.capacity"][:length].copy() for r in solution.network.resources}
    for name, t, capacity in zip(table["resource"], table["t"], table["capacity"], strict=True):
        if t < length:
            out[name][t] = capacity
    return out


def _cause(stage: str) -> str:
    return stage if stage in CAUSES else OTHER


def _yearly(
    solution: Solution, about: tuple[str, str, str, str], ours: Array, others_raised: Array, need: Array
) -> list[Raised]:
    """The years in which a limit falls short; `about`: cause, path, title, unit. `others_raised`: the limit when the
    capacity that it is a share of is raised as well."""
    cause, path, title, unit = about
    labels = np.array([label[:4] for label in solution.network.horizon.labels()[: len(need)]])
    short = need > others_raised * (1 + _SPECK)
    met = np.where(short, need, ours)
    values = solution.values[path].copy()
    per_unit = np.divide(values[: len(need)], others_raised, out=np.ones(len(need)), where=others_raised > 0)
    values[: len(need)] = np.where(short, need * per_unit, values[: len(need)])
    years = dict.fromkeys(labels[short].tolist())
    return [
        Raised(cause, path, title, y, unit, float(ours[labels == y].sum()), float(met[labels == y].sum()), values)
        for y in years
    ]


def _shares(
    solution: Solution, needs: Needs, held: Mapping[str, Array], raised: Mapping[str, Array]
) -> Iterator[Raised]:
    """Greatest shares and amounts of contracts, those that fall short of the capacity as it was raised."""
    network = solution.network
    for name, contract in network.contracts.items():
        need = needs.use(network, contract.resource, contract.processes)
        resource = network.resources[contract.resource]
        for path in (f"contracts.{name}.greatest_share", f"contracts.{name}.greatest"):
            if path in solution.values:
                one = np.ones(len(need))
                amounts = (
                    (held[contract.resource], raised[contract.resource]) if path.endswith("_share") else (one, one)
                )
                ours, others_raised = (solution.values[path][: len(need)] * amount for amount in amounts)
                about = (_cause(resource.stage), path, contract_title(network, contract), resource.unit)
                yield from _yearly(solution, about, ours, others_raised, need)


def _power(solution: Solution, needs: Needs, held: Mapping[str, Array]) -> list[Raised]:
    network, length = solution.network, len(needs.megawatts)
    names = [r.id for r in network.resources.values() if r.is_power]
    ours = sum((held[r] for r in names), np.zeros(length))
    if not names or (ours <= 0).any():
        return []
    factor = np.maximum(needs.megawatts / ours, 1.0)
    labels = [label[:4] for label in network.horizon.labels()[:length]]
    years = dict.fromkeys(year for year, f in zip(labels, factor, strict=True) if f > 1 + _SPECK)
    out = []
    for name in names:
        before = solution.values[f"resources.{name}.capacity"]
        values = before.copy()
        values[:length] *= factor
        values[length:] += before[length - 1] * (factor[-1] - 1)
        for year in years:
            inside = [t for t, x in enumerate(labels) if x == year]
            have, wanted = float(before[inside].mean()), float(values[inside].mean())
            title = network.resources[name].title or name
            out.append(Raised("power", f"resources.{name}.capacity", title, year, "MW", have, wanted, values))
    return out
