"""Revision log: what changed between two snapshots of the facts, and which input moved the answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from scenarios.revision import changed_facts, revision_log
from supply.facts import Catalog, Series, catalog

SERIES = "tsmc_cowos_capacity"


def _revised(cat: Catalog, series_id: str, factor: float) -> Catalog:
    """The catalogue with one series scaled, as a later look back might do."""
    series = {name: cat.series(name) for name in cat.series_ids}
    points = (
        replace(p, value=p.value * factor, low=p.low * factor, high=p.high * factor)
        for p in cat.series(series_id).points
    )
    series[series_id] = Series(series_id, tuple(points))
    return Catalog(list(cat), series.values())


def test_identical_snapshots_have_no_changes() -> None:
    assert changed_facts(catalog(), catalog()).empty


def test_changes_name_what_was_added_removed_and_changed() -> None:
    cat = catalog()
    facts = list(cat)
    gone, edited = facts[0], next(f for f in facts[1:] if not isinstance(f.value, str))
    added = replace(edited, id="a_new_fact")
    later = Catalog(
        [*(replace(f, value=f.number * 2, low=None, high=None) if f is edited else f for f in facts[1:]), added]
    )
    found = changed_facts(Catalog(facts), later).set_index("id")["what"].to_dict()
    assert found == {gone.id: "removed", edited.id: "changed", "a_new_fact": "added"}


SCENARIO = """
extends: course_11_1
title: Two lines that rest on facts
horizon: {start: 2026-Q1, periods: 4, step: quarter}
materials: {die: {unit: die}, accelerator: {unit: accelerator}}
resources:
  fab: {capacity: {product: [{series: tsmc_n5_capacity}, {value: 0.9, range: [0.8, 1.0]}]}}
  cowos: {capacity: {series: tsmc_cowos_capacity}}
processes:
  make_die: {uses: {fab: 1 wafer}}
  package: {uses: {cowos: 1 wafer}}
"""


def test_the_moved_series_is_named_and_the_parts_add_up(tmp_path: Path) -> None:
    file = tmp_path / "two_lines.yaml"
    file.write_text(SCENARIO, encoding="utf-8")
    cat = catalog()
    later = _revised(_revised(cat, SERIES, 0.8), "tsmc_n5_capacity", 1.1)
    log = revision_log(file, cat, later, outputs=["finished:*@2026"])
    rows = log.answers
    assert rows["part"].sum() == pytest.approx(rows["change"].iloc[0], rel=1e-9)
    # packaging alone holds: a fifth less of it finishes a fifth fewer accelerators, more dies none more
    assert rows["after"].iloc[0] == pytest.approx(0.8 * rows["before"].iloc[0], rel=1e-6)
    assert list(rows["input"]) == ["resources.cowos", "resources.fab"]
    assert rows["part"].iloc[1] == pytest.approx(0.0, abs=1e-6)
    assert list(rows["facts"]) == [SERIES, "tsmc_n5_capacity"]
    assert set(log.changes["id"].str.split("@").str[0]) == {SERIES, "tsmc_n5_capacity"}
    assert "resources.cowos" in log.words[0] and SERIES in log.words[0]
