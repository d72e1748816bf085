"""Readings of monitors, data sheets and traces made fit for a model: scope, direction and counts stated.

A share above one, a rate of unknown direction or a series without a known price is refused or listed, never guessed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Literal

from econ.performance.hardware import HardwareError, hardware

__all__ = [
    "ArrivalProfile",
    "FleetCount",
    "ReadingError",
    "arrival_profile",
    "count_fleet",
    "mean_utilisation",
    "one_direction_bytes_per_s",
    "share_of",
]

Direction = Literal["one", "both"]
#: Bytes per unit of a printed link rate: GB/s against Gb/s differ by eight.
RATE_UNITS: Mapping[str, float] = {"GB/s": 1e9, "Gb/s": 1e9 / 8, "Gbps": 1e9 / 8, "TB/s": 1e12, "Tb/s": 1e12 / 8}


class ReadingError(ValueError):
    """A reading that a model must not accept: a share above one, an unknown unit, an empty trace."""


def one_direction_bytes_per_s(value: float, unit: str, direction: Direction) -> float:
    """Bytes a second in one direction of a printed link rate; `both` halves it.

    >>> one_direction_bytes_per_s(400, "GB/s", "both"), one_direction_bytes_per_s(400, "Gb/s", "one")
    (200000000000.0, 50000000000.0)

    Raises:
        ReadingError: for an unknown unit or direction, or a rate that is not positive.
    """
    if unit not in RATE_UNITS:
        raise ReadingError(f"link rate unit {unit!r} is not one of {', '.join(RATE_UNITS)} (a b is a bit, a B a byte)")
    if direction not in ("one", "both") or value <= 0:
        raise ReadingError(f"link rate {value} {unit}: direction {direction!r} must be `one` or `both`, value positive")
    return value * RATE_UNITS[unit] * (0.5 if direction == "both" else 1.0)


def share_of(measured: float, nominal: float) -> float:
    """A measured rate over its nominal one, both in one direction and one unit.

    >>> share_of(160e9, one_direction_bytes_per_s(400, "GB/s", "both"))
    0.8

    Raises:
        ReadingError: when the measurement exceeds the nominal rate: unit, direction or format of one is wrong.
    """
    if measured < 0 or nominal <= 0:
        raise ReadingError(f"measured {measured:g} of nominal {nominal:g}")
    if measured > nominal:
        raise ReadingError(
            f"measured {measured:g} exceeds nominal {nominal:g}: check bits against bytes, one direction against both, "
            "dense against sparse"
        )
    return measured / nominal


def mean_utilisation(shares: Sequence[float], devices: int | None = None) -> float:
    """Mean busy share over all devices; devices that a monitor leaves out are idle and stay in the denominator.

    The share says that a kernel was resident, not how many FLOPs were used.

    >>> mean_utilisation([1.0], devices=2)
    0.5

    Raises:
        ReadingError: when a share lies outside 0..1, or there are fewer devices than readings.
    """
    bad = [s for s in shares if not 0 <= s <= 1]
    if bad:
        raise ReadingError(
            f"utilisation {', '.join(f'{s:g}' for s in bad)} lies outside 0..1: "
            "a slice normalised by another slice's size"
        )
    count = len(shares) if devices is None else devices
    if count < max(1, len(shares)):
        raise ReadingError(f"{len(shares)} readings of {count} devices")
    return sum(shares) / count


@dataclass(frozen=True, slots=True)
class FleetCount:
    """Nodes and accelerators of a fleet, shares by model, and the models that no fact describes (not priced)."""

    nodes: int
    accelerators: int
    node_share: Mapping[str, float]
    accelerator_share: Mapping[str, float]
    unknown: tuple[str, ...]


def count_fleet(rows: Iterable[Mapping[str, str]]) -> FleetCount:
    """Count a fleet from rows with `gpu_model`, `gpus_per_node` and `nodes`: a row is a node type, not a device.

    >>> count_fleet([{"gpu_model": "A10", "gpus_per_node": "1", "nodes": "10"}]).accelerators
    10

    Raises:
        ReadingError: when there is no row or a count is not positive.
    """
    nodes: dict[str, int] = defaultdict(int)
    devices: dict[str, int] = defaultdict(int)
    for i, row in enumerate(rows, 1):
        count, each = int(row["nodes"]), int(row["gpus_per_node"])
        if count < 1 or each < 1:
            raise ReadingError(f"row {i}: {count} nodes of {each} accelerators")
        nodes[row["gpu_model"]] += count
        devices[row["gpu_model"]] += count * each
    if not nodes:
        raise ReadingError("the fleet has no rows")
    all_nodes, all_devices = sum(nodes.values()), sum(devices.values())
    return FleetCount(
        all_nodes,
        all_devices,
        {k: v / all_nodes for k, v in nodes.items()},
        {k: v / all_devices for k, v in devices.items()},
        tuple(k for k in nodes if not _known(k)),
    )


def _known(name: str) -> bool:
    try:
        hardware(name)
    except HardwareError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class ArrivalProfile:
    """A request trace: token sums, mean and peak arrival rate, and the longest gap."""

    requests: int
    input_tokens: int
    output_tokens: int
    seconds: float
    mean_per_s: float
    peak_per_s: int
    longest_gap_s: float


def arrival_profile(rows: Iterable[Mapping[str, str]]) -> ArrivalProfile:
    """Profile a trace with `timestamp`, `context_tokens` and `generated_tokens`: the busiest second sizes a fleet.

    Seconds are whole seconds from the first arrival; fractions of more than six digits are cut.

    >>> arrival_profile([
    ...     {"timestamp": "2023-11-16 18:00:00.0000000", "context_tokens": "10", "generated_tokens": "1"},
    ...     {"timestamp": "2023-11-16 18:00:04.5000000", "context_tokens": "20", "generated_tokens": "2"},
    ... ]).longest_gap_s
    4.5

    Raises:
        ReadingError: when there are fewer than two requests.
    """
    data = list(rows)
    if len(data) < 2:
        raise ReadingError(f"a trace of {len(data)} requests has no rate")
    times = sorted(datetime.fromisoformat(r["timestamp"][:26]) for r in data)
    offsets = [(t - times[0]).total_seconds() for t in times]
    busy: dict[int, int] = defaultdict(int)
    for offset in offsets:
        busy[int(offset)] += 1
    span = offsets[-1]
    return ArrivalProfile(
        len(data),
        sum(int(r["context_tokens"]) for r in data),
        sum(int(r["generated_tokens"]) for r in data),
        span,
        len(data) / span if span else float("inf"),
        max(busy.values()),
        max(b - a for a, b in pairwise(offsets)),
    )
