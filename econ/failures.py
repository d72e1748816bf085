"""Interruptions of large training jobs: rates with their uncertainty, time between them, spares, repairs, stragglers.

A job of n accelerators in series is interrupted n times as often as one of them. Rates of single runs are Poisson;
rates of different runs differ more than that, so a new run is predicted from the spread between published runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from supply.facts import catalog

__all__ = [
    "FailureError",
    "InterruptionCount",
    "RateEstimate",
    "RunRecord",
    "degraded_network_slowdown",
    "fit_between_runs",
    "hours_between_interruptions",
    "interruption_rate",
    "mean_hours_between",
    "predict_interruptions",
    "published_runs",
    "replacements_per_year",
    "require_positive",
    "spares_needed",
    "straggler_slowdown",
]

Array = NDArray[np.float64]
LEVEL = 0.90


class FailureError(ValueError):
    """A count, rate or size that cannot be."""


def require_positive(**values: float) -> None:
    """Raise with every named value that is not positive and finite.

    Raises:
        FailureError: naming each of them.
    """
    bad = {k: v for k, v in values.items() if not (math.isfinite(v) and v > 0)}
    if bad:
        raise FailureError(f"must be positive and finite: {', '.join(f'{k} = {v!r}' for k, v in bad.items())}")


@dataclass(frozen=True)
class RateEstimate:
    """Interruptions per accelerator-hour with an interval; its inverse is the mean time between those of one
    accelerator."""

    per_accelerator_hour: float
    low: float
    high: float

    @property
    def hours_per_accelerator(self) -> float:
        """Mean hours between interruptions caused by one accelerator (and its share of hosts and network)."""
        return 1 / self.per_accelerator_hour


@dataclass(frozen=True)
class RunRecord:
    """One published run: unexpected interruptions of a job (or node faults) over accelerators x days."""

    name: str
    accelerators: float
    days: float
    events: float

    @property
    def accelerator_hours(self) -> float:
        """Exposure in accelerator-hours."""
        return self.accelerators * self.days * 24


@dataclass(frozen=True)
class InterruptionCount:
    """Predicted interruptions of a run: median and 90 % interval of the count."""

    median: float
    low: float
    high: float


def mean_hours_between(days: float, events: float) -> float:
    """Mean hours between the interruptions of a run: days x 24 / events.

    >>> round(mean_hours_between(54, 419), 3)
    3.093
    """
    require_positive(days=days, events=events)
    return days * 24 / events


def interruption_rate(events: float, accelerator_hours: float, level: float = LEVEL) -> RateEstimate:
    """Rate of one run: events / exposure, with the exact Poisson interval (Garwood, from gamma quantiles).

    >>> r = interruption_rate(419, 16384 * 54 * 24)
    >>> round(r.hours_per_accelerator), round(r.low * 1e6, 1), round(r.high * 1e6, 1)
    (50677, 18.2, 21.4)

    Raises:
        FailureError: for a negative count or no exposure.
    """
    if events < 0:
        raise FailureError(f"events = {events!r} must not be negative")
    require_positive(accelerator_hours=accelerator_hours, level=level)
    tail = (1 - level) / 2
    low = float(stats.gamma.ppf(tail, events)) if events else 0.0
    high = float(stats.gamma.ppf(1 - tail, events + 1))
    rate = events / accelerator_hours if events else high / accelerator_hours
    return RateEstimate(rate, low / accelerator_hours, high / accelerator_hours)


def hours_between_interruptions(hours_per_accelerator: float, accelerators: ArrayLike) -> Array:
    """Mean hours between interruptions of a job whose accelerators all have to work: MTBF of one / their number.

    >>> (hours_between_interruptions(50_000, [10_000, 100_000, 1_000_000]) * 60).tolist()
    [300.0, 30.0, 3.0]
    """
    count = np.asarray(accelerators, dtype=float)
    if not hours_per_accelerator > 0 or np.any(~(count > 0)):
        raise FailureError(f"hours_per_accelerator {hours_per_accelerator!r} and accelerators must be positive")
    return np.asarray(hours_per_accelerator / count)


#: Subjects of facts with `gpus`, `run_days` and `interruptions_unexpected`.
RUN_SUBJECTS = (
    "Llama 3 405B run",
    "OPT-175B run",
    "StepFun pre-training cluster trace",
    "504-GPU B200 pre-training cluster",
    "Crusoe H200 cluster",
)


def published_runs(without: Sequence[str] = ()) -> list[RunRecord]:
    """Published runs from the facts, `without` the named subjects."""
    facts = catalog()
    return [
        RunRecord(
            name,
            facts.select(name, "gpus").number,
            facts.select(name, "run_days").number,
            facts.select(name, "interruptions_unexpected").number,
        )
        for name in RUN_SUBJECTS
        if name not in without
    ]


@dataclass(frozen=True)
class BetweenRuns:
    """Log-normal spread of the rate between runs: mean and standard deviation of log rate, from a number of runs."""

    log_mean: float
    log_sd: float
    runs: int

    def rates(self, quantiles: ArrayLike) -> Array:
        """Rates of a new run at quantiles: Student's t with runs - 1 degrees, widened by the error of the mean."""
        t = stats.t.ppf(np.asarray(quantiles, dtype=float), self.runs - 1)
        return np.asarray(np.exp(self.log_mean + t * self.log_sd * math.sqrt(1 + 1 / self.runs)))

    @property
    def estimate(self) -> RateEstimate:
        """Median rate of a new run and its 90 % interval."""
        low, middle, high = self.rates([0.05, 0.5, 0.95]).tolist()
        return RateEstimate(middle, low, high)


