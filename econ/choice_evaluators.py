"""What the engines say of a candidate: serving points for inference, the fastest fitting layout for a training run."""

from __future__ import annotations

from typing import Any

from econ.hardware_choice import Estimate
from econ.token_cost import Engine, NoFitError, cheapest_point, default_engine
from econ.tokens import TokenCostError
from econ.workload_card import Candidate, ChoiceError, WorkloadCard

__all__ = ["engine_evaluator", "serving_estimate"]


def engine_evaluator(card: WorkloadCard, candidate: Candidate) -> Estimate:
    """The estimate by the engine that the job needs."""
    if card.job == "training":
        return training_estimate(card, candidate)
    return serving_estimate(card, candidate)


def serving_estimate(card: WorkloadCard, candidate: Candidate, engine: Engine | None = None) -> Estimate:
    """Smallest group that holds the model, and the best request rate per accelerator within the card's targets."""
    from econ.performance.hardware import hardware

    if card.workload is None:
        raise ChoiceError(f"card {card.name!r} has no request lengths")
    source = engine or default_engine()
    try:
        points = list(source.points(card.model, candidate.hardware, card.workload, **candidate.setup))
    except NoFitError as problem:
        return Estimate(False, 0, memory_note=str(problem))
    group = min(p.accelerators for p in points)
    domain = hardware(candidate.hardware).domain_size
    crosses = group > max(domain, 1)
    link = (
        f"{group} accelerators hold the model, {domain} share the fast link of {candidate.hardware}" if crosses else ""
    )
    try:
        best = cheapest_point(points, card.workload)
    except TokenCostError as problem:
        return Estimate(True, group, crosses_link=crosses, link_note=link, miss=str(problem))
    rate, output = best.requests_per_s_per_accelerator, best.output
    return Estimate(
        True,
        best.accelerators,
        crosses_link=crosses,
        link_note=link,
        results_per_s=rate,
        low=rate * output.low / output.predicted,
        high=rate * output.high / output.predicted,
        confidence=output.confidence,
        limited_by=output.limited_by,
    )


def training_estimate(card: WorkloadCard, candidate: Candidate) -> Estimate:
    """Runs per second and accelerator of the whole training run, by the fastest layout that fits.

    `card.training` holds `tokens`, and options of the training set-up (accelerators, sequence, global_batch,
    number_format); `goodput` is the useful share of wall time (default: the candidate's healthy share alone).
    """
    from econ.performance.hardware import hardware
    from econ.performance.training import step_time
    from econ.performance.training_layout import best_layout
    from econ.performance.training_memory import TrainingMemoryError
    from econ.performance.training_model import training_model
    from econ.performance.training_setup import TrainingSetup

    options: dict[str, Any] = {**card.training, **candidate.setup}
    tokens = float(options.pop("tokens"))
    goodput = float(options.pop("goodput", 1.0))
    error = float(options.pop("engine_error", 0.0))
    for name in ("accelerators", "sequence"):
        options[name] = int(options[name])
    model, part = training_model(card.model), hardware(candidate.hardware)
    base = TrainingSetup(**options)
    try:
        setup = best_layout(model, part, base)
    except TrainingMemoryError as problem:
        return Estimate(False, base.accelerators, memory_note=str(problem))
    step = step_time(model, part, setup)
    crosses = setup.tp > max(part.domain_size, 1)
    seconds = tokens / setup.tokens_per_step * step.total_s / goodput
    rate = 1 / (seconds * base.accelerators)
    return Estimate(
        True,
        base.accelerators,
        crosses_link=crosses,
        link_note=f"tensor parallelism over {setup.tp}, fast link over {part.domain_size}" if crosses else "",
        results_per_s=rate,
        low=rate / (1 + error),
        high=rate * (1 + error),
        confidence="first_principles",
        limited_by=step.limited_by,
    )
