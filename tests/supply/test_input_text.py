"""Small JSON and YAML inputs: what they hold is what they show."""

from __future__ import annotations

import pytest

from supply.input_text import MOST_DEPTH, InputTextError, parse_json, parse_yaml


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1, "a": 2}', "the key 'a' is given twice"),
        ("[Infinity]", "Infinity is not a number"),
        ("{", "not JSON"),
        ("[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1), f"more than {MOST_DEPTH} deep"),
        ("[" * 100_000, "more than"),
    ],
)
def test_json_that_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputTextError, match=words):
        parse_json(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: &x 1\nb: *x", "line 1: anchors"),
        ("a: 1\nb: !!python/name:os.system x", "line 2: the tag"),
        ("a: [1", "not YAML"),
        ("a: 1\na: 2", "not YAML"),
        ("[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1), f"line 1: lists and mappings stand more than {MOST_DEPTH}"),
    ],
)
def test_yaml_that_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputTextError, match=words):
        parse_yaml(text)


def test_the_deepest_that_is_read() -> None:
    text = "[" * MOST_DEPTH + "]" * MOST_DEPTH
    assert parse_json(text) == parse_yaml(text)
