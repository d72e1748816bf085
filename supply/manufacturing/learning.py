"""Yield learning: a half-life towards a target, and its fit to dated points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from supply.manufacturing.numeric import FloatArray, ManufacturingError, Numbers, positive, unwrap

__all__ = ["LearningCurve", "fit_learning", "learned"]

DAYS_PER_MONTH = 365.25 / 12.0


def learned(start: Numbers, target: Numbers, half_life_months: Numbers, months: Numbers) -> float | FloatArray:
    """Value after some months: target + (start - target) x 0.5 ** (months / half-life).

    For yields and defect densities alike. Before the start (months below 0) the starting value holds.

    >>> learned(0.60, 0.90, 12, 12)
    0.75
    """
    begin, end = np.asarray(start, dtype=np.float64), np.asarray(target, dtype=np.float64)
    elapsed = np.maximum(np.asarray(months, dtype=np.float64), 0.0)
    return unwrap(end + (begin - end) * 0.5 ** (elapsed / positive("half_life_months", half_life_months)))


@dataclass(frozen=True)
class LearningCurve:
    """A fitted or assumed curve with its epoch."""

    epoch: date
    start: float
    target: float
    half_life_months: float
    rms_error: float = 0.0

    def at(self, day: date) -> float:
        """Value on a day.

        >>> LearningCurve(date(2024, 1, 1), 0.2, 0.08, 12.0).at(date(2023, 6, 1))
        0.2
        """
        months = (day - self.epoch).days / DAYS_PER_MONTH
        return float(learned(self.start, self.target, self.half_life_months, months))


def fit_learning(days: Sequence[date], values: Sequence[float], target: float | None = None) -> LearningCurve:
    """Least-squares curve through dated points.

    Half-lives of a fine grid (0.5 to 120 months) are tried; for each, start and target are linear. With a `target`
    two points suffice, without one three.

    Raises:
        ManufacturingError: for too few points, repeated days only, or points that do not move towards a target.

    >>> days = [date(2024, 1, 1), date(2025, 1, 1), date(2026, 1, 1)]
    >>> round(fit_learning(days, [0.20, 0.14, 0.11]).half_life_months)
    12
    """
    need = 3 if target is None else 2
    if len(days) != len(values) or len(set(days)) < need:
        raise ManufacturingError(
            f"{len(days)} days and {len(values)} values: give at least {need} points on different days"
        )
    order = np.argsort([d.toordinal() for d in days])
    epoch = days[int(order[0])]
    months = np.array([(days[i] - epoch).days / DAYS_PER_MONTH for i in order])
    points = np.array([float(values[i]) for i in order])
    grid = np.geomspace(0.5, 120.0, 4001)
    start, end, squares = _fits(0.5 ** (months / grid[:, None]), points, target)
    best = int(np.argmin(squares))
    if best in (0, len(grid) - 1):
        raise ManufacturingError(
            f"values {list(values)} show no half-life between 0.5 and 120 months: give a target or more points"
        )
    rms = float(np.sqrt(squares[best] / len(points)))
    return LearningCurve(epoch, float(start[best]), float(end[best]), float(grid[best]), rms)


def _fits(decay: FloatArray, points: FloatArray, target: float | None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Start, target and squared error of the best line in each row of decays (one row a half-life)."""
    if target is not None:
        gap = decay @ (points - target) / (decay**2).sum(axis=1)
        end = np.full(len(decay), target)
    else:
        centred = decay - decay.mean(axis=1, keepdims=True)
        gap = centred @ points / (centred**2).sum(axis=1)
        end = points.mean() - gap * decay.mean(axis=1)
    error = end[:, None] + gap[:, None] * decay - points
    return end + gap, end, (error**2).sum(axis=1)
