"""A workbook with one look: titled sheets, real tables with a units row, formulas stored with their values.

Text goes in as text whatever it starts with (`=`, `+`, `-`, `@`): a title or a fact cannot become a formula or a link.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["MASTER", "Book", "Column", "Sheet", "cell", "column_letter", "number_format"]

#: Where the Checks sheet says whether every check passed.
MASTER = "Checks!$B$4"
FONT = "Calibri"
_LONGEST_TEXT = 32767
#: Programs that keep truth values as numbers show them in words too.
_TRUTH = '"TRUE";"TRUE";"FALSE"'
_OPTIONS = {
    "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False, "nan_inf_to_errors": False,
    "default_date_format": "yyyy-mm-dd",
}  # fmt: skip
_FORMATS: dict[str, dict[str, Any]] = {
    "title": {"bold": True, "font_size": 16, "font_color": "#332288"},
    "heading": {"bold": True, "font_size": 12, "font_color": "#332288", "bottom": 1},
    "note": {"italic": True, "font_color": "#555555"},
    "note_wrap": {"italic": True, "font_color": "#555555", "text_wrap": True, "valign": "top"},
    "wrap": {"text_wrap": True, "valign": "top"},
    "bold_wrap": {"text_wrap": True, "valign": "top", "bold": True},
    "warn": {"text_wrap": True, "valign": "top", "bg_color": "#FAF3F6", "font_color": "#882255"},
    "unit": {"italic": True, "font_color": "#555555", "font_size": 9, "align": "left"},
    "unit_right": {"italic": True, "font_color": "#555555", "font_size": 9, "align": "right"},
    "header": {"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"},
    "header_right": {"bold": True, "bottom": 1, "align": "right", "text_wrap": True, "valign": "top"},
    "text": {},
    "indented": {"indent": 1},
    "header_indented": {"bold": True, "bottom": 1, "text_wrap": True, "valign": "top", "indent": 1},
    "code": {"font_name": "Consolas", "font_size": 9},
    "input": {"bg_color": "#FFF2CC"},
    "solver": {"pattern": 17, "fg_color": "#D9E2EF", "bg_color": "#FFFFFF"},
    "link": {"font_color": "#1A4F8A"},
    "export": {"font_color": "#B00020"},
    "export_total": {"font_color": "#B00020", "bold": True, "top": 1},
    "counter": {"bg_color": "#F2F2F2"},
    "check": {"italic": True, "bg_color": "#F2F2F2"},
    "total": {"bold": True, "top": 1},
    "calc": {},
}


@dataclass(frozen=True)
class Column:
    """A column of a table: header, unit, width, kind (`text`, `number`, `input`, `solver`), number format."""

    title: str
    unit: str = ""
    width: float = 14
    kind: str = "text"
    shown: str = ""


def column_letter(index: int) -> str:
    """Letters of a column counted from 0.

    >>> column_letter(0), column_letter(27)
    ('A', 'AB')
    """
    letters = ""
    while index >= 0:
        letters, index = chr(65 + index % 26) + letters, index // 26 - 1
    return letters


def cell(row: int, column: int, sheet: str = "", *, fixed: str = "") -> str:
    """Address of a cell counted from 0; `fixed` holds `r`, `c` or both for the parts that a copy keeps.

    >>> cell(0, 2), cell(4, 1, "Costs", fixed="rc")
    ('C1', 'Costs!$B$5')
    """
    place = f"{'$' * ('c' in fixed)}{column_letter(column)}{'$' * ('r' in fixed)}{row + 1}"
    return f"{sheet}!{place}" if sheet else place


def number_format(value: float) -> str:
    """How a number of this size is shown; the cell keeps every digit.

    >>> number_format(152010.0), number_format(3.2), number_format(0.0149), number_format(2.1e-6)
    ('#,##0', '#,##0.00', '0.0000', '0.00E+00')
    """
    size = abs(value)
    if size == 0 or size >= 1000:
        return "#,##0"
    if size >= 1:
        return "#,##0.00"
    return "0.0000" if size >= 1e-3 else "0.00E+00"


class Book:
    """The file being written; sheets appear in the order in which they are asked for."""

    def __init__(self, path: Path, properties: Mapping[str, Any]) -> None:
        import xlsxwriter

        self.path = path
        self._file = xlsxwriter.Workbook(str(path), _OPTIONS)
        self._file.set_properties(properties)
        self._file.set_calc_mode("auto")
        self._formats: dict[tuple[str, str], Any] = {}
        self._tables: set[str] = set()
        self.sheets: dict[str, Sheet] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._file.close()

    def style(self, name: str, shown: str = "") -> Any:
        """A named format, with a number format where one is given."""
        key = (name, shown)
        if key not in self._formats:
            look = {"font_name": FONT, "font_size": 10} | _FORMATS[name] | ({"num_format": shown} if shown else {})
            self._formats[key] = self._file.add_format(look)
        return self._formats[key]

    def sheet(self, name: str, title: str, note: str, tab: str) -> Sheet:
        """A new sheet with its title, a line of explanation and the master check."""
        held = self._file.add_worksheet(name)
        made = Sheet(self, name, held)
        held.hide_gridlines(2)
        held.set_tab_color(tab)
        held.set_landscape()
        held.set_paper(9)
        held.fit_to_pages(1, 0)
        held.set_footer("&L&8&A&R&8Page &P of &N")
        made.text(0, 0, title, "title")
        made.text(1, 0, note, "note")
        if name != "Checks":
            made.waiting.append((2, 0))
        self.sheets[name] = made
        return made

    def chart(self, kind: dict[str, str]) -> Any:
        """A native chart, in the house look."""
        made = self._file.add_chart(kind)
        made.set_legend({"position": "bottom", "font": {"size": 9}})
        made.set_chartarea({"border": {"none": True}})
        return made

    def finish(self, passed: bool) -> None:
        """Fill in what depends on all checks."""
        words = f"All checks of this workbook pass: {'yes' if passed else 'NO, see Checks'}"
        for sheet in self.sheets.values():
            for row, column in sheet.waiting:
                made = f'"All checks of this workbook pass: "&IF({MASTER},"yes","NO, see Checks")'
                sheet.formula(row, column, made, words, "check")

    def table_name(self, wanted: str) -> str:
        """A table name that is free in this file."""
        name = wanted
        while name in self._tables:
            name += "_"
        self._tables.add(name)
        return name


@dataclass
class Sheet:
    """One sheet; rows and columns count from 0."""

    book: Book
    name: str
    raw: Any
    waiting: list[tuple[int, int]] = field(default_factory=list)

    def text(self, row: int, column: int, value: str, style: str = "text") -> None:
        """Text, never a formula or a link; what a cell cannot hold is cut and says so."""
        if len(value) > _LONGEST_TEXT:
            value = value[: _LONGEST_TEXT - 20] + " ... (cut off)"
        self.raw.write_string(row, column, value, self.book.style(style))

    def number(self, row: int, column: int, value: float, style: str = "calc", shown: str = "") -> None:
        """A number; missing or infinite values leave the cell empty."""
        if value is None or not math.isfinite(value):
            self.raw.write_blank(row, column, None, self.book.style(style))
            return
        self.raw.write_number(row, column, float(value), self.book.style(style, shown or number_format(value)))

    def formula(self, row: int, column: int, formula: str, value: Any, style: str = "calc", shown: str = "") -> None:
        """A formula together with its value, so that a reader that does not recalculate shows the number."""
        if isinstance(value, float | int) and not isinstance(value, bool) and not shown:
            shown = number_format(value)
        if isinstance(value, bool):
            shown = _TRUTH
        held = "" if value is None else value
        self.raw.write_formula(row, column, f"={formula}", self.book.style(style, shown), held)

    def link(self, row: int, column: int, sheet: str) -> None:
        """A link to another sheet of this file."""
        self.raw.write_url(row, column, f"internal:'{sheet}'!A1", self.book.style("link"), sheet)

    def widths(self, widths: Sequence[float]) -> None:
        """Widths of the columns from the first."""
        for index, width in enumerate(widths):
            self.raw.set_column(index, index, width)

    def paragraph(self, row: int, column: int, last: int, value: str, style: str = "wrap", per_line: int = 150) -> None:
        """Wrapped text over merged cells, the row as high as it needs."""
        self.raw.merge_range(row, column, row, last, "", self.book.style(style))
        self.text(row, column, value, style)
        self.raw.set_row(row, 14.5 * max(1, math.ceil(len(value) / per_line)) + 3)

    def paragraph_in(self, row: int, column: int, value: str, per_line: int, style: str = "wrap") -> None:
        """Wrapped text in one wide cell, the row as high as it needs."""
        self.text(row, column, value, style)
        self.raw.set_row(row, 14.5 * max(1, math.ceil(len(value) / per_line)) + 3)

    def cell_of(self, row: int, column: int, value: Any, held: Column) -> None:
        """One cell of a table by the kind of its column."""
        style = held.kind if held.kind in ("input", "solver") else "calc"
        if isinstance(value, bool):
            self.raw.write_boolean(row, column, value, self.book.style(style))
        elif isinstance(value, str):
            plain = "indented" if column else "text"
            self.text(row, column, value, style if style != "calc" else plain)
        else:
            self.number(row, column, float("nan") if value is None else value, style, held.shown)

    def table(self, row: int, columns: Sequence[Column], rows: Iterable[Sequence[Any]], name: str) -> int:
        """A real table: a units row, the header, the data; returns the row of the header.

        Widths are set from the columns. An empty table keeps one blank row, as Excel wants.
        """
        for index, held in enumerate(columns):
            right = held.kind != "text"
            self.text(row, index, held.unit, "unit_right" if right else "unit")
        last = row + 1
        for values in rows:
            last += 1
            for index, (value, held) in enumerate(zip(values, columns, strict=True)):
                self.cell_of(last, index, value, held)
        looks = [
            "header_right" if c.kind != "text" else "header_indented" if k else "header" for k, c in enumerate(columns)
        ]
        heads = [{"header": c.title, "header_format": self.book.style(k)} for c, k in zip(columns, looks, strict=True)]
        if any(len(c.title) > c.width for c in columns):
            self.raw.set_row(row + 1, 29)
        span = (row + 1, 0, max(last, row + 2), len(columns) - 1)
        options = {"name": self.book.table_name(name), "columns": heads, "style": "Table Style Light 1"}
        self.raw.add_table(*span, options)
        for index, held in enumerate(columns):
            self.raw.set_column(index, index, held.width)
        return row + 1
