"""Pipelines before the horizon where the scenario asks for `opening: at_capacity`."""

from __future__ import annotations

from dataclasses import replace

from supply.network import Horizon, Network, Opening, Resource, in_window
from supply.optimizer.families.fleet import opening_share
from supply.optimizer.parameters import Values


def with_opening(network: Network) -> Network:
    """Network with a pipeline for every process that has a lead time and none given, if `opening.at_capacity`.

    The starts are those of a steady state: one period at the opening capacities, without lead times, that finishes as
    many accelerators as it can (share of the power that the fleet needs ignored). Marked illustrative by the caller.
    """
    if not network.opening.at_capacity:
        return network
    from supply.optimizer.compiled import Compiled

    steady = Compiled(_steady(network), check=False).solve(tidy=True)
    starts = steady.activities.groupby("process")["starts"].sum()
    filled = {
        f"opening.pipeline.{p}": float(starts.get(p, 0.0))
        for p in network.processes
        if f"opening.pipeline.{p}" not in network.values and network.get(f"processes.{p}.lead_time", 0.0).max() > 0
    }
    return replace(network.with_values(filled), opening=Opening())


def opening_notes(given: Network, filled: Network) -> list[str]:
    """What was done to the opening, in words: pipelines filled, fleet scaled to its power."""
    notes = []
    if given.opening.at_capacity:
        count = sum(1 for path in filled.values if path.startswith("opening.pipeline.") and path not in given.values)
        notes.append(f"opening pipelines of {count} processes from a warm-up at the opening capacities (illustrative)")
    values = Values(filled.values, filled.horizon.length)
    for region in sorted({g for sku in filled.fleet.values() for g in sku.regions}):
        share = opening_share(filled, region, values)
        if share < 1:
            notes.append(f"opening fleet of {region}: {1 - share:.1%} found no power and stands in stock")
    return notes


def _steady(network: Network) -> Network:
    """One period at the opening capacities: sale of every fleet material at its yearly value, nothing else."""
    from supply.network import Demand, Objective

    open_now = {p: process for p, process in network.processes.items() if in_window(process.first, process.last, 0)}
    values = {path: array[:1] for path, array in network.values.items()}
    values = {p: a for p, a in values.items() if not p.endswith((".lead_time", ".ramp", ".run_down", ".floor"))}
    values = {p: a for p, a in values.items() if not p.startswith(("opening.", "contracts.", "expansions.", "costs."))}
    for sku in network.fleet.values():
        values[f"demand.{sku.material}.price"] = network.get(f"fleet.{sku.id}.value")[:1] * network.horizon.hours() * 8
    demand = {sku.material: Demand(sku.material) for sku in network.fleet.values()}
    return replace(
        network,
        horizon=Horizon(network.horizon.start, 1, network.horizon.step),
        processes=open_now,
        resources={r: _plain(row) for r, row in network.resources.items() if not row.is_power},
        values=values,
        demand={**{m: Demand(m) for m in network.demand}, **demand},
        segments={},
        fleet={},
        contracts={},
        expansions={},
        disruptions={},
        regions={},
        objective=Objective("value"),
        opening=Opening(),
    )


def _plain(row: Resource) -> Resource:
    return row
