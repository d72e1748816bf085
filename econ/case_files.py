"""Library case files (workloads, tasks, buyers): YAML into a dataclass, with every number traced to a fact.

A value is a plain YAML value or `{fact: ID}`, optionally with `bound: low` (or high) for an end of the fact's range,
`unit: "..."` to convert it, `times: 2` to scale it.
Unknown keys are errors.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from datetime import date
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

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
        return _plain(_fact(node, where, error), kind, where, error)
    if kind is Any:
        return node
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        options = [a for a in get_args(kind) if a is not type(None)]
        return None if node is None else _convert(node, options[0], where, error)
    if origin is tuple:
        if not isinstance(node, list):
            raise error(f"{where}: expected a list, got {node!r:.80}")
        return tuple(_convert(v, get_args(kind)[0], f"{where}[{i}]", error) for i, v in enumerate(node))
    if dataclasses.is_dataclass(kind):
        return _dataclass(node, kind, where, error)
    if origin is not None and isinstance(node, dict):
        return {k: _convert(v, get_args(kind)[1], f"{where}.{k}", error) for k, v in node.items()}
    return _plain(node, kind, where, error)


def _plain(value: Any, kind: Any, where: str, error: type[ValueError]) -> Any:
    """A scalar as the field wants it: whole numbers as floats or the reverse, ISO text as a date; else refused."""
    if kind is Any:
        return value
    options = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    words = [w for o in options if get_origin(o) is Literal for w in get_args(o)]
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if number and not math.isfinite(_as_float(value)):
        raise error(f"{where}: {value!s:.40} is not a finite number")
    if date in options and isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError as exc:
            raise error(f"{where}: {value!r:.80} is not a day such as 2026-03-31") from exc
    if float in options and number:
        return float(value)
    if int in options and number and value == int(value):
        return int(value)
    plain = tuple(o for o in options if o in (str, bool, date))
    if (
        isinstance(value, plain)
        or (isinstance(value, str) and value in words)
        or (value is None and type(None) in options)
    ):
        return value
    wanted = " or ".join(map(str, words or [getattr(o, "__name__", str(o)) for o in options]))
    raise error(f"{where}: {value!r:.80} is not a value of this field: {wanted} is needed")


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _dataclass(node: Any, kind: Any, where: str, error: type[ValueError]) -> Any:
    if not isinstance(node, dict):
        raise error(f"{where}: expected the keys of {kind.__name__}, got {node!r:.80}")
    hints = get_type_hints(kind)
    known = [f.name for f in dataclasses.fields(kind)]
    for key in node:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known keys: {', '.join(known)}"
            raise error(f"{where}: unknown key {key!r:.80}; {hint}")
    values = {k: _convert(v, hints[k], f"{where}.{k}", error) for k, v in node.items()}
    try:
        return kind(**values)
    except TypeError as exc:
        raise error(f"{where}: {exc}") from exc


def _fact(node: dict[str, Any], where: str, error: type[ValueError]) -> float | str:
    extra = set(node) - {"fact", "unit", "times", "bound"}
    if extra:
        raise error(f"{where}: unknown key {sorted(extra)[0]!r} beside 'fact'; use fact, bound, unit, times")
    times = node.get("times", 1)
    if not isinstance(node["fact"], str) or not isinstance(node.get("unit", ""), str):
        raise error(f"{where}: {node!r:.80}: fact and unit are words")
    if isinstance(times, bool) or not isinstance(times, (int, float)) or not math.isfinite(_as_float(times)):
        raise error(f"{where}: times: {times!r:.80} is not a finite number")
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
    return number * float(times)


def _bound(fact: Fact, bound: str | None, where: str, error: type[ValueError]) -> float:
    """The fact's value, or the low or high end of its range."""
    if bound is None:
        return fact.number
    if bound not in ("low", "high"):
        raise error(f"{where}: bound {bound!r:.80} is low or high")
    return fact.range[bound == "high"]
