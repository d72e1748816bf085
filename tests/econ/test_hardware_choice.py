"""Hardware choice: the course procedure on a table of estimates, the shipped buyers, own chips, and user cases."""

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from econ.case_files import fact_ids
from econ.custom_chip import custom_chip_break_even
from econ.hardware_choice import Estimate, choose_hardware
from econ.hardware_evidence import check_dense_peaks, parallel_scaling
from econ.token_cost import Workload
from econ.tokens import cost_over_price
from econ.workload_card import Candidate, ChoiceError, Site, WorkloadCard, buyer, buyers
from supply.facts import catalog
from supply.paths import data_file

CARD = WorkloadCard(
    "test",
    "interactive",
    "m",
    Workload("w", 1000, 200, ttft_target_s=2.0),
    requests_per_s=10.0,
    needed_by=date(2027, 1, 1),
    site=Site(power_kw=100, rack_kw=40),
)
GOOD = Candidate(
    "good",
    "H100",
    2.0,
    facility_kw_per_accelerator=1.7,
    available_from=date(2026, 12, 1),
    software="yes",
    quality=0.99,
)
FINE = Estimate(True, 2, results_per_s=1.0, low=0.8, high=1.25)


def fine(card: WorkloadCard, candidate: Candidate) -> Estimate:
    del card, candidate
    return FINE


# --- user cases -------------------------------------------------------------------------------------------------------


def test_case_speed_tp_does_not_help() -> None:
    one, two, four = parallel_scaling({1: 68.85, 2: 78.08, 4: 79.90})
    assert four.gpu_seconds_ratio == pytest.approx(4.64198, rel=0.001)
    assert (two.speedup, four.speedup) == (pytest.approx(0.882, abs=5e-4), pytest.approx(0.862, abs=5e-4))
    assert [round(s.gpu_seconds, 1) for s in (one, two, four)] == [68.8, 156.2, 319.6]
    with pytest.raises(ChoiceError, match="positive sizes and times"):
        parallel_scaling({})


def test_case_choice_l40s_fp8_sparse() -> None:
    with pytest.raises(ChoiceError, match=r"ratio of 4\.05.*with sparsity, its dense value is 733"):
        check_dense_peaks(1466, 362.05)
    assert check_dense_peaks(733, 362.05) == pytest.approx(733, rel=0.001)
    for sparse, dense in ((1513.0, 756.5), (835.5 * 2, 835.5)):
        assert check_dense_peaks(2 * dense, dense) == 2 * dense
        with pytest.raises(ChoiceError, match="sparsity"):
            check_dense_peaks(2 * sparse, dense)
    with pytest.raises(ChoiceError, match="check both figures"):
        check_dense_peaks(1000, 900)


def test_case_choice_speedup_vs_price() -> None:
    low, high = cost_over_price(1.5, 2.0), cost_over_price(1.2, 2.0)
    assert low == pytest.approx(1.33333, rel=0.001)
    assert high == pytest.approx(1.66667, rel=0.001)
    assert cost_over_price(1.2, 1.19) < 1 < cost_over_price(1.2, 1.21)
    assert cost_over_price(3.2, 2.0) < 1 < low  # by peak FLOP/s the choice would flip


