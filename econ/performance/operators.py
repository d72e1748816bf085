"""The operators of a decode step or of a prefill, each with its FLOPs, bytes, format, roofline time and binding
resource.

One accelerator's share is counted. `steps` sums the same groups for thousands of set-ups at once; this module names
them
for a reader, and a test holds both to each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from econ.performance.prediction import Limit
from econ.performance.requests import EngineError, Request
from econ.performance.roofline import joined, time_at_rate
from econ.performance.shapes import expected_distinct_experts

__all__ = ["Operator", "Phase", "operators", "total_flops"]

Phase = Literal["decode", "prefill"]


@dataclass(frozen=True)
class Operator:
    """One operator group of a step on one accelerator."""

    name: str
    flops: float
    weight_bytes: float
    cache_bytes: float
    activation_bytes: float
    peak_flop_per_s: float
    seconds: float
    limited_by: Limit

    @property
    def bytes_moved(self) -> float:
        """All bytes from and to memory."""
        return self.weight_bytes + self.cache_bytes + self.activation_bytes

    @property
    def intensity_flop_per_byte(self) -> float:
        """FLOP per byte moved; infinite for an operator that moves none."""
        return self.flops / self.bytes_moved if self.bytes_moved else float("inf")


def _operator(
    name: str, request: Request, flops: float, weights: float, cache: float, activations: float, peak: float
) -> Operator:
    compute = time_at_rate(flops, peak)
    memory = time_at_rate(weights + cache + activations, request.rates.memory_bytes_per_s)
    limit: Limit = "compute" if float(compute) > float(memory) else "memory_bandwidth"
    seconds = float(joined(np.asarray(compute), np.asarray(memory)))
    return Operator(name, flops, weights, cache, activations, peak, seconds, limit)


def operators(request: Request, phase: Phase, batch: float, context: float) -> list[Operator]:
    """Operators of one step: ``batch`` sequences decoding at mean cache length ``context``, or prefilling
    ``context`` tokens.

    Times are roofline times at nominal rates (no efficiency, no launch); weights are read once, the cache once a step.

    Raises:
        EngineError: when the phase is unknown or batch or context is not positive.
    """
    if phase not in ("decode", "prefill"):
        raise EngineError(f"phase {phase!r}: decode or prefill")
    if batch <= 0 or context <= 0:
        raise EngineError(f"batch={batch}, context={context}: must be positive")
    s, w, r, load = request.shape, request.widths, request.rates, request.load
    tokens = batch if phase == "decode" else batch * context
    shard = load.tp * load.pp
    out = []
    dense_groups = (
        ("attention_projections", s.attention_params),
        ("dense_mlp", s.dense_params),
        ("shared", s.shared_params),
    )
    hidden = tokens * s.d_model * 2.0 / load.pp
    for name, params in dense_groups:
        if params:
            weights = params * w.dense / shard
            flops = 2.0 * params * tokens / shard
            out.append(_operator(name, request, flops, weights, 0.0, 2 * hidden, r.peak_dense))
    if s.n_experts:
        distinct = expected_distinct_experts(s.n_experts, s.top_k, tokens * load.dp)
        ranks = shard * load.dp
        weights = distinct * s.expert_params * s.moe_layers * w.expert / ranks
        flops = 2.0 * s.expert_params * s.moe_layers * s.top_k * tokens * load.dp / ranks
        out.append(_operator("experts", request, flops, weights, 0.0, 2 * hidden, r.peak_expert))
    out.append(_attention(request, phase, batch, context, shard))
    last = batch
    head = s.head_params / shard
    out.append(
        _operator("lm_head", request, 2 * head * last, head * w.head, 0.0, last * s.d_model * 2.0, r.peak_attention)
    )
    return out


def _attention(request: Request, phase: Phase, batch: float, context: float, shard: float) -> Operator:
    """Scores and values: every new token against the cache; the causal half in prefill."""
    s, w = request.shape, request.widths
    ways = 1.0 if s.latent else min(request.load.tp, max(s.kv_heads, 1.0))
    cache = batch * s.kv_elements(context) * w.kv / ways / request.load.pp
    window = min(context, s.window)
    if phase == "decode":
        pairs = s.decode_pair_flops * context + s.pair_flops_window * window
        flops = batch * (pairs + s.linear_flops)
    else:
        pairs = s.pair_flops_full * context * context / 2 + s.pair_flops_window * context * min(window, context / 2)
        flops = batch * (pairs + s.linear_flops * context)
    return _operator("attention", request, flops / shard, 0.0, cache, 0.0, request.rates.peak_attention)


def total_flops(found: list[Operator]) -> float:
    """FLOPs of all operators of one accelerator."""
    return sum(o.flops for o in found)
