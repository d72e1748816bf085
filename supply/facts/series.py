"""Quarterly series of sourced points, with the value of any day by linear interpolation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from supply.facts.dating import span
from supply.facts.record import FactError, SeriesPoint

__all__ = ["Series"]


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one series in time order; a level is dated at the end of its quarter."""

    id: str
    points: tuple[SeriesPoint, ...]

    @property
    def unit(self) -> str:
        """Unit of every point."""
        return self.points[0].unit

    @property
    def outcome_derived(self) -> bool:
        """Whether the series rests on shipments or accelerator revenue, and so is an outcome."""
        return any(p.outcome_derived for p in self.points)

    def known_by(self, day: date) -> Series:
        """The series as it could be known on a day.

        Raises:
            FactError: when nothing was known.
        """
        kept = tuple(p for p in self.points if p.known_on <= day)
        if not kept:
            raise FactError(f"series {self.id}: nothing was known on {day.isoformat()}")
        return Series(self.id, kept)

    def at(self, period: str) -> SeriesPoint:
        """The point of a quarter, e.g. `series.at("2025-Q4")`.

        Raises:
            FactError: when the series has no such quarter; the message gives its span.
        """
        for p in self.points:
            if p.period == period:
                return p
        raise FactError(
            f"series {self.id} has no {period}: it covers {self.points[0].period} to {self.points[-1].period}"
        )

    def levels(self, days: Iterable[date], which: str = "value") -> list[float]:
        """Level on each day: linear between quarter ends, flat outside. `which` is value, low or high."""
        dated = [(span(p.period)[1].toordinal(), float(getattr(p, which))) for p in self.points]
        return [_interpolate(dated, day.toordinal()) for day in days]


def _interpolate(dated: list[tuple[int, float]], x: int) -> float:
    if x <= dated[0][0]:
        return dated[0][1]
    for (x0, y0), (x1, y1) in pairwise(dated):
        if x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return dated[-1][1]
