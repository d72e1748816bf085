"""A decoder architecture: parameters by part and bytes of attention state, dense, GQA, MLA, sliding, hybrid or MoE.

A layer is a mixer (`full`, `sliding`, `linear`, `mamba` or `none`) followed by an MLP (`dense`, `moe` or `none`). The
counts are those of the matrices plus norms; biases and quantisation scales are left out (below 0.1 % of any model).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Architecture", "ArchitectureError", "kv_bytes_per_token"]

MIXERS = ("full", "sliding", "linear", "mamba", "none")
MLPS = ("dense", "moe", "none")


class ArchitectureError(ValueError):
    """An unknown or undisclosed model, or an architecture whose fields contradict each other."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """One decoder architecture. Sizes are counts of values; `*_lora`, `qk_*` and `v_head` are zero outside MLA."""

    name: str
    family: str
    layers: int
    d_model: int
    heads: int
    kv_heads: int
    head_dim: int
    d_ff: int
    gated: bool
    vocab: int
    tied: bool
    context: int | None
    attention: tuple[str, ...]
    mlp: tuple[str, ...]
    window: int | None = None
    q_lora: int = 0
    kv_lora: int = 0
    qk_nope: int = 0
    qk_rope: int = 0
    v_head: int = 0
    experts: int = 0
    experts_per_token: int = 0
    shared_experts: int = 0
    moe_d_ff: int = 0
    shared_d_ff: int = 0
    first_dense_layers: int = 0
    mtp: int = 0
    global_kv_heads: int = 0
    global_head_dim: int = 0
    attn_gate: bool = False
    key_is_value: bool = False
    linear_key_heads: int = 0
    linear_value_heads: int = 0
    linear_head_dim: int = 0
    mamba_heads: int = 0
    mamba_head_dim: int = 0
    mamba_state: int = 0
    mamba_groups: int = 0
    moe_latent: int = 0
    positions: int = 0
    native_format: str = "bf16"
    published_total: float | None = None
    published_active: float | None = None
    source: str = ""
    url: str = ""
    notes: str = ""

    def __post_init__(self) -> None:
        problems = [
            f"{k} is {v}, must be positive"
            for k, v in (("layers", self.layers), ("d_model", self.d_model), ("vocab", self.vocab))
            if v <= 0
        ]
        if len(self.attention) != self.layers or len(self.mlp) != self.layers:
            problems.append(f"{len(self.attention)} mixers and {len(self.mlp)} MLPs for {self.layers} layers")
        if set(self.attention) - set(MIXERS) or set(self.mlp) - set(MLPS):
            problems.append(f"mixers are {', '.join(MIXERS)}; MLPs are {', '.join(MLPS)}")
        if "sliding" in self.attention and not self.window:
            problems.append("has sliding layers but no window")
        if not self.is_mla and self.heads and self.kv_heads and self.heads % self.kv_heads:
            problems.append(f"{self.heads} heads cannot share {self.kv_heads} KV heads")
        if self.experts and not 0 < self.experts_per_token <= self.experts:
            problems.append(f"{self.experts_per_token} of {self.experts} experts a token")
        if problems:
            raise ArchitectureError(f"{self.name}: {'; '.join(problems)}")

    @property
    def is_mla(self) -> bool:
        """Whether attention keeps one latent per token (rank + rope) instead of keys and values per head."""
        return self.kv_lora > 0

    @property
    def is_moe(self) -> bool:
        """Whether any layer has routed experts."""
        return "moe" in self.mlp

    def head_shape(self, kind: str) -> tuple[int, int]:
        """(KV heads, head size) of a mixer kind; some models give their full layers another shape than sliding ones."""
        if kind == "full" and self.global_head_dim:
            return self.global_kv_heads or self.kv_heads, self.global_head_dim
        return self.kv_heads, self.head_dim

    def mixer_parameters(self, kind: str) -> int:
        """Parameters of one mixer of a kind."""
        d = self.d_model
        if kind == "none":
            return 0
        if kind == "linear":
            key, value = self.linear_key_heads * self.linear_head_dim, self.linear_value_heads * self.linear_head_dim
            return d * (2 * key + 2 * value + 2 * self.linear_value_heads) + 4 * (2 * key + value) + value * d
        if kind == "mamba":
            inner, state = self.mamba_heads * self.mamba_head_dim, self.mamba_groups * self.mamba_state
            return d * (2 * inner + 2 * state + self.mamba_heads) + 4 * (inner + 2 * state) + inner * d
        if self.is_mla:
            qk = self.qk_nope + self.qk_rope
            query = d * self.q_lora + self.q_lora * self.heads * qk if self.q_lora else d * self.heads * qk
            latent = d * (self.kv_lora + self.qk_rope) + self.kv_lora * self.heads * (self.qk_nope + self.v_head)
            return query + latent + self.heads * self.v_head * d
        kv_heads, size = self.head_shape(kind)
        values = 1 if self.key_is_value and kind == "full" else 2
        return d * size * (self.heads * (2 + self.attn_gate) + values * kv_heads)

    @property
    def expert_parameters(self) -> int:
        """Parameters of one routed expert."""
        return (3 if self.gated else 2) * (self.moe_latent or self.d_model) * self.moe_d_ff

    @property
    def moe_layers(self) -> int:
        """Number of layers with routed experts."""
        return self.mlp.count("moe")

    @property
    def parameters(self) -> Mapping[str, int]:
        """Parameters by part: attention, dense_mlp, experts, shared, router, embedding, lm_head, norms.

        >>> from econ.performance.architecture import architecture
        >>> architecture("Llama-3.1-8B").parameters["attention"]
        1342177280
        """
        d, matrices = self.d_model, 3 if self.gated else 2
        shared = self.moe_layers * matrices * d * self.shared_d_ff * (1 if self.shared_experts else 0)
        latent = 2 * d * self.moe_latent * self.moe_layers
        return {
            "attention": sum(self.mixer_parameters(k) for k in self.attention),
            "dense_mlp": self.mlp.count("dense") * matrices * d * self.d_ff,
            "experts": self.moe_layers * self.experts * self.expert_parameters,
            "shared": shared + latent,
            "router": self.moe_layers * d * self.experts,
            "embedding": (self.vocab + self.positions) * d,
            "lm_head": 0 if self.tied else self.vocab * d,
            "norms": (2 * self.layers + 1) * d,
        }

    @property
    def total_parameters(self) -> int:
        """Parameters of the checkpoint without its multi-token-prediction layers.

        >>> from econ.performance.architecture import architecture
        >>> round(architecture("DeepSeek-V3").total_parameters / 1e9)
        671
        """
        return sum(self.parameters.values())

    @property
    def active_parameters(self) -> int:
        """Parameters that one token passes through: all but the experts not chosen (embedding table included)."""
        parts = self.parameters
        idle = parts["experts"] - self.moe_layers * self.experts_per_token * self.expert_parameters
        return self.total_parameters - idle

    def kv_values_per_token(self, kind: str) -> int:
        """Cached values per token of one layer: 2 x KV heads x head size; MLA rank + rope; linear layers none.

        >>> from econ.performance.architecture import architecture
        >>> architecture("DeepSeek-V3").kv_values_per_token("full")
        576
        """
        if kind not in ("full", "sliding"):
            return 0
        if self.is_mla:
            return self.kv_lora + self.qk_rope
        kv_heads, size = self.head_shape(kind)
        return 2 * kv_heads * size

    @property
    def state_values(self) -> int:
        """Values of recurrent state per sequence, constant in its length (linear and state-space layers)."""
        linear = self.linear_value_heads * self.linear_head_dim**2 * self.attention.count("linear")
        mamba = self.mamba_heads * self.mamba_head_dim * self.mamba_state * self.attention.count("mamba")
        return linear + mamba

    def token_bytes(self, kind: str, bytes_per_value: float = 2.0) -> float:
        """Bytes that one token adds over all layers of a kind; latent attention holds rank + rope once, not twice."""
        layers = self.attention.count(kind)
        if self.is_mla or kind not in ("full", "sliding"):
            return layers * self.kv_values_per_token(kind) * bytes_per_value
        return float(kv_bytes_per_token(layers, *self.head_shape(kind), bytes_per_value))

    def kv_bytes(self, tokens: ArrayLike, bytes_per_value: float = 2.0) -> Any:
        """Bytes of cached keys and values of one sequence: full layers grow with it, sliding ones stop at the window.

        A float for a number of tokens, an array for an array.

        >>> from econ.performance.architecture import architecture
        >>> architecture("Llama-3.1-70B").kv_bytes(1)
        327680.0
        >>> round(architecture("Gemma-3-27B").kv_bytes(131072) / 2**30, 2)
        10.41

        Raises:
            ArchitectureError: when tokens or bytes are negative.
        """
        length = np.asarray(tokens, float)
        if np.any(length < 0) or bytes_per_value <= 0:
            raise ArchitectureError(f"{self.name}: kv_bytes of {tokens!r} tokens at {bytes_per_value} B a value")
        kept = np.minimum(length, self.window) if self.window else length
        total = self.token_bytes("full", bytes_per_value) * length + self.token_bytes("sliding", bytes_per_value) * kept
        return float(total) if total.ndim == 0 else total


def kv_bytes_per_token(
    layers: ArrayLike, kv_heads: ArrayLike, head_dim: ArrayLike, bytes_per_value: ArrayLike = 2.0
) -> NDArray[np.float64]:
    """Bytes of keys and values that one token adds: layers x 2 x KV heads x head size x bytes. Accepts arrays.

    >>> float(kv_bytes_per_token(80, 8, 128)), float(kv_bytes_per_token(80, 64, 128)) * 128000
    (327680.0, 335544320000.0)
    """
    sizes = (np.asarray(x, float) for x in (layers, kv_heads, head_dim, bytes_per_value))
    return np.asarray(2.0 * np.prod(np.broadcast_arrays(*sizes), axis=0))
