"""Embodied carbon and water of a good package, on the same tree as its cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from math import pi

import numpy as np

from supply.facts import Catalog, catalog
from supply.manufacturing.cost import DiePart, MemoryPart, Unit, Waterfall, good_unit_cost
from supply.manufacturing.numeric import FloatArray, ManufacturingError, Numbers, positive, unwrap
from supply.manufacturing.product_specs import NODES, SPECS
from supply.manufacturing.products import product
from supply.manufacturing.unit_costs import central_unit

__all__ = ["GRIDS", "Footprint", "footprint", "wafer_carbon_kg"]

GRIDS = ("taiwan", "usa", "korea", "japan", "world")
WAFER_CM2 = pi * 15.0**2
_ENERGY = {**{nm: f"act_fab_energy_{nm}nm" for nm in ("28", "14", "10", "7", "5", "3")}, "2": "asm_act_2nm_energy"}
_GAS_95 = {**{nm: f"act_fab_gas_95_{nm}nm" for nm in ("28", "14", "10", "7", "5", "3")}, "2": "asm_act_2nm_gas_95"}
_LAYERS = {
    "28": "mask_layers_28nm_2017",
    "7": "tsmc_n7_mask_layers_2021",
    "5": "leading_edge_mask_layers_2026",
    "3": "asm_mask_layers_3nm",
    "2": "asm_mask_layers_3nm",
}


def wafer_carbon_kg(
    energy_kwh_per_cm2: Numbers, grid_g_per_kwh: Numbers, gas_g_per_cm2: Numbers, material_g_per_cm2: Numbers
) -> float | FloatArray:
    """Carbon of one 300 mm wafer processed, kg CO2e: area x (energy x grid + gas + material). Source: ACT.

    >>> round(wafer_carbon_kg(2.75, 642, 430, 500))
    1905
    """
    per_cm2 = positive("energy", energy_kwh_per_cm2, zero=True) * positive("grid", grid_g_per_kwh, zero=True)
    per_cm2 = per_cm2 + positive("gas", gas_g_per_cm2, zero=True) + positive("material", material_g_per_cm2, zero=True)
    return unwrap(WAFER_CM2 * per_cm2 / 1000.0)


@dataclass(frozen=True)
class Footprint:
    """Embodied carbon (kg CO2e) and fab water (litres) of one good package, each a waterfall like the cost."""

    sku: str
    on: date
    grid: str
    carbon_kg: Waterfall
    water_liters: Waterfall
    trace: tuple[str, ...]


def footprint(sku: str, on: date | None = None, grid: str = "taiwan", cat: Catalog | None = None) -> Footprint:
    """Carbon and water of an accelerator's package: the bill of `unit_cost` in kilograms and litres.

    Logic by energy, gas and material per cm2 of its node on the fab's grid; the interposer as a 28 nm class wafer;
    memory per GB; one package value for substrate and assembly. Water counts logic and interposer wafers by mask
    layers. Yield loss appears in the same parts as for cost.

    Raises:
        ManufacturingError: for an unknown accelerator or grid.

    >>> shape = footprint("h100")
    >>> list(shape.carbon_kg)[:2], shape.carbon_kg.total > 0
    (['raw_silicon', 'defective_silicon'], True)
    """
    if grid not in GRIDS:
        raise ManufacturingError(f"grid {grid!r} is not known; choose one of {', '.join(GRIDS)}")
    facts = catalog() if cat is None else cat
    base = product(sku, on, facts)
    bill = central_unit(sku, base.on, facts)
    nodes = [NODES[d.node].nm for d in SPECS[sku].dies]
    intensity = facts[f"grid_carbon_{grid}_2023"].number
    carbon = _swap(
        bill,
        [_wafer_kg(facts, nm, intensity) for nm in nodes],
        facts["asm_hbm_carbon_per_gb"].number / 1000.0 * base.hbm_gb_per_stack,
        _interposer_kg(facts, intensity) / base.packages_per_interposer_wafer,
        facts["asm_package_carbon_cowos"].number / 1000.0,
    )
    per_layer = facts["tsmc_water_per_mask_layer_2022"].number
    interposer_layers = facts["asm_interposer_mask_layers"].number
    interposer_water = per_layer * interposer_layers / base.packages_per_interposer_wafer
    water = _swap(bill, [per_layer * facts[_LAYERS[nm]].number for nm in nodes], 0.0, interposer_water, 0.0)
    trace = (
        *(name for nm in nodes for name in (_ENERGY[nm], _GAS_95[nm], _LAYERS[nm])),
        f"grid_carbon_{grid}_2023",
        "act_material_per_area",
        "asm_hbm_carbon_per_gb",
        "asm_package_carbon_cowos",
        "asm_interposer_mask_layers",
        "tsmc_water_per_mask_layer_2022",
    )
    return Footprint(sku, base.on, grid, good_unit_cost(carbon), good_unit_cost(water), tuple(dict.fromkeys(trace)))


def _wafer_kg(facts: Catalog, nm: str, intensity: float) -> float:
    energy, gas = facts[_ENERGY[nm]].number, facts[_GAS_95[nm]].number
    return float(np.asarray(wafer_carbon_kg(energy, intensity, gas, facts["act_material_per_area"].number)))


def _interposer_kg(facts: Catalog, intensity: float) -> float:
    """A passive interposer wafer: energy and gas of a 28 nm wafer in the ratio of mask layers, material in full."""
    ratio = facts["asm_interposer_mask_layers"].number / facts[_LAYERS["28"]].number
    energy, gas = facts[_ENERGY["28"]].number * ratio, facts[_GAS_95["28"]].number * ratio
    return float(np.asarray(wafer_carbon_kg(energy, intensity, gas, facts["act_material_per_area"].number)))


def _swap(bill: Unit, per_wafer: list[float], per_stack: float, interposer: float, package: float) -> Unit:
    """The bill with physical amounts per wafer, stack, interposer and package; steps without one count nothing."""
    dies: list[DiePart] = [replace(d, wafer_usd=w, probe_usd=0.0) for d, w in zip(bill.dies, per_wafer, strict=True)]
    memory: list[MemoryPart] = [replace(m, stack_usd=per_stack) for m in bill.memory]
    return replace(
        bill,
        dies=dies,
        memory=memory,
        interposer_usd=interposer,
        substrate_usd=package,
        bond_usd_per_die=0.0,
        assembly_usd=0.0,
        final_test_usd=0.0,
        nre_usd=0.0,
    )
