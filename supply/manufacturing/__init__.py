"""Manufacturing physics: from wafer to tested package, with cost and carbon of a good unit."""

from supply.manufacturing.learning import LearningCurve, fit_learning, learned
from supply.manufacturing.numeric import ManufacturingError
from supply.manufacturing.redundancy import bin_outputs, harvested_yield, parametric_yield
from supply.manufacturing.stacks import MemoryStack, memory_stack, stack_cost_usd, stacks_per_wafer, trade_ratio
from supply.manufacturing.testing import Insertion, burn_in, compare_insertions, tested, tester_cost_usd
from supply.manufacturing.wafer import Panel, Wafer, dies_per_shot, gross_dies, gross_dies_formula, place
from supply.manufacturing.yield_models import MODELS, defect_density, die_yield, line_times_defect_yield

__all__ = [
    "MODELS",
    "Insertion",
    "LearningCurve",
    "ManufacturingError",
    "MemoryStack",
    "Panel",
    "Wafer",
    "bin_outputs",
    "burn_in",
    "compare_insertions",
    "defect_density",
    "die_yield",
    "dies_per_shot",
    "fit_learning",
    "gross_dies",
    "gross_dies_formula",
    "harvested_yield",
    "learned",
    "line_times_defect_yield",
    "memory_stack",
    "parametric_yield",
    "place",
    "stack_cost_usd",
    "stacks_per_wafer",
    "tested",
    "tester_cost_usd",
    "trade_ratio",
]
