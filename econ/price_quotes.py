"""Observed rental prices from facts, by market: list, contract, spot, index and capacity block are never mixed."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from econ.prices import RentalPriceError, price_per_accelerator_hour, spot_discount
from supply.facts import Catalog, Fact, catalog
from supply.input_table import InputTableError, numbered_rows

__all__ = [
    "MARKETS",
    "ObservedPrice",
    "PriceQuote",
    "instance_price_rows",
    "observed_price",
    "price_quotes",
    "price_series",
]

MARKETS = ("list", "contract", "spot", "index", "block")
#: Quantity of a fact -> (market, committed years).
_QUANTITIES: Mapping[str, tuple[str, float]] = {
    "rental_on_demand": ("list", 0.0),
    "listing_average_on_demand": ("list", 0.0),
    "median_listing": ("list", 0.0),
    "rental_level": ("list", 0.0),
    "rental_reserved": ("contract", float("nan")),
    "rental_reserved_from": ("contract", float("nan")),
    "rental_reserved_1y": ("contract", 1.0),
    "rental_reserved_3y": ("contract", 3.0),
    "rental_3y_contract": ("contract", 3.0),
    "rental_spot": ("spot", 0.0),
    "spot_level": ("spot", 0.0),
    "spot_level_range": ("spot", 0.0),
    "index_level": ("index", float("nan")),
    "capacity_block_price_per_instance": ("block", 0.0),
    "capacity_block_price_per_accelerator": ("block", 0.0),
}
#: Accelerators in the unit that the price is per.
_PER = {"USD/GPU-hour": 1, "USD/chip-hour": 1, "USD/accelerator-hour": 1, "USD/superchip-hour": 2, "USD/8-GPU-hour": 8}
_CHIP = re.compile(
    r"(?<![A-Z0-9])(GB300|GB200|GH200|MI300X|MI325X|MI355X|B300|B200|H200|H100|H20|H800|A100|A800|L40S|L40|"
    r"TPU v\d\w?|Trainium\d)(?![0-9])",
    re.IGNORECASE,
)
_FORM = re.compile(r"(SXM|PCIe|NVLink|NVL72|NVL|HGX)", re.IGNORECASE)


@dataclass(frozen=True)
class PriceQuote:
    """One observed price per accelerator-hour; `form` is the form factor, "" where the source does not say."""

    chip: str
    form: str
    market: str
    term_years: float
    usd_per_gpu_hour: float
    on: date
    provider: str
    fact_id: str


@dataclass(frozen=True)
class ObservedPrice:
    """Median of the quotes of one market near a day, with range, count and facts; `on` is the newest quote's day."""

    chip: str
    market: str
    usd_per_gpu_hour: float
    low: float
    high: float
    quotes: int
    on: date
    fact_ids: tuple[str, ...]


def _quote(fact: Fact) -> PriceQuote | None:
    kind = _QUANTITIES.get(fact.quantity)
    chip = _CHIP.search(fact.subject)
    if kind is None or chip is None or fact.unit not in _PER:
        return None
    name, _, provider = fact.subject.partition("@")
    form = _FORM.search(name)
    return PriceQuote(
        chip=chip[1].upper().replace("TPU V", "TPU v"),
        form=form[1].upper().replace("PCIE", "PCIe").replace("NVLINK", "NVLink") if form else "",
        market=kind[0],
        term_years=1.0 if fact.quantity == "index_level" and "1-year" in fact.subject else kind[1],
        usd_per_gpu_hour=price_per_accelerator_hour(fact.number, _PER[fact.unit]),
        on=fact.valid_from,
        provider=provider.strip() or fact.origin,
        fact_id=fact.id,
    )


def _is_placeholder(fact: Fact) -> bool:
    """A number that its own source made up from another one is not an observed price."""
    return fact.kind == "placeholder" or "placeholder:" in fact.note.lower()


@lru_cache(maxsize=4)
def _all_quotes(facts: Catalog) -> tuple[PriceQuote, ...]:
    found = (_quote(f) for f in facts if not isinstance(f.value, str) and not _is_placeholder(f))
    return tuple(sorted((q for q in found if q is not None), key=lambda q: (q.chip, q.market, q.on, q.fact_id)))


def price_quotes(
    chip: str | None = None, market: str | None = None, form: str | None = None, facts: Catalog | None = None
) -> list[PriceQuote]:
    """Quotes of a chip, market and form factor (None: all), oldest first within each.

    >>> {quote.market for quote in price_quotes("MI355X")}
    {'contract'}

    Raises:
        RentalPriceError: when the market is unknown.
    """
    if market is not None and market not in MARKETS:
        raise RentalPriceError(f"market = {market!r}: use one of {', '.join(MARKETS)}")
    wanted = chip.upper().replace("TPU_V", "TPU v").replace("TPU V", "TPU v").replace("_", " ") if chip else None
    return [
        q
        for q in _all_quotes(facts or catalog())
        if (wanted is None or q.chip.upper() == wanted.upper())
        and (market is None or q.market == market)
        and (form is None or q.form == form)
    ]


