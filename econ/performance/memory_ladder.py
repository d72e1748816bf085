"""The memory ladder: registers, shared memory, L2, device memory, peers, host memory, local SSD, network storage.

Each rung has a capacity, a bandwidth and a latency per accelerator. Rungs inside the chip scale with its units; those
outside come from its links. `rows()` gives the table that a report or figure draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache

from econ.performance.hardware import Hardware, hardware
from supply.facts import catalog

__all__ = ["Rung", "ladder", "rows"]

#: Clock that turns the cycles of the on-chip rungs into seconds, of the part that they were measured on (H100 boost).
CYCLES_PER_SECOND = 1.98e9


@dataclass(frozen=True, slots=True)
class Rung:
    """One rung: capacity in bytes, bandwidth in B/s, latency in s, and the facts that it rests on."""

    name: str
    capacity_bytes: float
    bytes_per_s: float
    latency_s: float
    fact_ids: tuple[str, ...]


def _id(rung: str, quantity: str) -> str:
    return f"eng_ladder_{rung.lower().replace(' ', '_')}_{quantity}"


@lru_cache(maxsize=64)
def _fact(rung: str, quantity: str, unit: str) -> float:
    fact = catalog()[_id(rung, quantity)]
    return fact.to(unit) if unit else fact.number


def ladder(device: str | Hardware) -> Mapping[str, Rung]:
    """The rungs of a device by name, nearest first; a rung that a device lacks is left out.

    >>> rungs = ladder("H100")
    >>> list(rungs)[:4]
    ['registers', 'shared memory', 'L2 cache', 'device memory']
    >>> rungs["device memory"].bytes_per_s
    3350000000000.0
    >>> all(a.bytes_per_s >= b.bytes_per_s for a, b in zip(list(rungs.values()), list(rungs.values())[1:]))
    True
    """
    gpu = hardware(device) if isinstance(device, str) else device
    out: dict[str, Rung] = {}
    gpu_like = gpu.vendor in ("nvidia", "amd") and gpu.compute_units
    if gpu_like:
        for name in ("registers", "shared memory"):
            out[name] = _on_chip(name, gpu.compute_units or 1)
    if gpu.l2_bytes:
        speed = _fact("L2 cache", "bandwidth_over_memory", "") * gpu.memory_bytes_per_s
        latency = _fact("L2 cache", "latency_cycles", "") / CYCLES_PER_SECOND
        ids = (gpu.fact_ids.get("l2_bytes", ""), _id("L2 cache", "bandwidth_over_memory"))
        out["L2 cache"] = Rung("L2 cache", gpu.l2_bytes, speed, latency, ids)
    out["device memory"] = Rung(
        "device memory",
        gpu.memory_bytes,
        gpu.memory_bytes_per_s,
        _fact("device memory", "latency_cycles", "") / CYCLES_PER_SECOND,
        (gpu.fact_ids.get("memory_bytes", ""), gpu.fact_ids.get("memory_bytes_per_s", "")),
    )
    if gpu.domain_size > 1:
        peers = gpu.memory_bytes * (gpu.domain_size - 1)
        latency = _fact("peer devices", "latency", "second")
        out["peer devices"] = Rung(
            "peer devices", peers, gpu.link_bytes_per_s, latency, (_id("peer devices", "latency"),)
        )
    for name in ("host memory", "local SSD", "network storage"):
        if name == "host memory" and gpu.segment in ("unified", "cpu"):
            continue
        out[name] = _outside(name)
    return out


def _on_chip(name: str, units: int) -> Rung:
    return Rung(
        name,
        units * _fact(name, "capacity_per_unit", "byte"),
        units * _fact(name, "bandwidth_per_unit", "byte/second"),
        _fact(name, "latency_cycles", "") / CYCLES_PER_SECOND,
        tuple(_id(name, q) for q in ("capacity_per_unit", "bandwidth_per_unit", "latency_cycles")),
    )


def _outside(name: str) -> Rung:
    capacity = _fact(name, "capacity", "byte") if _id(name, "capacity") in catalog() else float("inf")
    ids = tuple(i for i in (_id(name, q) for q in ("capacity", "bandwidth", "latency")) if i in catalog())
    return Rung(name, capacity, _fact(name, "bandwidth", "byte/second"), _fact(name, "latency", "second"), ids)


def rows(device: str | Hardware) -> list[dict[str, object]]:
    """The ladder as plain rows (name, capacity_bytes, bytes_per_s, latency_s, fact_ids), for tables and figures."""
    return [asdict(r) for r in ladder(device).values()]
