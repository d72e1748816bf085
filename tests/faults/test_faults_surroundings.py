"""Two processes, another clock or locale, no home, missing extras: one whole result, or a refusal."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CHAIN = ROOT / "tests" / "scenarios" / "cases" / "chain.yaml"
VERBS = {
    "run": ("run", "course_11_1", "--out", "{}/runs"),
    "report": ("report", "{stored}", "--format", "html,xlsx,exchange", "--out", "{}/reports"),
    "sample": ("sample", str(CHAIN), "--draws", "12", "--out", "{}/runs"),
}


def _words(name: str, folder: Path, stored: Path) -> list[str]:
    return [word.format(folder, stored=stored) for word in VERBS[name]]


def _how(name: str) -> dict[str, Any]:
    return {"chunk": 4} if name == "sample" else {}


def _calm(name: str, request: pytest.FixtureRequest) -> tuple[dict[str, bytes], Path]:
    """What an undisturbed process writes, and the stored run that a report reads."""
    if name == "run":
        held: dict[str, bytes] = request.getfixturevalue("calm_run")
        return held, Path()
    server, contents = request.getfixturevalue("server"), request.getfixturevalue("contents_of")
    stored: Path = request.getfixturevalue("stored") if name == "report" else Path()
    folder = request.getfixturevalue("tmp_path_factory").mktemp("calm")
    assert server(*_words(name, folder, stored), **_how(name)).rc == 0
    return contents(folder), stored


@pytest.mark.parametrize("name", VERBS)
def test_two_processes_on_one_folder_end_with_one_whole_result(
    name: str, server: Any, request: pytest.FixtureRequest, faults: int, ledger: Any, contents_of: Any,
    hidden_in: Any, tmp_path: Path,
) -> None:  # fmt: skip
    if faults < 10 and name != "run":
        pytest.skip("slow: `make faults`")
    wanted, stored = _calm(name, request)
    pairs = 10 if faults >= 10 else 1
    for k in range(pairs):
        folder = tmp_path / f"pair-{k}"
        both = server.together([server.job(*_words(name, folder, stored), **_how(name)) for _ in range(2)])
        assert [done.rc for done in both] == [0, 0], [done.err for done in both]
        assert contents_of(folder) == wanted and hidden_in(folder) == []
    ledger.add(f"two processes on one folder, {name}", faults=pairs, losses=0)


@pytest.mark.parametrize(
    ("clock", "backwards"), [(-1.6e9, False), (2.3e9, False), (0.0, True)], ids=["1976", "2099", "backwards"]
)
def test_the_clock_does_not_change_what_is_stored(
    clock: float, backwards: bool, server: Any, request: pytest.FixtureRequest, faults: int, ledger: Any,
    contents_of: Any, tmp_path: Path,
) -> None:  # fmt: skip
    if faults < 10 and not backwards:
        pytest.skip("slow: `make faults`")
    for name in ("run", "sample") if faults >= 10 else ("run",):
        turned = tmp_path / f"turned-{name}"
        wanted, stored = _calm(name, request)
        done = server(*_words(name, turned, stored), clock=clock, backwards=backwards, **_how(name))
        assert done.rc == 0 and "-" not in done.err.partition("about")[2], done.err  # no negative time left
        assert contents_of(turned) == wanted
        again = server(*_words(name, turned, stored), **_how(name))
        assert again.rc == 0 and contents_of(turned) == wanted
    ledger.add("another clock", faults=1, losses=0)


def _locales(folder: Path) -> list[str]:
    """Locales with a comma as decimal sign and a dotless i, compiled where the system has their sources."""
    made = ["C"]
    if shutil.which("localedef") is None:
        return made
    for name in ("tr_TR", "de_DE"):
        command = ["localedef", "-i", name, "-f", "UTF-8", str(folder / f"{name}.UTF-8")]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            made.append(f"{name}.UTF-8")
    return made


def _fresh(words: list[str], cwd: Path, **environment: str | None) -> subprocess.CompletedProcess[str]:
    """A new interpreter; a variable that is None is taken away."""
    held = {k: v for k, v in {**os.environ, "PYTHONPATH": str(ROOT), **environment}.items() if v is not None}
    command = [sys.executable, "-m", "wafer2token", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=held, timeout=300)


def test_locale_and_time_zone_do_not_change_what_is_stored(
    calm_run: dict[str, bytes], faults: int, ledger: Any, contents_of: Any, tmp_path: Path
) -> None:
    there = _locales(tmp_path)
    zones = ["Pacific/Kiritimati", "America/St_Johns", "Asia/Kathmandu"]
    for k, name in enumerate(there if faults >= 10 else there[-1:]):
        folder = tmp_path / f"there-{k}"
        done = _fresh(
            _words("run", folder, folder), tmp_path,
            LC_ALL=name, LANG=name, LOCPATH=str(tmp_path), TZ=zones[k % len(zones)], PYTHONUTF8=None,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert contents_of(folder) == calm_run
    ledger.add("locales and time zones", faults=len(there), losses=0)


def test_without_home_caches_and_temporary_folder(
    server: Any, request: pytest.FixtureRequest, faults: int, ledger: Any, contents_of: Any, tmp_path: Path
) -> None:
    """A home that cannot be made, no font cache, a TMPDIR that is not there, a working folder that is read-only."""
    if faults < 10:
        pytest.skip("slow: `make faults`")
    wanted, stored = _calm("report", request)
    folder = tmp_path / "homeless"
    nowhere = "/proc/nowhere"
    done = _fresh(
        _words("report", folder, stored), Path("/proc"), HOME=nowhere, XDG_CACHE_HOME=nowhere, XDG_CONFIG_HOME=nowhere,
        MPLCONFIGDIR=nowhere, TMPDIR="/nowhere",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert contents_of(folder) == wanted
    done = _fresh(["report", str(stored)], Path("/proc"))  # the default folder lies in the working folder
    assert done.returncode == 3 and "reports_out" in done.stderr and "Traceback" not in done.stderr, done.stderr
    ledger.add("no home, no caches, read-only working folder", faults=2, losses=0)


#: Package, words of a verb that needs it, extra to install.
EXTRAS = [
    ("typst", ("report", "{stored}", "--format", "pdf", "--out", "{}/reports"), "wafer2token[pdf]"),
    ("marimo", ("view", "course_11_1", "--no-browser"), "wafer2token[app]"),
    ("distributed", ("sample", str(CHAIN), "--draws", "4", "--cluster", "local"), "wafer2token[cluster]"),
    (
        "sklearn",
        ("discover", str(CHAIN), "--target", "binding:power_us@2026", "--draws", "60"),
        "wafer2token[discover]",
    ),
]


@pytest.mark.parametrize(("package", "words", "extra"), EXTRAS, ids=[e[0] for e in EXTRAS])
def test_a_missing_extra_is_named(
    package: str, words: tuple[str, ...], extra: str, server: Any, request: pytest.FixtureRequest, faults: int,
    ledger: Any, tmp_path: Path,
) -> None:  # fmt: skip
    if faults < 10 and package == "typst":
        pytest.skip("slow: `make faults`")
    stored = request.getfixturevalue("stored") if package == "typst" else tmp_path
    done = server(*[w.format(tmp_path, stored=stored) for w in words], missing=[package])
    assert done.rc == 3 and extra in done.err and "Traceback" not in done.err, done.err
    assert not (tmp_path / "reports").exists() or list((tmp_path / "reports").iterdir()) == []
    ledger.add("missing extras", faults=1, losses=0)


@pytest.mark.parametrize("name", ["run", "report"])
def test_nothing_else_needs_an_extra(
    name: str, server: Any, request: pytest.FixtureRequest, faults: int, tmp_path: Path
) -> None:
    if faults < 10 and name == "report":
        pytest.skip("slow: `make faults`")
    stored = request.getfixturevalue("stored") if name == "report" else tmp_path
    missing = ["typst", "marimo", "distributed", "dask", "sklearn"]
    done = server(*_words(name, tmp_path, stored), missing=missing)
    assert done.rc == 0, done.err
