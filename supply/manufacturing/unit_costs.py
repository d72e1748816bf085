"""Manufacturing cost of a good tested package by accelerator: central waterfall, band from drawn inputs, trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

import numpy as np

from supply.facts import Catalog, catalog
from supply.manufacturing.cost import DiePart, MemoryPart, Unit, Waterfall, good_unit_cost
from supply.manufacturing.numeric import FloatArray, ManufacturingError, Numbers
from supply.manufacturing.product_specs import MEMORIES, NODES, SPECS, DieSpec, ProductSpec
from supply.manufacturing.products import PACKAGE_YIELDS, level, placed_dies, product, serving_share

__all__ = ["UnitCost", "central_unit", "unit_cost"]

BAND = (5.0, 95.0)
_NORMAL_95 = 1.6449
_NRE_NODES = {
    "7": ("design_cost_7nm_ibs_2025", "mask_set_cost_7nm_2023"),
    "5": ("design_cost_5nm_ibs_2025", "mask_set_cost_5nm_2023"),
    "3": ("design_cost_3nm_ibs_2025", "asm_mask_set_3nm"),
    "2": ("design_cost_2nm_ibs_2025", "asm_mask_set_2nm"),
}


@dataclass(frozen=True)
class UnitCost:
    """Cost of a good tested package, USD. `low` and `high` hold 90 % of the draws; so do `bands` for each part."""

    sku: str
    on: date
    waterfall: Waterfall
    low: float
    high: float
    bands: Mapping[str, tuple[float, float]]
    trace: Mapping[str, tuple[str, ...]] = field(repr=False)

    @property
    def total(self) -> float:
        """Central cost, USD."""
        return float(np.asarray(self.waterfall.total))


def unit_cost(
    sku: str,
    on: date | None = None,
    *,
    draws: int = 2000,
    seed: int = 20261130,
    nre: bool = True,
    cat: Catalog | None = None,
) -> UnitCost:
    """Manufacturing cost of one good package on a day: waterfall, low and high, and the facts behind each input.

    Memory is taken at its contract price per GB, logic and interposers at foundry prices: this is what the designer
    pays, not what the foundry spends. Low and high come from drawing every input between its own low and high
    (independently, split normal); the total's band is narrower than the sum of the parts' bands.

    Args:
        sku: an accelerator of `products.SKUS`.
        on: day of prices and yields; default the reference day.
        draws: draws for the band; 0 leaves the band at the central value.
        seed: seed of the draws.
        nre: include design and mask cost over the assumed life volume.
        cat: catalogue, default the shipped one.

    Raises:
        ManufacturingError: for an unknown accelerator or negative draws.

    >>> cost = unit_cost("h100", draws=200)
    >>> cost.low < cost.total < cost.high
    True
    """
    if draws < 0:
        raise ManufacturingError(f"draws = {draws} must be at least 0")
    base = product(sku, on, cat)
    facts = catalog() if cat is None else cat
    central = _Inputs(SPECS[sku], facts, base.on, None, 0)
    waterfall = good_unit_cost(central.unit(base.hbm_gb, nre))
    trace = {**base.trace, **central.trace}
    total = float(np.asarray(waterfall.total))
    if draws == 0:
        flat = {k: (float(np.asarray(v)),) * 2 for k, v in waterfall.items()}
        return UnitCost(sku, base.on, waterfall, total, total, flat, trace)
    varied = _Inputs(SPECS[sku], facts, base.on, np.random.default_rng(seed), draws)
    drawn = good_unit_cost(varied.unit(base.hbm_gb, nre))
    low, high = _band(drawn.total)
    return UnitCost(sku, base.on, waterfall, low, high, {k: _band(v) for k, v in drawn.items()}, trace)


def central_unit(sku: str, on: date, facts: Catalog) -> Unit:
    """The central bill of an accelerator without set-up cost, for other measures on the same tree."""
    return _Inputs(SPECS[sku], facts, on, None, 0).unit(product(sku, on, facts).hbm_gb, nre=False)


def _band(values: Numbers) -> tuple[float, float]:
    low, high = np.percentile(np.asarray(values, dtype=np.float64), BAND)
    return float(low), float(high)


class _Inputs:
    """Reads facts as central values, or as draws between their low and high."""

    def __init__(
        self, spec: ProductSpec, facts: Catalog, day: date, rng: np.random.Generator | None, draws: int
    ) -> None:
        self.spec, self.facts, self.day, self.rng, self.draws = spec, facts, day, rng, draws
        self.trace: dict[str, tuple[str, ...]] = {}
        self._seen: dict[str, FloatArray] = {}

    def take(self, name: str, most: float = np.inf) -> FloatArray:
        """Value or draws of a fact or series; one name is drawn once, so that its uses move together."""
        if name not in self._seen:
            self._seen[name] = self._read(name)
        return np.asarray(np.minimum(self._seen[name], most))

    def _read(self, name: str) -> FloatArray:
        middle = level(self.facts, name, self.day)
        if self.rng is None:
            return np.asarray(middle)
        low, high = (level(self.facts, name, self.day, which) for which in ("low", "high"))
        z = self.rng.standard_normal(self.draws) / _NORMAL_95
        if low > 0:  # split lognormal, so that prices and densities stay positive
            return np.asarray(middle * np.exp(np.where(z < 0, z * np.log(middle / low), z * np.log(high / middle))))
        return np.maximum(middle + np.where(z < 0, z * (middle - low), z * (high - middle)), 0.0)

    def note(self, field_name: str, *names: str) -> None:
        """Record which facts a cost input rests on."""
        self.trace[field_name] = names

    def unit(self, memory_gb: float, nre: bool) -> Unit:
        """The bill that `good_unit_cost` prices."""
        spec = self.spec
        area = self.take("asm_substrate_over_interposer") * self._interposer_area()
        stacked = sum(self._count(d) for d in spec.dies if d.stacked)
        hybrid = self.take("asm_soic_bond_yield", 1.0) ** stacked
        for part, names in _COST_FACTS.items():
            self.note(part, *names)
        self.note("interposer_usd", "cowos_wafer_price", spec.packages_series)
        self.note("final_yield", PACKAGE_YIELDS[spec.package])
        return Unit(
            [self._die(d) for d in spec.dies],
            [self._memory(memory_gb)],
            interposer_usd=self.take("cowos_wafer_price") / self.take(spec.packages_series),
            substrate_usd=area * self.take("asm_substrate_usd_per_mm2"),
            die_bond_yield=1.0,
            final_yield=self.take(PACKAGE_YIELDS[spec.package], 1.0) * hybrid,
            bond_usd_per_die=self.take("asm_bond_usd_per_part"),
            assembly_usd=self.take("asm_assembly_usd") + stacked * self.take("asm_soic_usd_per_die"),
            final_test_usd=self.take("asm_final_test_usd"),
            nre_usd=self._nre() if nre else 0.0,
            volume=self.take(spec.volume),
        )

    def _interposer_area(self) -> float:
        return product(self.spec.sku, self.day, self.facts).interposer_area_mm2

    def _count(self, die: DieSpec) -> int:
        return round(self.facts[die.count].number)

    def _die(self, die: DieSpec) -> DiePart:
        node = NODES[die.node]
        area = self.facts[die.area].number
        # Gross dies are placed at the central area; a drawn area scales them.
        scaled = placed_dies(area) * area / self.take(die.area)
        self.note(f"dies.{die.name}.probe_coverage", "asm_probe_coverage")
        self.note(f"dies.{die.name}.probe_usd", "asm_probe_usd_per_die")
        return DiePart(
            die.name,
            self._count(die),
            self.take(node.wafer_price),
            scaled,
            np.clip(self._yield(die), 1e-6, 1.0),
            self.take("asm_line_yield", 1.0),
            self.take("asm_probe_coverage", 1.0),
            self.take("asm_probe_usd_per_die") * np.minimum(1.0, area / 800.0),
        )

    def _yield(self, die: DieSpec) -> FloatArray:
        density = self.take(NODES[die.node].defect_density)
        share = self.take("asm_block_area_share_gpu", 0.95) if die.harvest else None
        return np.asarray(serving_share(die, self.take(die.area), density, self.facts, share))

    def _memory(self, memory_gb: float) -> MemoryPart:
        kind = MEMORIES[self.spec.memory]
        names = (kind.price, *((kind.price_gb,) if isinstance(kind.price_gb, str) else ()))
        self.note("memory.usd_per_gb", *names)
        stacks = round(self.facts[self.spec.stacks].number)
        return MemoryPart(self.spec.memory, stacks, self.usd_per_gb() * memory_gb / stacks)

    def usd_per_gb(self) -> FloatArray:
        """Contract price of memory per GB; a price of mixed heights is spread over their mean capacity."""
        kind = MEMORIES[self.spec.memory]
        if isinstance(kind.price_gb, str):
            tall = self.facts[kind.price_gb].number
            per_die = self.facts[kind.gb_per_die].number
            return self.take(kind.price) / (per_die * (8.0 * (1.0 - tall) + 12.0 * tall))
        return self.take(kind.price) / kind.price_gb

    def _nre(self) -> FloatArray:
        total = np.zeros(())
        for index, die in enumerate(self.spec.dies):
            design, masks = _NRE_NODES[NODES[die.node].nm]
            self.note(f"nre.{die.name}", design, masks, "asm_mask_sets", self.spec.volume)
            # The leading die carries the design cost; others add masks only, as reused or much simpler designs.
            total = total + (self.take(design) if index == 0 else 0.0) + self.take(masks) * self.take("asm_mask_sets")
        return total


_COST_FACTS: dict[str, tuple[str, ...]] = {
    "substrate_usd": ("asm_substrate_over_interposer", "asm_substrate_usd_per_mm2"),
    "bond_usd_per_die": ("asm_bond_usd_per_part",),
    "assembly_usd": ("asm_assembly_usd", "asm_soic_usd_per_die"),
    "hybrid_bond_yield": ("asm_soic_bond_yield",),
    "final_test_usd": ("asm_final_test_usd",),
}
