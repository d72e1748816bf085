"""Times of single kernels: matrix product, attention, expert layer and collectives, with tile, wave and cache effects.

All functions take and return arrays in SI units. Efficiencies come from a `ParameterSet` whose levels are the hardware
family, the number format and the back end (library), so that an unseen device falls back to its family, then to the
global
value that a prior from physics holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from econ.performance.parameters import ParameterSet
from econ.performance.roofline import joined

Array = NDArray[np.float64]
TILES = ((64, 64), (128, 64), (128, 128), (256, 128))
SPLITS = (1, 2, 4, 8)
#: Closeness to a maximum of compute and memory time of one matrix product.
GEMM_NORM = 4.6
#: Operands under this share of the second-level cache are read from it in a warm loop, this much faster.
CACHE_SHARE = 0.6
CACHE_SPEEDUP = 1.4


@dataclass(frozen=True)
class Device:
    """Arrays of device rates, one entry per kernel row."""

    peak_flop_per_s: Array
    bf16_flop_per_s: Array
    memory_bytes_per_s: Array
    link_bytes_per_s: Array
    internode_bytes_per_s: Array
    compute_units: Array
    l2_bytes: Array


def wave_factor(m: Array, n: Array, units: Array) -> Array:
    """Slow-down by partly filled tiles and waves: best of a few tile sizes and split-K factors; 1 when all is full.

    >>> wave_factor(np.array([8192.0]), np.array([8192.0]), np.array([128.0])).round(2).tolist()
    [1.0]
    """
    best = np.full(np.shape(m), np.inf)
    for tile_m, tile_n in TILES:
        tiles = np.ceil(m / tile_m) * np.ceil(n / tile_n)
        for split in SPLITS:
            waves = np.ceil(tiles * split / units)
            time = waves * units * tile_m * tile_n / split
            # Small tiles reuse operands less: 64 x 64 reaches about two thirds of the rate of 128 x 128.
            reuse = 1.0 + 22.0 / tile_m + 22.0 / tile_n
            best = np.minimum(best, time / (m * n) * reuse / 1.26)
    return np.asarray(np.maximum(best, 1.0))


def gemm_s(
    p: ParameterSet, codes: dict[str, NDArray[np.int64]], d: Device, m: Array, n: Array, k: Array, w: Array, a: Array
) -> Array:
    """Time of one M x N x K product with ``w`` bytes a weight and ``a`` an activation, input quantisation included."""
    flops = 2.0 * m * n * k
    rate = d.peak_flop_per_s * np.minimum(p.value("gemm_compute", codes), 1.0)
    compute = flops / rate * wave_factor(m, n, d.compute_units) * (1.0 + p.value("gemm_short_k", codes) / k)
    operands = n * k * w + m * k * a
    quantise = np.where(a < 2.0, 1.1 * m * k * (2.0 + a), 0.0)
    traffic = operands + m * n * 2.0
    warm = np.where(traffic < CACHE_SHARE * d.l2_bytes, CACHE_SPEEDUP, 1.0)
    memory = (traffic + quantise) / (d.memory_bytes_per_s * np.minimum(p.value("gemm_bandwidth", codes), 1.0) * warm)
    return np.asarray(p.value("gemm_launch_us", codes) * 1e-6 + joined(compute, memory, GEMM_NORM))


def prefill_attention_s(
    p: ParameterSet,
    codes: dict[str, NDArray[np.int64]],
    d: Device,
    batch: Array,
    heads: Array,
    width: Array,
    length: Array,
    cached: Array,
    causal: Array,
) -> Array:
    """Attention of ``length`` new tokens on ``cached`` ones: causal half counted, efficiency rising with length."""
    pairs = length * (cached + np.where(causal > 0, length / 2, length))
    flops = 4.0 * batch * heads * width * pairs
    blocks = batch * heads * np.maximum(np.ceil(length / 128), 1)
    fill = blocks / (np.ceil(blocks / d.compute_units) * d.compute_units)
    fill = np.maximum(fill, 0.02)
    share = p.value("attention_compute", codes) * length / (length + p.value("attention_half", codes))
    compute = flops / (d.bf16_flop_per_s * np.minimum(share, 0.95)) / np.where(blocks < d.compute_units, fill, 1.0)
    memory = batch * heads * width * length * 8.0 / (d.memory_bytes_per_s * 0.7)
    return np.asarray(p.value("attention_launch_us", codes) * 1e-6 + joined(compute, memory, 2.0))


def decode_attention_s(
    p: ParameterSet,
    codes: dict[str, NDArray[np.int64]],
    d: Device,
    batch: Array,
    kv_heads: Array,
    width: Array,
    group: Array,
    context: Array,
    kv_bytes: Array,
) -> Array:
    """One query token per sequence: cache read at an achieved bandwidth plus a term per block and launch time.

    Above 16 query heads a KV head, old kernels read the cache once per 16.
    """
    reads = np.maximum(group / 16.0, 1.0) ** p.value("decode_wide_group", codes)
    size = 2.0 * batch * kv_heads * width * context * kv_bytes
    warm = np.where(size < CACHE_SHARE * d.l2_bytes, 1.8, 1.0)
    memory = size * reads / (d.memory_bytes_per_s * np.minimum(p.value("decode_bandwidth", codes), 1.0) * warm)
    blocks = batch * kv_heads / d.compute_units * p.value("decode_block_us", codes) * 1e-6
    compute = 4.0 * batch * kv_heads * group * width * context / (d.bf16_flop_per_s * 0.35)
    return np.asarray(p.value("decode_launch_us", codes) * 1e-6 + joined(memory, compute, 2.0) + blocks)


def latent_decode_s(
    p: ParameterSet,
    codes: dict[str, NDArray[np.int64]],
    d: Device,
    batch: Array,
    heads: Array,
    context: Array,
    kv_bytes: Array,
) -> Array:
    """Latent attention in decode (rank 512, rope 64): the latent is read once, queries of all heads work on it."""
    memory = (
        batch
        * context
        * 576.0
        * kv_bytes
        / (d.memory_bytes_per_s * np.minimum(p.value("decode_bandwidth", codes), 1.0))
    )
    tiles = np.ceil(heads / 16.0) * 16.0
    flops = 2.0 * batch * tiles * context * (2 * 512.0 + 64.0)
    compute = flops / (d.bf16_flop_per_s * p.value("latent_compute", codes))
    return np.asarray(p.value("decode_launch_us", codes) * 1.5e-6 + joined(memory, compute, 2.0))


def latent_prefill_s(
    p: ParameterSet,
    codes: dict[str, NDArray[np.int64]],
    d: Device,
    batch: Array,
    heads: Array,
    length: Array,
    cached: Array,
) -> Array:
    """Latent attention in prefill: 192-wide queries and keys, 128-wide values, causal."""
    flops = 2.0 * batch * heads * (192.0 + 128.0) * length * (cached + length / 2)
    share = p.value("attention_compute", codes) * length / (length + p.value("attention_half", codes))
    compute = flops / (d.bf16_flop_per_s * np.minimum(share * p.value("latent_prefill", codes), 0.95))
    return np.asarray(p.value("attention_launch_us", codes) * 1e-6 + compute)


@dataclass(frozen=True)
class ExpertLayer:
    """Arrays that describe expert layers of one rank."""

    tokens: Array
    hidden: Array
    inter: Array
    experts: Array
    top_k: Array
    ep: Array
    tp: Array
    weight_bytes: Array
    skewed: Array


def expert_layer_s(p: ParameterSet, codes: dict[str, NDArray[np.int64]], d: Device, x: ExpertLayer) -> Array:
    """Both grouped products of a gated expert layer on the busiest rank, with the distinct experts that it reads."""
    local = np.maximum(x.experts / x.ep, 1.0)
    skew = np.where(x.skewed > 0, p.value("moe_skew", codes), 1.0)
    routed = x.tokens * x.top_k
    share = 1.0 - np.exp(skew * x.tokens * np.log1p(-np.minimum(x.top_k / x.experts, 1 - 1e-9)))
    distinct = np.maximum(local * share, np.minimum(np.maximum(x.top_k / x.ep, 1.0), local))
    busy = 1.0 + np.where(x.skewed > 0, p.value("moe_imbalance", codes) * np.log2(np.maximum(x.ep, 1.0)), 0.0)
    rows = np.maximum(routed / x.ep * busy, 1.0)
    size = 3.0 * x.hidden * np.maximum(x.inter / x.tp, 1.0)
    rate = d.peak_flop_per_s * np.minimum(p.value("moe_compute", codes), 1.0)
    narrow = 1.0 + p.value("moe_short_k", codes) * x.tp / np.maximum(x.inter, 1.0)
    compute = 2.0 * size * narrow * (rows + distinct * p.value("moe_rows_floor", codes)) / rate
    memory = (distinct * size * x.weight_bytes + rows * (4 * x.hidden + 5 * x.inter / x.tp)) / (
        d.memory_bytes_per_s * np.minimum(p.value("moe_bandwidth", codes), 1.0)
    )
    return np.asarray(p.value("moe_launch_us", codes) * 1e-6 + joined(compute, memory, 2.5))


def collective_s(
    p: ParameterSet,
    codes: dict[str, NDArray[np.int64]],
    d: Device,
    size_bytes: Array,
    ranks: Array,
    wire: Array,
    nodes: Array,
) -> Array:
    """One collective of ``size_bytes`` on ``ranks``: (a^q + b^q)^(1/q), q below 1, since protocols switch between
    regimes.

    ``wire`` is the traffic per rank over the size: 2 (n-1)/n for all-reduce, (n-1)/n otherwise.
    """
    link = np.where(nodes > 1, d.internode_bytes_per_s, d.link_bytes_per_s)
    latency = p.value("collective_us", codes) * 1e-6 * (ranks / 8.0) ** p.value("collective_rank_power", codes)
    latency = latency * np.where(nodes > 1, p.value("collective_node_factor", codes) * nodes**0.5, 1.0)
    transfer = wire * size_bytes / (link * np.minimum(p.value("collective_rate", codes), 1.1))
    q = p.value("collective_norm", codes)
    return np.asarray((latency**q + transfer**q) ** (1 / q))


def exchange_s(
    p: ParameterSet,
    codes: dict[str, NDArray[np.int64]],
    d: Device,
    tokens: Array,
    hidden: Array,
    top_k: Array,
    ranks: Array,
    nodes: Array,
    width: Array,
) -> Array:
    """Expert dispatch or combine: every token goes to at most ``top_k`` ranks, ``width`` bytes a value."""
    copies = np.minimum(top_k, ranks)
    away = np.where(nodes > 1, (nodes - 1) / nodes, (ranks - 1) / ranks)
    link = np.where(nodes > 1, d.internode_bytes_per_s, d.link_bytes_per_s)
    spread = np.where(nodes > 1, np.minimum(copies, nodes * p.value("exchange_node_copies", codes)), copies)
    transfer = tokens * spread * hidden * width * away / (link * p.value("exchange_rate", codes))
    latency = p.value("exchange_us", codes) * 1e-6 * np.where(nodes > 1, 1.6, 1.0)
    return np.asarray(latency + transfer)
