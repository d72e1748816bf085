"""An edited workbook back to a scenario: exact when untouched, one entry an edited cell, all errors at their cells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from reports.workbook import write_workbook
from reports.workbook_read import WorkbookError, load_workbook_scenario, read_workbook
from scenarios.load import load_scenario
from scenarios.resolve import resolve
from scenarios.runner import run, run_hash
from scenarios.runs import Run

OWN = """\
title: Two months of one line
horizon: {start: 2026-01, periods: 3, step: month, tail: 0}
objective: units
materials: {die: {unit: die}, accelerator: {unit: accelerator}}
resources:
  fab: {stage: fab, capacity: {2026-01: 900 die/month, 2026-02: 1000 die/month, 2026-03: 1100 die/month}}
processes:
  make_die: {stage: fab, output: {die: 1}, uses: {fab: 1 die}, yield: 0.9, lead_time: 0 week}
  package: {stage: packaging, input: {die: 2}, output: {accelerator: 1}, lead_time: 0 week}
demand: {accelerator: {price: 1 USD/accelerator}}
set:
  resources.fab.capacity: {scale: 1.1}
"""
Edit = Callable[[Any], None]


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run("course_11_1", out=tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def book(course: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_workbook(course, tmp_path_factory.mktemp("books") / "course.xlsx")


@pytest.fixture(scope="module")
def own_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.yaml").write_text(OWN, encoding="utf-8")
    return run(folder / "own.yaml", out=folder / "runs")


@pytest.fixture(scope="module")
def own_book(own_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_workbook(own_run, tmp_path_factory.mktemp("books") / "own.xlsx")


def edited(book: Path, folder: Path, change: Edit, name: str = "edited.xlsx") -> Path:
    held = openpyxl.load_workbook(book)
    change(held)
    held.save(folder / name)
    return folder / name


def row_of(held: Any, path: str, start: str | None = None) -> int:
    return next(
        cells[0].row
        for cells in held["Inputs"].iter_rows(min_row=7)
        if cells[0].value == path and start in (None, cells[1].value)
    )


def put(path: str, value: Any, column: str = "D", start: str | None = None) -> Edit:
    def change(held: Any) -> None:
        held["Inputs"][f"{column}{row_of(held, path, start)}"].value = value

    return change


def test_untouched_it_is_the_run(course: Run, book: Path) -> None:
    assert read_workbook(book) == "extends: course_11_1\n"
    scenario = load_workbook_scenario(book)
    assert scenario.name == "course_11_1"
    assert run_hash(scenario, course.manifest["options"]) == course.hash


def test_untouched_own_file_with_edits_is_the_run(own_run: Run, own_book: Path, tmp_path: Path) -> None:
    assert run_hash(load_workbook_scenario(own_book), own_run.manifest["options"]) == own_run.hash
    saved = edited(own_book, tmp_path, lambda held: None)
    assert run_hash(load_workbook_scenario(saved), own_run.manifest["options"]) == own_run.hash


def test_untouched_library_run_with_edits_is_the_run(tmp_path: Path) -> None:
    done = run("course_11_1", [("resources.cowos.capacity", {"scale": 0.8}), ("resources.fab.capacity", 9000)])
    path = write_workbook(done, tmp_path / "set.xlsx")
    assert read_workbook(path).startswith("extends: course_11_1\nset:\n")
    assert run_hash(load_workbook_scenario(path), done.manifest["options"]) == done.hash


def test_an_edited_cell_is_one_entry_and_moves_the_answer(book: Path, tmp_path: Path) -> None:
    path = edited(book, tmp_path, put("resources.cowos.capacity", 12000.5))
    assert read_workbook(path) == "extends: course_11_1\nset:\n  resources.cowos.capacity: 12000.5\n"
    assert run(load_workbook_scenario(path)).output("finished:accelerator@2026-Q1") == pytest.approx(12000.5)


def test_the_value_of_one_period_is_replaced_in_it_alone(own_book: Path, tmp_path: Path) -> None:
    path = edited(own_book, tmp_path, put("resources.fab.capacity", 1234.5, start="2026-02"))
    scenario = load_workbook_scenario(path)
    values = resolve(scenario).network.values["resources.fab.capacity"]
    assert values.tolist() == pytest.approx([990.0, 1234.5, 1210.0], rel=1e-15)
    assert len(scenario.edits) == 2  # the file's own, and one for the cell
    assert scenario.edits[-1].raw == {"replace": 1234.5, "from": "2026-02", "to": "2026-02"}


def test_every_value_that_is_written_is_read_back(own_book: Path, own_run: Run, tmp_path: Path) -> None:
    def change(held: Any) -> None:
        for cells in held["Inputs"].iter_rows(min_row=7):
            if cells[5].value != "period":
                cells[3].value = cells[3].value * 0.75

    scenario = load_workbook_scenario(edited(own_book, tmp_path, change))
    before, after = own_run.inputs, resolve(scenario).inputs()
    factor = [1.0 if unit == "period" else 0.75 for unit in before["unit"]]
    assert after["value"].tolist() == pytest.approx((before["value"] * factor).tolist(), rel=1e-15)


def test_rows_may_be_sorted(book: Path, tmp_path: Path) -> None:
    def change(held: Any) -> None:
        sheet = held["Inputs"]
        rows = [[c.value for c in line] for line in sheet.iter_rows(min_row=7, max_col=8)]
        for number, values in enumerate(sorted(rows, key=lambda r: str(r[0]), reverse=True), 7):
            for column, value in enumerate(values, 1):
                sheet.cell(number, column).value = value

    assert read_workbook(edited(book, tmp_path, change)) == "extends: course_11_1\n"


def test_further_edits_follow_those_of_the_book(book: Path, tmp_path: Path) -> None:
    path = edited(book, tmp_path, put("resources.cowos.capacity", 12000))
    scenario = load_workbook_scenario(path, [("resources.cowos.capacity", {"scale": 0.5})])
    assert resolve(scenario).network.values["resources.cowos.capacity"].tolist() == [6000.0]
    assert load_scenario("course_11_1").edits == ()


def test_all_errors_at_once_with_their_cells(book: Path, tmp_path: Path) -> None:
    def change(held: Any) -> None:
        put("resources.fab.capacity", "15 000")(held)
        put("resources.cowos.capacity", "wafer/period", "F")(held)
        put("processes.package.yield", None)(held)
        put("processes.make_die.yield", 0.5, "E")(held)
        put("processes.make_die.output.die", 0.5, "G")(held)
        put("demand.accelerator.price", "demand.accelerators.price", "A")(held)

    path = edited(book, tmp_path, change)
    with pytest.raises(WorkbookError) as caught:
        read_workbook(path)
    held = openpyxl.load_workbook(path)
    places = {
        p: row_of(held, p) for p in ("resources.fab.capacity", "resources.cowos.capacity", "processes.package.yield")
    }
    problems = caught.value.problems
    assert len(problems) == 7  # the renamed row is unknown, and the row that it was is missing
    assert (
        f"Inputs!D{places['resources.fab.capacity']}: '15 000' is no number; write a number in die/period" in problems
    )
    assert any(
        p.startswith(f"Inputs!F{places['resources.cowos.capacity']}: must be 'accelerator/period'") for p in problems
    )
    assert any(p.startswith(f"Inputs!D{places['processes.package.yield']}: is empty") for p in problems)
    assert any("the column was edited, or the facts have changed" in p for p in problems)
    assert any("is empty, but Low is not; a range has both ends" in p for p in problems)
    assert any("'demand.accelerators.price' from '2026-Q1' is no input" in p for p in problems)
    assert any("the row of demand.accelerator.price from 2026-Q1 is missing" in p for p in problems)
    assert str(path) in str(caught.value)


def test_values_outside_their_bounds_are_told_at_their_cells(book: Path, tmp_path: Path) -> None:
    def change(held: Any) -> None:
        put("processes.package.yield", 1.5)(held)
        put("resources.fab.capacity", -1)(held)

    path = edited(book, tmp_path, change)
    with pytest.raises(WorkbookError) as caught:
        read_workbook(path)
    held = openpyxl.load_workbook(path)
    first, second = sorted(caught.value.problems, key=lambda p: "yield" in p)
    assert first.startswith(f"Inputs!D{row_of(held, 'resources.fab.capacity')}: resources.fab.capacity: -1 is below 0")
    assert second.startswith(
        f"Inputs!D{row_of(held, 'processes.package.yield')}: processes.package.yield: 1.5 is above 1"
    )


def test_a_formula_that_nobody_computed_is_told(book: Path, tmp_path: Path) -> None:
    path = edited(book, tmp_path, put("resources.fab.capacity", "=2*7500"))
    with pytest.raises(WorkbookError, match=r"Inputs!D\d+: is empty, or a formula that no program has computed"):
        read_workbook(path)


@pytest.mark.parametrize("value", [True, "=1+1", "nan"])
def test_a_value_must_be_a_number(book: Path, tmp_path: Path, value: Any) -> None:
    with pytest.raises(WorkbookError, match=r"Inputs!D\d+"):
        read_workbook(edited(book, tmp_path, put("resources.fab.capacity", value)))


def test_a_row_given_twice_is_told(book: Path, tmp_path: Path) -> None:
    def change(held: Any) -> None:
        sheet = held["Inputs"]
        source = [c.value for c in sheet[7]][:8]
        for column, value in enumerate(source, 1):
            sheet.cell(sheet.max_row + (column == 1), column).value = value

    with pytest.raises(WorkbookError, match="stands in row 7 too"):
        read_workbook(edited(book, tmp_path, change))


def test_other_files_are_refused_in_words(book: Path, tmp_path: Path) -> None:
    (tmp_path / "text.xlsx").write_text("no workbook", encoding="utf-8")
    with pytest.raises(WorkbookError, match="not an Excel workbook"):
        read_workbook(tmp_path / "text.xlsx")
    openpyxl.Workbook().save(tmp_path / "empty.xlsx")
    with pytest.raises(WorkbookError, match="no sheet Scenario or Inputs"):
        read_workbook(tmp_path / "empty.xlsx")

    def change(held: Any) -> None:
        held["Inputs"]["D6"].value = "Wert"

    with pytest.raises(WorkbookError, match="Inputs!D6: the header must be 'Value'"):
        read_workbook(edited(book, tmp_path, change))


def test_a_changed_scenario_sheet_is_told_at_its_line(own_book: Path, tmp_path: Path) -> None:
    def change(held: Any) -> None:
        sheet = held["Scenario"]
        line = next(c for c in sheet["A"] if c.value and "objective" in str(c.value))
        line.value = str(line.value).replace("units", "unitz")

    with pytest.raises(WorkbookError, match=r"Scenario!A\d+: objective"):
        read_workbook(edited(own_book, tmp_path, change))


MONTHLY_FLEET = """\
title: Monthly fleet
horizon: {start: 2026-01, periods: 3, step: month, tail: 0}
objective: value
discount_rate: 0.1
regions: {us: {title: United States}}
materials: {accelerator: {unit: accelerator}}
resources:
  line: {stage: packaging, capacity: 1000 accelerator/month}
  power_us: {stage: power, region: us, capacity: 5 MW}
