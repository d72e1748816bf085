"""Capital recovery, depreciation, financing and tax: the arithmetic that turns a purchase into a yearly charge.

Sources: standard annuity algebra through numpy-financial; market-value decay after Epoch AI's training-cost model.
Money is nominal; rates and shares are fractions; lives are years. Every function takes floats or numpy arrays.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy_financial as npf
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "FinanceError",
    "annual_margin",
    "annuity_per_year",
    "capital_recovery_factor",
    "capitalised_interest",
    "contract_revenue_per_year",
    "coverage_ratio",
    "debt_service_per_year",
    "deflated",
    "interest_expense",
    "internal_rate_of_return",
    "market_value",
    "market_value_charge_per_year",
    "payback_per_year",
    "prepayment_usd",
    "profit_over_cost",
    "straight_line_per_year",
    "tax_gross_up",
    "weighted_average_rate",
    "weighted_cost_of_capital",
]

Array = NDArray[np.float64]


class FinanceError(ValueError):
    """A financial input lies outside its domain; the message names it, its value and the fix."""


def require(name: str, value: ArrayLike, low: float, high: float = np.inf, *, open_low: bool = False) -> Array:
    """`value` as an array, refused unless every element is a number within [low, high] (or (low, high]).

    >>> float(require("life", 5, 0))
    5.0

    Raises:
        FinanceError: with the name, the offending value and the allowed span.
    """
    array = np.asarray(value, dtype=float)
    inside = (array > low if open_low else array >= low) & (array <= high)  # a NaN is never inside
    if not inside.all():
        bound = f"{'above' if open_low else 'at least'} {low:g}" + ("" if high == np.inf else f" and at most {high:g}")
        raise FinanceError(f"{name} = {value!r}: must be a number {bound}")
    return array


def plain(value: ArrayLike) -> Any:
    """A numpy scalar or 0-d array as a Python float; other arrays unchanged.

    >>> plain(np.float64(2))
    2.0
    """
    array = np.asarray(value, dtype=float)
    return float(array) if array.ndim == 0 else array


def capital_recovery_factor(rate_per_year: ArrayLike, life_years: ArrayLike) -> Any:
    """Yearly payment per unit of capital: r / (1 - (1 + r)^-n); 1/n at r = 0; r for an infinite life.

    >>> [round(capital_recovery_factor(0.08, n), 4) for n in (5, 7, 14)]
    [0.2505, 0.1921, 0.1213]
    >>> capital_recovery_factor(0.0, 5), capital_recovery_factor(0.08, float("inf"))
    (0.2, 0.08)

    Raises:
        FinanceError: when a rate is negative or a life is not positive.
    """
    rate, life = np.broadcast_arrays(
        require("rate_per_year", rate_per_year, 0), require("life_years", life_years, 0, open_low=True)
    )
    finite = np.where(np.isinf(life), 1.0, life)
    # Below 1e-6 the closed form loses digits to cancellation; its first-order expansion does not.
    small = rate < 1e-6
    closed = npf.pmt(np.where(small, 0.0, rate), finite, -1.0) * np.where(small, 1 + rate * (finite + 1) / 2, 1.0)
    return plain(np.where(np.isinf(life), rate, closed))


def annuity_per_year(
    capital_usd: ArrayLike, rate_per_year: ArrayLike, life_years: ArrayLike, residual_share: ArrayLike = 0.0
) -> Any:
    """Yearly charge that repays capital with interest and leaves `residual_share` of it at the end of life.

    (P - R / (1 + r)^n) x CRF(r, n), with R = residual_share x P.

    >>> round(annuity_per_year(1000, 0.08, 5), 2), round(annuity_per_year(1000, 0.08, 5, residual_share=0.1), 2)
    (250.46, 233.41)

    Raises:
        FinanceError: when an input is outside its domain.
    """
    capital = require("capital_usd", capital_usd, 0)
    rate = require("rate_per_year", rate_per_year, 0)
    life = require("life_years", life_years, 0, open_low=True)
    share = require("residual_share", residual_share, 0, 1)
    present = share * np.exp(-np.log1p(rate) * life) if np.all(np.isfinite(life)) else 0.0
    return plain(capital * (1 - present) * capital_recovery_factor(rate, life))


def straight_line_per_year(capital_usd: ArrayLike, life_years: ArrayLike, residual_share: ArrayLike = 0.0) -> Any:
    """Book depreciation a year: (1 - residual share) x capital / life. It holds no cost of capital.

    >>> round(straight_line_per_year(13e9, 5) - straight_line_per_year(13e9, 6))
    433333333

    Raises:
        FinanceError: when an input is outside its domain.
    """
    capital = require("capital_usd", capital_usd, 0)
    life = require("life_years", life_years, 0, open_low=True)
    return plain(capital * (1 - require("residual_share", residual_share, 0, 1)) / life)


def payback_per_year(capital_usd: ArrayLike, payback_years: ArrayLike) -> Any:
    """Cash rule of thumb: the whole capital back in `payback_years`, no interest, no residual.

    >>> payback_per_year(50000, 4)
    12500.0

    Raises:
        FinanceError: when an input is outside its domain.
    """
    return straight_line_per_year(capital_usd, payback_years)


def market_value(price_usd: ArrayLike, age_years: ArrayLike, decline_oom_per_year: ArrayLike = 0.14) -> Any:
    """Resale value after `age_years`: price x 10^(-decline x age) (Epoch AI: 0.14 orders of magnitude a year).

    >>> round(market_value(40000, 2), 1)
    20992.3

    Raises:
        FinanceError: when an input is outside its domain.
    """
    decline = require("decline_oom_per_year", decline_oom_per_year, 0)
    return plain(require("price_usd", price_usd, 0) * 10.0 ** (-decline * require("age_years", age_years, 0)))


def market_value_charge_per_year(
    price_usd: ArrayLike,
    decline_oom_per_year: ArrayLike = 0.14,
    *,
    age_years: ArrayLike | None = None,
    life_years: ArrayLike | None = None,
) -> Any:
    """Fall of the market value per year: at one age (V x decline x ln 10), or averaged over a life from new.

    >>> round(market_value_charge_per_year(24875, age_years=1.747), 1)
    4565.9
    >>> round(market_value_charge_per_year(24875, life_years=5), 1)
    3982.4

    Raises:
        FinanceError: when neither or both of `age_years` and `life_years` are given, or one is out of domain.
    """
    if (age_years is None) == (life_years is None):
        raise FinanceError("give age_years (charge at that age) or life_years (mean over the life), not both")
    if age_years is not None:
        decline = require("decline_oom_per_year", decline_oom_per_year, 0)
        return plain(market_value(price_usd, age_years, decline) * decline * np.log(10.0))
    life = require("life_years", cast(ArrayLike, life_years), 0, open_low=True)
    price = require("price_usd", price_usd, 0)
    return plain((price - market_value(price, life, decline_oom_per_year)) / life)


def capitalised_interest(rate_per_year: ArrayLike, months: ArrayLike, spending: str = "even") -> Any:
    """Interest added to capital before it earns, as a factor on capital (1 = none).

    `spending` "even": spread evenly over the months, so it waits half of them on average; "upfront": paid at the start
    and idle for all of them (delivery, installation, acceptance).

    >>> round(capitalised_interest(0.10, 24), 4), round(capitalised_interest(0.10, 2, "upfront"), 4)
    (1.1017, 1.016)

    Raises:
        FinanceError: when a number is negative or `spending` is unknown.
    """
    rate = require("rate_per_year", rate_per_year, 0)
    years = require("months", months, 0) / 12.0
    force = np.log1p(rate) * years
    if spending == "upfront":
        return plain(np.exp(force))
    if spending != "even":
        raise FinanceError(f"spending = {spending!r}: use 'even' or 'upfront'")
    small = force < 1e-9
    return plain(np.where(small, 1.0 + force / 2, np.expm1(force) / np.where(small, 1.0, force)))


def weighted_cost_of_capital(
    debt_share: ArrayLike, debt_rate: ArrayLike, equity_rate: ArrayLike, tax_rate: ArrayLike = 0.0
) -> Any:
    """Weighted cost of capital after tax: D x r_d x (1 - T) + (1 - D) x r_e.

    >>> round(weighted_cost_of_capital(0.6, 0.11, 0.15, 0.21), 5)
    0.11214

    Raises:
        FinanceError: when a share is outside 0..1 or a rate is negative.
    """
    share = require("debt_share", debt_share, 0, 1)
    debt = require("debt_rate", debt_rate, 0) * (1 - require("tax_rate", tax_rate, 0, 0.99))
    return plain(share * debt + (1 - share) * require("equity_rate", equity_rate, 0))


def tax_gross_up(
    rate_per_year: ArrayLike, life_years: ArrayLike, tax_rate: ArrayLike, tax_life_years: ArrayLike = 0.0
) -> Any:
    """Factor on the annuity so that revenue pays income tax: (1 - T z) / (1 - T).

    z is the present value of tax depreciation: straight line over `tax_life_years`, 1 when expensed at once (0), where
    the factor is 1. The rate is after tax.

    >>> tax_gross_up(0.08, 5, 0.21)
    1.0
    >>> round(tax_gross_up(0.08, 5, 0.21, tax_life_years=5), 4)
    1.0536

    Raises:
        FinanceError: when an input is outside its domain.
    """
    tax = require("tax_rate", tax_rate, 0, 0.99)
    require("life_years", life_years, 0, open_low=True)
    tax_life = require("tax_life_years", tax_life_years, 0)
    held = np.where(tax_life > 0, tax_life, 1.0)
    present = np.where(tax_life > 0, 1.0 / (held * capital_recovery_factor(rate_per_year, held)), 1.0)
    return plain((1 - tax * present) / (1 - tax))


def weighted_average_rate(principals: ArrayLike, rates: ArrayLike) -> float:
    """Mean rate of several loans, weighted by principal.

    >>> weighted_average_rate([1000, 3000], [0.15, 0.11])
    0.12

    Raises:
        FinanceError: when the lists differ in length or the principal sums to zero.
    """
    weight, rate = require("principals", principals, 0), require("rates", rates, 0)
    if weight.shape != rate.shape or weight.sum() <= 0:
        raise FinanceError(f"{weight.size} principals against {rate.size} rates: give one rate for each loan, sum > 0")
    return float(np.average(rate, weights=weight))


def interest_expense(contractual: ArrayLike, amortisation: ArrayLike = 0.0, capitalised: ArrayLike = 0.0) -> Any:
    """Interest in the income statement: contractual + amortised issue cost - interest capitalised in construction.

    >>> interest_expense(250312, 29036, 23186)
    256162.0
    """
    return plain(
        require("contractual", contractual, 0)
        + require("amortisation", amortisation, 0)
        - require("capitalised", capitalised, 0)
    )


def debt_service_per_year(principal_usd: ArrayLike, rate_per_year: ArrayLike, term_years: ArrayLike) -> Any:
    """Level yearly payment of an amortising loan.

    >>> round(debt_service_per_year(100.0, 0.11, 5), 3)
    27.057
    """
    return annuity_per_year(principal_usd, rate_per_year, term_years)


def coverage_ratio(cash_flow_usd: ArrayLike, debt_service_usd: ArrayLike) -> Any:
    """Cash flow available for debt service over debt service (DSCR).

    >>> coverage_ratio(130.0, 100.0)
    1.3

    Raises:
        FinanceError: when the debt service is not positive.
    """
    return plain(
        np.asarray(cash_flow_usd, dtype=float) / require("debt_service_usd", debt_service_usd, 0, open_low=True)
    )


def internal_rate_of_return(cash_flows_usd: ArrayLike) -> float:
    """Yearly rate at which the cash flows (first: year 0) have present value zero.

    >>> round(internal_rate_of_return([-100, 60, 60]), 4)
    0.1307

    Raises:
        FinanceError: when the flows do not change sign, so no rate exists.
    """
    rate = float(npf.irr(np.asarray(cash_flows_usd, dtype=float)))
    if not np.isfinite(rate):
        raise FinanceError(f"cash flows {cash_flows_usd!r} have no rate of return: they need an outlay and an income")
    return rate


def annual_margin(revenue: ArrayLike, profit: ArrayLike | None = None, cost: ArrayLike | None = None) -> Any:
    """Margin over revenue, from the profit or from the cost (give one).

    >>> round(annual_margin(1364.676, profit=838.124), 3), round(annual_margin(1364.676, cost=1312.826), 3)
    (0.614, 0.038)

    Raises:
        FinanceError: when revenue is not positive, or profit and cost are both or neither given.
    """
    if (profit is None) == (cost is None):
        raise FinanceError("give profit or cost, one of them: the other follows from revenue")
    base = require("revenue", revenue, 0, open_low=True)
    gain = np.asarray(profit, dtype=float) if profit is not None else base - np.asarray(cost, dtype=float)
    return plain(gain / base)


def profit_over_cost(revenue: ArrayLike, cost: ArrayLike) -> Any:
    """Profit as a multiple of cost (not of revenue; DeepSeek's printed "545 %" is this one).

    >>> round(profit_over_cost(562027, 87072), 2)
    5.45

    Raises:
        FinanceError: when the cost is not positive.
    """
    base = require("cost", cost, 0, open_low=True)
    return plain((require("revenue", revenue, 0) - base) / base)


def contract_revenue_per_year(contract_value_usd: ArrayLike, years: ArrayLike) -> Any:
    """Average revenue a year of a contract.

    >>> contract_revenue_per_year(9.7e9, 5)
    1940000000.0
    """
    return straight_line_per_year(contract_value_usd, years)


def prepayment_usd(contract_value_usd: ArrayLike, prepay_share: ArrayLike) -> Any:
    """Cash paid at signing: share x contract value.

    >>> prepayment_usd(9.7e9, 0.2)
    1940000000.0
    """
    return plain(require("contract_value_usd", contract_value_usd, 0) * require("prepay_share", prepay_share, 0, 1))


def deflated(amount_usd: ArrayLike, deflator: ArrayLike) -> Any:
    """Amount in money of the deflator's base year: amount x deflator (base year = 1).

    >>> deflated(100.0, 1.01344)
    101.344

    Raises:
        FinanceError: when the deflator is not positive.
    """
    return plain(np.asarray(amount_usd, dtype=float) * require("deflator", deflator, 0, open_low=True))
