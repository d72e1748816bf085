"""Every file of a stored run and of stored draws, harmed in every way: each reader refuses and names it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.cli.report import report_verb
from reports.cli.studies import compare_verb
from scenarios import sample as sample_module
from scenarios.opening_state import OpeningError, fill_opening
from scenarios.run_store import RunFolderError, is_complete
from scenarios.runner import run
from scenarios.runs import Run
from scenarios.sample import open_sample, sample

ROOT = Path(__file__).parents[2]
CHAIN = ROOT / "tests" / "scenarios" / "cases" / "chain.yaml"


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def _flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 4
    path.write_bytes(bytes(raw))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _link(path: Path) -> None:
    other = path.with_name("elsewhere")
    path.rename(other)
    path.symlink_to(other.name)


def _lost_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


HARMS: dict[str, Callable[[Path], None]] = {
    "cut": _cut, "flipped": _flip, "deleted": Path.unlink, "emptied": lambda p: p.write_bytes(b"") and None,
    "a folder": _folder, "a link": _link, "a lost link": _lost_link, "a pipe": _pipe,
}  # fmt: skip


def _opening(folder: Path) -> None:
    data: dict[str, Any] = {"opening": {"from_run": str(folder)}, "horizon": {"start": "2026-Q2"}}
    fill_opening(data, folder.parent, lambda keys: False)


RUN_READERS: dict[str, Callable[[Path], Any]] = {
    "open": Run.open,
    "report": lambda f: report_verb([f], None, f.parent / "reports", False),
    "report, previous": lambda f: report_verb([f.parent / "whole"], f, f.parent / "reports", False),
    "compare": lambda f: compare_verb(str(f.parent / "whole"), str(f), False, None),
    "opening": _opening,
    "draws": open_sample,
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = run("course_11_1", out=tmp_path_factory.mktemp("whole")).folder
    assert folder is not None
    return folder


@pytest.fixture(scope="module")
def draws(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sample_module.CHUNK, kept = 4, sample_module.CHUNK
    try:
        folder = sample(CHAIN, 12, out=tmp_path_factory.mktemp("draws")).folder
    finally:
        sample_module.CHUNK = kept
    assert folder is not None
    return folder


def _refuses(read: Callable[[Path], Any], folder: Path, name: str) -> None:
    with pytest.raises((RunFolderError, OpeningError)) as caught:
        read(folder)
    text = str(caught.value)
    assert str(folder) in text and name in text, text
    assert "again" in text or "give the folder" in text, text


@pytest.mark.parametrize("harm", HARMS)
def test_every_reader_refuses_a_harmed_run(harm: str, whole: Path, tmp_path: Path, ledger: Any) -> None:
    shutil.copytree(whole, tmp_path / "whole")
    count = 0
    for name in sorted(p.name for p in whole.iterdir()):
        folder = tmp_path / "harmed"
        shutil.copytree(whole, folder)
        HARMS[harm](folder / name)
        for read in RUN_READERS.values():
            _refuses(read, folder, name)
            count += 1
        assert not is_complete(folder)
        shutil.rmtree(folder)
    assert not (tmp_path / "reports").exists()
    ledger.add(f"stored run, a file {harm}, by reader", faults=count, losses=0)


@pytest.mark.parametrize("harm", HARMS)
def test_every_reader_refuses_harmed_draws(harm: str, draws: Path, tmp_path: Path, ledger: Any) -> None:
    count = 0
    for name in sorted(p.name for p in draws.iterdir()):
        folder = tmp_path / "harmed"
        shutil.copytree(draws, folder)
        HARMS[harm](folder / name)
        for read in (open_sample, Run.open):
            _refuses(read, folder, name)
            count += 1
        shutil.rmtree(folder)
    ledger.add(f"stored draws, a file {harm}, by reader", faults=count, losses=0)


@pytest.mark.parametrize("harm", ["cut", "flipped", "deleted", "emptied"])
def test_a_harmed_run_is_made_again(harm: str, whole: Path, tmp_path: Path, contents_of: Any) -> None:
    parent = tmp_path / "runs"
    shutil.copytree(whole, parent / whole.name)
    HARMS[harm](parent / whole.name / "results.parquet")
    again = run("course_11_1", out=parent)
    assert again.folder == parent / whole.name
    assert contents_of(parent / whole.name) == contents_of(whole)
    assert [p.name for p in parent.iterdir()] == [whole.name]


@pytest.mark.parametrize("harm", ["cut", "flipped", "deleted", "emptied"])
def test_a_chunk_harmed_before_the_resume_is_drawn_again(
    harm: str, draws: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, contents_of: Any
) -> None:
    monkeypatch.setattr(sample_module, "CHUNK", 4)

    def stop(text: str) -> None:
        if text.startswith("8 of"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample(CHAIN, 12, out=tmp_path, progress=stop)
    chunks = sorted(tmp_path.rglob("chunk-*.parquet"))
    assert len(chunks) == 2
    HARMS[harm](chunks[0])
    done: list[str] = []
    sample(CHAIN, 12, out=tmp_path, progress=done.append)
    assert len(done) == 2, "the harmed chunk and the missing one are drawn, the good one is kept"
    assert contents_of(tmp_path) == {f"{draws.name}/{n}": raw for n, raw in contents_of(draws).items()}


def test_a_file_that_is_not_in_the_manifest_is_not_read(draws: Path, whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "more"
    shutil.copytree(draws, folder)
    chunk = min(folder.glob("chunk-*.parquet"))
    shutil.copy(chunk, folder / "chunk-000099-0123456789abcdef.parquet")
    assert np.array_equal(open_sample(folder).values, open_sample(draws).values)
    other = tmp_path / "run"
    shutil.copytree(whole, other)
    shutil.copy(other / "results.parquet", other / "fleet.parquet")
    with pytest.raises(KeyError, match=r"no table 'fleet'; it has binding, checks"):
        Run.open(other).table("fleet")


def test_a_table_changed_after_the_opening_is_refused(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    opened = Run.open(folder)
    _flip(folder / "results.parquet")
    with pytest.raises(RunFolderError, match=r"results\.parquet was changed after the run"):
        _ = opened.results


@pytest.mark.parametrize("key", ["sha256", "manifest_sha256", "files"])
def test_a_manifest_without_digests_is_refused(key: str, whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    del manifest[key]
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(RunFolderError, match=r"manifest\.json is broken"):
        Run.open(folder)


def test_times_of_files_do_not_matter(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    for year in (0, 4102444800):  # 1970 and 2100
        for path in folder.iterdir():
            os.utime(path, (year, year))
        assert is_complete(folder) and Run.open(folder).passed


def test_the_app_refuses_a_harmed_run(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    _flip(folder / "scenario.yaml")
    command = [sys.executable, "-m", "wafer2token", "view", str(folder), "--no-browser"]
    done = subprocess.run(command, capture_output=True, check=False, cwd=ROOT, timeout=120)
    assert done.returncode == 3 and b"scenario.yaml was changed after the run" in done.stderr
