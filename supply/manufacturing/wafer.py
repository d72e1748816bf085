"""Dies per wafer or panel: exact placement at the best grid offset, whole reticle shots, and the closed formula."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, overload

import numpy as np
import numpy.typing as npt

from supply.manufacturing.numeric import FloatArray, ManufacturingError, Numbers, positive, unwrap
from supply.manufacturing.offset_search import best_offset

__all__ = [
    "FIELD_MM",
    "HIGH_NA_FIELD_MM",
    "Panel",
    "Placement",
    "Wafer",
    "dies_per_shot",
    "gross_dies",
    "gross_dies_formula",
    "place",
]

FIELD_MM = (26.0, 33.0)
"""Exposure field of immersion and 0.33 NA EUV scanners (fact lithography_193i_and_euv_0_33_na_reticle_field_2023)."""
HIGH_NA_FIELD_MM = (26.0, 16.5)
"""Half field of 0.55 NA EUV scanners."""
MAX_PANEL_MM = 600.0


@dataclass(frozen=True)
class Wafer:
    """A round carrier. The notch zone (depth beyond the edge exclusion, width) is barred when its depth is above 0."""

    diameter_mm: float = 300.0
    edge_exclusion_mm: float = 3.0
    notch_depth_mm: float = 0.0
    notch_width_mm: float = 3.0

    @property
    def usable_radius_mm(self) -> float:
        """Radius in which every die must lie whole."""
        return self.diameter_mm / 2.0 - self.edge_exclusion_mm


@dataclass(frozen=True)
class Panel:
    """A rectangular carrier, up to 600 mm a side."""

    width_mm: float = 510.0
    height_mm: float = 515.0
    edge_exclusion_mm: float = 3.0


@dataclass(frozen=True)
class Placement:
    """Whole dies on a carrier: lower left corners, from the carrier's centre."""

    x_mm: FloatArray
    y_mm: FloatArray
    die_width_mm: float
    die_height_mm: float
    scribe_mm: float
    carrier: Wafer | Panel

    @property
    def count(self) -> int:
        """Number of whole dies."""
        return int(self.x_mm.size)


def gross_dies_formula(
    die_width_mm: Numbers,
    die_height_mm: Numbers,
    wafer_diameter_mm: Numbers = 300.0,
    edge_exclusion_mm: Numbers = 3.0,
    scribe_mm: Numbers = 0.1,
) -> float | FloatArray:
    """Closed estimate pi (r - edge)^2 / A' - pi (d - 2 edge) / sqrt(2 A'), with A' the die plus its scribe line.

    A check on the placed count, which it underrates: it is no upper bound.

    >>> round(gross_dies_formula(814**0.5, 814**0.5), 2), round(gross_dies_formula(814**0.5, 814**0.5, 300, 0, 0), 2)
    (60.01, 63.48)
    """
    cell = _pitch(die_width_mm, scribe_mm, "width") * _pitch(die_height_mm, scribe_mm, "height")
    usable = positive("wafer_diameter_mm", wafer_diameter_mm) - 2.0 * positive("edge", edge_exclusion_mm, zero=True)
    count = np.pi * usable**2 / 4.0 / cell - np.pi * usable / np.sqrt(2.0 * cell)
    if np.any(count <= 0):
        raise ManufacturingError("the formula gives no die: the die is too large for it; use method='placed'")
    return unwrap(count)


def _pitch(side_mm: Numbers, scribe_mm: Numbers, name: str) -> FloatArray:
    return positive(f"die_{name}_mm", side_mm) + positive("scribe_mm", scribe_mm, zero=True)


@overload
def gross_dies(
    die_width_mm: float,
    die_height_mm: float,
    wafer_diameter_mm: float = ...,
    edge_exclusion_mm: float = ...,
    scribe_mm: float = ...,
    method: Literal["placed"] = ...,
    *,
    field_mm: tuple[float, float] | None = ...,
    full_shots: bool = ...,
) -> int: ...
@overload
def gross_dies(
    die_width_mm: Numbers,
    die_height_mm: Numbers,
    wafer_diameter_mm: Numbers = ...,
    edge_exclusion_mm: Numbers = ...,
    scribe_mm: Numbers = ...,
    method: str = ...,
    *,
    field_mm: tuple[float, float] | None = ...,
    full_shots: bool = ...,
) -> int | float | FloatArray | npt.NDArray[np.int_]: ...
def gross_dies(
    die_width_mm: Numbers,
    die_height_mm: Numbers,
    wafer_diameter_mm: Numbers = 300.0,
    edge_exclusion_mm: Numbers = 3.0,
    scribe_mm: Numbers = 0.1,
    method: str = "placed",
    *,
    field_mm: tuple[float, float] | None = None,
    full_shots: bool = False,
) -> int | float | FloatArray | npt.NDArray[np.int_]:
    """Whole dies on a wafer: `placed` on a grid at the best offset (exact count), or the closed `formula` (a float).

    Args:
        die_width_mm: die width without scribe, mm; arrays broadcast.
        die_height_mm: die height without scribe, mm.
        wafer_diameter_mm: 300 by default; 200 and others are allowed.
        edge_exclusion_mm: ring that holds no die.
        scribe_mm: gap between neighbours.
        method: `placed` or `formula`.
        field_mm: exposure field; when given, a die that does not fit it with its scribe line is refused.
        full_shots: count only dies of whole shots of `field_mm` (default the 26 x 33 mm field).

    Raises:
        ManufacturingError: when a size is impossible or no die fits, with what to change. Never a silent 0.

    >>> gross_dies(814**0.5, 814**0.5), gross_dies(26, 814 / 26)
    (68, 67)
    """
    if method not in ("placed", "formula"):
        raise ManufacturingError(f"method {method!r} is not known; choose placed or formula")
    if method == "formula":
        return gross_dies_formula(die_width_mm, die_height_mm, wafer_diameter_mm, edge_exclusion_mm, scribe_mm)
    field = FIELD_MM if full_shots and field_mm is None else field_mm
    inputs = np.broadcast_arrays(
        positive("die_width_mm", die_width_mm),
        positive("die_height_mm", die_height_mm),
        positive("wafer_diameter_mm", wafer_diameter_mm),
        positive("edge_exclusion_mm", edge_exclusion_mm, zero=True),
        positive("scribe_mm", scribe_mm, zero=True),
    )
    if inputs[0].ndim == 0:
        return _count(*(float(v) for v in inputs), field, full_shots)
    rows = np.stack([v.ravel() for v in inputs], axis=1)
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    counts = np.array([_count(*row.tolist(), field, full_shots) for row in distinct])
    return counts[inverse.ravel()].reshape(inputs[0].shape)


