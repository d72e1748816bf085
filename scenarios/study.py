"""Preparing a study of a scenario: resolved, solved once, costed, ready to draw."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scenarios.costing import CostModel, build_cost_model, fill_cost_tables, no_costs
from scenarios.evaluators import Study, Worker
from scenarios.load import Scenario, load_scenario
from scenarios.resolve import Resolved, resolve
from scenarios.results import price_arrays
from scenarios.runner import solve, workloads_and_tasks

__all__ = ["default_outputs", "list_outputs", "prepare"]


def prepare(
    scenario: str | Path | Scenario,
    sets: Sequence[tuple[str, Any]] = (),
    outputs: Sequence[str] | None = None,
    costs: bool = True,
) -> tuple[Resolved, CostModel, Worker]:
    """Load, resolve, solve and cost a scenario; the worker is ready for draws of `outputs` (default: everything).

    `costs` False leaves out hours, tokens and tasks. Draws are made with foresight: a rolling scenario is solved as
    if its disruptions were known.

    Raises:
        ScenarioError: wrong scenario or unknown output.
        InfeasibleError: when the nominal case has no optimum.
    """
    loaded = scenario if isinstance(scenario, Scenario) else load_scenario(scenario, sets)
    resolved = resolve(loaded)
    solution = solve(resolved)
    model = build_cost_model(resolved, solution) if costs else no_costs()
    if model.rows:
        price, lasting = price_arrays(solution)
        fill_cost_tables(model, model.rents(lasting, price), *workloads_and_tasks(loaded))
    worker = Worker(Study.of(resolved, model, None if outputs is None else list(outputs)))
    return resolved, model, worker


def default_outputs(resolved: Resolved) -> list[str]:
    """The outputs a scenario names; else finished or energised accelerators and the objective of its last year."""
    named = list(resolved.scenario.file.outputs)
    if named:
        return named
    year = resolved.horizon.labels()[resolved.horizon.periods - 1][:4]
    kind = "energised" if resolved.network.fleet else "finished"
    return [f"{kind}:*@{year}", "objective"]


def list_outputs(scenario: str | Path | Scenario, sets: Sequence[tuple[str, Any]] = ()) -> list[str]:
    """Names of every output of a scenario, one per quantity, subject and period.

    >>> list_outputs("course_11_1")[:2]
    ['objective', 'finished:accelerator@2026-Q1']
    """
    _, _, worker = prepare(scenario, sets)
    return list(worker.extractor.names)
