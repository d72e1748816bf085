"""Library case files (workloads, tasks, buyers): YAML into a dataclass, with every number traced to a fact.

A value is a plain YAML value or `{fact: ID}`, optionally with `bound: low` (or high) for an end of the fact's range,
`unit: "..."` to convert it, `times: 2` to scale it.
Unknown keys are errors.
"""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from datetime import date
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from supply.facts import Fact, catalog
from supply.input_files import InputFileError, read_utf8
from supply.input_text import InputTextError, parse_yaml

__all__ = ["fact_ids", "read_case"]

T = TypeVar("T")


def read_case(path: Path, kind: type[T], error: type[ValueError] = ValueError) -> T:
    """Read a YAML file as a dataclass; nested dataclasses are nested mappings.

    Raises:
        error: unreadable file, unknown key (with the nearest known one), missing key, or unknown fact; all with the
            file and the path inside it.
    """
    return typing.cast(T, _convert(_load(path, error), kind, path.name, error))


def fact_ids(path: Path) -> list[str]:
    """Ids of all facts that a case file uses, in file order."""
    found: list[str] = []

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            if "fact" in node:
                found.append(node["fact"])
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(_load(path, ValueError))
    return list(dict.fromkeys(found))


def _load(path: Path, error: type[ValueError]) -> Any:
    try:
        return parse_yaml(read_utf8(path, "case card"))
    except (OSError, InputFileError, InputTextError) as exc:
        raise error(f"{path}: cannot be read: {exc}") from exc


def _convert(node: Any, kind: Any, where: str, error: type[ValueError]) -> Any:
    """`node` as `kind`: a dataclass, a tuple or mapping of them, or a plain value."""
    if isinstance(node, dict) and "fact" in node:
        return _plain(_fact(node, where, error), kind)
    if kind is Any:
        return node
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        options = [a for a in get_args(kind) if a is not type(None)]
        return None if node is None else _convert(node, options[0], where, error)
    if origin is tuple:
        if not isinstance(node, list):
            raise error(f"{where}: expected a list, got {node!r}")
        return tuple(_convert(v, get_args(kind)[0], f"{where}[{i}]", error) for i, v in enumerate(node))
    if dataclasses.is_dataclass(kind):
        return _dataclass(node, kind, where, error)
    if origin is not None and isinstance(node, dict):
        return {k: _convert(v, get_args(kind)[1], f"{where}.{k}", error) for k, v in node.items()}
    return _plain(node, kind)


def _plain(value: Any, kind: Any) -> Any:
    """A scalar as the field wants it: whole numbers as floats or the reverse, ISO text as a date."""
    options = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    if date in options and isinstance(value, str):
        return date.fromisoformat(value)
    if float in options and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if int in options and isinstance(value, float) and value == int(value):
        return int(value)
    return value


def _dataclass(node: Any, kind: Any, where: str, error: type[ValueError]) -> Any:
    if not isinstance(node, dict):
        raise error(f"{where}: expected the keys of {kind.__name__}, got {node!r}")
    hints = get_type_hints(kind)
    known = [f.name for f in dataclasses.fields(kind)]
    for key in node:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known keys: {', '.join(known)}"
            raise error(f"{where}: unknown key {key!r}; {hint}")
    values = {k: _convert(v, hints[k], f"{where}.{k}", error) for k, v in node.items()}
    try:
        return kind(**values)
    except TypeError as exc:
        raise error(f"{where}: {exc}") from exc


def _fact(node: dict[str, Any], where: str, error: type[ValueError]) -> float | str:
    extra = set(node) - {"fact", "unit", "times", "bound"}
    if extra:
        raise error(f"{where}: unknown key {sorted(extra)[0]!r} beside 'fact'; use fact, bound, unit, times")
    try:
        fact = catalog()[node["fact"]]
        if isinstance(fact.value, str):
            return fact.value
        number = _bound(fact, node.get("bound"), where, error)
        if "unit" in node:
            number *= fact.to(node["unit"]) / fact.number
    except ValueError as exc:
        raise error(f"{where}: {exc}") from exc
    if fact.kind == "placeholder":
        raise error(f"{where}: fact {fact.id} is a placeholder and no basis of a cost")
    return number * float(node.get("times", 1))


def _bound(fact: Fact, bound: str | None, where: str, error: type[ValueError]) -> float:
    """The fact's value, or the low or high end of its range."""
    if bound is None:
        return fact.number
    if bound not in ("low", "high"):
        raise error(f"{where}: bound {bound!r} is low or high")
    return fact.range[bound == "high"]
