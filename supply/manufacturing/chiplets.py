"""Monolithic die against chiplets on an organic substrate: cost of both and the area from which splitting pays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from supply.manufacturing.numeric import FloatArray, ManufacturingError, Numbers, positive, unwrap
from supply.manufacturing.wafer import gross_dies_formula
from supply.manufacturing.yield_models import die_yield

__all__ = ["SplitCase", "break_even_area_mm2", "package_cost_usd", "split_saving"]


@dataclass(frozen=True)
class SplitCase:
    """Node and package of a comparison. Defaults: the organic-substrate case of Chiplet Actuary (arXiv 2203.12268)."""

    wafer_usd: float
    defects_per_cm2: float
    alpha: float = 10.0
    scribe_mm: float = 0.2
    edge_exclusion_mm: float = 5.0
    link_share: float = 0.10
    bond_yield: float = 0.99
    substrate_over_silicon: float = 4.0
    substrate_usd_per_mm2: float = 0.005
    layers_factor: float = 2.0
    layers_from_mm2: float = 900.0
    bump_usd_per_mm2: float = 0.005


def package_cost_usd(area_mm2: Numbers, chiplets: int, case: SplitCase) -> float | FloatArray:
    """Recurring cost of a good package that offers `area_mm2` of logic on one die or several equal chiplets.

    A chiplet gives `link_share` of its own area to die-to-die links. Dies by the closed formula and die yield;
    substrate `substrate_over_silicon` x silicon, dearer by `layers_factor` where several chiplets sit on a substrate
    above `layers_from_mm2`; bumps by area; everything divided by bond yield ** chiplets.

    Raises:
        ManufacturingError: for less than one chiplet or an impossible area.

    >>> case = SplitCase(16_988, 0.11)
    >>> round(package_cost_usd(800, 1, case)), round(package_cost_usd(800, 2, case))
    (699, 524)
    """
    if chiplets < 1:
        raise ManufacturingError(f"chiplets = {chiplets} must be at least 1")
    logic = positive("area_mm2", area_mm2)
    each = logic / chiplets / (1.0 - (case.link_share if chiplets > 1 else 0.0))
    side = np.sqrt(each)
    dies = np.asarray(gross_dies_formula(side, side, 300.0, case.edge_exclusion_mm, case.scribe_mm))
    good = np.asarray(die_yield(each, case.defects_per_cm2, alpha=case.alpha))
    silicon = each * chiplets
    substrate = silicon * case.substrate_over_silicon * case.substrate_usd_per_mm2
    if chiplets > 1:
        dear = silicon * case.substrate_over_silicon > case.layers_from_mm2
        substrate = np.where(dear, substrate * case.layers_factor, substrate)
    parts = chiplets * case.wafer_usd / (dies * good) + substrate + silicon * case.bump_usd_per_mm2
    return unwrap(parts / case.bond_yield**chiplets)


def split_saving(area_mm2: Numbers, chiplets: int, case: SplitCase) -> float | FloatArray:
    """Share of the monolithic cost that splitting saves; negative where it costs more.

    >>> round(split_saving(800, 2, SplitCase(16_988, 0.11)), 2)
    0.25
    """
    split, whole = (np.asarray(package_cost_usd(area_mm2, n, case)) for n in (chiplets, 1))
    return unwrap(1.0 - split / whole)


def break_even_area_mm2(chiplets: int, case: SplitCase, low_mm2: float = 20.0, high_mm2: float = 858.0) -> float:
    """Largest logic area at which the single die is still as cheap: above it splitting pays.

    Raises:
        ManufacturingError: when splitting never or always pays between the two areas.

    >>> round(break_even_area_mm2(2, SplitCase(16_988, 0.11)))
    284
    """
    areas = np.linspace(low_mm2, high_mm2, 2000)
    paying = np.asarray(split_saving(areas, chiplets, case)) > 0
    if not paying[-1]:
        raise ManufacturingError(f"{chiplets} chiplets do not pay up to {high_mm2:g} mm2")
    if paying.all():
        raise ManufacturingError(f"{chiplets} chiplets pay from {low_mm2:g} mm2 on: give a smaller low_mm2")
    last = int(np.flatnonzero(~paying)[-1])
    low, high = float(areas[last]), float(areas[last + 1])
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if float(np.asarray(split_saving(middle, chiplets, case))) > 0 else (middle, high)
    return 0.5 * (low + high)
