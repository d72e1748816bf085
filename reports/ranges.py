"""Ranges of headline numbers: single inputs moved over theirs (the study of weak inputs), and bands of hour and engine.

A range of the study is printed only beside the number that the study started from, so never beside a rolling plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from reports.catalogue import say
from reports.context import Context
from reports.spans import join
from reports.wording import WIDE, band, count, percent, plain

__all__ = ["Span", "ranged", "study_span", "times", "widest"]

Span = tuple[float, float] | None
_SAME = 0.01
#: An end of a range below this part of the value is printed as zero.
_NOTHING = 0.005


def study_span(c: Context, measure: str, value: float) -> Span:
    """Lowest and highest of a number over all single moves, None where the study did not start from this value."""
    table = c.table("headline")
    if table is None or f"{measure}_base" not in table:
        return None
    base = float(table[f"{measure}_base"].iloc[0])
    if not math.isfinite(base) or abs(base - value) > _SAME * abs(value):
        return None
    ends = table[[f"{measure}_base", f"{measure}_low", f"{measure}_high"]]
    return float(ends.min().min()), float(ends.max().max())


def widest(*spans: Span) -> Span:
    """The lowest and the highest of some ranges.

    >>> widest((1.0, 2.0), None, (0.5, 1.5)), widest(None)
    ((0.5, 2.0), None)
    """
    held = [s for s in spans if s is not None]
    return (min(s[0] for s in held), max(s[1] for s in held)) if held else None


def digits_in(value: float, span: Span) -> int:
    """Significant digits that a range allows: two where it exceeds 10 % of the value, else three, or as many as tell
    its ends and the value apart; three without a range.

    >>> digits_in(8.4, (6.9, 10.2)), digits_in(10.08, (10.04, 10.13)), digits_in(10.08, None)
    (2, 4, 3)
    """
    if span is None or value == 0:
        return 3
    low, high = span
    if high - low > WIDE * abs(value):
        return 2
    digits = 3
    while digits < 5 and len({plain(v, digits) for v in (low, value, high)}) < len({low, value, high}):
        digits += 1
    return digits


def ranged(
    value: float,
    span: Span,
    show: Callable[[float, int], str] = count,
    digits: int | None = None,
    what: str = "",
) -> str:
    """A number with its range in brackets, both at the digits that the range allows; `what`: the thing counted.

    >>> ranged(8.41e6, (6.93e6, 10.29e6), what="wafers"), ranged(8.41e6, None)
    ('8.4 million wafers (6.9 to 10 million)', '8.41 million')
    >>> ranged(0.6154, (0.42, 0.81), percent).replace("\N{NO-BREAK SPACE}", " ")
    '62 % (42 to 81 %)'
    >>> ranged(0.53, (0.00018, 0.65), percent).replace("\N{NO-BREAK SPACE}", " ")
    '53 % (0 to 65 %)'
    """
    held = digits_in(value, span) if span is not None or digits is None else digits
    shown = show(value, held)
    if span is None:
        return say("phrases.of", value=shown, what=what) if what else shown
    low, high = (0.0 if abs(v) < _NOTHING * abs(value) else v for v in span)
    scale, unit = (100.0, "\N{NO-BREAK SPACE}%") if show is percent else (1.0, "")
    ends = join("", [band(scale * low, scale * high, held), unit])
    return say(
        "phrases.ranged_of" if what else "phrases.ranged", value=shown, range=ends, **({"what": what} if what else {})
    )


def times(value: float, ratio: Span) -> Span:
    """A range given as multiples of a value.

    >>> times(2.0, (0.5, 1.5)), times(2.0, None)
    ((1.0, 3.0), None)
    """
    return None if ratio is None else (value * ratio[0], value * ratio[1])
