"""Figures of the supply side: what binds, how full, how many, and what a limit is worth."""

from __future__ import annotations

from typing import Any

import pandas as pd

from reports.catalogue import say
from reports.figures.style import (
    INK,
    STAGE_COLOURS,
    STAGE_ORDER,
    FigureCard,
    colour_of,
    drawing,
    few_words,
    filled,
    fills,
    grid_axes,
    on,
    period_ticks,
    svg_text,
    wrapped,
)
from reports.spans import number
from reports.wording import count, leader_since, stage_head

__all__ = [
    "accelerator_stack",
    "binding_timeline",
    "bottleneck_prices",
    "potentials",
    "power_limits",
    "utilisation_map",
]

WIDTH = 9.2
POWER, CHIPS = STAGE_COLOURS["power"], STAGE_COLOURS["hbm"]
SEEN = 0.005
#: Row of the periods in which no limit is worth anything.
DEMAND = "demand"
#: Darkest blue of a full cell, light enough that a black outline and black figures stand out on it.
DEEPEST = 0.55


def binding_timeline(binding: pd.DataFrame, periods: list[str], subtitle: str) -> FigureCard:
    """Stages in chain order x periods; a filled cell binds, the figure in it is its share of all rent in the period.

    A last row holds the periods in which no limit has a price, so that nothing but demand stops output.

    `binding`: columns period, stage, rent (price x limit, any one unit).
    """
    rent = binding.groupby(["stage", "period"])["rent"].sum().unstack(fill_value=0)
    rent = rent.reindex(columns=periods, fill_value=0.0)
    stages = [s for s in STAGE_ORDER if s != "datacenter"] + [f"{s}" for s in rent.index if s not in STAGE_ORDER]
    share = (rent / rent.sum().where(rent.sum() > 0)).reindex(stages).fillna(0.0)
    headline = _timeline_headline(share, periods)
    share.loc[DEMAND] = (rent.sum() <= 0).astype(float)
    with drawing(WIDTH, 0.75 + 0.29 * len(share)) as (figure, axes):
        for row, stage in enumerate(share.index):
            for column, period in enumerate(periods):
                _share_cell(axes, column, row, float(share[period][stage]), STAGE_COLOURS.get(stage, "#777777"))
        grid_axes(axes, periods, [stage_head(s) for s in share.index])
        svg = svg_text(figure)
    data = share.T.rename_axis("period").reset_index().melt("period", var_name="stage", value_name="share_of_rent")
    return FigureCard(
        "binding_timeline",
        headline,
        say("figures.binding_timeline.subtitle", scope=subtitle),
        say("figures.binding_timeline.alt", headline=headline),
        svg,
        data,
    )


def _share_cell(axes: Any, column: int, row: int, value: float, colour: str) -> None:
    from matplotlib.colors import to_hex, to_rgb
    from matplotlib.patches import Rectangle

    mix = 0.25 + 0.75 * value
    face = "#f0f0f0" if value <= SEEN else to_hex([1 - mix * (1 - c) for c in to_rgb(colour)])
    axes.add_patch(Rectangle((column + 0.03, row + 0.05), 0.94, 0.9, facecolor=face, edgecolor="none"))
    if value > SEEN:
        _cell_text(axes, column, row, f"{100 * value:.0f}", on(face), bold=value > 0.5)


def _cell_text(axes: Any, column: int, row: int, text: str, colour: str, bold: bool = False) -> None:
    weight = "bold" if bold else "normal"
    look = {"ha": "center", "va": "center", "fontsize": 7.5, "color": colour, "fontweight": weight}
    axes.text(column + 0.5, row + 0.52, text, in_layout=False, **look)


def _timeline_headline(share: pd.DataFrame, periods: list[str]) -> str:
    """The last lasting leader and since when, in at most ten words."""
    leaders = [f"{share[p].idxmax()}" if share[p].max() > SEEN else "" for p in periods]
    if not any(leaders):
        return say("figures.binding_timeline.nothing")
    end = max(k for k, s in enumerate(leaders) if s)
    start, breaks = leader_since(leaders[: end + 1])
    name, since = stage_head(leaders[end]), periods[start]
    if start == 0 and not breaks:
        return say("figures.binding_timeline.throughout", stage=name)
    if breaks:
        return say("figures.binding_timeline.breaks", stage=name, since=since)
    earlier = stage_head(leaders[start - 1])
    return say("figures.binding_timeline.before", stage=name, since=since, earlier=earlier)


