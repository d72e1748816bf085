"""The check of every quoted throughput against the engine: impossible, optimistic, consistent or pessimistic.

A cost model takes a `CheckedThroughput` and never a bare number, so that no figure above the roofline of its own set-up
becomes a price, and the engine's error travels on into USD per million tokens and per task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["CheckedThroughput", "EngineRate", "ImpossibleThroughputError", "Label", "check_throughput"]

Label = Literal["optimistic", "consistent", "pessimistic"]


class ImpossibleThroughputError(ValueError):
    """A quoted throughput is above what the named hardware could do at its limits."""


@dataclass(frozen=True)
class EngineRate:
    """What the engine says of one set-up, in tokens/s per accelerator: best estimate, 90 % band, roofline ceiling.

    `limited_by` names the resource that sets the estimate, `ceiling_reason` the one that sets the ceiling.
    """

    predicted: float
    low: float
    high: float
    ceiling: float
    confidence: str
    limited_by: str
    setup: str
    ceiling_reason: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.predicted <= self.high:
            raise ValueError(
                f"engine rate of {self.setup}: the band {self.low:g}..{self.high:g} must be positive and hold "
                f"{self.predicted:g}"
            )


@dataclass(frozen=True)
class CheckedThroughput:
    """A throughput that a cost may be built on, in tokens/s per accelerator, with the band that its cost inherits.

    A quoted rate keeps its value; its band is the engine's band, widened to hold the quote.
    """

    tokens_per_s: float
    low: float
    high: float
    label: Label
    engine: EngineRate

    @property
    def note(self) -> str:
        """One line for a report."""
        e = self.engine
        return (
            f"{self.label}: {self.tokens_per_s:,.0f} tokens/s per accelerator against {e.predicted:,.0f} "
            f"({e.low:,.0f} to {e.high:,.0f}, {e.confidence}) for {e.setup}"
        )


def check_throughput(engine: EngineRate, quoted_tokens_per_s: float | None = None) -> CheckedThroughput:
    """Class a quoted rate, or pass the engine's own on as consistent.

    Impossible above the roofline ceiling of the stated set-up; optimistic above the 90 % band; pessimistic below it.

    Raises:
        ImpossibleThroughputError: when the quote is above the ceiling; the message gives the ceiling and its reason.
        ValueError: when the quote is not a positive number.

    >>> rate = EngineRate(1000, 800, 1250, 3000, "same_hardware", "memory_bandwidth", "Llama 70B on H200")
    >>> check_throughput(rate, 739).label, check_throughput(rate, 2000).label, check_throughput(rate).label
    ('pessimistic', 'optimistic', 'consistent')
    """
    if quoted_tokens_per_s is None:
        return CheckedThroughput(engine.predicted, engine.low, engine.high, "consistent", engine)
    if not 0 < quoted_tokens_per_s < float("inf"):
        raise ValueError(f"quoted throughput {quoted_tokens_per_s} tokens/s: give a positive, finite rate")
    if quoted_tokens_per_s > engine.ceiling:
        why = f" ({engine.ceiling_reason})" if engine.ceiling_reason else ""
        raise ImpossibleThroughputError(
            f"{quoted_tokens_per_s:,.0f} tokens/s per accelerator is impossible for {engine.setup}: the roofline "
            f"ceiling is {engine.ceiling:,.0f}{why}. Check whether the rate is of a whole node, counts input tokens, "
            "or is of another model or format"
        )
    label: Label = "consistent"
    if quoted_tokens_per_s > engine.high:
        label = "optimistic"
    elif quoted_tokens_per_s < engine.low:
        label = "pessimistic"
    low, high = min(engine.low, quoted_tokens_per_s), max(engine.high, quoted_tokens_per_s)
    return CheckedThroughput(quoted_tokens_per_s, low, high, label, engine)
