"""The few relations that every estimate starts from: time of work, the roofline, intensity, reductions, service levels.

The engine refines each of them with fitted efficiencies; these are the limits that it may not cross.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from econ.finance import plain, require

__all__ = [
    "all_reduce",
    "attainable_rate",
    "attention_over_weight_flops",
    "decode_flop_per_byte",
    "dot_product",
    "meets_service_level",
    "time_s",
]


def time_s(amount: ArrayLike, rate_per_s: ArrayLike) -> Any:
    """Least time of an amount of work or data at a rate: amount / rate (s).

    >>> time_s(100e9, 50e9)
    2.0

    Raises:
        FinanceError: when the rate is not positive.
    """
    return plain(require("amount", amount, 0) / require("rate_per_s", rate_per_s, 0, open_low=True))


def attainable_rate(peak_per_s: ArrayLike, bytes_per_s: ArrayLike, operations_per_byte: ArrayLike) -> Any:
    """Roofline: the lower of peak and bandwidth x arithmetic intensity (operations/s).

    >>> attainable_rate(1000, 100, 2), attainable_rate(1000, 100, 20)
    (200.0, 1000.0)
    """
    memory = require("bytes_per_s", bytes_per_s, 0) * require("operations_per_byte", operations_per_byte, 0)
    return plain(np.minimum(require("peak_per_s", peak_per_s, 0), memory))


def decode_flop_per_byte(batch: ArrayLike, bytes_per_parameter: ArrayLike) -> Any:
    """Arithmetic intensity of a decode step over its weights: 2 x batch / bytes per parameter, cache left out.

    >>> decode_flop_per_byte(32, 2), decode_flop_per_byte(32, 0.5)
    (32.0, 128.0)
    """
    return plain(2 * require("batch", batch, 0) / require("bytes_per_parameter", bytes_per_parameter, 0, open_low=True))


def attention_over_weight_flops(
    params: ArrayLike, layers: ArrayLike, d_model: ArrayLike, tokens: ArrayLike, causal: bool = True
) -> Any:
    """Operations of attention scores and values over those of the weights in a prefill of `tokens`.

    4 s^2 d L (half of it when causal) over 2 N s.

    >>> round(attention_over_weight_flops(70e9, 80, 8192, 100000), 3)
    0.936
    """
    factor = 2.0 if causal else 4.0
    length = require("tokens", tokens, 0)
    scores = factor * length**2 * require("d_model", d_model, 0) * require("layers", layers, 0)
    return plain(scores / (2 * require("params", params, 0, open_low=True) * np.maximum(length, 1)))


def all_reduce(values: Sequence[float], operation: str = "sum") -> float:
    """What every worker holds after an all-reduce: the sum or the mean of all.

    >>> all_reduce([2, 4, 6, 8]), all_reduce([2, 4, 6, 8], "mean")
    (20.0, 5.0)

    Raises:
        ValueError: when there is no value or the operation is unknown.
    """
    if not values or operation not in ("sum", "mean"):
        raise ValueError(f"all_reduce of {len(values)} values by {operation!r}: give values and 'sum' or 'mean'")
    return float(np.sum(values) if operation == "sum" else np.mean(values))


def dot_product(a: Sequence[float], b: Sequence[float]) -> float:
    """Sum of products, one multiply-accumulate (2 operations) per pair.

    >>> dot_product([2, 5, 1], [3, -1, 4])
    5.0

    Raises:
        ValueError: when the lengths differ.
    """
    if len(a) != len(b):
        raise ValueError(f"vectors of {len(a)} and {len(b)} values have no dot product")
    return float(np.dot(np.asarray(a, dtype=float), np.asarray(b, dtype=float)))


def meets_service_level(in_time: int, requests: int, share: float = 0.95) -> bool:
    """Whether a measured run keeps a percentile target: at least `share` of the requests were in time.

    >>> meets_service_level(95, 100), meets_service_level(94, 100)
    (True, False)

    Raises:
        ValueError: when more requests were in time than sent, or none was sent.
    """
    if not 0 <= in_time <= requests or requests < 1:
        raise ValueError(f"{in_time} of {requests} requests in time: give a count up to the number sent")
    return in_time >= share * requests - 1e-9
