"""Figures of costs: what makes up an hour, what speed costs, and what could overturn the headline."""

from __future__ import annotations

from typing import Any

import pandas as pd

from reports.catalogue import say
from reports.figures.style import (
    INK,
    STAGE_COLOURS,
    FigureCard,
    colour_of,
    drawing,
    few_words,
    filled,
    svg_text,
    wrapped,
)
from reports.spans import number
from reports.tables import records
from reports.wording import brief, plain

__all__ = ["cost_front", "cost_waterfall", "headline_tornado", "others_compared"]

WIDTH = 9.2
#: Letters of the labels that the axis of the tornado holds.
LETTERS = 92
LINES = ("-", "--", "-.", ":")
MARKS = ("o", "s", "^", "D")
#: Ordinary bars, and those that are set apart (with a hatch).
PLAIN, RISE = "#6699cc", "#cc6677"


def cost_waterfall(parts: pd.DataFrame, total_name: str, subtitle: str) -> FigureCard:
    """Parts of a cost in causal order, a subtotal where one is marked, and the total.

    `parts`: columns part, value (USD per sold GPU-hour), kind ("part" or "subtotal"); the parts sum to the last bar.
    """
    total = float(parts.loc[parts["kind"] == "part", "value"].sum())
    largest = parts[parts["kind"] == "part"].sort_values("value", ascending=False).iloc[0]
    with drawing(WIDTH, 0.7 + 0.29 * (len(parts) + 1)) as (figure, axes):
        left = 0.0
        for row, (value, kind) in enumerate(zip(parts["value"], parts["kind"], strict=True)):
            if kind == "subtotal":
                _bar(axes, row, 0.0, float(value), "#999999", total, bold=True)
                continue
            scarce = parts["part"].iloc[row].startswith("Scarcity")
            _bar(axes, row, left, float(value), RISE if scarce else PLAIN, total, hatch="////" if scarce else "")
            left += float(value)
        _bar(axes, len(parts), 0.0, total, "#666666", total, bold=True)
        names = [wrapped(n, 38) for n in (*parts["part"], total_name)]
        axes.set_yticks(range(len(parts) + 1), names, fontsize=8, linespacing=1.0)
        axes.invert_yaxis()
        axes.set_xlim(0, total * 1.12)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color="#e6e6e6", linewidth=0.6)
        axes.set_xlabel("USD per sold GPU-hour")
        svg = svg_text(figure)
    share = number(100 * largest["value"] / total, ".0f")
    part = few_words(str(largest["part"]), 3)
    headline = say("figures.cost_waterfall.headline", part=part, share=share, total=plain(total))
    return FigureCard(
        "cost_waterfall",
        headline,
        say("figures.cost_waterfall.subtitle", scope=subtitle),
        say("figures.cost_waterfall.alt", headline=headline),
        svg,
        parts,
    )


def _bar(
    axes: Any, row: int, left: float, value: float, colour: str, total: float, bold: bool = False, hatch: str = ""
) -> None:
    axes.barh(row, value, left=left, height=0.72, **filled((colour, hatch)))
    weight = "bold" if bold else "normal"
    axes.text(max(left, left + value) + 0.01 * total, row, f"{value:.2f}", va="center", fontsize=8, fontweight=weight)


def cost_front(points: pd.DataFrame, subtitle: str, titles: dict[str, str] | None = None) -> FigureCard:
    """Cost of a million output tokens against the speed that one user sees; bands are the engine's 90 % band.

    `points`: columns model, sku, tokens_per_s_per_user, usd_per_mtoken, low, high.
    """
    from matplotlib.ticker import LogLocator

    names = titles or {}
    models, skus = list(dict.fromkeys(points["model"])), list(dict.fromkeys(points["sku"]))
    with drawing(WIDTH, 3.6, nrows=1, ncols=max(1, len(models)), sharey=True, squeeze=False) as (figure, panels):
        for panel, model in zip(panels[0], models, strict=True):
            for k, sku in enumerate(skus):
                line = points[(points["model"] == model) & (points["sku"] == sku)]
                _front_line(
                    panel,
                    line.sort_values("tokens_per_s_per_user"),
                    wrapped(names.get(sku, sku), 24),
                    colour_of(sku),
                    k,
                )
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.set_title(wrapped(names.get(model, model), 84 // len(models)), fontweight="bold")
            panel.set_xlabel(say("figures.axes.user_speed"))
            panel.grid(color="#ececec", linewidth=0.6)
            panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
            for axis in (panel.xaxis, panel.yaxis):
                axis.set_major_formatter(lambda x, _: f"{x:g}")
                axis.set_minor_formatter("")
        panels[0, 0].set_ylabel(say("figures.axes.usd_per_mtoken"))
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(skus), frameon=False, fontsize=8.5)
        svg = svg_text(figure)
    first = points[points["model"] == models[0]] if models else points
    fastest = first.sort_values("tokens_per_s_per_user")["usd_per_mtoken"].iloc[-1]
    ratio = fastest / first["usd_per_mtoken"].min()
    model = few_words(names.get(models[0], models[0]), 1)
    headline = say("figures.cost_front.headline", model=model, ratio=number(ratio, ".0f"))
    return FigureCard(
        "cost_front",
        headline,
        say("figures.cost_front.subtitle", scope=subtitle),
        say("figures.cost_front.alt", headline=headline),
        svg,
        points,
    )


def _front_line(panel: Any, line: pd.DataFrame, label: str, colour: str, k: int) -> None:
    x = line["tokens_per_s_per_user"]
    panel.fill_between(x, line["low"], line["high"], color=colour, alpha=0.10, linewidth=0)
    style = {"markerfacecolor": "white", "markersize": 4.5, "linewidth": 1.5, "linestyle": LINES[k % 4]}
    panel.plot(x, line["usd_per_mtoken"], marker=MARKS[k % 4], color=colour, label=label, **style)


def headline_tornado(table: pd.DataFrame, base: float, unit: str, subtitle: str, top: int = 12) -> FigureCard:
    """The headline at both ends of each input's range, largest swing first, at most `top` bars.

    `table`: columns title, at_low, at_high (headline), low_input, high_input, and where known their input_unit.
    """
    ends = table[["at_low", "at_high"]].assign(base=base)  # both ends may lie on one side of the base
    t = table.assign(swing=ends.max(axis=1) - ends.min(axis=1)).sort_values("swing", ascending=False).head(top)
    with drawing(WIDTH, 0.8 + 0.36 * max(1, len(t))) as (figure, axes):
        labels = [x for row, r in enumerate(records(t)) for x in _tornado_row(axes, row, r, base)]
        axes.set_xlim(_room(labels, base))
        axes.axvline(base, color="#333333", linewidth=0.9)
        axes.set_yticks(range(len(t)), [wrapped(x, 40) for x in t["title"]], fontsize=7.5, linespacing=1.0)
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color="#e6e6e6", linewidth=0.6)
        axes.set_xlabel(f"{unit} (line: {plain(base)})")
        svg = svg_text(figure)
    headline = _tornado_headline(t, base)
    return FigureCard(
        "tornado",
        headline,
        say("figures.tornado.subtitle", scope=subtitle),
        say("figures.tornado.alt", headline=headline),
        svg,
        t.drop(columns="swing"),
    )


