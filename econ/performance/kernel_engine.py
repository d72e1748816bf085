"""Predicting kernel and operator rows: cases by operation, times from `kernels`, then the metric asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from econ.performance import kernels
from econ.performance.hardware import Hardware, hardware
from econ.performance.kernel_rows import KernelCase, weight_format
from econ.performance.kernels import Device, ExpertLayer
from econ.performance.parameters import ParameterSet
from econ.performance.requests import EngineError, scale_up_link

Array = NDArray[np.float64]
Codes = dict[str, NDArray[np.int64]]
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")
#: Bytes a weight and bytes an activation of each format level, and the native peak that it computes at.
WIDTHS: Mapping[str, tuple[float, float, tuple[str, ...]]] = {
    "bf16": (2.0, 2.0, ("bf16", "fp16")),
    "int8_wo": (1.0, 2.0, ("bf16", "fp16")),
    "int4_wo": (0.53, 2.0, ("bf16", "fp16")),
    "int8": (1.0, 1.0, ("int8", "bf16")),
    "fp8": (1.0, 1.0, ("fp8", "bf16")),
    "fp8_block": (1.0, 1.0, ("fp8", "bf16")),
    "fp4": (0.5625, 0.5625, ("fp4", "fp8", "bf16")),
    "fp4_wo": (0.53, 2.0, ("bf16", "fp16")),
    "w4a8": (0.53, 1.0, ("fp8", "bf16")),
}
_SYSTEMS = {
    "a100_sxm": "A100",
    "h100_sxm": "H100",
    "h200_sxm": "H200",
    "b200_sxm": "B200",
    "b300_sxm": "B300",
    "rtx_pro_6000_server": "RTX-PRO-6000-SE",
}


@lru_cache(maxsize=256)
def device_of(name: str) -> Hardware:
    """Hardware of a system name of operator tables (``h200_sxm``) or of an ordinary name.

    Raises:
        EngineError: for an unknown accelerator.
    """
    tried = [
        _SYSTEMS.get(name.lower(), name),
        name.lower().replace("_sxm", "").replace("_server", "-SE").replace("_", "-"),
    ]
    problem: Exception | None = None
    for candidate in tried:
        try:
            return hardware(candidate)
        except ValueError as found:
            problem = problem or found
    raise EngineError(str(problem))


def class_name(name: str) -> str:
    """Part that stands for a class label such as 'H100-class SM90'."""
    return name.replace("-class SM90", "").replace("-class SM100", "").strip()


def members_of(case: KernelCase) -> dict[str, str]:
    """Level members of a case."""
    op = "collective" if case.op in COLLECTIVES else case.op
    return {
        "family": device_of(class_name(case.hardware)).family,
        "format": weight_format(case.dtype),
        "backend": case.backend,
        "op": case.op if op == "collective" else "",
        "cell": f"{device_of(class_name(case.hardware)).family}/{weight_format(case.dtype)}",
        "device": device_of(class_name(case.hardware)).name,
    }


def peak_of(part: Hardware, level: str) -> float:
    """Dense peak that a format level computes at on a part, in FLOP/s."""
    for name in WIDTHS[level][2]:
        if name in part.peak_flop_per_s:
            return float(part.peak_flop_per_s[name])
    return float(max(part.peak_flop_per_s.values()))


def _devices(cases: Sequence[KernelCase]) -> Device:
    parts = [device_of(class_name(c.hardware)) for c in cases]
    levels = [weight_format(c.dtype) for c in cases]
    return Device(
        peak_flop_per_s=np.array([peak_of(h, f) for h, f in zip(parts, levels, strict=True)]),
        bf16_flop_per_s=np.array([peak_of(h, "bf16") for h in parts]),
        memory_bytes_per_s=np.array([h.memory_bytes_per_s for h in parts]),
        link_bytes_per_s=np.array([scale_up_link(h) for h in parts]),
        internode_bytes_per_s=np.array([h.internode_bytes_per_s or 25e9 for h in parts]),
        compute_units=np.array([float(h.compute_units or 132) for h in parts]),
        l2_bytes=np.array([float(h.l2_bytes or 40e6) for h in parts]),
    )


class KernelBatch:
    """Cases of one operation as arrays; times are recomputed for any parameter set."""

    def __init__(self, cases: Sequence[KernelCase]) -> None:
        self.cases = list(cases)
        self.op = cases[0].op
        self.members = [members_of(c) for c in cases]
        self.device = _devices(cases)
        self._codes: Codes | None = None

    def column(self, name: str, default: float = 0.0) -> Array:
        """One dimension of all cases."""
        return np.array([c.get(name, default) for c in self.cases])

    def codes(self, p: ParameterSet) -> Codes:
        """Level codes of all cases; the levels of every kernel parameter set are the same, so they are kept."""
        if self._codes is None:
            self._codes = {
                level: np.array([p.code(level, m.get(level, "")) for m in self.members], dtype=np.int64)
                for level in p.levels
            }
        return self._codes

    def seconds(self, p: ParameterSet) -> Array:
        """Predicted time of each case, in seconds."""
        if self.op in COLLECTIVES:
            return _collective(self, p)
        return _TIMES[self.op](self, p)

    def work(self) -> tuple[Array, Array]:
        """FLOPs and bytes that the metric's rate counts."""
        if self.op == "gemm":
            m, n, k = self.column("m"), self.column("n"), self.column("k")
            widths = np.array([WIDTHS[weight_format(c.dtype)][:2] for c in self.cases])
            return 2 * m * n * k, n * k * widths[:, 0] + m * k * widths[:, 1] + 2 * m * n
        if self.op == "prefill_attention":
            b, h, w, s = (self.column(x, y) for x, y in (("batch", 1), ("heads", 32), ("head_dim", 128), ("seq", 4096)))
            return 4 * b * h * w * s * s * _causal_share(self.cases), 8 * b * h * w * s
        if self.op in ("decode_attention",):
            size = 2 * self.column("batch", 1) * self.column("kv_heads", 8) * self.column("head_dim", 128)
            kv = np.array([c.kv_bytes for c in self.cases])
            return np.ones(len(self.cases)), size * self.column("kv_len", 4096) * kv
        if self.op in ("latent_decode", "latent_prefill"):
            return _latent_work(self)
        return np.ones(len(self.cases)), np.ones(len(self.cases))


