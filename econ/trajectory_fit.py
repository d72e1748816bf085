"""Fit an agent task from its logs: calls, context growth, cache use, waits, children, success, cost per task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from econ.agent_calls import AgentError, Context
from econ.agent_price import TaskPrice
from econ.agent_spec import AgentTask
from econ.agent_success import Success, fit_success
from econ.agent_task import cost_per_verified_task
from econ.trajectories import CleanLog, Run, runs

Array = NDArray[Any]

__all__ = ["CapReport", "TrajectoryFit", "cap_report", "fit_trajectories"]


@dataclass(frozen=True)
class TrajectoryFit:
    """What a log says.

    Costs are all spending over verified attempts (a task that is retried until it succeeds has one); the 90 % interval
    resamples tasks.

    `first_prompt`, `growth` and `output` are tokens; growth is the median rise of the prompt from call to call (it may
    be negative where the runtime drops context). `unmetered` attempts are not in any figure.
    """

    tasks: int
    attempts: int
    unmetered: int
    inflation: float
    success: Success
    calls_solved: float
    calls_failed: float
    calls_cv: float
    first_prompt: float
    growth: float
    output: float
    cache_hit_share: float
    tool_s: float
    child_share: float
    usd_per_attempt: float
    usd_solved: float
    usd_failed: float
    usd_per_verified_task: float
    low: float
    high: float
    largest_usd: float

    def to_task(self, name: str, instructions: float = 0.0) -> AgentTask:
        """An `AgentTask` with these means; `instructions` is the part of the first prompt that all tasks share.

        Raises:
            AgentError: when the context shrinks from call to call, which no growth policy describes.
        """
        observation = self.growth - self.output
        if observation < 0:
            raise AgentError(
                f"the prompt grows by {self.growth:g} tokens a call, less than the {self.output:g} written: the "
                "runtime drops context; build the task with the policy drop or summarise"
            )
        context = Context(instructions, self.first_prompt - instructions, observation, self.output)
        return AgentTask(
            name,
            context,
            calls=self.calls_solved,
            calls_failed=self.calls_failed,
            calls_cv=self.calls_cv,
            success_rate=self.success.rate,
            correlation=self.success.correlation,
            observed_tasks=self.tasks,
            tool_s=self.tool_s,
        )


def fit_trajectories(
    log: CleanLog, price: TaskPrice | None = None, resamples: int = 1000, seed: int = 0
) -> TrajectoryFit:
    """Statistics and cost of a cleaned log, by its own costs or by a price.

    Raises:
        AgentError: when an attempt has no verdict, none is verified, or a call has neither cost nor price.
    """
    attempts = runs(log)
    silent = [r for r in attempts if r.verified is None]
    if silent:
        raise AgentError(
            f"{len(silent)} of {len(attempts)} attempts have no verdict (first: task {silent[0].task}, attempt "
            f"{silent[0].attempt}): without one a cost per verified task cannot be told; unverified is `false`"
        )
    usd = np.array([r.usd(price) for r in attempts])
    won = np.array([bool(r.verified) for r in attempts])
    names = sorted({r.task for r in attempts})
    index = np.array([names.index(r.task) for r in attempts])
    solved_by_task = np.bincount(index, won, len(names))
    low, high = _interval(usd, solved_by_task, index, len(names), resamples, seed)
    main = [r for r in attempts if r.calls]
    counts = np.array([len(r.calls) for r in main], dtype=float)
    steps, firsts, outputs = _shape(main)
    usage = [r.usage for r in attempts]
    prompt = sum(u.prompt for u in usage)
    child = sum(e.usage.total for r in attempts for e in r.child_calls)
    return TrajectoryFit(
        tasks=len(names),
        attempts=len(attempts),
        unmetered=len(log.unmetered),
        inflation=log.inflation,
        success=fit_success(solved_by_task.astype(int).tolist(), np.bincount(index, minlength=len(names)).tolist()),
        calls_solved=_mean(counts[[bool(r.verified) for r in main]], counts),
        calls_failed=_mean(counts[[not r.verified for r in main]], counts),
        calls_cv=float(counts.std() / counts.mean()),
        first_prompt=float(np.mean(firsts)),
        growth=float(np.median(steps)) if steps else 0.0,
        output=float(np.mean(outputs)),
        cache_hit_share=sum(u.cache_read for u in usage) / prompt if prompt else 0.0,
        tool_s=float(np.mean([e.tool_s for r in main for e in r.calls])),
        child_share=child / sum(u.total for u in usage),
        usd_per_attempt=float(usd.mean()),
        usd_solved=_mean(usd[won], usd),
        usd_failed=_mean(usd[~won], usd),
        usd_per_verified_task=cost_per_verified_task(float(usd.sum()), verified=float(won.sum())),
        low=low,
        high=high,
        largest_usd=float(usd.max()),
    )


def _shape(attempts: Sequence[Run]) -> tuple[list[float], list[float], list[float]]:
    """Rises of the prompt, first prompts, output tokens of the main calls."""
    steps: list[float] = []
    firsts: list[float] = []
    outputs: list[float] = []
    for run in attempts:
        prompts = [e.usage.prompt for e in run.calls]
        firsts.append(prompts[0])
        steps += [b - a for a, b in pairwise(prompts)]
        outputs += [e.usage.output for e in run.calls]
    return steps, firsts, outputs


def _mean(part: Array, whole: Array) -> float:
    return float(part.mean() if len(part) else whole.mean())


def _interval(usd: Array, verified: Array, index: Array, tasks: int, resamples: int, seed: int) -> tuple[float, float]:
    """5 % and 95 % of the cost when tasks are drawn again; a draw without a verified task counts as infinitely dear."""
    spend = np.bincount(index, usd, tasks)
    draws = np.random.default_rng(seed).integers(0, tasks, (resamples, tasks))
    with np.errstate(divide="ignore"):
        ratio = spend[draws].sum(axis=1) / verified[draws].sum(axis=1)
    low, high = np.quantile(ratio, [0.05, 0.95], method="nearest")
    return float(low), float(high)


@dataclass(frozen=True)
class CapReport:
    """Spending of attempts against a cap that was meant to hold: the tail is reported whole, never cut at the cap."""

    cap_usd: float
    share_over: float
    largest_usd: float
    overrun_factor: float
    mean_usd: float
    mean_if_cut_usd: float


def cap_report(costs_usd: Sequence[float], cap_usd: float) -> CapReport:
    """How far attempts went beyond a cap, and how much a mean cut at the cap would hide.

    Raises:
        AgentError: no costs, or a cap that is not positive.

    >>> cap_report([1.0, 2.0, 700.0], 4.0).overrun_factor
    175.0
    """
    costs = np.asarray(costs_usd, dtype=float)
    if not len(costs) or not cap_usd > 0 or not np.isfinite(costs).all():
        raise AgentError(f"{len(costs)} costs and a cap of {cap_usd} USD: give finite costs and a positive cap")
    return CapReport(
        cap_usd,
        float((costs > cap_usd).mean()),
        float(costs.max()),
        float(costs.max() / cap_usd),
        float(costs.mean()),
        float(np.minimum(costs, cap_usd).mean()),
    )
