"""Sheets that make the workbook checkable: inputs to edit, the scenario behind them, checks, sources, limits, units."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from reports.workbook_style import Column, cell

if TYPE_CHECKING:
    from pathlib import Path

    from reports.blocks import Section, Table
    from reports.context import Context
    from reports.workbook_costs import Tie
    from reports.workbook_style import Book
    from scenarios.runs import Run

__all__ = [
    "INPUT_HEADS",
    "INPUT_ROW",
    "SCENARIO_ROW",
    "checks_sheet",
    "inputs_sheet",
    "limits_sheet",
    "scenario_sheet",
    "scenario_text",
    "sources_sheet",
    "tables_sheet",
    "units_sheet",
]

#: First data row of the Inputs table and first line of the scenario text, counted from 0.
INPUT_ROW, SCENARIO_ROW = 6, 5
INPUT_HEADS = (
    "Path", "From", "To", "Value", "Value in the run", "Unit", "Low", "High", "Kind", "Facts", "Basis of the range",
    "Note", "Edited",
)  # fmt: skip
#: Tables of the report that have sheets of their own.
_OWN_SHEETS = ("inputs", "sources")
_UNITS = {
    "accelerator": "one accelerator package, or a group of dies sold as one",
    "accelerators": "accelerators, each one package or a group of dies sold as one",
    "H100-equivalents": "dense BF16 FLOP/s over 989.4e12, summed over accelerators",
    "MW": "megawatts of planning power: facility watts and headroom, booked from the grid",
    "MW planning": "megawatts booked from the grid: facility watts x (1 + headroom)",
    "kW": "kilowatts of planning power of one accelerator",
    "kW IT": "kilowatts of an accelerator with its share of server and rack",
    "fraction": "share between 0 and 1",
    "ratio": "one amount over another",
    "year": "years",
    "period": "periods of the scenario",
    "1/year": "share a year",
    "USD": "US dollars of the period (nominal)",
    "USD/GPU-hour": "US dollars of the period for a sold hour",
    "USD/Mtoken": "US dollars for a million tokens of the named class",
    "USD/task": "US dollars for a verified task",
    "USD/kWh": "US dollars for a kilowatt-hour",
    "wafer": "300 mm wafers",
    "stack": "HBM stacks",
    "package": "packages",
    "die": "good dies",
    "rack": "racks",
    "test": "final test of one H100",
    "starts": "units started by a process",
    "tokens": "tokens",
    "relative rise": "rise of a capacity over its value",
    "unit": "units of the product",
    "capacity": "capacity added",
}


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


def inputs_sheet(book: Book, c: Context) -> None:
    """Every number of the scenario, one row for each run of equal periods; the yellow column is read back."""
    note = (
        "Change yellow cells (unit of the row), save, then `wafer2token run THIS_FILE.xlsx`: each edited cell becomes "
        "one entry of `set`."
    )
    sheet = book.sheet("Inputs", "Inputs of the model", note, "#DDCC77")
    widths = (46, 10, 10, 16, 16, 18, 12, 12, 13, 40, 24, 60, 9)
    kinds = ("text", "text", "text", "input", "solver", "text", "solver", "solver", *["text"] * 5)
    columns = [Column(h, "", w, k) for h, w, k in zip(INPUT_HEADS, widths, kinds, strict=True)]
    held = c.run.inputs
    rows: list[list[Any]] = []
    for r in held.itertuples():
        rows.append(
            [r.path, r.period, r.to, r.value, r.value, r.unit, r.low, r.high, r.kind, r.fact_ids, r.spread, r.note, ""]
        )
    sheet.table(INPUT_ROW - 2, columns, rows, "inputs")
    last = INPUT_ROW + len(rows) - 1
    for row in range(INPUT_ROW, last + 1):
        sheet.formula(row, 12, f'IF({cell(row, 3)}={cell(row, 4)},"","edited")', "")
    _validate(book, [str(u) for u in held["unit"]])
    weak = {"type": "cell", "criteria": "==", "value": '"illustrative"', "format": book.style("warn")}
    sheet.raw.conditional_format(INPUT_ROW, 8, last, 8, weak)
    sheet.raw.freeze_panes(INPUT_ROW, 1)


def _validate(book: Book, units: Sequence[str]) -> None:
    """Numbers only in the yellow column; shares between 0 and 1."""
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
            raw.data_validation(first, 3, last, 3, dict(rule))


def scenario_sheet(book: Book, c: Context, text: str) -> None:
    """The scenario file of the run as text: what an edited workbook is read back against."""
    note = "The scenario file of this run; edits of the Inputs sheet are added to its `set`. Do not change this sheet."
    sheet = book.sheet("Scenario", "Scenario file", note, "#DDCC77")
    sheet.widths([160])
    sheet.text(SCENARIO_ROW - 1, 0, f"{c.run.scenario}.yaml", "header")
    for offset, line in enumerate(text.splitlines()):
        sheet.text(SCENARIO_ROW + offset, 0, line, "code")
    sheet.raw.freeze_panes(SCENARIO_ROW, 0)


def checks_sheet(book: Book, c: Context, ties: Iterable[Tie]) -> bool:
    """The run's checks and the workbook's own ties, each with tolerance and TRUE or FALSE; one master cell."""
    note = "Each value is compared with its tolerance. Ties compare a live formula with the run, relative to the run."
    sheet = book.sheet("Checks", "Checks", note, "#882255")
    columns = [
        Column("Check", "", 46),
        Column("Subject", "", 40),
        Column("Period", "", 10),
        Column("Value", "", 14, "solver", "0.0E+00"),
        Column("Tolerance", "", 14, "solver", "0.0E+00"),
        Column("Passed", "", 10),
    ]
    run_rows = [[r.check, r.subject, r.period, r.value, r.tolerance, ""] for r in c.run.checks.itertuples()]
    held = list(ties)
    rows: list[list[Any]] = [*run_rows, *[[t.what, "workbook", "", None, t.tolerance, ""] for t in held]]
    header = sheet.table(5, columns, rows, "checks")
    passed = []
    for offset, row in enumerate(rows):
        here = header + 1 + offset
        if offset >= len(run_rows):
            tie = held[offset - len(run_rows)]
            gap = abs(tie.left_value - tie.right_value) / max(abs(tie.right_value), 1e-12)
            made = f"ABS({tie.left}-{tie.right})/MAX(ABS({tie.right}),1E-12)"
            sheet.formula(here, 3, made, gap, shown="0.0E+00")
            ok = gap <= tie.tolerance
        else:
            ok = bool(row[3] <= row[4])
        passed.append(ok)
        sheet.formula(here, 5, f"IF(ISNUMBER({cell(here, 4)}),{cell(here, 3)}<={cell(here, 4)},TRUE)", ok)
    whole = all(passed)
    sheet.text(3, 0, "All checks pass", "total")
    span = f"{cell(header + 1, 5)}:{cell(header + max(1, len(rows)), 5)}"
    sheet.formula(3, 1, f"AND({span})", whole, "total")
    sheet.raw.freeze_panes(header + 1, 1)
    bad = {"type": "cell", "criteria": "==", "value": "FALSE", "format": book.style("warn")}
    sheet.raw.conditional_format(header + 1, 5, header + len(rows), 5, bad)
    return whole


def sources_sheet(book: Book, c: Context) -> None:
    """Facts and series points behind the run, with source, date, kind and age."""
    from reports.sections.inputs import STALE_DAYS

    note = f"A name with @ is a point of a series. Age on {c.as_of}; older than {STALE_DAYS} days is flagged."
    sheet = book.sheet("Sources", "Facts behind the run", note, "#DDCC77")
    columns = [
        Column("Fact", "", 52), Column("Value", "see Unit", 16, "solver"), Column("Text value", "", 16),
        Column("Unit", "", 18),
        Column("Kind", "", 13), Column("Known on", "", 12), Column("Age", "days", 9, "solver", "#,##0"),
        Column("Flag", "", 8),
        Column("Source", "", 60), Column("Rests on", "", 40), Column("Address", "", 60),
    ]  # fmt: skip
    rows = []
    for name, fact in sorted(c.facts.items()):
        value = fact["value"]
        number = isinstance(value, float | int) and not isinstance(value, bool)
        age = _age(c.as_of, str(fact["known_on"]))
        flag = "old" if age is not None and age > STALE_DAYS else ""
        rows.append(
            [name, value if number else None, "" if number else str(value), str(fact["unit"] or ""), str(fact["kind"]),
             str(fact["known_on"]), age, flag, str(fact["source"] or ""), ", ".join(fact.get("basis") or ()),
             str(fact.get("url") or "")]
        )  # fmt: skip
    sheet.table(4, columns, rows, "sources")
    sheet.raw.freeze_panes(6, 1)


def _age(today: str, known: str) -> float | None:
    try:
        return float((date.fromisoformat(today) - date.fromisoformat(known)).days)
    except ValueError:
        return None


def limits_sheet(book: Book, c: Context, sections: Sequence[Section], left_out: Sequence[str]) -> None:
    """What the numbers do not say: method, scope, missing parts, warnings of the run."""
    note = "Qualifications and known weaknesses; read before quoting a number."
    sheet = book.sheet("Limits", "Limits of this workbook", note, "#882255")
    words = [p for s in sections if s.id == "method" for p in s.paragraphs]
    words += [f"{r[0].text}: {r[1].text}" for s in sections if s.id == "method" for t in s.tables for r in t.rows]
    words.append("The optimum cannot run in a sheet: fleets, rents and engine rates are values of the run, hatched.")
    words.append(
        "Edits of Inputs act when the workbook is run as a scenario; those of Costs, Power and Tokens at once."
    )
    words += [str(w) for w in (c.run.manifest.get("notes") or {}).get("warnings") or ()]
    words += [f"Not costed: {', '.join(f'{k} {v}' for k, v in p.items())}" for p in c.answer.get("problems") or ()]
    words += [f"No live cost column for {c.short(sku)}: its inputs no longer give the run's cost." for sku in left_out]
    sheet.widths([5, 150])
    for offset, text in enumerate(words):
        sheet.number(5 + offset, 0, offset + 1, "text", "0")
        sheet.paragraph_in(5 + offset, 1, text, 150)


def units_sheet(book: Book, c: Context) -> None:
    """Every unit used in results and inputs, with its meaning."""
    sheet = book.sheet("Units", "Units", "Every unit of the tables; a slash reads `per`.", "#882255")
    used = dict.fromkeys([*c.run.results["unit"], *c.run.inputs["unit"], "MW planning", "kW IT"])
    rows = [[u, _meaning(str(u))] for u in sorted(u for u in used if u)]
    sheet.table(4, [Column("Unit", "", 28), Column("Meaning", "", 100)], rows, "units")
    sheet.raw.freeze_panes(6, 1)


def _meaning(unit: str) -> str:
    """Meaning of a unit, a quotient put together from its parts.

    >>> _meaning("USD/wafer")
    'US dollars of the period (nominal); per wafer: 300 mm wafers'
    """
    if unit in _UNITS:
        return _UNITS[unit]
    head, *rest = unit.split("/")
    words = [_UNITS.get(head, head), *(f"per {p}: {_UNITS[p]}" if p in _UNITS else f"per {p}" for p in rest)]
    return "; ".join(words)


def tables_sheet(book: Book, sections: Sequence[Section]) -> None:
    """The tables of the report as printed, one below the other, numbers with all their digits."""
    sheet = book.sheet(
        "Report tables", "Tables of the report", "As printed in the report; cells keep every digit.", "#6699CC"
    )
    tables = [t for s in sections for t in s.tables if t.rows and t.short not in _OWN_SHEETS]
    width = max((len(t.columns) for t in tables), default=1)
    row = 4
    for table in tables:
        sheet.text(row, 0, table.caption, "heading")
        row = _one_table(book, sheet, row + 1, table)
        if table.note:
            sheet.paragraph(row, 0, 9, table.note, "note_wrap")
            row += 1
        row += 1
    sheet.widths([34, *[17] * (width - 1)])


def _one_table(book: Book, sheet: Any, row: int, table: Table) -> int:
    columns = [
        Column(_head(table, k), "", 17, "number" if held.number else "text") for k, held in enumerate(table.columns)
    ]
    rows = [[_plain(value, columns[k]) for k, value in enumerate(cells)] for cells in table.rows]
    header = sheet.table(row, columns, rows, f"report_{table.short or 'table'}")
    for offset, cells in enumerate(table.rows, 1):
        for k, held in enumerate(cells):
            if held.value is not None and columns[k].kind == "number":
                sheet.number(header + offset, k, held.value, "calc", printed_format(held.text, held.value))
    return int(header + len(rows)) + 2


def printed_format(text: str, value: float) -> str:
    """Number format that shows a value with the digits of its printed text, where the text is that value.

    >>> printed_format("1,708", 1708.2), printed_format("0.40 %", 0.004), printed_format("2.31 million", 2.31e6)
    ('#,##0', '0.00%', '')
    """
    words = text.replace(",", "").removesuffix(" %")
    try:
        number = float(words)
    except ValueError:
        return ""
    share = text.endswith(" %") and abs(number - 100 * value) <= abs(number - value)
    decimals = len(words.partition(".")[2])
    if not math.isclose(number, 100 * value if share else value, rel_tol=0.05, abs_tol=10.0**-decimals):
        return ""
    digits = "." + "0" * decimals if decimals else ""
    return f"0{digits}%" if share else f"#,##0{digits}"


def _plain(held: Any, column: Column) -> Any:
    if held.value is not None and column.kind == "number":
        return held.value
    return held.text + ("*" if held.mark else "")


def _head(table: Table, index: int) -> str:
    """Header of a column, made unique as a real table needs."""
    title = table.columns[index].title or f"Column {index + 1}"
    before = [c.title for c in table.columns[:index]].count(table.columns[index].title)
    return f"{title} {before + 1}" if before else title
