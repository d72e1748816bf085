"""From facts to what the base network needs of each accelerator: dies, yields, packages, memory, with a trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache

import numpy as np

from supply.facts import Catalog, FactError, catalog
from supply.manufacturing.numeric import FloatArray, ManufacturingError, Numbers
from supply.manufacturing.packages import interposer_area_mm2, packages_per_wafer
from supply.manufacturing.product_specs import MEMORIES, NODES, SPECS, DieSpec, ProductSpec
from supply.manufacturing.redundancy import harvested_yield
from supply.manufacturing.stacks import implied_bond_yield, memory_stack
from supply.manufacturing.wafer import FIELD_MM, dies_per_shot, gross_dies
from supply.manufacturing.yield_models import die_yield

__all__ = ["SKUS", "Product", "ProductDie", "all_products", "die_bins", "product", "stack_yield_by_height"]

SKUS = tuple(SPECS)
"""Accelerators that `product` knows."""
SCRIBE_MM = 0.1
PACKAGE_YIELDS = {
    "cowos_s": "cowos_s_package_yield",
    "cowos_r": "cowos_s_package_yield",
    "cowos_l": "cowos_l_package_yield",
}


@dataclass(frozen=True)
class ProductDie:
    """One kind of die in a package: `die_yield` includes harvest and line yield, `full_yield` is free of defects."""

    name: str
    count: int
    area_mm2: float
    node: str
    defects_per_cm2: float
    gross_dies_per_wafer: int
    full_yield: float
    die_yield: float
    wafer_usd: float

    @property
    def good_dies_per_wafer(self) -> float:
        """Dies per wafer started that serve the product."""
        return self.gross_dies_per_wafer * self.die_yield


@dataclass(frozen=True)
class Product:
    """Manufacturing view of an accelerator on a day.

    `hbm_stack_yield` runs from DRAM die started to good stack. `trace` maps each field to fact or series ids, and
    `flags` lists assumptions in words.
    """

    sku: str
    name: str
    on: date
    dies: tuple[ProductDie, ...]
    package_type: str
    interposer_area_mm2: float
    packages_per_interposer_wafer: float
    placed_packages_per_interposer_wafer: float
    package_yield: float
    hbm_generation: str
    hbm_height: int
    hbm_stacks: int
    hbm_gb_per_stack: float
    hbm_stack_yield: float
    hbm_bond_yield: float
    hbm_dies_per_wafer: int
    trace: Mapping[str, tuple[str, ...]] = field(repr=False)
    flags: tuple[str, ...] = ()

    @property
    def hbm_gb(self) -> float:
        """Installed memory of a package, GB (nominal, before disabled capacity)."""
        return self.hbm_stacks * self.hbm_gb_per_stack

    @property
    def hbm_stacks_per_wafer(self) -> float:
        """Good stacks per HBM DRAM wafer: gross dies x quoted yield from die to stack / height."""
        return self.hbm_dies_per_wafer * self.hbm_stack_yield / self.hbm_height

    @property
    def hbm_gb_per_wafer(self) -> float:
        """Good HBM per DRAM wafer, GB."""
        return self.hbm_stacks_per_wafer * self.hbm_gb_per_stack

    @property
    def logic_wafers_per_package(self) -> dict[str, float]:
        """Wafer starts by node for one good package, package loss included."""
        out: dict[str, float] = {}
        for die in self.dies:
            out[die.node] = out.get(die.node, 0.0) + die.count / die.good_dies_per_wafer / self.package_yield
        return out

    @property
    def interposer_wafers_per_package(self) -> float:
        """Interposer wafers for one good package, package loss included."""
        return 1.0 / (self.packages_per_interposer_wafer * self.package_yield)

    @property
    def hbm_wafers_per_package(self) -> float:
        """HBM DRAM wafers for one good package, package loss included."""
        return self.hbm_stacks / (self.hbm_stacks_per_wafer * self.package_yield)


def level(cat: Catalog, name: str, on: date, which: str = "value") -> float:
    """Value of a series on a day, or of a fact; `which` is value, low or high."""
    if name in cat.series_ids:
        return cat.series(name).levels([on], which)[0]
    fact = cat[name]
    return {"value": fact.number, "low": fact.range[0], "high": fact.range[1]}[which]


def product(sku: str, on: date | None = None, cat: Catalog | None = None) -> Product:
    """The accelerator's manufacturing numbers on a day (default: a day in the middle of its life).

    Raises:
        ManufacturingError: for an unknown accelerator, with the known ones.

    >>> h100 = product("h100")
    >>> h100.dies[0].gross_dies_per_wafer, h100.packages_per_interposer_wafer, h100.hbm_gb
    (67, 29.0, 80.0)
    """
    if sku not in SPECS:
        raise ManufacturingError(f"accelerator {sku!r} is not known; choose one of {', '.join(SKUS)}")
    spec, facts = SPECS[sku], catalog() if cat is None else cat
    day = spec.reference if on is None else on
    trace: dict[str, tuple[str, ...]] = {}
    dies = tuple(_die(die, facts, day, trace) for die in spec.dies)
    packages = level(facts, spec.packages_series, day)
    area = interposer_area_mm2(packages) if spec.interposer_area is None else level(facts, spec.interposer_area, day)
    trace["packages_per_interposer_wafer"] = (spec.packages_series,)
    trace["interposer_area_mm2"] = (spec.interposer_area or spec.packages_series,)
    stacked = sum(die.count for die, given in zip(dies, spec.dies, strict=True) if given.stacked)
    soic = facts["asm_soic_bond_yield"].number ** stacked
    trace["package_yield"] = (PACKAGE_YIELDS[spec.package], *(("asm_soic_bond_yield",) if stacked else ()))
    memory = _memory(spec, facts, day, trace)
    return Product(
        sku,
        spec.name,
        day,
        dies,
        spec.package,
        area,
        packages,
        float(np.asarray(packages_per_wafer(area))),
        level(facts, PACKAGE_YIELDS[spec.package], day) * soic,
        spec.memory,
        *memory,
        trace,
        spec.flags,
    )


def all_products(on: date | None = None) -> dict[str, Product]:
    """Every accelerator, each on its reference day or all on the day given."""
    return {sku: product(sku, on) for sku in SKUS}


def _die(spec: DieSpec, facts: Catalog, day: date, trace: dict[str, tuple[str, ...]]) -> ProductDie:
    node = NODES[spec.node]
    area, density = facts[spec.area].number, level(facts, node.defect_density, day)
    gross = placed_dies(area)
    line = facts["asm_line_yield"].number
    full = float(np.asarray(die_yield(area, density, alpha=facts["asm_yield_alpha"].number)))
    serving = float(np.asarray(serving_share(spec, area, density, facts)))
    harvest_facts = (spec.harvest.present, spec.harvest.active, "asm_block_area_share_gpu") if spec.harvest else ()
    trace[f"dies.{spec.name}.count"] = (spec.count,)
    trace[f"dies.{spec.name}.area_mm2"] = (spec.area,)
    trace[f"dies.{spec.name}.defects_per_cm2"] = (node.defect_density,)
    trace[f"dies.{spec.name}.wafer_usd"] = (node.wafer_price,)
    trace[f"dies.{spec.name}.die_yield"] = (node.defect_density, "asm_yield_alpha", "asm_line_yield", *harvest_facts)
    count, price = round(facts[spec.count].number), level(facts, node.wafer_price, day)
    return ProductDie(spec.name, count, area, spec.node, density, gross, full, serving * line, price)


@lru_cache(maxsize=1024)
def placed_dies(area_mm2: float) -> int:
    """Gross dies of an area on a 300 mm wafer: square, or as wide as the exposure field where a square does not fit.

    Raises:
        ManufacturingError: for an area above the exposure field.

    >>> placed_dies(814.0)
    67
    """
    width = min(FIELD_MM[0], area_mm2**0.5)
    dies_per_shot(width, area_mm2 / width, 0.0)
    count: int = gross_dies(width, area_mm2 / width, scribe_mm=SCRIBE_MM)
    return count


def serving_share(
    spec: DieSpec, area_mm2: Numbers, defects_per_cm2: Numbers, facts: Catalog, block_share: Numbers | None = None
) -> float | FloatArray:
    """Share of dies that serve the product: free of defects, or with enough good blocks where it has spare ones."""
    alpha = facts["asm_yield_alpha"].number
    if spec.harvest is None:
        return die_yield(area_mm2, defects_per_cm2, alpha=alpha)
    present, active = (round(facts[n].number / spec.harvest.dies) for n in (spec.harvest.present, spec.harvest.active))
    bins = {"serving": present - active}
    return block_bins(area_mm2, present, bins, defects_per_cm2, facts, block_share)["serving"]


def block_bins(
    area_mm2: Numbers,
    present: int,
    bad_allowed: Mapping[str, int],
    defects_per_cm2: Numbers,
    facts: Catalog,
    block_share: Numbers | None = None,
) -> dict[str, float | FloatArray]:
    """Bins of a die of which the share of area in the facts (or the one given) is repeated blocks."""
    area = np.asarray(area_mm2, dtype=np.float64)
    share = np.asarray(facts["asm_block_area_share_gpu"].number if block_share is None else block_share)
    alpha = facts["asm_yield_alpha"].number
    return harvested_yield(
        area * share / present, present, bad_allowed, area * (1.0 - share), defects_per_cm2, alpha=alpha
    )


def die_bins(
    sku: str, active_blocks: Mapping[str, int], on: date | None = None, cat: Catalog | None = None
) -> dict[str, float]:
    """Shares of an accelerator's leading die by bin, as co-products, before line yield; `scrap` is the rest.

    `active_blocks` gives the good blocks that each bin needs on a die; a die goes to the bin that needs most.

    Raises:
        ManufacturingError: for a die without repeated blocks in the facts, or a need above the blocks present.

    >>> bins = die_bins("h100", {"SXM": 132, "PCIe": 114})
    >>> list(bins), round(sum(bins.values()), 9)
    (['SXM', 'PCIe', 'scrap'], 1.0)
    """
    base = product(sku, on, cat)
    facts, lead = catalog() if cat is None else cat, SPECS[sku].dies[0]
    if lead.harvest is None:
        raise ManufacturingError(f"{sku}: no fact tells the repeated blocks of its die {lead.name}, so it has no bins")
    present = round(facts[lead.harvest.present].number / lead.harvest.dies)
    if above := {k: v for k, v in active_blocks.items() if v > present}:
        raise ManufacturingError(f"bins {above} need more than the {present} blocks of a {lead.name} die")
    die = base.dies[0]
    allowed = {name: present - need for name, need in active_blocks.items()}
    shares = block_bins(die.area_mm2, present, allowed, die.defects_per_cm2, facts)
    return {name: float(np.asarray(value)) for name, value in shares.items()}


def _memory(
    spec: ProductSpec, facts: Catalog, day: date, trace: dict[str, tuple[str, ...]]
) -> tuple[int, int, float, float, float, int]:
    kind = MEMORIES[spec.memory]
    stacks, per_die = round(facts[spec.stacks].number), facts[kind.gb_per_die].number
    wanted = facts[spec.stack_gb].number if spec.stack_gb else facts[spec.capacity].number / stacks
    height = int(np.ceil(wanted / per_die - 1e-9))
    series, _ = stack_yield_series(spec.memory, height)
    bond, overall = _stack_yield(spec.memory, height, facts, day)
    area = facts[kind.die_area].number
    trace["hbm_stacks"] = (spec.stacks,)
    trace["hbm_gb_per_stack"] = (spec.stack_gb or spec.capacity, kind.gb_per_die)
    trace["hbm_height"] = (kind.gb_per_die, spec.capacity)
    trace["hbm_stack_yield"] = (series,)
    trace["hbm_bond_yield"] = (series, "asm_hbm_dram_yield", "asm_probe_coverage", "asm_hbm_base_quality")
    trace["hbm_dies_per_wafer"] = (kind.die_area,)
    return height, stacks, height * per_die, overall, bond, gross_dies(area**0.5, area**0.5)


def _stack_yield(memory: str, height: int, facts: Catalog, day: date) -> tuple[float, float]:
    """Bond yield of a layer that fits the quoted stack yield, and the yield from die to stack of a height with it."""
    series, quoted_height = stack_yield_series(memory, height)
    dram, probe = facts["asm_hbm_dram_yield"].number, facts["asm_probe_coverage"].number
    base = facts["asm_hbm_base_quality"].number
    bond = implied_bond_yield(level(facts, series, day), quoted_height, dram, probe, base)
    started = memory_stack(height, dram, probe, bond, base).dies_started_per_good_stack
    return float(np.asarray(bond)), float(height / np.asarray(started))


def stack_yield_by_height(
    memory: str, on: date, heights: tuple[int, ...] = (8, 12, 16), cat: Catalog | None = None
) -> dict[int, float]:
    """Yield from DRAM die to good stack by height, at the bond yield that fits the nearest quoted height; figure data.

    Raises:
        ManufacturingError: for an unknown memory generation.

    >>> yields = stack_yield_by_height("hbm3e", date(2025, 12, 31))
    >>> yields[8] > yields[12] > yields[16]
    True
    """
    if memory not in MEMORIES:
        raise ManufacturingError(f"memory {memory!r} is not known; choose one of {', '.join(MEMORIES)}")
    facts = catalog() if cat is None else cat
    return {height: _stack_yield(memory, height, facts, on)[1] for height in heights}


def stack_yield_series(memory: str, height: int) -> tuple[str, int]:
    """Series of the quoted stack yield at the nearest height, and that height.

    Raises:
        FactError: when the generation has no yield series.
    """
    options = MEMORIES[memory].yields
    if not options:
        raise FactError(f"memory {memory} has no stack-yield series: add one to data/facts/series.csv")
    nearest = min(options, key=lambda h: abs(h - height))
    return options[nearest], nearest
