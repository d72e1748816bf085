"""The installed base and its power.

    fleet[s,g,t] = survival[s,t] fleet[s,g,t-1] + energise[s,g,t] - retire[s,g,t],   fleet[s,g,-1] = fleet_opening[s,g]
    sum_s kw[s,t] fleet[s,g,t] <= capacity[r,t] + sum_e added[e,t]                 for every power row r of region g
    fleet[s,g,t] = fleet_opening[s,g,t] + sum_k vintage[s,t-k,t] energise[s,g,k]   where survival depends on age
    least_share[g,t] E[t] <= sum_s energise[s,g,t] <= greatest_share[g,t] E[t],   E[t] = sum_{s,g} energise[s,g,t]

Power is used for life: an accelerator holds its planning kW in every period in which it exists. An opening fleet above
the opening MW is scaled to fit; the excess goes into stock.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pyomo.environ as pyo

from supply.fleet import has_vintages, opening_survival, weibull_scale, weibull_survival
from supply.network import Array, Network
from supply.optimizer.context import Context
from supply.optimizer.parameters import Values


def opening_share(network: Network, region: str, values: Values) -> float:
    """Share of the opening fleet of a region that fits under its power rows in the first period (1 if all does)."""
    rows = [r for r, row in network.resources.items() if row.is_power and row.region == region]
    if not rows:  # no power row asks for watts, so none need be stated
        return 1.0
    need = sum(
        values(f"fleet.{s}.kw_planning")[0]
        * _opening_left(network, s, values)[0]
        * values(f"fleet.{s}.opening.{region}")[0]
        for s, sku in network.fleet.items()
        if region in sku.regions and f"fleet.{s}.opening.{region}" in network.values
    )
    if need <= 0:
        return 1.0
    return float(min(1.0, *(1000.0 * values(f"resources.{r}.capacity")[0] / need for r in rows)))


def age_curve(s: str, values: Values, periods: int) -> Array:
    """Share of a vintage that age leaves at 0, 1 ... `periods` - 1 periods (a given curve as long as it is given)."""
    if values.given(f"fleet.{s}.survival_by_age"):
        return values(f"fleet.{s}.survival_by_age")
    shape = float(values(f"fleet.{s}.wear_out", 1.0)[0])
    return weibull_survival(periods, weibull_scale(float(values(f"fleet.{s}.life")[0]), shape), shape)


def vintage_left(s: str, age: int, values: Values) -> Array:
    """Share of what was energised `age` periods before t that is left in period t: losses of any age and by age."""
    kept = np.ones(values.length)
    survival = values(f"fleet.{s}.survival", 1.0)
    for back in range(age):
        kept[back:] *= survival[: values.length - back]
    return np.asarray(kept * age_curve(s, values, values.length)[age])


def _opening_left(network: Network, s: str, values: Values) -> Array:
    """Share of the opening fleet that is left at the end of each period."""
    kept = np.cumprod(values(f"fleet.{s}.survival", 1.0))
    if not has_vintages(network, s):
        return np.full(values.length, kept[0])  # later periods follow from the balance
    age = float(values(f"fleet.{s}.opening_age", 0.0)[0])
    curve = age_curve(s, values, values.length + math.ceil(age) + 2)
    return np.asarray(kept * opening_survival(curve, age)[: values.length])


def declare(c: Context) -> None:
    """Parameters kw, survival, fleet_opening, siting_least, siting_greatest."""
    for s in c.network.fleet:
        if any(row.is_power for row in c.network.resources.values()):
            c.declare("kw", (s,), partial(_plain, f"fleet.{s}.kw_planning"))
        if has_vintages(c.network, s):
            for k in c.layout.periods:
                c.declare("vintage", (s, k), partial(vintage_left, s, k))
        else:
            c.declare("survival", (s,), partial(_survival, s))
    for s, g in c.layout.places:
        if c.given(f"fleet.{s}.opening.{g}"):
            c.declare("fleet_opening", (s, g), partial(_fleet_opening, c, s, g))
    for g in c.network.regions:
        for side in ("least", "greatest"):
            if c.given(f"regions.{g}.{side}_share") and c.network.fleet:
                c.declare(f"siting_{side}", (g,), partial(_plain, f"regions.{g}.{side}_share"))


def _plain(path: str, values: Values) -> Array:
    return values(path)


def _survival(s: str, values: Values) -> Array:
    return values(f"fleet.{s}.survival", 1.0)


def _fleet_opening(c: Context, s: str, g: str, values: Values) -> Array:
    opening = values(f"fleet.{s}.opening.{g}")[0] * opening_share(c.network, g, values) / c.scale.flow
    return np.asarray(opening * _opening_left(c.network, s, values))


def variables(c: Context) -> None:
    """energise, fleet, retire."""
    m, layout = c.model, c.layout
    m.energise = pyo.Var(layout.energise_index, domain=pyo.NonNegativeReals)
    m.fleet = pyo.Var(layout.places, layout.periods, domain=pyo.NonNegativeReals)
    m.retire = pyo.Var(layout.retire_index, domain=pyo.NonNegativeReals)


def constrain(c: Context) -> None:
    """Rows fleet_balance, power, siting_least, siting_greatest."""
    m, layout = c.model, c.layout
    energised, retired = set(layout.energise_index), set(layout.retire_index)

    def fleet_balance(_: object, s: str, g: str, t: int) -> object:
        if has_vintages(c.network, s):
            vintages = [m.vintage[s, t - k, t] * m.energise[s, g, k] for k in range(t + 1) if (s, g, k) in energised]
            left = m.fleet_opening[s, g, t] if c.has("fleet_opening", s, g) else 0
            return m.fleet[s, g, t] == left + sum(vintages)
        if t:
            kept = m.survival[s, t] * m.fleet[s, g, t - 1]
        else:
            kept = m.fleet_opening[s, g, t] if c.has("fleet_opening", s, g) else 0
        switched_on = m.energise[s, g, t] if (s, g, t) in energised else 0
        switched_off = m.retire[s, g, t] if (s, g, t) in retired else 0
        return m.fleet[s, g, t] == kept + switched_on - switched_off

    def power(_: object, r: str, t: int) -> object:
        region = c.network.resources[r].region
        used = [m.kw[s, t] * m.fleet[s, g, t] for s, g in layout.places if g == region]
        if not used:
            return pyo.Constraint.Skip
        return sum(used) - sum(m.added[e, t] for e in layout.expansions_of[r]) <= m.capacity[r, t]

    def siting(side: str, _: object, g: str, t: int) -> object:
        here = [m.energise[s, h, t] for s, h in layout.places if h == g and (s, h, t) in energised]
        total = [m.energise[s, h, t] for s, h in layout.places if (s, h, t) in energised]
        if not total or not c.has(f"siting_{side}", g):
            return pyo.Constraint.Skip
        share = getattr(m, f"siting_{side}")[g, t]
        # one term per variable, so that each entry is one parameter
        others = m.everywhere[t]
        return sum(here) >= share * others if side == "least" else sum(here) <= share * others

    def everywhere(_: object, t: int) -> object:
        total = [m.energise[s, g, t] for s, g in layout.places if (s, g, t) in energised]
        return m.everywhere[t] == sum(total) if total else pyo.Constraint.Skip

    rows = [r for r, row in c.network.resources.items() if row.is_power]
    m.fleet_balance = pyo.Constraint(layout.places, layout.periods, rule=fleet_balance)
    m.power = pyo.Constraint(rows, layout.periods, rule=power)
    sited = [g for g in c.network.regions if c.has("siting_least", g) or c.has("siting_greatest", g)]
    if sited:
        m.everywhere = pyo.Var(layout.periods, domain=pyo.NonNegativeReals)
        m.everywhere_total = pyo.Constraint(layout.periods, rule=everywhere)
        m.siting_least_share = pyo.Constraint(sited, layout.periods, rule=partial(siting, "least"))
        m.siting_greatest_share = pyo.Constraint(sited, layout.periods, rule=partial(siting, "greatest"))
