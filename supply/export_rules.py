"""Measures that United States export rules use for accelerators (ECCN 3A090, note 1 and 2)."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from supply.network import NetworkError


def total_processing_performance(dense_tera_operations_per_s: ArrayLike, bits: ArrayLike) -> Any:
    """TPP = dense tera-operations per second x bit length of the operation; the best format of a part counts.

    Operations are those without sparsity (a multiply-accumulate is two). Raises `NetworkError` for negative input or a
    bit length outside 1 to 128.

    >>> total_processing_performance(296, 8)
    2368.0
    """
    import numpy as np

    rate, length = np.asarray(dense_tera_operations_per_s, dtype=float), np.asarray(bits, dtype=float)
    if np.any(rate < 0):
        raise NetworkError(f"dense_tera_operations_per_s: {dense_tera_operations_per_s!r} is negative; give a rate")
    if np.any((length < 1) | (length > 128)):
        raise NetworkError(f"bits: {bits!r} is not a bit length; give 4, 8, 16 ...")
    result = rate * length
    return float(result) if result.ndim == 0 else result


def performance_density(tpp: ArrayLike, die_area_mm2: ArrayLike) -> Any:
    """TPP per mm2 of dies made on a non-planar node (dies, not the package or the interposer).

    >>> round(performance_density(2368, 814), 3)
    2.909
    """
    import numpy as np

    area = np.asarray(die_area_mm2, dtype=float)
    if np.any(area <= 0):
        raise NetworkError(f"die_area_mm2: {die_area_mm2!r} is not positive; give the area of the applicable dies")
    result = np.asarray(tpp, dtype=float) / area
    return float(result) if result.ndim == 0 else result


def is_controlled(
    tpp: float, density: float, *, tpp_alone: float, tpp_with_density: float, density_limit: float
) -> bool:
    """Threshold of the form TPP >= a, or TPP >= b and density >= c.

    >>> is_controlled(2368, 2.91, tpp_alone=4800, tpp_with_density=1600, density_limit=5.92)
    False
    """
    return tpp >= tpp_alone or (tpp >= tpp_with_density and density >= density_limit)
