"""Four kinds of watts, published target P09, and the user questions about power."""

from __future__ import annotations

import pytest

from econ.power_chain import (
    PowerError,
    accelerators_on_site,
    check_node_power,
    generated_tokens_per_s_per_mw,
    overhead_ratio,
    power_chain,
    sized_capacity_mw,
    system_over_chips,
)
from econ.use_chain import UseChain, UseError


def test_target_p09_power_chain() -> None:
    chain = power_chain(chassis_w=4837, pue=1.3, headroom=0.10)
    assert round(chain.facility_w) == 6288
    assert round(chain.planning_w) == 6917
    assert chain.per_gigawatt() == pytest.approx(144573, abs=1)


def test_trap_it_and_facility_watts_are_kept_apart() -> None:
    chain = power_chain(chip_w=700, chassis_over_chip=10200 / 5600, pue=1.25, headroom=0.1)
    assert chain.chip_w < chain.chassis_w < chain.facility_w < chain.planning_w
    assert chain.facility_w / chain.chassis_w == pytest.approx(1.25)
    with pytest.raises(PowerError, match="share of overhead goes in as 1"):
        power_chain(chassis_w=1000, pue=0.25)
    with pytest.raises(PowerError, match="chassis watts are missing"):
        power_chain(chip_w=700, pue=1.2)
    with pytest.raises(PowerError, match="below its chip"):
        power_chain(chip_w=700, chassis_w=500, pue=1.2)


def test_site_and_booking_are_inverse() -> None:
    count = accelerators_on_site(50e6, 1000, 1.3, 1.2, 1.1)
    assert sized_capacity_mw(count, 1000, 1.3, 1.2, 1.1) == pytest.approx(50.0)


def test_use_chain_from_counted_hours() -> None:
    chain = UseChain.from_hours(installed=1000, sold=800, scheduled=720, healthy=684, busy=410.4)
    assert chain.computing_share == pytest.approx(0.4104)
    with pytest.raises(UseError, match=r"scheduled hours 900 must be positive and at most sold hours 800"):
        UseChain.from_hours(installed=1000, sold=800, scheduled=900, healthy=684, busy=410)


def test_case_power_node_below_gpu_sum() -> None:
    with pytest.raises(PowerError, match=r"3500 W is below its 8 chips' 5600 W"):
        check_node_power(3500, 8, 700)


def test_case_power_rating_not_gpus_alone() -> None:
    split = system_over_chips(10200, 8, 700)
    assert split["ratio"] == pytest.approx(1.82143, rel=0.001)
    assert (split["chips_w"], split["rest_w"], split["per_accelerator_w"]) == (5600, 4600, 1275)


def test_case_power_pue_overhead_ratio() -> None:
    assert overhead_ratio(1.2, 1.5) == pytest.approx(2.5, rel=1e-9)
    assert 4 * 10.2 < 45
    with pytest.raises(PowerError, match="must exceed 1"):
        overhead_ratio(1.0, 1.5)


def test_case_power_tokens_per_mw_scope() -> None:
    assert generated_tokens_per_s_per_mw(900000, 8192, 1024) == pytest.approx(100000, rel=1e-6)
    assert generated_tokens_per_s_per_mw(900000, 1024, 1024) == pytest.approx(450000)
    assert generated_tokens_per_s_per_mw(900000, 1024, 8192) == pytest.approx(800000)


def test_case_power_8gw_chip_tdp() -> None:
    assert accelerators_on_site(8e9, 700, 10200 / 5600, 1.25, 1.10) == pytest.approx(4.56328e6, rel=0.03)
    assert accelerators_on_site(8e9, 700, 10200 / 5600, 1.25) == pytest.approx(5.02e6, rel=0.001)
    chips_only = accelerators_on_site(8e9, 700)
    assert chips_only / accelerators_on_site(8e9, 700, 10200 / 5600, 1.25, 1.10) == pytest.approx(2.5, abs=0.01)
