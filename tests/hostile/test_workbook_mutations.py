"""Mutations of an accepted workbook: each is read as what its cells say, or refused with every problem in words.

`HOSTILE_WORKBOOKS=2000` sets how many are made (60 by default); the same number gives the same mutations.
"""

from __future__ import annotations

import io
import os
import random
import re
import signal
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from reports.workbook import write_workbook
from reports.workbook_read import WorkbookError, load_workbook_scenario, read_workbook
from scenarios.resolve import resolve
from scenarios.runner import run

COUNT = int(os.environ.get("HOSTILE_WORKBOOKS", "60"))
LONGEST_S = 30
Parts = dict[str, bytes]
Mutation = Callable[[random.Random, Parts], None]

_NUMBERS = [
    "0",
    "-1",
    "1e308",
    "-1e308",
    "1e-320",
    "nan",
    "inf",
    "-inf",
    "0x10",
    "1,5",
    "",
    "9" * 400,
    "0.5",
    "7",
    "1e400",
]
_TEXTS = [
    "",
    "nan",
    "=1+1",
    "@SUM(1)",
    "\u202e12",
    "&#x202e;",
    "٣",
    "_x0000_",
    "true",
    "x" * 40_000,
    "- a",
    "{value: 1}",
]
_TYPES = ["n", "s", "str", "b", "e", "d", "inlineStr", "z", ""]
_REFS = ["XFD1048576", "A99999999999", "7D", "", "D0", "D-1", "AAAAAAA1", "$D$7", "D7:D9"]
_LINES = [
    "extends: /etc/passwd", "extends: ../../secret", "extends: nothing", "extends: [a, b]", "set: {x: &amp;a [*a]}",
    "\u202e", "a: &amp;a [x,x,x,x,x,x,x,x,x]", "!!python/object/apply:os.system [true]", "'", "- ", "[" * 3000,
    "discount_rate: .nan", "horizon: {start: 2026-Q1, periods: 100000000, step: quarter}", "{{ 7*7 }}",
    "set: {resources.fab.capacity: 1e999}",
]  # fmt: skip
_DOCTYPE = (
    '<!DOCTYPE l [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>',
    '<!DOCTYPE l [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
)


def _part(parts: Parts, sheet: str) -> str:
    """File of a sheet in the package."""
    held = openpyxl.load_workbook(io.BytesIO(_packed(parts)), read_only=True).sheetnames
    return f"xl/worksheets/sheet{held.index(sheet) + 1}.xml"


def _packed(parts: Parts) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def _swap(rng: random.Random, text: str, pattern: str, new: Callable[[re.Match[str]], str]) -> str:
    """One match of a pattern, chosen by chance, is replaced."""
    found = list(re.finditer(pattern, text, re.DOTALL))
    if not found:
        return text
    one = rng.choice(found)
    return text[: one.start()] + new(one) + text[one.end() :]


def _in(sheet: str, change: Callable[[random.Random, str], str]) -> Mutation:
    def mutate(rng: random.Random, parts: Parts) -> None:
        name = SHEETS[sheet]
        if name in parts:
            text = parts[name].decode("utf-8", "surrogateescape")
            parts[name] = change(rng, text).encode("utf-8", "surrogateescape")

    return mutate


_CELL = r'<c r="[A-Z]+\d+"[^>]*?(?:/>|>.*?</c>)'
_VALUE_CELL = r'<c r="[DEGHI]\d+"[^>]*?(?:/>|>.*?</c>)'


def _new_cell(rng: random.Random, old: re.Match[str]) -> str:
    ref = re.search(r'r="([^"]*)"', old[0])
    place = ref[1] if ref and rng.random() < 0.9 else rng.choice(_REFS)
    kind = rng.choice(_TYPES)
    body = rng.choice([*_NUMBERS, *_TEXTS, "999999", "-3"])
    style = f' s="{rng.choice(["0", "1", "5", "99999", "-1", "x"])}"' if rng.random() < 0.3 else ""
    inside = rng.choice(
        [f"<v>{body}</v>", f"<f>1+1</f><v>{body}</v>", "<f>WEBSERVICE(1)</f>", f"<is><t>{body}</t></is>", ""]
    )
    return f'<c r="{place}"{style} t="{kind}">{inside}</c>' if kind else f'<c r="{place}"{style}>{inside}</c>'


