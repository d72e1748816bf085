"""Exit codes, and the one place where an exception becomes one.

0 done, 1 unexpected, 2 usage, 3 invalid input, 4 infeasible or unbounded, 5 a check failed, 130 interrupted.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import sys
from collections.abc import Callable
from typing import NoReturn, ParamSpec

__all__ = ["CHECK_FAILED", "INFEASIBLE", "INVALID", "CheckFailedError", "UsageError", "print_json", "verb"]

USAGE, INVALID, INFEASIBLE, CHECK_FAILED, INTERRUPTED = 2, 3, 4, 5, 130
_FULL, _CLOSED = "free space there, or give another path", "give a path that you may write to"
_REMEDY = {errno.ENOSPC: _FULL, errno.EDQUOT: _FULL, errno.EFBIG: _FULL, errno.EROFS: _CLOSED, errno.EACCES: _CLOSED}
P = ParamSpec("P")


class UsageError(ValueError):
    """An option whose text cannot be read; the message shows the form."""


class CheckFailedError(Exception):
    """A check of the run or of the examples is off; the message says which."""


def print_json(value: object) -> None:
    """Write one JSON object to stdout; NaN and infinities are refused."""
    json.dump(value, sys.stdout, indent=1, allow_nan=False, default=str)
    sys.stdout.write("\n")


def verb(function: Callable[P, None]) -> Callable[P, None]:
    """Turn the exceptions of a verb into a message on stderr and the exit code above."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            function(*args, **kwargs)
        except KeyboardInterrupt:
            _stop("interrupted; nothing half-written was left", INTERRUPTED)
        except CheckFailedError as exc:
            _stop(str(exc), CHECK_FAILED)
        except BrokenPipeError:
            sys.stderr.close()
            sys.exit(0)
        except Exception as exc:  # every other exception is told by its kind
            if os.environ.get("WAFER2TOKEN_DEBUG"):
                raise
            _stop(_message(exc), _code(exc))

    return call


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
    print(message, file=sys.stderr)
    sys.exit(code)
