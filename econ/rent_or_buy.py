"""Buy, reserve or rent: present values over a term with a falling price path, idle hours, interruptions and resale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from econ.finance import FinanceError, market_value, plain, require
from econ.gpu_hour import CostInputs, running_cost_per_sold_hour

__all__ = [
    "Option",
    "break_even_tokens_per_month",
    "break_even_use",
    "compare_buy_and_rent",
    "monthly_api_bill_usd",
    "owned_total_usd",
]


@dataclass(frozen=True)
class Option:
    """One way to have an accelerator for a term: present value per accelerator and per useful hour."""

    name: str
    present_value_usd: float
    useful_hours: float
    usd_per_useful_hour: float


def break_even_tokens_per_month(monthly_cost_usd: float, api_usd_per_mtoken: float) -> float:
    """Tokens a month at which a fixed monthly cost equals the API bill: cost / price x 1e6. It does not move with use.

    >>> round(break_even_tokens_per_month(4608, 10))
    460800000

    Raises:
        FinanceError: when the API price is not positive (at price zero no volume pays).
    """
    price = require("api_usd_per_mtoken", api_usd_per_mtoken, 0, open_low=True)
    return float(require("monthly_cost_usd", monthly_cost_usd, 0) / price * 1e6)


def break_even_use(
    monthly_cost_usd: float, api_usd_per_mtoken: float, tokens_per_hour: float, hours_per_month: float = 730
) -> float:
    """Share of capacity at which self-hosting meets the API price; above 1 it never does.

    >>> round(break_even_use(4608, 10, 12.24e6), 4)
    0.0516
    """
    capacity = require("tokens_per_hour", tokens_per_hour, 0, open_low=True) * hours_per_month
    return float(break_even_tokens_per_month(monthly_cost_usd, api_usd_per_mtoken) / capacity)


def monthly_api_bill_usd(tokens_per_month: float, shares_and_prices: Mapping[str, tuple[float, float]]) -> float:
    """API bill of a blended volume: tokens x sum(share x price per million) / 1e6; the shares must add to one.

    >>> round(monthly_api_bill_usd(2.7e9, {"small": (0.8, 0.10), "large": (0.2, 0.75)}), 2)
    621.0

    Raises:
        FinanceError: when the shares do not add to one.
    """
    total = sum(share for share, _ in shares_and_prices.values())
    if abs(total - 1) > 1e-9:
        raise FinanceError(f"shares add to {total:g}, not 1: {dict(shares_and_prices)}")
    blended = sum(share * price for share, price in shares_and_prices.values())
    return float(require("tokens_per_month", tokens_per_month, 0) * blended / 1e6)


def owned_total_usd(capital_usd: float, usd_per_month: float, usd_per_year: float, years: float) -> float:
    """Undiscounted outlay of owning over some years.

    >>> owned_total_usd(155000, 2450, 10000, 3)
    273200.0
    """
    return float(require("capital_usd", capital_usd, 0) + years * (12 * usd_per_month + usd_per_year))


def compare_buy_and_rent(
    inputs: CostInputs,
    *,
    years: int,
    wanted_share: float,
    on_demand_usd: float,
    reserved_usd: float,
    spot_usd: float | None = None,
    yearly_price_ratio: float = 1.0,
    spot_lost_share: float = 0.1,
) -> dict[str, Option]:
    """Present value of having an accelerator for `wanted_share` of the hours of a term, four ways.

    buy: capital now, running cost of used hours, resale at market value. reserve: every hour paid at a fixed price.
    on demand: used hours at a price that moves by `yearly_price_ratio`. spot: the same path, and hours lost to
    interruptions are bought again. Money is discounted mid-year at the inputs' rate.

    >>> options = compare_buy_and_rent(CostInputs(it_usd=40000, rate_per_year=0.1), years=3, wanted_share=0.9,
    ...                                on_demand_usd=3.0, reserved_usd=2.2, yearly_price_ratio=0.85)
    >>> min(options.values(), key=lambda o: o.present_value_usd).name
    'buy'

    Raises:
        FinanceError: when a share or price is outside its domain, or the term is not whole years.
    """
    if years != int(years) or years < 1:
        raise FinanceError(f"years = {years!r}: give whole years from 1")
    share = float(require("wanted_share", wanted_share, 0, 1, open_low=True))
    lost = float(require("spot_lost_share", spot_lost_share, 0, 0.99))
    rate, hours = float(inputs.rate_per_year), float(inputs.hours_per_year)
    middle = (1 + rate) ** -(np.arange(years) + 0.5)
    path = float(require("yearly_price_ratio", yearly_price_ratio, 0)) ** np.arange(years)
    used = share * hours
    running = float(running_cost_per_sold_hour(inputs.with_value("use.sold", share)))
    capital = float(inputs.it_usd + inputs.network_usd + inputs.facility_usd)
    resale = float(market_value(inputs.it_usd, years, inputs.decline_oom_per_year)) * (1 + rate) ** -years
    resale += (
        float(inputs.facility_usd) * max(0.0, 1 - years / float(inputs.facility_life_years)) * (1 + rate) ** -years
    )
    values: dict[str, Any] = {
        "buy": capital - resale + used * running * middle.sum(),
        "reserve": hours * float(require("reserved_usd", reserved_usd, 0)) * middle.sum(),
        "on demand": used * float(require("on_demand_usd", on_demand_usd, 0)) * (path * middle).sum(),
    }
    if spot_usd is not None:
        values["spot"] = used / (1 - lost) * float(require("spot_usd", spot_usd, 0)) * (path * middle).sum()
    return {n: Option(n, plain(v), used * years, plain(v / (used * middle.sum()))) for n, v in values.items()}
