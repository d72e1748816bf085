"""The `cases` contract: published cost questions answered through general public functions and one vocabulary table.

`data/checks/case_vocabulary.csv` gives, for an input key, its factor to the base unit, and for an output quantity the
dotted function and, per argument, an expression of input keys (`a*b+c`), alternatives split by `|`, a trailing `?` for
an argument that may be left out. Several rows of one output are tried in order. Nothing depends on case or source.
"""

from __future__ import annotations

import ast
import csv
import difflib
import importlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from supply.files import whole_text
from supply.input_table import InputTableError, read_input_table
from supply.input_text import InputTextError, parse_json
from supply.paths import data_file

__all__ = ["CaseAnswer", "CasesError", "answer_case", "answer_cases", "cases_file"]

READ = ("case_id", "inputs_json", "output_quantity")
ADDED = ("computed", "formula", "reason")


class CasesError(ValueError):
    """The case file cannot be read; the message names the file and what it lacks."""


class _MissingError(KeyError):
    """An expression names an input key that the case does not have."""


@dataclass(frozen=True)
class CaseAnswer:
    """The answer to one case: value in the case's unit (None where it cannot be given), the function, and why not."""

    computed: float | None
    formula: str
    reason: str


@dataclass(frozen=True)
class _Input:
    kind: str
    scale: float
    compares: str
    many: bool


@dataclass(frozen=True)
class _Recipe:
    function: str
    arguments: Mapping[str, tuple[str, ...]]
    optional: frozenset[str]
    result_scale: float


