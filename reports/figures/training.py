"""Figures of training: time and rent of a run by cluster size, and where the elapsed time goes."""

from __future__ import annotations

from typing import Any

import pandas as pd

from reports.catalogue import say
from reports.figures.style import STAGE_COLOURS, FigureCard, drawing, filled, svg_text
from reports.wording import count, plain

__all__ = ["training_scaling"]

WIDTH = 9.2
_SHARES = (
    ("goodput", "useful steps", "#157376", ""),
    ("checkpoint", "checkpoint writes", "#ddcc77", "...."),
    ("lost_work", "work lost", "#cc6677", "////"),
    ("down", "restarts", "#632a46", "xxxx"),
)


def training_scaling(runs: pd.DataFrame, subtitle: str) -> FigureCard:
    """Elapsed days and rent with their bands by accelerators, and shares of elapsed time as stacked bars.

    `runs`: columns accelerators, days, days_low, days_high, rental_usd, rental_low, rental_high, goodput, checkpoint,
    lost_work, down.
    """
    x = runs["accelerators"]
    labels = [f"{n / 1024:.0f}k" if n >= 1024 else f"{n}" for n in x]
    with drawing(WIDTH, 3.5, ncols=3) as (figure, (time, money, share)):
        _band(time, runs, ("days", "days_low", "days_high"), 1.0, STAGE_COLOURS["server"])
        time.set_ylabel("elapsed days")
        _band(money, runs, ("rental_usd", "rental_low", "rental_high"), 1e6, STAGE_COLOURS["rack"])
        money.set_ylabel(say("figures.axes.rent"))
        money.set_ylim(bottom=0)
        time.set_yscale("log")
        time.yaxis.set_major_formatter(lambda v, _: f"{v:g}")
        time.yaxis.set_minor_formatter("")
        for panel in (time, money):
            panel.set_xscale("log", base=2)
            panel.set_xticks(list(x), labels)
            panel.minorticks_off()
            panel.grid(color="#ececec", linewidth=0.6)
        time.set_yticks([10, 20, 50, 100, 200, 500], ["10", "20", "50", "100", "200", "500"])
        _shares(share, runs, labels)
        for panel in (time, money, share):
            panel.set_xlabel("accelerators (k = 1,024)")
        handles, names = share.get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower right", ncols=4, frameon=False, fontsize=8)
        svg = svg_text(figure)
    first, last = runs.iloc[0], runs.iloc[-1]
    headline = say(
        "figures.training_scaling.headline",
        times=count(last["accelerators"] / first["accelerators"]),
        faster=plain(first["days"] / last["days"], 2),
        rent=plain(last["rental_usd"] / first["rental_usd"], 2),
    )
    return FigureCard(
        "training_scaling",
        headline,
        subtitle,
        say("figures.training_scaling.alt", headline=headline),
        svg,
        runs,
    )


def _band(axes: Any, runs: pd.DataFrame, names: tuple[str, str, str], scale: float, colour: str) -> None:
    middle, low, high = (runs[n] / scale for n in names)
    axes.fill_between(runs["accelerators"], low, high, color=colour, alpha=0.15, linewidth=0)
    axes.plot(runs["accelerators"], middle, "o-", color=colour, markerfacecolor="white", linewidth=1.5)


def _shares(axes: Any, runs: pd.DataFrame, labels: list[str]) -> None:
    base = pd.Series(0.0, index=runs.index)
    for name, title, colour, hatch in _SHARES:
        axes.bar(labels, 100 * runs[name], bottom=100 * base, label=title, **filled((colour, hatch)))
        base = base + runs[name]
    for k, v in enumerate(runs["goodput"]):
        axes.text(k, 100 * v - 4, f"{100 * v:.0f}", ha="center", va="top", fontsize=8, color="white", fontweight="bold")
    axes.set_ylim(0, 100)
    axes.set_ylabel(say("figures.axes.elapsed"))
