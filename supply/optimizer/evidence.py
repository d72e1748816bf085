"""Proof that a solution is optimal, computed from the arrays alone (nothing is taken from the solver's word)."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import scipy.sparse as sp

from supply.network import Array
from supply.optimizer.engine import Engine


@dataclass(frozen=True)
class Evidence:
    """Residuals in model units, gaps relative to the objective.

    primal_residual: largest violation of a row or bound. dual_residual: largest price with the wrong sign.
    gap: |primal - dual objective| / max(1, |objective|). complementarity: largest price x slack, relative likewise.
    """

    primal_residual: float
    dual_residual: float
    gap: float
    complementarity: float
    rows: int
    columns: int
    nonzeros: int
    solver: str
    mip_gap: float | None = None

    def as_dict(self) -> dict[str, float | int | str | None]:
        """Plain dictionary for manifests."""
        return asdict(self)

    @property
    def good(self) -> bool:
        """True where every figure is small enough to trust the prices."""
        return max(self.primal_residual, self.dual_residual, self.gap, self.complementarity) < 1e-5


def matrix_of(engine: Engine, data: Array | None = None) -> sp.csc_matrix:
    """The constraint matrix with the current (or other) coefficients."""
    m = engine.matrix
    numbers = engine.data if data is None else data
    return sp.csc_matrix((numbers, m.index, m.start), shape=(len(m.rows), len(m.columns)))


def _slack(value: Array, lower: Array, upper: Array, price: Array) -> tuple[Array, Array, Array]:
    """Bound that a price refers to, its distance, and the violation of bounds (maximise: positive price = upper)."""
    bound = np.where(price > 0, upper, np.where(price < 0, lower, value))
    violation = np.maximum(np.maximum(lower - value, value - upper), 0.0)
    return bound, np.where(np.isfinite(bound), np.abs(value - bound), 0.0), violation


@dataclass(frozen=True)
class Programme:
    """Arrays of one linear programme: maximise cost x, rows and columns between their bounds."""

    matrix: sp.csc_matrix
    cost: Array
    rows: tuple[Array, Array]
    columns: tuple[Array, Array]

    @classmethod
    def now(cls, engine: Engine) -> Programme:
        """What the engine holds at this moment."""
        return cls(
            matrix_of(engine), engine.cost, (engine.row_lower, engine.row_upper), (engine.col_lower, engine.col_upper)
        )

    @classmethod
    def of(cls, engine: Engine, theta: Array) -> Programme:
        """What the engine would hold for a parameter vector."""
        m = engine.matrix
        kind, rhs = m.kind, m.rhs.fill(theta)
        rows = (np.where(kind == 1, -np.inf, rhs), np.where(kind == -1, np.inf, rhs))
        columns = (np.zeros(len(m.columns)), m.col_upper)
        return cls(matrix_of(engine, m.coefficient.fill(theta)), m.cost.fill(theta), rows, columns)


def prove(programme: Programme, x: Array, y: Array, solver: str, mip_gap: float | None = None) -> Evidence:
    """Evidence for primal values `x` and row prices `y` of a linear programme."""
    matrix, cost = programme.matrix, programme.cost
    activity = matrix @ x
    reduced = cost - matrix.T @ y
    y_bound, y_slack, row_violation = _slack(activity, *programme.rows, y)
    z_bound, z_slack, col_violation = _slack(x, *programme.columns, reduced)
    wrong = np.concatenate([np.abs(y)[~np.isfinite(y_bound)], np.abs(reduced)[~np.isfinite(z_bound)]])
    primal = float(cost @ x)
    finite_y, finite_z = np.isfinite(y_bound), np.isfinite(z_bound)
    dual = float(y[finite_y] @ y_bound[finite_y] + reduced[finite_z] @ z_bound[finite_z])
    size = max(1.0, abs(primal))
    products = np.concatenate([np.abs(y) * y_slack, np.abs(reduced) * z_slack])
    return Evidence(
        float(max(row_violation.max(initial=0.0), col_violation.max(initial=0.0))),
        float(wrong.max(initial=0.0)),
        abs(primal - dual) / size,
        float(products.max(initial=0.0)) / size,
        matrix.shape[0],
        matrix.shape[1],
        int(np.count_nonzero(matrix.data)),
        solver,
        mip_gap,
    )
