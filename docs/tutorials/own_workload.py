"""Tutorial 3: tokens and agent tasks of your own workload. What does a million tokens cost, and a finished task?

The workload below is invented; replace its numbers by those of your logs. Prices, watts and rates of the engine come
from dated facts. Run it with `python docs/tutorials/own_workload.py`; it takes a few seconds.
"""

from datetime import date

from econ.agent_calls import Context
from econ.agent_price import ApiPrice, OwnPrice
from econ.agent_spec import AgentTask
from econ.agent_task import break_even_price_ratio, task_cost
from econ.owner_cost import default_use, owner_cost
from econ.token_cost import Workload, token_cost

ON = date(2026, 6, 30)
MODEL = "Llama-3.1-70B"
DESK = Workload(
    "support desk",
    prompt_tokens=3200,
    output_tokens=450,
    cache_hit_share=0.55,
    ttft_target_s=2.0,
    tpot_target_s=0.05,
)


def main() -> dict[str, float]:
    """Hours, tokens and tasks of the workload; returns the numbers printed."""
    # %% 1. An hour of the accelerator: the owner's cost, as a waterfall with its 90 % band.
    hours = {sku: owner_cost(sku, "us", on=ON) for sku in ("h200", "b200")}
    for sku, hour in hours.items():
        print(f"{sku}: {hour.total:.2f} USD per sold hour ({hour.low:.2f} to {hour.high:.2f})")

    # %% 2. Tokens: the engine looks for the cheapest layout and batch that keeps your latency targets.
    costs = {sku: token_cost(MODEL, sku, hour.total, DESK, default_use()) for sku, hour in hours.items()}
    for sku, cost in costs.items():
        out, low, high = cost.usd_per_mtoken["output"], cost.low["output"], cost.high["output"]
        cached, fresh = cost.usd_per_mtoken["cache_read"], cost.usd_per_mtoken["uncached_input"]
        prompt = f"prompt {fresh:.3f}, cached {cached:.3f}"
        print(f"{MODEL} on {sku}, USD/Mtoken: output {out:.2f} ({low:.2f} to {high:.2f}), {prompt}")
        print(
            f"    {cost.point.accelerators} accelerators a replica, {cost.rate.tokens_per_s:.0f} output tokens/s each"
        )
    best = min(costs, key=lambda sku: costs[sku].usd_per_mtoken["output"])

    # %% 3. A task: an agent that reads, acts and is checked. Failed runs and human review are part of the cost.
    ticket = AgentTask(
        "close a ticket",
        Context(instructions=4000, request=600, observation=900, output=300),
        calls=9,
        calls_cv=0.4,
        success_rate=0.72,
        observed_tasks=400,
        correlation=0.3,
        attempts=2,
        tool_s=2.0,
        judge_usd=0.002,
        review_minutes=0.5,
        review_usd_per_hour=40.0,
    )
    own = task_cost(ticket, OwnPrice(costs[best]))
    print(f"own {best}: {own.usd_per_verified_task:.3f} USD per closed ticket ({own.low:.3f} to {own.high:.3f})")
    for part, usd in sorted(own.parts.items(), key=lambda item: -item[1])[:4]:
        print(f"    {part:20} {usd:.4f}")

    # %% 4. The same task through an API: same calls, dated prices.
    api = task_cost(ticket, ApiPrice("claude-sonnet-4.5", ON))
    print(f"{api.price}: {api.usd_per_verified_task:.3f} USD ({api.low:.3f} to {api.high:.3f})")

    # %% 5. A dearer model that needs fewer calls and succeeds more often: how much dearer may its calls be?
    ratio = break_even_price_ratio(calls_a=9, calls_b=6, success_a=0.72, success_b=0.9)
    print(f"a model that needs 6 calls and closes 90 % may cost {ratio:.2f} times as much a call")
    return {
        "usd_per_mtoken_output": costs[best].usd_per_mtoken["output"],
        "own_task": own.usd_per_verified_task,
        "api_task": api.usd_per_verified_task,
        "ratio": ratio,
    }


if __name__ == "__main__":
    main()
