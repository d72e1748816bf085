"""Section: what an hour, a million tokens and a task cost."""

from __future__ import annotations

from typing import Any

import pandas as pd

from reports.blocks import Section, Table
from reports.catalogue import say
from reports.context import Context
from reports.figures import econ
from reports.sections.limits import scope
from reports.tables import records
from reports.wording import band, digits_for, listing, plain

__all__ = ["costs_section"]

CLASSES = ("uncached_input", "cache_read", "output")
TASKS = ("chat", "research", "coding", "browser")


def costs_section(c: Context) -> Section | None:
    """Owner cost by part, hours by product, tokens by model and product, tasks."""
    if c.reference_sku is None:
        return None
    s = Section("costs")
    s.paragraphs.append(
        say("costs.owner_cost")
        + (say("costs.market_next") if c.table("market") is not None else say("costs.market_absent"))
    )
    falls = c.table("waterfall")
    if falls is not None:
        s.figures.append(_waterfall(c, falls, c.reference_sku))
    s.tables.append(_hours(c))
    stated = c.run.checks.loc[c.run.checks["check"] == "priced_as_stated", "subject"]
    if len(stated):
        s.paragraphs.append(say("costs.stated", names=listing([c.title(sku) for sku in stated])))
    front = c.table("front")
    if front is not None:
        names = {k: c.short(k) for k in front["sku"].unique()} | {m: c.title(m) for m in front["model"].unique()}
        s.figures.append(
            econ.cost_front(front, say("costs.front_subtitle", period=front["period"].iloc[0], scope=scope(c)), names)
        )
    s.tables += [_tokens(c), _tasks(c)]
    s.paragraphs.append(say("costs.token_costs"))
    return s


def _waterfall(c: Context, falls: pd.DataFrame, sku: str) -> Any:
    mine = falls[falls["sku"] == sku]
    if mine.empty:
        mine = falls[falls["sku"] == falls["sku"].iloc[0]]
    by_part = mine.set_index("part")["value"]
    rows = [
        (str(say(f"cost_parts.{p}")), float(by_part[p]), "part")
        for p in by_part.index
        if p not in ("total", "scarcity") and by_part[p] != 0
    ]
    rows.append((say("costs.owner_cost_bar"), float(by_part["total"]), "subtotal"))
    rows.append((say("costs.scarcity_bar"), float(by_part["scarcity"]), "part"))
    parts = pd.DataFrame(rows, columns=["part", "value", "kind"])
    first = mine.iloc[0]
    return econ.cost_waterfall(
        parts,
        say("costs.waterfall_title"),
        say("costs.waterfall_subtitle", sku=c.short(first["sku"]), period=first["period"], scope=scope(c)),
    )


def _hours(c: Context) -> Table:
    owner = c.quantity("owner_usd_per_gpu_hour")
    full = c.quantity("usd_per_gpu_hour").set_index(["subject", "period"])["value"]
    here = owner[owner["period"] == c.now].sort_values("value", ascending=False)
    rows = []
    for r in records(here):
        digits = digits_for(r.value, r.low, r.high)
        total = float(full[r.subject, r.period])
        rows.append(
            [
                c.title(r.subject),
                c.title(r.region),
                (plain(r.value, digits), r.value),
                band(r.low, r.high),
                (plain(total - r.value, 2), total - r.value),
                (plain(total, digits), total),
            ]
        )
    return Table.named("hours", rows, period=c.now)


def _tokens(c: Context) -> Table:
    rows = []
    out = c.quantity("usd_per_mtoken_output")
    out = out[out["period"] == c.now].sort_values(["model", "value"])
    for r in records(out):
        cells: list[Any] = [c.title(r.model), c.title(r.sku)]
        for name in CLASSES:
            found = c.value_at(f"usd_per_mtoken_{name}", r.subject, c.now)
            cells.append(("-", None) if found is None else (plain(found["value"], 2), found["value"]))
        cells.append(band(r.low, r.high))
        rows.append(cells)
    return Table.named("tokens", rows, period=c.now, classes=[f"#{say(f'token_classes.{x}')}" for x in CLASSES])


def _tasks(c: Context) -> Table:
    rows = c.quantity("usd_per_verified_task")
    rows = rows[(rows["period"] == c.now) & (rows["sku"] == c.reference_sku)]
    body = []
    for subject in sorted(rows["subject"], key=lambda x: (_rank(x.split("/")[0]), x)):
        r = rows[rows["subject"] == subject].iloc[0]
        task, model, sku = subject.split("/")
        digits = digits_for(r["value"], r["low"], r["high"])
        body.append(
            [task, c.title(model), c.title(sku), (plain(r["value"], digits), r["value"]), band(r["low"], r["high"])]
        )
    return Table.named("tasks", body, period=c.now)


def _rank(task: str) -> int:
    return TASKS.index(task) if task in TASKS else len(TASKS)
