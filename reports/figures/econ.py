"""Figures of costs: what makes up an hour, what speed costs, and what could overturn the headline."""

from __future__ import annotations

import pandas as pd

from reports.figures.style import FigureCard, colour_of, drawing, svg_text

__all__ = ["cost_front", "cost_waterfall", "headline_tornado", "others_compared"]


def cost_waterfall(parts: pd.DataFrame, total_name: str, subtitle: str) -> FigureCard:
    """Parts of a cost that sum to the total, in causal order.

    `parts`: columns part, value (USD per sold GPU-hour), in order; their sum is the last bar.
    """
    total = float(parts["value"].sum())
    with drawing(9.2, 0.9 + 0.27 * (len(parts) + 1)) as (figure, axes):
        left = 0.0
        for row, value in enumerate(parts["value"]):
            axes.barh(
                row, value, left=left, color="#6699CC" if value >= 0 else "#CC6677", edgecolor="#333333", linewidth=0.4
            )
            axes.text(max(left, left + value) + 0.012 * total, row, f"{value:.3f}", va="center", fontsize=7.5)
            left += float(value)
        axes.barh(len(parts), total, color="#777777", edgecolor="#333333", linewidth=0.4)
        axes.text(total * 1.012, len(parts), f"{total:.2f}", va="center", fontsize=8, fontweight="bold")
        axes.set_yticks(range(len(parts) + 1), [*parts["part"], total_name], fontsize=8)
        axes.invert_yaxis()
        axes.set_xlim(0, total * 1.12)
        axes.set_xlabel("USD per sold GPU-hour")
        svg = svg_text(figure)
    largest = parts.loc[parts["value"].idxmax()]
    headline = f"{largest['part']} is {100 * largest['value'] / total:.0f} % of {total:.2f} USD an hour"
    return FigureCard(
        "cost_waterfall",
        headline,
        f"Owner cost, USD per sold GPU-hour; {subtitle}",
        f"Waterfall. {headline}.",
        svg,
        parts,
    )


def cost_front(points: pd.DataFrame, subtitle: str) -> FigureCard:
    """Cost of a million output tokens against the speed that one user sees; bands are the engine's 90 % band.

    `points`: columns model, sku, tokens_per_s_per_user, usd_per_mtoken, low, high, concurrency.
    """
    models = list(dict.fromkeys(points["model"]))
    with drawing(9.2, 3.3, nrows=1, ncols=max(1, len(models)), sharey=True, squeeze=False) as (figure, panels):
        for panel, model in zip(panels[0], models, strict=True):
            for sku, line in points[points["model"] == model].groupby("sku", sort=False):
                line = line.sort_values("tokens_per_s_per_user")
                colour = colour_of(str(sku))
                panel.fill_between(
                    line["tokens_per_s_per_user"], line["low"], line["high"], color=colour, alpha=0.12, linewidth=0
                )
                panel.plot(
                    line["tokens_per_s_per_user"],
                    line["usd_per_mtoken"],
                    marker="o",
                    markerfacecolor="white",
                    markersize=4,
                    color=colour,
                    label=str(sku),
                    linewidth=1.4,
                )
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.set_title(model)
            panel.set_xlabel("output tokens/s a user sees")
        panels[0, 0].set_ylabel("USD per million output tokens")
        panels[0, -1].legend(fontsize=7, frameon=False)
        svg = svg_text(figure)
    best = points.loc[points["usd_per_mtoken"].idxmin()]
    headline = f"Cheapest point: {best['model']} on {best['sku']} at {best['usd_per_mtoken']:.2f} USD/Mtoken output"
    return FigureCard(
        "cost_front",
        headline,
        f"Predicted (hollow) with 90 % band; {subtitle}",
        f"Curves of cost against speed. {headline}.",
        svg,
        points,
    )


def headline_tornado(table: pd.DataFrame, base: float, unit: str, subtitle: str, top: int = 12) -> FigureCard:
    """Swing of the headline over the stated range of each input, sorted, at most `top` bars.

    `table`: columns title, at_low, at_high (headline), low_input, high_input.
    """
    t = table.assign(swing=(table["at_high"] - table["at_low"]).abs()).sort_values("swing", ascending=False).head(top)
    with drawing(9.2, 0.9 + 0.3 * max(1, len(t))) as (figure, axes):
        for row, r in enumerate(t.itertuples()):
            for end, label, colour in ((r.at_low, r.low_input, "#6699CC"), (r.at_high, r.high_input, "#CC6677")):
                axes.barh(row, end - base, left=base, color=colour, height=0.7, edgecolor="#333333", linewidth=0.3)
                axes.annotate(
                    f"{label:.4g}",
                    (end, row),
                    xytext=(4 if end >= base else -4, 0),
                    textcoords="offset points",
                    ha="left" if end >= base else "right",
                    va="center",
                    fontsize=6.5,
                )
        axes.axvline(base, color="#333333", linewidth=0.8)
        axes.set_yticks(range(len(t)), list(t["title"]), fontsize=7.5)
        axes.invert_yaxis()
        axes.margins(x=0.12)
        axes.set_xlabel(unit)
        svg = svg_text(figure)
    headline = f"{t['title'].iloc[0]} moves the headline most" if len(t) else "No input has a stated range"
    return FigureCard(
        "tornado",
        headline,
        f"Input values at the bar ends; blue: low, red: high; {subtitle}",
        f"Ranked bars. {headline}.",
        svg,
        t.drop(columns="swing"),
    )


def others_compared(table: pd.DataFrame, subtitle: str) -> FigureCard:
    """Our finished units beside an outside estimate with its interval, million a year.

    `table`: columns group, year, ours, theirs, low, high (accelerators).
    """
    t = table.reset_index(drop=True)
    with drawing(9.2, 0.9 + 0.32 * len(t)) as (figure, axes):
        for row, r in enumerate(t.itertuples()):
            axes.plot(
                [r.low / 1e6, r.high / 1e6], [row, row], color="#777777", linewidth=3, solid_capstyle="butt", alpha=0.6
            )
            axes.plot(r.theirs / 1e6, row, marker="|", color="#333333", markersize=10)
            axes.plot(r.ours / 1e6, row, marker="D", color="#882255", markersize=5)
        axes.set_yticks(range(len(t)), [f"{r.group} {r.year}" for r in t.itertuples()], fontsize=8)
        axes.invert_yaxis()
        axes.set_xlim(left=0)
        axes.set_xlabel("million accelerators a year (diamond: this run; bar: outside estimate, 90 % interval)")
        svg = svg_text(figure)
    inside = int(((t["ours"] >= t["low"]) & (t["ours"] <= t["high"])).sum())
    headline = f"{inside} of {len(t)} yearly totals lie inside the outside interval"
    return FigureCard(
        "others", headline, f"Outcomes, never inputs; {subtitle}", f"Dots and intervals. {headline}.", svg, t
    )
