"""From a SKU in a period to an hour, a million tokens and a verified task: the econ end of the chain as tables.

Hour costs come from `econ.owner_cost`, token rates from the per-token engine through `econ.token_cost`, tasks from
`econ.agent_task`. An engine point depends on SKU, model and workload only, so it is found once; money enters
afterwards, because token and task costs are linear in the price of an hour.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache
from typing import Any

from econ.agent_price import OwnPrice
from econ.agent_task import TaskCost, agent_task, task_cost
from econ.cost_breakdown import CostBreakdown
from econ.owner_cost import OwnerInputs, StatedPart, default_use, owner_inputs
from econ.throughput_check import ImpossibleThroughputError
from econ.token_cost import Engine, TokenCost, Workload, default_engine, token_cost, workload
from econ.tokens import ClassCosts
from econ.use_chain import UseChain

__all__ = [
    "MODEL_CHOICES",
    "CostChoice",
    "CostTables",
    "HourCost",
    "ModelChoice",
    "cost_tables",
    "hour_cost",
    "priced_at",
    "token_point",
]

CLASSES = ("uncached_input", "cache_write", "cache_read", "output")


@dataclass(frozen=True)
class ModelChoice:
    """A served model: its label in tables, its architecture, the workload that it serves, and engine set-up."""

    name: str
    model: str
    workload: str | Workload = "chat"
    setup: tuple[tuple[str, Any], ...] = ()


#: The models of the shipped scenarios.
MODEL_CHOICES: Mapping[str, ModelChoice] = {
    "chat_70b": ModelChoice("llama_3_1_70b", "Llama-3.1-70B"),
    "chat_120b": ModelChoice("gpt_oss_120b", "gpt-oss-120b"),
    "chat_deepseek": ModelChoice("deepseek_v3", "DeepSeek-V3"),
}


@dataclass(frozen=True)
class CostChoice:
    """One SKU in one region and period: the day it is bought, who owns it, and rents after the sale per sold hour.

    `usd_per_gpu_hour` replaces the owner cost by a stated price (a rent), with its own low and high where known;
    `stated` is a part that the scenario prices itself.
    """

    sku: str
    period: str
    on: date
    region: str = "us"
    owner: str = "neocloud"
    site: str = "own_building"
    use: UseChain | None = None
    rents_usd_per_gpu_hour: float = 0.0
    usd_per_gpu_hour: float | None = None
    usd_low: float | None = None
    usd_high: float | None = None
    stated: StatedPart | None = None


@dataclass(frozen=True)
class HourCost:
    """Cost of a sold hour with its band, waterfall and use chain."""

    usd: float
    low: float
    high: float
    use: UseChain
    breakdown: CostBreakdown | None
    inputs: OwnerInputs | None


@dataclass
class CostTables:
    """Tidy rows: costs by (sku, model, period), tasks by (task, model, sku, period), and what failed and why."""

    costs: list[dict[str, Any]] = field(default_factory=list)
    tasks: list[dict[str, Any]] = field(default_factory=list)
    problems: list[dict[str, str]] = field(default_factory=list)


def hour_cost(choice: CostChoice) -> HourCost:
    """Owner cost of a sold hour (or the stated price) plus the rents after the sale.

    Raises:
        OwnerCostError: when no facts price the SKU, region or owner.
    """
    use = choice.use or default_use()
    if choice.usd_per_gpu_hour is not None:
        usd = choice.usd_per_gpu_hour + choice.rents_usd_per_gpu_hour
        low = usd if choice.usd_low is None else choice.usd_low + choice.rents_usd_per_gpu_hour
        high = usd if choice.usd_high is None else choice.usd_high + choice.rents_usd_per_gpu_hour
        return HourCost(usd, low, high, use, None, None)
    inputs, cost = _owner(choice.sku, choice.region, choice.on, choice.owner, choice.site, choice.use, choice.stated)
    extra = choice.rents_usd_per_gpu_hour
    return HourCost(cost.total + extra, cost.low + extra, cost.high + extra, inputs.inputs.use, cost, inputs)


@lru_cache(maxsize=4096)
def _owner(
    sku: str, region: str, on: date, owner: str, site: str, use: UseChain | None, stated: StatedPart | None
) -> tuple[OwnerInputs, CostBreakdown]:
    inputs = owner_inputs(sku, region, on=on, owner=owner, site=site, use=use, stated=stated)
    return inputs, inputs.cost()


@lru_cache(maxsize=2048)
def _point(
    model: str, hardware: str, load: Workload, use: UseChain, setup: tuple[tuple[str, Any], ...], engine: Any
) -> TokenCost | str:
    try:
        return token_cost(model, hardware, 1.0, load, use, engine=engine, **dict(setup))
    except ImpossibleThroughputError:
        raise
    except ValueError as problem:
        return str(problem)


@lru_cache(maxsize=1)
def _engine() -> Engine:
    return default_engine()


def token_point(choice: ModelChoice, hardware: str, use: UseChain, engine: Engine | None = None) -> TokenCost | str:
    """Token cost at one dollar an hour, found once per set-up; or a text that says why there is none."""
    load = workload(choice.workload) if isinstance(choice.workload, str) else choice.workload
    source: Any = engine or _engine()
    return _point(choice.model, hardware, load, use, choice.setup, source)


def priced_at(cost: TokenCost, usd_per_gpu_hour: float) -> TokenCost:
    """The same operating point at another price of an hour; every token cost scales with it."""
    ratio = usd_per_gpu_hour / cost.usd_per_gpu_hour
    classes = ClassCosts(
        {name: usd * ratio for name, usd in cost.classes.usd_per_mtoken.items()},
        cost.classes.spend_usd * ratio,
        cost.classes.usage,
        cost.classes.overlap / ratio,
    )
    by_denominator = {name: usd * ratio for name, usd in cost.by_denominator.items()}
    return replace(cost, usd_per_gpu_hour=usd_per_gpu_hour, classes=classes, by_denominator=by_denominator)


def _joint(value: float, hour: HourCost, low_factor: float, high_factor: float) -> tuple[float, float]:
    """Band of a product of an hour price and an engine rate: log distances of the two added as squares."""
    down = math.hypot(math.log(hour.usd / hour.low), math.log(1 / low_factor))
    up = math.hypot(math.log(hour.high / hour.usd), math.log(high_factor))
    return value * math.exp(-down), value * math.exp(up)


def _cost_row(choice: CostChoice, model: ModelChoice, hour: HourCost, point: TokenCost | str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "sku": choice.sku,
        "model": model.name,
        "period": choice.period,
        "region": choice.region,
        "usd_per_gpu_hour": hour.usd,
        "usd_per_gpu_hour_low": hour.low,
        "usd_per_gpu_hour_high": hour.high,
        "usd_per_mtoken": dict.fromkeys(CLASSES),
        "usd_per_mtoken_low": dict.fromkeys(CLASSES),
        "usd_per_mtoken_high": dict.fromkeys(CLASSES),
        "low": None,
        "high": None,
        "engine_low": None,
        "engine_high": None,
        "tokens_per_s": None,
        "tokens_per_sold_hour": None,
        "check": point if isinstance(point, str) else point.rate.note,
    }
    if isinstance(point, str):
        return row
    for name in CLASSES:
        usd = point.usd_per_mtoken[name] * hour.usd
        low, high = _joint(usd, hour, point.low_factor, point.high_factor)
        row["usd_per_mtoken"][name], row["usd_per_mtoken_low"][name], row["usd_per_mtoken_high"][name] = usd, low, high
    row["low"], row["high"] = row["usd_per_mtoken_low"]["output"], row["usd_per_mtoken_high"]["output"]
    row["engine_low"], row["engine_high"] = point.low_factor, point.high_factor
    row["tokens_per_s"] = point.rate.tokens_per_s
    row["tokens_per_sold_hour"] = hour.use.tokens_per_sold_hour(point.rate.tokens_per_s)
    return row


@lru_cache(maxsize=8192)
def _task_at(task: str, choice: ModelChoice, hardware: str, use: UseChain, engine: Any, usd: float) -> TaskCost:
    point = token_point(choice, hardware, use, engine)
    if isinstance(point, str):
        raise ValueError(point)
    return task_cost(agent_task(task), OwnPrice(priced_at(point, usd)))


def _slope(exact: Sequence[TaskCost], ends: Sequence[float]) -> float:
    """Dollars per task for each dollar of an hour: its paid accelerator-hours, the price of waiting included."""
    if len(ends) > 1:
        return (exact[1].usd_per_verified_task - exact[0].usd_per_verified_task) / (ends[1] - ends[0])
    return exact[0].accelerator_hours or 0.0


def _task_rows(
    task: str, model: ModelChoice, hours: Sequence[tuple[CostChoice, HourCost]], engine: Engine | None
) -> list[dict[str, Any]]:
    """Task cost by period: two exact evaluations bracket the hour prices, the rest is linear between them."""
    prices = [hour.usd for _, hour in hours]
    ends = sorted({min(prices), max(prices)})
    sku, use = hours[0][0].sku, hours[0][1].use
    source: Any = engine
    exact = [_task_at(task, model, sku, use, source, usd) for usd in ends]
    slope = _slope(exact, ends)
    rows = []
    for choice, hour in hours:
        share = 0.0 if len(ends) == 1 else (hour.usd - ends[0]) / (ends[1] - ends[0])
        usd, low, high = (
            getattr(exact[0], name) + share * (getattr(exact[-1], name) - getattr(exact[0], name))
            for name in ("usd_per_verified_task", "low", "high")
        )
        row: dict[str, Any] = {"task": task, "model": model.name, "sku": sku, "period": choice.period}
        row |= {
            "region": choice.region,
            "usd_per_verified_task": usd,
            "low": usd - min(math.hypot(usd - low, slope * (hour.usd - hour.low)), usd),
            "high": usd + math.hypot(high - usd, slope * (hour.high - hour.usd)),
            "parts": {k: v + share * (exact[-1].parts[k] - v) for k, v in exact[0].parts.items()},
            "accelerator_hours_per_task": exact[0].accelerator_hours,
            "accelerators_held_hours_per_task": exact[0].accelerators_held_hours,
            "elapsed_s_per_task": exact[0].elapsed_s_per_task,
            "interval_basis": exact[0].interval_basis,
        }
        rows.append(row)
    return rows


def _as_model(choice: ModelChoice | str) -> ModelChoice:
    if isinstance(choice, ModelChoice):
        return choice
    return MODEL_CHOICES.get(choice, ModelChoice(choice, choice))


def cost_tables(
    choices: Iterable[CostChoice],
    models: Sequence[ModelChoice | str] = tuple(MODEL_CHOICES),
    tasks: Sequence[str] = ("chat", "research", "coding", "browser"),
    engine: Engine | None = None,
) -> CostTables:
    """Hours, tokens and tasks of SKUs over periods as tidy rows, with bands.

    A row's `low` and `high` are those of the output tokens; every class and the hour have their own columns. Where a
    model does not run on a SKU, the money per token is None and `check` says why; a SKU that no fact prices is a
    problem row. The use chain of a SKU's first choice holds for its tokens. Nothing is silently left out.

    Raises:
        ImpossibleThroughputError: when a stated rate exceeds the ceiling of its set-up.
    """
    tables = CostTables()
    by_sku: dict[str, list[tuple[CostChoice, HourCost]]] = {}
    for choice in choices:
        try:
            hour = hour_cost(choice)
        except ValueError as problem:
            tables.problems.append({"sku": choice.sku, "period": choice.period, "reason": str(problem)})
            continue
        by_sku.setdefault(choice.sku, []).append((choice, hour))
    for sku, hours in by_sku.items():
        for model in map(_as_model, models):
            point = token_point(model, sku, hours[0][1].use, engine)
            tables.costs.extend(_cost_row(choice, model, hour, point) for choice, hour in hours)
            if isinstance(point, str):
                tables.problems.append({"sku": sku, "model": model.name, "reason": point})
                continue
            for task in tasks:
                tables.tasks.extend(_task_rows(task, model, hours, engine))
    return tables
