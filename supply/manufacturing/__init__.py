"""Manufacturing physics: from wafer to tested package, with cost and carbon of a good unit."""

from supply.manufacturing.carbon import Footprint, footprint, wafer_carbon_kg
from supply.manufacturing.chiplets import SplitCase, break_even_area_mm2, package_cost_usd, split_saving
from supply.manufacturing.cost import DiePart, MemoryPart, ProcessStep, Unit, Waterfall, good_unit_cost, wafer_cost_usd
from supply.manufacturing.cycle import (
    cycle_time,
    fab_cycle_weeks,
    set_up_cost_usd,
    tapeout_weeks,
    time_to_market_weeks,
)
from supply.manufacturing.learning import LearningCurve, fit_learning, learned
from supply.manufacturing.numeric import ManufacturingError
from supply.manufacturing.packages import (
    PackageYield,
    hybrid_bond_yield,
    interposer_area_mm2,
    interposer_yield,
    package,
    packages_per_wafer,
    stitches,
)
from supply.manufacturing.products import (
    SKUS,
    Product,
    ProductDie,
    all_products,
    die_bins,
    product,
    stack_yield_by_height,
)
from supply.manufacturing.published import component_shares, cost_against_published
from supply.manufacturing.redundancy import bin_outputs, harvested_yield, parametric_yield
from supply.manufacturing.sizing import (
    Quoted,
    growth,
    memory_spend,
    parts_against_total,
    wafer_starts,
    yield_from_counts,
)
from supply.manufacturing.stacks import (
    MemoryStack,
    access_power_w,
    implied_bond_yield,
    memory_stack,
    stack_cost_usd,
    stacks_per_wafer,
    trade_ratio,
)
from supply.manufacturing.testing import Insertion, burn_in, compare_insertions, tested, tester_cost_usd
from supply.manufacturing.unit_costs import UnitCost, unit_cost
from supply.manufacturing.wafer import Panel, Wafer, dies_per_shot, gross_dies, gross_dies_formula, place
from supply.manufacturing.wafer_map import WaferMap, wafer_map
from supply.manufacturing.wafer_prices import step_sum, wafer_price
from supply.manufacturing.yield_models import MODELS, defect_density, die_yield, line_times_defect_yield

__all__ = [
    "MODELS",
    "SKUS",
    "DiePart",
    "Footprint",
    "Insertion",
    "LearningCurve",
    "ManufacturingError",
    "MemoryPart",
    "MemoryStack",
    "PackageYield",
    "Panel",
    "ProcessStep",
    "Product",
    "ProductDie",
    "Quoted",
    "SplitCase",
    "Unit",
    "UnitCost",
    "Wafer",
    "WaferMap",
    "Waterfall",
    "access_power_w",
    "all_products",
    "bin_outputs",
    "break_even_area_mm2",
    "burn_in",
    "compare_insertions",
    "component_shares",
    "cost_against_published",
    "cycle_time",
    "defect_density",
    "die_bins",
    "die_yield",
    "dies_per_shot",
    "fab_cycle_weeks",
    "fit_learning",
    "footprint",
    "good_unit_cost",
    "gross_dies",
    "gross_dies_formula",
    "growth",
    "harvested_yield",
    "hybrid_bond_yield",
    "implied_bond_yield",
    "interposer_area_mm2",
    "interposer_yield",
    "learned",
    "line_times_defect_yield",
    "memory_spend",
    "memory_stack",
    "package",
    "package_cost_usd",
    "packages_per_wafer",
    "parametric_yield",
    "parts_against_total",
    "place",
    "product",
    "set_up_cost_usd",
    "split_saving",
    "stack_cost_usd",
    "stack_yield_by_height",
    "stacks_per_wafer",
    "step_sum",
    "stitches",
    "tapeout_weeks",
    "tested",
    "tester_cost_usd",
    "time_to_market_weeks",
    "trade_ratio",
    "unit_cost",
    "wafer_carbon_kg",
    "wafer_cost_usd",
    "wafer_map",
    "wafer_price",
    "wafer_starts",
    "yield_from_counts",
]
