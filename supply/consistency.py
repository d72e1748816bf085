"""Everything that is wrong with a network, in one list, each with its place and fix.

Errors make a solve meaningless; warnings are printed and the solve goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

import networkx as nx
import numpy as np

from supply.graph import build_graph
from supply.network import Network, NetworkError


@dataclass(frozen=True)
class Problem:
    """One finding: dotted path, what is wrong, what to do, `error` or `warning`."""

    path: str
    message: str
    fix: str
    severity: str = "error"

    def __str__(self) -> str:
        return f"{self.path}: {self.message}; {self.fix}"


class ConsistencyError(NetworkError):
    """A network with errors; `problems` holds all of them."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


def check(network: Network) -> list[Problem]:
    """All problems of a network, errors first.

    >>> from supply.network_examples import course_11_1
    >>> check(course_11_1())
    []
    >>> [str(p) for p in check(course_11_1().with_values({"processes.package.yield": 1.2}))]
    ['processes.package.yield: 1.2 is outside 0 to 1; give a fraction']
    """
    rules = (
        _references,
        _numbers,
        _sizes,
        _scaling,
        _ranges,
        _one_for_all,
        _windows,
        _demand,
        _fleet,
        _capacities,
        _contracts,
        _events,
    )
    found = [problem for rule in rules for problem in rule(network)]
    if not any(p.severity == "error" for p in found):
        found += [*_routes(network), *_loops(network), *_idle_shares(network)]
    return sorted(found, key=lambda p: p.severity != "error")


def require_consistent(network: Network) -> list[Problem]:
    """Warnings of a network; raises `ConsistencyError` with every error."""
    problems = check(network)
    errors = [p for p in problems if p.severity == "error"]
    if errors:
        raise ConsistencyError(errors)
    return problems


def _near(word: str, known: object) -> str:
    near = get_close_matches(word, list(known), n=1)  # type: ignore[call-overload]
    return f"did you mean {near[0]}?" if near else "define it, or correct the name"


def _references(n: Network) -> Iterator[Problem]:
    for p, process in n.processes.items():
        for role in ("input", "output"):
            for m in getattr(process, role):
                if m not in n.materials:
                    yield Problem(f"processes.{p}.{role}.{m}", "no such material", _near(m, n.materials))
        for r in process.uses:
            if r not in n.resources:
                yield Problem(f"processes.{p}.uses.{r}", "no such resource", _near(r, n.resources))
    for s, sku in n.fleet.items():
        if sku.material not in n.materials:
            yield Problem(f"fleet.{s}.material", f"no such material: {sku.material}", _near(sku.material, n.materials))
        if len(set(sku.regions)) < len(sku.regions):
            yield Problem(f"fleet.{s}.regions", "a region is named twice", "name each once")
        if not sku.regions:
            yield Problem(f"fleet.{s}.regions", "no region", "name at least one region where it may be energised")
        for g in sku.regions:
            if n.regions and g not in n.regions:
                yield Problem(f"fleet.{s}.regions", f"no such region: {g}", _near(g, n.regions))
    for m in n.demand:
        if m not in n.materials:
            yield Problem(f"demand.{m}", "no such material", _near(m, n.materials))
    designers = {sku.designer for sku in n.fleet.values()}
    for d in n.segments:
        if d not in designers:
            yield Problem(
                f"demand.{d}", "neither a material nor the designer of a SKU in the fleet", _near(d, designers)
            )
    for kind, records in (("contracts", n.contracts), ("expansions", n.expansions)):
        for k, record in records.items():
            if record.resource not in n.resources:
                yield Problem(
                    f"{kind}.{k}.resource", f"no such resource: {record.resource}", _near(record.resource, n.resources)
                )
    for k, contract in n.contracts.items():
        for p in contract.processes:
            if p not in n.processes and p not in n.fleet:
                yield Problem(f"contracts.{k}.processes", f"no such process: {p}", _near(p, n.processes))


REQUIRED = {"fleet": ("value",), "resources": ("capacity",), "disruptions": ("remaining",)}


