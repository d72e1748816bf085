"""Runs verbs of the command line in forked processes and harms them: kills, a full disk, closed doors, another clock.

The modules are imported once; every job is a process of its own (a fork), so hundreds of kills cost little. Jobs come
as JSON lines on stdin, answers go to stdout. Not a test: `conftest.py` starts it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import resource
import signal
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

#: File events of Python that change something.
CHANGES = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate"}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
PRELOAD = (
    "duckdb", "matplotlib.figure", "numpy", "pandas", "pyomo.environ", "highspy", "scipy.optimize", "scipy.stats",
    "typst", "xlsxwriter", "networkx", "reports.cli.app", "reports.cli.run", "reports.cli.report",
    "reports.cli.studies", "reports.market_report", "reports.pdf", "reports.workbook", "reports.workbook_summary",
    "reports.exchange",
    "scenarios.runner", "scenarios.sample", "scenarios.sensitivity", "scenarios.answer", "scenarios.report_tables",
    "supply.bottleneck", "supply.optimizer.compiled", "econ.performance.serving", "econ.performance.predict",
    "econ.cases", "supply.facts.ingest", "scenarios.template",
)  # fmt: skip


def preload() -> None:
    """Import what the verbs use and read the facts, without starting a thread."""
    import importlib

    for name in PRELOAD:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    from scenarios.run_store import facts_digest
    from supply.facts import catalog

    catalog()
    facts_digest()


def inject(job: dict[str, Any]) -> None:
    """Kill this process, or let the file system say no, at the n-th change below a folder."""
    below, left = str(job["below"]), [int(job["at"])]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in CHANGES or not str(arguments[0]).startswith(below):
            return
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & WRITES):
            return
        left[0] -= 1
        if job["fault"] == "count":
            Path(job["counter"]).write_text(str(-left[0]), encoding="utf-8")
        elif left[0] < 0 and job["fault"] == "full":
            if event not in ("os.remove", "os.rmdir"):  # these work on a full disk
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(arguments[0]))
        elif left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def turn_clock(seconds: float, backwards: bool) -> None:
    """Another wall clock for this process; `backwards` lets it run back an hour a call."""
    real, calls = time.time, [0]

    def wall() -> float:
        calls[0] += 1
        return real() + seconds - (3600.0 * calls[0] if backwards else 0.0)

    class Turned(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime(1970, 1, 1, tzinfo=UTC).astimezone(tz) + timedelta(seconds=wall())

    import scenarios.manifest

    time.time = wall
    scenarios.manifest.datetime = Turned  # type: ignore[misc]


def child(job: dict[str, Any]) -> None:
    """Become the process of a job; never returns."""
    os.setsid()
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(job[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), descriptor)
    os.environ.update(job.get("env", {}))
    os.chdir(job["cwd"])
    if "fsize" in job:
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["fsize"], job["fsize"]))
    for name in job.get("missing", ()):
        for held in [m for m in sys.modules if m.split(".")[0] == name]:
            del sys.modules[held]
        sys.modules[name] = None  # type: ignore[assignment]
    if "clock" in job:
        turn_clock(float(job["clock"]), bool(job.get("backwards")))
    if "chunk" in job:
        import scenarios.sample

        scenarios.sample.CHUNK = int(job["chunk"])
    if "fault" in job:
        inject(job)
    code = 1
    try:
        if "python" in job:
            exec(job["python"], {})
            code = 0
        else:
            from reports.cli.app import app

            app(job["argv"])
    except SystemExit as exc:
        code = exc.code if isinstance(exc.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def main() -> None:
    """Answer jobs until stdin ends: {"rc", "wall_s"} a line; `pair` runs several at once."""
    preload()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        jobs = json.loads(line)
        started = {}
        for job in jobs:
            pid = os.fork()
            if pid == 0:
                child(job)
            started[pid] = job
        answers: dict[int, dict[str, Any]] = {}
        begin = time.monotonic()
        while len(answers) < len(started):
            for pid, job in started.items():
                if pid in answers:
                    continue
                wall = time.monotonic() - begin
                if wall > job.get("kill_after_s", 300.0):
                    os.kill(pid, signal.SIGKILL)
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    answers[pid] = {"rc": os.waitstatus_to_exitcode(status), "wall_s": wall, "pid": pid}
            time.sleep(0.002 + 0.002 * random.random())
        print(json.dumps([answers[pid] for pid in started]), flush=True)


if __name__ == "__main__":
    main()
