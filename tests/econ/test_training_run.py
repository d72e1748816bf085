"""Training-run cost: worked examples, user cases, published targets, traps, largest run, post-training."""

from __future__ import annotations

import csv
from dataclasses import replace
from datetime import date

import pytest

from econ.failures import FailureError
from econ.largest_run import Site, growth_per_year, largest_global_batch, largest_run, multi_site_share
from econ.performance.hardware import hardware
from econ.performance.training_model import training_model
from econ.post_training import RolloutPlan, fine_tune, rollout_cost
from econ.training_run import (
    RunPlan,
    TrainingRunError,
    accelerator_hours,
    accelerator_years,
    amortised_usd_per_chip_hour,
    classify_training_rate,
    cluster_purchase_usd,
    days_at_rate,
    detailed_operations,
    elapsed_days,
    energy_mwh,
    implied_mfu,
    rent_of_days,
    rental_usd,
    run_cost,
    training_days,
    training_operations,
    training_over_inference,
)
from supply.paths import data_file

A100, H100 = hardware("A100-80"), hardware("H100")
PLAN = RunPlan(
    operations_6nd=6.3e24, operations_detailed=6.5e24, accelerators=4096, compute_days=45, goodput=0.9,
    step_band=(0.92, 1.08), usd_per_accelerator_hour=2.0, usd_per_accelerator=40_000, peak_server_kw=1.275,
    usd_per_kwh=0.08, pue=1.2,
)  # fmt: skip


def test_worked_examples_2_3() -> None:
    operations = training_operations(70e9, 15e12)
    assert operations == pytest.approx(6.3e24, rel=1e-9)
    assert training_days(operations, 4096, 1e15, 0.40) == pytest.approx(44.505, rel=1e-3)
    assert rental_usd(accelerator_hours(operations, 1e15, 0.40), 2.0) == pytest.approx(8.75e6, rel=1e-9)


def test_worked_example_11_4() -> None:
    assert rent_of_days(1000, 30, 2.50) == pytest.approx(1.8e6, rel=1e-9)


def test_worked_example_b_9() -> None:
    assert training_over_inference(2, 4) == pytest.approx(3, rel=1e-9)


def test_case_train_1e26_gpu_hours() -> None:
    hours = accelerator_hours(1e26, 1e15)
    assert hours == pytest.approx(2.77778e7, rel=1e-3)
    assert accelerator_hours(1e26, 1e15, 0.30) == pytest.approx(92.6e6, rel=1e-3)
    assert accelerator_years(hours) == pytest.approx(3169, rel=1e-3)


def test_case_train_70b_1024_days() -> None:
    middle = (1.124e6 + 1.184e6) / 2
    assert days_at_rate(15e12, middle) == pytest.approx(150.443, rel=0.02)
    assert days_at_rate(15e12, (1.487e6 + 1.657e6) / 2) == pytest.approx(110.4, rel=0.02)
    assert implied_mfu(middle, 70e9, 1024, H100.peak("bf16")) == pytest.approx(0.479, rel=0.01)
    assert days_at_rate(15e12, middle) * 24 * 1024 == pytest.approx(3.70e6, rel=0.01)
    assert days_at_rate(15e12, middle, goodput=0.9) > days_at_rate(15e12, middle)


def test_case_train_8_hours_impossible() -> None:
    rate = 100 * 4096 / 37.8
    assert days_at_rate(8e9, rate) * 24 == pytest.approx(205.078, rel=0.01)
    verdict, share = classify_training_rate(8e9 / (8 * 3600), 1.5e9, 1, 154.8e12)
    assert verdict == "impossible" and share == pytest.approx(16.1, rel=0.01)
    assert classify_training_rate(rate, 1.5e9, 1, 154.8e12)[0] == "consistent"


