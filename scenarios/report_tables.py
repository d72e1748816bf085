"""Tables that a market report needs beyond the results of a run: computed here, stored in the run folder, read by
reports.

`names` (titles), `binding` (every limit with a price, contracts included), `cost_inputs` (what an owner's hour rests
on), `graph_nodes`, `graph_edges` and, for a library scenario, `scenario_text` come with every run; the rest with
`study=True`: `headline` and `headline_joint` (what could overturn it), `yardsticks` (sizes to judge it by),
`shipments` and `cowos_balance` (outcomes beside the run), `shipments_gap`, `shipments_parts` and `shipments_limits`
(what closes the gap to them), `waterfall` (owner cost of reference products), `front` (token cost against speed) and
`accuracy` (of the per-token engine), and the tables of `report_tables_making`, `report_tables_market` and
`report_tables_training`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import pandas as pd

from scenarios.horizon import nearest_period
from scenarios.limit_rents import binding_table
from scenarios.titles import names_table

if TYPE_CHECKING:
    from econ.token_cost import ServingPoint, TokenCost, Workload
    from scenarios.costing import CostModel
    from scenarios.resolve import Resolved
    from supply.optimizer.solution import Solution

__all__ = ["accuracy", "always", "current", "facts_of", "front", "studies", "waterfall"]

#: Users in flight per replica at which the front is worked out.
FRONT_USERS = (1, 4, 16, 64, 256, 1024)
FRONT_SKUS = 4
#: Models under the roofline, with the tensor parallelism that their weights need.
_ROOFLINE = {"Llama-3.1-70B": 4, "gpt-oss-120b": 2, "DeepSeek-V3": 8}
Progress = Callable[[str], None]


def always(resolved: Resolved, solution: Solution, model: CostModel) -> dict[str, pd.DataFrame]:
    """The cheap tables of every run."""
    from scenarios.report_tables_costs import cost_inputs
    from scenarios.report_tables_source import graph_tables, library_text

    tables = {"names": names_table(resolved.network), "binding": binding_table(solution)}
    tables |= graph_tables(resolved.network)
    if (text := library_text(resolved.scenario)) is not None:
        tables["scenario_text"] = pd.DataFrame({"line": text.splitlines()})
    return tables | ({"cost_inputs": cost_inputs(resolved, model)} if model.rows else {})


def studies(
    resolved: Resolved,
    solution: Solution,
    model: CostModel,
    rents: Any,
    today: str,
    say: Progress,
    answer: Mapping[str, Any],
) -> dict[str, pd.DataFrame]:
    """The tables that take time."""
    from scenarios.headline import headline_study, headline_year, newest_product, watched
    from scenarios.joint_ends import joint_ends
    from scenarios.outcomes import cowos_balance, shipments_compared
    from scenarios.outside_gap import explain_gap
    from scenarios.yardsticks import yardsticks

    year = headline_year(resolved, today)
    now = nearest_period([p["period"] for p in answer["periods"]], today)
    say(f"which weak inputs could overturn the headline of {year}")
    newest = newest_product(solution.energised, str(int(now[:4]) + 1))
    watch = watched(answer, model, now, _reference(model, solution, now), newest)
    tables = {"headline": headline_study(resolved, year, say, watch), "headline_joint": joint_ends(resolved, year)}
    tables |= yardsticks(resolved, date.fromisoformat(today))
    designers = {s.id: s.designer for s in resolved.network.fleet.values()}
    if designers:
        tables["shipments"] = shipments_compared(solution.finished.rename(columns={"finished": "value"}), designers)
        tables["cowos_balance"] = cowos_balance()
        say("what would close the gap to outside estimates of units")
        tables |= explain_gap(solution, tables["shipments"])
    if model.rows:
        say("token cost against speed")
        tables["waterfall"] = waterfall(model, rents, solution, year, now)
        tables["front"] = front(model, rents, _skus(model, solution, year), (year, now), _models(resolved))
        tables |= _engine(model, rents, year, now)
        say("accuracy of the per-token engine")
        if (table := accuracy()) is not None:
            tables["accuracy"] = table
        tables |= track_record()
        tables |= current(solution, date.fromisoformat(today), say)
    return tables


def current(solution: Solution, on: date, say: Progress) -> dict[str, pd.DataFrame]:
    """Manufacturing, current prices and training on a day; they rest on the facts, training on the fleet as well."""
    from scenarios.report_tables_making import manufacturing_tables
    from scenarios.report_tables_market import market_tables
    from scenarios.report_tables_training import training_tables

    say("cost and yield of packages")
    tables = manufacturing_tables(on)
    say("current prices")
    tables |= market_tables(on)
    say("training runs")
    return tables | training_tables(on, solution)


def facts_of(tables: dict[str, pd.DataFrame]) -> list[str]:
    """Facts and series that tables name in a column `fact_ids`, each once."""
    texts = (str(text) for t in tables.values() if "fact_ids" in t for text in t["fact_ids"].dropna().unique())
    return list(dict.fromkeys(name for text in texts for name in text.split()))


def _engine(model: CostModel, rents: Any, year: str, now: str) -> dict[str, pd.DataFrame]:
    """Roofline of the reference models, and measured points priced at the hours of the period `now`."""
    from scenarios.engine_points import CALIBRATED, measured_front, operator_points

    priced = {sku for sku, _, period, _ in model.rows if period.startswith(year)}
    rows = {name: _row_of(model, sku, year, now) for sku, name in CALIBRATED.items() if sku in priced}
    operators = [operator_points(name, "H100", tp=tp) for name, tp in _ROOFLINE.items()]
    tables = {"roofline": pd.concat(operators, ignore_index=True)}
    points = measured_front("Llama-3.1-70B", {n: float(model.owner[k] + rents[k]) for n, k in rows.items()})
    return tables | ({"front_measured": points} if len(points) else {})


def track_record() -> dict[str, pd.DataFrame]:
    """The shipped scoreboard of backtests: yearly rows, and the summary with the 95 % interval of its coverage."""
    from scenarios.backtest_store import stored_backtest

    try:
        held = stored_backtest()
    except FileNotFoundError:
        return {}
    scores = held["scores"]
    yearly = scores[scores["span"] == "year"].reset_index(drop=True)
    yearly = yearly.assign(reason=yearly["reason"].fillna(""), stage=yearly["stage"].fillna(""))
    summary = held["summary"]
    hits = (summary["coverage"] * summary["scored"]).round()
    ends = [wilson(h, n) for h, n in zip(hits, summary["scored"], strict=True)]
    summary = summary.assign(hits=hits, coverage_low=[a for a, _ in ends], coverage_high=[b for _, b in ends])
    for table in (yearly, summary):
        for column in ("period", "origin"):
            if column in table:
                table[column] = table[column].astype(str)
    return {"backtest": yearly, "backtest_summary": summary}


def wilson(hits: float, trials: float) -> tuple[float, float]:
    """Wilson's 95 % interval of a share.

    >>> [round(x, 2) for x in wilson(16, 20)]
    [0.58, 0.92]
    """
    z = 1.959964
    share = hits / trials
    centre = share + z * z / (2 * trials)
    spread = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return (centre - spread) / scale, (centre + spread) / scale


def _models(resolved: Resolved) -> Sequence[str]:
    from scenarios.runner import workloads_and_tasks

    return workloads_and_tasks(resolved.scenario)[0]


def _skus(model: CostModel, solution: Solution, year: str) -> list[str]:
    """Reference products: the H100 where it runs, then those with most of the fleet at the end of the year."""
    fleet = solution.fleet
    last = fleet.loc[fleet["period"].str.startswith(year), "period"].max()
    order = fleet[fleet["period"] == last].groupby("sku")["fleet"].sum().sort_values(ascending=False)
    priced = {sku for sku, _, period, _ in model.rows if period.startswith(year)}
    names = ["h100", *order.index]
    return [s for s in dict.fromkeys(names) if s in priced][:FRONT_SKUS]


def _reference(model: CostModel, solution: Solution, period: str) -> str:
    """The product whose hour stands for all in a period: the H100 where it is priced, else the one with most fleet."""
    here = [sku for sku, _, p, _ in model.rows if p == period]
    fleet = solution.fleet
    order = fleet[fleet["period"] == period].groupby("sku")["fleet"].sum().sort_values(ascending=False)
    return next((str(s) for s in ["h100", *order.index] if s in here), "")


def _row_of(model: CostModel, sku: str, year: str, now: str) -> int:
    """The row of a SKU in the period `now`, or in the nearest one of the year where it has none."""
    rows = [k for k, (s, _, period, _) in enumerate(model.rows) if s == sku and period.startswith(year)]
    periods = [model.rows[k][2] for k in rows]
    nearest = max((p for p in periods if p <= now), default=min(periods))
    return rows[periods.index(nearest)]


def waterfall(model: CostModel, rents: Any, solution: Solution, year: str, now: str) -> pd.DataFrame:
    """Owner cost of a sold hour by part, and the scarcity rent on top, of the reference products in the period `now`.

    Columns sku, period, region, part, value, low, high, unit, fact_ids.
    """
    from econ.chain import hour_cost

    rows: list[tuple[Any, ...]] = []
    for sku in _skus(model, solution, year):
        k = _row_of(model, sku, year, now)
        _, region, period, _ = model.rows[k]
        hour = hour_cost(model.choice(k))
        head = (sku, period, region)
        for bar in hour.breakdown or ():
            rows.append((*head, bar.name, bar.value, bar.low, bar.high, "USD/GPU-hour", " ".join(bar.fact_ids)))
        rows.append((*head, "total", hour.usd, hour.low, hour.high, "USD/GPU-hour", ""))
        rows.append((*head, "scarcity", float(rents[k]), None, None, "USD/GPU-hour", ""))
    frame = pd.DataFrame(rows, columns=["sku", "period", "region", "part", "value", "low", "high", "unit", "fact_ids"])
    frame[["value", "low", "high"]] = frame[["value", "low", "high"]].astype(float)
    return frame


def front(
    model: CostModel, rents: Any, skus: Sequence[str], when: tuple[str, str], models: Sequence[str]
) -> pd.DataFrame:
    """Cost of a million output tokens against the speed of one user, best layout at each number of users;
    hours of a year and period (`when`).

    Columns model, sku, period, users, accelerators, tokens_per_s_per_user, usd_per_mtoken, low, high, confidence,
    limited_by, setup.
    """
    from econ.chain import MODEL_CHOICES
    from econ.owner_cost import default_use
    from econ.token_cost import token_cost, workload
    from econ.tokens import TokenCostError

    rows = []
    for name in models:
        choice = MODEL_CHOICES.get(name)
        if choice is None:
            continue
        named = workload(choice.workload) if isinstance(choice.workload, str) else choice.workload
        load: Workload = replace(named, ttft_target_s=None, tpot_target_s=None)
        for sku in skus:
            k = _row_of(model, sku, *when)
            usd = float(model.owner[k] + rents[k])
            for users in FRONT_USERS:
                try:
                    cost = token_cost(choice.model, sku, usd, load, default_use(), concurrency=users)
                except TokenCostError:
                    continue  # this many users do not fit: the front ends here
                rows.append(_front_row(choice.name, sku, model.rows[k][2], users, cost))
    columns = [
        "model",
        "sku",
        "period",
        "users",
        "accelerators",
        "tokens_per_s_per_user",
        "usd_per_mtoken",
        "low",
        "high",
    ]
    return pd.DataFrame(rows, columns=[*columns, "confidence", "limited_by", "setup"])


def _front_row(model: str, sku: str, period: str, users: int, cost: TokenCost) -> tuple[Any, ...]:
    point: ServingPoint = cost.point
    usd = cost.usd_per_mtoken["output"]
    speed = 1.0 / point.tpot_s
    rate = point.output
    ends = (usd * cost.low_factor, usd * cost.high_factor)
    return (
        model,
        sku,
        period,
        users,
        point.accelerators,
        speed,
        usd,
        *ends,
        rate.confidence,
        rate.limited_by,
        rate.setup,
    )


def accuracy() -> pd.DataFrame | None:
    """Accuracy of the per-token engine on groups left out of its fit; None where the calibration is not shipped."""
    try:
        from econ.performance.validate import accuracy_table

        found = accuracy_table("family")
    except (ImportError, FileNotFoundError):
        return None
    return pd.DataFrame([row.as_dict() for row in found])
