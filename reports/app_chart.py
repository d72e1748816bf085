"""Charts of the app as SVG text: fast enough to redraw at every move of a slider, readable without a mouse."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from reports.figures.style import STAGE_COLOURS, STAGE_ORDER, colour_of, dark_colour
from reports.wording import count, plain, stage_head
from scenarios.nodes import Array

if TYPE_CHECKING:
    from reports.app_model import Case

__all__ = ["binding_grid", "volume_chart"]

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 860.0, 262.0, 40.0, 30.0, 24.0


def volume_chart(case: Case, base: Case, pinned: Case | None, titles: Mapping[str, str], what: str) -> str:
    """Accelerators by period, stacked by product; the base as a grey step line, a pinned case as a dashed one."""
    lines = [("base", base), *([("pinned", pinned)] if pinned is not None and not pinned.failed else [])]
    shown = case.volume if not case.failed else np.zeros_like(base.volume)
    most = max([float(shown.sum(axis=0).max(initial=0.0)), *(float(c.volume.sum(axis=0).max()) for _, c in lines)])
    top, ticks = _ticks(most)
    parts = [_axis(top, ticks, case.periods)]
    order = [k for k in range(len(base.skus)) if (shown.size and shown[k].sum() > 0) or base.volume[k].sum() > 0]
    slot = (WIDTH - LEFT) / max(1, len(case.periods))
    for t, period in enumerate(case.periods):
        floor = 0.0
        for k in order:
            value = float(shown[k, t])
            if value > 1e-4 * top:
                y, height = _y(floor + value, top), _y(floor, top) - _y(floor + value, top)
                name = escape(f"{titles.get(base.skus[k], base.skus[k])}, {period}: {count(value)}")
                parts.append(
                    f'<rect x="{LEFT + slot * (t + 0.14):.1f}" y="{y:.1f}" width="{slot * 0.72:.1f}" '
                    f'height="{max(0.5, height):.1f}" class="w2t-fill" style="{_both(base.skus[k])}">'
                    f"<title>{name}</title></rect>"
                )
                floor += value
    parts += [_steps(line.volume.sum(axis=0), top, slot, name) for name, line in lines]
    total = shown.sum(axis=0)
    alt = f"Accelerators {what} by period, {plain(total[0] / 1e6) if total.size else 0} million in {case.periods[0]}, "
    alt += f"{plain(total[-1] / 1e6) if total.size else 0} million in {case.periods[-1]}"
    keys = [(_both(base.skus[k]), titles.get(base.skus[k], base.skus[k])) for k in order]
    legend = "".join(f'<li><i class="w2t-key" style="{c}"></i>{escape(name)}</li>' for c, name in keys)
    legend += '<li><i class="w2t-line"></i>base</li>' + ('<li><i class="w2t-dash"></i>pinned</li>' if pinned else "")
    return (
        f'<svg viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" aria-label="{escape(alt)}" class="w2t-chart">'
        f"{''.join(parts)}</svg><ul class='w2t-legend'>{legend}</ul>"
    )


def _ticks(most: float) -> tuple[float, list[float]]:
    """Top of the axis and its ticks, four or five round steps.

    >>> _ticks(2.3e6)
    (2500000.0, [0.0, 500000.0, 1000000.0, 1500000.0, 2000000.0, 2500000.0])
    """
    if most <= 0:
        return 1.0, [0.0, 1.0]
    size = 10.0 ** np.floor(np.log10(most / 4.0))
    step = float(next(k * size for k in (1.0, 2.0, 2.5, 5.0, 10.0) if most / (k * size) <= 5.0))
    steps = int(np.ceil(most / step - 1e-9))
    return step * steps, [step * k for k in range(steps + 1)]


def _y(value: float, top: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - value / top)


def _axis(top: float, ticks: list[float], periods: tuple[str, ...]) -> str:
    unit, word = (1e6, "million") if top >= 1e6 else (1e3, "thousand") if top >= 2e4 else (1.0, "")
    out = [f'<text x="2" y="10" class="w2t-tick">{word} accelerators a period</text>']
    for tick in ticks:
        y = _y(tick, top)
        out.append(f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" class="w2t-rule"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end" class="w2t-tick">{tick / unit:g}</text>')
    slot = (WIDTH - LEFT) / max(1, len(periods))
    for t, period in enumerate(periods):
        x = LEFT + slot * (t + 0.5)
        out.append(
            f'<text x="{x:.1f}" y="{HEIGHT - 16}" text-anchor="middle" class="w2t-tick">{escape(period[5:])}</text>'
        )
        if t == 0 or periods[t - 1][:4] != period[:4]:
            out.append(f'<text x="{x:.1f}" y="{HEIGHT - 3}" text-anchor="middle" class="w2t-tick">{period[:4]}</text>')
    return "".join(out)


def _both(sku: str) -> str:
    """Colour of a product on the light and on the dark page."""
    return f"--c:{colour_of(sku)};--d:{dark_colour(colour_of(sku))}"


def _steps(totals: Array, top: float, slot: float, name: str) -> str:
    points = []
    for t, value in enumerate(totals):
        y = _y(float(value), top)
        points += [f"{LEFT + slot * t:.1f},{y:.1f}", f"{LEFT + slot * (t + 1):.1f},{y:.1f}"]
    return f'<polyline points="{" ".join(points)}" class="w2t-step-{name}"/>'


def binding_grid(case: Case) -> str:
    """Stages in chain order by period: the share of all scarcity rent in percent, as a table with shaded cells."""
    shares = {p: case.shares(p) for p in case.periods}
    stages = [s for s in STAGE_ORDER if any(s in row for row in shares.values())]
    if not stages:
        return "<p class='w2t-note'>No limit has a price in any period: supply covers every use.</p>"
    years: dict[str, int] = {}
    for p in case.periods:
        years[p[:4]] = years.get(p[:4], 0) + 1
    head = "".join(f'<th colspan="{n}" scope="colgroup">{y}</th>' for y, n in years.items())
    quarter = "".join(f'<th scope="col">{escape(p[5:])}</th>' for p in case.periods)
    body = []
    for stage in stages:
        cells = "".join(_cell(stage, shares[p].get(stage, 0.0)) for p in case.periods)
        body.append(f'<tr><th scope="row">{escape(stage_head(stage))}</th>{cells}</tr>')
    return (
        "<div class='w2t-scroll'><table class='w2t-grid'><caption>Share of all scarcity rent by stage, percent; an "
        f"empty cell does not bind</caption><thead><tr><td></td>{head}</tr><tr><td></td>{quarter}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _cell(stage: str, share: float) -> str:
    if share <= 0.005:
        return "<td></td>"
    red, green, blue = (int(STAGE_COLOURS[stage][k : k + 2], 16) for k in (1, 3, 5))
    alpha = 0.2 + 0.8 * share
    mixed = [round(255 + (c - 255) * alpha) for c in (red, green, blue)]
    dark = 0.299 * mixed[0] + 0.587 * mixed[1] + 0.114 * mixed[2] < 140
    ink = "#fff" if dark else "#111"
    return f'<td style="background:rgb({mixed[0]},{mixed[1]},{mixed[2]});color:{ink}">{100 * share:.0f}</td>'
