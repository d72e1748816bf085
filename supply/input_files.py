"""Reading a file that a user names: a plain file, of a size that its kind allows, before a byte of it is read.

A folder, a device, a pipe or a socket is refused, so that nothing waits for a writer and `/dev/zero` does not fill the
memory. `MOST_BYTES` is the one table of sizes; `docs/errors.md` prints it and a test compares both.
"""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

__all__ = ["MOST_BYTES", "InputFileError", "read_bytes", "read_utf8"]

#: Kind of input -> greatest size in bytes. The largest shipped or known real file of a kind is far below.
MOST_BYTES: Mapping[str, int] = MappingProxyType(
    {
        "scenario": 2_000_000,
        "facts table": 20_000_000,
        "model config": 2_000_000,
        "hardware record": 1_000_000,
        "case card": 1_000_000,
        "case table": 100_000_000,
        "agent log": 200_000_000,
        "price book": 20_000_000,
        "workbook": 20_000_000,
        "logo": 512 * 1024,
    }
)
_OTHER = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


class InputFileError(ValueError):
    """A file that is not read: no plain file, too large, or not UTF-8 text."""


def read_bytes(path: Path, kind: str) -> bytes:
    """The content of a plain file of at most `MOST_BYTES[kind]` bytes; size and type are looked at first.

    >>> read_bytes(Path("/dev/null"), "scenario")
    Traceback (most recent call last):
    ...
    supply.input_files.InputFileError: /dev/null: a device, not a file: copy what it holds into a file

    Raises:
        InputFileError: for what is no plain file, or is too large.
        OSError: when there is no such file, or it may not be read.
    """
    if "\0" in str(path):
        raise InputFileError(f"{str(path)!r}: a file name without NUL is needed")
    _refuse(path, path.stat(), kind)
    # a pipe put in its place since then would wait for its writer; NONBLOCK does not matter to a plain file
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as stream:
        _refuse(path, os.fstat(handle), kind)
        content = stream.read(MOST_BYTES[kind] + 1)
    if len(content) > MOST_BYTES[kind]:  # a file of the system that states no size, or one that grows
        raise InputFileError(f"{path}: {_too_large(len(content), kind)}")
    return content


def read_utf8(path: Path, kind: str) -> str:
    """As `read_bytes`, decoded from UTF-8 (a byte order mark is taken off).

    Raises:
        InputFileError: as `read_bytes`, and for a byte that is not UTF-8, with its line.
        OSError: as `read_bytes`.
    """
    content = read_bytes(path, kind).removeprefix(codecs.BOM_UTF8)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as exc:
        line = content.count(b"\n", 0, exc.start) + 1
        byte = content[exc.start]
        raise InputFileError(f"{path}:{line}: the byte {byte:#04x} is not UTF-8 text: save the file as UTF-8") from exc


def _refuse(path: Path, found: os.stat_result, kind: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        what = next((words for test, words in _OTHER if test(found.st_mode)), "something else")
        fix = "give the file in it" if what == "a folder" else "copy what it holds into a file"
        raise InputFileError(f"{path}: {what}, not a file: {fix}")
    if found.st_size > MOST_BYTES[kind]:
        raise InputFileError(f"{path}: {_too_large(found.st_size, kind)}")


def _too_large(size: int, kind: str) -> str:
    return f"{size:,} bytes: a {kind} has at most {MOST_BYTES[kind]:,}"
