"""Prices of limits and their check: re-solves with a limit moved a little, both ways.

The optimum is concave in a limit, so a valid price lies between the gain of +h and the loss of -h. A dual outside that
interval is an error; an interval wider than 1 % is printed as a range.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from highspy import HighsModelStatus

from supply.network import Array
from supply.optimizer.errors import SolveError

if TYPE_CHECKING:
    from supply.optimizer.solution import Solution

STEP = 1e-4
"""Relative move of a limit (halved once where the first interval is wide)."""
WIDE = 0.01
NOISE = 1e-11
"""Relative error of an objective that a difference of two may carry."""


class PriceError(SolveError):
    """A dual that lies outside its finite-difference interval."""


@dataclass(frozen=True)
class PriceRange:
    """Price of a row in model units, with the gain of one more and the loss of one less."""

    price: float
    low: float
    high: float


class Perturbed:
    """Re-solves near a solution: limits are moved in place and put back; each starts from the solution's basis."""

    def __init__(self, solution: Solution) -> None:
        self.solution = solution
        self.engine = solution.compiled.engine
        solution.compiled.restore(solution)
        self._integers = solution.compiled.hold_plan(solution)
        self.lower, self.upper = self.engine.row_lower.copy(), self.engine.row_upper.copy()
        self.objective = self._solve()
        self.vertex = np.array(self.engine.highs.getSolution().col_value)
        self.basis = self.engine.highs.getBasis()

    def _solve(self, warm: bool = True) -> float:
        if self.engine.run(warm) != HighsModelStatus.kOptimal:
            return -np.inf
        return float(self.engine.highs.getObjectiveValue())

    def moved(
        self, rows: Iterable[int], factor: float = 1.0, add: Array | float = 0.0, chain: bool = False
    ) -> tuple[float, Array, Array]:
        """Objective, primal values and row prices after `limit x factor + add` on some rows; -inf where infeasible.

        `chain` starts from the basis of the move before (a search along one limit), not from the solution's.
        """
        index = np.fromiter(rows, dtype=np.int64)
        lower, upper = self.lower.copy(), self.upper.copy()
        change = np.broadcast_to(np.asarray(add, dtype=float), len(index))
        for bound in (lower, upper):
            finite = np.isfinite(bound[index])
            bound[index[finite]] = bound[index[finite]] * factor + change[finite]
        return self._with(lower, upper, chain)

    def freed(self, rows: Iterable[int]) -> tuple[float, Array, Array]:
        """The same with some rows without a limit."""
        index = np.fromiter(rows, dtype=np.int64)
        lower, upper = self.lower.copy(), self.upper.copy()
        lower[index], upper[index] = -np.inf, np.inf
        return self._with(lower, upper, cold=True)  # far from here: the basis would be of no help

    def _with(self, lower: Array, upper: Array, chain: bool = False, cold: bool = False) -> tuple[float, Array, Array]:
        if not chain:
            self.engine.restore_basis(self.basis)
        self.engine.set_row_bounds(lower, upper)
        objective = self._solve(warm=not cold)
        found = self.engine.highs.getSolution()
        result = (objective, np.array(found.col_value), np.array(found.row_dual))
        self.engine.set_row_bounds(self.lower, self.upper)
        return result

    def close(self) -> None:
        """Put the engine back."""
        if self._integers:
            self.engine.release_integers()
        if self.solution.bounds is not None:
            self.engine.set_row_bounds(*self.engine.nominal_rows())
            self.engine.set_col_bounds(np.zeros(len(self.vertex)), self.engine.matrix.col_upper)
        self.engine.restore_basis(self.basis)

    def __enter__(self) -> Perturbed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def price_range(self, rows: list[tuple[int, float]]) -> PriceRange:
        """Price of rows that move together (row, weight) with its finite differences.

        The first row is the limit itself. Raises `PriceError` where the dual lies outside.
        """
        row = rows[0][0]
        price = float(sum(weight * self.solution.y[i] for i, weight in rows))
        limit = self.upper[row] if np.isfinite(self.upper[row]) else self.lower[row]
        step = STEP * max(abs(float(limit)), 1e-6)
        low, high = self._differences(rows, step)
        if high - low > WIDE * max(abs(price), abs(high)):
            finer = self._differences(rows, step / 2)
            low, high = max(low, finer[0]), min(high, finer[1])
        noise = 1e-6 * max(1.0, abs(price)) + NOISE * abs(self.objective) / step
        if not low - noise <= price <= high + noise:
            name, key = self.engine.matrix.rows[row]
            raise PriceError(
                f"price of {name}{key} is {price:.9g}, outside its finite differences {low:.9g} to {high:.9g}"
            )
        return PriceRange(price, min(low, price), max(high, price))

    def _differences(self, rows: list[tuple[int, float]], h: float) -> tuple[float, float]:
        index, weights = [i for i, _ in rows], np.array([weight for _, weight in rows])
        up = self.moved(index, add=h * weights)[0]
        down = self.moved(index, add=-h * weights)[0]
        return (up - self.objective) / h, (self.objective - down) / h
