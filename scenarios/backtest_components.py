"""Component use and spend of one plan: shares of CoWoS, HBM and leading logic, and what the parts cost, by quarter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from scenarios.nodes import Array

if TYPE_CHECKING:
    from supply.network import Network
    from supply.optimizer.compiled import Compiled

__all__ = ["SHARES", "SPEND", "Components"]

#: Component -> resources whose use over limit is its share; logic counts over the whole node, not the part set aside.
SHARES: dict[str, tuple[str, ...]] = {
    "cowos": ("cowos", "cowos_osat"),
    "hbm": ("hbm_sk_hynix", "hbm_samsung", "hbm_micron"),
    "logic": ("n5", "n3"),
}
SPEND = ("hbm", "packaging", "logic")
#: Part of a node that the base sets aside for accelerators, so that use can be put over the whole node.
NODE_PART = {"n5": 0.3, "n3": 0.35}


class Components:
    """Reads component use and spend from the starts of a plan; `names` says what each entry is."""

    def __init__(self, compiled: Compiled) -> None:
        network = compiled.network
        self.periods = network.horizon.periods
        self.labels = network.horizon.labels()[: self.periods]
        self.flow = compiled.scale.flow
        self.starts: dict[str, Array] = {}
        for (name, key), j in compiled.structure.column.items():
            if name == "start" and key[-1] < self.periods:
                columns = self.starts.setdefault(str(key[0]), np.full(self.periods, -1, dtype=np.int64))
                columns[key[-1]] = j
        self.maker = {
            m: p for p, process in network.processes.items() if process.stage == "hbm" for m in process.output
        }
        kinds = [f"used_{c}" for c in SHARES] + [f"supply_{c}" for c in SHARES] + [f"spend_{c}" for c in SPEND]
        self.names = [f"{kind}:world@{p}" for kind in kinds for p in self.labels]

    def read(self, network: Network, values: Mapping[str, Array], x: Array) -> Array:
        """Used and available wafers of each component (native units a period), and spend (USD a period)."""
        count = {p: np.where(c >= 0, x[c], 0.0) * self.flow for p, c in self.starts.items()}
        used = {r: np.zeros(self.periods) for part in SHARES.values() for r in part}
        for p, starts in count.items():
            for r in network.processes[p].uses:
                if r in used:
                    used[r] += starts * self._of(values, f"processes.{p}.uses.{r}")
        total = [sum((used[r] for r in part), np.zeros(self.periods)) for part in SHARES.values()]
        supply = [
            sum(
                (self._of(values, f"resources.{r}.capacity") / NODE_PART.get(r, 1.0) for r in part),
                np.zeros(self.periods),
            )
            for part in SHARES.values()
        ]
        return np.concatenate([*total, *supply, *self._spend(network, values, count)])

    def _of(self, values: Mapping[str, Array], path: str) -> Array:
        return np.asarray(values[path][: self.periods] if path in values else np.zeros(self.periods))

    def _spend(self, network: Network, values: Mapping[str, Array], count: Mapping[str, Array]) -> list[Array]:
        spent = {c: np.zeros(self.periods) for c in SPEND}
        for p, starts in count.items():
            process = network.processes[p]
            if process.stage == "fab":
                spent["logic"] += starts * self._of(values, f"processes.{p}.cost")
            elif process.stage == "packaging":
                spent["packaging"] += starts * self._of(values, f"processes.{p}.cost")
                for m in process.input:
                    if m in self.maker:
                        spent["hbm"] += starts * self._of(values, f"processes.{p}.input.{m}") * self._price(values, m)
        return [spent[c] for c in SPEND]

    def _price(self, values: Mapping[str, Array], stack: str) -> Array:
        """USD per good stack: cost of a start over its yield."""
        maker = f"processes.{self.maker[stack]}"
        good = self._of(values, f"{maker}.yield")
        return np.divide(self._of(values, f"{maker}.cost"), good, out=np.zeros(self.periods), where=good > 0)
