"""From price facts and the table of terms to the entries of a price book."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date

from econ.price_book import CLASS_OF_QUANTITY, PriceBook, PriceEntry, PriceError, TokenPrices
from supply.facts import Fact, catalog
from supply.paths import data_file

__all__ = ["build", "shipped_book"]

#: Vendor and tier -> fact that holds the multiple of the standard price (a discount d is the multiple 1 - d).
_TIER_FACTS = {
    ("anthropic", "batch"): "anthropic_batch_api_batch_discount_2026_11",
    ("openai", "batch"): "openai_batch_and_flex_batch_discount_2026_10",
    ("openai", "flex"): "openai_batch_and_flex_batch_discount_2026_10",
    ("openai", "fast"): "openai_fast_tier_price_multiple_2026_10",
    ("google", "priority"): "gemini_priority_tier_price_multiple_2026_11",
}


def shipped_book() -> PriceBook:
    """The book of all shipped price facts (read once by `price_book.price_book`)."""
    facts = [f for f in catalog() if f.quantity in CLASS_OF_QUANTITY and f.file == "api_prices.csv"]
    multiples = {key: _tier_multiple(catalog()[fact_id]) for key, fact_id in _TIER_FACTS.items()}
    with data_file("api_price_terms.csv").open(encoding="utf-8", newline="") as handle:
        terms = list(csv.DictReader(handle))
    return build(facts, terms, multiples)


def _tier_multiple(fact: Fact) -> tuple[float, str]:
    return (1 - fact.number if fact.quantity == "batch_discount" else fact.number), fact.id


def build(
    facts: Iterable[Fact],
    terms: Sequence[Mapping[str, str]] = (),
    multiples: Mapping[tuple[str, str], tuple[float, str]] | None = None,
) -> PriceBook:
    """A book from price facts and the table of terms.

    Raises:
        PriceError: when a fact is a placeholder, a subject is not `model (vendor)`, or two lists of one day disagree.
    """
    groups: dict[tuple[str, date], list[Fact]] = {}
    for fact in facts:
        if fact.kind == "placeholder":
            raise PriceError(f"price {fact.id} is a placeholder: find a source, or leave the model out of the book")
        groups.setdefault((fact.subject, fact.valid_from), []).append(fact)
    entries: list[PriceEntry] = []
    aliases: dict[str, str] = {}
    for (subject, day), group in groups.items():
        match = re.fullmatch(r"(.+) \(([^()]+)\)", subject)
        if not match:
            raise PriceError(f"price subject {subject!r} is not written as 'model (vendor)'")
        rows = [t for t in terms if t["subject"] == subject and t["valid_from"] in ("", day.isoformat())]
        dated = [t for t in rows if t["valid_from"]]
        for term in _combine(rows, dated) or [{"model": match[1]}]:
            entries.append(_entry(term, match[2], day, group))
            scope = ("prompt_above", "prompt_up_to", "utc_hours")
            if term["model"] != match[1] and term["tier"] == "standard" and not any(term.get(k) for k in scope):
                aliases[match[1]] = term["model"]
    return PriceBook(tuple(_merge(entries)), aliases, multiples or {})


def _combine(rows: list[Mapping[str, str]], dated: list[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Terms of one list: dated terms replace undated ones of the same band and hours."""
    keys = {(t["tier"], t["prompt_above"], t["utc_hours"]) for t in dated}
    return dated + [
        t for t in rows if not t["valid_from"] and (t["tier"], t["prompt_above"], t["utc_hours"]) not in keys
    ]


def _entry(term: Mapping[str, str], vendor: str, day: date, group: Sequence[Fact]) -> PriceEntry:
    values = {CLASS_OF_QUANTITY[f.quantity]: f.number for f in group}
    prices = TokenPrices(
        values.get("uncached_input"),
        values.get("output"),
        values.get("cache_read"),
        values.get("cache_write"),
        values.get("cache_write_1h"),
        group[0].source,
        tuple(f.id for f in group),
    )
    if term.get("factor_input"):
        prices = prices.scaled(float(term["factor_input"]), float(term["factor_output"]))
    hours = term.get("utc_hours") or ""
    return PriceEntry(
        term["model"],
        vendor,
        prices,
        day,
        date.fromisoformat(term["valid_until"]) if term.get("valid_until") else None,
        term.get("tier") or "standard",
        float(term.get("prompt_above") or 0),
        float(term.get("prompt_up_to") or "inf"),
        () if hours == "other" else tuple(_window(w) for w in hours.split()),
        bool(term.get("weekdays")),
        hours == "other",
    )


def _window(text: str) -> tuple[float, float]:
    start, end = (int(t[:2]) + int(t[3:]) / 60 for t in text.split("-"))
    return start, end


def _merge(entries: Iterable[PriceEntry]) -> list[PriceEntry]:
    """Join lists of one day and one scope from several sources; a class that both price must agree."""
    merged: dict[tuple[object, ...], PriceEntry] = {}
    for e in entries:
        key = (e.model, e.vendor, e.tier, e.valid_from, e.prompt_above, e.hours, e.other_hours)
        twin = merged.get(key)
        if twin is None:
            merged[key] = e
            continue
        joined = {}
        for name in CLASS_OF_QUANTITY.values():
            a, b = getattr(twin.prices, name), getattr(e.prices, name)
            if a is not None and b is not None and a != b:
                raise PriceError(
                    f"two lists of {e.valid_from} price {name} of {e.model} at {a} and {b}: correct the facts"
                )
            joined[name] = b if a is None else a
        prices = replace(twin.prices, **joined, fact_ids=twin.prices.fact_ids + e.prices.fact_ids)
        merged[key] = replace(twin, prices=prices, valid_until=twin.valid_until or e.valid_until)
    return sorted(merged.values(), key=lambda e: (e.model, e.vendor, e.valid_from))
