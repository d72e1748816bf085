"""Agents on own accelerators: tokens at the task's own call shape, sessions held in memory, agents of a fleet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from econ.agent_calls import AgentError
from econ.agent_price import OwnPrice
from econ.agent_spec import AgentTask
from econ.agent_task import TaskCost
from econ.fleet_load import agents_supported
from econ.token_cost import Engine, Workload, default_engine, token_cost, workload
from econ.use_chain import UseChain

__all__ = ["agents_on_fleet", "call_workload", "hosted_price"]


def call_workload(task: AgentTask, targets: Workload | str = "chat") -> Workload:
    """The mean call of a task as a workload: context, output and cache shares, with the latency targets of `targets`.

    Contexts of agents are long, so token costs of a chat workload understate theirs.

    >>> from econ.agent_calls import Context
    >>> shape = call_workload(AgentTask("t", Context(2000, 500, 800, 200), calls=10, success_rate=0.6))
    >>> shape.prompt_tokens, round(shape.cache_hit_share, 3)
    (7000.0, 0.836)
    """
    base = workload(targets) if isinstance(targets, str) else targets
    calls = max(1, round(task.calls))
    usage = task.walk(calls).usage
    hit = usage.cache_read / usage.prompt
    written = (usage.cache_write + usage.cache_write_1h) / usage.prompt
    return replace(
        base,
        name=f"{task.name}_calls",
        prompt_tokens=usage.prompt / calls,
        output_tokens=usage.output / calls,
        cache_hit_share=hit,
        cache_write_share=min(written, 1 - hit),
        source=f"mean call of the task {task.name}",
    )


def hosted_price(
    task: AgentTask,
    model: str,
    hardware: str,
    usd_per_gpu_hour: float,
    use: UseChain | None = None,
    *,
    targets: Workload | str = "chat",
    hold_cache: bool = False,
    engine: Engine | None = None,
    **setup: Any,
) -> OwnPrice:
    """The price of a task's tokens on own accelerators.

    With `hold_cache` a session keeps its cache in accelerator memory while tools run and people decide, so it occupies
    1 / (sessions that fit) of an accelerator; without, a cache that outlives its lifetime is computed again.

    Raises:
        TokenCostError, NoFitError: see `token_cost`.
    """
    load = call_workload(task, targets)
    source = engine or default_engine()
    cost = token_cost(model, hardware, usd_per_gpu_hour, load, use, engine=source, **setup)
    if not hold_cache:
        return OwnPrice(cost)
    sessions = cost.point.most_sessions
    if sessions is None:
        raise AgentError(f"the engine does not say how many sessions {hardware} holds: give them to OwnPrice yourself")
    return OwnPrice(cost, sessions / cost.point.accelerators)


def agents_on_fleet(cost: TaskCost, accelerators: float, sold: float = 1.0, duty: float = 1.0) -> float:
    """Agents that a fleet keeps at work on this task without end.

    Each verified task takes paid accelerator-hours (held ones, where caches wait) and agent time; agents = accelerators
    x sold / (accelerator-hours per agent-hour). `duty` is the share of time that an agent works; scheduling, faults and
    idle time are in the paid hours already.

    Raises:
        AgentError: when the task's price does not say how many accelerator-hours it takes (an API).
    """
    hours = max(cost.accelerator_hours or 0.0, cost.accelerators_held_hours or 0.0)
    if hours <= 0:
        raise AgentError(f"{cost.price} does not say how many accelerator-hours a task takes: price it on own hardware")
    agent_hours = cost.elapsed_s_per_task / cost.verified_share / 3600
    if agent_hours <= 0:
        raise AgentError("the task takes no time: give the price its latencies, or the task its waits")
    return float(agents_supported(accelerators, hours, duty / agent_hours, sold))
