"""Scores of interval forecasts: coverage, width, interval score, and two naive forecasts to beat.

The interval score (Gneiting and Raftery 2007) of a central 1 - alpha interval is
(high - low) + 2 / alpha x what the outcome lies outside: small is good; it pays for narrowness and fines misses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["ALPHA", "Interval", "ScoreError", "coverage", "interval_score", "log_steps", "naive_growth", "naive_last"]

#: One minus the nominal coverage of every band: 90 %.
ALPHA = 0.10
#: Standard normal point of the upper end of a 90 % band.
_Z = 1.6448536269514722
Array = NDArray[np.float64]


class ScoreError(ValueError):
    """A forecast that cannot be scored or made."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A forecast of one number: middle and the ends of its 90 % band."""

    value: float
    low: float
    high: float


def interval_score(low: ArrayLike, high: ArrayLike, outcome: ArrayLike, alpha: float = ALPHA) -> Array:
    """Width plus 2 / alpha times the distance of the outcome outside, in the unit of the outcome.

    >>> interval_score([10, 10], [20, 20], [15, 22]).tolist()
    [10.0, 50.0]

    Raises:
        ScoreError: when a band is upside down.
    """
    a, b, y = (np.asarray(x, dtype=float) for x in (low, high, outcome))
    if np.any(a > b):
        raise ScoreError("a band has low above high: give (low, high)")
    return np.asarray((b - a) + 2.0 / alpha * (np.maximum(a - y, 0.0) + np.maximum(y - b, 0.0)))


def coverage(low: ArrayLike, high: ArrayLike, outcome: ArrayLike) -> float:
    """Share of outcomes inside their band, ends included.

    >>> coverage([0, 0, 0], [1, 1, 1], [0.5, 1.0, 2.0])
    0.6666666666666666

    Raises:
        ScoreError: when nothing is given.
    """
    a, b, y = (np.asarray(x, dtype=float) for x in (low, high, outcome))
    if not y.size:
        raise ScoreError("no outcome to score: the horizon and the outcomes do not overlap")
    return float(np.mean((a <= y) & (y <= b)))


def log_steps(history: Sequence[float]) -> list[float]:
    """Changes of the logarithm from quarter to quarter; quarters without units are skipped.

    >>> [round(x, 3) for x in log_steps([1.0, 2.0, 2.0])]
    [0.693, 0.0]
    """
    return [float(np.log(b / a)) for a, b in pairwise(history) if a > 0 and b > 0]


def naive_last(history: Sequence[float], ahead: int, sd: float) -> Interval:
    """Last quarter carried forward: a random walk of the logarithm, sd a quarter.

    >>> i = naive_last([80.0, 100.0], 4, 0.1)
    >>> round(i.value), round(i.low), round(i.high)
    (100, 72, 139)

    Raises:
        ScoreError: without a positive last quarter.
    """
    last = _last(history)
    wide = float(np.exp(_Z * sd * np.sqrt(ahead)))
    return Interval(last, last / wide, last * wide)


def naive_growth(history: Sequence[float], ahead: int, sd: float) -> Interval:
    """Last year's growth goes on: the last quarter times (last / same quarter a year before) ** (ahead / 4).

    With less than a year of history the growth seen is taken per quarter. The band is that of `naive_last`.

    >>> round(naive_growth([50.0, 60.0, 70.0, 80.0, 100.0], 4, 0.1).value)
    200

    Raises:
        ScoreError: without a positive last quarter.
    """
    last = _last(history)
    back = min(4, len(history) - 1)
    while back > 0 and history[-1 - back] <= 0:
        back -= 1
    rate = float(np.log(last / history[-1 - back]) / back) if back else 0.0
    middle = last * float(np.exp(rate * ahead))
    wide = float(np.exp(_Z * sd * np.sqrt(ahead)))
    return Interval(middle, middle / wide, middle * wide)


def _last(history: Sequence[float]) -> float:
    if not len(history) or history[-1] <= 0:
        raise ScoreError("a naive forecast needs a history that ends with a positive quarter")
    return float(history[-1])
