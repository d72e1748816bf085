"""Who earns the rents, what the fleet could be without power or chip limits, and what waits for power."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from supply.network import Array
from supply.optimizer.prices import Perturbed
from supply.optimizer.solution import Solution
from supply.optimizer.tables import finished_material


def rents_by_owner(solution: Solution) -> pd.DataFrame:
    """owner, period, t, rent: price x capacity of everything an owner holds, in money of the period."""
    table = solution.resources
    named = table.assign(owner=table.owner.where(table.owner != "", "unnamed"))
    rents = pd.DataFrame(named.groupby(["owner", "period", "t"])["rent"].sum()).reset_index()
    return rents.sort_values(["t", "rent"], ascending=[True, False])


def fleet_mw(solution: Solution, x: Array | None = None) -> Array:
    """Planning MW of the whole fleet at the end of each reported period."""
    total = np.zeros(solution.network.horizon.periods)
    x = solution.x if x is None else x
    for (name, key), j in solution.structure.column.items():
        if name == "fleet" and key[-1] < len(total):
            kw = solution.values.get(f"fleet.{key[0]}.kw_planning")
            total[key[-1]] += x[j] * solution.flow * (float(kw[key[-1]]) if kw is not None else 0.0) / 1000.0
    return total


def limits(solution: Solution) -> pd.DataFrame:
    """Chip-limited against power-limited: fleet MW at period end as planned, without power rows, without chip rows.

    period, t, built_mw, without_power_rows_mw, without_chip_rows_mw, power_limited_mw, chip_limited_mw. Flows mislead
    (halls fill earlier), so the potentials are stocks. Power-limited chips are never made; they are not stranded.
    """
    names = solution.compiled.engine.matrix.rows
    power = [i for i, (name, _) in enumerate(names) if name == "power"]
    chips = [i for i, (name, _) in enumerate(names) if name == "limit"]
    built = fleet_mw(solution)
    with Perturbed(solution) as perturbed:
        free = {}
        for label, rows in (("power", power), ("chip", chips)):
            objective, x, _ = perturbed.freed(rows)
            free[label] = fleet_mw(solution, x) if np.isfinite(objective) else np.full(len(built), np.inf)
    gap = free["power"] - free["chip"]
    return pd.DataFrame(
        {
            "period": solution.network.horizon.labels()[: len(built)],
            "t": np.arange(len(built)),
            "built_mw": built,
            "without_power_rows_mw": free["power"],
            "without_chip_rows_mw": free["chip"],
            "power_limited_mw": np.maximum(gap, 0.0),
            "chip_limited_mw": np.maximum(-gap, 0.0),
        }
    )


def stranded(solution: Solution, normal_periods: float = 1.0) -> pd.DataFrame:
    """Finished packages, servers, racks beyond a normal pipeline while power binds: period, t, accelerators, mw.

    Normal: what the next period takes, times `normal_periods`. Materials from the finished accelerator to the energised
    one count, each in its own units (accelerators).
    """
    network, horizon = solution.network, solution.network.horizon
    table = solution.resources
    binds = set(table[(table.stage == "power") & (table.utilisation >= 1 - 1e-6)].t)
    rows = []
    chains = {s: made_from(network, finished_material(network, s)) for s in network.fleet}
    for t in range(horizon.periods):
        count = mw = 0.0
        for material in {m for chain in chains.values() for m in chain}:
            stock = solution.column("stock", material)
            takes = _takes(solution, material)
            spare = max(0.0, stock[t] - normal_periods * takes[min(t + 1, horizon.length - 1)]) if t in binds else 0.0
            users = [s for s, chain in chains.items() if material in chain]
            if spare and users:  # a power row binds, so every accelerator has its watts
                mw += spare * float(np.mean([solution.values[f"fleet.{s}.kw_planning"][t] for s in users])) / 1000.0
            count += spare
        rows.append((horizon.labels()[t], t, count, mw))
    return pd.DataFrame(rows, columns=["period", "t", "accelerators", "mw"])


def made_from(network: Any, material: str) -> set[str]:
    """A material and everything that is made from it."""
    found, front = {material}, [material]
    while front:
        m = front.pop()
        for process in network.processes.values():
            new = set(process.output) - found if m in process.input else set()
            found |= new
            front += new
    return found


def _takes(solution: Solution, material: str) -> Array:
    network = solution.network
    total = np.zeros(network.horizon.length)
    for p in solution.compiled.context.layout.takers[material]:
        total += solution.values[f"processes.{p}.input.{material}"] * solution.column("start", p)
    for s, g in solution.compiled.context.layout.places:
        if network.fleet[s].material == material:
            total += solution.column("energise", s, g)
    return total
