"""Interval score, coverage and naive forecasts against hand-worked numbers and properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.scoring import ScoreError, coverage, interval_score, log_steps, naive_growth, naive_last


def test_interval_score_by_hand() -> None:
    # width 4 inside; 4 + 20 x 1 below; 4 + 20 x 3 above
    assert interval_score([1, 1, 1], [5, 5, 5], [2, 0, 8]).tolist() == [4.0, 24.0, 64.0]


def test_the_true_quantiles_score_best_on_average() -> None:
    sample = np.random.default_rng(1).normal(size=20_000)

    def mean(half: float) -> float:
        return float(interval_score(-half, half, sample).mean())

    best = mean(1.645)
    assert best < mean(1.2) and best < mean(2.2)
    assert coverage(np.full(20_000, -1.645), np.full(20_000, 1.645), sample) == pytest.approx(0.9, abs=0.01)


@settings(max_examples=50, deadline=None)
@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(-1e6, 2e6))
def test_the_score_is_at_least_the_width_and_falls_towards_the_band(a: float, b: float, y: float) -> None:
    low, high = min(a, b), max(a, b)
    score = float(interval_score(low, high, y))
    assert score >= high - low
    assert score >= float(interval_score(low, high, np.clip(y, low, high)))


def test_a_band_upside_down_and_nothing_to_score_are_refused() -> None:
    with pytest.raises(ScoreError, match="low above high"):
        interval_score(2, 1, 1)
    with pytest.raises(ScoreError, match="no outcome"):
        coverage([], [], [])


def test_naive_forecasts_by_hand() -> None:
    units = [10.0, 12.0, 14.0, 16.0, 20.0]
    assert naive_last(units, 3, 0.2).value == 20.0
    assert naive_growth(units, 2, 0.2).value == pytest.approx(
        20 * 2**0.5
    )  # doubled over the year: root two in half of it
    wide = naive_last(units, 4, 0.2)
    assert wide.high / wide.value == pytest.approx(np.exp(1.6449 * 0.2 * 2), rel=1e-4)
    assert naive_growth([5.0, 10.0], 1, 0.1).value == pytest.approx(20.0)  # one quarter of history doubles again
    assert naive_growth([7.0], 5, 0.1).value == 7.0


def test_naives_need_a_last_quarter() -> None:
    for bad in ([], [3.0, 0.0]):
        with pytest.raises(ScoreError, match="positive quarter"):
            naive_last(bad, 1, 0.1)


def test_log_steps_skip_empty_quarters() -> None:
    assert log_steps([0.0, 1.0, 1.0, 0.0]) == [0.0]
