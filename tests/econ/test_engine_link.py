"""Token costs through the real engine: the check of quotes, latency targets, classes, buyers, own-hosted tasks."""

from dataclasses import replace

import numpy as np
import pytest

from econ.agent_calls import AgentError
from econ.agent_hosting import agents_on_fleet, call_workload, hosted_price
from econ.agent_task import FlatPrice, OwnPrice, agent_task, task_cost
from econ.choice_evaluators import serving_estimate
from econ.engine_link import performance_engine
from econ.hardware_choice import choose_hardware
from econ.price_book import TokenPrices
from econ.throughput_check import ImpossibleThroughputError, check_throughput
from econ.token_cost import NoFitError, TokenCostError, cheapest_point, token_cost, workload
from econ.tokens import usd_per_mtoken
from econ.use_chain import UseChain
from econ.workload_card import buyer

CHAT = workload("chat")


def test_impossible_throughput_is_refused_with_the_ceiling() -> None:
    with pytest.raises(
        ImpossibleThroughputError, match=r"50,000 tokens/s per accelerator is impossible.*ceiling is \d+"
    ):
        token_cost("Llama-3.1-405B", "H100", 2.0, "chat", quoted_tokens_per_s=50_000, weight_format="fp8")


def test_target_p08_739_tokens_per_s_is_classed() -> None:
    """The figure's model is not named: it is ordinary for a large sparse model and for 70B in 8 bits, not for 405B."""

    def label(model: str, **setup: object) -> str:
        points = performance_engine().points(model, "H200", CHAT, **setup)
        return check_throughput(cheapest_point(points, CHAT).output, 739).label

    assert label("DeepSeek-V3") == "consistent"
    assert label("Llama-3.1-70B", weight_format="fp8") == "consistent"
    assert label("Llama-3.1-8B") == "pessimistic"
    with pytest.raises(ImpossibleThroughputError):
        label("Llama-3.1-405B", weight_format="fp8")


@pytest.mark.parametrize(
    "name", ["chat", "chat_interactive", "coding_completion", "long_context", "overnight_documents"]
)
def test_every_shipped_workload_is_costed(name: str) -> None:
    cost = token_cost("gpt-oss-120b", "H200", 3.0, name, UseChain(busy=0.5))
    load = workload(name)
    assert sum(cost.classes.spend_by_class.values()) == pytest.approx(cost.classes.spend_usd, rel=1e-12)
    assert load.admits(*cost.point.latencies_s(load))
    assert cost.by_denominator["output"] == pytest.approx(usd_per_mtoken(3.0, cost.rate.tokens_per_s, busy_share=0.5))
    usd = cost.usd_per_mtoken
    assert 0 < usd["cache_read"] < usd["uncached_input"] < usd["output"]
    assert all(cost.low[k] < usd[k] < cost.high[k] for k in usd)
    assert cost.rate.engine.ceiling >= cost.rate.high


def test_a_tighter_target_costs_more() -> None:
    costs = [
        token_cost("Llama-3.1-70B", "H100", 2.0, replace(CHAT, tpot_target_s=t)).usd_per_mtoken["output"]
        for t in (0.02, 0.04, 0.08, 0.2)
    ]
    assert np.all(np.diff(costs) <= 1e-12)
    assert costs[0] > 1.5 * costs[-1]
    tail = token_cost("Llama-3.1-70B", "H100", 2.0, replace(CHAT, ttft_target_s=1.0)).usd_per_mtoken["output"]
    mean = token_cost("Llama-3.1-70B", "H100", 2.0, replace(CHAT, ttft_target_s=1.0, targets_at="mean"))
    assert mean.usd_per_mtoken["output"] <= tail


def test_cached_prompts_cost_less() -> None:
    none = token_cost("Llama-3.1-70B", "H200", 2.0, replace(CHAT, prompt_tokens=8000))
    half = token_cost("Llama-3.1-70B", "H200", 2.0, replace(CHAT, prompt_tokens=8000, cache_hit_share=0.5))
    assert half.classes.spend_usd < none.classes.spend_usd
    assert none.classes.usage.cache_read == 0 and none.usd_per_mtoken["cache_read"] > 0  # a price before any volume


def test_refusals_name_the_reason() -> None:
    with pytest.raises(NoFitError, match="does not fit"):
        token_cost("Llama-3.1-405B", "L40S", 1.0, "chat", most_accelerators=8)
    with pytest.raises(NoFitError, match="does not fit"):
        token_cost("Llama-3.1-70B", "H100", 1.0, "chat", tp=1)
    with pytest.raises(TokenCostError, match="Llama-3"):
        token_cost("Llama-3.1-71B", "H100", 1.0, "chat")
    with pytest.raises(TokenCostError, match="unknown set-up option 'batch'"):
        token_cost("Llama-3.1-8B", "H100", 1.0, "chat", batch=4)
    with pytest.raises(TokenCostError, match="nearest reaches"):
        token_cost("Llama-3.1-405B", "H100", 1.0, replace(CHAT, tpot_target_s=0.001), weight_format="fp8")


