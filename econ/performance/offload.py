"""Weights that do not fit a device: how much stays, where the rest goes, and what each tier costs in decode speed.

A decode step reads the resident share at the device's bandwidth and the rest over the link to its tier, one after the
other (no overlap: the ceiling is optimistic only in that).
"""

from __future__ import annotations

from dataclasses import dataclass

from econ.performance.architecture import Architecture, architecture
from econ.performance.formats import number_format, part_bytes, weight_bytes
from econ.performance.hardware import Hardware, hardware
from econ.performance.memory import MemoryFitError, fit, gb
from econ.performance.memory_ladder import ladder
from econ.performance.names import parse_model

__all__ = ["OffloadPlan", "offload"]


@dataclass(frozen=True, slots=True)
class OffloadPlan:
    """One tier for the weights that do not fit: bytes there, its bandwidth, the decode ceiling and the slow-down."""

    tier: str
    offloaded_bytes: float
    tier_bytes_per_s: float
    seconds_per_token: float
    tokens_per_s: float
    slowdown: float
    reason: str


def offload(
    model: str | Architecture,
    device: str | Hardware,
    *,
    weight_format: str | None = None,
    tokens: int = 4096,
    batch: int = 1,
) -> tuple[OffloadPlan, ...]:
    """Decode ceiling of a single device with the overflow of weights in host memory, local SSD or network storage.

    Mixture-of-experts models read only their active weights, so the overflow is taken from the experts first and costs
    in proportion to the active share. A model that fits returns one plan with nothing offloaded.

    >>> plans = offload("Llama-3.1-70B", "H100", weight_format="bf16")
    >>> [p.tier for p in plans]
    ['host memory', 'local SSD', 'network storage']
    >>> plans[0].slowdown > 10
    True

    Raises:
        MemoryFitError: when even cache and workspaces do not fit without any weights.
    """
    suffix = parse_model(model)[1] if isinstance(model, str) else None
    arch = architecture(model) if isinstance(model, str) else model
    gpu = hardware(device) if isinstance(device, str) else device
    stored = number_format(weight_format or suffix or arch.native_format)
    total = weight_bytes(arch, stored)
    active_share = _active_bytes(arch, stored.name if stored.name else "bf16") / total
    answer = fit(arch, gpu, weight_format=stored.name, tokens=tokens, batch=batch)
    over = max(0.0, -answer.left_bytes)
    if over >= total:
        raise MemoryFitError(f"{arch.name} on {gpu.name}: cache and workspaces alone are {gb(over - total)} too much")
    resident = (total * active_share) / gpu.memory_bytes_per_s
    if over == 0:
        return (OffloadPlan("device memory", 0.0, gpu.memory_bytes_per_s, resident, 1 / resident, 1.0, answer.reason),)
    plans = []
    for tier in ("host memory", "local SSD", "network storage"):
        rate = min(ladder(gpu)[tier].bytes_per_s, gpu.link_bytes_per_s or float("inf"))
        seconds = (total - over) * active_share / gpu.memory_bytes_per_s + over * active_share / rate
        plans.append(
            OffloadPlan(
                tier,
                over,
                rate,
                seconds,
                1 / seconds,
                seconds / resident,
                f"{gb(over)} of {gb(total)} in {tier} at {rate / 1e9:.1f} GB/s: {seconds / resident:.1f} times slower",
            )
        )
    return tuple(plans)


def _active_bytes(model: Architecture, stored: str) -> float:
    """Bytes that one token reads: every part but the experts not chosen and the embedding table (one row)."""
    parts = part_bytes(model, stored)
    chosen = parts["experts"] * (model.experts_per_token / model.experts if model.experts else 0.0)
    return (
        sum(v for k, v in parts.items() if k not in ("experts", "embedding"))
        + chosen
        + (parts["embedding"] if model.tied else 0.0)
    )
