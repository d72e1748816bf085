"""Where an input breaks the headline: the multiple of its value at which another stage becomes the scarcest, and the
one at which a tenth of the accelerators is lost, sought beyond its stated range."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

__all__ = ["BREAK_COLUMNS", "FALL", "FARTHEST", "UNSEARCHED", "BreakEvens", "break_evens"]

#: The input is moved from a third of its value to three times its value, in every period alike.
FARTHEST = 3.0
#: The fall of the energised accelerators that counts as a break.
FALL = 0.1
BREAK_COLUMNS = ("break_at", "break_factor", "break_stage", "fall_at", "fall_factor", "searched_from", "searched_to")
#: The row of an input that was not searched.
UNSEARCHED = (math.nan, math.nan, "", math.nan, math.nan, math.nan, math.nan)
_STEPS = (1.15, 1.4, 2.0, FARTHEST)
_BISECTIONS = 7

Point = tuple[str, float]
At = Callable[[float], Point | None]


@dataclass(frozen=True)
class BreakEvens:
    """Multiples of an input at its break-evens, nearest to its value first; None where there is none in the search."""

    change: float | None
    stage: str
    fall: float | None
    searched: tuple[float, float]

    def row(self, shown: Callable[[float], float]) -> list[Any]:
        """Values as `BREAK_COLUMNS`; `shown` turns a multiple into the value that a reader sees."""
        found = (self.change, self.fall)
        change, fall = ((math.nan, math.nan) if f is None else (shown(f), f) for f in found)
        return [*change, self.stage, *fall, *(shown(f) for f in self.searched)]


def break_evens(at: At, base: Point, ceiling: float = math.inf) -> BreakEvens:
    """Search both ways from 1, to `FARTHEST` times and a third (never above `ceiling`), and bisect what was bracketed.

    `at`: scarcest stage and energised accelerators at a multiple, None where no plan exists; the search stops there.

    >>> found = break_evens(lambda f: ("hbm" if f > 1.7 else "power", 100.0 * f), ("power", 100.0))
    >>> round(found.change, 2), found.stage, round(found.fall, 2), found.searched
    (1.7, 'hbm', 0.9, (0.3333333333333333, 3.0))
    """
    changes: list[tuple[float, str]] = []
    falls: list[float] = []
    ends = []
    limit = (1 - FALL) * base[1]

    def changed(point: Point) -> bool:
        return point[0] != base[0]

    def fallen(point: Point) -> bool:
        return point[1] <= limit

    for up in (False, True):
        points = list(_outward(at, base, up, ceiling))
        ends.append(points[-1][0])
        if (found := _first(at, points, changed)) is not None:
            changes.append((found[0], found[1][0]))
        if (found := _first(at, points, fallen)) is not None:
            falls.append(found[0])
    change, stage = min(changes, key=lambda c: abs(math.log(c[0])), default=(None, ""))
    return BreakEvens(change, stage, min(falls, key=lambda f: abs(math.log(f)), default=None), (ends[0], ends[1]))


def _outward(at: At, base: Point, up: bool, ceiling: float) -> Iterator[tuple[float, Point]]:
    """Multiples on one side with what holds there, from 1 on, until no plan exists."""
    yield 1.0, base
    if up and ceiling <= 1.0:
        return
    for factor in dict.fromkeys(min(step, ceiling) if up else 1.0 / step for step in _STEPS):
        if (point := at(factor)) is None:
            return
        yield factor, point


def _first(at: At, points: list[tuple[float, Point]], broken: Callable[[Point], bool]) -> tuple[float, Point] | None:
    """Where something breaks first on the way out, by bisection, and what holds just beyond it."""
    for (inner, _), (outer, beyond) in pairwise(points):
        if not broken(beyond):
            continue
        for _ in range(_BISECTIONS):
            middle = math.sqrt(inner * outer)
            point = at(middle)
            if point is None or broken(point):
                outer, beyond = middle, point or beyond
            else:
                inner = middle
        return math.sqrt(inner * outer), beyond
    return None
