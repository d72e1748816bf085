"""Reading a kernel or operator row: which kernel, its dimensions, format, back end and the metric asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from econ.performance.requests import EngineError
from supply.input_text import InputTextError, parse_json

__all__ = ["KernelCase", "check_case", "parse_kernel_row", "parse_operator_row"]

_SIZES = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "MB": 1e6, "GB": 1e9}
FORMATS: tuple[str, ...] = ("bf16", "int8_wo", "int4_wo", "int8", "fp8", "fp8_block", "fp4", "fp4_wo", "w4a8")
BACKENDS: tuple[str, ...] = (
    "",
    "trtllm",
    "vllm",
    "sglang",
    "nccl",
    "deepgemm",
    "torch",
    "flash3",
    "flash2",
    "cudnn",
)


@dataclass(frozen=True)
class KernelCase:
    """One kernel question; ``size`` holds its dimensions by name."""

    op: str
    hardware: str
    dtype: str
    backend: str
    metric: str
    unit: str
    size: Mapping[str, float] = field(default_factory=dict)
    kv_bytes: float = 2.0

    def get(self, name: str, default: float = 0.0) -> float:
        """A dimension, or the default when the row does not state it."""
        return float(self.size.get(name, default))


def weight_format(label: str) -> str:
    """Format level of a kernel's data-type label.

    >>> weight_format("fp8 block-scaled, bf16 out"), weight_format("w4a16_mxfp4"), weight_format("half")
    ('fp8_block', 'fp4_wo', 'bf16')
    """
    text = label.lower()
    if text.startswith("w4a8"):
        return "w4a8"
    if "block" in text:
        return "fp8_block"
    if re.search(r"w4a16_mxfp4|mxfp4_wo|w4a16", text) and "int4" not in text:
        return "fp4_wo"
    if "int4" in text:
        return "int4_wo"
    if "int8_wo" in text:
        return "int8_wo"
    if "nvfp4" in text or "fp4" in text:
        return "fp4"
    if "fp8" in text or "e4m3" in text:
        return "fp8"
    if text in ("sq",) or "int8" in text:
        return "int8"
    return "bf16"


def backend_of(text: str) -> str:
    """Library level of a kernel or framework name."""
    name = text.lower()
    for key, level in (
        ("deepgemm", "deepgemm"),
        ("flashattention-3", "flash3"),
        ("flashattention-2", "flash2"),
        ("cudnn", "cudnn"),
        ("tensorrt", "trtllm"),
        ("trtllm", "trtllm"),
        ("vllm", "vllm"),
        ("sglang", "sglang"),
        ("nccl", "nccl"),
        ("torch", "torch"),
        ("cublas", "torch"),
        ("llmcompass", "torch"),
    ):
        if key in name:
            return level
    return ""


def _numbers(shape: str) -> dict[str, float]:
    """``name=value`` pairs and the other spellings of a shape text."""
    out = {k.lower(): float(v) for k, v in re.findall(r"([A-Za-z_/]+)\s*=\s*(\d+\.?\d*)", shape)}
    product = re.match(r"\s*(\d+)x(\d+)x(\d+)", shape)
    if product:
        out |= {"m": float(product[1]), "n": float(product[2]), "k": float(product[3])}
    ranks = re.search(r"(\d+)\s+GPUs?", shape)
    if ranks:
        out["ranks"] = float(ranks[1])
    nodes = re.search(r"(\d+)\s+nodes?\b", shape)
    if nodes:
        out["nodes"] = float(nodes[1])
    size = re.search(r"(\d+\.?\d*)\s*(KiB|MiB|GiB|MB|GB)\b", shape)
    if size:
        out["bytes"] = float(size[1]) * _SIZES[size[2]]
    raw = re.search(r"(\d+)\s+bytes", shape)
    if raw:
        out["bytes"] = float(raw[1])
    width = re.search(r"\bEP\s?(\d+)", shape)
    if width:
        out["ranks"] = float(width[1])
    for name, pattern in (("tokens", r"(\d+)\s+tokens"), ("hidden", r"hidden\s+(\d+)"), ("topk", r"top-(\d+)")):
        found = re.search(pattern, shape)
        if found:
            out[name] = float(found[1])
    return out


def kernel_op(name: str, metric: str) -> str:
    """Kernel model behind a kernel's name."""
    text = name.lower()
    if "deepep" in text or "dispatch" in text or "combine" in text:
        return "exchange"
    for key, op in (
        ("all_reduce", "all_reduce"),
        ("allreduce", "all_reduce"),
        ("all-reduce", "all_reduce"),
        ("all_gather", "all_gather"),
        ("allgather", "all_gather"),
        ("reduce_scatter", "reduce_scatter"),
        ("alltoall", "alltoall"),
        ("all_to_all", "alltoall"),
        ("sparse prefill", "latent_prefill"),
        ("flashmla", "latent_decode"),
        ("mla", "latent_decode"),
        ("decode attention", "decode_attention"),
        ("generation_attention", "decode_attention"),
        ("attention", "prefill_attention"),
        ("stream", "stream"),
        ("memcpy", "stream"),
        ("bandwidth", "stream"),
        ("moe", "moe"),
        ("gemm", "gemm"),
        ("matmul", "gemm"),
    ):
        if key in text:
            return op
    if metric == "busbw":
        return "all_reduce"
    raise EngineError(f"no model of the kernel {name!r}")


