"""Outputs of draws by name: sums over SKUs and years as a fixed linear map of the full vector."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np

from scenarios.errors import ScenarioError, did_you_mean
from scenarios.nodes import Array
from scenarios.outputs import FLOWS, LEVELS, OutputName, output_error, parse_output

__all__ = ["expand", "is_there", "selection"]

_ADD = FLOWS | LEVELS


def selection(names: Sequence[str], wanted: Sequence[str]) -> Array:
    """One row per wanted output over the full vector `names`: ones for sums, shares for means.

    >>> names = ["energised:a@2026-Q1", "energised:b@2026-Q1", "energised:a@2026-Q2"]
    >>> names += ["price:r@2026-Q1", "price:r@2026-Q2"]
    >>> selection(names, ["energised:*@2026", "price:r@2026"]).tolist()
    [[1.0, 1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.5, 0.5]]

    Raises:
        ScenarioError: for an output that is not there, with the nearest names.
    """
    parsed = [parse_output(n) for n in names]
    matrix = np.zeros((len(wanted), len(names)))
    for k, name in enumerate(wanted):
        matrix[k] = _weights(parse_output(name), parsed)
    return matrix


def is_there(names: Sequence[str], wanted: str) -> bool:
    """Whether an output can be read from the full vector `names`.

    >>> is_there(["energised:a@2026-Q1"], "energised:b@2026")
    False
    """
    try:
        selection(names, [wanted])
    except ScenarioError:
        return False
    return True


def _weights(target: OutputName, parsed: Sequence[OutputName]) -> Array:
    same = [p for p in parsed if p.quantity == target.quantity]
    if not same:
        raise output_error(
            str(target), f"no quantity {target.quantity!r}{did_you_mean(target.quantity, {p.quantity for p in parsed})}"
        )
    hit = np.array(
        [
            p.quantity == target.quantity
            and fnmatchcase(p.subject, target.subject or "*")
            and p.period.startswith(target.period)
            for p in parsed
        ]
    )
    if not hit.any():
        of_it = sorted({p.period for p in same if fnmatchcase(p.subject, target.subject or "*")})
        if of_it:
            told = f"period {target.period or '(none)'} is not reported; periods are {of_it[0]} to {of_it[-1]}"
            raise output_error(str(target), told)
        near = did_you_mean(target.subject, {p.subject for p in same})
        raise output_error(str(target), f"no subject {target.subject!r} of {target.quantity}{near}")
    subjects = {p.subject for p, h in zip(parsed, hit, strict=True) if h}
    if target.quantity in LEVELS:
        last = max(p.period for p, h in zip(parsed, hit, strict=True) if h)
        return np.array([1.0 if h and p.period == last else 0.0 for p, h in zip(parsed, hit, strict=True)])
    if target.quantity in _ADD or target.quantity == "objective":
        return hit.astype(float)
    if len(subjects) > 1:
        some = ", ".join(sorted(subjects)[:4])
        raise output_error(
            str(target), f"{target.quantity} of several subjects is not one number: name one of {some} ..."
        )
    return np.asarray(hit / hit.sum(), dtype=float)


def expand(names: Sequence[str], wanted: Sequence[str] | None) -> list[str]:
    """The wanted outputs; all names of the vector where none is wanted."""
    return list(names) if wanted is None else list(wanted)
