"""docs/data_dictionary.md against what a run stores: every table, every column, every key of the answer."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from scenarios.runner import run
from scenarios.runs import Run

PAGE = Path(__file__).parents[2] / "docs" / "data_dictionary.md"
RUN_FOLDER = PAGE.read_text(encoding="utf-8").split("## Sample folder")[0]


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Run:
    stored = run("small", out=tmp_path_factory.mktemp("runs"), study=True)
    assert stored.folder is not None
    return Run.open(stored.folder)


def names(text: str) -> list[str]:
    """Column names of a cell: what stands before a remark in words."""
    return re.findall(r"[a-z][a-z0-9_]*", text)


def section(title: str) -> str:
    return RUN_FOLDER.split(f"### {title}\n")[1].split("\n### ")[0]


def tables(title: str) -> list[list[str]]:
    """First two cells of the rows of each table of a section."""
    blocks = re.findall(r"(?:^\|.*\n)+", section(title), flags=re.MULTILINE)
    return [
        [line.strip("| ").split(" | ")[0] + "|" + line.split(" | ")[1] for line in b.splitlines()[2:]] for b in blocks
    ]


def documented() -> dict[str, list[str]]:
    """Columns of each stored table as the page has them."""
    cells = dict(row.split("|", 1) for row in tables("binding, names and the tables of a report")[0])
    found = {name: names(re.sub(r"\(.*?\)", "", cell).split(";")[0]) for name, cell in cells.items()}
    prefixes = names(cells["headline"].split(" of each of ")[1])
    found["headline"] += [f"{p}_{end}" for p in prefixes for end in ("base", "low", "high")]
    found["results"] = [name for row in tables("results")[0] for name in names(row.split("|")[0])]
    return found | {name: names(section(name).split("`")[1]) for name in ("inputs", "checks")}


def test_every_stored_table_and_column_is_documented(studied: Run) -> None:
    page = documented()
    stored = {f.removesuffix(".parquet") for f in studied.manifest["files"] if f.endswith(".parquet")}
    assert stored - set(page) == set(), "tables that the page does not name"
    assert set(page) - stored == set(), "tables that no run has"
    for name in sorted(stored):
        assert sorted(studied.table(name).columns) == sorted(page[name]), name


def test_every_quantity_of_the_results_is_documented(studied: Run) -> None:
    known = {name for row in tables("results")[1] for name in names(row.split("|")[0])}
    known |= {f"plus_1_percent{end}" for end in ("_energised", "_h100e")}
    known |= {f"usd_per_mtoken{end}" for end in ("_cache_write", "_cache_read", "_output")}
    assert set(studied.results["quantity"]) - known == set()


def test_every_key_of_answer_and_manifest_is_documented(studied: Run) -> None:
    assert studied.folder is not None
    answer = json.loads((studied.folder / "answer.json").read_text(encoding="utf-8"))
    page = section("answer.json")
    for key in [*answer, *answer["periods"][0], *answer["costs"][0], *answer["tasks"][0]]:
        assert re.search(rf"\b{key}\b", page), key
    manifest = json.loads((studied.folder / "manifest.json").read_text(encoding="utf-8"))
    for key in manifest:
        assert f"`{key}`" in RUN_FOLDER, key
