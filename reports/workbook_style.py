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

from reports.workbook_palette import ACCENT, CHECKED, EXPORT, INPUT, LINK, MUTED, PAPER, SOLVER, TABS, WARNED
from supply.input_text import shown as as_text

__all__ = ["MASTER", "Book", "Column", "Sheet", "cell", "column_letter", "number_format"]

#: Where the Checks sheet says whether every check passed.
MASTER = "Checks!$B$4"
FONT = "Calibri"
#: Rows of title, explanation and master check, and one that is empty.
_HEADS = 4
_LONGEST_TEXT = 32767
#: Letters of running text that a column takes over its width, which is counted in digits.
_LETTERS = 1.1
#: Letters of column widths that one page takes in readable print; up to how many it stands upright.
_ACROSS, _UPRIGHT = 270, 115
#: Programs that keep truth values as numbers show them in words too.
_TRUTH = '"TRUE";"TRUE";"FALSE"'
_OPTIONS = {
    "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False, "nan_inf_to_errors": False,
    "default_date_format": "yyyy-mm-dd",
}  # fmt: skip
_FORMATS: dict[str, dict[str, Any]] = {
    "title": {"valign": "bottom", "bold": True, "font_size": 16, "font_color": ACCENT},
    "heading": {"valign": "bottom", "bold": True, "font_size": 12, "font_color": ACCENT, "bottom": 1},
    "note": {"italic": True, "font_color": MUTED},
    "note_wrap": {"italic": True, "font_color": MUTED, "text_wrap": True},
    "wrap": {"text_wrap": True},
    "bold_wrap": {"text_wrap": True, "bold": True},
    "warn": {"text_wrap": True, "bg_color": WARNED, "font_color": ACCENT},
    "unit": {"italic": True, "font_color": MUTED, "font_size": 9, "align": "left"},
    "unit_right": {"italic": True, "font_color": MUTED, "font_size": 9, "align": "right"},
    "header": {"bold": True, "bottom": 1, "text_wrap": True},
    "header_right": {"bold": True, "bottom": 1, "align": "right", "text_wrap": True},
    "text": {},
    "code": {"font_name": "Consolas", "font_size": 9},
    "input": {"bg_color": INPUT},
    "solver": {"pattern": 17, "fg_color": SOLVER, "bg_color": PAPER},
    "link": {"font_color": LINK},
    "export": {"font_color": EXPORT},
    "export_total": {"font_color": EXPORT, "bold": True, "top": 1},
    "counter": {"bg_color": CHECKED},
    "check": {"italic": True, "bg_color": CHECKED},
    "total": {"bold": True, "top": 1},
    "calc": {},
}


@dataclass(frozen=True)
class Column:
    """A column of a table: header, unit, width, kind (`text`, `number`, `input`, `solver`), number format.

    `wrap` is off in long lists, where every row stays one line.
    """

    title: str
    unit: str = ""
    width: float = 14
    kind: str = "text"
    shown: str = ""
    wrap: bool = True


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
        self._file.set_properties({k: as_text(v) if isinstance(v, str) else v for k, v in properties.items()})
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
        """A named format (`_indented`: set in from the left), with a number format where one is given."""
        key = (name, shown)
        if key not in self._formats:
            look = {"font_name": FONT, "font_size": 10, "valign": "top"} | _FORMATS[name.removesuffix("_indented")]
            look |= ({"num_format": shown} if shown else {}) | (
                {"indent": 1, "align": "left"} if name.endswith("_indented") else {}
            )
            self._formats[key] = self._file.add_format(look)
        return self._formats[key]

    def sheet(self, name: str, title: str, note: str, tab: str) -> Sheet:
        """A new sheet with its title, a line of explanation and the master check; `tab`: a name of `TABS`."""
        held = self._file.add_worksheet(name)
        made = Sheet(self, name, held)
        held.hide_gridlines(2)
        held.set_tab_color(TABS[tab])
        held.set_paper(9)
        held.set_footer("&L&8&A&R&8Page &P of &N")
        made.text(0, 0, title, "title")
        held.set_row(0, 22)
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
        """Fill in what depends on all checks, and lay out the printed pages."""
        words = f"All checks of this workbook pass: {'yes' if passed else 'NO, see Checks'}"
        for sheet in self.sheets.values():
            for row, column in sheet.waiting:
                made = f'"All checks of this workbook pass: "&IF({MASTER},"yes","NO, see Checks")'
                sheet.formula(row, column, made, words, "check")
            sheet.lay_out()

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
    #: Set where the whole sheet is to be printed on one page.
    one_page: bool = False
    _widths: dict[int, float] = field(default_factory=dict)
    _frozen: tuple[int, int] = (0, 0)
    _breaks: list[int] = field(default_factory=list)

    def text(self, row: int, column: int, value: str, style: str = "text") -> None:
        """Text, never a formula or a link; control characters as escapes; what a cell cannot hold is cut off."""
        value = as_text(value)
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
            self._widths[index] = width

    def freeze(self, row: int, column: int) -> None:
        """Keep the rows above and the columns before in view; printed pages repeat the heads among them."""
        self.raw.freeze_panes(row, column)
        self._frozen = (row, column)

    def break_before(self, row: int) -> None:
        """Begin a new printed page at a row, so that a chart is not cut in two."""
        self._breaks.append(row)

    def lay_out(self) -> None:
        """How the sheet is printed: pages across that keep it readable, heads of rows and columns on each of them."""
        row, column = self._frozen
        total, kept = sum(self._widths.values()), sum(self._widths.get(k, 0.0) for k in range(column))
        across = 1 if self.one_page else math.ceil((total - kept) / (_ACROSS - kept))
        if self.one_page or total <= _UPRIGHT:
            self.raw.set_portrait()
        else:
            self.raw.set_landscape()
        if row > _HEADS:
            self.raw.repeat_rows(_HEADS, row - 1)
        if across > 1:
            self.raw.repeat_columns(0, column - 1)
        self.raw.fit_to_pages(across, int(self.one_page))
        if self._breaks:
            self.raw.set_h_pagebreaks(self._breaks)

    def height(self, row: int, words: Iterable[tuple[str, float]]) -> None:
        """Make a row high enough for wrapped texts in columns of these widths: not every program does it itself."""
        lines = max((math.ceil(len(text) / (_LETTERS * width)) for text, width in words), default=1)
        if lines > 1:
            self.raw.set_row(row, min(409, 13.5 * lines + 1.5))

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
            plain = "wrap" if held.wrap and len(value) > held.width else "text"
            self.text(row, column, value, (style if style != "calc" else plain) + "_indented" * bool(column))
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
            wrapped = ((v, held.width) for v, held in zip(values, columns, strict=True) if held.wrap)
            self.height(last, [(v, width) for v, width in wrapped if isinstance(v, str)])
        looks = [
            "header_right" if c.kind != "text" else "header_indented" if k else "header" for k, c in enumerate(columns)
        ]
        heads = [
            {"header": as_text(c.title), "header_format": self.book.style(k)}
            for c, k in zip(columns, looks, strict=True)
        ]
        self.raw.set_row(row + 1, 17)
        self.height(row + 1, [(c.title, 0.8 * c.width) for c in columns])
        span = (row + 1, 0, max(last, row + 2), len(columns) - 1)
        options = {"name": self.book.table_name(name), "columns": heads, "style": "Table Style Light 1"}
        self.raw.add_table(*span, options)
        self.widths([held.width for held in columns])
        return row + 1
