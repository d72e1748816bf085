"""Hostile run folders, workbooks and facts files: refused with the file and what to do, never read as another thing."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reports import workbook_read
from reports.workbook_read import WorkbookError, read_workbook
from scenarios.run_store import RunFolderError, check_complete, find_complete, is_complete, write_manifest
from scenarios.runner import run
from scenarios.runs import Run
from supply.facts import FactError
from supply.facts.catalog import COLUMNS, SERIES_COLUMNS, load
from supply.input_files import MOST_BYTES
from supply.paths import data_dir

EXAMPLES = int(os.environ.get("HOSTILE_EXAMPLES", "60"))
QUICK = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": EXAMPLES < 100}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = run("course_11_1", out=tmp_path_factory.mktemp("runs")).folder
    assert folder is not None
    return folder


@settings(max_examples=EXAMPLES, **QUICK)  # type: ignore[arg-type]
@given(st.integers(0, 40), st.integers(0, 10**6), st.integers(1, 255))
def test_one_changed_byte_in_a_run_is_found(made: Path, which: int, at: int, flip: int) -> None:
    files = sorted(p for p in made.iterdir() if p.name != "manifest.json")
    path = files[which % len(files)]
    raw = path.read_bytes()
    place = at % len(raw)
    try:
        path.write_bytes(raw[:place] + bytes([raw[place] ^ flip]) + raw[place + 1 :])
        assert not is_complete(made)
        with pytest.raises(RunFolderError, match=path.name):
            Run.open(made)
    finally:
        path.write_bytes(raw)
    assert is_complete(made)


@settings(max_examples=EXAMPLES, **QUICK)  # type: ignore[arg-type]
@given(st.integers(0, 10**6), st.integers(0, 60), st.binary(max_size=4))
def test_a_changed_manifest_is_refused_or_says_the_same(made: Path, at: int, cut: int, put: bytes) -> None:
    path = made / "manifest.json"
    raw = path.read_bytes()
    place = at % len(raw)
    try:
        path.write_bytes(raw[:place] + put + raw[place + cut :])
        check_complete(made)
    except RunFolderError as exc:
        assert str(made) in str(exc)
    finally:
        path.write_bytes(raw)


@pytest.mark.parametrize("text", ["[]", "5", "null", "{}", '{"files": []}', '{"run": "x", "files": {}}', "[" * 9999])
def test_a_manifest_of_another_shape_is_no_run(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text, encoding="utf-8")
    with pytest.raises(RunFolderError, match="is broken"):
        Run.open(tmp_path)


def test_what_is_not_ours_is_never_removed(tmp_path: Path) -> None:
    foreign = tmp_path / "one"
    foreign.mkdir()
    (foreign / "thesis.docx").write_text("years of work", encoding="utf-8")
    with pytest.raises(RunFolderError, match="in the way"):
        find_complete(tmp_path, "one")
    assert (foreign / "thesis.docx").exists()
    (tmp_path / "two").write_text("a file", encoding="utf-8")
    with pytest.raises(RunFolderError, match="in the way"):
        find_complete(tmp_path, "two")


def test_out_onto_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine", encoding="utf-8")
    for out in (file, file / "below"):
        with pytest.raises(RunFolderError, match="a file stands there"):
            run("course_11_1", out=out)
    assert file.read_text(encoding="utf-8") == "mine"


def test_a_folder_of_draws_is_not_opened_as_a_run(made: Path, tmp_path: Path) -> None:
    copy = tmp_path / "draws"
    shutil.copytree(made, copy)
    manifest = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
    write_manifest(copy, manifest, [p for p in copy.iterdir() if p.name not in ("manifest.json", "answer.json")])
    with pytest.raises(RunFolderError, match="no answer of a run"):
        Run.open(copy)


@pytest.fixture(scope="module")
def book(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from reports.workbook import write_workbook

    return Path(write_workbook(Run.open(made), tmp_path_factory.mktemp("book") / "book.xlsx"))


@settings(max_examples=max(EXAMPLES // 3, 10), **QUICK)  # type: ignore[arg-type]
@given(st.integers(0, 10**7), st.integers(0, 300), st.binary(max_size=20), st.booleans())
def test_a_harmed_workbook_is_read_or_refused(
    book: Path, tmp_path_factory: pytest.TempPathFactory, at: int, cut: int, put: bytes, inside: bool
) -> None:
    """`inside`: the harm is done to a part before it is packed, so that no checksum of the archive finds it."""
    path = tmp_path_factory.getbasetemp() / "harmed.xlsx"
    raw = book.read_bytes()
    path.write_bytes(_inner(raw, at, cut, put) if inside else _cut(raw, at, cut, put))
    try:
        read_workbook(path)
    except WorkbookError as exc:
        assert exc.problems and "harmed.xlsx" in str(exc)


def _cut(raw: bytes, at: int, cut: int, put: bytes) -> bytes:
    place = at % len(raw)
    return raw[:place] + put + raw[place + cut :]


def _inner(book: bytes, at: int, cut: int, put: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as old, zipfile.ZipFile(out, "w") as new:
        names = old.namelist()
        for k, name in enumerate(names):
            part = old.read(name)
            new.writestr(name, _cut(part, at, cut, put) if k == at % len(names) and part else part)
    return out.getvalue()


def test_a_zip_bomb_is_refused_by_its_own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbook_read, "MOST_UNPACKED", 2_000_000)
    path = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b"0" * 3_000_000)
    assert path.stat().st_size < 20_000
    with pytest.raises(WorkbookError, match="unpacks to 3,000,000 bytes"):
        read_workbook(path)


def test_a_large_workbook_is_refused_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "large.xlsx"
    with path.open("wb") as handle:
        handle.truncate(MOST_BYTES["workbook"] + 1)
    with pytest.raises(WorkbookError, match="a workbook has at most"):
        read_workbook(path)


def _rows(columns: tuple[str, ...]) -> list[dict[str, str]]:
    for path in sorted((data_dir() / "facts").glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as handle:
            reader = csv.DictReader(handle)
            if tuple(reader.fieldnames or ()) == columns:
                return [row for _, row in zip(range(3), reader, strict=False)]
    raise AssertionError("no file of these columns")


@settings(max_examples=EXAMPLES, **QUICK)  # type: ignore[arg-type]
@given(
    st.sampled_from([COLUMNS, SERIES_COLUMNS]),
    st.integers(0, 2),
    st.integers(0, 16),
    st.sampled_from(
        ["", "nan", "inf", "-inf", "1e400", "abc", "2026-13-01", "\u202e", "=1", "a\nb", "\x00", "x" * 200_000]
    )
    | st.text(max_size=6),
)
def test_facts_with_a_bad_cell_are_read_or_refused_with_their_line(
    tmp_path_factory: pytest.TempPathFactory, columns: tuple[str, ...], row: int, column: int, cell: str
) -> None:
    rows = [dict(r) for r in _rows(columns)]
    rows[row][columns[column % len(columns)]] = cell
    folder = tmp_path_factory.getbasetemp() / "facts"
    folder.mkdir(exist_ok=True)
    with (folder / "some.csv").open("w", encoding="utf-8", errors="surrogatepass", newline="") as handle:
        writer = csv.DictWriter(handle, columns)
        writer.writeheader()
        writer.writerows(rows)
    try:
        found = load(folder)
    except FactError as exc:
        assert "some.csv" in str(exc)
        return
    numbers = [v for f in found for v in (f.value, f.low, f.high) if isinstance(v, float)]
    numbers += [v for s in found.series_ids for p in found.series(s).points for v in (p.value, p.low, p.high)]
    assert all(abs(v) < float("inf") for v in numbers)


@pytest.mark.parametrize(
    "raw", [b"\xff\xfe", b"", b"a,b\n1,2\n", ",".join(COLUMNS).encode() + b"\n1,2,3\n" + b"1," * 30]
)
def test_a_table_that_is_no_facts_file_is_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "some.csv").write_bytes(raw)
    with pytest.raises(FactError, match=r"some\.csv"):
        load(tmp_path)


SPREAD = "{distribution: triangular, low: 0.5, mode: 0.7, high: 0.9}"
PAIR = (
    "import sys, pathlib; from scenarios.sample import sample\n"
    f"s = sample('course_11_1', 600, [('processes.package.yield', '{SPREAD}')], out=sys.argv[1])\n"
    "print(repr(float(s.column('objective').mean())))\n"
)


def test_two_processes_on_one_sample_end_with_one_whole_folder(tmp_path: Path) -> None:
    both = [
        subprocess.Popen([sys.executable, "-c", PAIR, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [p.communicate(timeout=120) for p in both]
    assert [p.returncode for p in both] == [0, 0], said
    assert said[0][0] == said[1][0]
    assert len(list(tmp_path.iterdir())) == 1 and is_complete(next(tmp_path.iterdir()))
