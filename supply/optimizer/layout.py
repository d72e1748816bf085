"""Who takes, makes and uses what: look-up tables of a network for the constraint families."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

import numpy as np

from supply.network import Network, in_window


class Layout:
    """Structure tables of a network. They change only with the structure or a lead time, never with a draw."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.horizon = network.horizon
        self.length = network.horizon.length
        self.periods = range(self.length)

    def lags(self, path: str) -> list[int]:
        """Whole-period lags over which a fractional lead time is spread (weights: `lag_weight`)."""
        lead = self.network.get(path, 0.0)
        whole, fraction = np.floor(lead), lead - np.floor(lead)
        return sorted({int(k) for k in whole} | {int(k) + 1 for k, f in zip(whole, fraction, strict=True) if f > 0})

    @cached_property
    def process_lags(self) -> dict[str, list[int]]:
        """Lags of every process."""
        return {p: self.lags(f"processes.{p}.lead_time") for p in self.network.processes}

    @cached_property
    def makers(self) -> dict[str, list[tuple[str, int]]]:
        """Material -> (process, lag)."""
        table: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for p, process in self.network.processes.items():
            for material in process.output:
                table[material] += [(p, k) for k in self.process_lags[p]]
        return table

    def returns(self, p: str, m: str) -> bool:
        """True where a process takes a material and gives some of it back in the same period."""
        process = self.network.processes[p]
        return m in process.input and m in process.output and 0 in self.process_lags[p]

    @cached_property
    def takers(self) -> dict[str, list[str]]:
        """Material -> processes that take it at start."""
        table: dict[str, list[str]] = defaultdict(list)
        for p, process in self.network.processes.items():
            for material in process.input:
                table[material].append(p)
        return table

    @cached_property
    def users(self) -> dict[str, list[str]]:
        """Resource -> processes that use it at start."""
        table: dict[str, list[str]] = defaultdict(list)
        for p, process in self.network.processes.items():
            for resource in process.uses:
                table[resource].append(p)
        return table

    @cached_property
    def drawn_by(self) -> dict[str, list[str]]:
        """Material -> SKUs energised from its stock."""
        table: dict[str, list[str]] = defaultdict(list)
        for s, sku in self.network.fleet.items():
            table[sku.material].append(s)
        return table

    @cached_property
    def designers(self) -> dict[str, list[str]]:
        """Designer -> SKUs."""
        table: dict[str, list[str]] = defaultdict(list)
        for s, sku in self.network.fleet.items():
            if sku.designer:
                table[sku.designer].append(s)
        return table

    @cached_property
    def places(self) -> list[tuple[str, str]]:
        """(SKU, region) pairs."""
        return [(s, g) for s, sku in self.network.fleet.items() for g in sku.regions]

    @cached_property
    def start_index(self) -> list[tuple[str, int]]:
        """(process, period) pairs in which a start may happen.

        A process whose end becomes known later keeps its variables after the end: a rolling run opens them.
        """
        pairs = []
        for p, process in self.network.processes.items():
            last = None if process.known_from is not None else process.last
            pairs += [(p, t) for t in self.periods if in_window(process.first, last, t)]
        return pairs

    @cached_property
    def energise_index(self) -> list[tuple[str, str, int]]:
        """(SKU, region, period) in which accelerators may be switched on."""
        fleet = self.network.fleet
        return [(s, g, t) for s, g in self.places for t in self.periods if in_window(fleet[s].first, fleet[s].last, t)]

    @cached_property
    def retire_index(self) -> list[tuple[str, str, int]]:
        """(SKU, region, period) in which accelerators may be switched off early."""
        return [(s, g, t) for s, g in self.places if self.network.fleet[s].early_retirement for t in self.periods]

    @cached_property
    def co_products(self) -> list[str]:
        """Materials of processes with several outputs: what is not wanted of them may be thrown away."""
        return sorted(
            {m for process in self.network.processes.values() if len(process.output) > 1 for m in process.output}
        )

    @cached_property
    def expansions_of(self) -> dict[str, list[str]]:
        """Resource -> expansion options."""
        table: dict[str, list[str]] = defaultdict(list)
        for e, expansion in self.network.expansions.items():
            table[expansion.resource].append(e)
        return table

    @cached_property
    def build_index(self) -> list[tuple[str, int]]:
        """(expansion, period) pairs in which building may start."""
        items = self.network.expansions.items()
        return [(e, t) for e, option in items for t in self.periods if in_window(option.first, option.last, t)]

    @cached_property
    def lumpy(self) -> list[str]:
        """Expansions built in lumps."""
        return [e for e in self.network.expansions if f"expansions.{e}.lump" in self.network.values]

    @cached_property
    def owners_with_budget(self) -> list[str]:
        """Owners whose expansion spending is limited."""
        owners = {expansion.owner for expansion in self.network.expansions.values()}
        return sorted(o for o in owners if f"costs.capex_budget.{o}" in self.network.values)

    @cached_property
    def lag_to_fleet(self) -> dict[str, float]:
        """Least periods from the start of a process to the first hour its accelerators can earn; only processes that
        lead to a fleet. The annuity of a capital-like cost starts then."""
        need: dict[str, float] = {sku.material: 0.0 for sku in self.network.fleet.values()}
        lag: dict[str, float] = {}
        for _ in range(len(self.network.processes) + 1):
            before = (dict(need), dict(lag))
            for p, process in self.network.processes.items():
                downstream = [need[m] for m in process.output if m in need]
                if downstream:
                    lag[p] = min(downstream) + self.network.scalar(f"processes.{p}.lead_time", 0.0)
                    for m in process.input:
                        need[m] = min(need.get(m, np.inf), lag[p])
            if before == (need, lag):
                break
        return lag