def _latent_work(b: KernelBatch) -> tuple[Array, Array]:
    """FLOPs and cache bytes of latent attention (rank 512, rope 64), at default dimensions where a row states none."""
    batch, heads = b.column("batch", 1 if b.op == "latent_prefill" else 128), _latent_heads(b)
    if b.op == "latent_prefill":
        length = b.column("seq", 8192)
        return batch * heads * 2 * 320.0 * length * length / 2, np.ones(len(b.cases))
    kv = np.array([c.kv_bytes for c in b.cases])
    context = b.column("kv_len", 4096)
    return 2 * batch * heads * context * 1088.0, batch * context * 576.0 * kv


def _latent_heads(b: KernelBatch) -> Array:
    """Query heads of a rank; a rate of memory is quoted where few heads leave the kernel bound by it."""
    default = np.array([16.0 if c.metric == "memory_bandwidth" else 128.0 for c in b.cases])
    stated = b.column("heads")
    return np.where(stated > 0, stated, default)


def _causal_share(cases: Sequence[KernelCase]) -> Array:
    """Share of the square that a rate counts: half when the row says causal, all otherwise."""
    return np.array([0.5 if c.metric == "latency_ms" else 1.0 for c in cases])


def _gemm(b: KernelBatch, p: ParameterSet) -> Array:
    widths = np.array([WIDTHS[weight_format(c.dtype)][:2] for c in b.cases])
    return kernels.gemm_s(
        p, b.codes(p), b.device, b.column("m"), b.column("n"), b.column("k"), widths[:, 0], widths[:, 1]
    )


def _prefill_attention(b: KernelBatch, p: ParameterSet) -> Array:
    causal = np.array([float(c.metric == "latency_ms") for c in b.cases])
    seq = b.column("seq", 4096)
    window = b.column("window_size")
    kept = np.where((window > 0) & (window < seq), window, seq)
    heads = b.column("heads", 32) * np.where(kept < seq, 2 * kept / seq * (1 - kept / seq / 2), 1.0)
    return kernels.prefill_attention_s(
        p, b.codes(p), b.device, b.column("batch", 1), heads, b.column("head_dim", 128), seq, b.column("step"), causal
    )


def _decode_attention(b: KernelBatch, p: ParameterSet) -> Array:
    heads, kv = b.column("heads", 32), np.maximum(b.column("kv_heads", 8), 1.0)
    kv = np.where(b.column("kv_heads", 8) > 0, kv, heads)
    context, window = b.column("kv_len", 1024), b.column("window_size")
    context = np.where(window > 0, np.minimum(context, np.maximum(window, 1)), context)
    width = np.array([c.kv_bytes for c in b.cases])
    return kernels.decode_attention_s(
        p, b.codes(p), b.device, b.column("batch", 1), kv, b.column("head_dim", 128), heads / kv, context, width
    )


def _latent_decode(b: KernelBatch, p: ParameterSet) -> Array:
    width = np.array([c.kv_bytes for c in b.cases])
    return kernels.latent_decode_s(
        p, b.codes(p), b.device, b.column("batch", 128), _latent_heads(b), b.column("kv_len", 4096), width
    )


def _latent_prefill(b: KernelBatch, p: ParameterSet) -> Array:
    return kernels.latent_prefill_s(
        p, b.codes(p), b.device, b.column("batch", 1), _latent_heads(b), b.column("seq", 8192), b.column("step")
    )


