"""Figures of manufacturing: what a good package costs, yield against area, a wafer map, memory stacks by height."""

from __future__ import annotations

from typing import Any

import pandas as pd

from reports.catalogue import say
from reports.figures.style import INK, STAGE_COLOURS, FigureCard, colour_of, drawing, filled, svg_text, wrapped
from reports.spans import number
from reports.tables import records
from reports.wording import percent, plain

__all__ = ["stack_heights", "unit_cost_waterfalls", "wafer_map_figure", "yield_curves"]

WIDTH = 9.2
MARKED = STAGE_COLOURS["power"]
PARTS = {
    "raw_silicon": "Logic wafers", "defective_silicon": "Lost logic dies", "memory": "Memory stacks",
    "interposer": "Interposer", "substrate": "Substrate", "assembly": "Assembly",
    "wasted_good_parts": "Good parts lost late", "test": "Test",
}  # fmt: skip
MODEL_TITLES = {
    "poisson": "Poisson", "murphy": "Murphy", "seeds": "Seeds", "moore": "Moore", "rectangular": "Rectangular",
    "negative_binomial": "Negative binomial",
}  # fmt: skip
_LINES = ("--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
_BINS = {
    "full": ("#44aa99", "", "free of defects"),
    "cut": ("#ddcc77", "////", "sold with blocks off"),
    "scrap": ("#632a46", "xxxx", "scrap"),
    "edge": ("#f2f2f2", "...", "partial at the edge"),
}
EDGE = {"facecolor": "#f2f2f2", "hatch": "...", "hatchcolor": "#8c8c8c", "edgecolor": "#8c8c8c", "linewidth": 0.5}
#: Labels stay readable on lines.
LABEL = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}


