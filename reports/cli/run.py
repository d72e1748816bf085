"""`wafer2token run` and `wafer2token check`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.cli.exits import UsageError, print_json

if TYPE_CHECKING:
    from scenarios.load import Scenario
    from scenarios.runs import Run

__all__ = ["check_verb", "new_verb", "parse_sets", "run_verb"]


def parse_sets(texts: Sequence[str]) -> list[tuple[str, Any]]:
    """`PATH=VALUE` texts as (path, value); the value is read as YAML, so `{scale: 0.8}` is an edit.

    >>> parse_sets(["resources.power_us.capacity={scale: 0.8}", "discount_rate=0.08"])
    [('resources.power_us.capacity', {'scale': 0.8}), ('discount_rate', 0.08)]

    Raises:
        UsageError: for a text without `=` or with a value that is not YAML.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    out = []
    for text in texts:
        path, equals, value = text.partition("=")
        if not equals or not path.strip():
            raise UsageError(f"--set {text!r}: write PATH=VALUE, e.g. resources.power_us.capacity={{scale: 0.8}}")
        try:
            out.append((path.strip(), YAML(typ="safe", pure=True).load(value)))
        except YAMLError as exc:
            raise UsageError(f"--set {text!r}: the value is not YAML: {exc}") from exc
    return out


def read_scenario(name: str, sets: Sequence[tuple[str, Any]]) -> Scenario:
    """A library scenario, a YAML file, or the edited workbook of a report."""
    if name.lower().endswith(".xlsx"):
        from reports.workbook_read import load_workbook_scenario

        return load_workbook_scenario(name, sets)
    from scenarios.load import load_scenario

    return load_scenario(name, sets)


def run_verb(scenario: str, sets: Sequence[str], out: Path | None, report: Path | None, as_json: bool) -> None:
    """Solve, cost and store; print the answer, or the JSON object."""
    from scenarios.runner import run

    done = run(read_scenario(scenario, parse_sets(sets)), (), out, study=report is not None, progress=_say)
    if as_json:
        print_json(done.json())
    else:
        print_answer(done)
    if report is not None:
        from reports.market_report import write_report

        path = write_report([done], report, progress=_say)
        print(f"report: {path}", file=sys.stderr if as_json else sys.stdout)


def check_verb(scenario: str, sets: Sequence[str], outputs: bool, as_json: bool) -> None:
    """Print every problem of a scenario, or say that there is none."""
    from scenarios.resolve import resolve

    resolved = resolve(read_scenario(scenario, parse_sets(sets)))
    names = []
    if outputs:
        from scenarios.study import list_outputs

        names = list_outputs(resolved.scenario)
    if as_json:
        print_json(
            {"scenario": resolved.scenario.name, "problems": [], "warnings": resolved.warnings, "outputs": names}
        )
        return
    for warning in resolved.warnings:
        print(f"warning: {warning}")
    network = resolved.network
    print(
        f"{resolved.scenario.name}: no problem; {len(network.processes)} processes, {len(network.resources)} limits, "
        f"{len(network.fleet)} accelerators, {network.horizon.periods} periods and a tail of {network.horizon.tail}"
    )
    for name in names:
        print(name)


def new_verb(folder: Path, as_json: bool) -> None:
    """Write the starter project and name its files."""
    from scenarios.template import new_project

    made = new_project(folder)
    if as_json:
        print_json({"files": [str(path) for path in made]})
    else:
        for path in made:
            print(path)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def print_answer(run: Run) -> None:
    """The five-line answer within 80 columns, and where the run is."""
    from reports.answer_text import terminal_lines

    for line in terminal_lines(run):
        print(line)
    if run.folder is not None:
        print(f"run: {run.folder}")
