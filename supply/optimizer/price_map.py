"""Prices of every resource and period at once, for draws (the same prices as `Solution.price`, as one array)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from supply.network import Array

if TYPE_CHECKING:
    from supply.optimizer.compiled import Compiled


class PriceMap:
    """Rows of each resource and the contract shares that move with it, found once per compiled model.

    >>> from supply.network_examples import course_11_1
    >>> from supply.optimizer.compiled import Compiled
    >>> compiled = Compiled(course_11_1())
    >>> solution = compiled.solve()
    >>> dict(zip(compiled.network.resources, PriceMap(compiled)(solution.y, solution.values).ravel().tolist()))
    {'fab': 0.0, 'cowos': 1.0}
    """

    def __init__(self, compiled: Compiled) -> None:
        network, rows = compiled.network, compiled.structure.row
        self.resources = list(network.resources)
        length = network.horizon.length
        place = {r: k for k, r in enumerate(self.resources)}
        own: list[tuple[int, int, int]] = []
        for r, row in network.resources.items():
            name = "power" if row.is_power else "limit"
            own += [(place[r], t, rows[name, (r, t)]) for t in range(length) if (name, (r, t)) in rows]
        self.shape = (len(self.resources), length)
        self.own = np.array(own, dtype=np.int64).reshape(-1, 3)
        self.shares = []
        for k, contract in network.contracts.items():
            found = [
                (t, rows["contract_share_limit", (k, t)])
                for t in range(length)
                if ("contract_share_limit", (k, t)) in rows
            ]
            if found:
                periods, positions = np.array(found, dtype=np.int64).T
                self.shares.append((f"contracts.{k}.greatest_share", place[contract.resource], periods, positions))
        self.unit = np.array(
            [compiled.scale.flow * compiled.scale.money / compiled.structure.natural[r] for r in self.resources]
        )

    def __call__(self, y: Array, values: Mapping[str, Array]) -> Array:
        """Undiscounted prices [resource, period] (tail included) in objective units per natural unit: divide by the
        discount factor of the period for money of the period."""
        prices = np.zeros(self.shape)
        if len(self.own):
            prices[self.own[:, 0], self.own[:, 1]] = y[self.own[:, 2]]
        for path, resource, periods, positions in self.shares:
            prices[resource, periods] += values[path][periods] * y[positions]
        return np.asarray(prices * self.unit[:, None])
