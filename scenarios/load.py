"""A scenario from its files: parents merged, `set` and command-line edits in order, everything validated at once."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from scenarios import locate
from scenarios.errors import Position, Problem, ScenarioError, did_you_mean
from scenarios.paths_match import Leaf, leaves, match
from scenarios.positions import Document, Loc, dotted, nearest, parse_scalar
from scenarios.schema import SECTIONS, ScenarioFile, specs
from scenarios.values import EDIT_KEYS, FORM_KEYS, TAG, Edit, form_named, keys_of, parse_edit, parse_value
from supply.facts import Catalog, catalog

__all__ = ["AppliedEdit", "Scenario", "load_scenario"]


@dataclass(frozen=True)
class AppliedEdit:
    """One entry of a `set`: the pattern it addresses, the edit, its place, and the level of the file that wrote it."""

    pattern: str
    edit: Edit
    where: Position
    level: int
    raw: Any


@dataclass
class Scenario:
    """A validated scenario: its merged file, its edits in order, and where everything stands."""

    name: str
    file: ScenarioFile
    data: dict[str, Any]
    edits: tuple[AppliedEdit, ...]
    positions: dict[Loc, Position]
    levels: dict[Loc, int]
    source: str
    facts: Catalog = field(repr=False)

    @property
    def title(self) -> str:
        """The title, or the name where there is none."""
        return self.file.title or self.name

    def position(self, loc: Loc) -> Position:
        """Where an entry stands in the files."""
        return nearest(self.positions, loc, self.source)

    @cached_property
    def leaves(self) -> dict[str, Leaf]:
        """Every number of the scenario by path, absent optional ones included."""
        return {leaf.path: leaf for leaf in leaves(self.file, self.facts)}

    def canonical(self) -> dict[str, Any]:
        """What the scenario says, without file names and positions: the input of the run's hash."""
        return {"scenario": self.data, "set": [list(edit) for edit in self.effective_edits()]}

    def level_of(self, loc: Loc) -> int:
        """Level of the file that wrote a number (0 the oldest parent); an edit of an older file does not reach it."""
        for cut in range(len(loc), 0, -1):
            if loc[:cut] in self.levels:
                return self.levels[loc[:cut]]
        return 0

    def effective_edits(self) -> list[tuple[str, Any]]:
        """The edits in order as (pattern, raw); one that a younger file's number cancels in part names what is left."""
        out: list[tuple[str, Any]] = []
        for applied in self.edits:
            found = match(applied.pattern, self.leaves, self.file.groups)
            left = [path for path in found if applied.level >= self.level_of(self.leaves[path].loc)]
            whole = len(left) == len(found)
            out += [(pattern, applied.raw) for pattern in ([applied.pattern] if whole else left)]
        return out


def load_scenario(
    name_or_path: str | Path,
    sets: Sequence[tuple[str, Any]] = (),
    facts: Catalog | None = None,
    name: str | None = None,
) -> Scenario:
    """Read a library scenario or a file, with its parents and edits.

    `sets` are (path, value) pairs as of `--set`: applied after every file; a text value is read as YAML.

    >>> load_scenario("course_11_1").file.objective.kind
    'units'

    Raises:
        ScenarioError: with every problem found, each as `file:line:column: path: message`.
    """
    path = locate.find(name_or_path)
    documents = locate.lineage(path)
    known = catalog() if facts is None else facts
    merged = _Merger()
    for level, document in enumerate(documents):
        merged.add(document, level)
    merged.command_line(sets, len(documents))
    merged.opening(path.parent)
    scenario = Scenario(
        name or path.stem,
        merged.validate(),
        merged.data,
        tuple(merged.edits),
        merged.positions,
        merged.levels,
        documents[-1].file,
        known,
    )
    from scenarios.references import check_references

    problems = [*merged.problems, *check_references(scenario)]
    if problems:
        places = {problem.where for problem in problems}
        told = [f"{problem.path}." for problem in problems]  # an entry of it, or itself, is reported already
        more = (p for p in _further(scenario) if not any(t.startswith(f"{p.path}.") for t in told))
        raise ScenarioError([*problems, *(p for p in more if p.where not in places)])
    return scenario


def _further(scenario: Scenario) -> tuple[Problem, ...]:
    """What else is wrong with the values of a scenario that has problems already, so that all are seen at once."""
    from scenarios.resolve import resolve

    try:
        resolve(scenario)
    except ScenarioError as exc:
        return exc.problems
    except (ValueError, KeyError):  # a broken reference can make the network unbuildable; it is reported already
        return ()
    return ()


def _entries(entries: Any) -> Iterator[tuple[Loc, str, Any]]:
    """(place, path, edit) of a `set`: a mapping, or a list of mappings where one path is edited more than once."""
    if isinstance(entries, dict):
        for pattern, raw in entries.items():
            yield (pattern,), str(pattern), raw
    elif isinstance(entries, list):
        for index, entry in enumerate(entries):
            if not isinstance(entry, dict):
                yield (index,), "", entry
                continue
            for place, pattern, raw in _entries(entry):
                yield (index, *place), pattern, raw


