"""A dated book of API token prices: model, vendor, tier, context band, hour of day, cache class and lifetime.

Entries come from the facts (`data/facts/api_prices.csv`); what a subject's name or note says about bands, hours, tiers
and end dates is written out in `data/api_price_terms.csv`. A price holds from its date until a later list of the same
model replaces it, or until a stated end. All prices are USD per million tokens.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import lru_cache

__all__ = ["PriceBook", "PriceEntry", "PriceError", "TokenPrices", "price_book"]

Hours = tuple[tuple[float, float], ...]
#: Quantity of a fact -> field of `TokenPrices`.
CLASS_OF_QUANTITY = {
    "price_input": "uncached_input",
    "price_output": "output",
    "price_cached_input": "cache_read",
    "price_cache_write": "cache_write",
    "price_cache_write_1h": "cache_write_1h",
}


class PriceError(ValueError):
    """A price is missing, ambiguous, negative, or a placeholder: nothing may be billed with it."""


@dataclass(frozen=True)
class TokenPrices:
    """USD per million tokens of each billing class; None is 'no price known', which is not 0.

    >>> TokenPrices(3.0, 15.0, 0.3, 3.75, 6.0).scaled(0.5).output
    7.5
    """

    uncached_input: float | None
    output: float | None
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None
    source: str = "given"
    fact_ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in CLASS_OF_QUANTITY.values():
            price = getattr(self, name)
            if price is not None and not 0 <= price < float("inf"):
                raise PriceError(f"{name} price {price} USD per million tokens: prices are finite and not negative")

    def scaled(self, input_factor: float, output_factor: float | None = None) -> TokenPrices:
        """All input classes times one factor, output times another (default: the same)."""
        output_by = input_factor if output_factor is None else output_factor
        return replace(
            self,
            uncached_input=_times(self.uncached_input, input_factor),
            output=_times(self.output, output_by),
            cache_read=_times(self.cache_read, input_factor),
            cache_write=_times(self.cache_write, input_factor),
            cache_write_1h=_times(self.cache_write_1h, input_factor),
        )


def _times(price: float | None, factor: float) -> float | None:
    return None if price is None else price * factor


@dataclass(frozen=True)
class PriceEntry:
    """One line of the book.

    `hours`: UTC windows as (start, end) hours, empty for any time; `other_hours`: the entry holds outside all windows
    of its siblings. `prompt_above` < prompt tokens <= `prompt_up_to` is the context band; the whole prompt and its
    output are priced in that band, not only the part above its edge.
    """

    model: str
    vendor: str
    prices: TokenPrices
    valid_from: date
    valid_until: date | None = None
    tier: str = "standard"
    prompt_above: float = 0
    prompt_up_to: float = float("inf")
    hours: Hours = ()
    weekdays_only: bool = False
    other_hours: bool = False

    def holds(self, when: datetime) -> bool:
        """True when the entry's hours and weekdays admit the moment (sibling windows are the book's business)."""
        if not self.hours:
            return True
        if self.weekdays_only and when.weekday() >= 5:
            return False
        hour = when.hour + when.minute / 60
        return any(a <= hour < b if a < b else hour >= a or hour < b for a, b in self.hours)


@dataclass(frozen=True)
class PriceBook:
    """Entries, the spellings that name a model, and the tier multiples of vendors."""

    entries: tuple[PriceEntry, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)
    multiples: Mapping[tuple[str, str], tuple[float, str]] = field(default_factory=dict)

    @property
    def models(self) -> list[str]:
        """Model ids in the book, sorted."""
        return sorted({e.model for e in self.entries})

    def prices(
        self,
        model: str,
        on: date | datetime,
        vendor: str | None = None,
        tier: str = "standard",
        prompt_tokens: float = 0,
    ) -> TokenPrices:
        """The prices in force for one call.

        `on` is a date, or a UTC datetime where the price depends on the hour. `prompt_tokens` is the whole prompt,
        cached part included.

        Raises:
            PriceError: unknown model (the nearest ids are offered), vendor or tier; no list yet on that date; the list
                has ended; prompt longer than any listed band; or the price depends on an hour that was not given.

        >>> price_book().prices("claude-sonnet-5", date(2026, 8, 1)).uncached_input
        2.0
        >>> price_book().prices("claude-sonnet-5", date(2026, 10, 1)).uncached_input
        3.0
        >>> price_book().prices("gpt-6-astra", date(2026, 10, 1), prompt_tokens=300_000).output
        75.0
        """
        pool = self._of_model(model, vendor)
        own = [e for e in pool if e.tier == tier]
        multiple = 1.0
        if not own:
            multiple, fact_id = self._multiple(pool, tier)
            own = [replace(e, prices=_with_fact(e.prices, fact_id)) for e in pool if e.tier == "standard"]
        day = on.date() if isinstance(on, datetime) else on
        dated = [e for e in own if e.valid_from <= day]
        if not dated:
            first = min(e.valid_from for e in own)
            raise PriceError(f"no price of {model} on {day}: the first list on record is of {first}")
        entry = _in_hours(_in_band(dated, prompt_tokens, model), on, model)
        if entry.valid_until is not None and day > entry.valid_until:
            raise PriceError(
                f"the last price of {model} was announced to end on {entry.valid_until} and no later list is on record "
                f"for {day}: add the new price to the facts"
            )
        return entry.prices.scaled(multiple)

    def _of_model(self, model: str, vendor: str | None) -> list[PriceEntry]:
        name = self.aliases.get(model, model)
        pool = [e for e in self.entries if e.model == name]
        if not pool:
            near = difflib.get_close_matches(model, {*self.models, *self.aliases}, n=3, cutoff=0.6)
            hint = f": did you mean {', '.join(near)}?" if near else ""
            raise PriceError(f"no price of model {model!r} in the book{hint} Nothing is billed at zero or at a default")
        vendors = sorted({e.vendor for e in pool})
        if vendor is None and len(vendors) > 1:
            raise PriceError(f"{model} is sold by {', '.join(vendors)}: name the vendor")
        if vendor is not None:
            pool = [e for e in pool if e.vendor.lower() == vendor.lower()]
            if not pool:
                raise PriceError(f"no price of {model} from {vendor!r}: the book has {', '.join(vendors)}")
        return pool

    def _multiple(self, pool: Sequence[PriceEntry], tier: str) -> tuple[float, str]:
        vendor = pool[0].vendor.lower()
        if (vendor, tier) not in self.multiples:
            known = sorted({e.tier for e in pool} | {t for v, t in self.multiples if v == vendor})
            raise PriceError(f"no {tier!r} tier of {pool[0].model} from {vendor}: the book has {', '.join(known)}")
        return self.multiples[vendor, tier]


def _with_fact(prices: TokenPrices, fact_id: str) -> TokenPrices:
    return replace(prices, fact_ids=(*prices.fact_ids, fact_id))


def _in_band(entries: Sequence[PriceEntry], prompt_tokens: float, model: str) -> list[PriceEntry]:
    """Entries whose context band holds the prompt; a band stated above a limit beats the list without bands."""
    fit = [
        e for e in entries if e.prompt_above < prompt_tokens <= e.prompt_up_to or prompt_tokens == e.prompt_above == 0
    ]
    if not fit:
        top = max(e.prompt_up_to for e in entries)
        raise PriceError(f"{prompt_tokens:g} prompt tokens exceed the largest priced band of {model} ({top:g} tokens)")
    edge = max(e.prompt_above for e in fit)
    return [e for e in fit if e.prompt_above == edge]


def _in_hours(entries: Sequence[PriceEntry], on: date | datetime, model: str) -> PriceEntry:
    """The newest list's entry for the hour."""
    newest = max(e.valid_from for e in entries)
    latest = [e for e in entries if e.valid_from == newest]
    timed = any(e.hours or e.other_hours for e in latest)
    if not timed:
        return latest[-1]
    if not isinstance(on, datetime):
        raise PriceError(f"the price of {model} depends on the hour: give a UTC datetime instead of {on}")
    inside = [e for e in entries if e.hours and e.holds(on)]
    outside = [e for e in entries if e.other_hours]
    pick = inside or outside
    if not pick:
        raise PriceError(f"no list of {model} covers {on:%H:%M} UTC on {on:%A}")
    return max(pick, key=lambda e: e.valid_from)


@lru_cache(maxsize=1)
def price_book() -> PriceBook:
    """The book of all shipped price facts.

    Raises:
        PriceError: when a fact is a placeholder, or two lists of one day disagree.
    """
    from econ.price_list import shipped_book

    return shipped_book()
