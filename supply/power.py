"""When power arrives: sites, their delays, and a grid that connects only so much in a period.

The optimum takes MW per region and period (`resources.ID.capacity` with `stage: power`). Several rows for one region
are all limits (grid connection, transformers, cooling): each has its own price.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from supply.network import Array, NetworkError


@dataclass(frozen=True)
class Site:
    """A request for grid power: planning MW, the period in which it is ready to take them, region."""

    id: str
    mw: float
    ready: float
    region: str = ""


def grid_queue(sites: Iterable[Site], connected_per_period_mw: Array, opening_mw: float = 0.0) -> Array:
    """MW connected at the end of each period: first come, first served, in parts, never before a site is ready.

    >>> grid_queue([Site("a", 100, 0), Site("b", 50, 1)], np.array([60.0, 60.0, 60.0]), opening_mw=10)
    array([ 70., 130., 160.])

    Raises `NetworkError` for a negative request or rate.
    """
    rate = np.asarray(connected_per_period_mw, dtype=float)
    waiting = sorted(sites, key=lambda site: (site.ready, site.id))
    if np.any(rate < 0) or any(site.mw < 0 for site in waiting):
        raise NetworkError("grid queue: negative MW; give zero or more")
    left = {site.id: site.mw for site in waiting}
    level, total = opening_mw, np.zeros(len(rate))
    for t, room in enumerate(rate):
        for site in waiting:
            if site.ready <= t and room > 0:
                part = min(left[site.id], room)
                left[site.id] -= part
                room -= part
                level += part
        total[t] = level
    return total


def waiting_mw(sites: Iterable[Site], connected_per_period_mw: Array) -> Array:
    """MW that are ready but not connected at the end of each period.

    >>> waiting_mw([Site("a", 100, 0), Site("b", 50, 1)], np.array([60.0, 60.0, 60.0]))
    array([40., 30.,  0.])
    """
    listed = list(sites)
    ready = np.array([sum(s.mw for s in listed if s.ready <= t) for t in range(len(connected_per_period_mw))])
    return np.asarray(ready - grid_queue(listed, connected_per_period_mw))


def mean_level(end_levels_mw: Array, opening_mw: float) -> Array:
    """Mean level of each period from levels at period ends (straight between them): what a power row takes.

    >>> mean_level(np.array([20.0, 40.0]), 10.0)
    array([15., 30.])
    """
    before = np.concatenate([[opening_mw], np.asarray(end_levels_mw, dtype=float)[:-1]])
    return np.asarray((before + end_levels_mw) / 2)
