"""An ordered cost waterfall: named bars with facts behind them that add up to the total exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["CostBar", "CostBreakdown", "WaterfallError"]


class WaterfallError(ValueError):
    """A waterfall whose bars do not add up to its stated total, or that lacks a bar asked for."""


@dataclass(frozen=True)
class CostBar:
    """One part of a cost: value, 90 % band, unit, and the ids of the facts that it rests on."""

    name: str
    value: Any
    low: Any = None
    high: Any = None
    fact_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class CostBreakdown:
    """Bars in the order of a waterfall; `total` is their sum, `low` and `high` its band (None: no band asked for)."""

    bars: tuple[CostBar, ...]
    unit: str = "USD/GPU-hour"
    method: str = ""
    low: Any = None
    high: Any = None
    assumptions: Mapping[str, Any] = field(default_factory=dict)

    @property
    def total(self) -> Any:
        """Sum of the bars.

        >>> CostBreakdown((CostBar("capital", 1.5), CostBar("power", 0.25))).total
        1.75
        """
        if all(isinstance(bar.value, float | int) for bar in self.bars):
            return math.fsum(bar.value for bar in self.bars)
        return np.sum(np.broadcast_arrays(*(np.asarray(bar.value, dtype=float) for bar in self.bars)), axis=0)

    @property
    def fact_ids(self) -> tuple[str, ...]:
        """Every fact behind any bar, in order, once."""
        return tuple(dict.fromkeys(f for bar in self.bars for f in bar.fact_ids))

    def __iter__(self) -> Iterator[CostBar]:
        return iter(self.bars)

    def __getitem__(self, name: str) -> Any:
        for bar in self.bars:
            if bar.name == name:
                return bar.value
        raise WaterfallError(f"no bar {name!r}: the bars are {', '.join(b.name for b in self.bars)}")

    def share(self, *names: str) -> Any:
        """Share of the total that the named bars make up.

        >>> CostBreakdown((CostBar("capital", 1.5), CostBar("power", 0.5))).share("power")
        0.25
        """
        return sum(self[name] for name in names) / self.total

    def check_total(self, stated: float, rel_tol: float = 1e-9) -> None:
        """Refuse a stated total that the bars do not reach.

        Raises:
            WaterfallError: with the gap; a part counted twice is the usual cause.
        """
        if not math.isclose(float(self.total), stated, rel_tol=rel_tol):
            raise WaterfallError(
                f"parts sum to {float(self.total):.6g} {self.unit}, stated total {stated:.6g}: "
                "a part is counted twice or missing"
            )

    def table(self) -> list[dict[str, Any]]:
        """Rows (part, value, low, high, unit, fact_ids), the total last."""
        rows = [
            {"part": b.name, "value": b.value, "low": b.low, "high": b.high, "unit": self.unit, "fact_ids": b.fact_ids}
            for b in self.bars
        ]
        total = {"part": "total", "value": self.total, "low": self.low, "high": self.high, "unit": self.unit}
        return [*rows, {**total, "fact_ids": self.fact_ids}]
