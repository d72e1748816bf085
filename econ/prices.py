"""Arithmetic of rental and purchase prices: ladder, forward, effective rate, units behind a quote, margins.

List, contract, spot, index and owner cost are different series and never stand in for each other; `econ.price_quotes`
keeps them apart. Formulas take floats or arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from econ.cost_breakdown import CostBar, CostBreakdown, WaterfallError
from econ.finance import plain, require

__all__ = [
    "MarginLayer",
    "RentalPriceError",
    "accelerator_part_usd",
    "commitment_ladder",
    "components_of_node_price",
    "effective_cost_per_useful_hour",
    "form_factor_spread",
    "implied_forward_price",
    "implied_one_year_price_two_years_ahead",
    "implied_yearly_ratio",
    "income_with_price_decline_usd",
    "margin_stack",
    "monthly_cost_usd",
    "normalised_quote",
    "price_after_years",
    "price_per_accelerator_hour",
    "rental_income_usd",
    "spot_discount",
    "units_from_revenue",
]


class RentalPriceError(ValueError):
    """A price quote that is ambiguous or cannot be: the message says which unit or form is missing."""


def price_per_accelerator_hour(instance_usd_per_hour: ArrayLike, accelerators: ArrayLike) -> Any:
    """Price per accelerator-hour of an instance or node: price / accelerators in it.

    >>> round(price_per_accelerator_hour(39.33, 8), 3)
    4.916

    Raises:
        FinanceError: when a price is negative or the count is not positive.
    """
    price = require("instance_usd_per_hour", instance_usd_per_hour, 0)
    return plain(price / require("accelerators", accelerators, 0, open_low=True))


def accelerator_part_usd(total_usd_per_hour: ArrayLike, host_usd_per_hour: ArrayLike) -> Any:
    """Accelerator part of a two-part tariff: total - host.

    >>> round(accelerator_part_usd(4.05, 0.94), 2)
    3.11

    Raises:
        RentalPriceError: when the host alone exceeds the total.
    """
    total, host = require("total", total_usd_per_hour, 0), require("host", host_usd_per_hour, 0)
    if np.any(host > total):
        raise RentalPriceError(
            f"host price {host_usd_per_hour!r} exceeds the total {total_usd_per_hour!r}: rows swapped?"
        )
    return plain(total - host)


def components_of_node_price(
    cpus: float,
    usd_per_cpu_hour: float,
    ram_bytes: float,
    usd_per_gib_hour: float,
    accelerators: float,
    usd_per_accelerator_hour: float,
    node_usd_per_hour: float | None = None,
    rel_tol: float = 1e-3,
) -> CostBreakdown:
    """Split of a node price into processor, memory (GiB) and accelerator; must add to the node price where it is given.

    >>> parts = components_of_node_price(4, 0.010603, 16454709248, 0.001421, 1, 0.461814, node_usd_per_hour=0.526)
    >>> round(parts.total, 6)
    0.526002

    Raises:
        WaterfallError: when the parts do not add to the node price.
    """
    bars = (
        CostBar("cpu", cpus * usd_per_cpu_hour),
        CostBar("ram", ram_bytes / 2**30 * usd_per_gib_hour),
        CostBar("accelerator", accelerators * usd_per_accelerator_hour),
    )
    split = CostBreakdown(bars, "USD/node-hour", "components")
    if node_usd_per_hour is not None:
        split.check_total(node_usd_per_hour, rel_tol)
    return split


def form_factor_spread(
    node_usd_per_hour: Mapping[str, float], accelerators: float, name: str | None = None
) -> dict[str, float]:
    """Price per accelerator-hour by form factor; an unqualified `name` is refused with the spread.

    >>> form_factor_spread({"H100 SXM": 34.4, "H100 NVL": 32, "H100 PCIe": 29}, 8)["H100 PCIe"]
    3.625

    Raises:
        RentalPriceError: when `name` is given and is not one of the form factors.
    """
    prices = {form: price_per_accelerator_hour(usd, accelerators) for form, usd in node_usd_per_hour.items()}
    if name is not None and name not in prices:
        spread = max(prices.values()) / min(prices.values())
        raise RentalPriceError(
            f"{name!r} is ambiguous: say which form factor ({', '.join(prices)}); "
            f"their prices differ by a factor {spread:.3f} and so do bandwidth and peak"
        )
    return prices


def spot_discount(spot_usd: ArrayLike, on_demand_usd: ArrayLike) -> Any:
    """Share that spot saves against on demand: 1 - spot / on demand.

    >>> round(spot_discount(1.25, 2.95), 3)
    0.576
    """
    return plain(1 - require("spot_usd", spot_usd, 0) / require("on_demand_usd", on_demand_usd, 0, open_low=True))


def commitment_ladder(on_demand_usd: float, discounts: Mapping[float, float]) -> dict[float, float]:
    """Price by committed years: on demand x (1 - discount of the term); years 0 is on demand.

    >>> {years: round(price, 3) for years, price in commitment_ladder(6.88, {1: 0.41, 3: 0.64}).items()}
    {0.0: 6.88, 1.0: 4.059, 3.0: 2.477}

    Raises:
        FinanceError: when a discount is outside 0..1.
    """
    price = float(require("on_demand_usd", on_demand_usd, 0, open_low=True))
    rungs = {float(y): price * (1 - float(require("discount", d, 0, 1))) for y, d in sorted(discounts.items())}
    return {0.0: price} | rungs


def implied_forward_price(one_year_usd: ArrayLike, term_usd: ArrayLike, term_years: ArrayLike = 3.0) -> Any:
    """Mean price of the years after the first that a long deal implies: (n p_n - p_1) / (n - 1).

    >>> round(implied_forward_price(7.2, 5.4), 9)
    4.5

    Raises:
        FinanceError: when the term is not above one year.
    """
    years = require("term_years", term_years, 1, open_low=True)
    return plain((years * require("term_usd", term_usd, 0) - require("one_year_usd", one_year_usd, 0)) / (years - 1))


def implied_yearly_ratio(one_year_usd: float, term_usd: float, term_years: int = 3) -> float:
    """Constant yearly price ratio q at which one-year deals earn the long deal: 1 + q + ... + q^(n-1) = n p_n / p_1.

    >>> round(implied_yearly_ratio(7.2, 5.4), 4)
    0.7247

    Raises:
        RentalPriceError: when the long deal costs less in total than its first year alone.
    """
    target = term_years * term_usd / one_year_usd
    if target <= 1:
        raise RentalPriceError(
            f"{term_years} years at {term_usd:g} cost less than the first year at {one_year_usd:g}: no price path fits"
        )
    return float(brentq(_geometric_gap, 0.0, target, args=(term_years, target), xtol=1e-12))


def _geometric_gap(ratio: float, years: int, target: float) -> float:
    return math.fsum(ratio**k for k in range(years)) - target


def implied_one_year_price_two_years_ahead(one_year_usd: float, three_year_usd: float) -> float:
    """One-year price two years ahead on the constant-ratio path: p_1 x q^2.

    >>> round(implied_one_year_price_two_years_ahead(7.2, 5.4), 3)
    3.782
    """
    return one_year_usd * implied_yearly_ratio(one_year_usd, three_year_usd) ** 2


def effective_cost_per_useful_hour(
    sticker_usd: ArrayLike, throughput_loss: ArrayLike, utilisation: ArrayLike, add_on: ArrayLike = 0.0
) -> Any:
    """Cost per useful hour: sticker x (1 + add-ons) / ((1 - throughput loss) x utilisation).

    >>> round(effective_cost_per_useful_hour(4, 0.15, 0.30, 0.25), 2)
    19.61

    Raises:
        FinanceError: when a share is outside its domain.
    """
    kept = 1 - require("throughput_loss", throughput_loss, 0, 0.999999)
    used = require("utilisation", utilisation, 0, 1, open_low=True)
    return plain(require("sticker_usd", sticker_usd, 0) * (1 + require("add_on", add_on, 0)) / (kept * used))


def monthly_cost_usd(usd_per_hour: ArrayLike, hours_per_month: ArrayLike = 730) -> Any:
    """Rent of a month.

    >>> round(monthly_cost_usd(2.69))
    1964
    """
    return plain(require("usd_per_hour", usd_per_hour, 0) * require("hours_per_month", hours_per_month, 0, 744))


def normalised_quote(
    usd_per_hour: float,
    accelerators: float = 1,
    *,
    missing: Mapping[str, float] | None = None,
    bundled: Mapping[str, float] | None = None,
) -> CostBreakdown:
    """A quote on the common basis: bare accelerator with network, storage and support as the comparison wants them.

    `missing` parts (USD per accelerator-hour) are added, `bundled` ones that the comparison leaves out are taken off.

    >>> quote = normalised_quote(24.0, 8, missing={"network": 0.2}, bundled={"support": 0.1})
    >>> round(quote.total, 2), [bar.name for bar in quote]
    (3.1, ['quoted', 'add network', 'take off support'])

    Raises:
        RentalPriceError: when what is bundled exceeds the quote.
    """
    quoted = price_per_accelerator_hour(usd_per_hour, accelerators)
    added = tuple(CostBar(f"add {k}", float(require(k, v, 0))) for k, v in (missing or {}).items())
    removed = tuple(CostBar(f"take off {k}", -float(require(k, v, 0))) for k, v in (bundled or {}).items())
    out = CostBreakdown((CostBar("quoted", quoted), *added, *removed), "USD/GPU-hour", "normalised quote")
    if out.total < 0:
        raise RentalPriceError(
            f"bundled parts {dict(bundled or {})} exceed the quote of {quoted:g} USD per accelerator-hour"
        )
    return out


#: No price path of a rented accelerator is longer.
LONGEST_YEARS = 100


def rental_income_usd(
    usd_per_gpu_hour: ArrayLike,
    accelerators: ArrayLike,
    years: int,
    hours_per_year: ArrayLike = 8760,
    yearly_price_ratio: float = 1.0,
) -> Any:
    """Income of a fleet that is always sold: price x accelerators x hours x sum of ratio^k over the years.

    >>> round(rental_income_usd(9.4, 16000, 4, 8766) / 1e9, 3)
    5.274

    Raises:
        FinanceError: when an input is outside its domain.
    """
    steps = int(require("years", years, 1, LONGEST_YEARS))
    if steps != years:
        raise RentalPriceError(f"years = {years!r}: the price path moves by whole years; give an integer")
    path = math.fsum(float(require("yearly_price_ratio", yearly_price_ratio, 0)) ** k for k in range(steps))
    fleet = require("usd_per_gpu_hour", usd_per_gpu_hour, 0) * require("accelerators", accelerators, 0)
    return plain(fleet * require("hours_per_year", hours_per_year, 0, 8784) * path)


def income_with_price_decline_usd(flat_income_usd: ArrayLike, years: int, yearly_price_ratio: float) -> Any:
    """Income when the price falls by a constant ratio each year, from the income at a flat price over the same years.

    >>> round(income_with_price_decline_usd(4e9, 4, 0.5) / 1e9, 4)
    1.875

    Raises:
        FinanceError: when an input is outside its domain.
    """
    span = require("years", years, 1, LONGEST_YEARS)
    return rental_income_usd(require("flat_income_usd", flat_income_usd, 0) / span, 1, years, 1, yearly_price_ratio)


def price_after_years(usd_per_hour: ArrayLike, yearly_price_ratio: ArrayLike, years: ArrayLike) -> Any:
    """Price after some years at a constant yearly ratio: p x q^years.

    >>> price_after_years(8.0, 0.5, 2)
    2.0
    """
    ratio = require("yearly_price_ratio", yearly_price_ratio, 0)
    return plain(require("usd_per_hour", usd_per_hour, 0) * ratio ** require("years", years, 0))


def units_from_revenue(
    revenue_usd: tuple[float, float, float], average_price_usd: tuple[float, float, float]
) -> tuple[float, float, float]:
    """Units behind a revenue and an average price, as (value, low, high); each input is (value, low, high).

    low = lowest revenue over highest price; high the reverse. A revenue that holds systems, software or network is
    not a chip revenue: take those off first.

    >>> tuple(round(x) for x in units_from_revenue((10e9, 9e9, 11e9), (25000, 22000, 30000)))
    (400000, 300000, 500000)

    Raises:
        FinanceError: when a number is not positive; RentalPriceError: when value is outside low..high.
    """
    for label, (value, low, high) in (("revenue_usd", revenue_usd), ("average_price_usd", average_price_usd)):
        require(label, (value, low, high), 0, open_low=True)
        if not low <= value <= high:
            raise RentalPriceError(f"{label} = {value:g} is outside its own range {low:g}..{high:g}")
    (r, r_low, r_high), (p, p_low, p_high) = revenue_usd, average_price_usd
    return r / p, r_low / p_high, r_high / p_low


@dataclass(frozen=True)
class MarginLayer:
    """One seller in the chain: what it adds (`own_cost_usd` per its unit), its price, and units bought per unit sold.

    The layer's unit may change (die, package, server, accelerator-hour, million tokens): `units_in` says how many of
    the previous layer's units go into one of its own.
    """

    name: str
    own_cost_usd: float
    price_usd: float
    units_in: float = 1.0


def margin_stack(layers: Sequence[MarginLayer]) -> CostBreakdown:
    """Final price as the sum of every layer's own cost and margin, all carried into the last layer's unit.

    Margin of a layer = price - price bought x units - own cost; the bars add to the final price exactly. A layer that
    sells below cost shows a negative margin.

    >>> stack = margin_stack([MarginLayer("foundry", 60, 150), MarginLayer("designer", 2000, 25000, units_in=2)])
    >>> [bar.value for bar in stack], stack.total
    ([120.0, 180.0, 2000.0, 22700.0], 25000.0)

    Raises:
        WaterfallError: when there is no layer.
    """
    if not layers:
        raise WaterfallError("a margin stack needs at least one layer")
    bars: list[CostBar] = []
    bought = 0.0
    for layer in layers:
        units = float(require(f"{layer.name} units_in", layer.units_in, 0, open_low=True))
        bars = [CostBar(b.name, b.value * units) for b in bars]
        margin = layer.price_usd - bought * units - layer.own_cost_usd
        bars += [CostBar(f"{layer.name} cost", float(layer.own_cost_usd)), CostBar(f"{layer.name} margin", margin)]
        bought = layer.price_usd
    return CostBreakdown(tuple(bars), f"USD per unit of {layers[-1].name}", "margin stack")
