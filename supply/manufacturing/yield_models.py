"""Yield of a die from its area and the defect density: seven models, critical area, layers, manual and line yield."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np

from supply.manufacturing.numeric import FloatArray, ManufacturingError, Numbers, positive, share, unwrap

__all__ = ["MODELS", "YieldModel", "defect_density", "die_yield", "line_times_defect_yield"]

YieldModel = Literal["poisson", "murphy", "seeds", "moore", "bose_einstein", "rectangular", "negative_binomial"]
MODELS: tuple[str, ...] = get_args(YieldModel)
MM2_PER_CM2 = 100.0
_SMALL = 1e-8  # below this the closed forms of murphy and rectangular lose digits: use their first-order series


def die_yield(
    area_mm2: Numbers,
    defects_per_cm2: Numbers,
    model: str = "negative_binomial",
    alpha: Numbers = 3.0,
    critical_fraction: Numbers = 1.0,
    layers: Numbers = 1,
    *,
    manual_yield: Numbers | None = None,
) -> float | FloatArray:
    """Share of dies without a killing defect.

    With x = area x critical fraction x defect density (expected faults): poisson e^-x; murphy ((1 - e^-x) / x)^2;
    seeds and bose_einstein 1 / (1 + x); moore e^-sqrt(x); rectangular (1 - e^-2x) / 2x; negative_binomial (1 + x /
    alpha)^-alpha. Layers are independent, so the result is raised to `layers` and the defect density is then per layer.
    A `manual_yield` is returned as given whatever the defect density, zero included.

    Args:
        area_mm2: die area, mm2; 0 gives 1.
        defects_per_cm2: defects per cm2 (per cm2 and layer where `layers` is not 1).
        model: one of `MODELS`.
        alpha: clustering of negative_binomial; small is clustered, large tends to poisson.
        critical_fraction: share of the area where a defect kills.
        layers: number of critical layers.
        manual_yield: a yield known from elsewhere, used instead.

    Raises:
        ManufacturingError: for a negative area or density, a fraction outside its range, or an unknown model.

    >>> round(die_yield(814, 0.1), 3)
    0.487
    >>> die_yield(814, 0.0, manual_yield=0.8)
    0.8
    """
    if manual_yield is not None:
        return unwrap(share("manual_yield", manual_yield))
    faults = (
        positive("area_mm2", area_mm2, zero=True)
        / MM2_PER_CM2
        * positive("defects_per_cm2", defects_per_cm2, zero=True)
        * share("critical_fraction", critical_fraction)
    )
    one_layer = _model(model)(faults, _alpha(alpha))
    return unwrap(one_layer ** positive("layers", layers))


def line_times_defect_yield(defect_yield: Numbers, line_yield: Numbers) -> float | FloatArray:
    """Good dies over dies started: whole wafers scrapped on the line (line yield) times dies lost to defects.

    >>> round(line_times_defect_yield(0.8, 0.98), 3)
    0.784
    """
    return unwrap(share("defect_yield", defect_yield) * share("line_yield", line_yield))


def defect_density(
    yield_fraction: Numbers,
    area_mm2: Numbers,
    model: str = "negative_binomial",
    alpha: Numbers = 3.0,
    critical_fraction: Numbers = 1.0,
    layers: Numbers = 1,
) -> float | FloatArray:
    """Defects per cm2 that give a quoted yield of a die of known area: the inverse of `die_yield`.

    Solved by bisection on the monotone model, to a relative 1e-12.

    Raises:
        ManufacturingError: for a yield outside (0, 1] or an area of 0, from which no density follows.

    >>> round(defect_density(0.8, 814), 4)
    0.0285
    """
    target = share("yield_fraction", yield_fraction) ** (1.0 / positive("layers", layers))
    cm2 = positive("area_mm2", area_mm2) / MM2_PER_CM2 * share("critical_fraction", critical_fraction)
    curve, clustering = _model(model), _alpha(alpha)
    target, cm2, clustering = np.broadcast_arrays(target, cm2, clustering)
    low, high = np.zeros(target.shape), np.ones(target.shape)
    while np.any(short := curve(high, clustering) > target):
        high = np.where(short, high * 4.0, high)
    for _ in range(90):
        middle = 0.5 * (low + high)
        above = curve(middle, clustering) > target
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return unwrap(np.where(target == 1.0, 0.0, 0.5 * (low + high)) / cm2)


def _alpha(alpha: Numbers) -> FloatArray:
    values = np.asarray(alpha, dtype=np.float64)
    return values if np.all(np.isposinf(values)) else positive("alpha", alpha)


def _model(name: str) -> Callable[[FloatArray, FloatArray], FloatArray]:
    if name not in _CURVES:
        raise ManufacturingError(f"yield model {name!r} is not known; choose one of {', '.join(MODELS)}")
    return _CURVES[name]


def _poisson(x: FloatArray, _alpha: FloatArray) -> FloatArray:
    return np.exp(-x)


def _murphy(x: FloatArray, _alpha: FloatArray) -> FloatArray:
    safe = np.maximum(x, _SMALL)
    return np.where(x < _SMALL, 1.0 - x, (-np.expm1(-safe) / safe) ** 2)


def _seeds(x: FloatArray, _alpha: FloatArray) -> FloatArray:
    return 1.0 / (1.0 + x)


def _moore(x: FloatArray, _alpha: FloatArray) -> FloatArray:
    return np.exp(-np.sqrt(x))


def _rectangular(x: FloatArray, _alpha: FloatArray) -> FloatArray:
    safe = np.maximum(x, _SMALL)
    return np.where(x < _SMALL, 1.0 - x, -np.expm1(-2.0 * safe) / (2.0 * safe))


def _negative_binomial(x: FloatArray, alpha: FloatArray) -> FloatArray:
    if np.all(np.isposinf(alpha)):
        return np.exp(-x)
    return np.exp(-alpha * np.log1p(x / alpha))


_CURVES: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "poisson": _poisson,
    "murphy": _murphy,
    "seeds": _seeds,
    "moore": _moore,
    "bose_einstein": _seeds,
    "rectangular": _rectangular,
    "negative_binomial": _negative_binomial,
}
