"""Expansion options and the cash that pays for them.

added[e,t] = added[e,t-1] + sum_j change[e,j] build[e,t-j]       (lead time spread over lags; minus at the end of life)
build[e,t] <= build_limit[e,t],   build[e,t] = lump[e,t] lumps[e,t], lumps integer
cash[o,t] = cash[o,t-1] + budget[o,t] - sum_{e of o} capex[e,t] build[e,t],   cash >= 0
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyomo.environ as pyo

from supply.network import Array
from supply.optimizer.context import Context
from supply.optimizer.parameters import Values, lag_weight

CASH_SCALE = 1000.0
"""Cash is kept in thousand USD per model unit of flow, whatever the objective."""


def changes(c: Context, e: str) -> dict[int, float]:
    """Lag -> share of a build that becomes (or, at the end of its life, ceases to be) capacity."""
    lead = c.network.get(f"expansions.{e}.lead_time", 0.0)[:1]
    table: dict[int, float] = {}
    for k in range(c.layout.length):
        weight = float(lag_weight(lead, k)[0])
        if weight:
            table[k] = table.get(k, 0.0) + weight
    if c.given(f"expansions.{e}.life"):
        life = round(c.network.scalar(f"expansions.{e}.life") / c.network.horizon.years)
        for k, weight in list(table.items()):
            table[k + life] = table.get(k + life, 0.0) - weight
    return {k: w for k, w in table.items() if w and k < c.layout.length}


def declare(c: Context) -> None:
    """Parameters change, build_limit, lump, capex, budget."""
    for e, option in c.network.expansions.items():
        for k, weight in changes(c, e).items():
            c.declare("change", (e, k), partial(_constant, weight))
        if c.given(f"expansions.{e}.greatest"):
            c.declare("build_limit", (e,), partial(_scaled, f"expansions.{e}.greatest", c.natural(option.resource)))
        if e in c.layout.lumpy:
            c.declare("lump", (e,), partial(_scaled, f"expansions.{e}.lump", c.natural(option.resource)))
        if option.owner in c.layout.owners_with_budget:
            unit = c.scale.flow * CASH_SCALE / c.natural(option.resource)
            c.declare("capex", (e,), partial(_scaled, f"expansions.{e}.capex", unit))
    for o in c.layout.owners_with_budget:
        c.declare("budget", (o,), partial(_scaled, f"costs.capex_budget.{o}", c.scale.flow * CASH_SCALE))


def _constant(number: float, values: Values) -> Array:
    return np.full(values.length, number)


def _scaled(path: str, unit: float, values: Values) -> Array:
    return np.asarray(values(path) / unit)


def variables(c: Context) -> None:
    """build, added, lumps, cash."""
    m, layout = c.model, c.layout
    m.build = pyo.Var(layout.build_index, domain=pyo.NonNegativeReals)
    m.added = pyo.Var(list(c.network.expansions), layout.periods, domain=pyo.NonNegativeReals)
    m.lumps = pyo.Var([(e, t) for e, t in layout.build_index if e in layout.lumpy], domain=pyo.NonNegativeIntegers)
    m.cash = pyo.Var(layout.owners_with_budget, layout.periods, domain=pyo.NonNegativeReals)


def constrain(c: Context) -> None:
    """Rows added_balance, build_rate, build_lump, cash_balance."""
    m, layout = c.model, c.layout
    buildable = set(layout.build_index)
    lags = {e: changes(c, e) for e in c.network.expansions}

    def added(_: object, e: str, t: int) -> object:
        new = sum(m.change[e, k, t] * m.build[e, t - k] for k in lags[e] if (e, t - k) in buildable)
        return m.added[e, t] == (m.added[e, t - 1] if t else 0) + new

    def rate(_: object, e: str, t: int) -> object:
        return m.build[e, t] <= m.build_limit[e, t]

    def lump(_: object, e: str, t: int) -> object:
        return m.build[e, t] == m.lump[e, t] * m.lumps[e, t]

    def cash(_: object, o: str, t: int) -> object:
        options = [e for e, option in c.network.expansions.items() if option.owner == o and (e, t) in buildable]
        spent = sum(m.capex[e, t] * m.build[e, t] for e in options)
        return m.cash[o, t] == (m.cash[o, t - 1] if t else 0) + m.budget[o, t] - spent

    m.added_balance = pyo.Constraint(list(c.network.expansions), layout.periods, rule=added)
    m.build_rate = pyo.Constraint([i for i in layout.build_index if c.has("build_limit", i[0])], rule=rate)
    m.build_lump = pyo.Constraint([i for i in layout.build_index if i[0] in layout.lumpy], rule=lump)
    m.cash_balance = pyo.Constraint(layout.owners_with_budget, layout.periods, rule=cash)
