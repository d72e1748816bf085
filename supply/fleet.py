"""Survival of accelerators with age, for fleets whose losses are not the same share every period.

`fleet.S.survival` (share kept a period, any age) needs no vintages. `fleet.S.life` (mean life, with `.wear_out`, the
Weibull shape) or `fleet.S.survival_by_age` (share of a vintage left at age 0, 1, 2 ... periods) makes the optimum keep
the vintages of that SKU apart. Both may stand: losses at any age then come on top of losses by age.
"""

from __future__ import annotations

import math

import numpy as np

from supply.network import Array, Network, NetworkError


def weibull_survival(periods: int, scale_periods: float, shape: float) -> Array:
    """Share of a vintage left at age 0 .. periods - 1: exp(-(age / scale)^shape).

    Shape 1 is a constant rate; above 1, wear-out: few losses at first, most around the scale.

    >>> weibull_survival(3, 2.0, 1.0).round(4)
    array([1.    , 0.6065, 0.3679])

    Raises `NetworkError` where scale or shape is not positive.
    """
    if scale_periods <= 0 or shape <= 0:
        raise NetworkError(f"survival: scale {scale_periods:g} and shape {shape:g} must be positive")
    return np.exp(-((np.arange(periods) / scale_periods) ** shape))


def sharp_survival(periods: int, life_periods: float) -> Array:
    """Everything lives for `life_periods`, then is gone (a fraction of a period is the share left in the last one).

    >>> sharp_survival(4, 2.5)
    array([1. , 1. , 0.5, 0. ])
    """
    return np.clip(life_periods - np.arange(periods), 0.0, 1.0)


def weibull_scale(mean: float, shape: float) -> float:
    """Scale of a Weibull life of a given mean: mean / Gamma(1 + 1 / shape), in the unit of the mean.

    >>> weibull_scale(5.0, 1.0)
    5.0
    >>> round(weibull_scale(5.0, 3.0), 4)
    5.5992

    Raises `NetworkError` where mean or shape is not positive.
    """
    if mean <= 0 or shape <= 0:
        raise NetworkError(f"life: mean {mean:g} and shape {shape:g} must be positive")
    return mean / math.gamma(1.0 + 1.0 / shape)


def opening_survival(curve: Array, age: float) -> Array:
    """Share of an opening fleet of mean age `age` left at the end of period 0, 1, 2 ...: S(age + 1 + t) / S(age).

    >>> opening_survival(np.array([1.0, 0.8, 0.4, 0.0]), 1.0)
    array([0.5, 0. , 0. , 0. ])
    """
    ages = np.arange(len(curve))
    now = float(np.interp(age, ages, curve))
    later = np.interp(age + 1 + ages, ages, curve)
    return np.asarray(later / now) if now > 0 else np.zeros(len(curve))


def has_vintages(network: Network, sku: str) -> bool:
    """True where the survival of a SKU depends on age."""
    return f"fleet.{sku}.life" in network.values or f"fleet.{sku}.survival_by_age" in network.values