def _number(rng: random.Random, old: re.Match[str]) -> str:
    place = re.search(r'r="([^"]*)"', old[0])
    value = rng.choice([*_NUMBERS, str(rng.uniform(0, 2)), str(rng.uniform(0, 20000))])
    return f'<c r="{place[1] if place else "D7"}"><v>{value}</v></c>'


def _line(rng: random.Random, old: re.Match[str]) -> str:
    place = re.search(r'r="([^"]*)"', old[0])
    return f'<c r="{place[1] if place else "A6"}" t="inlineStr"><is><t>{rng.choice(_LINES)}</t></is></c>'


def _row(rng: random.Random, text: str) -> str:
    how = rng.randrange(5)
    new: Callable[[re.Match[str]], str] = [
        lambda m: "",
        lambda m: m[0] * 2,
        lambda m: re.sub(
            r'<row r="\d+"', f'<row r="{rng.choice(["1048576", "-1", "0", "99999999999", "x", "7"])}"', m[0]
        ),
        lambda m: re.sub(r'<row r="\d+"', "<row", m[0]),
        lambda m: m[0].replace(' r="', ' q="'),
    ][how]
    return _swap(rng, text, r"<row .*?</row>", new)


def _frame(rng: random.Random, text: str) -> str:
    """Claims about the sheet as a whole: its size, merged cells, its root."""
    size = rng.choice(["A1:XFD1048576", "A1:A1", "nonsense", "", "D7:D7", "A1:XFD99999999"])
    how = rng.randrange(4)
    if how == 0:
        return re.sub(r'<dimension ref="[^"]*"', f'<dimension ref="{size}"', text)
    if how == 1:
        merged = rng.choice(["D7:D9", "A7:I7", "D7:XFD1048576", "x"])
        return text.replace(
            "</sheetData>", f'</sheetData><mergeCells count="1"><mergeCell ref="{merged}"/></mergeCells>'
        )
    if how == 2:
        return text.replace("worksheet", rng.choice(["chartsheet", "dialogsheet", "w"]))
    return text.replace("<sheetData>", "<sheetData>" + "<row/>" * rng.choice([1, 50_000]))


def _entities(rng: random.Random, parts: Parts) -> None:
    name = rng.choice([n for n in parts if n.endswith(".xml")])
    text = parts[name].decode("utf-8", "replace")
    head, sep, rest = text.partition("?>")
    made = f"{head}{sep}{rng.choice(_DOCTYPE)}{rest}" if sep else rng.choice(_DOCTYPE) + text
    made = made.replace("<v>", rng.choice(["<v>", "<v>&c;", "<v>&x;"]), 1)
    parts[name] = made.encode(rng.choice(["utf-8", "utf-8", "utf-16"]))


def _package(rng: random.Random, parts: Parts) -> None:
    """Parts lost, swapped, renamed, or pointed elsewhere."""
    names = list(parts)
    how = rng.randrange(5)
    if how == 0:
        del parts[rng.choice(names)]
    elif how == 1:
        one, two = rng.sample(names, 2)
        parts[one], parts[two] = parts[two], parts[one]
    elif how == 2 and "xl/workbook.xml" in parts:
        old, new = rng.choice([(b'"Inputs"', b'"Input"'), (b'"Scenario"', b'"Inputs"'), (b"<sheets>", b"<shets>")])
        parts["xl/workbook.xml"] = parts["xl/workbook.xml"].replace(old, new)
    elif how == 3 and "xl/_rels/workbook.xml.rels" in parts:
        target = rng.choice([b"../../../etc/passwd", b"http://127.0.0.1:1/x", b"worksheets/none.xml", b""])
        parts["xl/_rels/workbook.xml.rels"] = re.sub(
            rb'Target="[^"]*sheet1.xml"', b'Target="%s"' % target, parts["xl/_rels/workbook.xml.rels"]
        )
    else:
        parts[f"../{rng.randrange(9)}.xml"] = b"<x/>"


