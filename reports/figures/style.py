"""One style for every figure: fixed colours per stage and product, readable in grey and by colour-blind readers."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from reports.figures.vision import luminance, turned
from supply.files import whole_file, whole_text

__all__ = [
    "HATCH",
    "INK",
    "PAPER",
    "STAGE_COLOURS",
    "STAGE_ORDER",
    "Drawn",
    "FigureCard",
    "colour_of",
    "dark_colour",
    "darkened",
    "drawing",
    "few_words",
    "fill_of",
    "filled",
    "fills",
    "grid_axes",
    "on",
    "period_ticks",
    "scale_of",
    "svg_text",
    "wrapped",
]

INK = "#1a1a1a"
#: Width of hatch lines in points.
HATCH = 0.6
#: Inches between panels and the edge: pixels set letters a little wider than the layout counts on.
EDGE = 0.07
#: Grey of the dark page.
PAPER = 18 / 255
STAGE_ORDER = ("fab", "hbm", "packaging", "test", "server", "rack", "power", "datacenter")
#: Chosen by search: at least 20 apart in CIE Lab for each colour-vision deficiency, neighbours in the chain at least 15
#: apart in lightness. Stages are always named beside their colour.
STAGE_COLOURS = {
    "fab": "#7f2b01", "hbm": "#3384e7", "packaging": "#6b5584", "test": "#bc81a6", "server": "#4b46a3",
    "rack": "#b5721b", "power": "#632a46", "datacenter": "#bc364a",
}  # fmt: skip
#: Fill of a product: hue by designer, lightness by generation, hatch by family, told apart in grey print too.
_FILLS = {
    "rubin": ("#7d53b3", ""), "b300": ("#1898f3", ""), "b200": ("#0a3986", ""),
    "h20": ("#19a684", "////"), "h200": ("#157376", "////"), "h100": ("#044822", "////"),
    "mi355x": ("#e87054", "xxxx"), "mi300x": ("#a11836", "xxxx"),
    "tpu_v7": ("#ca842e", "...."), "tpu_v6e": ("#706a22", "...."), "tpu_v5p": ("#4b3c03", "...."),
    "trainium3": ("#cc5aa7", "\\\\\\\\"), "trainium2": ("#8b0357", "\\\\\\\\"),
    "other": ("#c8c8c8", ""),
}  # fmt: skip
#: Fills of products that the program does not know, handed out by name.
_SPARE = tuple(
    (colour, hatch)
    for hatch in ("++++", "oooo", "||||", "----", "++oo", "||oo", "--oo")
    for colour in ("#157376", "#ca842e", "#0a3986")
)
#: A colour in SVG text, not the name of a part that `href` or `url` leads to.
_COLOUR = re.compile(r"""(?<!href=")(?<!\()#([0-9a-fA-F]{6})\b(?!-)""")


class Drawn(str):
    """The SVG text of a drawing, which keeps the drawing itself so that it can also be written as pixels."""

    figure: Any = None


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
        """The drawing with ids of its own, so that several can stand in one page, and colours that the page may set.

        Each colour is `var(--crrggbb,#rrggbb)`: itself, unless the style of the page gives another for it.
        """
        mark = f"{self.id}-"
        text = re.sub(r'\bid="', f'id="{mark}', self.svg)
        text = re.sub(r'href="#', f'href="#{mark}', text)
        text = re.sub(r"url\(#", f"url(#{mark}", text)
        return _COLOUR.sub(r"var(--c\1,#\1)", text)

    @property
    def colours(self) -> set[str]:
        """Colours of the drawing, as #rrggbb."""
        return {f"#{c}" for c in _COLOUR.findall(self.svg)}

    @property
    def dark_svg(self) -> str:
        """The drawing for a dark page: every colour keeps its hue and has its lightness turned over."""
        return darkened(self.svg)

    def save(self, folder: Path, style: str = "light", source: str = "") -> list[Path]:
        """Write the drawing as SVG and PNG, with its headline, subtitle and source in print, and its data as CSV.

        `style`: "light" or "dark"; the dark files have `-dark` in their names. A card whose drawing is not at hand
        (its `svg` is plain text) has no PNG. Returns the paths.

        Raises:
            ValueError: for another style.
        """
        from reports.figures.framed import framed_png, framed_svg

        if style not in ("light", "dark"):
            raise ValueError(f"style {style!r}: it is light or dark")
        folder.mkdir(parents=True, exist_ok=True)
        stem = self.id if style == "light" else f"{self.id}-dark"
        paths = [folder / f"{stem}.svg", folder / f"{self.id}.csv"]
        with whole_text(paths[0]) as text:
            text.write(framed_svg(self, source, style))
        with whole_text(paths[1]) as table:
            self.data.to_csv(table, index=False)
        if isinstance(self.svg, Drawn):
            paths.append(folder / f"{stem}.png")
            with whole_file(paths[2]) as working:
                working.write_bytes(framed_png(self, source, style))
        return paths


def darkened(svg: str) -> str:
    """SVG text with every colour as `dark_colour` gives it."""
    turned = _COLOUR.sub(lambda m: dark_colour(m[0]), svg)
    return turned.replace("<svg ", f'<svg fill="{dark_colour("#000000")}" ', 1)


@cache
def dark_colour(colour: str) -> str:
    """A colour for the dark page: the hue stays, the lightness is turned over, on paper that is not quite black.

    >>> dark_colour("#ffffff"), dark_colour("#000000"), dark_colour("#0a3986")
    ('#121212', '#ffffff', '#adb5ff')
    """
    parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return "#" + "".join(f"{round(255 * v):02x}" for v in turned(parts, PAPER))


