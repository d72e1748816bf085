"""From the words of a question (model, accelerator, formats, layout, load) to the numbers that the step model takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from econ.performance.architecture import Architecture, architecture
from econ.performance.formats_of_parts import (
    PartFormats,
    canonical_format,
    compute_format,
    format_without_rate,
    part_formats,
)
from econ.performance.hardware import Hardware, hardware
from econ.performance.names import parse_model
from econ.performance.parameters import ParameterSet
from econ.performance.setups import HardwareRates, Load, Setups, StoredWidths
from econ.performance.shapes import ModelShape, shape_of
from econ.performance.software import framework_of, generation_of

__all__ = ["EngineError", "Request", "build_setups", "make_request"]

#: Link of a part whose facts state none: a PCIe Gen4 x16 slot, one direction.
FALLBACK_LINK_BYTES_PER_S = 25e9
#: Share of the memory that weights and workspace leave which TensorRT-LLM gives to its cache (its documented default).
TENSORRT_FREE_SHARE = 0.9
#: A vendor's fast link of at least this rate implies a board of eight.
BOARD_LINK_BYTES_PER_S = 100e9


class EngineError(ValueError):
    """A question that the engine refuses: what was asked, why it cannot be, and what to do."""


@dataclass(frozen=True)
class Request:
    """One set-up in numbers, with the names that decide its fitted levels and its confidence class."""

    model: str
    hardware_name: str
    shape: ModelShape
    rates: HardwareRates
    widths: StoredWidths
    load: Load
    members: Mapping[str, str]
    replicas: float = 1.0
    accelerators: float = 1.0

    @property
    def pair(self) -> tuple[str, str]:
        """Architecture and accelerator: the unit that cross-validation leaves out."""
        return self.model, self.hardware_name

    def with_load(self, **changes: float) -> Request:
        """A copy with changed load fields."""
        return replace(self, load=replace(self.load, **changes))


@lru_cache(maxsize=512)
def _architecture(name: str) -> Architecture:
    try:
        return architecture(name)
    except ValueError as problem:
        raise EngineError(str(problem)) from problem


@lru_cache(maxsize=512)
def _hardware(name: str) -> Hardware:
    try:
        return hardware(name)
    except ValueError as problem:
        raise EngineError(str(problem)) from problem


def _custom(fields: Mapping[str, object]) -> Hardware:
    try:
        return hardware(fields)
    except ValueError as problem:
        raise EngineError(str(problem)) from problem


def resolve(model: str, hardware_name: str) -> tuple[Architecture, Hardware]:
    """Architecture and accelerator of two names.

    Raises:
        EngineError: when one is unknown; the message lists near names.
    """
    return _architecture(model), _hardware(hardware_name)


def scale_up_link(part: Hardware) -> float:
    """Scale-up link of a part in bytes/s, one direction; a PCIe slot where the facts state none."""
    return float(part.link_bytes_per_s) or FALLBACK_LINK_BYTES_PER_S


def _rates(part: Hardware, formats: PartFormats) -> HardwareRates:
    peaks = part.peak_flop_per_s
    native = frozenset(peaks)
    link = scale_up_link(part)
    domain = float(part.domain_size)
    if link >= BOARD_LINK_BYTES_PER_S:
        domain = max(domain, 8.0)
    return HardwareRates(
        peak_dense=peaks[compute_format(formats.dense, native)],
        peak_expert=peaks[compute_format(formats.expert, native)],
        peak_attention=peaks[compute_format("bf16", native)],
        memory_bytes_per_s=part.memory_bytes_per_s,
        memory_bytes=part.memory_bytes,
        link_bytes_per_s=link,
        internode_bytes_per_s=part.internode_bytes_per_s or FALLBACK_LINK_BYTES_PER_S,
        domain_size=domain,
        compute_units=float(part.compute_units or 132),
    )


def cache_bytes(kv_format: str, framework: str, formats: PartFormats, family: str) -> float:
    """Bytes per cache element; unstated: FP8 for TensorRT-LLM with quantised weights and for quantised weights on
    Blackwell.

    The rule is the one that agrees with which measured set-ups overflow.
    """
    if kv_format:
        name = canonical_format(kv_format)
        if name is None:
            raise EngineError(f"unknown cache format {kv_format!r}; use BF16, FP8 or INT8")
        return {"bf16": 2.0, "fp8": 1.0, "int8": 1.0, "nvfp4": 0.5625, "int4": 0.5625, "fp32": 4.0}.get(name, 2.0)
    quantised = formats.expert in ("fp8", "nvfp4", "mxfp4")
    narrow = quantised and (framework == "TensorRT-LLM" or family.startswith("blackwell"))
    return 1.0 if narrow else 2.0


def make_request(
    model: str,
    hardware_name: str | Mapping[str, object],
    load: Load,
    *,
    weight_format: str | None = None,
    kv_format: str | None = None,
    framework: str = "",
    version: str = "",
    benchmark: str = "",
    limit_context: bool = True,
) -> Request:
    """Resolve names and formats.

    Raises:
        EngineError: for an unknown model, accelerator or format, an impossible layout, or a context beyond the limit.
    """
    base, suffix = parse_model(model)
    arch = _architecture(base)
    part = _hardware(hardware_name) if isinstance(hardware_name, str) else _custom(hardware_name)
    shape = shape_of(arch)
    label = weight_format or suffix or arch.native_format or "bf16"
    try:
        formats = part_formats(label, shape.n_experts > 0, arch.native_format)
    except ValueError as problem:
        raise EngineError(str(problem)) from problem
    family_framework = framework_of(framework)
    if family_framework == "TensorRT-LLM":
        load = replace(load, share_of_free=TENSORRT_FREE_SHARE)
    check_layout(load, shape, arch.name, limit_context)
    widths = StoredWidths(
        formats.dense_bytes,
        formats.expert_bytes,
        formats.head_bytes,
        cache_bytes(kv_format or "", family_framework, formats, part.family),
    )
    native = frozenset(part.peak_flop_per_s)
    members = {
        "framework": family_framework,
        "generation": (generation := generation_of(framework, version, part.vendor, benchmark)),
        "era": "2023" if generation == "vllm-2023" else "",
        "family": part.family,
        "format_dense": compute_format(formats.dense, native),
        "format_expert": compute_format(formats.expert, native),
        "stored": formats.expert,
        "without_rate": format_without_rate(formats.expert, native),
    }
    count = load.tp * load.pp * load.dp
    return Request(arch.name, part.name, shape, _rates(part, formats), widths, load, members, accelerators=count)


def check_layout(load: Load, shape: ModelShape, name: str, limit_context: bool = True) -> None:
    """Refuse a layout or a context that cannot be.

    Raises:
        EngineError: with the offending number and what would be possible.
    """
    for field in ("tp", "pp", "ep", "dp"):
        value = getattr(load, field)
        if not 1 <= value < math.inf or value != int(value):
            raise EngineError(f"{field}={value:g}: a parallel degree is a whole number of at least 1")
    if load.tp > shape.n_heads:
        raise EngineError(f"tp={load.tp:g} is more than the {shape.n_heads:g} attention heads of {name}")
    if load.pp > shape.layers:
        raise EngineError(f"pp={load.pp:g} is more than the {shape.layers:g} layers of {name}")
    if load.ep > 1 and shape.n_experts == 0:
        raise EngineError(f"ep={load.ep:g}: {name} has no experts; expert parallelism needs a mixture-of-experts model")
    if load.ep > max(shape.n_experts, 1):
        raise EngineError(f"ep={load.ep:g} is more than the {shape.n_experts:g} experts of {name}")
    inside = 0 <= load.isl < math.inf and 0 <= load.osl < math.inf and 0 < load.concurrency < math.inf
    if not inside:
        raise EngineError(
            f"isl={load.isl:g}, osl={load.osl:g}, concurrency={load.concurrency:g}: lengths must be at least 0 and "
            "concurrency positive, all finite"
        )
    if shape.n_heads % load.tp:
        raise EngineError(f"tp={load.tp:g} does not divide the {shape.n_heads:g} attention heads of {name}")
    if limit_context and load.isl + load.osl > shape.context_limit:
        raise EngineError(
            f"isl + osl = {load.isl + load.osl:g} is beyond the context limit {shape.context_limit:g} of {name}"
        )


def build_setups(requests: Sequence[Request], parameters: ParameterSet) -> Setups:
    """Arrays of the requests, with level codes of a parameter set."""
    codes = {level: [parameters.code(level, r.members.get(level, "")) for r in requests] for level in parameters.levels}
    return Setups.build(
        [r.shape for r in requests],
        [r.rates for r in requests],
        [r.widths for r in requests],
        [r.load for r in requests],
        codes,
    )
