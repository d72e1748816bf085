"""Materials and shared capacities.

    stock[m,t] = stock[m,t-1] + pipe[m,t] + sum_{p,k} arrival[p,m,k,t-k] start[p,t-k]
                 - sum_p intake[p,m,t] start[p,t] - sum_g energise[s,g,t] - sold[m,t] - discard[m,t]
    sum_p use[p,r,t] start[p,t] <= capacity[r,t] + sum_e added[e,t]
    start[p,t] <= process_limit[p,t]                        (only while a disruption of the process lasts)

`arrival` = output x yield x lag weight, by start period (less the intake where a process gives the same material back
at once); inputs and capacity are taken at start, so a late failure
wastes good parts. `pipe` is what was started before the horizon, plus opening stock in the first period.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyomo.environ as pyo

from supply.network import Array
from supply.optimizer.context import Context
from supply.optimizer.families.fleet import opening_share
from supply.optimizer.parameters import Values, disruption_factor


def declare(c: Context) -> None:
    """Parameters arrival, intake, use, capacity, pipe, process_limit."""
    for p, process in c.network.processes.items():
        for m in process.output:
            for k in c.layout.process_lags[p]:
                net = k == 0 and m in process.input  # what is given back at once is one coefficient, not two
                c.declare("arrival", (p, m, k), partial(_net if net else arrival, p, m, k))
        for m in process.input:
            if not c.layout.returns(p, m):
                c.declare("intake", (p, m), partial(_plain, f"processes.{p}.input.{m}"))
        for r in process.uses:
            c.declare("use", (p, r), partial(_plain, f"processes.{p}.uses.{r}"))
    for r in c.network.resources:
        if c.network.resources[r].is_power or c.layout.users[r]:
            c.declare("capacity", (r,), partial(capacity, c, r))
    for m in c.network.materials:
        if _has_opening(c, m):
            c.declare("pipe", (m,), partial(pipe, c, m))
    for event in c.network.disruptions.values():
        if event.target == "process" and not c.has("process_limit", event.subject):
            c.declare("process_limit", (event.subject,), partial(_process_limit, c, event.subject))


def _plain(path: str, values: Values) -> Array:
    return values(path)


def arrival(p: str, m: str, lag: int, values: Values) -> Array:
    """Units of `m` that arrive `lag` periods after a start: output x yield x lag weight."""
    own = f"processes.{p}.yield.{m}"
    yields = values(own) if values.given(own) else values(f"processes.{p}.yield", 1.0)
    made = values(f"processes.{p}.output.{m}") * yields
    lead = f"processes.{p}.lead_time"
    return made * values.weight(lead, lag) if values.given(lead) else made


def _net(p: str, m: str, lag: int, values: Values) -> Array:
    return np.asarray(arrival(p, m, lag, values) - values(f"processes.{p}.input.{m}"))


def capacity(c: Context, r: str, values: Values) -> Array:
    """Capacity after disruptions, in model units."""
    whole = values(f"resources.{r}.capacity") / c.natural(r)
    if not any(d.target == "resource" and d.subject == r for d in c.network.disruptions.values()):
        return whole
    return whole * disruption_factor(c.network, values, "resource", r)


def _has_opening(c: Context, m: str) -> bool:
    started = any(k > 0 and c.given(f"opening.pipeline.{p}") for p, k in c.layout.makers[m])
    fleet = any(c.given(f"fleet.{s}.opening.{g}") for s in c.layout.drawn_by[m] for g in c.network.fleet[s].regions)
    return started or fleet or c.given(f"opening.stock.{m}")


def pipe(c: Context, m: str, values: Values) -> Array:
    """Arrivals of starts before the horizon; opening stock and the opening fleet that found no power, in period 0."""
    total = np.zeros(values.length)
    total[0] = values(f"opening.stock.{m}", 0.0)[0]
    for p, k in c.layout.makers[m]:
        if k > 0 and c.given(f"opening.pipeline.{p}"):
            total[:k] += arrival(p, m, k, values)[0] * values(f"opening.pipeline.{p}")[0]
    for s in c.layout.drawn_by[m]:
        for g in c.network.fleet[s].regions:
            if c.given(f"fleet.{s}.opening.{g}"):
                total[0] += values(f"fleet.{s}.opening.{g}")[0] * (1 - opening_share(c.network, g, values))
    return np.asarray(total / c.scale.flow)


def _process_limit(c: Context, p: str, values: Values) -> Array:
    users = [values(f"resources.{r}.capacity") / values(f"processes.{p}.uses.{r}") for r in c.network.processes[p].uses]
    whole = np.min(users, axis=0)
    return np.asarray(whole * disruption_factor(c.network, values, "process", p) / c.scale.flow)


def variables(c: Context) -> None:
    """start, stock, discard, sold."""
    m, layout = c.model, c.layout
    m.start = pyo.Var(layout.start_index, domain=pyo.NonNegativeReals)
    m.stock = pyo.Var(list(c.network.materials), layout.periods, domain=pyo.NonNegativeReals)
    m.discard = pyo.Var(layout.co_products, layout.periods, domain=pyo.NonNegativeReals)
    m.sold = pyo.Var(list(c.network.demand), layout.periods, domain=pyo.NonNegativeReals)
    for p, process in c.network.processes.items():
        if process.known_from is not None and process.last is not None:
            for t in range(max(process.last + 1, process.first, 0), layout.length):
                m.start[p, t].setub(0)


def constrain(c: Context) -> None:
    """Rows balance, limit, process_limit."""
    m, layout = c.model, c.layout
    started = set(layout.start_index)
    energised = set(layout.energise_index)

    def balance(_: object, material: str, t: int) -> object:
        arrivals = [
            m.arrival[p, material, k, t - k] * m.start[p, t - k]
            for p, k in layout.makers[material]
            if (p, t - k) in started
        ]
        takers = [p for p in layout.takers[material] if (p, t) in started and not layout.returns(p, material)]
        takes = [m.intake[p, material, t] * m.start[p, t] for p in takers]
        places = [(s, g) for s in layout.drawn_by[material] for g in c.network.fleet[s].regions]
        takes += [m.energise[s, g, t] for s, g in places if (s, g, t) in energised]
        if material in c.network.demand:
            takes.append(m.sold[material, t])
        if material in layout.co_products:
            takes.append(m.discard[material, t])
        before = m.stock[material, t - 1] if t else 0
        pipe_ = m.pipe[material, t] if c.has("pipe", material) else 0
        # all on one side: the compiled row then always counts what comes in as positive
        return before + sum(arrivals) + pipe_ - sum(takes) - m.stock[material, t] == 0

    def limit(_: object, resource: str, t: int) -> object:
        used = [m.use[p, resource, t] * m.start[p, t] for p in layout.users[resource] if (p, t) in started]
        if not used:
            return pyo.Constraint.Skip
        return sum(used) - sum(m.added[e, t] for e in layout.expansions_of[resource]) <= m.capacity[resource, t]

    def process_limit(_: object, p: str, t: int) -> object:
        return m.start[p, t] <= m.process_limit[p, t]

    flows = [r for r in c.network.resources if not c.network.resources[r].is_power]
    m.balance = pyo.Constraint(list(c.network.materials), layout.periods, rule=balance)
    m.limit = pyo.Constraint(flows, layout.periods, rule=limit)
    events = [d for d in c.network.disruptions.values() if d.target == "process"]
    hit = {(d.subject, t) for d in events for t in range(max(d.first, 0), int(np.ceil(d.last + d.ramp_back)) + 1)}
    m.process_disrupted = pyo.Constraint(sorted(hit & started), rule=process_limit)
