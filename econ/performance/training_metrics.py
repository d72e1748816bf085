"""From a step time to the metric that a row asks for, and back: each metric by its own definition."""

from __future__ import annotations

from econ.performance.row_units import UnitError, unit_factor
from econ.performance.training import peak_flop_per_s, training_flops_per_token
from econ.performance.training_memory import GIB, memory_on
from econ.performance.training_rows import MEMORY_METRICS, TrainingCase

__all__ = ["memory_value", "metric_from_step", "step_from_metric", "unit_of_row"]


def _factor(case: TrainingCase) -> float:
    """What step time times metric equals: work of one step on one accelerator, in the metric's unit x seconds."""
    setup, metric = case.setup, case.metric
    tokens = setup.tokens_per_step / setup.accelerators
    if metric == "tokens_per_s_per_gpu":
        return tokens
    if metric == "samples_per_s_total":
        return setup.global_batch
    flops = tokens * training_flops_per_token(
        case.model, setup.sequence, case.attention, case.flop_params, setup.adapters_only
    )
    return flops / 1e12 if metric == "tflops_per_gpu" else flops / peak_flop_per_s(case.hw, setup.number_format)


def metric_from_step(case: TrainingCase, step_s: float) -> float:
    """The metric of a case for a step time in seconds: tokens/s, samples/s, TFLOP/s, MFU (dense peak) or the time
    itself."""
    return step_s if case.metric == "step_time_s" else _factor(case) / step_s


def step_from_metric(case: TrainingCase, value: float) -> float:
    """Step time in seconds that a measured metric stands for; the inverse of `metric_from_step`."""
    return value if case.metric == "step_time_s" else _factor(case) / value


def memory_value(case: TrainingCase) -> float:
    """The memory metric of a case in GiB: state without activations, activations, or the peak of everything."""
    if case.metric not in MEMORY_METRICS:
        raise ValueError(f"{case.metric!r} is not a memory metric ({', '.join(MEMORY_METRICS)})")
    recipe = "adam_mixed_fp32_grad" if case.setup.number_format == "fp16" else "adam_mixed"
    memory = memory_on(case.model, case.hw, case.setup, recipe)
    if case.metric == "params_and_optimizer_memory_gib":
        return memory.state_bytes / GIB
    if case.metric == "activation_memory_gib":
        return memory.activation_bytes / GIB
    return memory.reserved_bytes / GIB


_KINDS = {
    "step_time_s": "time",
    "tokens_per_s_per_gpu": "tokens",
    "tflops_per_gpu": "flops",
    "mfu": "share",
    "samples_per_s_total": "samples",
}


def unit_of_row(metric: str, unit: str) -> float:
    """Factor from a metric's own unit to that of a row.

    >>> unit_of_row("mfu", "percent"), unit_of_row("peak_memory_gib", "GiB per GPU"), unit_of_row("step_time_s", "ms")
    (100.0, 1.0, 1000.0)

    Raises:
        UnitError: when the unit does not suit the metric.
    """
    try:
        return unit_factor(unit, _KINDS.get(metric, "memory"))
    except UnitError as problem:
        raise UnitError(f"{metric}: {problem}") from problem