def test_chat_and_overnight_buyers_choose_by_their_own_card() -> None:
    chat = choose_hardware(buyer("chat_service").card, buyer("chat_service").candidates)
    assert chat.best.estimate.results_per_s is not None
    assert {s.candidate.name for s in chat.survivors} <= {"H100 SXM", "H200 NVL", "B200 HGX", "MI300X"}
    assert all(s.low < s.usd_per_result < s.high for s in chat.survivors)
    reasons = {r.candidate.name: [n for n, _ in r.reasons] for r in chat.rejects}
    assert {"software", "power", "cooling", "delivery"} <= set(reasons["GB200 NVL72"])
    assert "quality" in reasons["L40S"]
    night = choose_hardware(buyer("overnight_documents").card, buyer("overnight_documents").candidates)
    assert {s.candidate.name for s in night.survivors} == {"L40S", "H200 SXM"}
    assert {"cooling", "delivery"} <= {n for r in night.rejects if r.candidate.name == "Rubin" for n, _ in r.reasons}


def test_research_lab_ranks_whole_runs() -> None:
    lab = buyer("research_lab")
    decision = choose_hardware(lab.card, lab.candidates)
    assert {s.candidate.name for s in decision.survivors} == {"H100 SXM", "H200 SXM", "B200 HGX"}
    for s in decision.survivors:
        assert s.unit == "USD per run"
        hours = s.usd_per_result / s.candidate.usd_per_gpu_hour / s.accelerators
        assert hours < (lab.card.deadline_hours or 0)
    tight = replace(lab.card, budget_usd=1e5)
    assert all("budget" in {n for n, _ in r.reasons} for r in choose_hardware(tight, lab.candidates[:3]).rejects)
    tiny = replace(lab.card, training={**lab.card.training, "accelerators": 8, "global_batch": 8})
    assert choose_hardware(tiny, lab.candidates[:1]).rejects[0].first == "fit"


def test_fit_rejects_come_with_the_engines_sums() -> None:
    card = buyer("chat_service").card
    big = replace(card, model="DeepSeek-V3")
    small = replace(buyer("chat_service").candidates[0], setup={"most_accelerators": 4})
    estimate = serving_estimate(big, small)
    assert not estimate.fits and "does not fit" in estimate.memory_note


def test_a_coding_task_on_own_accelerators() -> None:
    task = agent_task("coding", review_minutes=0.0)
    own = task_cost(task, hosted_price(task, "gpt-oss-120b", "H200", 3.0, UseChain(busy=0.5)))
    assert own.accelerator_hours is not None and own.accelerator_hours > 0
    assert own.low < own.usd_per_verified_task < own.high
    assert own.high / own.low > 1.5  # the engine's error reaches the task
    at_chat = task_cost(task, OwnPrice(token_cost("gpt-oss-120b", "H200", 3.0, "chat", UseChain(busy=0.5))))
    assert at_chat.usd_per_verified_task != pytest.approx(own.usd_per_verified_task, rel=0.05)
    quoted = token_cost("gpt-oss-120b", "H200", 3.0, call_workload(task), quoted_tokens_per_s=1.0)
    assert "pessimistic" in task_cost(task, OwnPrice(quoted)).interval_basis


def test_held_sessions_and_agents_of_a_fleet() -> None:
    task = agent_task("browser", review_minutes=0.0)
    price = hosted_price(task, "gpt-oss-120b", "H200", 3.0, hold_cache=True)
    assert price.sessions_per_accelerator is not None and price.sessions_per_accelerator > 1
    held = task_cost(task, price)
    free = task_cost(task, hosted_price(task, "gpt-oss-120b", "H200", 3.0))
    assert held.usd_per_verified_task >= free.usd_per_verified_task
    agents = agents_on_fleet(held, 10_000)
    assert agents == pytest.approx(2 * agents_on_fleet(held, 5_000))
    slow = task_cost(replace(task, tool_s=60.0), price)
    # with caches held, an accelerator carries as many agents as sessions, however long they wait
    assert agents_on_fleet(slow, 1) == pytest.approx(price.sessions_per_accelerator, rel=0.05)
    with pytest.raises(AgentError, match="does not say how many accelerator-hours"):
        agents_on_fleet(task_cost(task, FlatPrice(TokenPrices(1.0, 1.0), 1.0, 0.01)), 10)