def price_series(
    chip: str, market: str, *, form: str | None = None, provider: str | None = None, facts: Catalog | None = None
) -> list[PriceQuote]:
    """Dated series of one market, optionally of one provider.

    >>> [round(q.usd_per_gpu_hour, 2) for q in price_series("H100", "index", provider="SemiAnalysis")]
    [1.7, 2.35, 2.65]
    """
    quotes = price_quotes(chip, market, form, facts)
    if provider is None:
        return quotes
    return [q for q in quotes if provider.lower() in (q.provider + q.fact_id).lower()]


def observed_price(
    chip: str,
    market: str,
    *,
    on: date,
    form: str | None = None,
    window_days: int = 365,
    term_years: float | None = None,
    facts: Catalog | None = None,
) -> ObservedPrice:
    """Median quote of a market in the window before a day (the newest quote per provider and region counts).

    `form` is a form factor, "" for quotes that state none; None takes all, and is refused where forms are mixed.

    Raises:
        RentalPriceError: when there is no quote in the window (the message names the markets that have one; a price of
            another market never fills the gap), or quotes of several form factors would be mixed.
    """
    quotes = price_quotes(chip, market, form, facts)
    recent = [
        q
        for q in quotes
        if on - timedelta(days=window_days) <= q.on <= on and (term_years is None or q.term_years == term_years)
    ]
    if not recent:
        others = sorted({q.market for q in price_quotes(chip, None, form, facts)})
        raise RentalPriceError(
            f"no {market} price of {chip!r} in the {window_days} days before {on.isoformat()}; "
            f"markets with quotes at any date: {', '.join(others) or 'none'}"
        )
    stated = sorted({q.form for q in recent} - {""})
    if form is None and len(stated) > 1:
        raise RentalPriceError(
            f"{market} prices of {chip!r} mix form factors {', '.join(stated)}: say which (form={stated[-1]!r}), "
            'or form="" for quotes that state none'
        )
    newest = list({(q.provider, q.form, q.term_years): q for q in recent}.values())
    prices = [q.usd_per_gpu_hour for q in newest]
    return ObservedPrice(
        chip,
        market,
        statistics.median(prices),
        min(prices),
        max(prices),
        len(prices),
        max(q.on for q in newest),
        tuple(q.fact_id for q in newest),
    )


def instance_price_rows(path: Path) -> list[dict[str, Any]]:
    """A price book of instances, per accelerator: columns vendor, accelerator, accelerator_count, price, ...

    Prices are per instance and are divided once by the count. Total memory is count x size of one accelerator, whatever
    the file's own total column says; `total_column_agrees` tells whether it does. Rows without accelerator are dropped.

    Raises:
        RentalPriceError: when a row has an accelerator but no count or price, with its line.
    """
    try:
        header, rows = numbered_rows(path, BOOK_COLUMNS, (*BOOK_COLUMNS, *_OPTIONAL), "price book")
    except InputTableError as problem:
        raise RentalPriceError(str(problem)) from problem
    lacking = [c for c in BOOK_COLUMNS if c not in header]
    if lacking:
        raise RentalPriceError(f"{path.name}: lacks the column(s) {', '.join(lacking)}")
    return [_instance_row(row, path, line) for line, row in rows if row.get("accelerator")]


BOOK_COLUMNS = ("vendor", "accelerator", "accelerator_count", "price")
#: Beyond any price in USD, count or size in MiB.
_MOST = 1e15
_OPTIONAL = ("gpu_memory_mib", "spot_price", "total_gpu_memory_mib")


def _instance_row(row: Mapping[str, str], path: Path, line: int) -> dict[str, Any]:
    try:
        count, price, size, spot, stated = (_cell(row, c) for c in ("accelerator_count", "price", *_OPTIONAL))
        if not count or price is None:
            raise RentalPriceError(f"accelerator {row['accelerator']!r:.80} needs a count and a price")
        hourly = price_per_accelerator_hour(price, count)
        discount = spot_discount(spot, price) if spot is not None else None
    except ValueError as problem:
        raise RentalPriceError(f"{path.name}:{line}: {problem}") from problem
    total = count * size if size is not None else None
    return {
        "vendor": row["vendor"],
        "accelerator": row["accelerator"],
        "count": count,
        "usd_per_gpu_hour": hourly,
        "spot_discount": discount,
        "total_memory_mib": total,
        "total_column_agrees": total is None or (stated is not None and abs(stated - total) < 0.5),
    }


def _cell(row: Mapping[str, str], column: str) -> float | None:
    text = (row.get(column) or "").strip()
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= _MOST:
        raise RentalPriceError(f"{column} = {text!r:.80} is not a number from 0 to {_MOST:g}")
    return number
