"""The study of weak inputs on a chain whose answer is known by hand, and how the first page speaks of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reports.context import Context
from reports.first_page import first_page, flip_warning
from reports.market_report import make_report, render_html
from reports.sections.evidence import overturning
from scenarios.break_evens import break_evens
from scenarios.headline import headline_study, headline_year
from scenarios.headline_inputs import Inputs, spread_at, weak_inputs
from scenarios.joint_ends import joint_ends
from scenarios.load import load_scenario
from scenarios.nodes import Draw, Source, Spread
from scenarios.resolve import resolve
from scenarios.runner import run
from scenarios.runs import Run

CHAIN = """title: Two capacities
horizon: {start: 2026-Q1, periods: 4}
objective: units
materials: {die: {unit: die}, accelerator: {unit: accelerator}}
resources:
  fab:
    stage: fab
    title: Wafer line
    capacity: {value: 15000 die/quarter, range: [5000 die/quarter, 20000 die/quarter], kind: illustrative, note: guess}
  cowos:
    stage: packaging
    title: Packaging line
    capacity:
      {value: 10000 accelerator/quarter, range: [9000 accelerator/quarter, 11000 accelerator/quarter],
       kind: illustrative, note: another guess}
processes:
  make_die: {stage: fab, output: {die: 1}, uses: {fab: 1 die}}
  package: {stage: packaging, input: {die: 1}, output: {accelerator: 1}, uses: {cowos: 1 accelerator}}
demand: {accelerator: {price: 1 USD/accelerator}}
"""


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chain") / "chain.yaml"
    path.write_text(CHAIN, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def studied(chain: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    stored = run(chain, out=tmp_path_factory.mktemp("runs"), study=True)
    assert stored.folder is not None
    return Run.open(stored.folder)


def test_known_answer(chain: Path) -> None:
    table = headline_study(resolve(load_scenario(chain)), "2026").set_index("title")
    fab, cowos = table.loc["Wafer line: capacity"], table.loc["Packaging line: capacity"]
    assert fab["stage_base"] == "packaging" and fab["energised_base"] == pytest.approx(40_000)
    assert (fab["low_input"], fab["base_input"], fab["high_input"]) == (5000, 15000, 20000)
    assert fab["energised_low"] == pytest.approx(20_000) and fab["energised_high"] == pytest.approx(40_000)
    assert fab["flips"] and fab["stage_low"] == "fab" and fab["stage_high"] == "packaging"
    assert fab["flips_at"] == pytest.approx(10_000, rel=0.03)
    assert not cowos["flips"] and (cowos["energised_low"], cowos["energised_high"]) == (36_000, 44_000)
    assert list(table["flips"]) == sorted(table["flips"], reverse=True)


def test_study_leaves_the_optimum_as_it_was(chain: Path) -> None:
    resolved = resolve(load_scenario(chain))
    first, second = (headline_study(resolved, "2026") for _ in range(2))
    assert first.equals(second)


def test_headline_year(chain: Path) -> None:
    resolved = resolve(load_scenario(chain))
    assert headline_year(resolved, "2026-11-30") == "2026"
    assert headline_year(resolved, "2031-01-01") == "2026"


@pytest.mark.parametrize("rank", [0.0, 0.1, 0.5, 0.8, 1.0])
def test_shown_value_is_the_one_that_is_drawn(rank: float) -> None:
    import numpy as np

    drawn = Spread(np.array([3.0]), np.array([1.0]), np.array([7.0]), "x", Source.same(1, "estimate"))
    expected = drawn.at(Draw({"x": np.array([rank])}))[0, 0]
    assert spread_at(3.0, 1.0, 7.0, rank) == pytest.approx(expected)


def test_first_page_says_so_when_an_input_flips_the_stage(studied: Run) -> None:
    c = Context(studied)
    assert "Wafer line: capacity" in flip_warning(c)
    assert "wafers scarcest below" in overturning(c)[0]
    text = next(line.text for line in first_page(c) if line.label.startswith("What could overturn"))
    assert text.startswith("1 weak input (assumed or from one source) alone can change what binds in 2026")
    page = render_html(make_report([studied]))
    assert "not settled by the evidence" in page and 'id="overturn"' in page


def test_run_with_study_has_its_own_id_and_is_found_again(studied: Run, chain: Path) -> None:
    assert studied.folder is not None
    plain = run(chain)
    assert plain.id != studied.id and plain.json()["periods"] == studied.json()["periods"]
    again = run(chain, out=studied.folder.parent, study=True)
    assert again.folder == studied.folder and again.table("headline").equals(studied.table("headline"))
    with pytest.raises(KeyError, match="no table 'headline'"):
        plain.table("headline")


NARROW = CHAIN.replace("range: [5000 die/quarter, 20000 die/quarter]", "range: [14000 die/quarter, 16000 die/quarter]")


def test_break_even_beyond_the_range_is_found_and_told(tmp_path: Path) -> None:
    """The packaging line (10,000) binds until the wafer line, stated between 14,000 and 16,000, falls below it."""
    path = tmp_path / "narrow.yaml"
    path.write_text(NARROW, encoding="utf-8")
    stored = run(path, study=True)
    table = stored.table("headline").set_index("title")
    fab, cowos = table.loc["Wafer line: capacity"] if "Wafer line: capacity" in table.index else None, None
    cowos = table.loc["Packaging line: capacity"]
    assert fab is None  # within its range it moves nothing, so it is no weak input that matters
    assert not cowos["flips"] and cowos["break_stage"] == "fab"
    assert cowos["break_at"] == pytest.approx(15_000, rel=0.01)
    assert cowos["fall_at"] == pytest.approx(9_000, rel=0.01)
    assert (cowos["searched_from"], cowos["searched_to"]) == pytest.approx((10_000 / 3, 30_000))
    text = overturning(Context(stored))[0]
    assert "wafers scarcest above 15,0" in text and "a tenth fewer below 9,0" in text and "9,000 to 11,000" in text


TWO_LINES = CHAIN.replace(
    "processes:\n",
    """  osat:
    stage: packaging
    title: Second line
    capacity:
      {value: 2000 accelerator/quarter, range: [1000 accelerator/quarter, 6000 accelerator/quarter],
       kind: illustrative, note: third guess}
