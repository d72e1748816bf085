"""Run folders: no half run is ever taken for whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from scenarios.run_store import (
    RunFolderError,
    canonical_json,
    check_complete,
    content_hash,
    find_complete,
    is_complete,
    read_table,
    write_folder,
    write_table,
)
from scenarios.runs import Run


def fill(folder: Path) -> None:
    write_table(pd.DataFrame({"a": ["x", "y"], "b": [1.5, None]}), folder / "results.parquet")


def test_a_whole_folder_is_found_and_read(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, "one", {"run": "one"}, fill)
    assert is_complete(folder) and find_complete(tmp_path, "one") == folder
    frame = read_table(folder / "results.parquet")
    assert frame["a"].tolist() == ["x", "y"] and frame["b"].isna().tolist() == [False, True]
    assert [p.name for p in tmp_path.iterdir()] == ["one"]


@pytest.mark.parametrize("harm", ["no_manifest", "cut", "missing", "broken_manifest"])
def test_a_harmed_folder_is_refused_and_cleared(tmp_path: Path, harm: str) -> None:
    folder = write_folder(tmp_path, "one", {"run": "one"}, fill)
    table, manifest = folder / "results.parquet", folder / "manifest.json"
    if harm == "no_manifest":
        manifest.unlink()
    elif harm == "cut":
        table.write_bytes(table.read_bytes()[:-5])
    elif harm == "missing":
        table.unlink()
    else:
        manifest.write_text("{", encoding="utf-8")
    assert not is_complete(folder)
    with pytest.raises(RunFolderError):
        Run.open(folder)
    assert find_complete(tmp_path, "one") is None
    assert not folder.exists()


def test_a_failure_while_writing_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        fill(folder)
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_folder(tmp_path, "one", {}, fail)
    assert list(tmp_path.iterdir()) == []


def test_a_killed_writer_leaves_no_run(tmp_path: Path) -> None:
    script = (
        "import os, pathlib, sys\n"
        "from scenarios.run_store import write_folder\n"
        "def fill(folder):\n"
        "    (folder / 'results.parquet').write_text('half')\n"
        "    os.kill(os.getpid(), 9)\n"
        "write_folder(pathlib.Path(sys.argv[1]), 'one', {}, fill)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False, env=dict(os.environ))
    assert done.returncode == -9
    assert find_complete(tmp_path, "one") is None
    assert all(p.name.startswith(".tmp-") for p in tmp_path.iterdir())
    write_folder(tmp_path, "one", {"run": "one"}, fill)
    assert [p.name for p in tmp_path.iterdir()] == ["one"], "the next writer removes what the dead one left"


def test_the_second_of_two_writers_keeps_the_first_folder(tmp_path: Path) -> None:
    write_folder(tmp_path, "one", {"run": "first"}, fill)
    folder = write_folder(tmp_path, "one", {"run": "second"}, fill)
    assert check_complete(folder)["run"] == "first"


def test_canonical_json_and_hash_do_not_depend_on_order() -> None:
    assert canonical_json({"b": [1, 2.5], "a": None}) == '{"a":null,"b":[1,2.5]}'
    assert content_hash({"a": 1, "b": 2}) == content_hash({"b": 2, "a": 1})
    assert content_hash({"a": 1}) != content_hash({"a": 1.5})
    with pytest.raises(ValueError, match="Out of range float"):
        canonical_json(float("nan"))
    assert json.loads(canonical_json({"x": "é"})) == {"x": "é"}


def test_a_parents_edit_that_a_child_cancels_is_neither_hashed_nor_written_out(tmp_path: Path) -> None:
    from scenarios.load import load_scenario
    from scenarios.resolve import resolve
    from scenarios.runner import resolved_yaml, run_hash

    (tmp_path / "parent.yaml").write_text(
        "extends: course_11_1\nset: {resources.cowos.capacity: {scale: 0.5}}\n", encoding="utf-8"
    )
    child = tmp_path / "child.yaml"
    child.write_text(
        "extends: parent.yaml\nresources: {cowos: {stage: packaging, capacity: 8000 accelerator/quarter}}\n",
        encoding="utf-8",
    )
    given = load_scenario(child)
    again = tmp_path / "again.yaml"
    again.write_text(resolved_yaml(resolve(given)), encoding="utf-8")
    reloaded = load_scenario(again, name="child")
    for scenario in (given, reloaded):
        assert resolve(scenario).network.values["resources.cowos.capacity"][0] == 8000.0
    assert run_hash(given) == run_hash(reloaded)


def test_draws_and_run_agree_on_prices_with_contract_shares() -> None:
    from scenarios.evaluators import Chunk
    from scenarios.runner import run
    from scenarios.study import prepare

    names = [f"price:{r}@2024-Q3" for r in ("cowos", "cowos_l", "hbm_sk_hynix")]
    _, _, worker = prepare("small", outputs=names)
    drawn = worker.evaluate(Chunk(0, 0, size=1)).values[0]
    whole = run("small", prices=False, costs=False)
    for name, value in zip(names, drawn, strict=True):
        assert value == pytest.approx(whole.output(name), rel=1e-6, abs=1e-6)
