"""HBM stacks: probed-die quality, bond yield per layer, repair, stack test, cost, and wafers per stack."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from supply.manufacturing.numeric import FloatArray, ManufacturingError, Numbers, positive, share, unwrap
from supply.manufacturing.testing import tested

__all__ = [
    "MemoryStack",
    "access_power_w",
    "implied_bond_yield",
    "memory_stack",
    "stack_cost_usd",
    "stacks_per_wafer",
    "trade_ratio",
]

BITS_PER_BYTE = 8


class MemoryStack(NamedTuple):
    """Result of `memory_stack`: the stack test catches bad stacks by its coverage, the rest is carried on."""

    incoming_quality: float | FloatArray
    die_pass_rate: float | FloatArray
    stack_yield: float | FloatArray
    dies_started_per_good_stack: float | FloatArray
    stack_pass_rate: float | FloatArray
    stack_escape_share: float | FloatArray
    dies_started_per_shipped_stack: float | FloatArray


def memory_stack(
    dies: Numbers,
    die_yield: Numbers,
    probe_coverage: Numbers,
    bond_yield: Numbers,
    base_yield: Numbers,
    repair_share: Numbers = 0.0,
    stack_test_coverage: Numbers = 1.0,
) -> MemoryStack:
    """Yield of a stack of probed dies on a base die, each loss counted once.

    Incoming quality q = Y / (1 - (1 - Y) c). A layer is good with probability q x bond yield; of the faulty layers
    `repair_share` is repaired (spare vias and rows). Stack yield = layer ** dies x base yield. Dies started per good
    stack = dies / (probe pass rate x stack yield): die yield is not multiplied in a second time.

    Args:
        dies: DRAM dies in the stack (8, 12, 16).
        die_yield: share of good DRAM dies at wafer probe.
        probe_coverage: share of bad dies that probe rejects.
        bond_yield: yield of one layer's through-silicon vias and bond.
        base_yield: quality of the base die as attached.
        repair_share: share of faulty layers that is repaired.
        stack_test_coverage: share of bad stacks that the stack test rejects.

    Raises:
        ManufacturingError: for a fraction outside its range or no die.

    >>> stack = memory_stack(12, 0.85, 0.98, 0.99, 0.99)
    >>> round(stack.stack_yield, 3), round(stack.dies_started_per_good_stack, 2)
    (0.841, 16.72)
    """
    height = positive("dies", dies)
    probe = tested(die_yield, probe_coverage)
    quality = np.asarray(1.0 - np.asarray(probe.escape_share))
    layer = quality * share("bond_yield", bond_yield)
    layer = layer + (1.0 - layer) * share("repair_share", repair_share, zero=True)
    stack = layer**height * share("base_yield", base_yield)
    test = tested(stack, stack_test_coverage)
    started = height / (np.asarray(probe.pass_rate) * stack)
    shipped = height / (np.asarray(probe.pass_rate) * np.asarray(test.pass_rate))
    return MemoryStack(
        unwrap(quality),
        probe.pass_rate,
        unwrap(stack),
        unwrap(started),
        test.pass_rate,
        test.escape_share,
        unwrap(shipped),
    )


def implied_bond_yield(
    quoted_yield: Numbers, dies: Numbers, die_yield: Numbers, probe_coverage: Numbers, base_yield: Numbers
) -> float | FloatArray:
    """Bond yield of a layer that makes `memory_stack` turn dies into good stacks at a quoted overall yield.

    Quoted yields run from DRAM die started to good stack: dies / quoted = dies started per good stack. So bond ** dies
    = quoted / (probe pass rate x q ** dies x base yield). With it the same process gives the yield of other heights.

    Raises:
        ManufacturingError: when the quoted yield is above what perfect bonds could reach with these dies.

    >>> bond = implied_bond_yield(0.82, 8, 0.88, 0.98, 0.99)
    >>> round(8 / memory_stack(8, 0.88, 0.98, bond, 0.99).dies_started_per_good_stack, 6)
    0.82
    """
    height, quoted = positive("dies", dies), share("quoted_yield", quoted_yield)
    perfect = memory_stack(dies, die_yield, probe_coverage, 1.0, base_yield)
    needed = quoted * np.asarray(perfect.dies_started_per_good_stack) / height
    if np.any(needed > 1.0):
        raise ManufacturingError(
            f"a quoted stack yield of {float(np.max(quoted)):g} is above what dies of yield {die_yield!r} allow: "
            "raise the die yield, or read the quote as the yield of stacking alone"
        )
    return unwrap(needed ** (1.0 / height))


def stacks_per_wafer(
    dies_per_wafer: Numbers, dies_started_per_stack: Numbers, line_yield: Numbers = 1.0
) -> float | FloatArray:
    """Good stacks from one DRAM wafer started: line yield x gross dies / dies started per good stack.

    >>> stacks_per_wafer(500, 12.5)
    40.0
    """
    return unwrap(
        share("line_yield", line_yield)
        * positive("dies_per_wafer", dies_per_wafer)
        / positive("dies_started_per_stack", dies_started_per_stack)
    )


def stack_cost_usd(
    dram_wafer_usd: Numbers,
    dies_per_wafer: Numbers,
    stack: MemoryStack,
    dies: Numbers,
    base_die_usd: Numbers,
    bond_usd_per_layer: Numbers,
    probe_usd_per_die: Numbers = 0.0,
    stack_test_usd: Numbers = 0.0,
    line_yield: Numbers = 1.0,
) -> dict[str, float | FloatArray]:
    """Cost of one good (known-good) stack by part; the parts sum to `total` and the stack loss is counted once.

    >>> s = memory_stack(8, 0.9, 1.0, 0.99, 1.0)
    >>> round(stack_cost_usd(5000, 500, s, 8, 15, 2)["total"], 2)
    129.93
    """
    good = np.asarray(stack.stack_yield)
    height = positive("dies", dies)
    die = positive("dram_wafer_usd", dram_wafer_usd) / (
        positive("dies_per_wafer", dies_per_wafer) * share("line_yield", line_yield)
    )
    accepted = (die + positive("probe_usd_per_die", probe_usd_per_die, zero=True)) / np.asarray(stack.die_pass_rate)
    parts = {
        "dram": height * accepted,
        "base_die": positive("base_die_usd", base_die_usd, zero=True),
        "stacking": height * positive("bond_usd_per_layer", bond_usd_per_layer, zero=True),
        "stack_test": positive("stack_test_usd", stack_test_usd, zero=True),
    }
    built = sum(parts.values())
    out = {name: unwrap(np.asarray(value)) for name, value in parts.items()}
    out["lost_stacks"] = unwrap(np.asarray(built / good - built))
    out["total"] = unwrap(np.asarray(built / good))
    return out


def trade_ratio(
    die_size_ratio: Numbers,
    die_yield: Numbers,
    hbm_die_yield: Numbers,
    stack_yield: Numbers,
    base_wafer_share: Numbers = 0.0,
) -> float | FloatArray:
    """DRAM wafers used per bit as HBM over those per bit as plain DRAM.

    Size ratio x yield ratio / stack yield x (1 + base-die wafers per DRAM wafer).

    >>> round(trade_ratio(1.4, 0.9, 0.75, 0.75), 2)
    2.24
    """
    dram = (
        positive("die_size_ratio", die_size_ratio)
        * share("die_yield", die_yield)
        / (share("hbm_die_yield", hbm_die_yield) * share("stack_yield", stack_yield))
    )
    return unwrap(dram * (1.0 + positive("base_wafer_share", base_wafer_share, zero=True)))


def access_power_w(pj_per_bit: Numbers, gb_per_s: Numbers) -> float | FloatArray:
    """Power of moving data: pJ/bit x 8 bit/B x GB/s, in watts.

    >>> round(access_power_w(3.9, 1000.0), 3)
    31.2
    """
    return unwrap(
        positive("pj_per_bit", pj_per_bit, zero=True)
        * 1e-12
        * BITS_PER_BYTE
        * positive("gb_per_s", gb_per_s, zero=True)
        * 1e9
    )