def utilisation_map(table: pd.DataFrame, periods: list[str], now: str, subtitle: str) -> FigureCard:
    """Resources x periods, 0-100 % of stated capacity; cells that bind are outlined.

    `table`: columns resource, title, stage, period, utilisation (fraction or missing), binds ("full": the capacity
    itself has a price, "share": only shares of it that contracts give, "": neither).
    """
    order = {s: i for i, s in enumerate(STAGE_ORDER)}
    names = table.drop_duplicates("resource").assign(rank=lambda d: d["stage"].map(order).fillna(99))
    names = names.sort_values(["rank", "title"])
    grid = table.pivot_table(index="resource", columns="period", values="utilisation")
    grid = grid.reindex(index=names["resource"], columns=periods)
    binds = dict(zip(zip(table["resource"], table["period"], strict=True), table["binds"], strict=True))
    with drawing(WIDTH, 0.75 + 0.27 * len(grid)) as (figure, axes):
        for row, resource in enumerate(grid.index):
            for column, period in enumerate(periods):
                _use_cell(axes, column, row, grid.loc[resource, period], binds.get((resource, period), ""))
        grid_axes(axes, periods, list(names["title"]))
        svg = svg_text(figure)
    full = int((grid[now] > 0.995).sum())
    headline = say("figures.utilisation.headline", full=full, all=int(grid[now].notna().sum()), period=now)
    return FigureCard(
        "utilisation",
        headline,
        say("figures.utilisation.subtitle", scope=subtitle),
        say("figures.utilisation.alt", headline=headline),
        svg,
        table[["resource", "stage", "period", "utilisation", "binds"]],
    )


def _use_cell(axes: Any, column: int, row: int, value: Any, binds: str) -> None:
    import matplotlib as mpl
    from matplotlib.colors import to_hex
    from matplotlib.patches import Rectangle

    missing = bool(pd.isna(value))
    face = "#ffffff" if missing else to_hex(mpl.colormaps["Blues"](0.02 + DEEPEST * min(1.0, float(value))))
    line: dict[str, Any] = (
        {"hatch": "//////", "edgecolor": "#8c8c8c", "linewidth": 0} if missing else {"edgecolor": "none"}
    )
    axes.add_patch(Rectangle((column + 0.03, row + 0.05), 0.94, 0.9, facecolor=face, **line))
    if not missing:
        _cell_text(axes, column, row, f"{100 * float(value):.0f}", on(face), bold=bool(binds))
    if binds:
        line = {"linewidth": 1.9, "linestyle": "-" if binds == "full" else (0, (1.5, 1.5))}
        spot = Rectangle((column + 0.07, row + 0.1), 0.86, 0.8, fill=False, edgecolor=INK, **line)
        axes.add_patch(spot)


def accelerator_stack(
    table: pd.DataFrame, periods: list[str], subtitle: str, titles: dict[str, str] | None = None, top: int = 6
) -> FigureCard:
    """Finished and energised accelerators by product in two panels on one scale, thousands a period.

    The largest `top` products by what is finished over the horizon have segments of their own, the rest is "other";
    each has its colour and hatch, named in the order of the stack.

    `table`: columns period, sku, quantity ("finished" or "energised"), value (accelerators).
    """
    names = titles or {}
    total = table[table["quantity"] == "finished"].groupby("sku")["value"].sum().sort_values(ascending=False)
    kept = [str(s) for s in total.index[:top]]
    named = table.assign(sku=table["sku"].where(table["sku"].isin(kept), "other"))
    data: pd.DataFrame = named.groupby(["quantity", "period", "sku"], as_index=False).agg(value=("value", "sum"))
    order = [*kept, "other"] if data.loc[data["sku"] == "other", "value"].sum() > 1 else kept
    shown = [q for q in ("finished", "energised") if (data["quantity"] == q).any()]
    with drawing(WIDTH, 3.6, nrows=1, ncols=len(shown), sharey=True, squeeze=False) as (figure, panels):
        for panel, quantity in zip(panels[0], shown, strict=True):
            _stack(panel, data[data["quantity"] == quantity], periods, order, names)
            panel.set_title(quantity.capitalize(), fontweight="bold")
        panels[0, 0].set_ylabel("thousand accelerators a period")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        style = {"frameon": False, "fontsize": 8, "handleheight": 1.5, "handlelength": 2.2, "labelspacing": 0.7}
        figure.legend(handles[::-1], labels[::-1], loc="outside right center", **style)
        svg = svg_text(figure)
    yearly = data[data["quantity"] == shown[-1]].assign(year=lambda d: d["period"].str[:4])
    sums = yearly.groupby("year")["value"].sum()
    first, last = sums.index[0], sums.index[-1]
    said = {"first": count(sums[first], 2), "year": str(first)}
    headline = say(f"figures.accelerators.one_{shown[-1]}", **said)
    if first != last:
        said |= {"last": count(sums[last], 2), "end": str(last)}
        headline = say(f"figures.accelerators.two_{shown[-1]}", **said)
    return FigureCard(
        "accelerators",
        headline,
        say("figures.accelerators.subtitle", scope=subtitle),
        say("figures.accelerators.alt", headline=headline),
        svg,
        data,
    )