processes:
  package_osat: {stage: packaging, input: {die: 1}, output: {accelerator: 1}, uses: {osat: 1 accelerator}}
""",
)


def test_all_limits_of_the_scarcest_stage_together(tmp_path: Path, chain: Path) -> None:
    """Two packaging lines of 12,000 a quarter, at their ends 10,000 and 17,000; the wafer line holds 15,000."""
    path = tmp_path / "two.yaml"
    path.write_text(TWO_LINES, encoding="utf-8")
    table = joint_ends(resolve(load_scenario(path)), "2026").set_index("end")
    assert list(table["stage_base"].unique()) == ["packaging"] and list(table["limits"].unique()) == [2]
    assert table["input_base"].tolist() == pytest.approx([12_000, 12_000])
    assert table["input"].tolist() == pytest.approx([10_000, 17_000])
    assert table["stage"].to_dict() == {"low": "packaging", "high": "fab"}
    assert table["energised"].tolist() == pytest.approx([40_000, 60_000])
    assert table["energised_base"].tolist() == pytest.approx([48_000, 48_000])
    assert table["share"].tolist() == pytest.approx([1.0, 0.0])
    assert joint_ends(resolve(load_scenario(chain)), "2026").empty


@pytest.mark.parametrize(
    ("stage", "volume", "change", "fall"),
    [
        (lambda f: "power", lambda f: 1.0, None, None),
        (lambda f: "hbm" if f < 0.6 else "power", lambda f: f, 0.6, 0.9),
        (lambda f: "hbm" if f > 2.5 or f < 0.5 else "power", lambda f: 2 - f, 0.5, 1.1),
    ],
)
def test_break_evens_of_known_functions(stage: Any, volume: Any, change: float | None, fall: float | None) -> None:
    found = break_evens(lambda f: (stage(f), volume(f)), (stage(1.0), volume(1.0)))
    assert found.change == (None if change is None else pytest.approx(change, rel=0.01))
    assert found.fall == (None if fall is None else pytest.approx(fall, rel=0.01))


def test_search_stops_where_no_plan_exists_and_at_a_natural_limit() -> None:
    found = break_evens(lambda f: None if f < 0.6 else ("power", 1.0), ("power", 1.0), ceiling=1.2)
    assert found.change is None and found.searched == (pytest.approx(1 / 1.4), 1.2)


def test_an_input_that_acts_later_is_shown_where_it_acts(tmp_path: Path) -> None:
    guess = "{value: 12000 accelerator/quarter, range: [6000, 15000], kind: illustrative, note: guess}"
    later = f"{{2026-Q1: 10000 accelerator/quarter, 2027-Q1: {guess}}}"
    text = CHAIN.replace("periods: 4", "periods: 8")
    start = text.index("    capacity:\n      {value: 10000")
    text = text[:start] + f"    capacity: {later}\n" + text[text.index("processes:") :]
    path = tmp_path / "later.yaml"
    path.write_text(text, encoding="utf-8")
    resolved = resolve(load_scenario(path))
    packaging = next(w for w in weak_inputs(resolved) if "resources.cowos.capacity" in w.paths)
    held = Inputs(resolved, "2026")
    unit, values = held.shown(packaging, (0.0, 0.5, 1.0))
    assert unit == "accelerator/period in 2027" and values == [6000.0, 12000.0, 15000.0]
    assert held.shown_times(packaging, 2.0) == 24000.0
    assert Inputs(resolved, "2027").shown(packaging, (0.5,)) == ("accelerator/period", [12000.0])
