"""`wafer2token facts`: search and one fact, for eyes and for programs."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from reports.cli.app import app
from supply.facts import catalog


def facts(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["facts", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_search_counts_what_it_finds_and_json_holds_the_same() -> None:
    found = json.loads(facts("cowos", "--json", "--limit", "3"))
    assert found["found"] == len(catalog().search("cowos")) > 3
    assert len(found["facts"]) == 3
    words = facts("cowos", "--limit", "3")
    assert f"3 of {found['found']} facts and {len(found['series'])} series" in words
    for fact in found["facts"]:
        assert fact["id"] in words
    for name in found["series"]:
        assert "cowos" in name.lower()


def test_a_series_point_is_shown_with_the_facts_it_rests_on() -> None:
    cat = catalog()
    point = next(p for name in cat.series_ids for p in cat.series(name).points if p.basis)
    shown = json.loads(facts("--show", point.id, "--json"))
    assert (shown["fact"]["id"], [row["id"] for row in shown["rests_on"]]) == (point.id, list(point.basis))
    words = facts("--show", point.id)
    assert "rests on" in words
    for base in point.basis:
        assert base in words and json.loads(facts("--show", base, "--json"))["rests_on"] == []


@pytest.mark.parametrize("derived", [True, False])
def test_a_series_is_shown_with_its_points(derived: bool) -> None:
    cat = catalog()
    name = next(s for s in cat.series_ids if s not in cat and cat.series(s).outcome_derived is derived)
    shown = json.loads(facts("--show", name, "--json"))
    assert [p["period"] for p in shown["points"]] == [p.period for p in cat.series(name).points]
    words = facts("--show", name)
    assert words.startswith(name) and "rests on: " in words
    assert ("never an input" in " ".join(words.split())) is derived
    for point in cat.series(name).points:
        assert point.period in words
