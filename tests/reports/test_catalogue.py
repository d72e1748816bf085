"""All words are in the catalogue: no prose in the code, every key used, every field given."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from reports import sections
from reports.catalogue import Catalogue, columns, english, say, using

ROOM = Path(str(sections.__file__)).parent.parent
#: Files whose sentences are all in the catalogue.
MODULES = sorted(
    [*(ROOM / "sections").glob("*.py"), *(ROOM / "figures").glob("*.py")]
    + [
        ROOM / f"{n}.py"
        for n in ("draws", "market_report", "pdf", "wording", "first_page", "answer_text", "answer_money", "context")
    ]
)
#: Values of a column of a table of the run, not words of the report.
DATA = {"owner cost, most hours sold"}
FIELD = re.compile(r"\{(\w+)\}")


def names(modules: list[Path]) -> list[str]:
    return [m.name for m in modules]


def own_strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Text of string constants and f-strings outside docstrings and raised errors."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        docs = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and body and isinstance(body[0], ast.Expr)
        for held in [body[0]] if docs else [node] if isinstance(node, ast.Raise) else []:
            skipped.update(id(n) for n in ast.walk(held))
        if isinstance(node, ast.JoinedStr):
            skipped.update(id(n) for n in ast.walk(node) if n is not node)
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(str(v.value) if isinstance(v, ast.Constant) else " 0 " for v in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def is_prose(text: str) -> bool:
    """More than four words, at least three of them plain lower-case ones."""
    words = text.split()
    return len(words) > 4 and sum(bool(re.fullmatch(r"[a-z]{2,}[,.;:]?", w)) for w in words) > 2


@pytest.mark.parametrize("path", MODULES, ids=names(MODULES))
def test_no_prose_stands_in_the_code(path: Path) -> None:
    found = [
        f"{path.name}:{line}: {text[:60]}"
        for line, text in own_strings(ast.parse(path.read_text()))
        if is_prose(text) and text not in DATA
    ]
    assert not found, "move these to reports/text/en.yaml:\n" + "\n".join(found)


def calls(function: str) -> Iterator[tuple[str, ast.Call]]:
    for path in sorted(ROOM.rglob("*.py")):
        if function == "say" and not re.search(r"from reports.catalogue import .*\bsay\b", path.read_text()):
            continue  # the command line has a `say` of its own, for progress
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                if name == function and node.args:
                    yield f"{path.name}:{node.lineno}", node


def pattern(node: ast.expr) -> str:
    """The keys that an argument can name, as a regular expression."""
    if isinstance(node, ast.Constant):
        return re.escape(str(node.value))
    if isinstance(node, ast.JoinedStr):
        return "".join(pattern(v) if isinstance(v, ast.Constant) else r"[^.]+" for v in node.values)
    if isinstance(node, ast.IfExp):
        return f"(?:{pattern(node.body)}|{pattern(node.orelse)})"
    return r"$none"


def test_every_sentence_is_in_the_catalogue_with_its_fields() -> None:
    words = english().words
    for where, node in calls("say"):
        keys = [k for k in words if re.fullmatch(pattern(node.args[0]), k)]
        assert keys or not isinstance(node.args[0], ast.Constant), f"{where}: no such key {ast.unparse(node.args[0])}"
        given = {k.arg for k in node.keywords}
        for key in keys if None not in given else []:
            assert given == set(FIELD.findall(words[key])), f"{where}: fields of {key}"


def test_every_table_is_in_the_catalogue_with_its_fields() -> None:
    words = english().words
    for where, node in calls("named"):
        keys = [k for k in words if re.fullmatch(rf"tables\.{pattern(node.args[0])}\.(caption|columns|note)", k)]
        assert keys or not isinstance(node.args[0], ast.Constant), f"{where}: no such table"
        given = {k.arg for k in node.keywords} - {"folded"}
        if None in given:
            continue
        for table in {k.split(".")[1] for k in keys}:
            wanted = {f for k in keys if k.split(".")[1] == table for f in FIELD.findall(words[k])}
            assert given == wanted, f"{where}: fields of {table}"


def test_no_word_of_the_catalogue_is_unused() -> None:
    used = {pattern(node.args[0]) for _, node in calls("say")}
    used |= {rf"tables\.{pattern(n.args[0])}\..*" for f in ("named", "columns") for _, n in calls(f)}
    used |= {
        r"sections\..*",
        r"fixed\..*",
        r"(stages|stage_heads)\..*",
        r"(articles|short_limits)\..*",
        r"first_page\..*",
        r"record\.(schemes|slices)\..*",
        r"tables\.(prices|prices_now)\..*",
    }
    unused = [k for k in english().words if not any(re.fullmatch(u, k) for u in used)]
    assert not unused


def test_a_language_in_use_changes_the_words_and_goes_again() -> None:
    german = Catalogue("de", {**english().words, "supply.none_full": "Im Zeitraum {period} ist keine Region voll"})
    with using(german):
        assert say("supply.none_full", period="2026-Q1") == "Im Zeitraum 2026-Q1 ist keine Region voll"
    assert say("supply.none_full", period="2026-Q1").startswith("No region")


def test_columns_stand_for_lists() -> None:
    assert columns("rents", years=["#2025", "#2026"], unit="x") == ["Limit", "Stage", "#2025", "#2026"]
    with pytest.raises(KeyError):
        say("supply.none_full")


def by_table() -> dict[str, str]:
    """Caption, columns and note of each table as one text."""
    held: dict[str, str] = {}
    for key, words in english().group("tables").items():
        held[key.partition(".")[0]] = f"{held.get(key.partition('.')[0], '')} {words}"
    return held


@pytest.mark.parametrize("table", sorted(by_table()))
def test_dollars_say_their_year_and_watts_their_kind(table: str) -> None:
    words = by_table()[table]
    if re.search(r"\bUSD\b", words):
        assert re.search(r"(USD|money) (of|in) (the|that|their|each) |of the period|of that month", words), words
    if re.search(r"\b[MG]W\b", words):
        assert re.search(r"facility|planning|chip", words), words
