"""Saved figures carry their words: headline and subtitle above the drawing, the source line below it."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any

from reports.figures.style import HATCH, INK, PAPER, darkened
from reports.figures.vision import turned

if TYPE_CHECKING:
    from reports.figures.style import FigureCard

__all__ = ["framed_png", "framed_svg"]

DOTS_PER_INCH = 150
#: Of PNG: drawings of flat colours are as small at 3 as at 9, which takes six times as long.
COMPRESSION = 3
#: Sizes in points: side margin, headline, other lines, line spacing.
SIDE, LARGE, SMALL, LEADING = 8.0, 12.0, 8.5, 1.35
GREY = "#555555"
#: Mean width of a letter, as a share of the size of its type.
LETTER = 0.56

Line = tuple[str, float, str, str]


def _lines(card: FigureCard, source: str, width: float) -> tuple[list[Line], list[Line]]:
    """Lines above and below the drawing: text, size, weight, colour."""

    def cut(text: str, size: float, weight: str, colour: str) -> list[Line]:
        letters = int((width - 2 * SIDE) / (LETTER * size * (1.1 if weight == "bold" else 1.0)))
        return [(line, size, weight, colour) for line in textwrap.wrap(text, letters)]

    above = [*cut(card.headline, LARGE, "bold", INK), *cut(card.subtitle, SMALL, "normal", GREY)]
    return above, cut(source, SMALL, "normal", GREY)


def _height(lines: Sequence[Line]) -> float:
    return sum(LEADING * size for _, size, _, _ in lines) + (SMALL if lines else 0.0)


def _places(lines: Sequence[Line]) -> list[float]:
    """Baseline of each line, in points from the top."""
    at, found = 0.35 * SMALL, []
    for _, size, _, _ in lines:
        at += LEADING * size
        found.append(at)
    return found


def framed_svg(card: FigureCard, source: str = "", style: str = "light") -> str:
    """The drawing as an SVG file of its own, its words above and below as text, its alternative text as title."""
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', card.svg)
    if found is None:
        return card.svg if style == "light" else darkened(card.svg)
    width, height = float(found[1]), float(found[2])
    above, below = _lines(card, source, width)
    top, bottom = _height(above), _height(below)
    texts = []
    for lines, start in ((above, 0.0), (below, top + height)):
        for (text, size, weight, colour), y in zip(lines, _places(lines), strict=True):
            texts.append(
                f'<text x="{SIDE:g}" y="{start + y:.1f}" font-family="DejaVu Sans, sans-serif" font-size="{size:g}" '
                f'font-weight="{weight}" fill="{colour}">{escape(text)}</text>'
            )
    inner = card.svg.replace("<svg ", f'<svg x="0" y="{top:.1f}" width="{width:g}" height="{height:g}" ', 1)
    whole = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:g} {top + height + bottom:.1f}">'
        f'<title>{escape(card.alt)}</title><rect width="100%" height="100%" fill="#ffffff"/>'
        f"{''.join(texts)}{inner}</svg>"
    )
    return whole if style == "light" else darkened(whole)


def framed_png(card: FigureCard, source: str = "", style: str = "light") -> bytes:
    """The drawing as PNG with its words, on white or with lightness turned over; `card.svg` must be a `Drawn`."""
    import numpy as np
    from PIL import Image

    figure = card.svg.figure  # type: ignore[attr-defined]
    above, below = _lines(card, source, 72 * figure.get_figwidth())
    drawn = [_pixels(figure)]
    if above:
        drawn.insert(0, _strip(tuple(above), drawn[0].shape[1]))
    if below:
        drawn.append(_strip(tuple(below), drawn[-1].shape[1]))
    pixels = np.concatenate(drawn)
    if style == "dark":
        pixels = _turned(pixels)
    out = io.BytesIO()
    dots = (DOTS_PER_INCH, DOTS_PER_INCH)
    Image.fromarray(pixels).save(out, format="png", dpi=dots, compress_level=COMPRESSION)
    return out.getvalue()


def _pixels(figure: Any) -> Any:
    """Red, green and blue of a drawing on white, 0 to 255."""
    import matplotlib as mpl
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    before = figure.dpi
    with mpl.rc_context({"hatch.linewidth": HATCH}):
        figure.set_dpi(DOTS_PER_INCH)
        figure.patch.set_facecolor("white")
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        figure.set_dpi(before)
    return np.asarray(canvas.buffer_rgba())[..., :3]


def _turned(pixels: Any) -> Any:
    """Pixels for the dark page; each colour is worked out once."""
    import numpy as np

    whole = pixels.astype(np.int64) @ [1 << 16, 1 << 8, 1]
    found, where = np.unique(whole, return_inverse=True)
    rgb = np.stack([found >> 16, found >> 8 & 255, found & 255], axis=1) / 255
    return np.rint(255 * turned(rgb, PAPER)).astype(np.uint8)[where.reshape(whole.shape)]


@lru_cache(maxsize=4)
def _strip(lines: tuple[Line, ...], width: int) -> Any:
    """Lines of text as pixels of the width of the drawing; figures of one report share the line of their source."""
    from matplotlib.figure import Figure

    height = _height(lines)
    figure = Figure(figsize=(width / DOTS_PER_INCH, height / 72))
    for (text, size, weight, colour), y in zip(lines, _places(lines), strict=True):
        x = SIDE * DOTS_PER_INCH / 72 / width
        figure.text(x, 1 - y / height, text, fontsize=size, fontweight=weight, color=colour, parse_math=False)
    made = _pixels(figure)
    return made[:, :width]
