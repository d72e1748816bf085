"""Study tables of training: one named run at several cluster sizes, the largest run a year, checks and accuracy.

`training_runs`, `training_checks` (ours beside published), `largest_runs` (from the fleet and the power of the run),
`training_accuracy`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from econ.cost_breakdown import CostBreakdown
    from econ.failures import RateEstimate
    from econ.largest_run import LargestRun
    from econ.owner_cost import OwnerInputs
    from econ.training_plan import Prices, TrainingPlan
    from supply.optimizer.solution import Solution

__all__ = ["NAMED_RUN", "RUN_DAYS", "SIZES", "NamedRun", "training_tables"]


@dataclass(frozen=True)
class NamedRun:
    """A published run, planned anew: model, part, tokens, sequence length, sequences a step."""

    model: str
    part: str
    sku: str
    tokens: float
    sequence: int
    global_batch: float


#: As in the published run: 15.6e12 tokens in steps of 2,048 sequences of 8,192.
NAMED_RUN = NamedRun("Llama-3.1-405B", "H100", "h100", 15.6e12, 8192, 2048)
SIZES = (2048, 4096, 8192, 16384, 32768, 65536)
#: Elapsed days for which the largest run is stated; operations grow in proportion.
RUN_DAYS = 100.0
PUBLISHED_SIZE = 16384
#: As `econ.training_plan.plan_training` takes by default: durable write rate of the job, share of it that stops steps.
WRITE_BYTES_PER_S, BLOCKING = 1e12, 0.1
_RUN_FACTS = "Llama 3 405B run"


def training_tables(on: date, solution: Solution) -> dict[str, pd.DataFrame]:
    """All tables, at prices of the day and for the fleet of the run."""
    from econ.performance.training_accuracy import training_accuracy

    runs = training_runs(on)
    return {
        "training_runs": runs,
        "training_checks": training_checks(runs),
        "largest_runs": largest_runs(solution),
        "training_accuracy": pd.DataFrame(training_accuracy()),
    }


def training_runs(on: date, run: NamedRun = NAMED_RUN) -> pd.DataFrame:
    """The named run at several cluster sizes, a row a size; ends of bands are 90 %.

    Columns model, part, tokens, accelerators, mfu, days, days_low, days_high, accelerator_hours, interruptions,
    interruptions_low, interruptions_high, hours_between, goodput, goodput_low, goodput_high, checkpoint, lost_work,
    down, rental_usd, rental_low, rental_high, amortised_usd, purchase_usd, energy_mwh, usd_per_gpu_hour, layout,
    fact_ids. Days carry the step-time band and that of the interruption rate; rent also that of the hour.
    """
    from econ.failures import fit_between_runs, published_runs
    from econ.owner_cost import owner_inputs

    inputs = owner_inputs(run.sku, "us", on=on)
    cost = inputs.cost()
    prices = _prices(inputs, cost, on)
    rate = fit_between_runs(published_runs()).estimate
    return pd.DataFrame([_run_row(run, n, prices, cost, rate) for n in SIZES])


def _prices(inputs: OwnerInputs, cost: CostBreakdown, on: date) -> Prices:
    from econ.training_plan import Prices
    from supply.facts import catalog

    peak_w = catalog().series("it_power_nvidia_h100").levels([on])[0]
    held = inputs.inputs
    return Prices(cost.total, float(held.it_usd), peak_w / 1000, float(held.electricity_usd_per_kwh), float(held.pue))


def _run_row(run: NamedRun, count: int, prices: Prices, hour: CostBreakdown, rate: RateEstimate) -> dict[str, Any]:
    from econ.training_plan import plan_training

    plan = plan_training(run.model, run.part, count, run.tokens, run.sequence, run.global_batch, prices)
    worst, best = (_useful(plan, run, count, r) for r in (rate.high, rate.low))
    kept = plan.goodput.useful
    down, up = (abs(math.log(f)) for f in plan.step_band)
    days = plan.cost.elapsed_days
    days_low = days * math.exp(-math.hypot(down, math.log(best / kept)))
    days_high = days * math.exp(math.hypot(up, math.log(kept / worst)))
    rent = plan.cost.rental_usd
    rent_low = rent * math.exp(-math.hypot(math.log(days / days_low), math.log(hour.total / hour.low)))
    rent_high = rent * math.exp(math.hypot(math.log(days_high / days), math.log(hour.high / hour.total)))
    hours = count * days * 24
    return {
        "model": run.model, "part": run.part, "tokens": run.tokens, "accelerators": count, "mfu": plan.mfu,
        "days": days, "days_low": days_low, "days_high": days_high, "accelerator_hours": plan.cost.accelerator_hours,
        "interruptions": hours * rate.per_accelerator_hour, "interruptions_low": hours * rate.low,
        "interruptions_high": hours * rate.high, "hours_between": 1 / (rate.per_accelerator_hour * count),
        "goodput": kept, "goodput_low": worst, "goodput_high": best, "checkpoint": plan.goodput.checkpoint,
        "lost_work": plan.goodput.lost_work, "down": plan.goodput.down, "rental_usd": rent, "rental_low": rent_low,
        "rental_high": rent_high, "amortised_usd": plan.cost.amortised_usd, "purchase_usd": plan.cost.purchase_usd,
        "energy_mwh": plan.cost.energy_mwh, "operations": plan.operations_detailed, "step_low": plan.step_band[0],
        "step_high": plan.step_band[1], "usd_per_gpu_hour": hour.total, "layout": _layout(plan),
        "fact_ids": " ".join(dict.fromkeys([*hour.fact_ids, "training_restart_time", "training_evaluation_share"])),
    }  # fmt: skip


def _layout(plan: TrainingPlan) -> str:
    s = plan.setup
    return f"TP {s.tp}, PP {s.pp}, DP {s.dp}" + (f", CP {s.cp}" if s.cp > 1 else "")


def _useful(plan: TrainingPlan, run: NamedRun, count: int, rate_per_hour: float) -> float:
    """Useful share at another interruption rate, its own best checkpoint interval taken."""
    from econ.goodput import FailureModel, best_interval, exact_goodput
    from supply.facts import catalog

    write = _checkpoint_write_s(run.model)
    restart = catalog()["training_restart_time"].to("second")
    mtbf = 3600 / (rate_per_hour * count)
    model = FailureModel(mtbf, write * BLOCKING, 1.0, restart_s=restart, durable_lag_s=write * (1 - BLOCKING))
    return exact_goodput(replace(model, interval_s=best_interval(model))).useful


def _checkpoint_write_s(model: str) -> float:
    from econ.goodput import checkpoint_seconds
    from econ.performance.training_model import training_model
    from econ.training_plan import CHECKPOINT_BYTES_PER_PARAMETER

    state = training_model(model).total_params * CHECKPOINT_BYTES_PER_PARAMETER
    return checkpoint_seconds(state, WRITE_BYTES_PER_S)


def training_checks(runs: pd.DataFrame) -> pd.DataFrame:
    """Ours beside what the published run says: check, ours, low, high, published, unit, fact_ids.

    Interruptions are predicted from the other published runs only.
    """
    from econ.failures import fit_between_runs, predict_interruptions, published_runs
    from supply.facts import catalog

    facts = catalog()
    chosen = facts.select(_RUN_FACTS, "interruptions_unexpected"), facts.select(_RUN_FACTS, "run_days")
    size = facts.select(_RUN_FACTS, "gpus")
    seen = predict_interruptions(fit_between_runs(published_runs(without=[_RUN_FACTS])), size.number, chosen[1].number)
    rows: list[tuple[Any, ...]] = [
        ("unexpected interruptions", seen.median, seen.low, seen.high, chosen[0].number, "interruptions",
         f"{chosen[0].id} {chosen[1].id} {size.id}")
    ]  # fmt: skip
    r = runs[runs["accelerators"] == PUBLISHED_SIZE].iloc[0]
    hours, share = facts["llama_3_1_405b_gpu_hours_2024_07"], facts.select(_RUN_FACTS, "mfu")
    ends = [r["accelerator_hours"] * r[d] / r["days"] for d in ("days_low", "days_high")]
    rows.append(("accelerator-hours of the run", r["accelerator_hours"], *ends, hours.number, "H100-hours", hours.id))
    mfu = (r["mfu"], r["mfu"] / r["step_high"], min(r["mfu"] / r["step_low"], 1.0))
    rows.append(("share of the dense peak (MFU)", *mfu, share.number, "fraction", share.id))
    return pd.DataFrame(rows, columns=["check", "ours", "low", "high", "published", "unit", "fact_ids"])


def largest_runs(solution: Solution) -> pd.DataFrame:
    """Largest run in `RUN_DAYS` days at the end of each year: at one named site, and in one region.

    The site, region and product with most operations; one product a run. MFU as in Epoch AI's cost model;
    interruptions at the median rate of published runs. `bound` counts all accelerators that the power carries and no
    interruptions; `operations` the size at which half of the time is useful, or all where more is. Columns year,
    period, case, place, sku, power_mw, fleet, accelerators, limited_by, bound, on_run, goodput, operations, low,
    high, days, mfu, fact_ids. Empty without a fleet.
    """
    fleet = solution.fleet
    if fleet.empty:
        return pd.DataFrame()
    rows = []
    last = fleet.groupby(fleet["period"].str[:4])["period"].max()
    for year, period in last.items():
        here = fleet[(fleet["period"] == period) & (fleet["fleet"] > 1.0)]
        for places in _places(here, solution, str(period)).values():
            found = [r for place in places if (r := _best(here, solution, place, str(year)))]
            rows += [max(found, key=_rank)] if found else []
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class _Place:
    """A site or a region with its megawatts (low and high where known) in a period."""

    case: str
    name: str
    region: str
    period: str
    power_mw: float
    low_mw: float
    high_mw: float
    fact_ids: str = ""


def _places(here: pd.DataFrame, solution: Solution, period: str) -> dict[str, list[_Place]]:
    """Sites that have power on record by the period, and regions with power and accelerators."""
    from scenarios.costing import middle_of
    from supply.facts import catalog

    facts, day = catalog(), middle_of(period)
    sites = []
    for name in (s for s in facts.series_ids if s.startswith("site_power_")):
        series = facts.series(name)
        if middle_of(series.points[0].period) > day:
            continue  # the site has no power on record yet
        mw = [1000 * series.levels([day], which)[0] for which in ("value", "low", "high")]
        sites.append(_Place("site", series.points[0].subject, "us", period, mw[0], mw[1], mw[2], name))
    held = solution.resources
    rows = held[(held["stage"] == "power") & (held["period"] == period)]
    regions = [
        _Place("region", str(region), str(region), period, float(mw), float(mw), float(mw))
        for region, mw in rows.groupby("region")["capacity"].sum().items()
        if region in set(here["region"])
    ]
    return {"site": sites, "region": regions}


def _best(here: pd.DataFrame, solution: Solution, place: _Place, year: str) -> dict[str, Any] | None:
    """The product with the largest run at a place; None where none has accelerators and power there."""
    rows = here[here["region"] == place.region] if place.region in set(here["region"]) else here
    found = [r for sku, n, t in rows[["sku", "fleet", "t"]].itertuples(index=False)
             if (r := _largest(str(sku), float(n), solution, int(t), place, year))]  # fmt: skip
    return max(found, key=_rank) if found else None


def _rank(row: dict[str, Any]) -> tuple[float, float]:
    """Log of operations to six digits (equal caps tie), then what they would be without interruptions."""
    return round(math.log(row["operations"]), 6), float(row["bound"])


@lru_cache(maxsize=64)
def _half_useful(hours_per_accelerator: float, checkpoint_s: float, restart_s: float) -> float:
    """Accelerators at which failures leave half of the elapsed time useful."""
    from scipy.optimize import brentq

    from econ.goodput import goodput

    def gap(log_count: float) -> float:
        return goodput(math.exp(log_count), hours_per_accelerator, checkpoint_s, restart_s).useful - 0.5

    return float(math.exp(brentq(gap, math.log(100.0), math.log(1e8))))


def _largest(sku: str, fleet: float, solution: Solution, t: int, place: _Place, year: str) -> dict[str, Any] | None:
    from econ.failures import fit_between_runs, published_runs
    from econ.goodput import goodput
    from econ.largest_run import Site, largest_run
    from econ.performance.hardware import hardware
    from econ.performance.training import peak_flop_per_s
    from supply.facts import catalog

    facts = catalog()
    planning = solution.values.get(f"fleet.{sku}.kw_planning")
    if planning is None or place.power_mw <= 0:
        return None
    try:
        peak = peak_flop_per_s(hardware(sku), "bf16")
    except ValueError:
        return None  # no peak on record: the product is left to others of the region
    mfu, restart = facts["epoch_ai_cost_model_default_mfu_2026_04_01"], facts["training_restart_time"]
    rate = fit_between_runs(published_runs()).estimate
    write = _checkpoint_write_s(NAMED_RUN.model) * BLOCKING

    def at(mw: float, per_hour: float) -> LargestRun:
        site = Site(place.name, {sku: fleet}, mw)
        kw = {sku: float(planning[t])}
        hours = 1 / per_hour
        return largest_run([site], {sku: peak}, kw, mfu.number, RUN_DAYS, hours, write, restart.to("second"))

    def useful(run: LargestRun, per_hour: float) -> tuple[float, float, float]:
        """Accelerators held to the size at which half of the time is useful, that share, operations."""
        count = min(run.accelerators, _half_useful(1 / per_hour, write, restart.to("second")))
        kept = goodput(count, 1 / per_hour, write, restart.to("second")).useful
        return count, kept, run.operations / run.goodput * count / run.accelerators * kept

    middle = at(place.power_mw, rate.per_accelerator_hour)
    count, kept, operations = useful(middle, rate.per_accelerator_hour)
    low = useful(at(place.low_mw, rate.high), rate.high)[2]
    high = useful(at(place.high_mw, rate.low), rate.low)[2]
    return {
        "year": year, "period": place.period, "case": place.case, "place": place.name, "sku": sku,
        "power_mw": place.power_mw, "fleet": fleet, "accelerators": middle.accelerators,
        "limited_by": middle.limited_by[place.name], "bound": middle.operations / middle.goodput, "on_run": count,
        "goodput": kept, "operations": operations, "low": low, "high": high, "days": RUN_DAYS, "mfu": mfu.number,
        "fact_ids": f"{mfu.id} {restart.id} {place.fact_ids}".strip(),
    }  # fmt: skip
