"""Memory of a training rank: state bytes by recipe and sharding, activations by recompute mode, pipeline in flight;
fit.

Activations follow Korthikanti et al. 2022 (arXiv 2205.05198): a transformer layer stores s b h (10 + 24/t + 5 a s/(h
t)) bytes under tensor parallelism t, s b h/t (34 + 5 a s/h) with sequence parallelism as well, without the score term
where scores are recomputed or fused, and 2 s b h when everything but the layer input is recomputed. The first pipeline
stage holds one micro-batch for every stage behind it, times 1 + (p - 1)/(p v) when chunks are interleaved.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from econ.performance.hardware import Hardware
from econ.performance.training_model import TrainingModel
from econ.performance.training_setup import FORMATS, TrainingSetup

__all__ = [
    "RECIPES",
    "StateRecipe",
    "TrainingMemory",
    "TrainingMemoryError",
    "check_training_fit",
    "least_accelerators",
    "state_bytes_per_parameter",
    "state_fits",
    "training_memory",
    "training_state_bytes",
]

GIB = 2**30
#: Bytes of the runtime, communication buffers and kernel workspaces on one accelerator, beside tensors (two to six GB
#: are seen; the larger part are the buffers of collectives), and the share of the device that can be filled.
RUNTIME_BYTES, RUNTIME_SHARE, USABLE_SHARE = 4.0e9, 0.05, 0.96


#: Bytes a logit while the loss is computed: 2 as produced, 4 as FP32 copy, 4 and 2 for its gradient. A caching
#: allocator reserves about an eighth more than live tensors; a logged peak is that of reserved memory.
LOGIT_BYTES, RESERVED_OVER_LIVE = 12.0, 1.125


class TrainingMemoryError(ValueError):
    """A set-up that does not fit; the message gives need, room, shortfall and the least number of accelerators."""


@dataclass(frozen=True)
class StateRecipe:
    """Bytes a parameter of each kind of training state."""

    weight: float
    gradient: float
    optimizer: float

    @property
    def total(self) -> float:
        """All bytes a parameter."""
        return self.weight + self.gradient + self.optimizer


#: Documented recipes: 16-bit weights and gradients with FP32 master and two moments (16 B, the ZeRO paper); the same
#: with FP32 gradients (18 B, Megatron-LM); everything in FP32; 8-bit moments; SGD with momentum; BF16 moments without
#: master.
RECIPES: Mapping[str, StateRecipe] = {
    "adam_mixed": StateRecipe(2, 2, 12),
    "adam_mixed_fp32_grad": StateRecipe(2, 4, 12),
    "adam_fp32": StateRecipe(4, 4, 8),
    "adam_8bit": StateRecipe(2, 2, 6),
    "adam_bf16": StateRecipe(2, 2, 4),
    "sgd_momentum": StateRecipe(2, 2, 8),
}


def state_bytes_per_parameter(weight: float, gradient: float, master: float = 0, *moments: float) -> float:
    """Bytes of training state a parameter: weight + gradient + master copy + optimizer moments.

    >>> state_bytes_per_parameter(2, 2, 4, 4, 4)
    16
    """
    parts = (weight, gradient, master, *moments)
    if min(parts) < 0:
        raise TrainingMemoryError(f"bytes a parameter must not be negative, got {parts}")
    return sum(parts)


def training_state_bytes(params: float, bytes_per_parameter: float = 16.0) -> float:
    """Bytes of all training state, unsharded: parameters x bytes a parameter.

    >>> training_state_bytes(70e9, 16)
    1120000000000.0
    """
    if params <= 0 or bytes_per_parameter <= 0:
        raise TrainingMemoryError(f"params {params!r} and bytes_per_parameter {bytes_per_parameter!r} must be positive")
    return params * bytes_per_parameter


def least_accelerators(state_bytes: float, device_bytes: float, node: int = 1) -> int:
    """Fewest accelerators whose memory holds the state under perfect division, in whole nodes.

    >>> least_accelerators(1.12e12, 80e9), least_accelerators(1129.6e9, 80 * 2**30, node=8)
    (14, 16)
    """
    if state_bytes <= 0 or device_bytes <= 0 or node < 1:
        raise TrainingMemoryError(f"state {state_bytes!r} B, device {device_bytes!r} B, node {node!r} must be positive")
    return node * math.ceil(math.ceil(state_bytes / device_bytes) / node)


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes on the fullest rank, in the order in which a fit is judged."""

    weight_bytes: float
    gradient_bytes: float
    optimizer_bytes: float
    activation_bytes: float
    logits_bytes: float
    gathered_bytes: float
    runtime_bytes: float

    @property
    def state_bytes(self) -> float:
        """Weights, gradients and optimizer."""
        return self.weight_bytes + self.gradient_bytes + self.optimizer_bytes

    @property
    def reserved_bytes(self) -> float:
        """What a log shows as peak: live tensors as the allocator reserves them, and the runtime."""
        return (self.total_bytes - self.runtime_bytes) * RESERVED_OVER_LIVE + self.runtime_bytes

    @property
    def total_bytes(self) -> float:
        """Everything."""
        return self.state_bytes + self.activation_bytes + self.logits_bytes + self.gathered_bytes + self.runtime_bytes


