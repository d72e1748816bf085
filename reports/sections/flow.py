"""Sections: the way from wafers to running accelerators, and what the per-token engine rests on."""

from __future__ import annotations

from typing import Any

import pandas as pd

from reports.blocks import Section, Table
from reports.catalogue import say
from reports.context import Context
from reports.figures.front_measured import front_measured
from reports.figures.graph import stage_graph
from reports.figures.roofline import roofline
from reports.figures.sankey import check_balance, supply_sankey
from reports.sections.limits import scope
from reports.tables import records
from reports.wording import count, percent, stage_head
from scenarios.stage_links import stage_links
from scenarios.supply_flow import FlowError, supply_flow

__all__ = ["engine_section", "flow_section"]


def flow_section(c: Context) -> Section | None:
    """Sankey of this year and graph of the limits now; None where the run's tables hold no chain to follow."""
    try:
        flows = supply_flow(c.run.results, c.run.inputs, c.this_year)
        nodes, links = stage_links(c.run.results, c.run.inputs, c.now)
    except FlowError:
        return None
    if flows.empty or links.empty:
        return None
    s = Section("flow")
    regions = {str(g): c.title(str(g)) for g in c.quantity("energised")["region"].unique()}
    s.figures.append(supply_sankey(flows, say("flow.sankey_subtitle", year=c.this_year, scope=scope(c)), regions))
    titles = {n: c.title(n) for n in nodes["node"] if not n.startswith("step:")}
    s.figures.append(stage_graph(nodes, links, c.now, scope(c), titles))
    lost = float(flows.loc[flows["kind"] == "loss", "accelerators"].sum())
    started = float(flows.loc[flows["kind"] == "start", "accelerators"].sum())
    kept = flows[flows["kind"] == "stock"]
    rise = float(kept.loc[kept["target"] == "stock", "accelerators"].sum())
    fall = float(kept.loc[kept["source"] == "stock", "accelerators"].sum())
    share = say("flow.lost_share", lost=percent(lost / started)) if started > 0 else ""
    s.paragraphs.append(
        say("flow.lost", year=c.this_year, lost=count(lost), share=share, rise=count(rise), fall=count(fall))
    )
    s.tables.append(_flow_table(c, flows))
    return s


def _flow_table(c: Context, flows: pd.DataFrame) -> Table:
    rows = []
    for r in records(check_balance(flows)):
        mine = flows[flows["source"] == r.stage].groupby("kind")["accelerators"].sum()
        came = flows[(flows["target"] == r.stage) & (flows["kind"] == "stock")]["accelerators"].sum()
        cells = [r.inflow - came, came, mine.get("flow", 0.0), mine.get("loss", 0.0), mine.get("stock", 0.0)]
        rows.append([stage_head(r.stage), *[(f"{v:,.0f}", float(v)) for v in cells]])
    return Table.named("flow", rows, year=c.this_year)


def _held_out(c: Context) -> pd.Series[Any] | None:
    """Errors of the time per token where the pair of model and accelerator was left out of the fit."""
    table = c.table("accuracy")
    if table is None:
        return None
    rows = table[(table["slice"] == "closed/tpot") & (table["left_out"] == "pair")]
    return rows.iloc[0] if len(rows) else None


def engine_section(c: Context) -> Section | None:
    """Roofline of a step and measured points beside the engine; None where the run does not hold their tables."""
    points, front = c.table("roofline"), c.table("front_measured")
    if points is None and front is None:
        return None
    s = Section("engine")
    if points is not None:
        s.figures.append(roofline(points, say("flow.roofline_subtitle")))
    if front is not None:
        words = say("flow.measured_subtitle", period=c.now[:4], scope=scope(c))
        s.figures.append(front_measured(front, words, _held_out(c)))
    s.paragraphs.append(say("flow.engine_words"))
    return s