@lru_cache(maxsize=4096)
def _count(
    width: float,
    height: float,
    diameter: float,
    edge: float,
    scribe: float,
    field: tuple[float, float] | None,
    full_shots: bool,
) -> int:
    wafer = Wafer(diameter, edge)
    if field is None:
        return place(width, height, wafer, scribe).count
    across, up = dies_per_shot(width, height, scribe, field)
    if not full_shots:
        return place(width, height, wafer, scribe).count
    shot = (across * (width + scribe) - scribe, up * (height + scribe) - scribe)
    return place(*shot, wafer, scribe).count * across * up


def dies_per_shot(
    die_width_mm: float, die_height_mm: float, scribe_mm: float = 0.1, field_mm: tuple[float, float] = FIELD_MM
) -> tuple[int, int]:
    """Dies across and up in one exposure, each with its scribe line, as oriented.

    Raises:
        ManufacturingError: when die plus scribe exceeds the field, so that it cannot be printed in one exposure.

    >>> dies_per_shot(12.9, 16.4), dies_per_shot(26, 33, 0.0)
    ((2, 2), (1, 1))
    """
    pitch = (die_width_mm + scribe_mm, die_height_mm + scribe_mm)
    fits = [int(np.floor(side / step + 1e-9)) for side, step in zip(field_mm, pitch, strict=True)]
    if min(fits) < 1:
        raise ManufacturingError(
            f"die plus scribe is {pitch[0]:g} x {pitch[1]:g} mm, larger than the exposure field "
            f"{field_mm[0]:g} x {field_mm[1]:g} mm: shrink the die or the scribe line, turn the die, or stitch"
        )
    return fits[0], fits[1]


def place(
    die_width_mm: float, die_height_mm: float, carrier: Wafer | Panel | None = None, scribe_mm: float = 0.1
) -> Placement:
    """Place whole dies of one size on a regular grid, at the offset that holds the most.

    Raises:
        ManufacturingError: when not one die fits the usable area, or a panel side exceeds 600 mm.

    >>> place(100.0, 100.0, Panel(510, 515)).count
    25
    """
    carrier = Wafer() if carrier is None else carrier
    width, height = float(positive("die_width_mm", die_width_mm)), float(positive("die_height_mm", die_height_mm))
    scribe = float(positive("scribe_mm", scribe_mm, zero=True))
    x, y = (
        _on_panel(width, height, carrier, scribe)
        if isinstance(carrier, Panel)
        else _on_wafer(width, height, carrier, scribe)
    )
    if x.size == 0:
        raise ManufacturingError(
            f"no die of {width:g} x {height:g} mm fits {carrier}: use a smaller die, a larger carrier or less edge"
        )
    return Placement(x, y, width, height, scribe, carrier)


def _on_panel(width: float, height: float, panel: Panel, scribe: float) -> tuple[FloatArray, FloatArray]:
    if max(panel.width_mm, panel.height_mm) > MAX_PANEL_MM:
        raise ManufacturingError(
            f"panel {panel.width_mm:g} x {panel.height_mm:g} mm: sides go up to {MAX_PANEL_MM:g} mm"
        )
    usable = (panel.width_mm - 2 * panel.edge_exclusion_mm, panel.height_mm - 2 * panel.edge_exclusion_mm)
    across, up = (
        max(0, int(np.floor((u + scribe) / (s + scribe) + 1e-9))) for u, s in zip(usable, (width, height), strict=True)
    )
    left = np.arange(across) * (width + scribe) - (across * (width + scribe) - scribe) / 2.0
    low = np.arange(up) * (height + scribe) - (up * (height + scribe) - scribe) / 2.0
    grid_x, grid_y = np.meshgrid(left, low)
    return grid_x.ravel(), grid_y.ravel()


def _on_wafer(width: float, height: float, wafer: Wafer, scribe: float) -> tuple[FloatArray, FloatArray]:
    radius = wafer.usable_radius_mm
    if radius <= 0:
        raise ManufacturingError(
            f"edge exclusion {wafer.edge_exclusion_mm:g} mm leaves nothing of a {wafer.diameter_mm:g} mm wafer"
        )
    barred = None
    if wafer.notch_depth_mm > 0:
        barred = (wafer.notch_width_mm / 2.0, -(radius - wafer.notch_depth_mm))
    return best_offset((width, height), (width + scribe, height + scribe), radius, barred)
