"""Files and folders that are whole or not there: written beside, locked while the writer lives, renamed into place.

A working file is `.NAME-XXXX.tmp`, a working folder `.tmp-XXXX`. Its writer holds a lock on it; the system lets the
lock go when the process ends, however it ends. So a name that can be locked is left over from a killed process, and the
next writer in the same folder removes it.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

__all__ = ["claim", "release", "sweep", "sync", "whole_file", "whole_text", "working_folder"]

#: Age at which a left-over counts as abandoned where the file system has no locks.
ABANDONED_S = 24 * 3600


def claim(path: Path) -> int | None:
    """Lock a file or folder for this process; None where the system or the file system has no such locks.

    Raises:
        BlockingIOError: when another process holds it. FileNotFoundError: when it is gone.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held = os.fstat(handle)
        there = path.stat()
        if (held.st_ino, held.st_dev) != (there.st_ino, there.st_dev):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    except (BlockingIOError, FileNotFoundError):
        os.close(handle)
        raise
    except OSError:  # a file system without locks
        os.close(handle)
        return None
    return handle


def release(handle: int | None) -> None:
    """Let a claimed file or folder go."""
    if handle is not None:
        os.close(handle)


def sweep(parent: Path, pattern: str, ours: Callable[[Path], bool] = lambda path: True) -> list[Path]:
    """Remove working files and folders that killed processes left; returns them.

    Those of living processes are kept, and those that `ours` does not know.
    """
    gone = []
    for path in sorted(parent.glob(pattern)):
        if path.is_symlink() or not ours(path):
            continue
        try:
            handle = claim(path)
            old = handle is not None or time.time() - path.stat().st_mtime > ABANDONED_S
        except OSError:  # in use, or removed by another process
            continue
        try:
            if old:
                _remove(path)
                gone.append(path)
        finally:
            release(handle)
    return gone


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


@contextlib.contextmanager
def working_folder(parent: Path, ours: Callable[[Path], bool]) -> Iterator[Path]:
    """A new folder below `parent` to fill and rename; what is left of it at the end is removed.

    `ours` tells of a file in a left-over folder whether the program writes such files: others are never removed.
    """
    sweep(parent, ".tmp-????????*", lambda path: path.is_dir() and all(ours(held) for held in path.iterdir()))
    while True:
        path = parent / f".tmp-{secrets.token_hex(6)}"
        path.mkdir()
        try:
            handle = claim(path)
            break
        except (BlockingIOError, FileNotFoundError):  # a sweep got between the two lines
            continue
    try:
        yield path
    except OSError as exc:
        raise _named(exc, path, parent) from exc
    finally:
        shutil.rmtree(path, ignore_errors=True)
        release(handle)


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to; at the end it takes the place of `path`. On an error `path` stays as it was.

    What is no plain file (`/dev/stdout`, a pipe) is given as it is; a link is followed.

    Raises:
        OSError: with the file's name, also where the system gave none (a full disk).
    """
    if str(path).startswith("/dev/") or (path.exists() and not path.is_file()):
        yield path
        return
    target = Path(os.path.realpath(path))
    sweep(target.parent, f".{glob.escape(target.name)}-????????????.tmp")
    working, handle = _working_file(target)
    try:
        yield working
        sync(working)
        working.replace(target)
    except Exception as exc:
        cause = exc.args[0] if exc.args and isinstance(exc.args[0], OSError) else exc  # XlsxWriter wraps the system's
        if isinstance(cause, OSError):
            raise _named(cause, working, path) from exc
        raise
    finally:
        with contextlib.suppress(OSError):
            working.unlink()
        release(handle)


def _working_file(target: Path) -> tuple[Path, int | None]:
    while True:
        working = target.with_name(f".{target.name}-{secrets.token_hex(6)}.tmp")
        try:
            working.touch(exist_ok=False)
            return working, claim(working)
        except (BlockingIOError, FileNotFoundError) as exc:  # a sweep got between the two
            if not target.parent.is_dir():
                raise _named(exc, working, target) from exc
        except OSError as exc:
            raise _named(exc, working, target) from exc


def _named(exc: OSError, working: Path, target: Path) -> OSError:
    """The error with the name that the user gave: neither none nor that of the working file."""
    if exc.errno is None or (exc.filename is not None and not str(exc.filename).startswith(str(working))):
        return exc
    return OSError(exc.errno, exc.strerror, str(target))


@contextlib.contextmanager
def whole_text(path: Path) -> Iterator[IO[str]]:
    r"""A text file (UTF-8, lines end in `\n`) that takes the place of `path` when it is whole."""
    with whole_file(path) as working, working.open("w", encoding="utf-8", newline="") as handle:
        yield handle


def sync(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as exc:
        if exc.errno not in (errno.EINVAL, errno.EBADF, errno.EACCES):  # folders on some systems cannot be synced
            raise
    finally:
        os.close(handle)
