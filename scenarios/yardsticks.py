"""Sourced numbers that a report sets beside a result so that its size can be judged; no input of any run."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pandas as pd

from supply.facts import catalog

if TYPE_CHECKING:
    from scenarios.resolve import Resolved

__all__ = ["yardsticks"]

#: Stage -> fact on what one more unit of its limits costs to build.
_BUILD = {"power": "ai_data_centre_facility_capex_2026"}


def yardsticks(resolved: Resolved, on: date) -> dict[str, pd.DataFrame]:
    """The table `yardsticks`: what a unit of a stage's limits costs to build, in USD, where a fact says so.

    Columns stage, unit, value, low, high, origin, year, fact_ids. Facts that became known after `on` are left out, and
    so are stages that the scenario does not limit; without a row there is no table.
    """
    stages = {r.stage: r.unit for r in resolved.network.resources.values()}
    rows = []
    for stage, name in _BUILD.items():
        fact = catalog()[name]
        if stage in stages and fact.known_on <= on and fact.unit == f"USD/{stages[stage]}":
            low, high = fact.range
            year = fact.valid_from.isoformat()[:4]
            rows.append((stage, stages[stage], fact.number, low, high, fact.origin or fact.source, year, name))
    columns = ["stage", "unit", "value", "low", "high", "origin", "year", "fact_ids"]
    return {"yardsticks": pd.DataFrame(rows, columns=columns)} if rows else {}
