"""Why there is no optimum, in words: the least relaxation of the limits, and what grows without one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from highspy import HighsLp, HighsModelStatus, MatrixFormat

from supply.network import Array
from supply.optimizer.errors import InfeasibleError, Relaxation, UnboundedError
from supply.optimizer.quiet import quiet_highs

if TYPE_CHECKING:
    from supply.optimizer.compiled import Compiled

WORDS = {
    "limit": "capacity of {0} is too small",
    "power": "power of {0} is too small for the fleet that must run there",
    "demand_met": "the demand for {0} cannot be met",
    "contract_least_due": "the least take of contract {0} cannot be reached",
    "contract_share_due": "the least share of contract {0} cannot be reached",
    "contract_share_limit": "the greatest share of contract {0} is too small",
    "contract_greatest_limit": "the greatest take of contract {0} is too small",
    "ramp_limit": "process {0} would have to grow faster than its ramp",
    "run_down_limit": "process {0} would have to fall faster than its run-down",
    "siting_least_share": "the least share of region {0} cannot be reached",
    "siting_greatest_share": "the greatest share of region {0} is too small",
    "process_disrupted": "process {0} is disrupted below what it must start",
    "taste_step": "the taste steps of {0} leave part of its fleet without a buyer",
    "build_rate": "expansion {0} cannot be built that fast",
}
"""Rows that may give way: they are decisions of people. Balances are physics and never do."""


def infeasible(compiled: Compiled) -> InfeasibleError:
    """Least total relaxation (elastic programme: every soft row may be missed at a cost of one per unit).

    A limit that the plan cannot keep is more often too strict than its capacity is too small, so demands and contracts
    give way first (weight 1), capacities after them (weight 3). The conflict is what carries a price in that programme.
    """
    matrix = compiled.engine.matrix
    soft = [i for i, (name, _) in enumerate(matrix.rows) if name in WORDS]
    solved = _elastic(compiled, soft)
    if solved is None:
        return InfeasibleError(
            "infeasible: no plan satisfies the balances of material, fleet and cash themselves: check opening stocks, "
            "pipelines, negative quantities and yields above what goes in"
        )
    amounts, prices = solved
    labels = compiled.network.horizon.labels()
    found = [_words(compiled, i, a, labels) for i, a in zip(soft, amounts, strict=True) if a > 1e-7]
    found.sort(key=lambda r: (r.row, r.subject, r.period))
    priced = [matrix.rows[i] for i in soft if abs(prices[i]) > 1e-7]
    conflict = tuple((name, str(key[0]), labels[key[-1]]) for name, key in priced)
    lines = "; ".join(r.words for r in found[:8]) + (f"; and {len(found) - 8} more" if len(found) > 8 else "")
    message = f"infeasible: no plan satisfies all limits. The least that must give way: {lines}."
    given = {(r.row, r.subject) for r in found}
    others = sorted({f"{FAMILY.get(n, n)} of {s}" for n, s, _ in conflict if (n, s) not in given})
    if others:
        more = f" and {len(others) - 4} more" if len(others) > 4 else ""
        message += f" It stands against: {', '.join(others[:4])}{more}."
    return InfeasibleError(message, tuple(found), conflict)


FAMILY = {
    "limit": "the capacity",
    "power": "the power",
    "demand_met": "the demand",
    "contract_least_due": "the least take",
    "contract_share_due": "the least share",
    "contract_share_limit": "the greatest share",
    "contract_greatest_limit": "the greatest take",
    "ramp_limit": "the ramp",
    "run_down_limit": "the run-down",
    "siting_least_share": "the least share",
    "siting_greatest_share": "the greatest share",
}


def _words(compiled: Compiled, row: int, amount: float, labels: list[str]) -> Relaxation:
    name, key = compiled.engine.matrix.rows[row]
    unit, size = _natural(compiled, name, key)
    period = labels[key[-1]]
    words = f"{WORDS[name].format(key[0])} in {period}: short by {_show(amount * size)} {unit}"
    return Relaxation(name, str(key[0]), period, float(amount * size), unit, words)


def _show(amount: float) -> str:
    return f"{amount:,.6g}"


def _natural(compiled: Compiled, name: str, key: tuple[Any, ...]) -> tuple[str, float]:
    network, scale = compiled.network, compiled.scale
    if name in ("limit", "power"):
        row = network.resources[key[0]]
        return ("MW" if row.is_power else row.unit), compiled.context.natural(row.id)
    if name.startswith("contract_"):
        row = network.resources[network.contracts[key[0]].resource]
        return ("MW" if row.is_power else row.unit), compiled.context.natural(row.id)
    if name == "demand_met":
        return network.materials[key[0]].unit, scale.flow
    return "units", scale.flow


def _elastic(compiled: Compiled, soft: list[int]) -> tuple[Array, Array] | None:
    engine, matrix = compiled.engine, compiled.engine.matrix
    columns, rows = len(matrix.columns), len(matrix.rows)
    weight = np.array([3.0 if matrix.rows[i][0] in ("limit", "power") else 1.0 for i in soft])
    # one slack per soft row in the direction that widens it; equalities (demand that must be met) may only fall short
    sign = np.array([-1.0 if matrix.kind[i] == 1 else 1.0 for i in soft])
    lp = HighsLp()
    lp.num_col_, lp.num_row_ = columns + len(soft), rows
    lp.col_cost_ = np.concatenate([np.zeros(columns), weight])
    lp.col_lower_ = np.concatenate([engine.col_lower, np.zeros(len(soft))])
    lp.col_upper_ = np.concatenate([engine.col_upper, np.full(len(soft), np.inf)])
    lp.row_lower_, lp.row_upper_ = engine.row_lower, engine.row_upper
    lp.a_matrix_.format_ = MatrixFormat.kColwise
    last = matrix.start[-1]
    lp.a_matrix_.start_ = np.concatenate([matrix.start, last + 1 + np.arange(len(soft))]).astype(np.int32)
    lp.a_matrix_.index_ = np.concatenate([matrix.index, np.array(soft, dtype=np.int32)])
    lp.a_matrix_.value_ = np.concatenate([engine.data, sign])
    highs = quiet_highs()
    highs.passModel(lp)
    highs.run()
    if highs.getModelStatus() != HighsModelStatus.kOptimal:
        return None
    solution = highs.getSolution()
    return np.array(solution.col_value)[columns:], np.array(solution.row_dual)


def unbounded(compiled: Compiled) -> UnboundedError:
    """Name what can be sold or run without limit: cap every column and see which ones hit the cap."""
    engine = compiled.engine
    lower, upper = engine.col_lower.copy(), engine.col_upper.copy()
    cap = 1e6
    engine.set_col_bounds(lower, np.minimum(upper, cap))
    engine.run(warm=False)
    values = np.array(engine.highs.getSolution().col_value)
    engine.set_col_bounds(lower, upper)
    engine.highs.clearSolver()
    at_cap = [engine.matrix.columns[j] for j in np.flatnonzero(values >= cap * 0.999)]
    made = sorted({str(key[0]) for name, key in at_cap if name == "start"})
    sold = sorted({str(key[0]) for name, key in at_cap if name in ("sold", "energise", "fleet")})
    what = f"{', '.join(sold) or 'something of value'} can grow without limit"
    through = f" through {', '.join(made)}" if made else ""
    return UnboundedError(
        f"unbounded: {what}{through}. Give a capacity to a resource that it uses, a demand quantity, or power rows."
    )
