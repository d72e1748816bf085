"""Figure: where the binding limit switches over two inputs, such as yield and power, on a grid of solved points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from reports.catalogue import say
from reports.figures.style import INK, FigureCard, colour_of, drawing, few_words, on, scale_of, svg_text, wrapped
from reports.wording import percent, plain

__all__ = ["binding_map"]

WIDTH = 9.2
NOTHING = "nothing"


def binding_map(
    found: Mapping[str, Any],
    output: str,
    titles: Mapping[str, str],
    unit: str,
    subtitle: str,
    stages: Mapping[str, str] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> FigureCard:
    """Cells of solved points: the number is the output, the colour and name what binds hardest, lines where it
    switches, the diamond the base ("we are here"), the dashed frame the stated ranges of the two inputs.

    Args:
        found: as `scenarios.sensitivity.grid` returns it: x, y, x_scale, y_scale, outputs, binding.
        output: name of the output that is printed.
        titles: names of the two inputs and of the limits.
        unit: what the printed numbers count; millions and thousands are scaled.
        subtitle: scope.
        stages: stage of each limit, for its colour.
        ranges: low and high of each input as multiples of base, where it has a stated (90 %) range.

    Raises:
        ValueError: when the grid does not hold the output.
    """
    if output not in found["outputs"]:
        raise ValueError(f"{output!r} is not on the grid; it holds {', '.join(found['outputs'])}")
    x, y = [float(v) for v in found["x_scale"]], [float(v) for v in found["y_scale"]]
    values = np.asarray(found["outputs"][output], dtype=float)
    names = [[n or NOTHING for n in row] for row in found["binding"]]
    scale, word = scale_of(float(np.nanmax(np.abs(values))))
    with drawing(WIDTH, max(3.4, 1.0 + 0.46 * len(y))) as (figure, axes):
        colours = {n: "#eeeeee" if n == NOTHING else colour_of((stages or {}).get(n, n)) for r in names for n in r}
        for j in range(len(y)):
            for i in range(len(x)):
                _cell(axes, i, j, _number(values[j, i] / scale), colours[names[j][i]])
        _switch_lines(axes, names)
        for name in dict.fromkeys(n for row in names for n in row):
            _region_name(axes, names, name, titles.get(name, name.replace("_", " ")))
        framed = _frame(axes, x, y, (ranges or {}).get(found["x"]), (ranges or {}).get(found["y"]))
        _base(axes, x, y)
        axes.set_xlim(0, len(x))
        axes.set_ylim(0, len(y))
        axes.set_xticks([k + 0.5 for k in range(len(x))], [percent(v, 3) for v in x], fontsize=8)
        axes.set_yticks([k + 0.5 for k in range(len(y))], [percent(v, 3) for v in y], fontsize=8)
        axes.tick_params(length=0)
        axes.set_xlabel(wrapped(say("figures.axes.of_base", input=titles.get(found["x"], found["x"])), 90))
        axes.set_ylabel(wrapped(say("figures.axes.of_base", input=titles.get(found["y"], found["y"])), 30, 3))
        svg = svg_text(figure)
    headline = _headline(names, titles)
    rows = [(x[i], y[j], values[j, i], names[j][i]) for j in range(len(y)) for i in range(len(x))]
    return FigureCard(
        "binding_map",
        headline,
        say("figures.binding_map.subtitle", unit=f"{word}{unit}", framed=framed, scope=subtitle),
        say("figures.binding_map.alt", headline=headline),
        svg,
        pd.DataFrame(rows, columns=["x_scale", "y_scale", "value", "binding"]),
    )


def _number(value: float) -> str:
    return "no plan" if np.isnan(value) else plain(value, 3)


def _shade(colour: str) -> str:
    from matplotlib.colors import to_hex, to_rgb

    return str(to_hex([1 - 0.55 * (1 - c) for c in to_rgb(colour)]))


def _cell(axes: Any, i: int, j: int, text: str, colour: str) -> None:
    from matplotlib.patches import Rectangle

    face = _shade(colour)
    axes.add_patch(Rectangle((i, j), 1, 1, facecolor=face, edgecolor="white", linewidth=0.6))
    axes.text(i + 0.5, j + 0.22, text, ha="center", va="center", fontsize=7.5, color=on(face))


def _switch_lines(axes: Any, names: Sequence[Sequence[str]]) -> None:
    """A line on every edge between cells in which different limits bind."""
    rows, columns = len(names), len(names[0])
    line = {"color": INK, "linewidth": 2.0, "solid_capstyle": "round"}
    for j in range(rows):
        for i in range(columns):
            if i + 1 < columns and names[j][i] != names[j][i + 1]:
                axes.plot([i + 1, i + 1], [j, j + 1], **line)
            if j + 1 < rows and names[j][i] != names[j + 1][i]:
                axes.plot([i, i + 1], [j + 1, j + 1], **line)


def _region_name(axes: Any, names: Sequence[Sequence[str]], name: str, title: str) -> None:
    """The name of a limit once, in the cell of its region that is nearest to its middle."""
    cells = [(i, j) for j, row in enumerate(names) for i, n in enumerate(row) if n == name]
    middle = np.mean(cells, axis=0)
    base = (len(names[0]) // 2, len(names) // 2)
    free = [c for c in cells if c != base] or cells
    i, j = min(free, key=lambda c: (float(np.sum((np.asarray(c) - middle) ** 2)), c))
    words = wrapped(title, 18, 3)
    axes.text(i + 0.5, j + 0.7, words, ha="center", va="center", fontsize=6.4, fontweight="bold", linespacing=1.0)


def _base(axes: Any, x: Sequence[float], y: Sequence[float]) -> None:
    if x[0] <= 1 <= x[-1] and y[0] <= 1 <= y[-1]:
        place = [float(np.interp(1.0, v, np.arange(len(v)) + 0.5)) for v in (x, y)]
        axes.plot(place[0], place[1] + 0.2, marker="D", color="black", markersize=7, markeredgecolor="white", zorder=4)


def _place(scale: float, steps: Sequence[float]) -> float:
    """Where a multiple of base lies on an axis of cells; the ends of the map cut it."""
    return float(np.clip(np.interp(scale, steps, np.arange(len(steps)) + 0.5), 0.04, len(steps) - 0.04))


def _frame(
    axes: Any,
    x: Sequence[float],
    y: Sequence[float],
    wide: tuple[float, float] | None,
    high: tuple[float, float] | None,
) -> str:
    """The region of the stated ranges, and what to say of it: an input without a range spans the map."""
    from matplotlib.patches import Rectangle

    if wide is None and high is None:
        return ""
    ends = []
    for steps, given in ((x, wide), (y, high)):
        low, top = given or (steps[0], steps[-1])
        inside = (low >= steps[0], top <= steps[-1])
        ends.append((_place(low, steps) if inside[0] else 0.04, _place(top, steps) if inside[1] else len(steps) - 0.04))
    (x0, x1), (y0, y1) = ends
    line: dict[str, Any] = {"edgecolor": INK, "linewidth": 1.6, "linestyle": (0, (4, 2)), "zorder": 3}
    axes.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, **line))
    return say("figures.binding_map.framed")


def _headline(names: Sequence[Sequence[str]], titles: Mapping[str, str]) -> str:
    flat = [n for row in names for n in row]
    order = sorted(set(flat), key=lambda n: (-flat.count(n), n))
    words = [titles.get(n, n.replace("_", " ")) for n in order]
    if len(order) == 1:
        if order[0] == NOTHING:
            return say("figures.binding_map.nothing")
        return say("figures.binding_map.whole", limit=few_words(words[0], 5))
    found = {"cells": flat.count(order[0]), "all": len(flat)}
    return say("figures.binding_map.headline", limit=few_words(words[0], 4), **found)
