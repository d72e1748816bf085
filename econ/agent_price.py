"""What an agent's tokens are paid by: a dated API price list, or the user's own accelerators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Protocol

from econ.agent_calls import AgentError
from econ.api_bill import api_bill, fold_writes
from econ.price_book import PriceBook, TokenPrices, price_book
from econ.token_cost import TokenCost
from econ.usage import TokenUsage

__all__ = ["ApiPrice", "FlatPrice", "OwnPrice", "TaskPrice"]

CLASSES = ("uncached_input", "cache_write", "cache_read", "output")


class TaskPrice(Protocol):
    """What a task model needs of a price: dollars by class, time of a call, accelerator time, band, sessions."""

    @property
    def label(self) -> str:
        """Model and seller, or model and accelerator."""

    def by_class(self, usage: TokenUsage) -> dict[str, float]:
        """USD of one call by token class."""

    def call_s(self, usage: TokenUsage) -> float:
        """Seconds from sending a call to its last token."""

    def gpu_s(self, usage: TokenUsage) -> float | None:
        """Paid accelerator-seconds of one call; None where the seller does not say."""

    @property
    def band(self) -> tuple[float, float]:
        """Low and high factors of every dollar (90 %)."""

    @property
    def sessions_per_accelerator(self) -> float | None:
        """Sessions whose cache one accelerator can hold; None where waiting costs nothing."""

    @property
    def usd_per_gpu_s(self) -> float:
        """Price of an accelerator-second; 0 where the seller charges tokens."""

    @property
    def caveat(self) -> str:
        """What a reader must know of this price; empty for nothing."""


class _Seller:
    """A seller of tokens: the speed of its service is known, its accelerators are not."""

    ttft_s: float
    tpot_s: float

    def call_s(self, usage: TokenUsage) -> float:
        """First token, then one step a token."""
        return self.ttft_s + max(usage.output - 1, 0) * self.tpot_s

    def gpu_s(self, usage: TokenUsage) -> float | None:
        """Unknown for an API."""
        del usage
        return None


@dataclass(frozen=True)
class FlatPrice(_Seller):
    """Prices of one list without bands or dates, with the speed of the service.

    >>> FlatPrice(TokenPrices(3.0, 15.0)).by_class(TokenUsage(uncached_input=1e6, output=1e6))["output"]
    15.0
    """

    prices: TokenPrices
    ttft_s: float = 0.0
    tpot_s: float = 0.0
    label: str = "given prices"
    band: tuple[float, float] = (1.0, 1.0)
    sessions_per_accelerator: float | None = None
    usd_per_gpu_s: float = 0.0
    caveat: str = ""

    def by_class(self, usage: TokenUsage) -> dict[str, float]:
        """USD by class; writes bill as input where they have no price."""
        return _four(api_bill(fold_writes(usage, self.prices), self.prices).by_class)


@dataclass(frozen=True)
class ApiPrice(_Seller):
    """A model of the dated price book, at one day, tier and seller; bands are chosen call by call.

    Raises:
        PriceError: when the model has no price on that day (at construction, so that nothing starts unpriced).

    >>> ApiPrice("claude-sonnet-4.5", date(2026, 1, 1)).by_class(TokenUsage(cache_read=1e5, output=1e3))["output"]
    0.015
    """

    model: str
    on: date | datetime
    vendor: str | None = None
    tier: str = "standard"
    ttft_s: float = 0.0
    tpot_s: float = 0.0
    book: PriceBook = field(default_factory=price_book, repr=False)
    band: tuple[float, float] = (1.0, 1.0)
    sessions_per_accelerator: float | None = None
    usd_per_gpu_s: float = 0.0

    def __post_init__(self) -> None:
        self._prices(0)

    @property
    def caveat(self) -> str:
        """Says so when cached prompt tokens are billed as ordinary input."""
        return (
            "" if self._prices(0).cache_read is not None else "no cache price on record: prompts billed as fresh input"
        )

    @property
    def label(self) -> str:
        """Model, seller and day."""
        return f"{self.model} ({self.vendor or 'only seller'}, {self.tier}, {self.on:%Y-%m-%d})"

    def _prices(self, prompt_tokens: float) -> TokenPrices:
        return self.book.prices(self.model, self.on, self.vendor, self.tier, prompt_tokens)

    def by_class(self, usage: TokenUsage) -> dict[str, float]:
        """USD by class at the context band of this prompt."""
        prices = self._prices(usage.prompt)
        return _four(api_bill(fold_writes(usage, prices), prices).by_class)


@dataclass(frozen=True)
class OwnPrice:
    """Tokens at the cost of own (or rented) accelerators, with the engine's band.

    With `sessions_per_accelerator`, a waiting session keeps its cache and so a part of an accelerator.
    """

    cost: TokenCost
    sessions_per_accelerator: float | None = None

    def __post_init__(self) -> None:
        held = self.sessions_per_accelerator
        if held is not None and not held > 0:
            raise AgentError(f"{held} sessions per accelerator: give a positive number, or None to drop waiting caches")

    @property
    def caveat(self) -> str:
        """The class of a quoted throughput, where it is not consistent with the engine."""
        return "" if self.cost.rate.label == "consistent" else self.cost.rate.note

    @property
    def label(self) -> str:
        """Model, accelerator and hour price."""
        return f"{self.cost.model} on {self.cost.hardware} at {self.cost.usd_per_gpu_hour:g} USD/h"

    @property
    def band(self) -> tuple[float, float]:
        """The engine's band on the cost of a token."""
        return self.cost.low_factor, self.cost.high_factor

    @property
    def usd_per_gpu_s(self) -> float:
        """Price of a paid accelerator-second."""
        return self.cost.usd_per_gpu_hour / 3600

    def by_class(self, usage: TokenUsage) -> dict[str, float]:
        """USD by class."""
        price = self.cost.usd_per_mtoken
        return {name: volume * price[name] / 1e6 for name, volume in _volumes(usage).items()}

    def gpu_s(self, usage: TokenUsage) -> float | None:
        """Paid accelerator-seconds."""
        return sum(self.by_class(usage).values()) / self.usd_per_gpu_s if self.usd_per_gpu_s else None

    def call_s(self, usage: TokenUsage) -> float:
        """The operating point's first-token time and steps."""
        point = self.cost.point
        return point.ttft_s + max(usage.output - 1, 0) * point.tpot_s


def _volumes(usage: TokenUsage) -> dict[str, float]:
    return {
        "uncached_input": usage.uncached_input,
        "cache_write": usage.cache_write + usage.cache_write_1h,
        "cache_read": usage.cache_read,
        "output": usage.output,
    }


def _four(by_class: Mapping[str, float]) -> dict[str, float]:
    """Both write lifetimes in one class."""
    out = {name: by_class[name] for name in CLASSES}
    out["cache_write"] += by_class["cache_write_1h"]
    return out
