"""Stored studies in a report: read from their files, in words of the catalogue, refused where they do not belong."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from reports.choices import read_choices
from reports.context import Context
from reports.market_report import make_report, render_html
from reports.sections.studies import StudyError, studies_section
from scenarios.runner import run
from scenarios.runs import Run

MAP = {
    "x": "yield", "y": "power", "x_scale": [0.9, 1.0, 1.1], "y_scale": [0.8, 1.0, 1.2],
    "outputs": {"energised": [[1e6, 2e6, 3e6], [4e6, 5e6, 6e6], [7e6, 8e6, 9e6]]},
    "binding": [["cowos"] * 3, ["cowos"] * 3, ["cowos"] * 3],
}  # fmt: skip
OUTAGE = {"id": ["cowos"], "time_to_survive": [2], "at_least": [True], "loss_one_period": [1.0], "time_to_recover": [4],
          "loss": [5.5], "loss_share": [0.25], "price": [None], "rank": [1]}  # fmt: skip
RANKING = {
    "method": "morris",
    "evaluations": 40,
    "nominal": {},
    "outputs": {"energised": [{"input": "yield", "mu": 0.5}]},
}
RULE = {"words": "power below 0.40 of its range", "density": 0.9, "coverage": 0.6}


@pytest.fixture(scope="module")
def course() -> Run:
    return run("course_11_1")


@pytest.fixture
def folder(tmp_path: Path, course: Run) -> Path:
    held = tmp_path / "kept"
    held.mkdir()
    found = {"scenario": "course_11_1", "target": "finished < 9000", "draws": 200, "share": 0.3, "rules": [RULE]}
    for name, data in (("map.json", MAP), ("sensitivity_morris.json", RANKING), ("discovery.json", found)):
        (held / name).write_text(json.dumps(data), encoding="utf-8")
    pd.DataFrame(OUTAGE).to_csv(held / "resilience.csv", index=False)
    pd.DataFrame({"scenario": ["base"], "energised_2026": [8.4e6]}).to_csv(held / "compare_all.csv", index=False)
    return held


def test_every_study_of_a_folder_has_its_table(course: Run, folder: Path) -> None:
    section = studies_section(Context(course), [folder])
    assert section is not None
    tables = {t.short: t for t in section.tables}
    assert set(tables) == {"map", "sensitivity", "discovery", "resilience", "library"}
    assert [row[2].value for row in tables["map"].rows] == [v for row in MAP["outputs"]["energised"] for v in row]
    assert tables["map"].columns[0].title == "yield" and tables["map"].rows[0][3].text.startswith("CoWoS")
    assert tables["resilience"].rows[0][1].text == "2 or more" and tables["resilience"].rows[0][5].text == "-"
    assert tables["discovery"].caption == "When finished < 9000 happens: it does in 30\N{NO-BREAK SPACE}% of 200 draws"
    assert len(section.figures) == 1
    assert studies_section(Context(course), []) is None


def test_a_map_of_five_points_has_a_curve_with_the_loss_of_a_tenth(course: Run, folder: Path) -> None:
    """The output is 5 million times the input below base: a tenth is lost at 90 %."""
    steps = [0.6, 0.8, 1.0, 1.2, 1.4]
    rows = [[5e6 * min(x, 1.1) * y for x in steps] for y in (0.5, 1.0)]
    limits = [["cowos", "cowos", "cowos", "fab", "fab"]] * 2
    wide = {**MAP, "x_scale": steps, "y_scale": [0.5, 1.0], "outputs": {"energised": rows}, "binding": limits}
    (folder / "map.json").write_text(json.dumps(wide), encoding="utf-8")
    section = studies_section(Context(course), [folder])
    assert section is not None
    assert [f.id for f in section.figures] == ["binding_map", "headline_curve"]
    curve = section.figures[1]
    assert curve.headline == "4.5 million is reached at 90\N{NO-BREAK SPACE}%"
    assert "power at 100\N{NO-BREAK SPACE}% of base" in curve.subtitle
    assert list(curve.data["output"]) == rows[1] and "CoWoS" in curve.svg and "80\N{NO-BREAK SPACE}%" in curve.svg


def test_a_choice_file_names_folders_and_the_page_holds_them(course: Run, folder: Path) -> None:
    path = folder.parent / "choices.yaml"
    path.write_text("studies: [kept]\nsections: [studies, method]\n", encoding="utf-8")
    page = render_html(make_report([course], choices=read_choices(path)))
    assert 'id="studies"' in page and "power below 0.40 of its range" in page
    path.write_text("studies: [gone]\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"studies.0: no folder 'gone' beside this file"):
        read_choices(path)


def test_wrong_folders_and_files_are_refused(course: Run, folder: Path, tmp_path: Path) -> None:
    c = Context(course)
    with pytest.raises(StudyError, match="no file of a study"):
        studies_section(c, [tmp_path])
    (folder / "discovery.json").write_text('{"scenario": "base"}', encoding="utf-8")
    with pytest.raises(StudyError, match="a study of 'base', but the run is of 'course_11_1'"):
        studies_section(c, [folder])
    (folder / "discovery.json").write_text("{}", encoding="utf-8")
    with pytest.raises(StudyError, match=r"discovery.json is broken .*make the study again"):
        studies_section(c, [folder])
