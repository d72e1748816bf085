"""Decisions now, outcomes later: two-stage optimum over weighted cases, risk aversion, worth of information.

    maximise (1 - risk) sum_i p_i v_i + risk CVaR_alpha(v),   CVaR = eta - 1 / (1 - alpha) sum_i p_i max(0, eta - v_i)

v_i is the objective of case i. Investments begun before `until` are the same in every case (rows of the programme); all
else adapts. Cases differ only in numbers, so each is the compiled matrix with other entries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.sparse as sp
from highspy import HighsLp, HighsModelStatus, HighsVarType, MatrixFormat, ObjSense
from numpy.typing import ArrayLike, NDArray

from supply.network import Array, Network
from supply.optimizer.compiled import Compiled
from supply.optimizer.errors import SolveError
from supply.optimizer.evidence import Programme
from supply.optimizer.quiet import quiet_highs

FIRST_STAGE = ("build", "lumps")


@dataclass(frozen=True)
class Case:
    """One outcome: weight and the numbers that differ."""

    weight: float
    changes: Mapping[str, ArrayLike]
    name: str = ""


@dataclass(frozen=True)
class TwoStage:
    """Objective units as in `Solution.objective_total` (tail included).

    expected, cvar; by_case (case, weight, objective); plan (expansion, t, built); value_of_information: what knowing
    the case beforehand would add; value_of_planning: what planning for all cases adds to planning for their mean.
    """

    expected: float
    cvar: float
    by_case: pd.DataFrame
    plan: pd.DataFrame
    value_of_information: float
    value_of_planning: float


def two_stage(
    network: Network, cases: Sequence[Case], *, until: int | None = None, risk: float = 0.0, alpha: float = 0.9
) -> TwoStage:
    """Best common investments for weighted cases.

    `until`: investments begun before this period are decided now (default: all); `risk` 0 is the mean, 1 only the worst
    1 - alpha of cases. Raises `ValueError` for weights that are not positive, for risk or alpha outside 0 to 1.
    """
    weights = np.array([case.weight for case in cases], dtype=float)
    if not len(cases) or np.any(weights <= 0):
        raise ValueError("two-stage: give at least one case, each with a positive weight")
    if not 0 <= risk <= 1 or not 0 <= alpha < 1:
        raise ValueError(f"two-stage: risk {risk:g} and alpha {alpha:g} must lie in 0 to 1 (alpha below 1)")
    weights = weights / weights.sum()
    compiled = Compiled(network)
    programmes = [_programme(compiled, case.changes) for case in cases]
    last = network.horizon.length if until is None else until
    names = compiled.engine.matrix.columns
    shared = np.array([j for j, (name, key) in enumerate(names) if name in FIRST_STAGE and key[-1] < last], dtype=int)
    x = _solve(compiled, programmes, weights, shared, risk, alpha, None)
    values = np.array([p.cost @ x_i for p, x_i in zip(programmes, x, strict=True)]) * _worth(compiled)
    alone = np.array([(p.cost @ _solve(compiled, [p], np.ones(1), shared, 0.0, alpha, None)[0]) for p in programmes])
    mean = _mean_case(compiled, cases, weights)
    mean_plan = _solve(compiled, [_programme(compiled, mean)], np.ones(1), shared, 0.0, alpha, None)[0][shared]
    fixed = _solve(compiled, programmes, weights, shared, risk, alpha, mean_plan)
    naive = np.array([p.cost @ x_i for p, x_i in zip(programmes, fixed, strict=True)]) * _worth(compiled)
    expected = float(weights @ values)
    table = pd.DataFrame(
        {"case": [c.name or str(i) for i, c in enumerate(cases)], "weight": weights, "objective": values}
    )
    return TwoStage(
        expected,
        cvar(values, weights, alpha),
        table,
        _plan(compiled, x[0]),
        float(weights @ alone) * _worth(compiled) - expected,
        _score(values, weights, risk, alpha) - _score(naive, weights, risk, alpha),
    )


def cvar(values: ArrayLike, weights: ArrayLike, alpha: float) -> float:
    """Mean of the worst 1 - alpha of the outcomes (a case on the border counts in part).

    >>> cvar([0, 10, 20, 30], [0.25] * 4, 0.5)
    5.0
    """
    order = np.argsort(np.asarray(values, dtype=float))
    v, w = np.asarray(values, dtype=float)[order], np.asarray(weights, dtype=float)[order]
    room, taken = 1 - alpha, np.zeros(len(w))
    for i, weight in enumerate(w):
        taken[i] = min(weight, room)
        room -= taken[i]
    return float(taken @ v / taken.sum())


def _score(values: Array, weights: Array, risk: float, alpha: float) -> float:
    return (1 - risk) * float(weights @ values) + risk * cvar(values, weights, alpha)


def _worth(compiled: Compiled) -> float:
    return compiled.scale.flow * compiled.scale.money


def _programme(compiled: Compiled, changes: Mapping[str, ArrayLike]) -> Programme:
    compiled.update(changes)
    programme = Programme.of(compiled.engine, compiled.theta)
    compiled.reset()
    return programme


def _mean_case(compiled: Compiled, cases: Sequence[Case], weights: Array) -> dict[str, Array]:
    paths = {path for case in cases for path in case.changes}
    length, base = compiled.network.horizon.length, compiled.network
    changed = [{p: np.broadcast_to(np.asarray(v, dtype=float), length) for p, v in c.changes.items()} for c in cases]
    return {
        p: np.sum([w * c.get(p, base.values[p]) for w, c in zip(weights, changed, strict=True)], axis=0) for p in paths
    }


def _plan(compiled: Compiled, x: Array) -> pd.DataFrame:
    rows = []
    for (name, key), amount in zip(compiled.engine.matrix.columns, x, strict=True):
        if name == "build" and amount > 1e-9:
            natural = compiled.structure.natural[compiled.network.expansions[key[0]].resource]
            rows.append((key[0], key[1], float(amount) * natural))
    return pd.DataFrame(rows, columns=["expansion", "t", "built"])


def _solve(
    compiled: Compiled, programmes: list[Programme], weights: Array, shared: Array, risk: float, alpha: float,
    plan: Array | None,
) -> list[Array]:  # fmt: skip
    """Primal values of every case. Columns: the cases one after the other, then eta, then the shortfalls below eta."""
    count, width = len(programmes), programmes[0].matrix.shape[1]
    size = count * width + 1 + count
    blocks = sp.hstack(
        [
            sp.block_diag([p.matrix for p in programmes]),
            sp.csc_matrix((count * programmes[0].matrix.shape[0], 1 + count)),
        ]
    )
    links = sp.lil_matrix((max(count - 1, 0) * len(shared), size))
    for i in range(1, count):
        for k, j in enumerate(shared):
            links[(i - 1) * len(shared) + k, j] = 1.0
            links[(i - 1) * len(shared) + k, i * width + j] = -1.0
    tails = sp.lil_matrix((count if risk > 0 else 0, size))
    for i in range(tails.shape[0]):  # shortfall_i >= eta - v_i
        tails[i, i * width : (i + 1) * width] = programmes[i].cost
        tails[i, count * width], tails[i, count * width + 1 + i] = -1.0, 1.0
    cost = np.concatenate([(1 - risk) * w * p.cost for w, p in zip(weights, programmes, strict=True)])
    cost = np.concatenate([cost, [risk], -risk * weights / (1 - alpha)])
    lower = np.concatenate([*(p.rows[0] for p in programmes), np.zeros(links.shape[0]), np.zeros(tails.shape[0])])
    upper = np.concatenate(
        [*(p.rows[1] for p in programmes), np.zeros(links.shape[0]), np.full(tails.shape[0], np.inf)]
    )
    low = np.concatenate([*(p.columns[0] for p in programmes), [-np.inf if risk > 0 else 0.0], np.zeros(count)])
    high = np.concatenate([*(p.columns[1] for p in programmes), [np.inf if risk > 0 else 0.0], np.full(count, np.inf)])
    if plan is not None:
        for i in range(count):
            low[i * width + shared], high[i * width + shared] = plan, plan
    matrix = sp.vstack([blocks, links, tails]).tocsc()
    integers = np.concatenate([i * width + compiled.engine.matrix.integer for i in range(count)]).astype(np.int32)
    x = _run(matrix, cost, (lower, upper), (low, high), integers)
    return [x[i * width : (i + 1) * width] for i in range(count)]


def _run(
    matrix: sp.csc_matrix,
    cost: Array,
    rows: tuple[Array, Array],
    columns: tuple[Array, Array],
    integers: NDArray[np.int32],
) -> Array:
    lp = HighsLp()
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.col_cost_, lp.sense_ = cost, ObjSense.kMaximize
    lp.row_lower_, lp.row_upper_ = rows
    lp.col_lower_, lp.col_upper_ = columns
    lp.a_matrix_.format_ = MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)
    lp.a_matrix_.value_ = matrix.data
    highs = quiet_highs()
    highs.passModel(lp)
    if len(integers):
        kinds = np.full(len(integers), int(HighsVarType.kInteger), dtype=np.uint8)
        highs.changeColsIntegrality(len(integers), integers, kinds)
    highs.run()
    status = highs.getModelStatus()
    if status != HighsModelStatus.kOptimal:
        raise SolveError(
            f"two-stage: {highs.modelStatusToString(status)}; some case has no plan under the common investments"
        )
    return np.array(highs.getSolution().col_value)
