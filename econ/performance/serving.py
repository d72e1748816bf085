"""Operating points of a server: latency, throughput, band and binding resource of any set-up, one at a time or by
thousands.

``operating_point`` answers one set-up and explains it; ``operating_points`` answers arrays (about 10 us a point).
Both run the same closed-loop model: the running batch, the time per output token and the time to first token are the
fixed point of a server whose users each send their next request when the last one ends. `econ.performance.quoted_rates`
holds a quoted rate against them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from econ.performance.answers import limit_names
from econ.performance.bands import band_topic
from econ.performance.calibration_names import model_pair
from econ.performance.ideal import ideal_parameters
from econ.performance.load_models import Served, arrivals, batch_limit, closed_loop
from econ.performance.parameters import ParameterSet
from econ.performance.prediction import Confidence, Limit
from econ.performance.requests import EngineError, Request, build_setups, make_request
from econ.performance.setups import Load, Setups
from econ.performance.steps import (
    Constants,
    StepTime,
    constants,
    decode_step,
    kv_bytes_per_sequence,
    prefill,
    weight_bytes_per_rank,
)
from econ.performance.tables import band_for, knowledge, serving_parameters

__all__ = ["EngineError", "OperatingPoint", "OperatingPoints", "operating_point", "operating_points"]

Array = NDArray[np.float64]
MOST_SPECULATIVE = 32.0


@dataclass(frozen=True)
class OperatingPoint:
    """One answer of the engine. Times in seconds, rates per accelerator, memory in bytes an accelerator.

    ``breakdown_s`` splits a decode step by operator group. ``low``/``high`` factors give the 90 % band of TPOT, TTFT
    and the rate. ``joules_per_output_token`` follows from a power figure with `energy_per_token`.
    """

    model: str
    hardware: str
    accelerators: float
    ttft_s: float
    tpot_s: float
    output_tokens_per_s_per_accelerator: float
    input_tokens_per_s_per_accelerator: float
    running_batch: float
    largest_batch: float
    prefill_s: float
    prefill_s_per_token: float
    decode_step_s: float
    ttft_band_s: tuple[float, float]
    tpot_band_s: tuple[float, float]
    output_band: tuple[float, float]
    confidence: Confidence
    limited_by: Limit
    first_token_limited_by: Limit
    breakdown_s: Mapping[str, float]
    weight_bytes_per_accelerator: float
    kv_bytes_per_accelerator: float
    bytes_per_step_by_link: Mapping[str, float]
    computed_in: str
    format_without_rate: str

    @property
    def tokens_per_s_per_user(self) -> float:
        """Output tokens per second that one user sees."""
        return 1.0 / self.tpot_s

    def end_to_end_s(self, osl: float) -> float:
        """Time from arrival to the last token."""
        return self.ttft_s + max(osl - 1.0, 0.0) * self.tpot_s

    def energy_per_token(self, average_power_w: float) -> float:
        """Joules of one output token at an average power per accelerator.

        Raises:
            EngineError: when the power is not positive.
        """
        if not average_power_w > 0:
            raise EngineError(f"average_power_w={average_power_w}: must be positive")
        return average_power_w / self.output_tokens_per_s_per_accelerator


@dataclass(frozen=True)
class OperatingPoints:
    """Arrays of operating points; see `OperatingPoint` for the fields. ``fits`` is false where no sequence fits."""

    ttft_s: Array
    tpot_s: Array
    output_tokens_per_s_per_accelerator: Array
    input_tokens_per_s_per_accelerator: Array
    running_batch: Array
    largest_batch: Array
    accelerators: Array
    fits: NDArray[np.bool_]
    prefill_s: Array
    decode_step_s: Array


def refuse_misfit(request: Request, s: Setups) -> None:
    """Refuse weights, or weights and one sequence, that an accelerator does not hold, with the sums."""
    weights = float(weight_bytes_per_rank(s)[0])
    memory = request.rates.memory_bytes
    ideal = constants(ideal_parameters(), s)
    if float(batch_limit(s, ideal)[0]) >= 1.0:
        return
    sequence = float(kv_bytes_per_sequence(s, s.isl + s.osl)[0])
    raise EngineError(
        f"{request.model} does not fit {request.hardware_name}: weights {weights / 1e9:.1f} GB and one sequence "
        f"{sequence / 1e9:.2f} GB an accelerator of {memory / 1e9:.1f} GB (8 % margin, 2 GB workspace) at "
        f"tp={request.load.tp:g}, pp={request.load.pp:g}, dp={request.load.dp:g}; add accelerators or narrow the format"
    )


def _check_load(
    isl: float,
    osl: float,
    concurrency: float | None,
    arrival_per_s: float | None,
    prefix_hit: float,
    speculative_tokens: float,
) -> None:
    if (concurrency is None) == (arrival_per_s is None):
        raise EngineError("give either concurrency (closed loop) or arrival_per_s (open arrival), not both")
    if not 0 <= prefix_hit < 1:
        raise EngineError(f"prefix_hit={prefix_hit}: a share of at least 0 and below 1")
    if not (1 <= speculative_tokens <= MOST_SPECULATIVE and osl >= 1 and isl > 0):
        raise EngineError(
            f"isl={isl} must be positive, osl={osl} at least 1 and speculative_tokens={speculative_tokens} "
            f"between 1 and {MOST_SPECULATIVE:g}"
        )
    if arrival_per_s is not None and not arrival_per_s > 0:
        raise EngineError(f"arrival_per_s={arrival_per_s}: a positive rate of requests (infinite for all at once)")


def operating_point(
    model: str,
    hardware: str | Mapping[str, object],
    *,
    isl: float,
    osl: float,
    concurrency: float | None = None,
    tp: int = 1,
    pp: int = 1,
    ep: int = 1,
    dp: int = 1,
    weight_format: str | None = None,
    kv_format: str | None = None,
    framework: str = "vLLM",
    arrival_per_s: float | None = None,
    prefix_hit: float = 0.0,
    speculative_tokens: float = 1.0,
    parameters: ParameterSet | None = None,
) -> OperatingPoint:
    """The operating point of one set-up under ``concurrency`` closed-loop users, or under ``arrival_per_s`` requests.

    ``prefix_hit`` is the share of input tokens found in the prefix cache; ``speculative_tokens`` the mean tokens
    accepted a verification step (1 without speculative decoding; the verified tokens cost their compute).

    >>> point = operating_point("Llama-3.1-70B", "H100", isl=1024, osl=1024, concurrency=16, tp=4, weight_format="FP8")
    >>> 0.008 < point.tpot_s < 0.02
    True

    Raises:
        EngineError: for an unknown model, accelerator or format, an impossible layout, a model that does not fit, or a
            context beyond the limit. A format without native arithmetic is computed in BF16 from narrow weights.
    """
    _check_load(isl, osl, concurrency, arrival_per_s, prefix_hit, speculative_tokens)
    load = Load(
        isl,
        osl,
        1.0 if concurrency is None else concurrency,
        float(tp),
        float(pp),
        float(ep),
        float(dp),
        prefix_hit,
        speculative_tokens,
    )
    request = make_request(model, hardware, load, weight_format=weight_format, kv_format=kv_format, framework=framework)
    p = parameters or serving_parameters()
    s = build_setups([request], p)
    refuse_misfit(request, s)
    c = constants(p, s)
    served = closed_loop(s, c) if arrival_per_s is None else arrivals(s, c, np.array([arrival_per_s]))
    return _explained(request, s, c, served)


def _explained(request: Request, s: Setups, c: Constants, served: Served) -> OperatingPoint:
    running = np.maximum(served.running, 1.0)
    step = decode_step(s, c, running, s.isl + s.osl / 2)
    pre = prefill(s, c)
    count = request.accelerators
    confidence = knowledge("serving").confidence(
        model_pair(request.model, request.hardware_name), request.hardware_name, request.members["family"]
    )
    output = float(served.output_per_s[0]) / count
    tpot, ttft = float(served.tpot_s[0]), float(served.ttft_s[0])
    bands = {name: band_for(band_topic("closed", name), confidence) for name in ("tpot_mean", "ttft_mean")}
    per_token, first = bands["tpot_mean"], bands["ttft_mean"]
    limit: Limit = limit_names(step, served.overload)[0]  # type: ignore[assignment]
    queue = ttft > 2 * float(pre.alone_s[0] + c.first_token_s[0])
    first_limit: Limit = (
        "queueing" if queue else "compute" if pre.compute_s[0] > pre.memory_s[0] else "memory_bandwidth"
    )
    return OperatingPoint(
        model=request.model,
        hardware=request.hardware_name,
        accelerators=count,
        ttft_s=ttft,
        tpot_s=tpot,
        output_tokens_per_s_per_accelerator=output,
        input_tokens_per_s_per_accelerator=output * request.load.isl / request.load.osl,
        running_batch=float(served.running[0]) * request.load.dp,
        largest_batch=float(served.batch_limit[0]) * request.load.dp,
        prefill_s=float(pre.alone_s[0]),
        prefill_s_per_token=float(pre.work_s[0]) / request.load.isl,
        decode_step_s=float(step.total_s[0]),
        ttft_band_s=(ttft * first.low, ttft * first.high),
        tpot_band_s=(tpot * per_token.low, tpot * per_token.high),
        output_band=(output / per_token.high, output / per_token.low),
        confidence=confidence,
        limited_by=limit,
        first_token_limited_by=first_limit,
        breakdown_s=_breakdown(step, pre.work_s, served, c, request),
        weight_bytes_per_accelerator=float(weight_bytes_per_rank(s)[0]),
        kv_bytes_per_accelerator=float((running * kv_bytes_per_sequence(s, s.isl + s.osl / 2))[0]),
        bytes_per_step_by_link=_traffic(s, running),
        computed_in=request.members["format_expert"],
        format_without_rate=request.members["without_rate"],
    )


def _breakdown(step: StepTime, work: Array, served: Served, c: Constants, request: Request) -> dict[str, float]:
    """Seconds of one output token by operator group."""
    waiting = float((c.interference * np.maximum(served.running - 1, 0) * work)[0]) / max(request.load.osl, 1.0)
    return {
        "dense_weights": float(step.weights_s[0]),
        "experts": float(step.experts_s[0]),
        "attention": float(step.attention_s[0]),
        "collectives": float(step.collectives_s[0]),
        "launch": float(step.launch_s[0]),
        "prefill_of_others": waiting,
    }


def _traffic(s: Setups, running: Array) -> dict[str, float]:
    """Bytes that one accelerator sends in a decode step, over the scale-up link and between nodes."""
    reduce_bytes = 2 * s.layers * 2 * (s.tp - 1) / s.tp * running * s.d_model * 2.0 / s.pp
    exchange = np.where(
        s.dp > 1, s.moe_layers * running / s.tp * np.minimum(s.top_k, s.dp * s.tp) * s.d_model * 3.0, 0.0
    )
    hop = np.where(s.pp > 1, running * s.d_model * 2.0, 0.0)
    inside = s.dp * s.tp <= s.domain_size
    up = np.where(s.tp <= s.domain_size, reduce_bytes, 0.0) + np.where(inside, exchange, 0.0)
    out = np.where(s.tp <= s.domain_size, 0.0, reduce_bytes) + np.where(inside, 0.0, exchange)
    return {"scale_up": float(up[0]), "scale_out": float(out[0]), "pipeline": float(hop[0])}


def operating_points(
    model: str,
    hardware: str | Mapping[str, object],
    *,
    isl: ArrayLike,
    osl: ArrayLike,
    concurrency: ArrayLike,
    tp: ArrayLike = 1,
    pp: ArrayLike = 1,
    ep: ArrayLike = 1,
    dp: ArrayLike = 1,
    weight_format: str | None = None,
    kv_format: str | None = None,
    framework: str = "vLLM",
    prefix_hit: ArrayLike = 0.0,
    speculative_tokens: ArrayLike = 1.0,
    parameters: ParameterSet | None = None,
) -> OperatingPoints:
    """Operating points of one model on one accelerator for arrays of layouts and loads (broadcast against each other).

    Points whose weights do not fit, or whose layout cannot be, have ``fits`` false and NaN values, never a number.

    >>> points = operating_points("Llama-3.1-8B", "H200", isl=1000, osl=1000, concurrency=[1, 8, 64])
    >>> bool((points.tpot_s[1:] >= points.tpot_s[:-1]).all())
    True

    Raises:
        EngineError: for an unknown model, accelerator or format.
    """
    names = ("isl", "osl", "concurrency", "tp", "pp", "ep", "dp", "prefix_hit", "tokens_per_step")
    given = (isl, osl, concurrency, tp, pp, ep, dp, prefix_hit, speculative_tokens)
    arrays = np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in given))
    flat = {name: np.array(x, dtype=float).reshape(-1) for name, x in zip(names, arrays, strict=True)}
    request = make_request(
        model,
        hardware,
        Load(1.0, 1.0, 1.0),
        weight_format=weight_format,
        kv_format=kv_format,
        framework=framework,
    )
    p = parameters or serving_parameters()
    one = build_setups([request], p)
    size = len(flat["isl"])
    s = one.take(np.zeros(size, dtype=np.int64)).replaced(**flat)
    c = constants(p, s)
    served = closed_loop(s, c)
    count = s.tp * s.pp * s.dp
    fits = (batch_limit(s, constants(ideal_parameters(), s)) >= 1.0) & _layout_ok(s)
    output = served.output_per_s / count
    return OperatingPoints(
        ttft_s=_masked(served.ttft_s, fits),
        tpot_s=_masked(served.tpot_s, fits),
        output_tokens_per_s_per_accelerator=_masked(output, fits),
        input_tokens_per_s_per_accelerator=_masked(output * s.isl / s.osl, fits),
        running_batch=_masked(served.running * s.dp, fits),
        largest_batch=_masked(served.batch_limit * s.dp, fits),
        accelerators=count,
        fits=fits,
        prefill_s=_masked(served.prefill.alone_s, fits),
        decode_step_s=_masked(served.step_s, fits),
    )


def _masked(values: Array, fits: NDArray[np.bool_]) -> Array:
    return np.where(fits, values, np.nan)


def _layout_ok(s: Setups) -> NDArray[np.bool_]:
    experts = np.maximum(s.n_experts, 1.0)
    inside = (s.isl + s.osl <= s.context_limit) & (s.tp <= s.n_heads) & (s.pp <= s.layers)
    return np.asarray(inside & (s.ep <= experts) & (s.n_heads % s.tp == 0))
