"""Figures of a sample: how uncertain a quantity is over time, and in how many draws each stage binds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from reports.catalogue import say
from reports.figures.style import (
    INK,
    STAGE_COLOURS,
    STAGE_ORDER,
    FigureCard,
    drawing,
    grid_axes,
    on,
    period_ticks,
    scale_of,
    svg_text,
)
from reports.wording import band, count, percent, stage_head

__all__ = ["draw_timeline", "fan_chart"]

WIDTH = 9.2
SHOWN = 0.005
COLOUR = STAGE_COLOURS["server"]


def fan_chart(
    table: pd.DataFrame,
    periods: Sequence[str],
    what: str,
    unit: str,
    draws: int,
    subtitle: str,
    paths: pd.DataFrame | None = None,
    origin: str = "",
) -> FigureCard:
    """Median, 50 and 90 % bands of a quantity over the draws, labelled at their ends; a few draws as thin lines.

    Args:
        table: columns period, q05, q25, q50, q75, q95, and plan (the deterministic run) where there is one.
        periods: labels in order.
        what: the quantity in a headline, such as "Energised accelerators".
        unit: of the values, such as "accelerators a quarter".
        draws: draws that the quantiles rest on.
        subtitle: scope, scenario, horizon.
        paths: sample paths, one column a draw, rows as in `periods`.
        origin: first period that no fact covers; a line is drawn before it.

    Raises:
        ValueError: when the quantiles of a period are not in order.
    """
    t = table.set_index("period").reindex(list(periods))
    ends = ["q05", "q25", "q50", "q75", "q95"]
    if bool((t[ends].diff(axis=1).iloc[:, 1:] < -1e-9 * t[ends].abs().max().max()).any(axis=None)):
        raise ValueError("quantiles of a period are not in order: q05 <= q25 <= q50 <= q75 <= q95")
    scale, word = scale_of(float(t["q95"].max()))
    x = list(range(len(periods)))
    with drawing(WIDTH, 3.3) as (figure, axes):
        for low, high, depth in (("q05", "q95", 0.16), ("q25", "q75", 0.30)):
            axes.fill_between(x, t[low] / scale, t[high] / scale, color=COLOUR, alpha=depth, linewidth=0)
        for name in [] if paths is None else list(paths.columns):
            axes.plot(x, paths[name] / scale, color=COLOUR, linewidth=0.5, alpha=0.45)  # type: ignore[index]
        axes.plot(x, t["q50"] / scale, color=COLOUR, linewidth=2)
        if "plan" in t:
            axes.plot(x, t["plan"] / scale, color=INK, linewidth=1.2, linestyle=":")
        if origin in periods:
            _origin_line(axes, list(periods).index(origin))
        _end_labels(axes, t.iloc[-1] / scale, len(periods) - 1)
        axes.set_ylabel(f"{word}{unit}")
        axes.set_ylim(bottom=0)
        axes.set_xlim(-0.3, len(periods) - 1 + max(1.8, 0.17 * len(periods)))
        axes.grid(axis="y", color="#e6e6e6", linewidth=0.6)
        period_ticks(axes, list(periods))
        svg = svg_text(figure)
    last, row = periods[-1], t.iloc[-1]
    middle, span = count(row["q50"], 2), band(row["q05"], row["q95"])
    headline = say("figures.fan.headline", period=last, middle=middle, band=span)
    dotted = say("figures.fan.dotted") if "plan" in t else ""
    return FigureCard(
        "fan",
        headline,
        say("figures.fan.subtitle", what=what, draws=draws, unit=unit, dotted=dotted, scope=subtitle),
        say("figures.fan.alt", what=what.lower(), headline=headline),
        svg,
        table,
    )


def _origin_line(axes: Any, place: int) -> None:
    axes.axvline(place - 0.5, color="#777777", linewidth=0.8, linestyle="--")
    axes.annotate("facts end here", (place - 0.5, 1), xycoords=("data", "axes fraction"), xytext=(-4, -4),
                  textcoords="offset points", fontsize=7.5, color="#555555", va="top", ha="right")  # fmt: skip


def _end_labels(axes: Any, row: Any, place: int) -> None:
    """Labels at the right ends of the bands, pushed apart until no two overlap."""
    words = {"q05": say("figures.fan.lower", share="5 %"), "q25": "25 %", "q50": "median", "q75": "75 %", "q95": "95 %"}
    top = max(float(row["q95"]) * 1.05, 1e-12)
    least = 0.075 * top
    spots: list[float] = []
    for name in ("q05", "q25", "q50", "q75", "q95"):
        y = float(row[name])
        spots.append(max(y, spots[-1] + least) if spots else max(y, 0.02 * top))
    over = spots[-1] - top
    if over > 0:  # the stack grew past the top: move it down as a whole
        spots = [max(s - over, 0.02 * top + k * least) for k, s in enumerate(spots)]
    for (name, text), spot in zip(words.items(), spots, strict=True):
        bold = "bold" if name == "q50" else "normal"
        axes.plot([place, place + 0.35], [float(row[name]), spot], color="#999999", linewidth=0.5)
        axes.text(place + 0.45, spot, text, va="center", fontsize=7.5, color=INK, fontweight=bold)


def draw_timeline(table: pd.DataFrame, periods: Sequence[str], draws: int, subtitle: str) -> FigureCard:
    """Stages in chain order x periods; shade and number are the share of draws in which the stage binds.

    `table`: columns period, stage, share (fraction of draws in which a limit of the stage has a price), plan (whether
    it binds in the deterministic run). A row "Nothing" shows draws without any binding limit.
    """
    share = table.pivot_table(index="stage", columns="period", values="share").reindex(columns=list(periods))
    share = share.fillna(0.0)
    known = [s for s in STAGE_ORDER if s in share.index]
    stages = [*known, *[str(s) for s in share.index if s not in STAGE_ORDER and s != "nothing"]]
    stages += ["nothing"] if "nothing" in share.index else []
    grid = {str(p): {str(k): float(v) for k, v in share[p].items()} for p in share.columns}
    plan = {(r["stage"], r["period"]) for _, r in table.iterrows() if bool(r.get("plan", False))}
    with drawing(WIDTH, 0.75 + 0.29 * len(stages)) as (figure, axes):
        for row, stage in enumerate(stages):
            for column, period in enumerate(periods):
                value = float(grid[period][stage])
                _cell(axes, (column, row), value, STAGE_COLOURS.get(stage, "#777777"), (stage, period) in plan)
        grid_axes(axes, list(periods), [stage_head(s) for s in stages])
        svg = svg_text(figure)
    headline = _timeline_headline(share.loc[[s for s in stages if s != "nothing"]], list(periods))
    return FigureCard(
        "binding_draws",
        headline,
        say("figures.binding_draws.subtitle", draws=draws, scope=subtitle),
        say("figures.binding_draws.alt", headline=headline),
        svg,
        table,
    )


def _cell(axes: Any, place: tuple[int, int], value: float, colour: str, outlined: bool) -> None:
    from matplotlib.colors import to_hex, to_rgb
    from matplotlib.patches import Rectangle

    column, row = place
    mix = 0.15 + 0.85 * value
    face = "#f0f0f0" if value < SHOWN else to_hex([1 - mix * (1 - c) for c in to_rgb(colour)])
    axes.add_patch(Rectangle((column + 0.03, row + 0.05), 0.94, 0.9, facecolor=face, edgecolor="none"))
    if outlined:
        axes.add_patch(Rectangle((column + 0.07, row + 0.1), 0.86, 0.8, fill=False, edgecolor=INK, linewidth=1.1))
    if value >= SHOWN:
        text = f"{100 * value:.0f}"
        axes.text(column + 0.5, row + 0.52, text, ha="center", va="center", fontsize=7.2, color=on(face))


def _timeline_headline(share: pd.DataFrame, periods: list[str]) -> str:
    """The stage that binds in most draws of the last period, and in how many."""
    last = periods[-1]
    if share.empty or share[last].max() < SHOWN:
        return say("figures.binding_draws.nothing", period=last)
    stage = str(share[last].idxmax())
    most = percent(float(share[last].max()))
    return say("figures.binding_draws.headline", stage=stage_head(stage), share=most, period=last)
