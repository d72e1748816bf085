"""kill -9 at random moments and at every change of the file system: nothing half is read, all of it can be resumed."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from scenarios.run_store import RunFolderError, check_complete
from scenarios.runs import Run

SAMPLE = ("--draws", "24", "--outputs", "energised:*@2026,rent:cowos@2026")
#: name -> words of the command line ({} is the folder to write below), seconds between chunks of kills a folder
VERBS: dict[str, tuple[str, ...]] = {
    "run": ("run", "course_11_1", "--out", "{}/runs"),
    "run small": ("run", "small", "--out", "{}/runs"),
    "run with report": ("run", "course_11_1", "--out", "{}/runs", "--report", "{}/reports"),
    "report": ("report", "{stored}", "--format", "html,pdf,xlsx,exchange", "--out", "{}/reports"),
    "sample": ("sample", "small", *SAMPLE, "--workers", "2", "--out", "{}/runs"),
    "sensitivity": ("sensitivity", "course_11_1", "--method", "tornado", "--out", "{}/study"),
    "new": ("new", "{}/project"),
}
#: Share of the kills of `make faults` by verb; the suite tries the quick ones only.
SHARE = {"run": 10, "run small": 3, "run with report": 5, "report": 5, "sample": 4, "sensitivity": 3, "new": 2}
QUICK = ("run", "new")
ROUND = 5  # kills of one folder before it is resumed


def _words(name: str, folder: Path, stored: Path) -> list[str]:
    return [word.format(folder, stored=stored) for word in VERBS[name]]


def _how(name: str) -> dict[str, Any]:
    return {"chunk": 4} if name == "sample" else {}


def _alive(session: int) -> list[int]:
    """Processes of a session, from /proc."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(entry.parent.name))
    return found


def _no_orphans(session: int) -> None:
    end = time.monotonic() + 60
    while _alive(session):
        assert time.monotonic() < end, "worker processes of a killed process go on"
        time.sleep(0.05)


def _check(folder: Path) -> None:
    """What a reader sees is byte for byte a file of the undisturbed process; no folder is half."""
    runs = folder / "runs"
    for held in runs.iterdir() if runs.is_dir() else ():
        if not held.name.startswith("."):
            check_complete(held)
        elif held.is_dir() and held.name.startswith(".tmp-"):
            try:  # killed after the manifest, before the rename: whole, if not yet in its place
                Run.open(held)
            except RunFolderError as exc:
                assert "not a run" in str(exc) or "not whole" in str(exc)


def _visible(found: dict[str, bytes], wanted: dict[str, bytes]) -> None:
    for name, raw in found.items():
        assert wanted.get(name) == raw, f"{name} is not as an undisturbed process writes it"


@pytest.mark.parametrize("name", VERBS)
@pytest.mark.parametrize("moment", ["time", "change"])
def test_a_killed_process_leaves_nothing_half(
    name: str, moment: str, server: Any, request: pytest.FixtureRequest, faults: int, ledger: Any, contents_of: Any,
    hidden_in: Any, tmp_path: Path,
) -> None:  # fmt: skip
    if faults < 10 and (name not in QUICK or (name, moment) == ("run", "time")):
        pytest.skip("many kills of slow verbs: `make faults`")
    stored = request.getfixturevalue("stored") if name == "report" else tmp_path
    kills = max(2, faults * SHARE[name] // (2 * sum(SHARE.values()))) if faults >= 10 else faults
    calm = tmp_path / "calm"
    calm.mkdir()
    changes = server.changes(*_words(name, calm, stored), below=calm, **_how(name))
    wanted = contents_of(calm)
    calm_again = tmp_path / "calm_again"
    calm_again.mkdir()
    whole = server(*_words(name, calm_again, stored), **_how(name))
    assert whole.rc == 0 and contents_of(calm_again) == wanted, "two undisturbed processes differ"
    chance = random.Random(f"{name} {moment}")
    killed = tried = recovered = 0
    while killed < kills:
        folder = tmp_path / f"round-{tried}"
        folder.mkdir()
        for _ in range(min(ROUND, kills - killed)):
            tried += 1
            assert tried < 20 * kills + 20
            how: dict[str, Any] = {"kill_after_s": chance.uniform(0.0, 1.02 * whole.wall_s)}
            if moment == "change":
                how = {"fault": "kill", "at": chance.randrange(changes), "below": str(folder)}
            done = server(*_words(name, folder, stored), **how, **_how(name))
            assert done.rc in (0, -9), done.err
            killed += done.rc == -9
            _check(folder)
            _visible(contents_of(folder), wanted)
            _no_orphans(done.pid)
            if done.rc == 0:
                break
        done = server(*_words(name, folder, stored), **_how(name))
        if name == "new" and done.rc == 3:
            assert "is not empty" in done.err  # it was whole already
            done.rc = 0
        assert done.rc == 0, done.err
        assert contents_of(folder) == wanted, "resumed results differ from undisturbed ones"
        left = [n for n in hidden_in(folder) if not n.endswith(".lock")]
        assert left == [] or _swept(server, name, folder, stored, hidden_in), left
        recovered += 1
    ledger.add(f"kill -9, {name}, at a random {moment}", faults=killed, folders_resumed=recovered, losses=0)


def _swept(server: Any, name: str, folder: Path, stored: Path, hidden_in: Any) -> bool:
    """A finished run is opened without writing, so what a kill left beside it goes with the next write there."""
    assert server("run", "course_11_1", "--set", "discount_rate=0.01", "--out", folder / "runs").rc == 0
    return [n for n in hidden_in(folder) if not n.endswith(".lock")] == []


def test_a_living_process_keeps_its_working_folder(tmp_path: Path) -> None:
    from supply.files import sweep, working_folder

    with working_folder(tmp_path, lambda path: True) as mine:
        (mine / "results.parquet").write_text("half", encoding="utf-8")
        assert sweep(tmp_path, ".tmp-*") == []
        with working_folder(tmp_path, lambda path: True) as second:
            assert mine.is_dir() and second.is_dir()
    assert list(tmp_path.iterdir()) == []
    foreign = tmp_path / ".tmp-of-somebody"
    foreign.mkdir()
    (foreign / "thesis.docx").write_text("years of work", encoding="utf-8")
    with working_folder(tmp_path, lambda path: path.suffix == ".parquet"):
        assert (foreign / "thesis.docx").exists()
    assert list(tmp_path.iterdir()) == [foreign]