processes:
  make: {stage: packaging, output: {accelerator: 1}, uses: {line: 1 accelerator}, lead_time: 0 week}
fleet:
  own: {title: Own, material: accelerator, regions: [us], kw_planning: 1.2, value: 1 USD/hour, h100e: 1, survival: 0.99}
"""


RANGED = "processes.make_die.yield"


def row(held: Any, path: str, **cells: Any) -> None:
    """Write into the row of a path: value, low, high, kind, note."""
    columns = {"value": "D", "low": "G", "high": "H", "kind": "I", "note": "L"}
    for name, value in cells.items():
        held["Inputs"][f"{columns[name]}{row_of(held, path)}"].value = value


@pytest.mark.parametrize(
    ("cells", "form"),
    [
        ({"value": 0.6, "low": 0.5, "high": 0.7}, {"value": 0.6, "range": [0.5, 0.7]}),
        ({"low": 0.9, "high": 1.0}, {"value": 1.0, "range": [0.9, 1.0]}),
        (
            {"kind": "illustrative", "note": "a guess"},
            {"value": 1.0, "range": [1.0, 1.0], "kind": "illustrative", "note": "a guess"},
        ),
        (
            {"value": 0.3, "low": 0.2, "high": 0.35, "kind": "illustrative", "note": "+1: a guess"},
            {"value": 0.3, "range": [0.2, 0.35], "kind": "illustrative", "note": "+1: a guess"},
        ),
        ({"value": 0.4, "note": "measured by us"}, {"value": 0.4, "note": "measured by us"}),
        ({"value": 0.25}, 0.25),
    ],
)
def test_a_row_is_read_as_it_stands(book: Path, tmp_path: Path, cells: dict[str, Any], form: Any) -> None:
    path = edited(book, tmp_path, lambda held: row(held, RANGED, **cells))
    scenario = load_workbook_scenario(path)
    (edit,) = scenario.edits
    assert (edit.pattern, edit.raw) == (RANGED, form)
    (found,) = [r for r in resolve(scenario).inputs().itertuples() if r.path == RANGED]
    said = form if isinstance(form, dict) else {"value": form}
    low, high = said.get("range", (None, None))
    assert found.value == said["value"]
    if low == high:
        assert {str(found.low), str(found.high)} <= {"None", "nan"}
    else:
        assert (found.low, found.high) == pytest.approx((low, high), rel=1e-14)
    assert found.kind == said.get("kind", "stated")


def test_ranges_of_a_library_scenario_survive_the_way_there_and_back(tmp_path: Path) -> None:
    """A range edited in the book of an edited scenario is the range of the next book."""
    first = run("course_11_1", [(RANGED, {"value": 0.7, "range": [0.6, 0.75]})])
    book = write_workbook(first, tmp_path / "first.xlsx")
    assert run_hash(load_workbook_scenario(book), first.manifest["options"]) == first.hash
    path = edited(book, tmp_path, lambda held: row(held, RANGED, value=0.65, low=0.55))
    second = run(load_workbook_scenario(path))
    again = write_workbook(second, tmp_path / "second.xlsx")
    assert run_hash(load_workbook_scenario(again), second.manifest["options"]) == second.hash
    (found,) = [r for r in second.inputs.itertuples() if r.path == RANGED]
    assert (found.value, found.low, found.high) == pytest.approx((0.65, 0.55, 0.75), rel=1e-14)


@pytest.mark.parametrize(
    ("cells", "column", "message"),
    [
        ({"value": 0.6, "low": 0.7, "high": 0.9}, "D", "0.6 is outside Low and High, 0.7 to 0.9; change them too"),
        ({"high": 0.9}, "G", "is empty, but High is not; a range has both ends, or clear both"),
        ({"low": "few", "high": 0.9}, "G", "'few' is no number"),
        ({"kind": "published"}, "I", "must be stated, illustrative or unchanged"),
        ({"kind": "illustrative", "note": "  "}, "L", "is empty; an illustrative value needs its reason here"),
        ({"value": 1e308}, "D", "1e+308 is beyond 1e+300"),
    ],
)
def test_a_row_that_says_too_little_is_told(
    book: Path, tmp_path: Path, cells: dict[str, Any], column: str, message: str
) -> None:
    path = edited(book, tmp_path, lambda held: row(held, RANGED, **cells))
    place = f"Inputs!{column}{row_of(openpyxl.load_workbook(path), RANGED)}: "
    with pytest.raises(WorkbookError) as caught:
        read_workbook(path)
    (problem,) = caught.value.problems
    assert problem.startswith(place) and message in problem


def test_survival_is_read_in_the_period_of_its_row(tmp_path: Path) -> None:
    """A file states survival a quarter, the sheet shows it a month."""
    (tmp_path / "monthly.yaml").write_text(MONTHLY_FLEET, encoding="utf-8")
    done = run(tmp_path / "monthly.yaml", costs=False)
    book = write_workbook(done, tmp_path / "monthly.xlsx")
    assert run_hash(load_workbook_scenario(book), done.manifest["options"]) == done.hash
    scenario = load_workbook_scenario(edited(book, tmp_path, put("fleet.own.survival", 0.98)))
    assert resolve(scenario).network.values["fleet.own.survival"].tolist() == pytest.approx([0.98] * 3, rel=1e-14)
