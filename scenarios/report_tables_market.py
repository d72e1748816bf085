"""Study tables of current answers: market prices beside owner cost, tokens of open models, tasks at API prices.

`market` (a row a chip, form and kind of price), `price_series` (dated quotes), `open_models` (two latency targets),
`api_tasks` (course tasks at three models of the price book).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from econ.chain import HourCost
    from econ.token_cost import TokenCost, Workload

__all__ = ["API_MODELS", "CHIPS", "OPEN_MODELS", "TARGETS", "market_tables"]

CHIPS = ("H100", "H200", "B200", "GB200", "MI300X", "MI355X")
OPEN_MODELS = ("Llama-3.1-70B", "gpt-oss-120b", "DeepSeek-V3", "Qwen3-235B-A22B", "Kimi-K2", "GLM-4.5")
#: Workloads of one request shape and two latency targets.
TARGETS = ("chat", "chat_interactive")
SERVED_ON = "b200"
TASKS = ("chat", "research", "coding", "browser")


@dataclass(frozen=True)
class ApiModel:
    """A model of the price book, and who sells it where several do."""

    model: str
    vendor: str | None = None


API_MODELS = (ApiModel("claude-sonnet-5"), ApiModel("gpt-6-sol"), ApiModel("gemini-4-neon"))


def market_tables(on: date) -> dict[str, pd.DataFrame]:
    """All tables on a day."""
    return {
        "market": market(on),
        "price_series": price_series_table(on),
        "open_models": open_models(on),
        "api_tasks": api_tasks(on),
    }


def market(on: date) -> pd.DataFrame:
    """`econ.market.market_table` as a table; a chip that no fact prices has one row that says so."""
    from econ.market import market_table

    rows: list[dict[str, Any]] = []
    for chip in CHIPS:
        try:
            rows += market_table([chip], on=on)
            rows += _floors(chip, on)
        except ValueError as problem:
            rows.append({"chip": chip, "form": "", "price_kind": "owner cost", "note": str(problem), "fact_ids": ()})
    table = pd.DataFrame(rows)
    numbers = ["usd_per_gpu_hour", "low", "high", "quotes", "over_owner_cost"]
    return table.assign(
        on=[d.isoformat() if isinstance(d, date) else "" for d in table["on"]],
        fact_ids=[_joined(ids) for ids in table["fact_ids"]],
        **{name: table[name].astype(float) for name in numbers},
    )


#: Parts of the owner cost that go on only while the accelerator runs; the rest is spent when it is bought.
RUNNING = ("electricity", "colocation", "insurance", "maintenance", "staff", "software", "failures")


def _floors(chip: str, on: date) -> list[dict[str, Any]]:
    """Two lower readings of the owner cost: most hours sold (high end of the sold share), and running cost alone."""
    from econ.owner_cost import owner_inputs

    base = owner_inputs(chip, "us", on=on)
    sold = base.bands["use.sold"][1]
    full = owner_inputs(chip, "us", on=on, use=replace(base.inputs.use, sold=sold)).cost()
    head = {"chip": chip, "form": "", "quotes": None, "on": on, "fact_ids": full.fact_ids}
    whole = base.cost()
    bars = [bar for bar in whole if bar.name in RUNNING]
    running = sum(bar.value for bar in bars)
    ends = {"low": full.low, "high": full.high}
    most = {"price_kind": "owner cost, most hours sold", "usd_per_gpu_hour": full.total} | ends
    alone = {"price_kind": "running cost", "usd_per_gpu_hour": running, "low": None, "high": None}
    return [
        head | most | {"over_owner_cost": full.total / whole.total, "note": f"{sold:.0%} of hours sold"},
        head | alone | {"over_owner_cost": running / whole.total, "note": ", ".join(b.name for b in bars)},
    ]


def _joined(ids: Any) -> str:
    """Fact ids of a breakdown (by part) or of a quote."""
    if isinstance(ids, str):
        return ids
    flat = [i for names in ids.values() for i in names] if isinstance(ids, dict) else [str(i) for i in ids]
    return " ".join(dict.fromkeys(flat))


def price_series_table(on: date) -> pd.DataFrame:
    """Every dated quote of the chips up to the day: chip, form, market, term_years, value, on, provider, fact_ids."""
    from econ.price_quotes import MARKETS, price_series

    rows = [
        (chip, q.form, kind, q.term_years, q.usd_per_gpu_hour, q.on.isoformat(), q.provider, q.fact_id)
        for chip in CHIPS
        for kind in MARKETS
        for q in price_series(chip, kind)
        if q.on <= on
    ]
    columns = ["chip", "form", "market", "term_years", "value", "on", "provider", "fact_ids"]
    return pd.DataFrame(rows, columns=columns)


def open_models(on: date, sku: str = SERVED_ON) -> pd.DataFrame:
    """USD per million tokens of open models at two latency targets, at the owner cost of the day.

    Columns model, target, ttft_s, tpot_s, prompt_tokens, output_tokens, sku, usd_per_gpu_hour, hour_low, hour_high,
    value, low, high, input_value, tokens_per_s, rate_low, rate_high, label, confidence, setup, reason, fact_ids.
    """
    from econ.chain import CostChoice, ModelChoice, hour_cost, token_point
    from econ.token_cost import workload

    hour = hour_cost(CostChoice(sku, f"{on:%Y}", on))
    rows = []
    for model in OPEN_MODELS:
        for target in TARGETS:
            point = token_point(ModelChoice(model, model, target), sku, hour.use)
            rows.append(_model_row(model, workload(target), sku, hour, point))
    return pd.DataFrame(rows)


def _model_row(model: str, load: Workload, sku: str, hour: HourCost, point: TokenCost | str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "model": model, "target": load.name, "ttft_s": load.ttft_target_s, "tpot_s": load.tpot_target_s,
        "prompt_tokens": load.prompt_tokens, "output_tokens": load.output_tokens, "sku": sku,
        "usd_per_gpu_hour": hour.usd, "hour_low": hour.low, "hour_high": hour.high,
        "fact_ids": _joined(hour.breakdown.fact_ids) if hour.breakdown is not None else "",
    }  # fmt: skip
    names = ("value", "low", "high", "input_value", "tokens_per_s", "rate_low", "rate_high")
    if isinstance(point, str):
        return row | dict.fromkeys(names, math.nan) | {"label": "", "confidence": "", "setup": "", "reason": point}
    usd = point.usd_per_mtoken["output"] * hour.usd
    down = math.hypot(math.log(hour.usd / hour.low), math.log(1 / point.low_factor))
    up = math.hypot(math.log(hour.high / hour.usd), math.log(point.high_factor))
    numbers = (usd, usd * math.exp(-down), usd * math.exp(up), point.usd_per_mtoken["uncached_input"] * hour.usd)
    rate = point.rate
    row |= dict(zip(names, (*numbers, rate.tokens_per_s, rate.low, rate.high), strict=True))
    return row | {"label": rate.label, "confidence": rate.engine.confidence, "setup": rate.engine.setup, "reason": ""}


def api_tasks(on: date) -> pd.DataFrame:
    """The course tasks at API prices of the day: what a verified task costs, with interval and what it rests on.

    Columns task, model, value, low, high, attempts, verified_share, failed_share, people_share, usd_input, usd_output,
    basis, prices, source, reason, fact_ids. Calls, tokens and success are those of the task's own evidence; prices
    alone differ.
    """
    from econ.agent_price import ApiPrice
    from econ.agent_task import agent_task, task_cost
    from econ.price_book import price_book

    rows = []
    for name in TASKS:
        task = agent_task(name)
        for wanted in API_MODELS:
            row: dict[str, Any] = {"task": name, "model": wanted.model, "source": task.source, "reason": ""}
            try:
                cost = task_cost(task, ApiPrice(wanted.model, on, wanted.vendor))
                prices = price_book().prices(wanted.model, on, wanted.vendor, "standard", 0.0)
            except ValueError as problem:
                rows.append(row | {"reason": str(problem)})
                continue
            usd = cost.usd_per_verified_task
            people = (cost.parts["review"] + cost.parts["judge"]) / usd
            row |= {"value": usd, "low": cost.low, "high": cost.high, "attempts": cost.attempts_per_task}
            row |= {"verified_share": cost.verified_share, "failed_share": cost.failed_share, "people_share": people}
            row |= {"basis": cost.interval_basis, "prices": prices.source, "fact_ids": " ".join(prices.fact_ids)}
            rows.append(row | {"usd_input": prices.uncached_input, "usd_output": prices.output})
    return pd.DataFrame(rows)
