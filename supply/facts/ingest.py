"""Copy raw fact rows (id, subject, quantity, value, low, high, unit, as_of, kind, source, url, note) into `data/facts`.

    python -m supply.facts.ingest RAW.csv data/facts/NAME.csv

fills the three dates by the rule of `supply.facts.dating`, the scope and the origin by the rules below, and marks
text values as attributes. Nothing is dropped; rows with a guessed date keep a `?` in `date_rule`.
"""

from __future__ import annotations

import csv
import re
import sys
from datetime import date
from pathlib import Path

from supply.facts.catalog import COLUMNS, check_rows
from supply.facts.dating import date_fact
from supply.facts.record import FactError
from supply.facts.units import ATTRIBUTE_UNITS, expression
from supply.files import whole_text
from supply.input_table import InputTableError, numbered_rows

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


def ingest(raw: Path, target: Path, copied_on: date | None = None) -> int:
    """Copy one raw file on a day (default: today); returns the number of rows written.

    Raises:
        FactError: with every row that the catalogue would refuse, or whose date the rule cannot read, each with its
            line; nothing is written then.
    """
    day = copied_on or date.today()
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
    if problems:
        raise FactError("\n".join([f"{len(problems)} problem(s) in {raw.name}, nothing was written:", *problems]))
    with whole_text(target) as handle:
        writer = csv.DictWriter(handle, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(row for _, row in rows)
    return len(rows)


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


if __name__ == "__main__":
    print(f"{ingest(Path(sys.argv[1]), Path(sys.argv[2]))} rows written to {sys.argv[2]}")
