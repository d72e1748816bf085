"""Wafer cost of a node two ways: the foundry's price as a dated fact, or the sum of its process steps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from supply.facts import Catalog, catalog
from supply.manufacturing.cost import ProcessStep, wafer_cost_usd
from supply.manufacturing.numeric import ManufacturingError
from supply.manufacturing.product_specs import NODES
from supply.manufacturing.products import level

__all__ = ["STEPS", "WaferPrice", "step_sum", "wafer_price"]

STEPS = ("euv", "immersion", "etch", "deposition", "clean_cmp_metrology")
"""Kinds of process step that have illustrative facts for a 5 nm class wafer."""


@dataclass(frozen=True)
class WaferPrice:
    """Price of a processed wafer, USD, with the sources' range and the series it comes from."""

    node: str
    usd: float
    low_usd: float
    high_usd: float
    fact: str


def wafer_price(node: str, on: date, cat: Catalog | None = None) -> WaferPrice:
    """Foundry price of a wafer of a node on a day.

    Raises:
        ManufacturingError: for an unknown node.

    >>> wafer_price("n5", date(2025, 9, 30)).usd
    17000.0
    """
    if node not in NODES:
        raise ManufacturingError(f"node {node!r} is not known; choose one of {', '.join(NODES)}")
    facts, name = catalog() if cat is None else cat, NODES[node].wafer_price
    value, low, high = (level(facts, name, on, which) for which in ("value", "low", "high"))
    return WaferPrice(node, value, low, high, name)


def step_sum(cat: Catalog | None = None, uptime: float | None = None) -> dict[str, float]:
    """Cost of a 5 nm class wafer from its process steps: an illustration of the method beside the price fact.

    The step facts are orders of magnitude (kind illustrative); the sum lands near the price because margin and overhead
    were chosen of that size, so it explains the price's make-up and does not test it.

    >>> cost = step_sum()
    >>> cost["total"] > cost["margin"] > cost["euv"]
    True
    """
    facts = catalog() if cat is None else cat
    running = facts["asm_step_uptime"].number if uptime is None else uptime
    steps = [
        ProcessStep(
            kind,
            facts[f"asm_step_{kind}_passes"].number,
            facts[f"asm_step_{kind}_machine_usd"].number,
            facts[f"asm_step_{kind}_throughput"].number,
            running,
            material_usd=facts[f"asm_step_{kind}_material_usd"].number,
        )
        for kind in STEPS
    ]
    return wafer_cost_usd(
        steps,
        facts["asm_bare_wafer_usd"].number,
        facts["asm_step_overhead"].number,
        facts["asm_step_margin"].number,
    )
