"""Our unit costs beside published estimates, with the gap told in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from supply.facts import Catalog, catalog
from supply.manufacturing.unit_costs import UnitCost, unit_cost

__all__ = ["PublishedComparison", "component_shares", "cost_against_published"]

PARTS: dict[str, tuple[str, ...]] = {
    "logic": ("raw_silicon", "defective_silicon"),
    "memory": ("memory",),
    "packaging": ("interposer", "substrate", "assembly"),
    "loss": ("wasted_good_parts",),
    "test": ("test",),
}
_WHOLE = {
    "h100": "h100_manufacturing_cost_raymond_james_2023_08",
    "h200": "h200_manufacturing_cost_2026_02",
    "b200": "b200_manufacturing_cost_2026_02",
    "mi300x": "mi300x_manufacturing_cost_2026_02",
}
_PARTS = {
    "h100": {
        "logic": "h100_logic_die_cost_2026_02",
        "memory": "h100_hbm_cost_2026_02",
        "packaging": "h100_packaging_cost_2026_02",
        "test": "h100_test_and_assembly_cost_2026_02",
    },
    "b200": {
        "logic": "b200_logic_die_cost_2025",
        "memory": "b200_hbm_cost_2025",
        "packaging": "b200_packaging_cost_2025",
        "loss": "b200_yield_loss_cost_2025",
        "test": "b200_other_cost_2025",
    },
    "mi300x": {
        "logic": "mi300x_logic_die_cost_2026_02",
        "memory": "mi300x_hbm_cost_2026_02",
        "packaging": "mi300x_packaging_cost_2026_02",
        "test": "mi300x_test_and_assembly_cost_2026_02",
    },
}
_WORDS = {
    "h100": (
        "Logic (published 300 USD) and memory (1,350 USD) agree within a tenth. The published 920 USD of test and "
        "assembly is a remainder that brings the parts to the 3,320 of Raymond James; from tester time, burn-in and "
        "assembly steps we find a fraction of it. No source shows what else it holds: board, power stages, cooling or "
        "subcontractors' margin are candidates."
    ),
    "h200": (
        "No published parts. Over the H100 estimate it adds 1,480 USD, which makes its memory about 20 USD per GB; the "
        "stack prices in the facts give about 10 at the end of 2024. The H100 remainder is inside too."
    ),
    "b200": (
        "Near half of the gap is memory: the estimate has 2,900 USD for 192 GB, 15 USD per GB, while the stack prices "
        "in the facts give about 10 in mid-2025. The rest is 1,000 USD of yield loss against ours at the CoWoS-L yield "
        "of mid-2025 (it would be higher at the ramp yields of 2024), and 500 USD of other cost without detail."
    ),
    "mi300x": (
        "Logic, memory and packaging agree within a tenth, although the estimate counts 1,725 mm2 of silicon and the "
        "eight XCDs and four I/O dies placed here have 2,400. Its 600 USD of test and assembly is the difference, less "
        "the losses that we show apart."
    ),
    "rubin": (
        "No published unit cost was found. The memory part is checked by contract prices (eight HBM4 12-high stacks at "
        "560 to 600 USD), and the shares by the component spend of four designers in the fourth quarter of 2025."
    ),
}


@dataclass(frozen=True)
class PublishedComparison:
    """One accelerator: our cost and band without set-up cost, the published total where one exists, and parts."""

    sku: str
    ours_usd: float
    low_usd: float
    high_usd: float
    published_usd: float | None
    published_fact: str | None
    parts: Mapping[str, tuple[float, float | None, str | None]]
    explanation: str

    @property
    def ratio(self) -> float | None:
        """Ours over published."""
        return None if self.published_usd is None else self.ours_usd / self.published_usd

    @property
    def inside_band(self) -> bool | None:
        """Whether the published total lies in our 90 % band."""
        return None if self.published_usd is None else self.low_usd <= self.published_usd <= self.high_usd


def cost_against_published(cat: Catalog | None = None, draws: int = 2000) -> list[PublishedComparison]:
    """H100, H200, B200, MI300X and Rubin: ours beside published estimates.

    Set-up cost is left out, as the estimates do. `parts` maps a part to (ours, published, fact id); parts without a
    published value have None.

    >>> [c.sku for c in cost_against_published(draws=50)]
    ['h100', 'h200', 'b200', 'mi300x', 'rubin']
    """
    facts = catalog() if cat is None else cat
    return [_compare(sku, facts, draws) for sku in _WORDS]


def _compare(sku: str, facts: Catalog, draws: int) -> PublishedComparison:
    ours = unit_cost(sku, draws=draws, nre=False, cat=facts)
    parts = {}
    for part, own in _grouped(ours).items():
        fact = _PARTS.get(sku, {}).get(part)
        parts[part] = (own, facts[fact].number if fact else None, fact)
    if sku == "rubin":
        price = facts["hbm4_12_high_price_2026_06"]
        parts["memory"] = (parts["memory"][0], price.number * facts["nvidia_rubin_hbm_stacks_2025_10"].number, price.id)
    whole = _WHOLE.get(sku)
    published = facts[whole].number if whole else None
    return PublishedComparison(sku, ours.total, ours.low, ours.high, published, whole, parts, _WORDS[sku])


def _grouped(cost: UnitCost) -> dict[str, float]:
    return {part: float(sum(np.asarray(cost.waterfall[n]) for n in names)) for part, names in PARTS.items()}


def component_shares(sku: str, cat: Catalog | None = None) -> dict[str, tuple[float, float]]:
    """Shares of memory, packaging, logic and the rest in our unit cost, beside the component spend of four designers.

    Packaging is the interposer wafer; auxiliary holds substrate, assembly and test; lost parts go to no share. The
    published shares are volume-weighted over all accelerators in the fourth quarter of 2025.

    >>> ours, published = component_shares("b300")["memory"]
    >>> abs(ours - published) < 0.06
    True
    """
    facts = catalog() if cat is None else cat
    cost = unit_cost(sku, draws=0, nre=False, cat=facts).waterfall
    groups = {
        "memory": ("memory",),
        "packaging": ("interposer",),
        "logic": ("raw_silicon", "defective_silicon"),
        "auxiliary": ("substrate", "assembly", "test"),
    }
    own = {part: float(sum(np.asarray(cost[n]) for n in names)) for part, names in groups.items()}
    whole = sum(own.values())
    return {p: (v / whole, facts[f"epoch_{p}_share_of_component_spend_2025_q4"].number) for p, v in own.items()}
