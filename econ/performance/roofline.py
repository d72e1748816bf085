"""The roofline in closed form: time at a rate, overlap of compute and memory, ridge point and the gain from batching.

These are upper bounds; `steps` applies achieved efficiencies and fixed times on top of the same expressions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["batch_gain", "joined", "ridge_point", "time_at_rate"]

Array = NDArray[np.float64]
#: A multiplication and an addition for every weight and token.
FLOPS_PER_WEIGHT = 2.0


def _positive(**values: ArrayLike) -> None:
    bad = [f"{name}={value!r}" for name, value in values.items() if not np.all(np.asarray(value, dtype=float) > 0)]
    if bad:
        raise ValueError(f"must be positive: {', '.join(bad)}")


def time_at_rate(work: ArrayLike, rate: ArrayLike) -> Array:
    """Least time of an amount of work at a rate: operations at op/s, or bytes at bytes/s.

    >>> float(time_at_rate(100e9, 50e9))
    2.0

    Raises:
        ValueError: when the rate is not positive.
    """
    _positive(rate=rate)
    return np.asarray(np.asarray(work, dtype=float) / np.asarray(rate, dtype=float))


def joined(compute_s: Array, memory_s: Array, norm: float = 3.5) -> Array:
    """Time of overlapping compute and memory: (c^p + m^p)^(1/p), never under the larger of the two.

    >>> float(joined(np.array(1.0), np.array(0.0)))
    1.0
    """
    high = np.maximum(compute_s, memory_s)
    low = np.minimum(compute_s, memory_s)
    ratio = low / np.maximum(high, 1e-300)
    return np.asarray(high * (1.0 + ratio**norm) ** (1.0 / norm))


def ridge_point(peak_per_s: ArrayLike, bytes_per_s: ArrayLike) -> Array:
    """Intensity in op/B at which compute and memory take the same time.

    >>> round(float(ridge_point(989e12, 3.35e12)), 1)
    295.2

    Raises:
        ValueError: when an argument is not positive.
    """
    _positive(peak_per_s=peak_per_s, bytes_per_s=bytes_per_s)
    return np.asarray(np.asarray(peak_per_s, dtype=float) / np.asarray(bytes_per_s, dtype=float))


def batch_gain(batch: ArrayLike, bytes_per_weight: float, peak_per_s: float, bytes_per_s: float) -> Array:
    """Throughput of a batch over that of one stream, cache left out: the batch, until the ridge point is reached.

    >>> float(batch_gain(64, 2, 989e12, 3.35e12))
    64.0

    Raises:
        ValueError: when an argument is not positive.
    """
    _positive(batch=batch, bytes_per_weight=bytes_per_weight)
    most = ridge_point(peak_per_s, bytes_per_s) * bytes_per_weight / FLOPS_PER_WEIGHT
    return np.asarray(np.minimum(np.asarray(batch, dtype=float), np.maximum(most, 1.0)))
