"""HBM stacks against simulation and hand values, known-good-stack cost, trade ratio, energy; yield learning."""

from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supply.facts import catalog
from supply.manufacturing import (
    LearningCurve,
    ManufacturingError,
    access_power_w,
    fit_learning,
    implied_bond_yield,
    learned,
    memory_stack,
    stack_cost_usd,
    stacks_per_wafer,
    trade_ratio,
)

SHARES = st.floats(0.3, 1.0)


def test_contract_by_hand():
    ours = memory_stack(12, 0.85, 0.98, 0.995, 0.99)
    passed = 1 - 0.15 * 0.98
    quality = 0.85 / passed
    good = quality**12 * 0.995**12 * 0.99
    assert ours.incoming_quality == pytest.approx(quality)
    assert ours.stack_yield == pytest.approx(good)
    assert ours.dies_started_per_good_stack == pytest.approx(12 / (passed * good))


def test_simulated_stacking_agrees():
    """Probe dies, stack twelve that passed, bond each, test the stack with coverage: count everything."""
    rng = np.random.default_rng(3)
    stacks, die, probe, bond, base, cover = 60_000, 0.85, 0.95, 0.993, 0.98, 0.9
    started = 0
    good_layers = np.ones(stacks, dtype=bool)
    for _ in range(12):
        tries = rng.geometric(1 - (1 - die) * probe, stacks)
        started += int(tries.sum())
        good_layers &= rng.random(stacks) < die / (1 - (1 - die) * probe)
        good_layers &= rng.random(stacks) < bond
    good = good_layers & (rng.random(stacks) < base)
    passed = good | (rng.random(stacks) > cover)
    ours = memory_stack(12, die, probe, bond, base, stack_test_coverage=cover)
    assert good.mean() == pytest.approx(ours.stack_yield, abs=0.008)
    assert started / good.sum() == pytest.approx(ours.dies_started_per_good_stack, rel=0.015)
    assert passed.mean() == pytest.approx(ours.stack_pass_rate, abs=0.008)
    assert 1 - good.sum() / passed.sum() == pytest.approx(ours.stack_escape_share, abs=0.008)
    assert started / passed.sum() == pytest.approx(ours.dies_started_per_shipped_stack, rel=0.015)


def test_trap_die_loss_is_counted_once():
    """Perfect probe and bonds: a stack of n dies costs n / Y dies, not n / Y^(n+1)."""
    ours = memory_stack(8, 0.8, 1.0, 1.0, 1.0)
    assert ours.stack_yield == 1.0
    assert ours.dies_started_per_good_stack == pytest.approx(8 / 0.8)


@settings(max_examples=60, deadline=None)
@given(die=SHARES, probe=st.floats(0, 1), bond=SHARES, base=SHARES, repair=st.floats(0, 1))
def test_a_taller_stack_never_out_yields_a_lower_one(die, probe, bond, base, repair):
    yields = memory_stack(np.array([8, 12, 16]), die, probe, bond, base, repair).stack_yield
    assert np.all((yields > 0) & (yields <= 1))
    assert yields[0] >= yields[1] >= yields[2]
    assert memory_stack(12, die, probe, bond, base, min(1.0, repair + 0.1)).stack_yield >= yields[1] - 1e-12


def test_known_good_stack_cost_sums_and_falls_with_yield():
    better, worse = (memory_stack(12, 0.88, 0.98, b, 0.99) for b in (0.995, 0.98))
    costs = [stack_cost_usd(6000, 506, s, 12, 20, 3, 0.5, 8) for s in (better, worse)]
    for cost in costs:
        parts = sum(v for k, v in cost.items() if k != "total")
        assert parts == pytest.approx(cost["total"])
    assert costs[0]["total"] < costs[1]["total"]
    assert costs[0]["lost_stacks"] < costs[1]["lost_stacks"]


@settings(max_examples=40, deadline=None)
@given(quoted=st.floats(0.3, 0.82), height=st.sampled_from([8, 12, 16]))
def test_implied_bond_reproduces_a_quoted_yield_and_carries_it_to_other_heights(quoted, height):
    process = (0.9, 0.98)
    bond = implied_bond_yield(quoted, height, *process, 0.99)
    assert height / memory_stack(height, *process, bond, 0.99).dies_started_per_good_stack == pytest.approx(quoted)
    taller = (height + 4) / memory_stack(height + 4, *process, bond, 0.99).dies_started_per_good_stack
    assert quoted ** ((height + 4) / height) < taller < quoted  # the loss of the dies themselves does not grow


