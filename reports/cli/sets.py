"""`--set PATH=VALUE`, read with the limits of scenario files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reports.cli.exits import UsageError

__all__ = ["parse_sets"]

#: What stands before a value, so that it reads as the entry of a file.
_KEY = "value: "


def parse_sets(texts: Sequence[str]) -> list[tuple[str, Any]]:
    """`PATH=VALUE` texts as (path, value); the value is read as in a scenario file, so `{scale: 0.8}` is an edit.

    >>> parse_sets(["resources.power_us.capacity={scale: 0.8}", "discount_rate=0.08"])
    [('resources.power_us.capacity', {'scale': 0.8}), ('discount_rate', 0.08)]

    Raises:
        UsageError: for a text without `=`, or with a value that a scenario file could not hold; the message counts the
        options (`--set #2`).
    """
    out = []
    for number, text in enumerate(texts, start=1):
        path, equals, value = text.partition("=")
        if not equals or not path.strip():
            form = "write PATH=VALUE, e.g. resources.power_us.capacity={scale: 0.8}"
            raise UsageError(f"--set #{number}: {text[:60]!r}: {form}")
        out.append((path.strip(), _value(value, f"--set #{number}: {path.strip()[:60]}")))
    return out


def _value(text: str, place: str) -> Any:
    """The value of one option."""
    from scenarios.errors import ScenarioError
    from scenarios.positions import read_text

    try:
        data = read_text(f"{_KEY}{text}\n", place).data
    except ScenarioError as exc:
        told = [f"{place}: column {max(1, p.where.column - len(_KEY))} of the value: {p.message}" for p in exc.problems]
        raise UsageError("\n".join(told)) from exc
    if len(data) != 1:
        raise UsageError(f"{place}: {text[:60]!r}: give one value; lines below it are not read")
    return data[_KEY.partition(":")[0]]
