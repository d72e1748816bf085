"""Manufacturing physics: from wafer to tested package, with cost and carbon of a good unit."""

from supply.manufacturing.cost import (
    PARTS,
    DiePart,
    MemoryPart,
    ProcessStep,
    Unit,
    Waterfall,
    good_unit_cost,
    wafer_cost_usd,
)
from supply.manufacturing.learning import LearningCurve, fit_learning, learned
from supply.manufacturing.numeric import ManufacturingError
from supply.manufacturing.packages import (
    INTERPOSERS,
    PackageYield,
    hybrid_bond_yield,
    interposer_yield,
    package,
    packages_per_wafer,
    stitches,
)
from supply.manufacturing.redundancy import bin_outputs, harvested_yield, parametric_yield
from supply.manufacturing.stacks import MemoryStack, memory_stack, stack_cost_usd, stacks_per_wafer, trade_ratio
from supply.manufacturing.testing import Insertion, burn_in, compare_insertions, tested, tester_cost_usd
from supply.manufacturing.wafer import Panel, Wafer, dies_per_shot, gross_dies, gross_dies_formula, place
from supply.manufacturing.yield_models import MODELS, defect_density, die_yield, line_times_defect_yield

__all__ = [
    "INTERPOSERS",
    "MODELS",
    "PARTS",
    "DiePart",
    "Insertion",
    "LearningCurve",
    "ManufacturingError",
    "MemoryPart",
    "MemoryStack",
    "PackageYield",
    "Panel",
    "ProcessStep",
    "Unit",
    "Wafer",
    "Waterfall",
    "bin_outputs",
    "burn_in",
    "compare_insertions",
    "defect_density",
    "die_yield",
    "dies_per_shot",
    "fit_learning",
    "good_unit_cost",
    "gross_dies",
    "gross_dies_formula",
    "harvested_yield",
    "hybrid_bond_yield",
    "interposer_yield",
    "learned",
    "line_times_defect_yield",
    "memory_stack",
    "package",
    "packages_per_wafer",
    "parametric_yield",
    "place",
    "stack_cost_usd",
    "stacks_per_wafer",
    "stitches",
    "tested",
    "tester_cost_usd",
    "trade_ratio",
    "wafer_cost_usd",
]
