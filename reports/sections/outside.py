"""What explains the gaps to outside estimates: the run solved again with the limits that their units need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from reports.blocks import Table
from reports.catalogue import say
from reports.context import Context
from reports.spans import Number, join
from reports.tables import records
from reports.wording import band, brief, count, percent, plain
from scenarios.outside_gap import FARTHEST_WORTH
from scenarios.outside_needs import CAUSES, OPENING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["gap_sentences", "gap_tables"]

#: Parts of a gap that a sentence names: at most so many, each at least this share of it.
_NAMED = 3
_LEAST = 0.05


def gap_sentences(c: Context, labels: Mapping[str, str]) -> list[str]:
    """How the gaps were explained, and a paragraph for each estimate whose interval the run misses."""
    gaps, parts = c.table("shipments_gap"), c.table("shipments_parts")
    if gaps is None or parts is None:
        return []
    missed = _in_order(gaps[(gaps["ours"] < gaps["low"]) | (gaps["ours"] > gaps["high"])])
    by_row = {(str(g), str(y)): t for (g, y), t in parts.groupby(["group", "year"])}
    empty = parts.iloc[:0]
    told = [_gap(r, labels.get(r.group, r.group), by_row.get((r.group, r.year), empty)) for r in records(missed)]
    return [say("gap.how"), *told] if told else []


def _gap(r: Any, label: str, parts: pd.DataFrame) -> str:
    outside = say("gap.outside", units=count(r.outside)) if r.outside > 0 else ""
    gap = r.theirs - r.outside - r.ours
    largest = parts.reindex(parts["units"].abs().sort_values(ascending=False).index).head(_NAMED)
    named = [_part(p) for p in records(largest[largest["units"].abs() >= _LEAST * abs(gap)])]
    why = say("gap.parts", parts=join("; ", named)) if named else ""
    fields = {"label": label, "year": str(r.year), "ours": count(r.ours), "theirs": count(r.theirs)}
    reached = ""
    if gap:
        share = percent((r.reached - r.ours) / gap)
        reached = say("gap.reached", reached=count(r.reached), share=share, parts=why)
    return say("gap.row", **fields, span=band(r.low, r.high), outside=outside, reached=reached, after=_after(r))


def _part(p: Any) -> str:
    units = count(p.units)
    signed = Number(f"+{units}", p.units) if p.units > 0 else units
    return say("gap.part", cause=say(f"gap.cause_{p.cause}"), units=signed)


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    return table.sort_values(["year", "theirs"], ascending=[True, False])


def _after(r: Any) -> str:
    """What is left when the limits are raised."""
    if r.made_low <= r.reached <= r.made_high:
        return say("gap.inside")
    if pd.notna(r.worth_factor):
        return say("gap.worth", factor=plain(r.worth_factor, 2))
    if pd.isna(r.worth_units):
        return say("gap.left", units=count(r.rest))
    far = FARTHEST_WORTH if r.rest > 0 else 1.0 / FARTHEST_WORTH
    return say("gap.beyond", units=count(r.rest), far=brief(far), most=count(r.worth_units))


def gap_tables(c: Context, labels: Mapping[str, str]) -> list[Table]:
    """From the run's number to theirs, part by part; and the limits that their units exceed."""
    gaps, parts, limits = (c.table(f"shipments_{name}") for name in ("gap", "parts", "limits"))
    if gaps is None or parts is None or limits is None:
        return []
    causes = [cause for cause in CAUSES if cause in set(parts["cause"])]
    split = {(p.group, p.year, p.cause): p.units for p in records(parts)}
    rows = [
        [
            labels.get(r.group, r.group),
            r.year,
            _thousand(r.ours),
            *[_thousand(split[r.group, r.year, cause]) for cause in causes],
            _thousand(r.rest),
            _thousand(r.outside),
            _thousand(r.theirs),
            _worth(r),
        ]
        for r in records(_in_order(gaps))
    ]
    heads = [f"#{say(f'gap.head_{cause}')}" for cause in causes]
    made = [Table.named("epoch_gap", rows, causes=heads, times=brief(FARTHEST_WORTH))]
    return made + ([Table.named("epoch_limits", _limit_rows(limits), folded=True)] if len(limits) else [])


def _limit_rows(limits: pd.DataFrame) -> list[list[Any]]:
    return [
        [
            r.title,
            say(f"gap.head_{r.cause}"),
            r.year,
            say("gap.starts") if r.cause == OPENING else r.unit,
            (plain(r.ours), r.ours),
            (plain(r.needed), r.needed),
            (plain(r.needed / r.ours), r.needed / r.ours) if r.ours > 0 else ("-", None),
        ]
        for r in records(limits.sort_values("cause", key=lambda held: held.map(CAUSES.index), kind="stable"))
    ]


def _thousand(value: float) -> tuple[str, float]:
    return (f"{round(value / 1e3):,}", value)


def _worth(r: Any) -> tuple[str, float | None]:
    """The multiple of the worth of an hour, `over 2` where the farthest does not suffice, - where none is sought."""
    if pd.notna(r.worth_factor):
        return (plain(r.worth_factor, 2), r.worth_factor)
    if pd.isna(r.worth_units):
        return ("-", None)
    return (say("gap.over" if r.rest > 0 else "gap.under", times=brief(FARTHEST_WORTH)), None)
