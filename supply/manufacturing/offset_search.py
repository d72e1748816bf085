"""The grid offset that puts the most whole rectangles inside a circle.

A die fits when its four corners lie in the circle, so in the plane of offsets each corner contributes a disc, and the
number of fitting dies changes only on arcs of these circles. The most is reached at a crossing of two arcs (a vertex
of the arrangement): testing every crossing in one grid cell is exact. Above `EXACT_LIMIT` circles (dies much smaller
than the wafer, where one die more or less is under a thousandth) rows are filled exactly along x for a fine set of y
offsets instead.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from supply.manufacturing.numeric import FloatArray

__all__ = ["best_offset"]

EXACT_LIMIT = 320
_ROW_STEPS = 256
_GRID = 24
_TOLERANCE_MM = 1e-7
_CHUNK = 2_000_000

Pair = tuple[float, float]


@lru_cache(maxsize=2048)
def best_offset(die: Pair, pitch: Pair, radius: float, barred: Pair | None = None) -> tuple[FloatArray, FloatArray]:
    """Lower left corners of the dies at the best offset.

    Args:
        die: width and height, mm.
        pitch: grid steps, mm.
        radius: usable radius, mm.
        barred: half width and upper edge (negative y) of a notch zone at the bottom that no die may touch.

    >>> best_offset((10.0, 10.0), (10.0, 10.0), 7.08)[0].size
    1
    """
    base = _lattice(pitch, radius)
    candidates = _candidates(base, die, pitch, radius)
    if barred is not None:
        candidates = np.concatenate([candidates, _grid(pitch, 4 * _GRID)])
    counts = (
        _row_counts(candidates, die, pitch, radius)
        if barred is None
        else _counts(candidates, base, die, radius, barred)
    )
    x, y = (base + candidates[int(np.argmax(counts))]).T
    inside = _fits(x, y, die, radius, barred)
    found = x[inside], y[inside]
    for axis in found:
        axis.setflags(write=False)  # the result is cached
    return found


def _lattice(pitch: Pair, radius: float) -> FloatArray:
    axes = [np.arange(-int(radius / p) - 2, int(radius / p) + 2) * p for p in pitch]
    grid_x, grid_y = np.meshgrid(*axes)
    return np.stack([grid_x.ravel(), grid_y.ravel()], axis=1)


def _fits(x: FloatArray, y: FloatArray, die: Pair, radius: float, barred: Pair | None) -> npt.NDArray[np.bool_]:
    far_x = np.abs(x + die[0] / 2) + die[0] / 2
    far_y = np.abs(y + die[1] / 2) + die[1] / 2
    inside = far_x**2 + far_y**2 <= (radius + _TOLERANCE_MM) ** 2
    if barred is not None:
        inside &= ~((np.abs(x + die[0] / 2) < die[0] / 2 + barred[0]) & (y < barred[1]))
    return inside


def _row_counts(offsets: FloatArray, die: Pair, pitch: Pair, radius: float) -> FloatArray:
    """Dies that fit at each offset, row by row: a row holds the grid steps within the chord at its far edge."""
    rows = np.arange(-int(radius / pitch[1]) - 2, int(radius / pitch[1]) + 2) * pitch[1]
    low = offsets[:, 1:] + rows
    far = np.maximum(np.abs(low), np.abs(low + die[1]))
    room = (radius + _TOLERANCE_MM) ** 2 - far**2
    chord = np.sqrt(np.maximum(room, 0.0))
    first = np.ceil((-chord - offsets[:, :1]) / pitch[0])
    last = np.floor((chord - die[0] - offsets[:, :1]) / pitch[0])
    held: FloatArray = np.where(room > 0, np.maximum(last - first + 1.0, 0.0), 0.0).sum(axis=1)
    return held


def _counts(
    offsets: FloatArray, base: FloatArray, die: Pair, radius: float, barred: Pair | None
) -> npt.NDArray[np.int64]:
    step = max(1, _CHUNK // len(base))
    parts = [
        _fits(base[:, 0] + block[:, :1], base[:, 1] + block[:, 1:], die, radius, barred).sum(axis=1)
        for block in np.split(offsets, range(step, len(offsets), step))
    ]
    return np.concatenate(parts)


def _grid(pitch: Pair, steps: int) -> FloatArray:
    axes = [np.linspace(0.0, p, steps, endpoint=False) for p in pitch]
    grid_x, grid_y = np.meshgrid(*axes)
    return np.stack([grid_x.ravel(), grid_y.ravel()], axis=1)


def _candidates(base: FloatArray, die: Pair, pitch: Pair, radius: float) -> FloatArray:
    corners = _boundary_corners(base, die, pitch, radius)
    if len(corners) > EXACT_LIMIT:
        return _row_candidates(die, pitch, radius)
    crossings = _crossings(corners, radius)
    inside = np.all((crossings >= -_TOLERANCE_MM) & (crossings <= np.array(pitch) + _TOLERANCE_MM), axis=1)
    return np.concatenate([crossings[inside], _grid(pitch, 4)])


def _boundary_corners(base: FloatArray, die: Pair, pitch: Pair, radius: float) -> FloatArray:
    """Corners of dies that fit at some offsets of the cell and not at others; only these make the count change."""
    corners = np.concatenate([base + np.array([a * die[0], b * die[1]]) for a in (0, 1) for b in (0, 1)])
    middle = corners + np.array(pitch) / 2
    reach = np.hypot(*pitch) / 2
    near = np.abs(np.hypot(middle[:, 0], middle[:, 1]) - radius) <= reach
    return np.unique(np.round(corners[near], 9), axis=0)


def _crossings(centres: FloatArray, radius: float) -> FloatArray:
    """Offsets at which two corners lie on the circle at once."""
    i, j = np.triu_indices(len(centres), 1)
    half = (centres[j] - centres[i]) / 2
    distance = np.hypot(half[:, 0], half[:, 1])
    keep = (distance > 0) & (distance < radius)
    half, distance = half[keep], distance[keep, None]
    middle = -(centres[i] + centres[j])[keep] / 2
    normal = np.stack([-half[:, 1], half[:, 0]], axis=1) / distance
    rise = normal * np.sqrt(radius**2 - distance**2)
    return np.concatenate([middle + rise, middle - rise])


def _row_candidates(die: Pair, pitch: Pair, radius: float) -> FloatArray:
    """For each of a fine set of y offsets every x offset at which a row gains a die: exact along x."""
    rows = np.arange(-int(radius / pitch[1]) - 2, int(radius / pitch[1]) + 2) * pitch[1]
    found = []
    for start in np.linspace(0, pitch[1], _ROW_STEPS, endpoint=False):
        far = np.maximum(np.abs(rows + start), np.abs(rows + start + die[1]))
        chord = np.sqrt(radius**2 - far[far < radius] ** 2)
        offsets = np.unique(np.concatenate([-chord % pitch[0], (chord - die[0]) % pitch[0]]))
        tried = np.stack([offsets, np.full(len(offsets), start)], axis=1)
        found.append(tried[int(np.argmax(_row_counts(tried, die, pitch, radius)))])
    return np.array(found)
