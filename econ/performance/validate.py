"""The accuracy table: left-out errors of the calibration rows, the plain roofline beside them, and the coverage of
the bands.

Predictions are those of fits that did not see the row's pair of model and accelerator (`left_out="pair"`), its
accelerator,
or its whole hardware family. They are stored by `calibration` in `data/calibration/out_of_fold.csv`; nothing is
refitted.
"""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from econ.performance.anchors import MOST_SHIFT, SPREADS, anchor_key, spread_of
from econ.performance.answers import evaluate
from econ.performance.calibration import LEFT_OUT, family_of, hardware_of, topic_of
from econ.performance.calibration_data import (
    INFERENCE_FILES,
    Measurement,
    inference_measurements,
    kernel_measurements,
    read_rows,
)
from econ.performance.ideal import ideal_parameters
from econ.performance.inference_rows import InferenceCase
from econ.performance.load_models import closed_loop
from econ.performance.predict import predict_rows
from econ.performance.prediction import Confidence
from econ.performance.requests import build_setups
from econ.performance.steps import constants
from econ.performance.tables import band_for
from supply.paths import data_file

__all__ = ["AccuracyRow", "accuracy_table", "answered_share", "format_table"]

Array = NDArray[np.float64]
TTFT_LOAD = 10.0
#: Scheme of `accuracy_table`: the pair left out of the fit, then one of its rows given as an anchor.
ANCHORED = "anchored"


@dataclass(frozen=True)
class AccuracyRow:
    """Accuracy of one slice. Percentages; ``bias`` is the median of predicted over measured."""

    slice: str
    left_out: str
    rows: int
    mape: float
    median: float
    p90: float
    bias: float
    coverage: float
    roofline_mape: float
    roofline_median: float

    def as_dict(self) -> dict[str, Any]:
        """Fields by name."""
        return dict(self.__dict__)


@lru_cache(maxsize=1)
def _out_of_fold() -> dict[tuple[str, str], float]:
    with data_file("calibration", "out_of_fold.csv").open(encoding="utf-8", newline="") as handle:
        return {(row["id"], row["left_out"]): float(row["log_error"]) for row in csv.DictReader(handle)}


@lru_cache(maxsize=1)
def _rooflines() -> dict[str, float]:
    """Log error of the plain roofline by row id, for served rows."""
    out: dict[str, float] = {}
    modes: dict[str, list[Measurement]] = {}
    for m in inference_measurements():
        if isinstance(m.case, InferenceCase):
            modes.setdefault(m.case.mode, []).append(m)
    for mode, rows in modes.items():
        cases = [m.case for m in rows if isinstance(m.case, InferenceCase)]
        metrics = evaluate(mode, cases, ideal_parameters()).metrics
        for n, m in enumerate(rows):
            if m.metric in metrics and metrics[m.metric][n] > 0:
                out[m.identity] = math.log(float(metrics[m.metric][n]) / m.value)
    return out


@lru_cache(maxsize=1)
def _moderate_load() -> frozenset[str]:
    """Ids of first-token rows whose measured time is at most ten unloaded prefills."""
    rows = [m for m in inference_measurements() if m.metric == "ttft_mean" and isinstance(m.case, InferenceCase)]
    closed = [m for m in rows if isinstance(m.case, InferenceCase) and m.case.mode == "closed"]
    from econ.performance.tables import serving_parameters

    p = serving_parameters()
    s = build_setups([m.case.request for m in closed if isinstance(m.case, InferenceCase)], p)
    c = constants(p, s)
    alone = closed_loop(s, c).prefill.alone_s + c.first_token_s
    return frozenset(m.identity for m, t in zip(closed, alone, strict=True) if m.value <= TTFT_LOAD * t)


@lru_cache(maxsize=1)
def _anchored() -> dict[str, tuple[float, bool]]:
    """Log error of each row whose pair was left out, once one other row of its group of like set-ups anchors the level,
    and whether the band then holds it; the anchor is the next row of the group in a shuffled circle.
    """
    errors = _out_of_fold()
    groups: dict[tuple[str, ...], list[tuple[str, dict[str, str], Measurement]]] = {}
    by_id = {m.identity: m for m in _measurements()}
    for name in (*INFERENCE_FILES, "kernels.csv", "silicon_points.csv"):
        for row in read_rows(name):
            if row["id"] in by_id and math.isfinite(errors.get((row["id"], "pair"), math.nan)):
                groups.setdefault(anchor_key(row), []).append((row["id"], row, by_id[row["id"]]))
    out: dict[str, tuple[float, bool]] = {}
    for members in groups.values():
        random.Random(len(members)).shuffle(members)
        for (identity, row, m), (anchor, *_) in zip(members, members[1:] + members[:1], strict=True):
            if anchor == identity:
                continue
            spread = spread_of(row)
            level = max(-MOST_SHIFT, min(MOST_SHIFT, -errors[anchor, "pair"])) / (1.0 + spread.shrink)
            left = errors[identity, "pair"] + level
            band = band_for(topic_of(m), "same_hardware")
            width = math.inf if spread is SPREADS["kernel"] else spread.half_width(1)
            low, high = max(band.low, math.exp(-width)), min(band.high, math.exp(width))
            out[identity] = (left, low <= math.exp(-left) <= high)
    return out


