"""Every limit that costs something, period by period: capacities, power, and greatest shares written in contracts.

The price of a capacity in a solution holds the shares that contracts give of it, because one more unit raises them in
proportion. Here the two are told apart: what the capacity itself is worth, and what each holder's share is worth, so
that rents add up. Both belong to the stage of the capacity. Fees of take-or-pay are not prices and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from scenarios.titles import contract_title

if TYPE_CHECKING:
    from supply.optimizer.solution import Solution

__all__ = ["BINDING_COLUMNS", "binding_table", "scarcest_stage", "stage_rents"]

BINDING_COLUMNS = ("period", "subject", "title", "kind", "stage", "region", "unit", "price", "limit", "rent")
_SHARE = "contract_share_limit"
_CONTRACT_ROWS = (_SHARE, "contract_greatest_limit")
_SPECK = 1e-9


def binding_table(solution: Solution) -> pd.DataFrame:
    """Rent (price x limit, in money or objective units of the period) of every limit with a price."""
    shares = _contracts(solution)
    held: dict[tuple[str, str], float] = {}
    for family, resource, row in shares:
        if family == _SHARE:
            held[row[0], resource] = held.get((row[0], resource), 0.0) + row[-1]
    rows = [*_capacities(solution, held), *(row for _, _, row in shares)]
    return pd.DataFrame(rows, columns=list(BINDING_COLUMNS))


def scarcest_stage(table: pd.DataFrame, year: str) -> str:
    """Stage with the largest rent of a year, empty where nothing has a price.

    >>> scarcest_stage(pd.DataFrame({"period": ["2026-Q1"], "stage": ["hbm"], "rent": [2.0]}), "2026")
    'hbm'
    """
    rents = stage_rents(table, year)
    return max(rents, key=lambda stage: rents[stage]) if rents else ""


def stage_rents(table: pd.DataFrame, year: str) -> dict[str, float]:
    """Rent of a year by stage, stages without one left out."""
    rent = table[table["period"].str.startswith(year)].groupby("stage")["rent"].sum()
    return {str(stage): float(value) for stage, value in rent.items() if value > 0}


def _capacities(solution: Solution, held: dict[tuple[str, str], float]) -> list[tuple[Any, ...]]:
    """Capacities with the rent that is left when the shares of it (`held`: by period and resource) are taken out."""
    found = solution.resources
    found = found[(found["rent"] > 0) & (found["used"] > 0)]
    network, rows = solution.network, []
    table: Iterator[Any] = iter(found.itertuples())
    for r in table:
        rent = float(r.rent) - held.get((r.period, r.resource), 0.0)
        if rent <= _SPECK * float(r.rent):
            continue
        kind = "power" if network.resources[r.resource].is_power else "capacity"
        price, limit = rent / float(r.capacity), float(r.capacity)
        rows.append((r.period, r.resource, r.title, kind, r.stage, r.region, r.unit, price, limit, rent))
    return rows


def _contracts(solution: Solution) -> list[tuple[str, str, tuple[Any, ...]]]:
    """Family of the row, resource, and the row of the table."""
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
                rows.append((family, contract.resource, (*head, price, limit, price * limit)))
    return rows


def _rhs(plan: Solution) -> Any:
    return np.asarray(plan.compiled.engine.matrix.rhs.fill(plan.theta))
