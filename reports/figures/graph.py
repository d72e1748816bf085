"""Figure: the limits of the chain from left to right, width by flow, colour by how full each is."""

from __future__ import annotations

from typing import Any

import pandas as pd

from reports.catalogue import say
from reports.figures.style import INK, STAGE_ORDER, FigureCard, drawing, on, svg_text, wrapped
from reports.tables import records
from reports.wording import count, stage_head

__all__ = ["stage_graph"]

WIDTH = 9.2
BOX = (0.62, 0.66)
WIDEST = 0.5


def stage_graph(
    nodes: pd.DataFrame, links: pd.DataFrame, period: str, subtitle: str, titles: dict[str, str] | None = None
) -> FigureCard:
    """Limits as boxes from left to right, links as bands; thick outline: one more unit is worth something.

    `nodes`: columns node, title, stage, utilisation (fraction or missing), binds; `links`: source, target,
    accelerators, as `scenarios.stage_links` makes them.

    Raises:
        ValueError: when there is no link, or a link names a node that there is not.
    """
    if links.empty:
        raise ValueError("no link between limits: nothing flows in this period")
    missing = sorted({*links["source"], *links["target"]} - set(nodes["node"]))
    if missing:
        raise ValueError(f"links name nodes that there are not: {', '.join(missing)}")
    places = _places(nodes, links)
    widest = float(links["accelerators"].max())
    tall = max(sum(1 for x, _ in places.values() if x == c) for c in {x for x, _ in places.values()})
    with drawing(WIDTH, 0.6 + 0.72 * tall) as (figure, axes):
        for r in records(links.sort_values("accelerators")):
            _band(axes, places[r.source], places[r.target], WIDEST * r.accelerators / widest)
        for r in records(nodes):
            _box(axes, places[r.node], r, (titles or {}).get(r.node, stage_head(r.title)))
        _heads(axes, places, nodes)
        axes.set_xlim(-0.5, max(x for x, _ in places.values()) + 0.5)
        axes.set_ylim(max(y for _, y in places.values()) + 0.55, min(y for _, y in places.values()) - 0.85)
        axes.set_axis_off()
        svg = svg_text(figure)
    binding = int(nodes["binds"].sum())
    headline = say("figures.stage_graph.nothing", period=period)
    if binding:
        known = int(nodes["utilisation"].notna().sum())
        headline = say("figures.stage_graph.headline", binding=binding, all=known, period=period)
    return FigureCard(
        "stage_graph",
        headline,
        say("figures.stage_graph.subtitle", widest=count(widest, 2), period=period, scope=subtitle),
        say("figures.stage_graph.alt", headline=headline),
        svg,
        links,
    )


def _places(nodes: pd.DataFrame, links: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Column by the longest way from a start, rows by stage and name, columns centred on each other."""
    column = dict.fromkeys(nodes["node"], 0)
    for _ in range(len(column)):
        moved = False
        for r in records(links):
            if column[r.target] <= column[r.source] < len(column):
                column[r.target], moved = column[r.source] + 1, True
        if not moved:
            break
    rank = {s: k for k, s in enumerate(STAGE_ORDER)}
    stage = dict(zip(nodes["node"], nodes["stage"], strict=True))
    stages = {}
    for s in dict.fromkeys(nodes["stage"]):  # one stage, one column
        stages[s] = max(column[n] for n in column if stage[n] == s)
    places = {}
    groups: dict[int, list[str]] = {}
    for n in sorted(column, key=lambda n: (rank.get(stage[n], 99), n)):
        groups.setdefault(stages[stage[n]], []).append(n)
    for place, key in enumerate(sorted(groups)):
        for row, n in enumerate(groups[key]):
            places[n] = (float(place), row - (len(groups[key]) - 1) / 2)
    return places


def _band(axes: Any, source: tuple[float, float], target: tuple[float, float], width: float) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    x0, x1 = source[0] + BOX[0] / 2, target[0] - BOX[0] / 2
    y0, y1, middle = source[1] - width / 2, target[1] - width / 2, (x0 + x1) / 2
    points = [(x0, y0), (middle, y0), (middle, y1), (x1, y1), (x1, y1 + width), (middle, y1 + width)]
    points += [(middle, y0 + width), (x0, y0 + width), (x0, y0)]
    codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY]
    axes.add_patch(PathPatch(Path(points, codes), facecolor="#6f8098", alpha=0.45, edgecolor="none"))


def _box(axes: Any, place: tuple[float, float], r: Any, title: str) -> None:
    import matplotlib as mpl
    from matplotlib.colors import to_hex
    from matplotlib.patches import Rectangle

    known = bool(pd.notna(r.utilisation))
    face = to_hex(mpl.colormaps["Blues"](0.04 + 0.53 * min(1.0, float(r.utilisation)))) if known else "#ffffff"
    edge: dict[str, Any] = (
        {"edgecolor": INK, "linewidth": 2.6} if r.binds else {"edgecolor": "#555555", "linewidth": 0.7}
    )
    corner = (place[0] - BOX[0] / 2, place[1] - BOX[1] / 2)
    axes.add_patch(Rectangle(corner, *BOX, facecolor=face, zorder=3, **edge))
    words = wrapped(title, 19)
    text = f"{words}\n{100 * r.utilisation:.0f} %" if known else words
    axes.text(*place, text, ha="center", va="center", fontsize=7.2, color=on(face), zorder=4, linespacing=1.15)


def _heads(axes: Any, places: dict[str, tuple[float, float]], nodes: pd.DataFrame) -> None:
    """Names of the stages over their columns."""
    stage = dict(zip(nodes["node"], nodes["stage"], strict=True))
    top = min(y for _, y in places.values()) - 0.62
    for x in sorted({x for x, _ in places.values()}):
        found = dict.fromkeys(stage[n] for n, p in places.items() if p[0] == x)
        words = ", ".join(stage_head(s) for s in found)
        axes.text(x, top, words, ha="center", va="center", fontsize=8.5, fontweight="bold")
