"""From a model, a part, a number of accelerators and tokens to a priced run: layout, step, goodput, days, cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from econ.failures import fit_between_runs, published_runs
from econ.goodput import FailureModel, Goodput, best_interval, checkpoint_seconds, exact_goodput
from econ.performance.hardware import hardware
from econ.performance.training import StepTime, peak_flop_per_s, step_time, training_flops_per_token
from econ.performance.training_layout import best_layout
from econ.performance.training_memory import RECIPES
from econ.performance.training_model import training_model
from econ.performance.training_predict import step_band
from econ.performance.training_setup import TrainingSetup
from econ.training_run import RunCost, RunPlan, detailed_operations, run_cost, training_operations
from supply.facts import catalog

__all__ = ["Prices", "TrainingPlan", "plan_training"]

CHECKPOINT_BYTES_PER_PARAMETER = RECIPES["adam_mixed"].weight + RECIPES["adam_mixed"].optimizer


@dataclass(frozen=True)
class Prices:
    """Prices and power of a run: rent, purchase with server, peak server kW an accelerator, electricity, PUE."""

    usd_per_accelerator_hour: float
    usd_per_accelerator: float
    peak_server_kw: float
    usd_per_kwh: float
    pue: float


@dataclass(frozen=True)
class TrainingPlan:
    """A planned run: how it is laid out, how fast it is, what failures take, and what it costs."""

    setup: TrainingSetup
    step: StepTime
    step_band: tuple[float, float]
    mfu: float
    operations_6nd: float
    operations_detailed: float
    compute_days: float
    failures: float
    checkpoint_interval_s: float
    goodput: Goodput
    cost: RunCost


def plan_training(
    model: str,
    part: str,
    accelerators: int,
    tokens: float,
    sequence: int,
    global_batch: float,
    prices: Prices,
    number_format: str = "bf16",
    checkpoint_write_bytes_per_s: float = 1e12,
    blocking_share: float = 0.1,
) -> TrainingPlan:
    """Lay out, time and price a run with the fastest layout that fits.

    Failures come at the median rate of published runs; a checkpoint holds weights and optimizer state, of whose write
    time `blocking_share` stops the job. Dearer and longer ends of the run follow from the 90 % band of the step time.

    >>> prices = Prices(2.0, 40_000, 1.275, 0.08, 1.2)
    >>> plan = plan_training("Llama-3.1-405B", "H100", 16_384, 15.6e12, 8192, 2048, prices)
    >>> 0.3 < plan.mfu < 0.55 and 50 < plan.cost.elapsed_days < 120
    True

    Raises:
        ValueError: when no layout fits, or a name is unknown.
    """
    shape, hw = training_model(model), hardware(part)
    base = TrainingSetup(accelerators, sequence, global_batch, number_format=number_format)
    setup = best_layout(shape, hw, base)
    step = step_time(shape, hw, setup)
    band = step_band(shape, hw)
    days = tokens / setup.tokens_per_step * step.total_s / 86_400
    state = shape.total_params * CHECKPOINT_BYTES_PER_PARAMETER
    failures = _failures(accelerators, checkpoint_seconds(state, checkpoint_write_bytes_per_s), blocking_share)
    kept = exact_goodput(failures)
    flops = training_flops_per_token(shape, sequence, "causal")
    share = setup.tokens_per_step * flops / (step.total_s * accelerators * peak_flop_per_s(hw, number_format))
    six, counted = training_operations(shape.matmul_params, tokens), detailed_operations(shape, tokens, sequence)
    run = RunPlan(
        six,
        counted,
        accelerators,
        days,
        kept.useful,
        band,
        prices.usd_per_accelerator_hour,
        prices.usd_per_accelerator,
        prices.peak_server_kw,
        prices.usd_per_kwh,
        prices.pue,
    )
    expected = days / kept.useful * 86_400 / failures.mtbf_s
    if not math.isfinite(expected):
        raise ValueError(f"{model} on {accelerators} x {part}: no useful work is left under failures")
    return TrainingPlan(
        setup, step, band, share, six, counted, days, expected, failures.interval_s, kept, run_cost(run)
    )


def _failures(accelerators: int, write_s: float, blocking_share: float) -> FailureModel:
    """Failures at the median rate of published runs, checkpoints at the interval that keeps most of the time."""
    rate = fit_between_runs(published_runs()).estimate
    model = FailureModel(
        rate.hours_per_accelerator / accelerators * 3600,
        write_s * blocking_share,
        1.0,
        restart_s=catalog()["training_restart_time"].to("second"),
        durable_lag_s=write_s * (1 - blocking_share),
    )
    return replace(model, interval_s=best_interval(model))
