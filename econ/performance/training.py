"""Time of one training step from operators and collectives, and the efficiencies that follow from it.

Per micro-batch and pipeline stage: linear layers at a sustained share of the dense peak, attention scores at their own
share, element-wise passes at the memory rate, tensor-, expert- and context-parallel messages. Micro-batches fill a
pipeline with an exact bubble; weight and gradient messages of the data-parallel group and the optimizer come on top,
partly hidden.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

from econ.performance.hardware import Hardware
from econ.performance.training_memory import stored_bytes
from econ.performance.training_model import TrainingModel
from econ.performance.training_parameters import TrainingConstants, family_of, training_constants
from econ.performance.training_setup import FORMATS, SetupError, TrainingSetup, bubble_fraction

__all__ = ["StepTime", "hfu", "mfu", "peak_flop_per_s", "step_time", "tokens_per_s", "training_flops_per_token"]


@dataclass(frozen=True)
class StepTime:
    """Seconds of one optimizer step on every accelerator, by cause; parts add up to `total_s`."""

    linear_s: float
    attention_s: float
    elementwise_s: float
    tensor_parallel_s: float
    expert_parallel_s: float
    context_parallel_s: float
    launch_s: float
    bubble_s: float
    pipeline_link_s: float
    data_parallel_s: float
    optimizer_s: float
    jitter_s: float

    @property
    def total_s(self) -> float:
        """Whole step in seconds."""
        return float(sum(getattr(self, f.name) for f in fields(self)))

    @property
    def limited_by(self) -> str:
        """The kind of resource that takes most of the step."""
        groups = {
            "compute": self.linear_s + self.attention_s,
            "memory_bandwidth": self.elementwise_s + self.optimizer_s,
            "interconnect": self.tensor_parallel_s
            + self.expert_parallel_s
            + self.context_parallel_s
            + self.pipeline_link_s
            + self.data_parallel_s,
            "overhead": self.launch_s + self.bubble_s + self.jitter_s,
        }
        return max(groups, key=lambda k: groups[k])


def peak_flop_per_s(hw: Hardware, number_format: str) -> float:
    """Dense peak in FLOP/s of a training format; a part without it runs the next wider one it has (FP8 on A100: BF16).

    Raises:
        SetupError: when the part has no peak for the format or any wider one.
    """
    order = ["fp4", "fp8", "bf16", "fp16", "tf32", "fp32"]
    wanted = FORMATS[number_format][0]
    for name in order[order.index(wanted) :]:
        if name in hw.peak_flop_per_s:
            return hw.peak_flop_per_s[name]
    raise SetupError(f"{hw.name} has no dense peak for {number_format} or a wider format")


def _wide_peak(hw: Hardware, number_format: str) -> float:
    """Peak of what a recipe keeps wide (head, scores): BF16 under 8- and 4-bit formats, else the format itself."""
    return peak_flop_per_s(hw, number_format if FORMATS[number_format][1] >= 2 else "bf16")


def _link(hw: Hardware, setup: TrainingSetup, span: int, ranks: int) -> float:
    """Bytes/s that one accelerator sends in a group of `ranks` spread over `span` neighbouring accelerators.

    Inside the scale-up domain it is the link. Beyond it, all members within one domain share their network ports, so a
    group with many members a domain moves its data over several ports at once.
    """
    inside, outside = hw.link_bytes_per_s, setup.outside_bytes_per_s(hw.internode_bytes_per_s, span)
    if span <= hw.domain_size or outside <= 0:
        return inside or outside or math.inf  # no published link rate: messages are not counted
    members = max(1.0, min(float(hw.domain_size), ranks * hw.domain_size / span))
    return min(inside or outside, outside * members)


def step_time(model: TrainingModel, hw: Hardware, setup: TrainingSetup, c: TrainingConstants | None = None) -> StepTime:
    """Time of one optimizer step.

    Args:
        model: shape and parameter counts.
        hw: accelerator record; `domain_size` is its NVLink or ICI domain.
        setup: layout, batch, recompute, number format.
        c: fitted constants; the shipped ones by default.

    Raises:
        SetupError: for a layout that cannot be (more stages than layers, experts over more ranks than experts).
    """
    c = c or training_constants()
    if setup.pp > model.layers:
        raise SetupError(f"pp = {setup.pp} exceeds the {model.layers} layers of {model.name}")
    k = c.at(family_of(hw), setup.number_format)
    passes = _passes(setup)
    tokens, share = setup.rank_tokens, 1.0 / (setup.tp * setup.pp)
    linear = _linear_s(model, hw, setup, k, tokens, share, passes)
    attention = _attention_s(model, hw, setup, k, tokens, share)
    elementwise = _elementwise_s(model, hw, setup, k, tokens)
    tensor = _tensor_parallel_s(model, hw, setup, k, tokens, passes)
    expert = _expert_parallel_s(model, hw, setup, k, tokens)
    context = _context_parallel_s(model, hw, setup, k, tokens)
    busy = linear + attention + elementwise + tensor + expert + context
    layers = model.layers * k["layer_launch_s"] + model.moe_layers * k["moe_launch_s"]
    launches = layers / setup.pp * passes / 3
    launch = _hidden(busy, launches, k["overlap_power"])
    micro = busy + launch
    m = setup.microbatches
    bubble = bubble_fraction(setup.pp, m, setup.virtual, setup.schedule) * micro * m
    pipeline = _pipeline_link_s(model, hw, setup, tokens) * m * (k["pipeline_exposed"] if setup.tensor_overlap else 1.0)
    data = _data_parallel_s(model, hw, setup, k, micro, m)
    optimizer = _optimizer_s(model, hw, setup, k)
    core = micro * m + bubble + pipeline + data + optimizer
    jitter = core * k["jitter"] * math.log2(max(1.0, setup.accelerators / 8))
    return StepTime(
        linear * m,
        attention * m,
        elementwise * m,
        tensor * m,
        expert * m,
        context * m,
        launch * m,
        bubble,
        pipeline,
        data,
        optimizer,
        jitter,
    )


def _hidden(main: float, other: float, power: float) -> float:
    """Time that `other` adds to `main` when both run side by side: p-norm less the main part."""
    if main <= 0 or other <= 0:
        return max(other, 0.0)
    return float(main * ((1 + (other / main) ** power) ** (1 / power) - 1))


def _passes(setup: TrainingSetup) -> float:
    """Forward-sized passes over the linear layers: 1 forward, 2 backward (1 when only adapters train), 1 recomputed."""
    return 1 + (1 if setup.adapters_only else 2) + setup.recomputed


def _linear_s(
    model: TrainingModel,
    hw: Hardware,
    setup: TrainingSetup,
    k: dict[str, float],
    tokens: float,
    share: float,
    passes: float,
) -> float:
    """Linear layers of one micro-batch on one rank; narrow matrices and few tokens an expert lower the sustained
    share."""
    peak, wide = peak_flop_per_s(hw, setup.number_format), _wide_peak(hw, setup.number_format)
    routed = model.routed_active_params
    dense = model.active_layer_params - routed
    head_passes = passes - setup.recomputed
    low = 1 - k["wide_share"] if setup.number_format == "nvfp4" else 1.0
    width = k["gemm_width"] * (1 / model.d_model + setup.tp / model.ff_width)
    rate = low / (peak * k["gemm"]) + (1 - low) / (wide * k["gemm_wide"])
    time = 2 * tokens * share * passes * dense * rate * (1 + width)
    head = 2 * tokens * share * head_passes * model.head_params / (wide * k["gemm_wide"])
    if not setup.balanced_stages:  # the last of equal stages has the output head on top and sets the pace
        head *= setup.pp
    time += head
    if routed:
        rows = max(1.0, tokens * max(1.0, setup.ep / 1.0) * model.experts_per_token / model.n_experts)
        narrow = k["gemm_width"] * (1 / model.d_model + 1 / model.expert_width) + k["expert_rows"] / rows
        time += 2 * tokens * share * passes * routed * rate * (1 + narrow) * k["grouped"]
    return time


def _attention_s(
    model: TrainingModel, hw: Hardware, setup: TrainingSetup, k: dict[str, float], tokens: float, share: float
) -> float:
    """Attention scores: fused kernels skip the masked half and recompute inside their backward pass (3.5 forward-sized
    passes); plain kernels do the whole square at the rate of batched matrix products."""
    forward = tokens * share * model.score_flops_per_token(setup.sequence, causal=setup.fused_attention)
    scores_again = float(setup.recompute == "selective" and not setup.fused_attention)
    again = setup.recompute_share if setup.recompute == "full" else scores_again
    if not setup.fused_attention:
        narrow = k["gemm_width"] * 2 * model.n_heads / model.score_width
        return forward * (3 + again) * (1 + narrow) / (_wide_peak(hw, setup.number_format) * k["gemm_wide"])
    efficiency = k["attention"] * setup.sequence / (setup.sequence + k["attention_half_length"])
    width = model.score_width / max(1.0, 2.0 * model.n_heads)
    efficiency *= min(1.0, width / 128) ** k["head_power"] * (k["alibi"] if model.alibi else 1.0)
    return float(forward * (3.5 + again) / (_wide_peak(hw, setup.number_format) * efficiency))


def _elementwise_s(
    model: TrainingModel, hw: Hardware, setup: TrainingSetup, k: dict[str, float], tokens: float
) -> float:
    """Norms, residuals, activations, casts and the loss: bytes touched over the memory rate."""
    outside, inside = stored_bytes(model, replace(setup, number_format="bf16") if setup.fused_attention else setup)
    outside, inside = outside / (setup.tp if setup.sequence_parallel else 1), inside / setup.tp
    scores = 0.0
    repeat = 1 + setup.recomputed / 3
    if not setup.fused_attention:
        again = 4 / 3 if setup.recompute != "none" else 1.0
        scores = 5 * model.n_heads * setup.sequence / setup.tp * again
    casts = k["autocast"] if setup.autocast else 1.0
    casts *= k["cast"] if FORMATS[setup.number_format][1] < 2 else 1.0
    layer_bytes = (outside + inside) * repeat * k["touches"] * casts + scores * k["touches"]
    loss_bytes = k["loss_touches"] * 2 * model.vocab * (1 + model.mtp_layers) / setup.tp
    moved = tokens / setup.pp * (model.layers * layer_bytes + loss_bytes)
    scans = max(0.0, model.layers - model.attention_layers - model.moe_layers) if model.hybrid else 0.0
    moved += tokens / (setup.pp * setup.tp) * scans * 2 * model.d_model * k["scan_touches"] * repeat
    if model.moe_layers:
        routed = model.moe_layers * model.experts_per_token * model.d_model * 2
        moved += tokens / (setup.pp * setup.tp) * routed * k["permute_touches"] * repeat
    return moved / hw.memory_bytes_per_s


def _tensor_parallel_s(
    model: TrainingModel, hw: Hardware, setup: TrainingSetup, k: dict[str, float], tokens: float, passes: float
) -> float:
    """Two all-reduce-sized messages a layer and pass pair, as reduce-scatter plus all-gather under sequence
    parallelism."""
    if setup.tp == 1:
        return 0.0
    bytes_each = 2 * (setup.tp - 1) / setup.tp * tokens * model.d_model * 2
    rounds = 2 * min(passes, 2.0) + 2 * setup.recomputed + (1 if setup.sequence_parallel else 0)
    rate = _link(hw, setup, setup.tp, setup.tp) * k["link"]
    exposed = k["tensor_exposed"] if setup.tensor_overlap else 1.0
    return model.layers / setup.pp * rounds * (bytes_each / rate + k["collective_latency_s"]) * exposed


def _expert_parallel_s(
    model: TrainingModel, hw: Hardware, setup: TrainingSetup, k: dict[str, float], tokens: float
) -> float:
    """Dispatch and combine of routed tokens, forward and backward."""
    if setup.ep == 1 or not model.moe_layers:
        return 0.0
    sent = tokens / setup.tp * model.experts_per_token * model.d_model * 2 * (setup.ep - 1) / setup.ep
    rate = _link(hw, setup, setup.ep, setup.ep) * k["link"]
    outside = setup.outside_bytes_per_s(hw.internode_bytes_per_s, setup.ep)
    if setup.ep > hw.domain_size and outside > 0:
        rate = outside * k["link"]
        domains = setup.ep / hw.domain_size
        distinct = domains * (1 - (1 - 1 / domains) ** model.experts_per_token)
        sent *= distinct / model.experts_per_token
    rounds = 4 + 2 * setup.recomputed
    return model.moe_layers / setup.pp * rounds * (sent / rate + k["collective_latency_s"]) * k["expert_exposed"]


def _context_parallel_s(
    model: TrainingModel, hw: Hardware, setup: TrainingSetup, k: dict[str, float], tokens: float
) -> float:
    """Keys and values go round the context-parallel ring, forward and (twice) backward."""
    if setup.cp == 1:
        return 0.0
    sent = (setup.cp - 1) * tokens * model.kv_width / setup.tp * 2 * 3
    rate = _link(hw, setup, setup.cp * setup.tp, setup.cp) * k["link"]
    return model.attention_layers / setup.pp * sent / rate * k["tensor_exposed"]


def _pipeline_link_s(model: TrainingModel, hw: Hardware, setup: TrainingSetup, tokens: float) -> float:
    """Activations to the next stage and gradients back, once per chunk; each tensor-parallel rank sends its part."""
    if setup.pp == 1:
        return 0.0
    sent = 2 * tokens * model.d_model * 2 * setup.virtual / setup.tp
    return sent / _link(hw, setup, setup.tp * setup.cp * setup.dp * 2, 1)


def _rank_params(model: TrainingModel, setup: TrainingSetup) -> tuple[float, float]:
    """Parameters on one rank before data-parallel sharding: outside routed experts, and routed."""
    routed = min(model.routed_params, model.layer_params)
    rest = model.total_params - routed
    return rest / (setup.tp * setup.pp), routed / (max(setup.ep, setup.tp if setup.ep == 1 else 1) * setup.pp)


def _data_parallel_s(
    model: TrainingModel, hw: Hardware, setup: TrainingSetup, k: dict[str, float], micro: float, m: float
) -> float:
    """Weight and gradient messages of the data-parallel group that computing does not hide."""
    ranks = setup.dp * setup.cp
    if ranks == 1:
        return 0.0
    rest, routed = _rank_params(model, setup)
    expert_ranks = max(1.0, setup.accelerators / setup.pp / max(setup.ep, 1))
    rate = _link(hw, setup, setup.accelerators // setup.pp, ranks) * k["link"]
    moved = rest * (ranks - 1) / ranks + routed * (expert_ranks - 1) / expert_ranks
    trained = 0.01 if setup.adapters_only else 1.0
    if setup.sharding == "zero3":
        messages = (2 * 2 + 2 * trained) * moved / rate
        return m * max(k["gather_exposed"] * messages, messages - micro)
    grad_bytes = 4.0 if setup.sharding in ("none", "zero1") else 2.0
    once = moved * trained * (grad_bytes + 2) / rate
    if setup.sharding == "zero2":
        return max(k["gather_exposed"] * once, once - micro)
    return once * k["data_exposed"]


def _optimizer_s(model: TrainingModel, hw: Hardware, setup: TrainingSetup, k: dict[str, float]) -> float:
    """Adam: 4-byte gradient, master and two moments read, master and moments written, 2-byte weight written: 30 B
    each."""
    rest, routed = _rank_params(model, setup)
    ranks = setup.dp * setup.cp if setup.sharding != "none" else 1
    expert_ranks = max(1.0, setup.accelerators / setup.pp / max(setup.ep, 1)) if setup.sharding != "none" else 1.0
    own = rest / ranks + routed / expert_ranks
    return own * (0.01 if setup.adapters_only else 1.0) * 30 / hw.memory_bytes_per_s + k["step_fixed_s"]


def training_flops_per_token(
    model: TrainingModel,
    sequence: float,
    attention: str = "full",
    params: float | None = None,
    adapters_only: bool = False,
) -> float:
    """Model FLOP a trained token: 6 x parameters that multiply (4 when only adapters train) plus attention scores.

    Args:
        model: shape.
        sequence: tokens of a training sequence.
        attention: "full" counts the whole square (PaLM, Megatron), "causal" half of it, "none" leaves it out (6ND).
        params: parameter count to use instead of those that multiply, for a source that counts all of them.
        adapters_only: weight gradients of the base model are not computed.

    >>> from econ.performance.training_model import training_model
    >>> round(training_flops_per_token(training_model("MPT-70b"), 2048, params=64862437376) / 1e9, 1)
    405.3
    """
    if attention not in ("full", "causal", "none"):
        raise SetupError(f"attention = {attention!r} is not one of full, causal, none")
    passes = 2 if adapters_only else 3
    scores = 0.0 if attention == "none" else passes * model.score_flops_per_token(sequence, attention == "causal")
    return 2 * passes * (params or model.matmul_params) + scores


def tokens_per_s(tokens_per_step: float, step_s: float) -> float:
    """Trained tokens per second of the whole job: tokens of a step (each once, whatever tp, cp and pp) / step time.

    >>> tokens_per_s(1_000_000, 2.0)
    500000.0
    """
    if step_s <= 0:
        raise SetupError(f"step time {step_s!r} s must be positive")
    return tokens_per_step / step_s


def mfu(model_flop_per_s: float, peak: float) -> float:
    """Model FLOP utilisation: model FLOP/s of one accelerator over its dense peak in the format that runs.

    >>> round(mfu(420e12, 989.5e12), 4)
    0.4245

    Raises:
        SetupError: when the rate exceeds the peak (a total instead of a per-accelerator rate, or a wrong peak).
    """
    if peak <= 0 or model_flop_per_s < 0:
        raise SetupError(f"rate {model_flop_per_s!r} and peak {peak!r} must be positive FLOP/s")
    if model_flop_per_s > peak:
        raise SetupError(f"rate {model_flop_per_s:.4g} FLOP/s exceeds the dense peak {peak:.4g}: impossible")
    return model_flop_per_s / peak


def hfu(model_flop_per_s: float, peak: float, recompute: str = "none") -> float:
    """Hardware FLOP utilisation: recomputed operations counted too (full recompute: 4/3 of the model's).

    >>> round(hfu(300e12, 989.4e12, "full"), 4)
    0.4043
    """
    return mfu(model_flop_per_s * (4 / 3 if recompute == "full" else 1.0), peak)
