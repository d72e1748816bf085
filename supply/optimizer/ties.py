"""Choose one plan among equally good ones, always the same."""

from __future__ import annotations

import numpy as np
from highspy import HighsModelStatus

from supply.network import Array
from supply.optimizer.engine import Engine
from supply.optimizer.evidence import matrix_of

TOLERANCE = 1e-7


def settle(engine: Engine, x: Array, y: Array) -> Array:
    """Least stock and least starts on the optimal face; early and first-named before late and last-named.

    The face is described without an objective row: a column with a reduced cost stays where it is, a row with a price
    stays at its limit (strict complementarity on one side is enough for every optimum). Returns `x` where the second
    solve does not succeed; the engine is left as it was found.
    """
    reduced = engine.cost - matrix_of(engine).T @ y
    held = np.abs(reduced) > TOLERANCE * max(1.0, float(np.abs(engine.cost).max(initial=0.0)))
    bound = np.abs(y) > TOLERANCE * max(1.0, float(np.abs(y).max(initial=0.0)))
    cost, rows = engine.cost.copy(), (engine.row_lower.copy(), engine.row_upper.copy())
    columns, basis = (engine.col_lower.copy(), engine.col_upper.copy()), engine.highs.getBasis()
    activity = matrix_of(engine) @ x
    value = np.clip(x, *columns)
    try:
        engine.set_col_bounds(np.where(held, value, columns[0]), np.where(held, value, columns[1]))
        tight_low = np.where(bound & (y > 0) & np.isfinite(rows[1]), np.minimum(rows[1], activity), rows[0])
        tight_high = np.where(bound & (y < 0) & np.isfinite(rows[0]), np.maximum(rows[0], activity), rows[1])
        engine.set_row_bounds(np.minimum(tight_low, tight_high), np.maximum(tight_low, tight_high))
        engine.set_costs(_secondary(engine))
        engine.restore_basis(basis)
        if engine.run() != HighsModelStatus.kOptimal:
            return x
        settled = np.array(engine.highs.getSolution().col_value)
    finally:
        engine.set_costs(cost)
        engine.set_row_bounds(*rows)
        engine.set_col_bounds(*columns)
        engine.restore_basis(basis)
    # a face described with a tolerance may leak: keep the first plan rather than a worse one
    leak = float(cost @ x - cost @ settled)
    return settled if leak <= 1e-7 * max(1.0, abs(float(cost @ x))) else x


def _secondary(engine: Engine) -> Array:
    """Cost of a unit of each column: stocks most, then starts, with a fixed fraction by position and period."""
    weight = {"stock": 1.0, "start": 0.5, "backlog": 0.25, "energise": 0.1, "build": 0.1, "discard": 0.0}
    cost = np.zeros(len(engine.matrix.columns))
    for j, (name, key) in enumerate(engine.matrix.columns):
        if name in weight:
            cost[j] = -weight[name] * (1 + 0.003 * (key[-1] + 1)) - 1e-3 * ((j * 2654435761) % 1024) / 1024
    return cost