def fit_between_runs(runs: Sequence[RunRecord]) -> BetweenRuns:
    """Mean and spread of log rate over runs; counting noise (1/events) is taken off the spread, never below a tenth.

    Raises:
        FailureError: for fewer than two runs.
    """
    if len(runs) < 2:
        raise FailureError(f"{len(runs)} run(s): at least two are needed to know how runs differ")
    for run in runs:
        require_positive(accelerators=run.accelerators, days=run.days, events=run.events)
    logs = np.log([r.events / r.accelerator_hours for r in runs])
    noise = float(np.mean([1 / r.events for r in runs]))
    variance = max(float(np.var(logs, ddof=1)) - noise, 0.01)
    return BetweenRuns(float(np.mean(logs)), math.sqrt(variance), len(runs))


def predict_interruptions(
    between: BetweenRuns, accelerators: float, days: float, level: float = LEVEL
) -> InterruptionCount:
    """Interruptions of a new run: rates between runs mixed with Poisson counts; median and interval of the count.

    >>> c = predict_interruptions(fit_between_runs(published_runs(without=["Llama 3 405B run"])), 16384, 54)
    >>> c.low < 419 < c.high
    True
    """
    require_positive(accelerators=accelerators, days=days)
    means = between.rates((np.arange(2000) + 0.5) / 2000) * accelerators * days * 24
    tail = (1 - level) / 2

    def quantile(q: float) -> float:
        low, high = 0.0, float(means.max() + 10 * math.sqrt(means.max()) + 10)
        for _ in range(60):
            middle = (low + high) / 2
            if float(np.mean(stats.poisson.cdf(math.floor(middle), means))) < q:
                low = middle
            else:
                high = middle
        return float(math.floor(high))

    return InterruptionCount(quantile(0.5), quantile(tail), quantile(1 - tail))


def spares_needed(
    accelerators: float, hours_per_accelerator: float, repair_hours: float, confidence: float = 0.99
) -> int:
    """Spare accelerators so that the pool is empty less than 1 - `confidence` of the time.

    Units in repair are Poisson with mean accelerators x repair time / MTBF (many servers, each repaired on its own).

    >>> spares_needed(16384, 50_000, 72)
    36
    """
    require_positive(accelerators=accelerators, hours_per_accelerator=hours_per_accelerator, repair_hours=repair_hours)
    if not 0 < confidence < 1:
        raise FailureError(f"confidence = {confidence!r} must lie between 0 and 1")
    return int(stats.poisson.ppf(confidence, accelerators * repair_hours / hours_per_accelerator))


def replacements_per_year(accelerators: float, permanent_failure_per_year: float | None = None) -> float:
    """New accelerators that a fleet draws from supply each year: fleet x permanent failure rate (a fact by default).

    >>> replacements_per_year(100_000)
    4000.0
    """
    rate = permanent_failure_per_year
    if rate is None:
        rate = catalog().select("Datacentre GPU", "permanent_failure_rate").number
    if not 0 <= rate <= 1:
        raise FailureError(f"permanent_failure_per_year = {rate!r} is a share, 0 to 1")
    require_positive(accelerators=accelerators)
    return accelerators * rate


def straggler_slowdown(accelerators: float, variation: float | None = None) -> float:
    """Step time over its mean when all wait for the slowest: 1 + variation x expected largest of n normal values.

    Blom's approximation of the largest order statistic; `variation` is the coefficient of variation of a rank's time.

    >>> round(straggler_slowdown(16384, 0.005), 4)
    1.0198
    """
    cv = catalog()["step_time_variation"].number if variation is None else variation
    require_positive(accelerators=accelerators)
    if cv < 0:
        raise FailureError(f"variation = {cv!r} must not be negative")
    largest = float(stats.norm.ppf((accelerators - 0.375) / (accelerators + 0.25))) if accelerators > 1 else 0.0
    return 1 + cv * largest


def degraded_network_slowdown(network_share: float, links: int, failed: int, congestion: float = 0.0) -> float:
    """Step time over normal when links fail or are congested: the network part grows by 1/((1 - failed/links)(1 -
    congestion)).

    >>> round(degraded_network_slowdown(0.2, links=8, failed=1), 4)
    1.0286

    Raises:
        FailureError: when no link is left, or a share is out of range.
    """
    if not 0 <= network_share <= 1 or not 0 <= congestion < 1:
        raise FailureError(f"network_share {network_share!r} and congestion {congestion!r} must be shares below one")
    if not 0 <= failed < links:
        raise FailureError(f"{failed} of {links} links failed: at least one must be left")
    return 1 - network_share + network_share / ((1 - failed / links) * (1 - congestion))
