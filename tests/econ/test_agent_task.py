"""Agent tasks: call traces by hand, correlated success, all spending over verified tasks, intervals, and user cases."""

import math
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from econ.agent_calls import AgentError, Context, call_counts, prefix_cache_saving, trace
from econ.agent_fit import fit_calls_cv, fit_observation_tokens, usd_per_attempt
from econ.agent_success import Success, SuccessError, fit_success, fit_success_from_pass_hat, success_interval
from econ.agent_task import (
    AgentTask,
    ApiPrice,
    Children,
    FlatPrice,
    OwnPrice,
    agent_task,
    agent_tasks,
    attempt_cost,
    break_even_price_ratio,
    cost_per_verified_task,
    task_cost,
    total_spend,
)
from econ.price_book import PriceError, TokenPrices
from econ.throughput_check import EngineRate
from econ.token_cost import ServingPoint, Workload, token_cost
from econ.tokens import StepTimes
from supply.facts import catalog

PRICES = TokenPrices(3.0, 15.0, 0.3, 3.75, 6.0)
PRICE = FlatPrice(PRICES, ttft_s=1.0, tpot_s=0.01)
CONTEXT = Context(2000, 500, 800, 200)
TASK = AgentTask("t", CONTEXT, calls=10, success_rate=0.6)
SHARE = st.floats(0.05, 0.95)


# --- user cases -------------------------------------------------------------------------------------------------------


def test_case_agent_seven_calls_no_cache() -> None:
    prompts = [31983, 32362, 31564, 31355, 30661, 29929, 29295]
    assert sum(prompts) == 217149
    assert prefix_cache_saving(prompts, 29000, 1.25, 0.10) == pytest.approx(0.312223, rel=1e-5)
    assert prefix_cache_saving(prompts, 29000) * 217149 == pytest.approx(67799, abs=0.5)
    with pytest.raises(AgentError, match="shortest has 29295"):
        prefix_cache_saving(prompts, 30000)


def test_target_p15_rollout() -> None:
    campaign = "HAL evaluation campaign"
    usd = catalog().select(campaign, "total_cost").number / catalog().select(campaign, "rollouts").number
    assert usd == pytest.approx(1.84, abs=0.005)


def test_course_twenty_failed_steps_against_four() -> None:
    ratio = break_even_price_ratio(20, 4)
    assert ratio == 5

    def bill(calls: int, price: float) -> float:
        flat = Context(0, 0, 0, 1000)  # equal tokens a call
        task = AgentTask("x", flat, calls=calls, success_rate=1.0, cache_lifetime_s=None)
        return task_cost(task, FlatPrice(TokenPrices(0.0, price))).usd_per_verified_task

    assert bill(4, 4.9) < bill(20, 1.0) < bill(4, 5.1)


# --- traces -----------------------------------------------------------------------------------------------------------


def test_three_calls_by_hand() -> None:
    calls = trace(Context(1000, 100, 500, 50), 3).calls
    assert [c.usage.prompt for c in calls] == [1100, 1650, 2200]
    assert [c.usage.cache_read for c in calls] == [0, 1100, 1650]
    assert [c.usage.cache_write for c in calls] == [1100, 550, 550]


def test_a_wait_beyond_the_lifetime_is_paid_again() -> None:
    short = trace(CONTEXT, 4, [0, 10, 299, 10], 300.0).usage
    long = trace(CONTEXT, 4, [0, 10, 301, 10], 300.0).usage
    third = CONTEXT.instructions + CONTEXT.request + CONTEXT.observation + CONTEXT.output
    assert long.cache_write - short.cache_write == pytest.approx(third)
    assert short.total == long.total
    warm = trace(replace(CONTEXT, instructions_warm=True), 4, [0, 10, 301, 10], 300.0).usage
    assert warm.cache_read == long.cache_read + 2 * CONTEXT.instructions


def test_policies() -> None:
    limited = replace(CONTEXT, limit=6000, kept=1000)
    with pytest.raises(AgentError, match=r"reaches 6500 tokens after call 4 of 8.*summarise, drop or reopen"):
        trace(limited, 8)
    runs = {p: trace(replace(limited, policy=p, reopen_share=0.5), 8) for p in ("summarise", "drop", "reopen")}
    assert [c.extra for c in runs["summarise"].calls].count(True) >= 1
    assert not any(c.extra for c in runs["drop"].calls)
    for run in runs.values():
        assert max(c.usage.prompt for c in run.calls if not c.extra) <= 6000
    kept = trace(CONTEXT, 8).usage
    assert runs["drop"].usage.total < kept.total
    assert runs["drop"].usage.total < runs["reopen"].usage.total
    with pytest.raises(AgentError, match="raise the limit or keep less"):
        replace(limited, policy="drop", limit=3000)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.floats(0, 600), st.sampled_from([None, 60.0, 300.0]))
