"""Figure: where wafers become running accelerators, and where they are lost, in one unit throughout."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from reports.catalogue import say
from reports.figures.style import STAGE_COLOURS, FigureCard, drawing, svg_text, wrapped
from reports.tables import records
from reports.wording import count, stage_head

__all__ = ["FlowBalanceError", "check_balance", "supply_sankey"]

WIDTH = 9.2
#: Largest relative difference between what enters and what leaves a stage.
TOLERANCE = 1e-6
#: Branches under this share of the widest stage are drawn without a label.
SMALL = 0.02
GAP, BAR = 0.16, 0.07
#: Regions that have a branch of their own.
REGIONS = 5
OUTSIDE = ("start", "loss", "stock")
GREY, LOST = "#8c8c8c", "#bb5566"


class FlowBalanceError(ValueError):
    """A stage whose inflow is not its outflow; the message names it with both."""


def check_balance(flows: pd.DataFrame) -> pd.DataFrame:
    """Inflow and outflow of every stage, which must be equal: columns stage, inflow, outflow.

    >>> rows = [("start", "fab", "start", 10.0), ("fab", "sold", "flow", 8.0), ("fab", "loss", "loss", 2.0)]
    >>> check_balance(pd.DataFrame(rows, columns=["source", "target", "kind", "accelerators"])).values.tolist()
    [['fab', 10.0, 10.0]]

    Raises:
        FlowBalanceError: when they differ by more than a millionth, or a flow is negative.
    """
    if (flows["accelerators"] < 0).any():
        bad = flows[flows["accelerators"] < 0].iloc[0]
        raise FlowBalanceError(f"flow {bad['source']} to {bad['target']} is {bad['accelerators']}: it must not be < 0")
    into, out = flows.groupby("target")["accelerators"].sum(), flows.groupby("source")["accelerators"].sum()
    stages = [s for s in dict.fromkeys([*flows["source"], *flows["target"]]) if s in into.index and s in out.index]
    table = pd.DataFrame(
        [(s, float(into[s]), float(out[s])) for s in stages if s not in OUTSIDE],
        columns=["stage", "inflow", "outflow"],
    )
    widest = max([1e-300, *table["inflow"], *table["outflow"]])
    for r in records(table):
        if abs(r.inflow - r.outflow) > TOLERANCE * widest:
            raise FlowBalanceError(
                f"stage {r.stage}: {r.inflow:,.6g} accelerator-equivalents enter and {r.outflow:,.6g} leave; "
                "add the missing loss or stock change"
            )
    return table


@dataclass
class _Node:
    """A bar: its column, its place, and how far its two sides are used up."""

    name: str
    column: int
    size: float
    top: float = 0.0
    left_used: float = 0.0
    right_used: float = 0.0
    feeds: list[float] = field(default_factory=list)


def supply_sankey(flows: pd.DataFrame, subtitle: str, titles: dict[str, str] | None = None) -> FigureCard:
    """Sankey of one period of time: width is accelerator-equivalents; losses leave downwards, stock changes upwards.

    `flows`: columns source, target, kind (start, flow, loss, stock), accelerators, as `scenarios.supply_flow` makes
    them; `titles` names regions.

    Raises:
        FlowBalanceError: when a stage does not balance.
    """
    balance = check_balance(flows)
    if balance.empty:
        raise FlowBalanceError("no stage has both an inflow and an outflow: there is nothing to draw")
    names = {f"energised:{k}": v for k, v in (titles or {}).items()}
    shown = _merged(flows)
    nodes = _placed(shown)
    whole = max(n.size for n in nodes.values())
    columns = 1 + max(n.column for n in nodes.values())
    with drawing(WIDTH, 3.7) as (figure, axes):
        links = sorted(
            records(shown[shown["kind"] == "flow"]), key=lambda r: (nodes[r.source].top, nodes[r.target].top)
        )
        for r in links:
            _ribbon(axes, nodes[r.source], nodes[r.target], r.accelerators, STAGE_COLOURS.get(r.source, GREY))
        for r in records(shown[shown["kind"].isin(["loss", "stock"])]):
            _branch(axes, nodes, r, whole)
        for node in nodes.values():
            _bar(axes, node, names, columns)
        axes.set_xlim(-0.22, columns - 0.38)
        axes.margins(y=0.12)
        axes.invert_yaxis()
        axes.set_axis_off()
        svg = svg_text(figure)
    headline = _headline(flows)
    return FigureCard(
        "sankey",
        headline,
        say("figures.sankey.subtitle", scope=subtitle),
        say("figures.sankey.alt", headline=headline),
        svg,
        flows,
    )


def _headline(flows: pd.DataFrame) -> str:
    started = float(flows.loc[flows["kind"] == "start", "accelerators"].sum())
    last = flows[flows["target"].isin(["energised", "sold"])]
    done, word = float(last["accelerators"].sum()), str(last["target"].iloc[0]) if len(last) else "sold"
    lost = flows[flows["kind"] == "loss"].groupby("source")["accelerators"].sum()
    flow = say(f"figures.sankey.flow_{word}", started=count(started, 2), done=count(done, 2))
    if not len(lost):
        return say("figures.sankey.none_lost", flow=flow)
    return say("figures.sankey.most_lost", flow=flow, stage=stage_head(str(lost.idxmax())).lower())


def _merged(flows: pd.DataFrame) -> pd.DataFrame:
    """Regions below the smallest share of the widest stage, and those after the largest few, in one branch."""
    regions = flows["target"].str.startswith("energised:")
    rank = flows["accelerators"].where(regions).rank(ascending=False, method="first")
    small = regions & ((flows["accelerators"] < SMALL * flows["accelerators"].max()) | (rank > REGIONS))
    shown = flows.assign(target=flows["target"].where(~small, "energised:other"))
    summed: pd.DataFrame = shown.groupby(["source", "target", "kind"], as_index=False, sort=False).agg(
        accelerators=("accelerators", "sum")
    )
    return summed


def _placed(flows: pd.DataFrame) -> dict[str, _Node]:
    """Bars in columns by the longest way from the start, those of a column one below the other."""
    links = flows[flows["kind"] == "flow"]
    inside = [s for s in dict.fromkeys([*flows["source"], *flows["target"]]) if s not in OUTSIDE]
    column = dict.fromkeys(inside, 0)
    for _ in inside:
        for r in records(links):
            column[r.target] = max(column[r.target], column[r.source] + 1)
    into, out = flows.groupby("target")["accelerators"].sum(), flows.groupby("source")["accelerators"].sum()
    sizes = {s: max(float(into.get(s, 0.0)), float(out.get(s, 0.0))) for s in inside}
    whole, used = max(sizes.values()), dict.fromkeys(column.values(), 0.0)
    nodes = {}
    for s in sorted(inside, key=lambda x: (column[x], -sizes[x])):
        nodes[s] = _Node(s, column[s], sizes[s], used[column[s]])
        used[column[s]] += sizes[s] + 3.8 * GAP * whole
    tallest = max(used.values())
    for node in nodes.values():
        node.top += (tallest - used[node.column]) / 2
    stock_in = flows[(flows["kind"] == "stock") & (flows["source"] == "stock")]
    for r in records(stock_in):  # what comes from stock enters at the top, so flows start below it
        nodes[r.target].left_used = r.accelerators
    for r in records(flows[(flows["kind"] == "stock") & (flows["target"] == "stock")]):
        nodes[r.source].right_used = r.accelerators
    return nodes


def _band(axes: Any, start: tuple[float, float], end: tuple[float, float], width: float, colour: str) -> None:
    """A band of constant width between two upper corners, bent like an S."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    (x0, y0), (x1, y1) = start, end
    middle = (x0 + x1) / 2
    points = [(x0, y0), (middle, y0), (middle, y1), (x1, y1), (x1, y1 + width), (middle, y1 + width)]
    points += [(middle, y0 + width), (x0, y0 + width), (x0, y0)]
    codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY]
    axes.add_patch(PathPatch(Path(points, codes), facecolor=colour, alpha=0.45, edgecolor="none"))