@lru_cache(maxsize=1)
def _vocabulary() -> tuple[dict[str, _Input], dict[str, list[_Recipe]]]:
    inputs: dict[str, _Input] = {}
    outputs: dict[str, list[_Recipe]] = {}
    with data_file("checks", "case_vocabulary.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if row["role"] == "input":
                inputs[row["name"]] = _Input(
                    row["kind"], float(row["scale"]), row["arguments"], row["type_or_unit"] == "list"
                )
            else:
                outputs.setdefault(row["name"], []).append(_recipe(row))
    return inputs, outputs


def _recipe(row: Mapping[str, str]) -> _Recipe:
    arguments: dict[str, tuple[str, ...]] = {}
    optional = set()
    for part in row["arguments"].split(";"):
        name, _, expressions = part.partition("=")
        if expressions.endswith("?"):
            optional.add(name)
            expressions = expressions[:-1]
        arguments[name] = tuple(expressions.split("|"))
    return _Recipe(row["function"], arguments, frozenset(optional), float(row["result_scale"]))


def _evaluate(expression: str, values: Mapping[str, Any]) -> Any:
    """Value of an expression of input keys, numbers, quoted words and + * /."""
    return _walk(ast.parse(expression, mode="eval").body, values)


def _walk(node: ast.expr, values: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in values:
            raise _MissingError(node.id)
        return values[node.id]
    if isinstance(node, ast.BinOp):
        left, right = _walk(node.left, values), _walk(node.right, values)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.Div):
            return left / right
    raise CasesError(f"case_vocabulary.csv: {ast.unparse(node)!r} is not an expression of input keys with + * /")


def _arguments(recipe: _Recipe, values: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, expressions in recipe.arguments.items():
        missing: list[str] = []
        for expression in expressions:
            try:
                found[name] = _evaluate(expression, values)
                break
            except _MissingError as problem:
                missing.append(str(problem.args[0]))
        else:
            if name not in recipe.optional:
                raise _MissingError(" or ".join(dict.fromkeys(missing)))
    return found


def _function(dotted: str) -> Any:
    module, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(module), name)


#: No price, count or rate is beyond this; powers and products of inputs stay finite.
LARGEST = 1e24


def _number(value: Any, many: bool) -> Any:
    """A finite number of plausible size, or an array of them where a list is meant; None otherwise."""
    if isinstance(value, list):
        numbers = [_number(v, False) for v in value]
        usable = many and numbers and None not in numbers
        return np.array(numbers) if usable else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        return None
    return float(value)


@dataclass(frozen=True)
class _Values:
    """Numeric inputs in base units, keys without a vocabulary row, and inputs that are no number (shown as text)."""

    numbers: Mapping[str, Any]
    unknown: tuple[str, ...]
    unusable: Mapping[str, str]


def _numbers(inputs: Mapping[str, Any]) -> _Values:
    known, _ = _vocabulary()
    values: dict[str, Any] = {}
    unusable: dict[str, str] = {}
    for key, value in inputs.items():
        if key not in known or known[key].kind == "text" or value is None:
            continue
        number = _number(value, known[key].many)
        if number is None:
            unusable[key] = repr(value)[:60]
        else:
            values[key] = number * known[key].scale
    return _Values(values, tuple(sorted(k for k in inputs if k not in known)), unusable)


def _printed_notes(inputs: Mapping[str, Any], values: Mapping[str, Any], computed: float) -> list[str]:
    """Remarks where a figure that the source prints beside its inputs does not follow from them."""
    known, _ = _vocabulary()
    notes = []
    for key in inputs:
        if key not in values or known[key].kind != "printed":
            continue
        try:
            expected = float(_evaluate(known[key].compares, {**values, "computed": computed}))
        except (_MissingError, ZeroDivisionError, FloatingPointError):
            continue
        if not expected or np.ndim(values[key]):
            continue
        if abs(values[key] - expected) > 0.01 * abs(expected):
            notes.append(
                f"{key} = {values[key]:g} does not follow from the inputs: they give {expected:g} "
                f"({values[key] / expected - 1:+.1%})"
            )
    return notes


def answer_case(output_quantity: str, inputs: Mapping[str, Any]) -> CaseAnswer:
    """Answer one case from its output quantity and inputs.

    >>> answer = answer_case("price_per_gpu_hour", {"gpus": 8, "instance_price_usd_per_hour": 39.33})
    >>> round(answer.computed, 3), answer.formula
    (4.916, 'econ.prices.price_per_accelerator_hour')
    """
    _, outputs = _vocabulary()
    recipes = outputs.get(output_quantity)
    if recipes is None:
        near = difflib.get_close_matches(output_quantity, outputs, n=3)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        return CaseAnswer(None, "", f"no function answers output_quantity {output_quantity!r}{hint}")
    values = _numbers(inputs)
    lacking: list[str] = []
    for recipe in recipes:
        try:
            with np.errstate(divide="raise", over="raise", invalid="raise", under="ignore"):
                return _answer(recipe, inputs, values)
        except _MissingError as problem:
            lacking.append(str(problem.args[0]))
        except (ArithmeticError, ValueError, TypeError, LookupError, ImportError, AttributeError) as problem:
            return CaseAnswer(None, recipe.function, f"{type(problem).__name__}: {problem}")
    wanted = "; or ".join(dict.fromkeys(lacking))
    text = "".join(f"; {key} = {shown} is no usable number" for key, shown in values.unusable.items())
    return CaseAnswer(None, recipes[0].function, f"inputs lack {wanted}{text}")


def _answer(recipe: _Recipe, inputs: Mapping[str, Any], values: _Values) -> CaseAnswer:
    """The answer of one recipe.

    Raises:
        _MissingError: when an argument has no input.
        ValueError: when the inputs give no finite number.
    """
    arguments = _arguments(recipe, values.numbers)
    computed = float(_function(recipe.function)(**arguments)) * recipe.result_scale
    if not math.isfinite(computed):
        raise ValueError(f"the inputs give {computed}, no finite number")
    notes = _printed_notes(inputs, values.numbers, computed)
    if values.unknown:
        notes.append(f"inputs without a vocabulary row, not used: {', '.join(values.unknown)}")
    notes += [f"{key} = {shown} is no usable number, not used" for key, shown in values.unusable.items()]
    return CaseAnswer(computed, recipe.function, "; ".join(notes))


def answer_cases(rows: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    """Answer rows with the columns of `econ_cases.csv` (`output_value` is never read); adds computed, formula, reason.

    A row that cannot be answered has `computed` empty and a reason.
    """
    answered = []
    for row in rows:
        try:
            inputs = parse_json(row.get("inputs_json") or "")
            if not isinstance(inputs, dict):
                raise TypeError("inputs_json is not an object")
            answer = answer_case(row.get("output_quantity", ""), inputs)
        except (InputTextError, TypeError) as problem:
            answer = CaseAnswer(None, "", f"inputs_json cannot be read: {problem}")
        computed = "" if answer.computed is None else repr(answer.computed)
        answered.append({**row, "computed": computed, "formula": answer.formula, "reason": answer.reason})
    return answered


def cases_file(source: Path | str, target: Path | str) -> int:
    """Answer a CSV of cases into another, same rows and order; lines starting `#` are skipped. Returns the row count.

    Raises:
        CasesError: when the file cannot be read or lacks a column.
    """
    source, target = Path(source), Path(target)
    try:
        columns, cases = read_input_table(source, READ, READ)
    except InputTableError as problem:
        raise CasesError(str(problem)) from problem
    lacking = [c for c in READ if c not in columns]
    if lacking:
        raise CasesError(f"{source}: lacks the column(s) {', '.join(lacking)}; it has {', '.join(columns) or 'none'}")
    rows = answer_cases(cases)
    with whole_text(target) as stream:
        writer = csv.DictWriter(
            stream, [*columns, *(c for c in ADDED if c not in columns)], extrasaction="ignore", lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(rows)
    return len(rows)