def parse_kernel_row(row: Mapping[str, str]) -> KernelCase:
    """Case of a row with a `kernel` column.

    Raises:
        EngineError: when the kernel has no model.
    """
    name, shape = row.get("kernel") or "", row.get("shape") or ""
    metric = row.get("metric") or "latency_ms"
    op = kernel_op(name, metric)
    size = _numbers(shape)
    dtype = row.get("dtype") or ""
    if "message_size" in size and "bytes" not in size:
        size["bytes"] = size["message_size"] * 2.0
    if "total tokens 16k" in shape and "seq" in size:
        size |= {"batch": 16384.0 / size["seq"], "heads": 2048.0 / size.get("head_dim", 128.0)}
    if op == "gemm" and "m" not in size:
        size |= {"m": 8192.0, "n": 8192.0, "k": 8192.0}
    kv = 1.0 if "kv fp8" in dtype or "fp8 kv" in name.lower() else 2.0
    backend = "custom" if "custom all-reduce" in name.lower() else backend_of(name)
    if op == "exchange":
        backend = "low_latency" if "low-latency" in name.lower() else "normal"
    return KernelCase(op, row.get("hardware") or "", dtype, backend, metric, row.get("unit") or "", size, kv)


#: Metrics that each kernel has; a collective has no FLOPs, a matrix product no bus bandwidth.
_METRICS: Mapping[str, tuple[str, ...]] = {
    "gemm": ("latency_ms", "tflops", "memory_bandwidth"),
    "moe": ("latency_ms",),
    "prefill_attention": ("latency_ms", "tflops", "memory_bandwidth"),
    "decode_attention": ("latency_ms", "memory_bandwidth"),
    "latent_prefill": ("latency_ms", "tflops"),
    "latent_decode": ("latency_ms", "tflops", "memory_bandwidth"),
    "exchange": ("latency_ms", "dispatch_us", "combine_us", "dispatch_bandwidth", "combine_bandwidth"),
    "stream": ("memory_bandwidth",),
}
_COLLECTIVE_METRICS = ("latency_ms", "busbw")
#: Dimensions without which an operator of a table has no time.
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "gemm": ("m", "n", "k"),
    "moe": ("tokens", "hidden", "inter_size", "experts", "topk"),
    "prefill_attention": ("batch", "heads", "seq", "head_dim"),
    "decode_attention": ("batch", "heads", "kv_len", "head_dim"),
    "latent_prefill": ("batch", "heads", "seq"),
    "latent_decode": ("batch", "heads", "kv_len"),
    "exchange": ("tokens", "hidden", "topk"),
}
_COLLECTIVE_NEEDED = ("bytes", "ranks")
#: Dimensions that may be zero: no window, no cached tokens, query heads alone.
_MAY_BE_ZERO = ("window_size", "step", "kv_heads")
#: Every dimension that a kernel model reads.
_READ = frozenset(
    [name for names in _NEEDED.values() for name in names]
    + [*_COLLECTIVE_NEEDED, *_MAY_BE_ZERO, "nodes", "tokens/rank", "moe_ep_size", "moe_tp_size"]
)
MOST = 1e13


def check_case(case: KernelCase, stated: bool) -> KernelCase:
    """The case itself when its metric belongs to its kernel and its dimensions can be.

    ``stated``: a row of an operator table, which must state every dimension that its time depends on.

    Raises:
        EngineError: with the metric or the dimension.
    """
    known = _METRICS.get(case.op, _COLLECTIVE_METRICS)
    if case.metric not in known:
        raise EngineError(f"metric {case.metric!r} is not one of {case.op} kernels: {', '.join(known)}")
    for name in sorted(_READ & set(case.size)):
        value = case.size[name]
        if not 0 <= value <= MOST or (value == 0 and name not in _MAY_BE_ZERO):
            raise EngineError(f"{name} = {value:g}: a dimension is positive and at most {MOST:g}")
    if stated:
        missing = [n for n in _NEEDED.get(case.op, _COLLECTIVE_NEEDED) if n not in case.size]
        if missing:
            raise EngineError(f"params_json states no {', '.join(missing)}, which the time of {case.op} depends on")
    if case.get("topk") > case.get("experts", case.get("topk")):
        raise EngineError(f"topk = {case.get('topk'):g} is more than {case.get('experts'):g} experts")
    return case


