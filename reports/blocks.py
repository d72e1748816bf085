"""The pieces of a report that every format shares: sections of paragraphs, figures and tables with typed cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from reports.catalogue import columns, say, spoken
from reports.figures.style import FigureCard

__all__ = ["Cell", "Column", "Link", "Section", "Table", "safe_url"]


@dataclass(frozen=True)
class Cell:
    """What is printed, the number behind it (None for text), whether it rests on an illustrative input, its anchor."""

    text: str
    value: float | None = None
    mark: bool = False
    href: str = ""
    anchor: str = ""


@dataclass(frozen=True)
class Column:
    """A column's title and whether its cells are numbers."""

    title: str
    number: bool = False


@dataclass
class Table:
    """A table of cells; `folded` ones open on request, `short` is its name in the workbook."""

    caption: str
    columns: list[Column]
    rows: list[list[Cell]]
    note: str = ""
    folded: bool = False
    short: str = ""

    @classmethod
    def of(cls, caption: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], **more: Any) -> Table:
        """A table from plain values: a title that starts with `#` marks a column of numbers.

        >>> t = Table.of("x", ["name", "#n"], [["a", ("1.0", 1.0)]])
        >>> t.columns[1], t.rows[0][1].value
        (Column(title='n', number=True), 1.0)
        """
        heads = [Column(c.removeprefix("#"), c.startswith("#")) for c in columns]
        return cls(caption, heads, [[_cell(v) for v in row] for row in rows], **more)

    @classmethod
    def named(cls, short: str, rows: Sequence[Sequence[Any]], folded: bool = False, **fields: Any) -> Table:
        """A table whose caption, columns and note are words of the catalogue, filled in with `fields`.

        >>> Table.named("prices_now", [], period="2026-Q1", periods=[], money=[], money_note="").caption
        'Prices in 2026-Q1'

        Raises:
            KeyError: a table that is not in the catalogue, or a field that is not given.
        """
        note = say(f"tables.{short}.note", **fields) if f"tables.{short}.note" in spoken().words else ""
        caption = say(f"tables.{short}.caption", **fields)
        return cls.of(caption, columns(short, **fields), rows, note=note, folded=folded, short=short)


@dataclass
class Section:
    """One section of the report; its title comes from the catalogue unless it is given."""

    id: str
    title: str = ""
    paragraphs: list[str] = field(default_factory=list)
    figures: list[FigureCard] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.title = self.title or say(f"sections.{self.id}")


@dataclass(frozen=True)
class Link:
    """A text with the address of its source."""

    text: str
    url: str


def safe_url(url: str) -> str:
    """The address where a browser may follow it, empty for anything but http(s).

    >>> safe_url("https://epoch.ai/data"), safe_url("javascript:alert(1)")
    ('https://epoch.ai/data', '')
    """
    return url if url.lower().startswith(("https://", "http://")) and not any(c in url for c in ' "<>\n') else ""


def _cell(value: Any) -> Cell:
    if isinstance(value, Cell):
        return value
    if isinstance(value, Link):
        return Cell(value.text, href=safe_url(value.url))
    if isinstance(value, tuple):
        return Cell(str(value[0]), None if value[1] is None else float(value[1]))
    return Cell("" if value is None else value if isinstance(value, str) else str(value))