def _bytes(rng: random.Random, parts: Parts) -> None:
    name = rng.choice(list(parts))
    raw = parts[name]
    at = rng.randrange(len(raw) + 1)
    parts[name] = raw[:at] + rng.randbytes(rng.randrange(4)) + raw[at + rng.randrange(200) :]


MUTATIONS: list[Mutation] = [
    _in("Inputs", lambda rng, text: _swap(rng, text, _VALUE_CELL, lambda m: _new_cell(rng, m))),
    _in("Inputs", lambda rng, text: _swap(rng, text, _VALUE_CELL, lambda m: _number(rng, m))),
    _in("Inputs", lambda rng, text: _swap(rng, text, _VALUE_CELL, lambda m: _number(rng, m))),
    _in("Inputs", lambda rng, text: _swap(rng, text, _CELL, lambda m: _new_cell(rng, m))),
    _in("Scenario", lambda rng, text: _swap(rng, text, _CELL, lambda m: _line(rng, m))),
    _in("Inputs", _row),
    _in("Scenario", _row),
    _in("Inputs", _frame),
    _entities,
    _package,
    _bytes,
]
SHEETS: dict[str, str] = {}


@pytest.fixture(scope="module")
def accepted(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    """The parts of a workbook with the two sheets that are read, accepted as it is."""
    folder = tmp_path_factory.mktemp("accepted")
    done = run("course_11_1", [("processes.make_die.yield", {"value": 0.7, "range": [0.6, 0.75]})])
    held = openpyxl.load_workbook(write_workbook(done, folder / "whole.xlsx"))
    for name in held.sheetnames:
        if name not in ("Inputs", "Scenario"):
            del held[name]
    held.save(folder / "slim.xlsx")
    assert read_workbook(folder / "slim.xlsx").startswith("extends: course_11_1\nset:\n")
    with zipfile.ZipFile(folder / "slim.xlsx") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    SHEETS.update({name: _part(parts, name) for name in ("Inputs", "Scenario")})
    return parts


@contextmanager
def _no_longer_than(seconds: int) -> Iterator[None]:
    def stop(number: int, frame: Any) -> None:
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _said(path: Path) -> dict[tuple[Any, Any], Any]:
    """What the cells of a book say, by path and period."""
    sheet = openpyxl.load_workbook(io.BytesIO(path.read_bytes()), read_only=True, data_only=True)["Inputs"]
    rows = sheet.iter_rows(min_row=7, max_row=60, max_col=4, values_only=True)
    return {(r[0], r[1]): r[3] for r in rows if len(r) > 3 and r[0] is not None}


@pytest.mark.parametrize("block", range(-(-COUNT // 20)))
def test_a_mutated_workbook_is_read_as_it_says_or_refused(block: int, accepted: Parts, tmp_path: Path) -> None:
    path = tmp_path / "mutated.xlsx"
    for number in range(block * 20, min(COUNT, block * 20 + 20)):
        rng = random.Random(number)
        parts = dict(accepted)
        for _ in range(rng.choice([1, 1, 2, 3])):
            rng.choice(MUTATIONS)(rng, parts)
        path.write_bytes(_packed(parts))
        try:
            with _no_longer_than(LONGEST_S):
                read_workbook(path)
                inputs = resolve(load_workbook_scenario(path)).inputs()
        except WorkbookError as exc:
            assert exc.problems, number
            for problem in exc.problems:
                assert problem.strip() and "Traceback" not in problem and len(problem) < 2000, (number, problem)
            continue
        said = _said(path)
        for r in inputs.itertuples():
            assert r.value == pytest.approx(float(said[r.path, r.period]), rel=1e-12), (number, r.path)
