"""The answer of a run as one object: what `wafer2token run --json` prints."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from scenarios.costing import CostModel, covered_years
from scenarios.results import records

if TYPE_CHECKING:
    from scenarios.resolve import Resolved
    from supply.bottleneck import Binding, BottleneckReport
    from supply.optimizer.solution import Solution

__all__ = ["make_answer"]


def make_answer(
    resolved: Resolved, solution: Solution, report: BottleneckReport | None, model: CostModel, run: str, digest: str
) -> dict[str, Any]:
    """The object of the design, section 8; money of prices is None unless the objective is value."""
    evidence = solution.evidence
    objective = resolved.network.objective
    translator = _Translator(solution, model)
    periods = [_period(solution, report, translator, t) for t in range(resolved.horizon.periods)]
    _add_stranded(solution, periods)
    return {
        "run": run,
        "scenario": resolved.scenario.name,
        "title": resolved.scenario.title,
        "hash": digest,
        "status": solution.status,
        "regime": resolved.network.regime.kind,
        "objective": {"kind": objective.kind, "value": solution.objective, "unit": solution.objective_unit},
        "evidence": {
            **{k: float(getattr(evidence, k)) for k in ("primal_residual", "dual_residual", "gap", "complementarity")},
            "rows": int(evidence.rows),
            "columns": int(evidence.columns),
            "solver": str(evidence.solver),
        },
        "periods": periods,
        "costs": [_cost(row) for row in model.costs],
        "tasks": [
            {k: row[k] for k in ("task", "model", "sku", "period", "usd_per_verified_task", "low", "high")}
            | {"review_usd": row["parts"]["review"]}
            for row in model.tasks
        ],
        "problems": model.problems,
    }


def _cost(row: dict[str, Any]) -> dict[str, Any]:
    keys = ["sku", "model", "period", "usd_per_gpu_hour", "usd_per_mtoken", "low", "high", "check"]
    keys += ["engine_low", "engine_high"]
    return {key: row[key] for key in keys} | {"low_high_of": "usd_per_mtoken.output"}


def _period(solution: Solution, report: BottleneckReport | None, translator: _Translator, t: int) -> dict[str, Any]:
    label = solution.network.horizon.labels()[t]
    bindings = report.of(label) if report is not None else []
    return {
        "period": label,
        "finished": _by_sku(solution.finished, t, "finished"),
        "energised": _by_sku(solution.energised, t, "energised"),
        "fleet": _by_sku(solution.fleet, t, "fleet"),
        "stranded": {"accelerators": 0.0, "mw": 0.0},
        "binding": [_binding(b, translator) for b in bindings],
        "prices": {r: _tidy(solution.price(r, t)) for r in solution.network.resources},
    }


def _tidy(value: float) -> float:
    """A number without the dust of the solver (a millionth of a unit)."""
    return 0.0 if abs(value) < 1e-6 else float(value)


def _by_sku(table: Any, t: int, column: str) -> dict[str, float]:
    mine = table[table["t"] == t]
    return {str(k): float(v) for k, v in mine.groupby("sku", sort=True)[column].sum().items() if v > 1e-9}


def _add_stranded(solution: Solution, periods: list[dict[str, Any]]) -> None:
    if not solution.network.fleet:
        return
    from supply.bottleneck import stranded

    for row in records(stranded(solution)):
        periods[int(row.t)]["stranded"] = {"accelerators": _tidy(row.accelerators), "mw": _tidy(row.mw)}


def _binding(b: Binding, translator: _Translator) -> dict[str, Any]:
    return {
        "resource": b.resource,
        "title": b.title,
        "stage": b.stage,
        "region": b.region,
        "utilisation": b.utilisation,
        "capacity": b.capacity,
        "rent": b.rent,
        "shares": list(b.shares),
        "price": translator.price(b),
        "price_range": [b.price_low, b.price_high],
        "plus_1_percent": b.plus_1_percent,
        "next_binding": {"resource": b.next_resource, "at_capacity_change": b.next_at},
    }


class _Translator:
    """Prices of limits in money per accelerator-hour, million tokens and task of a named reference.

    The reference SKU of a manufacturing limit is the one that carries most of it among what is energised later; of a
    power row the SKU with most of the fleet there. Model and task are the first of the scenario that run on it.
    """

    def __init__(self, solution: Solution, model: CostModel) -> None:
        self.solution = solution
        self.model = model
        self.money = solution.network.objective.kind == "value" and bool(solution.network.fleet) and model.length > 0
        self._amounts = self._embodied() if self.money else {}

    def _embodied(self) -> dict[tuple[str, int], tuple[str, float]]:
        """(resource, period) -> (reference SKU, amount of the resource in one accelerator)."""
        from supply.bottleneck import embodied

        table = embodied(self.solution).table
        table = table[table["row"] == "limit"]
        energised = self.solution.energised.groupby(["sku", "t"])["energised"].sum().to_dict()
        labels = {label: t for t, label in enumerate(self.solution.network.horizon.labels())}
        carried: dict[tuple[str, int], dict[str, float]] = defaultdict(lambda: defaultdict(float))
        total: dict[tuple[str, str], list[float]] = defaultdict(list)
        regions = table.groupby(["sku", "t"])["region"].nunique().to_dict()
        for row in records(table.groupby(["sku", "t", "subject"])[["amount"]].sum().reset_index()):
            total[row.sku, row.subject].append(float(row.amount) / regions[row.sku, row.t])
        for row in records(table):
            carried[row.subject, labels[row.row_period]][row.sku] += row.amount * energised.get((row.sku, row.t), 0.0)
        out = {}
        for key, by_sku in carried.items():
            sku = max(by_sku, key=lambda s: (by_sku[s], s))
            out[key] = (sku, float(np.mean(total[sku, key[0]])))
        return out

    def _reference(self, b: Binding) -> tuple[str, float] | None:
        if not self.solution.network.resources[b.resource].is_power:
            return self._amounts.get((b.resource, b.t))
        fleet = self.solution.fleet
        here = fleet[(fleet["t"] == b.t) & (fleet["region"] == b.region)].sort_values(
            ["fleet", "sku"], ascending=[False, True]
        )
        if here.empty:
            return None
        sku = str(here.iloc[0]["sku"])
        return sku, float(self.solution.values[f"fleet.{sku}.kw_planning"][b.t])

    def price(self, b: Binding) -> dict[str, Any]:
        """The `price` entry of a binding row."""
        unit = (
            f"USD/{b.unit}"
            if self.solution.network.objective.kind == "value"
            else f"{self.solution.objective_unit}/{b.unit}"
        )
        out: dict[str, Any] = {
            "native": b.price,
            "unit": unit,
            "lasting": b.lasting_price,
            "usd_per_gpu_hour": None,
            "usd_per_mtoken": None,
            "usd_per_task": None,
            "reference": {"sku": None, "model": None, "task": None},
        }
        found = self._reference(b) if self.money else None
        return out if found is None else out | self._money(b, *found)

    def _money(self, b: Binding, sku: str, use: float) -> dict[str, Any]:
        from econ.scarcity import Reference, ResourcePrice, translate

        cost = next((c for c in self.model.costs if c["sku"] == sku and c["tokens_per_sold_hour"] is not None), None)
        task = next((r for r in self.model.tasks if r["sku"] == sku and r["accelerator_hours_per_task"]), None)
        power = self.solution.network.resources[b.resource].is_power
        reference = Reference(
            sku,
            cost["model"] if cost else "",
            task["task"] if task else "",
            self.model.rate,
            self.model.life_years,
            self.model.sold,
            cost["tokens_per_sold_hour"] if cost else 1.0,
            task["accelerator_hours_per_task"] if task else 0.0,
            self.solution.network.horizon.hours(b.t),
            power_life_years=covered_years(self.model.length - b.t, self.model.years_per_period),
        )
        price = max(b.price, 0.0)
        found = translate(ResourcePrice(b.resource, b.stage, price, use, "power" if power else "capital"), reference)
        out: dict[str, Any] = {
            "usd_per_gpu_hour": found.usd_per_gpu_hour,
            "usd_per_mtoken": found.usd_per_mtoken if cost else None,
            "usd_per_task": found.usd_per_task if task else None,
            "reference": {"sku": sku, "model": reference.model or None, "task": reference.task or None},
        }
        if power:
            lasting = translate(
                ResourcePrice(b.resource, b.stage, max(b.lasting_price, 0.0), use, "power", lasting=True), reference
            )
            out["lasting_usd_per_gpu_hour"] = lasting.usd_per_gpu_hour
            out["lasting_usd_per_mtoken"] = lasting.usd_per_mtoken if cost else None
            out["lasting_usd_per_task"] = lasting.usd_per_task if task else None
        return out
