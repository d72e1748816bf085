"""JSON and small YAML of a user to plain data: no key twice, no NaN, no bomb, never deeper than `MOST_DEPTH`.

Scenario files have a reader of their own, which keeps the place of every entry (`scenarios.positions`).
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

__all__ = ["MOST_DEPTH", "InputTextError", "control_character", "parse_json", "parse_yaml", "shown"]

#: What moves a cursor, hides or turns text round, or is no character: C0 and C1 but tab and line feed, line separators,
#: bidi overrides, surrogates.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")

#: Lists and mappings in each other; a model config has five.
MOST_DEPTH = 60


class InputTextError(ValueError):
    """A text that is not plain JSON or YAML; the message says where and what to write."""


def control_character(text: str) -> str:
    r"""The first control character of a text as an escape; empty where there is none.

    >>> control_character("a\x1b[31m"), control_character("a\tb\n")
    ('\\x1b', '')
    """
    found = _CONTROL.search(text)
    return ascii(found[0])[1:-1] if found else ""


def shown(text: str) -> str:
    r"""A text for a terminal: control characters as escapes.

    >>> shown("red \x1b[31m")
    'red \\x1b[31m'
    """
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def parse_json(text: str) -> Any:
    """Plain data of a JSON text.

    >>> parse_json('{"layers": 32}')
    {'layers': 32}
    >>> parse_json('{"layers": NaN}')
    Traceback (most recent call last):
    ...
    supply.input_text.InputTextError: not JSON: NaN is not a number that a model can use

    Raises:
        InputTextError: for what is not JSON, a key given twice, NaN or an infinity, and what is too deep.
    """
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError as exc:
        raise InputTextError(f"lists and mappings stand more than {MOST_DEPTH} deep in each other") from exc
    except ValueError as exc:
        raise InputTextError(f"not JSON: {exc}") from exc
    _shallow(found)
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise ValueError(f"the key {key[:80]!r} is given twice: keep one")
        out[key] = value
    return out


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number that a model can use")


def _shallow(data: Any) -> None:
    """Look for depth without recursion."""
    level = [data] if isinstance(data, (dict, list)) else []
    for _ in range(MOST_DEPTH):
        inner = [v for d in level for v in (d.values() if isinstance(d, dict) else d)]
        level = [v for v in inner if isinstance(v, (dict, list))]
        if not level:
            return
    raise InputTextError(f"lists and mappings stand more than {MOST_DEPTH} deep in each other")


def parse_yaml(text: str) -> Any:
    """Plain data of a small YAML text; anchors and tags are not part of it, so that it holds what it shows.

    >>> parse_yaml("a: [1, two]")
    {'a': [1, 'two']}

    Raises:
        InputTextError: for what is not YAML, a key given twice, an anchor, a tag, and what is too deep.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent

    try:
        depth = 0
        for event in YAML(typ="safe", pure=True).parse(text):
            line = event.start_mark.line + 1
            if getattr(event, "anchor", None) is not None:
                raise InputTextError(f"line {line}: anchors (&, *) are not read here: write the value out")
            if getattr(event, "tag", None) is not None:
                raise InputTextError(
                    f"line {line}: the tag {str(event.tag)[:80]} is not read here: write a plain value"
                )
            depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
            if depth > MOST_DEPTH:
                raise InputTextError(f"line {line}: lists and mappings stand more than {MOST_DEPTH} deep in each other")
        return YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        place = f"line {mark.line + 1}: " if mark else ""
        raise InputTextError(f"{place}not YAML: {exc.problem or exc.context}") from exc
    except InputTextError:
        raise
    except (YAMLError, ValueError, RecursionError) as exc:
        raise InputTextError(f"not YAML: {exc}") from exc
