"""Reading a CSV that a user hands in: header, rows, and a clear refusal of what is no table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

__all__ = ["CaseTableError", "read_case_table"]

#: A cell longer than this is no case; the default limit of the csv module would stop at 128 KiB.
LONGEST_CELL = 16 * 2**20


class CaseTableError(ValueError):
    """A file that is no table of cases; the message names it and the line."""


def read_case_table(path: Path, known: Sequence[str]) -> tuple[list[str], list[dict[str, str]]]:
    """Header and rows of a UTF-8 CSV; lines that start with # outside a quoted cell, and blank lines, are skipped.

    ``known`` are columns of which a header has at least one. Short rows are filled with empty cells; cells beyond the
    header are dropped when they are empty.

    Raises:
        CaseTableError: for a file that cannot be read, has no header of known columns, states a column twice, or has a
            row with more cells than the header.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise CaseTableError(f"{path}: cannot be read as UTF-8 text: {problem}") from problem
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        lines = list(_records(text))
    except csv.Error as problem:
        raise CaseTableError(f"{path}: cannot be read as CSV: {problem}") from problem
    finally:
        csv.field_size_limit(before)
    lines = [cells for cells in lines if cells and (len(cells) > 1 or cells[0].strip())]
    header = _header(path, lines[0] if lines else [], known)
    rows = []
    for number, cells in enumerate(lines[1:], 1):
        if any(cell.strip() for cell in cells[len(header) :]):
            raise CaseTableError(f"{path}: row {number} ({cells[0]!r} ...) has more cells than the header")
        rows.append(dict(zip(header, [*cells, *[""] * len(header)], strict=False)))
    return header, rows


def _header(path: Path, header: list[str], known: Sequence[str]) -> list[str]:
    while header and not header[-1].strip():
        header = header[:-1]
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise CaseTableError(f"{path}: columns stated twice: {', '.join(twice)}")
    if not {name.strip() for name in header} & set(known):
        raise CaseTableError(f"{path}: no header line; its first line must name columns such as {', '.join(known[:6])}")
    return header


def _records(text: str) -> Iterator[list[str]]:
    """Records without comments; a line inside a quoted cell is no comment."""
    between = True

    def lines() -> Iterator[str]:
        # The reader asks for one line a record, and for more only while a quoted cell is open.
        nonlocal between
        for line in io.StringIO(text, newline=""):
            if not (between and line.startswith("#")):
                between = False
                yield line

    for record in csv.reader(lines(), strict=True):
        between = True
        yield record
