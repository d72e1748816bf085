"""API bills: four disjoint token classes times dated prices, call by call, with what else the task pays for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from econ.price_book import PriceBook, PriceError, TokenPrices
from econ.usage import TokenUsage
from supply.facts import Catalog, catalog

__all__ = [
    "Bill",
    "PricedCall",
    "api_bill",
    "average_usd_per_mtoken",
    "bill_calls",
    "bill_usd",
    "escalated_cost_per_request",
    "in_usd_of_year",
    "require_metered",
    "usage_inflation",
]

#: Billing classes in print order.
CLASSES = ("uncached_input", "cache_write", "cache_write_1h", "cache_read", "output")


@dataclass(frozen=True)
class Bill:
    """Spending by class; `total` is their sum plus `other` (tools, search, storage)."""

    by_class: Mapping[str, float]
    other: float
    usage: TokenUsage
    fact_ids: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """USD of the bill."""
        return sum(self.by_class.values()) + self.other

    @property
    def input_total(self) -> float:
        """USD of all prompt classes."""
        return sum(v for k, v in self.by_class.items() if k != "output")

    def __add__(self, other: Bill) -> Bill:
        joined = {name: self.by_class[name] + other.by_class[name] for name in CLASSES}
        ids = tuple(dict.fromkeys(self.fact_ids + other.fact_ids))
        return Bill(joined, self.other + other.other, self.usage + other.usage, ids)


def api_bill(usage: TokenUsage, prices: TokenPrices, other_usd: float = 0.0) -> Bill:
    """Bill of a usage: sum over classes of tokens x price / 1e6, plus `other_usd`.

    Raises:
        PriceError: when a class has tokens and no price (a missing price is never read as zero), or `other_usd` is
            negative.

    >>> usage = TokenUsage(uncached_input=3914, cache_read=16298, output=931)
    >>> round(api_bill(usage, TokenPrices(0.50, 3.00, 0.05)).total, 7)
    0.0055649
    """
    if not 0 <= other_usd < float("inf"):
        raise PriceError(f"other spending is {other_usd} USD: give a finite amount that is not negative")
    by_class: dict[str, float] = {}
    for name in CLASSES:
        tokens, price = getattr(usage, name), getattr(prices, name)
        if tokens and price is None:
            raise PriceError(
                f"{tokens:g} {name} tokens have no price ({prices.source}): add the price, or, where the vendor bills "
                f"this class as ordinary input, move the tokens there. It is not taken as zero"
            )
        by_class[name] = tokens * (price or 0.0) / 1e6
    return Bill(by_class, other_usd, usage, prices.fact_ids)


def bill_usd(
    input_tokens: float,
    output_tokens: float,
    usd_per_mtoken_input: float,
    usd_per_mtoken_output: float,
    cache_read_tokens: float = 0,
    cache_write_tokens: float = 0,
    usd_per_mtoken_cache_read: float | None = None,
    usd_per_mtoken_cache_write: float | None = None,
    input_includes_cached: bool = False,
    other_usd: float = 0.0,
) -> float:
    """A bill in plain numbers; `input_includes_cached` says whether `input_tokens` already holds the cached tokens.

    Raises:
        UsageError: when a class would be negative.
        PriceError: when a class has tokens and no price.

    >>> bill_usd(608e9, 168e9, 0.55, 2.19, cache_read_tokens=342e9, usd_per_mtoken_cache_read=0.14,
    ...          input_includes_cached=True)
    562100.0
    """
    from econ.usage import UsageConvention, from_report

    rule = UsageConvention("given", input_includes_cached, input_includes_cached, True, "argument")
    usage = from_report(rule, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens)
    prices = TokenPrices(
        usd_per_mtoken_input, usd_per_mtoken_output, usd_per_mtoken_cache_read, usd_per_mtoken_cache_write
    )
    return api_bill(usage, prices, other_usd).total


@dataclass(frozen=True)
class PricedCall:
    """One call to be billed: its UTC time (or date), its tokens, and paid tools."""

    on: date | datetime
    usage: TokenUsage
    tool_usd: float = 0.0


def bill_calls(
    calls: Iterable[PricedCall], book: PriceBook, model: str, vendor: str | None = None, tier: str = "standard"
) -> Bill:
    """Bill of calls, each at the price of its own date, hour and context band.

    Writes are billed as ordinary input where the vendor caches by itself and lists no price of writes.

    Raises:
        PriceError: see `PriceBook.prices` and `api_bill`; also when there are no calls.
    """
    total: Bill | None = None
    for call in calls:
        prices = book.prices(model, call.on, vendor, tier, call.usage.prompt)
        bill = api_bill(fold_writes(call.usage, prices), prices, call.tool_usd)
        total = bill if total is None else total + bill
    if total is None:
        raise PriceError("no calls to bill")
    return total


def fold_writes(usage: TokenUsage, prices: TokenPrices) -> TokenUsage:
    """Move cache writes into ordinary input where the prices say that caching is automatic, or absent altogether."""
    if prices.cache_write is not None:
        return usage
    reads = usage.cache_read if prices.cache_read is None else 0
    fresh = usage.uncached_input + usage.cache_write + usage.cache_write_1h + reads
    return TokenUsage(uncached_input=fresh, cache_read=usage.cache_read - reads, output=usage.output)


def average_usd_per_mtoken(total_usd: float, mtokens: float) -> float:
    """Spending over million tokens, all classes together: a price statistic, not a cost.

    >>> round(average_usd_per_mtoken(2012, 33), 4)
    60.9697
    """
    if mtokens <= 0:
        raise ValueError(f"{mtokens} million tokens: an average needs a positive count")
    return total_usd / mtokens


def escalated_cost_per_request(
    small_usd_per_request: float, large_usd_per_request: float, escalation_share: float
) -> float:
    """Cost of a request where every one pays the small model and a share pays the large one too.

    >>> escalated_cost_per_request(0.001, 0.02, 0.25)
    0.006
    """
    if not 0 <= escalation_share <= 1:
        raise ValueError(f"escalation share is {escalation_share}: it lies between 0 and 1")
    return small_usd_per_request + escalation_share * large_usd_per_request


def usage_inflation(event_ids: Sequence[str] | int, distinct: int | None = None) -> float:
    """Factor by which a bill is inflated when replayed events are summed: events over distinct events.

    >>> round(usage_inflation(11830, 3441), 3)
    3.438
    >>> usage_inflation(["a", "b", "a"])
    1.5
    """
    events, unique = (event_ids, distinct) if isinstance(event_ids, int) else (len(event_ids), len(set(event_ids)))
    if not unique or unique > events:
        raise ValueError(f"{events} events with {unique} distinct ids: give at least one, and no more ids than events")
    return events / unique


def in_usd_of_year(usd: float, from_year: int, to_year: int, facts: Catalog | None = None) -> float:
    """Money of one year in the prices of another: usd x CPI-U(to) / CPI-U(from), annual averages.

    Raises:
        FactError: when a year has no index on record.

    >>> round(in_usd_of_year(100, 2023, 2025), 2)
    105.66
    """
    source = catalog() if facts is None else facts
    return usd * source[f"us_cpi_u_{to_year}"].number / source[f"us_cpi_u_{from_year}"].number


def require_metered(prices: TokenPrices, classes: Sequence[str] = ("uncached_input", "cache_read", "output")) -> None:
    """Refuse to start a run under a spending cap unless every class it can be billed for has a price.

    A cap holds only over what is metered; give the classes that the run can use, cache writes included.

    Raises:
        PriceError: naming the unpriced classes.

    >>> require_metered(TokenPrices(1.0, 5.0, 0.1))
    """
    unknown = [c for c in classes if c not in CLASSES]
    if unknown:
        raise PriceError(f"unknown token class {unknown[0]!r}: one of {', '.join(CLASSES)}")
    missing = [c for c in classes if getattr(prices, c) is None]
    if missing:
        raise PriceError(
            f"no price for {', '.join(missing)} ({prices.source}): a spending cap cannot hold over classes that are "
            "not metered; add the prices before starting"
        )
