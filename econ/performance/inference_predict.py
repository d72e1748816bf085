"""Predictions of inference rows: load models once per kind, then metric, unit, band and limit of each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from econ.performance.answers import Answers, evaluate
from econ.performance.bands import band_topic
from econ.performance.calibration_names import model_pair
from econ.performance.inference_rows import InferenceCase, parse_row
from econ.performance.local import LocalCase, local_values
from econ.performance.parameters import ParameterSet
from econ.performance.prediction import Confidence, Limit, Prediction
from econ.performance.requests import EngineError
from econ.performance.row_units import UnitError, unit_factor
from econ.performance.tables import band_for, knowledge, local_parameters, serving_parameters

__all__ = ["predict_inference_rows"]

LOCAL_METRICS = (
    "decode_tokens_per_s",
    "decode_tokens_per_s_total",
    "prefill_tokens_per_s",
    "tokens_per_s_per_user",
    "throughput_output_tokens_total",
    "throughput_tokens_total",
    "tpot_mean",
    "itl_mean",
    "ttft_mean",
    "prefill_time",
)
_LATENCIES = ("ttft", "tpot", "itl", "prefill_time", "e2e")


def in_unit(value: float, metric: str, unit: str) -> float:
    """A metric of the engine (seconds or tokens per second) in the unit of a row.

    >>> in_unit(0.02, "tpot_mean", "ms")
    20.0

    Raises:
        EngineError: when the unit does not suit the metric.
    """
    latency = metric.startswith(_LATENCIES)
    try:
        return value * unit_factor(unit.strip() or "ms", "time") if latency else value * unit_factor(unit, "tokens")
    except UnitError as problem:
        wanted = "not a time" if latency else "not a token rate"
        raise EngineError(f"{metric}: {problem} ({wanted})") from problem


def predict_inference_rows(
    rows: Sequence[Mapping[str, str]], serving: ParameterSet | None = None, local: ParameterSet | None = None
) -> list[Prediction]:
    """One prediction per row; a row that states too little or asks for the impossible has a reason instead."""
    out: list[Prediction | None] = [None] * len(rows)
    served: dict[str, list[tuple[int, InferenceCase]]] = {}
    locals_: list[tuple[int, LocalCase, str, str]] = []
    for n, row in enumerate(rows):
        try:
            case = parse_row(row)
        except EngineError as problem:
            out[n] = Prediction.refused(str(problem))
            continue
        if isinstance(case, LocalCase):
            locals_.append((n, case, row.get("metric") or "", row.get("unit") or ""))
        else:
            served.setdefault(case.mode, []).append((n, case))
    for mode, items in served.items():
        answers = evaluate(mode, [case for _, case in items], serving or serving_parameters())
        for place, (n, case) in enumerate(items):
            out[n] = _served(mode, case, answers, place)
    if locals_:
        for (n, *_), answer in zip(locals_, _local(locals_, local or local_parameters()), strict=True):
            out[n] = answer
    return [answer if answer is not None else Prediction.refused("not answered") for answer in out]


def _served(mode: str, case: InferenceCase, answers: Answers, place: int) -> Prediction:
    if case.metric not in answers.metrics:
        return Prediction.refused(
            f"metric {case.metric!r} is not predicted; known: {', '.join(sorted(answers.metrics))}"
        )
    value = float(answers.metrics[case.metric][place])
    if not np.isfinite(value) or value <= 0:
        return Prediction.refused(f"the model gave no finite {case.metric} for this set-up")
    try:
        value = in_unit(value, case.metric, case.unit)
    except EngineError as problem:
        return Prediction.refused(str(problem))
    topic = band_topic(mode, case.metric)
    request = case.request
    seen = knowledge("serving")
    confidence = seen.confidence(
        model_pair(request.model, request.hardware_name), request.hardware_name, request.members["family"]
    )
    band = band_for(topic, confidence)
    limits = answers.first_limit if topic.endswith(("ttft", "prefill")) else answers.decode_limit
    limit: Limit = limits[place]  # type: ignore[assignment]
    low, high = band.low, band.high
    share = answers.weight_share[place]
    if share > 1.0:
        count, memory = case.request.load, case.request.rates.memory_bytes
        return Prediction.refused(
            f"{request.model} does not fit: its weights are {share:.2f} times the {memory / 1e9:.0f} GB of one "
            f"{request.hardware_name} at tp={count.tp:g}, pp={count.pp:g}, dp={count.dp:g}; "
            "use more accelerators or a narrower format"
        )
    if not answers.fits[place]:
        # The weights leave no room for the batch asked for: a row that exists ran in some other way.
        limit, low, high = "memory_capacity", low / 1.5, high * 1.5
    answer = Prediction.within(value, low, high, confidence, limit)
    return replace(answer, reason=_notes(case))


def _notes(case: InferenceCase) -> str:
    """What an answered row should be read with: assumptions, and a context beyond the model's limit."""
    request = case.request
    context, most = request.load.isl + request.load.osl, request.shape.context_limit
    notes = [case.note] if case.note else []
    if context > most:
        notes.append(f"{context:g} tokens are beyond the context limit {most:g} of {request.model}, taken as extended")
    return "; ".join(notes)


def _local(items: Sequence[tuple[int, LocalCase, str, str]], p: ParameterSet) -> list[Prediction]:
    cases = [case for _, case, _, _ in items]
    rates = local_values(cases, p)
    seen = knowledge("local")
    out = []
    for (_, case, metric, unit), rate in zip(items, rates, strict=True):
        if metric not in LOCAL_METRICS:
            out.append(Prediction.refused(f"metric {metric!r} is not predicted for local runs"))
            continue
        value = float(rate)
        if metric in ("tpot_mean", "itl_mean"):
            value = case.batch / value
        elif metric in ("ttft_mean", "prefill_time"):
            value = case.isl / value
        elif metric == "tokens_per_s_per_user":
            value = value / case.batch
        if not np.isfinite(value) or value <= 0:
            out.append(Prediction.refused(f"the model gave no finite {metric} for this set-up"))
            continue
        confidence: Confidence = seen.confidence(
            model_pair(case.model, case.hardware_name), case.hardware_name, case.members["place"]
        )
        band = band_for(band_topic(case.mode, metric), confidence)
        limit: Limit = "compute" if case.mode == "prefill" or case.batch > 16 else "memory_bandwidth"
        try:
            out.append(Prediction.within(in_unit(value, metric, unit), band.low, band.high, confidence, limit))
        except EngineError as problem:
            out.append(Prediction.refused(str(problem)))
    return out
