"""Sheets that make the workbook checkable: inputs to edit, the scenario behind them, checks, sources, limits, units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reports.workbook_style import Column, cell

if TYPE_CHECKING:
    from pathlib import Path

    from reports.context import Context
    from reports.workbook_style import Book
    from scenarios.runs import Run

__all__ = ["INPUT_HEADS", "INPUT_ROW", "OWN_KINDS", "SCENARIO_ROW", "inputs_sheet", "scenario_sheet", "scenario_text"]

#: First data row of the Inputs table and first line of the scenario text, counted from 0.
INPUT_ROW, SCENARIO_ROW = 6, 5
INPUT_HEADS = (
    "Path", "From", "To", "Value", "Value in the run", "Unit", "Low", "High", "Kind", "Facts", "Basis of the range",
    "Note", "Edited", "In range", "Low in the run", "High in the run", "Kind in the run",
)  # fmt: skip
_COLUMN = {head: k for k, head in enumerate(INPUT_HEADS)}
#: Kinds that a reader may write: every other kind needs a fact.
OWN_KINDS = ("stated", "illustrative")


def scenario_text(run: Run) -> str:
    """The scenario as a file: `extends` and `set` where it is a library scenario with edits, else the whole of it."""
    try:
        return "\n".join(run.table("scenario_text")["line"]) + "\n"
    except KeyError:
        return _whole_text(run)


def _whole_text(run: Run) -> str:
    if run.folder is not None:
        path: Path = run.folder / "scenario.yaml"
        return path.read_text(encoding="utf-8")
    from scenarios.runner import resolved_yaml

    assert run.resolved is not None
    return resolved_yaml(run.resolved)


def inputs_sheet(book: Book, c: Context) -> int:
    """Every number of the scenario, a row for each run of equal periods; yellow is read back. Returns the last row."""
    note = (
        "Change yellow cells (value, range, kind; unit of the row), save, then `wafer2token run THIS_FILE.xlsx`: each "
        "edited row becomes one entry of `set`. Empty Low and High: no range."
    )
    sheet = book.sheet("Inputs", "Inputs of the model", note, "inputs")
    widths = (46, 10, 10, 15, 15, 20, 15, 15, 13, 40, 24, 60, 9, 9, 15, 15, 13)
    inputs, solver = ("Value", "Low", "High", "Kind"), ("Value in the run", "Low in the run", "High in the run")
    columns = [
        Column(h, "see Unit" if h in (*inputs[:3], *solver) else "", w, _kind(h, inputs, solver), wrap=False)
        for h, w in zip(INPUT_HEADS, widths, strict=True)
    ]
    held = c.run.inputs
    rows: list[list[Any]] = [
        [r.path, r.period, r.to, r.value, r.value, r.unit, r.low, r.high, r.kind, r.fact_ids, r.spread, r.note, "", "",
         r.low, r.high, r.kind]
        for r in held.itertuples()
    ]  # fmt: skip
    sheet.table(INPUT_ROW - 2, columns, rows, "inputs")
    last = INPUT_ROW + len(rows) - 1
    for row in range(INPUT_ROW, last + 1):
        here = {head: cell(row, k) for head, k in _COLUMN.items()}
        same = ",".join(f"{here[h]}={here[f'{h} in the run']}" for h in inputs)
        sheet.formula(row, _COLUMN["Edited"], f'IF(AND({same}),"","edited")', "")
        value, low, high = here["Value"], here["Low"], here["High"]
        inside = f"AND(MAX({value},{low})={value},MIN({value},{high})={value})"
        sheet.formula(row, _COLUMN["In range"], inside, True)
    _validate(book, [str(u) for u in held["unit"]])
    _mark(book, last)
    sheet.freeze(INPUT_ROW, 1)
    return last


def _kind(head: str, inputs: tuple[str, ...], solver: tuple[str, ...]) -> str:
    return "input" if head in inputs else "solver" if head in solver else "text"


def _mark(book: Book, last: int) -> None:
    """Colours that follow the cells: illustrative kinds, edited rows, values out of their range."""
    raw, warn = book.sheets["Inputs"].raw, book.style("warn")
    for head, value in (("Kind", '"illustrative"'), ("Edited", '"edited"'), ("In range", "FALSE")):
        rule = {"type": "cell", "criteria": "==", "value": value, "format": warn}
        raw.conditional_format(INPUT_ROW, _COLUMN[head], last, _COLUMN[head], rule)


def _validate(book: Book, units: Sequence[str]) -> None:
    """Numbers only in the yellow columns, shares between 0 and 1, ranges around the value, kinds that need no fact."""
    raw = book.sheets["Inputs"].raw
    spans: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    for offset, unit in enumerate(units):
        mine = spans[unit in ("fraction", "fraction/period")]
        if mine and mine[-1][1] == INPUT_ROW + offset - 1:
            mine[-1] = (mine[-1][0], INPUT_ROW + offset)
        else:
            mine.append((INPUT_ROW + offset, INPUT_ROW + offset))
    for share, runs in spans.items():
        rule: dict[str, Any] = {"validate": "decimal", "criteria": "between", "error_title": "Not a value"}
        rule |= {"minimum": 0 if share else -1e15, "maximum": 1 if share else 1e15, "ignore_blank": False}
        rule["error_message"] = "A share between 0 and 1." if share else "A number in the unit of the row."
        for first, last in runs:
            raw.data_validation(first, _COLUMN["Value"], last, _COLUMN["Value"], dict(rule))
    last = INPUT_ROW + len(units) - 1
    for head, sign, words in (("Low", "<=", "at most"), ("High", ">=", "at least")):
        rule = {"validate": "decimal", "criteria": sign, "value": f"=${cell(INPUT_ROW, _COLUMN['Value'])}"}
        rule |= {"error_title": "Not an end of the range", "error_message": f"A number {words} the value, or empty."}
        raw.data_validation(INPUT_ROW, _COLUMN[head], last, _COLUMN[head], rule)
    rule = {"validate": "list", "source": list(OWN_KINDS), "error_title": "Not a kind of yours"}
    rule["error_message"] = "stated, or illustrative with its reason in Note; any other kind needs a fact."
    raw.data_validation(INPUT_ROW, _COLUMN["Kind"], last, _COLUMN["Kind"], rule)


def scenario_sheet(book: Book, c: Context, text: str) -> None:
    """The scenario file of the run as text: what an edited workbook is read back against."""
    note = "The scenario file of this run; edits of the Inputs sheet are added to its `set`. Do not change this sheet."
    sheet = book.sheet("Scenario", "Scenario file", note, "inputs")
    sheet.widths([160])
    sheet.text(SCENARIO_ROW - 1, 0, f"{c.run.scenario}.yaml", "header")
    for offset, line in enumerate(text.splitlines()):
        sheet.text(SCENARIO_ROW + offset, 0, line, "code")
    sheet.freeze(SCENARIO_ROW, 0)
