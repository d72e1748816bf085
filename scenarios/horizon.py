"""Periods written in scenario files, placed on the horizon of the network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta

from supply.facts.dating import span
from supply.network import Horizon

__all__ = ["PERIOD", "boundaries", "nearest_period", "place", "window"]

#: 2024-Q1 or 2024-03, of the years 1900 to 2999 (dates end in 9999, a horizon has at most 1200 periods).
PERIOD = re.compile(r"(?:19|2[0-9])[0-9]{2}-(?:Q[1-4]|0[1-9]|1[0-2])")


def place(horizon: Horizon, period: str, end: bool = False) -> int:
    """Number of the period that holds the first (or, with `end`, the last) month of a quarter or month.

    >>> h = Horizon("2024-Q4", 2)
    >>> place(h, "2025-Q2"), place(h, "2024-Q3"), place(h, "2025-05")
    (2, -1, 2)
    >>> place(Horizon("2024-01", 12, "month"), "2024-Q2", end=True)
    5

    Raises:
        ValueError: when the text is no period.
    """
    month = _month(period) + (2 if end and "Q" in period else 0)
    return month // horizon.months - _month(horizon.start) // horizon.months


def nearest_period(labels: Sequence[str], day: str) -> str:
    """The period of a day (ISO), or the first or last label where the day lies outside.

    >>> nearest_period(["2026-Q1", "2026-Q2"], "2026-05-31"), nearest_period(["2026-Q1"], "2027-01-01")
    ('2026-Q2', '2026-Q1')
    """
    label = f"{day[:4]}-Q{(int(day[5:7]) + 2) // 3}" if "Q" in labels[0] else day[:7]
    return min(max(label, labels[0]), labels[-1])


def window(horizon: Horizon, start: str | None, end: str | None) -> slice:
    """The slice of periods from `start` to `end`, both included; an open end reaches the border.

    >>> window(Horizon("2024-Q1", 8), "2024-Q3", "2025-Q1")
    slice(2, 5, None)
    """
    low = 0 if start is None else max(0, place(horizon, start))
    high = horizon.length if end is None else max(0, place(horizon, end, end=True) + 1)
    return slice(low, max(low, high))


def boundaries(horizon: Horizon) -> list[date]:
    """The day before the first period, then the last day of each: `length` + 1 days.

    >>> [d.isoformat() for d in boundaries(Horizon("2024-Q1", 1))]
    ['2023-12-31', '2024-03-31']
    """
    labels = horizon.labels()
    return [span(labels[0])[0] - timedelta(days=1), *(span(label)[1] for label in labels)]


def _month(period: str) -> int:
    if not PERIOD.fullmatch(period):
        raise ValueError(f"{period!r} is not a period such as 2024-Q1 or 2024-03")
    year, part = period.split("-")
    return int(year) * 12 + (3 * (int(part[1]) - 1) if part.startswith("Q") else int(part) - 1)
