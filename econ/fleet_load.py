"""How many accelerators a load needs: peaks, idle hours, several models, agents; energy, carbon and own-or-API."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from econ.finance import plain, require

__all__ = [
    "BreakEven",
    "FleetError",
    "FleetPlan",
    "ModelLoad",
    "Provision",
    "agents_supported",
    "carbon_kg_per_mtoken",
    "energy_kwh_per_mtoken",
    "fleet_plan",
    "provision",
    "self_host_break_even",
    "sessions_per_accelerator",
]


class FleetError(ValueError):
    """A load that cannot be provisioned, or a fleet question without an answer."""


@dataclass(frozen=True)
class Provision:
    """Accelerators held for a load; `busy_share` is mean load over provisioned capacity."""

    replicas: int
    accelerators: int
    busy_share: float
    paid_share: float

    @property
    def cost_factor(self) -> float:
        """Paid over busy accelerator-hours: what idle and peak capacity multiply the token cost by."""
        return self.paid_share / self.busy_share


def provision(
    mean_rate_per_s: float,
    peak_over_mean: float,
    replica_rate_per_s: float,
    accelerators_per_replica: int = 1,
    headroom: float = 0.0,
    least_replicas: int = 1,
    idle_reused_share: float = 0.0,
) -> Provision:
    """Whole replicas for the peak, and the share of them that the mean load keeps busy.

    Rates are of requests (or tokens), of the load and of one replica within its latency target. `idle_reused_share` is
    the part of idle hours that other work pays for (training at night); it lowers the paid share, not the fleet.

    Raises:
        FleetError: when a rate or size is not positive, or the peak is below the mean.

    >>> plan = provision(10.0, 2.0, 3.0, accelerators_per_replica=8)
    >>> plan.accelerators, round(plan.busy_share, 4), round(plan.cost_factor, 2)
    (56, 0.4762, 2.1)
    """
    if not (mean_rate_per_s > 0 and replica_rate_per_s > 0 and peak_over_mean >= 1 and headroom >= 0):
        raise FleetError(
            f"mean {mean_rate_per_s:g}/s, replica {replica_rate_per_s:g}/s, peak over mean {peak_over_mean:g}, "
            f"headroom {headroom:g}: rates must be positive, the peak at least the mean, the headroom not negative"
        )
    if accelerators_per_replica < 1 or not 0 <= idle_reused_share <= 1:
        raise FleetError(
            f"{accelerators_per_replica} accelerators a replica, idle reuse {idle_reused_share:g}: give at least one, "
            "and a share between 0 and 1"
        )
    peak = mean_rate_per_s * peak_over_mean * (1 + headroom)
    replicas = max(least_replicas, math.ceil(peak / replica_rate_per_s - 1e-9))
    busy = mean_rate_per_s / (replicas * replica_rate_per_s)
    paid = 1 - (1 - busy) * idle_reused_share
    return Provision(replicas, replicas * accelerators_per_replica, busy, paid)


@dataclass(frozen=True)
class ModelLoad:
    """One model of a fleet: its mean token rate, its peak over mean, and one replica's rate and size."""

    name: str
    mean_tokens_per_s: float
    peak_over_mean: float
    replica_tokens_per_s: float
    accelerators_per_replica: int = 1


@dataclass(frozen=True)
class FleetPlan:
    """Provisioning of several models; `usd_per_mtoken` by model, `total` over all tokens.

    `pooled_accelerators` is the least fleet when every accelerator could serve any model at once (a bound, not a plan).
    """

    provisions: dict[str, Provision]
    usd_per_mtoken: dict[str, float]
    total_usd_per_mtoken: float
    accelerators: int
    pooled_accelerators: int
    usd_per_hour: float


def fleet_plan(
    loads: Sequence[ModelLoad], usd_per_gpu_hour: float, headroom: float = 0.0, coincident_peak_share: float = 1.0
) -> FleetPlan:
    """Dedicated replicas for each model, and the cost per million tokens that whole replicas and idle hours make.

    Small models pay for their last, half-empty replica. `coincident_peak_share` is the peak of the sum over the sum of
    the peaks, used for the pooled bound.

    Raises:
        FleetError: when there are no loads or two share a name.

    >>> plan = fleet_plan([ModelLoad("a", 900, 1.0, 1000), ModelLoad("b", 10, 1.0, 1000)], 3.6)
    >>> {k: round(v, 3) for k, v in plan.usd_per_mtoken.items()}, plan.accelerators, plan.pooled_accelerators
    ({'a': 1.111, 'b': 100.0}, 2, 1)
    """
    if not loads or len({m.name for m in loads}) != len(loads):
        raise FleetError("a fleet needs at least one model, and each name once")
    plans = {
        m.name: provision(
            m.mean_tokens_per_s, m.peak_over_mean, m.replica_tokens_per_s, m.accelerators_per_replica, headroom
        )
        for m in loads
    }
    per_model = {m.name: plans[m.name].accelerators * usd_per_gpu_hour / (m.mean_tokens_per_s * 0.0036) for m in loads}
    accelerators = sum(p.accelerators for p in plans.values())
    pooled = sum(
        m.mean_tokens_per_s * m.peak_over_mean / m.replica_tokens_per_s * m.accelerators_per_replica for m in loads
    )
    hourly = accelerators * usd_per_gpu_hour
    tokens = sum(m.mean_tokens_per_s for m in loads)
    pooled_count = math.ceil(pooled * (1 + headroom) * coincident_peak_share - 1e-9)
    return FleetPlan(plans, per_model, hourly / (tokens * 0.0036), accelerators, pooled_count, hourly)


