"""Sheets of control: checks with tolerance and TRUE or FALSE, changes, limits, sources, units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

from reports.workbook_inputs import INPUT_ROW
from reports.workbook_style import Column, cell
from reports.workbook_tables import tables_below

if TYPE_CHECKING:
    from reports.blocks import Section
    from reports.context import Context
    from reports.workbook_costs import Tie
    from reports.workbook_style import Book

__all__ = ["changes_sheet", "checks_sheet", "limits_sheet", "sources_sheet", "units_sheet"]

#: How the note of an edited number begins.
_EDIT = "edited: "
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


def checks_sheet(book: Book, c: Context, ties: Iterable[Tie]) -> bool:
    """The run's checks and the workbook's own ties, each with tolerance and TRUE or FALSE; one master cell."""
    note = "Each value is compared with its tolerance. Ties compare a live formula with the run, relative to the run."
    sheet = book.sheet("Checks", "Checks", note, "control")
    columns = [
        Column("Check", "", 46),
        Column("Subject", "", 40),
        Column("Period", "", 10),
        Column("Value", "", 14, "solver", "0.0E+00"),
        Column("Tolerance", "", 14, "solver", "0.0E+00"),
        Column("Passed", "", 10, "number"),
    ]
    run_rows = [[r.check, r.subject, r.period, r.value, r.tolerance, None] for r in c.run.checks.itertuples()]
    held = list(ties)
    rows: list[list[Any]] = [*run_rows, *[[t.what, "workbook", "", None, t.tolerance, None] for t in held]]
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
    sheet.freeze(header + 1, 1)
    bad = {"type": "cell", "criteria": "==", "value": "FALSE", "format": book.style("warn")}
    sheet.raw.conditional_format(header + 1, 5, header + len(rows), 5, bad)
    return whole


def changes_sheet(book: Book, c: Context, sections: Sequence[Section], last: int) -> None:
    """Edits of this workbook, of the scenario by its `set`, and since an earlier edition; Inputs ends at row `last`."""
    note = "Edits of this workbook, edits of the scenario, and what changed since the last edition where one was given."
    sheet = book.sheet("Changes", "Changes", note, "control")
    sheet.text(4, 0, "Inputs edited in this workbook", "bold_wrap")
    edited = f"{cell(INPUT_ROW, 12, 'Inputs', fixed='rc')}:{cell(last, 12, fixed='rc')}"
    sheet.formula(4, 1, f'COUNTIF({edited},"edited")', 0, "link", "0")
    row = 6
    held = c.run.inputs
    rows = [
        [r.path, r.period, r.to, r.value, r.unit, "; ".join(p for p in str(r.note).split("; ") if p.startswith(_EDIT))]
        for r in held[held["note"].str.contains(_EDIT, regex=False)].itertuples()
    ]
    columns = [
        Column("Edited number", "", 44), Column("From", "", 17), Column("To", "", 17),
        Column("Value", "see Unit", 17, "solver"), Column("Unit", "", 20), Column("Edit", "", 90),
    ]  # fmt: skip
    sheet.text(row, 0, f"Edits of the scenario: {len(rows)} rows of Inputs", "heading")
    header = sheet.table(row + 1, columns, rows, "edits")
    row = header + max(len(rows), 1) + 2
    changed = next((s for s in sections if s.id == "changes"), None)
    sheet.text(row, 0, "Since the last edition", "heading")
    words = changed.paragraphs if changed is not None else ["No earlier edition was given (report RUN --previous RUN)."]
    for text in words:
        row += 1
        sheet.paragraph(row, 0, 5, text)
    if changed is not None:
        tables_below(book, sheet, row + 2, changed.tables)
    sheet.widths([column.width for column in columns])
    sheet.freeze(4, 1)


def sources_sheet(book: Book, c: Context) -> None:
    """Facts and series points behind the run, with source, date, kind and age."""
    from reports.sections.inputs import STALE_DAYS

    note = f"A name with @ is a point of a series. Age on {c.as_of}; older than {STALE_DAYS} days is flagged."
    sheet = book.sheet("Sources", "Facts behind the run", note, "inputs")
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
    sheet.table(4, [replace(column, wrap=False) for column in columns], rows, "sources")
    sheet.freeze(6, 1)


def _age(today: str, known: str) -> float | None:
    try:
        return float((date.fromisoformat(today) - date.fromisoformat(known)).days)
    except ValueError:
        return None


def limits_sheet(book: Book, c: Context, sections: Sequence[Section], absent: Sequence[str]) -> None:
    """What the numbers do not say: method, scope, missing parts, warnings of the run."""
    note = "Qualifications and known weaknesses; read before quoting a number."
    sheet = book.sheet("Limits", "Limits of this workbook", note, "control")
    words = [p for s in sections if s.id == "method" for p in s.paragraphs]
    words += [f"{r[0].text}: {r[1].text}" for s in sections if s.id == "method" for t in s.tables for r in t.rows]
    words.append("The optimum cannot run in a sheet: fleets, rents and engine rates are values of the run, hatched.")
    words.append(
        "Edits of Inputs act when the workbook is run as a scenario; those of Costs, Power and Tokens at once."
    )
    words += [str(w) for w in (c.run.manifest.get("notes") or {}).get("warnings") or ()]
    words += [f"Not costed: {', '.join(f'{k} {v}' for k, v in p.items())}" for p in c.answer.get("problems") or ()]
    words += absent
    sheet.widths([5, 150])
    sheet.freeze(4, 0)
    for offset, text in enumerate(words):
        sheet.number(5 + offset, 0, offset + 1, "text", "0")
        sheet.paragraph_in(5 + offset, 1, text, 150, "wrap_indented")


def units_sheet(book: Book, c: Context) -> None:
    """Every unit used in results and inputs, with its meaning."""
    sheet = book.sheet("Units", "Units", "Every unit of the tables; a slash reads `per`.", "control")
    used = dict.fromkeys([*c.run.results["unit"], *c.run.inputs["unit"], "MW planning", "kW IT"])
    rows = [[u, _meaning(str(u))] for u in sorted(u for u in used if u)]
    sheet.table(4, [Column("Unit", "", 28), Column("Meaning", "", 100)], rows, "units")
    sheet.freeze(6, 1)


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