def _shards(setup: TrainingSetup) -> tuple[float, float, float, float]:
    """Data-parallel ranks that weights, gradients and optimizer are spread over, and the ranks of an expert."""
    ranks = float(setup.dp * setup.cp)
    weight = ranks if setup.sharding == "zero3" else 1.0
    gradient = ranks if setup.sharding in ("zero2", "zero3") else 1.0
    optimizer = 1.0 if setup.sharding == "none" else ranks
    return weight, gradient, optimizer, max(1.0, setup.accelerators / setup.pp / max(setup.ep, 1))


def rank_parameters(model: TrainingModel, setup: TrainingSetup) -> tuple[float, float]:
    """Parameters of one rank before data-parallel sharding: outside routed experts, and routed (mean over stages)."""
    routed = min(model.routed_params, model.layer_params)
    rest = (model.total_params - routed) / (setup.tp * setup.pp)
    return rest, routed / (setup.pp * (setup.ep if setup.ep > 1 else setup.tp))


def activation_bytes(model: TrainingModel, setup: TrainingSetup) -> float:
    """Stored activations of the first pipeline stage, all micro-batches in flight.

    >>> from econ.performance.training_model import training_model
    >>> s = TrainingSetup(8, 2048, 4, 4, tp=8, recompute="selective", fused_attention=False)
    >>> activation_bytes(training_model("GPT-22B"), s) / 2**30
    9.5625
    """
    t, tokens = setup.tp, setup.rank_tokens
    outside, inside = stored_bytes(model, setup)
    outside, inside = outside / (t if setup.sequence_parallel else 1), inside / t
    scores = 0.0 if setup.fused_attention else 5 * model.n_heads * setup.sequence / t
    if setup.recompute == "full":
        kept = 2 * model.d_model / (t if setup.sequence_parallel else 1)
        share, whole = setup.recompute_share, outside + inside + scores
        working = 2 * share * whole  # one layer at a time: its recomputed activations and their gradients
        return tokens * ((share * kept + (1 - share) * whole) * model.layers * _in_flight(setup) + working)
    if setup.recompute == "selective":
        scores = 0.0
        if setup.selective_share:  # pointwise results and that share of products are dropped
            inside, outside = inside * (1 - setup.selective_share), outside * (1 - setup.selective_share)
    return tokens * (outside + inside + scores) * model.layers * _in_flight(setup)


def stored_bytes(model: TrainingModel, setup: TrainingSetup) -> tuple[float, float]:
    """Bytes a token that one layer keeps for its backward pass: outside and inside tensor parallelism, scores left out.

    The stack of 2022 (unfused attention, dropout) keeps 10 and 24 widths. Fused kernels without dropout keep the
    inputs of both norms (2 B), both norm outputs, queries, keys, values and attention output (2 B), and the
    feed-forward inputs and output; inputs of matrix products are kept in the training format.
    """
    width = model.d_model
    mlp = model.ff_width if not model.moe_layers else _moe_width(model)
    if not setup.fused_attention:
        return 10.0 * width, 8.0 * width + 4.0 * mlp
    kept = FORMATS[setup.number_format][1]
    kept = max(kept, 1.0) if kept < 2 else 2.0
    share = model.attention_layers / model.layers
    queries = model.score_width / 2
    attention = 2 * (queries + model.kv_width) + 2 * queries
    attention = attention * share + (1 - share) * 4 * width
    return (4 + 2 * kept) * width, attention + ((4 if model.gated else 2) + kept) * mlp


