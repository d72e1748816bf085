"""The numbers of the formulation: every coefficient is one named parameter, an array over the periods.

A parameter is a function of the paths of `Network.values`; which paths it reads is recorded when it is first evaluated.
The formulation holds only these parameters and +-1, so that one compile with fingerprints instead of numbers shows
which matrix entry carries which parameter (`supply.optimizer.compiled`): there is no second statement to keep in step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from supply.network import Array, Network, NetworkError

Key = tuple[str | int, ...]


class Values:
    """Read access to the numbers of a network; records the paths that are read while `trace` is a set."""

    def __init__(self, numbers: Mapping[str, Array], length: int) -> None:
        self.numbers = numbers
        self.length = length
        self.trace: set[str] | None = None
        self._weights: dict[tuple[str, int], tuple[Array, Array]] = {}

    def __call__(self, path: str, default: float | None = None) -> Array:
        """Array of a path, or `default` held over the horizon."""
        if self.trace is not None:
            self.trace.add(path)
        found = self.numbers.get(path)
        if found is not None:
            return found
        if default is None:
            raise NetworkError(f"{path}: no value; give one in the scenario")
        return np.full(self.length, float(default))

    def given(self, path: str) -> bool:
        """True where a path has a number."""
        return path in self.numbers

    def weight(self, path: str, lag: int) -> Array:
        """`lag_weight` of a lead time; remembered as long as the path holds the same array."""
        lead = self(path)
        known = self._weights.get((path, lag))
        if known is None or known[0] is not lead:
            known = self._weights[path, lag] = (lead, lag_weight(lead, lag))
        return known[1]


Function = Callable[[Values], Array]


@dataclass(frozen=True)
class Parameter:
    """One named array: `name[key, t]`, stored at `offset` of the flat vector."""

    name: str
    key: Key
    function: Function
    offset: int
    paths: frozenset[str]


class ParameterTable:
    """All parameters of a formulation with their current numbers in one flat vector `theta`."""

    def __init__(self, network: Network) -> None:
        self.length = network.horizon.length
        self.values = Values(dict(network.values), self.length)
        self.parameters: list[Parameter] = []
        self.index: dict[tuple[str, Key], Parameter] = {}
        self.readers: dict[str, list[Parameter]] = {}
        self._chunks: list[Array] = []

    def add(self, name: str, key: Key, function: Function) -> None:
        """Declare `name[key, t]` for every period as `function(values)`."""
        self.values.trace = set()
        chunk = np.broadcast_to(np.asarray(function(self.values), dtype=float), self.length)
        parameter = Parameter(name, key, function, len(self.parameters) * self.length, frozenset(self.values.trace))
        self.values.trace = None
        self.parameters.append(parameter)
        self.index[name, key] = parameter
        self._chunks.append(chunk)
        for path in parameter.paths:
            self.readers.setdefault(path, []).append(parameter)

    def theta(self) -> Array:
        """Current numbers, one after the other (a copy)."""
        return np.concatenate(self._chunks) if self._chunks else np.zeros(0)

    def evaluate(self, changes: Mapping[str, Array], theta: Array) -> None:
        """Write the numbers that follow from changed paths into `theta`, in place."""
        numbers = self.values.numbers
        assert isinstance(numbers, dict)
        numbers.update(changes)
        touched = {id(p): p for path in changes for p in self.readers.get(path, ())}
        for parameter in touched.values():
            theta[parameter.offset : parameter.offset + self.length] = parameter.function(self.values)


@dataclass(frozen=True)
class Scale:
    """Model units: `flow` natural units and `flow * money` USD (or units of the objective) are one inside the model."""

    flow: float = 1000.0
    money: float = 1000.0

    @classmethod
    def of(cls, network: Network) -> Scale:
        """Thousand devices and million USD for industry-sized networks, single units for textbook ones."""
        quantities = [p for p in network.values if p.endswith((".capacity", ".quantity")) or p.startswith("opening.")]
        flow = 1000.0 if _median(network, quantities) >= 1000.0 else 1.0
        if network.objective.kind != "value":
            return cls(flow, 1.0)
        hours = network.horizon.hours()
        prices = [
            p for p in network.values if p.startswith(("processes.", "demand.")) and p.endswith((".cost", ".price"))
        ]
        typical = max(
            _median(network, prices),
            hours * _median(network, [p for p in network.values if p.startswith("fleet.") and p.endswith(".value")]),
        )
        return cls(flow, 1000.0 if typical >= 1000.0 else 1.0)


def _median(network: Network, paths: list[str]) -> float:
    numbers = np.concatenate([np.abs(network.values[p]) for p in paths]) if paths else np.zeros(0)
    numbers = numbers[numbers > 0]
    return float(np.median(numbers)) if len(numbers) else 0.0


def lag_weight(lead_time: Array, lag: int) -> Array:
    """Share of a start that arrives `lag` periods later: 1 - frac at floor(L), frac at floor(L) + 1.

    >>> lag_weight(np.array([1.25]), 1), lag_weight(np.array([1.25]), 2)
    (array([0.75]), array([0.25]))
    """
    whole = np.floor(lead_time)
    fraction = lead_time - whole
    return np.where(whole == lag, 1 - fraction, 0.0) + np.where(whole + 1 == lag, fraction, 0.0)


def discount(values: Values, years_per_period: float) -> Array:
    """Discount factor of each period: (1 + rate)^(-years since the start)."""
    return _factors(float(values("discount_rate", 0.0)[0]), years_per_period, values.length)


@lru_cache(maxsize=256)
def _factors(rate: float, years_per_period: float, length: int) -> Array:
    factors = np.asarray((1 + rate) ** (-years_per_period * np.arange(length)))
    factors.flags.writeable = False
    return factors


def annuity_share(values: Values, life_years: float, lag: float, years_per_period: float) -> Array:
    """Part of the annuity of a cost paid in each period that falls inside the horizon (tail included).

    The annuity starts `lag` periods after the payment, runs over `life_years`, and has the present value of the cost.

    >>> v = Values({"discount_rate": np.zeros(4)}, 4)
    >>> annuity_share(v, 2.0, 1.0, 0.25)   # eight quarters of life; 3, 2, 1, 0 of them inside
    array([0.375, 0.25 , 0.125, 0.   ])
    """
    rate = float(values("discount_rate", 0.0)[0])
    return _share(rate, float(life_years), float(lag), years_per_period, values.length)


@lru_cache(maxsize=1024)
def _share(rate: float, life_years: float, lag: float, years_per_period: float, length: int) -> Array:
    life = life_years / years_per_period
    grid = np.arange(int(np.ceil(length + lag + life)) + 2)
    factor = (1 + rate) ** (-years_per_period * grid[:-1])
    cumulated = np.concatenate([[0.0], np.cumsum(factor)])
    first = np.arange(length) + lag
    end = float(length)

    def paid(a: Any, b: Any) -> Array:
        return np.asarray(np.interp(b, grid, cumulated) - np.interp(a, grid, cumulated))

    share = np.asarray(paid(np.minimum(first, end), np.minimum(first + life, end)) / paid(first, first + life))
    share.flags.writeable = False
    return share


def disruption_factor(network: Network, values: Values, target: str, subject: str) -> Array:
    """Share of a capacity left by the disruptions of a resource or process, back to 1 over `ramp_back` periods."""
    t = np.arange(values.length)
    factor = np.ones(values.length)
    for d, event in network.disruptions.items():
        if event.target != target or event.subject != subject:
            continue
        lost = 1 - values(f"disruptions.{d}.remaining")
        after = np.clip(1 - (t - event.last) / event.ramp_back, 0, 1) if event.ramp_back > 0 else (t <= event.last)
        shape = np.where(t < event.first, 0.0, np.where(t <= event.last, 1.0, after))
        at_end = np.where(t <= event.last, lost, lost[min(max(event.last, 0), values.length - 1)])
        factor = factor * (1 - at_end * shape)
    return factor
