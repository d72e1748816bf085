"""Where others stand: the gaps in words and in a table that adds up, from a run and from made-up tables."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest

from reports.blocks import Section
from reports.context import Context
from reports.sections.evidence import others_section
from reports.sections.outside import gap_sentences
from reports.spans import Number, pieces
from scenarios.outcomes import shipments_compared
from scenarios.outside_gap import GAP_COLUMNS, LIMIT_COLUMNS, PART_COLUMNS, explain_gap
from scenarios.runner import run
from scenarios.runs import Run


@pytest.fixture(scope="module")
def small() -> Run:
    made = run("small", prices=False)
    assert made.solution is not None
    designers = {s.id: s.designer for s in made.solution.network.fleet.values()}
    finished = made.solution.finished.rename(columns={"finished": "value"})
    shipments = shipments_compared(finished, designers)
    return replace(made, tables={**made.tables, "shipments": shipments, **explain_gap(made.solution, shipments)})


@pytest.fixture(scope="module")
def section(small: Run) -> Section:
    made = others_section(Context(small))
    assert made is not None
    return made


def test_the_row_of_a_designer_adds_up_to_the_estimate(section: Section) -> None:
    table = next(t for t in section.tables if t.short == "epoch_gap")
    place = [c.title for c in table.columns].index("Epoch AI")
    assert len(table.rows) > 1
    for row in table.rows:
        values = [cell.value or 0.0 for cell in row]
        assert sum(values[2:place]) == pytest.approx(values[place], rel=1e-6)


def test_each_missed_interval_has_its_sentence_and_limits_their_need(section: Section, small: Run) -> None:
    table = small.table("shipments")
    missed = table[(table["ours"] < table["low"]) | (table["ours"] > table["high"])]
    told = [p for p in section.paragraphs if " here, " in p]
    assert len(told) == len(missed) > 0
    assert any("no estimate of shipments is an input" in p for p in section.paragraphs)
    limits = next(t for t in section.tables if t.short == "epoch_limits")
    assert all((row[5].value or 0.0) > (row[4].value or 0.0) for row in limits.rows)


def made_up(small: Run, **changes: float) -> list[str]:
    """Sentences of one gap: 100 here, 200 there, 20 of them not made here, 50 closed by packaging."""
    row: dict[str, object] = dict.fromkeys(GAP_COLUMNS, 0.0) | {
        "group": "aws",
        "year": "2025",
        "worth_factor": math.nan,
    }
    row |= {"ours": 1e5, "theirs": 2e5, "low": 1.9e5, "high": 2.1e5, "outside": 2e4, "reached": 1.5e5, "rest": 3e4}
    row |= {"made_low": 1.7e5, "made_high": 1.9e5, "worth_units": 1.6e5, **changes}
    tables = {
        "shipments_gap": pd.DataFrame([row], columns=list(GAP_COLUMNS)),
        "shipments_parts": pd.DataFrame([("aws", "2025", "packaging", 5e4)], columns=list(PART_COLUMNS)),
        "shipments_limits": pd.DataFrame([], columns=list(LIMIT_COLUMNS)),
    }
    return gap_sentences(Context(replace(small, tables={**small.tables, **tables})), {"aws": "AWS"})


def test_words_of_a_gap_that_stays(small: Run) -> None:
    _, text = made_up(small)
    numbers = [p.value for p in pieces(text) if isinstance(p, Number)]
    assert numbers == pytest.approx([1e5, 2e5, 190e3, 210e3, 2e4, 1.5e5, 50 / 80, 5e4, 3e4, 2.0, 1.6e5])
    assert text.startswith("AWS 2025: 100 thousand here") and "advanced packaging +50,000" in text
    assert "stay unexplained: even at 2 times" in text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reached": 1.75e5}, "That is inside their interval."),
        ({"worth_factor": 1.37}, "once an hour of these is worth 1.4 times as much."),
        ({"worth_units": math.nan}, "30,000 stay unexplained."),
    ],
)
def test_words_of_a_gap_that_closes(small: Run, changes: dict[str, float], words: str) -> None:
    assert made_up(small, **changes)[1].endswith(words)


def test_without_the_study_the_opening_is_named(small: Run) -> None:
    tables = {k: v for k, v in small.tables.items() if not k.startswith("shipments_")}
    made = others_section(Context(replace(small, tables=tables)))
    assert made is not None and any("opening" in p for p in made.paragraphs)
    assert "epoch_gap" not in [t.short for t in made.tables]
