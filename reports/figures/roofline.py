"""Figure: what limits each operator of a step, under the dense peak and the memory bandwidth of an accelerator."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd

from reports.catalogue import say
from reports.figures.style import INK, STAGE_COLOURS, FigureCard, drawing, svg_text, wrapped
from reports.tables import records
from reports.wording import listing, percent, plain

__all__ = ["roofline"]

WIDTH = 9.2
#: Filled where memory bandwidth bounds, hollow where compute does.
FACES = {"memory_bandwidth": STAGE_COLOURS["hbm"], "compute": "#ffffff"}
MARKS = {"decode": "o", "prefill": "s"}
WORDS = {"memory_bandwidth": "memory bandwidth", "compute": "compute"}
#: Operators with less of their phase's time have a mark but no name.
NAMED = 0.05
#: Names stay readable on the roofs.
GROUND = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.85}
MEASURED = ("measured_flop_per_s", "measured_bytes_per_s")


def roofline(points: pd.DataFrame, subtitle: str) -> FigureCard:
    """Attained FLOP/s against FLOP per byte, log-log, a panel a model, with one roof for each dense peak, its ridge
    named, and a dashed roof at the best measured rates where the table has them.

    `points`: columns phase, operator, intensity_flop_per_byte, attained_flop_per_s, time_share, peak_flop_per_s,
    format, bandwidth_bytes_per_s, limited_by, model, hardware (`scenarios.engine_points.operator_points`), and where
    known measured_flop_per_s, measured_bytes_per_s. The area of a mark is the operator's share of its phase's time.

    Raises:
        ValueError: when a point lies above its roof, or the points are of several accelerators.
    """
    _under_roof(points)
    bandwidth = float(points["bandwidth_bytes_per_s"].iloc[0])
    finite = points[np.isfinite(points["intensity_flop_per_byte"])]
    top = float(points["peak_flop_per_s"].max())
    low = 10 ** np.floor(np.log10(float(finite["intensity_flop_per_byte"].min()) / 2))
    high = 10 ** np.ceil(np.log10(max(float(finite["intensity_flop_per_byte"].max()), top / bandwidth)))
    models = list(dict.fromkeys(points["model"]))
    with drawing(WIDTH, 4.0, ncols=len(models), sharex=True, sharey=True, squeeze=False) as (figure, panels):
        for panel, model in zip(panels[0], models, strict=True):
            _panel(panel, finite[finite["model"] == model], (low, high * 1.6))
            panel.set_title(model, fontweight="bold")
        panels[0, 0].set_ylabel(say("figures.axes.attained"))
        panels[0, len(models) // 2].set_xlabel(say("figures.axes.intensity"))
        panels[0, 0].set_ylim(low * bandwidth / 1e12 * 0.6, top / 1e12 * 60)
        renderer = _laid_out(figure)
        for panel, model in zip(panels[0], models, strict=True):
            _names(renderer, panel, finite[(finite["model"] == model) & (finite["time_share"] >= NAMED)])
        svg = svg_text(figure)
    headline = _headline(points)
    said = {
        "models": listing(models),
        "hardware": points["hardware"].iloc[0],
        "least": percent(NAMED, 1),
        "dashed": say("figures.roofline.dashed") if set(MEASURED) <= set(points) else "",
    }
    return FigureCard(
        "roofline",
        headline,
        say("figures.roofline.subtitle", **said, scope=subtitle),
        say("figures.roofline.alt", headline=headline),
        svg,
        points,
    )


def _under_roof(points: pd.DataFrame) -> None:
    if points["hardware"].nunique() != 1:
        raise ValueError(f"a roofline is of one accelerator; got {', '.join(sorted(points['hardware'].unique()))}")
    slope = points["intensity_flop_per_byte"].to_numpy() * points["bandwidth_bytes_per_s"].to_numpy()
    roof = np.minimum(points["peak_flop_per_s"].to_numpy(), slope)
    over = points["attained_flop_per_s"].to_numpy() > roof * (1 + 1e-9)
    if over.any():
        r = points[over].iloc[0]
        raise ValueError(
            f"{r['phase']} {r['operator']}: {r['attained_flop_per_s']:.3g} FLOP/s lies above its roof; the work, the "
            "bytes or the peak (dense, of its own format) is wrong"
        )


def _panel(axes: Any, points: pd.DataFrame, ends: tuple[float, float]) -> None:
    from matplotlib.ticker import LogLocator

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(*ends)
    _roofs(axes, points, ends)
    for r in records(points.sort_values("time_share", ascending=False)):
        look = {"facecolor": FACES[r.limited_by], "edgecolors": INK, "linewidths": 0.9, "zorder": 6}
        axes.scatter(*_spot(r), s=_area(r.time_share), marker=MARKS.get(r.phase, "D"), **look)
    axes.grid(color="#ececec", linewidth=0.6)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(numticks=7))
        axis.set_major_formatter(lambda x, _: f"{x:,g}")
        axis.set_minor_formatter("")


def _roofs(axes: Any, points: pd.DataFrame, ends: tuple[float, float]) -> None:
    """The roofs, and in the free corner above them what each is and where its ridge lies."""
    bandwidth = float(points["bandwidth_bytes_per_s"].iloc[0])
    words = []
    for name, peak in points.groupby("format")["peak_flop_per_s"].first().sort_values(ascending=False).items():
        _roof(axes, float(peak), bandwidth, ends, "-")
        words.append(f"{str(name).upper()} {plain(peak / 1e12)} TFLOP/s, ridge {plain(peak / bandwidth)} FLOP/B")
    words.append(f"memory {plain(bandwidth / 1e12)} TB/s")
    if set(MEASURED) <= set(points) and points[list(MEASURED)].notna().all(axis=None):
        peak, rate = (float(points[name].iloc[0]) for name in MEASURED)
        _roof(axes, peak, rate, ends, "--")
        words.append(f"dashed: {plain(peak / 1e12)} TFLOP/s, {plain(rate / 1e12)} TB/s")
    axes.text(0.02, 0.985, "\n".join(words), transform=axes.transAxes, fontsize=7.5, va="top", color="#333333")


def _roof(axes: Any, peak: float, rate: float, ends: tuple[float, float], line: str) -> None:
    x = [ends[0], peak / rate, ends[1]]
    axes.plot(x, [min(peak, v * rate) / 1e12 for v in x], color="#444444", linewidth=1.3, linestyle=line)


def _laid_out(figure: Any) -> Any:
    """The renderer that measures texts of a figure whose axes have their places, and keep them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.get_layout_engine().execute(figure)
    figure.set_layout_engine("none")
    return renderer


