"""The verbs around formats: several at once, wrong names, a workbook run as a scenario."""

from __future__ import annotations

import json
from pathlib import Path

import openpyxl
import pytest
from typer.testing import CliRunner

from reports.cli.app import app
from scenarios.runner import run
from scenarios.runs import Run

runner = CliRunner()


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run("course_11_1", out=tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def written(course: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("reports")
    done = runner.invoke(
        app, ["report", str(course.folder), "--format", "exchange,xlsx,pdf,html", "--out", str(out), "--json"]
    )
    assert done.exit_code == 0, done.output
    files = [Path(f) for f in json.loads(done.stdout)["files"]]
    return {f.suffix: f for f in files}


def test_all_formats_at_once(course: Run, written: dict[str, Path]) -> None:
    assert set(written) == {".html", ".pdf", ".xlsx", ".json"}
    assert all(path.is_file() for path in written.values())
    assert written[".xlsx"].name == f"{course.id}.xlsx"
    assert not list(written[".xlsx"].parent.glob(".*tmp"))


def test_an_edited_workbook_runs_as_a_scenario(written: dict[str, Path], tmp_path: Path) -> None:
    held = openpyxl.load_workbook(written[".xlsx"])
    cell = next(c for c in held["Inputs"]["A"] if c.value == "resources.cowos.capacity")
    held["Inputs"][f"D{cell.row}"].value = 8000
    held.save(tmp_path / "Edited.XLSX")
    done = runner.invoke(app, ["run", str(tmp_path / "Edited.XLSX"), "--json"])
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert answer["periods"][0]["finished"] == {"accelerator": pytest.approx(8000)}
    assert answer["scenario"] == "course_11_1"
    more = runner.invoke(
        app, ["run", str(tmp_path / "Edited.XLSX"), "--set", "resources.cowos.capacity=7000", "--json"]
    )
    assert json.loads(more.stdout)["periods"][0]["finished"] == {"accelerator": pytest.approx(7000)}


def test_a_wrong_cell_is_invalid_input(written: dict[str, Path], tmp_path: Path) -> None:
    held = openpyxl.load_workbook(written[".xlsx"])
    held["Inputs"]["D7"].value = "many"
    held.save(tmp_path / "wrong.xlsx")
    done = runner.invoke(app, ["check", str(tmp_path / "wrong.xlsx")])
    assert done.exit_code == 3
    assert "Inputs!D7: 'many' is no number" in done.stderr


@pytest.mark.parametrize("text", ["docx", "html,docx", ","])
def test_an_unknown_format_is_a_usage_error(course: Run, text: str) -> None:
    done = runner.invoke(app, ["report", str(course.folder), "--format", text])
    assert done.exit_code == 2
    assert "html,pdf,xlsx,exchange" in done.output.replace("\n", "")
