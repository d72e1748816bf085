"""Time of one decode step and of prefill, operator group by operator group, as arrays over set-ups.

Every group takes a roofline time: FLOPs over an achieved rate against bytes over an achieved bandwidth, joined by a
p-norm
(close to a maximum). Launch time a layer, a step and a sequence, and the latency of collectives come on top.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from econ.performance.parameters import ParameterSet
from econ.performance.roofline import joined
from econ.performance.setups import Setups

Array = NDArray[np.float64]
ACTIVATION_BYTES = 2.0
#: Wider expert groups hold redundant copies of hot experts, so the imbalance stops growing there.
BALANCED_RANKS = 8.0
#: Latency of a collective against the number of ranks: between a flat one-shot exchange and a ring.
RANK_POWER = 0.5
#: Reads and writes of the hidden state a layer by norms, residuals, rotary embedding and gating, in units of d_model.
ELEMENTWISE_PASSES = 14.0


@dataclass(frozen=True)
class Constants:
    """The fitted constants spread over set-ups (arrays or scalars), read once from a `ParameterSet`."""

    weight_bandwidth: Array
    kv_bandwidth: Array
    compute_dense: Array
    compute_expert: Array
    prefill_compute: Array
    attention_peak: Array
    attention_half_length: Array
    rows_floor: Array
    expert_rows_floor: Array
    layer_s: Array
    moe_layer_s: Array
    linear_layer_share: Array
    step_s: Array
    sequence_s: Array
    skew: Array
    ep_imbalance: Array
    collective_s: Array
    collective_bandwidth: Array
    first_token_s: Array
    prefill_layer_s: Array
    interference: Array
    burst: Array
    floor_share: Array
    release_rate: Array
    shard_loss: Array
    expert_width: Array
    rank_wait: Array
    separate_step: Array
    separate_first_s: Array
    separate_burst: Array
    waits: Array
    overload: Array
    chunk_tokens: Array
    capacity: Array


def constants(p: ParameterSet, s: Setups) -> Constants:
    """Spread a parameter set over the set-ups."""

    def v(name: str) -> Array:
        return np.broadcast_to(np.asarray(p.value(name, s.codes), dtype=float), (len(s),))

    return Constants(
        weight_bandwidth=np.minimum(v("weight_bandwidth"), 1.0),
        kv_bandwidth=np.minimum(v("kv_bandwidth"), 1.0),
        compute_dense=np.minimum(v("compute") * v("compute_format_dense"), 1.0),
        compute_expert=np.minimum(v("compute") * v("compute_format_expert"), 1.0),
        prefill_compute=v("prefill_compute"),
        attention_peak=v("attention_peak"),
        attention_half_length=v("attention_half_length"),
        rows_floor=v("rows_floor"),
        expert_rows_floor=v("expert_rows_floor"),
        layer_s=v("layer_us") * 1e-6,
        moe_layer_s=v("moe_layer_us") * 1e-6,
        linear_layer_share=v("linear_layer_share"),
        step_s=v("step_ms") * 1e-3,
        sequence_s=v("sequence_us") * 1e-6,
        skew=v("skew"),
        ep_imbalance=v("ep_imbalance"),
        collective_s=v("collective_us") * 1e-6,
        collective_bandwidth=v("collective_bandwidth"),
        first_token_s=v("first_token_ms") * 1e-3,
        prefill_layer_s=v("prefill_layer_us") * 1e-6,
        interference=v("interference"),
        burst=v("burst"),
        floor_share=v("floor_share"),
        release_rate=v("release_rate"),
        shard_loss=v("shard_loss"),
        expert_width=v("expert_width"),
        rank_wait=v("rank_wait"),
        separate_step=v("separate_step"),
        separate_first_s=v("separate_first_ms") * 1e-3,
        separate_burst=v("separate_burst"),
        waits=v("waits"),
        overload=v("overload"),
        chunk_tokens=v("chunk_tokens"),
        capacity=v("capacity"),
    )


def distinct_experts(s: Setups, tokens: Array, skew: Array) -> Array:
    """Expected distinct experts of ``tokens`` tokens a layer (see `shapes.expected_distinct_experts`)."""
    experts = np.maximum(s.n_experts, 1.0)
    share = np.minimum(s.top_k / experts, 1.0)
    missing = np.exp(skew * tokens * np.log1p(-np.minimum(share, 1 - 1e-12)))
    return np.asarray(np.where(s.n_experts > 0, np.maximum(experts * (1 - missing), np.minimum(s.top_k, experts)), 0.0))


def kv_shards(s: Setups) -> Array:
    """Ways in which tensor parallelism divides the cache: at most the KV heads; a latent cache is replicated."""
    return np.asarray(np.where(s.latent > 0, 1.0, np.minimum(s.tp, np.maximum(s.kv_heads, 1.0))))


def weight_bytes_per_rank(s: Setups) -> Array:
    """Weights held by one accelerator, in bytes, embeddings included."""
    dense = (s.attention_params + s.dense_params + s.shared_params) * s.bytes_dense / s.tp
    head = (s.head_params + s.embedding_params) * s.bytes_head / s.tp
    experts = s.expert_params * s.n_experts * s.moe_layers * s.bytes_expert / (s.tp * s.dp)
    return np.asarray((dense + head + experts) / s.pp)


def kv_bytes_per_sequence(s: Setups, context: Array) -> Array:
    """Cache of one sequence on one accelerator, in bytes."""
    elements = s.kv_full * context + s.kv_window * np.minimum(context, s.window)
    state = s.state_elements * 2.0 / s.tp
    return np.asarray((elements * s.bytes_kv / kv_shards(s) + state) / s.pp)


def collective_s(s: Setups, c: Constants, message_bytes: Array, ranks: Array, wire: Array) -> Array:
    """Time of one collective inside a step: latency growing slowly with ranks plus wire time; 0 for one rank."""
    outside = ranks > s.domain_size
    link = np.where(outside, s.internode_bytes_per_s, s.link_bytes_per_s)
    latency = c.collective_s * (np.maximum(ranks, 2.0) / 8.0) ** RANK_POWER * np.where(outside, 3.0, 1.0)
    time = latency + wire * message_bytes / (np.maximum(link, 1.0) * c.collective_bandwidth)
    return np.asarray(np.where(ranks > 1, time, 0.0))


def expert_exchange_s(s: Setups, c: Constants, tokens: Array) -> Array:
    """Dispatch and combine of one MoE layer for data-parallel attention: FP8 out, BF16 back, per accelerator."""
    ranks = s.dp * s.tp
    copies = np.minimum(s.top_k, ranks)
    message = tokens / s.tp * copies * s.d_model * 3.0
    return np.asarray(np.where(s.dp > 1, collective_s(s, c, message, ranks, (ranks - 1) / ranks) + c.collective_s, 0.0))


@dataclass(frozen=True)
class StepTime:
    """Parts of a step, in seconds."""

    weights_s: Array
    experts_s: Array
    attention_s: Array
    collectives_s: Array
    launch_s: Array
    compute_s: Array
    memory_s: Array

    @property
    def total_s(self) -> Array:
        """Sum of the parts."""
        return self.weights_s + self.experts_s + self.attention_s + self.collectives_s + self.launch_s


def shard_factor(s: Setups, c: Constants) -> Array:
    """Slow-down of products cut into narrow shards: 1 + loss (TP - 1) 4096 / d_model; 1 without tensor parallelism."""
    return np.asarray(1.0 + c.shard_loss * (s.tp - 1) * 4096.0 / np.maximum(s.d_model, 1.0))


def expert_factor(s: Setups, c: Constants) -> Array:
    """Slow-down of narrow experts: 1 + width / (inner width of an expert on one rank); 1 for very wide ones."""
    inner = s.expert_params / (3.0 * np.maximum(s.d_model, 1.0))
    split = np.where((s.ep > 1) | (s.dp > 1), 1.0, s.tp)
    return np.asarray(1.0 + c.expert_width * split / np.maximum(inner, 1.0))


def expert_ranks(s: Setups) -> Array:
    """Accelerators that share the experts of one pipeline stage."""
    return np.asarray(s.tp * s.dp)


def decode_step(s: Setups, c: Constants, batch: Array, context: Array) -> StepTime:
    """One decode step of ``batch`` sequences per data-parallel rank at mean cache length ``context``."""
    tokens = batch * s.tokens_per_step
    dense_params = (s.attention_params + s.dense_params + s.shared_params) / s.tp
    head_params = s.head_params / s.tp
    bandwidth = s.memory_bytes_per_s * c.weight_bandwidth
    rows = tokens + c.rows_floor
    narrow = shard_factor(s, c)
    dense_c = 2 * dense_params * rows * narrow / (s.peak_dense * c.compute_dense)
    head_c = 2 * head_params * rows / (s.peak_attention * c.compute_dense)
    dense_m = dense_params * s.bytes_dense / bandwidth
    head_m = head_params * s.bytes_head / bandwidth
    traffic = s.layers * tokens * s.d_model * ACTIVATION_BYTES * ELEMENTWISE_PASSES / bandwidth
    weights = joined(dense_c + head_c, dense_m + head_m) + traffic
    all_tokens = tokens * s.dp
    distinct = distinct_experts(s, all_tokens, c.skew)
    ranks = expert_ranks(s)
    imbalance = 1 + np.where(s.ep > 1, c.ep_imbalance * np.sqrt(np.minimum(s.ep, BALANCED_RANKS) / 8.0), 0.0)
    expert = s.expert_params * s.moe_layers / ranks * imbalance
    expert_c = (
        2
        * expert
        * expert_factor(s, c)
        * (all_tokens * s.top_k + distinct * c.expert_rows_floor)
        / (s.peak_expert * c.compute_expert)
    )
    expert_m = expert * distinct * s.bytes_expert / bandwidth
    experts = joined(expert_c, expert_m)
    kv_m = batch * kv_bytes_per_sequence(s, context) * s.pp / (s.memory_bytes_per_s * c.kv_bandwidth)
    heads = np.minimum(s.tp, np.maximum(s.n_heads, 1.0))
    pair = s.decode_pair_flops * context + s.pair_flops_window * np.minimum(context, s.window)
    kv_c = (tokens * pair + tokens * s.linear_flops) / heads / (s.peak_attention * 0.5)
    attention = joined(kv_c, kv_m)
    message = tokens * s.d_model * ACTIVATION_BYTES
    reduce_s = 2 * s.layers * collective_s(s, c, message, s.tp, 2 * (s.tp - 1) / s.tp)
    exchange = s.moe_layers * expert_exchange_s(s, c, tokens)
    hops = (s.pp - 1) * collective_s(s, c, message, np.maximum(s.pp, 1.0), np.ones(len(s)))
    layers = s.full_layers + s.window_layers + c.linear_layer_share * s.linear_layers
    launch = layers * c.layer_s + s.moe_layers * c.moe_layer_s + c.step_s + c.sequence_s * batch
    return StepTime(
        weights_s=weights,
        experts_s=experts,
        attention_s=attention,
        collectives_s=np.asarray(reduce_s + exchange + hops),
        launch_s=np.asarray(launch),
        compute_s=np.asarray(dense_c + head_c + expert_c + kv_c),
        memory_s=np.asarray(dense_m + head_m + expert_m + kv_m),
    )


def attention_efficiency(c: Constants, length: Array) -> Array:
    """Share of the BF16 peak that prefill attention reaches: rises with the sequence length to its peak."""
    return np.asarray(c.attention_peak * length / (length + c.attention_half_length))


@dataclass(frozen=True)
class PrefillTime:
    """Prefill of one request: work inside full chunks, and alone on an idle server, in seconds."""

    work_s: Array
    alone_s: Array
    compute_s: Array
    memory_s: Array
    collectives_s: Array


def prefill(s: Setups, c: Constants, tokens: Array | None = None, batch: Array | float = 1.0) -> PrefillTime:
    """Prefill of ``tokens`` new tokens a sequence (default: input not in the prefix cache), ``batch`` sequences."""
    new = s.isl * (1 - s.prefix_hit) if tokens is None else tokens
    cached = s.isl - new if tokens is None else np.zeros(len(s))
    count = new * batch
    dense_params = (s.attention_params + s.dense_params + s.shared_params) / s.tp
    expert = s.expert_params * s.moe_layers / s.tp
    imbalance = 1 + np.where(s.ep > 1, c.ep_imbalance * np.sqrt(np.minimum(s.ep, BALANCED_RANKS) / 8.0), 0.0)
    rate_dense = s.peak_dense * c.compute_dense * c.prefill_compute
    rate_expert = s.peak_expert * c.compute_expert * c.prefill_compute
    narrow = shard_factor(s, c)
    linear_c = 2 * dense_params * count * narrow / rate_dense
    linear_c = linear_c + 2 * expert * expert_factor(s, c) * s.top_k * imbalance * count / rate_expert
    linear_c = linear_c + 2 * s.head_params / s.tp * batch / (s.peak_attention * c.compute_dense)
    pairs = new * (cached + new / 2)
    window = new * np.minimum(s.window, cached + new / 2)
    heads = np.minimum(s.tp, np.maximum(s.n_heads, 1.0))
    work = (s.pair_flops_full * pairs + s.pair_flops_window * window + s.linear_flops * new) * batch / heads
    attention = work / (s.peak_attention * attention_efficiency(c, np.maximum(new, 1.0)))
    bandwidth = s.memory_bytes_per_s * c.weight_bandwidth
    traffic = s.layers * count * s.d_model * ACTIVATION_BYTES * ELEMENTWISE_PASSES / s.tp**0.5 / bandwidth
    steps = np.maximum(count / c.chunk_tokens, 1.0)
    step_tokens = count / steps
    distinct = distinct_experts(s, step_tokens * s.dp, c.skew)
    weights = dense_params * s.bytes_dense + expert / s.dp * distinct * s.bytes_expert
    weights_m = steps * weights / bandwidth
    message = step_tokens * s.d_model * ACTIVATION_BYTES
    reduce_s = steps * 2 * s.layers * collective_s(s, c, message, s.tp, 2 * (s.tp - 1) / s.tp)
    exchange = steps * s.moe_layers * expert_exchange_s(s, c, step_tokens)
    launch = steps * s.layers * c.prefill_layer_s
    busy = linear_c + attention + traffic + reduce_s + exchange
    alone = joined(busy, np.asarray(launch + weights_m))
    return PrefillTime(
        work_s=np.asarray(busy),
        alone_s=alone,
        compute_s=np.asarray(linear_c + attention),
        memory_s=np.asarray(weights_m + traffic),
        collectives_s=np.asarray(reduce_s + exchange),
    )
