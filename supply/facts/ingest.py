"""Add raw fact rows (id, subject, quantity, value, low, high, unit, as_of, kind, source, url, note) to `data/facts`.

    python -m supply.facts.ingest RAW.csv data/facts/NAME.csv [--replace]

fills the three dates by the rule of `supply.facts.dating`, the scope and the origin by the rules below, and marks
text values as attributes. Nothing is dropped: rows that NAME.csv holds stay, and rows with a guessed date keep a `?` in
`date_rule`.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

from supply.facts.catalog import COLUMNS, check_rows
from supply.facts.dating import date_fact
from supply.facts.record import FactError
from supply.facts.units import ATTRIBUTE_UNITS, expression
from supply.files import whole_text
from supply.input_files import InputFileError, read_utf8
from supply.input_table import InputTableError, numbered_rows
from supply.paths import data_dir

__all__ = ["ingest"]

RAW_COLUMNS = (
    *("id", "subject", "quantity", "value", "low", "high"),
    *("unit", "as_of", "kind", "source", "url", "note"),
)
_RELAY = re.compile(r"(?:citing|quoting|repost of|copied from|cites|quotes|copy of)\s+(.+?)(?:\s*\(|$)")
_SCOPES = (
    ("facility watts", re.compile(r"facility|site_power|energised|data[- ]cent(?:er|re).*power|pue", re.I)),
    ("chassis watts", re.compile(r"(?:server|node|system|chassis|rack)_?.*power|power_.*(?:server|node|rack)", re.I)),
    ("chip watts", re.compile(r"tdp|chip_power|board_power", re.I)),
    ("world", re.compile(r"^world|global|industry", re.I)),
)


def origin_of(source: str) -> str:
    """First publisher where the source is a relay, else the source itself.

    >>> origin_of("SMBOM, TSMC wafer price history citing Digitimes (2022-11)")
    'Digitimes'
    """
    match = _RELAY.search(source)
    return match[1].strip() if match else source


def scope_of(subject: str, quantity: str, unit: str) -> str:
    """What is counted: which watts for powers, else the world or the subject named.

    >>> scope_of("NVIDIA H100 SXM", "tdp", "W")
    'chip watts'
    """
    for label, pattern in _SCOPES:
        if label.endswith("watts") and unit not in ("W", "kW", "MW", "GW", "W/GPU", "kW/GPU", "kW/rack"):
            continue
        if pattern.search(f"{quantity}") or (label == "world" and pattern.search(subject)):
            return label
    return "subject"


def ingest(raw: Path, target: Path, copied_on: date | None = None, *, replace: bool = False) -> int:
    """Add one raw file to a facts file, new or not, on a day (default: today); returns the number of rows added.

    `replace` lets a row take the place of the one of the same id in `target`.

    Raises:
        FactError: with every row that the catalogue would refuse, whose date the rule cannot read, or whose id stands
            in `target` or in another facts file of its folder, each with its line; for a target that is no CSV, and
            raw rows in the folder of the facts. Nothing is written then.
    """
    day = copied_on or date.today()
    if target.suffix != ".csv":
        raise FactError(f"{target}: a facts file ends in .csv; no other is read")
    if Path(os.path.realpath(raw)).parent == Path(os.path.realpath(data_dir() / "facts")):  # a loop is told below
        raise FactError(f"{raw}: every CSV in this folder is read as facts; move the raw rows to another one")
    try:
        header, found = numbered_rows(raw, RAW_COLUMNS, COLUMNS, "facts table")
    except InputTableError as exc:
        raise FactError(str(exc)) from exc
    lacking, unknown = sorted(set(RAW_COLUMNS) - set(header)), sorted({*header} - {*RAW_COLUMNS, *COLUMNS})
    if lacking or unknown:
        said = [f"lacks {', '.join(lacking)}"] * bool(lacking) + [f"has unknown {', '.join(unknown)}"] * bool(unknown)
        raise FactError(f"{raw.name}:1: {' and '.join(said)}; columns are {', '.join(RAW_COLUMNS)}")
    problems: list[str] = []
    rows = [(line, made) for line, row in found if (made := _dated(row, f"{raw.name}:{line}", day, problems))]
    check_rows(rows, raw.name, {}, problems)
    held = _rows_of(target)
    problems += _taken(rows, held, raw, target, replace)
    if problems:
        raise FactError("\n".join([f"{len(problems)} problem(s) in {raw.name}, nothing was written:", *problems]))
    merged = {row["id"]: row for row in (*held, *(row for _, row in rows))}
    with whole_text(target) as handle:
        writer = csv.DictWriter(handle, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(merged.values())
    return len(rows)


def _rows_of(target: Path) -> list[dict[str, str]]:
    """Rows of a facts file as they stand; none of a file that is empty or not there."""
    if not target.is_file():
        return []
    reader = csv.DictReader(io.StringIO(read_utf8(target, "facts table"), newline=""), restval="")
    if reader.fieldnames and tuple(reader.fieldnames) != COLUMNS:
        raise FactError(
            f"{target}:1: no facts file, so nothing is added to it; give a new name, e.g. data/facts/my.csv"
        )
    rows = list(reader)
    if len({row["id"] for row in rows}) < len(rows) or any(None in row for row in rows):
        raise FactError(f"{target}: an id stands in it twice, or a row has more cells than columns: correct it first")
    return rows


def _taken(
    rows: list[tuple[int, dict[str, str]]], held: list[dict[str, str]], raw: Path, target: Path, replace: bool
) -> Iterator[str]:
    """A problem for each new row whose id is in use; `replace` frees those of the target only."""
    places = {} if replace else {row["id"]: (target.name, "; --replace puts this row in its place") for row in held}
    for other in sorted(target.parent.glob("*.csv")):
        if any(same.exists() and other.samefile(same) for same in (raw, target)):
            continue
        try:
            ids = [row["id"] for row in _rows_of(other)]
        except (FactError, InputFileError, OSError, csv.Error):  # a series file, or one that the catalogue refuses
            continue
        places |= dict.fromkeys(ids, (other.name, "; ids are unique over all fact files"))
    for line, row in rows:
        if row["id"] in places:
            name, more = places[row["id"]]
            yield f"{raw.name}:{line}: {row['id']:.80}: {name} holds this id already: give the row another{more}"


def _dated(row: dict[str, str], where: str, copied_on: date, problems: list[str]) -> dict[str, str]:
    """A row with its dates, scope and origin; empty, with a problem, where the dates cannot be read."""
    try:
        dates = date_fact(row["quantity"], row["as_of"], row["source"], row["kind"], copied_on)
    except ValueError as exc:
        problems.append(f"{where}: {row['id']:.80}: {exc}")
        return {}
    text = expression(row["unit"]) in ATTRIBUTE_UNITS
    return {
        **{c: row.get(c, "") for c in COLUMNS},
        "scope": row.get("scope") or scope_of(row["subject"], row["quantity"], row["unit"]),
        "valid_from": dates.valid_from.isoformat(),
        "valid_to": dates.valid_to.isoformat(),
        "known_on": dates.known_on.isoformat(),
        "date_rule": dates.rule,
        "kind": "attribute" if text else row["kind"],
        "origin": row.get("origin") or origin_of(row["source"]),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code: 0 done, 2 wrong arguments, 3 refused."""
    parser = argparse.ArgumentParser(
        prog="python -m supply.facts.ingest",
        description="Add raw fact rows to a facts file. Rows that it holds stay; dates are filled by rule.",
        epilog=f"Columns of RAW: {', '.join(RAW_COLUMNS)}.",
    )
    parser.add_argument("raw", metavar="RAW", type=Path, help="CSV with the new rows")
    parser.add_argument("target", metavar="OUT", type=Path, help="facts file, e.g. data/facts/mychip.csv; may be new")
    parser.add_argument("--replace", action="store_true", help="a row takes the place of the one of its id in OUT")
    given = parser.parse_args(arguments)
    try:
        count = ingest(given.raw, given.target, replace=given.replace)
    except (ValueError, OSError) as exc:
        print(f"error: {exc}", file=sys.stderr)
        return 3
    print(f"{count} rows {'added or replaced in' if given.replace else 'added to'} {given.target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
