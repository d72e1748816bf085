"""Costs in the app: hours, tokens and tasks as linear functions of the rents of one re-solve."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from scenarios.costing import CostModel
    from scenarios.extract import Extractor
    from scenarios.resolve import Resolved
    from supply.optimizer.compiled import Compiled
    from supply.optimizer.solution import Solution

__all__ = ["CostRow", "Costing"]


@dataclass(frozen=True)
class CostRow:
    """Cost of an accelerator in a period: USD per sold hour (`rent` of it scarcity), per million tokens out, per task.

    `low`, `high` bound each; a figure is None where the chain has none. `model` and `task` say what was costed.
    """

    sku: str
    period: str
    hour: float
    hour_low: float
    hour_high: float
    rent: float
    model: str = ""
    mtoken: float | None = None
    mtoken_low: float | None = None
    mtoken_high: float | None = None
    task: str = ""
    usd_per_task: float | None = None
    task_low: float | None = None
    task_high: float | None = None


@dataclass
class Costing:
    """The cost model of a scenario and the reader of its rents; empty where there is no money in the objective.

    `problem` says why token and task costs are missing, when they are.
    """

    model: CostModel | None = None
    problem: str = ""
    extractor: Extractor | None = field(default=None, repr=False)
    place: dict[str, int] = field(default_factory=dict, repr=False)

    @classmethod
    def none(cls) -> Costing:
        """No costs (fast previews)."""
        return cls(None, "costs were not asked for")

    @classmethod
    def of(cls, resolved: Resolved, solution: Solution) -> Costing:
        """Owner cost, tokens and tasks of every SKU that runs, at the rents of a solution."""
        from scenarios.costing import build_cost_model, fill_cost_tables
        from scenarios.results import price_arrays
        from scenarios.runner import workloads_and_tasks

        model = build_cost_model(resolved, solution)
        if not model.rows:
            return cls(None, "the scenario has no fleet, or its objective is not in money")
        price, lasting = price_arrays(solution)
        problem = ""
        try:
            fill_cost_tables(model, model.rents(lasting, price), *workloads_and_tasks(resolved.scenario))
        except (ValueError, KeyError, ArithmeticError) as error:
            problem = f"token and task costs are left out: {type(error).__name__}: {error}"
        return cls(model, problem)

    def copy(self) -> Costing:
        """The same model for another compiled programme."""
        return Costing(self.model, self.problem)

    def attach(self, compiled: Compiled) -> None:
        """Read rents from this programme."""
        from scenarios.extract import Extractor

        if self.model is not None:
            self.extractor = Extractor(compiled, self.model)
            self.place = {name: k for k, name in enumerate(self.extractor.names)}

    def models(self) -> list[str]:
        """Models that have a token cost."""
        return list(dict.fromkeys(c["model"] for c in self.model.costs)) if self.model else []

    def tasks(self) -> list[str]:
        """Tasks that have a cost."""
        return list(dict.fromkeys(t["task"] for t in self.model.tasks)) if self.model else []

    def rows(self, solution: Solution, year: str) -> tuple[CostRow, ...]:
        """Costs in the last reported period of a year at the prices of a solution: one row per SKU, model and task."""
        if self.model is None or self.extractor is None:
            return ()
        from scenarios.extract import Reading

        # the solver itself holds the plan that settled ties, whose duals are not prices: those are in the solution
        values = self.extractor.read(Reading(solution.x, solution.y, np.zeros(len(solution.y))))
        inside = [p for _, _, p, _ in self.model.rows if p.startswith(year)]
        if not inside:
            return ()
        period = max(inside)
        out: list[CostRow] = []
        for k, (sku, _, p, _) in enumerate(self.model.rows):
            if p == period:
                out += self._of_sku(k, sku, period, values)
        return tuple(out)

    def _of_sku(self, k: int, sku: str, period: str, values: Any) -> list[CostRow]:
        assert self.model is not None
        model = self.model
        hour = float(values[self.place[f"usd_per_gpu_hour:{sku}@{period}"]])
        rent = hour - float(model.owner[k])
        low, high = float(model.owner_low[k]) + rent, float(model.owner_high[k]) + rent
        base = (sku, period, hour, low, high, rent)
        out = []
        for cost in model.costs:
            if (cost["sku"], cost["period"]) != (sku, period):
                continue
            row = replace(CostRow(*base), model=cost["model"], **self._token(cost, low, high, values))
            tasks = [t for t in model.tasks if (t["sku"], t["period"], t["model"]) == (sku, period, cost["model"])]
            out += [replace(row, **self._task(t, values)) for t in tasks] or [row]
        return out or [CostRow(*base)]

    def _token(self, cost: dict[str, Any], low: float, high: float, values: Any) -> dict[str, Any]:
        """Output tokens at the hour of the solve; the ends move with the ends of the hour."""
        name = f"usd_per_mtoken_output:{cost['model']}/{cost['sku']}@{cost['period']}"
        if name not in self.place:
            return {}
        out = {"mtoken": float(values[self.place[name]])}
        for end, hour in (("low", low), ("high", high)):
            at = cost.get(f"usd_per_mtoken_{end}", {}).get("output")
            if at is not None:
                out[f"mtoken_{end}"] = float(at) * hour / float(cost[f"usd_per_gpu_hour_{end}"])
        return out

    def _task(self, task: dict[str, Any], values: Any) -> dict[str, Any]:
        """A task at the hour of the solve; its ends move in proportion to it."""
        name = f"usd_per_verified_task:{task['task']}/{task['model']}/{task['sku']}@{task['period']}"
        nominal = task["usd_per_verified_task"]
        if name not in self.place or nominal is None or not np.isfinite(nominal):
            return {"task": task["task"]}
        now = float(values[self.place[name]])
        ratio = now / float(nominal) if nominal else 1.0
        ends = {f"task_{e}": float(task[e]) * ratio for e in ("low", "high") if task[e] is not None}
        return {"task": task["task"], "usd_per_task": now, **ends}
