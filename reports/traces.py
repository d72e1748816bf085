"""Where each number of a report comes from: the named formulas behind every table, section and first-page line.

A formula is an entry of the catalogue's group `made`: its name, how it is computed, and where the run folder holds it.
Inputs and facts have no formula: their tables name the source of each row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reports.blocks import Section

__all__ = ["FORMULAS", "of_line", "of_section", "of_table"]

#: Names of the formulas, in the order in which the report prints them.
FORMULAS = (
    "finished", "energised", "price", "lasting", "rent", "utilisation", "use_price", "power", "flow", "owner",
    "tokens", "task", "market", "open_models", "api_task", "engine", "training", "largest", "package", "yields",
    "carbon", "study", "draws", "others", "gap", "backtest", "accuracy", "checks", "compare", "stored", "inputs",
)  # fmt: skip

_TABLES = {
    "finished_by_year": "finished", "energised_by_year": "energised", "energised_by_region": "energised",
    "rents": "rent", "prices": "price lasting use_price", "prices_now": "price lasting use_price",
    "contract_prices": "price", "power": "power", "flow": "flow", "hours": "owner use_price", "tokens": "tokens",
    "tasks": "task", "market": "owner market", "open_models": "open_models owner", "api_tasks": "api_task",
    "unit_cost_totals": "package", "unit_cost_parts": "package", "die_yields": "yields", "carbon": "carbon",
    "training_runs": "training owner", "training_layouts": "training", "training_checks": "training",
    "largest_runs": "largest", "fan": "draws", "draw_shares": "draws", "weak_inputs": "study",
    "epoch": "finished others", "epoch_gap": "finished gap", "epoch_limits": "gap",
    "cowos_balance": "others", "backtest": "backtest", "accuracy": "accuracy",
    "compare": "finished energised owner rent", "defining": "inputs",
    "changes": "compare", "change_causes": "compare", "changed_inputs": "compare inputs", "inputs": "inputs",
    "sources": "inputs",
    "map": "stored", "resilience": "stored", "sensitivity": "stored", "discovery": "stored draws", "library": "stored",
}  # fmt: skip
_SECTIONS = {
    "binds": "rent utilisation", "draws": "draws", "prices": "price lasting", "supply": "finished energised",
    "flow": "flow", "power": "power", "costs": "owner tokens task", "market": "market owner open_models api_task",
    "engine": "engine", "training": "training largest", "making": "package yields carbon", "overturn": "study",
    "others": "others finished", "compare": "finished energised rent", "changes": "compare",
    "record": "backtest checks",
    "inputs": "inputs",
}  # fmt: skip
_LINES = {
    "answer": "energised finished study", "stops": "rent utilisation power price", "worth": "lasting use_price inputs",
    "costs": "owner tokens task", "overturn": "study", "sure": "study backtest others inputs",
    "particulars": "compare inputs",
}  # fmt: skip


def of_table(short: str) -> list[str]:
    """Formulas behind a table, by its short name.

    >>> of_table("tokens")
    ['tokens']
    """
    return _TABLES.get(short, "").split()


def of_section(section: Section) -> list[str]:
    """Formulas behind the sentences and figures of a section that none of its tables names."""
    told = {name for table in section.tables for name in of_table(table.short)}
    return [name for name in _SECTIONS.get(section.id, "").split() if name not in told]


def of_line(name: str) -> list[str]:
    """Formulas behind a line of the first page, by its key in the catalogue."""
    return _LINES.get(name, "").split()
