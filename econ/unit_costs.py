"""Totals, means and shares of counted spending: small, but each with its denominator named."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from econ.finance import plain, require

__all__ = ["evaluation_usd_per_task", "per_unit", "share_of", "total_of"]


def per_unit(total: ArrayLike, units: ArrayLike) -> Any:
    """Total over a count of units (attempts, tasks): not cost per success.

    >>> round(per_unit(140.19151, 500), 6)
    0.280383

    Raises:
        FinanceError: when the count is not positive.
    """
    return plain(require("total", total, 0) / require("units", units, 0, open_low=True))


def total_of(mean: ArrayLike, units: ArrayLike) -> Any:
    """Mean times count.

    >>> round(total_of(0.438511, 1112), 2)
    487.62
    """
    return plain(require("mean", mean, 0) * require("units", units, 0))


def share_of(part: ArrayLike, whole: ArrayLike) -> Any:
    """Part over whole, refused above one (the whole must hold the part).

    >>> round(share_of(342e9, 608e9), 4)
    0.5625

    Raises:
        FinanceError: when the part exceeds the whole or the whole is not positive.
    """
    return plain(require("part over whole", require("part", part, 0) / require("whole", whole, 0, open_low=True), 0, 1))


def evaluation_usd_per_task(
    agent_usd: ArrayLike, user_simulator_usd: ArrayLike = 0.0, judge_usd: ArrayLike = 0.0, sandbox_usd: ArrayLike = 0.0
) -> Any:
    """Cost of evaluating one task: the agent and everything that the harness pays for.

    >>> round(evaluation_usd_per_task(0.085226, 0.054057), 6)
    0.139283
    """
    return plain(
        require("agent_usd", agent_usd, 0)
        + require("user_simulator_usd", user_simulator_usd, 0)
        + require("judge_usd", judge_usd, 0)
        + require("sandbox_usd", sandbox_usd, 0)
    )
