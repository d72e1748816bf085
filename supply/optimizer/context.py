"""What the constraint families share: the network, its layout, the parameter table, the scale and the Pyomo model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from supply.network import Network
from supply.optimizer.layout import Layout
from supply.optimizer.parameters import Function, Key, ParameterTable, Scale


@dataclass
class Context:
    """One formulation under construction."""

    network: Network
    layout: Layout
    table: ParameterTable
    scale: Scale
    model: Any = None

    def declare(self, name: str, key: Key, function: Function) -> None:
        """Declare the parameter `name[key, t]`."""
        self.table.add(name, key, function)

    def has(self, name: str, *key: str | int) -> bool:
        """True where the parameter was declared."""
        return (name, key) in self.table.index

    def given(self, path: str) -> bool:
        """True where the scenario gives a number for a path."""
        return path in self.network.values

    def natural(self, resource: str) -> float:
        """Natural units of a resource in one model unit (MW per thousand kW for power rows)."""
        return self.scale.flow / 1000.0 if self.network.resources[resource].is_power else self.scale.flow
