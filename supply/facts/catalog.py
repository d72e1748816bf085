"""The catalogue: every fact and series under `data/facts`, look-up, and the rule where sources disagree."""

from __future__ import annotations

import csv
import difflib
import io
import math
import re
from collections.abc import Iterable, Iterator
from datetime import date
from functools import cached_property, lru_cache
from pathlib import Path

from supply.facts.dating import span
from supply.facts.record import KINDS, Fact, FactError, SeriesPoint
from supply.facts.series import Series
from supply.facts.units import ATTRIBUTE_UNITS, aliases
from supply.input_files import InputFileError, read_utf8
from supply.input_text import control_character
from supply.paths import data_dir

__all__ = ["Catalog", "catalog", "check_units"]

COLUMNS = (
    "id",
    "subject",
    "quantity",
    "value",
    "low",
    "high",
    "unit",
    "scope",
    "valid_from",
    "valid_to",
    "known_on",
    "date_rule",
    "kind",
    "source",
    "origin",
    "url",
    "note",
)
SERIES_COLUMNS = (
    "series_id",
    "subject",
    "quantity",
    "period",
    "value",
    "low",
    "high",
    "unit",
    "kind",
    "known_since",
    "basis",
    "method",
    "outcome_derived",
)
EXTRA = "more cells"
_ID = re.compile(r"[\w.@#+:/-]{1,200}")
#: Preference among kinds where several sources give the same quantity of the same subject.
KIND_ORDER = ("measured", "published", "estimate", "interpolated", "illustrative", "placeholder", "attribute")


