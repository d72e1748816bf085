"""The writer that all verbs share: a file is whole, or what was there before; left-overs of the dead go."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from scenarios.run_store import RunFolderError, check_complete, find_complete, hold, write_folder
from supply.files import claim, release, sweep, whole_file, whole_text, working_folder

DIES = """
import os, pathlib, sys
from supply.files import whole_file
with whole_file(pathlib.Path(sys.argv[1])) as working:
    working.write_text("half")
    os.kill(os.getpid(), 9)
"""


def test_an_error_keeps_the_file_of_before_and_names_it(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("good", encoding="utf-8")
    with pytest.raises(OSError, match="No space left") as caught, whole_file(target) as working:
        working.write_text("half", encoding="utf-8")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.filename == str(target)
    with pytest.raises(ZeroDivisionError), whole_text(target) as stream:
        stream.write(str(1 // 0))
    assert target.read_text(encoding="utf-8") == "good" and list(tmp_path.iterdir()) == [target]


def test_a_killed_writer_keeps_the_file_of_before_and_the_next_one_cleans(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("good", encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", DIES, str(target)], check=False)
    assert done.returncode == -9 and target.read_text(encoding="utf-8") == "good"
    assert len(list(tmp_path.iterdir())) == 2
    with whole_text(target) as stream:
        stream.write("better\n")
    assert target.read_bytes() == b"better\n" and list(tmp_path.iterdir()) == [target]


def test_a_link_is_followed_and_a_device_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "real" / "out.csv")
    with whole_text(link) as stream:
        stream.write("here")
    assert link.is_symlink() and (tmp_path / "real" / "out.csv").read_text(encoding="utf-8") == "here"
    with whole_text(Path(os.devnull)) as stream:
        stream.write("nothing")
    assert not Path(os.devnull).is_file()


def test_names_with_wildcards_are_taken_as_they_are(tmp_path: Path) -> None:
    other = tmp_path / ".ab.csv-0123456789ab.tmp"
    other.write_text("of another file", encoding="utf-8")
    with whole_text(tmp_path / "[a]*.csv") as stream:
        stream.write("x")
    assert other.exists()


def test_without_locks_only_old_left_overs_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    new, old = tmp_path / ".tmp-0123456789ab", tmp_path / ".tmp-ba9876543210"
    for path in (new, old):
        path.mkdir()
    past = time.time() - 25 * 3600
    os.utime(old, (past, past))
    assert sweep(tmp_path, ".tmp-*") == [old] and new.is_dir()
    with working_folder(tmp_path, lambda path: True) as mine:
        assert mine.is_dir() and new.is_dir()


def test_a_lock_file_that_was_removed_is_made_again(tmp_path: Path) -> None:
    """The one that waited for a removed lock file does not run beside one that made it anew."""
    path = tmp_path / "lock"
    first = hold(path, lambda: None)
    assert first is not None
    waiting, second = threading.Event(), []
    thread = threading.Thread(target=lambda: second.append(hold(path, waiting.set)))
    thread.start()
    assert waiting.wait(10)
    path.unlink()
    release(first)
    thread.join(10)
    assert len(second) == 1
    with pytest.raises(BlockingIOError):
        claim(path)
    release(second[0])


def test_a_harmed_run_that_another_process_removes_is_left_to_it(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, "one", {"run": "one"}, lambda f: (f / "a.parquet").write_text("x") and None)
    (folder / "a.parquet").write_text("y", encoding="utf-8")
    held = claim(folder)
    assert find_complete(tmp_path, "one") is None and folder.is_dir()
    release(held)
    assert find_complete(tmp_path, "one") is None and not folder.exists()


@pytest.mark.parametrize("name", ["../outside.parquet", "below/inside.parquet", "/etc/hostname"])
def test_a_manifest_that_names_files_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    import json

    from scenarios.run_store import SEAL, _seal

    folder = write_folder(tmp_path, "one", {"run": "one"}, lambda f: (f / "a.parquet").write_text("x") and None)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["files"][name], manifest["sha256"][name] = 1, "0" * 64
    manifest[SEAL] = _seal(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(RunFolderError, match="no plain file in it"):
        check_complete(folder)
