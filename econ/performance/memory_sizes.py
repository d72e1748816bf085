"""Sizes that the memory subtraction is made of: cache, state, weights, workspaces, usable share and headroom."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from econ.performance.architecture import Architecture
from econ.performance.decoder import kv_bytes_per_token
from econ.performance.formats import NumberFormat, part_bytes
from econ.performance.hardware import Hardware
from econ.performance.memory_layout import Layout, expert_ranks, stage_share
from supply.facts import catalog

__all__ = [
    "MemoryFitError",
    "default_margin",
    "gb",
    "kv_bytes",
    "kv_bytes_per_token",
    "least_devices",
    "max_tokens",
    "remaining_bytes",
    "state_bytes",
    "usable_share",
    "weights_per_device",
    "workspace_bytes",
]


class MemoryFitError(ValueError):
    """A set-up that no memory can hold: an impossible layout, a context beyond the model, a negative size."""


def gb(count: float) -> str:
    """A byte count in both units, labelled.

    >>> gb(65.2e9)
    '65.20 GB (60.72 GiB)'
    """
    return f"{count / 1e9:.2f} GB ({count / 2**30:.2f} GiB)"


def remaining_bytes(
    device_bytes: ArrayLike,
    weight_bytes: ArrayLike,
    kv_bytes: ArrayLike = 0.0,
    workspace_bytes: ArrayLike = 0.0,
    margin_bytes: ArrayLike = 0.0,
    usable_share: ArrayLike = 1.0,
) -> NDArray[np.float64]:
    """Bytes left on a device after the subtraction; negative is the shortfall. Accepts arrays.

    >>> float(remaining_bytes(192e9, 140e9))
    52000000000.0
    >>> float(remaining_bytes(80e9, 140e9)) >= 0
    False
    """
    usable = np.asarray(device_bytes, float) * np.asarray(usable_share, float)
    taken = sum(np.asarray(x, float) for x in (weight_bytes, kv_bytes, workspace_bytes, margin_bytes))
    return np.asarray(usable - taken)


def least_devices(total_bytes: float, device_bytes: float, devices_per_node: int = 1) -> int:
    """Least number of devices that hold a state divided without remainder, rounded up to whole nodes.

    >>> least_devices(1.12e12, 80e9), least_devices(1129.6e9, 80 * 2**30, devices_per_node=8)
    (14, 16)

    Raises:
        MemoryFitError: when a size is not positive.
    """
    if total_bytes <= 0 or device_bytes <= 0 or devices_per_node < 1:
        raise MemoryFitError(f"sizes must be positive: {total_bytes:g} B over devices of {device_bytes:g} B")
    devices = int(-(-total_bytes // device_bytes))
    return -(-devices // devices_per_node) * devices_per_node


def kv_bytes(
    model: Architecture, tokens: ArrayLike, bytes_per_value: float = 2.0, block_tokens: int = 1
) -> NDArray[np.float64]:
    """Bytes of keys and values of one sequence at each length, rounded up to whole paging blocks. Accepts arrays.

    See `Architecture.kv_bytes`; the recurrent state of linear layers is constant and comes apart, as `state_bytes`.

    >>> from econ.performance.architecture import architecture
    >>> float(kv_bytes(architecture("Llama-3.1-70B"), 128000))
    41943040000.0

    Raises:
        MemoryFitError: when a length is negative or a block has no tokens.
    """
    length = np.asarray(tokens, float)
    if np.any(length < 0) or bytes_per_value <= 0 or block_tokens < 1:
        raise MemoryFitError(f"{model.name}: lengths and bytes a value must not be negative, blocks hold tokens")
    return np.asarray(model.kv_bytes(np.ceil(length / block_tokens) * block_tokens, bytes_per_value))


def state_bytes(model: Architecture, bytes_per_value: float = 4.0) -> float:
    """Bytes of recurrent state of one sequence, constant in its length."""
    return model.state_values * bytes_per_value


def max_tokens(
    model: Architecture, free_bytes: float, bytes_per_value: float = 2.0, block_tokens: int = 16, share: float = 1.0
) -> int:
    """Longest sequence whose cache fits in free bytes, in whole blocks; `share` is the part of it that a device holds.

    Raises:
        MemoryFitError: when the model keeps no cache that grows (its length is then limited by the model alone).
    """
    growing = model.token_bytes("full", bytes_per_value) * share
    fixed = float(kv_bytes(model, model.window or 0, bytes_per_value)) * share - growing * (model.window or 0)
    if growing <= 0:
        raise MemoryFitError(f"{model.name}: no layer's cache grows with the length, so memory does not limit it")
    inside = model.window or 0
    sliding = model.token_bytes("sliding", bytes_per_value) * share
    length = (free_bytes - fixed) / growing
    if length < inside:
        length = free_bytes / (growing + sliding)
    return max(0, int(length // block_tokens) * block_tokens)


@lru_cache(maxsize=1)
def _shares() -> dict[str, float]:
    """Default usable share of device memory by segment, and workspaces, from the facts."""
    cat = catalog()
    return {
        "datacenter": cat["eng_memory_usable_share_server"].number,
        "unified": cat["eng_memory_usable_share_unified"].number,
        "runtime_bytes": cat["eng_memory_runtime_bytes"].to("byte"),
        "collective_bytes": cat["eng_memory_collective_bytes"].to("byte"),
        "headroom_bytes": cat["eng_memory_headroom_floor"].to("byte"),
        "headroom_share": cat["eng_memory_headroom_share"].number,
    }


def usable_share(device: Hardware) -> float:
    """Share of device memory that a serving program may take: 0.92 on a server, 0.75 where the CPU shares the memory.

    >>> from econ.performance.hardware import hardware
    >>> usable_share(hardware("M3-Max"))
    0.75
    """
    return _shares()["unified" if device.segment == "unified" else "datacenter"]


def default_margin(device: Hardware, share: float) -> float:
    """Headroom beyond the usable share: on machines that share memory with the system, max(2 GB, 10 %) in all.

    On a server the unusable share is the headroom, so nothing is added.
    """
    if device.segment not in ("unified", "cpu"):
        return 0.0
    s = _shares()
    wanted = max(s["headroom_bytes"], s["headroom_share"] * device.memory_bytes)
    return max(0.0, wanted - (1 - share) * device.memory_bytes)


def workspace_bytes(model: Architecture, layout: Layout, prefill_tokens: int, batch: int) -> float:
    """Bytes of activations of one prefill chunk, logits of one step, the runtime, and collective buffers per device.

    A chunk holds hidden states in and out of the widest block: tokens x (4 d_model + 2 x widest MLP / TP) x 2 B;
    logits are one fp32 value per sequence and vocabulary entry over TP.
    """
    widest = max(model.d_ff, model.shared_d_ff + model.experts_per_token * model.moe_d_ff, model.heads * model.head_dim)
    activations = prefill_tokens * (4 * model.d_model + 2 * widest / layout.tp) * 2.0
    logits = batch * model.vocab * 4.0 / layout.tp
    s = _shares()
    return activations + logits + s["runtime_bytes"] + (s["collective_bytes"] if layout.ranks > 1 else 0.0)


def weights_per_device(model: Architecture, stored: NumberFormat, layout: Layout) -> float:
    """Bytes of weights on the fullest device: layers over PP, matrices over TP, experts over the expert ranks."""
    parts = part_bytes(model, stored)
    stage = stage_share(model.layers, layout.pp)
    dense = (parts["attention"] + parts["dense_mlp"] + parts["shared"] + parts["router"] + parts["norms"]) / layout.tp
    experts = parts["experts"] / expert_ranks(layout)
    ends = (parts["embedding"] + parts["lm_head"]) / layout.tp
    if layout.pp > 1:  # the embedding sits on the first stage, the output matrix on the last
        ends = max(parts["embedding"], parts["lm_head"] or parts["embedding"]) / layout.tp
    return (dense + experts) * stage + ends
