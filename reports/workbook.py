"""The workbook of a run: inputs to edit, results, live cost formulas that tie to the run, sources and checks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from reports.context import Context
from reports.workbook_inputs import INPUT_ROW
from supply.files import whole_file

if TYPE_CHECKING:
    from reports.market_report import Report
    from reports.workbook_costs import Tie
    from reports.workbook_style import Book, Sheet
    from scenarios.runs import Run

__all__ = ["write_workbook"]

#: Group, sheet, what it holds.
_SHEETS = (
    ("Presentation", "Summary", "the answer, totals by year and period, charts"),
    ("Foundation", "Inputs", "every number of the scenario; yellow cells are read back as a scenario"),
    ("Foundation", "Scenario", "the scenario file behind the inputs"),
    ("Presentation", "Results", "quantities by product, limit and period"),
    ("Presentation", "Prices", "what one more unit of each binding limit is worth"),
    ("Presentation", "Hours", "cost of an accelerator-hour by product and period"),
    ("Presentation", "Token costs", "cost of a million tokens by class"),
    ("Presentation", "Tasks", "cost of a verified task"),
    ("Workings", "Costs", "an owner's hour in live formulas"),
    ("Workings", "Power", "chip to planning watts, and the fleet's power, in live formulas"),
    ("Workings", "Tokens", "token classes in live formulas"),
    ("Presentation", "Uncertainty", "quantiles over stored draws, how often each stage binds"),
    ("Presentation", "Sensitivity", "which weak inputs move the headline, and which change what binds"),
    ("Presentation", "Backtest", "earlier forecasts beside outcomes; hits, their interval, the naive rival"),
    ("Presentation", "Report tables", "the other tables of the report"),
    ("Control", "Checks", "tolerances and TRUE or FALSE; the master check of every sheet"),
    ("Control", "Changes", "edits of this workbook and of the scenario, changes since the last edition"),
    ("Control", "Limits", "what the numbers do not say"),
    ("Control", "Sources", "every fact with source, date, kind and age"),
    ("Control", "Units", "what each unit means"),
)
_ABSENT = {
    "Prices": "no limit binds in a reported period",
    "Hours": "nothing is costed in this run",
    "Token costs": "no token is costed in this run",
    "Tasks": "no task is costed in this run",
    "Costs": "nothing is costed now, or the run is of a version that stored no cost inputs",
    "Power": "as Costs",
    "Tokens": "as Costs",
    "Uncertainty": "no stored draws were given (report RUN --sample FOLDER)",
    "Sensitivity": "the run holds no study of its weak inputs (run SCENARIO --report FOLDER)",
    "Backtest": "the run holds no scoreboard (run SCENARIO --report FOLDER)",
}
_LEGEND = (
    ("input", "input", "yellow: an input; on the Inputs sheet it is read back, elsewhere the formulas follow at once"),
    (
        "solver",
        "of the run",
        "hatched: a value of the run (solver, engine, study); typing over it breaks a tie in Checks",
    ),
    ("calc", "formula", "plain: a formula of this sheet"),
    ("link", "from", "blue: read from another sheet"),
    ("export", "to", "red: read by another sheet"),
    ("counter", "against the flow", "grey: reads a sheet that stands further right"),
    ("total", "total", "bold with a line above: a total"),
    ("warn", "mind", "rose: illustrative, edited, out of its range, a check that fails"),
)


def write_workbook(run: Run, path: str | Path, report: Report | None = None) -> Path:
    """Write the workbook of a finished run; returns its path.

    `report` is the market report of the run, whose words and tables are repeated; it is made where none is given.

    Raises:
        PlaceholderError: when an input of the run is a placeholder.
    """
    from reports.market_report import make_report
    from reports.workbook_style import Book

    held = report or make_report([run])
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    properties = {
        "title": held.title,
        "subject": held.subtitle,
        "comments": f"wafer2token run {run.id}, SHA-256 {run.hash}",
        "created": datetime.fromisoformat(run.manifest["created"]),  # not of this moment: one run, one file
    }
    with whole_file(target) as working, Book(working, properties) as book:
        _fill(book, Context(run), held)
    return target


def _fill(book: Book, c: Context, report: Report) -> None:
    from reports.workbook_control import changes_sheet, checks_sheet, limits_sheet, sources_sheet, units_sheet
    from reports.workbook_costs import Tie
    from reports.workbook_inputs import inputs_sheet, scenario_sheet, scenario_text
    from reports.workbook_results import hours_sheet, prices_sheet, results_sheet, tasks_sheet, token_costs_sheet
    from reports.workbook_studies import backtest_sheet, sensitivity_sheet, uncertainty_sheet
    from reports.workbook_summary import summary_sheet
    from reports.workbook_tables import tables_sheet

    cover = book.sheet("Cover", report.title, report.subtitle, "cover")
    contents = book.sheet("Contents", "Contents", "Sheets from left to right; each is linked.", "cover")
    book.sheet("Summary", "Summary", report.source_line, "cover")
    last_input = inputs_sheet(book, c)
    scenario_sheet(book, c, scenario_text(c.run))
    rows, last = results_sheet(book, c)
    summary_sheet(book, c, [(a.label, a.text) for a in report.answer], report.warnings, last)
    if c.answer["periods"] and any(p["binding"] for p in c.answer["periods"]):
        prices_sheet(book, c)
    hours_sheet(book, c)
    token_costs_sheet(book, c)
    tasks_sheet(book, c)
    inside = f"COUNTIF(Inputs!N{INPUT_ROW + 1}:N{last_input + 1},FALSE)"
    ties = [Tie("Inputs: rows with a value outside Low and High", inside, "0", 0.0, 0.0)]
    ties += _live_sheets(book, c, rows)
    uncertainty_sheet(book, c, report.sections)
    ties += [*sensitivity_sheet(book, c), *backtest_sheet(book, c)]
    tables_sheet(book, report.sections)
    passed = checks_sheet(book, c, ties)
    changes_sheet(book, c, report.sections, last_input)
    absent = [f"No sheet {name}: {why}." for name, why in _ABSENT.items() if name not in book.sheets]
    limits_sheet(book, c, report.sections, absent)
    sources_sheet(book, c)
    units_sheet(book, c)
    _cover(cover, c)
    _contents(contents)
    book.finish(passed)


def _live_sheets(book: Book, c: Context, rows: Mapping[tuple[str, str, str], int]) -> list[Tie]:
    """Costs, power and tokens as formulas; nothing where the run holds no inputs of costs."""
    from reports.workbook_costs import costs_sheet, owner_columns
    from reports.workbook_power import power_sheet
    from reports.workbook_tokens import tokens_sheet

    owners = owner_columns(c)
    if not owners:
        return []
    costs = costs_sheet(book, c, owners)
    return [*costs.ties, *power_sheet(book, c, owners, rows), *tokens_sheet(book, c, costs)]


def _cover(sheet: Sheet, c: Context) -> None:
    m = c.run.manifest
    facts = [
        ("Run", c.run.id),
        ("Scenario", c.run.scenario),
        ("SHA-256 of the input", c.run.hash),
        ("Facts digest", m["facts_digest"]),
        ("Facts known up to", c.as_of),
        ("Computed on", m["created"]),
        ("Program", f"wafer2token {m['version']}"),
        ("Regime", c.answer["regime"]),
        ("Objective", c.answer["objective"]["kind"]),
        ("Periods", f"{c.periods[0]} to {c.periods[-1]}"),
        ("Illustrative inputs", "{} of {}".format(*c.illustrative)),
        ("Command", f"wafer2token run {c.run.scenario}"),
        ("Data", "by Epoch AI, CC BY 4.0, and single figures from the sources named in each row"),
    ]
    sheet.widths([26, 100])
    row = 4
    for label, value in facts:
        sheet.text(row, 0, label, "bold_wrap")
        sheet.text(row, 1, str(value))
        row += 1
    row += 1
    sheet.text(row, 0, "Colours", "heading")
    sheet.text(row, 1, "", "heading")
    for style, name, words in _LEGEND:
        row += 1
        sheet.text(row, 0, name, style)
        sheet.text(row, 1, words)
    sheet.freeze(3, 0)


def _contents(sheet: Sheet) -> None:
    """Every sheet with its group and a link; those that this run has nothing for say why."""
    sheet.widths([18, 16, 90])
    for k, head in enumerate(("Sheet", "Group", "Holds")):
        sheet.text(4, k, head, "header")
    for row, (group, name, words) in enumerate(_SHEETS, 5):
        there = name in sheet.book.sheets
        if there:
            sheet.link(row, 0, name)
        else:
            sheet.text(row, 0, name, "note")
        sheet.text(row, 1, group, "text" if there else "note")
        sheet.text(row, 2, words if there else f"not in this workbook: {_ABSENT[name]}", "text" if there else "note")
    sheet.freeze(5, 1)
