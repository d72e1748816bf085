"""Anchoring: a user's own measurements shift the level of like set-ups, shrunk by how few they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from econ.performance.prediction import Prediction

__all__ = ["Shift", "anchor_key", "anchor_shifts", "shifted"]

#: Variance within a group over variance between groups: 0.12^2 / 0.15^2 of left-out log errors of time per token.
SHRINK = 0.64
#: Log half-width that remains after anchoring on one row, and on many.
NEAR_WIDTH, FLOOR_WIDTH = 0.24, 0.15
KEY = ("model", "hardware", "framework", "weight_format", "metric")
MOST_SHIFT = math.log(4.0)


@dataclass(frozen=True)
class Shift:
    """Log shift of one group of like set-ups, and the rows behind it."""

    log_factor: float
    rows: int


def anchor_key(row: Mapping[str, str]) -> tuple[str, ...]:
    """Group of like set-ups: model, accelerator, framework, format and metric (kernel and data type for kernels)."""
    words = [(row.get(name) or "").strip().lower() for name in KEY]
    return (*words, (row.get("kernel") or row.get("op") or "").lower(), (row.get("dtype") or "").lower())


def _measured(row: Mapping[str, str]) -> float | None:
    try:
        value = float(row.get("value") or row.get("latency_ms") or "")
    except ValueError:
        return None
    return value if value > 0 and math.isfinite(value) else None


def anchor_shifts(rows: Sequence[Mapping[str, str]], answers: Sequence[Prediction]) -> dict[tuple[str, ...], Shift]:
    """Shrunk mean log residual of each group: sum of log(measured / predicted) / (n + 0.64)."""
    found: dict[tuple[str, ...], list[float]] = {}
    for row, answer in zip(rows, answers, strict=True):
        value = _measured(row)
        if value is not None and answer.predicted:
            residual = math.log(value / answer.predicted)
            found.setdefault(anchor_key(row), []).append(max(-MOST_SHIFT, min(MOST_SHIFT, residual)))
    return {key: Shift(sum(r) / (len(r) + SHRINK), len(r)) for key, r in found.items()}


def shifted(row: Mapping[str, str], answer: Prediction, shifts: Mapping[tuple[str, ...], Shift]) -> Prediction:
    """The answer at the anchored level, in class `measured_nearby`; unchanged without a like anchor."""
    shift = shifts.get(anchor_key(row))
    if shift is None or answer.predicted is None or answer.limited_by is None:
        return answer
    value = answer.predicted * math.exp(shift.log_factor)
    width = FLOOR_WIDTH + (NEAR_WIDTH - FLOOR_WIDTH) / math.sqrt(shift.rows)
    assert answer.low is not None and answer.high is not None
    low = max(math.exp(-width), min(answer.low / answer.predicted, 1.0))
    high = min(math.exp(width), max(answer.high / answer.predicted, 1.0))
    return Prediction.within(value, low, high, "measured_nearby", answer.limited_by)
