"""Numbers with units to the measure of a field: which units it accepts, and the conversion to the units used inside.

Inside: counts in the unit word of the material or resource, flows per period, MW, kW, USD, hours, durations in periods.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from supply.facts.units import expression, registry
from supply.network import Horizon

__all__ = [
    "Measure",
    "UnitError",
    "declare_unit",
    "describe",
    "known_unit",
    "natural",
    "numerator",
    "target",
    "to_measure",
    "wanted",
]

_SECONDS_PER_YEAR = 365.25 * 86400.0
_SECONDS_PER_WEEK = 7 * 86400.0
_PHYSICAL = frozenset(
    [
        "meter",
        "gram",
        "second",
        "ampere",
        "kelvin",
        "mole",
        "candela",
        "radian",
        "bit",
        "USD",
        "EUR",
        "MYR",
        "TWD",
        "FLOP",
        "defect",
    ]
)
#: What a unit is written with. Stranger or longer text, and powers beyond one digit, are refused before the unit
#: library reads them: it would compute `9**9**9`.
_UNIT_TEXT = re.compile(r"[\w %/*^().-]*")
_POWERS = re.compile(r"(?:\*\*|\^)(\s*-?\d(?![\w.*^]))?")
_MOST_POWERS = 4
_LONGEST_UNIT = 80
_POWER = {"gram": 1.0, "meter": 2.0, "second": -3.0}


class UnitError(ValueError):
    """A unit that a field does not accept."""


@dataclass(frozen=True, slots=True)
class Measure:
    """The measure of one field (see `scenarios.schema.Spec`) and the unit word of what it counts (empty: any)."""

    kind: str
    word: str = ""

    @property
    def label(self) -> str:
        """The unit of the resolved values, as printed."""
        word = self.word or "unit"
        return {
            "fraction": "fraction",
            "survival": "fraction/period",
            "ratio": "ratio",
            "periods": "period",
            "years": "year",
            "quantity": word,
            "flow": f"{word}/period",
            "capacity": word if word == "MW" else f"{word}/period",
            "money": "USD",
            "capex": "USD",
            "price": f"USD/{word}",
            "money_per_period": "USD/period",
            "power": "kW",
            "usd_per_hour": "USD/accelerator/hour",
            "rate": "1/year",
            "own": self.word,
        }[self.kind]


@lru_cache(maxsize=2048)
def _root(unit: str) -> tuple[float, tuple[tuple[str, float], ...]]:
    powers = _POWERS.findall(unit)
    if len(unit) > _LONGEST_UNIT or not _UNIT_TEXT.fullmatch(unit) or len(powers) > _MOST_POWERS or not all(powers):
        raise UnitError(f"{unit[:40]!r} is not a unit: units are words such as wafer, die/quarter, USD/wafer")
    reg = registry()
    try:
        parsed = reg.Quantity(1.0, "dimensionless") * reg.parse_expression(expression(unit))
        rooted = parsed.to_root_units()
        if not 0.0 < float(rooted.magnitude) < float("inf"):
            raise ValueError("its size is not a number above zero")
    except Exception as exc:  # pint and the tokenizer below it raise a dozen unrelated types on a bad expression
        raise UnitError(
            f"unknown unit {unit!r} ({exc}); units are words such as wafer, die/quarter, USD/wafer"
        ) from exc
    names = tuple(sorted((str(name), float(power)) for name, power in rooted.units._units.items()))
    return float(rooted.magnitude), names


def known_unit(word: str) -> bool:
    """Whether a unit word parses.

    >>> known_unit("wafer"), known_unit("no_such_unit")
    (True, False)
    """
    try:
        _root(word)
    except UnitError:
        return False
    return True


def declare_unit(word: str) -> None:
    """Make a material's unit word a counting unit when it is not a unit yet (`lot`, `tray`).

    Raises:
        UnitError: when the word cannot be a unit (spaces, digits in front).
    """
    if known_unit(word):
        return
    if not word.isidentifier():
        raise UnitError(f"{word!r} cannot be a unit: use one word of letters, digits and _")
    registry().define(f"{word} = [{word}]")
    _root.cache_clear()


def numerator(unit: str) -> str:
    """The unit word of a capacity: `wafers/month` counts wafer, `GW` is MW, a plain number counts nothing.

    >>> numerator("wafers/month"), numerator("GW"), numerator("")
    ('wafer', 'MW', '')
    """
    if not unit:
        return ""
    names = dict(_root(unit)[1])
    if names == _POWER:
        return "MW"
    reg = registry()
    parsed = reg.Quantity(1.0, "dimensionless") * reg.parse_expression(expression(unit))
    time = reg.Quantity(1.0, "second").dimensionality
    kept = {n: p for n, p in parsed.units._units.items() if reg.Quantity(1.0, n).dimensionality != time}
    return " * ".join(f"{n}**{p:g}" if p != 1 else n for n, p in kept.items())


def to_measure(magnitude: float, unit: str, measure: Measure, horizon: Horizon) -> float:
    """Convert a number in a unit to the unit used inside for a measure; a plain number is taken as it is.

    >>> h = Horizon("2026-Q1", 1)
    >>> to_measure(15000, "die/quarter", Measure("flow", "die"), h)
    15000.0
    >>> to_measure(13, "week", Measure("periods"), h)
    1.0

    Raises:
        UnitError: when the field does not accept the unit; the message says which it accepts.
    """
    if not unit:
        return _plain(magnitude, measure, horizon)
    factor, root = _root(unit)
    names = dict(root)
    if not names:
        return _plain(magnitude * factor, measure, horizon)
    if measure.kind == "periods" and names == {"second": 1}:
        return _round(magnitude * _periods(factor, unit, horizon))
    per_period = _SECONDS_PER_YEAR * horizon.years
    scaled = _convert(factor, names, measure, per_period)
    if scaled is None:
        raise UnitError(f"{unit!r} does not fit: the field is {wanted(measure)}")
    return float(_round(magnitude * scaled))


def _periods(seconds: float, unit: str, horizon: Horizon) -> float:
    """Periods in a duration; a quarter is 13 weeks, so that a lead time of 13 weeks is exactly one period."""
    calendar = any(word in unit for word in ("quarter", "month", "year"))
    per_period = _SECONDS_PER_YEAR * horizon.years if calendar else _SECONDS_PER_WEEK * horizon.weeks
    return seconds / per_period


def _round(value: float) -> float:
    """Drop the last bits that unit factors leave, so that 15000 die/quarter is 15000."""
    return float(f"{value:.14g}")


def _plain(magnitude: float, measure: Measure, horizon: Horizon) -> float:
    if measure.kind == "survival":
        return float(magnitude ** (horizon.months / 3.0)) if magnitude > 0 else magnitude
    return float(magnitude)


def _convert(factor: float, names: Mapping[str, float], measure: Measure, period_s: float) -> float | None:
    """Factor from the source unit to the inner unit of a measure, or None when the unit does not fit."""
    kind = measure.kind
    if kind == "own":
        return 1.0
    if kind == "years":
        return factor / _SECONDS_PER_YEAR if names == {"second": 1} else None
    if kind == "rate":
        return factor * _SECONDS_PER_YEAR if names == {"second": -1} else None
    if kind == "power" or measure.word == "MW":
        return factor / _root("kW" if kind == "power" else "MW")[0] if _strip_count(names, _POWER) else None
    if kind == "usd_per_hour":
        return factor * 3600.0 if _strip_count(names, {"USD": 1, "second": -1}) else None
    if kind == "price":
        unit_factor, unit_names = _word(measure.word)
        target = {"USD": 1.0} | {n: -p for n, p in unit_names.items()}
        if measure.word and names != target:
            return factor if names == {"USD": 1} else None
        return factor * unit_factor if _strip_count(names, target) or not measure.word else None
    if kind in ("money", "money_per_period", "capex"):
        if kind == "capex" and names.get("second") == 1:
            names, factor = {n: p for n, p in names.items() if n != "second"}, factor / period_s
        if kind == "money_per_period" and names.get("second") == -1:
            names, factor = {n: p for n, p in names.items() if n != "second"}, factor * period_s
        return _money(factor, names, measure.word)
    return _counted(factor, names, measure, period_s)


def _money(factor: float, names: Mapping[str, float], word: str) -> float | None:
    if _strip_count(names, {"USD": 1}):
        return factor
    unit_factor, unit_names = _word(word)
    fits = word and names == {"USD": 1.0} | {n: -p for n, p in unit_names.items()}
    return factor * unit_factor if fits else None


def _counted(factor: float, names: Mapping[str, float], measure: Measure, period_s: float) -> float | None:
    flow = measure.kind in ("flow", "capacity")
    if flow:
        if names.get("second") != -1:
            return None
        names, factor = {n: p for n, p in names.items() if n != "second"}, factor * period_s
    if measure.kind not in ("flow", "capacity", "quantity"):
        return None
    if not measure.word:
        return factor if not any(n == "second" for n in names) else None
    unit_factor, unit_names = _word(measure.word)
    return factor / unit_factor if _strip_count(names, unit_names) else None


def _word(word: str) -> tuple[float, dict[str, float]]:
    factor, root = _root(word) if word else (1.0, ())
    return factor, dict(root)


def _strip_count(names: Mapping[str, float], target: Mapping[str, float]) -> bool:
    """Whether a unit is the target, or the target per one counted thing (8 stack/package: per unit started)."""
    rest = {n: names.get(n, 0.0) - target.get(n, 0.0) for n in set(names) | set(target)}
    rest = {n: p for n, p in rest.items() if p}
    return not rest or (len(rest) == 1 and all(p == -1 and n not in _PHYSICAL for n, p in rest.items()))


def natural(unit: str) -> tuple[float, dict[str, float]]:
    """Factor to root units and the root unit names of a unit, counts (wafer, die, package ...) dropped.

    Arithmetic works on these: 15,000 wafers a month times a share is a rate, dollars over dies per wafer are dollars.

    >>> natural("USD/wafer")
    (1.0, {'USD': 1.0})
    """
    if not unit:
        return 1.0, {}
    factor, root = _root(unit)
    return factor, {name: power for name, power in root if name in _PHYSICAL}


def target(measure: Measure, horizon: Horizon) -> list[tuple[float, dict[str, float]]]:
    """What an arithmetic result may be to fit a field: (inner unit in root units, root unit names), counts dropped."""
    period_s = _SECONDS_PER_YEAR * horizon.years
    kind = measure.kind
    word_factor, word = natural(measure.word)
    if kind in ("capacity", "flow"):
        if measure.word == "MW":
            return [(word_factor, word)]
        flow = {**word, "second": word.get("second", 0.0) - 1.0}
        return [(word_factor / period_s, flow), (word_factor, word)]
    if kind == "periods":
        return [(period_s, {"second": 1.0}), (1.0, {})]
    if kind == "money_per_period":
        return [(1.0 / period_s, {"USD": 1.0, "second": -1.0}), (1.0, {"USD": 1.0})]
    inner = {
        "quantity": (word_factor, word),
        "own": (word_factor, word),
        "money": (1.0, {"USD": 1.0}),
        "capex": (1.0, {"USD": 1.0}),
        "price": (1.0 / word_factor, {"USD": 1.0} | {n: -p for n, p in word.items()}),
        "power": (_root("kW")[0], dict(_root("kW")[1])),
        "usd_per_hour": (1.0 / 3600.0, {"USD": 1.0, "second": -1.0}),
        "rate": (1.0 / _SECONDS_PER_YEAR, {"second": -1.0}),
        "years": (_SECONDS_PER_YEAR, {"second": 1.0}),
    }
    return [inner.get(kind, (1.0, {}))]


def describe(names: Mapping[str, float]) -> str:
    """Root unit names as text, e.g. USD/second."""
    over = [n if p == 1 else f"{n}^{p:g}" for n, p in names.items() if p > 0]
    under = [n if p == -1 else f"{n}^{-p:g}" for n, p in names.items() if p < 0]
    return "*".join(over or ["1"]) + ("/" + "/".join(under) if under else "")


def wanted(measure: Measure) -> str:
    """What a field accepts, in words."""
    word = measure.word or "what it counts"
    return {
        "fraction": "a fraction without unit",
        "survival": "a share kept per quarter, without unit",
        "ratio": "a ratio without unit",
        "periods": "a duration, e.g. 13 week or 2 quarter",
        "years": "a duration, e.g. 10 year",
        "quantity": f"a quantity in {word}",
        "flow": f"a flow in {word} per time, e.g. {word}/quarter",
        "capacity": "a power, e.g. 500 MW"
        if measure.word == "MW"
        else f"a flow in {word} per time, e.g. {word}/quarter",
        "money": "money in USD per unit",
        "capex": "money in USD per unit of capacity",
        "price": f"a price in USD/{word}",
        "money_per_period": "money in USD per unit and time",
        "power": "power in kW per accelerator",
        "usd_per_hour": "money in USD/accelerator/hour",
        "rate": "a rate per year, e.g. 0.1",
    }[measure.kind]
