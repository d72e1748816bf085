"""Failures: rates and their uncertainty, intervals, simulation against closed forms, spares, stragglers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize_scalar

from econ.failures import (
    FailureError,
    RunRecord,
    degraded_network_slowdown,
    fit_between_runs,
    hours_between_interruptions,
    interruption_rate,
    mean_hours_between,
    predict_interruptions,
    published_runs,
    replacements_per_year,
    spares_needed,
    straggler_slowdown,
)
from econ.goodput import (
    FailureModel,
    best_interval,
    checkpoint_seconds,
    daly_interval,
    exact_goodput,
    extra_accelerator_hours,
    first_order_loss,
    goodput,
    mtbf_for_interval,
    simulate_goodput,
    young_interval,
)


def test_worked_examples_2_5() -> None:
    assert mean_hours_between(54, 419) == pytest.approx(3.093, rel=1e-3)
    assert 419 + 47 == 466


def test_p17_llama_3_from_other_runs() -> None:
    """Rates fitted without the Llama 3 row hold its 419 unexpected interruptions in their 90 % interval."""
    others = published_runs(without=["Llama 3 405B run"])
    assert len(others) >= 4 and all(r.name != "Llama 3 405B run" for r in others)
    count = predict_interruptions(fit_between_runs(others), 16_384, 54)
    assert count.low < 419 < count.high
    assert count.high / count.low < 40  # wide, yet not empty of content
    own = interruption_rate(419, 16_384 * 54 * 24)
    assert own.hours_per_accelerator / 8766 == pytest.approx(5.78, rel=0.01)


def test_every_run_from_the_others() -> None:
    runs = published_runs()
    inside = 0
    for left in runs:
        count = predict_interruptions(
            fit_between_runs([r for r in runs if r is not left]), left.accelerators, left.days
        )
        inside += count.low <= left.events <= count.high
    assert inside >= len(runs) - 1


def test_rate_interval_against_known_poisson_limits() -> None:
    """Exact 90 % limits for ten events are 5.425 and 16.962 (Garwood's table)."""
    rate = interruption_rate(10, 1.0)
    assert (rate.low, rate.high) == (pytest.approx(5.425, abs=1e-3), pytest.approx(16.962, abs=1e-3))
    none = interruption_rate(0, 1000.0)
    assert none.low == 0 and none.high == pytest.approx(2.996 / 1000, rel=1e-3)


def test_counting_noise_is_not_taken_for_spread() -> None:
    rng = np.random.default_rng(3)
    same = [RunRecord(str(i), 1000, 30, float(rng.poisson(18) or 1)) for i in range(40)]
    assert fit_between_runs(same).log_sd < 0.2
    with pytest.raises(FailureError, match="at least two"):
        fit_between_runs(same[:1])


def test_case_fail_100k_gpus_minutes() -> None:
    minutes = hours_between_interruptions(50_000, [10_000, 100_000, 1_000_000]) * 60
    assert minutes[1] == pytest.approx(30, rel=1e-3)
    assert minutes.tolist() == pytest.approx([300, 30, 3])


def test_case_fail_interval_too_long() -> None:
    young = float(young_interval(3.43, 18_000))
    assert young == pytest.approx(351.397, rel=0.002)
    long, best = first_order_loss(FailureModel(18_000, 3.43, 1800)), first_order_loss(FailureModel(18_000, 3.43, young))
    assert (long.checkpoint, long.lost_work) == (pytest.approx(0.0019, rel=0.01), pytest.approx(0.05))
    assert best.checkpoint == pytest.approx(best.lost_work) == pytest.approx(0.00976, rel=0.01)
    assert mtbf_for_interval(1800, 3.43) / 3600 == pytest.approx(131, rel=0.002)
    assert checkpoint_seconds(395.74, 97.47) == pytest.approx(4.06, rel=1e-3)


def test_case_fail_uptime_to_cost() -> None:
    assert extra_accelerator_hours(0.9881, 0.7783) == pytest.approx(0.269562, rel=0.002)


@settings(max_examples=20, deadline=None)
@given(checkpoint=st.floats(1, 60), mtbf=st.floats(20_000, 500_000), down=st.floats(0, 300))
def test_simulation_agrees_with_young_where_its_assumptions_hold(checkpoint: float, mtbf: float, down: float) -> None:
    """Checkpoint and restart far below the MTBF, memoryless failures: within 2 % of goodput."""
    model = FailureModel(mtbf, checkpoint, float(young_interval(checkpoint, mtbf)), restart_s=down)
    simulated = simulate_goodput(model, failures=20_000).useful
    assert simulated == pytest.approx(first_order_loss(model).useful, rel=0.02)
    assert simulated == pytest.approx(exact_goodput(model).useful, rel=0.01)


def test_simulation_shows_where_young_fails() -> None:
    """An MTBF near the checkpoint time: first order goes wrong, the exact form does not. Bursts break both."""
    hard = FailureModel(600, 120, float(young_interval(120, 600)), restart_s=300)
    exact, first = exact_goodput(hard).useful, first_order_loss(hard).useful
    assert abs(first / exact - 1) > 0.2
    assert simulate_goodput(hard, 50_000).useful == pytest.approx(exact, rel=0.03)
    bursts = replace(hard, mtbf_s=18_000, interval_s=1500, shape=0.5)
    even = replace(bursts, shape=1.0)
    assert simulate_goodput(bursts, 50_000).useful > exact_goodput(even).useful * 1.005
    with pytest.raises(FailureError, match="use simulate_goodput"):
        exact_goodput(bursts)


def test_best_interval_is_daly_and_near_young() -> None:
    for checkpoint, mtbf in ((3.43, 18_000), (30, 10_000), (120, 7200)):
        best = best_interval(FailureModel(mtbf, checkpoint, 1.0))
        assert best == pytest.approx(daly_interval(checkpoint, mtbf), rel=0.01)
        assert best < float(young_interval(checkpoint, mtbf))
    assert daly_interval(100, 40) == 40
    with pytest.raises(FailureError, match="checkpoint_s = 0"):
        best_interval(FailureModel(1000, 0, 10))


@settings(max_examples=40, deadline=None)
@given(mtbf=st.floats(100, 1e7), checkpoint=st.floats(0.05, 500), lag=st.floats(0, 500), down=st.floats(0, 2000))
def test_no_other_interval_keeps_more(mtbf: float, checkpoint: float, lag: float, down: float) -> None:
    def useful(interval: float) -> float:
        model = FailureModel(mtbf, checkpoint, interval, restart_s=down, durable_lag_s=lag)
        return exact_goodput(model).useful

    best = best_interval(FailureModel(mtbf, checkpoint, 1.0, restart_s=down, durable_lag_s=lag))
    searched = minimize_scalar(lambda log: -useful(math.exp(log)), bounds=(math.log(best / 50), math.log(best * 50)))
    assert math.exp(searched.x) == pytest.approx(best, rel=1e-3)
    assert useful(best) >= max(useful(math.exp(searched.x)), useful(best * 1.01), useful(best / 1.01)) * (1 - 1e-12)


@settings(max_examples=30, deadline=None)
@given(mtbf=st.floats(1000, 1e6), checkpoint=st.floats(0.1, 100), interval=st.floats(10, 5000), down=st.floats(0, 2000))
def test_shares_add_to_one(mtbf: float, checkpoint: float, interval: float, down: float) -> None:
    shares = exact_goodput(FailureModel(mtbf, checkpoint, interval, restart_s=down))
    total = shares.useful + shares.checkpoint + shares.lost_work + shares.down
    assert total == pytest.approx(1) and min(shares.useful, shares.checkpoint, shares.lost_work, shares.down) >= -1e-12
    assert shares.uptime >= shares.useful


def test_goodput_falls_with_size_and_rises_with_faster_restart() -> None:
    sizes = [goodput(n, 50_000, 30, 600).useful for n in (1024, 16_384, 131_072)]
    assert sizes == sorted(sizes, reverse=True)
    hot, cold = goodput(16_384, 50_000, 30, 300, spare_s=30), goodput(16_384, 50_000, 30, 300, spare_s=1800)
    assert hot.useful > cold.useful
    assert goodput(16_384, 50_000, 30, 600, interval_s=7200).useful < sizes[1]


def test_llama_3_effective_time_is_within_reach() -> None:
    """Over 90 % effective time at 16,384 accelerators needs restarts of some minutes."""
    assert goodput(16_384, 50_677, 10, 300, detection_s=60).useful > 0.90


def test_spares_cover_the_repair_queue() -> None:
    count = spares_needed(16_384, 50_000, 72, 0.99)
    mean = 16_384 * 72 / 50_000
    assert stats.poisson.cdf(count, mean) >= 0.99 > stats.poisson.cdf(count - 1, mean)
    assert spares_needed(16_384, 50_000, 24) < count
    assert replacements_per_year(100_000, 0.06) == 6000


def test_straggler_against_simulation() -> None:
    sample = np.random.default_rng(1).normal(1.0, 0.01, (4000, 512)).max(axis=1).mean()
    assert straggler_slowdown(512, 0.01) == pytest.approx(float(sample), rel=5e-4)
    assert straggler_slowdown(1, 0.01) == 1


def test_links_out_of_service() -> None:
    assert degraded_network_slowdown(0.0, 8, 4) == 1
    assert degraded_network_slowdown(0.3, 8, 4) == pytest.approx(1.3)
    assert degraded_network_slowdown(0.3, 8, 0, congestion=0.5) == pytest.approx(1.3)
    with pytest.raises(FailureError, match="8 of 8 links failed"):
        degraded_network_slowdown(0.3, 8, 8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: interruption_rate(-1, 10), "events = -1"),
        (lambda: hours_between_interruptions(50_000, 0), "must be positive"),
        (lambda: young_interval(0, 10), "must be positive"),
        (lambda: FailureModel(0, 1, 1), "mtbf_s = 0 must be positive"),
        (lambda: FailureModel(10, -1, 1), "checkpoint_s = -1 must not be negative"),
        (lambda: extra_accelerator_hours(0.5, 0.9), "0 < worse <= better"),
        (lambda: simulate_goodput(FailureModel(10, 1, 1), 5), "at least 100"),
    ],
)
def test_refusals(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(FailureError, match=message):
        call()


def test_daly_interval_is_the_published_series() -> None:
    """sqrt(2 d M) (1 + sqrt(x) / 3 + x / 9) - d with x = d / 2M, at a checkpoint that is not short."""
    x = 100.0 / 1600.0
    assert daly_interval(100.0, 800.0) == pytest.approx(400.0 * (1 + x**0.5 / 3 + x / 9) - 100.0, rel=1e-12)


def test_intervals_below_a_second_are_intervals() -> None:
    assert young_interval(0.08, mtbf_for_interval(0.5, 0.08)) == pytest.approx(0.5)
    for interval_s, checkpoint_s in ((0.0, 1.0), (1.0, 0.0)):
        with pytest.raises(ValueError):
            mtbf_for_interval(interval_s, checkpoint_s)