def _stack(panel: Any, data: pd.DataFrame, periods: list[str], order: list[str], names: dict[str, str]) -> None:
    wide = data.pivot_table(index="period", columns="sku", values="value").reindex(index=periods, columns=order)
    wide = wide.fillna(0.0) / 1e3
    base = pd.Series(0.0, index=periods)
    looks = fills(order)
    for sku in order:
        label = wrapped(names.get(sku, sku), 20)
        panel.bar(range(len(periods)), wide[sku], bottom=base, label=label, width=0.86, **filled(looks[sku]))
        base = base + wide[sku]
    period_ticks(panel, periods, every=2 if len(periods) > 8 else 1)
    panel.grid(axis="y", color="#e6e6e6", linewidth=0.6)
    panel.yaxis.set_major_formatter(lambda x, _: f"{x:,.0f}" if base.max() >= 5 else f"{x:g}")


def bottleneck_prices(table: pd.DataFrame, periods: list[str], subtitle: str, top: int = 6) -> FigureCard:
    """Price of each limit in USD per GPU-hour of its reference product, small multiples on one scale.

    `table`: columns period, resource, title, stage, usd_per_gpu_hour, reference (the product of the hour).
    """
    rank = table.groupby("resource")["usd_per_gpu_hour"].sum().sort_values(ascending=False)
    kept = list(rank.index[:top])
    titles = dict(zip(table["resource"], table["title"], strict=True))
    stage = dict(zip(table["resource"], table["stage"], strict=True))
    columns = min(3, max(1, len(kept)))
    rows = -(-max(1, len(kept)) // columns)
    with drawing(WIDTH, 0.5 + 1.65 * rows, nrows=rows, ncols=columns, sharey=True, squeeze=False) as (figure, panels):
        for index, panel in enumerate(panels.flat):
            if index >= len(kept):
                panel.set_visible(False)
                continue
            of_it = table[table["resource"] == kept[index]].set_index("period")
            mine = of_it["usd_per_gpu_hour"].reindex(periods)
            panel.bar(range(len(periods)), mine.fillna(0.0), width=0.86, **filled((colour_of(stage[kept[index]]), "")))
            products = ", ".join(name for name in dict.fromkeys(of_it["reference"]) if name)
            panel.set_title(wrapped(titles[kept[index]], 126 // columns), fontsize=8.5)
            panel.set_xlabel(
                wrapped(say("figures.bottleneck_prices.hour", products=products), 150 // columns), fontsize=7
            )
            panel.grid(axis="y", color="#e6e6e6", linewidth=0.6)
            panel.set_xlim(-0.7, len(periods) - 0.3)
            period_ticks(panel, periods, every=4 if len(periods) > 8 else 1)
        for line in panels:
            line[0].set_ylabel("USD per GPU-hour", fontsize=8)
        svg = svg_text(figure)
    headline = say("figures.bottleneck_prices.nothing")
    if kept:
        headline = say("figures.bottleneck_prices.headline", limit=few_words(titles[kept[0]], 5))
    return FigureCard(
        "bottleneck_prices",
        headline,
        say("figures.bottleneck_prices.subtitle", scope=subtitle),
        say("figures.bottleneck_prices.alt", headline=headline),
        svg,
        table,
    )


def power_limits(table: pd.DataFrame, periods: list[str], headline: str, subtitle: str, idle: str = "") -> FigureCard:
    """Planning power of the fleet against energised power, GW; the caller words the finding, as it knows the regions.

    `idle`: whose power the gap between the two lines is at the end, named in the drawing.

    `table`: columns period, used_mw, capacity_mw, low_mw, high_mw (summed over regions).
    """
    t = table.set_index("period").reindex(periods)
    x = list(range(len(periods)))
    with drawing(WIDTH, 3.0) as (figure, axes):
        axes.fill_between(x, t["low_mw"] / 1e3, t["high_mw"] / 1e3, color=POWER, alpha=0.15, linewidth=0)
        axes.plot(x, t["capacity_mw"] / 1e3, color=POWER, linewidth=2)
        axes.plot(x, t["used_mw"] / 1e3, color=CHIPS, linewidth=2, linestyle="--")
        axes.set_ylabel(say("figures.axes.power"))
        axes.set_ylim(bottom=0)
        axes.margins(x=0.01)
        axes.grid(axis="y", color="#e6e6e6", linewidth=0.6)
        period_ticks(axes, periods)
        if idle:
            _name_gap(axes, idle, t)
        _key(
            axes,
            (say("figures.power.key_band"), POWER),
            (say("figures.power.key_solid"), POWER),
            (say("figures.power.key_dashed"), CHIPS),
        )
        svg = svg_text(figure)
    return FigureCard(
        "power",
        headline,
        say("figures.power.subtitle", scope=subtitle),
        say("figures.power.alt", headline=headline),
        svg,
        table,
    )


def _name_gap(axes: Any, words: str, t: pd.DataFrame) -> None:
    """Words in the free space below the lines, with an arrow to the gap between them near the end."""
    at = max(0, len(t) - 2)
    middle = float(t[["capacity_mw", "used_mw"]].iloc[at].mean()) / 1e3
    look = {"fontsize": 8.5, "color": INK, "ha": "right", "va": "center", "textcoords": "axes fraction"}
    arrow = {"arrowstyle": "-", "color": INK, "linewidth": 0.8}
    axes.annotate(wrapped(words, 42), (at, middle), xytext=(0.93, 0.13), arrowprops=arrow, **look)


def _key(axes: Any, *lines: tuple[str, str]) -> None:
    """A key in words, top left, each with a mark in its colour; some colours are too light for words."""
    for k, (text, colour) in enumerate(lines):
        height = 0.93 - 0.09 * k
        mark = {"marker": "s", "markersize": 5, "color": colour, "clip_on": False}
        axes.plot(0.025, height, transform=axes.transAxes, **mark)
        axes.text(0.04, height, text, transform=axes.transAxes, fontsize=8.5, va="center")


def potentials(table: pd.DataFrame, periods: list[str], subtitle: str) -> FigureCard:
    """Fleet that chips alone would allow against the fleet that power alone would allow, GW at period end.

    `table`: columns period, without_power_rows_mw, without_chip_rows_mw, built_mw.
    """
    t = table.set_index("period").reindex(periods) / 1e3
    chips, power = t["without_power_rows_mw"], t["without_chip_rows_mw"]
    x = list(range(len(periods)))
    with drawing(WIDTH, 3.0) as (figure, axes):
        axes.fill_between(x, power, chips, where=chips >= power, color=POWER, alpha=0.18, linewidth=0, interpolate=True)
        axes.fill_between(x, power, chips, where=chips < power, color=CHIPS, alpha=0.18, linewidth=0, interpolate=True)
        axes.plot(x, chips, color=CHIPS, linewidth=2)
        axes.plot(x, power, color=POWER, linewidth=2, linestyle="--")
        axes.plot(x, t["built_mw"], color=INK, linewidth=1.2, linestyle=":")
        axes.set_ylabel(say("figures.axes.fleet"))
        axes.set_ylim(bottom=0)
        axes.margins(x=0.01)
        axes.grid(axis="y", color="#e6e6e6", linewidth=0.6)
        period_ticks(axes, periods)
        _key(
            axes,
            (say("figures.potentials.key_solid"), CHIPS),
            (say("figures.potentials.key_dashed"), POWER),
            (say("figures.potentials.key_dotted"), INK),
        )
        svg = svg_text(figure)
    gap = float((chips - power).iloc[-1])
    held = {"gap": number(abs(gap), ".0f"), "period": periods[-1]}
    headline = say("figures.potentials.power_holds" if gap >= 0 else "figures.potentials.chips_hold", **held)
    return FigureCard(
        "potentials",
        headline,
        say("figures.potentials.subtitle", scope=subtitle),
        say("figures.potentials.alt", headline=headline),
        svg,
        table,
    )
