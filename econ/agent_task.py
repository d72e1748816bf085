"""Cost of a finished and checked agent task: calls, waits, tools, children, retries, failures, judge and review.

    cost per verified task = all spending, failed attempts included / verified tasks

The spending of an attempt comes from `agent_attempt`, the number of attempts from correlated success (`agent_success`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from econ.agent_attempt import PARTS, AttemptCost, attempt_cost
from econ.agent_calls import AgentError, Context
from econ.agent_price import ApiPrice, FlatPrice, OwnPrice, TaskPrice
from econ.agent_spec import AgentTask, Children, agent_task, agent_tasks
from econ.agent_success import Success

__all__ = [
    "AgentError",
    "AgentTask",
    "ApiPrice",
    "AttemptCost",
    "Children",
    "Context",
    "FlatPrice",
    "OwnPrice",
    "Success",
    "TaskCost",
    "TaskPrice",
    "agent_task",
    "agent_tasks",
    "attempt_cost",
    "break_even_price_ratio",
    "cost_per_verified_task",
    "task_cost",
    "total_spend",
]


@dataclass(frozen=True)
class TaskCost:
    """Cost and time of a verified task, with a 90 % interval and its parts (which sum to it).

    `accelerator_hours` are paid hours of computing per verified task, `accelerators_held_hours` those that its sessions
    keep occupied while they run and wait; None where an API hides them.
    """

    task: AgentTask
    price: str
    usd_per_verified_task: float
    low: float
    high: float
    parts: Mapping[str, float]
    failed_share: float
    usd_per_attempt: float
    attempts_per_task: float
    verified_share: float
    elapsed_s_per_task: float
    accelerator_hours: float | None
    accelerators_held_hours: float | None
    solved: AttemptCost
    failed: AttemptCost
    interval_basis: str


@dataclass(frozen=True)
class _Tries:
    right: float
    wrong: float
    accepted: float
    verified: float


def _tries(task: AgentTask, success: Success) -> _Tries:
    """Means per task: right and wrong attempts made, attempts accepted, tasks verified (accepted and right).

    Attempts stop at the first accepted one: q(p) = p (1 - false reject) + (1 - p) false accept.
    """
    if not task.false_accept and not task.false_reject:
        verified = success.any_of(task.attempts)
        made = success.tries_until_success(task.attempts)
        return _Tries(verified, made - verified, verified, verified)
    p = success.chances
    right = p * (1 - task.false_reject)
    q = right + (1 - p) * task.false_accept
    done = 1 - (1 - q) ** task.attempts
    with np.errstate(divide="ignore", invalid="ignore"):
        tried = np.where(q > 0, done / q, task.attempts)
        share = np.where(q > 0, done * right / q, 0.0)
    return _Tries(float((tried * p).mean()), float((tried * (1 - p)).mean()), float(done.mean()), float(share.mean()))


def task_cost(task: AgentTask, price: TaskPrice) -> TaskCost:
    """Cost, time and accelerators per verified task.

    Raises:
        AgentError: when no task would ever be verified (the cost is then infinite, not a number).
    """
    solved = attempt_cost(task, price, True)
    failed = solved if task.calls_failed is None else attempt_cost(task, price, False)
    tries = _tries(task, task.success)
    if tries.verified <= 0:
        raise AgentError(
            f"task {task.name!r} is never verified (success {task.success_rate}, false reject {task.false_reject}): "
            "a cost per verified task does not exist"
        )
    parts = _task_parts(task, solved, failed, tries)
    usd = sum(parts.values())
    review_s = tries.accepted * task.review_minutes * 60
    elapsed = solved.elapsed_s * tries.right + failed.elapsed_s * tries.wrong + review_s
    made = tries.right + tries.wrong
    low, high, basis = _interval(task, price, solved, failed)
    return TaskCost(
        task=task,
        price=price.label,
        usd_per_verified_task=usd,
        low=min(low, usd),
        high=max(high, usd),
        parts=parts,
        failed_share=(failed.usd + task.judge_usd) * tries.wrong / tries.verified / usd if usd else 0.0,
        usd_per_attempt=(solved.usd * tries.right + failed.usd * tries.wrong) / made,
        attempts_per_task=made,
        verified_share=tries.verified,
        elapsed_s_per_task=elapsed,
        accelerator_hours=_hours(solved.gpu_s, failed.gpu_s, tries),
        accelerators_held_hours=_hours(solved.held_s, failed.held_s, tries),
        solved=solved,
        failed=failed,
        interval_basis=basis,
    )


def _hours(solved: float | None, failed: float | None, tries: _Tries) -> float | None:
    if solved is None or failed is None:
        return None
    return (solved * tries.right + failed * tries.wrong) / tries.verified / 3600


def _task_parts(task: AgentTask, solved: AttemptCost, failed: AttemptCost, tries: _Tries) -> dict[str, float]:
    parts = {
        name: (solved.parts[name] * tries.right + failed.parts[name] * tries.wrong) / tries.verified for name in PARTS
    }
    parts["judge"] = task.judge_usd * (tries.right + tries.wrong) / tries.verified
    parts["review"] = task.review_minutes / 60 * task.review_usd_per_hour * tries.accepted / tries.verified
    return parts


def _interval(task: AgentTask, price: TaskPrice, solved: AttemptCost, failed: AttemptCost) -> tuple[float, float, str]:
    """90 % interval by a grid of equally likely success rates (Jeffreys) and spending factors (lognormal)."""
    from scipy.special import betaincinv, ndtri

    levels = (np.arange(41) + 0.5) / 41
    basis = [
        "price band" if price.band != (1.0, 1.0) else "price taken as exact",
        *([price.caveat] if price.caveat else []),
    ]
    rates: Any = [task.success_rate]
    sd = float(np.log(price.band[1] / price.band[0])) / (2 * 1.645)
    centre = float(np.sqrt(price.band[0] * price.band[1])) if sd else 1.0
    if task.observed_tasks:
        wins = task.success_rate * task.observed_tasks
        rates = betaincinv(wins + 0.5, task.observed_tasks - wins + 0.5, levels)
        sd = float(np.hypot(sd, max(solved.cv, failed.cv) / np.sqrt(task.observed_tasks)))
        basis.append(f"success and spending seen on {task.observed_tasks} tasks")
    elif task.success_low is not None and task.success_high is not None:
        # levels run over the 90 % range stretched to its ends at 5 % and 95 %
        rates = np.clip(task.success_low + (task.success_high - task.success_low) * (levels - 0.05) / 0.9, 1e-3, 1.0)
        basis.append("success rate within its assumed range")
    else:
        basis.append("success rate taken as exact")
    if task.source:
        basis.append(f"calls and success as in: {task.source}")
    factors = centre * np.exp(sd * ndtri(levels)) if sd else np.array([1.0])
    costs = []
    for rate in rates:
        drawn = _tries(task, Success(float(rate), task.correlation))
        parts = _task_parts(task, solved, failed, drawn)
        human = parts["judge"] + parts["review"] + parts["tools"] + parts["harness"]
        costs.append((sum(parts.values()) - human) * factors + human)
    grid = np.concatenate(costs)
    return float(np.quantile(grid, 0.05)), float(np.quantile(grid, 0.95)), "; ".join(basis)


def cost_per_verified_task(
    total_usd: float, verified: float | None = None, tasks: float | None = None, success_rate: float | None = None
) -> float:
    """All spending, failures included, over verified tasks (a count, or tasks x success rate).

    Raises:
        AgentError: when nothing was verified, or both or neither way of counting is given.

    >>> round(cost_per_verified_task(140.19151, verified=325), 6)
    0.431358
    >>> round(cost_per_verified_task(146.3249, tasks=225, success_rate=0.849), 6)
    0.765999
    """
    if (verified is None) == (tasks is None or success_rate is None):
        raise AgentError("give either the count of verified tasks, or tasks and their success rate")
    count = verified if verified is not None else float(tasks or 0) * float(success_rate or 0)
    if not count > 0 or not 0 <= total_usd < float("inf"):
        raise AgentError(
            f"{total_usd} USD over {count} verified tasks: without one a cost per verified task does not exist"
        )
    return total_usd / count


def total_spend(mean_solved_usd: float, mean_failed_usd: float, solved: float, tasks: float) -> float:
    """Spending of a benchmark from the means of solved and failed runs: s x solved + f x (tasks - solved).

    >>> round(total_spend(0.6817, 1.0524, 419, 500), 2)
    370.88
    """
    if not 0 <= solved <= tasks:
        raise AgentError(f"{solved} solved of {tasks} tasks: the solved are at most all")
    return mean_solved_usd * solved + mean_failed_usd * (tasks - solved)


def break_even_price_ratio(calls_a: float, calls_b: float, success_a: float = 1.0, success_b: float = 1.0) -> float:
    """Token price of B over A below which B is cheaper per verified task, tokens a call being equal.

    >>> break_even_price_ratio(20, 4)
    5.0
    """
    if not (calls_a > 0 and calls_b > 0 and success_a > 0 and success_b > 0):
        raise AgentError("calls and success rates must be positive to compare two models")
    return (calls_a / success_a) / (calls_b / success_b)
