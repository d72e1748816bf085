"""Predictions of kernel and operator rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from econ.performance.kernel_engine import (
    COLLECTIVES,
    KernelBatch,
    class_name,
    device_of,
    in_metric,
)
from econ.performance.kernel_rows import KernelCase, check_case, parse_kernel_row, parse_operator_row
from econ.performance.prediction import Limit, Prediction
from econ.performance.requests import EngineError
from econ.performance.row_units import UnitError, unit_factor
from econ.performance.tables import band_for, kernel_parameters, knowledge

__all__ = ["predict_kernel_rows"]

METRICS = (
    "latency_ms",
    "tflops",
    "memory_bandwidth",
    "busbw",
    "dispatch_us",
    "combine_us",
    "dispatch_bandwidth",
    "combine_bandwidth",
)
_LIMITS: dict[str, Limit] = {
    "prefill_attention": "compute",
    "latent_prefill": "compute",
    "decode_attention": "memory_bandwidth",
    "latent_decode": "memory_bandwidth",
    "stream": "memory_bandwidth",
    "exchange": "interconnect",
}


def operation_of(case: KernelCase) -> str:
    """Fitted operation of a case."""
    return "collective" if case.op in COLLECTIVES else case.op


_UNITS = {
    "latency_ms": ("time", "ms"),
    "dispatch_us": ("time", "us"),
    "combine_us": ("time", "us"),
    "tflops": ("flops", "TFLOP/s"),
}


def _unit(case: KernelCase) -> float:
    """Factor from a metric's own unit (ms, us, TFLOP/s, GB/s) to that of the row."""
    kind, own = _UNITS.get(case.metric, ("bytes_rate", "GB/s"))
    try:
        return unit_factor(case.unit or own, kind) / unit_factor(own, kind)
    except UnitError as problem:
        raise EngineError(f"{case.metric}: {problem}") from problem


def _parsed(row: Mapping[str, str]) -> tuple[KernelCase, float]:
    """The case of a row and the factor to its unit."""
    operator = bool((row.get("params_json") or "").strip())
    case = parse_operator_row(row) if operator else parse_kernel_row(row)
    if case.metric not in METRICS:
        raise EngineError(f"metric {case.metric!r} is not predicted for kernels; known: {', '.join(METRICS)}")
    check_case(case, stated=operator)
    device_of(class_name(case.hardware))
    return case, _unit(case)


def predict_kernel_rows(rows: Sequence[Mapping[str, str]]) -> list[Prediction]:
    """One prediction per kernel or operator row, in the row's own unit (operators: ms)."""
    out: list[Prediction | None] = [None] * len(rows)
    groups: dict[str, list[tuple[int, KernelCase]]] = {}
    factors = [1.0] * len(rows)
    for n, row in enumerate(rows):
        try:
            case, factors[n] = _parsed(row)
        except EngineError as problem:
            out[n] = Prediction.refused(str(problem))
            continue
        groups.setdefault(operation_of(case), []).append((n, case))
    for operation, items in groups.items():
        for (n, _), answer in zip(items, _group(operation, [case for _, case in items]), strict=True):
            out[n] = answer.scaled(factors[n])
    return [answer for answer in out if answer is not None]


def _group(operation: str, cases: list[KernelCase]) -> list[Prediction]:
    batch = KernelBatch(cases)
    source = "gemm" if operation == "stream" else operation
    values = in_metric(batch, batch.seconds(kernel_parameters(source)))
    topic = f"kernel/{operation}"
    seen = knowledge(source)
    out = []
    for case, value in zip(cases, values, strict=True):
        part = device_of(class_name(case.hardware))
        confidence = seen.confidence((f"{case.op}/{case.backend}", case.hardware), part.name, part.family)
        band = band_for(topic, confidence)
        if operation == "stream":
            out.append(Prediction.within(float(value), 0.85, 1.15, confidence, "memory_bandwidth"))
        elif np.isfinite(value) and value > 0:
            out.append(Prediction.within(float(value), band.low, band.high, confidence, _limit(operation, case)))
        else:
            out.append(Prediction.refused(f"the model of {operation} gave no finite value for these dimensions"))
    return out


def _limit(operation: str, case: KernelCase) -> Limit:
    if operation in _LIMITS:
        return _LIMITS[operation]
    if operation == "collective":
        return "interconnect" if case.get("bytes") > 2e6 else "overhead"
    rows = case.get("m", case.get("tokens"))
    work = rows * case.get("n", case.get("hidden")) * case.get("k", case.get("inter_size"))
    if work < 1e8:
        return "overhead"
    return "compute" if rows >= 256 else "memory_bandwidth"
