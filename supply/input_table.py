"""Reading a CSV that a user hands in: header, rows, and a clear refusal of what is no table."""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from supply.input_files import InputFileError, read_utf8

__all__ = ["InputTableError", "numbered_rows", "read_input_table", "slips", "unread"]

#: A cell longer than this is no case; the default limit of the csv module would stop at 128 KiB.
LONGEST_CELL = 16 * 2**20
#: A column whose name is this close to one that is read, and missing, is a slip of the pen (ratio of `difflib`).
_SLIP = 0.85


class InputTableError(ValueError):
    """A file that is no table; the message names it and the line."""


def read_input_table(
    path: Path, known: Sequence[str], read: Collection[str] = (), kind: str = "case table"
) -> tuple[list[str], list[dict[str, str]]]:
    """As `numbered_rows`, without the line numbers.

    Raises:
        InputTableError: as `numbered_rows`.
    """
    header, rows = numbered_rows(path, known, read, kind)
    return header, [row for _, row in rows]


def numbered_rows(
    path: Path, known: Sequence[str], read: Collection[str] = (), kind: str = "case table"
) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Header, and rows with the line on which each ends, of a UTF-8 CSV.

    Lines that start with # outside a quoted cell, and blank lines, are left out.

    ``known`` are columns of which a header has at least one, ``read`` all those that are read: a slip in the name of
    one is refused, other columns pass. Short rows are filled with empty cells; cells beyond the header are dropped when
    they are empty.

    Raises:
        InputTableError: for a file that cannot be read, has no header of known columns, states a column twice,
            misspells one, or has a row with more cells than the header.
    """
    try:
        text = read_utf8(path, kind)
    except InputFileError as problem:
        raise InputTableError(str(problem)) from problem
    except OSError as problem:
        raise InputTableError(f"{path}: cannot be read: {problem.strerror or problem}") from problem
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        lines = list(_records(text))
    except csv.Error as problem:
        raise InputTableError(f"{path}: cannot be read as CSV: {problem}") from problem
    finally:
        csv.field_size_limit(before)
    lines = [(line, cells) for line, cells in lines if cells and (len(cells) > 1 or cells[0].strip())]
    header = _header(path, lines[0][1] if lines else [], known)
    if wrong := slips(header, read):
        raise InputTableError(f"{path}: no such column {', '.join(wrong)}")
    rows = []
    for number, (line, cells) in enumerate(lines[1:], 1):
        if any(cell.strip() for cell in cells[len(header) :]):
            raise InputTableError(f"{path}: row {number} ({cells[0]!r:.80} ...) has more cells than the header")
        rows.append((line, dict(zip(header, [*cells, *[""] * len(header)], strict=False))))
    return header, rows


def _header(path: Path, header: list[str], known: Sequence[str]) -> list[str]:
    while header and not header[-1].strip():
        header = header[:-1]
    names = [name.strip() for name in header]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputTableError(f"{path}: columns stated twice: {', '.join(twice)}")
    if not set(names) & set(known):
        raise InputTableError(
            f"{path}: no header line; its first line must name columns such as {', '.join(known[:6])}"
        )
    return header


def unread(header: Iterable[str], read: Collection[str]) -> list[str]:
    """Columns that pass through unread.

    >>> unread(["model", "batch size", ""], ["model", "hardware"])
    ['batch size']
    """
    return [name.strip() for name in header if name.strip() and name.strip() not in read]


def slips(names: Iterable[str], read: Collection[str]) -> list[str]:
    """Names that nothing reads and that are nearly one which is read and missing, each with what it may mean.

    Half of a column that may be called either way (`concurrency` of `concurrency_or_batch`) is near too.

    >>> slips(["model", "hardwere", "remark"], ["model", "hardware"])
    ["'hardwere' (did you mean hardware?)"]
    >>> slips(["batch"], ["concurrency_or_batch"])
    ["'batch' (did you mean concurrency_or_batch?)"]
    """
    given = [name.strip() for name in names]
    free = sorted(set(read) - set(given))
    either = {half: [name] for name in free if "_or_" in name for half in name.split("_or_")}
    near = {
        name: either.get(name) or difflib.get_close_matches(name, free, n=1, cutoff=_SLIP)
        for name in unread(given, read)
    }
    return [f"{name!r} (did you mean {found[0]}?)" for name, found in near.items() if found]


def _records(text: str) -> Iterator[tuple[int, list[str]]]:
    """Records without comments, with the number of their last line; a line inside a quoted cell is no comment."""
    between, number = True, 0

    def lines() -> Iterator[str]:
        # The reader asks for one line a record, and for more only while a quoted cell is open.
        nonlocal between, number
        for number, line in enumerate(io.StringIO(text, newline=""), 1):  # noqa: B007 the outer function yields it
            if not (between and line.startswith("#")):
                between = False
                yield line

    for record in csv.reader(lines(), strict=True):
        between = True
        # a lone carriage return would break the table that repeats this cell: the csv module does not quote it
        yield number, [cell.replace("\r\n", "\n").replace("\r", "\n") if "\r" in cell else cell for cell in record]
