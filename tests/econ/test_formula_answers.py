"""Known answers where a changed formula once went unseen: retries, token classes, capital, inverse yields, fleets."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from econ.agent_calls import Context
from econ.agent_price import FlatPrice
from econ.agent_task import AgentTask, break_even_price_ratio, task_cost
from econ.finance import capital_recovery_factor, capitalised_interest, tax_gross_up
from econ.goodput import FailureModel, exact_goodput
from econ.price_book import TokenPrices
from econ.tokens import StepTimes, class_costs, tokens_per_usd_of_revenue, usd_per_gpu_hour_for
from econ.usage import TokenUsage
from supply.fleet import weibull_survival
from supply.manufacturing import gross_dies, packages_per_wafer
from supply.manufacturing.wafer import Panel, place
from supply.manufacturing.yield_models import defect_density, die_yield
from supply.network import NetworkError
from supply.optimizer.parameters import Values, annuity_share

TASK = AgentTask("t", Context(0, 0, 0, 1000), calls=2, success_rate=0.5, cache_lifetime_s=None)
PRICE = FlatPrice(TokenPrices(0.0, 10.0), ttft_s=1.0, tpot_s=0.01)


def test_time_and_spending_of_a_retried_task_by_hand() -> None:
    """Two calls of 1,000 tokens at 10 USD a million: 0.02 USD and 2 x (1 + 10) s an attempt; half of them succeed."""
    once = task_cost(replace(TASK, attempts=1), PRICE)
    assert once.usd_per_attempt == pytest.approx(0.02) and once.attempts_per_task == 1
    assert once.usd_per_verified_task == pytest.approx(0.04)
    twice = task_cost(replace(TASK, attempts=2, review_minutes=3), PRICE)
    assert twice.attempts_per_task == pytest.approx(1.5) and twice.verified_share == pytest.approx(0.75)
    assert twice.usd_per_attempt == pytest.approx(0.02)
    # 0.75 of the tasks end with an accepted answer that somebody reads for three minutes
    plain = task_cost(replace(TASK, attempts=2), PRICE)
    assert twice.elapsed_s_per_task - plain.elapsed_s_per_task == pytest.approx(0.75 * 180)


def test_success_enters_the_break_even_of_two_models_on_both_sides() -> None:
    assert break_even_price_ratio(20, 4, 0.8, 0.4) == pytest.approx((20 / 0.8) / (4 / 0.4))


def test_seconds_per_dollar_and_shares_are_shares() -> None:
    usage, times = TokenUsage(uncached_input=1e6, output=1e6), StepTimes(1e-5, 1e-5, 1e-6, 3e-5)
    assert class_costs(usage, times, 4.0).overlap == pytest.approx((10 + 30) / 4.0)
    for share in (1.5, -0.5):
        with pytest.raises(ValueError, match="busy_share"):
            usd_per_gpu_hour_for(0.5, 700, share)
    assert usd_per_gpu_hour_for(0.5, 700, 0.5) == pytest.approx(0.5 * 700 * 3600 / 1e6 * 0.5)
    assert tokens_per_usd_of_revenue(0.5) == 2e6


def test_a_very_short_build_costs_half_its_interest() -> None:
    force = math.log1p(1e-8) / 120
    assert capitalised_interest(1e-8, 0.1) - 1 == pytest.approx(force / 2, rel=1e-3, abs=1e-16)
    assert capitalised_interest(1e-8, 0.1) >= 1


def test_density_of_a_quoted_yield_of_several_layers() -> None:
    quoted = die_yield(800, 0.05, layers=4)
    assert defect_density(quoted, 800, layers=4) == pytest.approx(0.05, rel=1e-9)
    assert defect_density(1.0, 800) == 0.0
    assert np.asarray(defect_density([1.0, 0.8], 814)) == pytest.approx([0.0, 0.0285], abs=1e-4)


def test_a_shape_of_zero_is_no_wear() -> None:
    with pytest.raises(NetworkError, match="shape 0 must be positive"):
        weibull_survival(3, 2.0, 0.0)


@pytest.mark.parametrize("life", [1, 5, 30])
def test_capital_recovery_at_a_vanishing_rate_against_exact_arithmetic(life: int) -> None:
    rate = Fraction(1, 3_000_000)
    exact = rate / (1 - 1 / (1 + rate) ** life)
    assert capital_recovery_factor(float(rate), life) == pytest.approx(float(exact), rel=1e-11)


def test_a_failed_attempt_costs_money_too() -> None:
    """Solved attempts make two calls of 0.01 USD, failed ones four: half of the single attempts fail."""
    task = replace(TASK, attempts=1, calls_failed=4)
    assert task_cost(task, PRICE).usd_per_attempt == pytest.approx(0.5 * 0.02 + 0.5 * 0.04)


def test_places_on_carriers_by_hand() -> None:
    # five of 99.9 mm with gaps of 0.1 mm take 499.9 of 500 mm
    assert len(place(99.9, 99.9, Panel(506, 506, 3.0), 0.1).x_mm) == 25
    assert len(place(100.1, 99.9, Panel(506, 506, 3.0), 0.1).x_mm) == 20
    long = packages_per_wafer(2000.0, aspect=4.0)
    assert long == gross_dies(math.sqrt(8000.0), 2000.0 / math.sqrt(8000.0), 300.0, 3.0, 0.1)
    assert long != packages_per_wafer(2000.0)


def test_ends_of_formulas_by_hand() -> None:
    # one fault in ten million: a die of Murphy fails with that chance, and is never better than perfect
    assert die_yield(0.01, 0.001, model="murphy") == pytest.approx(1.0 - 1e-7, abs=1e-12)
    assert weibull_survival(3, 0.5, 1.0) == pytest.approx([1.0, math.exp(-2.0), math.exp(-4.0)])
    # half a year of tax depreciation at 8 %
    present = 1.0 / (0.5 * capital_recovery_factor(0.08, 0.5))
    assert tax_gross_up(0.08, 5, 0.2, tax_life_years=0.5) == pytest.approx((1 - 0.2 * present) / 0.8)
    # an interval that is not durable yet when the job fails is done again: kept = e^(-lag / M) of it
    prompt, late = (exact_goodput(FailureModel(1000.0, 10.0, 100.0, durable_lag_s=lag)).useful for lag in (0.0, 100.0))
    assert late / prompt == pytest.approx(math.exp(-0.1))


def test_an_annuity_is_discounted() -> None:
    values = Values({"discount_rate": np.full(4, 0.21)}, 4)
    kept = 1.21 ** (-np.arange(8) / 4)  # eight payments, a quarter apart; three fall inside after the first period
    assert annuity_share(values, 2.0, 1.0, 0.25)[0] == pytest.approx(kept[:3].sum() / kept.sum())
