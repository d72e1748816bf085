"""A HiGHS object that prints nothing: its banner must not reach standard output, which may carry JSON."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from pathlib import Path

from highspy import Highs


@cache
def _print_banner_into_the_void() -> None:
    """HiGHS greets once per process, at the first object, before any option can be set."""
    sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # no standard output at all
        Highs()
        return
    with Path(os.devnull).open("w") as void:
        try:
            os.dup2(void.fileno(), 1)
            Highs()
            ctypes.CDLL(None).fflush(None)
        except (OSError, TypeError, AttributeError):  # a C library without these: a banner is no reason to stop
            pass
        finally:
            os.dup2(kept, 1)
            os.close(kept)


def quiet_highs() -> Highs:
    """New `Highs` without output."""
    _print_banner_into_the_void()
    highs = Highs()
    highs.setOptionValue("output_flag", False)
    return highs
