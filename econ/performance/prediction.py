"""The answer of the engine to one measured-style question: a value, its band and the reason when there is none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Confidence = Literal["measured_nearby", "same_hardware", "same_family", "first_principles"]
Limit = Literal["compute", "memory_bandwidth", "memory_capacity", "interconnect", "overhead", "queueing"]

CONFIDENCE_CLASSES: tuple[Confidence, ...] = ("measured_nearby", "same_hardware", "same_family", "first_principles")
LIMITS: tuple[Limit, ...] = (
    "compute",
    "memory_bandwidth",
    "memory_capacity",
    "interconnect",
    "overhead",
    "queueing",
)


@dataclass(frozen=True)
class Prediction:
    """Predicted value in the unit that the row asks for, with its 90 % band.

    ``predicted``, ``low`` and ``high`` are all None when the row cannot be answered; ``reason`` then says why.

    >>> Prediction(10.0, 8.0, 12.0, "same_hardware", "memory_bandwidth").answered
    True
    >>> Prediction.refused("unknown model 'foo'").answered
    False
    """

    predicted: float | None
    low: float | None
    high: float | None
    confidence: Confidence | None
    limited_by: Limit | None
    reason: str = ""

    def __post_init__(self) -> None:
        values = (self.predicted, self.low, self.high)
        if any(v is None for v in values) != all(v is None for v in values):
            raise ValueError(f"predicted, low and high must be given together, got {values}")
        if self.predicted is None or self.low is None or self.high is None:
            return
        if not self.low <= self.predicted <= self.high:
            raise ValueError(f"band must hold the prediction: low {self.low} <= {self.predicted} <= {self.high}")

    @property
    def answered(self) -> bool:
        """True when there is a number."""
        return self.predicted is not None

    @classmethod
    def refused(cls, reason: str) -> Prediction:
        """A row without a number and the reason for it."""
        return cls(None, None, None, None, None, reason)

    @classmethod
    def within(
        cls, predicted: float, low_factor: float, high_factor: float, confidence: Confidence, limited_by: Limit
    ) -> Prediction:
        """A prediction with its band as factors of the value.

        >>> Prediction.within(100.0, 0.8, 1.25, "same_family", "compute").high
        125.0
        """
        return cls(predicted, predicted * low_factor, predicted * high_factor, confidence, limited_by)

    def scaled(self, factor: float) -> Prediction:
        """The same answer in another unit.

        >>> Prediction(10.0, 8.0, 12.0, "same_hardware", "compute").scaled(1e3).predicted
        10000.0
        """
        if self.predicted is None or self.low is None or self.high is None or factor == 1.0:
            return self
        return replace(self, predicted=self.predicted * factor, low=self.low * factor, high=self.high * factor)

    def as_columns(self) -> dict[str, str]:
        """The six output columns of `predict` as text; empty where there is no number."""
        numbers = {"predicted": self.predicted, "low": self.low, "high": self.high}
        columns = {name: "" if value is None else repr(float(value)) for name, value in numbers.items()}
        return columns | {
            "confidence": self.confidence or "",
            "limited_by": self.limited_by or "",
            "reason": self.reason,
        }