def test_trap_gpt3_hours() -> None:
    """A published tool prints 3,500 A100-hours for GPT-3; at 30 to 50 % MFU it is 0.56 to 0.93 million."""
    operations = training_operations(175e9, 300e9)
    low, high = (accelerator_hours(operations, A100.peak("bf16"), mfu) for mfu in (0.5, 0.3))
    assert (low, high) == (pytest.approx(0.56e6, rel=0.01), pytest.approx(0.935e6, rel=0.01))
    assert low / 3500 > 150
    engine = detailed_operations(training_model("GPT-3-175B"), 300e9, 2048, "full")
    assert low * 0.95 < accelerator_hours(engine, A100.peak("bf16"), 0.45) < high


def test_gpt3_from_the_engine_is_inside_the_published_range() -> None:
    from econ.performance.training import step_time
    from econ.performance.training_setup import TrainingSetup

    setup = TrainingSetup(  # the stack of its time: unfused attention, everything recomputed, no overlap
        1024, 2048, 1536, 1, tp=8, pp=8, number_format="fp16", recompute="full", fused_attention=False,
        tensor_overlap=False, balanced_stages=False,
    )  # fmt: skip
    model = training_model("GPT-3-175B")
    hours = step_time(model, A100, setup).total_s * 300e9 / setup.tokens_per_step * 1024 / 3600
    assert 0.56e6 <= hours <= 0.93e6


def test_p12_cost_growth() -> None:
    """Frontier runs cost 2.4 times more a year (90 % 2.0 to 2.9), from the rows of the same authors."""
    with data_file("checks", "training_costs.csv").open(encoding="utf-8", newline="") as handle:
        table = list(csv.DictReader(handle))
    growth = growth_per_year(
        [date.fromisoformat(r["published"]) for r in table], [float(r["cost_usd_2023"]) for r in table]
    )
    assert growth.points == 43 and 2.0 <= growth.per_year <= 2.9
    assert growth.low <= 2.4 <= growth.high
    with pytest.raises(FailureError, match="at least three"):
        growth_per_year([date(2020, 1, 1)], [1.0])


def test_views_and_development_cost() -> None:
    cost = run_cost(PLAN)
    assert cost.rental_usd == pytest.approx(cost.accelerator_hours * 2.0)
    assert cost.purchase_usd > cost.amortised_usd > 0 and set(cost.views) == {"rental", "amortised", "purchase"}
    assert cost.elapsed_low < cost.elapsed_days < cost.elapsed_high
    assert cost.accelerator_hours == pytest.approx(cost.elapsed_days * 24 * 4096)
    assert cost.development_usd > cost.rental_usd + cost.experiments_usd
    assert cost.staff_usd / cost.development_usd == pytest.approx(0.39)
    assert run_cost(replace(PLAN, goodput=0.45)).rental_usd == pytest.approx(2 * cost.rental_usd)
    assert run_cost(replace(PLAN, failed_runs_share=0.2)).rental_usd == pytest.approx(cost.rental_usd / 0.8)


def test_deepseek_v3_rent() -> None:
    assert rental_usd(2_788_000, 2.0) == 5_576_000


def test_epoch_amortised_method() -> None:
    """The fall of value integrates to the price: hours of a whole life cost what the accelerator cost."""
    hourly = [amortised_usd_per_chip_hour(10_000, t / 100, 0.14, 0.0) for t in range(4000)]
    assert sum(hourly) * 8766 / 100 == pytest.approx(10_000, rel=0.01)
    assert cluster_purchase_usd(4096, 24_875, 0.19) == pytest.approx(4096 * 24_875 / 0.81)


def test_energy_has_pue_once() -> None:
    assert energy_mwh(1000, 1.0, 0.5, 1.2) == pytest.approx(0.6)
    with pytest.raises(TrainingRunError, match=r"pue = 0\.9"):
        energy_mwh(1000, 1.0, 0.5, 0.9)


@pytest.mark.parametrize(
    "call",
    [
        lambda: training_operations(-1, 1),
        lambda: accelerator_hours(1e20, 1e15, 1.5),
        lambda: days_at_rate(1e12, 0),
        lambda: elapsed_days(10, 0),
        lambda: run_cost(replace(PLAN, staff_share=1.0)),
        lambda: rental_usd(-1, 2.0),
    ],
)
def test_bad_input_is_refused(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TrainingRunError):
        call()