# --- the procedure ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("card", "change", "estimate", "reason", "words"),
    [
        ({}, {}, Estimate(False, 0, memory_note="short by 12 GB"), "fit", "short by 12 GB"),
        ({}, {}, replace(FINE, crosses_link=True, link_note="16 over a domain of 8"), "link", "domain of 8"),
        ({}, {"software": "unknown"}, FINE, "software", "was never run"),
        ({}, {"software": "no", "software_note": "no kernel"}, FINE, "software", "does not run.*no kernel"),
        ({}, {}, Estimate(True, 1, miss="TTFT 3 s against 2 s"), "target", "3 s against 2 s"),
        ({}, {"most_accelerators": 8}, FINE, "target", "needs 10 accelerators, 8 can be had"),
        ({"quality_target": 0.9}, {"quality": None}, FINE, "quality", "is unknown"),
        ({"quality_target": 0.995}, {}, FINE, "quality", "0.99 .*measured, 0.995 asked"),
        ({"least_healthy": 0.99}, {"healthy": 0.9}, FINE, "reliability", "90.0% of hours, 99.0% asked"),
        ({}, {"rack_kw": 126.0}, FINE, "power", "draws 126 kW, the site feeds 40 kW"),
        ({}, {"facility_kw_per_accelerator": 20.0}, FINE, "power", "200 kW needed, the site has 100 kW"),
        ({}, {"facility_kw_per_accelerator": None}, FINE, "power", "is unknown"),
        ({}, {"needs_liquid_cooling": True}, FINE, "cooling", "needs liquid cooling"),
        ({}, {"available_from": date(2027, 6, 1)}, FINE, "delivery", "delivered on 2027-06-01, needed by 2027-01-01"),
        ({}, {"available_from": None}, FINE, "delivery", "date unknown"),
        ({"budget_usd_per_month": 100.0}, {}, FINE, "budget", "USD a month, 100 allowed"),
    ],
)
def test_each_condition_rejects_with_its_reason(
    card: dict[str, object], change: dict[str, object], estimate: Estimate, reason: str, words: str
) -> None:
    decision = choose_hardware(replace(CARD, **card), [replace(GOOD, **change)], lambda c, x: estimate)
    (reject,) = decision.rejects
    assert reject.first == reason
    with pytest.raises(ChoiceError, match=words):
        _ = decision.best


def test_all_failing_conditions_are_listed_in_the_course_order() -> None:
    bad = replace(GOOD, software="no", needs_liquid_cooling=True, available_from=date(2028, 1, 1), rack_kw=99.0)
    decision = choose_hardware(CARD, [bad], lambda c, x: Estimate(False, 0))
    assert [name for name, _ in decision.rejects[0].reasons] == ["fit", "software", "power", "cooling", "delivery"]


def test_a_low_price_does_not_save_a_failing_system() -> None:
    cheap = replace(GOOD, name="cheap", usd_per_gpu_hour=0.01, software="unknown")
    decision = choose_hardware(CARD, [cheap, GOOD], fine)
    assert decision.best.candidate is GOOD
    assert [r.candidate.name for r in decision.rejects] == ["cheap"]


def test_survivors_are_ranked_with_bands() -> None:
    near = replace(GOOD, name="near", usd_per_gpu_hour=2.2)
    far = replace(GOOD, name="far", usd_per_gpu_hour=9.0, usd_low=8.0, usd_high=12.0)
    decision = choose_hardware(CARD, [far, near, GOOD], fine)
    assert [s.candidate.name for s in decision.survivors] == ["good", "near", "far"]
    assert [s.separable for s in decision.survivors] == [True, False, True]
    first, _, last = decision.survivors
    assert first.accelerators == 10 and first.usd_per_month == pytest.approx(10 * 2.0 * 730)
    assert first.usd_per_result == pytest.approx(10 * 2.0 / 3600 / 10 / 200 * 1e6)
    assert (first.low, first.high) == (
        pytest.approx(first.usd_per_result / 1.25),
        pytest.approx(first.usd_per_result / 0.8),
    )
    assert last.high == pytest.approx(last.usd_per_result / 0.8 * 12 / 9)


def test_supply_run_replaces_the_delivery_date() -> None:
    late = choose_hardware(CARD, [GOOD], fine, delivery={"H100": date(2027, 5, 1)})
    assert late.rejects[0].first == "delivery"
    early = choose_hardware(CARD, [replace(GOOD, available_from=None)], fine, delivery={"good": date(2026, 11, 30)})
    assert early.best.candidate.name == "good"


def test_whole_groups_and_idle_capacity_are_paid() -> None:
    base = choose_hardware(CARD, [GOOD], fine).best
    small = replace(CARD, requests_per_s=0.3)
    lone = choose_hardware(small, [GOOD], fine).best
    assert lone.accelerators == 2
    assert lone.usd_per_result > base.usd_per_result
    assert CARD.workload is not None
    spiky = replace(CARD, workload=replace(CARD.workload, peak_over_mean=2.0))
    assert choose_hardware(spiky, [GOOD], fine).best.usd_per_result == pytest.approx(2 * base.usd_per_result)
    faulty = choose_hardware(CARD, [replace(GOOD, healthy=0.5)], fine).best
    assert faulty.accelerators == 20


