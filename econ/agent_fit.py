"""Fit an agent task to what a benchmark prints: means, quantiles and costs per task, without its logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from econ.agent_attempt import attempt_cost
from econ.agent_calls import AgentError, call_counts
from econ.agent_price import TaskPrice
from econ.agent_spec import AgentTask

__all__ = ["fit_calls_cv", "fit_observation_tokens", "usd_per_attempt"]


def usd_per_attempt(task: AgentTask, price: TaskPrice) -> float:
    """Mean spending of an attempt, successful and failed ones in their shares: the 'cost per task' of leaderboards."""
    solved, failed = attempt_cost(task, price, True), attempt_cost(task, price, False)
    return solved.usd * task.success_rate + failed.usd * (1 - task.success_rate)


def fit_calls_cv(mean_calls: float, quantile_calls: float, quantile: float = 0.9) -> float:
    """Spread of calls per attempt from the mean and one upper quantile (gamma distribution).

    >>> round(fit_calls_cv(37.172, 64), 2)
    0.58

    Raises:
        AgentError: when the quantile cannot belong to the mean.
    """

    def gap(cv: float) -> float:
        return float(np.quantile(call_counts(mean_calls, cv), quantile)) - quantile_calls

    return _root(gap, 1e-3, 3.0, f"a {quantile:.0%} quantile of {quantile_calls:g} calls with a mean of {mean_calls:g}")


def fit_observation_tokens(task: AgentTask, price: TaskPrice, usd: float, most: float = 1e6) -> AgentTask:
    """The task with the tokens of one tool result set so that an attempt costs what was printed.

    Everything else of the task is kept. The result is an estimate that holds for this price list only.

    Raises:
        AgentError: when no size of observation gives that cost (the printed cost is below that of empty observations).
    """

    def gap(tokens: float) -> float:
        return usd_per_attempt(_observing(task, tokens), price) - usd

    tokens = _root(gap, 0.0, most, f"{usd:g} USD an attempt of task {task.name!r} at {price.label}")
    return _observing(task, tokens)


def _observing(task: AgentTask, tokens: float) -> AgentTask:
    return replace(task, context=replace(task.context, observation=tokens))


def _root(function: Callable[[float], float], low: float, high: float, what: str) -> float:
    from scipy.optimize import brentq

    if function(low) > 0 or function(high) < 0:
        raise AgentError(
            f"cannot be fitted: {what}; check that the printed figure, the calls and the prices belong together"
        )
    return float(brentq(function, low, high, xtol=1e-6, rtol=1e-9))
