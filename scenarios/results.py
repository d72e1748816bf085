"""Tidy tables of a run: what was finished and energised, what bound, what it costs, and the checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from scenarios.costing import CLASSES, CostModel
from supply.optimizer.solution import Solution

if TYPE_CHECKING:
    from scenarios.resolve import Resolved
    from supply.bottleneck import BottleneckReport

__all__ = ["CHECK_COLUMNS", "RESULT_COLUMNS", "check_rows", "price_arrays", "records", "result_rows", "results_frame"]

RESULT_COLUMNS = (
    "run", "scenario", "draw", "period", "region", "stage", "subject", "sku", "model", "quantity",
    "value", "low", "high", "unit",
)  # fmt: skip
CHECK_COLUMNS = ("check", "subject", "period", "value", "tolerance", "passed")
Row = dict[str, Any]


def results_frame(rows: Iterable[Row], run: str, scenario: str, draw: int = 0) -> pd.DataFrame:
    """Rows as the `results` table, with the run's columns filled."""
    frame = pd.DataFrame(list(rows))
    frame = frame.assign(run=run, scenario=scenario, draw=draw)
    for column in RESULT_COLUMNS:
        if column not in frame:
            frame[column] = np.nan if column in ("value", "low", "high") else ""
    text = [c for c in RESULT_COLUMNS if c not in ("draw", "value", "low", "high")]
    frame[text] = frame[text].fillna("")
    frame[["low", "high", "value"]] = frame[["low", "high", "value"]].astype(float)
    return frame[list(RESULT_COLUMNS)]


def records(frame: pd.DataFrame) -> Iterator[Any]:
    """Rows of a table as named tuples."""
    return iter(frame.itertuples())


def price_arrays(solution: Solution) -> tuple[dict[str, Any], dict[str, Any]]:
    """One-period and lasting price of every resource over all periods, in money of the period."""
    length = solution.network.horizon.length
    discount = solution.discount
    price, lasting = {}, {}
    for r in solution.network.resources:
        now = np.array([solution.price(r, t) for t in range(length)])
        price[r] = now
        lasting[r] = np.cumsum((now * discount)[::-1])[::-1] / discount
    return price, lasting


def result_rows(
    resolved: Resolved, solution: Solution, report: BottleneckReport | None, model: CostModel, rents: Any
) -> Iterator[Row]:
    """All rows of a deterministic run."""
    yield from _volumes(resolved, solution)
    yield from _limits(solution)
    if report is not None:
        yield from _bindings(report)
        yield from _potentials(solution)
    yield from _costs(model, rents)
    horizon = resolved.horizon
    last = horizon.labels()[horizon.periods - 1]
    yield _row("objective", "", last, solution.objective, solution.objective_unit)


def _row(quantity: str, subject: str, period: str, value: float, unit: str, **more: Any) -> Row:
    return {"quantity": quantity, "subject": subject, "period": period, "value": float(value), "unit": unit, **more}


def _volumes(resolved: Resolved, solution: Solution) -> Iterator[Row]:
    network = resolved.network
    for r in records(solution.finished):
        yield _row("finished", r.sku, r.period, r.finished, "accelerators", sku=r.sku)
    for r in records(solution.energised):
        yield _row("energised", r.sku, r.period, r.energised, "accelerators", sku=r.sku, region=r.region)
        ratio = solution.values.get(f"fleet.{r.sku}.h100e")
        if ratio is not None:
            equivalent = r.energised * float(ratio[int(r.t)])
            yield _row("energised_h100e", r.sku, r.period, equivalent, "H100-equivalents", sku=r.sku, region=r.region)
    for r in records(solution.fleet):
        yield _row("fleet", r.sku, r.period, r.fleet, "accelerators", sku=r.sku, region=r.region)
        planning = solution.values.get(f"fleet.{r.sku}.kw_planning")
        if planning is not None:
            megawatt = r.fleet * float(planning[int(r.t)]) / 1000.0
            yield _row("fleet_mw", r.sku, r.period, megawatt, "MW", sku=r.sku, region=r.region)
    for r in records(solution.activities):
        process = network.processes[r.process]
        yield _row("starts", r.process, r.period, r.starts, "starts", stage=process.stage, region=process.region)
    for r in records(solution.stocks):
        material = network.materials[r.material]
        yield _row("stock", r.material, r.period, r.stock, material.unit, stage=material.stage)
    for r in records(solution.built):
        yield _row("built", r.expansion, r.period, r.built, "capacity")


def _limits(solution: Solution) -> Iterator[Row]:
    money = solution.objective_unit if solution.network.objective.kind != "value" else "USD"
    for r in records(solution.resources):
        where = {"stage": r.stage, "region": r.region}
        share = r.utilisation if np.isfinite(r.utilisation) else 1.0
        yield _row("capacity", r.resource, r.period, r.capacity, r.unit, **where)
        yield _row("used", r.resource, r.period, r.used, r.unit, **where)
        yield _row("utilisation", r.resource, r.period, share, "fraction", **where)
        yield _row("price", r.resource, r.period, r.price, f"{money}/{r.unit}", **where)
        yield _row("lasting_price", r.resource, r.period, r.lasting_price, f"{money}/{r.unit}", **where)
        yield _row("rent", r.resource, r.period, r.rent, money, **where)


