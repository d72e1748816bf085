"""Cost of a good unit as a waterfall whose parts sum to the total, and wafer cost from process steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from supply.manufacturing.numeric import FloatArray, ManufacturingError, Numbers, positive, share, unwrap
from supply.manufacturing.packages import package
from supply.manufacturing.testing import tested

__all__ = ["PARTS", "DiePart", "MemoryPart", "ProcessStep", "Unit", "Waterfall", "good_unit_cost", "wafer_cost_usd"]

PARTS = (
    "raw_silicon",
    "defective_silicon",
    "memory",
    "interposer",
    "substrate",
    "assembly",
    "wasted_good_parts",
    "test",
    "nre",
)
HOURS_PER_YEAR = 8760.0


@dataclass(frozen=True)
class DiePart:
    """Logic dies of one kind in a package. Numbers may be arrays.

    `die_yield` includes harvest (share of dies that serve this product); `line_yield` is whole wafers lost; `probe_usd`
    is per die.
    """

    name: str
    count: int
    wafer_usd: Numbers
    dies_per_wafer: Numbers
    die_yield: Numbers
    line_yield: Numbers = 1.0
    probe_coverage: Numbers = 1.0
    probe_usd: Numbers = 0.0


@dataclass(frozen=True)
class MemoryPart:
    """Memory stacks of one kind, bought as known good: the price holds their stack yield, `quality` their escapes."""

    name: str
    count: int
    stack_usd: Numbers
    quality: Numbers = 1.0


@dataclass(frozen=True)
class Unit:
    """Everything that `good_unit_cost` needs. Costs are USD per part started; yields as in `package`."""

    dies: Sequence[DiePart]
    memory: Sequence[MemoryPart] = ()
    order: str = "chip_last"
    interposer_usd: Numbers = 0.0
    interposer_yield: Numbers = 1.0
    substrate_usd: Numbers = 0.0
    die_bond_yield: Numbers = 1.0
    memory_bond_yield: Numbers = 1.0
    substrate_yield: Numbers = 1.0
    warpage_yield: Numbers = 1.0
    final_yield: Numbers = 1.0
    bond_usd_per_die: Numbers = 0.0
    assembly_usd: Numbers = 0.0
    final_test_usd: Numbers = 0.0
    nre_usd: Numbers = 0.0
    volume: Numbers = 1.0


class Waterfall(Mapping[str, "float | FloatArray"]):
    """Ordered cost parts of one good unit; `total` is their sum."""

    def __init__(self, parts: Mapping[str, float | FloatArray], package_yield: float | FloatArray) -> None:
        self._parts = dict(parts)
        self.package_yield = package_yield

    def __getitem__(self, name: str) -> float | FloatArray:
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        return f"Waterfall({self._parts}, total={self.total})"

    @property
    def total(self) -> float | FloatArray:
        """Sum of the parts."""
        return unwrap(np.asarray(sum(np.asarray(v) for v in self._parts.values())))


def good_unit_cost(unit: Unit) -> Waterfall:
    """Cost of one good, tested package by part.

    raw_silicon is the silicon of one package without any loss; defective_silicon what line and defect yield add;
    memory, interposer and substrate are what the good package holds or uses up (the interposer with its own loss and
    that of assembly); wasted_good_parts the accepted dies and stacks in packages that fail; test holds every test, of
    lost parts too; nre is set-up cost over volume.

    Raises:
        ManufacturingError: for an impossible yield, price or volume, or a unit without a die.

    >>> die = DiePart("gpu", 1, 16000, 64, 0.8)
    >>> cost = good_unit_cost(Unit([die], interposer_usd=400, final_yield=0.95))
    >>> [round(cost[k], 2) for k in ("raw_silicon", "defective_silicon", "wasted_good_parts")], round(cost.total, 2)
    ([250.0, 62.5, 16.45], 750.0)
    """
    if not unit.dies:
        raise ManufacturingError("the unit has no die: give at least one DiePart")
    raw, accepted, probe, quality = _silicon(unit.dies)
    memory, memory_quality = _memory(unit.memory)
    bonded = sum(part.count for part in unit.dies) + sum(part.count for part in unit.memory)
    built = package(
        sum(part.count for part in unit.dies),
        1.0,
        unit.order,
        unit.die_bond_yield,
        unit.memory_bond_yield,
        unit.interposer_yield,
        unit.substrate_yield,
        unit.final_yield,
        memory_stacks=sum(part.count for part in unit.memory),
        warpage_yield=unit.warpage_yield,
        incoming_quality=quality * memory_quality,
    )
    chips, substrate = np.asarray(built.die_multiplier), np.asarray(built.substrate_multiplier)
    bonding = bonded * positive("bond_usd_per_die", unit.bond_usd_per_die, zero=True)
    finish = positive("assembly_usd", unit.assembly_usd, zero=True)
    parts: dict[str, FloatArray] = {
        "raw_silicon": raw,
        "defective_silicon": accepted - raw,
        "memory": memory,
        "interposer": positive("interposer_usd", unit.interposer_usd, zero=True)
        * np.asarray(built.interposer_multiplier),
        "substrate": positive("substrate_usd", unit.substrate_usd, zero=True) * substrate,
        "assembly": bonding * chips + finish * substrate,
        "wasted_good_parts": (accepted + memory) * (chips - 1.0),
        "test": probe * chips + positive("final_test_usd", unit.final_test_usd, zero=True) * substrate,
        "nre": positive("nre_usd", unit.nre_usd, zero=True) / positive("volume", unit.volume),
    }
    shaped = dict(zip(parts, np.broadcast_arrays(*parts.values()), strict=True))
    return Waterfall({name: unwrap(shaped[name]) for name in PARTS}, built.package_yield)


def _silicon(dies: Sequence[DiePart]) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Silicon of a package without loss, its accepted dies without probe, probe cost, and their joint quality."""
    raw, accepted, probe, quality = (np.zeros(()) for _ in range(4))
    quality = quality + 1.0
    for part in dies:
        sort = tested(part.die_yield, part.probe_coverage)
        die = positive("wafer_usd", part.wafer_usd, zero=True) / positive("dies_per_wafer", part.dies_per_wafer)
        raw = raw + part.count * die
        accepted = accepted + part.count * die / (share("line_yield", part.line_yield) * np.asarray(sort.pass_rate))
        probe = probe + part.count * positive("probe_usd", part.probe_usd, zero=True) / np.asarray(sort.pass_rate)
        quality = quality * (1.0 - np.asarray(sort.escape_share)) ** part.count
    return raw, accepted, probe, quality


