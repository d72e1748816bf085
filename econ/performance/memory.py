"""Memory before speed: what is left of a device after weights, cached keys and values, workspaces and a margin.

The subtraction runs in that order and every step is a row of the answer. Sizes are bytes; 1 GB = 1e9 B and
1 GiB = 2**30 B, and both are printed, labelled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from econ.performance.architecture import Architecture, architecture
from econ.performance.formats import NumberFormat, number_format
from econ.performance.hardware import Hardware, hardware
from econ.performance.memory_layout import Layout, kv_share, stage_share
from econ.performance.memory_sizes import (
    MemoryFitError,
    default_margin,
    gb,
    kv_bytes,
    kv_bytes_per_token,
    least_devices,
    max_tokens,
    remaining_bytes,
    state_bytes,
    usable_share,
    weights_per_device,
    workspace_bytes,
)
from econ.performance.names import parse_model

__all__ = [
    "Fit",
    "FitRow",
    "MemoryFitError",
    "default_margin",
    "fit",
    "gb",
    "kv_bytes",
    "kv_bytes_per_token",
    "least_devices",
    "max_tokens",
    "remaining_bytes",
    "state_bytes",
    "usable_share",
    "weights_per_device",
]

#: Tokens that one prefill step takes by default: the chunk of serving frameworks, and of local ones.
SERVER_CHUNK = 8192
LOCAL_CHUNK = 512


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