def _ribbon(axes: Any, source: _Node, target: _Node, width: float, colour: str) -> None:
    start = (source.column + BAR, source.top + source.right_used)
    _band(axes, start, (target.column, target.top + target.left_used), width, colour)
    source.right_used += width
    target.left_used += width


def _branch(axes: Any, nodes: dict[str, _Node], r: Any, whole: float) -> None:
    """A loss leaves at the lower right, a stock change at the upper right (out) or upper left (in)."""
    gap, large = GAP * whole, r.accelerators >= SMALL * whole
    if r.kind == "loss":
        node = nodes[r.source]
        y = node.top + node.size - r.accelerators
        _band(axes, (node.column + BAR, y), (node.column + 0.36, y + 0.75 * gap), r.accelerators, LOST)
        spot, place = (node.column + 0.38, y + 0.75 * gap + r.accelerators / 2), ("left", "center")
        text = say("figures.sankey.lost")
    elif r.target == "stock":
        node = nodes[r.source]
        _band(axes, (node.column + BAR, node.top), (node.column + 0.32, node.top - 0.75 * gap), r.accelerators, GREY)
        spot, place = (node.column + 0.3, node.top - 0.9 * gap), ("center", "bottom")
        text = say("figures.sankey.to_stock")
    else:
        node = nodes[r.target]
        _band(axes, (node.column - 0.25, node.top - 0.75 * gap), (node.column, node.top), r.accelerators, GREY)
        spot, place = (node.column - 0.23, node.top - 0.9 * gap), ("center", "bottom")
        text = say("figures.sankey.from_stock")
    if large:
        words = f"{text}\n{count(r.accelerators, 2)}"
        axes.text(*spot, words, ha=place[0], va=place[1], fontsize=7.5, color="#444444")


def _bar(axes: Any, node: _Node, names: dict[str, str], columns: int) -> None:
    from matplotlib.patches import Rectangle

    colour = STAGE_COLOURS.get(node.name, "#444444")
    axes.add_patch(Rectangle((node.column, node.top), BAR, node.size, facecolor=colour, edgecolor="none"))
    name = names.get(node.name) or stage_head(node.name.rpartition(":")[2])
    text = f"{wrapped(name, 22, 1)}\n{count(node.size, 2)}"
    if node.column == columns - 1 and ":" in node.name:
        axes.text(node.column + BAR + 0.03, node.top + node.size / 2, text, va="center", fontsize=8)
        return
    axes.text(node.column + BAR / 2, node.top + node.size, f"\n{text}", ha="center", va="top", fontsize=8.5,
              fontweight="bold", linespacing=1.15)  # fmt: skip
