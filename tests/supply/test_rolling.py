"""Rolling information: nothing is known too early, everything known is used, the plan as carried out adds up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from supply.bottleneck import embodied, report
from supply.network import Demand, Disruption, Horizon, Material, Network, Objective, Process, Regime, Resource
from supply.network_random import random_industry
from supply.optimizer.compiled import optimize
from supply.optimizer.errors import InfeasibleError
from supply.optimizer.rolling import RollingError, known_capacity, solve_rolling, view


def stocked(known_from: int | None, periods: int = 4, **values: Any) -> Network:
    """A fab of 10, sale of at most 8 a period at rising prices; an outage in period 2."""
    return Network.build(
        Horizon("2026-Q1", periods),
        [Material("x")],
        [Process("make", ("x",), uses=("fab",))],
        [Resource("fab")],
        {
            "processes.make.output.x": 1,
            "processes.make.uses.fab": 1,
            "resources.fab.capacity": 10,
            "demand.x.price": 1,
            "demand.x.quantity": 8,
            "materials.x.holding_cost": 0.1,
            "disruptions.out.remaining": 0.0,
            **values,
        },
        demand=[Demand("x")],
        disruptions=[Disruption("out", "fab", 2, 2, known_from=known_from)],
        objective=Objective("value"),
        regime=Regime("rolling", 4),
    )


def test_an_outage_that_is_known_is_prepared_for() -> None:
    foresight = optimize(stocked(0))
    assert foresight.sold.sold.round(6).tolist() == [8, 8, 4, 8]  # stock of 2 + 2
    assert solve_rolling(stocked(0)).sold.sold.round(6).tolist() == [8, 8, 4, 8]


def test_an_outage_that_comes_as_a_surprise_is_not() -> None:
    assert solve_rolling(stocked(2)).sold.sold.round(6).tolist() == [8, 8, 0, 8]
    assert solve_rolling(stocked(1)).sold.sold.round(6).tolist() == [8, 8, 2, 8]  # one period of warning


def test_an_end_that_is_announced_late_does_not_cause_a_rush() -> None:
    def chain(known_from: int) -> Network:
        network = stocked(None, **{"disruptions.out.remaining": 1.0})
        ending = Process("make", ("x",), uses=("fab",), last=1, known_from=known_from)
        return replace(network, processes={"make": ending})

    assert optimize(chain(0)).sold.sold.round(6).tolist() == [8, 8, 4, 0]
    assert solve_rolling(chain(2)).sold.sold.round(6).tolist() == [8, 8, 0, 0]


def test_capacity_beyond_the_look_ahead_keeps_growing() -> None:
    array = np.array([10.0, 12.0, 14.0, 50.0, 90.0])
    assert known_capacity(array, 0, 2).tolist() == [10, 12, 14, 16, 18]
    assert known_capacity(array, 3, 4).tolist() == array.tolist()
    shrinking = known_capacity(np.array([10.0, 2.0, 0.0, 7.0]), 0, 1)
    assert shrinking.tolist() == [10, 2, 0, 0]
    seen = view(stocked(2), 1)
    assert seen["disruptions.out.remaining"].tolist() == [1, 1, 1, 1]
    assert view(stocked(2), 2)["disruptions.out.remaining"].tolist() == [0, 0, 0, 0]


def test_with_full_knowledge_rolling_is_foresight() -> None:
    network = random_industry(skus=2, periods=5, tail=2, seed=3)
    network = replace(network, disruptions={})
    far = solve_rolling(network, look_ahead=network.horizon.length)
    assert far.objective == pytest.approx(optimize(network).objective, rel=1e-6)


def test_plan_as_carried_out_keeps_every_balance() -> None:
    solution = solve_rolling(random_industry(skus=3, periods=6, tail=3, seed=1), look_ahead=2)
    table = solution.resources
    assert (table.used <= table.capacity * (1 + 1e-6) + 1e-3).all()
    assert (solution.stocks.stock >= -1e-2).all()
    energised = solution.energised.energised.sum()
    assert energised > 0
    assert "2 periods ahead" in " ".join(solution.notes)


def test_prices_and_embodied_use_are_those_of_the_plan_of_each_period() -> None:
    solution = solve_rolling(random_industry(skus=2, periods=5, tail=2, seed=5), look_ahead=2)
    rows = report(solution, next_for=0).bindings
    assert rows
    assert all(b.price_low <= b.price <= b.price_high for b in rows)
    assert embodied(solution).identity.gap.max() < 1e-6


def test_a_period_without_a_plan_is_named() -> None:
    network = stocked(2)
    must = replace(network, demand={"x": Demand("x", "never")})
    with pytest.raises(RollingError, match=r"rolling plan of 2026-Q3: .*demand for x cannot be met in 2026-Q3"):
        solve_rolling(must)
    with pytest.raises(InfeasibleError):
        optimize(replace(must, disruptions={"out": replace(network.disruptions["out"], last=3)}))
