"""Every limit that costs something, period by period: capacities, power, and greatest shares written in contracts.

`supply.bottleneck` prices capacities. A designer's greatest share of a capacity is a row of its own: when it binds,
the capacity itself may be slack and yet nobody can use it. Both belong to the stage of the capacity. Fees of
take-or-pay are not prices and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from scenarios.titles import contract_title

if TYPE_CHECKING:
    from supply.optimizer.solution import Solution

__all__ = ["BINDING_COLUMNS", "binding_table", "costliest_stage"]

BINDING_COLUMNS = ("period", "subject", "title", "kind", "stage", "region", "unit", "price", "limit", "rent")
_CONTRACT_ROWS = ("contract_share_limit", "contract_greatest_limit")


def binding_table(solution: Solution) -> pd.DataFrame:
    """Rent (price x limit, in money or objective units of the period) of every limit with a price."""
    return pd.DataFrame([*_capacities(solution), *_contracts(solution)], columns=list(BINDING_COLUMNS))


def costliest_stage(table: pd.DataFrame, year: str) -> str:
    """Stage with the largest rent of a year, empty where nothing has a price.

    >>> costliest_stage(pd.DataFrame({"period": ["2026-Q1"], "stage": ["hbm"], "rent": [2.0]}), "2026")
    'hbm'
    """
    rent = table[table["period"].str.startswith(year)].groupby("stage")["rent"].sum()
    return str(rent.idxmax()) if len(rent) and float(rent.max()) > 0 else ""


def _capacities(solution: Solution) -> list[tuple[Any, ...]]:
    found = solution.resources
    found = found[(found["rent"] > 0) & (found["used"] > 0)]
    network = solution.network
    rows: Iterator[Any] = iter(found.itertuples())
    return [
        (
            r.period,
            r.resource,
            r.title,
            "power" if network.resources[r.resource].is_power else "capacity",
            r.stage,
            r.region,
            r.unit,
            float(r.price),
            float(r.capacity),
            float(r.rent),
        )
        for r in rows
    ]


def _contracts(solution: Solution) -> list[tuple[Any, ...]]:
    network = solution.network
    labels = network.horizon.labels()
    rows = []
    for t in range(network.horizon.periods):
        plan = solution if solution.plans is None else solution.plans[t]
        rhs = _rhs(plan)
        for family in _CONTRACT_ROWS:
            group = plan.structure.rows.get(family)
            if group is None:
                continue
            for position, key, period in zip(group.position, group.key, group.period, strict=True):
                if int(period) != t or plan.y[position] <= 0:
                    continue
                contract = network.contracts[str(key[0])]
                resource = network.resources[contract.resource]
                natural = plan.structure.natural[contract.resource]
                price = float(plan.y[position] * plan.worth / natural / plan.discount[t])
                limit = float(rhs[position]) * natural
                title = contract_title(network, contract)
                head = (labels[t], contract.id, title, "contract", resource.stage, resource.region, resource.unit)
                rows.append((*head, price, limit, price * limit))
    return rows


def _rhs(plan: Solution) -> Any:
    return np.asarray(plan.compiled.engine.matrix.rhs.fill(plan.theta))
