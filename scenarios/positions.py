"""YAML text to plain data with the position of every key and value.

ruamel's YAML 1.2 resolver is used as it stands (`1e3` is a number, `no` is text, `010` is ten); a key given twice is
an error. A file is a plain one of at most `supply.input_files.MOST_BYTES`, refused before it is read; it has at most
`MOST_ENTRIES` entries once its anchors are followed, so that a few lines cannot stand for gigabytes; and lists and
mappings at most `MOST_DEPTH` deep.
"""

from __future__ import annotations

import codecs
import math
import warnings
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from scenarios.errors import Position, Problem, ScenarioError
from supply.input_files import InputFileError, read_bytes
from supply.input_text import control_character

__all__ = [
    "MOST_DEPTH",
    "MOST_ENTRIES",
    "Document",
    "Loc",
    "dotted",
    "parse_scalar",
    "read_document",
    "read_text",
]

#: A place in the data: keys and list indices from the top.
Loc = tuple[str | int, ...]
_TAG = "tag:yaml.org,2002:"
_KINDS = frozenset({"null", "bool", "int", "float", "str", "timestamp", "map", "seq"})
#: Limits of one file. The largest library scenario has 130 kB, some 9,000 entries, 12 deep.
MOST_ENTRIES = 200_000
MOST_DEPTH = 60


@dataclass
class Document:
    """The plain data of one file, and where each entry stands (at its key, or at the item of a list)."""

    file: str
    data: dict[str, Any]
    positions: dict[Loc, Position] = field(default_factory=dict)

    def position(self, loc: Loc) -> Position:
        """Position of an entry, or of the nearest parent that is written in the file."""
        return nearest(self.positions, loc, self.file)


def nearest(positions: dict[Loc, Position], loc: Loc, file: str) -> Position:
    """Position of an entry or of its nearest written parent; line 1 of the file where there is none."""
    for cut in range(len(loc), 0, -1):
        if loc[:cut] in positions:
            return positions[loc[:cut]]
    return Position(file, 1, 1)


def dotted(loc: Loc) -> str:
    """A place as a dotted path.

    >>> dotted(("resources", "fab", "capacity"))
    'resources.fab.capacity'
    """
    return ".".join(str(part) for part in loc)


def read_document(path: Path, shown: str | None = None) -> Document:
    """Read a YAML file; `shown` is the name printed in messages (default: the path as given).

    Raises:
        ScenarioError: when the file is too large, not UTF-8, not YAML, not a mapping, or repeats a key.
        FileNotFoundError: when there is no such file.
    """
    file = shown or str(path)
    try:
        raw = read_bytes(path, "scenario").removeprefix(codecs.BOM_UTF8)
    except InputFileError as exc:
        raise _refusal(file, str(exc).removeprefix(f"{path}: ")) from exc
    try:
        return read_text(raw.decode("utf-8"), file)
    except UnicodeDecodeError as exc:
        line = raw.count(b"\n", 0, exc.start) + 1
        message = f"the byte {raw[exc.start]:#04x} is not UTF-8 text: save the file as UTF-8"
        raise ScenarioError([Problem(Position(file, line, 1), "", message)]) from exc


def _refusal(file: str, message: str, line: int = 1, column: int = 1) -> ScenarioError:
    return ScenarioError([Problem(Position(file, line, column), "", message)])