def _names(renderer: Any, axes: Any, points: pd.DataFrame) -> None:
    """Names beside the marks, right or left of them; one that would touch another text or a mark moves away."""
    taken: list[Any] = [t.get_window_extent(renderer) for t in axes.texts]
    taken += [_mark_box(axes, r) for r in records(points)]
    frame = axes.get_window_extent()
    for r in records(points.sort_values(["phase", "time_share"], ascending=[True, False])):
        words = wrapped(f"{r.operator.replace('_', ' ')}, {percent(r.time_share)}", 18)
        text: Any = None
        for down, side in itertools.product(sorted(range(-8, 16), key=abs), ("left", "right")):
            if text is not None:
                text.remove()
            off = _radius(r) + 3.5
            place = (off if side == "left" else -off, -5 - 10 * down)
            look = {"textcoords": "offset points", "fontsize": 7.5, "bbox": GROUND, "zorder": 7, "linespacing": 1.0}
            text = axes.annotate(words, _spot(r), xytext=place, ha=side, **look)
            box = text.get_window_extent(renderer)
            inside = box.x0 >= frame.x0 and box.x1 <= frame.x1
            if inside and not any(box.overlaps(b) for b in taken):
                break
        taken.append(box)


def _spot(r: Any) -> tuple[float, float]:
    return r.intensity_flop_per_byte, r.attained_flop_per_s / 1e12


def _mark_box(axes: Any, r: Any) -> Any:
    """Where a mark lies, in dots."""
    from matplotlib.transforms import Bbox

    x, y = axes.transData.transform(_spot(r))
    half = (_radius(r) + 1.5) * axes.figure.dpi / 72
    return Bbox([[x - half, y - half], [x + half, y + half]])


def _radius(r: Any) -> float:
    """Half the width of a mark, in points."""
    return float(0.5 * np.sqrt(_area(r.time_share)))


def _area(share: float) -> float:
    """Area of a mark in square points."""
    return 26 + 380 * share


def _headline(points: pd.DataFrame) -> str:
    """Share of the decode step that memory bandwidth bounds, the least over the models."""
    decode = points[points["phase"] == "decode"]
    bound = decode["time_share"].where(decode["limited_by"] == "memory_bandwidth", 0.0)
    memory = float(bound.groupby(decode["model"]).sum().min()) if len(decode) else 0.0
    if memory >= 0.5:
        more = memory < 0.995
        return say("figures.roofline.memory_more" if more else "figures.roofline.memory", share=percent(memory))
    worst = points.sort_values("time_share").iloc[-1]
    limit, operator = WORDS[worst["limited_by"]].capitalize(), worst["operator"].replace("_", " ")
    return say("figures.roofline.other", limit=limit, operator=operator)
