"""Single-user and small-batch inference on local machines (llama.cpp, Ollama, ExLlama): decode, prefill, batches.

Decode reads every active weight once a token at an achieved bandwidth, plus the cache, plus host and launch time a
layer.
Prefill is bound by the arithmetic that the quantised kernels reach, which on NVIDIA parts follows the number of
multiprocessors more than the tensor-core peak. Cards of one machine hold layers in turn (layer split), so decode does
not
gain from more cards and pays a hop; prefill gains by overlapping micro-batches.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from econ.performance.architecture import Architecture
from econ.performance.formats import FormatError, number_format, part_bytes
from econ.performance.hardware import Hardware
from econ.performance.names import parse_model
from econ.performance.parameters import ParameterSet
from econ.performance.requests import EngineError, resolve
from econ.performance.shapes import ModelShape, shape_of

__all__ = ["PLACES", "LocalCase", "local_case", "local_decode_s", "local_values"]

Array = NDArray[np.float64]
Codes = Mapping[str, NDArray[np.int64]]
PLACES: tuple[str, ...] = ("", "consumer", "workstation", "datacenter", "apple", "unified", "amd", "cpu")
ENGINES: tuple[str, ...] = ("llama.cpp", "ollama", "exllama")
#: Prompt tokens that llama.cpp evaluates at once, and the mean generated length of its benchmarks.
MICRO_BATCH = 512.0
GENERATED = 128.0
#: Weights over memory up to which measured machines still run (the rest stays on the host).
SPILL = 1.15
#: Cache reads reach about the share of bandwidth that the serving fit finds for 16-bit caches.
CACHE_BANDWIDTH = 0.65


@dataclass(frozen=True)
class LocalCase:
    """One local question in numbers; ``mode`` is decode, prefill or batch."""

    mode: str
    model: str
    hardware_name: str
    family: str
    shape: ModelShape
    active_bytes: float
    expert_bytes: float
    memory_bytes_per_s: float
    peak_flop_per_s: float
    compute_units: float
    isl: float
    context: float
    batch: float
    cards: float
    members: Mapping[str, str]


def place_of(part: Hardware) -> str:
    """Kind of machine, the only hardware level of the local fit.

    >>> from econ.performance.hardware import hardware
    >>> place_of(hardware("RTX-4090")), place_of(hardware("M2-Ultra"))
    ('consumer', 'apple')
    """
    vendor = part.vendor.lower()
    if part.segment == "cpu":
        return "cpu"
    if "apple" in vendor:
        return "apple"
    if "nvidia" not in vendor:
        return "amd"
    if part.segment in ("consumer", "workstation", "datacenter"):
        return part.segment
    return "unified"


def engine_of(label: str) -> str:
    """Program that runs the model: llama.cpp, ollama or exllama."""
    text = label.lower()
    return "exllama" if "exl" in text else "ollama" if "ollama" in text else "llama.cpp"


def _weights(arch: Architecture, label: str) -> tuple[float, float, bool]:
    """Bytes that a token reads outside the experts, bytes of one expert of a layer, and whether quantised."""
    try:
        form = number_format(label)
    except FormatError as problem:
        raise EngineError(str(problem)) from problem
    if form.experts_only and not arch.is_moe:
        form = number_format("q4_k_m")
    # GGUF files of 4-bit expert checkpoints store the other matrices in 8-bit blocks.
    parts = part_bytes(arch, replace(form, rest="q8_0") if form.experts_only else form)
    head = parts.get("lm_head") or parts["embedding"]
    fixed = parts["attention"] + parts["dense_mlp"] + parts["shared"] + parts["router"] + head
    count = arch.moe_layers * arch.experts
    return fixed, (parts["experts"] / count if count else 0.0), form.bits_per_weight < 15


def _refuse_misfit(model: str, part: Hardware, stored: float, cards: float) -> None:
    """Refuse weights well beyond the memory; a little beyond, programs keep some layers on the host."""
    memory = part.memory_bytes * cards
    if stored > SPILL * memory:
        raise EngineError(
            f"{model} does not fit {cards:g} x {part.name}: weights {stored / 1e9:.1f} GB of {memory / 1e9:.1f} GB; "
            "use a narrower format or more memory"
        )


def local_case(row: Mapping[str, str], isl: float | None, osl: float | None, batch: float, cards: float) -> LocalCase:
    """Case of a local row; unstated context is that of the short benchmark runs.

    Raises:
        EngineError: for an unknown model, machine or format, or a model that the memory does not hold.
    """
    base, suffix = parse_model(row.get("model") or "")
    arch, part = resolve(base, row.get("hardware") or "")
    label = row.get("weight_format") or suffix or arch.native_format
    fixed, expert, quantised = _weights(arch, label)
    _refuse_misfit(arch.name, part, fixed + expert * arch.moe_layers * arch.experts, cards)
    place = place_of(part)
    peaks = part.peak_flop_per_s
    half = peaks.get("fp16") or peaks.get("bf16") or peaks.get("fp32") or max(peaks.values())
    metric = row.get("metric") or ""
    mode = "prefill" if "prefill" in metric else "batch" if batch > 1 or "total" in metric else "decode"
    depth = re.search(r"depth\s*=?\s*(\d+)", row.get("conditions") or "")
    prompt = isl if isl is not None else 0.0
    context = (float(depth[1]) if depth else 0.0) + (prompt if mode != "prefill" else 0.0) + (osl or GENERATED) / 2
    return LocalCase(
        mode=mode,
        model=arch.name,
        hardware_name=part.name,
        family=part.family,
        shape=shape_of(arch),
        active_bytes=fixed,
        expert_bytes=expert,
        memory_bytes_per_s=part.memory_bytes_per_s,
        peak_flop_per_s=half,
        compute_units=float(part.compute_units or 0),
        isl=prompt or MICRO_BATCH,
        context=context,
        batch=batch,
        cards=cards,
        members={
            "place": place,
            "engine": engine_of(f"{row.get('framework', '')} {row.get('weight_format', '')}"),
            "quantised": "yes" if quantised else "",
        },
    )


def _columns(cases: Sequence[LocalCase], *names: str) -> list[Array]:
    return [np.array([float(getattr(c, n, 0.0)) for c in cases]) for n in names]


def _shape_columns(cases: Sequence[LocalCase], *names: str) -> list[Array]:
    return [np.array([float(getattr(c.shape, n)) for c in cases]) for n in names]


def local_decode_s(cases: Sequence[LocalCase], p: ParameterSet, codes: Codes) -> Array:
    """Time of one decode step of each case, in seconds."""
    fixed, expert, bandwidth, peak, batch, cards = _columns(
        cases, "active_bytes", "expert_bytes", "memory_bytes_per_s", "peak_flop_per_s", "batch", "cards"
    )
    layers, moe, experts, k = _shape_columns(cases, "layers", "moe_layers", "n_experts", "top_k")
    distinct = np.where(
        experts > 0, experts * -np.expm1(batch * np.log1p(-np.minimum(k / np.maximum(experts, 1), 0.999999))), 0.0
    )
    distinct = np.maximum(distinct, np.minimum(k, experts))
    rate = bandwidth * np.minimum(p.value("local_bandwidth", codes), 1.0)
    reads = (fixed + moe * distinct * expert) / rate
    cache = np.array([c.shape.kv_elements(c.context) * 2.0 for c in cases]) * batch
    active = np.array([c.shape.active_params for c in cases])
    compute = 2.0 * active * (batch - 1) / (peak * p.value("local_batch_compute", codes))
    fixed_s = layers * p.value("local_layer_us", codes) * 1e-6 + moe * p.value("local_moe_us", codes) * 1e-6
    hops = (cards - 1) * p.value("local_hop_us", codes) * 1e-6
    per_sequence = (batch - 1) * p.value("local_sequence_us", codes) * 1e-6
    return np.asarray(reads + cache / (bandwidth * CACHE_BANDWIDTH) + compute + fixed_s + hops + per_sequence)


def local_prefill_s(cases: Sequence[LocalCase], p: ParameterSet, codes: Codes) -> Array:
    """Time to evaluate the prompt of each case, in seconds."""
    peak, units, isl, cards, bandwidth, fixed, expert = _columns(
        cases, "peak_flop_per_s", "compute_units", "isl", "cards", "memory_bytes_per_s", "active_bytes", "expert_bytes"
    )
    layers, moe, experts = _shape_columns(cases, "layers", "moe_layers", "n_experts")
    active, pairs = _shape_columns(cases, "active_params", "pair_flops_full")
    flops = 2.0 * active * isl + pairs * isl * isl / 2.0 * 2.0
    by_peak = flops / (peak * p.value("local_prefill_peak", codes))
    nvidia = np.array([c.members["place"] in ("consumer", "workstation", "datacenter", "unified") for c in cases])
    by_units = np.where(nvidia, flops / (np.maximum(units, 1.0) * p.value("local_unit_tflops", codes) * 1e12), 0.0)
    passes = np.maximum(isl / MICRO_BATCH, 1.0)
    reads = passes * (fixed + moe * experts * expert) / (bandwidth * 0.8)
    launch = passes * (layers + moe) * p.value("local_prefill_layer_us", codes) * 1e-6
    busy = (by_peak**3 + by_units**3 + reads**3) ** (1 / 3)
    # Micro-batches follow each other through the cards of a layer split.
    gain = 1.0 + (np.minimum(cards, passes) - 1.0) * np.minimum(p.value("local_overlap", codes), 1.0)
    return np.asarray((busy + launch) / gain)


def local_codes(cases: Sequence[LocalCase], p: ParameterSet) -> dict[str, NDArray[np.int64]]:
    """Level codes of cases in a parameter set."""
    return {
        level: np.array([p.code(level, c.members.get(level, "")) for c in cases], dtype=np.int64) for level in p.levels
    }


def local_values(cases: Sequence[LocalCase], p: ParameterSet, codes: Codes | None = None) -> Array:
    """Tokens per second of each case: generated tokens of all sequences, or prompt tokens for prefill."""
    levels = local_codes(cases, p) if codes is None else codes
    out = np.empty(len(cases))
    prefill = np.array([c.mode == "prefill" for c in cases])
    for wanted, function in ((True, local_prefill_s), (False, local_decode_s)):
        index = np.nonzero(prefill == wanted)[0]
        if len(index) == 0:
            continue
        chosen = [cases[int(i)] for i in index]
        seconds = function(chosen, p, {k: v[index] for k, v in levels.items()})
        tokens = np.array([c.isl if wanted else c.batch for c in chosen])
        out[index] = tokens / seconds
    return out
