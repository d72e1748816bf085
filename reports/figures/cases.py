"""Figures of comparison: the headline against one input, scenarios side by side, and the scoreboard of backtests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from reports.catalogue import say
from reports.figures.style import (
    INK,
    STAGE_COLOURS,
    FigureCard,
    drawing,
    period_ticks,
    scale_of,
    svg_text,
    wrapped,
)
from reports.spans import number
from reports.tables import records
from reports.wording import count, listing, plain

__all__ = ["headline_curve", "row_of", "scenario_panels", "scoreboard"]

WIDTH = 9.2
OURS = STAGE_COLOURS["server"]
NOTHING = "nothing"


def headline_curve(
    curve: pd.DataFrame,
    names: tuple[str, str],
    subtitle: str,
    titles: Mapping[str, str] | None = None,
    base: float | None = None,
    target: float | None = None,
    evidence: Sequence[float] = (),
    shown: Callable[[float], str] = plain,
) -> FigureCard:
    """One output against one input: solved points joined, what binds named where it changes, base and break-evens.

    Args:
        curve: columns input, output, binding (limit with the most scarcity value, empty for none), in order of input.
        names: titles of the input and the output, with their units.
        subtitle: scope.
        titles: names of the limits.
        base: the input of the base case, marked on the curve.
        target: level of the output whose crossings are marked, all of them.
        evidence: sourced values of the input, drawn as ticks at the foot.
        shown: how values of the input are written; `percent` for multiples of base.

    Raises:
        ValueError: with fewer than three solved points: a line through two hides every kink.
    """
    t = curve.dropna(subset=["output"]).sort_values("input").reset_index(drop=True)
    if len(t) < 3:
        raise ValueError(f"{len(t)} solved points: a curve needs three, better ten, or its kinks are hidden")
    scale, word = scale_of(float(t["output"].abs().max()))
    crossings = _crossings(t, target)
    with drawing(WIDTH, 3.5) as (figure, axes):
        axes.plot(t["input"], t["output"] / scale, "o-", color=OURS, markersize=4, linewidth=1.6)
        _regions(axes, t, titles or {})
        if base is not None:
            spot = float(np.interp(base, t["input"], t["output"])) / scale
            axes.plot(base, spot, "D", color=INK, markersize=7, markeredgecolor="white", zorder=4)
        if target is not None:
            axes.axhline(target / scale, color="#555555", linewidth=0.9, linestyle="--")
        for x in crossings:
            axes.plot(x, float(target or 0.0) / scale, "X", color=INK, markersize=8, zorder=4)
        if len(evidence):
            axes.plot(
                evidence, [0.0] * len(evidence), "|", color=INK, markersize=12, markeredgewidth=1.2, clip_on=False
            )
        if shown is not plain:
            axes.xaxis.set_major_formatter(lambda v, _: shown(float(v)))
        axes.set_xlabel(wrapped(names[0], 100))
        axes.set_ylabel(wrapped(f"{word}{names[1]}", 38))
        axes.set_ylim(0, float(t["output"].max()) / scale * 1.28)
        axes.grid(axis="y", color="#e6e6e6", linewidth=0.6)
        svg = svg_text(figure)
    headline = _curve_headline(t, target, [shown(x) for x in crossings])
    said = {
        "diamond": "" if base is None else say("figures.headline_curve.diamond"),
        "ticks": say("figures.headline_curve.ticks") if len(evidence) else "",
        "marks": "" if target is None else say("figures.headline_curve.marks", target=count(float(target), 3)),
    }
    return FigureCard(
        "headline_curve",
        headline,
        say("figures.headline_curve.subtitle", output=names[1], input=names[0], **said, scope=subtitle),
        say("figures.headline_curve.alt", headline=headline),
        svg,
        t,
    )


def row_of(found: Mapping[str, Any], output: str) -> tuple[pd.DataFrame, float]:
    """The row of a map nearest to the base of its second input (columns input, output, binding), and that multiple.

    >>> cells = {"outputs": {"o": [[3, 4], [5, 6]]}, "binding": [["a", ""], ["", ""]]}
    >>> m = {"x_scale": [0.5, 1], "y_scale": [1, 2], **cells}
    >>> row_of(m, "o")[0].values.tolist()
    [[0.5, 3, 'a'], [1.0, 4, '']]
    """
    row = int(np.argmin(np.abs(np.asarray(found["y_scale"]) - 1.0)))
    columns = {"input": found["x_scale"], "output": found["outputs"][output][row], "binding": found["binding"][row]}
    return pd.DataFrame(columns), float(found["y_scale"][row])


def _crossings(t: pd.DataFrame, target: float | None) -> list[float]:
    """Inputs at which the straight line between neighbouring solved points meets the target."""
    if target is None:
        return []
    x, gap = t["input"].to_numpy(dtype=float), t["output"].to_numpy(dtype=float) - target
    found = [float(v) for v, g in zip(x, gap, strict=True) if g == 0.0]
    for k in range(len(x) - 1):
        if gap[k] * gap[k + 1] < 0:
            found.append(float(x[k] + (x[k + 1] - x[k]) * gap[k] / (gap[k] - gap[k + 1])))
    return sorted(found)


def _regions(axes: Any, t: pd.DataFrame, titles: Mapping[str, str]) -> None:
    """Grounds in two greys, one for each stretch with the same limit, and its name at the top."""
    names = [str(n) or NOTHING for n in t["binding"]]
    x = t["input"].to_numpy(dtype=float)
    edges = [x[0], *[(x[k] + x[k + 1]) / 2 for k in range(len(x) - 1) if names[k] != names[k + 1]], x[-1]]
    order = [n for k, n in enumerate(names) if k == 0 or names[k - 1] != n]
    axes.set_xlim(x[0], x[-1])
    for k, name in enumerate(order):
        axes.axvspan(edges[k], edges[k + 1], color="#f4f4f4" if k % 2 else "#e4e4e4", linewidth=0, zorder=0)
        letters = int(115 * (edges[k + 1] - edges[k]) / (x[-1] - x[0])) - 1
        if letters >= 4:
            middle = (edges[k] + edges[k + 1]) / 2
            text = wrapped(titles.get(name, name.replace("_", " ")), min(letters, 24), 2)
            axes.text(middle, 0.985, text, transform=axes.get_xaxis_transform(), ha="center", va="top", fontsize=7.5)


def _curve_headline(t: pd.DataFrame, target: float | None, crossings: Sequence[str]) -> str:
    if target is not None and crossings:
        return say("figures.headline_curve.reached", target=count(target, 2), places=listing(list(crossings[:2])))
    if target is not None:
        return say("figures.headline_curve.never", target=count(target, 2))
    low, high = t["output"].iloc[0], t["output"].iloc[-1]
    return say("figures.headline_curve.span", low=count(low, 2), high=count(high, 2))


def scenario_panels(table: pd.DataFrame, periods: Sequence[str], base: str, unit: str, subtitle: str) -> FigureCard:
    """Cases in panels of their own on one axis: solid the case, dotted the base, the difference shaded and printed.

    `table`: columns scenario, title, period, value; every case has the periods of the base, in a fixed order.

    Raises:
        ValueError: when the base is not among the cases, or a case misses a period.
    """
    wide = table.pivot_table(index="period", columns="scenario", values="value").reindex(list(periods))
    if base not in wide:
        raise ValueError(f"base {base!r} is not among the cases {', '.join(map(str, wide.columns))}")
    if (missing := [str(s) for s in wide if bool(wide[s].isna().any())]) != []:
        raise ValueError(f"no value in some period for {', '.join(missing)}: cases are compared over one horizon")
    titles = dict(zip(table["scenario"], table["title"], strict=True))
    cases = [s for s in dict.fromkeys(table["scenario"]) if s != base]
    scale, word = scale_of(float(wide.to_numpy().max()))
    columns = min(4, max(1, len(cases)))
    rows = -(-max(1, len(cases)) // columns)
    with drawing(WIDTH, 0.55 + 1.75 * rows, nrows=rows, ncols=columns, sharey=True, squeeze=False) as (figure, panels):
        for k, panel in enumerate(panels.flat):
            if k >= len(cases):
                panel.set_visible(False)
                continue
            _case(panel, wide[base] / scale, wide[cases[k]] / scale)
            panel.set_title(wrapped(titles[cases[k]], 98 // columns), fontsize=8.5, fontweight="bold")
            period_ticks(panel, list(periods), every=max(1, -(-len(periods) // 5)))
        for line in panels:
            line[0].set_ylabel(wrapped(f"{word}{unit}", 24), fontsize=8)
        svg = svg_text(figure)
    headline = _case_headline(wide, base, cases, titles)
    return FigureCard(
        "scenarios",
        headline,
        say("figures.scenarios.subtitle", unit=unit.capitalize(), base=titles[base], scope=subtitle),
        say("figures.scenarios.alt", unit=unit, headline=headline),
        svg,
        table,
    )


def _case(axes: Any, base: pd.Series[float], case: pd.Series[float]) -> None:
    x = np.arange(len(base))
    b, c = base.to_numpy(dtype=float), case.to_numpy(dtype=float)
    axes.fill_between(x, b, c, where=c >= b, interpolate=True, color=OURS, alpha=0.3, linewidth=0)
    lower = {"facecolor": "#cc667766", "edgecolor": "#7f2b01", "hatch": "////", "linewidth": 0}
    axes.fill_between(x, b, c, where=c < b, interpolate=True, **lower)
    axes.plot(x, b, color=INK, linewidth=1.2, linestyle=":", marker="." if len(b) == 1 else "")
    axes.plot(x, c, color=OURS, linewidth=1.8, marker="D" if len(b) == 1 else "")
    change = 100 * (c.sum() / b.sum() - 1) if b.sum() > 0 else 0.0
    axes.text(0.97, 0.05, f"{change:+.1f} %", transform=axes.transAxes, ha="right", fontsize=8.5, fontweight="bold")
    axes.set_ylim(bottom=0)
    axes.margins(y=0.12)
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.6)


def _case_headline(wide: pd.DataFrame, base: str, cases: Sequence[str], titles: Mapping[str, str]) -> str:
    """The case that ends furthest from the base, by its sum over the horizon."""
    sums = wide.sum()
    if not cases or sums[base] <= 0:
        return say("figures.scenarios.nothing")
    worst = max(cases, key=lambda s: abs(float(sums[s] - sums[base])))
    change = 100 * float(sums[worst] / sums[base] - 1)
    if abs(change) < 0.05:
        return say("figures.scenarios.same")
    name = str(titles[worst]) if len(str(titles[worst]).split()) <= 4 else say("figures.scenarios.furthest")
    return say("figures.scenarios.change", title=name, change=number(change, "+.1f"))


def scoreboard(scores: pd.DataFrame, subtitle: str) -> FigureCard:
    """Forecast, its band, the outcome and a naive rival, a row a target, a panel an origin, with hit or miss in words.

    `scores`: columns origin, title, period, outcome, outcome_low, outcome_high, value, low, high, inside, naive_last,
    score, score_last (lower is better; missing where there is no rival).

    Raises:
        ValueError: when there is no row.
    """
    if scores.empty:
        raise ValueError("no scored forecast: run a backtest first")
    origins = sorted(scores["origin"].unique())
    most = float(scores[["outcome_high", "high", "naive_last"]].max().max()) / 1e6
    sizes = [int((scores["origin"] == o).sum()) for o in origins]
    shape: dict[str, Any] = {"nrows": len(origins), "sharex": True, "squeeze": False}
    with drawing(WIDTH, 0.9 + 0.27 * sum(sizes) + 0.35 * len(sizes), height_ratios=sizes, **shape) as (figure, panels):
        for axes, origin in zip(panels[:, 0], origins, strict=True):
            rows = scores[scores["origin"] == origin].sort_values(["period", "outcome"], ascending=[True, False])
            for k, r in enumerate(records(rows)):
                _score_row(axes, k, r, most)
            axes.set_yticks(range(len(rows)), [f"{wrapped(r.title, 30, 1)} {r.period}" for r in records(rows)])
            axes.tick_params(axis="y", length=0, labelsize=8)
            axes.set_ylim(len(rows) - 0.4, -0.6)
            axes.set_xlim(0, most * 1.35)
            axes.grid(axis="x", color="#e6e6e6", linewidth=0.6)
            axes.set_title(f"Known up to {origin}", fontweight="bold")
        panels[-1, 0].set_xlabel(say("figures.axes.finished"))
        svg = svg_text(figure)
    hits = int(scores["inside"].sum())
    rivals = scores.dropna(subset=["score", "score_last"])
    ratio = float(rivals["score"].mean() / rivals["score_last"].mean()) if len(rivals) else float("nan")
    against = say("figures.scoreboard.against", ratio=plain(ratio, 2)) if np.isfinite(ratio) else ""
    headline = say("figures.scoreboard.headline", hits=hits, all=len(scores), against=against)
    return FigureCard(
        "scoreboard",
        headline,
        say("figures.scoreboard.subtitle", scope=subtitle),
        say("figures.scoreboard.alt", headline=headline),
        svg,
        scores,
    )


def _score_row(axes: Any, k: int, r: Any, most: float) -> None:
    low, high = r.outcome_low / 1e6, r.outcome_high / 1e6
    axes.plot([low, high], [k, k], color="#8c8c8c", linewidth=5, solid_capstyle="butt")
    axes.plot(r.outcome / 1e6, k, "|", color=INK, markersize=11, markeredgewidth=1.6)
    axes.plot([r.low / 1e6, r.high / 1e6], [k + 0.22, k + 0.22], color=OURS, linewidth=1.4)
    axes.plot(r.value / 1e6, k + 0.22, "D", color=OURS, markersize=4.5, clip_on=False)
    if pd.notna(r.naive_last):
        axes.plot(r.naive_last / 1e6, k - 0.22, "x", color=INK, markersize=4.5)
    rival = f", {plain(r.score / r.score_last, 2)} times naive" if pd.notna(r.score_last) and r.score_last > 0 else ""
    weight = "bold" if r.inside else "normal"
    axes.text(most * 1.34, k, f"{'hit' if r.inside else 'miss'}{rival}", ha="right", va="center", fontsize=8,
              fontweight=weight)  # fmt: skip
