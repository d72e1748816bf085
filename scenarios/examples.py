"""The worked examples of the two source texts, each computed through the public functions that models use.

`data/checks/worked_examples.csv` names, per figure, a dotted function, its arguments (a value may be a nested
`{"call": function, "arguments": {...}}`, `"*"` holds positional ones), and what to pick from the result.
"""

from __future__ import annotations

import csv
import importlib
import inspect
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from supply.paths import data_file

__all__ = ["ExampleError", "ExampleRow", "run_examples"]


class ExampleError(ValueError):
    """A worked example cannot be computed: its function is missing or refuses the arguments; the message says which."""


@dataclass(frozen=True)
class ExampleRow:
    """One figure: what the text says, what the function gives, and whether they agree within the row's tolerance."""

    id: str
    topic: str
    expected: float
    computed: float | None
    unit: str
    function: str
    illustrative: bool
    passed: bool
    reason: str = ""


@lru_cache(maxsize=1)
def _rows() -> tuple[Mapping[str, str], ...]:
    with data_file("checks", "worked_examples.csv").open(encoding="utf-8", newline="") as stream:
        return tuple(csv.DictReader(stream))


@lru_cache(maxsize=256)
def _called(dotted: str, arguments_json: str) -> Any:
    """Result of a function; the same call serves every figure that is read from it."""
    arguments = json.loads(arguments_json)
    module, _, name = dotted.rpartition(".")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as problem:
        raise ExampleError(f"{dotted} does not exist: {problem}") from problem
    keywords = {key: _value(value) for key, value in arguments.items() if key != "*"}
    positional = [_value(value) for value in arguments.get("*", ())]
    if positional:
        # Positional values follow the named ones in the order of the signature.
        named = [keywords.pop(key) for key in inspect.signature(function).parameters if key in keywords]
        positional = [*named, *positional]
    try:
        return function(*positional, **keywords)
    except (TypeError, ValueError) as problem:
        raise ExampleError(f"{dotted} refuses {arguments_json}: {problem}") from problem


def _value(value: Any) -> Any:
    if isinstance(value, dict) and "call" in value:
        return _pick(_called(value["call"], json.dumps(value.get("arguments", {}))), value.get("pick", ""))
    if isinstance(value, list):
        return [_value(item) for item in value]
    return value


def _pick(result: Any, path: str) -> Any:
    """Follow a path into a result: names are keys or attributes, `name(3, 4)` calls a method, `>= 0` tests it."""
    test = re.fullmatch(r"(.*?)\s*>=\s*([-\d.e]+)", path)
    if test:
        return float(_pick(result, test[1])) >= float(test[2])
    for step in filter(None, path.split("/")):
        call = re.fullmatch(r"(\w+)\((.*)\)", step)
        if call:
            result = getattr(result, call[1])(*json.loads(f"[{call[2]}]"))
        elif hasattr(result, "__getitem__") and not hasattr(result, step):
            result = result[int(step) if isinstance(result, Sequence) else step]
        else:
            result = getattr(result, step)
    return result


def _agrees(computed: float, expected: float, rel_tol: float) -> bool:
    if rel_tol == 0:
        return computed == expected
    return math.isclose(computed, expected, rel_tol=rel_tol, abs_tol=1e-12)


def _run(row: Mapping[str, str]) -> ExampleRow:
    expected = float(row["value"])
    computed, reason, passed = None, "", False
    try:
        found = _pick(_called(row["function"], row["arguments_json"]), row["pick"])
        computed = float(np.asarray(found, dtype=float))
        passed = _agrees(computed, expected, float(row["rel_tol"]))
        reason = "" if passed else f"differs by more than {row['rel_tol']} of the text's figure"
    except (ExampleError, KeyError, IndexError, AttributeError, TypeError, ValueError) as problem:
        reason = str(problem)
    return ExampleRow(
        row["case_id"],
        row["topic"],
        expected,
        computed,
        row["unit"],
        row["function"],
        row["illustrative"] == "yes",
        passed,
        reason,
    )


def run_examples(ids: Sequence[str] = ()) -> list[ExampleRow]:
    """Compute every worked example (or those of `ids`), in the order of the texts.

    Raises:
        ExampleError: when an id is unknown.
    """
    rows = _rows()
    unknown = set(ids) - {row["case_id"] for row in rows}
    if unknown:
        raise ExampleError(f"no worked example {', '.join(sorted(unknown))}; ids run from {rows[0]['case_id']} to B-16")
    return [_run(row) for row in rows if not ids or row["case_id"] in ids]
