"""The table over scenarios and the verbs of exploration: figures are those of the runs, nothing is filled in."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from reports.cli.app import app
from scenarios.library_table import compare_all, library_cases, markdown, rent_shares
from scenarios.runner import run
from scenarios.sensitivity import grid

PLAIN = """
title: TITLE
horizon: {start: 2026-Q1, periods: 4, step: quarter}
objective: units
materials: {die: {unit: die}, accelerator: {unit: accelerator}}
resources:
  fab: {stage: fab, capacity: {distribution: uniform, low: 8000, high: 16000}}
  cowos: {stage: packaging, capacity: COWOS}
processes:
  make_die: {stage: fab, output: {die: 1}, uses: {fab: 1}, yield: 1, lead_time: 0 week}
  package: {stage: packaging, input: {die: 1}, output: {accelerator: 1}, uses: {cowos: 1}, yield: 1, lead_time: 0 week}
demand: {accelerator: {price: 1 USD/accelerator}}
EXTRA
"""
IMPOSSIBLE = "contracts: {c: {resource: cowos, processes: [package], least: 20000}}"


def _file(folder: Path, name: str, cowos: float, extra: str = "") -> str:
    path = folder / f"{name}.yaml"
    path.write_text(PLAIN.replace("TITLE", name).replace("COWOS", str(cowos)).replace("EXTRA", extra))
    return str(path)


@pytest.fixture(scope="module")
def small_table(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    return compare_all(["small"], years=("2024", "2026"), sku="h100", out=tmp_path_factory.mktemp("runs"))


def test_the_library_case_list_holds_base_first_and_no_backtest() -> None:
    found = library_cases()
    assert found[0] == "base" and len(found) >= 14
    assert not any(n.startswith(("backtest", "course")) for n in found)


def test_the_row_of_small_is_that_of_its_run(small_table: pd.DataFrame) -> None:
    done = run("small", prices=False)
    row = small_table.iloc[0]
    assert row["energised_2026"] == pytest.approx(done.output("energised:*@2026"))
    assert row["usd_per_gpu_hour"] == pytest.approx(done.output("usd_per_gpu_hour:h100@2026"))
    assert row["usd_per_mtoken"] == pytest.approx(done.output("usd_per_mtoken_output:llama_3_1_70b/h100@2026"))
    assert row["hash"] == done.hash
    rents = done.table("binding")
    of_year = rents[rents.period.str.startswith("2026")].groupby("stage").rent.sum()
    assert row["binding_2026"] == of_year.idxmax()
    assert row["rents_2026"].startswith(of_year.idxmax())


def test_a_figure_that_is_not_there_stays_missing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="none of the scenarios has a cost of 'b200' in 2026"):
        compare_all([_file(tmp_path, "plain", 10000)], years=("2026",))


def test_a_scenario_without_a_plan_is_a_row_with_its_reason(tmp_path: Path) -> None:
    table = compare_all([_file(tmp_path, "no_plan", 10000, IMPOSSIBLE)], years=("2026",))
    row = table.iloc[0]
    assert "no_plan" in row["problem"] and pd.isna(row["energised_2026"])
    assert "no_plan" in markdown(table)


def test_no_year_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one year"):
        compare_all(["small"], years=())


def test_shares_of_rents_leave_out_what_is_nothing() -> None:
    rents = pd.DataFrame({"period": ["2026-Q1"] * 3, "stage": ["a", "b", "c"], "rent": [999.0, 0.9, 0.1]})
    assert rent_shares(rents, "2026") == "a 100 %"
    assert rent_shares(rents, "2027") == ""


def test_the_map_has_a_corner_where_the_other_limit_binds(tmp_path: Path) -> None:
    """Fab 12,000 (median) against packaging 10,000: the smaller of the scaled two is made, and binds."""
    place = _file(tmp_path, "plain", 10000)
    found = grid(place, "resources.fab.capacity", "resources.cowos.capacity", outputs=["finished:*@2026"], steps=3,
                 span=(0.5, 1.5))  # fmt: skip
    for j, y in enumerate(found["y_scale"]):
        for i, x in enumerate(found["x_scale"]):
            made = 4 * min(12000 * x, 10000 * y)
            assert found["outputs"]["finished:*@2026"][j][i] == pytest.approx(made)
            assert found["binding"][j][i] == ("fab" if 12000 * x < 10000 * y else "cowos")


def _call(*words: str) -> str:
    found = CliRunner().invoke(app, list(words))
    assert found.exit_code == 0, found.output
    return found.stdout


def test_the_verbs_print_json(tmp_path: Path) -> None:
    place = _file(tmp_path, "plain", 10000)
    rules = json.loads(_call("discover", place, "--target", "binding:packaging@2026", "--draws", "90", "--json"))
    assert rules["rules"][0]["conditions"][0]["low"] == pytest.approx(0.25, abs=0.05)
    sites = json.loads(_call("resilience", place, "--from", "2026-Q2", "--recover", "fab=1", "--json"))["sites"]
    assert {s["id"]: s["time_to_survive"] for s in sites} == {"fab": 0, "cowos": 0}
    names = ("--x", "resources.fab.capacity", "--y", "resources.cowos.capacity")
    table = json.loads(
        _call("map", place, *names, "--steps", "2", "--outputs", "finished:*@2026", "--out", str(tmp_path), "--json")
    )
    assert len(table["binding"]) == 2
    lines = (tmp_path / "map.csv").read_text().splitlines()
    assert lines[0] == 'x_scale,y_scale,"finished:*@2026",binding' and len(lines) == 5
    drawn = json.loads(_call("sample", place, "--draws", "20", "--json"))
    assert drawn["draws"] == 20


def test_the_verbs_print_text(tmp_path: Path) -> None:
    place = _file(tmp_path, "plain", 10000)
    assert "density" in _call("discover", place, "--target", "binding:packaging@2026", "--draws", "90")
    assert "survives" in _call("resilience", place)
    names = ("--x", "resources.fab.capacity", "--y", "resources.cowos.capacity")
    assert "binds hardest" in _call("map", place, *names, "--steps", "2", "--outputs", "finished:*@2026")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("resilience", "PLACE", "--recover", "fab"), "SITE=PERIODS"),
        (("map", "PLACE", "--span", "2,1"), "least and the greatest"),
        (("sample", "PLACE", "--cluster", "here"), "tcp://HOST:PORT"),
        (("discover", "PLACE", "--target", "nonsense"), "binding:STAGE@PERIOD"),
    ],
)
def test_wrong_options_exit_with_three(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    place = _file(tmp_path, "plain", 10000)
    found = CliRunner().invoke(app, [place if w == "PLACE" else w for w in words])
    assert found.exit_code == 3
    assert message in found.output
