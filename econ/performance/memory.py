"""Memory before speed: what is left of a device after weights, cached keys and values, workspaces and a margin.

The subtraction runs in that order and every step is a row of the answer. Sizes are bytes; 1 GB = 1e9 B and
1 GiB = 2**30 B, and both are printed, labelled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from econ.performance.architecture import Architecture, architecture
from econ.performance.formats import NumberFormat, number_format, part_bytes
from econ.performance.hardware import Hardware, hardware
from econ.performance.memory_layout import Layout, expert_ranks, kv_share, stage_share
from econ.performance.names import parse_model
from supply.facts import catalog

__all__ = [
    "Fit",
    "FitRow",
    "MemoryFitError",
    "fit",
    "gb",
    "kv_bytes",
    "kv_bytes_per_token",
    "least_devices",
    "max_tokens",
    "remaining_bytes",
]


#: Tokens that one prefill step takes by default: the chunk of serving frameworks, and of local ones.
SERVER_CHUNK = 8192
LOCAL_CHUNK = 512


class MemoryFitError(ValueError):
    """A set-up that no memory can hold: an impossible layout, a context beyond the model, a negative size."""


@dataclass(frozen=True, slots=True)
class FitRow:
    """One step of the subtraction: what it takes per device, and what is left after it."""

    step: str
    bytes: float
    left_bytes: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a set-up fits a device, the subtraction step by step, and the largest batch and context that do."""

    model: str
    hardware: str
    fits: bool
    rows: tuple[FitRow, ...]
    left_bytes: float
    weight_bytes: float
    kv_bytes: float
    largest_batch: int
    largest_context: int
    least_tp: int | None
    reason: str

    def table(self) -> str:
        """The subtraction as text, one row a line, in GB and GiB.

        >>> print(fit("Llama-3.1-8B", "H100", batch=1, tokens=4096).table().splitlines()[0])
        device memory                   85.52 GB (79.65 GiB)   left       85.52 GB (79.65 GiB)
        """
        return "\n".join(f"{r.step:<25}{gb(r.bytes):>27}   left{gb(r.left_bytes):>27}" for r in self.rows)


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


def kv_bytes_per_token(
    layers: ArrayLike, kv_heads: ArrayLike, head_dim: ArrayLike, bytes_per_value: ArrayLike = 2.0
) -> NDArray[np.float64]:
    """Bytes of keys and values that one token adds: layers x 2 x KV heads x head size x bytes. Accepts arrays.

    >>> float(kv_bytes_per_token(80, 8, 128)), float(kv_bytes_per_token(80, 64, 128)) * 128000
    (327680.0, 335544320000.0)
    """
    sizes = (np.asarray(x, float) for x in (layers, kv_heads, head_dim, bytes_per_value))
    return np.asarray(2.0 * np.prod(np.broadcast_arrays(*sizes), axis=0))


def kv_bytes(
    model: Architecture, tokens: ArrayLike, bytes_per_value: float = 2.0, block_tokens: int = 1
) -> NDArray[np.float64]:
    """Bytes of keys and values of one sequence at each length, rounded up to whole paging blocks. Accepts arrays.

    Full layers grow with the length, sliding ones stop at the window, latent attention holds rank + rope values once,
    linear and state-space layers hold a state of constant size (4 bytes a value) that is not counted here.

    >>> float(kv_bytes(architecture("Llama-3.1-70B"), 128000))
    41943040000.0

    Raises:
        MemoryFitError: when a length is negative.
    """
    length = np.asarray(tokens, float)
    if np.any(length < 0) or bytes_per_value <= 0 or block_tokens < 1:
        raise MemoryFitError(f"{model.name}: lengths and bytes a value must not be negative")
    blocks = np.ceil(length / block_tokens) * block_tokens
    kept = np.minimum(blocks, model.window) if model.window else blocks
    full, sliding = (_token_bytes(model, kind, bytes_per_value) for kind in ("full", "sliding"))
    return np.asarray(full * blocks + sliding * kept)


def _token_bytes(model: Architecture, kind: str, bytes_per_value: float) -> float:
    """Bytes that one token adds over all layers of a kind; latent attention holds rank + rope once, not twice."""
    layers = model.attention.count(kind)
    if model.is_mla:
        return layers * model.kv_values_per_token(kind) * bytes_per_value
    return float(kv_bytes_per_token(layers, *model.head_shape(kind), bytes_per_value))


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
    growing = _token_bytes(model, "full", bytes_per_value) * share
    fixed = float(kv_bytes(model, model.window or 0, bytes_per_value)) * share - growing * (model.window or 0)
    if growing <= 0:
        raise MemoryFitError(f"{model.name}: no layer's cache grows with the length, so memory does not limit it")
    inside = model.window or 0
    sliding = _token_bytes(model, "sliding", bytes_per_value) * share
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