def test_prompt_tokens_do_not_depend_on_the_cache(calls: int, gap: float, lifetime: float | None) -> None:
    c = CONTEXT
    step = c.observation + c.output
    prompt = calls * (c.instructions + c.request) + step * calls * (calls - 1) / 2
    usage = trace(c, calls, gap, lifetime).usage
    assert usage.prompt == pytest.approx(prompt)
    assert usage.output == calls * c.output


def test_call_counts_keep_the_mean_and_spread() -> None:
    counts = call_counts(20, 0.5)
    assert counts.mean() == pytest.approx(20)
    assert counts.min() >= 1
    assert counts.std() / counts.mean() == pytest.approx(0.5, rel=0.1)
    with pytest.raises(AgentError, match="at least one call"):
        call_counts(0.5, 0.1)


# --- success ----------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(SHARE, SHARE, st.integers(1, 8))
def test_correlation_moves_any_and_all_apart(rate: float, correlation: float, k: int) -> None:
    free, bound, tied = Success(rate, 0.0), Success(rate, correlation), Success(rate, 1.0)
    assert free.any_of(k) >= bound.any_of(k) - 1e-12 >= tied.any_of(k) - 2e-12
    assert free.all_of(k) <= bound.all_of(k) + 1e-12 <= tied.all_of(k) + 2e-12
    assert bound.any_of(k) <= bound.any_of(k + 1) + 1e-12
    assert bound.chances.mean() == pytest.approx(rate, abs=0.01)


def test_beta_binomial_against_numerical_integration() -> None:
    from scipy.integrate import quad
    from scipy.stats import beta

    s = Success(0.35, 0.4)
    size = 1 / 0.4 - 1
    density = beta(0.35 * size, 0.65 * size)
    for k in (1, 2, 5):
        value, _ = quad(lambda p, k=k: p**k * density.pdf(p), 0, 1)
        assert s.all_of(k) == pytest.approx(value, rel=1e-6)


def test_published_pass_hat_is_reproduced_from_two_numbers() -> None:
    cat = catalog()
    subjects = sorted({f.subject for f in cat.find(quantity="pass_hat_4")})
    assert len(subjects) == 4
    for subject in subjects:
        printed = [cat.select(subject, f"pass_hat_{k}").number for k in (1, 2, 3, 4)]
        fit = fit_success_from_pass_hat(printed[:2])
        assert fit.all_of(3) == pytest.approx(printed[2], abs=0.02)
        assert fit.all_of(4) == pytest.approx(printed[3], abs=0.04)  # 50 to 115 tasks: sampling error near 0.05
        assert printed[0] ** 4 < 0.6 * printed[3]  # independence would be far off


def test_fit_recovers_a_known_correlation() -> None:
    rng = np.random.default_rng(7)
    size = 1 / 0.3 - 1
    p = rng.beta(0.6 * size, 0.4 * size, 3000)
    fit = fit_success(rng.binomial(5, p).tolist(), [5] * 3000)
    assert fit.rate == pytest.approx(0.6, abs=0.02)
    assert fit.correlation == pytest.approx(0.3, abs=0.03)
    assert fit_success([1, 0, 1], [1, 1, 1]).correlation == 0
    with pytest.raises(SuccessError, match="one pair a task"):
        fit_success([2], [1])


def test_interval_narrows_with_tasks() -> None:
    a, b = success_interval(6, 10), success_interval(600, 1000)
    assert a[0] < b[0] < 0.6 < b[1] < a[1]
    with pytest.raises(SuccessError, match="no more successes"):
        success_interval(3, 2)


# --- cost per verified task -------------------------------------------------------------------------------------------


