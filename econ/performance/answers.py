"""All metrics of each load model, as arrays: the one place that turns steady states into what a row asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from econ.performance.inference_rows import InferenceCase
from econ.performance.load_models import (
    Served,
    arrivals,
    batch_limit,
    closed_loop,
    disaggregated,
    maximum_throughput,
    throughput_within,
)
from econ.performance.mlperf import latency_limits, mean_tpot_limit_s
from econ.performance.parameters import ParameterSet
from econ.performance.requests import build_setups
from econ.performance.setups import Setups
from econ.performance.steps import Constants, StepTime, constants, decode_step, prefill, weight_bytes_per_rank

__all__ = ["Answers", "evaluate", "limit_names"]

Array = NDArray[np.float64]
NODE = 8.0
#: Tail over mean of TTFT and TPOT at the 99th percentile in load-generator logs (median over the logged submissions).
TTFT_TAIL = 2.2
TPOT_TAIL = 1.2
#: Share of the latency limit that logged submissions use (median over the logs in `data/calibration`).
LIMIT_SHARE = {"ttft_p99": 0.65, "ttft_mean": 0.26, "tpot_p99": 0.87, "tpot_mean": 0.72}


@dataclass(frozen=True)
class Answers:
    """Metrics by name (seconds, or tokens/s), what binds decode and the first token, fit in memory, and the weights of
    one accelerator over its memory."""

    metrics: dict[str, Array]
    decode_limit: list[str]
    first_limit: list[str]
    fits: NDArray[np.bool_]
    weight_share: Array


def limit_names(step: StepTime, overload: Array | None = None) -> list[str]:
    """Binding resource of each decode step; memory capacity where users wait for the cache."""
    parts = np.stack(
        [
            np.maximum(step.compute_s - step.memory_s, 0) * 0
            + np.where(step.compute_s > step.memory_s, step.compute_s, 0),
            np.where(step.memory_s >= step.compute_s, step.memory_s, 0),
            step.collectives_s,
            step.launch_s,
        ]
    )
    names = ("compute", "memory_bandwidth", "interconnect", "overhead")
    out = [names[i] for i in np.argmax(parts, axis=0)]
    if overload is not None:
        out = ["memory_capacity" if q > 0.05 else name for q, name in zip(overload, out, strict=True)]
    return out


def _first_limits(served: Served, c: Constants) -> list[str]:
    alone = served.prefill.alone_s
    out = []
    for i in range(len(alone)):
        if served.overload[i] > 0.05:
            out.append("memory_capacity")
        elif served.ttft_s[i] > 2 * (alone[i] + c.first_token_s[i]):
            out.append("queueing")
        elif c.first_token_s[i] > alone[i]:
            out.append("overhead")
        elif served.prefill.collectives_s[i] > served.prefill.compute_s[i]:
            out.append("interconnect")
        else:
            out.append("compute" if served.prefill.compute_s[i] > served.prefill.memory_s[i] else "memory_bandwidth")
    return out


def _rates(s: Setups, output: Array, accelerators: Array, copies: Array) -> dict[str, Array]:
    """Throughput metrics from output tokens per second of one copy of the layout."""
    total = output * copies
    per_gpu = total / accelerators
    share = (s.isl + s.osl) / s.osl
    return {
        "throughput_output_tokens_total": total,
        "throughput_output_tokens_per_gpu": per_gpu,
        "throughput_output_tokens_per_node": per_gpu * NODE,
        "throughput_input_tokens_total": total * s.isl / s.osl,
        "throughput_input_tokens_per_gpu": per_gpu * s.isl / s.osl,
        "throughput_input_tokens_per_node": per_gpu * s.isl / s.osl * NODE,
        "throughput_tokens_total": total * share,
        "decode_tokens_per_s_total": total,
    }


def _latencies(s: Setups, served: Served) -> dict[str, Array]:
    tpot, ttft = served.tpot_s, served.ttft_s
    return {
        "ttft_mean": ttft,
        "ttft_p99": ttft * TTFT_TAIL,
        "tpot_mean": tpot,
        "tpot_p99": tpot * TPOT_TAIL,
        "itl_mean": tpot,
        "e2e_latency_mean": ttft + np.maximum(s.osl - 1, 0) * tpot,
        "tokens_per_s_per_user": 1 / tpot,
        "decode_tokens_per_s": 1 / tpot,
        "prefill_time": served.prefill.alone_s,
        "prefill_tokens_per_s": s.isl / served.prefill.alone_s,
    }


def _weight_share(s: Setups) -> Array:
    """Weights of one accelerator over its memory; above 1 the set-up cannot start."""
    return np.asarray(weight_bytes_per_rank(s) / s.memory_bytes)


def _from_served(s: Setups, c: Constants, served: Served, count: Array, copies: Array) -> Answers:
    step = decode_step(s, c, np.maximum(served.running, 1.0), s.isl + s.osl / 2)
    metrics = _latencies(s, served) | _rates(s, served.output_per_s, count, copies)
    fit = batch_limit(s, c) >= 1.0
    return Answers(metrics, limit_names(step, served.overload), _first_limits(served, c), fit, _weight_share(s))


def _fixed(s: Setups, c: Constants, count: Array) -> Answers:
    """One batch that starts together: prefill of all, then decode of all."""
    step = decode_step(s, c, s.concurrency, s.isl + s.osl / 2)
    pre = prefill(s, c, batch=s.concurrency)
    first = 0.3 * c.first_token_s + pre.alone_s
    served = Served(
        first, step.total_s, s.concurrency, batch_limit(s, c), s.concurrency, np.zeros(len(s)), step.total_s, pre
    )
    metrics = _latencies(s, served)
    whole = first + np.maximum(s.osl - 1, 0) * step.total_s
    metrics |= _rates(s, s.dp * s.concurrency * s.osl / whole, count, np.ones(len(s)))
    metrics["prefill_time"] = first
    metrics["prefill_tokens_per_s"] = s.concurrency * s.isl / first
    metrics["decode_tokens_per_s_total"] = s.concurrency / step.total_s
    limits = ["compute" if a > b else "memory_bandwidth" for a, b in zip(pre.compute_s, pre.memory_s, strict=True)]
    return Answers(metrics, limit_names(step), limits, batch_limit(s, c) >= s.concurrency, _weight_share(s))


def _limited_latencies(cases: Sequence[InferenceCase], free: dict[str, Array]) -> dict[str, Array]:
    """Latencies of Server and Interactive runs: the load is raised until the 99th percentile nears the rule."""
    out = {name: np.array(free[name], dtype=float) for name in LIMIT_SHARE}
    for n, case in enumerate(cases):
        limits = latency_limits(case.request.model, case.scenario)
        if limits is None:
            continue
        for name, share in LIMIT_SHARE.items():
            out[name][n] = share * (limits[0] if name.startswith("ttft") else limits[1])
    out["itl_mean"] = out["tpot_mean"]
    return out


def _mlperf(
    cases: Sequence[InferenceCase], s: Setups, c: Constants, p: ParameterSet, count: Array, copies: Array
) -> Answers:
    limits = np.array([mean_tpot_limit_s(case.request.model, case.scenario) for case in cases])
    served = throughput_within(s, c, limits)
    share = {"server": float(p.value("server_share")), "interactive": float(p.value("interactive_share"))}
    factor = np.array([share.get(case.scenario, 1.0) for case in cases])
    loaded = arrivals(s, c, served.output_per_s * factor / s.osl)
    answers = _from_served(s, c, loaded, count, copies)
    total = served.output_per_s * factor * copies
    answers.metrics.update(_limited_latencies(cases, answers.metrics))
    answers.metrics.update(_rates(s, served.output_per_s * factor, count, copies))
    answers.metrics["throughput_tokens_total"] = total
    return answers


def _wide(s: Setups, c: Constants, count: Array) -> Answers:
    """Prefill and decode of wide expert parallelism measured apart, each with all accelerators of its side."""
    served = maximum_throughput(s.replaced(isl=np.minimum(s.isl, 1e9)), c, most=512.0)
    running = np.minimum(served.running, 512.0)
    step = decode_step(s, c, running, s.isl + s.osl / 2)
    rate = s.dp * running / step.total_s
    answers = _from_served(s, c, served, count, np.ones(len(s)))
    answers.metrics.update(_rates(s, rate, count, np.ones(len(s))))
    work = prefill(s, c, batch=8.0)
    prompt = s.dp * s.isl * 8.0 / np.maximum(work.work_s, work.memory_s)
    answers.metrics["throughput_input_tokens_total"] = prompt
    answers.metrics["throughput_input_tokens_per_gpu"] = prompt / count
    answers.metrics["throughput_input_tokens_per_node"] = prompt / count * NODE
    answers.metrics["tokens_per_s_per_user"] = 1 / step.total_s
    return answers


def evaluate(mode: str, cases: Sequence[InferenceCase], p: ParameterSet, setups: Setups | None = None) -> Answers:
    """Every metric of cases of one load model (all but the local ones, see `local`)."""
    s = build_setups([case.request for case in cases], p) if setups is None else setups
    c = constants(p, s)
    count = np.array([case.accelerators for case in cases])
    copies = np.array([max(np.floor(k.accelerators / k.request.accelerators), 1.0) for k in cases])
    count = np.maximum(count, copies * np.array([case.request.accelerators for case in cases]))
    if mode == "fixed":
        return _fixed(s, c, count)
    if mode == "offline":
        return _from_served(s, c, maximum_throughput(s, c), count, copies)
    if mode == "mlperf":
        return _mlperf(cases, s, c, p, count, copies)
    if mode == "wide":
        return _wide(s, c, count)
    if mode == "open":
        rate = np.array([case.arrival_per_s for case in cases]) / copies
        return _from_served(s, c, arrivals(s, c, rate), count, copies)
    if mode == "disaggregated":
        decode = build_setups([case.decode or case.request for case in cases], p)
        workers = np.array([[case.prefill_workers, case.decode_workers] for case in cases])
        served, d = disaggregated(s, c, decode, constants(p, decode), workers[:, 0], workers[:, 1])
        return _from_served(d, constants(p, d), served, count, np.ones(len(cases)))
    share = s.replaced(concurrency=s.concurrency / copies)
    return _from_served(share, c, closed_loop(share, c), count, copies)
