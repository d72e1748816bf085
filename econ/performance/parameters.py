"""Fitted constants of the engine: global values with offsets by level (framework, hardware family), stored as logs.

A parameter is ``exp(base + sum of offsets)``; a level that was never measured has offset zero, so unseen hardware or
software
falls back to the global value, which itself is held by a prior from physics. The files are written by `calibration`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Codes = Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True)
class Spec:
    """One fitted parameter: its prior value and spread (of the log), and the levels that may shift it.

    ``shifts`` maps a level name (such as ``framework``) to the prior spread of its offsets.
    """

    name: str
    prior: float
    spread: float
    shifts: Mapping[str, float] = field(default_factory=dict)
    unit: str = ""
    note: str = ""


@dataclass(frozen=True)
class ParameterSet:
    """Values of all parameters: ``base`` logs by name and ``offsets`` by name, level and member.

    >>> p = ParameterSet({"a": 0.0}, {"a": {"framework": {"vLLM": 0.5}}}, {"framework": ("", "vLLM")})
    >>> p.value("a", {"framework": np.array([0, 1])}).round(3).tolist()
    [1.0, 1.649]
    """

    base: Mapping[str, float]
    offsets: Mapping[str, Mapping[str, Mapping[str, float]]]
    levels: Mapping[str, tuple[str, ...]]

    def value(self, name: str, codes: Codes | None = None) -> Any:
        """Value of a parameter, an array over set-ups when ``codes`` gives their level members."""
        total: Any = self.base[name]
        shifts = self.offsets.get(name)
        if not shifts or codes is None:
            return np.exp(total)
        for level, members in shifts.items():
            table = np.array([members.get(member, 0.0) for member in self.levels[level]])
            total = total + table[codes[level]]
        return np.exp(total)

    def code(self, level: str, member: str) -> int:
        """Position of a member in its level; 0 (no offset) when it was never measured."""
        members = self.levels[level]
        return members.index(member) if member in members else 0


class ParameterVector:
    """The flat vector that the least-squares solver sees, and its mapping to a `ParameterSet`."""

    def __init__(self, specs: Sequence[Spec], levels: Mapping[str, tuple[str, ...]]) -> None:
        self.specs = tuple(specs)
        self.levels = dict(levels)
        self.keys: list[tuple[str, str, str]] = []
        prior: list[float] = []
        spread: list[float] = []
        for spec in self.specs:
            self.keys.append((spec.name, "", ""))
            prior.append(float(np.log(spec.prior)))
            spread.append(spec.spread)
            for level, width in spec.shifts.items():
                for member in self.levels[level][1:]:
                    self.keys.append((spec.name, level, member))
                    prior.append(0.0)
                    spread.append(width)
        self.prior: Array = np.array(prior)
        self.spread: Array = np.array(spread)

    def __len__(self) -> int:
        return len(self.keys)

    def unpack(self, vector: Array) -> ParameterSet:
        """The parameter set of a vector."""
        base: dict[str, float] = {}
        offsets: dict[str, dict[str, dict[str, float]]] = {}
        for (name, level, member), number in zip(self.keys, vector, strict=True):
            if not level:
                base[name] = float(number)
            else:
                offsets.setdefault(name, {}).setdefault(level, {})[member] = float(number)
        return ParameterSet(base, offsets, self.levels)

    def penalty(self, vector: Array) -> Array:
        """Residuals that pull every parameter to its prior."""
        return np.asarray((vector - self.prior) / self.spread)


def to_json(parameters: ParameterSet, extra: Mapping[str, Any]) -> str:
    """Text of a parameter file: rounded logs, so that a rebuild gives the same bytes."""
    body = dict(extra) | {
        "levels": {name: list(members) for name, members in parameters.levels.items()},
        "base": {name: round(value, 5) for name, value in parameters.base.items()},
        "offsets": {
            name: {
                level: {member: round(value, 5) for member, value in members.items() if abs(value) >= 5e-6}
                for level, members in shifts.items()
            }
            for name, shifts in parameters.offsets.items()
        },
    }
    return json.dumps(body, indent=1, sort_keys=False) + "\n"


def from_mapping(body: Mapping[str, Any]) -> ParameterSet:
    """Parameter set of a parsed parameter file."""
    levels = {name: tuple(members) for name, members in body["levels"].items()}
    return ParameterSet(body["base"], body["offsets"], levels)


@lru_cache(maxsize=8)
def load_file(path: Path) -> dict[str, Any]:
    """Parsed parameter file (kept for the life of the process)."""
    with path.open(encoding="utf-8") as handle:
        body: dict[str, Any] = json.load(handle)
    return body