def _numbers(n: Network) -> Iterator[Problem]:
    for path, array in n.values.items():
        if len(array) != n.horizon.length:
            yield Problem(
                path, f"{len(array)} numbers for {n.horizon.length} periods", "give one per period, tail included"
            )
        elif not np.all(np.isfinite(array)):
            yield Problem(path, "not a finite number", "give a number for every period")
    needed = [f"{kind}.{k}.{f}" for kind, fields in REQUIRED.items() for k in getattr(n, kind) for f in fields]
    if n.objective.kind == "compute":
        needed += [f"fleet.{s}.h100e" for s in n.fleet]
    for p, process in n.processes.items():
        for role, ids in (("input", process.input), ("output", process.output), ("uses", process.uses)):
            known = n.resources if role == "uses" else n.materials
            needed += [f"processes.{p}.{role}.{k}" for k in ids if k in known]
    if any(row.is_power for row in n.resources.values()):
        needed += [f"fleet.{s}.kw_planning" for s in n.fleet]
    for s, sku in n.fleet.items():
        needed += [f"fleet.{s}.tastes.{k}.{f}" for k in range(sku.tastes) for f in ("share", "discount")]
        if n.objective.costs == "purchase":
            needed.append(f"fleet.{s}.purchase_cost")
    for d, segment in n.segments.items():
        needed += [f"demand.{d}.reference"]
        needed += [f"demand.{d}.steps.{k}.{f}" for k in range(segment.steps) for f in ("share", "discount")]
    for path in needed:
        if path not in n.values:
            yield Problem(path, "has no number", "give one")


SHARES = (
    ".yield",
    ".survival",
    ".remaining",
    ".share",
    ".greatest_share",
    ".least_share",
    ".cancel",
    ".run_down",
    ".survival_by_age",
)
FREE = (".value", ".price", "discount_rate", ".cost", ".energising_cost")
SPANS = {"costs.life": (0.1, 100.0, "years"), "discount_rate": (-0.5, 10.0, "a year, as a fraction")}
"""Numbers that must lie within a sensible span."""
ONE_FOR_ALL = re.compile(
    r"discount_rate|costs\.life|expansions\.[^.]+\.life|fleet\.[^.]+\.(?:life|wear_out|opening_age)"
)
"""Numbers of the whole horizon: the optimum reads them once."""


def _span(path: str) -> tuple[float, float, str] | None:
    if path in SPANS:
        return SPANS[path]
    if path.endswith(".lead_time"):
        return (0.0, 200.0, "periods")
    if re.fullmatch(r"fleet\.[^.]+\.life", path):
        return (0.1, 1000.0, "periods")
    if re.fullmatch(r"fleet\.[^.]+\.wear_out", path):
        return (0.2, 20.0, "a Weibull shape: 1 is a steady loss")
    return (0.1, 100.0, "years") if path.startswith("expansions.") and path.endswith(".life") else None


COEFFICIENTS = re.compile(r"processes\.[^.]+\.(?:input|output|uses|yield)(?:\..*)?")
CAPACITY = re.compile(r"resources\.[^.]+\.capacity")
MONEY = re.compile(r"demand\.[^.]+\.price|fleet\.[^.]+\.value")
SMALLEST, LARGEST, MOST = 1e-9, 1e9, 1e18
"""Sizes that a solve in double precision tells from zero and from no limit; the solver drops smaller coefficients."""
LEAST_CAPACITY = 1e-6
"""A thousand times the tolerance of a constraint: a limit near the tolerance would be overstepped unseen."""


def _sizes(n: Network) -> Iterator[Problem]:
    """Numbers that a solve would take for zero or for no limit."""
    for path, array in n.values.items():
        sizes = np.abs(array[array != 0])
        if not len(sizes) or path.startswith("costs."):
            continue
        low, high = float(sizes.min()), float(sizes.max())
        money = n.objective.kind == "value" and MONEY.fullmatch(path)
        if COEFFICIENTS.fullmatch(path) and not SMALLEST <= low <= high <= LARGEST:
            worst = low if low < SMALLEST else high
            message = f"{worst:g} is outside {SMALLEST:g} to {LARGEST:g}: a solve cannot tell it from nothing"
            yield Problem(path, message, "count in a larger or smaller unit")
        elif CAPACITY.fullmatch(path) and low < LEAST_CAPACITY:
            message = f"{low:g} is too small for a solve: below {LEAST_CAPACITY:g} it is nothing"
            yield Problem(path, message, "count in a smaller unit, or give zero")
        elif money and high < SMALLEST * 100:
            yield Problem(path, f"{high:g} USD is too small for a solve", "count in a larger unit, or give zero")
        elif high > MOST:
            yield Problem(path, f"{high:g} is too large for a solve", "count in a larger unit, or leave the limit out")


