"""The workbook of a run: inputs to edit, results, live cost formulas that tie to the run, sources and checks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reports.context import Context
from supply.files import whole_file

if TYPE_CHECKING:
    from reports.market_report import Report
    from reports.workbook_style import Book
    from scenarios.runs import Run

__all__ = ["write_workbook"]

_SHEETS = (
    ("Summary", "the answer, totals by period and year, charts"),
    ("Inputs", "every number of the scenario; yellow cells are read back as a scenario"),
    ("Scenario", "the scenario file behind the inputs"),
    ("Results", "quantities by product, limit and period"),
    ("Prices", "what one more unit of each binding limit is worth"),
    ("Hours", "cost of an accelerator-hour by product and period"),
    ("Token costs", "cost of a million tokens by class"),
    ("Tasks", "cost of a verified task"),
    ("Costs", "an owner's hour in live formulas"),
    ("Power", "chip to planning watts, and the fleet's power, in live formulas"),
    ("Tokens", "token classes in live formulas"),
    ("Report tables", "the tables of the report"),
    ("Checks", "tolerances and TRUE or FALSE"),
    ("Sources", "every fact with source, date, kind and age"),
    ("Limits", "what the numbers do not say"),
    ("Units", "what each unit means"),
)
_LEGEND = (
    ("input", "yellow: an input; on the Inputs sheet it is read back, on Costs, Power and Tokens the formulas follow"),
    ("solver", "hatched: a value of the run (solver or engine); typing over it breaks the tie in Checks"),
    ("link", "blue: read from another sheet"),
    ("calc", "plain: a formula of this sheet"),
    ("total", "bold with a line above: a total"),
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
    }
    with whole_file(target) as working, Book(working, properties) as book:
        _fill(book, Context(run), held)
    return target


def _fill(book: Book, c: Context, report: Report) -> None:
    from reports.workbook_costs import Tie, costs_sheet, owner_columns
    from reports.workbook_inputs import (
        checks_sheet,
        inputs_sheet,
        limits_sheet,
        scenario_sheet,
        scenario_text,
        sources_sheet,
        tables_sheet,
        units_sheet,
    )
    from reports.workbook_power import power_sheet
    from reports.workbook_results import (
        hours_sheet,
        prices_sheet,
        results_sheet,
        tasks_sheet,
        token_costs_sheet,
    )
    from reports.workbook_summary import summary_sheet
    from reports.workbook_tokens import tokens_sheet

    cover = book.sheet("Cover", report.title, report.subtitle, "#332288")
    book.sheet("Summary", "Summary", report.source_line, "#332288")
    inputs_sheet(book, c)
    scenario_sheet(book, c, scenario_text(c.run))
    rows, last = results_sheet(book, c)
    summary_sheet(book, c, [(a.label, a.text) for a in report.answer], report.warnings, last)
    if c.answer["periods"] and any(p["binding"] for p in c.answer["periods"]):
        prices_sheet(book, c)
    hours_sheet(book, c)
    token_costs_sheet(book, c)
    tasks_sheet(book, c)
    ties: list[Tie] = []
    left_out: list[str] = []
    if c.reference_sku is not None:
        owners = owner_columns(c)
        priced = c.quantity("owner_usd_per_gpu_hour")
        left_out = sorted(set(priced.loc[priced["period"] == c.now, "sku"]) - {o.sku for o in owners})
        costs = costs_sheet(book, c, owners)
        ties += [*costs.ties, *power_sheet(book, c, owners, rows), *tokens_sheet(book, c, costs)]
    tables_sheet(book, report.sections)
    passed = checks_sheet(book, c, ties)
    sources_sheet(book, c)
    limits_sheet(book, c, report.sections, left_out)
    units_sheet(book, c)
    _cover(book, cover, c)
    book.finish(passed)


def _cover(book: Book, sheet: object, c: Context) -> None:
    from reports.workbook_style import Sheet

    assert isinstance(sheet, Sheet)
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
    sheet.widths([26, 90])
    row = 4
    for label, value in facts:
        sheet.text(row, 0, label, "bold_wrap")
        sheet.text(row, 1, str(value))
        row += 1
    row += 1
    sheet.text(row, 0, "Sheets", "heading")
    sheet.text(row, 1, "", "heading")
    for name, words in _SHEETS:
        if name in book.sheets:
            row += 1
            sheet.link(row, 0, name)
            sheet.text(row, 1, words)
    row += 2
    sheet.text(row, 0, "Colours", "heading")
    sheet.text(row, 1, "", "heading")
    for style, words in _LEGEND:
        row += 1
        sheet.text(row, 0, style if style != "calc" else "formula", style)
        sheet.text(row, 1, words)
