"""The market report as a PDF: the same words, figures and tables as the page, set by typst without a network.

Words reach the template as data, so a title or a note is never read as markup. Needs the extra `pdf`.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.spans import fill
from supply.files import whole_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reports.blocks import Section, Table
    from reports.figures.style import FigureCard
    from reports.market_report import Report
    from scenarios.runs import Run

__all__ = ["LONGEST_TABLE", "RANKED_ROWS", "MissingExtraError", "column_widths", "render_pdf", "write_pdf"]

#: Folded tables with more rows than this stay in the page and the workbook.
LONGEST_TABLE = 60
#: Ranked tables of which the first rows are printed, however long they are.
RANKED_ROWS = {"weak_inputs": 20}
#: Longest cell that is kept on one line where space is short, and characters that a line of a table holds.
_WRAP, _FITS = 16, 95
#: Characters that the space between two columns takes.
_PADDING = 3
_TYPST = {"png": "png", "jpeg": "jpg", "gif": "gif", "svg": "svg"}
#: Tables up to this many rows and letters are not broken over two pages; a longer one would leave half a page empty.
_WHOLE_ROWS, _WHOLE_LETTERS = 10, 1200


class MissingExtraError(ValueError):
    """A format whose optional dependency is not installed; the message names the extra."""


def column_widths(table: Table) -> list[int]:
    """Shares of the page width by column; all 0 where every column can be as wide as its longest cell.

    A column asks for its longest cell up to a limit, beyond it for the square root of what is left, and never for less
    than its longest word, so that texts wrap and numbers do not.
    """
    wishes = []
    for k, held in enumerate(table.columns):
        cells = [row[k].text for row in table.rows]
        longest = max((len(c) for c in cells), default=0)
        words = max((len(w) for c in [held.title, *cells] for w in c.split()), default=1)
        wish = longest if longest <= _WRAP else _WRAP + round(1.5 * (longest - _WRAP) ** 0.5)
        wishes.append(max(wish, min(words, _WRAP)) + _PADDING)
    natural = sum(
        max([len(held.title), *(len(row[k].text) for row in table.rows)]) for k, held in enumerate(table.columns)
    )
    return [0] * len(wishes) if natural <= _FITS else wishes


def _said(report: Report, key: str, **fields: Any) -> str:
    """Words in the language of the report, which may no longer be the one in use."""
    return fill(report.words[key], fields)


def _figure(card: FigureCard, source: str) -> dict[str, str]:
    held = {"headline": card.headline, "subtitle": card.subtitle, "alt": card.alt, "svg": card.svg}
    return {**held, "source": source}


def _table(report: Report, table: Table) -> dict[str, Any]:
    rows = table.rows[: _rows_on_paper(table)]
    gone = len(table.rows) - len(rows)
    more = _said(report, "first_rows", shown=len(rows), rows=len(table.rows)) if gone else ""
    return {
        "whole": len(rows) <= _WHOLE_ROWS and sum(len(x.text) for row in rows for x in row) <= _WHOLE_LETTERS,
        "caption": table.caption,
        "note": f"{table.note} {more}".strip(),
        "columns": [{"title": c.title, "number": c.number} for c in table.columns],
        "widths": column_widths(table),
        "rows": [[{"text": x.text, "mark": x.mark, "href": x.href} for x in row] for row in rows],
    }


def _rows_on_paper(table: Table) -> int:
    """Rows that are printed: all, the first of a ranked table, or none of a long folded one."""
    if not table.folded or len(table.rows) <= LONGEST_TABLE:
        return len(table.rows)
    return RANKED_ROWS.get(table.short, 0)


def _section(report: Report, section: Section) -> dict[str, Any]:
    gone = [t for t in section.tables if not _rows_on_paper(t)]
    return {
        "title": section.title,
        "paragraphs": section.paragraphs,
        "warnings": section.warnings,
        "figures": [_figure(f, _source(report, f)) for f in section.figures],
        "tables": [_table(report, t) for t in section.tables if _rows_on_paper(t)],
        "elsewhere": [_said(report, "elsewhere", caption=t.caption, rows=len(t.rows)) for t in gone],
    }


def _source(report: Report, card: FigureCard) -> str:
    """The whole source line under the first figure, the run alone under the others."""
    return report.source_line if card is report.figures[0] else _said(report, "short_source", run=report.run_id)


def _content(report: Report) -> str:
    content = {
        "title": report.title,
        "subtitle": report.subtitle,
        "warnings": report.warnings,
        "answer": [{"label": line.label, "text": line.text} for line in report.answer],
        "lead": _figure(report.lead, _source(report, report.lead)) if report.lead else None,
        "sections": [_section(report, s) for s in report.sections],
        "footer": report.footer,
        "short_footer": _said(report, "short_footer", run=report.run_id),
        "contents": _said(report, "contents"),
        "continued": _said(report, "continued"),
        "language": report.language.partition("-")[0],
        "logo": {"bytes": list(report.logo.data), "format": _TYPST[report.logo.kind]} if report.logo else None,
    }
    return json.dumps(content, ensure_ascii=False)


def render_pdf(report: Report) -> bytes:
    """The report as PDF bytes, tagged for screen readers; the same report gives the same bytes.

    Raises:
        MissingExtraError: when typst is not installed.
    """
    try:
        import typst
    except ImportError as exc:
        raise MissingExtraError("a PDF needs typst: install the extra with pip install 'wafer2token[pdf]'") from exc
    import matplotlib as mpl

    template = (files("reports") / "templates" / "report.typ").read_bytes()
    # The figures name DejaVu Sans, which matplotlib ships; system fonts would change the page from machine to machine.
    held = str(Path(mpl.get_data_path()) / "fonts" / "ttf")
    fonts = typst.Fonts(include_system_fonts=False, font_paths=[held])
    made: bytes = typst.compile(
        template,
        font_paths=fonts,
        sys_inputs={"report": _content(report)},
        timestamp=0,
        pdf_standards="ua-1",
    )
    return made


def write_pdf(runs: Sequence[Run], path: str | Path, previous: Run | None = None, report: Report | None = None) -> Path:
    """Write the PDF report of finished runs; returns its path.

    Raises:
        MissingExtraError: when typst is not installed.
        PlaceholderError: when an input of a run is a placeholder.
    """
    from reports.market_report import make_report

    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    made = render_pdf(report or make_report(runs, previous))
    with whole_file(target) as working:
        working.write_bytes(made)
    return target
