"""Ramp and run-down of a process.

    start[p,t] <= ramp[p,t] start[p,t-1] + floor[p,t]         (greatest growth factor a period, from a floor)
    start[p,t] >= run_down[p,t] start[p,t-1]                  (least share of the period before, inside the window)

Before the horizon the process ran at `opening.pipeline`; where that is not given the first period is free. In the first
period of an introduction window only the floor may be started.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyomo.environ as pyo

from supply.network import Array
from supply.optimizer.context import Context
from supply.optimizer.parameters import Values


def declare(c: Context) -> None:
    """Parameters ramp, floor, ramp_first, run_down, run_down_first."""
    for p in c.network.processes:
        path = f"processes.{p}"
        opened = c.given(f"opening.pipeline.{p}")
        if c.given(f"{path}.ramp"):
            c.declare("ramp", (p,), partial(_plain, f"{path}.ramp"))
            c.declare("floor", (p,), partial(_floor, c, p))
            if opened:
                c.declare("ramp_first", (p,), partial(_ramp_first, c, p))
        if c.given(f"{path}.run_down"):
            c.declare("run_down", (p,), partial(_plain, f"{path}.run_down"))
            if opened:
                c.declare("run_down_first", (p,), partial(_run_down_first, c, p))


def _plain(path: str, values: Values) -> Array:
    return values(path)


def _floor(c: Context, p: str, values: Values) -> Array:
    return np.asarray(values(f"processes.{p}.floor", 0.0) / c.scale.flow)


def _ramp_first(c: Context, p: str, values: Values) -> Array:
    grown = values(f"processes.{p}.ramp") * values(f"opening.pipeline.{p}")[0] + values(f"processes.{p}.floor", 0.0)
    return np.asarray(grown / c.scale.flow)


def _run_down_first(c: Context, p: str, values: Values) -> Array:
    return np.asarray(values(f"processes.{p}.run_down") * values(f"opening.pipeline.{p}")[0] / c.scale.flow)


def constrain(c: Context) -> None:
    """Rows ramp_limit, run_down_limit."""
    m = c.model
    started = set(c.layout.start_index)

    def ramp(_: object, p: str, t: int) -> object:
        if (p, t - 1) in started:
            return m.start[p, t] <= m.ramp[p, t] * m.start[p, t - 1] + m.floor[p, t]
        if t == 0 and c.network.processes[p].first <= 0:
            return m.start[p, t] <= m.ramp_first[p, t] if c.has("ramp_first", p) else pyo.Constraint.Skip
        return m.start[p, t] <= m.floor[p, t] if c.given(f"processes.{p}.floor") else pyo.Constraint.Skip

    def run_down(_: object, p: str, t: int) -> object:
        last = c.network.processes[p].last
        if last is not None and t > last:
            return pyo.Constraint.Skip
        if (p, t - 1) in started:
            return m.start[p, t] >= m.run_down[p, t] * m.start[p, t - 1]
        if t == 0 and c.has("run_down_first", p):
            return m.start[p, t] >= m.run_down_first[p, t]
        return pyo.Constraint.Skip

    m.ramp_limit = pyo.Constraint([(p, t) for p, t in c.layout.start_index if c.has("ramp", p)], rule=ramp)
    m.run_down_limit = pyo.Constraint([(p, t) for p, t in c.layout.start_index if c.has("run_down", p)], rule=run_down)
