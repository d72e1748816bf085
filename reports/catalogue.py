"""Headings and fixed phrases of a report in one file a language: English ships, any other is a copy with its words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.errors import Position, Problem, ScenarioError, did_you_mean
from scenarios.positions import Document, read_document, read_text

if TYPE_CHECKING:
    from reports.market_report import Report

__all__ = ["Catalogue", "english", "read_catalogue", "translate"]

GROUPS = ("first_page", "sections", "captions", "fixed")
_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Catalogue:
    """Words by group and key; a key that a translation leaves out keeps its English words."""

    language: str
    words: Mapping[str, Mapping[str, str]]

    def __getitem__(self, name: str) -> str:
        """Words of `GROUP.KEY`.

        >>> english()["sections.power"]
        'Power'
        """
        group, _, key = name.partition(".")
        return self.words[group][key]


@lru_cache(maxsize=1)
def english() -> Catalogue:
    """The catalogue that ships."""
    text = (files("reports") / "text" / "en.yaml").read_text(encoding="utf-8")
    data = read_text(text, "en.yaml").data
    return Catalogue(str(data["language"]), {g: dict(data[g]) for g in GROUPS})


def read_catalogue(path: Path) -> Catalogue:
    """A translation: the same keys as the English file, or some of them.

    Raises:
        ScenarioError: every unknown key, empty text and changed {field} at once.
        FileNotFoundError: when there is no such file.
    """
    document = read_document(path)
    problems = [_problem(document, (k,), f"no such group{did_you_mean(k, [*GROUPS, 'language'])}")
                for k in document.data if k not in (*GROUPS, "language")]  # fmt: skip
    words: dict[str, dict[str, str]] = {}
    for group in GROUPS:
        known = english().words[group]
        given = document.data.get(group) or {}
        if not isinstance(given, dict):
            problems.append(_problem(document, (group,), "is a mapping of keys to words"))
            continue
        problems += _word_problems(document, group, given)
        words[group] = {**known, **{k: str(v) for k, v in given.items()}}
    language = document.data.get("language")
    if not isinstance(language, str) or not re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", language):
        message = f"{language!r} is not a language code such as de or pt-BR"
        problems.append(_problem(document, ("language",), message))
    if problems:
        raise ScenarioError(problems)
    return Catalogue(str(language), words)


def _word_problems(document: Document, group: str, given: Mapping[str, Any]) -> list[Problem]:
    out = []
    known = english().words[group]
    for key, text in given.items():
        if key not in known:
            out.append(_problem(document, (group, key), f"no such key{did_you_mean(key, known)}"))
        elif not isinstance(text, str) or not text.strip():
            out.append(_problem(document, (group, key), f"{text!r}: write the words, or leave the key out"))
        elif set(_FIELD.findall(text)) - set(_FIELD.findall(known[key])):
            wrong = ", ".join(sorted(set(_FIELD.findall(text)) - set(_FIELD.findall(known[key]))))
            out.append(
                _problem(document, (group, key), f"{{{wrong}}} is not filled in; the English has {known[key]!r}")
            )
    return out


def _problem(document: Document, loc: tuple[str, ...], message: str) -> Problem:
    where = document.position(loc) if document.positions else Position(document.file, 1, 1)
    return Problem(where, ".".join(loc), message)


def translate(report: Report, to: Catalogue) -> Report:
    """Put a report's section titles, first-page labels and table captions into another language, in place.

    Sentences that rules write (paragraphs, headlines of figures) stay English.
    """
    labels = {english().words["first_page"][k]: v for k, v in to.words["first_page"].items()}
    report.answer = [type(line)(labels.get(line.label, line.label), line.text) for line in report.answer]
    for section in report.sections:
        if section.title == english().words["sections"].get(section.id):
            section.title = to.words["sections"][section.id]
        for table in section.tables:
            if (pattern := english().words["captions"].get(table.short)) is not None:
                table.caption = filled(table.caption, pattern, to.words["captions"][table.short])
    report.words, report.language = dict(to.words["fixed"]), to.language
    return report


def filled(text: str, pattern: str, other: str) -> str:
    """A text made from a pattern, made again from another pattern with the same fields; as it is where it differs.

    >>> filled("Prices in 2026-Q1", "Prices in {period}", "Preise, {period}")
    'Preise, 2026-Q1'
    """
    parts = _FIELD.split(pattern)
    shape = "".join(f"(?P<{p}>.+?)" if k % 2 else re.escape(p) for k, p in enumerate(parts))
    found = re.fullmatch(shape, text)
    return _FIELD.sub(lambda m: found[m[1]], other) if found else text
