"""Checks and shape helpers shared by the manufacturing functions: arrays in, arrays out, plain floats for scalars."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["FloatArray", "ManufacturingError", "Numbers", "positive", "share", "unwrap"]

FloatArray = npt.NDArray[np.float64]
Numbers = float | npt.ArrayLike
"""A number, or anything that numpy reads as an array of numbers."""


class ManufacturingError(ValueError):
    """A manufacturing input is impossible; the message names it, its value and what to do."""


def _array(name: str, values: Numbers) -> FloatArray:
    try:
        out = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as exc:
        raise ManufacturingError(f"{name} = {values!r} is not a number or an array of numbers") from exc
    if not np.all(np.isfinite(out)):
        raise ManufacturingError(f"{name} holds a value that is not finite ({_first(out, ~np.isfinite(out))})")
    return out


def _first(values: FloatArray, wrong: npt.NDArray[np.bool_]) -> float:
    return float(np.atleast_1d(values)[np.atleast_1d(wrong)][0])


def positive(name: str, values: Numbers, *, zero: bool = False) -> FloatArray:
    """Values as an array, refused unless above zero (or at least zero with `zero=True`).

    Raises:
        ManufacturingError: with the name and the first offending value.

    >>> float(positive("area_mm2", 814))
    814.0
    """
    out = _array(name, values)
    wrong = out < 0 if zero else out <= 0
    if np.any(wrong):
        need = "at least 0" if zero else "above 0"
        raise ManufacturingError(f"{name} = {_first(out, wrong):g} must be {need}")
    return out


def share(name: str, values: Numbers, *, zero: bool = False) -> FloatArray:
    """Values as an array of fractions in (0, 1], or [0, 1] with `zero=True`.

    Raises:
        ManufacturingError: also where a percentage was given for a fraction.

    >>> float(share("die_yield", 0.8))
    0.8
    """
    out = _array(name, values)
    wrong = (out > 1) | (out < 0 if zero else out <= 0)
    if np.any(wrong):
        bad = _first(out, wrong)
        hint = f"; if {bad:g} is per cent, give {bad / 100:g}" if 1 < bad <= 100 else ""
        raise ManufacturingError(f"{name} = {bad:g} must be a fraction {'from' if zero else 'above'} 0 to 1{hint}")
    return out


def unwrap(values: FloatArray) -> float | FloatArray:
    """A zero-dimensional array as a float, any other array unchanged."""
    return float(values) if np.ndim(values) == 0 else values
