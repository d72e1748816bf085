"""The main job: a scenario to a run, with its folder."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.errors import InfeasibleError
from scenarios.load import Scenario, load_scenario
from scenarios.resolve import Resolved, check, resolve
from scenarios.run_store import (
    content_hash,
    facts_digest,
    find_complete,
    make_parent,
    program_digest,
    write_folder,
    write_table,
)
from scenarios.runs import Run

if TYPE_CHECKING:
    from scenarios.costing import CostModel
    from supply.bottleneck import BottleneckReport
    from supply.optimizer.solution import Solution

__all__ = ["Run", "check", "run", "run_hash", "solve"]

Progress = Callable[[str], None]


def run_hash(scenario: Scenario, options: dict[str, Any] | None = None) -> str:
    """SHA-256 of what decides a run: the scenario without file names, options, the facts and the program.

    The option `study` is left out: it adds tables to a run and changes none of its numbers.
    """
    decides = {key: value for key, value in (options or {}).items() if key != "study"}
    return content_hash(scenario.canonical(), decides, facts_digest(), program_digest())


def run(
    scenario: str | Path | Scenario,
    sets: Sequence[tuple[str, Any]] = (),
    out: str | Path | None = None,
    *,
    prices: bool = True,
    costs: bool = True,
    study: bool = False,
    progress: Progress | None = None,
) -> Run:
    """Solve a scenario, price its limits, cost its hours, tokens and tasks; store the run below `out` when given.

    A finished run of the same content below `out` is opened instead of computed again. `prices` False leaves out the
    bottleneck report (finite differences), `costs` False the econ tables; both are meant for previews.
    `study` adds the tables that a market report needs (see `scenarios.report_tables`): the same hash, in a folder with
    `-study` at the end of its name.

    >>> run("course_11_1").json()["periods"][0]["finished"]
    {'accelerator': 10000.0}

    Raises:
        ScenarioError: when the scenario is wrong (exit code 3).
        InfeasibleError: when no plan exists or the objective has no bound (exit code 4).
    """
    say = progress or (lambda text: None)
    loaded = scenario if isinstance(scenario, Scenario) else load_scenario(scenario, sets)
    options = {"prices": prices, "costs": costs} | ({"study": True} if study else {})
    digest = run_hash(loaded, options)
    name = f"{loaded.name}-{digest[:12]}" + ("-study" if study else "")
    if out is not None and (done := find_complete(Path(out), name)) is not None:
        say(f"the run is there already: {done}")
        return Run.open(done)
    say("reading inputs")
    resolved = resolve(loaded)
    if out is not None:
        make_parent(Path(out))
    say("solving the optimum")
    solution = solve(resolved)
    finished = _finish(resolved, solution, name, digest, options, say)
    return finished if out is None else _store(finished, Path(out))


def solve(resolved: Resolved) -> Solution:
    """The optimum of a resolved scenario in its regime.

    Raises:
        InfeasibleError: infeasible or unbounded, with the least relaxation in words.
    """
    from supply.optimizer.compiled import Compiled
    from supply.optimizer.errors import SolveError

    try:
        if resolved.network.regime.kind == "rolling":
            from supply.optimizer.rolling import solve_rolling

            rolled: Solution = solve_rolling(resolved.network)
            return rolled
        return Compiled(resolved.network).solve(tidy=True)
    except SolveError as exc:
        raise InfeasibleError(f"{resolved.scenario.name}: {exc}") from exc


def _finish(
    resolved: Resolved, solution: Solution, name: str, digest: str, options: dict[str, Any], say: Progress
) -> Run:
    import pandas as pd

    from scenarios.answer import make_answer
    from scenarios.manifest import fact_sources, make_manifest
    from scenarios.report_tables import always, facts_of, studies
    from scenarios.results import CHECK_COLUMNS, check_rows, result_rows, results_frame

    with _quick_turns(), ThreadPoolExecutor(1) as other:
        pricing = other.submit(_report, solution) if options["prices"] else None
        say("pricing the limits, costing hours, tokens and tasks" if pricing else "costing hours, tokens and tasks")
        model, rents = _costs(resolved, solution, options["costs"])
        report = pricing.result() if pricing else None
    answer = make_answer(resolved, solution, report, model, name, digest)
    rows = result_rows(resolved, solution, report, model, rents)
    tables = {
        "results": results_frame(rows, name, resolved.scenario.name),
        "inputs": resolved.inputs(),
        "checks": pd.DataFrame(check_rows(resolved, solution, report, model), columns=list(CHECK_COLUMNS)),
    }
    evidence = {"status": answer["status"], **answer["evidence"]}
    manifest = make_manifest(resolved, name, digest, options, evidence, model.sources)
    tables |= always(resolved, solution, model)
    if options.get("study"):
        found = studies(resolved, solution, model, rents, manifest["as_of"], say, answer)
        manifest["facts"] |= fact_sources(facts_of(found), resolved.scenario.facts)
        tables |= found
    return Run(manifest, answer, None, tables, solution, resolved)


@contextmanager
def _quick_turns() -> Iterator[None]:
    """Threads hand over within half a millisecond: at Python's 5 ms the solver would wait longer than it solves."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-4)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _report(solution: Solution) -> BottleneckReport:
    """Prices with their check by re-solving; the solver works outside Python, so costing goes on beside it."""
    from supply.bottleneck import report

    return report(solution)


def _costs(resolved: Resolved, solution: Solution, wanted: bool) -> tuple[CostModel, Any]:
    import numpy as np

    from scenarios.costing import build_cost_model, fill_cost_tables, no_costs
    from scenarios.results import price_arrays

    if not wanted:
        return no_costs(), np.zeros(0)
    model = build_cost_model(resolved, solution)
    if not model.rows:
        return model, np.zeros(0)
    price, lasting = price_arrays(solution)
    rents = model.rents(lasting, price)
    fill_cost_tables(model, rents, *workloads_and_tasks(resolved.scenario))
    return model, rents


def workloads_and_tasks(scenario: Scenario) -> tuple[list[Any], list[str]]:
    """Names of the models and tasks that a scenario costs; the shipped ones where it names none."""
    from econ.chain import MODEL_CHOICES

    named = scenario.file.workloads or tuple(MODEL_CHOICES)
    tasks = scenario.file.tasks or ("chat", "research", "coding", "browser")
    return [w for w in named if isinstance(w, str)], [t for t in tasks if isinstance(t, str)]


def _store(run_: Run, parent: Path) -> Run:
    def fill(folder: Path) -> None:
        for table, frame in run_.tables.items():
            write_table(frame, folder / f"{table}.parquet")
        (folder / "answer.json").write_text(json.dumps(run_.answer, indent=1) + "\n", encoding="utf-8")
        assert run_.resolved is not None
        (folder / "scenario.yaml").write_text(resolved_yaml(run_.resolved), encoding="utf-8")

    run_.folder = write_folder(parent, run_.id, run_.manifest, fill)
    return run_


def resolved_yaml(resolved: Resolved) -> str:
    """The scenario with its parents merged and the edits in their order, as a file that runs on its own."""
    from ruamel.yaml import YAML

    scenario = resolved.scenario
    content = dict(scenario.data)
    edits = scenario.effective_edits()
    if edits:
        once = len({pattern for pattern, _ in edits}) == len(edits)
        content["set"] = dict(edits) if once else [{pattern: raw} for pattern, raw in edits]
    text = io.StringIO()
    yaml = YAML()
    yaml.width = 140
    yaml.default_flow_style = None
    yaml.dump(content, text)
    return text.getvalue()