def _scored(scheme: str, rows: Sequence[Measurement]) -> list[tuple[Measurement, float, bool]]:
    """Rows of a scheme with their finite log error and whether the band holds them."""
    if scheme == ANCHORED:
        return [(m, *_anchored()[m.identity]) for m in rows if m.identity in _anchored()]
    errors = _out_of_fold()
    pairs = [(m, errors[m.identity, scheme]) for m in rows if (m.identity, scheme) in errors]
    return [(m, e, _covered(m, e, LEFT_OUT[scheme])) for m, e in pairs if math.isfinite(e)]


def _row(name: str, scheme: str, rows: Sequence[Measurement]) -> AccuracyRow | None:
    scored = _scored(scheme, rows)
    if not scored:
        return None
    log = np.array([e for _, e, _ in scored])
    share = np.abs(np.expm1(log)) * 100
    roof = np.array([_rooflines()[m.identity] for m, *_ in scored if m.identity in _rooflines()])
    off = np.abs(np.expm1(roof)) * 100
    return AccuracyRow(
        slice=name,
        left_out=scheme,
        rows=len(scored),
        mape=float(share.mean()),
        median=float(np.median(share)),
        p90=float(np.quantile(share, 0.9)),
        bias=float(np.exp(np.median(log))),
        coverage=float(np.mean([inside for *_, inside in scored])) * 100,
        roofline_mape=float(off.mean()) if len(off) else float("nan"),
        roofline_median=float(np.median(off)) if len(off) else float("nan"),
    )


def _covered(m: Measurement, error: float, confidence: Confidence) -> bool:
    band = band_for(topic_of(m), confidence)
    return band.low <= math.exp(-error) <= band.high


def _measurements() -> list[Measurement]:
    return [*inference_measurements(), *kernel_measurements()]


def accuracy_table(
    by: str = "family", schemes: Sequence[str] = ("pair", "hardware", "family"), sound_only: bool = False
) -> list[AccuracyRow]:
    """Accuracy by ``family`` (what is asked), ``hardware``, or ``confidence`` class, for each left-out scheme.

    The scheme ``anchored`` leaves the pair out and then anchors each row on one other of its group of like set-ups.
    First-token rows come twice: all, and those whose measured time is at most ten unloaded prefills.
    ``sound_only`` leaves
    out the rows that the fit does not see (see `calibration_data.SUSPECT`).

    Raises:
        ValueError: for an unknown slicing.
    """
    keys: Mapping[str, Callable[[Measurement], str]] = {
        "family": topic_of,
        "hardware": hardware_of,
        "hardware_family": family_of,
        "confidence": lambda _: "all",
    }
    if by not in keys:
        raise ValueError(f"by={by!r}: use one of {', '.join(keys)}")
    rows = [m for m in _measurements() if not (sound_only and m.suspect)]
    groups: dict[str, list[Measurement]] = {}
    for m in rows:
        groups.setdefault(keys[by](m), []).append(m)
    if by == "family" and "closed/ttft" in groups:
        groups["closed/ttft at most 10x unloaded"] = [
            m for m in groups["closed/ttft"] if m.identity in _moderate_load()
        ]
    found = [_row(name, scheme, members) for scheme in schemes for name, members in sorted(groups.items())]
    return [row for row in found if row is not None]


def answered_share() -> dict[str, tuple[int, int]]:
    """Answered and all rows of each calibration file, through the public `predict_rows`."""
    out = {}
    for name in (*INFERENCE_FILES, "kernels.csv", "silicon_points.csv"):
        rows = read_rows(name)
        answers = predict_rows(rows)
        out[name] = (sum(a.answered for a in answers), len(rows))
    return out


def format_table(rows: Sequence[AccuracyRow]) -> str:
    """The table as text."""
    head = f"{'slice':36s} {'left out':9s} {'rows':>5s} {'MAPE':>6s} {'median':>6s} {'p90':>6s} {'bias':>5s}"
    head += f" {'in band':>7s} {'roofline':>8s}"
    lines = [head]
    for r in rows:
        roof = "" if math.isnan(r.roofline_mape) else f"{r.roofline_mape:8.1f}"
        lines.append(
            f"{r.slice:36s} {r.left_out:9s} {r.rows:5d} {r.mape:6.1f} {r.median:6.1f} {r.p90:6.1f} {r.bias:5.2f}"
            f" {r.coverage:7.1f} {roof}"
        )
    return "\n".join(lines)
