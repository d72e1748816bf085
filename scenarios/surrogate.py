"""Sobol indices of two or three inputs from a grid of solves: many samples of an interpolation, its error measured.

An optimum is piecewise smooth in its inputs; with few inputs a grid of a few hundred solves pins it down better than
thousands of random points, whose indices still carry sampling noise. The interpolation error is measured at points that
were not used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
from scipy.interpolate import RegularGridInterpolator

from scenarios.nodes import Array

__all__ = ["NODES", "check_points", "grid_points", "interpolators"]

#: Grid nodes per input, by number of inputs.
NODES = {2: 15, 3: 9}
TESTS = 24


def _axis(count: int) -> Array:
    """Ranks from just above 0 to just below 1, closer at the ends."""
    nodes = 0.5 - 0.5 * np.cos(np.pi * np.arange(count) / (count - 1))
    return np.asarray(np.clip(nodes, 1e-6, 1.0 - 1e-6))


def grid_points(inputs: int) -> Array:
    """Grid of ranks for two or three inputs, one row a point.

    >>> grid_points(2).shape
    (225, 2)
    """
    axis = _axis(NODES[inputs])
    return np.array(list(product(axis, repeat=inputs)))


def check_points(inputs: int, seed: int) -> Array:
    """Ranks at which the interpolation is tested."""
    return np.asarray(np.clip(np.random.default_rng(seed).random((TESTS, inputs)), 1e-6, 1.0 - 1e-6))


def interpolators(values: Array, inputs: int) -> list[Callable[[Array], Array]]:
    """One multilinear interpolation per column of the values at `grid_points`."""
    axis = _axis(NODES[inputs])
    shape = (len(axis),) * inputs
    made: list[Callable[[Array], Array]] = []
    for column in values.T:
        table = RegularGridInterpolator((axis,) * inputs, column.reshape(shape), bounds_error=False, fill_value=None)
        made.append(partial(_read, table))
    return made


def _read(table: RegularGridInterpolator, points: Array) -> Array:
    return np.asarray(table(points), dtype=float)
