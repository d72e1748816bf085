"""What a limit is worth in the user's money: rents per accelerator, per accelerator-hour, per million tokens, per task.

Two routes, never mixed. Bottom-up: unit cost plus the rents of every binding row on the SKU's route is the modelled
price, shown against the observed one. Top-down: the observed purchase price, which already holds the rents upstream of
the sale, plus the rents of rows after it only (racks, power, site).

Prices of limits come from an optimum in money of their period; embodied use a[r, s] is the amount of resource r per
energised accelerator of SKU s, yields and lags included. A price is the value to the marginal user at fixed product
values, not the price of the thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from econ.cost_breakdown import CostBar, CostBreakdown
from econ.finance import capital_recovery_factor, plain, require

__all__ = [
    "Reference",
    "ResourcePrice",
    "ScarcityError",
    "TranslatedPrice",
    "bottom_up_price",
    "check_marginal_identity",
    "power_rent_usd_per_gpu_hour",
    "rent_per_accelerator_usd",
    "rent_usd_per_gpu_hour",
    "top_down_price",
    "translate",
    "usd_per_mtoken_of",
    "usd_per_task_of",
]

#: Stages whose rents a purchase price cannot hold: they come after the sale.
AFTER_SALE_STAGES = frozenset({"rack", "rack/network", "network", "power", "site", "data center", "data_center"})


class ScarcityError(ValueError):
    """A price of a limit that cannot be translated, or an identity that fails; the message gives both sides."""


def rent_per_accelerator_usd(price_usd_per_unit: ArrayLike, use_per_accelerator: ArrayLike) -> Any:
    """Rent embodied in one energised accelerator: a[r, s] x lambda_r.

    >>> round(rent_per_accelerator_usd(41000, 1 / 28), 1)
    1464.3

    Raises:
        FinanceError: when a price or a use is negative.
    """
    price = require("price_usd_per_unit", price_usd_per_unit, 0)
    return plain(price * require("use_per_accelerator", use_per_accelerator, 0))


def rent_usd_per_gpu_hour(
    rent_usd_per_accelerator: ArrayLike,
    rate_per_year: ArrayLike,
    life_years: ArrayLike,
    sold: ArrayLike = 1.0,
    hours_per_year: ArrayLike = 8760.0,
) -> Any:
    """Manufacturing rent per sold hour: rent per accelerator x CRF / (hours per year x sold).

    >>> round(rent_usd_per_gpu_hour(6000, 0.10, 5, sold=0.8), 4)
    0.2259

    Raises:
        FinanceError: when an input is outside its domain.
    """
    hours = require("hours_per_year", hours_per_year, 0, 8784, open_low=True) * require(
        "sold", sold, 0, 1, open_low=True
    )
    rent = require("rent_usd_per_accelerator", rent_usd_per_accelerator, 0)
    return plain(rent * capital_recovery_factor(rate_per_year, life_years) / hours)


def power_rent_usd_per_gpu_hour(
    price_usd_per_mw_period: ArrayLike, planning_kw: ArrayLike, hours_of_period: ArrayLike, sold: ArrayLike = 1.0
) -> Any:
    """Power rent per sold hour: planning kW x price of a kW for the period / (hours of the period x sold).

    >>> round(power_rent_usd_per_gpu_hour(0.65e6, 1.7, 2190, sold=0.8), 3)
    0.631

    Raises:
        FinanceError: when an input is outside its domain.
    """
    per_kw = require("price_usd_per_mw_period", price_usd_per_mw_period, 0) / 1000.0
    hours = require("hours_of_period", hours_of_period, 0, open_low=True) * require("sold", sold, 0, 1, open_low=True)
    return plain(per_kw * require("planning_kw", planning_kw, 0) / hours)


def usd_per_mtoken_of(usd_per_gpu_hour: ArrayLike, tokens_per_sold_hour: ArrayLike) -> Any:
    """Money per million tokens behind money per sold hour: x / (tokens per sold hour / 1e6).

    >>> usd_per_mtoken_of(0.5, 5e6)
    0.1

    Raises:
        FinanceError: when no token is made.
    """
    return plain(
        np.asarray(usd_per_gpu_hour, dtype=float)
        / (require("tokens_per_sold_hour", tokens_per_sold_hour, 0, open_low=True) / 1e6)
    )


def usd_per_task_of(usd_per_gpu_hour: ArrayLike, accelerator_hours_per_verified_task: ArrayLike) -> Any:
    """Money per verified task: money per sold hour x accelerator-hours per verified task.

    >>> usd_per_task_of(0.5, 0.02)
    0.01
    """
    hours = require("accelerator_hours_per_verified_task", accelerator_hours_per_verified_task, 0)
    return plain(np.asarray(usd_per_gpu_hour, dtype=float) * hours)


@dataclass(frozen=True)
class ResourcePrice:
    """Price of one limit as an optimum reports it.

    `kind` "capital": money per unit of a manufacturing resource, embodied once in a device; "power": money per MW and
    period (or of capacity from t on when `lasting`). `use_per_accelerator` is a[r, s] (planning kW for power rows).
    """

    resource: str
    stage: str
    price_usd: float
    use_per_accelerator: float
    kind: str = "capital"
    price_low_usd: float | None = None
    price_high_usd: float | None = None
    lasting: bool = False


@dataclass(frozen=True)
class Reference:
    """The named SKU, model and task that carry a price into money per hour, token and task."""

    sku: str
    model: str
    task: str
    rate_per_year: float
    life_years: float
    sold: float
    tokens_per_sold_hour: float
    accelerator_hours_per_task: float
    hours_of_period: float = 2190.0
    hours_per_year: float = 8760.0
    power_life_years: float = 14.0


@dataclass(frozen=True)
class TranslatedPrice:
    """One limit's rent in the user's money, with its reference; low and high follow the range of the price."""

    resource: str
    usd_per_accelerator: float
    usd_per_gpu_hour: float
    usd_per_mtoken: float
    usd_per_task: float
    low_usd_per_gpu_hour: float
    high_usd_per_gpu_hour: float
    reference: tuple[str, str, str]


def _per_hour(price: ResourcePrice, usd: float, ref: Reference) -> tuple[float, float]:
    """(money per accelerator, money per sold hour) of a price level."""
    if price.kind == "capital":
        per_accelerator = rent_per_accelerator_usd(usd, price.use_per_accelerator)
        hourly = rent_usd_per_gpu_hour(per_accelerator, ref.rate_per_year, ref.life_years, ref.sold, ref.hours_per_year)
        return per_accelerator, hourly
    if price.kind != "power":
        raise ScarcityError(f"{price.resource}: kind = {price.kind!r}, use 'capital' or 'power'")
    if price.lasting:
        capital = usd / 1000.0 * price.use_per_accelerator
        return capital, rent_usd_per_gpu_hour(
            capital, ref.rate_per_year, ref.power_life_years, ref.sold, ref.hours_per_year
        )
    hourly = power_rent_usd_per_gpu_hour(usd, price.use_per_accelerator, ref.hours_of_period, ref.sold)
    return hourly * ref.hours_of_period * ref.sold, hourly


def translate(price: ResourcePrice, reference: Reference) -> TranslatedPrice:
    """A limit's price in USD per accelerator-hour, million tokens and task of the reference.

    >>> ref = Reference("h100", "llama", "chat", 0.1, 5, 0.8, 5e6, 0.02)
    >>> out = translate(ResourcePrice("cowos", "packaging", 41000, 1 / 28), ref)
    >>> round(out.usd_per_gpu_hour, 4), round(out.usd_per_mtoken, 4), round(out.usd_per_task, 5)
    (0.0551, 0.011, 0.0011)

    Raises:
        ScarcityError: when the kind is unknown; FinanceError: when a number is outside its domain.
    """
    per_accelerator, hourly = _per_hour(price, price.price_usd, reference)
    ends = [price.price_usd if end is None else end for end in (price.price_low_usd, price.price_high_usd)]
    low, high = (_per_hour(price, end, reference)[1] for end in ends)
    return TranslatedPrice(
        price.resource,
        per_accelerator,
        hourly,
        usd_per_mtoken_of(hourly, reference.tokens_per_sold_hour),
        usd_per_task_of(hourly, reference.accelerator_hours_per_task),
        low,
        high,
        (reference.sku, reference.model, reference.task),
    )


def bottom_up_price(
    unit_cost_usd: float, rents: Iterable[ResourcePrice], observed_usd: float | None = None
) -> CostBreakdown:
    """Route (a): unit cost of making plus the rents of all binding rows on the route = modelled purchase price.

    The observed price, when given, is kept beside it (`assumptions["observed_usd"]`), never blended in.

    >>> price = bottom_up_price(5000, [ResourcePrice("cowos", "packaging", 41000, 1 / 28)], observed_usd=25000)
    >>> round(price.total), price.assumptions["observed_usd"]
    (6464, 25000)

    Raises:
        ScarcityError: when a power row is passed (a MW is not part of a purchase price).
    """
    bars = [CostBar("unit cost", float(require("unit_cost_usd", unit_cost_usd, 0)))]
    for rent in rents:
        if rent.kind != "capital" or rent.stage in AFTER_SALE_STAGES:
            raise ScarcityError(
                f"{rent.resource} ({rent.stage}) comes after the sale: it is no part of a purchase price"
            )
        bars.append(
            CostBar(f"rent {rent.resource}", rent_per_accelerator_usd(rent.price_usd, rent.use_per_accelerator))
        )
    return CostBreakdown(
        tuple(bars),
        "USD/accelerator",
        "bottom-up: cost of making plus rents",
        assumptions={"observed_usd": observed_usd},
    )


def top_down_price(
    owner_cost_usd_per_gpu_hour: float, rents: Iterable[ResourcePrice], reference: Reference
) -> CostBreakdown:
    """Route (b): owner cost at the observed purchase price plus the rents of rows after the sale only, per sold hour.

    >>> ref = Reference("h100", "llama", "chat", 0.1, 5, 0.8, 5e6, 0.02)
    >>> cost = top_down_price(2.4, [ResourcePrice("mw_us", "power", 0.65e6, 1.7, kind="power")], ref)
    >>> round(cost.total, 3)
    3.031

    Raises:
        ScarcityError: when a row before the sale is passed: the purchase price already holds its rent.
    """
    bars = [CostBar("owner cost at observed purchase price", float(owner_cost_usd_per_gpu_hour))]
    for rent in rents:
        if rent.stage not in AFTER_SALE_STAGES:
            raise ScarcityError(
                f"{rent.resource} ({rent.stage}) is upstream of the sale: "
                "the observed purchase price already holds its rent"
            )
        bars.append(CostBar(f"rent {rent.resource}", translate(rent, reference).usd_per_gpu_hour))
    return CostBreakdown(tuple(bars), "USD/GPU-hour", "top-down: observed purchase price plus rents after the sale")


def check_marginal_identity(
    value_usd: float,
    running_cost_usd: float,
    prices_usd: Sequence[float] | Mapping[str, float],
    uses: Sequence[float] | Mapping[str, float],
    rel_tol: float = 1e-6,
) -> float:
    """For a SKU made at the margin: value = running cost + sum of a[r, s] x lambda_r; returns the relative gap.

    >>> check_marginal_identity(100.0, 40.0, {"fab": 20.0, "power": 5.0}, {"fab": 2.0, "power": 4.0})
    0.0

    Raises:
        ScarcityError: when the gap exceeds `rel_tol` (both sides are given), or the two lists name different resources.
    """
    if isinstance(prices_usd, Mapping) and isinstance(uses, Mapping):
        unpriced = set(uses) - set(prices_usd)
        if unpriced:
            raise ScarcityError(f"uses without a price: {', '.join(sorted(unpriced))}")
        rents = sum(prices_usd[r] * a for r, a in uses.items())
    elif isinstance(prices_usd, Mapping) or isinstance(uses, Mapping) or len(prices_usd) != len(uses):
        raise ScarcityError("give prices and uses both by resource name, or both as lists of one length")
    else:
        rents = float(np.dot(np.asarray(prices_usd, dtype=float), np.asarray(uses, dtype=float)))
    gap = abs(value_usd - running_cost_usd - rents) / max(abs(value_usd), 1e-12)
    if gap > rel_tol:
        raise ScarcityError(
            f"value {value_usd:.9g} against running cost {running_cost_usd:.9g} + rents {rents:.9g}: "
            f"relative gap {gap:.2g} exceeds {rel_tol:g} (a row is missing, or the SKU is not made at the margin)"
        )
    return gap
