"""Figures of a SKU derived by `supply.manufacturing` from sourced dimensions, for `{manufacturing: SKU.FIELD}`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import Any

from supply.facts import Catalog, Series
from supply.facts.dating import span
from supply.manufacturing.products import SKUS, Product, product

__all__ = ["DERIVED_FIELDS", "DerivedError", "DerivedFigure", "derived_figure"]


class DerivedError(ValueError):
    """An unknown SKU or field of a derived figure."""


@dataclass(frozen=True, slots=True)
class DerivedFigure:
    """A derived number per day, with its range and the facts and series it rests on."""

    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    unit: str
    facts: tuple[str, ...]
    driver: str
    note: str = ""


def _die(key: str) -> Callable[[Product], Any]:
    return lambda p: getattr(p.dies[0], key)


#: Field -> (how it is read, unit, fields of the product's trace). Dies are those of the compute die, named first.
DERIVED_FIELDS: dict[str, tuple[Callable[[Product], Any], str, tuple[str, ...]]] = {
    "gross_dies_per_wafer": (_die("gross_dies_per_wafer"), "die/wafer", ("area_mm2",)),
    "die_yield": (_die("die_yield"), "", ("die_yield", "area_mm2")),
    "good_dies_per_wafer": (_die("good_dies_per_wafer"), "die/wafer", ("die_yield", "area_mm2")),
    "dies_per_package": (_die("count"), "", ("count",)),
    "packages_per_interposer_wafer": (
        lambda p: p.packages_per_interposer_wafer,
        "package/wafer",
        ("packages_per_interposer_wafer",),
    ),
    "package_yield": (lambda p: p.package_yield, "", ("package_yield",)),
    "stacks_per_package": (lambda p: p.hbm_stacks, "", ("hbm_stacks",)),
    "gb_per_stack": (lambda p: p.hbm_gb_per_stack, "GB", ("hbm_gb_per_stack",)),
    "hbm_stack_yield": (lambda p: p.hbm_stack_yield, "", ("hbm_stack_yield",)),
    "stacks_started_per_hbm_wafer": (
        lambda p: p.hbm_dies_per_wafer / p.hbm_height,
        "stack/wafer",
        ("hbm_dies_per_wafer", "hbm_height"),
    ),
    "good_stacks_per_hbm_wafer": (
        lambda p: p.hbm_stacks_per_wafer,
        "stack/wafer",
        ("hbm_dies_per_wafer", "hbm_height", "hbm_stack_yield"),
    ),
}
_FIXED = frozenset(
    {"gross_dies_per_wafer", "stacks_started_per_hbm_wafer", "dies_per_package", "stacks_per_package", "gb_per_stack"}
)


def derived_figure(name: str, days: Sequence[date], facts: Catalog) -> DerivedFigure:
    """The figure `SKU.FIELD` on each day; yields take their range from the low and high of the series they rest on.

    Raises:
        DerivedError: unknown SKU or field, with the nearest ones.
    """
    sku, _, key = name.partition(".")
    if sku not in SKUS:
        raise DerivedError(f"no accelerator {sku!r} in supply.manufacturing{_near(sku, SKUS)}")
    if key not in DERIVED_FIELDS:
        raise DerivedError(f"no derived field {key!r}{_near(key, DERIVED_FIELDS)}")
    read, unit, traced = DERIVED_FIELDS[key]
    fixed = key in _FIXED
    asked = tuple(days[:1]) * len(days) if fixed else tuple(min(day, _last_day(facts)) for day in days)
    central = product(sku, asked[0], facts)
    ids = tuple(dict.fromkeys(f for field in traced for f in _traced(central, field)))
    moved = tuple(i for i in ids if i in facts.series_ids)
    columns = {
        which: tuple(float(read(_product(sku, day, facts, moved if which != "value" else (), which))) for day in asked)
        for which in (("value", "low", "high") if moved and not fixed else ("value",))
    }
    ends = (
        [tuple(f(*triple) for triple in zip(*columns.values(), strict=True)) for f in (min, max)]
        if len(columns) > 1
        else []
    )
    low, high = ends or (columns["value"], columns["value"])
    return DerivedFigure(columns["value"], low, high, unit, ids, f"derived {moved[0] if moved else name}")


def _traced(item: Product, key: str) -> tuple[str, ...]:
    die = f"dies.{item.dies[0].name}.{key}"
    return tuple(item.trace.get(die, item.trace.get(key, ())))


@lru_cache(maxsize=8192)
def _product(sku: str, day: date, facts: Catalog, series: tuple[str, ...], which: str) -> Product:
    """The product with some series at their low or high column, so that derived ranges follow from sourced ranges."""
    return product(sku, day, _shifted(facts, series, which) if series else facts)


@lru_cache(maxsize=8)
def _last_day(facts: Catalog) -> date:
    """The last day that any series covers; figures are held after it."""
    return max(span(facts.series(name).points[-1].period)[1] for name in facts.series_ids)


@lru_cache(maxsize=64)
def _shifted(facts: Catalog, names: tuple[str, ...], which: str) -> Catalog:
    series = {name: facts.series(name) for name in facts.series_ids}
    for name in names:
        series[name] = Series(name, tuple(replace(p, value=getattr(p, which)) for p in series[name].points))
    return Catalog(list(facts), series.values())


def _near(word: str, options: Any) -> str:
    near = difflib.get_close_matches(word, list(options), n=3)
    return f"; did you mean {' or '.join(near)}?" if near else f"; choose one of {', '.join(options)}"