def _moe(b: KernelBatch, p: ParameterSet) -> Array:
    layer = ExpertLayer(
        tokens=b.column("tokens", 1),
        hidden=b.column("hidden", 4096),
        inter=b.column("inter_size", 2048),
        experts=b.column("experts", 8),
        top_k=b.column("topk", 2),
        ep=np.maximum(b.column("moe_ep_size", 1), 1),
        tp=np.maximum(b.column("moe_tp_size", 1), 1),
        weight_bytes=np.array([WIDTHS[weight_format(c.dtype)][0] for c in b.cases]),
        skewed=b.column("skewed"),
    )
    return kernels.expert_layer_s(p, b.codes(p), b.device, layer)


def _collective(b: KernelBatch, p: ParameterSet) -> Array:
    ranks = np.maximum(b.column("ranks", 8), 2.0)
    factor = np.array([2.0 if c.op == "all_reduce" else 1.0 for c in b.cases])
    wire = factor * (ranks - 1) / ranks
    size = b.column("bytes", 4e9)
    nodes = np.maximum(b.column("nodes", 1), 1.0)
    device = replace(b.device, link_bytes_per_s=_mesh_link(b, ranks), internode_bytes_per_s=_rail_link(b, ranks, nodes))
    time = kernels.collective_s(p, b.codes(p), device, size, ranks, wire, nodes)
    # Outside a captured graph the host launches the kernel; the collector's eager rows hold that.
    return np.asarray(time + np.where(b.column("eager") > 0, p.value("eager_us") * 1e-6, 0.0))


def _mesh_link(b: KernelBatch, ranks: Array) -> Array:
    """Scale-up rate of each rank: all of it by a switch, the links to its peers on a meshed board of eight."""
    mesh = np.array([m["family"].startswith("cdna") for m in b.members])
    return np.where(mesh, b.device.link_bytes_per_s * np.minimum((ranks - 1) / 7.0, 1.0), b.device.link_bytes_per_s)


def _rail_link(b: KernelBatch, ranks: Array, nodes: Array) -> Array:
    """Rate between nodes: the ranks of a node split the traffic over their own adapters."""
    return np.minimum(b.device.internode_bytes_per_s * np.maximum(ranks / nodes, 1.0), b.device.link_bytes_per_s)


def _exchange(b: KernelBatch, p: ParameterSet) -> Array:
    nodes = np.maximum(b.column("nodes", 1), 1.0)
    ranks = b.column("ranks", 0)
    ranks = np.where(ranks > 0, ranks, 8 * nodes)
    nodes = np.maximum(nodes, np.ceil(ranks / 8))
    tokens = np.where(b.column("tokens/rank") > 0, b.column("tokens/rank"), b.column("tokens", 128))
    combine = np.array([c.get("combine") > 0 or "combine" in c.metric for c in b.cases])
    both = b.column("phases", 1) > 1
    width = np.where(both, 3.0, np.where(combine, 2.0, 1.0))
    time = kernels.exchange_s(
        p, b.codes(p), b.device, tokens, b.column("hidden", 7168), b.column("topk", 8), ranks, nodes, width
    )
    return np.asarray(np.where(both, time + p.value("exchange_us", b.codes(p)) * 1e-6, time))


def _stream(b: KernelBatch, p: ParameterSet) -> Array:
    del p
    return np.asarray(1.0 / (b.device.memory_bytes_per_s * 0.83))


_TIMES: dict[str, Callable[[KernelBatch, ParameterSet], Array]] = {
    "gemm": _gemm,
    "prefill_attention": _prefill_attention,
    "decode_attention": _decode_attention,
    "latent_decode": _latent_decode,
    "latent_prefill": _latent_prefill,
    "moe": _moe,
    "exchange": _exchange,
    "stream": _stream,
}


def in_metric(batch: KernelBatch, seconds: Array) -> Array:
    """Times as the metric and unit of each case."""
    flops, size = batch.work()
    out = np.empty(len(batch.cases))
    for i, case in enumerate(batch.cases):
        out[i] = _one_metric(case, float(seconds[i]), float(flops[i]), float(size[i]))
    return out


def _one_metric(case: KernelCase, seconds: float, flops: float, size: float) -> float:
    metric = case.metric
    if metric in ("dispatch_us", "combine_us"):
        return seconds * 1e6
    if metric == "tflops":
        return flops / seconds / 1e12
    if metric == "memory_bandwidth":
        return size / seconds / 1e9
    if metric == "busbw":
        ranks = max(case.get("ranks", 8.0), 2.0)
        factor = (2.0 if case.op == "all_reduce" else 1.0) * (ranks - 1) / ranks
        return case.get("bytes", 4e9) * factor / seconds / 1e9
    if metric in ("dispatch_bandwidth", "combine_bandwidth"):
        width = 2.0 if metric.startswith("combine") else 1.0
        nodes = max(case.get("ranks", 8.0) / 8.0, 1.0)
        copies = min(case.get("topk", 8.0), nodes if nodes > 1 else case.get("ranks", 8.0))
        return case.get("tokens", 4096.0) * copies * case.get("hidden", 7168.0) * width / seconds / 1e9
    if metric == "latency_ms":
        return seconds * 1e3
    raise EngineError(f"metric {metric!r} is not one of a kernel")