class _Merger:
    """Merges documents from the oldest parent on, and keeps the problems."""

    def __init__(self) -> None:
        self.data: dict[str, Any] = {}
        self.positions: dict[Loc, Position] = {}
        self.levels: dict[Loc, int] = {}
        self.edits: list[AppliedEdit] = []
        self.problems: list[Problem] = []
        self.file = ""

    def add(self, document: Document, level: int) -> None:
        self.file = document.file
        body = copy.deepcopy(document.data)
        entries = body.pop("set", None)
        body.pop("extends", None)
        self._start_moved(body, document)
        self._merge(self.data, body, (), document, level)
        if entries is None:
            return
        for loc, pattern, raw in _entries(entries):
            self._set(pattern, raw, document.positions, ("set", *loc), level, document.file)
        if not isinstance(entries, (dict, list)):
            where = document.position(("set",))
            self.problems.append(Problem(where, "set", "`set` maps a path to an edit or a value"))

    def opening(self, beside: Path) -> None:
        """Fill the opening from another run where the scenario asks for it."""
        from scenarios.opening_state import OpeningError, fill_opening

        try:
            level = self.levels.get(("opening", "from_run"), 0)
            fill_opening(self.data, beside, lambda loc: self.levels.get(loc, -1) >= level > 0)
        except (OpeningError, ValueError) as exc:
            place: Loc = ("opening", "from_run")
            self.problems.append(Problem(nearest(self.positions, place, self.file), dotted(place), str(exc)))

    def _start_moved(self, body: dict[str, Any], document: Document) -> None:
        """A child that starts at another time must say what is there at the start."""
        old, new = self.data.get("horizon"), body.get("horizon")
        if not isinstance(old, dict) or not isinstance(new, dict) or "start" not in new or "opening" in body:
            return
        if new["start"] != old.get("start"):
            where = document.position(("horizon", "start"))
            message = (
                f"the start moves from {old.get('start')} to {new['start']}: state `opening` (from_run, or values)"
            )
            self.problems.append(Problem(where, "horizon.start", message))

    def command_line(self, sets: Iterable[tuple[str, Any]], level: int) -> None:
        for number, (pattern, raw) in enumerate(sets, start=1):
            value = parse_scalar(raw) if isinstance(raw, str) else raw
            where = Position(f"--set #{number}", 1, 1)
            self._set(pattern, value, {("set", pattern): where}, ("set", pattern), level, where.file)

    def _merge(self, base: dict[str, Any], new: dict[str, Any], loc: Loc, document: Document, level: int) -> None:
        for key, value in new.items():
            here = (*loc, key)
            old = base.get(key)
            part = here[0] in SECTIONS and len(here) <= 2  # a SKU has a field `value` and is no value for it
            if isinstance(old, dict) and isinstance(value, dict) and (part or not (_is_value(old) or _is_value(value))):
                self.positions.setdefault(here, document.positions.get(here, Position(document.file, 1, 1)))
                self._merge(base[key], value, here, document, level)
                continue
            base[key] = value
            for stale in [p for p in self.positions if p[: len(here)] == here]:
                del self.positions[stale]
            for place, where in document.positions.items():
                if place[: len(here)] == here:
                    self.positions[place] = where
                    self.levels[place] = level

    def _set(self, pattern: str, raw: Any, where: dict[Loc, Position], loc: Loc, level: int, file: str) -> None:
        place = nearest(where, loc, file)
        if pattern in ("", "extends", "set"):
            message = "`set` maps a path to an edit or a value" if not pattern else f"`{pattern}` stands in a file only"
            self.problems.append(Problem(place, dotted(loc), message))
            return
        if _structural(pattern):
            self._assign(pattern, raw, place, level)
            return
        try:
            edit = parse_edit(raw)
        except ValidationError as exc:
            for error in exc.errors():
                below = tuple(p for p in error["loc"] if not str(p).startswith(TAG))
                message = _message(error, below, ("set", *below))
                inner = nearest(where, (*loc, *below), file)
                self.problems.append(Problem(inner, dotted(("set", pattern, *below)), message))
            return
        self.edits.append(AppliedEdit(pattern, edit, place, level, raw))

    def _assign(self, pattern: str, raw: Any, where: Position, level: int) -> None:
        """`set` of a word or switch (objective, a window, a region): the entry of the file itself is replaced."""
        if isinstance(raw, dict) and set(raw) == {"replace"}:
            raw = raw["replace"]
        parts = tuple(pattern.split("."))
        target = self.data
        for depth, part in enumerate(parts[:-1]):
            inner = target.setdefault(part, {}) if depth == 0 else target.get(part)
            if isinstance(inner, str) and part in ("objective", "regime"):
                inner = target[part] = {"kind": inner}
            if not isinstance(inner, dict):
                hint = did_you_mean(part, [k for k in target if isinstance(k, str)])
                self.problems.append(
                    Problem(where, f"set.{pattern}", f"there is no {part!r} in {dotted(parts[:depth])}{hint}")
                )
                return
            target = inner
        target[parts[-1]] = raw
        self.positions[parts] = where
        self.levels[parts] = level

    def validate(self) -> ScenarioFile:
        for section in ("horizon", "materials", "processes"):
            self.data.setdefault(section, None)
            if self.data[section] is None:
                del self.data[section]
        self._costs(("costs",), self.data.get("costs"))
        try:
            return ScenarioFile.model_validate(self.data)
        except ValidationError as exc:
            places = [self._note(error) for error in exc.errors()]
        sound = copy.deepcopy(self.data)
        for loc in places:
            _drop(sound, loc)
        try:  # the rest of the file may hold more problems: go on without the wrong entries
            return ScenarioFile.model_validate(sound)
        except ValidationError as exc:
            raise ScenarioError(self.problems) from exc

    def _costs(self, loc: Loc, held: Any) -> None:
        """`costs` is a tree of numbers under free names: an entry that is none is a problem, and is left out."""
        for key, raw in list(held.items()) if isinstance(held, dict) else ():
            here = (*loc, key)
            if isinstance(raw, dict) and not _is_value(raw):
                self._costs(here, raw)
                continue
            try:
                parse_value(raw)
            except ValidationError as exc:
                error = exc.errors()[0]
                below = tuple(p for p in error["loc"] if not str(p).startswith(TAG))
                where = nearest(self.positions, (*here, *below), self.file)
                message = _message(error, below, (*here, *below))
                self.problems.append(Problem(where, dotted((*here, *below)), message))
                del held[key]

    def _note(self, error: Any) -> Loc:
        """Record one validation error; returns its place."""
        loc: Loc = tuple(p for p in error["loc"] if not str(p).startswith(TAG))
        if loc and loc[-1] == "[key]":
            loc = loc[:-1]
        message = _message(error, loc, loc)
        self.problems.append(Problem(nearest(self.positions, loc, self.file), dotted(loc), message))
        return loc


