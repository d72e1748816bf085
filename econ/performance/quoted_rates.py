"""A quoted throughput held against physics and against the engine.

``ceiling`` is the physical limit of a set-up; ``classify_throughput`` judges a quoted rate against it and against the
90 % band of the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from econ.performance.calibration_names import model_pair
from econ.performance.ideal import ideal_parameters
from econ.performance.load_models import closed_loop, maximum_throughput
from econ.performance.prediction import Confidence
from econ.performance.requests import EngineError, Request, build_setups, make_request
from econ.performance.serving import refuse_misfit
from econ.performance.setups import Load
from econ.performance.steps import constants
from econ.performance.tables import band_for, knowledge, serving_parameters

__all__ = ["Check", "ceiling", "classify_throughput"]

Verdict = Literal["impossible", "optimistic", "consistent", "pessimistic"]
#: Sequences that run at once in the ceiling of a quoted rate when no concurrency is stated.
MOST_SEQUENCES = 4096.0


@dataclass(frozen=True)
class Check:
    """Verdict on a quoted throughput: the ceiling, the predicted rate with its band, and the reason in words."""

    verdict: Verdict
    quoted: float
    ceiling: float
    predicted: float
    low: float
    high: float
    reason: str


def ceiling(
    model: str,
    hardware: str | Mapping[str, object],
    *,
    isl: float = 1000.0,
    osl: float = 1000.0,
    concurrency: float | None = None,
    tp: int | None = None,
    pp: int = 1,
    dp: int = 1,
    weight_format: str | None = None,
    kv_format: str | None = None,
    framework: str = "",
    prefix_hit: float = 0.0,
    speculative_tokens: float = 1.0,
) -> float:
    """Physical ceiling of output tokens per second and accelerator: peak arithmetic and bandwidth, no latency.

    Prefill of the stated input is part of the work. Without ``tp`` the smallest power of two that holds the weights is
    used; without ``concurrency`` as many sequences as the cache of the framework holds.

    Raises:
        EngineError: as `operating_point`.
    """
    request = _fitting(model, hardware, isl, osl, concurrency, tp, pp, dp, weight_format, kv_format, framework)
    request = request.with_load(prefix_hit=prefix_hit, tokens_per_step=speculative_tokens)
    return _ceiling(request, concurrency)


def _ceiling(request: Request, concurrency: float | None) -> float:
    p = ideal_parameters()
    s = build_setups([request], p)
    most = MOST_SEQUENCES if concurrency is None else concurrency / request.load.dp
    served = maximum_throughput(s, constants(p, s), most)
    return float(served.output_per_s[0]) / request.accelerators


def _fitting(
    model: str,
    hardware: str | Mapping[str, object],
    isl: float,
    osl: float,
    concurrency: float | None,
    tp: int | None,
    pp: int,
    dp: int,
    weight_format: str | None,
    kv_format: str | None,
    framework: str = "",
) -> Request:
    """The request at the stated width, or at the smallest power of two that fits."""
    widths = [float(tp)] if tp is not None else [2.0**n for n in range(8)]
    problem: EngineError | None = None
    for width in widths:
        load = Load(isl, osl, concurrency or 1.0, tp=width, pp=float(pp), dp=float(dp))
        try:
            request = make_request(
                model, hardware, load, weight_format=weight_format, kv_format=kv_format, framework=framework
            )
            refuse_misfit(request, build_setups([request], ideal_parameters()))
        except EngineError as found:
            problem = found
            continue
        return request
    raise problem or EngineError("no layout was tried")


def classify_throughput(
    tokens_per_s_per_accelerator: float,
    model: str,
    hardware: str | Mapping[str, object],
    *,
    isl: float = 1000.0,
    osl: float = 1000.0,
    concurrency: float | None = None,
    tp: int | None = None,
    pp: int = 1,
    dp: int = 1,
    weight_format: str | None = None,
    kv_format: str | None = None,
    framework: str = "vLLM",
    prefix_hit: float = 0.0,
    speculative_tokens: float = 1.0,
) -> Check:
    """Judge a quoted output rate per accelerator: impossible, optimistic, consistent or pessimistic.

    Without ``concurrency`` the quoted rate is held against the best that the set-up can do.

    >>> classify_throughput(1e6, "Llama-3.1-70B", "H100").verdict
    'impossible'

    Raises:
        EngineError: as `operating_point`, or when the quoted rate is not positive.
    """
    quoted = float(tokens_per_s_per_accelerator)
    if not quoted > 0 or not np.isfinite(quoted):
        raise EngineError(f"tokens_per_s_per_accelerator={quoted}: a quoted rate is a positive number")
    request = _fitting(model, hardware, isl, osl, concurrency, tp, pp, dp, weight_format, kv_format, framework)
    request = request.with_load(prefix_hit=prefix_hit, tokens_per_step=speculative_tokens)
    p = serving_parameters()
    s = build_setups([request], p)
    c = constants(p, s)
    served = maximum_throughput(s, c) if concurrency is None else closed_loop(s, c)
    predicted = float(served.output_per_s[0]) / request.accelerators
    confidence = knowledge("serving").confidence(
        model_pair(request.model, request.hardware_name), request.hardware_name, request.members["family"]
    )
    band = band_for("offline/rate" if concurrency is None else "closed/tpot", confidence)
    low, high = predicted * band.low, predicted * band.high
    if concurrency is not None:
        low, high = predicted / band.high, predicted / band.low
    top = _ceiling(request, concurrency)
    return _verdict(quoted, top, predicted, low, min(high, top), confidence)


def _verdict(quoted: float, top: float, predicted: float, low: float, high: float, confidence: Confidence) -> Check:
    scale = f"predicted {predicted:,.0f} ({low:,.0f} to {high:,.0f}, {confidence}), ceiling {top:,.0f} tokens/s"
    if quoted > top:
        return Check("impossible", quoted, top, predicted, low, high, f"{quoted:,.0f} is above the roofline: {scale}")
    if quoted > high:
        return Check("optimistic", quoted, top, predicted, low, high, f"{quoted:,.0f} is above the 90 % band: {scale}")
    if quoted < low:
        return Check("pessimistic", quoted, top, predicted, low, high, f"{quoted:,.0f} is below the 90 % band: {scale}")
    return Check("consistent", quoted, top, predicted, low, high, f"{quoted:,.0f} is within the 90 % band: {scale}")