def test_parts_sum_and_failed_runs_are_in() -> None:
    task = replace(
        TASK,
        calls_failed=14,
        calls_cv=0.4,
        tool_usd=0.002,
        tool_s=5,
        retry_share=0.05,
        harness_usd=0.01,
        judge_usd=0.02,
        review_minutes=3,
        review_usd_per_hour=60,
    )
    cost = task_cost(task, PRICE)
    assert sum(cost.parts.values()) == pytest.approx(cost.usd_per_verified_task, rel=1e-12)
    solved, failed = attempt_cost(task, PRICE, True), attempt_cost(task, PRICE, False)
    by_hand = (0.6 * solved.usd + 0.4 * failed.usd + 0.02) / 0.6 + 3.0
    assert cost.usd_per_verified_task == pytest.approx(by_hand, rel=1e-12)
    assert failed.usd > solved.usd
    assert cost.failed_share == pytest.approx(0.4 * (failed.usd + 0.02) / 0.6 / by_hand)
    assert cost.solved.quantiles["p50"] < cost.solved.quantiles["p90"] < cost.solved.quantiles["p99"]


@settings(max_examples=30, deadline=None)
@given(SHARE, SHARE, st.integers(1, 5), st.floats(0, 0.9))
def test_cost_is_all_spending_over_verified_tasks(
    rate: float, correlation: float, attempts: int, other_rate: float
) -> None:
    task = replace(TASK, success_rate=rate, correlation=correlation, attempts=attempts)
    cost = task_cost(task, PRICE)
    per_attempt = attempt_cost(task, PRICE).usd
    assert cost.usd_per_verified_task * cost.verified_share == pytest.approx(per_attempt * cost.attempts_per_task)
    assert cost.usd_per_verified_task >= per_attempt
    better = task_cost(replace(task, success_rate=max(rate, other_rate)), PRICE)
    assert better.usd_per_verified_task <= cost.usd_per_verified_task * (1 + 1e-9)


def test_correlated_failures_make_retries_dearer() -> None:
    base = replace(TASK, attempts=4)
    free = task_cost(base, PRICE)
    tied = task_cost(replace(base, correlation=0.6), PRICE)
    assert tied.usd_per_verified_task > free.usd_per_verified_task
    assert tied.verified_share < free.verified_share
    assert free.usd_per_verified_task == pytest.approx(attempt_cost(base, PRICE).usd / 0.6)


def test_simulation_agrees_with_the_expected_cost() -> None:
    task = replace(
        TASK, attempts=3, correlation=0.3, calls_failed=15, false_accept=0.1, false_reject=0.15, judge_usd=0.01
    )
    cost = task_cost(task, PRICE)
    solved, failed = attempt_cost(task, PRICE, True).usd, attempt_cost(task, PRICE, False).usd
    rng = np.random.default_rng(3)
    size = 1 / 0.3 - 1
    spend = verified = 0.0
    n = 20_000
    for p in rng.beta(0.6 * size, 0.4 * size, n):
        for _ in range(3):
            right = rng.random() < p
            spend += (solved if right else failed) + 0.01
            if rng.random() < ((1 - 0.15) if right else 0.1):
                verified += right
                break
    assert cost.usd_per_verified_task == pytest.approx(spend / verified, rel=0.02)
    assert cost.verified_share == pytest.approx(verified / n, rel=0.02)


def test_child_calls_belong_to_the_task() -> None:
    alone = task_cost(replace(TASK, success_rate=1.0), PRICE)
    child = replace(TASK, name="child", calls=5)
    family = task_cost(replace(TASK, success_rate=1.0, children=(Children(3, child),)), PRICE)
    expected = 3 * attempt_cost(child, PRICE).usd
    assert family.parts["children"] == pytest.approx(expected)
    assert family.usd_per_verified_task == pytest.approx(alone.usd_per_verified_task + expected)
    assert family.solved.usage.total > alone.solved.usage.total


def test_interval_holds_the_estimate_and_narrows() -> None:
    few = task_cost(replace(TASK, observed_tasks=20), PRICE)
    many = task_cost(replace(TASK, observed_tasks=2000), PRICE)
    assert few.low < many.low < few.usd_per_verified_task < many.high < few.high
    banded = task_cost(TASK, replace(PRICE, band=(0.8, 1.3)))
    assert banded.low == pytest.approx(0.8 * TASK_USD, rel=0.02)
    assert banded.high == pytest.approx(1.3 * TASK_USD, rel=0.02)
    assert "price band" in banded.interval_basis
    assumed = task_cost(replace(TASK, success_low=0.5, success_high=0.75), PRICE)
    assert assumed.low == pytest.approx(TASK_USD * 0.6 / 0.75, rel=0.02)
    assert assumed.high == pytest.approx(TASK_USD * 0.6 / 0.5, rel=0.02)
    with pytest.raises(AgentError, match="must hold the success rate"):
        replace(TASK, success_low=0.7, success_high=0.8)


