"""Scenarios side by side: rules in words, defining inputs beside the panels, changes against the first run."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.blocks import Section
from reports.context import Context
from reports.sections.compare import compare_section
from scenarios.runner import run

PATH = "resources.cowos.capacity"
SCALE = 1.25


@pytest.fixture(scope="module")
def contexts() -> list[Context]:
    edits = [(PATH, {"scale": SCALE})]
    return [Context(run("course_11_1", e, prices=False, costs=False)) for e in ([], edits)]


@pytest.fixture(scope="module")
def section(contexts: list[Context]) -> Section:
    return compare_section(contexts)


def test_the_panels_stand_beside_the_inputs_that_define_the_case(section: Section, contexts: list[Context]) -> None:
    assert [f.id for f in section.figures] == ["scenarios"]
    assert [t.short for t in section.tables] == ["defining", "compare", "products_compared"]
    (row,) = section.tables[0].rows
    base, case = (float(n.replace(",", "")) for n in row[3].text.split(" / "))
    assert row[0].text == contexts[1].run.id
    assert case == pytest.approx(SCALE * base, rel=1e-3)


def test_each_change_is_against_the_first_run(section: Section, contexts: list[Context]) -> None:
    table = section.tables[1]
    assert len(table.columns) == 4 and table.columns[3].number
    year = contexts[0].years[0]
    row = next(r for r in table.rows if r[0].text == f"Finished {year}")
    first, second = (c.total("finished", year) for c in contexts)
    assert row[3].text == f"{100 * (second / first - 1):+.1f} %"


def test_rules_are_in_words(section: Section) -> None:
    assert "no input was changed" in section.paragraphs[0]
    assert "capacity: scale 1.25" in section.paragraphs[1] and "{" not in section.paragraphs[1]


NEW = """\
title: A second product
extends: course_11_1
materials: {gadget: {unit: gadget, title: Gadget}}
resources: {line: {stage: packaging, capacity: 3000}}
processes: {pack: {input: {die: 1}, output: {gadget: 1}, uses: {line: 1}, lead_time: 0 week}}
demand: {gadget: {price: 2}}
"""


def test_a_product_of_one_scenario_alone_is_in_words_and_in_the_table(tmp_path: Path, contexts: list[Context]) -> None:
    path = tmp_path / "gadget.yaml"
    path.write_text(NEW, encoding="utf-8")
    other = Context(run(path, prices=False, costs=False))
    for pair, words in (([contexts[0], other], "beside the first run it has"), ([other, contexts[0]], "does not have")):
        made = compare_section(pair)
        assert words in made.paragraphs[1] and "processes: 1" in made.paragraphs[1]
        rows = {r[0].text: [c.text for c in r[1:]] for r in made.tables[-1].rows}
        amounts = ["-", "3,000"] if pair[1] is other else ["3,000", "-"]
        assert rows == {"Gadget finished, 2026": amounts}
