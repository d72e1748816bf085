"""Units of benchmark rows: the factor from a metric's own unit to the one that a row states."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["UnitError", "unit_factor"]

_TIMES: Mapping[str, float] = {"h": 1 / 3600, "min": 1 / 60, "s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_TIME_WORDS: Mapping[str, str] = {
    "hour": "h", "hours": "h", "minute": "min", "minutes": "min", "sec": "s", "second": "s", "seconds": "s",
    "millisecond": "ms", "milliseconds": "ms", "microsecond": "us", "microseconds": "us", "µs": "us", "μs": "us",
}  # fmt: skip
_PREFIX: Mapping[str, float] = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY: Mapping[str, float] = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}


class UnitError(ValueError):
    """A unit that does not suit its metric; the message names one that does."""


def unit_factor(unit: str, kind: str) -> float:
    """Factor from the base unit of a kind to ``unit``; an empty unit is the base.

    Kinds and bases: ``time`` s, ``flops`` TFLOP/s, ``bytes_rate`` GB/s, ``memory`` GiB, ``tokens`` or ``samples`` per
    second, ``share`` as a fraction. What follows the unit (`per GPU`, `/chip`, `(as logged)`) is the metric's business.

    >>> unit_factor("ms", "time"), unit_factor("PFLOP/s/GPU", "flops"), unit_factor("Gb/s", "bytes_rate")
    (1000.0, 0.001, 8.0)
    >>> unit_factor("percent", "share"), round(unit_factor("GB", "memory"), 4), unit_factor("ktokens/s", "tokens")
    (100.0, 1.0737, 0.001)

    Raises:
        UnitError: when the unit is none of the kind.
    """
    text = unit.strip()
    if not text:
        return 1.0
    factor = _FACTORS[kind](text)
    if factor is None:
        raise UnitError(f"unit {unit!r} is not one of {_EXAMPLES[kind]}")
    return factor


def _time(text: str) -> float | None:
    word = re.split(r"[\s/(]", text.lower())[0]
    return _TIMES.get(_TIME_WORDS.get(word, word))


def _flops(text: str) -> float | None:
    found = re.match(r"([kKMGTP]?)FLOPS?(?:/s(?:ec)?)?(?![a-z])", text, re.IGNORECASE)
    return 1e12 / _PREFIX[found[1].upper()] if found else None


def _bytes_rate(text: str) -> float | None:
    found = re.match(r"([kKMGT]i?|)([bB])(?:ytes?|its?|ps)?(?:/s)?(?![a-z])", text)
    if not found:
        return None
    prefix = found[1] if found[1] in _BINARY else found[1].upper()
    scale = _BINARY.get(prefix) or _PREFIX[prefix.rstrip("I")]
    return 1e9 / scale * (8.0 if found[2] == "b" else 1.0)


def _memory(text: str) -> float | None:
    found = re.match(r"([kKMGT]i?|)B(?:ytes?)?(?![a-zA-Z])", text)
    if not found:
        return None
    prefix = found[1] if found[1] in _BINARY else found[1].upper()
    return 2.0**30 / (_BINARY.get(prefix) or _PREFIX[prefix.rstrip("I")])


def _counted(words: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?:output |input |total |generated )?([kM]?)\s*(?:{words})\s*(?:/|per)\s*(s|min|h)", re.IGNORECASE
    )


_TOKENS, _SAMPLES = _counted("tokens?|toks?|tk|t"), _counted("samples?|sequences?|seqs?|images?")


def _per_second(pattern: re.Pattern[str], text: str) -> float | None:
    found = pattern.match(text)
    if not found:
        return None
    seconds = {"s": 1.0, "min": 60.0, "h": 3600.0}[found[2].lower()]
    return seconds / _PREFIX[found[1].upper()]


def _share(text: str) -> float | None:
    word = re.split(r"[\s/(]", text.lower())[0]
    return {"fraction": 1.0, "ratio": 1.0, "share": 1.0, "1": 1.0, "percent": 100.0, "%": 100.0, "pct": 100.0}.get(word)


_FACTORS = {
    "time": _time,
    "flops": _flops,
    "bytes_rate": _bytes_rate,
    "memory": _memory,
    "tokens": lambda text: _per_second(_TOKENS, text),
    "samples": lambda text: _per_second(_SAMPLES, text),
    "share": _share,
}
_EXAMPLES: Mapping[str, str] = {
    "time": "s, ms, us, min",
    "flops": "TFLOP/s, PFLOP/s",
    "bytes_rate": "GB/s, TB/s, Gb/s",
    "memory": "GiB, GB, MiB",
    "tokens": "tokens/s, ktokens/s",
    "samples": "samples/s, sequences/s",
    "share": "fraction, percent",
}
