"""Success of repeated tries at one task: correlated, so not a function of the mean alone.

A task's chance of success p is Beta distributed over tasks with mean `rate`; `correlation` is that of two tries at one
task, 1 / (a + b + 1). Correlation 0 makes tries independent, 1 makes a task always or never succeed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["Success", "SuccessError", "fit_success", "fit_success_from_pass_hat", "success_interval"]

Array = NDArray[np.float64]
#: Points of the distribution of p over tasks, used where a judge errs and no closed form holds.
_POINTS = 400


class SuccessError(ValueError):
    """A success rate, correlation or count outside its domain."""


@dataclass(frozen=True)
class Success:
    """Mean success rate of one try, and the correlation of two tries at the same task.

    >>> s = Success(0.5, 0.5)
    >>> round(s.any_of(2), 4), round(s.all_of(2), 4)
    (0.625, 0.375)
    >>> Success(0.6, 0.0).all_of(3) == 0.6**3
    True
    """

    rate: float
    correlation: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1 or not 0 <= self.correlation <= 1:
            raise SuccessError(f"success rate {self.rate} and correlation {self.correlation}: both lie between 0 and 1")

    def any_of(self, tries: int) -> float:
        """pass@k: the chance that at least one of k tries succeeds."""
        return 1.0 - self._run(1 - self.rate, tries)

    def all_of(self, tries: int) -> float:
        """pass^k: the chance that all of k tries succeed."""
        return self._run(self.rate, tries)

    def _run(self, mean: float, tries: int) -> float:
        """E[q^k] for a Beta distributed q of the given mean."""
        if tries < 0 or tries != int(tries):
            raise SuccessError(f"{tries} tries: give a whole number from 0")
        if tries == 0:
            return 1.0
        if self.correlation == 1 or mean in (0.0, 1.0):
            return mean
        if self.correlation == 0:
            return float(mean**tries)
        size = 1 / self.correlation - 1
        steps = np.arange(tries)
        return float(np.prod((mean * size + steps) / (size + steps)))

    def tries_until_success(self, most: int) -> float:
        """Mean number of tries when one stops at the first success or after `most`.

        >>> round(Success(0.5).tries_until_success(3), 3)
        1.75
        """
        return sum(self._run(1 - self.rate, j) for j in range(most))

    @cached_property
    def chances(self) -> Array:
        """Equally likely values of p over tasks (mid-quantiles, rescaled to the exact mean)."""
        if self.correlation == 0 or self.rate in (0.0, 1.0):
            return np.array([self.rate])
        if self.correlation == 1:
            split = np.linspace(0, 1, _POINTS, endpoint=False) < self.rate
            return np.asarray(split, dtype=float)
        from scipy.special import betaincinv

        size = 1 / self.correlation - 1
        levels = (np.arange(_POINTS) + 0.5) / _POINTS
        return np.asarray(betaincinv(self.rate * size, (1 - self.rate) * size, levels))


def success_interval(successes: float, tries: float, level: float = 0.90) -> tuple[float, float]:
    """Jeffreys interval of a success rate from counts of distinct tasks.

    >>> low, high = success_interval(325, 500)
    >>> round(low, 3), round(high, 3)
    (0.614, 0.684)
    """
    if not 0 <= successes <= tries or tries <= 0:
        raise SuccessError(f"{successes} successes of {tries} tries: give at least one try and no more successes")
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    a, b = successes + 0.5, tries - successes + 0.5
    return float(betaincinv(a, b, tail)), float(betaincinv(a, b, 1 - tail))


def fit_success(successes: Sequence[int], tries: Sequence[int]) -> Success:
    """Rate and correlation by beta-binomial maximum likelihood from counts of each task.

    With one try a task the correlation cannot be seen and is returned as 0.

    Raises:
        SuccessError: no tasks, or more successes than tries.

    >>> fit_success([4, 4, 0, 0], [4, 4, 4, 4]).correlation > 0.8
    True
    """
    c, n = np.asarray(successes, dtype=float), np.asarray(tries, dtype=float)
    if not len(c) or len(c) != len(n) or (c > n).any() or (n < 1).any() or (c < 0).any():
        raise SuccessError(
            f"{len(c)} counts of successes and {len(n)} of tries: one pair a task, successes within tries"
        )
    rate = float(c.sum() / n.sum())
    if (n == 1).all() or rate in (0.0, 1.0):
        return Success(rate, 0.0)
    from scipy.optimize import minimize_scalar
    from scipy.special import betaln

    def loss(correlation: float) -> float:
        # minus the beta-binomial log likelihood, without the binomial coefficients, which do not depend on it
        a, b = rate * (1 / correlation - 1), (1 - rate) * (1 / correlation - 1)
        return -float((betaln(c + a, n - c + b) - betaln(a, b)).sum())

    best = minimize_scalar(loss, bounds=(1e-6, 1 - 1e-6), method="bounded")
    return Success(rate, float(best.x))


def fit_success_from_pass_hat(pass_hat: Sequence[float]) -> Success:
    """Rate and correlation from printed pass^1, pass^2, ... (least squares over k > 1).

    >>> fit = fit_success_from_pass_hat([0.604, 0.491, 0.430, 0.383])
    >>> round(fit.correlation, 2), round(fit.all_of(4), 3)
    (0.52, 0.387)
    """
    values = np.asarray(pass_hat, dtype=float)
    if len(values) < 2 or (np.diff(values) > 1e-9).any():
        raise SuccessError(
            f"pass^k values {list(pass_hat)}: give at least pass^1 and pass^2, and they never rise with k"
        )
    from scipy.optimize import minimize_scalar

    def loss(correlation: float) -> float:
        model = Success(float(values[0]), correlation)
        return float(sum((model.all_of(k + 1) - v) ** 2 for k, v in enumerate(values)))

    best = minimize_scalar(loss, bounds=(0, 1), method="bounded")
    return Success(float(values[0]), float(best.x))