def _bindings(report: BottleneckReport) -> Iterator[Row]:
    for b in report.bindings:
        where = {"stage": b.stage, "region": b.region}
        yield _row("binding_price", b.resource, b.period, b.price, b.unit, low=b.price_low, high=b.price_high, **where)
        for name, gain in (b.plus_1_percent or {}).items():
            yield _row(f"plus_1_percent_{name}", b.resource, b.period, gain, "accelerators", **where)
        if b.next_at is not None:
            yield _row(
                "next_binding_at", b.resource, b.period, b.next_at, "relative rise", model=b.next_resource, **where
            )


def _potentials(solution: Solution) -> Iterator[Row]:
    from supply.bottleneck import limits, stranded

    if not solution.network.fleet:
        return
    for r in records(stranded(solution)):
        yield _row("stranded", "", r.period, r.accelerators, "accelerators")
        yield _row("stranded_mw", "", r.period, r.mw, "MW")
    if any(row.is_power for row in solution.network.resources.values()):
        for r in records(limits(solution)):
            for name in (
                "built_mw",
                "without_power_rows_mw",
                "without_chip_rows_mw",
                "power_limited_mw",
                "chip_limited_mw",
            ):
                value = float(getattr(r, name))
                if np.isfinite(value):
                    yield _row(name, "", r.period, value, "MW")


def _costs(model: CostModel, rents: Any) -> Iterator[Row]:
    for k, (sku, region, period, _) in enumerate(model.rows):
        where = {"sku": sku, "region": region}
        band = {"low": model.owner_low[k], "high": model.owner_high[k]}
        total = {name: value + rents[k] for name, value in band.items()}
        yield _row("usd_per_gpu_hour", sku, period, model.owner[k] + rents[k], "USD/GPU-hour", **where, **total)
        yield _row("owner_usd_per_gpu_hour", sku, period, model.owner[k], "USD/GPU-hour", **where, **band)
        yield _row("scarcity_usd_per_gpu_hour", sku, period, rents[k], "USD/GPU-hour", **where)
    for c in model.costs:
        where = {"sku": c["sku"], "model": c["model"], "region": c["region"]}
        for name in CLASSES:
            usd = c["usd_per_mtoken"][name]
            if usd is not None:
                band = {"low": c["usd_per_mtoken_low"][name], "high": c["usd_per_mtoken_high"][name]}
                subject = f"{c['model']}/{c['sku']}"
                yield _row(f"usd_per_mtoken_{name}", subject, c["period"], usd, "USD/Mtoken", **where, **band)
        if c["tokens_per_sold_hour"] is not None:
            subject = f"{c['model']}/{c['sku']}"
            yield _row("tokens_per_sold_hour", subject, c["period"], c["tokens_per_sold_hour"], "tokens", **where)
    for r in model.tasks:
        where = {"sku": r["sku"], "model": r["model"], "region": r["region"], "low": r["low"], "high": r["high"]}
        subject = f"{r['task']}/{r['model']}/{r['sku']}"
        yield _row("usd_per_verified_task", subject, r["period"], r["usd_per_verified_task"], "USD/task", **where)


def check_rows(resolved: Resolved, solution: Solution, report: BottleneckReport | None, model: CostModel) -> list[Row]:
    """The checks of a run: solver evidence, prices against finite differences, value against cost and rents, inputs."""
    evidence = solution.evidence
    rows = [
        _check(name, "optimum", "", float(getattr(evidence, name)), 1e-6)
        for name in ("primal_residual", "dual_residual", "gap", "complementarity")
    ]
    for b in report.bindings if report is not None else ():
        outside = max(b.price_low - b.price, b.price - b.price_high, 0.0) / max(abs(b.price), 1e-12)
        rows.append(_check("price_in_finite_differences", b.resource, b.period, outside, 1e-3))
    rows += _priced(model)
    unmarked = [p for p, n in resolved.nodes.items() if "stated" in n.source.kinds and _is_estimate(p)]
    rows.append(_check("numbers_without_fact_or_mark", "inputs", "", float(len(unmarked)), np.inf))
    for warning in resolved.warnings:
        rows.append(_check("consistency_warning", warning, "", 1.0, np.inf))
    return rows


def _priced(model: CostModel) -> Iterator[Row]:
    """Periods of each product without an hour (none may be), those at a stated price, and models without tokens."""
    unpriced = Counter(p["sku"] for p in model.problems if "model" not in p)
    for sku in sorted({sku for sku, *_ in model.rows} | set(unpriced)):
        yield _check("priced_by_facts", sku, "", float(unpriced[sku]), 0.0)
    for sku, periods in sorted(Counter(sku for sku, _ in model.stated).items()):
        yield _check("priced_as_stated", sku, "", float(periods), np.inf)
    for problem in model.problems:
        if "model" in problem:
            yield _check("tokens_without_answer", f"{problem['model']}/{problem['sku']}", "", 1.0, np.inf)


def _is_estimate(path: str) -> bool:
    """Whether a plain number at a path is a claim about the world rather than a bill of materials or a definition."""
    return not any(part in path for part in (".input.", ".output.", ".uses.", ".lead_time", ".h100e"))


def _check(name: str, subject: str, period: str, value: float, tolerance: float) -> Row:
    passed = bool(value <= tolerance)
    return {
        "check": name,
        "subject": subject,
        "period": period,
        "value": value,
        "tolerance": tolerance,
        "passed": passed,
    }
