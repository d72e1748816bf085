"""Assembly order, interposers, test, and the cost waterfall: targets P03 and P04, traps, oracles, properties."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supply.facts import catalog
from supply.manufacturing import (
    DiePart,
    Insertion,
    ManufacturingError,
    MemoryPart,
    ProcessStep,
    Unit,
    burn_in,
    compare_insertions,
    die_yield,
    good_unit_cost,
    gross_dies,
    hybrid_bond_yield,
    interposer_area_mm2,
    interposer_yield,
    package,
    packages_per_wafer,
    stitches,
    tested,
    tester_cost_usd,
    wafer_cost_usd,
)
from supply.manufacturing.cost import PARTS
from supply.manufacturing.packages import INTERPOSERS

GOOD = st.floats(0.5, 1.0)


@settings(max_examples=50, deadline=None)
@given(good=st.floats(0.01, 1), cover=st.floats(0, 1))
def test_p03_pass_rate_and_escapes(good, cover):
    ours = tested(good, cover)
    assert ours.pass_rate == pytest.approx(1 - (1 - good) * cover)
    assert 1 - ours.escape_share == pytest.approx(min(1.0, good / ours.pass_rate))
    # Dies are conserved: good ones shipped plus bad ones shipped plus rejects are all.
    bad_shipped = ours.pass_rate * ours.escape_share
    assert good + bad_shipped == pytest.approx(ours.pass_rate)


def test_p04_multipliers_of_both_orders():
    y1, bond, y3 = 0.97, 0.99, 0.95
    y2 = bond**3
    last = package(3, 800, "chip_last", bond, interposer_yield=y1, final_yield=y3)
    assert last.interposer_multiplier == pytest.approx(1 / (y1 * y2 * y3))
    assert last.die_multiplier == pytest.approx(1 / (y2 * y3))
    assert last.substrate_multiplier == pytest.approx(1 / y3)
    first = package(3, 800, "chip_first", bond, interposer_yield=y1, final_yield=y3)
    assert first.interposer_multiplier == first.die_multiplier == pytest.approx(1 / (y1 * y3))
    assert first.substrate_multiplier == pytest.approx(1 / y3)


def test_p04_cost_of_both_orders_by_hand():
    die, y1, bond, y3 = DiePart("d", 2, 10_000, 100, 0.8), 0.96, 0.98, 0.97
    common = {"interposer_usd": 300.0, "interposer_yield": y1, "substrate_usd": 80.0, "final_yield": y3}
    last = good_unit_cost(Unit([die], die_bond_yield=bond, **common))
    chips, y2 = 2 * 100 / 0.8, bond**2
    assert last.total == pytest.approx(300 / (y1 * y2 * y3) + chips / (y2 * y3) + 80 / y3)
    first = good_unit_cost(Unit([die], order="chip_first", die_bond_yield=bond, **common))
    assert first.total == pytest.approx((300 + chips) / (y1 * y3) + 80 / y3)


def test_simulated_assembly_agrees_with_the_cost():
    """Build packages one by one from sorted dies and stacks that escape; spend over good packages is the unit cost."""
    rng = np.random.default_rng(8)
    n, die_y, cover, escape, bond, final = 200_000, 0.8, 0.9, 0.01, 0.99, 0.96
    passed = 1 - (1 - die_y) * cover
    tries = rng.geometric(passed, (n, 2))
    good = (rng.random((n, 2)) < die_y / passed).all(axis=1)
    good &= (rng.random((n, 4)) > escape).all(axis=1)
    good &= (rng.random((n, 6)) < bond).all(axis=1) & (rng.random(n) < final)
    spend = tries.sum() * (100 + 5) + n * (4 * 250 + 400 + 6 * 3 + 60 + 50 + 30)
    unit = Unit(
        [DiePart("gpu", 2, 10_000, 100, die_y, probe_coverage=cover, probe_usd=5)],
        [MemoryPart("hbm", 4, 250, 1 - escape)],
        interposer_usd=400,
        substrate_usd=60,
        die_bond_yield=bond,
        memory_bond_yield=bond,
        final_yield=final,
        bond_usd_per_die=3,
        assembly_usd=50,
        final_test_usd=30,
    )
    # Interposer, stacks and bonds are spent on every start; substrate, assembly and test only after bonding survived.
    after_bond = bond**6
    spend -= n * (60 + 50 + 30) * (1 - after_bond)
    assert spend / good.sum() == pytest.approx(good_unit_cost(unit).total, rel=0.005)


def _unit(**changes):
    base = {
        "dies": [DiePart("gpu", 2, 16_000, 66, 0.75, 0.98, 0.97, 8)],
        "memory": [MemoryPart("hbm", 8, 300, 0.998)],
        "interposer_usd": 700.0,
        "interposer_yield": 0.98,
        "substrate_usd": 100.0,
        "die_bond_yield": 0.995,
        "memory_bond_yield": 0.996,
        "final_yield": 0.97,
        "bond_usd_per_die": 4.0,
        "assembly_usd": 60.0,
        "final_test_usd": 80.0,
        "nre_usd": 5e8,
        "volume": 1e6,
    }
    return Unit(**{**base, **changes})


def test_waterfall_is_ordered_and_sums_to_the_total():
    cost = good_unit_cost(_unit())
    assert tuple(cost) == PARTS
    assert sum(cost.values()) == pytest.approx(cost.total)
    assert all(v >= 0 for v in cost.values())
    assert cost["nre"] == 500.0


@settings(max_examples=40, deadline=None)
@given(low=GOOD, gain=st.floats(0.001, 0.3))
def test_cost_falls_in_every_yield(low, gain):
    high = min(1.0, low + gain)
    for name in ("die_bond_yield", "memory_bond_yield", "final_yield", "interposer_yield", "warpage_yield"):
        assert good_unit_cost(_unit(**{name: high})).total < good_unit_cost(_unit(**{name: low})).total + 1e-9
    worse, better = (good_unit_cost(_unit(dies=[DiePart("g", 2, 16_000, 66, y)])).total for y in (low, high))
    assert better <= worse


def test_trap_assembly_cost_is_linear_in_die_count():
    """One charge per die attached, not per kind of die."""
    costs = [good_unit_cost(Unit([DiePart("c", n, 10_000, 500, 1.0)], bond_usd_per_die=2.0)) for n in (1, 2, 4, 8)]
    assert [c["assembly"] for c in costs] == [2.0, 4.0, 8.0, 16.0]
    assert np.diff([c.total for c in costs]) == pytest.approx([22.0, 44.0, 88.0])
    mixed = Unit([DiePart("a", 3, 10_000, 500, 1.0), DiePart("b", 5, 10_000, 500, 1.0)], bond_usd_per_die=2.0)
    assert good_unit_cost(mixed)["assembly"] == 16.0


def test_trap_interposer_over_the_reticle_loses_yield():
    assert stitches(858.0) == 0
    assert stitches([859.0, 1717.0, 2700.0]).tolist() == [1.0, 2.0, 3.0]
    for kind in ("silicon", "rdl", "bridge"):
        seamless = interposer_yield(2500, kind, stitch_yield=1.0)
        assert interposer_yield(2500, kind) < seamless
        assert interposer_yield(800, kind) == interposer_yield(800, kind, stitch_yield=1.0)
    derived = package(2, 2500)
    assert derived.interposer_yield == interposer_yield(2500)
    assert derived.interposer_yield < package(2, 850).interposer_yield


def test_interposer_limits_and_manual_yield():
    with pytest.raises(ManufacturingError, match=r"limit of 3.3 reticles \(2831.4 mm2\)"):
        interposer_yield(3000, "silicon")
    assert interposer_yield(4700, "bridge") > 0.97
    assert interposer_yield(2500, manual_yield=0.9) == 0.9
    assert package(2, 5000, interposer_yield=0.9).interposer_yield == 0.9
    with pytest.raises(ManufacturingError, match="choose one of silicon, rdl, bridge"):
        interposer_yield(100, "glass")


def test_interposer_kinds_hold_the_values_of_their_facts():
    facts = catalog()
    for name, kind in INTERPOSERS.items():
        assert kind.defects_per_cm2 == facts[f"asm_interposer_{name}_d0"].number
        assert kind.stitch_yield == facts[f"asm_interposer_{name}_stitch_yield"].number
        assert kind.max_reticles == facts[kind.limit_fact].number
    reported = facts["tsmc_cowos_5_5x_reticle_yield_2026_05"].number
    assert interposer_yield(5.5 * 858, "bridge") == pytest.approx(reported, abs=0.01)
    assert interposer_yield(3.3 * 858, "silicon") == pytest.approx(reported, abs=0.01)


def test_packages_per_wafer_by_placement_and_back():
    assert packages_per_wafer([2831.0, 4700.0]).tolist() == [16.0, 9.0]
    for count in (9, 16, 29, 50):
        area = interposer_area_mm2(count)
        assert packages_per_wafer(area) >= count
        assert packages_per_wafer(area * 1.04) < count


def test_hybrid_bond_loses_by_area_and_pads_and_spares_help():
    assert hybrid_bond_yield(200, 0.01) < hybrid_bond_yield(100, 0.01) == pytest.approx(np.exp(-0.01))
    pads = {"pads": 1e6, "pad_failure": 1e-7}
    assert hybrid_bond_yield(100, 0.0, **pads) == pytest.approx(np.exp(-0.1), rel=1e-4)
    assert hybrid_bond_yield(100, 0.0, **pads, spare_share=0.9) > hybrid_bond_yield(100, 0.0, **pads)


def test_escapes_are_carried_to_the_package():
    sloppy = good_unit_cost(_unit(dies=[DiePart("g", 2, 16_000, 66, 0.75, probe_coverage=0.8)]))
    strict = good_unit_cost(_unit(dies=[DiePart("g", 2, 16_000, 66, 0.75, probe_coverage=1.0)]))
    assert sloppy.package_yield < strict.package_yield
    assert sloppy["wasted_good_parts"] > strict["wasted_good_parts"]


def test_trap_halving_uptime_raises_cost():
    full, half = (tester_cost_usd(120, 2e6, 5, u, 20) for u in (0.9, 0.45))
    assert half > 1.5 * full
    steps = [[ProcessStep("etch", 100, 5e6, 40, u)] for u in (0.8, 0.4)]
    totals = [wafer_cost_usd(s)["total"] for s in steps]
    assert totals[1] == pytest.approx(2 * totals[0])


def test_step_sum_adds_up_with_overhead_and_margin():
    steps = [ProcessStep("a", 10, 1e6, 50, 0.8, material_usd=5), ProcessStep("b", 5, 2e6, 20, 0.9)]
    cost = wafer_cost_usd(steps, 100, 0.5, 0.4)
    direct = cost["substrate"] + cost["a"] + cost["b"]
    assert cost["overhead"] == pytest.approx(0.5 * direct)
    assert cost["margin"] / cost["total"] == pytest.approx(0.4)
    assert cost["total"] == pytest.approx(1.5 * direct / 0.6)
    with pytest.raises(ManufacturingError, match="margin_share = 1 must"):
        wafer_cost_usd(steps, margin_share=1.0)


def test_where_to_test_depends_on_yield_and_cost():
    sort, final = Insertion(5, 0.95), Insertion(40, 0.99)
    poor = compare_insertions(250, 0.6, 2, 3000, 0.98, sort, final, shipped_bad_usd=20_000)
    assert poor[0].name == "both"
    assert poor[-1].name == "final only"
    perfect = compare_insertions(250, 1.0, 1, 0.0, 1.0, sort, final)
    assert perfect[0].name == "wafer sort only"  # the cheaper of two needless tests
    assert [p.usd_per_good_package for p in poor] == sorted(p.usd_per_good_package for p in poor)
    with pytest.raises(ManufacturingError, match="at least 1"):
        compare_insertions(250, 0.6, 0, 3000, 0.98, sort, final)


def test_burn_in_removes_weak_parts():
    before = burn_in(0.99, 0.02, 0.0)
    after = burn_in(0.99, 0.02, 0.9)
    assert before.pass_rate == 1.0
    assert after.pass_rate == pytest.approx(1 - 0.99 * 0.02 * 0.9)
    assert after.escape_share < before.escape_share


def test_a_hundred_thousand_evaluations_in_one_call():
    rng = np.random.default_rng(0)
    n = 100_000
    areas, density = rng.uniform(50, 850, n), rng.uniform(0.03, 0.3, n)
    begun = time.perf_counter()
    yields = die_yield(areas, density)
    cost = good_unit_cost(
        _unit(dies=[DiePart("g", 2, 16_000, 60_000 / areas, yields)], final_yield=rng.uniform(0.9, 1, n))
    )
    spent = time.perf_counter() - begun
    assert cost.total.shape == (n,)
    assert cost.total[7] == pytest.approx(sum(v[7] for v in cost.values()))
    assert spent < 3.0  # 0.05 s when the machine is idle
    alone = die_yield(areas[7], density[7])
    assert yields[7] == pytest.approx(alone, rel=1e-14)


def test_messages():
    with pytest.raises(ManufacturingError, match="choose chip_last or chip_first"):
        package(1, 100, "first")
    with pytest.raises(ManufacturingError, match="has no die"):
        good_unit_cost(Unit([]))
    with pytest.raises(ManufacturingError, match="volume = 0 must be above 0"):
        good_unit_cost(_unit(volume=0))
    with pytest.raises(ManufacturingError, match=r"final_yield = 97 .* per cent, give 0\.97"):
        package(1, 100, final_yield=97)


def test_package_parts_of_a_known_case():
    built = package(
        2, 800, "chip_last", 0.9, interposer_yield=0.8, final_yield=0.5, memory_bond_yield=0.9, memory_stacks=1
    )
    assert built.memory_multiplier == built.die_multiplier == pytest.approx(1 / (0.9**3 * 0.5))
    assert built.wasted_good_share == pytest.approx(1 - 0.9**3 * 0.5)
    assert packages_per_wafer(10_000, aspect=4.0) == gross_dies(200.0, 50.0)


def test_a_void_is_larger_than_its_particle():
    assert hybrid_bond_yield(100, 0.01, void_ratio=3.0) == pytest.approx(np.exp(-0.03))
    assert hybrid_bond_yield(100, 0.01, void_ratio=0.0) == 1.0


def test_final_test_and_probe_are_paid_for_lost_parts_too():
    """Dies at 80 % yield probed at 4 USD; half of the packages fail at the end, after a final test of 30 USD."""
    die = DiePart("gpu", 2, 16_000, 64, 0.8, probe_usd=4)
    cost = good_unit_cost(Unit([die], final_yield=0.5, final_test_usd=30, bond_usd_per_die=1.5, assembly_usd=10))
    assert cost["test"] == pytest.approx(2 * 4 / 0.8 / 0.5 + 30 / 0.5)
    assert cost["assembly"] == pytest.approx((2 * 1.5 + 10) / 0.5)
    assert cost["wasted_good_parts"] == pytest.approx(2 * 250 / 0.8)
