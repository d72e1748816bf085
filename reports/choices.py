"""What a reader's edition of the report holds: a small YAML file with sections, title, logo, notes and language.

    title: Compute outlook, autumn edition
    subtitle: for the investment committee
    logo: logo.png
    notes: [Prepared for internal use.]
    sections: [binds, supply, {id: costs, title: What it costs us}, inputs]
    text: de.yaml
    studies: [maps]

Every key may be left out. The first page and its warnings always stay; sections left out are named in the notes.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.blocks import Section
from reports.catalogue import Catalogue, english, read_catalogue, say
from scenarios.errors import Position, Problem, ScenarioError, did_you_mean
from scenarios.positions import Document, dotted, read_document
from supply.input_files import InputFileError, read_bytes

if TYPE_CHECKING:
    from reports.market_report import Report

__all__ = ["Choices", "Logo", "apply_choices", "read_choices"]

KEYS = ("title", "subtitle", "logo", "notes", "sections", "text", "studies")
_KINDS = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif"}


@dataclass(frozen=True)
class Logo:
    """A picture file as it stands in the report."""

    data: bytes
    kind: str

    @property
    def uri(self) -> str:
        """Data URI: nothing is fetched, and a script inside an SVG does not run in an <img>."""
        media = "image/svg+xml" if self.kind == "svg" else f"image/{self.kind}"
        return f"data:{media};base64,{base64.b64encode(self.data).decode('ascii')}"


@dataclass(frozen=True)
class Choices:
    """Contents of a choice file, checked. `sections`: id and own title (empty: the usual one), in order; None: all."""

    title: str = ""
    subtitle: str = ""
    logo: Logo | None = None
    notes: tuple[str, ...] = ()
    sections: tuple[tuple[str, str], ...] | None = None
    catalogue: Catalogue = field(default_factory=english)
    studies: tuple[Path, ...] = ()
    file: str = ""


def read_choices(path: Path) -> Choices:
    """Read and check a choice file; logo and text file are looked for beside it.

    Raises:
        ScenarioError: every problem of the file at once, each with its line.
        FileNotFoundError: when there is no such file.
    """
    document = read_document(path)
    problems: list[Problem] = []
    for key in document.data:
        if key not in KEYS:
            _add(problems, document, (key,), f"no such key{did_you_mean(key, KEYS)}")
    title, subtitle = (_words(document, k, problems) for k in ("title", "subtitle"))
    notes = _notes(document, problems)
    sections = _sections(document, problems)
    logo = _logo(document, path.parent, problems)
    catalogue = _catalogue(document, path.parent, problems)
    studies = _studies(document, path.parent, problems)
    if problems:
        raise ScenarioError(problems)
    return Choices(title, subtitle, logo, notes, sections, catalogue, studies, str(path))


def _add(problems: list[Problem], document: Document, loc: tuple[str | int, ...], message: str) -> None:
    problems.append(Problem(document.position(loc), dotted(loc), message))


def _words(document: Document, key: str, problems: list[Problem]) -> str:
    text = document.data.get(key, "")
    if key in document.data and (not isinstance(text, str) or not text.strip()):
        _add(
            problems, document, (key,), f"{text!r} is not a text: write words, in quotes where they look like a number"
        )
        return ""
    return str(text).strip()


def _notes(document: Document, problems: list[Problem]) -> tuple[str, ...]:
    given = document.data.get("notes", [])
    notes = [given] if isinstance(given, str) else given
    if not isinstance(notes, list):
        _add(problems, document, ("notes",), "is a text or a list of texts")
        return ()
    for k, note in enumerate(notes):
        if not isinstance(note, str) or not note.strip():
            _add(problems, document, ("notes", k), f"{note!r} is not a text")
    return tuple(str(n).strip() for n in notes)


def _studies(document: Document, folder: Path, problems: list[Problem]) -> tuple[Path, ...]:
    """Folders of stored studies, looked for beside the choice file."""
    given = document.data.get("studies", [])
    names = given if isinstance(given, list) else [given]
    for k, name in enumerate(names):
        if not isinstance(name, str) or not (folder / name).is_dir():
            _add(problems, document, ("studies", k), f"no folder {name!r} beside this file")
    return tuple(folder / str(name) for name in names)


def _sections(document: Document, problems: list[Problem]) -> tuple[tuple[str, str], ...] | None:
    given = document.data.get("sections")
    if "sections" not in document.data:
        return None
    if not isinstance(given, list) or not given:
        _add(problems, document, ("sections",), "is a list of section names, at least one; leave it out for all")
        return None
    known = english().group("sections")
    found: dict[str, str] = {}
    for k, item in enumerate(given):
        name, title = _section(item)
        loc = ("sections", k)
        if not isinstance(name, str) or not isinstance(title, str):
            _add(problems, document, loc, f"{item!r}: write a section name, or {{id: NAME, title: WORDS}}")
        elif name not in known:
            _add(problems, document, loc, f"no section {name!r}{did_you_mean(name, known)}")
        elif name in found:
            _add(problems, document, loc, f"section {name!r} is given twice: keep one")
        else:
            found[name] = title.strip()
    return tuple(found.items())


def _section(item: Any) -> tuple[Any, Any]:
    if isinstance(item, Mapping):
        return (item.get("id"), item.get("title", "")) if set(item) <= {"id", "title"} else (None, "")
    return item, ""


def _logo(document: Document, folder: Path, problems: list[Problem]) -> Logo | None:
    name = _words(document, "logo", problems)
    if not name:
        return None
    place = folder / name
    if not place.is_file():
        _add(problems, document, ("logo",), f"no file {name!r} beside this one")
        return None
    try:
        data = read_bytes(place, "logo")
    except InputFileError as exc:
        _add(problems, document, ("logo",), str(exc))
        return None
    kind = next((k for start, k in _KINDS.items() if data.startswith(start)), "")
    if not kind and b"<svg" in data[:2048]:
        kind = "svg"
    if not kind:
        _add(problems, document, ("logo",), f"{name!r} is no PNG, JPEG, GIF or SVG picture")
        return None
    return Logo(data, kind)


def _catalogue(document: Document, folder: Path, problems: list[Problem]) -> Catalogue:
    name = _words(document, "text", problems)
    if not name:
        return english()
    try:
        return read_catalogue(folder / name)
    except FileNotFoundError:
        _add(problems, document, ("text",), f"no file {name!r} beside this one")
    except ScenarioError as exc:
        problems += exc.problems
    return english()


def apply_choices(report: Report, choices: Choices) -> Report:
    """The edition of a report that a choice file asks for; the report is already in its language.

    Raises:
        ScenarioError: when a chosen section is not in this report, with the reason.
    """
    report.title = choices.title or report.title
    report.subtitle = f"{choices.subtitle}; {report.subtitle}" if choices.subtitle else report.subtitle
    report.logo = choices.logo
    if choices.notes:
        report.sections.insert(0, Section("notes", paragraphs=list(choices.notes)))
    if choices.sections is not None:
        _choose(report, choices)
    return report


def _choose(report: Report, choices: Choices) -> None:
    made = {s.id: s for s in report.sections}
    wanted = dict(choices.sections or ())
    absent = [n for n in wanted if n not in made]
    if absent:
        where = Position(choices.file, 1, 1)
        why = "this report has no such section: its tables are not in the run (make it with `run --report`, or give "
        raise ScenarioError(
            [Problem(where, f"sections.{n}", f"{why}--sample, --previous or several runs)") for n in absent]
        )
    gone = [s.title for s in report.sections if s.id not in {*wanted, "notes"}]
    if "notes" in made and "notes" not in wanted:
        wanted = {"notes": "", **wanted}
    report.sections = [made[n] for n in wanted]
    for section in report.sections:
        section.title = wanted[section.id] or section.title
    if gone:
        _add_note(report, say("fixed.left_out", titles="; ".join(gone)))


def _add_note(report: Report, text: str) -> None:
    """A sentence at the end of the notes, which stand last where there were none."""
    notes = next((s for s in report.sections if s.id == "notes"), None)
    if notes is None:
        notes = Section("notes")
        report.sections.append(notes)
    notes.paragraphs.append(text)