def _memory(memory: Sequence[MemoryPart]) -> tuple[FloatArray, FloatArray]:
    cost, quality = np.zeros(()), np.ones(())
    for part in memory:
        cost = cost + part.count * positive("stack_usd", part.stack_usd, zero=True)
        quality = quality * share("quality", part.quality) ** part.count
    return cost, quality


@dataclass(frozen=True)
class ProcessStep:
    """One kind of process step: how often a wafer sees it, and the machine and material behind one pass."""

    name: str
    passes: float
    machine_usd: float
    wafers_per_hour: float
    uptime: float
    life_years: float = 5.0
    running_usd_per_hour: float = 0.0
    material_usd: float = 0.0


def wafer_cost_usd(
    steps: Sequence[ProcessStep], substrate_usd: float = 0.0, overhead_share: float = 0.0, margin_share: float = 0.0
) -> dict[str, float]:
    """Wafer cost as the sum of process steps, then overhead on it, then the foundry's margin on the price.

    A pass costs machine price / (life hours x uptime) + running cost, over wafers an hour, plus material. Uptime
    divides: halving it raises the cost.

    Raises:
        ManufacturingError: for an impossible rate, uptime or margin.

    >>> euv = ProcessStep("EUV exposure", 20, 220e6, 160, 0.8)
    >>> round(wafer_cost_usd([euv])["total"])
    785
    """
    out = {"substrate": float(positive("substrate_usd", substrate_usd, zero=True))}
    for step in steps:
        used_hours = float(positive("life_years", step.life_years) * HOURS_PER_YEAR * share("uptime", step.uptime))
        per_hour = float(positive("machine_usd", step.machine_usd, zero=True)) / used_hours + step.running_usd_per_hour
        per_pass = per_hour / float(positive("wafers_per_hour", step.wafers_per_hour)) + step.material_usd
        out[step.name] = out.get(step.name, 0.0) + float(positive("passes", step.passes, zero=True)) * per_pass
    direct = sum(out.values())
    out["overhead"] = direct * float(positive("overhead_share", overhead_share, zero=True))
    if not 0.0 <= margin_share < 1.0:
        raise ManufacturingError(f"margin_share = {margin_share:g} must be from 0 to below 1 (share of the price)")
    out["margin"] = (direct + out["overhead"]) * margin_share / (1.0 - margin_share)
    out["total"] = direct + out["overhead"] + out["margin"]
    return out
