"""Rows of the training format answered: a value, a 90 % band, a confidence class, what limits, or the reason why
not."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from econ.performance.hardware import Hardware
from econ.performance.prediction import Confidence, Limit, Prediction
from econ.performance.training import step_time
from econ.performance.training_memory import GIB, TrainingMemoryError, memory_on, state_fits
from econ.performance.training_metrics import memory_value, metric_from_step, unit_of_row
from econ.performance.training_model import TrainingModel
from econ.performance.training_parameters import family_of
from econ.performance.training_rows import MEMORY_METRICS, TrainingCase, training_case
from supply.paths import data_file

__all__ = ["predict_training_row", "predict_training_rows", "step_band"]

#: Band of a memory answer by whether recompute is stated (factors): allocators reserve up to a fifth more than tensors.
MEMORY_BAND = {True: (0.88, 1.2), False: (0.6, 1.6)}


@lru_cache(maxsize=1)
def _known() -> Mapping[str, Any]:
    with data_file("calibration", "parameters_training.json").open(encoding="utf-8") as handle:
        body: dict[str, Any] = json.load(handle)
    return body


def confidence_of(case: TrainingCase) -> Confidence:
    """How near the calibration runs are: this pair, this part, this family, or none."""
    return _confidence(case.model, case.hw)


def _confidence(model: TrainingModel, hw: Hardware) -> Confidence:
    known = _known()
    if f"{model.name}/{hw.name}" in known["pairs"]:
        return "measured_nearby"
    if hw.name in known["hardware"]:
        return "same_hardware"
    return "same_family" if family_of(hw) in known["families"] else "first_principles"


def step_band(model: TrainingModel, hw: Hardware) -> tuple[float, float]:
    """90 % factors on the step time of a searched layout, by how near calibration runs are.

    >>> from econ.performance.hardware import hardware
    >>> from econ.performance.training_model import training_model
    >>> low, high = step_band(training_model("Llama-3.1-70B"), hardware("H100"))
    >>> 0.7 < low < 1 < high < 1.5
    True
    """
    kind = f"{'expert' if model.moe_layers else 'dense'}_assumed"
    low, high = _known()["bands"][_confidence(model, hw)][kind]
    return low, high


def _refuse_misfit(case: TrainingCase) -> None:
    """Refuse a run whose weights, gradients and optimizer state alone exceed the memory.

    Raises:
        TrainingMemoryError: with the bytes and what to change.
    """
    if not state_fits(case.model, case.hw, case.setup):
        state, memory = memory_on(case.model, case.hw, case.setup).state_bytes, case.hw.memory_bytes
        raise TrainingMemoryError(
            f"{case.model.name} does not fit: weights, gradients and optimizer need {state / GIB:.1f} GiB of the "
            f"{memory / GIB:.1f} GiB of one {case.hw.name}; shard more (dp with zero3, tp, pp) or use more accelerators"
        )


def _speed(case: TrainingCase) -> Prediction:
    _refuse_misfit(case)
    step = step_time(case.model, case.hw, case.setup)
    confidence = confidence_of(case)
    known = _known()
    low, high = known["bands"][confidence][case.kind]
    value = metric_from_step(case, step.total_s * (known["unknown_setup_slowdown"] if case.unknown else 1.0))
    if case.metric != "step_time_s":
        low, high = 1 / high, 1 / low
    limit: Limit = step.limited_by  # type: ignore[assignment]
    answer = Prediction.within(value, min(low, 1.0), max(high, 1.0), confidence, limit)
    return _with_notes(answer, case)


def _with_notes(answer: Prediction, case: TrainingCase) -> Prediction:
    if not case.assumed or answer.predicted is None:
        return answer
    return replace(answer, reason="assumed: " + "; ".join(case.assumed))


def _memory(case: TrainingCase) -> Prediction:
    low, high = MEMORY_BAND[case.stated and not case.assumed]
    answer = Prediction.within(memory_value(case), low, high, confidence_of(case), "memory_capacity")
    return _with_notes(answer, case)


def predict_training_row(row: Mapping[str, str]) -> Prediction:
    """The answer to one row of the training format; never raises for the content of a row.

    >>> row = {"model": "MPT-7b", "hardware": "A100-40", "n_accelerators": "8", "seq": "2048", "global_batch": "384",
    ...        "micro_batch": "12", "precision": "bf16", "recompute": "full", "metric": "step_time_s", "dp": "8",
    ...        "conditions": "FSDP FULL_SHARD"}
    >>> 20 < predict_training_row(row).predicted < 32
    True
    >>> predict_training_row({"model": "MPT-7b", "metric": "energy"}).reason[:31]
    "metric 'energy' is not predicte"
    """
    try:
        case = training_case(row)
        factor = unit_of_row(case.metric, row.get("unit") or "")
        answer = _memory(case) if case.metric in MEMORY_METRICS else _speed(case)
    except (ValueError, OverflowError) as error:
        return Prediction.refused(str(error))
    if answer.predicted is None or not math.isfinite(answer.predicted) or answer.predicted <= 0:
        return Prediction.refused("no finite answer for this set-up")
    if case.metric == "mfu" and answer.predicted > 1:
        return Prediction.refused("the set-up contradicts itself: it would run above the dense peak")
    return answer.scaled(factor)


def predict_training_rows(rows: Sequence[Mapping[str, str]]) -> list[Prediction]:
    """Answers to rows of the training format, in order; each depends on its own row alone."""
    return [predict_training_row(row) for row in rows]
