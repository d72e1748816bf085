"""Figure of prices: quotes of accelerator-hours by kind of price, panels apart, no line joins quotes of two sellers."""

from __future__ import annotations

from typing import Any

import pandas as pd

from reports.catalogue import say
from reports.figures.style import INK, FigureCard, colour_of, drawing, svg_text
from reports.tables import records
from reports.wording import plain

__all__ = ["KINDS", "price_panels"]

WIDTH = 9.2
KINDS = {
    "owner cost": "Owner cost (computed)", "contract": "Contract", "spot": "Spot", "list": "List (on demand)",
    "index": "Index", "block": "Capacity block",
}  # fmt: skip
#: Marker of a chip; its colour is that of the product.
_MARKS = {"H100": "o", "H200": "s", "B200": "^", "GB200": "D", "MI300X": "v", "MI355X": "P"}


def price_panels(quotes: pd.DataFrame, owner: pd.DataFrame, chips: list[str], day: str) -> FigureCard:
    """Markers of quotes by day, one panel a kind of price, one scale; owner cost with its band on the report's day.

    `quotes`: columns chip, market, value (USD per accelerator-hour), on; `owner`: chip, value, low, high.
    """
    q = quotes.assign(day=pd.to_datetime(quotes["on"]))
    start, end = q["day"].min() - pd.Timedelta(days=60), pd.Timestamp(day) + pd.Timedelta(days=75)
    with drawing(WIDTH, 5.4, nrows=2, ncols=3, sharex=True, sharey=True) as (figure, grid):
        for panel, (kind, title) in zip(grid.flat, KINDS.items(), strict=True):
            if kind == "owner cost":
                _owner(panel, owner, pd.Timestamp(day))
                count = len(owner)
            else:
                here = q[q["market"] == kind]
                count = len(here)
                _quotes(panel, here)
            panel.set_title(f"{title}, n = {count}", fontweight="bold")
            panel.set_yscale("log")
            panel.set_xlim(start, end)
            panel.grid(axis="y", color="#ececec", linewidth=0.6)
        _axes(grid, q["day"].min().year, pd.Timestamp(day).year)
        handles = [_handle(grid[0, 0], c) for c in chips]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(chips), frameon=False, fontsize=8.5)
        svg = svg_text(figure)
    headline = _headline(quotes, owner)
    return FigureCard(
        "price_series",
        headline,
        say("figures.price_series.subtitle", day=day),
        say("figures.price_series.alt", headline=headline),
        svg,
        quotes,
    )


def _headline(quotes: pd.DataFrame, owner: pd.DataFrame) -> str:
    """Range of the last year's H100 list quotes (of the chip with most quotes) against its owner cost."""
    listed = quotes[quotes["market"] == "list"]
    chip = str(listed["chip"].mode().iloc[0]) if len(listed) else str(quotes["chip"].iloc[0])
    recent = quotes[quotes["chip"] == chip]
    cost = owner.loc[owner["chip"] == chip, "value"]
    ends = {"low": plain(recent["value"].min(), 2), "high": plain(recent["value"].max(), 2)}
    owned = say("figures.price_series.owner", cost=plain(float(cost.iloc[0]), 2)) if len(cost) else ""
    return say("figures.price_series.headline", chip=chip, **ends, owner=owned)


def _look(chip: str) -> tuple[str, str]:
    return colour_of("b200" if chip == "GB200" else chip.lower()), _MARKS.get(chip, "x")


def _handle(axes: Any, chip: str) -> Any:
    colour, mark = _look(chip)
    return axes.plot([], [], mark, color=colour, markerfacecolor="white", label=chip)[0]


def _quotes(axes: Any, here: pd.DataFrame) -> None:
    for chip, rows in here.groupby("chip", sort=False):
        colour, mark = _look(str(chip))
        axes.plot(rows["day"], rows["value"], mark, color=colour, markerfacecolor="white", markersize=4.5)
    if here.empty:
        axes.text(0.5, 0.5, "no quotes", transform=axes.transAxes, ha="center", color="#777777")


def _owner(axes: Any, owner: pd.DataFrame, day: pd.Timestamp) -> None:
    """One place a chip, spread to the left of the day so that bands do not overlap."""
    for k, r in enumerate(records(owner)):
        colour, mark = _look(r.chip)
        x = day - pd.Timedelta(days=130 * (len(owner) - 1 - k))
        axes.plot([x, x], [r.low, r.high], color=colour, linewidth=2.2)
        axes.plot(x, r.value, mark, color=colour, markerfacecolor="white", markersize=5)
    words = say("figures.price_series.set_beside", day=f"{day:%Y-%m-%d}")
    axes.text(0.03, 0.06, words, transform=axes.transAxes, fontsize=7.5, color=INK)


def _axes(grid: Any, first: int, last: int) -> None:
    years = range(first, last + 2)
    grid[0, 0].set_xticks([pd.Timestamp(f"{y}-01-01") for y in years], [str(y) for y in years])
    for row in grid:
        row[0].set_ylabel("USD per GPU-hour")
        row[0].set_yticks([1, 2, 5, 10], ["1", "2", "5", "10"])
        row[0].minorticks_off()
