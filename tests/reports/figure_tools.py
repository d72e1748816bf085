"""The texts of a drawing: none over another, none cut off."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg

from reports.figures.style import Drawn, FigureCard

#: Texts may share this many pixels at 100 dots an inch.
SLACK = 1.0


def texts_of(figure: Any) -> list[Any]:
    """Every text that is drawn: titles, labels, keys, names of ticks inside the axes."""
    found = [*figure.texts]
    for legend in [*figure.legends, *(a.get_legend() for a in figure.axes if a.get_legend())]:
        found += legend.get_texts()
    for axes in figure.axes:
        if not axes.get_visible():
            continue
        found += [*axes.texts, axes.title, axes._left_title, axes._right_title]
        if not axes.axison:
            continue
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            found.append(axis.label)
            for tick, place in zip(axis.get_major_ticks(), axis.get_majorticklocs(), strict=False):
                inside = low - 1e-9 * abs(low) <= place <= high * (1 + 1e-9)
                found += [t for t in (tick.label1,) if t.get_visible() and inside]
    return [t for t in found if t.get_visible() and t.get_text().strip()]


def texts_apart(card: FigureCard) -> int:
    """No two texts overlap, and none is cut off; returns how many there are."""
    assert isinstance(card.svg, Drawn)
    figure = card.svg.figure
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in texts_of(figure)]
    wide, high = figure.bbox.width, figure.bbox.height
    for text, box in boxes:
        assert box.x0 >= -SLACK and box.y0 >= -SLACK and box.x1 <= wide + SLACK and box.y1 <= high + SLACK, (text, box)
    for (text, one), (other, two) in combinations(boxes, 2):
        x = min(one.x1, two.x1) - max(one.x0, two.x0)
        y = min(one.y1, two.y1) - max(one.y0, two.y0)
        assert x <= SLACK or y <= SLACK, (card.id, text, other, one, two)
    return len(boxes)
