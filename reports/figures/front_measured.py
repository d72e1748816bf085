"""Figure: what speed costs, measured points solid and the engine's points hollow with their band."""

from __future__ import annotations

from typing import Any

import pandas as pd

from reports.catalogue import say
from reports.figures.style import FigureCard, colour_of, drawing, svg_text
from reports.wording import count, percent

__all__ = ["front_measured"]

WIDTH = 9.2
MARKS = ("o", "s", "^", "D")


def front_measured(points: pd.DataFrame, subtitle: str, held_out: pd.Series[Any] | None = None) -> FigureCard:
    """Cost per million output tokens (all spending) against the speed that one user sees, measured beside predicted.

    `points`: columns model, hardware, setup, layout, concurrency, as_of, on_front, tokens_per_s_per_user,
    usd_per_mtoken (measured), predicted_tokens_per_s_per_user, predicted_usd_per_mtoken, low, high, as
    `scenarios.engine_points.measured_front` makes them. The engine is drawn at the measured loads only,
    never beyond them. `held_out`: rows, median and mape (percent) of the engine on measurements left out of its fit.

    Raises:
        ValueError: when there is no point.
    """
    if points.empty:
        raise ValueError("no measured point: choose a model and accelerators that the calibration data hold")
    skus = list(dict.fromkeys(points["hardware"]))
    with drawing(WIDTH, 3.6, nrows=1, ncols=len(skus), sharey=True, sharex=True, squeeze=False) as (figure, panels):
        for k, (panel, sku) in enumerate(zip(panels[0], skus, strict=True)):
            _panel(panel, points[points["hardware"] == sku], colour_of(sku.lower().replace("-", "_")), k)
        panels[0, 0].set_ylabel(say("figures.axes.usd_per_mtoken_all"))
        svg = svg_text(figure)
    inside = int(((points["usd_per_mtoken"] >= points["low"]) & (points["usd_per_mtoken"] <= points["high"])).sum())
    fit = {"inside": inside, "all": len(points)}
    headline, held = say("figures.front_measured.headline", **fit), ""
    if held_out is not None:
        middle, mean = (percent(float(held_out[name]) / 100) for name in ("median", "mape"))
        headline = say("figures.front_measured.held_out", middle=middle)
        held = say("figures.front_measured.held", rows=count(int(held_out["rows"])), middle=middle, mean=mean)
    dates = sorted(points["as_of"])
    spread = percent(float((points["predicted_usd_per_mtoken"] / points["usd_per_mtoken"] - 1).abs().median()))
    said = {
        "model": points["model"].iloc[0],
        "first": dates[0],
        "last": dates[-1],
        "spread": spread,
        "held": held,
        **fit,
    }
    return FigureCard(
        "front_measured",
        headline,
        say("figures.front_measured.subtitle", **said, scope=subtitle),
        say("figures.front_measured.alt", headline=headline),
        svg,
        points,
    )


def _panel(panel: Any, rows: pd.DataFrame, colour: str, k: int) -> None:
    from matplotlib.ticker import LogLocator

    x, y = rows["predicted_tokens_per_s_per_user"], rows["predicted_usd_per_mtoken"]
    panel.errorbar(x, y, yerr=[y - rows["low"], rows["high"] - y], fmt="none", ecolor=colour, alpha=0.35, linewidth=1)
    panel.plot(x, y, marker=MARKS[k % 4], linestyle="", color=colour, markerfacecolor="white", markersize=5)
    x, y = rows["tokens_per_s_per_user"], rows["usd_per_mtoken"]
    panel.plot(x, y, marker=MARKS[k % 4], linestyle="", color=colour, markersize=4.5)
    front = rows[rows["on_front"]].sort_values("tokens_per_s_per_user")
    panel.plot(front["tokens_per_s_per_user"], front["usd_per_mtoken"], color=colour, linewidth=1.4)
    cheap, fast = front.iloc[0], front.iloc[-1]
    for row, place, side in ((cheap, (2, -13), "left"), (fast, (-8, 6), "right")):
        words = f"{row['concurrency']:.0f} users, {row['layout']}"
        panel.annotate(words, (row["tokens_per_s_per_user"], row["usd_per_mtoken"]), xytext=place,
                       textcoords="offset points", fontsize=7.5, ha=side)  # fmt: skip
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_title(f"{rows['hardware'].iloc[0]}: {rows['setup'].iloc[0]}", fontsize=8.5)
    panel.set_xlabel(say("figures.axes.user_speed"))
    panel.grid(color="#ececec", linewidth=0.6)
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(lambda v, _: f"{v:,.4g}")
        axis.set_minor_formatter("")