def _scaling(n: Network) -> Iterator[Problem]:
    """Capacities so far apart that the smaller ones lie within the tolerance of the larger."""
    found = {path: float(a[a > 0].max()) for path, a in n.values.items() if CAPACITY.fullmatch(path) and (a > 0).any()}
    if found and max(found.values()) / min(found.values()) > LARGEST:
        least, most = min(found, key=found.__getitem__), max(found, key=found.__getitem__)
        message = (
            f"{found[least]:g} beside {found[most]:g} of {most}: more than {LARGEST:g} apart, near what a solve tells"
        )
        yield Problem(least, message, "count the larger in a larger unit, or leave out the limit", "warning")


def _ranges(n: Network) -> Iterator[Problem]:
    for path, array in n.values.items():
        low, high = float(array.min(initial=0.0)), float(array.max(initial=0.0))
        worst = low if low < 0 else high
        is_yield = path.startswith("processes.") and ".yield" in path
        span = _span(path)
        if (is_yield or path.endswith(SHARES)) and not 0 <= low <= high <= 1 + 1e-12:
            yield Problem(path, f"{worst:g} is outside 0 to 1", "give a fraction")
        elif span is not None:
            if not span[0] <= float(array.min()) <= float(array.max()) <= span[1]:
                worst = float(array.min()) if array.min() < span[0] else high
                yield Problem(path, f"{worst:g} is outside {span[0]:g} to {span[1]:g}", f"give {span[2]}")
        elif low < 0 and not path.endswith(FREE):
            yield Problem(path, f"{low:g} is negative", "give zero or more")
        elif is_yield and high == 0:
            yield Problem(path, "is zero in every period", "nothing would come out; give a positive yield", "warning")
    for p in n.processes:
        path = f"processes.{p}.ramp"
        if path in n.values and f"processes.{p}.floor" not in n.values and f"opening.pipeline.{p}" not in n.values:
            yield Problem(path, "grows from nothing", f"give processes.{p}.floor", "warning")


def _one_for_all(n: Network) -> Iterator[Problem]:
    """Numbers that hold for the whole horizon but are given by period: all but the first would change nothing."""
    for path, array in n.values.items():
        if ONE_FOR_ALL.fullmatch(path) and np.ptp(array) > 1e-12 * np.abs(array).max():
            first = array[np.flatnonzero(array != array[0])[0]]
            message = f"changes from {array[0]:g} to {first:g}, but one number holds for the whole horizon"
            yield Problem(path, message, "give one value, without `from` and `to`")


def _windows(n: Network) -> Iterator[Problem]:
    labels = n.horizon.label
    for kind in ("processes", "fleet", "contracts", "expansions", "disruptions"):
        for k, record in getattr(n, kind).items():
            if record.last is not None and record.last < record.first:
                message = f"ends in {labels(record.last)} before it begins in {labels(record.first)}"
                yield Problem(f"{kind}.{k}", message, "exchange `from` and `to`")
            elif record.first >= n.horizon.length or (record.last is not None and record.last < 0):
                yield Problem(f"{kind}.{k}", "lies outside the horizon", "move it or take it out", "warning")


def _demand(n: Network) -> Iterator[Problem]:
    if not n.demand and not n.fleet:
        yield Problem("demand", "nothing is sold and there is no fleet", "name a final material or a SKU")
    for m, sale in n.demand.items():
        if sale.unmet not in ("lost", "backlog", "never"):
            yield Problem(f"demand.{m}.unmet", f"{sale.unmet!r} is not lost, backlog or never", "choose one of them")
        if sale.unmet != "lost" and f"demand.{m}.quantity" not in n.values:
            yield Problem(f"demand.{m}.quantity", f"{sale.unmet} needs a quantity", "give the demand of each period")
        if n.objective.kind == "value" and f"demand.{m}.price" not in n.values:
            yield Problem(f"demand.{m}.price", "has no number", "give a price, or choose another objective")
    for path in n.values:
        head, _, rest = path.partition(".")
        name, _, key = rest.partition(".")
        if head == "demand" and name in n.segments and key in ("price", "quantity", "cancel"):
            message = f"has no effect: {name} is a designer, whose demand is `reference` and `steps`"
            yield Problem(path, message, "drop it, or name a material")
        elif head == "demand" and name in n.demand and key.startswith(("reference", "steps.")):
            message = f"has no effect: {name} is a material, whose demand is `price` and `quantity`"
            yield Problem(path, message, "drop it, or name a designer")
    if n.objective.kind not in ("value", "compute", "units"):
        yield Problem("objective", f"{n.objective.kind!r} is not value, compute or units", "choose one of them")
    if n.objective.costs not in ("manufacturing", "purchase"):
        yield Problem(
            "objective.costs", f"{n.objective.costs!r} is not manufacturing or purchase", "choose one of them"
        )


