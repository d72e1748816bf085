"""Tables of the report as sheets show them: one below the other, numbers with all their digits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reports.workbook_style import Column

if TYPE_CHECKING:
    from reports.blocks import Section, Table
    from reports.workbook_style import Book, Sheet

__all__ = ["printed_format", "tables_below", "tables_sheet"]

#: Tables of the report that have sheets of their own.
_OWN_SHEETS = ("inputs", "sources", "weak_inputs", "backtest", "fan", "draw_shares")
#: Widths of the first column and of the others.
_WIDTHS = (34, 17)
#: Sections of the report with a sheet of their own.
_OWN_SECTIONS = ("draws", "changes")


def tables_sheet(book: Book, sections: Sequence[Section]) -> None:
    """The tables of the report as printed that have no sheet of their own."""
    sheet = book.sheet(
        "Report tables", "Tables of the report", "As printed in the report; cells keep every digit.", "results"
    )
    tables_below(book, sheet, 4, [t for s in sections if s.id not in _OWN_SECTIONS for t in s.tables])
    sheet.freeze(4, 1)


def tables_below(book: Book, sheet: Sheet, row: int, tables: Sequence[Table]) -> int:
    """Tables one below the other from a row, each with its caption and note; returns the next free row."""
    held = [t for t in tables if t.rows and t.short not in _OWN_SHEETS]
    width = max((len(t.columns) for t in held), default=1)
    for table in held:
        sheet.text(row, 0, table.caption, "heading")
        row = _one_table(book, sheet, row + 1, table)
        if table.note:
            sheet.paragraph(row, 0, 9, table.note, "note_wrap")
            row += 1
        row += 1
    sheet.widths([_WIDTHS[0], *[_WIDTHS[1]] * (width - 1)])
    return row


def _one_table(book: Book, sheet: Any, row: int, table: Table) -> int:
    columns = [
        Column(_head(table, k), "", _WIDTHS[k > 0], "number" if held.number else "text")
        for k, held in enumerate(table.columns)
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