def _tornado_headline(t: pd.DataFrame, base: float) -> str:
    """The first bar in words; a long name is cut so that the whole has ten words."""
    if not len(t):
        return say("figures.tornado.no_range")
    first = t.iloc[0]
    low, high = sorted((first["at_low"], first["at_high"]))
    name = few_words(str(first["title"]).partition(":")[0], 6)
    return say("figures.tornado.headline", title=name, low=plain(low, 2), high=plain(high, 2))


def _tornado_row(axes: Any, row: int, r: Any, base: float) -> list[tuple[float, int]]:
    """Two bars with the values of the input at their ends; returns the ends and the letters beside them, negative to
    the left."""
    same_side = (r.at_low - base) * (r.at_high - base) > 0
    unit = str(getattr(r, "input_unit", ""))
    unit = "" if unit in ("count", "unit") else unit
    ends = ((r.at_low, r.low_input, (PLAIN, ""), 0), (r.at_high, r.high_input, (RISE, "////"), 1))
    labels = []
    for end, value, look, k in ends:
        offset = (0.18 if k else -0.18) if same_side else 0.0
        height = 0.34 if same_side else 0.7
        axes.barh(row + offset, end - base, left=base, height=height, **filled(look))
        right = end >= base
        words = f"{brief(value)} {unit}".strip()
        spot = {"xytext": (4 if right else -4, 0), "ha": "left" if right else "right"}
        axes.annotate(
            words, (end, row + offset), textcoords="offset points", va="center", fontsize=7, color=INK, **spot
        )
        labels.append((float(end), len(words) if right else -len(words)))
    return labels


def _room(labels: list[tuple[float, int]], base: float) -> tuple[float, float]:
    """Ends of the axis that leave room for the labels beside the bars.

    >>> low, high = _room([(8.0, -10), (9.0, 5)], 8.5)
    >>> round(8.0 - low, 2) == round(2 * (high - 9.0), 2)
    True
    """
    if not labels:
        return base - 1, base + 1
    ends = [e for e, _ in labels]
    low, high = min(*ends, base), max(*ends, base)
    first, last = (low, high) if high > low else (low - 1, high + 1)
    for _ in range(30):
        letter = (last - first) / LETTERS
        first = min(low, *(e + n * letter for e, n in labels))
        last = max(high, *(e + n * letter for e, n in labels))
    return first, last


def others_compared(table: pd.DataFrame, subtitle: str) -> FigureCard:
    """Our finished units beside an outside estimate with its interval, million a year.

    `table`: columns label, year, ours, theirs, low, high (accelerators).
    """
    t = table.reset_index(drop=True)
    with drawing(WIDTH, 0.8 + 0.33 * len(t)) as (figure, axes):
        for row, r in enumerate(records(t)):
            axes.plot([r.low / 1e6, r.high / 1e6], [row, row], color="#8c8c8c", linewidth=4, solid_capstyle="butt")
            axes.plot(r.theirs / 1e6, row, marker="|", color=INK, markersize=11, markeredgewidth=1.6)
            axes.plot(max(r.ours, 0) / 1e6, row, marker="D", color=STAGE_COLOURS["power"], markersize=6, clip_on=False)
        axes.set_yticks(range(len(t)), [f"{wrapped(r.label, 30, 1)} {r.year}" for r in records(t)], fontsize=8.5)
        axes.invert_yaxis()
        axes.set_xlim(left=0)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color="#e6e6e6", linewidth=0.6)
        axes.set_xlabel(say("figures.axes.finished"))
        svg = svg_text(figure)
    inside = int(((t["ours"] >= t["low"]) & (t["ours"] <= t["high"])).sum())
    headline = say("figures.others.headline", inside=inside, all=len(t))
    return FigureCard(
        "others",
        headline,
        say("figures.others.subtitle", scope=subtitle),
        say("figures.others.alt", headline=headline),
        svg,
        t,
    )
