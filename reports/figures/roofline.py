"""Figure: what limits each operator of a step, under the dense peak and the memory bandwidth of an accelerator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from reports.figures.style import FigureCard, drawing, svg_text
from reports.tables import records
from reports.wording import percent, plain

__all__ = ["roofline"]

WIDTH = 9.2
COLOURS = {"memory_bandwidth": "#882255", "compute": "#332288"}
MARKS = {"decode": "o", "prefill": "s"}
WORDS = {"memory_bandwidth": "memory bandwidth", "compute": "compute"}


def roofline(points: pd.DataFrame, subtitle: str) -> FigureCard:
    """Attained FLOP/s against FLOP per byte, log-log, with one roof for each dense peak and the ridge named.

    `points`: columns phase, operator, intensity_flop_per_byte, attained_flop_per_s, time_share, peak_flop_per_s,
    format, bandwidth_bytes_per_s, limited_by, model, hardware (`scenarios.engine_points.operator_points`). The area of
    a mark is the operator's share of the time of its phase.

    Raises:
        ValueError: when a point lies above its roof, or the points are of several accelerators.
    """
    _under_roof(points)
    bandwidth = float(points["bandwidth_bytes_per_s"].iloc[0])
    roofs = points.groupby("format")["peak_flop_per_s"].first().sort_values()
    finite = points[np.isfinite(points["intensity_flop_per_byte"])]
    low = 10 ** np.floor(np.log10(float(finite["intensity_flop_per_byte"].min()) / 2))
    high = 10 ** np.ceil(np.log10(max(float(finite["intensity_flop_per_byte"].max()), float(roofs.max()) / bandwidth)))
    with drawing(WIDTH, 4.0) as (figure, axes):
        _roofs(axes, roofs, bandwidth, (low, high))
        for r in records(finite):
            style = {"color": COLOURS[r.limited_by], "alpha": 0.75, "edgecolors": "#222222", "linewidths": 0.6}
            size = 30 + 420 * r.time_share
            spot = (r.intensity_flop_per_byte, r.attained_flop_per_s / 1e12)
            axes.scatter(*spot, s=size, marker=MARKS.get(r.phase, "D"), **style)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(low, high * 1.6)
        _names(figure, axes, finite)
        axes.set_xlabel("FLOP per byte moved to or from memory")
        axes.set_ylabel("TFLOP/s of one accelerator, dense")
        axes.grid(color="#ececec", linewidth=0.6)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda x, _: f"{x:,g}")
        svg = svg_text(figure)
    headline = _headline(points)
    first = points.iloc[0]
    return FigureCard(
        "roofline",
        headline,
        f"{first['model']} on {first['hardware']}; circles: decode step, squares: prefill; purple-red: bound by memory "
        "bandwidth, blue: by compute; area: share of the time of its phase. Times at datasheet rates, a bound: "
        f"measured kernels lie lower; {subtitle}",
        f"Roofline plot, log-log. {headline}.",
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


def _roofs(axes: Any, roofs: Any, bandwidth: float, ends: tuple[float, float]) -> None:
    top = float(roofs.max())
    ridge = top / bandwidth
    axes.plot([ends[0], ridge], [ends[0] * bandwidth / 1e12, top / 1e12], color="#444444", linewidth=1.4)
    for name, peak in roofs.items():
        start = float(peak) / bandwidth
        axes.plot([start, ends[1] * 1.6], [peak / 1e12, peak / 1e12], color="#444444", linewidth=1.4)
        text = f"{name.upper()} dense peak {plain(peak / 1e12)} TFLOP/s, ridge at {plain(start)} FLOP/B"
        axes.annotate(text, (start, peak / 1e12), xytext=(-6, 0), textcoords="offset points", fontsize=7.5,
                      ha="right", va="center", color="#333333")  # fmt: skip
    axes.annotate(f"memory {plain(bandwidth / 1e12)} TB/s", (ends[0] * 1.15, ends[0] * 1.15 * bandwidth / 1e12),
                  xytext=(12, -4), textcoords="offset points", fontsize=7.5, color="#333333", va="top")  # fmt: skip
    axes.set_ylim(ends[0] * bandwidth / 1e12 * 0.6, top / 1e12 * 2.2)


def _names(figure: Any, axes: Any, points: pd.DataFrame) -> None:
    """Names beside the marks; a name that would touch an earlier one moves down until it does not."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    taken: list[Any] = [t.get_window_extent(renderer) for t in axes.texts]
    for r in records(points.sort_values("time_share", ascending=False)):
        words = f"{r.operator.replace('_', ' ')} ({r.phase}), {percent(r.time_share)}"
        spot = (r.intensity_flop_per_byte, r.attained_flop_per_s / 1e12)
        for step in range(12):
            text = axes.annotate(words, spot, xytext=(11, -7 - 10 * step), textcoords="offset points", fontsize=7.5)
            box = text.get_window_extent(renderer)
            past = box.x1 > axes.get_window_extent().x1
            if past:
                text.set_ha("right")
                text.set_position((-11, -7 - 10 * step))
                box = text.get_window_extent(renderer)
            if not any(box.overlaps(b) for b in taken):
                break
            text.remove()
        taken.append(box)


def _headline(points: pd.DataFrame) -> str:
    decode = points[points["phase"] == "decode"]
    memory = float(decode.loc[decode["limited_by"] == "memory_bandwidth", "time_share"].sum())
    if len(decode) and memory >= 0.5:
        return f"Memory bandwidth bounds {percent(memory)} of a decode step"
    worst = points.sort_values("time_share").iloc[-1]
    return f"{WORDS[worst['limited_by']].capitalize()} bounds {worst['operator'].replace('_', ' ')}"
