"""The facts as they stood on a day: rows known before it, and marked stand-ins for what a scenario needs beside them.

A row passes when its `known_on` lies before the origin; where the date rule had to guess, a year before. Unit counts of
shipments and everything derived from them never pass, whatever their date. What is then missing is filled by rules:

1. A series with known points is continued: capacities (wafers, racks, power) by their mean change over the last four
   known quarters, for as many quarters as the known points span and at most eight; everything else is held. The band
   grows by 3 % (capacities) or 1 % (the rest) of the value a quarter.
2. CoWoS capacity takes the forecasts of the time: the mean of those made in the newest month for each target quarter,
   with the band from the lowest to the highest forecast of the last twelve months.
3. A series or fact without a known row is taken from `data/backtest/assumptions.csv`, a table of illustrative numbers
   that stands apart from the facts, so that no later row can reach a run through it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache

from supply.facts import Catalog, Fact, Series, catalog
from supply.facts.dating import span
from supply.facts.record import SeriesPoint
from supply.paths import data_file

__all__ = ["AsOfError", "StandIn", "as_of_catalog", "is_outcome", "known_catalog"]

#: Ids of unit counts, fleets and site counts that rest on what was shipped or is dated by a later look back.
OUTCOME = re.compile(
    r"shipments(?!_kuo)|shipped|_cumulative_|_named_(ai_)?sites|ai_power_(sites|energised)|installed_ai"
)
#: Units whose series are continued by their growth; all others are held.
GROWING = frozenset({"wafers/month", "wafers/year", "racks/quarter", "GW", "MW"})
GUESS_MARGIN = timedelta(days=365)
VINTAGE, COWOS = "tsmc_cowos_capacity_vintage", "tsmc_cowos_capacity"
LAST = 2029 * 4
GROWTH_BAND, HELD_BAND = 0.03, 0.01


class AsOfError(ValueError):
    """A malformed row of the assumptions of a backtest."""


@dataclass(frozen=True, slots=True)
class StandIn:
    """An illustrative number for what was not known. `basis`: continued, vintage, then, announced, later, inert."""

    id: str
    period: str
    value: float
    low: float
    high: float
    unit: str
    basis: str
    note: str


def is_outcome(row: Fact | Series) -> bool:
    """Whether a fact or series counts what was shipped, or derives from it; such rows only score a backtest.

    >>> is_outcome(catalog().series("shipments_nvidia_b200")), is_outcome(catalog().series("tsmc_n5_capacity"))
    (True, False)
    """
    if isinstance(row, Series):
        return row.outcome_derived or bool(OUTCOME.search(row.id))
    return bool(OUTCOME.search(row.id)) or "epoch" in f"{row.source} {row.origin}".lower()


def known_catalog(origin: date, cat: Catalog | None = None) -> Catalog:
    """Only what was known before a day: facts and series points, outcomes left out.

    >>> known_catalog(date(2024, 1, 1)).series("tsmc_cowos_capacity").points[-1].period
    '2023-Q2'
    """
    cat = catalog() if cat is None else cat
    facts = [f for f in cat if _known(f, origin) and not is_outcome(f)]
    series = []
    for name in cat.series_ids:
        whole = cat.series(name)
        kept = tuple(p for p in whole.points if p.known_on < origin)
        if kept and not is_outcome(whole):
            series.append(Series(name, kept))
    return Catalog(facts, series)


def _known(fact: Fact, origin: date) -> bool:
    margin = GUESS_MARGIN if fact.date_rule.endswith("?") else timedelta(0)
    return fact.known_on + margin < origin


def as_of_catalog(origin: date, cat: Catalog | None = None) -> tuple[Catalog, list[StandIn]]:
    """The catalogue of a backtest, and every stand-in in it.

    Raises:
        AsOfError: when the table of assumptions is malformed.
    """
    known = known_catalog(origin, cat)
    table = _assumptions()
    made: list[StandIn] = []
    facts = {f.id: f for f in known}
    series = {name: known.series(name) for name in known.series_ids}
    for row in (r for r in table if r["origin"] in ("any", origin.isoformat())):
        name = row["id"]
        points = list(_points(row))
        if points[0][0] == "":
            if name not in facts:
                made.append(_stand_in(row, "", points[0][1]))
                facts[name] = _fact(made[-1], origin)
        elif name not in series or row["basis"] == "then":
            old = series[name].points if name in series else ()
            after = old[-1].period if old else ""
            new = [_stand_in(row, period, value) for period, value in points if period > after]
            made += new
            series[name] = Series(name, (*old, *(_point(s, origin) for s in new)))
    if VINTAGE in series and COWOS in series:
        new = list(_vintage(series[VINTAGE], series[COWOS].points[-1].period, origin))
        made += new
        series[COWOS] = Series(COWOS, (*series[COWOS].points, *(_point(s, origin) for s in new)))
    series.pop(VINTAGE, None)
    for name, old_series in series.items():
        new = list(_continued(old_series))
        made += new
        series[name] = Series(name, (*old_series.points, *(_point(s, origin) for s in new)))
    return Catalog(facts.values(), series.values()), made


# ---- rule 1
def _number(period: str) -> int:
    return int(period[:4]) * 4 + int(period[-1]) - 1


def _label(number: int) -> str:
    return f"{number // 4}-Q{number % 4 + 1}"


def _continued(series: Series) -> Iterator[StandIn]:
    last = series.points[-1]
    if not re.fullmatch(r"\d{4}-Q[1-4]", last.period):
        return
    end = _number(last.period)
    back = [p for p in series.points if end - 4 <= _number(p.period)]
    growing = series.unit in GROWING and len(series.points) > 1
    span_quarters = end - _number(back[0].period)
    change = (last.value - back[0].value) / span_quarters if growing and span_quarters else 0.0
    reach = min(8, end - _number(series.points[0].period))
    rate = GROWTH_BAND if growing else HELD_BAND
    for number in range(end + 1, LAST):
        ahead = number - end
        value = max(0.0, last.value + change * min(ahead, reach))
        scale = value / last.value if last.value else 1.0
        low = max(0.0, last.low * scale - rate * ahead * value)
        high = last.high * scale + rate * ahead * value
        if series.unit == "fraction":
            high = max(value, min(high, 1.0))
        note = f"continued from {last.period}" if growing else f"held from {last.period}"
        yield StandIn(series.id, _label(number), value, low, high, series.unit, "continued", note)


# ---- rule 2
def _vintage(forecasts: Series, after: str, origin: date) -> Iterator[StandIn]:
    """Forecasts of the time by target quarter, with linear steps between targets."""
    year_ago = origin - timedelta(days=366)
    for target in sorted({p.period for p in forecasts.points if p.period > after}):
        made = [p for p in forecasts.points if p.period == target and p.known_on >= year_ago]
        if not made:
            continue
        newest = max(p.known_on for p in made)
        value = sum(v := [p.value for p in made if p.known_on == newest]) / len(v)
        low, high = min(p.low for p in made), max(p.high for p in made)
        note = f"forecast of {newest:%Y-%m}; band over {len(made)} forecasts of the last twelve months"
        yield StandIn(COWOS, target, value, low, high, forecasts.unit, "vintage", note)


# ---- rule 3
@cache
def _assumptions() -> tuple[dict[str, str], ...]:
    path = data_file("backtest", "assumptions.csv")
    with path.open(encoding="utf-8", newline="") as handle:
        rows = tuple(csv.DictReader(handle))
    seen: set[tuple[str, str]] = set()
    for number, row in enumerate(rows, start=2):
        key = (row["origin"], row["id"])
        if key in seen or ("any", row["id"]) in seen or not row["note"]:
            raise AsOfError(f"assumptions.csv:{number}: {row['id']}: one row an origin, each with a note")
        seen.add(key)
    return rows


def _points(row: dict[str, str]) -> Iterator[tuple[str, float]]:
    for part in row["points"].split():
        period, _, value = part.rpartition("=")
        yield period, float(value)


def _stand_in(row: dict[str, str], period: str, value: float) -> StandIn:
    low, high = value * float(row["low_factor"]), value * float(row["high_factor"])
    if row["unit"] == "fraction":
        high = max(value, min(high, 1.0))
    return StandIn(row["id"], period, value, low, high, row["unit"], row["basis"], row["note"])


def _fact(s: StandIn, origin: date) -> Fact:
    day = origin - timedelta(days=1)
    low, high = (s.low, s.high) if s.low < s.high else (None, None)
    source = "assumption of the backtest"
    dates = (day, day, day)
    return Fact(
        s.id, "", "", s.value, low, high, s.unit, "", *dates, "stand-in", "illustrative", source, "", "", s.note, ""
    )


def _point(s: StandIn, origin: date) -> SeriesPoint:
    day = origin - timedelta(days=1)
    return SeriesPoint(
        f"{s.id}@{s.period}",
        s.id,
        "",
        "",
        s.period,
        s.value,
        s.low,
        s.high,
        s.unit,
        "illustrative",
        day,
        (),
        s.note,
        False,
    )


def widened(point: SeriesPoint, share: float) -> SeriesPoint:
    """A point with its band moved out by a share of the value."""
    step = abs(point.value) * share
    return replace(point, low=point.low - step, high=point.high + step)


def quarters(first: str, count: int) -> list[str]:
    """Labels of quarters from one on.

    >>> quarters("2024-Q4", 2)
    ['2024-Q4', '2025-Q1']
    """
    return [_label(_number(first) + k) for k in range(count)]


def quarter_of(day: date) -> str:
    """The quarter that holds a day.

    >>> quarter_of(date(2025, 1, 1))
    '2025-Q1'
    """
    return f"{day.year}-Q{(day.month - 1) // 3 + 1}"


def quarter_end(period: str) -> date:
    """Last day of a quarter."""
    return span(period)[1]
