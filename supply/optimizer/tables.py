"""Derived tables of a solution: finished accelerators, use and price of every resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from supply.network import Array, Network
from supply.optimizer.evidence import matrix_of
from supply.optimizer.families.flows import arrival
from supply.optimizer.parameters import Values

if TYPE_CHECKING:
    from supply.optimizer.solution import Solution

FINISHED_STAGES = ("test", "packaging")


def finished_material(network: Network, sku: str) -> str:
    """Material that counts as a finished accelerator of a SKU: the output of the last test (else packaging) process on
    its route; the energised material itself where there is none."""
    for stage in FINISHED_STAGES:
        front, seen = [network.fleet[sku].material], set()
        while front:
            material = front.pop(0)
            if material in seen:
                continue
            seen.add(material)
            makers = [p for p in network.processes.values() if material in p.output]
            if any(p.stage == stage for p in makers):
                return material
            front += [m for p in makers for m in p.input]
    return network.fleet[sku].material


def arrivals(solution: Solution, material: str) -> Array:
    """Units of a material that arrive per period: starts inside the horizon and opening pipelines."""
    network = solution.network
    values = Values(solution.values, network.horizon.length)
    layout = solution.compiled.context.layout
    total = np.zeros(network.horizon.length)
    for p, k in layout.makers[material]:
        rate = arrival(p, material, k, values)
        made = rate * solution.column("start", p)
        total[k:] += made[: len(total) - k]
        if f"opening.pipeline.{p}" in solution.values:
            total[:k] += rate[0] * solution.values[f"opening.pipeline.{p}"][0]
    return total


def finished(solution: Solution) -> pd.DataFrame:
    """Finished accelerators: sku (or final material), period, t, finished.

    A material that several SKUs share is reported once, under its own name; without a fleet what is sold is finished.
    """
    network = solution.network
    shared: dict[str, list[str]] = {}
    for s in network.fleet:
        shared.setdefault(finished_material(network, s), []).append(s)
    series = {skus[0] if len(skus) == 1 else m: arrivals(solution, m) for m, skus in shared.items()}
    series |= {m: solution.column("sold", m) for m in network.demand if m not in series}
    labels = network.horizon.labels()
    rows = [(s, labels[t], t, a[t]) for s, a in series.items() for t in range(network.horizon.periods)]
    return pd.DataFrame(rows, columns=["sku", "period", "t", "finished"])


def resources(solution: Solution) -> pd.DataFrame:
    """Use and price of every resource and period: used, capacity (with what was added), utilisation, price (native),
    lasting_price, rent (price x capacity, in money of the period)."""
    network, structure = solution.network, solution.structure
    engine = solution.compiled.engine
    labels, length = network.horizon.labels(), network.horizon.length
    data = engine.matrix.coefficient.fill(solution.theta)
    rhs = engine.matrix.rhs.fill(solution.theta)
    activity = matrix_of(engine, data) @ solution.x
    built: dict[str, Array] = {}
    for e, option in network.expansions.items():
        built[option.resource] = built.get(option.resource, np.zeros(length)) + solution.column("added", e)
    records = []
    for r, row in network.resources.items():
        name = "power" if row.is_power else "limit"
        natural = structure.natural[r]
        lasting = 0.0
        lines = []
        for t in reversed(range(length)):
            i = structure.row.get((name, (r, t)))
            price = solution.price(r, t)
            lasting += price * solution.discount[t]
            if t >= network.horizon.periods or i is None:
                continue
            extra = float(built[r][t]) if r in built else 0.0
            limit = float(rhs[i]) * natural + extra
            used = float(activity[i]) * natural + extra
            used = 0.0 if abs(used) < 1e-9 * natural else used
            share = used / limit if limit > 0 else (0.0 if used <= 0 else np.inf)
            lines.append((labels[t], t, used, limit, share, price, lasting / solution.discount[t], price * limit))
        head = (r, row.title or r, row.stage, row.region, row.owner, row.supplier, "MW" if row.is_power else row.unit)
        records += [(*head, *line) for line in reversed(lines)]
    columns = ["resource", "title", "stage", "region", "owner", "supplier", "unit", "period", "t"]
    columns += ["used", "capacity", "utilisation", "price", "lasting_price", "rent"]
    return pd.DataFrame(records, columns=columns)


CONTRACT_ROWS = {
    "contract_share_limit": "greatest share",
    "contract_greatest_limit": "greatest take",
    "contract_share_due": "least share",
    "contract_least_due": "least take",
}


def contracts(solution: Solution) -> pd.DataFrame:
    """Use and price of every contract limit: contract, resource, rule, period, t, used, limit, binds, price, rent.

    `price`: money of the period per unit of the resource that the rule is loosened by (a greatest raised, a least
    lowered). Where a least is missed for a fee, the price is that fee, not the worth of capacity.
    """
    network, engine = solution.network, solution.compiled.engine
    labels, periods = network.horizon.labels(), network.horizon.periods
    activity = matrix_of(engine, engine.matrix.coefficient.fill(solution.theta)) @ solution.x
    rhs = engine.matrix.rhs.fill(solution.theta)
    records = []
    for family, rule in CONTRACT_ROWS.items():
        group = solution.structure.rows.get(family)
        if group is None:
            continue
        for i, key, t in zip(group.position.tolist(), group.key, group.period.tolist(), strict=True):
            if t < periods:
                resource = network.contracts[key[0]].resource
                natural = solution.structure.natural[resource]
                price = abs(float(solution.y[i])) * solution.worth / natural / solution.discount[t]
                used, limit = float(activity[i]) * natural, float(rhs[i]) * natural
                binds = abs(used - limit) <= 1e-6 * max(abs(limit), natural)
                records.append((key[0], resource, rule, labels[t], t, used, limit, binds, price, price * limit))
    columns = ["contract", "resource", "rule", "period", "t", "used", "limit", "binds", "price", "rent"]
    return pd.DataFrame(records, columns=columns)


def demand_steps(solution: Solution) -> pd.DataFrame:
    """How deep each designer's demand is filled: designer, period, t, fleet (value-weighted), step, discount.

    `step` is the last step in use (the number of steps = beyond all of them, where an accelerator has no more value).
    """
    network, records = solution.network, []
    labels = network.horizon.labels()
    for d, segment in network.segments.items():
        parts = [solution.column("segment", d, k) for k in range(segment.steps + 1)]
        for t in range(network.horizon.periods):
            used = [k for k, part in enumerate(parts) if part[t] > 1e-6 * solution.flow]
            last = used[-1] if used else 0
            lost = float(solution.values[f"demand.{d}.steps.{last}.discount"][t]) if last < segment.steps else 1.0
            records.append((d, labels[t], t, float(sum(p[t] for p in parts)), last, lost))
    return pd.DataFrame(records, columns=["designer", "period", "t", "fleet", "step", "discount"])