def test_largest_run_is_limited_by_power_or_chips() -> None:
    peaks, watts = {"H100": 989.4e12, "B200": 2250e12}, {"H100": 1.4, "B200": 2.0}
    sites = [Site("powered", {"H100": 10_000}, 100.0), Site("dark", {"B200": 10_000}, 5.0)]
    run = largest_run(sites, peaks, watts, {"H100": 0.4, "B200": 0.4}, 100, 50_000, 30, 600)
    assert run.limited_by == {"powered": "accelerators", "dark": "power"}
    assert run.accelerators == pytest.approx(10_000 + 2_500)
    one = largest_run(sites[:1], peaks, watts, 0.4, 100, 50_000, 30, 600)
    assert one.operations < run.operations
    more = largest_run([replace(sites[1], power_mw=10.0), sites[0]], peaks, watts, 0.4, 100, 50_000, 30, 600)
    assert more.operations > run.operations
    with pytest.raises(FailureError, match="no planning kW for B200"):
        largest_run(sites, peaks, {"H100": 1.4}, 0.4, 100, 50_000, 30, 600)
    with pytest.raises(FailureError, match="no run is possible"):
        largest_run([Site("none", {"H100": 10}, 0.0)], peaks, watts, 0.4, 100, 50_000, 30, 600)


def test_sites_and_batch_limits() -> None:
    assert multi_site_share(405e9, 10.0, 1e10) < multi_site_share(405e9, 10.0, 1e12) <= 1
    assert multi_site_share(405e9, 10.0, 1e10, local_steps=100) > multi_site_share(405e9, 10.0, 1e10)
    assert multi_site_share(405e9, 10.0, 1e10, sites=1) == 1
    assert largest_global_batch(15e12, 8192, 100_000) == pytest.approx(18_310.5, rel=1e-4)


def test_fine_tuning_and_rollouts() -> None:
    full, adapters = fine_tune(70e9, 1e9), fine_tune(70e9, 1e9, 0.002)
    assert full.state_bytes == pytest.approx(1.12e12) and adapters.state_bytes < full.state_bytes / 7
    assert adapters.operations / full.operations == pytest.approx(2 / 3, rel=0.01)
    plan = RolloutPlan(1000, 8, 500, 2000, 1500.0, 6000.0)
    cost = rollout_cost(plan, 3.0)
    assert cost.usd == pytest.approx(3.0 * (cost.generation_hours + cost.update_hours))
    waiting = rollout_cost(replace(plan, environment_s_per_rollout=60, concurrent_rollouts_per_accelerator=32), 3.0)
    assert waiting.usd > cost.usd and waiting.generation_share > cost.generation_share
    with pytest.raises(TrainingRunError, match="kept_share = 0"):
        rollout_cost(replace(plan, kept_share=0), 3.0)


def test_plan_of_a_frontier_run() -> None:
    """Llama 3.1 405B: 54-day snapshot of a run of 30.84 million published GPU-hours, over 90 % effective time."""
    from econ.training_plan import Prices, plan_training

    prices = Prices(2.0, 40_000, 10.2 / 8, 0.08, 1.2)
    plan = plan_training("Llama-3.1-405B", "H100", 16_384, 15.6e12, 8192, 2048, prices)
    assert plan.cost.accelerator_hours == pytest.approx(30.84e6, rel=0.25)
    assert plan.operations_detailed > plan.operations_6nd == pytest.approx(3.8e25, rel=0.02)
    assert 0.80 < plan.goodput.useful < 0.97
    assert plan.cost.elapsed_low < plan.cost.elapsed_days < plan.cost.elapsed_high
    double = plan_training("Llama-3.1-405B", "H100", 16_384, 31.2e12, 8192, 2048, prices)
    assert double.cost.rental_usd == pytest.approx(2 * plan.cost.rental_usd)