class Catalog:
    """Facts by id, subject and quantity; series by id. Iterating yields the facts."""

    def __init__(self, facts: Iterable[Fact], series: Iterable[Series] = ()) -> None:
        self._facts = {f.id: f for f in facts}
        self._series = {s.id: s for s in series}

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._facts.values())

    def __len__(self) -> int:
        return len(self._facts)

    def __contains__(self, fact_id: object) -> bool:
        return fact_id in self._facts or fact_id in self._points

    @cached_property
    def _points(self) -> dict[str, SeriesPoint]:
        return {p.id: p for s in self._series.values() for p in s.points}

    @property
    def series_ids(self) -> list[str]:
        """Ids of all series, sorted."""
        return sorted(self._series)

    def __getitem__(self, fact_id: str) -> Fact:
        """The fact of an id.

        Raises:
            FactError: when there is none; the message offers the nearest ids.
        """
        if fact_id not in self._facts:
            raise FactError(f"no fact {fact_id!r}{_did_you_mean(fact_id, self._facts)}")
        return self._facts[fact_id]

    def point(self, point_id: str) -> SeriesPoint:
        """The series point of an id such as `tsmc_cowos_capacity@2025-Q4`.

        Raises:
            FactError: when there is none.
        """
        if point_id not in self._points:
            raise FactError(f"no series point {point_id!r}{_did_you_mean(point_id, self._points)}")
        return self._points[point_id]

    def series(self, series_id: str) -> Series:
        """The series of an id.

        Raises:
            FactError: when there is none; the message offers the nearest ids.
        """
        if series_id not in self._series:
            raise FactError(f"no series {series_id!r}{_did_you_mean(series_id, self._series)}")
        return self._series[series_id]

    def find(self, subject: str | None = None, quantity: str | None = None) -> list[Fact]:
        """Facts of an exact subject and/or quantity, in file order."""
        return [
            f
            for f in self
            if (subject is None or f.subject == subject) and (quantity is None or f.quantity == quantity)
        ]

    def search(self, text: str) -> list[Fact]:
        """Facts whose id, subject, quantity or note holds every word of the text, whatever the case."""
        words = text.lower().split()
        return [f for f in self if all(w in f"{f.id} {f.subject} {f.quantity} {f.note}".lower() for w in words)]

    def select(self, subject: str, quantity: str, on: date | None = None, known_by: date | None = None) -> Fact:
        """The one fact to use where sources disagree, by this stated rule.

        Among facts of the subject and quantity known by `known_by` (default: any day): those whose span holds `on`,
        else the latest span before it, else the earliest after it (`on` None: the latest span). Ties: measured before
        published before estimate before illustrative; then the one known latest; then the one nearest the median.

        Raises:
            FactError: when nothing fits; the message offers the nearest subjects or quantities.
        """
        pool = [f for f in self.find(subject, quantity) if known_by is None or f.known_on <= known_by]
        if not pool:
            quantities = {f.quantity for f in self.find(subject)}
            hint = (
                f"; quantities of {subject!r}: {', '.join(sorted(quantities)[:12])}"
                if quantities
                else _did_you_mean(subject, {f.subject for f in self})
            )
            raise FactError(f"no fact for subject {subject!r}, quantity {quantity!r}{hint}")
        pool = _nearest_in_time(pool, on)
        numbers = sorted(f.value for f in pool if not isinstance(f.value, str))
        middle = numbers[len(numbers) // 2] if numbers else 0.0
        return min(
            pool,
            key=lambda f: (
                KIND_ORDER.index(f.kind),
                -f.known_on.toordinal(),
                0.0 if isinstance(f.value, str) else abs(f.value - middle),
                f.id,
            ),
        )

    def conflicts(self, subject: str, quantity: str, on: date | None = None) -> list[Fact]:
        """Every fact that competes with the selected one, the selected one first."""
        chosen = self.select(subject, quantity, on)
        return [chosen, *(f for f in _nearest_in_time(self.find(subject, quantity), on) if f.id != chosen.id)]

    def trace(self, fact_id: str) -> list[Fact | SeriesPoint]:
        """A fact or series point followed by every fact it rests on, depth first.

        Raises:
            FactError: when an id does not resolve.
        """
        if fact_id in self._facts:
            return [self._facts[fact_id]]
        start = self.point(fact_id)
        out: list[Fact | SeriesPoint] = [start]
        for base in start.basis:
            if base in self._facts:
                out.append(self._facts[base])
        return out


def _nearest_in_time(pool: list[Fact], on: date | None) -> list[Fact]:
    if on is None:
        last = max(f.valid_to for f in pool)
        return [f for f in pool if f.valid_to == last]
    holds = [f for f in pool if f.valid_from <= on <= f.valid_to]
    if holds:
        return holds
    before = [f for f in pool if f.valid_to < on]
    if before:
        last = max(f.valid_to for f in before)
        return [f for f in before if f.valid_to == last]
    first = min(f.valid_from for f in pool)
    return [f for f in pool if f.valid_from == first]


def _did_you_mean(word: str, options: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(options), n=3, cutoff=0.6)
    return f"; did you mean {', '.join(near)}?" if near else "; `wafer2token facts WORDS` searches them"


@lru_cache(maxsize=1)
def catalog() -> Catalog:
    """The catalogue of the shipped facts, loaded once.

    Raises:
        FactError: with every malformed row, as `file:line: problem`.
    """
    return load(data_dir() / "facts")


def load(folder: Path) -> Catalog:
    """Read every CSV of a folder: fact files by their columns, series files by theirs.

    Raises:
        FactError: with every problem at once.
    """
    facts: dict[str, Fact] = {}
    points: dict[str, list[SeriesPoint]] = {}
    problems: list[str] = []
    for path in sorted(folder.glob("*.csv")):
        try:
            _read_file(path, facts, points, problems)
        except InputFileError as exc:
            problems.append(str(exc))
        except csv.Error as exc:
            problems.append(f"{path.name}: not a CSV file ({exc})")
    if problems:
        raise FactError("\n".join([f"{len(problems)} problem(s) in the facts:", *problems]))
    return Catalog(facts.values(), (Series(k, tuple(v)) for k, v in points.items()))


def _read_file(path: Path, facts: dict[str, Fact], points: dict[str, list[SeriesPoint]], problems: list[str]) -> None:
    reader = csv.DictReader(io.StringIO(read_utf8(path, "facts table"), newline=""), restval="", restkey=EXTRA)
    header = tuple(reader.fieldnames or ())
    if header == SERIES_COLUMNS:
        _read_series(reader, path.name, points, problems)
    elif header == COLUMNS:
        check_rows(((reader.line_num, row) for row in reader), path.name, facts, problems)
    else:
        problems.append(f"{path.name}:1: columns are {', '.join(header)[:200]}; expected {', '.join(COLUMNS)}")


def check_rows(
    rows: Iterable[tuple[int, dict[str, str]]], name: str, facts: dict[str, Fact], problems: list[str]
) -> None:
    """Add the facts of numbered rows to `facts`, and what is wrong with a row to `problems`."""
    known_units = aliases()
    for line, row in rows:
        where = f"{name}:{line}: {row['id']:.80}"
        if EXTRA in row:
            problems.append(f"{where}: more cells than columns: put text with a comma in quotes")
            continue
        if hidden := next((c for c in map(control_character, row.values()) if c), ""):
            problems.append(f"{where}: the control character {hidden} is no text: take it out")
        if not _ID.fullmatch(row["id"]):
            problems.append(f"{where}: an id is made of letters, digits and . _ - @ # + : /")
        if row["id"] in facts:
            problems.append(f"{where}: the id is used twice; ids are unique over all fact files")
        if row["unit"] not in known_units:
            problems.append(f"{where}: unit {row['unit']!r} is not in data/unit_aliases.csv: add it there")
            continue
        if row["kind"] not in KINDS:
            problems.append(f"{where}: kind {row['kind']!r} is not one of {', '.join(KINDS)}")
        if not row["source"]:
            problems.append(f"{where}: source is empty")
        try:
            facts[row["id"]] = _fact(row, name, known_units[row["unit"]] in ATTRIBUTE_UNITS)
        except ValueError as exc:
            problems.append(f"{where}: {exc}")


def _fact(row: dict[str, str], name: str, text: bool) -> Fact:
    day = date.fromisoformat
    fact = Fact(
        row["id"],
        row["subject"],
        row["quantity"],
        row["value"] if text else finite(row["value"]),
        _number(row["low"]),
        _number(row["high"]),
        row["unit"],
        row["scope"],
        day(row["valid_from"]),
        day(row["valid_to"]),
        day(row["known_on"]),
        row["date_rule"],
        row["kind"],
        row["source"],
        row["origin"],
        row["url"],
        row["note"],
        name,
    )
    if fact.valid_from > fact.valid_to:
        raise ValueError(f"valid_from {fact.valid_from} is after valid_to {fact.valid_to}")
    low, high = fact.low, fact.high
    if not isinstance(fact.value, str) and (
        (low is not None and low > fact.value) or (high is not None and high < fact.value)
    ):
        raise ValueError(f"value {fact.value} lies outside low {low} .. high {high}")
    return fact


def _number(text: str) -> float | None:
    return finite(text) if text else None


def finite(text: str) -> float:
    """A number of a fact; NaN and infinity are refused.

    Raises:
        ValueError: when it is none.
    """
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is not a finite number")
    return number


def _read_series(
    reader: csv.DictReader[str], name: str, points: dict[str, list[SeriesPoint]], problems: list[str]
) -> None:
    for row in reader:
        where = f"{name}:{reader.line_num}: {row['series_id']}@{row['period']}"
        if EXTRA in row:
            problems.append(f"{where}: more cells than columns: put text with a comma in quotes")
            continue
        try:
            bucket = points.setdefault(row["series_id"], [])
            known = span(row["known_since"])[1]
            twin = any(p.period == row["period"] for p in bucket)
            value = finite(row["value"])
            low, high = finite(row["low"] or row["value"]), finite(row["high"] or row["value"])
            _check_point(row, value, low, high)
            bucket.append(
                SeriesPoint(
                    f"{row['series_id']}@{row['period']}" + (f"#{row['known_since']}" if twin else ""),
                    row["series_id"],
                    row["subject"],
                    row["quantity"],
                    row["period"],
                    value,
                    low,
                    high,
                    row["unit"],
                    row["kind"],
                    known,
                    tuple(row["basis"].replace(";", " ").split()),
                    row["method"],
                    row["outcome_derived"] == "yes",
                )
            )
        except ValueError as exc:
            problems.append(f"{where}: {exc}")


def _check_point(row: dict[str, str], value: float, low: float, high: float) -> None:
    """Refuse a word of a series row that nothing knows: it would be read as another one."""
    span(row["period"])
    if hidden := next((c for c in map(control_character, row.values()) if c), ""):
        raise ValueError(f"the control character {hidden} is no text: take it out")
    if not _ID.fullmatch(row["series_id"]):
        raise ValueError("a series id is made of letters, digits and . _ - @ # + : /")
    if row["unit"] not in aliases():
        raise ValueError(f"unit {row['unit']!r:.80} is not in data/unit_aliases.csv: add it there")
    if row["kind"] not in KINDS:
        raise ValueError(f"kind {row['kind']!r:.80} is not one of {', '.join(KINDS)}")
    if row["outcome_derived"] not in ("yes", "no", ""):
        raise ValueError(f"outcome_derived {row['outcome_derived']!r:.80} is neither yes nor no")
    if not low <= value <= high:
        raise ValueError(f"value {value:g} lies outside low {low:g} .. high {high:g}")


def check_units(facts: Catalog) -> list[str]:
    """Parse every unit of the catalogue with pint; returns the problems (none for the shipped facts)."""
    from supply.facts.units import expression, registry

    reg, problems = registry(), []
    units = {f.unit for f in facts} | {p.unit for p in facts._points.values()}
    for unit in sorted(units):
        if expression(unit) in ATTRIBUTE_UNITS:
            continue
        try:
            reg.parse_expression(expression(unit))
        except Exception as exc:  # pint raises several unrelated types on a bad expression
            problems.append(f"unit {unit!r} -> {expression(unit)!r}: {exc}")
    return problems
