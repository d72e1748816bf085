"""A persistent HiGHS model: the matrix passed once, edited in place, started from a known basis."""

from __future__ import annotations

from typing import Any, cast

import highspy
import numpy as np
from highspy import HighsLp, HighsModelStatus, MatrixFormat, ObjSense

from supply.network import Array
from supply.optimizer.errors import SolveError
from supply.optimizer.matrix import Matrix
from supply.optimizer.quiet import quiet_highs

SIMPLEX_ROWS = 3000
"""Up to this many rows the first solve uses simplex, above it interior point with crossover (measured boundary)."""

DUAL, PRIMAL = 1, 4
"""Simplex methods by HiGHS' numbers."""
PRIMAL_PIVOTS = 20
"""Primal simplex without perturbation could cycle: after this many iterations a row it is given up for a cold solve."""

MIP_GAP = 1e-6
MIP_SECONDS = 120.0
"""Lumps are planned to this relative gap, or as well as this many seconds allow; the gap reached is reported."""


class Engine:
    """Arrays of one linear programme inside one `Highs` object."""

    def __init__(self, matrix: Matrix, theta: Array, solver: str = "auto") -> None:
        self.matrix = matrix
        self.data, self.rhs, self.cost = self._numbers(theta)
        self.col_lower = np.zeros(len(matrix.columns))
        self.col_upper = matrix.col_upper.copy()
        self.row_lower, self.row_upper = self._row_bounds(self.rhs)
        self.solver = solver
        self.first_basis: Any = None
        self.highs = quiet_highs()
        self.highs.setOptionValue("simplex_dual_edge_weight_strategy", 1)  # devex: cheapest for short warm solves
        self.highs.setOptionValue("simplex_scale_strategy", 4)  # measured: up to 1.7 times fewer warm iterations
        self.whole = False
        self._lp = self._frame()
        self.pass_anew()

    def _numbers(self, theta: Array) -> tuple[Array, Array, Array]:
        m = self.matrix
        return m.coefficient.fill(theta), m.rhs.fill(theta), m.cost.fill(theta)

    def _row_bounds(self, rhs: Array) -> tuple[Array, Array]:
        kind = self.matrix.kind
        return np.where(kind == 1, -np.inf, rhs), np.where(kind == -1, np.inf, rhs)

    def _frame(self) -> HighsLp:
        m, lp = self.matrix, HighsLp()
        lp.num_col_, lp.num_row_ = len(m.columns), len(m.rows)
        lp.a_matrix_.format_ = MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = m.start, m.index
        lp.sense_ = ObjSense.kMaximize
        return lp

    def pass_anew(self) -> None:
        """Hand the current arrays over as a new model: what was solved before is forgotten."""
        lp = self._lp
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = self.cost, self.col_lower, self.col_upper
        lp.row_lower_, lp.row_upper_, lp.a_matrix_.value_ = self.row_lower, self.row_upper, self.data
        self.highs.passModel(lp)

    @property
    def column_of_entry(self) -> Any:
        """Column number of every stored matrix entry."""
        return np.repeat(np.arange(len(self.matrix.columns)), np.diff(self.matrix.start))

    def edit(self, theta: Array) -> None:
        """Write the numbers that differ from the current ones.

        The basis is kept, unless `whole` is set: then the model is passed anew, which is faster from about 500 entries
        on, and leaves nothing of the solve before (its factors would change the pivots of a draw with the same matrix).
        """
        data, rhs, cost = self._numbers(theta)
        if self.whole:
            self.data, self.rhs, self.cost = data, rhs, cost
            self.row_lower, self.row_upper = self._row_bounds(rhs)
            self.pass_anew()
            return
        changed = np.flatnonzero(data != self.data)
        if len(changed):
            columns = np.searchsorted(self.matrix.start, changed, side="right") - 1
            edit = self.highs.changeCoeff
            rows = self.matrix.index[changed].tolist()
            for r, c, v in zip(rows, columns.tolist(), data[changed].tolist(), strict=True):
                edit(r, c, v)
            self.data = data
        if not np.array_equal(rhs, self.rhs):
            self.rhs = rhs
            self.set_row_bounds(*self._row_bounds(rhs))
        changed = np.flatnonzero(cost != self.cost)
        if len(changed):
            self.cost = cost
            self.highs.changeColsCost(len(changed), changed.astype(np.int32), cost[changed])

    def set_row_bounds(self, lower: Array, upper: Array) -> None:
        """Replace row bounds (only those that differ are passed on)."""
        changed = np.flatnonzero((lower != self.row_lower) | (upper != self.row_upper)).astype(np.int32)
        self.row_lower, self.row_upper = lower.copy(), upper.copy()
        if len(changed):
            self.highs.changeRowsBounds(len(changed), changed, lower[changed], upper[changed])

    def set_col_bounds(self, lower: Array, upper: Array) -> None:
        """Replace column bounds (only those that differ are passed on)."""
        changed = np.flatnonzero((lower != self.col_lower) | (upper != self.col_upper)).astype(np.int32)
        self.col_lower, self.col_upper = lower.copy(), upper.copy()
        if len(changed):
            self.highs.changeColsBounds(len(changed), changed, lower[changed], upper[changed])

    def set_costs(self, cost: Array) -> None:
        """Replace the objective."""
        changed = np.flatnonzero(cost != self.cost).astype(np.int32)
        self.cost = cost.copy()
        if len(changed):
            self.highs.changeColsCost(len(changed), changed, cost[changed])

    def nominal_rows(self) -> tuple[Array, Array]:
        """Row bounds that follow from the current numbers, without any perturbation."""
        return self._row_bounds(self.rhs)

    def run(self, warm: bool = True, far: bool = False) -> HighsModelStatus:
        """Solve the current arrays as a linear programme, from the current basis if `warm`; returns the status.

        `far`: costs moved as well as limits, so that the basis is neither primal nor dual feasible; primal simplex is
        then the shorter way (measured: 0.6 of the time of dual simplex, which has to go through its first phase).
        """
        if not warm:
            self.highs.clearSolver()
        has_basis = warm and self.highs.getBasis().valid
        self._options(has_basis, far and has_basis)
        self.highs.run()
        status = self.highs.getModelStatus()
        if status == HighsModelStatus.kOptimal:
            return cast(HighsModelStatus, status)
        if has_basis:  # a basis that became singular is no verdict: start from nothing
            return self.run(warm=False)
        return self._without_presolve() if status != HighsModelStatus.kInfeasible else status

    def _options(self, has_basis: bool, primal: bool) -> None:
        set_option = self.highs.setOptionValue
        set_option("solver", self._algorithm(has_basis))
        # a warm solve is short: what is perturbed would only have to be taken back (up to twice as slow)
        set_option("dual_simplex_cost_perturbation_multiplier", 0.0 if has_basis else 1.0)
        set_option("primal_simplex_bound_perturbation_multiplier", 0.0 if primal else 1.0)
        set_option("simplex_strategy", PRIMAL if primal else DUAL)
        set_option("simplex_iteration_limit", PRIMAL_PIVOTS * len(self.matrix.rows) if primal else 2**31 - 1)

    def _without_presolve(self) -> HighsModelStatus:
        """Simplex without presolve: tells infeasible from unbounded."""
        self.highs.clearSolver()
        self.highs.setOptionValue("presolve", "off")
        self.highs.setOptionValue("solver", "simplex")
        self.highs.run()
        self.highs.setOptionValue("presolve", "choose")
        return cast(HighsModelStatus, self.highs.getModelStatus())

    def _algorithm(self, has_basis: bool) -> str:
        if self.solver != "auto":
            return self.solver
        return "simplex" if has_basis or len(self.matrix.rows) <= SIMPLEX_ROWS else "ipm"

    def keep_basis(self) -> None:
        """Remember the current basis as the start of later solves (`restore_basis`)."""
        self.first_basis = self.highs.getBasis()

    def restore_basis(self, basis: Any = None) -> None:
        """Start the next solve from a basis (default: the one kept), so that results do not depend on the order."""
        basis = basis if basis is not None else self.first_basis
        if basis is not None and basis.valid:
            self.highs.setBasis(basis)

    def run_integer(self) -> tuple[float, HighsModelStatus]:
        """Solve with the integer columns, then fix them at the optimum; returns the relative gap and the status.

        The linear programme that is left has valid prices *given the plan*; `release_integers` undoes the fixing.
        """
        columns = self.matrix.integer.astype(np.int32)
        integer = np.full(len(columns), int(highspy.HighsVarType.kInteger), dtype=np.uint8)
        self.highs.setOptionValue("solver", "choose")
        self.highs.setOptionValue("mip_rel_gap", MIP_GAP)
        self.highs.setOptionValue("time_limit", self.highs.getRunTime() + MIP_SECONDS)
        self.highs.changeColsIntegrality(len(columns), columns, integer)
        self.highs.run()
        status = self.highs.getModelStatus()
        self.highs.setOptionValue("time_limit", float("inf"))
        if status == HighsModelStatus.kTimeLimit and np.isfinite(self.highs.getInfo().mip_gap):
            status = HighsModelStatus.kOptimal  # a plan within the gap that is reported
        gap = float(self.highs.getInfo().mip_gap)
        plan = (
            np.rint(np.asarray(self.highs.getSolution().col_value)[columns])
            if status == HighsModelStatus.kOptimal
            else None
        )
        self.highs.changeColsIntegrality(len(columns), columns, np.zeros(len(columns), dtype=np.uint8))
        if plan is not None:
            lower, upper = self.col_lower.copy(), self.col_upper.copy()
            lower[columns], upper[columns] = plan, plan
            self.set_col_bounds(lower, upper)
        return gap, status

    def release_integers(self) -> None:
        """Give fixed integer columns their own bounds back."""
        columns = self.matrix.integer
        lower, upper = self.col_lower.copy(), self.col_upper.copy()
        lower[columns], upper[columns] = 0.0, self.matrix.col_upper[columns]
        self.set_col_bounds(lower, upper)

    def point(self) -> tuple[Array, Array, Array]:
        """Primal values, row duals and reduced costs (d objective / d bound) of the last solve."""
        solution = self.highs.getSolution()
        if not solution.value_valid or not solution.dual_valid:
            raise SolveError("the solver returned no valid primal and dual values; report the scenario")
        return np.array(solution.col_value), np.array(solution.row_dual), np.array(solution.col_dual)
