"""One style for every figure: fixed colours per stage and product, readable in grey and by colour-blind readers."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

__all__ = [
    "INK",
    "STAGE_COLOURS",
    "STAGE_ORDER",
    "STAGE_TITLES",
    "Drawn",
    "FigureCard",
    "colour_of",
    "dark_colour",
    "drawing",
    "on",
    "period_ticks",
    "svg_text",
]

INK = "#1a1a1a"
#: Grey of the dark page.
PAPER = 18 / 255
STAGE_ORDER = ("fab", "hbm", "packaging", "test", "server", "rack", "power", "datacenter")
STAGE_TITLES = {
    "fab": "Wafers", "hbm": "HBM memory", "packaging": "Packaging", "test": "Final test", "server": "Servers",
    "rack": "Racks", "power": "Power", "datacenter": "Data centers",
}  # fmt: skip
#: Tol's muted scheme: distinct in grey order and under the common colour-vision deficiencies.
STAGE_COLOURS = {
    "fab": "#332288", "hbm": "#AA4499", "packaging": "#CC6677", "test": "#999933", "server": "#44AA99",
    "rack": "#117733", "power": "#882255", "datacenter": "#6699CC",
}  # fmt: skip
_PALETTE = ("#332288", "#117733", "#AA4499", "#44AA99", "#882255", "#88CCEE", "#CC6677", "#999933", "#6699CC",
            "#661100", "#DDCC77", "#777777")  # fmt: skip
_FIXED = {
    "h100": "#117733", "h200": "#44AA99", "h20": "#88CCEE", "b200": "#332288", "b300": "#6699CC", "rubin": "#AA4499",
    "mi300x": "#882255", "mi355x": "#CC6677", "tpu_v5p": "#661100", "tpu_v6e": "#999933", "tpu_v7": "#DDCC77",
    "trainium2": "#AA4466", "trainium3": "#4477AA", "other": "#BBBBBB",
}  # fmt: skip


class Drawn(str):
    """The SVG text of a drawing, which keeps the drawing itself so that it can also be written as pixels."""

    figure: Any = None

    def png(self, style: str = "light", dots_per_inch: int = 150) -> bytes:
        """The drawing as PNG on white, or in the dark style."""
        import matplotlib as mpl
        import numpy as np
        from matplotlib.image import imsave

        buffer = io.BytesIO()
        with mpl.rc_context({"hatch.linewidth": 0.4}):
            self.figure.savefig(buffer, format="png", dpi=dots_per_inch, facecolor="white")
        if style == "light":
            return buffer.getvalue()
        pixels = np.asarray(mpl.image.imread(io.BytesIO(buffer.getvalue())))[..., :3].astype(float)
        out = io.BytesIO()
        turned = pixels + 1.0 - pixels.max(axis=2, keepdims=True) - pixels.min(axis=2, keepdims=True)
        imsave(out, np.clip(PAPER + (1 - PAPER) * turned, 0, 1), format="png")
        return out.getvalue()


@dataclass(frozen=True)
class FigureCard:
    """A finished figure: `svg` text, the data that is drawn, and the words around it."""

    id: str
    headline: str
    subtitle: str
    alt: str
    svg: str
    data: pd.DataFrame

    @property
    def inline_svg(self) -> str:
        """The drawing with ids of its own, so that several can stand in one page."""
        mark = f"{self.id}-"
        text = re.sub(r'\bid="', f'id="{mark}', self.svg)
        text = re.sub(r'href="#', f'href="#{mark}', text)
        return re.sub(r"url\(#", f"url(#{mark}", text)

    @property
    def dark_svg(self) -> str:
        """The drawing for a dark page: every colour keeps its hue and has its lightness turned over."""
        turned = re.sub(r"#[0-9a-fA-F]{6}\b", lambda m: dark_colour(m[0]), self.svg)
        return turned.replace("<svg ", f'<svg fill="{dark_colour("#000000")}" ', 1)

    def save(self, folder: Path, style: str = "light") -> list[Path]:
        """Write the drawing as SVG and PNG and its data as CSV; returns the paths.

        `style`: "light" or "dark"; the dark files have `-dark` in their names. A card whose drawing is not at hand
        (its `svg` is plain text) has no PNG.

        Raises:
            ValueError: for another style.
        """
        if style not in ("light", "dark"):
            raise ValueError(f"style {style!r}: it is light or dark")
        folder.mkdir(parents=True, exist_ok=True)
        stem = self.id if style == "light" else f"{self.id}-dark"
        paths = [folder / f"{stem}.svg", folder / f"{self.id}.csv"]
        paths[0].write_text(self.svg if style == "light" else self.dark_svg, encoding="utf-8")
        self.data.to_csv(paths[1], index=False)
        if isinstance(self.svg, Drawn):
            paths.append(folder / f"{stem}.png")
            paths[2].write_bytes(self.svg.png(style))
        return paths


def dark_colour(colour: str) -> str:
    """A colour for the dark page: the hue stays, lightness L becomes 1 - L, on paper that is not quite black.

    >>> dark_colour("#ffffff"), dark_colour("#000000"), dark_colour("#332288")
    ('#121212', '#ffffff', '#9081df')
    """
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    shift = 1.0 - max(parts) - min(parts)
    return "#" + "".join(f"{round(255 * (PAPER + (1 - PAPER) * (p + shift))):02x}" for p in parts)


def colour_of(name: str) -> str:
    """Fixed colour of a product or stage; any other name gets one by its letters, always the same."""
    if name in STAGE_COLOURS:
        return STAGE_COLOURS[name]
    return _FIXED.get(name, _PALETTE[sum(map(ord, name)) % len(_PALETTE)])


def on(colour: str) -> str:
    """Black or white, whichever reads better on a colour: at least 4.5:1 by the relative luminance of WCAG.

    >>> on("#332288"), on("#DDCC77")
    ('white', 'black')
    """
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "white" if luminance < 0.179 else "black"


@contextmanager
def drawing(width_in: float, height_in: float, **subplots: Any) -> Iterator[tuple[Any, Any]]:
    """A matplotlib figure and its axes in the house style, closed at the end."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    rc = {
        "font.family": "sans-serif", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
        "axes.grid": False, "svg.fonttype": "none", "svg.hashsalt": "wafer2token", "axes.titlesize": 9,
        "axes.titlelocation": "left", "axes.labelcolor": "#333333", "text.color": INK, "hatch.linewidth": 0.4,
        "xtick.color": "#444444", "ytick.color": "#444444", "axes.edgecolor": "#888888", "axes.axisbelow": True,
    }  # fmt: skip
    with mpl.rc_context(rc):
        figure, axes = plt.subplots(figsize=(width_in, height_in), layout="constrained", **subplots)
        try:
            yield figure, axes
        finally:
            plt.close(figure)


def svg_text(figure: Any) -> Drawn:
    """The drawing as an SVG element that scales, without prolog, metadata, dates, or sizes in points."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    drawn = Drawn(re.sub(r' (?:width|height)="[\d.]+pt"', "", text, count=2))
    drawn.figure = figure
    return drawn


def period_ticks(axes: Any, periods: list[str], every: int = 1, offset: float = 0.0) -> None:
    """Quarter labels on the x axis, the year under its first shown quarter.

    `offset`: where a period's middle lies from its number.
    """
    labels, year = [], ""
    for period in periods[::every]:
        head, _, tail = period.partition("-")
        labels.append(f"{tail}\n{head}" if head != year else tail)
        year = head
    axes.set_xticks([i + offset for i in range(0, len(periods), every)], labels, fontsize=7.5)
    axes.tick_params(axis="x", length=0)