def energy_kwh_per_mtoken(
    facility_watts_per_accelerator: ArrayLike,
    tokens_per_s_per_accelerator: ArrayLike,
    busy_share: ArrayLike = 1.0,
    idle_watts_per_accelerator: ArrayLike = 0.0,
) -> Any:
    """Facility energy per million tokens, idle draw of the paid hours included.

    (W_busy b + W_idle (1 - b)) / (tokens/s b) x 1e6 / 3.6e6; watts are facility watts (PUE already in).

    >>> round(energy_kwh_per_mtoken(1730, 1000), 4)
    0.4806
    """
    busy = require("busy_share", busy_share, 0, 1, open_low=True)
    watts = require("facility_watts_per_accelerator", facility_watts_per_accelerator, 0) * busy
    watts = watts + require("idle_watts_per_accelerator", idle_watts_per_accelerator, 0) * (1 - busy)
    rate = require("tokens_per_s_per_accelerator", tokens_per_s_per_accelerator, 0, open_low=True) * busy
    return plain(watts / rate / 3.6)


def carbon_kg_per_mtoken(
    kwh_per_mtoken: ArrayLike,
    grid_kg_per_kwh: ArrayLike,
    embodied_kg_per_accelerator: ArrayLike = 0.0,
    tokens_per_s_per_accelerator: ArrayLike = 1.0,
    life_years: ArrayLike = 5.0,
    busy_share: ArrayLike = 1.0,
    hours_per_year: float = 8760,
) -> Any:
    """Operational plus embodied carbon per million tokens: kWh x grid + embodied / lifetime million tokens.

    >>> round(carbon_kg_per_mtoken(0.5, 0.4, 150.0, 1000.0, 5.0), 5)
    0.20095
    """
    busy = require("busy_share", busy_share, 0, 1, open_low=True)
    rate = require("tokens_per_s_per_accelerator", tokens_per_s_per_accelerator, 0, open_low=True)
    mtokens = rate * busy * 0.0036 * hours_per_year * require("life_years", life_years, 0, open_low=True)
    use = require("kwh_per_mtoken", kwh_per_mtoken, 0) * require("grid_kg_per_kwh", grid_kg_per_kwh, 0)
    return plain(use + require("embodied_kg_per_accelerator", embodied_kg_per_accelerator, 0) / mtokens)


@dataclass(frozen=True)
class BreakEven:
    """Volume at which an own fleet costs what an API charges.

    `mtokens_per_day` is None where the own fleet is dearer even when full; `share_of_capacity` is the busy
    share that is needed.
    """

    mtokens_per_day: float | None
    share_of_capacity: float
    full_usd_per_mtoken: float
    api_usd_per_mtoken: float


def self_host_break_even(
    accelerators: int,
    usd_per_gpu_hour: float,
    capacity_mtokens_per_day: float,
    api_usd_per_mtoken: float,
    extra_usd_per_day: float = 0.0,
) -> BreakEven:
    """Daily volume above which the fleet is cheaper: (accelerators x price x 24 + extra) / API price per Mtoken.

    Both sides count tokens by the same denominator and mix; `extra_usd_per_day` holds staff and support. Capacity is
    what the fleet serves within its latency target.

    Raises:
        FleetError: when a price or the capacity is not positive.

    >>> self_host_break_even(8, 2.5, 400.0, 2.0).mtokens_per_day
    240.0
    """
    if not (accelerators > 0 and usd_per_gpu_hour > 0 and capacity_mtokens_per_day > 0 and api_usd_per_mtoken > 0):
        raise FleetError(
            f"{accelerators} accelerators at {usd_per_gpu_hour} USD, capacity {capacity_mtokens_per_day} Mtoken/day, "
            f"API price {api_usd_per_mtoken}: all must be positive"
        )
    daily = accelerators * usd_per_gpu_hour * 24 + extra_usd_per_day
    volume = daily / api_usd_per_mtoken
    reached = volume <= capacity_mtokens_per_day
    return BreakEven(
        volume if reached else None,
        volume / capacity_mtokens_per_day,
        daily / capacity_mtokens_per_day,
        api_usd_per_mtoken,
    )


def sessions_per_accelerator(
    memory_bytes: ArrayLike, resident_bytes: ArrayLike, kv_bytes_per_session: ArrayLike
) -> Any:
    """Sessions whose cache stays in one accelerator's memory: (memory - weights and workspace) / cache of one session.

    `kv_bytes_per_session` is the cache at the session's mean context; a session that waits for a tool or an approval
    holds it all the same, unless it is dropped and paid for again.

    Raises:
        FleetError: when weights and workspace leave no room.

    >>> sessions_per_accelerator(141e9, 91e9, 10e9)
    5.0
    """
    free = require("memory_bytes", memory_bytes, 0) - require("resident_bytes", resident_bytes, 0)
    if (free <= 0).any():
        raise FleetError(f"weights and workspace ({resident_bytes!r} B) leave no room in {memory_bytes!r} B of memory")
    return plain(free / require("kv_bytes_per_session", kv_bytes_per_session, 0, open_low=True))


def agents_supported(
    accelerators: ArrayLike,
    accelerator_hours_per_task: ArrayLike,
    tasks_per_agent_hour: ArrayLike,
    use: ArrayLike = 1.0,
) -> Any:
    """Agents that a fleet can run without end: accelerators x use / (accelerator-hours a task x tasks an agent-hour).

    `use` is the share of installed hours spent on this work (sold x scheduled x healthy x busy).

    >>> agents_supported(1000, 0.05, 2.0, 0.5)
    5000.0
    """
    demand = require("accelerator_hours_per_task", accelerator_hours_per_task, 0, open_low=True) * require(
        "tasks_per_agent_hour", tasks_per_agent_hour, 0, open_low=True
    )
    return plain(require("accelerators", accelerators, 0) * require("use", use, 0, 1) / demand)