def test_batch_needs_enough_machines_for_the_deadline() -> None:
    card = replace(CARD, job="batch", requests=36_000.0, deadline_hours=2.0)
    best = choose_hardware(card, [GOOD], fine).best
    assert best.accelerators == 6  # 5 a second, in groups of two
    assert best.usd_per_result == pytest.approx(2.0 / 3600 / 200 * 1e6)  # paid by use, not by the night


def test_bad_questions_are_refused() -> None:
    with pytest.raises(ChoiceError, match="each name once"):
        choose_hardware(CARD, [GOOD, GOOD], fine)
    with pytest.raises(ChoiceError, match="a price is positive"):
        replace(GOOD, usd_per_gpu_hour=0.0)
    with pytest.raises(ChoiceError, match="yes, no or unknown"):
        replace(GOOD, software="maybe")  # type: ignore[arg-type]
    with pytest.raises(ChoiceError, match="write down the request lengths"):
        replace(CARD, workload=None)
    with pytest.raises(ChoiceError, match="needs its request load"):
        replace(CARD, requests_per_s=0.0)
    with pytest.raises(ChoiceError, match="deadline_hours"):
        replace(CARD, job="batch")
    with pytest.raises(ChoiceError, match="needs its options"):
        replace(CARD, job="training")
    with pytest.raises(ChoiceError, match="shipped ones are"):
        buyer("nosuch")


# --- the shipped buyers -----------------------------------------------------------------------------------------------


def test_three_buyers_read_and_trace_to_facts() -> None:
    assert buyers() == ["chat_service", "overnight_documents", "research_lab"]
    assert [buyer(n).card.job for n in buyers()] == ["interactive", "batch", "training"]
    for name in buyers():
        ids = fact_ids(data_file("cases", "buyers", f"{name}.yaml"))
        assert len(ids) > 10 and all(i in catalog() for i in ids)


def test_buyers_reach_different_rejects_by_their_own_conditions() -> None:
    chat = choose_hardware(buyer("chat_service").card, buyer("chat_service").candidates, fine)
    first = {r.candidate.name: r.first for r in chat.rejects}
    assert first["MI355X"] == "software"
    reasons = {r.candidate.name: [n for n, _ in r.reasons] for r in chat.rejects}
    assert {"power", "cooling", "delivery"} <= set(reasons["GB200 NVL72"])
    night = choose_hardware(buyer("overnight_documents").card, buyer("overnight_documents").candidates, fine)
    assert {"cooling", "delivery"} <= {n for r in night.rejects if r.candidate.name == "Rubin" for n, _ in r.reasons}


# --- own chips --------------------------------------------------------------------------------------------------------

CHIP = {"unit_usd": 8000.0, "merchant_usd_per_hour": 2.0, "running_usd_per_hour": 0.3, "relative_throughput": 0.7}


@settings(max_examples=60, deadline=None)
@given(st.floats(1e3, 1e6), st.floats(1e6, 5e9), st.floats(0.1, 1.0))
def test_cost_meets_the_merchant_at_the_break_even_volume(volume: float, nre: float, share: float) -> None:
    chip = custom_chip_break_even(volume, nre, share, **CHIP)
    if chip.break_even_volume is not None:
        at = custom_chip_break_even(chip.break_even_volume, nre, share, **CHIP)
        assert at.usd_per_hour == pytest.approx(2.0, rel=1e-9)
        assert chip.pays == (volume > chip.break_even_volume)
    if chip.break_even_share_sold is not None and chip.break_even_share_sold > 1e-6:
        at = custom_chip_break_even(volume, nre, chip.break_even_share_sold, **CHIP)
        assert at.usd_per_hour == pytest.approx(2.0, rel=1e-9)
    more = custom_chip_break_even(volume * 2, nre, share, **CHIP)
    dearer = custom_chip_break_even(volume, nre * 2, share, **CHIP)
    assert more.usd_per_hour <= chip.usd_per_hour <= dearer.usd_per_hour
    assert (chip.saving_usd_per_year > 0) == chip.pays


def test_own_chip_that_never_pays() -> None:
    never = custom_chip_break_even(1e6, 0.0, 0.05, **CHIP)
    assert never.break_even_volume is None and not never.pays
    with pytest.raises(ChoiceError, match="share_sold is at most 1"):
        custom_chip_break_even(1e6, 0.0, 1.5, **CHIP)
    with pytest.raises(ChoiceError, match="volume = 0"):
        custom_chip_break_even(0, 0.0, 0.5, **CHIP)
