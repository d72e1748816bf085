"""Packages: interposers with stitching over the reticle, bonding, assembly order, and what a late failure wastes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from supply.manufacturing.numeric import FloatArray, ManufacturingError, Numbers, positive, share, unwrap
from supply.manufacturing.wafer import gross_dies
from supply.manufacturing.yield_models import MM2_PER_CM2, die_yield

__all__ = [
    "INTERPOSERS",
    "InterposerKind",
    "PackageYield",
    "hybrid_bond_yield",
    "interposer_area_mm2",
    "interposer_yield",
    "package",
    "packages_per_wafer",
    "stitches",
]

RETICLE_MM2 = 858.0
"""One exposure field, 26 x 33 mm (fact lithography_193i_and_euv_0_33_na_reticle_field_2023)."""


@dataclass(frozen=True)
class InterposerKind:
    """What an interposer technology can do.

    Defect densities and stitch yields are illustrative, as no foundry prints them. They are set so that a
    3.3-reticle silicon and a 5.5-reticle bridge interposer reach the 98 % that is reported for CoWoS (fact
    tsmc_cowos_5_5x_reticle_yield_2026_05). Values: facts asm_interposer_<name>_d0 and its neighbour _stitch_yield.
    """

    name: str
    defects_per_cm2: float
    max_reticles: float
    stitch_yield: float
    limit_fact: str


INTERPOSERS = {
    kind.name: kind
    for kind in (
        InterposerKind("silicon", 0.0004, 3.3, 0.997, "tsmc_cowos_s_max_interposer_reticles_2023"),
        InterposerKind("rdl", 0.0006, 5.5, 0.999, "asm_interposer_rdl_max_reticles"),
        InterposerKind("bridge", 0.0002, 9.0, 0.998, "tsmc_cowos_roadmap_interposer_reticles_2027"),
    )
}


def stitches(area_mm2: Numbers, reticle_mm2: float = RETICLE_MM2) -> float | FloatArray:
    """Seams between exposures: ceil(area / reticle) - 1, zero up to one field.

    >>> stitches([800.0, 858.0, 2500.0]).tolist()
    [0.0, 0.0, 2.0]
    """
    fields = np.ceil(positive("area_mm2", area_mm2) / positive("reticle_mm2", reticle_mm2) - 1e-9)
    return unwrap(fields - 1.0)


def interposer_yield(
    area_mm2: Numbers,
    kind: str = "silicon",
    *,
    defects_per_cm2: Numbers | None = None,
    stitch_yield: Numbers | None = None,
    manual_yield: Numbers | None = None,
    check_limit: bool = True,
) -> float | FloatArray:
    """Yield of an interposer before bonding: defects over its area times one loss a seam above the reticle.

    Args:
        area_mm2: interposer area.
        kind: silicon (CoWoS-S), rdl (CoWoS-R) or bridge (CoWoS-L).
        defects_per_cm2: replaces the value of the kind.
        stitch_yield: yield of one seam, replaces the value of the kind.
        manual_yield: returned as given.
        check_limit: refuse areas over the limit of the kind.

    Raises:
        ManufacturingError: for an unknown kind or an area over its limit in reticles.

    >>> interposer_yield(2500.0) < interposer_yield(2500.0, stitch_yield=1.0)
    True
    """
    if kind not in INTERPOSERS:
        raise ManufacturingError(f"interposer kind {kind!r} is not known; choose one of {', '.join(INTERPOSERS)}")
    chosen, area = INTERPOSERS[kind], positive("area_mm2", area_mm2)
    limit = chosen.max_reticles * RETICLE_MM2
    if check_limit and np.any(area > limit):
        raise ManufacturingError(
            f"a {kind} interposer of {float(np.max(area)):g} mm2 is over its limit of {chosen.max_reticles:g} reticles "
            f"({limit:g} mm2): use a kind with a higher limit, or check_limit=False for a future one"
        )
    if manual_yield is not None:
        return unwrap(share("manual_yield", manual_yield))
    density = chosen.defects_per_cm2 if defects_per_cm2 is None else defects_per_cm2
    seam = share("stitch_yield", chosen.stitch_yield if stitch_yield is None else stitch_yield)
    return unwrap(np.asarray(die_yield(area, density)) * seam ** np.asarray(stitches(area)))


def packages_per_wafer(
    interposer_area_mm2: Numbers, aspect: Numbers = 1.0, edge_exclusion_mm: Numbers = 3.0, scribe_mm: Numbers = 0.1
) -> float | FloatArray:
    """Interposers placed on a 300 mm wafer; `aspect` is width over height.

    >>> packages_per_wafer([2831.0, 4700.0]).tolist()
    [16.0, 9.0]
    """
    area = positive("interposer_area_mm2", interposer_area_mm2)
    width = np.sqrt(area * positive("aspect", aspect))
    return unwrap(np.asarray(gross_dies(width, area / width, 300.0, edge_exclusion_mm, scribe_mm), dtype=np.float64))


@lru_cache(maxsize=256)
def interposer_area_mm2(packages: float, edge_exclusion_mm: float = 3.0, scribe_mm: float = 0.1) -> float:
    """Largest square interposer of which a 300 mm wafer still holds a number of packages: the inverse of placement.

    Raises:
        ManufacturingError: for less than one package.

    >>> round(interposer_area_mm2(29))
    1722
    """
    if packages < 1:
        raise ManufacturingError(f"packages = {packages:g} must be at least 1")
    low, high = 1.0, 43_000.0
    while high - low > 0.5:
        middle = 0.5 * (low + high)
        enough = gross_dies(middle**0.5, middle**0.5, 300.0, edge_exclusion_mm, scribe_mm) >= packages
        low, high = (middle, high) if enough else (low, middle)
    return low


def hybrid_bond_yield(
    bond_area_mm2: Numbers,
    particles_per_cm2: Numbers,
    void_ratio: Numbers = 1.0,
    pads: Numbers = 0.0,
    pad_failure: Numbers = 0.0,
    spare_share: Numbers = 0.0,
) -> float | FloatArray:
    """Yield of a face-to-face hybrid bond: no killing particle void, and no unrepaired pad (recess or overlay).

    exp(-particles x area x void ratio) x (1 - pad failure x (1 - spare share)) ** pads. Use it as the die bond yield
    of a 3D stack (SoIC).

    >>> round(hybrid_bond_yield(115, 0.005, pads=1e6, pad_failure=1e-9), 4)
    0.9933
    """
    faults = (
        positive("bond_area_mm2", bond_area_mm2) / MM2_PER_CM2 * positive("particles", particles_per_cm2, zero=True)
    )
    left = share("pad_failure", pad_failure, zero=True) * (1.0 - share("spare_share", spare_share, zero=True))
    pads_good = np.exp(positive("pads", pads, zero=True) * np.log1p(-left))
    return unwrap(np.exp(-faults * positive("void_ratio", void_ratio, zero=True)) * pads_good)


class PackageYield(NamedTuple):
    """Yields of assembly and the parts started for one good package."""

    interposer_yield: float | FloatArray
    bond_yield: float | FloatArray
    package_yield: float | FloatArray
    die_multiplier: float | FloatArray
    memory_multiplier: float | FloatArray
    interposer_multiplier: float | FloatArray
    substrate_multiplier: float | FloatArray
    wasted_good_share: float | FloatArray


def package(
    dies: Numbers,
    interposer_area_mm2: Numbers,
    order: str = "chip_last",
    die_bond_yield: Numbers = 0.99,
    memory_bond_yield: Numbers = 0.99,
    interposer_yield: Numbers | None = None,
    substrate_yield: Numbers = 1.0,
    final_yield: Numbers = 0.98,
    *,
    memory_stacks: Numbers = 0,
    interposer_kind: str = "silicon",
    warpage_yield: Numbers = 1.0,
    incoming_quality: Numbers = 1.0,
) -> PackageYield:
    """Assembly yields and multipliers: what must be started for one good package.

    y1 interposer, y2 = die bond ** dies x memory bond ** stacks, y3 = substrate x warpage x final. Chip-last:
    interposer 1 / (y1 y2 y3), dies and stacks 1 / (y2 y3); chip-first (redistribution built on the chips): all 1 /
    (y1 y3); the substrate 1 / y3 in both. Bad parts that came in (`incoming_quality`, product over the parts) fail at
    final test and divide all.

    Args:
        dies: logic dies bonded.
        interposer_area_mm2: gives the interposer yield where none is stated.
        order: chip_last or chip_first.
        die_bond_yield: yield of attaching one die.
        memory_bond_yield: yield of attaching one stack.
        interposer_yield: y1; a stated one is kept as it is, else it follows from kind and area.
        substrate_yield: yield of the attach to the substrate.
        final_yield: yield of the steps from there to final test.
        memory_stacks: stacks bonded.
        interposer_kind: silicon, rdl or bridge.
        warpage_yield: share not lost to warpage.
        incoming_quality: probability that every part attached was good.

    Raises:
        ManufacturingError: for an unknown order or a fraction outside its range.

    >>> p = package(2, 2800, interposer_yield=0.98, final_yield=0.95)
    >>> round(p.die_multiplier, 4), round(p.interposer_multiplier, 4), round(p.substrate_multiplier, 4)
    (1.074, 1.0959, 1.0526)
    """
    if order not in ("chip_last", "chip_first"):
        raise ManufacturingError(f"order {order!r} is not known; choose chip_last or chip_first")
    y1 = _y1(interposer_area_mm2, interposer_kind, interposer_yield)
    y2 = share("die_bond_yield", die_bond_yield) ** positive("dies", dies) * share(
        "memory_bond_yield", memory_bond_yield
    ) ** positive("memory_stacks", memory_stacks, zero=True)
    y3 = (
        share("substrate_yield", substrate_yield)
        * share("warpage_yield", warpage_yield)
        * share("final_yield", final_yield)
    )
    y3 = y3 * share("incoming_quality", incoming_quality)
    chips = y2 * y3 if order == "chip_last" else y1 * y3
    interposer = y1 * y2 * y3 if order == "chip_last" else y1 * y3
    return PackageYield(
        unwrap(y1),
        unwrap(np.asarray(y2)),
        unwrap(chips),
        unwrap(1.0 / chips),
        unwrap(1.0 / chips),
        unwrap(1.0 / interposer),
        unwrap(1.0 / y3),
        unwrap(1.0 - chips),
    )


def _y1(area_mm2: Numbers, kind: str, stated: Numbers | None) -> FloatArray:
    if stated is not None:
        return share("interposer_yield", stated)
    return np.asarray(interposer_yield(area_mm2, kind))
