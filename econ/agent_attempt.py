"""One attempt at an agent task under a price: dollars by part, seconds, accelerator-seconds, spread over attempts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from econ.agent_calls import AttemptTrace, CallRecord, at_counts, call_counts, longest
from econ.agent_price import CLASSES, TaskPrice
from econ.agent_spec import AgentTask
from econ.usage import TokenUsage

__all__ = ["PARTS", "AttemptCost", "attempt_cost"]

Array = NDArray[np.float64]
#: Parts of the bill of an attempt, in print order.
PARTS = (*CLASSES, "retries", "children", "tools", "held_while_waiting", "harness", "judge", "review")


@dataclass(frozen=True)
class AttemptCost:
    """Means over attempts of one kind (successful or failed): parts in USD, seconds, accelerator-seconds, spread."""

    parts: Mapping[str, float]
    elapsed_s: float
    gpu_s: float | None
    held_s: float | None
    usage: TokenUsage
    calls: float
    quantiles: Mapping[str, float]
    cv: float

    @property
    def usd(self) -> float:
        """Mean spending of an attempt."""
        return sum(self.parts.values())


def _attempt(task: AgentTask, price: TaskPrice, mean_calls: float) -> AttemptCost:
    counts = call_counts(mean_calls, task.calls_cv)
    walk = task.walk(longest(counts))
    table, usage = _cumulate(walk, task, price)
    at = {name: at_counts(np.concatenate([[0.0], np.cumsum(column)]), counts) for name, column in table.items()}
    child = _children(task, price)
    fixed = {"children": child.usd if child else 0.0, "harness": task.harness_usd}
    model_and_gap = at["model_s"] + at["gap_s"]
    held = _held(price, model_and_gap, at["gpu_s"], task)
    parts = {name: float(at[name].mean()) for name in (*CLASSES, "retries", "tools")} | fixed
    parts["held_while_waiting"] = float(held.usd.mean())
    spend = np.sum([at[name] for name in (*CLASSES, "retries", "tools")], axis=0) + held.usd + sum(fixed.values())
    hidden = price.gpu_s(TokenUsage(output=1)) is None
    child_gpu = (child.gpu_s or 0.0) if child else 0.0
    mean_usage = _usage_at(usage, counts)
    return AttemptCost(
        {name: parts.get(name, 0.0) for name in PARTS},
        float(model_and_gap.mean()) + (child.elapsed_s if child else 0.0),
        None if hidden else float(at["gpu_s"].mean()) + child_gpu,
        held.seconds,
        mean_usage + child.usage if child else mean_usage,
        float(counts.mean()),
        {f"p{q}": float(np.quantile(spend, q / 100)) for q in (50, 90, 99)},
        float(spend.std() / spend.mean()) if spend.mean() else 0.0,
    )


@dataclass(frozen=True)
class _Held:
    usd: Array
    seconds: float | None


def _held(price: TaskPrice, session_s: Array, gpu_s: Array, task: AgentTask) -> _Held:
    """Accelerator-seconds kept by a session that holds its cache, and the dollars beyond those of computing."""
    if price.sessions_per_accelerator is None:
        return _Held(np.zeros_like(session_s), None)
    del task
    seconds = session_s / price.sessions_per_accelerator
    return _Held(np.maximum(seconds - gpu_s, 0.0) * price.usd_per_gpu_s, float(np.maximum(seconds, gpu_s).mean()))


def _cumulate(walk: AttemptTrace, task: AgentTask, price: TaskPrice) -> tuple[dict[str, Array], list[TokenUsage]]:
    """Per regular call (extra calls added to the one before): dollars by class, retries, tools, seconds."""
    rows: list[dict[str, float]] = []
    usages: list[TokenUsage] = []
    for record in walk.calls:
        row = _priced(record, task, price)
        if record.extra:
            for name, value in row.items():
                rows[-1][name] += value
            usages[-1] = usages[-1] + record.usage
        else:
            rows.append(row)
            usages.append(record.usage)
    return {name: np.array([r[name] for r in rows]) for name in rows[0]}, usages


def _priced(record: CallRecord, task: AgentTask, price: TaskPrice) -> dict[str, float]:
    usage = record.usage
    row = price.by_class(usage)
    seconds = price.call_s(usage)
    again = TokenUsage(cache_read=usage.prompt, output=usage.output)
    if task.cache_lifetime_s is None:
        again = TokenUsage(uncached_input=usage.prompt, output=usage.output)
    retry = task.retry_share
    row["retries"] = retry * sum(price.by_class(again).values())
    row["tools"] = 0.0 if record.extra else task.tool_usd
    row["model_s"] = seconds * (1 + retry)
    row["gap_s"] = record.gap_s
    row["gpu_s"] = (price.gpu_s(usage) or 0.0) + retry * (price.gpu_s(again) or 0.0)
    return row


def _usage_at(usages: list[TokenUsage], counts: Array) -> TokenUsage:
    fields = ("uncached_input", "cache_write", "cache_read", "output", "cache_write_1h")
    means = []
    for name in fields:
        column = np.array([getattr(u, name) for u in usages])
        means.append(float(at_counts(np.concatenate([[0.0], np.cumsum(column)]), counts).mean()))
    return TokenUsage(*means)


def _children(task: AgentTask, price: TaskPrice) -> AttemptCost | None:
    """All child agents of one attempt, added up; they run one after another."""
    total: AttemptCost | None = None
    for child in task.children:
        one = _attempt(child.task, price, child.task.calls)
        many = replace(
            one,
            parts={k: v * child.count for k, v in one.parts.items()},
            elapsed_s=one.elapsed_s * child.count,
            gpu_s=None if one.gpu_s is None else one.gpu_s * child.count,
            usage=one.usage.scaled(child.count),
        )
        if total is None:
            total = many
            continue
        total = replace(
            total,
            parts={k: v + many.parts[k] for k, v in total.parts.items()},
            elapsed_s=total.elapsed_s + many.elapsed_s,
            gpu_s=None if total.gpu_s is None else total.gpu_s + (many.gpu_s or 0.0),
            usage=total.usage + many.usage,
        )
    return total


def attempt_cost(task: AgentTask, price: TaskPrice, solved: bool = True) -> AttemptCost:
    """Spending, time and tokens of one attempt, successful or failed, children included; judge and review apart."""
    mean = task.calls if solved or task.calls_failed is None else task.calls_failed
    return _attempt(task, price, mean)
