"""Layouts: the smallest that fits, the fastest for a cluster, and how speed scales with the number of accelerators."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from econ.performance.hardware import Hardware
from econ.performance.training import StepTime, step_time
from econ.performance.training_memory import TrainingMemoryError, fits, memory_on, usable_bytes
from econ.performance.training_model import TrainingModel
from econ.performance.training_parameters import TrainingConstants
from econ.performance.training_setup import TrainingSetup

__all__ = [
    "ScalingPoint",
    "best_layout",
    "candidate_layouts",
    "scaling_curve",
    "smallest_cluster",
    "with_fitting_recompute",
]

#: State recipe that a search assumes (16 bytes a parameter: FP32 master weights and moments).
SEARCH_RECIPE = "adam_mixed"
MAX_TP, MAX_PP, MAX_CP = 16, 64, 8


def with_fitting_recompute(model: TrainingModel, hw: Hardware, setup: TrainingSetup) -> TrainingSetup:
    """The set-up with the lightest recompute that fits: none, scores only (unfused attention), else a share of the
    layers.

    Where even full recompute does not fit the result is full recompute of all layers, and the caller judges the fit.
    """
    modes = ("none",) if setup.fused_attention else ("none", "selective")
    trials = [replace(setup, recompute=mode) for mode in modes]
    trials += [replace(setup, recompute="full", recompute_share=k / 8) for k in range(1, 8)]
    for trial in trials:
        if fits(model, hw, trial, SEARCH_RECIPE):
            return trial
    return replace(setup, recompute="full", recompute_share=1.0)


def _divisors(n: int, most: int) -> list[int]:
    return [k for k in range(1, min(n, most) + 1) if n % k == 0]


def candidate_layouts(model: TrainingModel, hw: Hardware, base: TrainingSetup) -> Iterator[TrainingSetup]:
    """Layouts worth trying: tensor parallelism inside a domain by powers of two, stages that divide the layers
    closely."""
    n = base.accelerators
    tensor = [
        t for t in (1, 2, 4, 8, 16) if t <= min(MAX_TP, hw.domain_size if hw.domain_size > 1 else 8) and n % t == 0
    ]
    contexts = [1] if base.sequence <= 4096 else [c for c in (1, 2, 4, 8) if c <= MAX_CP]
    for tp in tensor:
        if model.n_heads % tp:
            continue
        for cp in contexts:
            if n % (tp * cp):
                continue
            stages = 1 if hw.vendor == "google" else min(MAX_PP, model.layers)  # TPU stacks shard weights instead
            for pp in _divisors(n // (tp * cp), stages):
                dp = n // (tp * cp * pp)
                if dp > base.global_batch or (pp > 1 and model.layers / pp < 1):
                    continue
                yield from _variants(model, base, tp, pp, cp, dp)


def _variants(model: TrainingModel, base: TrainingSetup, tp: int, pp: int, cp: int, dp: int) -> Iterator[TrainingSetup]:
    rank_batch = base.global_batch / dp
    virtual = 1
    if pp > 1:
        per_stage = model.layers // pp
        virtual = next((v for v in (per_stage, 8, 5, 4, 3, 2) if 1 < v <= per_stage and per_stage % v == 0), 1)
    expert = 1
    if model.n_experts:
        expert = math.gcd(model.n_experts, tp * cp * dp)
        expert = min(expert, 64)
    for micro in (1.0, 2.0, 4.0):
        if micro > rank_batch or (micro > 1 and micro * base.sequence / cp > 16384):
            continue
        for sharding in ("zero1", "zero3") if pp == 1 and dp * cp > 1 else ("zero1",):
            yield replace(
                base,
                tp=tp,
                pp=pp,
                cp=cp,
                ep=expert,
                virtual=virtual,
                schedule="interleaved" if virtual > 1 else "1f1b",
                micro_batch=micro,
                sharding=sharding,
            )


def best_layout(
    model: TrainingModel,
    hw: Hardware,
    base: TrainingSetup,
    recompute: str | None = None,
    constants: TrainingConstants | None = None,
    dp: int | None = None,
) -> TrainingSetup:
    """The fastest layout that fits memory, for the accelerators, sequence and global batch of `base`.

    Raises:
        TrainingMemoryError: when no layout fits; the message names the nearest one and its shortfall.
    """
    best: tuple[float, TrainingSetup] | None = None
    nearest = math.inf
    for trial in candidate_layouts(model, hw, base):
        if dp is not None and trial.dp != dp:
            continue
        setup = replace(trial, recompute=recompute) if recompute else with_fitting_recompute(model, hw, trial)
        need = memory_on(model, hw, setup, SEARCH_RECIPE).total_bytes
        nearest = min(nearest, need)
        if need > usable_bytes(hw):
            continue
        time = step_time(model, hw, setup, constants).total_s
        if best is None or time < best[0]:
            best = (time, setup)
    if best is None:
        raise TrainingMemoryError(_no_layout(model, hw, base, nearest))
    return best[1]


def _no_layout(model: TrainingModel, hw: Hardware, base: TrainingSetup, nearest: float) -> str:
    where = f"no layout of {model.name} on {base.accelerators} x {hw.name}"
    if not math.isfinite(nearest):
        return f"{where} divides them and a global batch of {base.global_batch:g}: change either"
    return (
        f"{where} fits: the leanest needs {nearest / 1e9:,.1f} GB on each, {usable_bytes(hw) / 1e9:,.1f} GB are usable,"
        f" short by {(nearest - usable_bytes(hw)) / 1e9:,.1f} GB; add accelerators or lower the sequence"
    )


def smallest_cluster(
    model: TrainingModel, hw: Hardware, base: TrainingSetup, most: int = 65_536
) -> tuple[int, TrainingSetup]:
    """Fewest accelerators (whole domains of up to eight, doubling) on which some layout fits, and its fastest layout.

    Raises:
        TrainingMemoryError: when even `most` accelerators hold no layout.
    """
    node = max(1, min(8, hw.domain_size)) if hw.domain_size > 1 else 8
    count = node
    while count <= most:
        trial = replace(base, accelerators=count, tp=1, pp=1, cp=1, ep=1, global_batch=max(base.global_batch, count))
        try:
            return count, best_layout(model, hw, trial)
        except TrainingMemoryError:
            count *= 2
    raise TrainingMemoryError(f"{model.name} does not fit {most} x {hw.name} under any layout tried")


@dataclass(frozen=True)
class ScalingPoint:
    """Speed of one cluster size: tokens/s of the whole job and how much of linear scaling is left."""

    accelerators: int
    setup: TrainingSetup
    step: StepTime
    tokens_per_s: float
    efficiency: float


def scaling_curve(
    model: TrainingModel,
    hw: Hardware,
    base: TrainingSetup,
    counts: Sequence[int],
    global_batch_limit: float | None = None,
) -> list[ScalingPoint]:
    """Fastest layout at each cluster size; the global batch grows with the cluster up to a limit, then stays.

    `base.global_batch` belongs to `base.accelerators`. Efficiency is tokens/s an accelerator over that of the first
    point.

    Raises:
        TrainingMemoryError: when a size holds no layout.
    """
    points: list[ScalingPoint] = []
    for count in counts:
        batch = base.global_batch * count / base.accelerators
        if global_batch_limit is not None:
            batch = min(batch, global_batch_limit)
        trial = replace(base, accelerators=count, tp=1, pp=1, cp=1, ep=1, global_batch=max(1.0, round(batch)))
        setup = best_layout(model, hw, trial)
        step = step_time(model, hw, setup)
        rate = setup.tokens_per_step / step.total_s
        first = points[0].tokens_per_s / points[0].accelerators if points else rate / count
        points.append(ScalingPoint(count, setup, step, rate, rate / count / first))
    return points
