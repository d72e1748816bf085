"""What a terminal gets: progress on stderr, answers on stdout within its width, and characters that it can show.

width      that of the terminal (or COLUMNS), 80 where there is none, between 40 and 120
colour     bold heads on a terminal only; never with NO_COLOR or TERM=dumb, always with FORCE_COLOR (but 0)
progress   one moving line on a terminal, plain lines elsewhere, nothing with `--quiet`
characters what an encoding lacks is written in ASCII, so that no answer fails on a plain terminal
"""

from __future__ import annotations

import codecs
import math
import os
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Sequence
from typing import Any

from reports.wording import brief

__all__ = ["amount", "begin", "end", "head", "line", "say", "sparkline", "table", "whole", "width"]

_DEFAULT, _LEAST, _MOST = 80, 40, 120
#: Columns that a text column of a table needs at least.
_LEAST_TEXT = 14
_PLAIN = {"\N{NO-BREAK SPACE}": " ", "–": "-", "—": "-", "−": "-", "×": "x", "…": "...", "·": "."}
_BARS = "▁▂▃▄▅▆▇█"
_quiet = False
_status: Any = None


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Codec error handler: the nearest ASCII text of what an encoding cannot write."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    plain = "".join(_PLAIN.get(c) or unicodedata.normalize("NFKD", c).encode("ascii", "ignore").decode() for c in text)
    return plain or "?", error.end


codecs.register_error("wafer2token", _in_ascii)


def begin(quiet: bool = False) -> None:
    """Make the streams ready for a verb; `quiet` silences its progress."""
    global _quiet
    _quiet = quiet
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="wafer2token")


def end() -> None:
    """Take the moving progress line away, before an answer, a message or the end."""
    global _status
    if _status is not None:
        _status.stop()
        _status = None


def say(text: str) -> None:
    """One step of the progress, on stderr."""
    global _status
    if _quiet:
        return
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        print(text, file=sys.stderr, flush=True)
        return
    if _status is None:
        from rich.console import Console

        _status = Console(stderr=True, markup=False, highlight=False).status(text, spinner="line")
        _status.start()
    else:
        _status.update(text)


def width() -> int:
    """Columns to fill: those of the terminal or of COLUMNS, 80 where there is neither."""
    return max(_LEAST, min(_MOST, shutil.get_terminal_size((_DEFAULT, 24)).columns))


def _styled() -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    forced = os.environ.get("FORCE_COLOR")
    return forced != "0" if forced else sys.stdout.isatty()


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if _styled() and text.strip() else text


def line(text: str = "", indent: int = 0, hang: int = 2) -> None:
    """Print a sentence, wrapped; the lines after its first stand `hang` further in."""
    end()
    for part in _wrapped(text, indent, hang):
        print(part)


def _wrapped(text: str, indent: int, hang: int) -> list[str]:
    first, later = " " * indent, " " * (indent + hang)
    wrapped = textwrap.wrap(
        text, width(), initial_indent=first, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    )
    return wrapped or [""]


def whole(text: str) -> None:
    """Print a line that is to be copied, such as a path or a command, unbroken whatever its length."""
    end()
    print(text)


def head(text: str) -> None:
    """Print a heading after an empty line."""
    end()
    print()
    for part in _wrapped(text, 0, 2):
        print(_bold(part))


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> None:
    """Print rows in columns; the first `words` columns are text and wrap, the others are numbers and stand right.

    Where the numbers leave too little for the text, each row is printed as a small list instead.
    """
    end()
    if not rows:
        return
    sizes = [max(len(r[k]) for r in [heads, *rows]) for k in range(len(heads))]
    numbers = sum(sizes[words:]) + 2 * (len(heads) - 1)
    room = width() - numbers
    if room < min(sum(sizes[:words]), _LEAST_TEXT * words):
        _lists(heads, rows)
        return
    texts = _shared(sizes[:words], room)
    cells = [*texts, *sizes[words:]]
    for part in _rows(heads, cells, words):
        print(_bold(part))
    for row in rows:
        print("\n".join(_rows(row, cells, words)))


def _shared(sizes: Sequence[int], room: int) -> list[int]:
    """Widths of text columns: each its own size where all fit, else the widest give way."""
    out = list(sizes)
    while sum(out) > room:
        out[out.index(max(out))] -= 1
    return out


def _rows(row: Sequence[str], sizes: Sequence[int], words: int) -> list[str]:
    """One row of a table as lines: text cells wrapped, numbers on the first line."""
    parts = [textwrap.wrap(cell, sizes[k]) or [""] if k < words else [cell] for k, cell in enumerate(row)]
    out = []
    for n in range(max(len(p) for p in parts)):
        cells = [p[n] if n < len(p) else "" for p in parts]
        out.append(
            "  ".join(
                f"{c:<{w}}" if k < words else f"{c:>{w}}" for k, (c, w) in enumerate(zip(cells, sizes, strict=True))
            ).rstrip()
        )
    return out


def _lists(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for row in rows:
        line(row[0])
        for name, cell in zip(heads[1:], row[1:], strict=True):
            if cell:
                line(f"{name}: {cell}", indent=2)


def amount(value: float | None) -> str:
    """A number of a table: three digits, thousands separated, in millions and billions above a million.

    >>> amount(9664896.2), amount(2.8517), amount(-23454781323.0), amount(0.0), amount(None)
    ('9.66 M', '2.85', '-23.5 bn', '0', '-')
    """
    if value is None or value != value or abs(value) == float("inf"):
        return "-"
    for unit, sign in ((1e9, " bn"), (1e6, " M")):
        if abs(value) >= 0.9995 * unit:
            return f"{brief(value / unit)}{sign}"
    return f"{value:,.0f}" if abs(value) >= 1000 else brief(value)


def sparkline(values: Sequence[float], columns: int = 40, encoding: str | None = None) -> str:
    """Shares from 0 to 1 as bars, one a value (or the mean of a few where there are more than `columns`).

    Where the encoding has no bars, digits: tenths, 9 for nine tenths and more. A missing value is a blank.

    >>> sparkline([0.0, 0.5, 1.0], encoding="utf-8"), sparkline([0.0, 0.5, 1.0, float("nan")], encoding="ascii")
    ('▁▅█', '059 ')
    """
    signs = _BARS
    try:
        _BARS.encode(encoding or sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        signs = "0123456789"
    step = math.ceil(len(values) / columns)
    shares = [values[k : k + step] for k in range(0, len(values), step)]
    return "".join(_sign([v for v in part if v == v], signs) for part in shares)


def _sign(values: Sequence[float], signs: str) -> str:
    if not values:
        return " "
    share = min(1.0, max(0.0, sum(values) / len(values)))
    return signs[min(len(signs) - 1, int(share * len(signs)))]
