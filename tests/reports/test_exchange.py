"""Files for other programs: totals, names, graph, data package."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from pathlib import Path

import networkx as nx
import openpyxl
import pandas as pd
import pytest

from reports.exchange import IAMC_HEADS, _printed, iamc_table, run_graph, safe_text, write_exchange
from scenarios.runner import run
from scenarios.runs import Run

OWN = """\
extends: course_11_1
title: "=HYPERLINK(1)"
note: "+1"
resources:
  fab: {stage: fab, title: "=1+1|a", capacity: 15000 die/quarter}
  cowos: {stage: packaging, title: "=1+1|a", capacity: 10000 accelerator/quarter}
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.yaml").write_text(OWN, encoding="utf-8")
    return run(folder / "own.yaml", out=folder / "runs")


@pytest.fixture(scope="module")
def folder(own: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_exchange(own, tmp_path_factory.mktemp("exchange") / "files").parent


def test_iamc_columns_and_values(own: Run, folder: Path) -> None:
    table = pd.read_csv(folder / "iamc.csv")
    assert list(table.columns) == [*IAMC_HEADS, "2026"]
    row = table[table["Variable"] == "Accelerators|Finished|accelerator"].iloc[0]
    assert (row["2026"], row["Subannual"], row["Region"], row["Unit"]) == (10000.0, "Q1", "World", "accelerators")
    assert set(table["Scenario"]) == {"own"}
    assert not table.duplicated(list(IAMC_HEADS)).any()
    used = own.results[own.results["quantity"] == "used"].set_index("subject")["value"]
    held = table[table["Variable"].str.startswith("Limits|Use|")].set_index("Variable")["2026"]
    assert sorted(held) == sorted(used)


def test_equal_titles_and_bars_in_titles_stay_apart(folder: Path) -> None:
    names = set(pd.read_csv(folder / "iamc.csv")["Variable"])
    assert {"Limits|Capacity|Wafers|=1+1/a (fab)", "Limits|Capacity|Packaging|=1+1/a (cowos)"} <= names


def test_iamc_names_follow_the_conventions_of_its_databases(folder: Path) -> None:
    """As pyam reads them: heads in order, whole years, one row a key, no empty part, no star, no space at ends."""
    table = pd.read_csv(folder / "iamc.csv", keep_default_na=False)
    years = [c for c in table.columns if c not in IAMC_HEADS]
    assert list(table.columns[:5]) == ["Model", "Scenario", "Region", "Variable", "Unit"]
    assert years and all(y.isdigit() and len(y) == 4 for y in years) and years == sorted(years)
    assert not table.duplicated(list(IAMC_HEADS)).any()
    for head in IAMC_HEADS:
        words = table[head].astype(str)
        assert (
            (words == words.str.strip()).all()
            and (words != "").all()
            and not words.str.contains("*", regex=False).any()
        )
    assert all(part.strip() for name in table["Variable"] for part in name.split("|"))
    assert table[years].apply(pd.to_numeric).notna().any(axis=1).all()


def test_every_result_with_a_variable_is_there(own: Run) -> None:
    table = iamc_table(own)
    rows = own.results[~own.results["quantity"].str.contains("binding|plus_1")]
    assert table["2026"].notna().sum() == len(rows)


def test_sheets_for_iamc_programs(folder: Path) -> None:
    held = openpyxl.load_workbook(folder / "iamc.xlsx")
    assert held.sheetnames == ["data", "meta"]
    assert [c.value for c in held["data"][1]][:6] == list(IAMC_HEADS)
    assert held["data"].max_row == len(pd.read_csv(folder / "iamc.csv")) + 1
    assert not [c for sheet in held for line in sheet.iter_rows() for c in line if c.data_type == "f"]


def test_texts_of_csv_files_are_no_formulas(folder: Path) -> None:
    titles = set()
    for path in folder.glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as stream:
            for line in csv.reader(stream):
                for text in line:
                    assert not text.startswith(("=", "+", "@", "\t")), (path.name, text)
                    titles.add(text)
    assert "'=1+1|a" in titles


def test_graph_reads_back_with_the_results(folder: Path, own: Run) -> None:
    graph = nx.read_graphml(folder / "stage_graph.graphml")
    assert nx.has_path(graph, "resource:fab", "demand:accelerator")
    assert graph.nodes["resource:cowos"]["utilisation"] == pytest.approx(1.0)
    assert graph.nodes["process:package"]["starts"] == pytest.approx(10000.0)
    assert graph.graph["run"] == own.id
    assert own.folder is not None
    again = run_graph(Run.open(own.folder))
    assert set(again) == set(graph)


def test_data_package_describes_its_files(folder: Path, own: Run) -> None:
    package = json.loads((folder / "datapackage.json").read_text(encoding="utf-8"))
    assert package["id"] == own.hash and package["profile"] == "data-package"
    named = {r["path"] for r in package["resources"]}
    assert named == {p.name for p in folder.iterdir()} - {"datapackage.json"}
    for resource in package["resources"]:
        content = (folder / resource["path"]).read_bytes()
        assert resource["bytes"] == len(content)
        assert resource["hash"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
        if resource["mediatype"] == "text/csv":
            heads = content.decode("utf-8").splitlines()[0].split(",")
            assert [f["name"] for f in resource["schema"]["fields"]] == heads
    assert package["title"] == "=HYPERLINK(1)"


def test_data_package_keeps_the_rules_of_the_standard(folder: Path) -> None:
    """Frictionless Data Package 1.0: names, paths, licences, field types, and cells that fit their types."""
    package = json.loads((folder / "datapackage.json").read_text(encoding="utf-8"))
    name = re.compile(r"[-a-z0-9._/]+")
    resources = package["resources"]
    assert name.fullmatch(package["name"]) and resources
    assert len({r["name"] for r in resources}) == len(resources) and all(name.fullmatch(r["name"]) for r in resources)
    assert not [r for r in resources if r["path"].startswith(("/", "~")) or ".." in r["path"]]
    assert all(entry.get("name") or entry.get("path") for entry in package["licenses"])
    assert all(entry["title"] for entry in package["sources"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*", package["created"])
    fits = {"number": r"|NaN|-?INF|-?\d+(\.\d+)?([eE][+-]?\d+)?", "integer": r"|-?\d+", "boolean": "|True|False"}
    for resource in (r for r in resources if "schema" in r):
        fields = resource["schema"]["fields"]
        assert {f["type"] for f in fields} <= {"number", "integer", "boolean", "string"}
        with (folder / resource["path"]).open(encoding="utf-8", newline="") as stream:
            rows = list(csv.reader(stream))
        assert rows[0] == [f["name"] for f in fields] and all(len(r) == len(fields) for r in rows)
        for k, field in enumerate(fields):
            if field["type"] in fits:
                assert all(re.fullmatch(fits[field["type"]], r[k]) for r in rows[1:]), (resource["name"], field)


def test_wide_signs_are_quoted_and_infinity_is_spelt_as_the_standard_spells_it(tmp_path: Path) -> None:
    assert [safe_text(t)[0] for t in ("\uff1dcmd()", "\n=1", "-2+3", "\t=1")] == ["'"] * 4
    assert [_printed(v) for v in (float("inf"), float("-inf"), float("nan"), 0.1)] == ["INF", "-INF", "", "0.1"]


def test_tables_keep_every_digit(folder: Path, own: Run) -> None:
    held = pd.read_csv(folder / "results.csv", dtype=str)
    assert [float(v) for v in held["value"]] == own.results["value"].tolist()
