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

from supply.facts.catalog import COLUMNS
from supply.facts.dating import date_fact
from supply.facts.units import ATTRIBUTE_UNITS, expression

__all__ = ["ingest", "origin_of", "scope_of"]

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
        ValueError: when a row has a date that the rule cannot read, with its line.
    """
    rows = []
    with raw.open(encoding="utf-8", newline="") as handle:
        reader = csv.DictReader(line for line in handle if not line.startswith("#"))
        for row in reader:
            try:
                dates = date_fact(row["quantity"], row["as_of"], row["source"], row["kind"], copied_on or date.today())
            except ValueError as exc:
                raise ValueError(f"{raw.name}:{reader.line_num}: {row['id']}: {exc}") from exc
            text = expression(row["unit"]) in ATTRIBUTE_UNITS
            rows.append(
                {
                    **{c: row.get(c, "") for c in COLUMNS},
                    "scope": row.get("scope") or scope_of(row["subject"], row["quantity"], row["unit"]),
                    "valid_from": dates.valid_from.isoformat(),
                    "valid_to": dates.valid_to.isoformat(),
                    "known_on": dates.known_on.isoformat(),
                    "date_rule": dates.rule,
                    "kind": "attribute" if text else row["kind"],
                    "origin": row.get("origin") or origin_of(row["source"]),
                }
            )
    with target.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return len(rows)


if __name__ == "__main__":
    print(f"{ingest(Path(sys.argv[1]), Path(sys.argv[2]))} rows written to {sys.argv[2]}")
