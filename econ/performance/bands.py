"""90 % bands and confidence classes: quantiles of left-out log errors, by what is asked and how far from evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from econ.performance.prediction import CONFIDENCE_CLASSES, Confidence

__all__ = ["Band", "Knowledge", "band_of_errors", "band_topic", "nested"]

LOW_QUANTILE, HIGH_QUANTILE = 0.05, 0.95
#: Least half-width of a band (log): repeated runs of one set-up differ by about this much.
LEAST_LOG_WIDTH = 0.05


@dataclass(frozen=True)
class Band:
    """Factors on a prediction that hold nine measured values of ten, and the left-out rows that they rest on."""

    low: float
    high: float
    rows: int


def band_of_errors(errors: Sequence[float], inflate: float = 1.0) -> Band:
    """Band from log errors (predicted over measured): the measured value is predicted x exp(-error).

    >>> band_of_errors([0.0] * 20).rows
    20
    """
    finite = np.array([e for e in errors if np.isfinite(e)])
    if len(finite) == 0:
        return Band(0.25, 4.0, 0)
    # Few rows say little about tails: widen the quantiles towards the extremes and by a small-sample factor.
    widen = inflate * (1.0 + 2.0 / len(finite))
    low = float(np.quantile(finite, LOW_QUANTILE)) * widen
    high = float(np.quantile(finite, HIGH_QUANTILE)) * widen
    low, high = min(low, -LEAST_LOG_WIDTH), max(high, LEAST_LOG_WIDTH)
    return Band(round(float(np.exp(-high)), 4), round(float(np.exp(-low)), 4), len(finite))


def nested(bands: Mapping[Confidence, Band]) -> dict[Confidence, Band]:
    """Bands that widen from class to class: what is further from evidence is never surer."""
    out: dict[Confidence, Band] = {}
    low, high = 1.0, 1.0
    for name in CONFIDENCE_CLASSES:
        if name not in bands:
            continue
        low, high = min(low, bands[name].low), max(high, bands[name].high)
        out[name] = Band(low, high, bands[name].rows)
    return out


def band_topic(mode: str, metric: str) -> str:
    """Which errors a question shares: load model and kind of metric.

    >>> band_topic("closed", "tpot_mean"), band_topic("offline", "throughput_output_tokens_total")
    ('closed/tpot', 'offline/rate')
    """
    if mode in ("local_decode", "local_batch", "local_prefill", "decode", "batch", "prefill"):
        return "local/" + mode.removeprefix("local_")
    if metric.startswith("ttft"):
        kind = "ttft"
    elif metric.startswith("prefill"):
        kind = "prefill"
    elif metric.startswith(("tpot", "itl", "tokens_per_s_per_user", "decode", "e2e")):
        kind = "tpot"
    else:
        kind = "rate"
    if mode == "mlperf" and kind != "rate":
        return f"mlperf_latency/{kind}"
    if mode == "closed" and kind == "rate":
        kind = "tpot"
    if mode == "fixed" and kind == "ttft":
        kind = "prefill"
    return f"{mode}/{kind}"


@dataclass(frozen=True)
class Knowledge:
    """What the calibration of one topic has seen: pairs, accelerators and families."""

    pairs: frozenset[tuple[str, str]]
    hardware: frozenset[str]
    families: frozenset[str]

    def confidence(self, pair: tuple[str, str], hardware: str, family: str) -> Confidence:
        """Class of a question about a pair on an accelerator of a family."""
        if pair in self.pairs:
            return "measured_nearby"
        if hardware in self.hardware:
            return "same_hardware"
        return "same_family" if family in self.families else "first_principles"
