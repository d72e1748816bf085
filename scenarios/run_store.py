"""Run folders: keyed by content, written beside and renamed into place, read back through DuckDB.

A folder is a run only when its manifest is whole and every file has the digest that the manifest says. The manifest is
written last and the folder is renamed into place, so a killed process leaves at most a `.tmp-*` folder that nobody
reads and the next writer removes.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from supply.files import claim, release, sync, whole_text, working_folder
from supply.paths import data_dir

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

__all__ = [
    "RunFolderError",
    "canonical_json",
    "check_complete",
    "check_file",
    "content_hash",
    "facts_digest",
    "file_digest",
    "find_complete",
    "hold",
    "is_complete",
    "make_parent",
    "package_version",
    "program_digest",
    "put_in_place",
    "read_table",
    "write_folder",
    "write_manifest",
    "write_table",
]

MANIFEST = "manifest.json"
#: Key of the manifest that holds the digest over all other keys.
SEAL = "manifest_sha256"
#: Seconds to wait for another process that removes a harmed folder of the same name.
PATIENCE_S = 10.0
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EACCES)


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


@lru_cache(maxsize=1)
def program_digest() -> str:
    """SHA-256 over the modules that make a run (supply, econ, scenarios): other code, other run."""
    digest = hashlib.sha256()
    root = Path(__file__).resolve().parent.parent
    for path in sorted(p for room in ("supply", "econ", "scenarios") for p in (root / room).rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode("utf-8") + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table as Parquet, one thread, rows in their order.

    Raises:
        RunFolderError: when the file cannot be written, such as on a full disk.
    """
    import duckdb

    try:
        with duckdb.connect() as connection:
            connection.execute("SET threads = 1")
            connection.register("frame", frame)
            how = "FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false"
            connection.execute(f"COPY (SELECT * FROM frame) TO {_quoted(path)} ({how})")
    except (duckdb.IOException, duckdb.FatalException) as exc:
        found = re.search("no space left on device|file too large|read-only file system", str(exc), re.IGNORECASE)
        reason = found[0].lower() if found else str(exc).strip().splitlines()[0]
        raise RunFolderError(f"{path}: {reason}; free space there, or give another folder") from exc


@lru_cache(maxsize=1)
def _database() -> duckdb.DuckDBPyConnection:
    """One empty database for all reads: to start one takes ten times as long as to read a table."""
    import duckdb

    return duckdb.connect()


def read_table(paths: Path | str | Sequence[Path]) -> pd.DataFrame:
    """Read a Parquet file, or several in their order, as a pandas table in row order.

    Raises:
        RunFolderError: when a file is no Parquet file or is cut off.
    """
    import duckdb

    given = [paths] if isinstance(paths, Path | str) else paths
    try:
        with _database().cursor() as connection:
            listed = ", ".join(_quoted(path) for path in given)
            frame: pd.DataFrame = connection.execute(f"SELECT * FROM read_parquet([{listed}])").df()
    except duckdb.Error as exc:
        _database.cache_clear()  # a fatal error would close it for every later read
        reason = str(exc).strip().splitlines()[0]
        raise RunFolderError(f"{given[0]} cannot be read ({reason}): run the scenario again") from exc
    return frame


