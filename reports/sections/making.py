"""Section: what a good package costs to make, how many dies are good, and its embodied carbon."""

from __future__ import annotations

from typing import Any

import pandas as pd

from reports.blocks import Section, Table
from reports.catalogue import say
from reports.context import Context
from reports.figures import making
from reports.spans import number
from reports.tables import records
from reports.wording import band, digits_for, listing, money, percent, plain

__all__ = ["fact_words", "making_section"]

PANELS = ("h100", "b200", "mi300x", "rubin")


def fact_words(c: Context, *tables: pd.DataFrame | None) -> str:
    """How many facts stand behind tables, and how many of them are illustrative."""
    texts = {str(t) for table in tables if table is not None for t in table["fact_ids"].dropna()}
    ids = {name for text in texts for name in text.split()}
    weak = sum(1 for name in ids if name in c.facts and c.facts[name]["kind"] == "illustrative")
    return say("making.facts", facts=len(ids), weak=weak)


def making_section(c: Context) -> Section | None:
    """Cost of good packages beside published estimates, yields, a wafer map, memory stacks, carbon."""
    costs, published = c.table("unit_cost"), c.table("unit_cost_published")
    if costs is None or published is None:
        return None
    s = Section("making")
    names = dict(zip(costs["sku"], costs["name"], strict=True))
    totals = costs[costs["part"] == "total"].set_index("sku")
    s.paragraphs.append(_cost_words(totals, names))
    theirs = published[published["part"] == "total"].dropna(subset=["published"]).set_index("sku")["published"]
    panels = [x for x in PANELS if x in totals.index]
    s.figures.append(
        making.unit_cost_waterfalls(
            costs[costs["sku"].isin(panels)], {k: float(v) for k, v in theirs.items() if k in panels}, names
        )
    )
    s.paragraphs.append(_published_words(published, names))
    s.tables += [_totals(c, published, totals, names), _parts(published, names)]
    _yields(c, s)
    _stacks(c, s)
    _carbon(c, s)
    return s


def _cost_words(totals: pd.DataFrame, names: dict[str, str]) -> str:
    said = []
    for r in records(totals[totals.index.isin(PANELS)]):
        digits = digits_for(r.value, r.low, r.high)
        said.append(
            say(
                "making.package",
                name=names[r.Index],
                value=plain(r.value, digits),
                band=band(r.low, r.high),
                month=r.on[:7],
            )
        )
    return say("making.cost", packages=listing(said))


def _published_words(published: pd.DataFrame, names: dict[str, str]) -> str:
    rows = published[(published["part"] == "total") & published["published"].notna()]
    below = rows[rows["published"] > rows["high"]]
    inside = rows[(rows["published"] >= rows["low"]) & (rows["published"] <= rows["high"])]
    words = say("making.published", inside=len(inside), all=len(rows))
    if len(below):
        gaps = [say("making.gap", name=names[r.sku], amount=money(r.published - r.ours, 2)) for r in records(below)]
        words += say("making.lower", gaps=listing(gaps))
    return words + say("making.gaps")


def _totals(c: Context, published: pd.DataFrame, totals: pd.DataFrame, names: dict[str, str]) -> Table:
    rows = []
    for r in records(published[published["part"] == "total"]):
        found = not pd.isna(r.published)
        digits = digits_for(r.ours, r.low, r.high)
        rows.append(
            [
                names[r.sku],
                str(totals.loc[r.sku, "on"])[:7],
                (plain(r.ours, digits), r.ours),
                band(r.low, r.high),
                (f"{r.published:,.0f}", r.published) if found else (say("making.none_found"), None),
                (plain(r.ours / r.published, 2), r.ours / r.published) if found else ("-", None),
                r.words,
                r.source,
            ]
        )
    return Table.named("unit_cost_totals", rows, facts=fact_words(c, c.table("unit_cost"), published))


def _parts(published: pd.DataFrame, names: dict[str, str]) -> Table:
    rows = []
    for r in records(published):
        found = not pd.isna(r.published)
        rows.append(
            [
                names[r.sku],
                say(f"package_parts.{r.part}"),
                (f"{r.ours:,.0f}", r.ours),
                (f"{r.published:,.0f}", r.published) if found else ("-", None),
                r.source if r.part != "total" else "",
            ]
        )
    return Table.named("unit_cost_parts", rows, folded=True)


def _yields(c: Context, s: Section) -> None:
    curves, dies, sites = c.table("yield_by_area"), c.table("die_yields"), c.table("wafer_map")
    if curves is None or dies is None:
        return
    one = dies.drop_duplicates("die")
    s.figures.append(making.yield_curves(curves, {r.die: float(r.area_mm2) for r in records(_apart(one))}))
    first = dies.iloc[0]
    s.paragraphs.append(
        say(
            "making.spare",
            die=first["die"],
            area=number(first["area_mm2"], ".0f"),
            full_yield=percent(first["full_yield"]),
            die_yield=percent(first["die_yield"]),
            name=first["name"],
        )
    )
    s.tables.append(_die_table(c, dies))
    if sites is not None:
        s.figures.append(making.wafer_map_figure(sites, say("making.map_of", die=sites["die"].iloc[0])))


def _apart(dies: pd.DataFrame, gap: float = 25.0) -> pd.DataFrame:
    """Dies whose areas are far enough apart to be labelled, largest first."""
    kept: list[int] = []
    for k, area in dies["area_mm2"].sort_values(ascending=False).items():
        if all(abs(area - dies.loc[j, "area_mm2"]) >= gap for j in kept):
            kept.append(int(str(k)))
    return dies.loc[kept]


def _die_table(c: Context, dies: pd.DataFrame) -> Table:
    rows = [
        [
            r.name,
            say("making.dies", die=r.die, per_package=r.per_package),
            r.node.upper(),
            r.on[:7],
            (f"{r.area_mm2:,.0f}", r.area_mm2),
            (plain(r.defects_per_cm2, 2), r.defects_per_cm2),
            (f"{r.gross:,.0f}", r.gross),
            (percent(r.full_yield), r.full_yield),
            (percent(r.die_yield), r.die_yield),
            (plain(r.gross * r.die_yield), r.gross * r.die_yield),
        ]
        for r in records(dies)
    ]
    return Table.named("die_yields", rows, facts=fact_words(c, dies))


def _stacks(c: Context, s: Section) -> None:
    stacks = c.table("stack_yield")
    if stacks is None:
        return
    s.figures.append(making.stack_heights(stacks))
    quoted = stacks[stacks["quoted"]]
    s.paragraphs.append(say("making.stacks", quoted=len(quoted), all=len(stacks)))


def _carbon(c: Context, s: Section) -> None:
    table = c.table("carbon")
    if table is None:
        return
    parts = [p for p in dict.fromkeys(table["part"]) if p != "total"]
    rows = []
    for _, mine in table.groupby("sku", sort=False):
        by: dict[str, Any] = {r.part: r for r in records(mine)}
        whole = by["total"]
        row: list[Any] = [whole.name]
        row += [(plain(by[p].value, 2), by[p].value) if p in by else ("-", None) for p in parts]
        rows.append(
            [
                *row,
                (plain(whole.value, digits_for(whole.value, whole.low, whole.high)), whole.value),
                band(whole.low, whole.high),
                (f"{whole.water_liters:,.0f}", whole.water_liters),
            ]
        )
    titles = {**making.PARTS, "substrate": say("making.substrate")}
    s.tables.append(
        Table.named("carbon", rows, facts=fact_words(c, table), parts=[f"#{titles.get(p, p)}" for p in parts])
    )