_OPERATORS = {
    "gemm": "gemm",
    "moe": "moe",
    "context_attention": "prefill_attention",
    "generation_attention": "decode_attention",
    "mla_context": "latent_prefill",
    "context_mla": "latent_prefill",
    "mla_generation": "latent_decode",
    "generation_mla": "latent_decode",
    "custom_all_reduce": "all_reduce",
    "custom_allreduce": "all_reduce",
    "nccl_all_reduce": "all_reduce",
    "nccl_all_gather": "all_gather",
    "nccl_reduce_scatter": "reduce_scatter",
    "nccl_alltoall": "alltoall",
}


def parse_operator_row(row: Mapping[str, str]) -> KernelCase:
    """Case of a row with a `params_json` column (op, system, framework and the table's own parameter names).

    Raises:
        EngineError: when the operator has no model or its parameters are no JSON object.
    """
    op_name = row.get("op") or ""
    try:
        params = parse_json(row.get("params_json") or "")
    except InputTextError as problem:
        raise EngineError(f"params_json of {op_name!r}: {problem}") from problem
    if not isinstance(params, dict):
        raise EngineError(f"params_json of {op_name!r} must be an object")
    size = {k: _float(k, v) for k, v in params.items() if _counts(k, v)}
    op = _OPERATORS.get(op_name)
    if op is None and ("dispatch" in op_name or "combine" in op_name or "a2a" in op_name):
        op = "exchange"
    if op is None:
        op = kernel_op(op_name, "latency_ms")
    label = str(next((params[k] for k in _DTYPES if k in params), "bfloat16"))
    kv = 1.0 if "fp8" in str(params.get("kv_cache_dtype", "")) else 2.0
    backend = backend_of(f"{params.get('kernel', '')} {row.get('framework', '')}")
    _rename(size, op)
    kernel = str(params.get("kernel", "")).lower()
    if op == "all_reduce" and ("custom" in kernel or op_name.startswith("custom")):
        backend = "custom"
        size["eager"] = float("eager" in kernel)
    elif op in ("all_reduce", "all_gather", "reduce_scatter", "alltoall"):
        backend = "nccl"
    if op == "exchange":
        backend = "low_latency" if "low_latency" in op_name or "_ll" in str(params.get("comm_backend")) else "normal"
        size["phases"] = 2.0 if "plus" in op_name else 1.0
        size["combine"] = float(params.get("phase") == "combine")
    if op == "moe":
        size["skewed"] = float(not str(params.get("distribution", "balanced")).startswith(("balanced", "uniform")))
    if op in ("all_reduce", "all_gather", "reduce_scatter", "alltoall"):
        width = 1.0 if "int8" in label or "fp8" in label else 2.0
        size["bytes"] = size.get("message_size", 0.0) * width
    return KernelCase(op, row.get("system") or "", label, backend, "latency_ms", "ms", size, kv)


def _counts(name: str, value: object) -> bool:
    """True for a dimension: a number that is no measured time or bandwidth of the table."""
    measured = name.endswith(("_us", "_gbps", "_ms"))
    return isinstance(value, int | float) and not isinstance(value, bool) and not measured


def _float(name: str, value: float) -> float:
    try:
        return float(value)
    except OverflowError as problem:
        raise EngineError(f"{name} is larger than any dimension") from problem


_DTYPES = ("gemm_dtype", "moe_dtype", "attn_dtype", "mla_dtype", "nccl_dtype", "allreduce_dtype", "comm_dtype")


def _rename(size: dict[str, float], op: str) -> None:
    """Bring the parameter names of operator tables to those of the kernel models."""
    pairs = {
        "batch_size": "batch",
        "num_heads": "heads",
        "num_key_value_heads": "kv_heads",
        "isl": "seq",
        "num_gpus": "ranks",
        "node_num": "nodes",
        "num_tokens": "tokens",
        "num_token": "tokens",
        "hidden_size": "hidden",
        "num_topk": "topk",
        "num_experts": "experts",
        "ep_size": "ranks",
    }
    for old, new in pairs.items():
        if old in size and new not in size:
            size[new] = size[old]
    if op in ("decode_attention", "latent_decode"):
        size["kv_len"] = size.get("step", 0.0) + size.get("seq", 1.0)
