"""Units of a value of the language: which are written in it, and their conversion into a field or into root units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scenarios.measures import Measure, UnitError, describe, natural, to_measure
from scenarios.values import (
    ByPeriod,
    Distribution,
    FactForm,
    Number,
    ProductForm,
    RatioForm,
    SeriesForm,
    StatedForm,
    SumForm,
)
from supply.facts import Catalog
from supply.network import Horizon

__all__ = ["Names", "Units", "unit_in", "units_written", "written_unit"]

#: Root unit -> power.
Names = dict[str, float]


def unit_in(form: Any, facts: Catalog) -> str:
    """The first unit written in a value, its facts and series included; empty where there is none."""
    if isinstance(form, Number):
        return form.unit
    if isinstance(form, FactForm):
        return written_unit(facts[form.fact].unit) if form.fact in facts else ""
    if isinstance(form, SeriesForm):
        return written_unit(facts.series(form.series).unit) if form.series in facts.series_ids else ""
    if isinstance(form, StatedForm):
        return unit_in(form.value, facts)
    if isinstance(form, ByPeriod):
        return _first(form.entries.values(), facts)
    if isinstance(form, (SumForm, ProductForm)):
        return _first(form.sum if isinstance(form, SumForm) else form.product, facts)
    if isinstance(form, Distribution):
        numbers = [form.mean, form.median, form.low, form.mode, form.high, *(form.values or ())]
        return next((n.unit for n in numbers if n is not None and n.unit), "")
    return ""


def _parts(form: Any) -> Sequence[Any]:
    """The values inside a compound value, itself where it is none."""
    if isinstance(form, ProductForm):
        return form.product
    if isinstance(form, RatioForm):
        return form.ratio
    if isinstance(form, SumForm):
        return form.sum
    if isinstance(form, ByPeriod):
        return tuple(form.entries.values())
    return (form.value,) if isinstance(form, StatedForm) else (form,)


def units_written(form: Any, facts: Catalog) -> list[str]:
    """Every unit that stands in a value, each once."""
    parts = _parts(form)
    found = [unit_in(form, facts)] if parts == (form,) else [u for p in parts for u in units_written(p, facts)]
    return list(dict.fromkeys(u for u in found if u))


def _first(forms: Any, facts: Catalog) -> str:
    return next((u for form in forms if (u := unit_in(form, facts))), "")


def written_unit(unit: str) -> str:
    """The unit of a fact as it counts in arithmetic: words for a pure number are none."""
    return "" if unit in ("fraction", "count", "ratio", "flag") else unit


class Units:
    """Converts the numbers of one value: into a field, or (inside arithmetic) into root units."""

    def __init__(self, horizon: Horizon, measure: Measure | None, default: str = "") -> None:
        self.horizon = horizon
        self.measure = measure
        self.default = default
        self.names: Names | None = None

    def __call__(self, magnitude: float, unit: str) -> float:
        """A number in the unit of the field, or in root units.

        Raises:
            UnitError: a unit that the field does not accept, or two units that do not go together.
        """
        if self.measure is not None:
            return to_measure(magnitude, unit, self.measure, self.horizon)
        factor, names = natural(unit or self.default)
        if self.names is None:
            self.names = names
        elif self.names != names:
            raise UnitError(
                f"{unit or 'a plain number'} beside {describe(self.names)}: give the numbers of one value one unit"
            )
        return magnitude * factor
