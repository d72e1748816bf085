"""A network compiled once; new numbers are edited in place.

    compiled = Compiled(network)
    base = compiled.solve()
    compiled.update({"resources.cowos.capacity": 1.1 * network.get("resources.cowos.capacity")})
    more = compiled.solve()

The first solve is remembered as the *nominal* basis; every later solve starts from it, so that results do not depend on
the order of draws or on the number of workers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import version

import numpy as np
from highspy import HighsModelStatus
from numpy.typing import ArrayLike

from supply.consistency import require_consistent
from supply.network import Array, Network, spread
from supply.optimizer import relaxation
from supply.optimizer.engine import Engine
from supply.optimizer.errors import SizeError, SolveError
from supply.optimizer.evidence import Programme, prove
from supply.optimizer.formulation import estimated_rows, formulate
from supply.optimizer.matrix import compile_matrix
from supply.optimizer.opening import opening_notes, with_opening
from supply.optimizer.parameters import Scale
from supply.optimizer.solution import Solution, Structure
from supply.optimizer.ties import settle

STRUCTURAL = re.compile(r".*\.lead_time|expansions\..*\.life|fleet\..*\.tastes\..*|opening\.at_capacity")
"""Paths that decide which entries exist; a change of one compiles again."""

MOST_ROWS = 150_000
"""Larger programmes are refused with advice: interior point took eight minutes at 185,000 rows."""
SOLVER = f"HiGHS {version('highspy')}"


class Compiled:
    """One Pyomo compile, one persistent HiGHS model, a map from paths to entries."""

    def __init__(
        self,
        network: Network,
        scale: Scale | None = None,
        solver: str = "auto",
        check: bool = True,
        most_rows: int = MOST_ROWS,
    ) -> None:
        """Compile a network.

        Raises `ConsistencyError` with every error of the network unless `check` is False, `SizeError` where it would
        have more than `most_rows` rows.
        """
        self.most_rows = most_rows
        self.warnings = [str(problem) for problem in require_consistent(network)] if check else []
        self.given = network
        self.solver = solver
        self.changed: set[str] = set()
        self._compile(network, scale or Scale.of(network))
        self.original = dict(self.network.values)

    def _compile(self, network: Network, scale: Scale) -> None:
        self.network = with_opening(network)
        self.notes = opening_notes(network, self.network)
        self.scale = scale
        self.context = formulate(self.network, scale)
        self._refuse_giants()
        self.theta = self.context.table.theta()
        self.engine = Engine(compile_matrix(self.context), self.theta, self.solver)
        self.structure = Structure.of(self.context, self.engine.matrix)
        self.context.model = None  # the Pyomo model is large and no longer needed

    def _refuse_giants(self) -> None:
        rows = estimated_rows(self.context)
        if rows > self.most_rows:
            horizon = self.network.horizon
            finer = "quarters instead of months, " if horizon.step == "month" else ""
            raise SizeError(
                f"about {rows:,} rows ({rows // horizon.length:,} a period over {horizon.length} periods): a solve "
                f"would take from ten minutes to hours. Coarsen it ({finer}fewer suppliers, a shorter tail), or "
                f"allow it with most_rows={rows}"
            )

    @property
    def rows(self) -> int:
        """Rows of the linear programme."""
        return len(self.engine.matrix.rows)

    def update(self, changes: Mapping[str, ArrayLike]) -> Compiled:
        """Set new numbers for some paths; other paths keep their current ones. Returns itself.

        Lead times and lives decide which entries exist: a change of them compiles again (slower, same result).
        """
        length = self.network.horizon.length
        arrays = {path: spread(path, value, length) for path, value in changes.items()}
        if any(self._structural(path, array) for path, array in arrays.items()):
            self.changed |= set(arrays)
            current = dict(self.context.table.values.numbers)
            self._compile(self.given.with_values({**current, **arrays}), self.scale)
            return self
        self.changed |= set(arrays)
        self.context.table.evaluate(arrays, self.theta)
        self.engine.edit(self.theta)
        return self

    def _structural(self, path: str, array: Array) -> bool:
        known = self.context.table.values.numbers.get(path)
        if known is None:
            return True
        return bool(STRUCTURAL.fullmatch(path)) and not np.array_equal(known, array)

    def reset(self) -> Compiled:
        """Back to the numbers of the network that was compiled."""
        changed, self.changed = sorted(self.changed), set()
        if any(path not in self.original for path in changed):
            self._compile(self.given, self.scale)
        else:
            self.update({path: self.original[path] for path in changed})
            self.changed = set()
        return self

    @property
    def values(self) -> Mapping[str, Array]:
        """Current numbers."""
        return self.context.table.values.numbers

    def solve(
        self, *, tidy: bool = False, warm: bool = True, chain: bool = False, quick: bool = False, far: bool = False
    ) -> Solution:
        """Optimum of the current numbers.

        `tidy` solves once more on the optimal face with a fixed secondary cost, so that the plan does not jitter
        between equally good ones; prices and evidence are those of the first solve. `chain` starts from the last basis
        instead of the nominal one (a sequence of similar solves); `warm=False` from nothing. `quick` is for draws: the
        evidence is computed when it is asked for, and the solution cannot be perturbed. `far`: costs moved much, so
        that primal simplex is the shorter way (with `chain` and costs alone, the last plan is still feasible).
        Raises `InfeasibleError` or `UnboundedError` with an explanation in words.
        """
        engine, mip_gap = self.engine, None
        if warm and not chain and engine.first_basis is not None:
            engine.restore_basis()
        if len(engine.matrix.integer):
            mip_gap, status = engine.run_integer()
            self._judge(status)
        try:
            self._judge(engine.run(warm, far))
            x, y, _ = engine.point()
            if engine.first_basis is None:
                engine.keep_basis()
            quick = quick and not len(engine.matrix.integer)
            proof = None if quick else prove(Programme.now(engine), x, y, SOLVER, mip_gap)
            plan = settle(engine, x, y) if tidy else x
        finally:
            if len(engine.matrix.integer):
                engine.release_integers()
        basis = None if quick else engine.highs.getBasis()
        return Solution(self, dict(self.values), self.theta.copy(), plan, y, proof, basis, x, notes=list(self.notes))

    def restore(self, solution: Solution) -> None:
        """Numbers and basis of an earlier solution, as a start for re-solves close to it."""
        self.changed |= {p for p, array in solution.values.items() if array is not self.network.values.get(p)}
        self.context.table.values.numbers = dict(solution.values)
        self.theta = solution.theta.copy()
        self.engine.edit(self.theta)
        if solution.bounds is None:
            self.engine.set_row_bounds(*self.engine.nominal_rows())
            self.engine.set_col_bounds(np.zeros(len(solution.x)), self.engine.matrix.col_upper)
        else:
            self.engine.set_row_bounds(*solution.bounds[:2])
            self.engine.set_col_bounds(*solution.bounds[2:])
        self.engine.restore_basis(solution.basis)

    def hold_plan(self, solution: Solution) -> bool:
        """Fix integer columns at a solution's plan (prices *given the plan*); False where there are none."""
        columns = self.engine.matrix.integer
        if not len(columns):
            return False
        lower, upper = self.engine.col_lower.copy(), self.engine.col_upper.copy()
        lower[columns] = upper[columns] = np.rint(solution.x[columns])
        self.engine.set_col_bounds(lower, upper)
        return True

    def _judge(self, status: HighsModelStatus) -> None:
        if status == HighsModelStatus.kOptimal:
            return
        self.engine.highs.clearSolver()
        if status == HighsModelStatus.kInfeasible:
            raise relaxation.infeasible(self)
        if status in (HighsModelStatus.kUnbounded, HighsModelStatus.kUnboundedOrInfeasible):
            raise relaxation.unbounded(self)
        word = self.engine.highs.modelStatusToString(status)
        raise SolveError(
            f"the solver stopped with status {word!r} and no plan was taken: numbers far apart are the usual cause; "
            "see the warnings of `wafer2token check`, count in units that fit, or coarsen the scenario"
        )


def optimize(network: Network, *, tidy: bool = True, solver: str = "auto") -> Solution:
    """Optimum of a network in foresight: compile, solve, settle ties. See `supply.optimizer.rolling` for other regimes.

    >>> from supply.network_examples import course_11_1
    >>> solution = optimize(course_11_1())
    >>> round(solution.objective), solution.price("cowos", 0), solution.price("fab", 0)
    (10000, 1.0, 0.0)
    """
    return Compiled(network, solver=solver).solve(tidy=tidy)
