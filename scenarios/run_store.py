"""Run folders: keyed by content, written beside and renamed into place, read back through DuckDB.

A folder is a run only when its manifest is there and every file has the size that the manifest says; the manifest is
written last
and the folder is renamed into place as a whole, so a killed process leaves at most a `.tmp-*` folder that nobody reads.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from supply.paths import data_dir

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "RunFolderError",
    "canonical_json",
    "content_hash",
    "facts_digest",
    "file_digest",
    "find_complete",
    "hold",
    "is_complete",
    "make_parent",
    "package_version",
    "read_table",
    "write_folder",
    "write_table",
]

MANIFEST = "manifest.json"


class RunFolderError(ValueError):
    """A folder that is not a whole run; the message says what is missing and what to do."""


def canonical_json(content: Any) -> str:
    """JSON with sorted keys and no spaces: the same text for the same content on every machine.

    >>> canonical_json({"b": 1.0, "a": [True, None]})
    '{"a":[true,null],"b":1.0}'
    """
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=str)


def content_hash(*parts: Any) -> str:
    """SHA-256 over the canonical JSON of some parts.

    >>> content_hash({"a": 1})[:12]
    'b713f6d2a989'
    """
    return hashlib.sha256(canonical_json(list(parts)).encode("utf-8")).hexdigest()


@lru_cache(maxsize=1)
def facts_digest() -> str:
    """SHA-256 over the shipped data files (facts, models, cases, calibration, units), names and bytes."""
    digest = hashlib.sha256()
    root = data_dir()
    for path in sorted(p for p in root.rglob("*") if p.is_file() and not p.name.startswith(".") and p.suffix != ".md"):
        digest.update(path.relative_to(root).as_posix().encode("utf-8") + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def package_version() -> str:
    """Version of the installed program."""
    try:
        return version("wafer2token")
    except PackageNotFoundError:
        return "unknown"


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table as Parquet, one thread, rows in their order."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("frame", frame)
        connection.execute(f"COPY (SELECT * FROM frame) TO '{_quoted(path)}' (FORMAT parquet, COMPRESSION zstd)")


def read_table(path: Path | str) -> pd.DataFrame:
    """Read a Parquet file, or several by a pattern, as a pandas table in file and row order."""
    import duckdb

    with duckdb.connect() as connection:
        frame: pd.DataFrame = connection.execute(f"SELECT * FROM read_parquet('{_quoted(path)}')").df()
    return frame


def _quoted(path: Path | str) -> str:
    return str(path).replace("'", "''")


def is_complete(folder: Path) -> bool:
    """Whether a folder is a whole run."""
    try:
        check_complete(folder)
    except RunFolderError:
        return False
    return True


def check_complete(folder: Path) -> dict[str, Any]:
    """The manifest of a whole run.

    Raises:
        RunFolderError: no manifest, a broken one, or a file that is missing, of another size or changed.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise RunFolderError(f"{folder} is not a run: it has no {MANIFEST}; give the folder that `run --out` printed")
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise RunFolderError(f"{path} is broken ({exc}): run the scenario again") from exc
    files = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(files, dict) or not files or not {"run", "hash", "scenario"} & manifest.keys():
        raise RunFolderError(f"{path} is broken (it lists no files of a run): run the scenario again")
    for name, size in files.items():
        held = folder / name
        if not held.is_file() or held.stat().st_size != size:
            raise RunFolderError(f"{folder} is not whole: {name} is missing or cut off; run the scenario again")
    digests = manifest.get("sha256", {})  # runs of earlier versions have none
    if digests and (not isinstance(digests, dict) or digests.keys() != files.keys()):
        raise RunFolderError(f"{path} is broken (files and digests differ): run the scenario again")
    for name, digest in dict(digests).items():
        if file_digest(folder / name) != digest:
            raise RunFolderError(f"{folder} is not whole: {name} was changed after the run; run the scenario again")
    return manifest


def file_digest(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def find_complete(parent: Path, name: str) -> Path | None:
    """The folder of that name below `parent` when it is a whole run; a harmed one is removed.

    Raises:
        RunFolderError: when something else has that name: it is not ours to remove.
    """
    folder = parent / name
    if not folder.exists():
        return None
    if is_complete(folder):
        return folder
    if not folder.is_dir() or folder.is_symlink() or not all(_ours(path) for path in folder.iterdir()):
        raise RunFolderError(f"{folder} is in the way and is no run: move it, or give another --out")
    shutil.rmtree(folder, ignore_errors=True)  # another process may be removing it too
    return None


def _ours(path: Path) -> bool:
    return path.suffix == ".parquet" or path.name in {MANIFEST, "answer.json", "scenario.yaml"}


def write_folder(parent: Path, name: str, manifest: Mapping[str, Any], fill: Callable[[Path], None]) -> Path:
    """Write a run folder: `fill` writes the files into a temporary folder, the manifest follows, a rename finishes it.

    Returns the final folder; when another process finished the same run first, theirs.
    """
    make_parent(parent)
    working = Path(tempfile.mkdtemp(prefix=".tmp-", dir=parent))
    working.chmod(0o755)
    final = parent / name
    try:
        fill(working)
        files = {p.relative_to(working).as_posix(): p.stat().st_size for p in sorted(working.rglob("*")) if p.is_file()}
        digests = {held: file_digest(working / held) for held in files}
        text = json.dumps({**manifest, "files": files, "sha256": digests}, indent=1, ensure_ascii=False, default=str)
        (working / MANIFEST).write_text(text + "\n", encoding="utf-8")
        for path in working.rglob("*"):
            if path.is_file():
                _sync(path)
        try:
            working.rename(final)
        except OSError:
            if find_complete(parent, name) is None:
                working.rename(final)
    finally:
        shutil.rmtree(working, ignore_errors=True)
    return final


def make_parent(parent: Path) -> None:
    """Make the folder that runs are written to.

    Raises:
        RunFolderError: when a file stands in its place.
    """
    try:
        parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as exc:
        raise RunFolderError(f"--out {parent}: a file stands there; give a folder") from exc


def hold(path: Path, waiting: Callable[[], None]) -> IO[str]:
    """Open a lock file and lock it for this process; waits for another that holds it. A killed process lets it go.

    Where the system has no such locks (Windows) the file is only opened.
    """
    make_parent(path.parent)
    handle = path.open("a", encoding="utf-8")
    try:
        import fcntl
    except ImportError:
        return handle
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        waiting()
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError:  # a file system without locks
        pass
    return handle


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