def fill_of(name: str) -> tuple[str, str]:
    """Fixed colour and hatch of a product or stage; any other name gets one by its letters, always the same.

    >>> fill_of("h100"), fill_of("power")
    (('#044822', '////'), ('#632a46', ''))
    """
    if name in STAGE_COLOURS:
        return STAGE_COLOURS[name], ""
    return _FILLS.get(name) or _SPARE[sum(map(ord, name)) % len(_SPARE)]


def colour_of(name: str) -> str:
    """Colour of `fill_of`."""
    return fill_of(name)[0]


def fills(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Fills of products that stand in one drawing: fixed ones as in `fill_of`, the others pairwise different.

    >>> made = fills(["ab", "ba", "h100"])
    >>> made["ab"] != made["ba"], made["h100"] == fill_of("h100")
    (True, True)
    """
    found: dict[str, tuple[str, str]] = {}
    for name in sorted(names, key=lambda n: (n not in _FILLS, n)):
        start = sum(map(ord, name))
        spare = [_SPARE[(start + k) % len(_SPARE)] for k in range(len(_SPARE))]
        found[name] = _FILLS.get(name) or next((f for f in spare if f not in found.values()), spare[0])
    return found


def filled(fill: tuple[str, str]) -> dict[str, Any]:
    """How matplotlib draws a fill: dark outline for the page's contrast, hatch in black or white for the colour's.

    >>> filled(("#044822", "////"))["hatchcolor"]
    'white'
    """
    colour, hatch = fill
    return {"facecolor": colour, "hatch": hatch, "hatchcolor": on(colour), "edgecolor": INK, "linewidth": 0.5}


def on(colour: str) -> str:
    """Black or white, whichever reads better on a colour: at least 4.5:1 by the relative luminance of WCAG.

    >>> on("#332288"), on("#DDCC77")
    ('white', 'black')
    """
    return "white" if luminance(colour) < 0.179 else "black"


def wrapped(text: str, width: int, lines: int = 2) -> str:
    """A label in at most so many lines of so many letters; what does not fit ends in an ellipsis.

    >>> wrapped("Energised AI power in the United States of America", 16)
    'Energised AI\\npower in the …'
    """
    found = textwrap.wrap(text, width, max_lines=lines, placeholder=" …")
    return "\n".join(line if len(line) <= width else f"{line[: width - 1]}…" for line in found)


def few_words(text: str, most: int) -> str:
    """The first words of a name, for a headline that has ten.

    >>> few_words("Energised AI power in the United States", 4), few_words("TSMC CoWoS wafers", 4)
    ('Energised AI power in…', 'TSMC CoWoS wafers')
    """
    words = text.split()
    return text if len(words) <= most else f"{' '.join(words[:most])}…"


@contextmanager
def drawing(width_in: float, height_in: float, **subplots: Any) -> Iterator[tuple[Any, Any]]:
    """A matplotlib figure and its axes in the house style."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    rc = {
        "font.family": "sans-serif", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
        "axes.grid": False, "svg.fonttype": "none", "svg.hashsalt": "wafer2token", "axes.titlesize": 9,
        "text.parse_math": False,  # a title with $ is text
        "axes.titlelocation": "left", "axes.labelcolor": "#333333", "text.color": INK, "hatch.linewidth": HATCH,
        "xtick.color": "#444444", "ytick.color": "#444444", "axes.edgecolor": "#888888", "axes.axisbelow": True,
    }  # fmt: skip
    with mpl.rc_context(rc):
        figure = Figure(figsize=(width_in, height_in), layout=ConstrainedLayoutEngine(w_pad=EDGE))
        yield figure, figure.subplots(**subplots)


def svg_text(figure: Any) -> Drawn:
    """The drawing as an SVG element that scales, without prolog, metadata, dates, or sizes in points.

    What `savefig` does, less its first drawing into nothing: the layout is worked out once, at the dots of SVG.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    canvas = FigureCanvasSVG(figure)
    for patch in (figure.patch, *(a.patch for a in figure.axes)):
        patch.set_facecolor("none")
    before = figure.dpi
    figure.set_dpi(72)
    figure.get_layout_engine().execute(figure)
    figure.set_layout_engine("none")  # places stay; the layout is not worked out again for the pixels
    buffer = io.StringIO()
    figure.set_dpi(before)
    canvas.print_svg(buffer, metadata={"Date": None, "Creator": None})
    figure.set_dpi(before)
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


def grid_axes(axes: Any, periods: list[str], names: list[str]) -> None:
    """Axes of a grid of cells: periods from left to right, names from top to bottom."""
    axes.set_xlim(0, len(periods))
    axes.set_ylim(len(names), 0)
    period_ticks(axes, periods, offset=0.5)
    axes.set_yticks([i + 0.5 for i in range(len(names))], [wrapped(n, 38) for n in names], fontsize=8, linespacing=1.0)
    axes.tick_params(length=0)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)


def scale_of(top: float) -> tuple[float, str]:
    """What to divide by so that numbers up to `top` are short, and its word.

    >>> scale_of(2.5e6), scale_of(800)
    ((1000000.0, 'million '), (1.0, ''))
    """
    return (1e6, "million ") if top >= 1e6 else (1e3, "thousand ") if top >= 1e4 else (1.0, "")
