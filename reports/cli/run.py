"""`wafer2token run` and `wafer2token check`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.cli.exits import print_json
from reports.cli.sets import parse_sets
from reports.cli.terminal import amount, head, line, say, sparkline, table, whole, width
from reports.wording import stage_title

if TYPE_CHECKING:
    from reports.context import Context
    from scenarios.load import Scenario
    from scenarios.resolve import Resolved
    from scenarios.runs import Run

__all__ = ["check_verb", "new_verb", "run_verb"]

#: A limit below this use is priced through contracts on shares of it.
SLACK = 0.999


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

    done = run(read_scenario(scenario, parse_sets(sets)), (), out, study=report is not None, progress=say)
    if as_json:
        print_json(done.json())
    else:
        print_answer(done)
        for words in [*not_made(done), *not_costed(done)]:
            say(f"warning: {words}")
    if report is not None:
        from reports.market_report import write_report

        path = write_report([done], report, progress=say)
        print(f"report: {path}", file=sys.stderr if as_json else sys.stdout)


def not_costed(run: Run) -> list[str]:
    """One line for each accelerator without an hour or without tokens of a model, with the first reason."""
    names = run.table("names")
    skus = names[names["kind"] == "sku"]
    titles = dict(zip(skus["id"], skus["title"], strict=True))
    lines: dict[tuple[str, bool], str] = {}
    for p in run.answer["problems"]:
        what = "no cost of its tokens and tasks" if "model" in p else "no cost of its hours, tokens and tasks"
        lines.setdefault((p["sku"], "model" in p), f"{titles[p['sku']]} ({p['sku']}): {what}: {p['reason']}")
    return list(lines.values())


def not_made(run: Run) -> list[str]:
    """One line for each accelerator with makers that is neither made nor run in the reported periods."""
    amounts = run.results[run.results["quantity"].isin(("finished", "fleet"))]
    largest = amounts.groupby("subject")["value"].max()
    names = run.table("names")
    skus = names[names["kind"] == "sku"]
    return [
        f"{title} ({sku}) is never made: with the limits that bind, an hour of others earns more"
        for sku, title in zip(skus["id"], skus["title"], strict=True)
        if largest.get(sku, 0.0) < 1.0
    ]


def check_verb(scenario: str, sets: Sequence[str], outputs: bool, scaling: bool, as_json: bool) -> None:
    """Print every problem of a scenario, or say that there is none."""
    from scenarios.resolve import resolve

    resolved = resolve(read_scenario(scenario, parse_sets(sets)))
    sizes = _sizes(resolved) if scaling else []
    names = []
    if outputs:
        from scenarios.study import list_outputs

        names = list_outputs(resolved.scenario)
    if as_json:
        told = {"scenario": resolved.scenario.name, "problems": [], "warnings": resolved.warnings, "outputs": names}
        print_json(told | ({"scaling": sizes} if scaling else {}))
        return
    for warning in resolved.warnings:
        line(f"warning: {warning}")
    network = resolved.network
    labels = network.horizon.labels()[: network.horizon.periods]
    line(
        f"{resolved.scenario.name}: no problem; {len(network.processes)} processes, {len(network.resources)} limits, "
        f"{len(network.fleet)} accelerators, {labels[0]} to {labels[-1]} ({len(labels)} periods) and a tail of "
        f"{network.horizon.tail}"
    )
    if sizes:
        _print_sizes(sizes)
    for name in names:
        print(name)
    if not names:
        whole(f"Next: wafer2token run {scenario}")


def _sizes(resolved: Resolved) -> list[dict[str, Any]]:
    from supply.optimizer.compiled import Compiled
    from supply.optimizer.scaling import scaling_report

    return [asdict(r) | {"apart": r.apart, "wide": r.wide} for r in scaling_report(Compiled(resolved.network))]


def _print_sizes(sizes: list[dict[str, Any]]) -> None:
    """How far apart the numbers of the programme are, and where the ends stand."""
    rows = [[r["part"], str(r["numbers"]), *(f"{r[k]:.2g}" for k in ("smallest", "largest", "apart"))] for r in sizes]
    head("Sizes of the numbers as they are solved, in model units")
    table(["part", "numbers", "smallest", "largest", "apart"], rows)
    for r in sizes:
        line(f"{r['part']}: smallest {r['smallest_at']}; largest {r['largest_at']}", indent=2)
    wide = [r["part"] for r in sizes if r["wide"]]
    line(f"More than 1e9 apart: {', '.join(wide)}; prices of the smallest rest on few digits, use other units."
         if wide else "All within a factor of 1e9: double precision tells them apart.")  # fmt: skip


def new_verb(folder: Path, as_json: bool) -> None:
    """Write the starter project and name its files."""
    from scenarios.template import new_project

    made = new_project(folder)
    if as_json:
        print_json({"files": [str(path) for path in made]})
    else:
        for path in made:
            print(path)
        starter = next((path for path in made if path.suffix == ".yaml"), folder)
        whole(f"Next: wafer2token run {starter}")


def print_answer(run: Run) -> None:
    """The answer in five sentences, how full each stage is, the limits of now, and where the run is."""
    from reports.answer_text import terminal_lines
    from reports.context import Context

    for text in terminal_lines(run, width()):
        line(text, hang=0) if not text.startswith(" ") else line(text.strip(), indent=2, hang=0)
    context = Context(run)
    _print_use(context)
    _print_limits(context)
    line()
    if run.folder is not None:
        whole(f"run: {run.folder}")
        whole(f"Next: wafer2token report {run.folder} --format html,pdf,xlsx")
    else:
        line("Not stored: --out DIR keeps the run for report, view and compare.")


def _print_use(c: Context) -> None:
    """Use of the fullest limit of each stage over time."""
    use = c.quantity("utilisation")
    if use.empty:
        return
    grid = use.groupby(["stage", "period"], sort=False)["value"].max().unstack("stage").reindex(c.periods)
    if len(c.periods) == 1:
        shares = ", ".join(f"{stage_title(str(s))} {100 * grid[s].iloc[0]:.0f} %" for s in grid)
        line(f"Use in {c.now}: {shares}.")
        return
    head(f"Use of the fullest limit of each stage, {c.periods[0]} to {c.periods[-1]}, 0 to 100 %")
    rows = []
    for stage in grid:
        values = [float(v) for v in grid[stage]]
        last = c.periods.index(c.now)
        shown = "-" if values[last] != values[last] else f"{100 * values[last]:.0f} %"
        rows.append([stage_title(str(stage)), sparkline(values, width() - 40), shown])
    table(["stage", "use over time", c.now], rows, words=2)


def _print_limits(c: Context) -> None:
    """What one more of each limit that binds now is worth, for the period only and for good."""
    rows = []
    for b in c.bindings(c.now):
        price, gain = b["price"], (b["plus_1_percent"] or {}).get("energised" if c.has_fleet else "finished")
        unit = str(price["unit"]).partition("/")[2]
        worth = [amount(price["native"]), amount(price["lasting"])]
        rows.append([f"{b['title']} [{unit}]", f"{100 * b['utilisation']:.0f} %", *worth, amount(gain)])
    if not rows:
        return
    what = "energised" if c.has_fleet else "finished"
    money = "USD" if c.has_money else str(c.bindings(c.now)[0]["price"]["unit"]).partition("/")[0]
    head(f"Limits with a price in {c.now}, {money} for one more unit")
    table(["limit", "use", "period only", "lasting", f"1 % more: {what}"], rows)
    line("period only: one more unit in this period alone; lasting: from then on to the end of the model. "
         f"1 % more: accelerators {what} over the whole horizon when the plan is solved again with 1 % more of the "
         "limit in this period; it may be 0 or negative where products change places.")  # fmt: skip
    if any(b["price"]["native"] == 0 for b in c.bindings(c.now)):
        line("A price of 0 for the period only: the limit is full, but one more unit in it alone gains nothing.")
    if any(b["utilisation"] < SLACK for b in c.bindings(c.now)):
        line("Use below 100 %: what binds are the shares that contracts give of the limit.")