def test_a_quote_above_the_dies_is_refused():
    with pytest.raises(ManufacturingError, match="raise the die yield, or read the quote"):
        implied_bond_yield(0.95, 8, 0.8, 0.98, 0.99)


def test_stacks_per_wafer_and_line_yield():
    ours = memory_stack(12, 0.88, 0.98, 0.993, 0.99)
    assert stacks_per_wafer(506, ours.dies_started_per_good_stack, 0.97) == pytest.approx(
        0.97 * 506 / ours.dies_started_per_good_stack
    )


def test_trade_ratio_from_facts_is_near_the_quoted_three_only_with_base_and_test():
    facts = catalog()
    size = facts["hbm_vs_ddr5_die_size_ratio_2024"].number
    gap = facts["hbm_vs_ddr5_yield_gap_2024"].number
    plain = trade_ratio(size, 0.9, 0.9 - gap, 1.0)
    assert plain == pytest.approx(1.4 * 0.9 / 0.65)
    low, high = facts["hbm_vs_ddr5_wafer_use_ratio_2024"].range
    assert plain < low  # area and yield alone do not reach the quoted ratio
    assert low <= trade_ratio(size, 0.9, 0.9 - gap, 0.8, base_wafer_share=1 / 12) <= high


def test_energy_of_memory_traffic():
    facts = catalog()
    joules = access_power_w(facts["hbm3e_energy_per_bit_2025_10"].number, 1000.0)
    assert joules == pytest.approx(31.2)
    assert access_power_w(4.0, 40.0) == pytest.approx(1.28)  # 40 GB swept in a second at 4 pJ/bit (worked example B-14)


def test_learning_halves_the_distance():
    assert learned(0.2, 0.1, 6, [0, 6, 12, -3]).tolist() == pytest.approx([0.2, 0.15, 0.125, 0.2])


@settings(max_examples=20, deadline=None)
@given(start=st.floats(0.15, 0.4), drop=st.floats(0.3, 0.8), half=st.floats(4, 30))
def test_fit_recovers_the_curve(start, drop, half):
    target = start * (1 - drop)
    days = [date(2023 + q // 4, 1 + 3 * (q % 4), 1) for q in range(12)]
    truth = LearningCurve(days[0], start, target, half)
    fitted = fit_learning(days, [truth.at(d) for d in days])
    assert fitted.half_life_months == pytest.approx(half, rel=0.01)
    assert fitted.target == pytest.approx(target, rel=0.02)
    fixed = fit_learning(days[:2], [truth.at(d) for d in days[:2]], target=target)
    assert fixed.half_life_months == pytest.approx(half, rel=0.01)


def test_fit_refuses_what_shows_no_half_life():
    days = [date(2024, 1, 1), date(2024, 7, 1), date(2025, 1, 1)]
    with pytest.raises(ManufacturingError, match="show no half-life"):
        fit_learning(days, [0.1, 0.2, 0.5])
    with pytest.raises(ManufacturingError, match="at least 3 points"):
        fit_learning(days[:2], [0.2, 0.1])
    with pytest.raises(ManufacturingError, match=r"bond_yield = 0 must be a fraction above 0"):
        memory_stack(12, 0.9, 0.9, 0.0, 1.0)


def test_probing_adds_to_each_accepted_die():
    stack = memory_stack(8, 0.9, 1.0, 0.99, 1.0)
    parts = stack_cost_usd(5000, 500, stack, 8, 15, 2, probe_usd_per_die=0.5, stack_test_usd=6, line_yield=0.8)
    assert parts["dram"] == pytest.approx(8 * (5000 / (500 * 0.8) + 0.5) / 0.9)
    built = parts["dram"] + 15 + 8 * 2 + 6
    assert parts["total"] == pytest.approx(built / 0.99**8)
    assert parts["lost_stacks"] == pytest.approx(built / 0.99**8 - built)
