"""Outputs by name: `quantity:subject@period`.

`energised:h100@2026-Q4` is one SKU in one quarter, `energised:*@2026-Q4` the sum over SKUs; a year stands for its
periods: flows are
summed, levels taken at its end, prices and costs averaged. A subject with `*` for a price or a cost is not a single
number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from scenarios.errors import Position, Problem, ScenarioError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FLOWS", "LEVELS", "SUBJECTS", "OutputName", "parse_output", "read_output"]

#: Quantities that add over periods and subjects; levels add over subjects only.
FLOWS = frozenset({"finished", "energised", "energised_h100e", "starts", "built", "rent", "used", "capacity"})
LEVELS = frozenset(
    {"fleet", "fleet_mw", "stock", "stranded", "stranded_mw", "built_mw", "power_limited_mw", "chip_limited_mw"}
)
_MONEY = (
    *("usd_per_gpu_hour", "owner_usd_per_gpu_hour", "scarcity_usd_per_gpu_hour", "usd_per_verified_task"),
    *("usd_per_mtoken_uncached_input", "usd_per_mtoken_cache_write", "usd_per_mtoken_cache_read"),
    *("usd_per_mtoken_output", "tokens_per_sold_hour"),
)
_LIMITS = (
    *("capacity", "used", "utilisation", "price", "lasting_price", "rent", "binding_price", "next_binding_at"),
    *("plus_1_percent_finished", "plus_1_percent_energised", "plus_1_percent_h100e"),
)
_WHOLE = (
    *("objective", "stranded", "stranded_mw", "built_mw", "power_limited_mw", "chip_limited_mw"),
    *("without_power_rows_mw", "without_chip_rows_mw"),
)
#: Quantity -> sections of the file whose ids (the last part of) its subject may be; none: it has no subject.
SUBJECTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("energised", "energised_h100e", "fleet", "fleet_mw", *_MONEY), ("fleet",)),
    **dict.fromkeys(_LIMITS, ("resources",)),
    **dict.fromkeys(_WHOLE, ()),
    "finished": ("fleet", "materials"),
    "starts": ("processes",),
    "stock": ("materials",),
    "built": ("expansions",),
}
_NAME = re.compile(r"([a-z0-9_]+)(?::([^@]*))?(?:@(\d{4}(?:-Q[1-4]|-\d\d)?))?")


@dataclass(frozen=True, slots=True)
class OutputName:
    """Parts of an output name."""

    quantity: str
    subject: str = ""
    period: str = ""

    def __str__(self) -> str:
        return f"{self.quantity}:{self.subject}@{self.period}" if self.period else self.quantity


def output_error(name: str, message: str) -> ScenarioError:
    """The error of an output that does not exist."""
    return ScenarioError([Problem(Position("output", 1, 1), name, message)])


def parse_output(name: str) -> OutputName:
    """Split a name.

    >>> parse_output("usd_per_mtoken_output:deepseek_v3/h200@2026-Q2")
    OutputName(quantity='usd_per_mtoken_output', subject='deepseek_v3/h200', period='2026-Q2')

    Raises:
        ScenarioError: when it is not of the form `quantity:subject@period`.
    """
    match = _NAME.fullmatch(name.strip())
    if match is None or (match[1] != "objective" and match[3] is None):
        raise output_error(name, "is not of the form quantity:subject@period, e.g. energised:*@2026-Q4")
    return OutputName(match[1], match[2] or "", match[3] or "")


def read_output(results: pd.DataFrame, name: str) -> float:
    """Value of an output in a results table.

    Raises:
        ScenarioError: when the table has no such output; the message offers the nearest names.
    """
    wanted = parse_output(name)
    rows = results[results["quantity"] == wanted.quantity]
    if rows.empty:
        raise output_error(
            name, f"no quantity {wanted.quantity!r}{did_you_mean(wanted.quantity, set(results['quantity']))}"
        )
    if wanted.quantity == "objective":
        return float(rows["value"].iloc[0])
    pattern = wanted.subject or "*"
    subjects = set(rows["subject"])
    rows = rows[[fnmatchcase(s, pattern) for s in rows["subject"]]]
    if rows.empty:
        raise output_error(
            name, f"no subject {wanted.subject!r} of {wanted.quantity}{did_you_mean(wanted.subject, subjects)}"
        )
    inside = rows[[p.startswith(wanted.period) for p in rows["period"]]]
    if inside.empty:
        raise output_error(
            name, f"period {wanted.period} is not reported{did_you_mean(wanted.period, set(rows['period']))}"
        )
    return _combined(inside, wanted)


def _combined(rows: pd.DataFrame, wanted: OutputName) -> float:
    if wanted.quantity in FLOWS:
        return float(rows["value"].sum())
    if wanted.quantity in LEVELS:
        return float(rows.loc[rows["period"] == rows["period"].max(), "value"].sum())
    if rows["subject"].nunique() > 1:
        some = ", ".join(sorted(set(rows["subject"]))[:4])
        raise output_error(
            str(wanted), f"{wanted.quantity} of several subjects is not one number: name one of {some} ..."
        )
    return float(np.mean(rows["value"]))
