"""Units: the strings found in the facts, their pint expressions, and conversion.

pint is imported only when a unit is checked or converted, so that plain look-ups stay fast.
"""

from __future__ import annotations

import csv
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from supply.facts.record import FactError
from supply.paths import data_file

if TYPE_CHECKING:
    from pint import UnitRegistry

__all__ = ["ATTRIBUTE_UNITS", "aliases", "convert", "expression", "multiplier", "registry"]

ATTRIBUTE_UNITS = frozenset({"date", "name", "flag"})


@lru_cache(maxsize=1)
def aliases() -> dict[str, str]:
    """The alias table `data/unit_aliases.csv`: unit string of a source -> pint expression."""
    with data_file("unit_aliases.csv").open(encoding="utf-8", newline="") as handle:
        return {row["unit"]: row["expression"] for row in csv.DictReader(handle)}


@lru_cache(maxsize=1)
def registry() -> UnitRegistry[Any]:
    """The pint registry with the units of `data/units.txt`."""
    import pint

    reg: UnitRegistry[Any] = pint.UnitRegistry(None, autoconvert_offset_to_baseunit=False)
    reg.load_definitions(Path(pint.__file__).with_name("default_en.txt"))
    reg.load_definitions(str(data_file("units.txt")))
    reg._build_cache()  # once, with both files: pint resolves `quarter` to its own mass unit otherwise
    return reg


def expression(unit: str) -> str:
    """The pint expression of a unit string; a string that is not in the alias table stands for itself."""
    return aliases().get(unit, unit)


@lru_cache(maxsize=4096)
def multiplier(unit: str, target: str) -> float:
    """Factor f with value[target] = f * value[unit].

    >>> multiplier("wafers/month", "wafer/year")
    12.0

    Raises:
        FactError: when a unit is unknown or the dimensions differ; the message names both.
    """
    import pint

    reg = registry()
    try:
        return float(
            reg.parse_expression(expression(unit)).to(reg.parse_expression(expression(target)).units).magnitude
            / reg.parse_expression(expression(target)).magnitude
        )
    except AttributeError:  # a bare number such as `1e9` parses to a float
        return float(reg.Quantity(expression(unit)).to_base_units().magnitude)
    except pint.UndefinedUnitError as exc:
        raise FactError(f"unknown unit in {unit!r} or {target!r}: {exc}; units are listed in data/units.txt") from exc
    except pint.DimensionalityError as exc:
        raise FactError(f"{unit!r} cannot be converted to {target!r}: {exc}") from exc


def convert(value: float, unit: str, target: str, where: str = "value") -> float:
    """Convert a number between units, e.g. `convert(1, "GB", "gigabit")` is 8.0.

    Raises:
        FactError: as `multiplier`, with `where` in front.
    """
    try:
        return value * multiplier(unit, target)
    except FactError as exc:
        raise FactError(f"{where}: {exc}") from exc
