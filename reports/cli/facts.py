"""`wafer2token facts [SEARCH] [--show ID]`."""

from __future__ import annotations

from dataclasses import asdict

from reports.cli.exits import print_json
from reports.cli.terminal import line, table, whole
from supply.facts import Fact, SeriesPoint, catalog

__all__ = ["search_facts", "show_fact"]


def show_fact(fact_id: str, as_json: bool) -> None:
    """Print one fact, series point or series, with everything that it rests on."""
    cat = catalog()
    if fact_id not in cat and fact_id in cat.series_ids:
        _show_series(fact_id, as_json)
        return
    rows = cat.trace(fact_id)
    if as_json:
        print_json({"fact": _plain(rows[0]), "rests_on": [_plain(r) for r in rows[1:]]})
        return
    for depth, row in enumerate(rows):
        indent = "    " if depth else ""
        if depth == 1:
            line("rests on")
        for key, value in _plain(row).items():
            if value not in (None, "", []):
                text = " ".join(str(v) for v in value) if isinstance(value, list | tuple) else str(value)
                (whole if key in ("url", "id", "file") else _field)(f"{indent}{key:12} {text}")
        line()


def search_facts(text: str, limit: int, as_json: bool) -> None:
    """Print the facts and series that hold every word of the text."""
    cat = catalog()
    found = cat.search(text) if text else list(cat)
    words = text.lower().split()
    series = [s for s in cat.series_ids if all(w in s.lower() for w in words)]
    if as_json:
        print_json({"facts": [_plain(f) for f in found[:limit]], "series": series, "found": len(found)})
        return
    for fact in found[:limit]:
        span = f" ({fact.low:g} to {fact.high:g})" if fact.low is not None and fact.high is not None else ""
        value = fact.value if isinstance(fact.value, str) else f"{fact.value:g}"
        whole(fact.id)
        line(f"{value}{span} {fact.unit}, {fact.kind}, about {fact.valid_to}, {fact.source[:70]}", indent=4)
    if series:
        line(f"series: {', '.join(series)}")
    shown = min(limit, len(found))
    line(f"{shown} of {len(found)} facts and {len(series)} series; --limit N shows more, --show ID one of them whole.")


def _show_series(series_id: str, as_json: bool) -> None:
    series = catalog().series(series_id)
    if as_json:
        print_json({"series": series_id, "points": [_plain(p) for p in series.points]})
        return
    first = series.points[0]
    line(f"{series_id}: {first.subject}, {first.quantity} [{first.unit}]")
    if series.outcome_derived:
        line("outcome: rests on shipments or accelerator revenue, so it is scored against and never an input")
    rows = [[p.period, p.kind, f"{p.value:g}", f"{p.low:g}", f"{p.high:g}"] for p in series.points]
    table(["period", "kind", "value", "low", "high"], rows, words=2)
    line(f"rests on: {', '.join(dict.fromkeys(fact for p in series.points for fact in p.basis))}")


def _field(text: str) -> None:
    """One field of a fact, its further lines below its first word."""
    indent = len(text) - len(text.lstrip())
    line(text.strip(), indent=indent, hang=13)


def _plain(row: Fact | SeriesPoint) -> dict[str, object]:
    out: dict[str, object] = {}
    for key, value in asdict(row).items():
        out[key] = value.isoformat() if hasattr(value, "isoformat") else value
    return out
