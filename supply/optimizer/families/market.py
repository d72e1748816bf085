"""Who takes the output: final sales, backlog, a designer's price-responsive demand, taste steps.

    sold[m,t] <= quantity[m,t]                                                       (lost sales)
    sold[m,t] = quantity[m,t]                                                        (unmet: never)
    backlog[m,t] = keep[m,t] backlog[m,t-1] + quantity[m,t] - sold[m,t]              (backlog, keep = 1 - cancel)
    sum_k segment[d,k,t] = sum_{s of d, g} weight[s,t] fleet[s,g,t],   segment[d,k,t] <= segment_limit[d,k,t]
    sum_k taste[s,k,t] = sum_g fleet[s,g,t],   taste[s,k,t] <= taste_share[s,k,t] (fleet of the designer of s)

`weight` is the value of the SKU over the mean value of its designer's SKUs, so that a step's discount is the same
fraction for all of them; the last step (whatever is beyond the given ones) has no value but no limit either.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyomo.environ as pyo

from supply.network import Array
from supply.optimizer.context import Context
from supply.optimizer.parameters import Values


def declare(c: Context) -> None:
    """Parameters quantity, keep, segment_limit, weight, taste_share."""
    for m, sale in c.network.demand.items():
        if c.given(f"demand.{m}.quantity"):
            c.declare("quantity", (m,), partial(_quantity, c, m))
        if sale.unmet == "backlog":
            c.declare("keep", (m,), partial(_keep, m))
    for d, segment in c.network.segments.items():
        for k in range(segment.steps):
            c.declare("segment_limit", (d, k), partial(_segment_limit, c, d, k))
        for s in c.layout.designers[d]:
            c.declare("weight", (s,), partial(_weight, c, d, s))
    for s, sku in c.network.fleet.items():
        for k in range(sku.tastes):
            c.declare("taste_share", (s, k), partial(_taste_share, s, k))


def _quantity(c: Context, m: str, values: Values) -> Array:
    return np.asarray(values(f"demand.{m}.quantity") / c.scale.flow)


def _keep(m: str, values: Values) -> Array:
    return np.asarray(1 - values(f"demand.{m}.cancel", 0.0))


def _segment_limit(c: Context, d: str, k: int, values: Values) -> Array:
    return np.asarray(values(f"demand.{d}.steps.{k}.share") * values(f"demand.{d}.reference") / c.scale.flow)


def mean_value(c: Context, d: str, values: Values) -> Array:
    """Mean value of an accelerator-hour over a designer's SKUs (negative values count as zero)."""
    return np.asarray(np.mean([np.maximum(values(f"fleet.{s}.value"), 0.0) for s in c.layout.designers[d]], axis=0))


def _weight(c: Context, d: str, s: str, values: Values) -> Array:
    mean = mean_value(c, d, values)
    return np.asarray(
        np.where(mean > 0, np.maximum(values(f"fleet.{s}.value"), 0.0) / np.where(mean > 0, mean, 1.0), 1.0)
    )


def _taste_share(s: str, k: int, values: Values) -> Array:
    return values(f"fleet.{s}.tastes.{k}.share")


def variables(c: Context) -> None:
    """backlog, segment, taste, designer_fleet."""
    m, layout = c.model, c.layout
    kept = [x for x, sale in c.network.demand.items() if sale.unmet == "backlog"]
    steps = [(d, k) for d, segment in c.network.segments.items() for k in range(segment.steps + 1)]
    tastes = [(s, k) for s, sku in c.network.fleet.items() for k in range(sku.tastes)]
    m.backlog = pyo.Var(kept, layout.periods, domain=pyo.NonNegativeReals)
    m.segment = pyo.Var(steps, layout.periods, domain=pyo.NonNegativeReals)
    m.taste = pyo.Var(tastes, layout.periods, domain=pyo.NonNegativeReals)
    designers = sorted({c.network.fleet[s].designer for s, _ in tastes})
    m.designer_fleet = pyo.Var(designers, layout.periods, domain=pyo.NonNegativeReals)


def constrain(c: Context) -> None:
    """Rows of sales, segments and tastes."""
    _sales(c)
    _segments(c)
    _tastes(c)


def _sales(c: Context) -> None:
    m, layout = c.model, c.layout
    limited = {x: sale.unmet for x, sale in c.network.demand.items() if c.has("quantity", x)}

    def lost(_: object, x: str, t: int) -> object:
        return m.sold[x, t] <= m.quantity[x, t]

    def never(_: object, x: str, t: int) -> object:
        return m.sold[x, t] == m.quantity[x, t]

    def backlog(_: object, x: str, t: int) -> object:
        before = m.keep[x, t] * m.backlog[x, t - 1] if t else 0
        return m.backlog[x, t] == before + m.quantity[x, t] - m.sold[x, t]

    kinds = {kind: [x for x, unmet in limited.items() if unmet == kind] for kind in ("lost", "never", "backlog")}
    m.demand_limit = pyo.Constraint(kinds["lost"], layout.periods, rule=lost)
    m.demand_met = pyo.Constraint(kinds["never"], layout.periods, rule=never)
    m.demand_backlog = pyo.Constraint(kinds["backlog"], layout.periods, rule=backlog)


def _segments(c: Context) -> None:
    m, layout = c.model, c.layout
    steps = {d: range(segment.steps + 1) for d, segment in c.network.segments.items()}

    def total(_: object, d: str, t: int) -> object:
        skus = [(s, g) for s in layout.designers[d] for g in c.network.fleet[s].regions]
        fleet = sum(m.weight[s, t] * m.fleet[s, g, t] for s, g in skus)
        return sum(m.segment[d, k, t] for k in steps[d]) == fleet

    def limit(_: object, d: str, k: int, t: int) -> object:
        return m.segment[d, k, t] <= m.segment_limit[d, k, t]

    limited = [(d, k) for d in steps for k in list(steps[d])[:-1]]
    m.segment_total = pyo.Constraint([d for d in steps if layout.designers[d]], layout.periods, rule=total)
    m.segment_step = pyo.Constraint(limited, layout.periods, rule=limit)


def _tastes(c: Context) -> None:
    m, layout, fleet = c.model, c.layout, c.network.fleet
    tasted = [s for s, sku in fleet.items() if sku.tastes]

    def own(_: object, s: str, t: int) -> object:
        return sum(m.taste[s, k, t] for k in range(fleet[s].tastes)) == sum(m.fleet[s, g, t] for g in fleet[s].regions)

    def designer(_: object, d: str, t: int) -> object:
        return m.designer_fleet[d, t] == sum(m.fleet[s, g, t] for s in layout.designers[d] for g in fleet[s].regions)

    def share(_: object, s: str, k: int, t: int) -> object:
        # the last step takes whatever is left, so that rounding of shares never makes the model infeasible
        if k == fleet[s].tastes - 1:
            return pyo.Constraint.Skip
        return m.taste[s, k, t] <= m.taste_share[s, k, t] * m.designer_fleet[fleet[s].designer, t]

    m.taste_total = pyo.Constraint(tasted, layout.periods, rule=own)
    m.designer_total = pyo.Constraint(sorted({fleet[s].designer for s in tasted}), layout.periods, rule=designer)
    m.taste_step = pyo.Constraint([(s, k) for s in tasted for k in range(fleet[s].tastes)], layout.periods, rule=share)
