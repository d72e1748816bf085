"""The optimum as a Pyomo model: the only statement of the mathematics (docs/mathematics.md).

Families: flows, fleet, market, contracts, growth, investment, objective. Each declares its parameters beside its rows.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyomo.environ as pyo

from supply.network import Array, Network
from supply.optimizer.context import Context
from supply.optimizer.families import contracts, fleet, flows, growth, investment, market, objective
from supply.optimizer.layout import Layout
from supply.optimizer.parameters import ParameterTable, Scale


def formulate(network: Network, scale: Scale | None = None) -> Context:
    """Parameters and layout of a network, without the Pyomo model (see `pyomo_model`)."""
    context = Context(network, Layout(network), ParameterTable(network), scale or Scale.of(network))
    for family in (flows, fleet, market, contracts, growth, investment, objective):
        family.declare(context)
    return context


def estimated_rows(context: Context) -> int:
    """Rows before anything is built: balances, limits, fleets, demand and contracts per period."""
    network, layout = context.network, context.layout
    per_period = len(network.materials) + len(network.resources) + len(layout.places) + len(network.demand)
    per_period += sum(segment.steps + 1 for segment in network.segments.values())
    per_period += sum(sku.tastes + 1 for sku in network.fleet.values() if sku.tastes) + 2 * len(network.contracts)
    grown = [p for p in network.processes if context.has("ramp", p) or context.has("run_down", p)]
    return (per_period + 2 * len(grown) + 2 * len(network.expansions)) * layout.length


def pyomo_model(context: Context, theta: Array) -> Any:
    """Concrete Pyomo model whose parameters hold the numbers of `theta`; the model is to be maximised."""
    model = pyo.ConcreteModel()
    context.model = model
    grouped: dict[str, dict[Any, float]] = defaultdict(dict)
    numbers = theta.tolist()
    for parameter in context.table.parameters:
        group = grouped[parameter.name]
        for t in range(context.table.length):
            group[(*parameter.key, t)] = numbers[parameter.offset + t]
    for name, group in grouped.items():
        setattr(model, name, pyo.Param(list(group), initialize=group, mutable=True, domain=pyo.Reals))
    for family in (flows, fleet, market, contracts, investment):
        family.variables(context)
    for rows in (flows, fleet, market, contracts, growth, investment, objective):
        rows.constrain(context)
    return model
