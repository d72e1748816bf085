"""The fact: one sourced value, and one point of a sourced series."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal, get_args

__all__ = ["KINDS", "Fact", "FactError", "Kind", "SeriesPoint"]

Kind = Literal["published", "measured", "estimate", "illustrative", "interpolated", "placeholder", "attribute"]
KINDS: tuple[str, ...] = get_args(Kind)


class FactError(ValueError):
    """A fact is missing, malformed, or used in a unit that it does not have."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One sourced value.

    `value` is a number, or text for attributes (a name or a date). `low` and `high` are the source's own range.
    `valid_from`..`valid_to` is the time that the value is about; `known_on` the first day it could have been known.
    `date_rule` names the rule that filled the dates; a name ending in `?` marks a guess.
    """

    id: str
    subject: str
    quantity: str
    value: float | str
    low: float | None
    high: float | None
    unit: str
    scope: str
    valid_from: date
    valid_to: date
    known_on: date
    date_rule: str
    kind: str
    source: str
    origin: str
    url: str
    note: str
    file: str

    @property
    def number(self) -> float:
        """The value as a float.

        Raises:
            FactError: when the fact is an attribute (text).
        """
        if isinstance(self.value, str):
            raise FactError(f"fact {self.id} is the text {self.value!r}, not a number: use .value, or another fact")
        return self.value

    @property
    def range(self) -> tuple[float, float]:
        """The source's range, or the value twice where it gave none."""
        v = self.number
        return (v if self.low is None else self.low, v if self.high is None else self.high)

    def to(self, unit: str) -> float:
        """The value converted to `unit`, e.g. `fact.to("gigabyte/second")`.

        Raises:
            FactError: when the units have different dimensions.
        """
        from supply.facts.units import convert

        return convert(self.number, self.unit, unit, where=f"fact {self.id}")


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """One quarter of a sourced series; `id` is `series_id@period` and resolves in the catalogue."""

    id: str
    series_id: str
    subject: str
    quantity: str
    period: str
    value: float
    low: float
    high: float
    unit: str
    kind: str
    known_on: date
    basis: tuple[str, ...]
    method: str
    outcome_derived: bool