def _fleet(n: Network) -> Iterator[Problem]:
    paid = any(f"processes.{p}.cost" in n.values for p in n.processes)
    if n.fleet and n.objective.kind == "value" and "costs.life" not in n.values and paid:
        fix = "give the years over which capital-like costs are charged, else they are charged at once"
        yield Problem("costs.life", "is missing", fix, "warning")
    for s, sku in n.fleet.items():
        by_age = [path for path in (f"fleet.{s}.life", f"fleet.{s}.survival_by_age") if path in n.values]
        if len(by_age) == 2:
            yield Problem(by_age[0], f"stands beside {by_age[1]}", "keep one of the two")
        if by_age and sku.early_retirement:
            message = "cannot be combined with losses by age (life, survival_by_age)"
            yield Problem(f"fleet.{s}.early_retirement", message, "drop one of the two")
        for field in ("wear_out", "opening_age"):
            if f"fleet.{s}.{field}" in n.values and not by_age:
                yield Problem(f"fleet.{s}.{field}", "has no effect without life", f"give fleet.{s}.life, or drop it")
        if sku.tastes:
            total = np.sum([n.get(f"fleet.{s}.tastes.{k}.share", 0.0) for k in range(sku.tastes)], axis=0)
            if np.any(np.abs(total - 1) > 1e-6):
                yield Problem(f"fleet.{s}.tastes", f"shares sum to {total[0]:g}", "make them sum to 1")
    least = [n.get(f"regions.{g}.least_share", 0.0) for g in n.regions]
    if least and float(np.max(np.sum(least, axis=0))) > 1 + 1e-9:
        yield Problem("regions", "least shares sum to more than 1", "lower them")


def _capacities(n: Network) -> Iterator[Problem]:
    used = {r for process in n.processes.values() for r in process.uses}
    regions = {g for sku in n.fleet.values() for g in sku.regions}
    for r, row in n.resources.items():
        if not row.is_power and r not in used:
            yield Problem(f"resources.{r}", "no process uses it", "name it under `uses`, or take it out", "warning")
        elif row.is_power and row.region not in regions:
            yield Problem(f"resources.{r}", f"no accelerator stands in {row.region}", "correct the region", "warning")


def _contracts(n: Network) -> Iterator[Problem]:
    for k, contract in n.contracts.items():
        row = n.resources.get(contract.resource)
        if row is None:
            continue
        users = n.fleet if row.is_power else {p: 1 for p, x in n.processes.items() if contract.resource in x.uses}
        if not any(p in users for p in contract.processes):
            message = f"none of its processes uses {contract.resource}"
            yield Problem(f"contracts.{k}.processes", message, f"name processes that use {contract.resource}")
        for low, high in (("least", "greatest"), ("least_share", "greatest_share")):
            a, b = n.values.get(f"contracts.{k}.{low}"), n.values.get(f"contracts.{k}.{high}")
            if a is not None and b is not None and bool(np.any(a > b)):
                yield Problem(f"contracts.{k}.{low}", f"is above {high}", "lower it")
    for r in n.resources:
        hard = [k for k, c in n.contracts.items() if c.resource == r and f"contracts.{k}.take_or_pay" not in n.values]
        least = [n.values[f"contracts.{k}.least_share"] for k in hard if f"contracts.{k}.least_share" in n.values]
        if least and float(np.max(np.sum(least, axis=0))) > 1 + 1e-9:
            yield Problem(f"resources.{r}", "hard least shares sum to more than 1", "lower them or give take_or_pay")


