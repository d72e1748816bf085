"""An agent task as a library case: context, calls, waits, tools, children, success, judge and review."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from econ.agent_calls import AgentError, AttemptTrace, Context, trace
from econ.agent_success import Success
from supply.paths import data_dir, data_file

__all__ = ["AgentTask", "Children", "agent_task", "agent_tasks"]


@dataclass(frozen=True)
class Children:
    """Child agents of an attempt: how many, and each one's task (its own success is not asked)."""

    count: float
    task: AgentTask


@dataclass(frozen=True)
class AgentTask:
    """A task as a sequence of calls; times in seconds, shares of calls, money in USD.

    `calls` is the mean of a successful attempt, `calls_failed` of a failed one (default: the same), `calls_cv` their
    spread. `retry_share` are calls made again after an error, per call; `approval_share` of calls wait `approval_s`.
    An attempt is judged (`judge_usd`), and an accepted one reviewed. `observed_tasks` is the number of tasks that
    `success_rate` was measured on: it sets the interval; where nothing was measured, `success_low` and `success_high`
    are its 90 % range.
    """

    name: str
    context: Context
    calls: float
    success_rate: float
    calls_failed: float | None = None
    calls_cv: float = 0.0
    correlation: float = 0.0
    attempts: int = 1
    observed_tasks: int | None = None
    success_low: float | None = None
    success_high: float | None = None
    retry_share: float = 0.0
    cache_lifetime_s: float | None = 300.0
    long_writes: bool = False
    tool_s: float = 0.0
    tool_usd: float = 0.0
    approval_share: float = 0.0
    approval_s: float = 0.0
    children: tuple[Children, ...] = ()
    harness_usd: float = 0.0
    judge_usd: float = 0.0
    false_accept: float = 0.0
    false_reject: float = 0.0
    review_minutes: float = 0.0
    review_usd_per_hour: float = 0.0
    title: str = ""
    measure: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        shares = ("success_rate", "correlation", "approval_share", "false_accept", "false_reject")
        for name in shares:
            if not 0 <= getattr(self, name) <= 1:
                raise AgentError(f"task {self.name!r}: {name} = {getattr(self, name)} is a share between 0 and 1")
        for name in ("retry_share", "tool_s", "tool_usd", "approval_s", "harness_usd", "judge_usd", "review_minutes"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise AgentError(f"task {self.name!r}: {name} = {getattr(self, name)} must be finite and not negative")
        low, high = self.success_low, self.success_high
        if (low is None) != (high is None) or (
            low is not None and high is not None and not 0 < low <= self.success_rate <= high <= 1
        ):
            raise AgentError(f"task {self.name!r}: the range {low}..{high} must hold the success rate, above 0")
        if self.attempts < 1:
            raise AgentError(f"task {self.name!r}: {self.attempts} attempts; a task is tried at least once")

    @property
    def success(self) -> Success:
        """Success of one attempt, with the correlation between attempts."""
        return Success(self.success_rate, self.correlation)

    def walk(self, calls: int) -> AttemptTrace:
        """The calls of an attempt of a given length."""
        gaps = np.full(calls, self.tool_s)
        if self.approval_share > 0 and self.approval_s > 0:
            every = max(1, round(1 / self.approval_share))
            gaps[every::every] += self.approval_s
        gaps[0] = 0.0
        return trace(self.context, calls, gaps.tolist(), self.cache_lifetime_s, self.long_writes)


def agent_tasks() -> list[str]:
    """Names of the shipped tasks."""
    return sorted(p.stem for p in (data_dir() / "cases" / "tasks").glob("*.yaml"))


def agent_task(name: str, **changes: Any) -> AgentTask:
    """A shipped task by name (chat, research, coding, browser), with changed fields.

    Raises:
        AgentError: unknown name; the message lists the shipped ones.
    """
    return replace(_shipped(name), **changes)


@lru_cache(maxsize=32)
def _shipped(name: str) -> AgentTask:
    from econ.case_files import read_case

    if name not in agent_tasks():
        raise AgentError(f"no task {name!r}: shipped ones are {', '.join(agent_tasks())}, or build an AgentTask")
    return read_case(data_file("cases", "tasks", f"{name}.yaml"), AgentTask, AgentError)
