"""Sizing by hand with the checks that hand-made numbers need: wafers for units, parts against totals, quoted yields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from supply.manufacturing.numeric import FloatArray, ManufacturingError, Numbers, positive, share, unwrap

__all__ = [
    "MemorySpend",
    "PartsCheck",
    "Quoted",
    "WaferStarts",
    "growth",
    "memory_spend",
    "parts_against_total",
    "wafer_starts",
    "yield_from_counts",
]


class WaferStarts(NamedTuple):
    """Wafers to start, and the gross and good dies per wafer that the reading of the quoted number implies."""

    wafers: float | FloatArray
    gross_per_wafer: float | FloatArray
    good_per_wafer: float | FloatArray


def wafer_starts(
    units: Numbers,
    per_wafer: Numbers,
    yield_fraction: Numbers = 1.0,
    *,
    counted: Literal["good", "gross"],
    dies_per_unit: Numbers = 1.0,
    later_yield: Numbers = 1.0,
) -> WaferStarts:
    """Wafer starts for finished units; `counted` says whether `per_wafer` is after yield (good) or before (gross).

    Compare the implied gross count with `gross_dies` of the die. Works for logic, interposer and memory wafers.

    Args:
        units: finished units wanted.
        per_wafer: dies (or packages) per wafer as quoted.
        yield_fraction: yield of those dies.
        counted: good, if the quoted number is after yield; gross, if before.
        dies_per_unit: dies used by a unit.
        later_yield: yield of the steps after, such as the package yield.

    Raises:
        ManufacturingError: when `counted` is neither good nor gross.

    >>> [round(wafer_starts(1.3e6, 55, 0.85, counted=c).wafers) for c in ("good", "gross")]
    [23636, 27807]
    """
    if counted not in ("good", "gross"):
        raise ManufacturingError(
            f"counted = {counted!r}: say 'good' if the dies per wafer are after yield, 'gross' if before"
        )
    fraction, quoted = share("yield_fraction", yield_fraction), positive("per_wafer", per_wafer)
    gross, good = (quoted / fraction, quoted) if counted == "good" else (quoted, quoted * fraction)
    needed = positive("units", units, zero=True) * positive("dies_per_unit", dies_per_unit)
    return WaferStarts(unwrap(needed / (good * share("later_yield", later_yield))), unwrap(gross), unwrap(good))


class MemorySpend(NamedTuple):
    """Spend on the memory that is sold with a unit, on the memory that is bought for it, and the bytes of both."""

    on_sold_usd: float | FloatArray
    on_installed_usd: float | FloatArray
    sold_gb: float | FloatArray
    installed_gb: float | FloatArray


def memory_spend(units: Numbers, sold_gb: Numbers, installed_gb: Numbers, usd_per_gb: Numbers) -> MemorySpend:
    """Memory spend of a fleet, USD: what is bought (all stacks) and what is sold (usable capacity) are both given.

    Raises:
        ManufacturingError: when less is installed than sold.

    >>> memory_spend(1.3e6, 141, 144, 15).on_sold_usd
    2749500000.0
    """
    sold, bought = positive("sold_gb", sold_gb), positive("installed_gb", installed_gb)
    if np.any(bought < sold):
        raise ManufacturingError("installed_gb is below sold_gb: swap them, or check GB and GiB")
    count, price = positive("units", units, zero=True), positive("usd_per_gb", usd_per_gb)
    return MemorySpend(
        *(unwrap(v) for v in (count * sold * price, count * bought * price, count * sold, count * bought))
    )


@dataclass(frozen=True)
class PartsCheck:
    """Parts beside their total. `residual` is what no part explains (negative: the parts exceed the total)."""

    total: float
    parts: Mapping[str, float]
    residual: float
    flag: str

    @property
    def residual_share(self) -> float:
        """Residual over total."""
        return self.residual / self.total


def parts_against_total(total: float, parts: Mapping[str, float], also_active: tuple[str, ...] = ()) -> PartsCheck:
    """Compare parts with a total without rescaling either, and flag what cannot hold.

    Args:
        total: the quoted total.
        parts: the quoted parts.
        also_active: names known to have a share though no part is quoted for them.

    Raises:
        ManufacturingError: for a total of 0 or less, or a negative part.

    >>> check = parts_against_total(250_000, {"Samsung": 130_000, "SK hynix": 120_000}, ("Micron",))
    >>> check.residual, "Micron" in check.flag
    (0.0, True)
    """
    whole = float(positive("total", total))
    known = {name: float(positive(name, value, zero=True)) for name, value in parts.items()}
    residual = whole - sum(known.values())
    notes = []
    if residual < -1e-9 * whole:
        notes.append(f"the parts exceed the total by {-residual:g}: their scopes differ")
    if also_active and residual <= 1e-9 * whole:
        notes.append(f"nothing is left for {', '.join(also_active)}: the numbers cannot have one scope")
    elif residual > 1e-9 * whole:
        notes.append(f"{residual:g} ({residual / whole:.2%}) of the total is not explained by the parts")
    return PartsCheck(whole, known, residual, "; ".join(notes))


@dataclass(frozen=True)
class Quoted:
    """A number with the note (vintage) that it comes from."""

    value: float
    vintage: str


def growth(start: Quoted, end: Quoted) -> float:
    """Growth from one level to another of the same note, as a fraction.

    Raises:
        ManufacturingError: when the two come from different notes: a revision is no growth.

    >>> round(growth(Quoted(120_000, "2024-09"), Quoted(170_000, "2024-09")), 4)
    0.4167
    """
    if start.vintage != end.vintage:
        raise ManufacturingError(
            f"{start.value:g} is of {start.vintage} and {end.value:g} of {end.vintage}: a growth rate needs both from "
            "one note; keep the two vintages apart"
        )
    return float(positive("end", end.value)) / float(positive("start", start.value)) - 1.0


def yield_from_counts(good: float, attempted: float, target: float | None = None, confirmed: bool = False) -> float:
    """Yield from counts; refuses one that looks like rejects taken for good parts until it is confirmed.

    Raises:
        ManufacturingError: when more are good than attempted, or when, with a target, the share of the other count is
            nearer to it: the message gives that yield and asks which count it is.

    >>> yield_from_counts(242, 250, target=0.99)
    0.968
    """
    tried, fine = float(positive("attempted", attempted)), float(positive("good", good, zero=True))
    if fine > tried:
        raise ManufacturingError(f"{fine:g} good of {tried:g} attempted: swap them")
    value, other = fine / tried, 1.0 - fine / tried
    if target is not None and not confirmed and abs(other - target) < abs(value - target):
        raise ManufacturingError(
            f"{fine:g} good of {tried:g} is a yield of {value:.3g}; if {fine:g} is the number of rejects the yield is "
            f"{other:.4g}, nearer to the target {target:g}: say which (confirmed=True keeps {value:.3g})"
        )
    return value
