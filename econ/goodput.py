"""Goodput of a training job under failures: checkpoint intervals, exact and first-order shares, and a simulation.

Goodput is useful step time over elapsed time: checkpoint writes, work lost since the last durable checkpoint,
detection, restart and waiting for a spare are not useful. Uptime counts lost work as up and is therefore higher.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import lambertw

from econ.failures import FailureError, hours_between_interruptions

__all__ = [
    "FailureModel",
    "Goodput",
    "best_interval",
    "checkpoint_seconds",
    "daly_interval",
    "exact_goodput",
    "extra_accelerator_hours",
    "first_order_loss",
    "goodput",
    "mtbf_for_interval",
    "simulate_goodput",
    "young_interval",
]

Array = NDArray[np.float64]


def young_interval(checkpoint_s: ArrayLike, mtbf_s: ArrayLike) -> Array:
    """Young's interval between checkpoints in seconds: sqrt(2 x checkpoint time x MTBF of the job).

    >>> round(float(young_interval(3.43, 18_000)), 1)
    351.4
    """
    c, m = np.asarray(checkpoint_s, dtype=float), np.asarray(mtbf_s, dtype=float)
    if np.any(~(c > 0)) or np.any(~(m > 0)):
        raise FailureError(f"checkpoint time {checkpoint_s!r} s and MTBF {mtbf_s!r} s must be positive")
    return np.asarray(np.sqrt(2 * c * m))


def daly_interval(checkpoint_s: float, mtbf_s: float) -> float:
    """Daly's higher-order interval: sqrt(2 c M) (1 + sqrt(c/2M)/3 + c/18M) - c for c < 2M, else M.

    >>> round(daly_interval(3.43, 18_000), 1)
    349.1
    """
    first = float(young_interval(checkpoint_s, mtbf_s))
    if checkpoint_s >= 2 * mtbf_s:
        return mtbf_s
    ratio = checkpoint_s / (2 * mtbf_s)
    return first * (1 + math.sqrt(ratio) / 3 + ratio / 9) - checkpoint_s


def mtbf_for_interval(interval_s: float, checkpoint_s: float) -> float:
    """MTBF in seconds at which an interval is Young's optimum: interval^2 / (2 x checkpoint time).

    >>> round(mtbf_for_interval(1800, 3.43) / 3600, 1)
    131.2
    """
    if interval_s <= 0 or checkpoint_s <= 0:
        raise FailureError(f"interval {interval_s!r} s and checkpoint time {checkpoint_s!r} s must be positive")
    return interval_s**2 / (2 * checkpoint_s)


def checkpoint_seconds(state_bytes: float, write_bytes_per_s: float) -> float:
    """Time to write a checkpoint: bytes of training state / aggregate durable write rate.

    >>> checkpoint_seconds(7.0e12, 2.0e12)
    3.5
    """
    if state_bytes <= 0 or write_bytes_per_s <= 0:
        raise FailureError(f"state {state_bytes!r} B and write rate {write_bytes_per_s!r} B/s must be positive")
    return state_bytes / write_bytes_per_s


@dataclass(frozen=True)
class FailureModel:
    """What a failure costs. Times in seconds; `mtbf_s` is that of the whole job.

    `checkpoint_s` stops the job; `durable_lag_s` is the further time until an asynchronous copy is safe. `spare_s` is
    the time to swap a node in (hot: seconds, cold: minutes to hours). `shape` is the Weibull shape of the time between
    failures (1: memoryless; below 1: failures come in bursts).
    """

    mtbf_s: float
    checkpoint_s: float
    interval_s: float
    detection_s: float = 0.0
    restart_s: float = 0.0
    spare_s: float = 0.0
    durable_lag_s: float = 0.0
    shape: float = 1.0

    def __post_init__(self) -> None:
        for name in ("mtbf_s", "interval_s", "shape"):
            if not getattr(self, name) > 0:
                raise FailureError(f"{name} = {getattr(self, name)!r} must be positive")
        for name in ("checkpoint_s", "detection_s", "restart_s", "spare_s", "durable_lag_s"):
            if getattr(self, name) < 0:
                raise FailureError(f"{name} = {getattr(self, name)!r} must not be negative")

    @property
    def down_s(self) -> float:
        """Seconds from a failure to the first new step: detection, spare and restart."""
        return self.detection_s + self.spare_s + self.restart_s


@dataclass(frozen=True)
class Goodput:
    """Shares of elapsed time; they add up to one."""

    useful: float
    checkpoint: float
    lost_work: float
    down: float

    @property
    def uptime(self) -> float:
        """Share of time in which the job computes, work that is lost later included."""
        return self.useful + self.checkpoint + self.lost_work


def first_order_loss(model: FailureModel) -> Goodput:
    """Young's first-order shares: checkpoint c/T, lost work T/2M, down time R/M; good where all are small.

    >>> loss = first_order_loss(FailureModel(18_000, 3.43, 1800))
    >>> round(loss.checkpoint, 4), round(loss.lost_work, 3)
    (0.0019, 0.05)
    """
    checkpoint = model.checkpoint_s / model.interval_s
    lost = (model.interval_s / 2 + model.durable_lag_s) / model.mtbf_s
    down = model.down_s / model.mtbf_s
    return Goodput(max(0.0, 1 - checkpoint - lost - down), checkpoint, lost, down)


def exact_goodput(model: FailureModel) -> Goodput:
    """Exact shares for memoryless failures while up: a cycle lasts M + R, and completes 1/(e^((T+c)/M) - 1) intervals.

    >>> round(exact_goodput(FailureModel(18_000, 3.43, 351.4)).useful, 4)
    0.9806

    Raises:
        FailureError: for a Weibull shape other than one (use the simulation).
    """
    if model.shape != 1.0:
        raise FailureError(f"shape = {model.shape:g}: the closed form holds for shape 1; use simulate_goodput")
    m, segment = model.mtbf_s, model.interval_s + model.checkpoint_s
    done = math.exp(-model.durable_lag_s / m) / math.expm1(segment / m)
    cycle = m + model.down_s
    useful, checkpoint = done * model.interval_s / cycle, done * model.checkpoint_s / cycle
    down = model.down_s / cycle
    return Goodput(useful, checkpoint, 1 - useful - checkpoint - down, down)


def simulate_goodput(model: FailureModel, failures: int = 20_000, seed: int = 1) -> Goodput:
    """Shares from simulated failures: each up-time keeps its whole durable intervals and loses the rest.

    >>> m = FailureModel(18_000, 3.43, 351.4, restart_s=600)
    >>> abs(simulate_goodput(m).useful - exact_goodput(m).useful) < 0.01
    True
    """
    if failures < 100:
        raise FailureError(f"failures = {failures}: at least 100 are needed for a share")
    scale = model.mtbf_s / math.gamma(1 + 1 / model.shape)
    up = scale * np.random.default_rng(seed).weibull(model.shape, failures)
    segments = np.floor(np.maximum(up - model.durable_lag_s, 0.0) / (model.interval_s + model.checkpoint_s))
    elapsed = float(up.sum() + failures * model.down_s)
    useful = float(segments.sum()) * model.interval_s / elapsed
    checkpoint = float(segments.sum()) * model.checkpoint_s / elapsed
    down = failures * model.down_s / elapsed
    return Goodput(useful, checkpoint, 1 - useful - checkpoint - down, down)


def best_interval(model: FailureModel) -> float:
    """Interval in seconds with the highest exact goodput.

    T maximises T / (e^((T+c)/M) - 1), so 1 - T/M = e^(-(T+c)/M), that is T = M (1 + W(-e^(-1-c/M))) with the principal
    branch W of Lambert's function. The down time and the lag do not matter.

    >>> round(best_interval(FailureModel(18_000, 3.43, 1.0)), 0)
    349.0

    Raises:
        FailureError: without a stop for a checkpoint, every interval is too long.
    """
    if model.checkpoint_s <= 0:
        raise FailureError("checkpoint_s = 0: without a stop every interval is too long; give the blocking time")
    root = lambertw(-math.exp(-1.0 - model.checkpoint_s / model.mtbf_s)).real
    return float(model.mtbf_s * (1.0 + root))


def goodput(
    accelerators: float,
    hours_per_accelerator: float,
    checkpoint_s: float,
    restart_s: float,
    detection_s: float = 0.0,
    spare_s: float = 0.0,
    interval_s: float | None = None,
) -> Goodput:
    """Goodput of a job at its best (or a given) checkpoint interval.

    >>> round(goodput(16384, 50_676, checkpoint_s=30, restart_s=750).useful, 3)
    0.87
    """
    mtbf = float(hours_between_interruptions(hours_per_accelerator, accelerators)) * 3600
    model = FailureModel(mtbf, checkpoint_s, interval_s or 1.0, detection_s, restart_s, spare_s)
    if interval_s is None:
        model = replace(model, interval_s=best_interval(model))
    return exact_goodput(model)


def extra_accelerator_hours(share_better: float, share_worse: float) -> float:
    """Accelerator-hours more for the same useful work at the worse of two useful (or up) shares: better/worse - 1.

    >>> round(extra_accelerator_hours(0.9881, 0.7783), 4)
    0.2696
    """
    if not 0 < share_worse <= share_better <= 1:
        raise FailureError(f"shares must satisfy 0 < worse <= better <= 1, got {share_worse!r} and {share_better!r}")
    return share_better / share_worse - 1
