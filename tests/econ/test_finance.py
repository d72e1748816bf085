"""Capital recovery, depreciation, construction interest, tax, and the annuity of published target P06 and P07."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from econ import finance
from econ.finance import FinanceError
from econ.gpu_hour import site_cost_per_year

RATES = st.floats(0.0, 0.4)
LIVES = st.floats(0.5, 60.0)


@pytest.mark.parametrize(("life", "expected"), [(5, 0.2505), (7, 0.1921), (14, 0.1213)])
def test_target_p06_capital_recovery(life: float, expected: float) -> None:
    assert finance.capital_recovery_factor(0.08, life) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(("life", "printed", "digits"), [(5, 8.5, 1), (3, 12, 0), (7, 7, 0)])
def test_target_p07_one_gigawatt_site(life: float, printed: float, digits: int) -> None:
    cost = site_cost_per_year(38e9, 25.5e9, 0.07, life, 14, 0.9e9) / 1e9
    assert round(cost, digits) == printed


@given(RATES, st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_annuity_repays_the_capital(rate: float, years: int) -> None:
    """Independent oracle: a loan ledger paid with the annuity ends at zero."""
    owed = 1000.0
    payment = finance.annuity_per_year(1000.0, rate, years)
    for _ in range(years):
        owed = owed * (1 + rate) - payment
    assert owed == pytest.approx(0.0, abs=1e-6 * (1 + rate) ** years * 1000)


@given(RATES, st.integers(1, 30), st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_residual_is_left_at_the_end(rate: float, years: int, share: float) -> None:
    owed = 1000.0
    payment = finance.annuity_per_year(1000.0, rate, years, share)
    for _ in range(years):
        owed = owed * (1 + rate) - payment
    assert owed == pytest.approx(1000.0 * share, abs=1e-6 * (1 + rate) ** years * 1000)


def test_zero_rate_is_straight_line_and_infinite_life_is_interest() -> None:
    assert finance.capital_recovery_factor(0.0, 4) == 0.25
    assert finance.capital_recovery_factor(0.08, math.inf) == 0.08
    mixed = finance.capital_recovery_factor([0.0, 0.08, 0.08], [4, math.inf, 5])
    assert mixed == pytest.approx([0.25, 0.08, 0.25045645])
    assert finance.capital_recovery_factor(1e-9, 4) == pytest.approx(0.25, rel=1e-6)


@given(RATES, LIVES)
@settings(max_examples=40, deadline=None)
def test_charge_falls_in_life_and_rises_in_rate(rate: float, life: float) -> None:
    base = finance.capital_recovery_factor(rate, life)
    assert finance.capital_recovery_factor(rate, life * 1.1) < base
    assert finance.capital_recovery_factor(rate + 0.01, life) > base
    assert finance.straight_line_per_year(1.0, life * 1.1) < finance.straight_line_per_year(1.0, life)


def test_market_value_charge_integrates_to_the_loss() -> None:
    """Summing the charge at each age over a life gives what the resale value lost."""
    ages = (np.arange(50000) + 0.5) * 5 / 50000
    summed = float(np.mean(finance.market_value_charge_per_year(100.0, age_years=ages)) * 5)
    assert summed == pytest.approx(100 - finance.market_value(100.0, 5), rel=1e-6)
    assert finance.market_value_charge_per_year(100.0, life_years=5) * 5 == pytest.approx(summed, rel=1e-6)


def test_construction_interest_against_a_monthly_ledger() -> None:
    rate, months = 0.10, 24
    monthly = (1 + rate) ** (1 / 12)
    ledger = sum(monthly ** (months - m - 0.5) for m in range(months)) / months
    assert finance.capitalised_interest(rate, months) == pytest.approx(ledger, rel=1e-4)
    assert finance.capitalised_interest(rate, months, "upfront") == pytest.approx(1.21)
    assert finance.capitalised_interest(0.0, months) == 1.0


def test_tax_makes_the_after_tax_return_come_out() -> None:
    """Oracle: after-tax cash flows at the grossed-up charge have the required return as their internal rate."""
    rate, life, tax = 0.08, 5, 0.21
    charge = finance.capital_recovery_factor(rate, life) * finance.tax_gross_up(rate, life, tax, life)
    flow = charge - tax * (charge - 1 / life)
    assert finance.internal_rate_of_return([-1.0] + [flow] * life) == pytest.approx(rate, rel=1e-9)


def test_market_and_book_figures_of_a_listed_cloud() -> None:
    assert finance.interest_expense(250312, 29036, 23186) == 256162
    rate = finance.weighted_average_rate(
        [1782.5, 4953.967, 2000, 450, 1728.388, 256.63], [0.15, 0.11, 0.10, 0.07, 0.095, 0.12]
    )
    assert rate == pytest.approx(0.11089, abs=5e-6)
    assert finance.annual_margin(1364.676, profit=838.124) == pytest.approx(0.614, abs=5e-4)
    assert finance.annual_margin(1364.676, cost=1312.826) == pytest.approx(0.038, abs=5e-4)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: finance.capital_recovery_factor(-0.01, 5), "rate_per_year"),
        (lambda: finance.capital_recovery_factor(0.1, 0), "life_years = 0"),
        (lambda: finance.capital_recovery_factor(float("nan"), 5), "rate_per_year"),
        (lambda: finance.market_value_charge_per_year(1.0), "age_years"),
        (lambda: finance.capitalised_interest(0.1, 3, "late"), "'even' or 'upfront'"),
        (lambda: finance.weighted_average_rate([1, 2], [0.1]), "one rate for each loan"),
        (lambda: finance.internal_rate_of_return([1.0, 1.0]), "outlay"),
        (lambda: finance.annual_margin(1.0), "profit or cost"),
        (lambda: finance.prepayment_usd(1e9, 1.2), "prepay_share"),
    ],
)
def test_bad_input_is_named(call: object, words: str) -> None:
    with pytest.raises(FinanceError, match=words):
        call()  # type: ignore[operator]


def test_case_tco_life_5_to_6() -> None:
    """One life changes by one year: book depreciation moves, cash cost does not."""
    change = finance.straight_line_per_year(13e9, 5) - finance.straight_line_per_year(13e9, 6)
    assert change == pytest.approx(4.33333e8, rel=0.002)
    assert change / finance.straight_line_per_year(13e9, 5) == pytest.approx(0.167, abs=5e-4)


POSITIVE_ONLY = [
    (finance.capital_recovery_factor, {"rate_per_year": 0.1, "life_years": 5.0}, "life_years"),
    (finance.annuity_per_year, {"capital_usd": 1.0, "rate_per_year": 0.1, "life_years": 5.0}, "life_years"),
    (finance.straight_line_per_year, {"capital_usd": 1.0, "life_years": 5.0}, "life_years"),
    (finance.market_value_charge_per_year, {"price_usd": 1.0, "life_years": 5.0}, "life_years"),
]
NOT_NEGATIVE = [
    (finance.annuity_per_year, {"capital_usd": 1.0, "rate_per_year": 0.1, "life_years": 5.0}, "capital_usd"),
    (finance.annuity_per_year, {"capital_usd": 1.0, "rate_per_year": 0.1, "life_years": 5.0}, "rate_per_year"),
    (finance.annuity_per_year, {"capital_usd": 1.0, "rate_per_year": 0.1, "life_years": 5.0}, "residual_share"),
    (finance.straight_line_per_year, {"capital_usd": 1.0, "life_years": 5.0}, "capital_usd"),
    (finance.straight_line_per_year, {"capital_usd": 1.0, "life_years": 5.0}, "residual_share"),
    (finance.market_value, {"price_usd": 1.0, "age_years": 1.0}, "price_usd"),
    (finance.market_value, {"price_usd": 1.0, "age_years": 1.0}, "age_years"),
    (finance.market_value_charge_per_year, {"price_usd": 1.0, "life_years": 5.0}, "price_usd"),
    (finance.market_value_charge_per_year, {"price_usd": 1.0, "age_years": 5.0}, "decline_oom_per_year"),
    (finance.capitalised_interest, {"rate_per_year": 0.1, "months": 3.0}, "rate_per_year"),
    (finance.capitalised_interest, {"rate_per_year": 0.1, "months": 3.0}, "months"),
]


@pytest.mark.parametrize(("function", "given_values", "name"), POSITIVE_ONLY)
def test_domains_that_start_above_nothing(function: Any, given_values: dict[str, float], name: str) -> None:
    assert np.isfinite(function(**given_values | {name: 0.01}))
    for bad in (0.0, -0.5):
        with pytest.raises(FinanceError, match=name):
            function(**given_values | {name: bad})


@pytest.mark.parametrize(("function", "given_values", "name"), NOT_NEGATIVE)
def test_domains_that_start_at_nothing(function: Any, given_values: dict[str, float], name: str) -> None:
    assert np.isfinite(function(**given_values | {name: 0.0}))
    assert np.isfinite(function(**given_values | {name: 0.01}))
    with pytest.raises(FinanceError, match=name):
        function(**given_values | {name: -0.01})


def test_a_residual_is_worth_its_present_value_at_a_rate_of_nothing_too() -> None:
    assert finance.annuity_per_year(1000.0, 0.0, 4.0, 0.2) == pytest.approx(200.0)
    assert finance.annuity_per_year(1000.0, 0.1, np.inf, 0.2) == pytest.approx(100.0)