def _idle_shares(n: Network) -> Iterator[Problem]:
    """Greatest shares that cover every user of a resource and leave part of it to nobody."""
    for r in n.resources:
        users = {p for p, process in n.processes.items() if r in process.uses}
        rules = {
            k: set(c.processes) & users
            for k, c in n.contracts.items()
            if c.resource == r and f"contracts.{k}.greatest_share" in n.values and c.first <= 0 and c.last is None
        }
        outer = [k for k, mine in rules.items() if not any(mine < other for other in rules.values())]
        covered = set().union(*(rules[k] for k in outer)) if outer else set()
        if users and covered >= users:
            total = np.sum([n.values[f"contracts.{k}.greatest_share"] for k in outer], axis=0)
            if float(total.min()) < 1 - 1e-6:
                t = int(total.argmin())
                message = (
                    f"greatest shares sum to {total[t]:.2f} in {n.horizon.label(t)}: the rest stays unused in the model"
                )
                fix = "right where users outside the model take it; else raise a share, or lower the capacity"
                yield Problem(f"resources.{r}", message, fix, "warning")


def _events(n: Network) -> Iterator[Problem]:
    for d, event in n.disruptions.items():
        table = n.resources if event.target == "resource" else n.processes
        if event.subject not in table:
            yield Problem(
                f"disruptions.{d}.{event.target}",
                f"no such {event.target}: {event.subject}",
                _near(event.subject, table),
            )
        elif event.target == "process" and not n.processes[event.subject].uses:
            yield Problem(f"disruptions.{d}.process", "the process uses no resource", "disrupt a resource instead")


def _routes(n: Network) -> Iterator[Problem]:
    """Materials that nothing makes, products that nothing reaches."""
    made = {m for process in n.processes.values() for m in process.output}
    stocked = {m for m in n.materials if f"opening.stock.{m}" in n.values}
    ready = set(stocked)
    for _ in n.processes:
        before = len(ready)
        for process in n.processes.values():
            if all(m in ready for m in process.input):
                ready |= set(process.output)
        if len(ready) == before:
            break
    for p, process in n.processes.items():
        for m in process.input:
            if m not in made | stocked:
                yield Problem(
                    f"processes.{p}.input.{m}",
                    "no process makes it and there is no opening stock",
                    f"add a process with output {m}",
                )
    wanted = {m: f"demand.{m}" for m in n.demand}
    # a SKU that is no longer made may live on as an opening fleet
    wanted |= {
        sku.material: f"fleet.{s}.material"
        for s, sku in n.fleet.items()
        if not any(f"fleet.{s}.opening.{g}" in n.values for g in sku.regions)
    }
    for m, path in wanted.items():
        if m not in ready:
            yield Problem(path, f"{m} can never be made", "complete its route: every input needs a maker or a stock")
    graph = build_graph(n)
    ends = [node for node, kind in graph.nodes(data="kind") if kind in ("demand", "fleet")]
    useful = set(ends).union(*(nx.ancestors(graph, node) for node in ends))
    for p in n.processes:
        if f"process:{p}" not in useful:
            yield Problem(f"processes.{p}", "leads to no demand and no fleet", "connect it or take it out", "warning")


def _loops(n: Network) -> Iterator[Problem]:
    """Cycles without a lead time that give back more than they take."""
    graph = nx.DiGraph()
    for p, process in n.processes.items():
        if n.get(f"processes.{p}.lead_time", 0.0).min() >= 1:
            continue
        for a in process.input:
            for b in process.output:
                y = n.get(f"processes.{p}.yield.{b}", float("nan"))
                y = np.where(np.isnan(y), n.get(f"processes.{p}.yield", 1.0), y)
                gain = (
                    n.get(f"processes.{p}.output.{b}", 1.0)
                    * y
                    / np.maximum(n.get(f"processes.{p}.input.{a}", 1.0), 1e-300)
                )
                graph.add_edge(a, b, gain=float(gain.max()), process=p)
    for loop in nx.simple_cycles(graph):
        edges = list(zip(loop, [*loop[1:], loop[0]], strict=True))
        around = float(np.prod([graph.edges[e]["gain"] for e in edges]))
        where = f"processes.{graph.edges[edges[0]]['process']}"
        chain = " -> ".join([*loop, loop[0]])
        if around > 1 + 1e-9:
            yield Problem(
                where,
                f"the loop {chain} makes {around:g} of one within a period",
                "give a lead time or correct a yield",
            )
        else:
            yield Problem(where, f"materials run in a circle: {chain}", "check that this is meant", "warning")
