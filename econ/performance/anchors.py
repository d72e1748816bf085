"""Anchoring: a user's own measurements shift the level of like set-ups, shrunk by how few they are.

Like means the same model, accelerator, framework, format and metric, however they are spelled. How far one measurement
moves the others, and how wide the band stays, follow from the left-out errors of the calibration rows: the share of
their variance that lies between such groups, and what is left within one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from econ.performance.architecture import ArchitectureError, architecture
from econ.performance.formats_of_parts import canonical_format
from econ.performance.kernel_engine import class_name, device_of
from econ.performance.kernel_rows import weight_format
from econ.performance.names import normalise, parse_model
from econ.performance.prediction import Prediction
from econ.performance.requests import EngineError
from econ.performance.software import framework_of
from supply.input_text import InputTextError, parse_json

__all__ = ["Shift", "Spread", "anchor_key", "anchor_shifts", "shifted", "spread_of"]

MOST_SHIFT = math.log(4.0)
#: 5 % and 95 % quantiles of a normal distribution, in standard deviations.
NINETY = 1.645


@dataclass(frozen=True)
class Spread:
    """Log errors of rows left out of the fit: standard deviation within a group of like set-ups, and the variance
    within over the variance between groups, which is the number of rows that the physics alone is worth."""

    within: float
    shrink: float

    def half_width(self, rows: int) -> float:
        """Log half-width of the 90 % band after anchoring on so many rows.

        >>> round(SPREADS["rate"].half_width(1), 3), round(SPREADS["rate"].half_width(100), 3)
        (0.313, 0.248)
        """
        return NINETY * self.within * math.sqrt(1.0 + 1.0 / (rows + self.shrink))


#: Standard deviations of left-out log errors (cut at 1), within groups and between: rates and times per token 0.15
#: and 0.19; first tokens and prompts 0.36 (their tails are heavy) and 0.25; separate prefill and decode 0.39 and 0.24;
#: kernels 0.28 and 0.16.
SPREADS: Mapping[str, Spread] = {
    "rate": Spread(0.15, 0.64),
    "first_token": Spread(0.36, 2.0),
    "separate": Spread(0.39, 2.7),
    "kernel": Spread(0.28, 3.0),
}


@dataclass(frozen=True)
class Shift:
    """Log shift of one group of like set-ups, and the rows behind it."""

    log_factor: float
    rows: int


def _model(row: Mapping[str, str]) -> tuple[str, str]:
    """Architecture of a model name and the format that the name carries."""
    name, suffix = parse_model(row.get("model") or "")
    try:
        return (normalise(architecture(name).name) if name else "", suffix or "")
    except ArchitectureError:
        return normalise(name), suffix or ""


def _part(row: Mapping[str, str]) -> str:
    name = row.get("hardware") or row.get("system") or ""
    try:
        return device_of(class_name(name)).name
    except EngineError:
        return normalise(name)


def _params(row: Mapping[str, str]) -> Mapping[str, object]:
    try:
        found = parse_json(row.get("params_json") or "{}")
    except InputTextError:
        return {}
    return found if isinstance(found, dict) else {}


def anchor_key(row: Mapping[str, str]) -> tuple[str, ...]:
    """Group of like set-ups: model, accelerator, framework, format and metric (kernel and data type for kernels).

    >>> a = {"model": "Llama-3.1-8B-FP8", "hardware": "H100", "framework": "vLLM 0.9", "metric": "tpot_mean"}
    >>> b = {"model": "llama3.1 8b", "hardware": "h100", "weight_format": "fp8", "framework": "vllm",
    ...      "metric": "tpot_mean"}
    >>> anchor_key(a) == anchor_key(b), anchor_key(a) == anchor_key(b | {"hardware": "H200"})
    (True, False)
    """
    model, suffix = _model(row)
    framework = framework_of(row.get("framework") or "") or normalise(row.get("framework") or "")
    stated = row.get("weight_format") or suffix or row.get("precision") or ""
    params = _params(row)
    kernel = normalise(row.get("kernel") or row.get("op") or "")
    dtype = next((str(v) for k, v in params.items() if k.endswith("_dtype") and "kv" not in k), row.get("dtype") or "")
    number = weight_format(dtype) if kernel else canonical_format(stated) or normalise(stated)
    return model, _part(row), framework, number, normalise(row.get("metric") or ""), kernel


def spread_of(row: Mapping[str, str]) -> Spread:
    """Spread of the errors of a row's kind."""
    if row.get("kernel") or row.get("params_json"):
        return SPREADS["kernel"]
    if "disagg" in (row.get("scenario") or "").lower():
        return SPREADS["separate"]
    first = (row.get("metric") or "").startswith(("ttft", "prefill", "throughput_input"))
    return SPREADS["first_token" if first else "rate"]


def _measured(row: Mapping[str, str]) -> float | None:
    try:
        value = float((row.get("value") or row.get("latency_ms") or "").replace(",", ""))
    except ValueError:
        return None
    return value if value > 0 and math.isfinite(value) else None


def anchor_shifts(rows: Sequence[Mapping[str, str]], answers: Sequence[Prediction]) -> dict[tuple[str, ...], Shift]:
    """Shrunk mean log residual of each group: sum of log(measured / predicted) / (n + variance within / between)."""
    found: dict[tuple[str, ...], list[float]] = {}
    shrink: dict[tuple[str, ...], float] = {}
    for row, answer in zip(rows, answers, strict=True):
        value = _measured(row)
        if value is not None and answer.predicted:
            key, residual = anchor_key(row), math.log(value / answer.predicted)
            found.setdefault(key, []).append(max(-MOST_SHIFT, min(MOST_SHIFT, residual)))
            shrink[key] = max(shrink.get(key, 0.0), spread_of(row).shrink)
    return {key: Shift(sum(r) / (len(r) + shrink[key]), len(r)) for key, r in found.items()}


def shifted(row: Mapping[str, str], answer: Prediction, shifts: Mapping[tuple[str, ...], Shift]) -> Prediction:
    """The answer at the anchored level, in class `measured_nearby`; unchanged without a like anchor.

    The band narrows to the spread within a group, widened for a level learnt from few rows; that of a kernel keeps its
    width, since its errors follow its dimensions more than its level.
    """
    shift = shifts.get(anchor_key(row))
    if shift is None or answer.predicted is None or answer.limited_by is None:
        return answer
    assert answer.low is not None and answer.high is not None
    low, high = answer.low / answer.predicted, answer.high / answer.predicted
    spread = spread_of(row)
    if spread is not SPREADS["kernel"]:
        width = spread.half_width(shift.rows)
        low, high = max(math.exp(-width), min(low, 1.0)), min(math.exp(width), max(high, 1.0))
    value = answer.predicted * math.exp(shift.log_factor)
    return replace(answer, predicted=value, low=value * low, high=value * high, confidence="measured_nearby")
