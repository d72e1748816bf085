"""All words of a report in one file a language: English ships, any other is a copy with its words.

The sentences are templates with named {fields}; `say` fills one in the language in use. A language is put in use by
`using` around the making of a report, so that no function carries it along.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from reports.spans import Words, fill
from scenarios.errors import Position, Problem, ScenarioError, did_you_mean
from scenarios.positions import Document, read_document, read_text

__all__ = ["Catalogue", "columns", "english", "read_catalogue", "say", "spoken", "using"]

_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Catalogue:
    """Words by dotted key; a key that a translation leaves out keeps its English words."""

    language: str
    words: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        """Words of a dotted key.

        >>> english()["sections.power"]
        'Power'
        """
        return self.words[name]

    def group(self, name: str) -> dict[str, str]:
        """Keys under a group, without its name."""
        return {k.removeprefix(f"{name}."): v for k, v in self.words.items() if k.startswith(f"{name}.")}


@lru_cache(maxsize=1)
def english() -> Catalogue:
    """The catalogue that ships."""
    text = (files("reports") / "text" / "en.yaml").read_text(encoding="utf-8")
    data = read_text(text, "en.yaml").data
    return Catalogue(str(data.pop("language")), dict(_leaves(data)))


def _leaves(data: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        name = f"{above}.{key}" if above else str(key)
        if isinstance(value, Mapping):
            yield from _leaves(value, name)
        else:
            yield name, value


_IN_USE: ContextVar[Catalogue | None] = ContextVar("catalogue", default=None)


def spoken() -> Catalogue:
    """The catalogue in use, English unless `using` says otherwise."""
    return _IN_USE.get() or english()


@contextmanager
def using(catalogue: Catalogue) -> Iterator[None]:
    """Put a catalogue in use for what is made inside the block."""
    token = _IN_USE.set(catalogue)
    try:
        yield
    finally:
        _IN_USE.reset(token)


def say(key: str, /, **fields: Any) -> Words:
    """The words of a key in the language in use, filled in; numbers among the fields are remembered.

    >>> say("tables.prices_now.caption", period="2026-Q1")
    'Prices in 2026-Q1'

    Raises:
        KeyError: a key that is not in the catalogue, or a field that is not given.
    """
    return fill(spoken()[key], fields)


def columns(table: str, /, **fields: Any) -> list[str]:
    """Column titles of a table, `|` between them; a column that is one {field} with a list stands for several.

    >>> columns("energised_by_region", years=["#2025", "#2026"])
    ['Region', '#2025', '#2026']
    """
    out: list[str] = []
    for part in spoken()[f"tables.{table}.columns"].split("|"):
        title = part.strip()
        many = fields.get(title[1:-1]) if title.startswith("{") and title.endswith("}") else None
        out += many if isinstance(many, list) else [str(fill(title, fields))]
    return out


def read_catalogue(path: Path) -> Catalogue:
    """A translation: the same keys as the English file, or some of them.

    Raises:
        ScenarioError: every unknown key, empty text, changed {field} and changed number of columns at once.
        FileNotFoundError: when there is no such file.
    """
    document = read_document(path)
    problems: list[Problem] = []
    language = document.data.get("language")
    if not isinstance(language, str) or not re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", language):
        message = f"{language!r} is not a language code such as de or pt-BR"
        problems.append(_problem(document, "language", message))
    given = {k: v for k, v in _leaves(document.data) if k != "language"}
    problems += [p for k, v in given.items() if (p := _check(document, k, v)) is not None]
    if problems:
        raise ScenarioError(problems)
    return Catalogue(str(language), {**english().words, **given})


def _check(document: Document, key: str, text: Any) -> Problem | None:
    """What is wrong with the words of a key of a translation."""
    known = english().words
    if key not in known:
        group, _, last = key.rpartition(".")
        near = english().group(group)
        groups = sorted({k.partition(".")[0] for k in known})
        hint = did_you_mean(last, near) if near else did_you_mean(key.partition(".")[0], groups)
        return _problem(document, key, f"no such {'key' if near else 'group'}{hint}")
    if not isinstance(text, str) or not text.strip():
        return _problem(document, key, f"{text!r}: write the words, or leave the key out")
    if wrong := set(_FIELD.findall(text)) - set(_FIELD.findall(known[key])):
        names = ", ".join(f"{{{w}}}" for w in sorted(wrong))
        return _problem(document, key, f"{names} is not filled in; the English has {known[key]!r}")
    if key.endswith(".columns") and _shape(text) != _shape(known[key]):
        return _problem(document, key, f"keep the columns and their # and {{fields}}: {known[key]!r}")
    return None


def _shape(titles: str) -> list[str]:
    """What may not change in column titles: how many, which hold numbers, which are filled in."""
    parts = [p.strip() for p in titles.split("|")]
    return [p if p.startswith("{") else p[:1].replace(p[:1], "#" if p.startswith("#") else "") for p in parts]


def _problem(document: Document, key: str, message: str) -> Problem:
    loc = tuple(key.split("."))
    where = document.position(loc) if document.positions else Position(document.file, 1, 1)
    return Problem(where, key, message)
