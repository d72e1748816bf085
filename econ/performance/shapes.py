"""What the step model needs of an architecture: parameters, cache elements and attention work, counted exactly.

All counts are sums over layers, so that a step time is a few multiplications. A latent-attention (MLA) cache holds
``rank + rope`` values a token once; grouped attention holds ``2 x KV heads x head width``; a sliding layer holds at
most
its window.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache

from econ.performance.architecture import Architecture


@dataclass(frozen=True)
class ModelShape:
    """Counts of one model. Parameters in units, cache in elements, work in FLOP; ``*_layers`` are numbers of layers."""

    layers: float
    d_model: float
    n_heads: float
    kv_heads: float
    attention_params: float
    dense_params: float
    shared_params: float
    head_params: float
    embedding_params: float
    expert_params: float
    moe_layers: float
    n_experts: float
    top_k: float
    full_layers: float
    window_layers: float
    linear_layers: float
    window: float
    kv_full: float
    kv_window: float
    state_elements: float
    pair_flops_full: float
    pair_flops_window: float
    decode_pair_flops: float
    linear_flops: float
    latent: float
    context_limit: float

    @property
    def total_params(self) -> float:
        """All parameters, experts included."""
        experts = self.expert_params * self.n_experts * self.moe_layers
        once = self.attention_params + self.dense_params + self.shared_params + self.head_params
        return once + experts + self.embedding_params

    @property
    def active_params(self) -> float:
        """Parameters that one token multiplies with (embedding look-up left out)."""
        experts = self.expert_params * self.top_k * self.moe_layers
        return self.attention_params + self.dense_params + self.shared_params + self.head_params + experts

    def kv_elements(self, context: float) -> float:
        """Cache elements of one sequence of ``context`` tokens, all layers."""
        return self.kv_full * context + self.kv_window * min(context, self.window) + self.state_elements


SHAPE_FIELDS: tuple[str, ...] = tuple(f.name for f in fields(ModelShape))


def expected_distinct_experts(n_experts: float, top_k: float, tokens: float, skew: float = 1.0) -> float:
    """Experts that at least one of ``tokens`` tokens routes to: E (1 - (1 - k/E)^(s T)), never under min(k, E).

    ``skew`` s below 1 stands for uneven routing. Saturates at E.

    >>> round(expected_distinct_experts(256, 8, 64), 1)
    222.4
    >>> expected_distinct_experts(8, 2, 1)
    2.0
    """
    if n_experts <= 0:
        return 0.0
    distinct = n_experts * (1.0 - (1.0 - top_k / n_experts) ** (skew * tokens))
    return float(max(distinct, min(top_k, n_experts)))


@lru_cache(maxsize=512)
def shape_of(arch: Architecture) -> ModelShape:
    """Counts of an architecture, summed over its layers.

    >>> from econ.performance.architecture import architecture
    >>> shape_of(architecture("Llama-3.1-70B")).kv_elements(1)
    163840.0
    """
    parts = arch.parameters
    full, sliding = arch.attention.count("full"), arch.attention.count("sliding")
    recurrent = arch.attention.count("linear") + arch.attention.count("mamba")
    if arch.is_mla:
        pair = 2.0 * arch.heads * (arch.qk_nope + arch.qk_rope + arch.v_head)
        decode_pair = 2.0 * arch.heads * (2 * arch.kv_lora + arch.qk_rope)
    else:
        pair = decode_pair = 4.0 * arch.heads * arch.head_shape("full")[1]
    return ModelShape(
        layers=float(arch.layers),
        d_model=float(arch.d_model),
        n_heads=float(arch.heads),
        kv_heads=float(arch.head_shape("full")[0]),
        attention_params=float(parts["attention"]),
        dense_params=float(parts["dense_mlp"]),
        shared_params=float(parts["shared"] + parts["router"]),
        head_params=float(arch.vocab * arch.d_model),
        embedding_params=0.0 if arch.tied else float(parts["embedding"]),
        expert_params=float(arch.expert_parameters) if arch.is_moe else 0.0,
        moe_layers=float(arch.moe_layers),
        n_experts=float(arch.experts if arch.is_moe else 0),
        top_k=float(arch.experts_per_token if arch.is_moe else 0),
        full_layers=float(full),
        window_layers=float(sliding),
        linear_layers=float(recurrent),
        window=float(arch.window or 1e9),
        kv_full=float(full * arch.kv_values_per_token("full")),
        kv_window=float(sliding * arch.kv_values_per_token("sliding")),
        state_elements=float(arch.state_values),
        pair_flops_full=full * pair,
        pair_flops_window=sliding * 4.0 * arch.heads * arch.head_dim,
        decode_pair_flops=full * decode_pair,
        linear_flops=6.0 * arch.state_values,
        latent=float(arch.is_mla),
        context_limit=float(arch.context or 1e9),
    )
