"""Five fractions between an installed hour and useful arithmetic, each with its own meaning.

    sold       paid hours / installed hours
    scheduled  hours with a job / sold hours
    healthy    hours without a fault / scheduled hours
    busy       hours computing / healthy hours
    efficient  achieved / peak rate while computing

Cost per sold hour divides by `sold` only. Tokens per sold hour take the engine's rate, which already holds `efficient`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from econ.finance import plain, require

__all__ = [
    "UseChain",
    "UseError",
    "failure_rate_per_year",
    "provisioned_over_used",
    "total_interruptions",
]


class UseError(ValueError):
    """A use fraction outside (0, 1], or two fractions confused."""


@dataclass(frozen=True, slots=True)
class UseChain:
    """The five fractions; each is in (0, 1] and is measured against the one before it.

    >>> chain = UseChain(sold=0.8, scheduled=0.9, healthy=0.95, busy=0.6)
    >>> round(chain.computing_share, 4), round(chain.tokens_per_sold_hour(1000.0))
    (0.4104, 1846800)
    """

    sold: float = 1.0
    scheduled: float = 1.0
    healthy: float = 1.0
    busy: float = 1.0
    efficient: float = 1.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = np.asarray(getattr(self, field.name), dtype=float)
            if np.any(np.isnan(value)) or np.any(value <= 0) or np.any(value > 1):
                raise UseError(
                    f"use chain: {field.name} = {getattr(self, field.name)!r} must be in (0, 1]; "
                    "each fraction is a share of the one before it, not of all hours"
                )

    @property
    def computing_share(self) -> Any:
        """Share of installed hours spent computing: sold x scheduled x healthy x busy."""
        return self.sold * self.computing_share_of_sold

    @property
    def computing_share_of_sold(self) -> Any:
        """Share of sold hours spent computing: scheduled x healthy x busy."""
        return self.scheduled * self.healthy * self.busy

    def tokens_per_sold_hour(self, tokens_per_s: ArrayLike) -> Any:
        """Tokens of one sold hour at an engine rate, which already holds `efficient`."""
        return plain(require("tokens_per_s", tokens_per_s, 0) * 3600.0 * self.computing_share_of_sold)

    @classmethod
    def from_hours(
        cls, *, installed: float, sold: float, scheduled: float, healthy: float, busy: float, efficient: float = 1.0
    ) -> UseChain:
        """The chain from counted hours, which must not increase from one to the next.

        >>> UseChain.from_hours(installed=1000, sold=800, scheduled=720, healthy=684, busy=410.4).busy
        0.6

        Raises:
            UseError: when an hour count exceeds the one before it.
        """
        hours = [
            ("installed", installed),
            ("sold", sold),
            ("scheduled", scheduled),
            ("healthy", healthy),
            ("busy", busy),
        ]
        for (before, h0), (after, h1) in pairwise(hours):
            if not 0 < h1 <= h0:
                raise UseError(f"{after} hours {h1:g} must be positive and at most {before} hours {h0:g}")
        return cls(sold / installed, scheduled / sold, healthy / scheduled, busy / healthy, efficient)


def provisioned_over_used(utilisation: ArrayLike) -> Any:
    """How many hours are paid for each useful one: 1 / utilisation.

    >>> provisioned_over_used(0.05)
    20.0
    """
    return plain(1.0 / require("utilisation", utilisation, 0, 1, open_low=True))


def failure_rate_per_year(
    events: ArrayLike, accelerators: ArrayLike, run_days: ArrayLike, more_events: ArrayLike = 0.0
) -> Any:
    """Events per accelerator-year: (events + more events) / accelerators x 365 / days.

    >>> round(failure_rate_per_year(148, 16384, 54, 72), 4)
    0.0908
    """
    years = (
        require("accelerators", accelerators, 0, open_low=True)
        * require("run_days", run_days, 0, open_low=True)
        / 365.0
    )
    return plain((require("events", events, 0) + require("more_events", more_events, 0)) / years)


def total_interruptions(unexpected: int, planned: int = 0) -> int:
    """All interruptions of a run; only the unexpected ones enter a failure rate.

    >>> total_interruptions(419, 47)
    466

    Raises:
        UseError: when a count is negative.
    """
    if unexpected < 0 or planned < 0:
        raise UseError(f"{unexpected} unexpected and {planned} planned interruptions: counts are not negative")
    return unexpected + planned
