"""Files that are none, too large, or lie elsewhere; and the one table of limits, compared with the manual."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from econ.cases import cases_file
from econ.performance.architecture import architecture
from econ.performance.hardware import hardware
from econ.performance.predict import predict_file
from econ.price_quotes import instance_price_rows
from econ.token_cost import load_workload
from econ.trajectories import read_trajectories
from reports import workbook_read
from reports.choices import read_choices
from scenarios import locate, positions
from scenarios.load import load_scenario
from supply import input_files, input_text
from supply.facts.catalog import load
from supply.facts.ingest import ingest
from supply.input_files import MOST_BYTES, InputFileError, read_bytes, read_utf8
from supply.input_table import LONGEST_CELL
from supply.optimizer.compiled import MOST_ROWS
from tests.hostile.hostile_tools import limited

DOCS = Path(__file__).parents[2] / "docs" / "errors.md"
#: Kind of input -> file ending and reader.
READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "scenario": (".yaml", load_scenario),
    "facts table": (".csv", lambda path: load(path.parent)),
    "model config": (".json", architecture),
    "hardware record": (".yaml", hardware),
    "case card": (".yaml", load_workload),
    "case table": (".csv", lambda path: predict_file(path, path.parent / "out.txt")),
    "agent log": (".csv", lambda path: read_trajectories(path, "openai")),
    "price book": (".csv", instance_price_rows),
}
MORE = {
    "raw facts": (".csv", lambda path: ingest(path, path.parent / "out.csv")),
    "cases": (".csv", lambda path: cases_file(path, path.parent / "out.txt")),
    "agent lines": (".jsonl", lambda path: read_trajectories(path, "openai")),
    "sections": (".yaml", read_choices),
    "workbook": (".xlsx", workbook_read.read_workbook),
}


def printed_limits() -> dict[str, int]:
    """The table `Limits` of the manual: words of the first column -> number of the second."""
    text = DOCS.read_text(encoding="utf-8").split("## Limits", 1)[1].split("\n## ", 1)[0]
    found = re.findall(r"^\| ([^|]+?) \| ([\d,]+) [^|]*\|", text, re.MULTILINE)
    return {name: int(number.replace(",", "")) for name, number in found}


def test_the_manual_prints_every_limit() -> None:
    assert printed_limits() == {
        **MOST_BYTES,
        "entries of a scenario": positions.MOST_ENTRIES,
        "depth of a scenario": positions.MOST_DEPTH,
        "depth of JSON and YAML": input_text.MOST_DEPTH,
        "cell of a table": LONGEST_CELL,
        "name of a scenario": locate.MOST_NAME,
        "name in `extends`": locate.MOST_FILE_NAME,
        "workbook unpacked": workbook_read.MOST_UNPACKED,
        "parts of a workbook": workbook_read.MOST_PARTS,
        "periods of a horizon": 1200,
        "rows of an optimum": MOST_ROWS,
    }


@pytest.mark.parametrize("kind", READERS)
def test_a_file_one_byte_too_large_is_refused_before_it_is_read(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending, read = READERS[kind]
    path = tmp_path / f"x{ending}"
    with path.open("wb") as handle:
        handle.truncate(MOST_BYTES[kind] + 1)
    monkeypatch.setattr(input_files.os, "open", lambda *a, **k: pytest.fail("the file was read"))
    with pytest.raises(ValueError, match=f"{MOST_BYTES[kind] + 1:,} bytes: a {kind} has at most"):
        read(path)


@pytest.mark.parametrize("kind", [*READERS, *MORE])
@pytest.mark.parametrize("what", ["pipe", "folder", "zero", "loop", "dangling"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, kind: str, what: str) -> None:
    ending, read = {**READERS, **MORE}[kind]
    path = tmp_path / f"x{ending}"
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    else:
        path.symlink_to({"zero": "/dev/zero", "loop": path.name, "dangling": "nowhere"}[what])
    with limited(20, 2**28), pytest.raises((ValueError, OSError)) as caught:
        read(path)
    assert not isinstance(caught.value, UnicodeError) and str(path.name) in str(caught.value)


def test_a_file_that_states_no_size_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_files, "MOST_BYTES", {"scenario": 10})
    with pytest.raises(InputFileError, match="has at most 10"):
        read_bytes(Path("/proc/self/status"), "scenario")


def test_a_name_with_nul_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="NUL"):
        read_bytes(Path("a\0b"), "scenario")
    (tmp_path / "x").write_bytes(b"\xef\xbb\xbfa\nb\xff")
    with pytest.raises(InputFileError, match=r"x:2: the byte 0xff"):
        read_utf8(tmp_path / "x", "scenario")


@pytest.mark.parametrize(
    "parent",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "..",
        ".",
        "a/../../b.yaml",
        "..\\x",
        "base\0",
        "~root",
        "./",
        "x/y.yaml",
        "%2e",
    ],
)
def test_extends_never_leaves_the_folder(tmp_path: Path, parent: str) -> None:
    folder = tmp_path / "in" / "deeper"
    folder.mkdir(parents=True)
    (tmp_path / "b.yaml").write_text("title: outside\n", encoding="utf-8")
    (folder / "x").symlink_to(tmp_path)
    path = folder / "self.yaml"
    path.write_text(f"extends: {parent!r}\n".replace("\\x00", "\0"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"extends|not allowed"):
        load_scenario(path)


@pytest.mark.parametrize("out", ["a b", "it's", 'q"uote', "[1]", "*", "dot.", "-x", "ü\u202e", "new\nline", "a/b/c"])
def test_out_into_oddly_named_folders_is_a_run_that_opens(tmp_path: Path, out: str) -> None:
    from scenarios.runner import run
    from scenarios.runs import Run

    made = run("course_11_1", out=tmp_path / out)
    assert made.folder is not None and made.folder.is_relative_to(tmp_path / out)
    assert not Run.open(made.folder).results.empty
    assert stat.S_ISDIR((tmp_path / out).stat().st_mode)


@pytest.mark.parametrize("title", ["../../up", "/etc/passwd", "a\\b", "..", "con", "x" * 10_000])
def test_a_title_never_names_a_file(tmp_path: Path, title: str) -> None:
    from scenarios.runner import run

    path = tmp_path / "mine.yaml"
    path.write_text(f"extends: course_11_1\ntitle: '{title}'\n", encoding="utf-8")
    folder = run(path, out=tmp_path / "runs").folder
    assert folder is not None and folder.parent == tmp_path / "runs" and folder.name.startswith("mine-")
    assert {p.name for p in tmp_path.iterdir()} == {"mine.yaml", "runs"}
