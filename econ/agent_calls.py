"""The calls of one attempt at a task: how the context grows, what stays cached, and when it is paid for again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from econ.usage import TokenUsage

__all__ = [
    "AgentError",
    "AttemptTrace",
    "CallRecord",
    "Context",
    "Policy",
    "call_counts",
    "prefix_cache_saving",
    "trace",
]

Array = NDArray[np.float64]
Policy = Literal["keep", "summarise", "drop", "reopen"]
#: Points of the distribution of calls per attempt.
_LEVELS = 25


class AgentError(ValueError):
    """An agent task that cannot run or cannot be costed: what is wrong and what to change."""


@dataclass(frozen=True)
class Context:
    """What each call reads and writes, in tokens.

    The first prompt is `instructions` (rules and tool descriptions, equal in all tasks) plus `request`; every call adds
    its `output` (thinking included) and one `observation` (tool result). When the context would pass `limit`:

        keep       an error: the context no longer fits
        summarise  one extra call turns the history into `kept` tokens
        drop       the oldest observations go, `kept` tokens of history stay
        reopen     as drop, and `reopen_share` of what went is read again by the next call
    """

    instructions: float
    request: float
    observation: float
    output: float
    policy: Policy = "keep"
    limit: float = float("inf")
    kept: float = 0.0
    reopen_share: float = 0.0
    instructions_warm: bool = False

    def __post_init__(self) -> None:
        if self.policy not in get_args(Policy):
            raise AgentError(f"context policy {self.policy!r}: one of {', '.join(get_args(Policy))}")
        for name in ("instructions", "request", "observation", "output", "kept", "reopen_share"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise AgentError(f"context {name} = {getattr(self, name)}: give a finite number that is not negative")
        floor = self.instructions + self.request + self.kept
        if self.policy != "keep" and floor + self.observation + self.output > self.limit:
            raise AgentError(
                f"context limit {self.limit:g} is below instructions, request, kept history and one step "
                f"({floor + self.observation + self.output:g} tokens): raise the limit or keep less"
            )
        if self.reopen_share > 1 or self.output == 0:
            raise AgentError("a call writes at least one token, and no more is reopened than was dropped (share <= 1)")


@dataclass(frozen=True)
class CallRecord:
    """One call: its tokens, the gap before it, and whether it is an extra (summarising) call."""

    usage: TokenUsage
    gap_s: float
    extra: bool = False


@dataclass(frozen=True)
class AttemptTrace:
    """Calls in order; extra calls follow the call that made them necessary."""

    calls: tuple[CallRecord, ...]

    @property
    def usage(self) -> TokenUsage:
        """Sum over calls."""
        return TokenUsage.sum(c.usage for c in self.calls)


def trace(
    context: Context,
    calls: int,
    gaps_s: Sequence[float] | float = 0.0,
    cache_lifetime_s: float | None = 300.0,
    long_writes: bool = False,
) -> AttemptTrace:
    """Walk through the calls of one attempt.

    `gaps_s` are the seconds between the end of a call and the next (tools, approvals), one a call or one for all. A gap
    longer than `cache_lifetime_s` loses the cached prefix, which is then written again; None means no prefix cache. The
    cached prefix of a call is the whole prompt of the one before it; rewriting history keeps only instructions and
    request. `long_writes` books writes in the one-hour class.

    Raises:
        AgentError: when the context passes its limit under the policy `keep`.

    >>> t = trace(Context(1000, 100, 500, 50), 3)
    >>> [round(c.usage.cache_read) for c in t.calls], round(t.usage.cache_write)
    ([0, 1100, 1650], 2200)
    """
    if calls < 1 or calls != int(calls):
        raise AgentError(f"{calls} calls: an attempt makes a whole number of calls from 1")
    base = context.instructions + context.request
    size, cached = base, (context.instructions if context.instructions_warm else 0.0)
    step = context.output + context.observation
    out: list[CallRecord] = []
    for i in range(int(calls)):
        gap = _gap(gaps_s, i)
        if i and cache_lifetime_s is not None and gap > cache_lifetime_s:
            cached = context.instructions if context.instructions_warm else 0.0
        out.append(CallRecord(_usage(size, cached, context.output, cache_lifetime_s, long_writes), gap))
        cached = size
        size += step
        if size <= context.limit or i == calls - 1:
            continue
        if context.policy == "keep":
            raise AgentError(
                f"the context reaches {size:g} tokens after call {i + 1} of {calls}, above its limit of "
                f"{context.limit:g}: choose the policy summarise, drop or reopen, or fewer calls"
            )
        if context.policy == "summarise":
            out.append(CallRecord(_usage(size, cached, context.kept, cache_lifetime_s, long_writes), 0.0, True))
        dropped = size - base - context.kept
        size, cached = base + context.kept, base
        if context.policy == "reopen":
            size = min(context.limit, size + dropped * context.reopen_share)
    return AttemptTrace(tuple(out))


def _gap(gaps_s: Sequence[float] | float, i: int) -> float:
    if isinstance(gaps_s, (int, float)):
        return float(gaps_s) if i else 0.0
    return float(gaps_s[i])


def _usage(size: float, cached: float, output: float, lifetime_s: float | None, long_writes: bool) -> TokenUsage:
    if lifetime_s is None:
        return TokenUsage(uncached_input=size, output=output)
    read = min(cached, size)
    fresh = size - read
    if long_writes:
        return TokenUsage(cache_write_1h=fresh, cache_read=read, output=output)
    return TokenUsage(cache_write=fresh, cache_read=read, output=output)


def call_counts(mean: float, cv: float) -> Array:
    """Equally likely numbers of calls per attempt: a gamma distribution by mid-quantiles, at least 1, mean kept.

    >>> call_counts(10, 0.0).tolist()
    [10.0]
    >>> round(float(call_counts(20, 0.5).mean()), 6)
    20.0
    """
    if not 1 <= mean < float("inf") or not 0 <= cv < float("inf"):
        raise AgentError(f"mean {mean} calls with cv {cv}: an attempt makes at least one call, and cv is not negative")
    if cv == 0 or mean == 1:
        return np.array([float(mean)])
    from scipy.special import gammaincinv

    levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
    # calls above the first are gamma distributed, so that no attempt has fewer than one
    spread = mean * cv / (mean - 1)
    draws = gammaincinv(1 / spread**2, levels)
    return np.asarray(1 + draws * (mean - 1) / draws.mean())


def at_counts(cumulative: Array, counts: Array) -> Array:
    """A cumulative quantity (index 0 = no calls) at fractional numbers of calls."""
    return np.interp(counts, np.arange(len(cumulative)), cumulative)


def longest(counts: Array) -> int:
    """Calls to walk through for a set of counts."""
    return math.ceil(float(counts.max()) - 1e-9)


def prefix_cache_saving(
    prompts: Sequence[float], prefix: float, write_factor: float = 1.25, read_factor: float = 0.10
) -> float:
    """Input cost of calls with a cached common prefix over the cost without a cache, in input-token equivalents.

    The prefix is written once and read by every later call; the rest of each prompt stays ordinary input.

    Raises:
        AgentError: when a prompt is shorter than the prefix.

    >>> prompts = [31983, 32362, 31564, 31355, 30661, 29929, 29295]
    >>> round(prefix_cache_saving(prompts, 29000), 4)
    0.3122
    """
    if not len(prompts) or min(prompts) < prefix or prefix < 0:
        raise AgentError(
            f"a prefix of {prefix:g} tokens is in every prompt, but the shortest has {min(prompts, default=0):g}"
        )
    fresh = sum(p - prefix for p in prompts)
    cached = prefix * (write_factor + read_factor * (len(prompts) - 1)) + fresh
    return cached / sum(prompts)
