"""Figure data of a wafer map: every die site with its state on a simulated wafer, and the defects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from supply.manufacturing.numeric import FloatArray, positive
from supply.manufacturing.rate_mixture import sample_rates
from supply.manufacturing.wafer import Placement, Wafer, place
from supply.manufacturing.yield_models import MM2_PER_CM2, die_yield

__all__ = ["WaferMap", "wafer_map"]


@dataclass(frozen=True)
class WaferMap:
    """Sites (lower left corner, mm from the centre), their state (good, bad, partial at the edge), and defects."""

    x_mm: FloatArray
    y_mm: FloatArray
    state: npt.NDArray[np.str_]
    defect_x_mm: FloatArray
    defect_y_mm: FloatArray
    placement: Placement
    usable_radius_mm: float
    expected_yield: float

    def count(self, state: str) -> int:
        """Number of sites in a state."""
        return int((self.state == state).sum())


def wafer_map(
    die_width_mm: float,
    die_height_mm: float,
    defects_per_cm2: float,
    *,
    model: str = "negative_binomial",
    alpha: float = 3.0,
    wafer: Wafer | None = None,
    scribe_mm: float = 0.1,
    seed: int = 7,
) -> WaferMap:
    """One simulated wafer: dies at the best offset, each with a defect rate drawn from the yield model's spread.

    `expected_yield` is the model's; one wafer scatters about it. The same seed gives the same map.

    Raises:
        ManufacturingError: as `place`, and for a negative density.

    >>> m = wafer_map(26, 31.3, 0.1)
    >>> m.count("good") + m.count("bad")
    67
    """
    carrier = Wafer() if wafer is None else wafer
    spot = place(die_width_mm, die_height_mm, carrier, scribe_mm)
    rng = np.random.default_rng(seed)
    mean = float(positive("defects_per_cm2", defects_per_cm2, zero=True)) * die_width_mm * die_height_mm / MM2_PER_CM2
    counts = rng.poisson(mean * sample_rates(model, spot.count, rng, alpha))
    owner = np.repeat(np.arange(spot.count), counts)
    defect_x = spot.x_mm[owner] + rng.uniform(0, die_width_mm, owner.size)
    defect_y = spot.y_mm[owner] + rng.uniform(0, die_height_mm, owner.size)
    edge_x, edge_y = _partial_sites(spot, carrier)
    state = np.concatenate([np.where(counts == 0, "good", "bad"), np.full(edge_x.size, "partial")])
    return WaferMap(
        np.concatenate([spot.x_mm, edge_x]),
        np.concatenate([spot.y_mm, edge_y]),
        state,
        defect_x,
        defect_y,
        spot,
        carrier.usable_radius_mm,
        float(np.asarray(die_yield(die_width_mm * die_height_mm, defects_per_cm2, model, alpha))),
    )


def _partial_sites(spot: Placement, wafer: Wafer) -> tuple[FloatArray, FloatArray]:
    """Grid sites that touch the wafer without lying whole in its usable part."""
    width, height = spot.die_width_mm, spot.die_height_mm
    pitch_x, pitch_y = width + spot.scribe_mm, height + spot.scribe_mm
    radius = wafer.diameter_mm / 2.0
    columns = np.arange(-int(radius / pitch_x) - 2, int(radius / pitch_x) + 3)
    rows = np.arange(-int(radius / pitch_y) - 2, int(radius / pitch_y) + 3)
    grid_x, grid_y = np.meshgrid(spot.x_mm[0] % pitch_x + columns * pitch_x, spot.y_mm[0] % pitch_y + rows * pitch_y)
    x, y = grid_x.ravel(), grid_y.ravel()
    near_x, near_y = np.clip(0.0, x, x + width), np.clip(0.0, y, y + height)
    touches = near_x**2 + near_y**2 < radius**2
    whole = {(round(a, 6), round(b, 6)) for a, b in zip(spot.x_mm, spot.y_mm, strict=True)}
    free = np.array([(round(a, 6), round(b, 6)) not in whole for a, b in zip(x, y, strict=True)])
    return x[touches & free], y[touches & free]
