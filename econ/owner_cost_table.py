"""The table `data/owner_cost.csv`: which fact prices a part from which day, and which series its watts are.

Every row is held against the facts and the parts before one is used; all that is wrong comes at once, with its line.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType

from econ.performance.hardware import hardware_name, known_hardware
from econ.performance.names import did_you_mean
from supply.facts import Catalog
from supply.facts.units import expression
from supply.input_files import read_utf8

__all__ = ["COLUMNS", "SCOPES", "OwnerCostError", "read_owner_costs"]

COLUMNS = ("sku", "title", "input", "valid_from", "scope", "source_ids", "divide_by", "note")
#: What one thing costs; how many accelerators it holds is `divide_by`.
_PRICE = (
    "USD",
    *(f"USD/{one}" for one in ("accelerator", "(8*accelerator)", "(72*accelerator)", "unit", "node", "rack")),
)
#: Input -> scope -> pint expressions that the unit of its fact or series may have.
SCOPES: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "purchase": {
            **dict.fromkeys(("chip", "chip_series", "server", "rack"), _PRICE),
            "site": ("USD/gigawatt",),
        },
        "it_power": {"series": ("W", "watt")},
    }
)
#: Scopes whose `source_ids` is a series; the others name a fact.
_SERIES = ("chip_series", "series")
Row = Mapping[str, str]


class OwnerCostError(ValueError):
    """No facts price this SKU, region or owner (the message lists those that have them), or the table is wrong."""


def read_owner_costs(path: Path, facts: Catalog) -> Mapping[str, tuple[Row, ...]]:
    """Rows by SKU, in the order of their days.

    Raises:
        OwnerCostError: with every unknown column, part, fact, series or scope, and every part without its watts or its
            price, as `file:line: problem`.
    """
    reader = csv.DictReader(io.StringIO(read_utf8(path, "facts table"), newline=""), restval="", restkey="")
    header = list(reader.fieldnames or ())
    problems = [f"{path.name}:1: lacks the column {c}" for c in COLUMNS if c not in header]
    problems += [f"{path.name}:1: unknown column {c!r}{did_you_mean(c, COLUMNS)}" for c in header if c not in COLUMNS]
    if not problems:
        lines = [(reader.line_num, row) for row in reader]
        problems += [f"{path.name}:{line}: {said}" for line, row in lines for said in _wrong(row, facts)]
        problems += [f"{path.name}:{said}" for said in _incomplete(lines)]
    if problems:
        raise OwnerCostError("\n".join([f"{len(problems)} problem(s) in {path.name}, correct them first:", *problems]))
    rows: dict[str, list[Row]] = {}
    for _, row in lines:
        rows.setdefault(row["sku"], []).append(row)
    return {sku: tuple(sorted(entries, key=lambda r: r["valid_from"])) for sku, entries in rows.items()}


def _wrong(row: dict[str, str], facts: Catalog) -> Iterator[str]:
    """What is wrong with one row."""
    if row.get(""):
        yield "more cells than columns: put text with a comma in quotes"
        return
    if not re.fullmatch(r"[a-z0-9_]+", row["sku"]):
        yield f"sku {row['sku']!r} is not an id: lower-case letters, digits and _, as in the fleet of a scenario"
    elif hardware_name(row["sku"]) is None:
        near = did_you_mean(row["sku"], known_hardware())
        yield f"sku {row['sku']!r} is no part of data/hardware.csv{near}: add its row there (the case does not matter)"
    if not row["title"]:
        yield "title is empty: give the name that tables print"
    try:
        date.fromisoformat(row["valid_from"])
    except ValueError:
        yield f"valid_from {row['valid_from']!r} is no day: write YYYY-MM-DD"
    if not _positive(row["divide_by"]):
        yield f"divide_by {row['divide_by']!r}: give the accelerators that the price is for, e.g. 1, or 72 for a rack"
    scopes = SCOPES.get(row["input"])
    if scopes is None:
        yield f"input {row['input']!r} is not one of {', '.join(SCOPES)}"
    elif row["scope"] not in scopes:
        yield f"scope {row['scope']!r} is not one of {', '.join(scopes)}, those of {row['input']}"
    else:
        yield from _source(row["source_ids"], row["scope"], scopes[row["scope"]], facts)


def _source(name: str, scope: str, units: tuple[str, ...], facts: Catalog) -> Iterator[str]:
    """Whether the fact or series is there, with a number of the right unit."""
    try:
        found = facts.series(name) if scope in _SERIES else facts[name]
    except ValueError as exc:
        yield f"source_ids: {exc}"
        return
    if expression(found.unit) not in units:
        wanted = {"site": "USD/GW", "series": "W"}.get(scope, "USD, or USD per part")
        yield f"source_ids: {name} is in {found.unit!r}; scope {scope} needs {wanted}"


def _positive(text: str) -> bool:
    try:
        return 0 < float(text) < float("inf")
    except ValueError:
        return False


def _incomplete(lines: list[tuple[int, dict[str, str]]]) -> Iterator[str]:
    """Parts that lack one of the two inputs, and rows that stand twice."""
    held = {(row["sku"], row["input"]) for _, row in lines}
    first = {row["sku"]: line for line, row in reversed(lines)}
    for sku, line in sorted(first.items(), key=itemgetter(1)):
        for name in SCOPES:
            if (sku, name) not in held:
                what = (
                    "a fact of its price" if name == "purchase" else "the series of its watts with server and network"
                )
                yield f"{line}: {sku!r} has no row with input {name}: add one that names {what}"
    counted = Counter((row["sku"], row["input"], row["valid_from"]) for _, row in lines)
    for line, row in lines:
        if counted[key := (row["sku"], row["input"], row["valid_from"])] > 1:
            yield f"{line}: {key[0]!r} has two rows of {key[1]} from {key[2]}: keep one"