def unit_cost_waterfalls(parts: pd.DataFrame, published: dict[str, float], names: dict[str, str]) -> FigureCard:
    """One waterfall a package on one scale: parts, the total with its 90 % band, and the published total as a line.

    `parts`: columns sku, part ("total" last), value, low, high in USD per good package.
    """
    skus = list(dict.fromkeys(parts["sku"]))
    most = max(parts["high"].max(), *published.values()) if published else parts["high"].max()
    with drawing(WIDTH, 2.75 * ((len(skus) + 1) // 2), nrows=(len(skus) + 1) // 2, ncols=2, squeeze=False) as (f, grid):
        panels = list(grid.flat)
        for panel in panels[len(skus) :]:
            panel.set_visible(False)
        for panel, sku in zip(panels, skus, strict=False):
            _waterfall(panel, parts[parts["sku"] == sku], published.get(sku), float(most))
            panel.set_title(wrapped(names.get(sku, sku), 44), fontweight="bold")
        for panel in grid[-1]:
            panel.set_xlabel("USD per good package")
        svg = svg_text(f)
    rows = parts[parts["part"] != "total"]
    largest = rows.loc[rows.groupby("sku")["value"].idxmax(), "part"]
    if largest.nunique() == 1:
        name = PARTS.get(str(largest.iloc[0]), str(largest.iloc[0]))
        plural = name.endswith("s")
        headline = say("figures.unit_cost.plural" if plural else "figures.unit_cost.singular", part=name)
    else:
        counts = largest.value_counts()
        name = PARTS.get(str(counts.index[0]), str(counts.index[0]))
        headline = say("figures.unit_cost.most", part=name, found=int(counts.iloc[0]), all=len(skus))
    return FigureCard(
        "unit_cost",
        headline,
        say("figures.unit_cost.subtitle"),
        say("figures.unit_cost.alt", headline=headline),
        svg,
        parts.assign(published=parts["sku"].map(published).where(parts["part"] == "total")),
    )


def _waterfall(axes: Any, parts: pd.DataFrame, published: float | None, most: float) -> None:
    left = 0.0
    names = []
    for row, r in enumerate(records(parts)):
        total = r.part == "total"
        start = 0.0 if total else left
        colour = "#666666" if total else "#6699CC"
        axes.barh(row, r.value, left=start, height=0.74, **filled((colour, "")))
        end = start + r.value
        if total:
            axes.plot([r.low, r.high], [row, row], color=INK, linewidth=1.4, marker="|", markersize=7)
            end = max(end, r.high)
        else:
            left = end
        axes.text(end + 0.012 * most, row, f"{r.value:,.0f}", bbox=LABEL, va="center", fontsize=7.5,
                  fontweight="bold" if total else "normal")  # fmt: skip
        names.append("Together" if total else PARTS.get(r.part, r.part))
    if published is not None:
        axes.axvline(published, color=MARKED, linestyle="--", linewidth=1.3)
        axes.text(
            published + 0.01 * most, -0.75, f"published {published:,.0f}", fontsize=7.5, color=MARKED, va="bottom"
        )
    axes.set_yticks(range(len(parts)), names, fontsize=8)
    axes.set_ylim(len(parts) - 0.4, -1.4)
    axes.set_xlim(0, most * 1.09)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#e6e6e6", linewidth=0.6)


def yield_curves(curves: pd.DataFrame, dies: dict[str, float], shown: str = "negative_binomial") -> FigureCard:
    """Share of dies free of defects against area, a line a model, the band of the density for the model in use.

    `curves`: columns model, area_mm2, value, low, high, defects_per_cm2; `dies`: name to area of dies marked.
    """
    density = float(curves["defects_per_cm2"].iloc[0])
    with drawing(WIDTH, 3.7) as (figure, axes):
        used = curves[curves["model"] == shown]
        axes.fill_between(
            used["area_mm2"], 100 * used["low"], 100 * used["high"], color="#6699CC", alpha=0.22, linewidth=0
        )
        others = [m for m in dict.fromkeys(curves["model"]) if m != shown]
        for k, model in enumerate(others):
            line = curves[curves["model"] == model]
            axes.plot(line["area_mm2"], 100 * line["value"], color="#555555", linestyle=_LINES[k % 5], linewidth=1.1)
        axes.plot(used["area_mm2"], 100 * used["value"], color=MARKED, linewidth=2.2)
        _end_labels(axes, curves, shown)
        for name, area in dies.items():
            axes.axvline(area, color="#bbbbbb", linewidth=0.8, zorder=0)
            axes.text(area, 1.5, f"{name} ", rotation=90, fontsize=7.5, ha="right", va="bottom", color="#555555")
        axes.set_ylim(0, 100)
        axes.set_xlim(0, curves["area_mm2"].max() * 1.2)
        axes.set_xticks(range(0, 900, 100))
        axes.set_xlabel("die area, mm²")
        axes.set_ylabel(say("figures.axes.free_of_defects"))
        axes.grid(axis="y", color="#ececec", linewidth=0.6)
        svg = svg_text(figure)
    top = curves[curves["area_mm2"] == curves["area_mm2"].max()]
    low, high = top["value"].min(), top["value"].max()
    ends = {"low": number(100 * low, ".0f"), "high": number(100 * high, ".0f")}
    headline = say("figures.yield_by_area.headline", area=number(top["area_mm2"].iloc[0], ".0f"), **ends)
    return FigureCard(
        "yield_by_area",
        headline,
        say("figures.yield_by_area.subtitle", density=plain(density, 2)),
        say("figures.yield_by_area.alt", headline=headline),
        svg,
        curves,
    )


def _end_labels(axes: Any, curves: pd.DataFrame, shown: str) -> None:
    """Names at the right ends, kept apart by 5 points of percent."""
    last = curves[curves["area_mm2"] == curves["area_mm2"].max()].sort_values("value", ascending=False)
    place = 101.0
    for r in records(last):
        place = min(100 * r.value, place - 5.0)
        bold = "bold" if r.model == shown else "normal"
        text = f"{MODEL_TITLES.get(r.model, r.model)} {100 * r.value:.0f} %"
        axes.plot([r.area_mm2, r.area_mm2 + 12], [100 * r.value, place], color="#bbbbbb", linewidth=0.6)
        axes.text(r.area_mm2 + 15, place, text, fontsize=8, va="center", fontweight=bold)


def wafer_map_figure(sites: pd.DataFrame, title: str) -> FigureCard:
    """A simulated wafer to scale: bins full, cut and scrap, partial dies at the edge, defects as dots, counts printed.

    `sites`: columns kind (full, cut, scrap, edge, defect), x_mm, y_mm, width_mm, height_mm, radius_mm,
    usable_radius_mm, seed, defects_per_cm2, serving_share.
    """
    from matplotlib.patches import Circle, Rectangle

    first = sites.iloc[0]
    counts = {k: int((sites["kind"] == k).sum()) for k in (*_BINS, "defect")}
    gross = counts["full"] + counts["cut"] + counts["scrap"]
    with drawing(WIDTH, 4.7) as (figure, axes):
        disc = Circle((0, 0), first["radius_mm"], facecolor="#fafafa", edgecolor="#333333", linewidth=1.0)
        axes.add_patch(disc)
        for r in records(sites[sites["kind"] != "defect"]):
            face, hatch, _ = _BINS[r.kind]
            look = filled((face, hatch)) if r.kind != "edge" else EDGE
            patch = Rectangle((r.x_mm, r.y_mm), r.width_mm, r.height_mm, **look)
            axes.add_patch(patch)
            patch.set_clip_path(disc)
        axes.add_patch(Circle((0, 0), first["usable_radius_mm"], fill=False, edgecolor="#777777", linestyle=":"))
        axes.add_patch(Rectangle((-3, -first["radius_mm"] - 1), 6, 4, facecolor="white", edgecolor="#333333"))
        spots = sites[sites["kind"] == "defect"]
        axes.plot(spots["x_mm"], spots["y_mm"], ".", color="black", markersize=2.6)
        handles = [
            Rectangle((0, 0), 1, 1, label=f"{counts[k]} {words}", **(EDGE if k == "edge" else filled((c, h))))
            for k, (c, h, words) in _BINS.items()
        ]
        handles.append(axes.plot([], [], ".", color="black", label=f"{counts['defect']} defects")[0])
        axes.legend(handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8.5)
        axes.set_aspect("equal")
        axes.set_xlim(-156, 156)
        axes.set_ylim(-156, 156)
        axes.set_xlabel("mm from the centre")
        axes.set_ylabel("mm")
        svg = svg_text(figure)
    sold = counts["full"] + counts["cut"]
    headline = say("figures.wafer_map.headline", sold=sold, gross=gross, cut=counts["cut"])
    dies = {"gross": gross} | {k: counts[k] for k in ("full", "cut", "scrap")}
    about = {
        "seed": int(first["seed"]),
        "title": title,
        "density": plain(first["defects_per_cm2"], 2),
        "expected": percent(first["serving_share"]),
    }
    return FigureCard(
        "wafer_map",
        headline,
        say("figures.wafer_map.subtitle", **about, **dies),
        say("figures.wafer_map.alt", **dies, headline=headline),
        svg,
        sites,
    )


def stack_heights(table: pd.DataFrame) -> FigureCard:
    """Yield from DRAM die to good stack by height; filled where the facts quote a yield, hollow where it follows.

    `table`: columns memory, height, value, low, high, quoted.
    """
    memories = list(dict.fromkeys(table["memory"]))
    with drawing(WIDTH, 3.1, ncols=len(memories), sharey=True, squeeze=False) as (figure, grid):
        for panel, memory in zip(grid[0], memories, strict=True):
            line = table[table["memory"] == memory]
            colour = colour_of("hbm")
            x, y = line["height"], 100 * line["value"]
            panel.fill_between(x, 100 * line["low"], 100 * line["high"], color=colour, alpha=0.13, linewidth=0)
            panel.plot(x, y, color=colour, linewidth=1.4)
            for r in records(line):
                face = colour if r.quoted else "white"
                panel.plot(r.height, 100 * r.value, "o", color=colour, markerfacecolor=face, markersize=6)
                panel.annotate(f"{100 * r.value:.0f}", (r.height, 100 * r.value), xytext=(0, 7),
                               textcoords="offset points", ha="center", fontsize=8)  # fmt: skip
            panel.set_title(memory.upper().replace("HBM3E", "HBM3E"), fontweight="bold")
            panel.set_xticks(sorted(set(table["height"])))
            panel.set_xlabel(say("figures.axes.stack_dies"))
            panel.set_ylim(0, 100)
            panel.grid(axis="y", color="#ececec", linewidth=0.6)
        grid[0][0].set_ylabel(say("figures.axes.stack_yield"))
        svg = svg_text(figure)
    newest = table[table["memory"] == memories[-1]].sort_values("height")
    low, high = newest.iloc[-1], newest.iloc[0]
    ends = {"high": percent(high["value"]), "low": percent(low["value"])}
    stacks = {"low_stack": int(high["height"]), "high_stack": int(low["height"])}
    headline = say("figures.stack_yield.headline", memory=memories[-1].upper(), **ends, **stacks)
    return FigureCard(
        "stack_yield",
        headline,
        say("figures.stack_yield.subtitle"),
        say("figures.stack_yield.alt", headline=headline),
        svg,
        table,
    )