def _moe_width(model: TrainingModel) -> float:
    """Mean active feed-forward width of a layer: routed and shared experts, or the dense layers."""
    shared = model.expert_width * model.shared_params / model.expert_params if model.expert_params else 0.0
    moe = model.moe_layers * (model.experts_per_token * model.expert_width + shared)
    return (moe + model.dense_layers * model.ff_width) / model.layers


def _in_flight(setup: TrainingSetup) -> float:
    """Whole-model activations that the first stage holds: min(p, m)/p, times 1 + (p - 1)/(p v) when interleaved."""
    share = min(setup.pp, setup.microbatches) / setup.pp
    if setup.virtual > 1 and setup.microbatches >= setup.pp:
        return share * (1 + (setup.pp - 1) / (setup.pp * setup.virtual))
    return share


def training_memory(
    model: TrainingModel,
    setup: TrainingSetup,
    recipe: str | StateRecipe = "adam_mixed_fp32_grad",
    runtime_bytes: float = RUNTIME_BYTES,
) -> TrainingMemory:
    """Memory of one rank (state: mean over stages; activations: first stage).

    Raises:
        TrainingMemoryError: for an unknown recipe.
    """
    if isinstance(recipe, str):
        if recipe not in RECIPES:
            raise TrainingMemoryError(f"recipe {recipe!r} is not one of {', '.join(RECIPES)}")
        recipe = RECIPES[recipe]
    rest, routed = rank_parameters(model, setup)
    weight_n, gradient_n, optimizer_n, expert_n = _shards(setup)
    trained = 0.01 if setup.adapters_only else 1.0

    def kind(bytes_each: float, ranks: float, share: float) -> float:
        expert_ranks = 1.0 if ranks == 1.0 else expert_n
        return bytes_each * (rest / ranks + routed / expert_ranks) * share

    layer = (rest + routed) / max(1.0, model.layers / setup.pp)
    gathered = 2 * layer * 2 if setup.sharding == "zero3" else 0.0
    logits = setup.rank_tokens * model.vocab / setup.tp * LOGIT_BYTES if setup.pp == 1 else 0.0
    return TrainingMemory(
        kind(recipe.weight, weight_n, 1.0),
        kind(recipe.gradient, gradient_n, trained),
        kind(recipe.optimizer, optimizer_n, trained),
        activation_bytes(model, setup),
        logits,
        gathered,
        runtime_bytes,
    )


def memory_on(
    model: TrainingModel, hw: Hardware, setup: TrainingSetup, recipe: str | StateRecipe = "adam_mixed"
) -> TrainingMemory:
    """Memory of one rank on a part: the runtime takes 4 GB, at most a twentieth of a small device."""
    return training_memory(model, setup, recipe, min(RUNTIME_BYTES, RUNTIME_SHARE * hw.memory_bytes))


def usable_bytes(hw: Hardware) -> float:
    """Bytes that a training process can fill: 96 % of the device, the rest is lost to fragmentation."""
    return USABLE_SHARE * hw.memory_bytes


def fits(model: TrainingModel, hw: Hardware, setup: TrainingSetup, recipe: str | StateRecipe = "adam_mixed") -> bool:
    """Whether the fullest rank stays within what a process can fill."""
    return memory_on(model, hw, setup, recipe).total_bytes <= usable_bytes(hw)


def state_fits(model: TrainingModel, hw: Hardware, setup: TrainingSetup) -> bool:
    """Whether weights, gradients and optimizer alone stay within the memory: a bound that no allocator beats."""
    return memory_on(model, hw, setup).state_bytes <= hw.memory_bytes


def check_training_fit(
    params: float, accelerators: int, device_bytes: float, bytes_per_parameter: float = 16.0, node: int = 8
) -> float:
    """Bytes of state on each accelerator when all of it is sharded evenly; refuses what cannot fit.

    Raises:
        TrainingMemoryError: with the shortfall and the least number of accelerators, when the state alone is too large.
    """
    state = training_state_bytes(params, bytes_per_parameter)
    room = accelerators * device_bytes
    if state > room:
        alone = least_accelerators(state, device_bytes)
        nodes = least_accelerators(state, device_bytes, node)
        raise TrainingMemoryError(
            f"training state of {state / 1e9:,.1f} GB does not fit {accelerators} x {device_bytes / 1e9:.1f} GB = "
            f"{room / 1e9:,.1f} GB: short by {(state - room) / 1e9:,.1f} GB ({state / accelerators / 1e9:.1f} GB"
            f" on each before activations); least {alone} accelerators for the state alone,"
            f" {nodes} in whole nodes of {node}"
        )
    return state / accelerators
