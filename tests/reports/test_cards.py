"""Notebook cards: what they say is what the object holds, and foreign text stays text."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import wafer2token
from econ.performance.serving import operating_point
from reports.cards import Html, card, register
from scenarios.load import load_scenario
from scenarios.resolve import resolve
from scenarios.runner import run
from supply.graph import build_graph


def words(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


def test_scenario_and_graph() -> None:
    scenario = load_scenario("small", [("power", {"scale": 0.9})])
    shown = words(card(scenario))
    assert "2024-Q1, 12 x quarter" in shown and "value, regime foresight" in shown and "edits power" in shown
    graph = build_graph(resolve(scenario).network)
    text = words(card(graph))
    assert f"{graph.number_of_edges()} edges" in text and "racks NVIDIA B200 / GB200 rack build" in text


def test_run_in_memory_and_from_a_folder(tmp_path: Path) -> None:
    done = run("course_11_1", out=tmp_path)
    text = words(card(done))
    assert "optimal, objective 10,000 accelerators" in text and "10,000 in 2026" in text
    assert "binds in 2026-Q1 CoWoS (advanced packaging)" in text
    assert str(done.folder) in text


def test_operating_point_has_its_bands() -> None:
    point = operating_point("Llama-3.1-70B", "h200", isl=1000, osl=1000, concurrency=32, tp=4)
    text = words(card(point))
    assert "Llama-3.1-70B on 4 x H200" in text and "90 % bands in brackets" in text
    assert f"{1e3 * point.tpot_s:.1f} ms ({1e3 * point.tpot_band_s[0]:.1f} to {1e3 * point.tpot_band_s[1]:.1f})" in text


def test_foreign_text_is_escaped() -> None:
    point = operating_point("Llama-3.1-70B", "h200", isl=1000, osl=1000, concurrency=32, tp=4)
    shown = card(replace(point, model="<img src=x onerror=alert(1)>"))
    assert "<img" not in shown and "&lt;img" in shown


def test_other_objects_are_refused() -> None:
    with pytest.raises(
        TypeError, match="no card for list; cards exist for MultiDiGraph, OperatingPoint, Run, Scenario"
    ):
        card([])


class Formatter:
    def __init__(self) -> None:
        self.known: dict[tuple[str, str], object] = {}

    def for_type_by_name(self, module: str, name: str, function: object) -> None:
        self.known[module, name] = function


class Shell:
    def __init__(self) -> None:
        self.html = Formatter()
        self.display_formatter = type("D", (), {"formatters": {"text/html": self.html}})()


def test_registering_shows_every_kind_by_itself() -> None:
    shell = Shell()
    assert register(shell)
    assert shell.html.known["scenarios.runs", "Run"] is card and len(shell.html.known) == 4
    assert wafer2token.cards is register and wafer2token.card is card
    assert not register(), "no notebook is running"
    assert Html("<b>x</b>")._repr_html_() == "<b>x</b>"