def _quoted(path: Path | str) -> str:
    return "'" + str(path).replace("'", "''") + "'"


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
        RunFolderError: no manifest, a broken one, or a file that is missing, a link, of another size or changed.
    """
    path = folder / MANIFEST
    if path.is_symlink() or not path.is_file():
        raise RunFolderError(f"{folder} is not a run: it has no {MANIFEST}; give the folder that `run --out` printed")
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as exc:
        raise RunFolderError(f"{path} is broken ({exc}): run the scenario again") from exc
    files = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(files, dict) or not files or not {"run", "hash", "scenario"} & manifest.keys():
        raise RunFolderError(f"{path} is broken (it lists no files of a run): run the scenario again")
    digests = manifest.get("sha256")
    if not isinstance(digests, dict) or digests.keys() != files.keys():
        raise RunFolderError(f"{path} is broken (files and digests differ): run the scenario again")
    if manifest.get(SEAL) != _seal(manifest):
        raise RunFolderError(f"{path} is broken (it was changed after the run): run the scenario again")
    for name in files:
        check_file(folder, manifest, name)
    return manifest


def _seal(manifest: Mapping[str, Any]) -> str:
    """Digest over all of a manifest but the digest itself, as it is read back."""
    rest = {key: value for key, value in manifest.items() if key != SEAL}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode("utf-8")).hexdigest()


def check_file(folder: Path, manifest: Mapping[str, Any], name: str) -> Path:
    """The path of a file of a run, compared with its size and digest in the manifest.

    Raises:
        RunFolderError: it is missing, no plain file in the folder, or changed.
    """
    held = folder / name
    if held.parent != folder or held.is_symlink() or (held.exists() and not held.is_file()):
        raise RunFolderError(f"{folder} is not whole: {name} is no plain file in it; run the scenario again")
    if not held.is_file() or held.stat().st_size != manifest["files"][name]:
        raise RunFolderError(f"{folder} is not whole: {name} is missing or cut off; run the scenario again")
    if file_digest(held) != manifest["sha256"][name]:
        raise RunFolderError(f"{folder} is not whole: {name} was changed after the run; run the scenario again")
    return held


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
    if not folder.exists() and not folder.is_symlink():
        return None
    if is_complete(folder):
        return folder
    try:
        ours = folder.is_dir() and not folder.is_symlink() and all(_ours(path) for path in folder.iterdir())
    except FileNotFoundError:  # another process has just removed it
        return None
    if not ours:
        raise RunFolderError(f"{folder} is in the way and is no run: move it, or give another --out")
    _remove_harmed(folder)
    return None


def _remove_harmed(folder: Path) -> None:
    """Remove a harmed run under a lock on it, so that a whole one that another process puts there is never taken."""
    try:
        handle = claim(folder)
    except OSError:  # another process is removing it
        return
    try:
        try:
            folder.rmdir()  # an empty folder may be replaced by a whole run at any time, one with files may not
        except OSError:
            if not is_complete(folder):
                aside = folder.with_name(f".tmp-{secrets.token_hex(6)}")
                folder.rename(aside)
                shutil.rmtree(aside, ignore_errors=True)
    finally:
        release(handle)


def _ours(path: Path) -> bool:
    half = path.name.startswith(f".{MANIFEST}-") and path.suffix == ".tmp"
    return half or path.suffix == ".parquet" or path.name in {MANIFEST, "answer.json", "scenario.yaml"}


def write_manifest(folder: Path, manifest: Mapping[str, Any], files: Iterable[Path]) -> None:
    """Write the manifest of a folder of files, with their sizes and digests and the digest of all of it."""
    paths = sorted(files)
    content = {
        **manifest,
        "files": {path.name: path.stat().st_size for path in paths},
        "sha256": {path.name: file_digest(path) for path in paths},
    }
    content = json.loads(json.dumps(content, ensure_ascii=False, default=str))
    text = json.dumps({**content, SEAL: _seal(content)}, indent=1, ensure_ascii=False)
    with whole_text(folder / MANIFEST) as handle:
        handle.write(text + "\n")


def write_folder(parent: Path, name: str, manifest: Mapping[str, Any], fill: Callable[[Path], None]) -> Path:
    """Write a run folder: `fill` writes the files into a temporary folder, the manifest follows, a rename finishes it.

    Returns the final folder; when another process finished the same run first, theirs.
    """
    make_parent(parent)
    with working_folder(parent, _ours) as working:
        fill(working)
        paths = list(working.iterdir())
        for path in paths:
            sync(path)
        write_manifest(working, manifest, paths)
        put_in_place(working, parent, name)
    return parent / name


def put_in_place(working: Path, parent: Path, name: str) -> None:
    """Rename a filled folder to its name; keep the one that is there when it is whole.

    Raises:
        RunFolderError: when something else has the name.
    """
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            working.rename(parent / name)
            break
        except OSError as exc:
            if exc.errno not in _TAKEN or time.monotonic() > end:
                raise
            if find_complete(parent, name) is not None:
                return
            time.sleep(0.02)  # another process may be removing a harmed one
    sync(parent)


def make_parent(parent: Path) -> None:
    """Make the folder that runs are written to.

    Raises:
        RunFolderError: when a file stands in its place.
    """
    try:
        parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as exc:
        raise RunFolderError(f"--out {parent}: a file stands there; give a folder") from exc


def hold(path: Path, waiting: Callable[[], None]) -> int | None:
    """Make a lock file and lock it for this process; waits for another that holds it. A killed process lets it go.

    None where there are no such locks. `release` lets it go.
    """
    make_parent(path.parent)
    told = False
    while True:
        path.touch()
        try:
            return claim(path)
        except FileNotFoundError:  # the one before removed it
            continue
        except BlockingIOError:
            if not told:
                waiting()
            told = True
            time.sleep(0.05)
