"""The weak inputs of a scenario as a reader knows them: numbers that move together, their title, unit and values.

Weak: illustrative, or resting on one fact. A driver (a fact, a series, or the path of an assumption) moves every
number that rests on it; assumptions of one family (all holding costs, all parts of one path) move together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from scenarios.nodes import Constant, Draw, Node, Spread, Varied
from scenarios.titles import driver_title, path_title

if TYPE_CHECKING:
    from scenarios.nodes import Array
    from scenarios.resolve import Resolved

__all__ = ["Inputs", "WeakInput", "own_range", "spread_at", "weak_inputs"]

#: Assumptions made in one breath: pattern of the driver -> title of the family.
_FAMILIES = (
    (re.compile(r"materials\..*\.holding_cost"), "Holding costs of all stocks"),
    (re.compile(r"processes\.package_.*\.uses\.final_test"), "Test time against an H100"),
    (re.compile(r"processes\.package_.*\.cost"), "Substrate, assembly and test beyond the interposer wafer"),
    (re.compile(r"opening\.pipeline\..*"), "Everything in the making at the start"),
    (re.compile(r"demand\.[a-z0-9_]+\.steps\..*"), "Value steps of demand"),
)


#: An input whose range in the headline year is below this share of its widest acts later.
_ACTS = 0.5


@dataclass(frozen=True)
class WeakInput:
    """Drivers that move together, the paths that they move, and what a reader calls them."""

    names: tuple[str, ...]
    paths: tuple[str, ...]
    title: str
    kind: str


def weak_inputs(resolved: Resolved) -> list[WeakInput]:
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
        out.append(WeakInput(tuple(names), moved, title, kind))
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


@dataclass(frozen=True)
class Inputs:
    """Values of weak inputs: what the paths hold at a rank or at a multiple, and the one number shown to a reader."""

    resolved: Resolved
    year: str

    def at_rank(self, weak: WeakInput, rank: float) -> dict[str, Array]:
        """Numbers of all moved paths at a rank of the drivers: 0 the low end, 0.5 the value, 1 the high end."""
        ranks = dict.fromkeys(weak.names, np.array([rank]))
        return {p: v[0] for p, v in self.resolved.at(Draw(ranks=ranks), list(weak.paths)).items()}

    def times(self, weak: WeakInput, factor: float) -> dict[str, Array]:
        """Numbers of all moved paths with the drivers at a multiple of their value in every period."""
        nodes = self.resolved.nodes
        return {p: scaled(nodes[p], weak.names, factor).at(Draw())[0] for p in weak.paths}

    def shown(self, weak: WeakInput, ranks: tuple[float, ...]) -> tuple[str, list[float]]:
        """Unit and values, mean over the year, of the number with the fewest other drivers.

        An input that acts later (its range in the year is less than half of what it becomes) is shown in the year in
        which it is widest, and the unit says so.
        """
        if (own := own_range(weak, self.resolved, self.year)) is not None:
            unit, value, low, high = own
            return unit, [spread_at(value, low, high, r) for r in ranks]
        path = self._shown_path(weak)
        unit = self.resolved.measures[path].label
        many = len(weak.paths) > 1 and len(self.resolved.uncertain[path]) > len(weak.names)
        words = f"{unit} ({path_title(path, self.resolved.network)})" if many else unit
        node, year = self.resolved.nodes[path], self._year_shown(weak)
        words += f" in {year}" if year != self.year else ""
        drawn = [node.at(Draw(ranks=dict.fromkeys(weak.names, np.array([r])))) for r in ranks]
        return words, [self._mean(values, year) for values in drawn]

    def shown_times(self, weak: WeakInput, factor: float) -> float:
        """The shown number with the drivers at a multiple of their value."""
        if (own := own_range(weak, self.resolved, self.year)) is not None:
            return own[1] * factor
        node = scaled(self.resolved.nodes[self._shown_path(weak)], weak.names, factor)
        return self._mean(node.at(Draw()), self._year_shown(weak))

    def note(self, weak: WeakInput) -> str:
        """Why the input is what it is, or the names of its drivers."""
        names = [n.partition("#")[0] for n in weak.names]
        notes = dict.fromkeys(n for name in names if (node := self.resolved.nodes.get(name)) for n in node.source.notes)
        return "; ".join(list(notes)[:2]) or ", ".join(weak.names[:2])

    def _shown_path(self, weak: WeakInput) -> str:
        uncertain = self.resolved.uncertain
        return min(weak.paths, key=lambda p: (len(uncertain[p]), p.endswith((".value", ".cost")), p))

    def _year_shown(self, weak: WeakInput) -> str:
        """The headline year, or the reported one with the widest range where the input hardly moves before it."""
        node = self.resolved.nodes[self._shown_path(weak)]
        ends = [node.at(Draw(ranks=dict.fromkeys(weak.names, np.array([rank])))) for rank in (0.0, 0.5, 1.0)]
        horizon = self.resolved.horizon
        years = sorted({y for label in horizon.labels()[: horizon.periods] if (y := label[:4]) >= self.year})
        widths = {}
        for year in years:
            low, middle, high = (self._mean(values, year) for values in ends)
            widths[year] = abs(high - low) / abs(middle) if middle else 0.0
        widest = max(years, key=lambda year: (widths[year], year == self.year))
        return self.year if widths[self.year] >= _ACTS * widths[widest] else widest

    def _mean(self, values: Array, year: str) -> float:
        labels = self.resolved.horizon.labels()
        return float(np.mean(values[0][[label.startswith(year) for label in labels]]))


def scaled(node: Node, names: tuple[str, ...], factor: float) -> Node:
    """The same number with some of its drivers at a multiple of their value, whatever their range.

    >>> from scenarios.nodes import Source
    >>> flat = Source.same(1, "estimate")
    >>> watts = Spread(np.array([0.5]), np.array([0.4]), np.array([0.7]), "watts", flat)
    >>> scaled(watts, ("watts",), 3.0).value.tolist(), scaled(watts, ("other",), 3.0).value.tolist()
    ([1.5], [0.5])
    """
    if isinstance(node, Spread | Varied):
        return Constant(node.value * factor, node.source) if node.driver in names else node
    changes: Mapping[str, Any] = {}
    if hasattr(node, "parts"):
        changes = {"parts": tuple(scaled(part, names, factor) for part in node.parts)}
    elif hasattr(node, "part"):
        changes = {"part": scaled(node.part, names, factor)}
    return replace(node, **changes) if changes else node  # type: ignore[type-var]


def spread_at(value: float, low: float, high: float, rank: float) -> float:
    """A value with a range at a rank: two half triangles, as `scenarios.nodes.Spread` draws them.

    >>> spread_at(0.6, 0.4, 0.7, 0.0), spread_at(0.6, 0.4, 0.7, 0.5), spread_at(0.6, 0.4, 0.7, 1.0)
    (0.4, 0.6, 0.7)
    """
    below = max(0.0, 1.0 - (2.0 * rank) ** 0.5)
    above = max(0.0, 1.0 - (2.0 * max(0.0, 1.0 - rank)) ** 0.5)
    return float(value - below * (value - low) + above * (high - value))


def own_range(weak: WeakInput, resolved: Resolved, year: str) -> tuple[str, float, float, float] | None:
    """Unit, value, low and high of a single fact or series in its own unit; None for anything else.

    A fact's range is the one that the scenario gives it, scaled back to the fact; a series' the mean of its points in
    the year.
    """
    from supply.facts import catalog

    kind, _, name = weak.names[0].partition(" ")
    if len(weak.names) > 1 or kind not in ("fact", "series"):
        return None
    cat = catalog()
    if kind == "series":
        labels = [p for p in resolved.horizon.labels() if p.startswith(year)]
        points = [cat.series(name).at(p) for p in labels]
        mean = [float(np.mean([getattr(p, key) for p in points])) for key in ("value", "low", "high")]
        return points[0].unit, mean[0], mean[1], mean[2]
    for path in weak.paths:
        found = _find_spread(resolved.nodes[path], weak.names[0])
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