TASK_USD = task_cost(TASK, PRICE).usd_per_verified_task


def test_waiting_sessions_hold_accelerators() -> None:
    waiting = replace(TASK, tool_s=60.0, success_rate=1.0)

    class Owned(FlatPrice):
        def gpu_s(self, usage: object) -> float | None:
            del usage
            return 1.0

    free = task_cost(waiting, Owned(PRICES, 1.0, 0.01))
    held = task_cost(waiting, Owned(PRICES, 1.0, 0.01, sessions_per_accelerator=10.0, usd_per_gpu_s=0.001))
    session_s = 9 * 60 + 10 * (1 + 199 * 0.01)
    assert held.accelerators_held_hours == pytest.approx(session_s / 10 / 3600)
    assert held.parts["held_while_waiting"] == pytest.approx((session_s / 10 - 10) * 0.001)
    assert free.accelerators_held_hours is None and free.accelerator_hours == pytest.approx(10 / 3600)


def test_own_accelerators_price_a_task_with_the_engine_band() -> None:
    rate = EngineRate(1000.0, 800.0, 1250.0, 3000.0, "same_hardware", "memory_bandwidth", "table")
    times = StepTimes(2e-5, 2e-5, 1e-6, 1e-3)
    point = ServingPoint(32, 1, 0.5, 0.03, 5.0, rate, times)

    class Table:
        def points(self, model: str, hardware: str, load: Workload, **setup: object) -> list[ServingPoint]:
            del model, hardware, load, setup
            return [point]

    usage = attempt_cost(TASK, PRICE).usage
    load = Workload("agent", usage.prompt / 10, usage.output / 10, usage.cache_hit_share, 1 - usage.cache_hit_share)
    tokens = token_cost("m", "h", 3.6, load, engine=Table())
    cost = task_cost(TASK, OwnPrice(tokens))
    # ten calls of this mean shape take ten requests' worth of accelerator time, whatever the order of the classes
    paid_s = usage.output / 1000.0
    assert cost.accelerator_hours == pytest.approx(paid_s / 0.6 / 3600)
    assert cost.usd_per_verified_task == pytest.approx(paid_s / 0.6 * 3.6 / 3600)
    assert cost.low == pytest.approx(cost.usd_per_verified_task / 1.25, rel=0.03)
    assert cost.high == pytest.approx(cost.usd_per_verified_task / 0.8, rel=0.03)
    waiting = task_cost(replace(TASK, tool_s=60.0), OwnPrice(tokens, sessions_per_accelerator=4.0))
    assert waiting.parts["held_while_waiting"] > 0
    held = waiting.accelerators_held_hours
    assert held is not None and waiting.accelerator_hours is not None and held > waiting.accelerator_hours
    assert waiting.usd_per_verified_task == pytest.approx(held * 3.6)
    with pytest.raises(AgentError, match="give a positive number"):
        OwnPrice(tokens, sessions_per_accelerator=0.0)


def test_never_verified_is_an_error() -> None:
    with pytest.raises(AgentError, match="never verified"):
        task_cost(replace(TASK, success_rate=0.0), PRICE)
    with pytest.raises(AgentError, match="never verified"):
        task_cost(replace(TASK, false_reject=1.0), PRICE)
    with pytest.raises(AgentError, match="without one a cost per verified task does not exist"):
        cost_per_verified_task(10.0, verified=0)
    with pytest.raises(AgentError, match="either the count"):
        cost_per_verified_task(10.0)


def test_unpriced_model_is_refused_before_anything_runs() -> None:
    with pytest.raises(PriceError, match="Nothing is billed at zero"):
        ApiPrice("gpt-nonesuch", date(2026, 11, 1))


def test_published_benchmarks() -> None:
    assert cost_per_verified_task(185.72658, verified=324) == pytest.approx(0.57323, rel=1e-5)
    assert cost_per_verified_task(2012, tasks=100, success_rate=0.757) == pytest.approx(26.5786, rel=1e-5)
    assert total_spend(0.6817, 1.0524, 419, 500) == pytest.approx(370.8908, rel=1e-4)


# --- fits to what benchmarks print -----------------------------------------------------------------------------------

SONNET_4 = FlatPrice(TokenPrices(3.0, 15.0, 0.3, 3.75), label="claude-sonnet-4")


