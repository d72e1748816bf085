"""Exit codes, and the one place where an exception becomes one.

0 done, 1 unexpected, 2 usage, 3 invalid input, 4 infeasible or unbounded, 5 a check failed, 130 interrupted.
"""

from __future__ import annotations

import errno
import functools
import inspect
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from reports.cli import terminal
from supply.input_text import shown

__all__ = [
    "CHECK_FAILED",
    "INFEASIBLE",
    "INVALID",
    "CheckFailedError",
    "UsageError",
    "no_more_readers",
    "plain",
    "print_json",
    "verb",
]

USAGE, INVALID, INFEASIBLE, CHECK_FAILED, INTERRUPTED = 2, 3, 4, 5, 130
_FULL, _CLOSED = "free space there, or give another path", "give a path that you may write to"
_REMEDY = {errno.ENOSPC: _FULL, errno.EDQUOT: _FULL, errno.EFBIG: _FULL, errno.EROFS: _CLOSED, errno.EACCES: _CLOSED}
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress: only the answer, or an error.")]


class UsageError(ValueError):
    """An option whose text cannot be read; the message shows the form."""


class CheckFailedError(Exception):
    """A check of the run or of the examples is off; the message says which."""


def print_json(value: object) -> None:
    """Write one JSON object to stdout; NaN and infinities are refused (`plain` makes them null)."""
    terminal.end()
    json.dump(value, sys.stdout, indent=1, allow_nan=False, default=str)
    sys.stdout.write("\n")


def plain(value: Any) -> Any:
    """numpy numbers as plain ones, keys as text, what is not finite as None.

    >>> plain({"a": (float("nan"), 1.5)})
    {'a': [None, 1.5]}
    """
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and (value != value or abs(value) == float("inf")) else value


def verb(function: Callable[..., None]) -> Callable[..., None]:
    """Give a verb `--quiet`, and turn its exceptions into a message on stderr and the exit code above."""

    @functools.wraps(function)
    def call(*args: Any, quiet: bool = False, **kwargs: Any) -> None:
        terminal.begin(quiet)
        try:
            function(*args, **kwargs)
            sys.stdout.flush()
        except KeyboardInterrupt:
            _stop("interrupted; nothing half-written was left", INTERRUPTED)
        except CheckFailedError as exc:
            _stop(str(exc), CHECK_FAILED)
        except BrokenPipeError:
            no_more_readers()
        except Exception as exc:  # every other exception is told by its kind
            if os.environ.get("WAFER2TOKEN_DEBUG"):
                raise
            _stop(_message(exc), _code(exc))
        finally:
            terminal.end()

    own = inspect.signature(function, eval_str=True)
    option = inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Quiet)
    call.__signature__ = own.replace(parameters=[*own.parameters.values(), option])  # type: ignore[attr-defined]
    call.__annotations__ = {**function.__annotations__, "quiet": Quiet}
    return call


def no_more_readers() -> None:
    """End quietly when the reader of stdout is gone (`| head`): what is still in the buffer goes nowhere."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    sys.exit(0)


def _code(exc: Exception) -> int:
    names = {c.__name__ for c in type(exc).__mro__}
    if names & {"InfeasibleError", "UnboundedError"}:
        return INFEASIBLE
    if isinstance(exc, UsageError):
        return USAGE
    return INVALID if isinstance(exc, ValueError | OSError) else 1


def _message(exc: Exception) -> str:
    text = str(exc) or type(exc).__name__
    if isinstance(exc, OSError) and exc.strerror:
        place = "the file system" if exc.filename is None else exc.filename
        text = f"{place}: {exc.strerror.lower()}; {_REMEDY.get(exc.errno or 0, 'give another path, or free this one')}"
    if _code(exc) == 1:
        return f"unexpected {type(exc).__name__}: {text} (set WAFER2TOKEN_DEBUG=1 for the traceback)"
    return text


def _stop(message: str, code: int) -> NoReturn:
    terminal.end()
    print(shown(message), file=sys.stderr)
    sys.exit(code)
