"""The objective, one parameter per variable.

    value:   sum_t d[t] ( hours sum u[s,t] fleet - hours sum discount u taste - hours sum discount mean_u segment
                          + price sold - cost start - cost energise - fee short - capex build - holding stock )
    compute: sum_t d[t] h100e[s,t] fleet[s,g,t]           units: sum sold + sum energise

d[t] is the discount factor. Capital-like costs (processes that lead to a fleet, energising, purchase, expansion) are
charged as the part of their annuity over `costs.life` that falls inside horizon and tail: value and cost both accrue
per period, and there is no lump at the end. `costs: purchase` replaces the cost of processes that lead to the fleet by
`fleet.S.purchase_cost`, which already holds the rents of everyone upstream.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyomo.environ as pyo

from supply.network import Array
from supply.optimizer.context import Context
from supply.optimizer.families.market import mean_value
from supply.optimizer.parameters import Function, Values, annuity_share, discount


def declare(c: Context) -> None:
    """Parameters worth_V[key, t]: what one model unit of variable V adds to the objective."""
    kind = c.network.objective.kind
    if kind == "units":
        for m in c.network.demand:
            c.declare("worth_sold", (m,), _one)
        for s in c.network.fleet:
            c.declare("worth_energise", (s,), _one)
    elif kind == "compute":
        for s in c.network.fleet:
            c.declare("worth_fleet", (s,), partial(_compute, c, s))
        for m in c.network.demand:
            c.declare("worth_sold", (m,), _one)
    else:
        _declare_value(c)


def _one(values: Values) -> Array:
    return np.ones(values.length)


def _compute(c: Context, s: str, values: Values) -> Array:
    return np.asarray(values(f"fleet.{s}.h100e") * discount(values, c.network.horizon.years))


def _declare_value(c: Context) -> None:
    network, lags = c.network, c.layout.lag_to_fleet
    purchase = network.objective.costs == "purchase"
    for s, sku in network.fleet.items():
        c.declare("worth_fleet", (s,), partial(_hourly, c, s, None))
        for step in range(sku.tastes):
            c.declare("worth_taste", (s, step), partial(_hourly, c, s, f"fleet.{s}.tastes.{step}.discount"))
        paths = [f"fleet.{s}.energising_cost"] + ([f"fleet.{s}.purchase_cost"] if purchase else [])
        if any(c.given(path) for path in paths):
            c.declare("worth_energise", (s,), partial(_capital, c, paths, 0.0, None, 1.0))
    for d, segment in network.segments.items():
        for step in range(segment.steps + 1):
            c.declare("worth_segment", (d, step), partial(_segment, c, d, step if step < segment.steps else None))
    for p in network.processes:
        if c.given(f"processes.{p}.cost") and not (purchase and p in lags):
            c.declare("worth_start", (p,), partial(_capital, c, [f"processes.{p}.cost"], lags.get(p), None, 1.0))
    for m in network.materials:
        if c.given(f"materials.{m}.holding_cost"):
            c.declare("worth_stock", (m,), _money(c, f"materials.{m}.holding_cost", -1.0))
    for m in network.demand:
        if c.given(f"demand.{m}.price"):
            c.declare("worth_sold", (m,), _money(c, f"demand.{m}.price", 1.0))
    for k, contract in network.contracts.items():
        if c.given(f"contracts.{k}.take_or_pay"):
            per_unit = c.natural(contract.resource) / c.scale.flow
            c.declare("worth_short", (k,), _money(c, f"contracts.{k}.take_or_pay", -per_unit))
    for e, option in network.expansions.items():
        if c.given(f"expansions.{e}.capex"):
            lag = network.scalar(f"expansions.{e}.lead_time", 0.0)
            per_unit = c.natural(option.resource) / c.scale.flow
            life = network.scalar(f"expansions.{e}.life") if c.given(f"expansions.{e}.life") else None
            c.declare("worth_build", (e,), partial(_capital, c, [f"expansions.{e}.capex"], lag, life, per_unit))


def _money(c: Context, path: str, sign: float) -> Function:
    def worth(values: Values) -> Array:
        return np.asarray(sign * values(path) * discount(values, c.network.horizon.years) / c.scale.money)

    return worth


def _hourly(c: Context, s: str, lost: str | None, values: Values) -> Array:
    d = discount(values, c.network.horizon.years)
    value = values(f"fleet.{s}.value") * c.network.horizon.hours() * d / c.scale.money
    return np.asarray(value if lost is None else -values(lost) * np.maximum(value, 0.0))


def _segment(c: Context, d: str, k: int | None, values: Values) -> Array:
    lost = np.ones(values.length) if k is None else values(f"demand.{d}.steps.{k}.discount")
    hourly = mean_value(c, d, values) * c.network.horizon.hours() * discount(values, c.network.horizon.years)
    return np.asarray(-lost * hourly / c.scale.money)


def _capital(
    c: Context, paths: list[str], lag: float | None, life: float | None, per_unit: float, values: Values
) -> Array:
    years = c.network.horizon.years
    cost = (
        sum((values(path, 0.0) for path in paths), np.zeros(values.length))
        * per_unit
        * discount(values, years)
        / c.scale.money
    )
    if lag is None or (life is None and not c.given("costs.life")):
        return np.asarray(-cost)
    span = life if life is not None else float(values("costs.life")[0])
    return np.asarray(-cost * annuity_share(values, span, lag, years))


def constrain(c: Context) -> None:
    """The objective itself."""
    m = c.model
    terms = []
    for name, short_key in (
        ("start", False),
        ("stock", False),
        ("sold", False),
        ("fleet", True),
        ("energise", True),
        ("taste", False),
        ("segment", False),
        ("short", False),
        ("build", False),
    ):
        for index, variable in getattr(m, name).items():
            *key, t = index
            owner = tuple(key[:1]) if short_key else tuple(key)  # worth per SKU, not per region
            if c.has(f"worth_{name}", *owner):
                terms.append(getattr(m, f"worth_{name}")[(*owner, t)] * variable)
    m.objective = pyo.Objective(expr=sum(terms) if terms else 0.0, sense=pyo.maximize)
