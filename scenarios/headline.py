"""Which inputs could overturn the headline: every input without two sources, moved over its stated range, one at a
time.

The headline is the costliest stage of a year and the accelerators energised in it. An input is moved with every
number that rests on it (a driver: a fact, a series, or the path of an assumption); assumptions of one family (all
holding costs, all parts of one path) move together. The optimum is re-solved in place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from scenarios.limit_rents import binding_table, costliest_stage
from scenarios.nodes import Draw, Spread
from scenarios.titles import driver_title, path_title

if TYPE_CHECKING:
    from scenarios.resolve import Resolved
    from supply.optimizer.compiled import Compiled
    from supply.optimizer.solution import Solution

__all__ = ["HEADLINE_COLUMNS", "headline_study", "headline_year"]

HEADLINE_COLUMNS = (
    "input", "title", "kind", "note", "input_unit", "base_input", "low_input", "high_input", "energised_base",
    "energised_low", "energised_high", "stage_base", "stage_low", "stage_high", "flips", "flips_at", "swing", "year",
    "next_base", "next_low", "next_high",
)  # fmt: skip
#: Assumptions made in one breath: pattern of the driver -> title of the family (None: the title of the path).
_FAMILIES = (
    (re.compile(r"materials\..*\.holding_cost"), "Holding costs of all stocks"),
    (re.compile(r"processes\.package_.*\.uses\.final_test"), "Test time against an H100"),
    (re.compile(r"processes\.package_.*\.cost"), "Substrate, assembly and test beyond the interposer wafer"),
    (re.compile(r"opening\.pipeline\..*"), "Everything in the making at the start"),
    (re.compile(r"demand\.[a-z0-9_]+\.steps\..*"), "Value steps of demand"),
)
_BISECTIONS = 6
Headline = tuple[float, str, float]


@dataclass(frozen=True)
class _Driver:
    """Names that move together, the paths that they move, and what a reader calls them."""

    names: tuple[str, ...]
    paths: tuple[str, ...]
    title: str
    kind: str


def headline_year(resolved: Resolved, today: str) -> str:
    """The year of `today` (an ISO date) where the horizon reports it whole, else its last whole (or last) year."""
    labels = resolved.horizon.labels()[: resolved.horizon.periods]
    per_year = 12 // resolved.horizon.months
    years = sorted({p[:4] for p in labels})
    whole = [y for y in years if sum(p.startswith(y) for p in labels) == per_year]
    return today[:4] if today[:4] in whole else (whole or years)[-1]


def headline_study(resolved: Resolved, year: str, progress: Callable[[str], None] | None = None) -> pd.DataFrame:
    """Energised accelerators and costliest stage of a year at the low and high end of each weak input, largest swing
    first.

    Weak: illustrative, or resting on one fact. Inputs that change nothing are left out. `low_input`, `high_input`:
    the mean over the year of a number that the input moves, in `input_unit`. `flips_at`: where between the value and
    an end the costliest stage changes. An end at which no plan exists is reported with missing values, never as zero.
    """
    from supply.optimizer.compiled import Compiled

    compiled = Compiled(resolved.network)
    base = _headline(compiled.solve(), year)
    study = _Study(resolved, compiled, base, year)
    drivers = _weak_drivers(resolved)
    rows = []
    for count, driver in enumerate(drivers):
        if progress and count % 25 == 0:
            progress(f"headline study: input {count + 1} of {len(drivers)}")
        rows.append(study.row(driver))
        compiled.reset()
    table = pd.DataFrame(rows, columns=list(HEADLINE_COLUMNS))
    moved = table[table["swing"].isna() | (table["swing"] > 1e-4 * max(1.0, base[0])) | table["flips"]]
    return moved.sort_values(["flips", "swing"], ascending=False, na_position="first").reset_index(drop=True)


def _weak_drivers(resolved: Resolved) -> list[_Driver]:
    """Drivers that are illustrative or rest on a single fact, families joined."""
    from supply.facts import catalog

    cat = catalog()
    paths: dict[str, list[str]] = {}
    for path, drivers in resolved.uncertain.items():
        if path.endswith(".h100e") and resolved.network.objective.kind != "compute":
            continue
        for driver in drivers:
            paths.setdefault(driver, []).append(path)
    groups: dict[str, list[str]] = {}
    for driver in sorted(paths):
        if _is_weak(driver, resolved, cat):
            groups.setdefault(_family(driver, paths[driver]), []).append(driver)
    out = []
    for family, names in groups.items():
        moved = tuple(dict.fromkeys(p for n in names for p in paths[n]))
        kind = "illustrative" if any(_is_illustrative(n, resolved, cat) for n in names) else "single source"
        fixed = {title for _, title in _FAMILIES}
        title = family if family in fixed else _title(family, moved, resolved)
        out.append(_Driver(tuple(names), moved, title, kind))
    return out


def _title(family: str, moved: tuple[str, ...], resolved: Resolved) -> str:
    """A series that sets one limit is called by the limit."""
    parts = moved[0].split(".")
    if len(moved) == 1 and parts[0] == "resources" and parts[2] == "capacity" and " " in family:
        return resolved.network.resources[parts[1]].title or parts[1]
    return driver_title(family, resolved.network)


def _family(driver: str, paths: list[str]) -> str:
    for pattern, title in _FAMILIES:
        if pattern.fullmatch(driver.partition("#")[0]):
            return title
    if driver.startswith("fact ") and all(".opening." in p for p in paths):
        return ".".join(paths[0].split(".")[:3])
    if re.match(r"fleet\.[a-z0-9_]+\.opening\.", driver):
        return ".".join(driver.split(".")[:3])
    return driver.partition("#")[0]


def _is_illustrative(driver: str, resolved: Resolved, cat: Any) -> bool:
    node = resolved.nodes.get(driver.partition("#")[0])
    if node is not None:
        return "illustrative" in node.source.kinds
    name = driver.partition(" ")[2]
    return name in cat.series_ids and any(p.kind == "illustrative" for p in cat.series(name).points)


def _is_weak(driver: str, resolved: Resolved, cat: Any) -> bool:
    kind, _, name = driver.partition(" ")
    if kind == "series" and name in cat.series_ids:
        few = len({b for p in cat.series(name).points for b in p.basis}) <= 1
        return few or _is_illustrative(driver, resolved, cat)
    return kind == "fact" or _is_illustrative(driver, resolved, cat)


@dataclass
class _Study:
    resolved: Resolved
    compiled: Compiled
    base: Headline
    year: str

    def row(self, driver: _Driver) -> tuple[Any, ...]:
        low, high = (self.at(driver, rank) for rank in (0.0, 1.0))
        values = [end[0] if end else float("nan") for end in (low, high)]
        stages = [end[1] if end else "no plan" for end in (low, high)]
        flips = any(s != self.base[1] for s in stages)
        unit, shown = self.inputs(driver, (0.5, 0.0, 1.0))
        at = self.flip_point(driver, 0.0 if stages[0] != self.base[1] else 1.0) if flips else float("nan")
        swing = max(values) - min(values) if not np.isnan(values).any() else float("nan")
        swing = max(swing, *(abs(v - self.base[0]) for v in values)) if not np.isnan(swing) else swing
        head = (" ".join(driver.names[:3]), driver.title, driver.kind, self.note(driver), unit, *shown)
        later = [end[2] if end else float("nan") for end in (low, high)]
        stage = (self.base[1], *stages, flips, at)
        return (*head, self.base[0], *values, *stage, swing, self.year, self.base[2], *later)

    def at(self, driver: _Driver, rank: float) -> Headline | None:
        """The headline at a rank, None where no plan exists."""
        from supply.optimizer.errors import SolveError

        ranks = dict.fromkeys(driver.names, np.array([rank]))
        changes = self.resolved.at(Draw(ranks=ranks), list(driver.paths))
        try:
            return _headline(self.compiled.update({p: v[0] for p, v in changes.items()}).solve(), self.year)
        except SolveError:
            return None

    def flip_point(self, driver: _Driver, end: float) -> float:
        """The shown input where the costliest stage changes on the way to an end, by bisection of the rank."""
        near, far = 0.5, end
        for _ in range(_BISECTIONS):
            middle = (near + far) / 2
            found = self.at(driver, middle)
            near, far = (middle, far) if found is not None and found[1] == self.base[1] else (near, middle)
        return self.inputs(driver, ((near + far) / 2,))[1][0]

    def inputs(self, driver: _Driver, ranks: tuple[float, ...]) -> tuple[str, list[float]]:
        """Unit and values, mean over the year, of the number with the fewest other drivers."""
        if (own := _own_range(driver, self.resolved, self.year)) is not None:
            unit, value, low, high = own
            return unit, [spread_at(value, low, high, r) for r in ranks]
        path = min(driver.paths, key=lambda p: (len(self.resolved.uncertain[p]), p.endswith((".value", ".cost")), p))
        node, labels = self.resolved.nodes[path], self.resolved.horizon.labels()
        inside = [label.startswith(self.year) for label in labels]
        unit = self.resolved.measures[path].label
        many = len(driver.paths) > 1 and len(self.resolved.uncertain[path]) > len(driver.names)
        words = f"{unit} ({path_title(path, self.resolved.network)})" if many else unit
        draws = [node.at(Draw(ranks=dict.fromkeys(driver.names, np.array([r]))))[0] for r in ranks]
        return words, [float(np.mean(d[inside])) for d in draws]

    def note(self, driver: _Driver) -> str:
        names = [n.partition("#")[0] for n in driver.names]
        notes = dict.fromkeys(n for name in names if (node := self.resolved.nodes.get(name)) for n in node.source.notes)
        return "; ".join(list(notes)[:2]) or ", ".join(driver.names[:2])


def spread_at(value: float, low: float, high: float, rank: float) -> float:
    """A value with a range at a rank: two half triangles, as `scenarios.nodes.Spread` draws them.

    >>> spread_at(0.6, 0.4, 0.7, 0.0), spread_at(0.6, 0.4, 0.7, 0.5), spread_at(0.6, 0.4, 0.7, 1.0)
    (0.4, 0.6, 0.7)
    """
    below = max(0.0, 1.0 - (2.0 * rank) ** 0.5)
    above = max(0.0, 1.0 - (2.0 * max(0.0, 1.0 - rank)) ** 0.5)
    return float(value - below * (value - low) + above * (high - value))


def _own_range(driver: _Driver, resolved: Resolved, year: str) -> tuple[str, float, float, float] | None:
    """Unit, value, low and high of a single fact or series in its own unit; None for anything else.

    A fact's range is the one that the scenario gives it, scaled back to the fact; a series' the mean of its points in
    the year.
    """
    from supply.facts import catalog

    kind, _, name = driver.names[0].partition(" ")
    if len(driver.names) > 1 or kind not in ("fact", "series"):
        return None
    cat = catalog()
    if kind == "series":
        labels = [p for p in resolved.horizon.labels() if p.startswith(year)]
        points = [cat.series(name).at(p) for p in labels]
        mean = [float(np.mean([getattr(p, key) for p in points])) for key in ("value", "low", "high")]
        return points[0].unit, mean[0], mean[1], mean[2]
    for path in driver.paths:
        found = _find_spread(resolved.nodes[path], driver.names[0])
        if found is not None and found.values[0] != 0:
            fact = cat[name]
            low, high = (float(end[0] / found.values[0]) * fact.number for end in (found.low, found.high))
            return fact.unit, fact.number, low, high
    return None


def _find_spread(node: Any, driver: str) -> Spread | None:
    """The number with the range of a driver inside a tree of numbers."""
    if isinstance(node, Spread):
        return node if node.driver == driver else None
    parts = [*getattr(node, "parts", ()), *([node.part] if hasattr(node, "part") else [])]
    return next((found for part in parts if (found := _find_spread(part, driver)) is not None), None)


def _headline(solution: Solution, year: str) -> Headline:
    flows = solution.energised if solution.network.fleet else solution.finished
    name = "energised" if solution.network.fleet else "finished"
    now, later = (float(flows.loc[flows["period"].str.startswith(y), name].sum()) for y in (year, str(int(year) + 1)))
    return now, costliest_stage(binding_table(solution), year), later
