"""Section: several scenarios side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from reports.blocks import Section, Table
from reports.catalogue import say
from reports.context import Context
from reports.figures.cases import scenario_panels
from reports.figures.style import FigureCard
from reports.sections.changes import NOTHING, change_cell, headline_rows, input_means, input_units
from reports.sections.inputs import edit_words
from reports.sections.limits import scope
from reports.spans import Number, Words, join
from reports.wording import count, listing, money, plain

__all__ = ["compare_section"]

#: Products of the table of products, by what the runs energise of them.
_MOST_PRODUCTS = 14
#: A product whose amounts differ by less than this share is not listed.
_SAME = 0.005


def compare_section(contexts: list[Context]) -> Section:
    """Several runs side by side, with the rule of each case before its results."""
    s = Section("compare")
    for c in contexts:
        rule = join("; ", [w for w in (edit_words(c), *_own_parts(contexts[0], c)) if w]) or say("changes.no_edits")
        s.paragraphs.append(say("changes.case", title=str(c.run.manifest["title"]), run=c.run.id, edits=rule))
    s.paragraphs.append(say("changes.conditional"))
    if (panels := _panels(contexts)) is not None:
        s.figures.append(panels)
    if rows := _defining(contexts):
        s.tables.append(Table.named("defining", rows, years=[f"#{y}" for y in contexts[0].years]))
    s.tables.append(_headlines(contexts))
    if rows := list(_products(contexts)):
        s.tables.append(Table.named("products_compared", rows, runs=[f"#{c.run.id}" for c in contexts]))
    return s


def _own_parts(base: Context, c: Context) -> Iterator[Words]:
    """What a case has that the first run has not, and the other way round: products by name, other parts counted."""
    if c is base:
        return
    names = [held for held in (base.table("names"), c.table("names")) if held is not None]
    ids = [set(zip(held["kind"], held["id"], strict=True)) for held in names]
    if len(ids) < 2:
        return
    for key, more, where in (("adds", ids[1] - ids[0], c), ("lacks", ids[0] - ids[1], base)):
        products = [where.title(i) for kind, i in sorted(more) if kind == "sku"]
        sizes = {kind: sum(held == kind for held, _ in more) for kind in ("process", "resource", "contract")}
        counted = [say(f"changes.parts_{kind}", n=n) for kind, n in sizes.items() if n]
        if products or counted:
            yield say(f"changes.beside_{key}", parts=listing([*products, *counted]))
    old, new = input_means(base), input_means(c)
    edited = c.run.manifest.get("edits") or {}
    if differ := [p for p in old if p in new and p not in edited and old[p] != new[p]]:
        yield say("changes.numbers_differ", n=len(differ))


def _products(contexts: list[Context]) -> Iterator[list[Any]]:
    """Products that differ between the runs: what is energised of them by year, and their hour now and at the end."""
    base = contexts[0]
    quantity = "energised" if base.has_fleet else "finished"
    years = [y for y in base.years if y >= base.this_year]
    volumes = {(c.run.id, y): c.quantity(quantity).pipe(_by_product, y) for c in contexts for y in years}
    sizes = pd.concat(volumes.values()).groupby(level=0).max() if volumes else pd.Series(dtype=float)
    listed = [str(s) for s, v in sizes.sort_values(ascending=False).items() if v >= 1][:_MOST_PRODUCTS]
    for sku in listed:
        title = next(c.short(sku) for c in contexts if any(volumes[c.run.id, y].get(sku, 0.0) >= 1 for y in years))
        rows = [
            (say(f"changes.product_{quantity}", product=title, year=y), _amounts(contexts, volumes, sku, y))
            for y in years
        ]
        if all(_alike([value for _, value in cells]) for _, cells in rows):
            continue
        yield from ([name, *cells] for name, cells in rows)
        for period in dict.fromkeys((base.now, base.periods[-1])):
            hours = [c.value_at("usd_per_gpu_hour", sku, period) for c in contexts]
            if any(h is not None for h in hours):
                cells = [("-", None) if h is None else (money(h["value"]), float(h["value"])) for h in hours]
                yield [say("changes.hour", product=title, period=period), *cells]


def _by_product(rows: pd.DataFrame, year: str) -> pd.Series[float]:
    return rows[rows["period"].str.startswith(year)].groupby("subject")["value"].sum()


def _amounts(
    contexts: list[Context], volumes: dict[tuple[str, str], pd.Series[float]], sku: str, year: str
) -> list[tuple[str, float | None]]:
    """Amounts of one product by run; "-" where a scenario does not have it."""
    cells: list[tuple[str, float | None]] = []
    for c in contexts:
        value = volumes[c.run.id, year].get(sku)
        cells.append(("-", None) if value is None else (count(value), float(value)))
    return cells


def _alike(values: list[float | None]) -> bool:
    known = [v for v in values if v is not None]
    return len(known) == len(values) and max(known) - min(known) <= _SAME * max(map(abs, known))


def _defining(contexts: list[Context], most: int = 8) -> list[list[Any]]:
    """Yearly means of the inputs that a case edits, in the base and in the case."""
    base = contexts[0]
    distinct = len({c.run.scenario for c in contexts}) == len(contexts)
    names = {c.run.id: c.run.scenario if distinct else c.run.id for c in contexts}
    rows: list[list[Any]] = []
    for c in contexts[1:]:
        before, after = _yearly(base), _yearly(c)
        units = input_units(c)
        edited = [p for p in c.run.manifest.get("edits") or {} if p in units]
        for path in edited[:most]:
            cells = []
            for year in base.years:
                pair = [held.get((path, year)) for held in (before, after)]
                cells.append(
                    "-" if None in pair else join(" / ", [Number(plain(v, 4), v) for v in pair if v is not None])
                )
            rows.append([names[c.run.id], c.title(path.split(".")[1]) if "." in path else path, units[path], *cells])
    return rows


def _yearly(c: Context) -> dict[tuple[str, str], float]:
    """Mean of each input over the rows of each year."""
    held = c.run.inputs
    means = held["value"].groupby([held["path"], held["period"].astype(str).str[:4]]).mean()
    paths, years = means.index.get_level_values(0), means.index.get_level_values(1)
    return {(str(p), str(y)): float(v) for p, y, v in zip(paths, years, means, strict=True)}


def _headlines(contexts: list[Context]) -> Table:
    """Headline quantities of each case, with the change against the first."""
    tables = [headline_rows(c) for c in contexts]
    rows = []
    for name in dict.fromkeys(n for t in tables for n in t):
        base, first = tables[0].get(name, NOTHING)
        row: list[Any] = [name, first]
        for table in tables[1:]:
            value, text = table.get(name, NOTHING)
            row += [text, change_cell(value, base)]
        rows.append(row)
    runs = [contexts[0].run.id]
    for c in contexts[1:]:
        runs += [c.run.id, f"#{say('changes.against')}"]
    return Table.named("compare", rows, runs=runs)


def _panels(contexts: list[Context]) -> FigureCard | None:
    """Accelerators of each case by period beside the first one; None where the cases do not share their periods."""
    base = contexts[0]
    quantity = "energised" if base.has_fleet else "finished"
    if any(c.periods != base.periods or c.has_fleet != base.has_fleet for c in contexts):
        return None
    rows = [(c.run.id, str(c.run.manifest["title"]), p, c.total(quantity, p)) for c in contexts for p in base.periods]
    table = pd.DataFrame(rows, columns=["scenario", "title", "period", "value"])
    unit, subtitle = say(f"changes.panels_{quantity}"), scope(base)
    return scenario_panels(table, base.periods, base.run.id, unit, subtitle)
