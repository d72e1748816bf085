"""Resolved numbers over the periods: small trees that know their value, their sources and what they draw.

A node gives an array of one row per draw (or a single row) and one column per period. What is uncertain has a
*driver*: a fact, a
series, or the path of an assumption. Numbers with one driver move together, and a path that refers to another follows
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Array",
    "Clipped",
    "Constant",
    "Delayed",
    "Draw",
    "Fill",
    "Grown",
    "Mapped",
    "Node",
    "Product",
    "Ratio",
    "Reference",
    "Shape",
    "Source",
    "Spread",
    "Sum",
    "Varied",
    "outer_range",
    "weakest",
]

Array = NDArray[np.float64]
#: The ranks 0 and 1 stand for the printed ends: low and high of a range, the 5 % and 95 % points of a distribution.
_ENDS = np.array([0.0, 1.0])
_OUTER = 0.05


@dataclass(frozen=True, slots=True)
class Shape:
    """A scalar function of the rank u of a draw, `median` in a deterministic run.

    `parameters` as in the language; a beta holds a, b, low, high.
    """

    kind: str
    parameters: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()
    least: float | None = None
    greatest: float | None = None

    def __call__(self, u: ArrayLike) -> Array:
        """The function at ranks u.

        >>> Shape("triangular", (0.0, 0.5, 1.0))([0.5, 0.125]).tolist()
        [0.5, 0.25]
        """
        rank = np.asarray(u, dtype=float)
        if self.kind == "discrete":
            edges = np.cumsum(self.weights) / np.sum(self.weights)
            index = np.minimum(np.searchsorted(edges, rank, side="left"), len(self.parameters) - 1)
            return self._cut(np.asarray(self.parameters, dtype=float)[index])
        return self._cut(np.asarray(_frozen(self.kind, self.parameters).ppf(rank), dtype=float))

    def _cut(self, values: Array) -> Array:
        if self.least is None and self.greatest is None:
            return values
        return np.clip(values, self.least, self.greatest)

    @property
    def median(self) -> float:
        """The function in a deterministic run."""
        return float(self(0.5))


@lru_cache(maxsize=512)
def _frozen(kind: str, parameters: tuple[float, ...]) -> Any:
    from scipy import stats

    p = parameters
    if kind == "normal":
        return stats.norm(p[0], p[1])
    if kind == "lognormal":
        return stats.lognorm(p[1], scale=p[0])
    if kind == "triangular":
        width = p[2] - p[0]
        return stats.triang((p[1] - p[0]) / width, loc=p[0], scale=width)
    if kind == "uniform":
        return stats.uniform(p[0], p[1] - p[0])
    return stats.beta(p[0], p[1], loc=p[2], scale=p[3] - p[2])


@dataclass
class Draw:
    """Ranks u in (0, 1) by driver, and arrays that replace the number of a path; empty: the deterministic run."""

    ranks: Mapping[str, Array] = field(default_factory=dict)
    replaced: Mapping[str, Array] = field(default_factory=dict)
    memory: dict[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """Where a number comes from: fact ids and kind per period, notes, and how its spread was set."""

    facts: tuple[tuple[str, ...], ...]
    kinds: tuple[str, ...]
    notes: tuple[str, ...] = ()
    spread: str = ""

    @classmethod
    def same(cls, length: int, kind: str, facts: Sequence[str] = (), note: str = "", spread: str = "") -> Source:
        """One source for every period."""
        return cls((tuple(facts),) * length, (kind,) * length, (note,) if note else (), spread)

    @classmethod
    def joined(cls, parts: Sequence[Source], neutral: bool = True) -> Source:
        """Source of a number made of several: all ids, the weakest kind (bare numbers do not weaken it)."""
        length = len(parts[0].kinds)
        facts = tuple(tuple(dict.fromkeys(f for p in parts for f in p.facts[t])) for t in range(length))
        kinds = []
        for t in range(length):
            named = [p.kinds[t] for p in parts if not (neutral and p.kinds[t] == "stated" and not p.notes)]
            kinds.append(weakest(named or [p.kinds[t] for p in parts]))
        notes = tuple(dict.fromkeys(n for p in parts for n in p.notes))
        spreads = tuple(dict.fromkeys(p.spread for p in parts if p.spread))
        return cls(facts, tuple(kinds), notes, "; ".join(spreads))


class Node:
    """One number over the periods."""

    source: Source

    def at(self, draw: Draw) -> Array:
        """Values: rows are draws (one row in a deterministic run), columns periods."""
        raise NotImplementedError

    def drivers(self) -> frozenset[str]:
        """Names of what it draws."""
        return frozenset()

    @property
    def value(self) -> Array:
        """The deterministic value, one entry per period."""
        return np.asarray(self.at(Draw())[0], dtype=float)

    @property
    def length(self) -> int:
        """Number of periods, tail included."""
        return len(self.source.kinds)


@dataclass
class Constant(Node):
    """A number without spread."""

    values: Array
    source: Source

    def at(self, draw: Draw) -> Array:
        """See `Node.at`."""
        return self.values[None, :]


@dataclass
class Spread(Node):
    """A value with a range: two half triangles, median at the value, ends at low and high; one rank for all periods."""

    values: Array
    low: Array
    high: Array
    driver: str
    source: Source

    def at(self, draw: Draw) -> Array:
        """See `Node.at`.

        >>> s = Spread(np.array([0.6]), np.array([0.4]), np.array([0.7]), "x", Source.same(1, "estimate"))
        >>> s.at(Draw({"x": np.array([0.02, 0.5, 0.98])})).ravel().round(3).tolist()
        [0.44, 0.6, 0.68]
        """
        rank = draw.ranks.get(self.driver)
        if rank is None:
            return self.values[None, :]
        below = np.maximum(0.0, 1.0 - np.sqrt(2.0 * rank))[:, None]
        above = np.maximum(0.0, 1.0 - np.sqrt(2.0 * np.maximum(0.0, 1.0 - rank)))[:, None]
        return self.values - below * (self.values - self.low) + above * (self.high - self.values)

    def drivers(self) -> frozenset[str]:
        """See `Node.drivers`."""
        return frozenset((self.driver,))


@dataclass
class Varied(Node):
    """A distribution of the language, the same draw in every period."""

    shape: Shape
    driver: str
    source: Source

    def at(self, draw: Draw) -> Array:
        """See `Node.at`."""
        rank = draw.ranks.get(self.driver, np.array([0.5]))
        rank = np.where(rank <= 0.0, _OUTER, np.where(rank >= 1.0, 1.0 - _OUTER, rank))
        return np.repeat(self.shape(rank)[:, None], self.length, axis=1)

    def drivers(self) -> frozenset[str]:
        """See `Node.drivers`."""
        return frozenset((self.driver,))


@dataclass
class _Many(Node):
    parts: tuple[Node, ...]
    source: Source

    def drivers(self) -> frozenset[str]:
        """See `Node.drivers`."""
        return frozenset().union(*(p.drivers() for p in self.parts))


@dataclass
class Sum(_Many):
    """Sum of numbers."""

    def at(self, draw: Draw) -> Array:
        """See `Node.at`."""
        total = self.parts[0].at(draw)
        for part in self.parts[1:]:
            total = total + part.at(draw)
        return total


@dataclass
class Product(_Many):
    """Product of numbers."""

    def at(self, draw: Draw) -> Array:
        """See `Node.at`."""
        total = self.parts[0].at(draw)
        for part in self.parts[1:]:
            total = total * part.at(draw)
        return total


@dataclass
class Ratio(_Many):
    """First number over the second."""

    def at(self, draw: Draw) -> Array:
        """See `Node.at`."""
        return np.asarray(self.parts[0].at(draw) / self.parts[1].at(draw))


@dataclass
class Fill(_Many):
    """Weighted sum with a fixed weight per part and period: values by period, and edits within a window."""

    weights: Array

    def at(self, draw: Draw) -> Array:
        """See `Node.at`."""
        total: Array = self.weights[0] * self.parts[0].at(draw)
        for weight, part in zip(self.weights[1:], self.parts[1:], strict=True):
            total = total + weight * part.at(draw)
        return total


@dataclass
class Delayed(Node):
    """A number some periods later inside a window; before the start its first value holds."""

    part: Node
    periods: float
    inside: slice
    source: Source

    def at(self, draw: Draw) -> Array:
        """See `Node.at`."""
        array = self.part.at(draw)
        source = np.clip(np.arange(self.length) - self.periods, 0, self.length - 1)
        whole = np.floor(source).astype(int)
        share = source - whole
        moved = array[:, whole] * (1 - share) + array[:, np.minimum(whole + 1, self.length - 1)] * share
        out = np.array(array, copy=True)
        out[:, self.inside] = moved[:, self.inside]
        return out

    def drivers(self) -> frozenset[str]:
        """See `Node.drivers`."""
        return self.part.drivers()


@dataclass
class Grown(_Many):
    """A number whose changes inside a window are multiplied by a second one; later values keep what was lost."""

    inside: slice

    def at(self, draw: Draw) -> Array:
        """See `Node.at`.

        >>> level = Constant(np.array([10.0, 20.0, 40.0, 50.0]), Source.same(4, "stated"))
        >>> half = Constant(np.full(4, 0.5), Source.same(4, "stated"))
        >>> Grown((level, half), level.source, slice(1, 3)).at(Draw()).tolist()
        [[10.0, 15.0, 25.0, 35.0]]
        """
        base, factor = np.broadcast_arrays(*(part.at(draw) for part in self.parts))
        share = np.ones_like(base)
        share[:, self.inside] = factor[:, self.inside]
        lost = np.diff(base, axis=1, prepend=base[:, :1]) * (1.0 - share)
        return np.asarray(base - np.cumsum(lost, axis=1))


@dataclass
class Mapped(Node):
    """A number through a function of arrays (a change of unit that is not a factor)."""

    part: Node
    function: Any
    source: Source

    def at(self, draw: Draw) -> Array:
        """See `Node.at`."""
        return np.asarray(self.function(self.part.at(draw)))

    def drivers(self) -> frozenset[str]:
        """See `Node.drivers`."""
        return self.part.drivers()


@dataclass
class Reference(Node):
    """The number of another path, looked up when it is used, so that edits and draws of it are followed."""

    path: str
    part: Node
    factor: float
    source: Source

    def at(self, draw: Draw) -> Array:
        """See `Node.at`."""
        if self.path in draw.replaced:
            held: Array = np.atleast_2d(draw.replaced[self.path])
        elif self.path in draw.memory:
            held = draw.memory[self.path]
        else:
            held = draw.memory[self.path] = self.part.at(draw)
        return np.asarray(held * self.factor) if self.factor != 1.0 else held

    def drivers(self) -> frozenset[str]:
        """See `Node.drivers`."""
        return self.part.drivers()


@dataclass
class Clipped(Node):
    """A number kept inside the bounds of its field; the deterministic value was checked before."""

    part: Node
    lower: float
    upper: float
    source: Source

    def at(self, draw: Draw) -> Array:
        """See `Node.at`."""
        return np.clip(self.part.at(draw), self.lower, self.upper)

    def drivers(self) -> frozenset[str]:
        """See `Node.drivers`."""
        return self.part.drivers()


def outer_range(node: Node) -> tuple[Array, Array]:
    """Printed range of a number: each driver moved to its ends alone, deviations added as squares.

    The ends of a driver are its low and high, or the 5 % and 95 % points of a distribution.
    """
    value = node.value
    down, up = np.zeros_like(value), np.zeros_like(value)
    for driver in sorted(node.drivers()):
        ends = node.at(Draw({driver: _ENDS}))
        least, most = ends.min(axis=0) - value, ends.max(axis=0) - value
        down, up = down + np.minimum(least, 0.0) ** 2, up + np.maximum(most, 0.0) ** 2
    return value - np.sqrt(down), value + np.sqrt(up)


_STRENGTH = (
    "measured",
    "published",
    "derived",
    "estimate",
    "interpolated",
    "default",
    "stated",
    "distribution",
    "illustrative",
)


def weakest(kinds: Iterable[str]) -> str:
    """The least certain of some kinds.

    >>> weakest(["published", "illustrative", "estimate"])
    'illustrative'
    """
    return max(kinds, key=lambda kind: _STRENGTH.index(kind) if kind in _STRENGTH else len(_STRENGTH))