def test_coding_fit_predicts_the_printed_cost_quantiles() -> None:
    cat, subject = catalog(), "sonnet-4 + mini-SWE-agent"
    calls = cat.select("Claude 4 Sonnet (20250514) + mini-SWE-agent", "calls_per_task").number
    cv = fit_calls_cv(calls, cat.select(subject, "calls_p90").number)
    assert cv == pytest.approx(agent_task("coding").calls_cv, abs=0.01)
    assert np.quantile(call_counts(calls, cv), 0.5) == pytest.approx(cat.select(subject, "calls_p50").number, rel=0.1)
    printed = cat.select("Claude 4 Sonnet (20250514) + mini-SWE-agent", "cost_per_task").number
    task = fit_observation_tokens(agent_task("coding"), SONNET_4, printed)
    assert task.context.observation == pytest.approx(agent_task("coding").context.observation, rel=0.01)
    assert usd_per_attempt(task, SONNET_4) == pytest.approx(printed, rel=1e-6)
    # only the mean was fitted: median, 90th and 99th percentile of the cost are predictions
    for name in ("p50", "p90", "p99"):
        measured = cat.select(subject, f"cost_{name}").number
        assert attempt_cost(task, SONNET_4).quantiles[name] == pytest.approx(measured, rel=0.15)


def test_research_and_browser_fits() -> None:
    opus = FlatPrice(TokenPrices(5.0, 25.0, 0.5, 6.25))
    printed = catalog().select("claude-opus-4-8 + OpenHands on gaia", "cost_per_task").number
    bare = replace(agent_task("research"), tool_usd=0.0, observed_tasks=None)
    assert usd_per_attempt(bare, opus) == pytest.approx(printed, rel=0.01)
    gpt5 = FlatPrice(TokenPrices(1.25, 10.0, 0.125))
    total = catalog().select("GPT-5 on Online Mind2Web (HAL)", "total_cost").number
    quick = replace(agent_task("browser"), approval_share=0.0)
    assert usd_per_attempt(quick, gpt5) == pytest.approx(total / 300, rel=0.02)


def test_unreachable_prints_are_refused() -> None:
    with pytest.raises(AgentError, match="cannot be fitted"):
        fit_observation_tokens(TASK, PRICE, 1e-6)
    with pytest.raises(AgentError, match="cannot be fitted"):
        fit_calls_cv(30, 20)


def test_dropping_old_observations_halves_the_cost_as_published() -> None:
    cat, subject = catalog(), "Qwen3-Coder 480B + SWE-agent on SWE-bench Verified"
    ratio = cat.select(subject, "cost_per_task_observations_dropped").number
    ratio /= cat.select(subject, "cost_per_task_keep_all").number
    keep = replace(agent_task("coding"), calls=60, calls_cv=0.0, cache_lifetime_s=None)
    window = keep.context.instructions + keep.context.request + 10 * (keep.context.observation + keep.context.output)
    drop = replace(keep, context=replace(keep.context, policy="drop", limit=window * 1.3, kept=window * 0.8))
    model = attempt_cost(drop, SONNET_4).usd / attempt_cost(keep, SONNET_4).usd
    assert model == pytest.approx(ratio, abs=0.15)


# --- library ----------------------------------------------------------------------------------------------------------


def test_the_four_course_tasks() -> None:
    from econ.case_files import fact_ids
    from supply.paths import data_file

    assert {"chat", "research", "coding", "browser"} <= set(agent_tasks())
    price = ApiPrice("claude-opus-5", date(2026, 11, 15), ttft_s=1.5, tpot_s=0.012)
    costs = {name: task_cost(agent_task(name), price) for name in ("chat", "research", "coding", "browser")}
    for name, cost in costs.items():
        assert cost.low < cost.usd_per_verified_task < cost.high
        assert agent_task(name).source in cost.interval_basis
        assert sum(cost.parts.values()) == pytest.approx(cost.usd_per_verified_task)
        ids = fact_ids(data_file("cases", "tasks", f"{name}.yaml"))
        assert ids and all(i in catalog() for i in ids)
    assert agent_task("chat").calls == 1
    assert costs["chat"].usd_per_verified_task == min(c.usd_per_verified_task for c in costs.values())
    assert math.isfinite(costs["coding"].elapsed_s_per_task)
    with pytest.raises(AgentError, match="shipped ones are"):
        agent_task("nosuch")
