"""Contracts: greatest and least takes from a resource.

    L[c,t] = sum_{p of c} use[p,r,t] start[p,t]          (SKUs of a power row: sum kw[s,t] fleet[s,g,t])
    L <= greatest_share[c,t] (capacity[r,t] + sum_e added[e,t]),   L <= contract_greatest[c,t]
    L + short[c,t] >= least_share[c,t] capacity[r,t],              L + short[c,t] >= contract_least[c,t]

`short` exists where take-or-pay sets a fee for it; without a fee the least is hard. The fee is never a price.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyomo.environ as pyo

from supply.network import Array, in_window
from supply.optimizer.context import Context
from supply.optimizer.families.flows import capacity
from supply.optimizer.parameters import Values


def declare(c: Context) -> None:
    """Parameters share_of_capacity, greatest_share, contract_greatest, least_of_capacity, contract_least."""
    for k, contract in c.network.contracts.items():
        r = contract.resource
        if c.given(f"contracts.{k}.greatest_share"):
            c.declare("share_of_capacity", (k,), partial(_share_of_capacity, c, k, r, "greatest_share"))
            if c.layout.expansions_of[r]:
                c.declare("greatest_share", (k,), partial(_plain, f"contracts.{k}.greatest_share"))
        if c.given(f"contracts.{k}.least_share"):
            c.declare("least_of_capacity", (k,), partial(_share_of_capacity, c, k, r, "least_share"))
        for side in ("greatest", "least"):
            if c.given(f"contracts.{k}.{side}"):
                c.declare(f"contract_{side}", (k,), partial(_quantity, c, k, r, side))


def _plain(path: str, values: Values) -> Array:
    return values(path)


def _share_of_capacity(c: Context, k: str, r: str, side: str, values: Values) -> Array:
    return np.asarray(values(f"contracts.{k}.{side}") * capacity(c, r, values))


def _quantity(c: Context, k: str, r: str, side: str, values: Values) -> Array:
    return np.asarray(values(f"contracts.{k}.{side}") / c.natural(r))


def _window(c: Context, k: str) -> list[int]:
    contract = c.network.contracts[k]
    return [t for t in c.layout.periods if in_window(contract.first, contract.last, t)]


def variables(c: Context) -> None:
    """short, where there is a fee for it."""
    paid = [k for k in c.network.contracts if c.given(f"contracts.{k}.take_or_pay")]
    c.model.short = pyo.Var([(k, t) for k in paid for t in _window(c, k)], domain=pyo.NonNegativeReals)


def constrain(c: Context) -> None:
    """Rows contract_share_limit, contract_greatest_limit, contract_share_due, contract_least_due."""
    m, layout = c.model, c.layout
    started = set(layout.start_index)

    def load(k: str, t: int) -> Any:
        contract = c.network.contracts[k]
        row = c.network.resources[contract.resource]
        if row.is_power:
            mine = [(s, g) for s, g in layout.places if s in contract.processes and g == row.region]
            return sum(m.kw[s, t] * m.fleet[s, g, t] for s, g in mine)
        mine_p = [p for p in dict.fromkeys(contract.processes) if contract.resource in c.network.processes[p].uses]
        return sum(m.use[p, contract.resource, t] * m.start[p, t] for p in mine_p if (p, t) in started)

    def share_limit(_: object, k: str, t: int) -> object:
        used = load(k, t)
        if isinstance(used, int):
            return pyo.Constraint.Skip
        built = layout.expansions_of[c.network.contracts[k].resource]
        return used - sum(m.greatest_share[k, t] * m.added[e, t] for e in built) <= m.share_of_capacity[k, t]

    def greatest(_: object, k: str, t: int) -> object:
        used = load(k, t)
        return pyo.Constraint.Skip if isinstance(used, int) else used <= m.contract_greatest[k, t]

    def due(name: str, _: object, k: str, t: int) -> object:
        short = m.short[k, t] if c.given(f"contracts.{k}.take_or_pay") else 0
        left = load(k, t) + short
        return pyo.Constraint.Skip if isinstance(left, int) else left >= getattr(m, name)[k, t]

    def index(name: str) -> list[tuple[str, int]]:
        return [(k, t) for k in c.network.contracts if c.has(name, k) for t in _window(c, k)]

    m.contract_share_limit = pyo.Constraint(index("share_of_capacity"), rule=share_limit)
    m.contract_greatest_limit = pyo.Constraint(index("contract_greatest"), rule=greatest)
    m.contract_share_due = pyo.Constraint(index("least_of_capacity"), rule=partial(due, "least_of_capacity"))
    m.contract_least_due = pyo.Constraint(index("contract_least"), rule=partial(due, "contract_least"))