def fit(
    model: str | Architecture,
    device: str | Hardware,
    *,
    weight_format: str | None = None,
    kv_format: str = "bf16",
    batch: int = 1,
    tokens: int = 4096,
    tp: int = 1,
    pp: int = 1,
    ep: int = 1,
    dp: int = 1,
    prefill_tokens: int | None = None,
    block_tokens: int = 16,
    share: float | None = None,
    margin_bytes: float | None = None,
) -> Fit:
    """Whether a model, load and layout fit each device, with the subtraction, the largest batch and context, and why.

    `batch` sequences of `tokens` each (input + output) run in one replica; with `dp` > 1 attention is data-parallel and
    each rank holds its own `batch`. The format may be a suffix of the model's name (`gpt-oss-120b-mxfp4`).

    >>> answer = fit("Llama-3.1-70B", "H100", weight_format="bf16")
    >>> answer.fits, answer.least_tp
    (False, 2)
    >>> fit("gpt-oss-120b", "H100", batch=4, tokens=8192).fits
    True

    Raises:
        MemoryFitError: for an impossible layout, a length beyond the model's context, or sizes below one.
    """
    suffix = parse_model(model)[1] if isinstance(model, str) else None
    arch = architecture(model) if isinstance(model, str) else model
    gpu = hardware(device) if isinstance(device, str) else device
    stored = number_format(weight_format or suffix or arch.native_format)
    layout = Layout(tp, pp, ep, dp)
    problems = layout.problems(arch)
    if arch.context and tokens > arch.context:
        problems.append(f"{tokens:,} tokens is beyond the context of {arch.context:,} of {arch.name}")
    if batch < 1 or tokens < 1:
        problems.append(f"batch {batch} and tokens {tokens} must be at least 1")
    if problems:
        raise MemoryFitError("; ".join(problems))
    usable = usable_share(gpu) if share is None else share
    margin = default_margin(gpu, usable) if margin_bytes is None else margin_bytes
    value_bytes = number_format(kv_format).bytes_per_weight
    chunk = prefill_tokens or min(tokens, SERVER_CHUNK if gpu.segment == "datacenter" else LOCAL_CHUNK)
    return _subtract(_Case(arch, gpu, stored, layout, batch, tokens, chunk, block_tokens, usable, margin, value_bytes))


@dataclass(frozen=True, slots=True)
class _Case:
    model: Architecture
    device: Hardware
    stored: NumberFormat
    layout: Layout
    batch: int
    tokens: int
    prefill_tokens: int
    block_tokens: int
    share: float
    margin: float
    value_bytes: float

    def kv(self, tokens: float) -> float:
        """Cache and state of one sequence on the fullest device."""
        grown = float(kv_bytes(self.model, tokens, self.value_bytes, self.block_tokens))
        share = kv_share(self.model, self.layout)
        state = state_bytes(self.model) * stage_share(self.model.layers, self.layout.pp) / self.layout.tp
        return grown * share + state


def _subtract(case: _Case) -> Fit:
    model, device, layout = case.model, case.device, case.layout
    weights = weights_per_device(model, case.stored, layout)
    per_sequence = case.kv(case.tokens)
    cache = per_sequence * case.batch
    work = workspace_bytes(model, layout, case.prefill_tokens, case.batch)
    rows: list[FitRow] = [FitRow("device memory", device.memory_bytes, device.memory_bytes, "as the driver reports it")]
    left = device.memory_bytes
    for step, size, note in (
        ("not usable", device.memory_bytes * (1 - case.share), f"usable share {case.share:.0%}"),
        ("weights", weights, f"{case.stored.name}, {case.stored.bits_per_weight:g} bits a weight where quantised"),
        ("keys and values", cache, f"{case.batch} sequences of {case.tokens:,} tokens"),
        ("workspaces", work, f"chunk of {case.prefill_tokens:,} tokens, logits, runtime, collectives"),
        ("safety margin", case.margin, "headroom beyond the usable share"),
    ):
        left -= size
        rows.append(FitRow(step, size, left, note))
    logits = model.vocab * 4.0 / layout.tp
    free = left + cache + case.batch * logits
    batch = max(0, int(free // (per_sequence + logits)))
    context = _largest_context(case, left + cache)
    least = None if left >= 0 else _least_tp(case)
    reason = _reason(case, left, weights, batch, context, least)
    return Fit(model.name, device.name, left >= 0, tuple(rows), left, weights, cache, batch, context, least, reason)


def _largest_context(case: _Case, free: float) -> int:
    """Longest length of every sequence of the batch that still fits, at most the model's context."""
    if free <= 0:
        return 0
    limit = case.model.context or 2**24
    if not case.model.attention.count("full"):
        return limit if case.kv(limit) * case.batch <= free else 0
    state = case.kv(0) * case.batch
    share = kv_share(case.model, case.layout) * case.batch
    return min(limit, max_tokens(case.model, free - state, case.value_bytes, case.block_tokens, share))


def _least_tp(case: _Case) -> int | None:
    """Least tensor-parallel degree (a power of two up to the scale-up domain) at which the same load fits."""
    tp = case.layout.tp * 2
    while tp <= max(case.device.domain_size, 1) and not Layout(tp, case.layout.pp, 1, 1).problems(case.model):
        layout = Layout(tp, case.layout.pp, case.layout.ep, case.layout.dp)
        wider = replace(case, layout=layout)
        work = workspace_bytes(case.model, layout, case.prefill_tokens, case.batch)
        taken = weights_per_device(case.model, case.stored, layout) + wider.kv(case.tokens) * case.batch + work
        if taken + case.margin <= case.device.memory_bytes * case.share:
            return tp
        tp *= 2
    return None


def _reason(case: _Case, left: float, weights: float, batch: int, context: int, least: int | None) -> str:
    usable = case.device.memory_bytes * case.share
    if left >= 0:
        return (
            f"fits: {gb(left)} left of {gb(usable)} usable per device; up to {batch:,} sequences of "
            f"{case.tokens:,} tokens, or {case.batch:,} of {context:,}"
        )
    way = f"; tensor parallel {least} fits"
    if not least:
        whole = weights_per_device(case.model, case.stored, Layout()) + float(case.kv(case.tokens)) * case.batch
        count = least_devices(whole, usable)
        way = f"; no tensor-parallel degree of one scale-up domain fits it: {count:,} devices by capacity alone"
    if weights > usable:
        return f"does not fit: weights alone need {gb(weights)} per device of {gb(usable)} usable{way}"
    smaller = f"; up to {batch:,} sequences fit" if batch else "; not even one sequence fits"
    return f"does not fit: {gb(-left)} short per device after weights of {gb(weights)}{smaller}{way}"