@lru_cache(maxsize=16)
def read_text(text: str, file: str) -> Document:
    """As `read_document`, from text. Documents are remembered: copy their data before changing it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ReusedAnchorWarning)
            node = YAML(typ="safe", pure=True).compose(text)
    except ReusedAnchorWarning as exc:
        raise _refusal(file, "an anchor (&name) is given twice: name each once") from exc
    except MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        where = Position(file, mark.line + 1, mark.column + 1) if mark else Position(file, 1, 1)
        raise ScenarioError([Problem(where, "", f"not valid YAML: {exc.problem or exc.context}")]) from exc
    except ReaderError as exc:
        before = text[: exc.position]
        column = exc.position - before.rfind("\n")
        message = f"the character {exc.character!r} is not allowed in YAML: take it out"
        raise _refusal(file, message, before.count("\n") + 1, column) from exc
    except RecursionError as exc:
        raise _refusal(file, f"lists and mappings stand more than {MOST_DEPTH} deep in each other") from exc
    except (YAMLError, ValueError) as exc:  # a few malformed escapes and directives end in a plain ValueError
        raise _refusal(file, f"not valid YAML: {exc}") from exc
    if node is None:
        return Document(file, {})
    builder = _Builder(file)
    data = builder.build(node, ())
    if not isinstance(data, dict):
        builder.complain(node, (), "a scenario is a mapping of keys such as title, resources, processes")
    if builder.problems:
        raise ScenarioError(builder.problems)
    return Document(file, data, builder.positions)


class _Builder:
    """Walks the node tree once, collecting data, positions and problems."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.positions: dict[Loc, Position] = {}
        self.problems: list[Problem] = []
        self.entries = 0

    def complain(self, node: Node, loc: Loc, message: str) -> None:
        self.problems.append(Problem(self._where(node), dotted(loc), message))

    def _where(self, node: Node) -> Position:
        return Position(self.file, node.start_mark.line + 1, node.start_mark.column + 1)

    def build(self, node: Node, loc: Loc) -> Any:
        self.entries += 1
        if self.entries > MOST_ENTRIES:
            message = (
                f"more than {MOST_ENTRIES:,} entries once its anchors are followed: write less, or keep it as facts"
            )
            raise _refusal(self.file, message, node.start_mark.line + 1, node.start_mark.column + 1)
        if len(loc) > MOST_DEPTH:
            self.complain(node, loc[:4], f"lists and mappings stand more than {MOST_DEPTH} deep in each other")
            raise ScenarioError(self.problems)
        if str(node.tag).removeprefix(_TAG) not in _KINDS:
            self.complain(node, loc, f"the tag {node.tag} is not part of the language: write a plain value")
            return None
        if isinstance(node, MappingNode):
            return self._mapping(node, loc)
        if isinstance(node, SequenceNode):
            items = []
            for index, item in enumerate(node.value):
                self.positions[(*loc, index)] = self._where(item)
                items.append(self.build(item, (*loc, index)))
            return items
        assert isinstance(node, ScalarNode)
        if found := control_character(node.value):
            self.complain(node, loc, f"the control character {found} is no text: take it out")
            return None
        try:
            return _scalar(str(node.tag), node.value)
        except ValueError as exc:
            self.complain(node, loc, str(exc))
            return None

    def _mapping(self, node: MappingNode, loc: Loc) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self.complain(key_node, loc, "a key is a word, not a list or mapping")
                continue
            key = str(key_node.value)
            if found := control_character(key):
                self.complain(key_node, loc, f"the control character {found} in a key is no text: take it out")
                continue
            if key == "<<":
                self.complain(key_node, loc, "merge keys (<<) are not part of the language: use `extends`")
                continue
            place = (*loc, key)
            if key in out:
                first = self.positions[place]
                self.complain(key_node, place, f"the key is given twice (first on line {first.line}): keep one")
                continue
            self.positions[place] = self._where(key_node)
            out[key] = self.build(value_node, place)
        return out


def _scalar(tag: str, text: str) -> Any:
    kind = tag.removeprefix(_TAG)
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind == "int":
        digits = text.replace("_", "")
        if len(digits) > 300:
            raise ValueError(f"{text[:12]}... has {len(digits)} digits: a model cannot use such a number")
        prefix = digits.lstrip("+-")[:2].lower()
        return int(digits, {"0x": 16, "0o": 8, "0b": 2}.get(prefix, 10))
    if kind == "float":
        return _float(text)
    return text


def _float(text: str) -> float:
    word = text.lower().replace("_", "")
    if word.lstrip("+-") in (".inf", ".nan"):
        raise ValueError(f"{text} is not a number that a model can use: give a finite value, or leave the key out")
    number = float(word)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large for a number: give a finite value")
    return number


def parse_scalar(text: str) -> Any:
    """Text of a command line value as YAML would read it: `0.65`, `{scale: 0.9}`, `15000 die/quarter`.

    >>> parse_scalar("{scale: 0.9}")
    {'scale': 0.9}

    Raises:
        ScenarioError: when it is not YAML.
    """
    document = read_text(f"value: {text}\n", "--set")
    if list(document.data) != ["value"]:
        raise _refusal("--set", f"{text!r:.80} is more than one value")
    return document.data["value"]
