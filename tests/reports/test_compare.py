"""Scenarios side by side: rules in words, defining inputs beside the panels, changes against the first run."""

from __future__ import annotations

import pytest

from reports.blocks import Section
from reports.context import Context
from reports.sections.changes import compare_section
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
    assert [t.short for t in section.tables] == ["defining", "compare"]
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
    assert "no edits" in section.paragraphs[0]
    assert "capacity: scale 1.25" in section.paragraphs[1] and "{" not in section.paragraphs[1]
