"""Accuracy of the training model on runs left out of its fit, by what is left out, kind of run, part and model."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from supply.paths import data_file

__all__ = ["training_accuracy"]

#: What was left out when a ratio was made -> how the table names it.
SCHEMES: Mapping[str, str] = {
    "measured_nearby": "run",
    "same_hardware": "pair",
    "same_family": "accelerator",
    "first_principles": "family",
}


@lru_cache(maxsize=1)
def _rows() -> list[dict[str, str]]:
    with data_file("calibration", "training_left_out.csv").open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def _line(name: str, left_out: str, rows: list[dict[str, str]]) -> dict[str, float | str]:
    ratio = np.array([float(r["ratio"]) for r in rows])
    roof = np.abs(np.array([float(r["roofline"]) for r in rows]) - 1)
    error = np.abs(ratio - 1)
    return {
        "family": "training step",
        "group": name,
        "left_out": left_out,
        "rows": len(rows),
        "answered": len(rows),
        "mape": 100 * float(error.mean()),
        "median": 100 * float(np.median(error)),
        "p90": 100 * float(np.quantile(error, 0.9)),
        "bias": float(np.median(ratio)),
        "coverage": 100 * float(np.mean([r["covered"] == "1" for r in rows])),
        "roofline_mape": 100 * float(roof.mean()),
        "roofline_median": 100 * float(np.median(roof)),
    }


def training_accuracy(by: str = "kind") -> list[dict[str, float | str]]:
    """Left-out accuracy of step times in percent, a dictionary a line: all runs for each scheme, then groups for pairs.

    `by`: `kind` (dense or expert; layout stated or assumed), `hardware` or `model`. Bias is the median of predicted
    over measured step time; coverage the share of runs inside their 90 % band; the roofline is the dense peak alone.

    >>> table = training_accuracy()
    >>> table[1]["left_out"], table[1]["mape"] < 12
    ('pair', True)

    Raises:
        ValueError: for another grouping.
    """
    if by not in ("kind", "hardware", "model"):
        raise ValueError(f"by = {by!r} is not one of kind, hardware, model")
    table = [_line("all", word, [r for r in _rows() if r["left_out"] == name]) for name, word in SCHEMES.items()]
    stated = [r for r in _rows() if r["left_out"] == "same_hardware" and r["kind"].endswith("_stated")]
    table.append(_line("layout stated", "pair", stated))
    groups: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in _rows():
        if row["left_out"] == "same_hardware":
            groups[row[by]].append(row)
    return table + [_line(name, "pair", rows) for name, rows in sorted(groups.items())]
