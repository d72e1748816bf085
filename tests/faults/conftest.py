"""A server of processes to harm, whole results to compare with, and how many faults to try (`FAULTS`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
#: Kills a verb in the suite; `make faults` takes more.
FAULTS = int(os.environ.get("FAULTS", "3"))
#: Where `make faults` writes its counts.
LEDGER = os.environ.get("FAULTS_LEDGER")


@dataclass
class Done:
    """How a process ended: its exit code (-9: killed), seconds, process id, and what it printed."""

    rc: int
    wall_s: float
    pid: int
    out: str
    err: str


class Server:
    """Forked processes of the command line, see `fork_server.py`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        with (folder / "server.txt").open("w") as said:
            self._process = subprocess.Popen(
                [sys.executable, str(HERE / "fork_server.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                cwd=HERE.parents[1],
                env={**os.environ, **threads, "PYTHONPATH": str(HERE.parents[1])},
            )
        self._answer()
        self._count = 0

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, (self.folder / "server.txt").read_text()
        return json.loads(line)

    def job(self, *argv: str | Path, **how: Any) -> dict[str, Any]:
        """A process to start: words of the command line, and the fault."""
        self._count += 1
        files = {name: str(self.folder / f"{self._count}.{name}") for name in ("stdout", "stderr")}
        return {"argv": [str(word) for word in argv], "cwd": str(self.folder), **files, **how}

    def together(self, jobs: Sequence[dict[str, Any]]) -> list[Done]:
        """Start processes at the same time and wait for all."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(list(jobs)) + "\n")
        self._process.stdin.flush()
        out = []
        for answer, job in zip(self._answer(), jobs, strict=True):
            texts = [Path(job[name]).read_text(encoding="utf-8", errors="replace") for name in ("stdout", "stderr")]
            out.append(Done(answer["rc"], answer["wall_s"], answer["pid"], *texts))
        return out

    def __call__(self, *argv: str | Path, **how: Any) -> Done:
        """Start one process and wait for it."""
        return self.together([self.job(*argv, **how)])[0]

    def changes(self, *argv: str | Path, below: Path, **how: Any) -> int:
        """How many changes a verb makes below a folder."""
        counter = self.folder / "counter.txt"
        counter.write_text("0", encoding="utf-8")
        done = self(*argv, fault="count", at=0, below=str(below), counter=str(counter), **how)
        assert done.rc == 0, done.err
        return int(counter.read_text(encoding="utf-8"))

    def close(self) -> None:
        """End the server."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(120)
        self._process.stdout.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    made = Server(tmp_path_factory.mktemp("server"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def stored(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run with the tables of a report."""
    out = tmp_path_factory.mktemp("stored")
    done = server("run", "course_11_1", "--out", out / "runs", "--report", out / "reports")
    assert done.rc == 0, done.err
    (folder,) = (p for p in (out / "runs").iterdir())
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """All files below a folder, hidden ones left out; what tells the time of the run is taken out."""
    out = {}
    times = [json.loads(path.read_bytes()).get("created") for path in folder.rglob("manifest.json")]
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or any(part.startswith(".") for part in Path(name).parts):
            continue
        raw = path.read_bytes()
        if path.name == "manifest.json":
            manifest = json.loads(raw)
            del manifest["manifest_sha256"]
            manifest.pop("created", None)
            raw = json.dumps(manifest).encode()
        for time in filter(None, times):
            raw = raw.replace(time.encode(), b"then")
        out[name] = raw
    return out


@pytest.fixture(scope="session")
def contents_of() -> Any:
    return contents


def hidden(folder: Path) -> list[str]:
    """Names of working files and folders that are left."""
    return sorted(p.name for p in folder.rglob(".*"))


@pytest.fixture(scope="session")
def hidden_in() -> Any:
    return hidden


class Ledger:
    """Counts of faults and losses, added to a file for `make faults`."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, int]] = {}

    def add(self, what: str, **counts: int) -> None:
        """Count faults of a kind."""
        row = self.rows.setdefault(what, {})
        for name, count in counts.items():
            row[name] = row.get(name, 0) + count


@pytest.fixture(scope="session")
def ledger() -> Iterator[Ledger]:
    made = Ledger()
    yield made
    if LEDGER is None:
        return
    with Path(LEDGER).open("a", encoding="utf-8") as stream:
        for what, row in made.rows.items():
            stream.write(json.dumps({"what": what, **row}) + "\n")


@pytest.fixture(scope="session")
def faults() -> int:
    return FAULTS


@pytest.fixture(scope="session")
def calm_run(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What an undisturbed `run course_11_1` stores."""
    folder = tmp_path_factory.mktemp("calm")
    done = server("run", "course_11_1", "--out", folder / "runs")
    assert done.rc == 0, done.err
    return contents(folder)
