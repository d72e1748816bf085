"""Compile the Pyomo model once, with fingerprints in place of numbers, into a matrix that knows its parameters.

Parameter number i enters the model as i + 2.5. Every entry of the compiled matrix, right-hand side and objective is
then +-1 (or 0), or +-(i + 2.5): the map from parameters to entries is read off, not written down a second time.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

from supply.network import Array
from supply.optimizer.context import Context
from supply.optimizer.formulation import pyomo_model

IntArray = NDArray[np.int64]
OFFSET = 2.5


@dataclass(frozen=True)
class Entries:
    """An array whose entries are constants or +- one parameter: `fill(theta)` gives its numbers."""

    constant: Array
    position: IntArray
    parameter: IntArray
    sign: Array

    @classmethod
    def read(cls, marked: Array, what: str) -> Entries:
        """Entries of an array compiled with fingerprints. Raises `AssertionError` for one that mixes parameters."""
        size = np.abs(marked)
        held = size >= OFFSET
        parameter = np.rint(size[held] - OFFSET).astype(np.int64)
        assert np.array_equal(size[held], parameter + OFFSET), f"{what}: an entry is not exactly one parameter"
        assert np.all(np.isin(size[~held], (0.0, 1.0))), f"{what}: a number in the formulation is not a parameter"
        return cls(np.where(held, 0.0, marked), np.flatnonzero(held), parameter, np.sign(marked[held]))

    def fill(self, theta: Array) -> Array:
        """Numbers for a parameter vector."""
        numbers = self.constant.copy()
        numbers[self.position] = self.sign * theta[self.parameter]
        return numbers


@dataclass(frozen=True)
class Matrix:
    """Compressed columns of the linear programme (maximise c x, row kind -1: >=, 0: =, 1: <=)."""

    start: NDArray[np.int32]
    index: NDArray[np.int32]
    coefficient: Entries
    rhs: Entries
    cost: Entries
    kind: NDArray[np.int8]
    col_upper: Array
    integer: IntArray
    rows: list[tuple[str, Any]]
    columns: list[tuple[str, Any]]


def _index(component: Any) -> Any:
    key = component.index()
    return key if isinstance(key, tuple) else (key,)


def compile_matrix(context: Context) -> Matrix:
    """Matrix of a formulation with the map of its parameters."""
    count = len(context.table.parameters) * context.table.length
    collecting = gc.isenabled()
    gc.disable()  # hundreds of thousands of small objects, none of them garbage: collecting them costs a third
    try:
        return _matrix(pyomo_model(context, np.arange(count, dtype=np.float64) + OFFSET))
    finally:
        if collecting:
            gc.enable()


def _standard_form(model: Any) -> Any:
    form = LinearStandardFormCompiler().write(model, mixed_form=True, set_sense=pyo.maximize)
    form.A.sort_indices()
    return form


def _matrix(model: Any) -> Matrix:
    form = _standard_form(model)
    columns = [(v.parent_component().local_name, _index(v)) for v in form.columns]
    upper = np.array([np.inf if v.ub is None else float(v.ub) for v in form.columns])
    return Matrix(
        form.A.indptr.astype(np.int32),
        form.A.indices.astype(np.int32),
        Entries.read(np.asarray(form.A.data, dtype=float), "matrix"),
        Entries.read(np.asarray(form.rhs, dtype=float), "right-hand side"),
        Entries.read(np.asarray(form.c.todense(), dtype=float).ravel(), "objective"),
        np.array([entry.bound_type for entry in form.rows], dtype=np.int8),
        upper,
        np.array([j for j, v in enumerate(form.columns) if not v.is_continuous()], dtype=np.int64),
        [(entry.constraint.parent_component().local_name, _index(entry.constraint)) for entry in form.rows],
        columns,
    )


def fresh_entries(context: Context, theta: Array) -> dict[tuple[Any, Any], float]:
    """Non-zero entries of a compile with the real numbers, by component: the check of the map (a test)."""
    form = _standard_form(pyomo_model(context, theta))
    rows = [(e.constraint.parent_component().local_name, _index(e.constraint)) for e in form.rows]
    columns = [(v.parent_component().local_name, _index(v)) for v in form.columns]
    matrix, cost = form.A.tocoo(), np.asarray(form.c.todense()).ravel()
    table: dict[tuple[Any, Any], float] = {
        (rows[i], columns[j]): float(v) for i, j, v in zip(matrix.row, matrix.col, matrix.data, strict=True)
    }
    table |= {(rows[i], "rhs"): float(v) for i, v in enumerate(form.rhs) if v}
    return table | {("objective", columns[j]): float(v) for j, v in enumerate(cost) if v}


def edited_entries(matrix: Matrix, theta: Array) -> dict[tuple[Any, Any], float]:
    """Non-zero entries of the edited matrix in the form of `fresh_entries`."""
    data, rhs, cost = (entries.fill(theta) for entries in (matrix.coefficient, matrix.rhs, matrix.cost))
    table: dict[tuple[Any, Any], float] = {}
    for j, column in enumerate(matrix.columns):
        for k in range(matrix.start[j], matrix.start[j + 1]):
            if data[k]:
                table[matrix.rows[matrix.index[k]], column] = float(data[k])
    table |= {(matrix.rows[i], "rhs"): float(v) for i, v in enumerate(rhs) if v}
    return table | {("objective", matrix.columns[j]): float(v) for j, v in enumerate(cost) if v}
