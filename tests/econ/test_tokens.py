"""Token costs: four denominators, four classes, the throughput check, provisioning, energy, own or API."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from econ.fleet_load import (
    FleetError,
    ModelLoad,
    agents_supported,
    carbon_kg_per_mtoken,
    energy_kwh_per_mtoken,
    fleet_plan,
    provision,
    self_host_break_even,
    sessions_per_accelerator,
)
from econ.own_or_api import own_or_api
from econ.price_book import TokenPrices
from econ.throughput_check import EngineRate, ImpossibleThroughputError, check_throughput
from econ.token_cost import ServingPoint, TokenCostError, Workload, cheapest_point, token_cost, workload, workloads
from econ.tokens import (
    StepTimes,
    accelerators_of,
    class_costs,
    cost_over_price,
    denominators,
    implied_tokens_per_s,
    prefill_usd_per_mtoken,
    tokens_per_usd_of_cost,
    tokens_per_usd_of_revenue,
    usd_per_gpu_hour_for,
    usd_per_mtoken,
)
from econ.usage import TokenUsage
from econ.use_chain import UseChain
from supply.facts import catalog

POSITIVE = st.floats(1e-3, 1e6)
SECONDS = st.floats(1e-9, 1e-2)
RATE = EngineRate(
    1000.0, 800.0, 1250.0, 3000.0, "same_hardware", "memory_bandwidth", "a model on one card", "bandwidth"
)
TIMES = StepTimes(1e-5, 1.1e-5, 1e-6, 1e-3)


class TableEngine:
    """A test double: operating points from a small table."""

    def __init__(self, points: list[ServingPoint]) -> None:
        self.table = points

    def points(self, model: str, hardware: str, load: Workload, **setup: object) -> list[ServingPoint]:
        del model, hardware, load, setup
        return self.table


def point(concurrency: float, ttft_s: float, tpot_s: float, rate: float) -> ServingPoint:
    engine = EngineRate(rate, rate * 0.8, rate * 1.25, rate * 3, "same_hardware", "memory_bandwidth", "table")
    return ServingPoint(concurrency, 1, ttft_s, tpot_s, rate / 200, engine, TIMES)


ENGINE = TableEngine([point(1, 0.1, 0.01, 100.0), point(32, 0.5, 0.03, 1000.0), point(256, 4.0, 0.09, 3000.0)])
LOAD = Workload("test", 1000, 200, cache_hit_share=0.5, cache_write_share=0.3, ttft_target_s=1.0, tpot_target_s=0.05)


# --- user cases and published targets ---------------------------------------------------------------------------------


def test_case_token_dp_missing_in_denominator() -> None:
    total, node_price = 8000.0, 8 * 2.0
    right = usd_per_mtoken(2.0, total, accelerators=accelerators_of(tp=1, pp=1, dp=8, ep=8))
    assert right == pytest.approx(usd_per_mtoken(2.0, total / 8)) == pytest.approx(usd_per_mtoken(node_price, total))
    wrong = usd_per_mtoken(2.0, total, accelerators=accelerators_of(tp=1, pp=1))
    assert right / wrong == 8


def test_case_token_busy_share_10x() -> None:
    full, tenth = usd_per_mtoken(2.50, 700, busy_share=np.array([1.0, 0.1]))
    assert full == pytest.approx(0.992063, rel=0.001)
    assert tenth == pytest.approx(9.92063, rel=0.001)


def test_case_token_per_dollar_two_meanings() -> None:
    rate, hourly = 1234.5, 2.34
    cost = usd_per_mtoken(hourly, rate)
    assert cost / 1e6 * tokens_per_usd_of_cost(rate, hourly) == pytest.approx(1, rel=1e-9)
    assert tokens_per_usd_of_revenue(3.0) != tokens_per_usd_of_cost(rate, hourly)


def test_target_p08_implied_rate() -> None:
    rate = implied_tokens_per_s(1.41, 0.53)
    assert rate == pytest.approx(739, abs=1)
    assert usd_per_gpu_hour_for(0.53, rate) == pytest.approx(1.41)


def test_target_p14_deepseek_day() -> None:
    cat = catalog()

    def value(quantity: str) -> float:
        return cat.select("DeepSeek V3/R1 service", quantity).number

    cost = value("average_nodes") * 8 * 24 * value("assumed_lease_price")
    assert cost == pytest.approx(87072)
    day = TokenUsage(
        uncached_input=value("input_tokens") - value("cached_input_tokens"),
        cache_read=value("cached_input_tokens"),
        output=value("output_tokens"),
    )
    assert day.cache_hit_share == pytest.approx(value("cache_hit_rate"), abs=5e-4)
    from econ.api_bill import api_bill

    revenue = api_bill(day, TokenPrices(0.55, 2.19, 0.14)).total
    assert revenue == pytest.approx(562027, rel=2e-4)
    assert (revenue - cost) / cost == pytest.approx(5.45, abs=0.01)  # printed as profit over cost
    idle = provision(value("average_nodes"), value("peak_nodes") / value("average_nodes"), 1.0)
    assert idle.busy_share == pytest.approx(0.816, abs=0.001)


def test_course_examples() -> None:
    assert usd_per_mtoken(2.20, 2500) == pytest.approx(0.244444, rel=1e-5)
    assert usd_per_mtoken(3.0, 600) == pytest.approx(1.38889, rel=1e-4)


def test_one_run_four_denominators() -> None:
    # SilyBench, Qwen3-8B in BF16, prompts of 1024 and answers of 128 tokens: the same run differs ninefold.
    per_output = usd_per_mtoken(2.69, 3017.67978, "output")
    per_total = usd_per_mtoken(2.69, 27159.118, "total")
    assert per_output == pytest.approx(0.24761482, rel=1e-6)
    assert per_total == pytest.approx(0.02751276, rel=1e-6)
    both = denominators(TokenUsage(uncached_input=1024, output=128), per_output * 128 / 1e6)
    assert both["output"] == pytest.approx(per_output)
    assert both["total"] == pytest.approx(per_total)
    assert both["total"] < both["input"] < both["output"]
    assert both["weighted"] == pytest.approx(both["input"] * 1024 / (1024 + 4 * 128))


def test_a_denominator_must_be_named() -> None:
    with pytest.raises(TokenCostError, match="name what the rate counts, one of output, input, total, weighted"):
        usd_per_mtoken(2.0, 100.0, "tokens")  # type: ignore[arg-type]


# --- classes ----------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(POSITIVE, POSITIVE, POSITIVE, POSITIVE, SECONDS, SECONDS, SECONDS, SECONDS, POSITIVE)
def test_class_cost_times_volume_is_the_spending(
    a: float, b: float, c: float, d: float, ta: float, tb: float, tc: float, td: float, spend: float
) -> None:
    costs = class_costs(TokenUsage(a, b, c, d), StepTimes(ta, tb, tc, td), spend)
    assert sum(costs.spend_by_class.values()) == pytest.approx(spend, rel=1e-12)
    assert costs.usd_per_mtoken["output"] / costs.usd_per_mtoken["uncached_input"] == pytest.approx(td / ta)


def test_no_tokens_is_an_error_not_a_nan() -> None:
    with pytest.raises(TokenCostError, match="no tokens"):
        class_costs(TokenUsage(), TIMES, 1.0)
    with pytest.raises(TokenCostError, match="no tokens"):
        denominators(TokenUsage(), 1.0)
    with pytest.raises(TokenCostError, match="whole numbers from 1"):
        accelerators_of(tp=0)


# --- the check --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("quote", "label"), [(799, "pessimistic"), (800, "consistent"), (1250, "consistent"), (1251, "optimistic")]
)
def test_labels(quote: float, label: str) -> None:
    checked = check_throughput(RATE, quote)
    assert checked.label == label
    assert checked.low <= checked.tokens_per_s <= checked.high
    assert label in checked.note


def test_impossible_is_refused_with_the_ceiling_and_its_reason() -> None:
    with pytest.raises(ImpossibleThroughputError, match=r"3,001 tokens/s .*impossible.*ceiling is 3,000 \(bandwidth\)"):
        check_throughput(RATE, 3001)
    for bad in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="positive, finite rate"):
            check_throughput(RATE, bad)
    with pytest.raises(ValueError, match="must be positive and hold"):
        EngineRate(1.0, 2.0, 3.0, 9.0, "x", "y", "z")


# --- token cost -------------------------------------------------------------------------------------------------------


def test_token_cost_sums_to_the_spending_and_carries_the_band() -> None:
    use = UseChain(scheduled=0.9, healthy=0.95, busy=0.6)
    cost = token_cost("m", "h", 2.0, LOAD, use, engine=ENGINE)
    per_request = 2.0 / 3600 / (1000.0 / 200) / (0.9 * 0.95 * 0.6)
    assert sum(cost.classes.spend_by_class.values()) == pytest.approx(per_request, rel=1e-12)
    assert cost.by_denominator["output"] == pytest.approx(usd_per_mtoken(2.0, 1000.0, busy_share=0.9 * 0.95 * 0.6))
    for name, value in cost.usd_per_mtoken.items():
        assert cost.low[name] == pytest.approx(value / 1.25)
        assert cost.high[name] == pytest.approx(value / 0.8)
    assert sum(cost.gpu_s_per_mtoken.values()) > 0


def test_latency_target_limits_the_batch() -> None:
    from dataclasses import replace

    tight = token_cost("m", "h", 2.0, replace(LOAD, tpot_target_s=0.012), engine=ENGINE)
    loose = token_cost("m", "h", 2.0, replace(LOAD, ttft_target_s=None, tpot_target_s=None), engine=ENGINE)
    assert (tight.point.concurrency, loose.point.concurrency) == (1, 256)
    assert tight.usd_per_mtoken["output"] > loose.usd_per_mtoken["output"]
    with pytest.raises(TokenCostError, match=r"no layout or batch meets.*nearest reaches TTFT 0\.1 s and TPOT 0\.01 s"):
        token_cost("m", "h", 2.0, replace(LOAD, tpot_target_s=0.001), engine=ENGINE)
    with pytest.raises(TokenCostError, match="does not fit any layout"):
        cheapest_point([], LOAD)


def test_quoted_rate_replaces_the_engine_after_the_check() -> None:
    quoted = token_cost("m", "h", 2.0, LOAD, engine=ENGINE, quoted_tokens_per_s=700)
    assert quoted.rate.label == "pessimistic"
    assert quoted.by_denominator["output"] == pytest.approx(usd_per_mtoken(2.0, 700))
    assert quoted.high_factor == pytest.approx(1.0)
    with pytest.raises(ImpossibleThroughputError):
        token_cost("m", "h", 2.0, LOAD, engine=ENGINE, quoted_tokens_per_s=3001)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.05, 1.0), st.floats(0.05, 1.0), st.floats(0.1, 20.0), st.floats(0.1, 20.0))
def test_cost_falls_in_use_and_rises_in_price(busy_a: float, busy_b: float, price_a: float, price_b: float) -> None:
    low, high = sorted((busy_a, busy_b))
    cheap, dear = sorted((price_a, price_b))

    def output(price: float, busy: float) -> float:
        return token_cost("m", "h", price, LOAD, UseChain(busy=busy), engine=ENGINE).usd_per_mtoken["output"]

    assert output(cheap, high) <= output(cheap, low) * (1 + 1e-12)
    assert output(cheap, high) <= output(dear, high) * (1 + 1e-12)


def test_bad_workloads_are_refused() -> None:
    with pytest.raises(TokenCostError, match="at least one output token"):
        Workload("x", 10, 0)
    with pytest.raises(TokenCostError, match="sum is at most 1"):
        Workload("x", 10, 1, cache_hit_share=0.8, cache_write_share=0.4)
    with pytest.raises(TokenCostError, match="cannot be met"):
        Workload("x", 10, 1, ttft_target_s=0)
    with pytest.raises(TokenCostError, match="give a finite price"):
        token_cost("m", "h", float("nan"), LOAD, engine=ENGINE)
    with pytest.raises(TokenCostError, match="shipped ones are"):
        workload("nosuch")


def test_shipped_workloads_read_and_trace_to_facts() -> None:
    from econ.case_files import fact_ids
    from supply.paths import data_file

    assert {"chat", "coding_completion", "long_context", "overnight_documents"} <= set(workloads())
    for name in workloads():
        assert workload(name).usage.total > 0
        assert all(i in catalog() for i in fact_ids(data_file("cases", "workloads", f"{name}.yaml")))


# --- fleets -----------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.floats(0.1, 1e4), st.floats(1, 10), st.floats(0.1, 1e3), st.integers(1, 64))
def test_provision_covers_the_peak_with_whole_replicas(mean: float, peak: float, rate: float, size: int) -> None:
    plan = provision(mean, peak, rate, size)
    assert plan.replicas * rate >= mean * peak * (1 - 1e-6)
    assert (plan.replicas - 1) * rate < mean * peak or plan.replicas == 1
    assert 0 < plan.busy_share <= 1 + 1e-9
    assert plan.cost_factor >= 1 - 1e-9
    reused = provision(mean, peak, rate, size, idle_reused_share=0.5)
    assert reused.cost_factor <= plan.cost_factor + 1e-12


def test_fleet_total_is_the_weighted_mean_of_its_models() -> None:
    loads = [ModelLoad("big", 5000, 2.0, 900, 8), ModelLoad("small", 40, 3.0, 2000, 1)]
    plan = fleet_plan(loads, 2.5, headroom=0.1)
    spend = sum(plan.usd_per_mtoken[m.name] * m.mean_tokens_per_s * 0.0036 for m in loads)
    assert spend == pytest.approx(plan.usd_per_hour)
    assert plan.total_usd_per_mtoken == pytest.approx(spend / (5040 * 0.0036))
    assert plan.pooled_accelerators <= plan.accelerators
    with pytest.raises(FleetError, match="each name once"):
        fleet_plan([loads[0], loads[0]], 2.5)


def test_energy_and_carbon() -> None:
    full = energy_kwh_per_mtoken(1730, 1000, 1.0, 600)
    half = energy_kwh_per_mtoken(1730, 1000, 0.5, 600)
    assert full == pytest.approx(1730 / 1000 / 3.6)
    assert half == pytest.approx((1730 * 0.5 + 600 * 0.5) / 500 / 3.6)
    assert carbon_kg_per_mtoken(full, 0.4) == pytest.approx(0.4 * full)
    assert carbon_kg_per_mtoken(full, 0.4, 150, 1000) > carbon_kg_per_mtoken(full, 0.4)


def test_energy_by_class_sums_to_the_energy_of_the_run() -> None:
    cost = token_cost("m", "h", 2.0, LOAD, UseChain(busy=0.5), engine=ENGINE)
    by_class = cost.kwh_per_mtoken(1730.0, idle_watts=600.0)
    usage = LOAD.usage
    total = (
        by_class["uncached_input"] * usage.uncached_input
        + by_class["cache_write"] * usage.cache_write
        + by_class["cache_read"] * usage.cache_read
        + by_class["output"] * usage.output
    )
    assert total / usage.output == pytest.approx(energy_kwh_per_mtoken(1730.0, 1000.0, 0.5, 600.0))


def test_own_or_api_prices_the_same_tokens() -> None:
    cost = token_cost("m", "h", 2.0, LOAD, UseChain(busy=0.5), engine=ENGINE)
    prices = TokenPrices(3.0, 15.0, 0.3, 3.75)
    both = own_or_api(cost, prices, accelerators=8)
    assert both.own_usd_per_mtoken == pytest.approx(cost.by_denominator["total"])
    by_hand = (200 * 3.0 + 300 * 3.75 + 500 * 0.3 + 200 * 15.0) / 1200
    assert both.api_usd_per_mtoken == pytest.approx(by_hand)
    volume = both.break_even.mtokens_per_day
    assert volume is not None and volume * by_hand == pytest.approx(8 * 2.0 * 24)
    assert both.slow.share_of_capacity > both.break_even.share_of_capacity > both.fast.share_of_capacity
    per_output = own_or_api(cost, prices, accelerators=8, denominator="output")
    assert per_output.break_even.share_of_capacity == pytest.approx(both.break_even.share_of_capacity)
    assert both.own_is_cheaper_when_full
    assert not own_or_api(cost, TokenPrices(0.001, 0.001), accelerators=8).own_is_cheaper_when_full


def test_break_even_volume() -> None:
    result = self_host_break_even(8, 2.5, 400.0, 2.0)
    assert result.mtokens_per_day is not None
    assert result.mtokens_per_day * 2.0 == pytest.approx(8 * 2.5 * 24)
    never = self_host_break_even(8, 2.5, 100.0, 2.0)
    assert never.mtokens_per_day is None and never.full_usd_per_mtoken > never.api_usd_per_mtoken
    with pytest.raises(FleetError, match="must be positive"):
        self_host_break_even(8, 2.5, 0.0, 2.0)


def test_sessions_and_agents() -> None:
    assert sessions_per_accelerator(141e9, 91e9, 10e9) == pytest.approx(5)
    with pytest.raises(FleetError, match="leave no room"):
        sessions_per_accelerator(80e9, 141e9, 1e9)
    assert agents_supported(1000, 0.05, 2.0, 0.5) == pytest.approx(5000)
    assert agents_supported(1000, 0.1, 2.0, 0.5) == pytest.approx(2500)


def test_hour_long_cache_writes_are_spending_of_the_class_of_writes() -> None:
    usage = TokenUsage(2e6, 3e5, 4e6, 1e5, cache_write_1h=7e5)
    costs = class_costs(usage, TIMES, 12.0)
    assert sum(costs.spend_by_class.values()) == pytest.approx(12.0)
    assert costs.spend_by_class["cache_write"] == pytest.approx(12.0 * 1e6 * 1.1e-5 / TIMES.total(usage))


@pytest.mark.parametrize("name", ["gpu_flop_per_s", "utilisation", "price_ratio", "speedup"])
def test_rates_and_ratios_of_nothing_are_refused(name: str) -> None:
    def cost(**changed: float) -> float:
        if name in ("price_ratio", "speedup"):
            return cost_over_price(**{"speedup": 1.5, "price_ratio": 2.0} | changed)
        rates = {"gpu_flop_per_s": 5e15, "utilisation": 0.6} | changed
        return prefill_usd_per_mtoken(1e12, usd_per_gpu_hour=3.2, **rates)

    assert cost(**{name: 0.5}) > 0
    for bad in (0.0, -0.5):
        with pytest.raises(ValueError, match=name):
            cost(**{name: bad})
