"""Text of a scenario that looks like code: shown as text in every format, and nowhere run or lost."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from reports.cli.app import app
from scenarios.runner import run

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "onerror": "<img src=x onerror=alert(1)>",
    "attribute": "\" onmouseover=alert(1) x='",
    "formula": "=cmd()|' /C calc'!A0",
    "plus": "+1+1",
    "at": "@SUM(1)",
    "braces": "{{7*7}} {field} {0} %s",
    "typst": '#eval("1") $x^2$ \\ *b* _i_ `c` @ref <lab> // ]',
    "ansi": "\x1b[31mred\x1b]0;title\x07",
    "bidi": "a\u202eb\u2066c\u200f",
    "lines": "one\ntwo\r\nthree\x85\u2028four",
    "comma": 'a,"b";c\td',
    "long": "x" * 10_000,
}
TEMPLATE = """extends: course_11_1
title: {text}
note: {text}
materials: {{die: {{unit: die, stage: fab, title: {text}}}}}
resources:
  cowos: {{stage: packaging, title: {text}, supplier: {text}, owner: {text},
    capacity: {{value: 10000 accelerator/quarter, range: [9000, 11000], kind: illustrative, note: {text}}}}}
processes:
  package: {{title: {text}}}
"""


class Shape(HTMLParser):
    """Elements with their attribute names, and what would run."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(sorted(name for name, _ in attrs))))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def shape(page: str) -> Shape:
    parser = Shape()
    parser.feed(page)
    parser.close()
    return parser


def scenario(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "hostile.yaml"
    path.write_text(TEMPLATE.format(text=json.dumps(text)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> set[tuple[str, tuple[str, ...]]]:
    """The elements of the same report with harmless words."""
    folder = tmp_path_factory.mktemp("plain")
    assert CliRunner().invoke(app, ["run", str(scenario(folder, "words")), "--report", str(folder)]).exit_code == 0
    return set(shape(next(folder.glob("*.html")).read_text(encoding="utf-8")).found)


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_is_shown_as_text_everywhere(
    tmp_path: Path, kind: str, plain: set[tuple[str, tuple[str, ...]]]
) -> None:
    text = HOSTILE[kind]
    path = scenario(tmp_path, text)
    ran = CliRunner().invoke(app, ["run", str(path), "--out", str(tmp_path / "runs")])
    if ran.exit_code == 3:  # a control character that no format can hold
        assert kind in ("ansi", "bidi", "lines", "long") and "title" in ran.output
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", ran.output)
        return
    assert ran.exit_code == 0, ran.output
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", ran.output)
    folder = next((tmp_path / "runs").iterdir())
    command = ["report", str(folder), "--format", "html,pdf,xlsx,exchange", "--out", str(tmp_path / "report")]
    made = CliRunner().invoke(app, command)
    assert made.exit_code == 0, made.output
    page = shape(next((tmp_path / "report").rglob("*.html")).read_text(encoding="utf-8"))
    assert set(page.found) <= plain
    _check_files(tmp_path / "report", text)


def _check_files(folder: Path, text: str) -> None:
    from openpyxl import load_workbook
    from pypdf import PdfReader

    assert all(len(PdfReader(path).pages) for path in folder.rglob("*.pdf"))
    for path in folder.rglob("*.xlsx"):
        cells = [c for sheet in load_workbook(path) for row in sheet.iter_rows() for c in row if c.value is not None]
        assert not [c for c in cells if (c.data_type == "f" and "cmd" in str(c.value)) or str(c.value) == "=+1+1"]
    for path in folder.rglob("*.csv"):
        with path.open(encoding="utf-8", newline="") as handle:
            rows = list(csv.reader(handle))
        assert len({len(row) for row in rows}) == 1, path
    for path in folder.rglob("*.json"):
        json.loads(path.read_text(encoding="utf-8"))
    for path in folder.rglob("*.graphml"):
        import networkx as nx

        assert nx.read_graphml(path).number_of_nodes() > 0


def test_json_says_the_title_as_it_is(tmp_path: Path) -> None:
    for text in HOSTILE.values():
        answer: dict[str, Any] = {}
        try:
            answer = run(scenario(tmp_path, text)).json()
        except ValueError:
            continue
        assert answer["title"] == text


def test_hostile_words_of_facts_are_text_in_pdf_and_workbook(tmp_path: Path) -> None:
    from openpyxl import load_workbook
    from pypdf import PdfReader

    from reports.market_report import make_report
    from reports.pdf import render_pdf
    from reports.workbook import write_workbook

    words = "=cmd()|' /C calc'!A0 #eval(1) <img src=x onerror=alert(1)>"
    made = run("course_11_1", out=tmp_path / "runs")
    told = {"value": words, "unit": words, "kind": "published", "known_on": "2026-01-01", "as_of": "2026-01-01"}
    made.manifest["facts"] = {words: told | {"source": words, "origin": words, "url": "javascript:alert(1)"}}
    made.tables["inputs"] = made.inputs.assign(note=words, fact_ids=words)
    (tmp_path / "x.pdf").write_bytes(render_pdf(make_report([made])))
    pages = PdfReader(tmp_path / "x.pdf").pages
    assert "#eval(1)" in re.sub(r"\s+", "", "".join(page.extract_text() for page in pages))
    targets = [a.get_object().get("/A", {}).get("/URI", "") for page in pages for a in page.get("/Annots", [])]
    assert not any("javascript" in str(t) for t in targets)
    book = load_workbook(write_workbook(made, tmp_path / "x.xlsx"))
    cells = [c for sheet in book for row in sheet.iter_rows() for c in row if "cmd()" in str(c.value)]
    assert len(cells) >= 2 and {c.data_type for c in cells} == {"s"}
    assert not any(
        "javascript" in str(c.hyperlink.target) for s in book for r in s.iter_rows() for c in r if c.hyperlink
    )
