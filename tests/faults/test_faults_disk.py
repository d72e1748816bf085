"""A full disk and a read-only folder are refused with the place and what to do; nothing half stays, the good stays."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
#: A refusal names the place, what is wrong, and what to do (exit 3).
REFUSED = re.compile(
    r"/\S+.*: ?.*(no space left|too large|read-only|permission denied|could not write|cannot).*[:;] ?\S+", re.I
)
CASES = (
    "model,hardware,n_accelerators,tp,framework,isl,osl,concurrency_or_batch,metric,unit,scenario\n"
    "Llama-3.1-70B,H100,8,8,vLLM,1000,1000,16,tpot_mean,ms,closed_loop_concurrency\n"
)
FACTS = (
    "id,subject,quantity,value,low,high,unit,as_of,kind,source,url,note\n"
    "some_fact,hbm,price,10,,,USD/GB,2025-01-01,illustrative,none,,a reason\n"
)
INGEST = (
    "from pathlib import Path\nfrom supply.facts.ingest import ingest\n"
    "ingest(Path({raw!r}), Path({to!r}), replace=True)\n"
)
#: The same end that the console gives a refusal, for functions without a verb.
AS_VERB = "from reports.cli.exits import verb\n@verb\ndef call():\n{body}\ncall()\n"
BACKTEST = """
import pandas as pd
from datetime import date
from types import SimpleNamespace
from scenarios.backtest import TABLES
from scenarios.backtest_store import write_backtest
frame = pd.DataFrame({{"a": range(2000), "b": ["x" * 40] * 2000}})
done = SimpleNamespace(origin=date(2024, 1, 1), draws=20, failed=0, **{{name: frame for name in TABLES}})
write_backtest([done], {to!r})
"""


def _python(body: str) -> dict[str, str]:
    return {"python": AS_VERB.format(body="".join(f"    {line}\n" for line in body.splitlines()))}


def jobs(folder: Path, stored: Path, tables: Path) -> dict[str, tuple[list[str], dict[str, Any]]]:
    """name -> words of the command line and how it is started; all write below `folder`."""
    ingest = INGEST.format(raw=str(tables / "raw.csv"), to=str(folder / "mine.csv"))
    report = ["report", str(stored), "--format", "html,pdf,xlsx,exchange", "--out", str(folder / "reports")]
    sample = ["sample", str(tables / "chain.yaml"), "--draws", "12", "--out", str(folder / "runs")]
    predict = ["predict", str(tables / "cases.csv"), "--out", str(folder / "out.csv")]
    return {
        "run": (["run", "course_11_1", "--out", str(folder / "runs")], {}),
        "report": (report, {}),
        "sample": (sample, {"chunk": 4}),
        "predict": (predict, {}),
        "new": (["new", str(folder / "project")], {}),
        "facts ingest": ([], _python(ingest)),
        "backtest store": ([], _python(BACKTEST.format(to=str(folder / "scores")))),
    }


def _stored(name: str, request: pytest.FixtureRequest) -> Path:
    held: Path = request.getfixturevalue("stored") if name == "report" else Path("/")
    return held


NAMES = ("run", "report", "sample", "predict", "new", "facts ingest", "backtest store")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs of the verbs."""
    folder = tmp_path_factory.mktemp("tables")
    (folder / "cases.csv").write_text(CASES, encoding="utf-8")
    (folder / "raw.csv").write_text(FACTS, encoding="utf-8")
    shutil.copy(Path(__file__).parents[1] / "scenarios" / "cases" / "chain.yaml", folder / "chain.yaml")
    return folder


def refused(done: Any) -> None:
    """Exit 3, one last line with place, what and what to do, no traceback."""
    assert done.rc == 3, (done.rc, done.err[-600:])
    assert "Traceback" not in done.err
    assert REFUSED.search(done.err.strip().splitlines()[-1]), done.err[-600:]


