"""The contract between scenario files and the optimum, and export measures."""

from __future__ import annotations

import numpy as np
import pytest

from supply.export_rules import is_controlled, performance_density, total_processing_performance
from supply.network import Demand, Horizon, Material, Network, NetworkError, Process, spread
from supply.network_examples import course_11_1


def test_horizon_counts_quarters_and_months_over_year_ends() -> None:
    quarters = Horizon("2024-Q4", 3, tail=2)
    assert quarters.labels() == ["2024-Q4", "2025-Q1", "2025-Q2", "2025-Q3", "2025-Q4"]
    assert [quarters.index(x) for x in ("2024-Q3", "2026-Q1")] == [-1, 5]
    months = Horizon("2024-12", 2, "month")
    assert months.labels() == ["2024-12", "2025-01"]
    assert quarters.hours(0) == 3 * months.hours(1)
    assert (quarters.weeks, quarters.months) == (13, 3)


@pytest.mark.parametrize("start", ["2024", "2024-Q5", "24-Q1", "2024-01"])
def test_horizon_says_how_to_write_a_quarter(start: str) -> None:
    with pytest.raises(NetworkError, match="write it like 2026-Q1"):
        Horizon(start, 1)


def test_horizon_refuses_other_steps_and_empty_spans() -> None:
    with pytest.raises(NetworkError, match="'week' is not quarter or month"):
        Horizon("2024-Q1", 1, "week")
    with pytest.raises(NetworkError, match="need at least 1"):
        Horizon("2024-Q1", 0)


def test_values_are_spread_and_too_long_arrays_refused() -> None:
    assert spread("x", 2, 3).tolist() == [2, 2, 2]
    assert spread("x", [1, 5], 4).tolist() == [1, 5, 5, 5]
    with pytest.raises(NetworkError, match=r"x: shape \(3,\) does not fit 2 periods"):
        spread("x", [1, 2, 3], 2)


def test_twice_defined_ids_are_refused() -> None:
    with pytest.raises(NetworkError, match="material 'a' is defined twice"):
        Network.build(Horizon("2024-Q1", 1), [Material("a"), Material("a")], [])


def test_patterns_match_inside_ids_only() -> None:
    network = course_11_1()
    assert network.match("processes.*.output.*") == [
        "processes.make_die.output.die",
        "processes.package.output.accelerator",
    ]
    assert network.match("resources.c*.capacity") == ["resources.cowos.capacity"]
    with pytest.raises(NetworkError, match=r"did you mean resources\.cowos\.capacity"):
        network.match("resources.cowoss.capacity")


def test_a_missing_number_is_an_error_and_a_change_leaves_the_original_alone() -> None:
    network = course_11_1()
    with pytest.raises(NetworkError, match=r"processes.package.cost: no value"):
        network.get("processes.package.cost")
    assert network.get("processes.package.cost", 3.0).tolist() == [3]
    more = network.with_values({"resources.fab.capacity": 1})
    assert (network.scalar("resources.fab.capacity"), more.scalar("resources.fab.capacity")) == (15000, 1)


def test_array_per_period_keeps_its_length() -> None:
    network = Network.build(
        Horizon("2024-Q1", 2, tail=1),
        [Material("x")],
        [Process("p", ("x",))],
        values={"processes.p.output.x": np.arange(3)},
        demand=[Demand("x")],
    )
    assert network.values["processes.p.output.x"].tolist() == [0, 1, 2]


def test_case_export_h20_tpp() -> None:
    rule = {"tpp_alone": 4800.0, "tpp_with_density": 1600.0, "density_limit": 5.92}
    h20, h100 = total_processing_performance(296, 8), total_processing_performance(1979, 8)
    assert (h20, h100) == (pytest.approx(2368, rel=1e-3), pytest.approx(15832, rel=1e-3))
    densities = performance_density(h20, 814), performance_density(h100, 814)
    assert densities == (pytest.approx(2.91, abs=0.01), pytest.approx(19.45, abs=0.01))
    assert not is_controlled(h20, densities[0], **rule)
    assert is_controlled(h100, densities[1], **rule)
    assert h20 < 2400


def test_export_measures_refuse_nonsense() -> None:
    with pytest.raises(NetworkError, match="not a bit length"):
        total_processing_performance(100, 0)
    with pytest.raises(NetworkError, match="is not positive"):
        performance_density(100, 0)
    assert total_processing_performance([100, 200], 16).tolist() == [1600, 3200]
