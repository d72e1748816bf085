"""Words that remember their numbers: a printed number carries its unrounded value into every format of a report.

`Number` and `Words` are strings, so whatever prints them needs no change; the page writes each number as a
`<data value="...">` element, from which a reader or a test gets the value behind the digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, SupportsIndex

__all__ = ["Number", "Words", "fill", "join", "number", "pieces"]

_FIELD = re.compile(r"\{(\w+)\}")


class Number(str):
    """A printed number and the value behind it.

    >>> n = Number("8.4 million", 8_412_345.0)
    >>> n, n.value
    ('8.4 million', 8412345.0)
    """

    value: float

    def __new__(cls, text: str, value: float) -> Number:
        """Text as printed, value unrounded."""
        made = super().__new__(cls, text)
        made.value = float(value)
        return made

    def __add__(self, other: str) -> Words:
        return join("", [self, other])

    def __radd__(self, other: str) -> Words:
        return join("", [other, self])


class Words(str):
    """Text made of plain words and numbers, in order.

    >>> w = fill("{n} of {m}", {"n": Number("3", 3), "m": 12})
    >>> w, [p.value for p in w.pieces if isinstance(p, Number)]
    ('3 of 12', [3.0, 12.0])
    """

    pieces: tuple[str, ...]

    def __new__(cls, parts: Iterable[str]) -> Words:
        """Pieces in order; empty ones are dropped."""
        held = tuple(p for p in parts if p)
        made = super().__new__(cls, "".join(held))
        made.pieces = held
        return made

    def __add__(self, other: str) -> Words:
        return join("", [self, other])

    def __radd__(self, other: str) -> Words:
        return join("", [other, self])

    def strip(self, chars: str | None = None, /) -> Words:
        """Without spaces at its ends; numbers kept."""
        held = list(self.pieces)
        if held and not isinstance(held[0], Number):
            held[0] = held[0].lstrip(chars)
        if held and not isinstance(held[-1], Number):
            held[-1] = held[-1].rstrip(chars)
        return Words(held)

    def capitalized(self) -> Words:
        """With a capital first letter."""
        if not self.pieces or isinstance(self.pieces[0], Number):
            return self
        return Words([self.pieces[0][:1].upper() + self.pieces[0][1:], *self.pieces[1:]])

    def __getitem__(self, key: SupportsIndex | slice, /) -> str:
        return str.__getitem__(self, key)


def pieces(text: str) -> tuple[str, ...]:
    """Plain words and numbers of a text in order; a plain string is one piece."""
    return text.pieces if isinstance(text, Words) else (text,)


def join(separator: str, texts: Iterable[str]) -> Words:
    """`str.join` that keeps the numbers.

    >>> len(join(", ", [Number("1", 1), "two"]).pieces)
    3
    """
    out: list[str] = []
    for k, text in enumerate(texts):
        if k and separator:
            out.append(separator)
        out += pieces(text)
    return Words(out)


def fill(template: str, fields: Mapping[str, Any]) -> Words:
    """A template with its {fields} filled in; whole numbers print with thousands separators and are remembered.

    Raises:
        KeyError: a field of the template that is not given.
    """
    parts = _FIELD.split(template)
    out: list[str] = []
    for k, part in enumerate(parts):
        if k % 2 == 0:
            out.append(part)
            continue
        value = fields[part]
        whole = isinstance(value, int) and not isinstance(value, bool)
        out += [Number(f"{value:,}", value)] if whole else pieces(value if isinstance(value, str) else str(value))
    return Words(out)


def number(value: float, spec: str) -> Number:
    """A number printed by a format specification.

    >>> number(0.256, ".1f"), number(1234, ",")
    ('0.3', '1,234')
    """
    return Number(f"{value:{spec}}", float(value))