@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk_at_any_change_leaves_nothing_half(
    name: str, server: Any, request: pytest.FixtureRequest, tables: Path, faults: int, ledger: Any, contents_of: Any,
    hidden_in: Any,
    tmp_path: Path,
) -> None:  # fmt: skip
    """The file system says `no space left` at the n-th change, and at every later one."""
    if faults < 10 and name not in ("predict", "new"):
        pytest.skip("the slow verbs: `make faults`")
    stored = _stored(name, request)
    calm = tmp_path / "calm"
    calm.mkdir()
    words, how = jobs(calm, stored, tables)[name]
    changes = server.changes(*words, below=calm, **how)
    wanted = contents_of(calm)
    assert wanted
    step = 1 if faults >= 10 and changes < 16 else max(1, changes // (12 if faults >= 10 else 3))
    count = 0
    folder = tmp_path / "full"
    folder.mkdir()
    for at in range(0, changes, step):
        words, how = jobs(folder, stored, tables)[name]
        done = server(*words, fault="full", at=at, below=str(folder), **how)
        found = contents_of(folder)
        if done.rc == 0:  # less was left to do than the first time, or only to remove
            assert found == wanted
            shutil.rmtree(folder)
            folder.mkdir()
            continue
        refused(done)
        assert all(wanted[n] == raw for n, raw in found.items()), f"half-written after change {at}"
        assert [n for n in hidden_in(folder) if "part-" not in n and not n.startswith("chunk")] == [], at
        count += 1
        if at % 3 == 0:
            shutil.rmtree(folder)
            folder.mkdir()
    words, how = jobs(folder, stored, tables)[name]
    done = server(*words, **how)
    assert done.rc == 0 or "is not empty" in done.err, done.err
    assert contents_of(folder) == wanted and hidden_in(folder) == [] and count
    ledger.add(f"disk full at the n-th change, {name}", faults=count, losses=0)


@pytest.mark.parametrize(
    ("name", "size"), [("run", 3000), ("report", 60_000), ("sample", 2000), ("backtest store", 900)]
)
def test_a_file_that_may_not_grow_is_not_left_half(
    name: str, size: int, server: Any, request: pytest.FixtureRequest, tables: Path, faults: int, ledger: Any,
    contents_of: Any, hidden_in: Any, tmp_path: Path,
) -> None:  # fmt: skip
    """A limit on the size of files (as by a quota) hits in the middle of a write, DuckDB's and typst's included."""
    if faults < 10 and name != "run":
        pytest.skip("the slow verbs: `make faults`")
    stored = _stored(name, request)
    words, how = jobs(tmp_path, stored, tables)[name]
    refused(server(*words, fsize=size, **how))
    left = [n for n in hidden_in(tmp_path) if "part-" not in n]
    assert left == [] and all(len(raw) <= size for raw in contents_of(tmp_path).values())
    assert not (tmp_path / "runs").is_dir() or all(p.name.startswith(".part-") for p in (tmp_path / "runs").iterdir())
    ledger.add(f"file size limit, {name}", faults=1, losses=0)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 6 MB of its own, where the system lets us mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if made.returncode != 0:
        pytest.skip(f"cannot mount a small disk here: {made.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def _fill(disk: Path, free: int) -> None:
    """Leave `free` bytes."""
    filler = disk / "filler"
    filler.unlink(missing_ok=True)
    held = os.statvfs(disk)
    filler.write_bytes(b"\0" * max(0, held.f_bavail * held.f_frsize - free))


@pytest.mark.parametrize("name", NAMES)
def test_a_disk_that_is_really_full_keeps_what_was_good(
    name: str, server: Any, request: pytest.FixtureRequest, tables: Path, faults: int, ledger: Any, contents_of: Any,
    hidden_in: Any,
    disk: Path, tmp_path: Path,
) -> None:  # fmt: skip
    """Free space from nothing to almost enough, over a good result of before."""
    if faults < 10 and name != "predict":
        pytest.skip("the slow verbs: `make faults`")
    stored = _stored(name, request)
    place = disk / "out"
    place.mkdir()
    words, how = jobs(place, stored, tables)[name]
    first = server(*words, **how)
    assert first.rc == 0, first.err
    good = contents_of(place)
    size = sum(len(raw) for raw in good.values())
    if name in ("run", "sample"):  # the same again is opened, not written: another one beside it
        words = [*words, "--set", "discount_rate=0.01"] if name == "run" else [*words, "--seed", "7"]
    elif name == "new":
        words = ["new", str(place / "second")]
    count = 0
    for share in (0.0, 0.2, 0.5, 0.8) if faults >= 10 else (0.0, 0.5):
        _fill(disk, int(share * size) // 4096 * 4096)
        done = server(*words, **how)
        if done.rc == 0 and share > 0:  # files are replaced one by one: space for the largest is enough
            continue
        refused(done)
        count += 1
        found = contents_of(place)
        assert all(found.get(n) == raw for n, raw in good.items()), "a good result was harmed"
        assert [n for n in hidden_in(place) if "part-" not in n and "chunk" not in n] == []
    (disk / "filler").unlink()
    assert server(*words, **how).rc == 0 and count
    assert all(contents_of(place).get(n) == raw for n, raw in good.items())
    ledger.add(f"disk really full, {name}", faults=count, losses=0)


@pytest.mark.parametrize("name", NAMES)
def test_a_read_only_disk_is_refused(
    name: str, server: Any, request: pytest.FixtureRequest, tables: Path, faults: int, ledger: Any, disk: Path
) -> None:
    if faults < 10 and name != "predict":
        pytest.skip("the slow verbs: `make faults`")
    stored = _stored(name, request)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    words, how = jobs(disk, stored, tables)[name]
    refused(server(*words, **how, cwd=str(disk)))
    assert list(disk.iterdir()) == []
    ledger.add(f"read-only disk, {name}", faults=1, losses=0)


def test_a_folder_without_the_right_to_write_is_refused(tmp_path: Path, ledger: Any) -> None:
    command = [sys.executable, "-m", "wafer2token", "run", "course_11_1", "--out", str(tmp_path / "theirs" / "runs")]
    if os.geteuid() == 0:  # root may write everywhere, unless it gives that right away
        command = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override", *command]
        if shutil.which("setpriv") is None:
            pytest.skip("root needs setpriv to give up its rights")
    (tmp_path / "theirs").mkdir(mode=0o555)
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 3 and "Traceback" not in done.stderr, done.stderr
    assert "permission denied; give a path that you may write to" in done.stderr
    assert list((tmp_path / "theirs").iterdir()) == []
    ledger.add("folder without the right to write", faults=1, losses=0)


def test_a_full_standard_output_is_told() -> None:
    command = [sys.executable, "-m", "wafer2token", "facts", "--show", "tsmc_cowos_wafer_price_2026_01", "--json"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, cwd=ROOT)
    assert done.returncode == 3 and b"Traceback" not in done.stderr and b"no space left" in done.stderr