def _drop(data: Any, loc: Loc) -> None:
    """Take an entry out of nested data, when it is there."""
    for part in loc[:-1]:
        inner = data.get(part) if isinstance(data, dict) else None
        if inner is None:
            return
        data = inner
    if isinstance(data, dict) and loc:
        data.pop(loc[-1], None)


def _is_value(raw: dict[str, Any]) -> bool:
    from scenarios.values import form_of

    return form_of(raw) != f"{TAG}number"


def _structural(pattern: str) -> bool:
    """Whether a path names a word, switch or window of the file rather than a number."""
    parts = pattern.split(".")
    head = parts[0]
    if "*" in pattern or len(parts) == 1:
        return (
            head in ScenarioFile.model_fields
            and head not in ("discount_rate",)
            and head not in SECTIONS
            and len(parts) == 1
        )
    if head in ("horizon", "objective", "regime", "opening"):
        return head != "opening" or parts[1] in ("at_capacity", "from_run", "note")
    if head in SECTIONS and len(parts) == 3:
        model = SECTIONS[head]
        keys = {info.alias or name for name, info in model.model_fields.items()}
        return parts[2] in keys - set(specs(model))
    return head in ("groups", "workloads", "tasks")


def _allowed(loc: Loc, inside: str) -> list[str]:
    """Keys that may stand at a place, for the hint at a misspelt one; `inside` is the tag of the form it stands in."""
    if (form := form_named(inside)) is not None:
        return keys_of(form)
    if len(loc) == 1:
        return [*(info.alias or name for name, info in ScenarioFile.model_fields.items()), "extends", "set"]
    model: type[BaseModel] | None = None
    if loc[0] == "set":
        model = Edit
    elif loc[0] in SECTIONS and len(loc) == 3:
        model = SECTIONS[str(loc[0])]
    elif len(loc) == 2 and str(loc[0]) in ScenarioFile.model_fields:
        kind = ScenarioFile.model_fields[str(loc[0])].annotation
        model = kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None
    if model is None:
        return list(FORM_KEYS)
    return [info.alias or name for name, info in model.model_fields.items()]


def _message(error: Any, loc: Loc, schema_loc: Loc) -> str:
    kind, text = error["type"], str(error["msg"]).removeprefix("Value error, ")
    if kind == "extra_forbidden":
        inside = next((str(p) for p in reversed(error["loc"][:-1]) if not isinstance(p, int)), "")
        return f"unknown key {str(loc[-1])!r}{did_you_mean(str(loc[-1]), _allowed(schema_loc, inside))}"
    if kind == "missing":
        return f"{str(loc[-1])!r} is required"
    if kind == "value_error":
        shown = error.get("input")
        if schema_loc[:1] != ("set",) and isinstance(shown, dict) and any(k in shown for k in EDIT_KEYS):
            return f"an edit ({', '.join(k for k in EDIT_KEYS if k in shown)}) stands only under `set`"
        return text
    got = error.get("input")
    return f"{text[:1].lower()}{text[1:]} (got {json.dumps(got, default=str)[:60]})"
