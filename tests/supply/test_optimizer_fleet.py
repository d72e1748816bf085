"""The fleet, its power and its demand: every mechanism on a network small enough to solve by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from supply.network import (
    FleetSku,
    Horizon,
    Material,
    Network,
    Objective,
    Process,
    Region,
    Resource,
    Segment,
)
from supply.network_examples import power_chain
from supply.optimizer.compiled import Compiled, optimize


def one_sku(periods: int = 4, **values: Any) -> Network:
    """One SKU with 1 kW, worth 1 USD an hour, from a fab of 10 a period; 12 kW of power."""
    return Network.build(
        Horizon("2026-Q1", periods),
        [Material("x")],
        [Process("make", ("x",), uses=("fab",))],
        [Resource("fab"), Resource("power", "power", "MW", region="us")],
        {
            "processes.make.output.x": 1,
            "processes.make.uses.fab": 1,
            "resources.fab.capacity": 10,
            "resources.power.capacity": 0.012,
            "fleet.x.kw_planning": 1,
            "fleet.x.value": 1,
            "fleet.x.h100e": 2,
            **values,
        },
        fleet=[FleetSku("x", "x", ("us",), "d", early_retirement="early" in values)],
        regions=[Region("us")],
    )


def fleet_of(solution: Any, sku: str = "x") -> list[float]:
    return solution.fleet.query("sku == @sku").groupby("t").fleet.sum().round(9).tolist()


def test_fleet_recursion_survival_and_life_long_power() -> None:
    solution = optimize(one_sku(**{"fleet.x.survival": 0.5, "fleet.x.opening.us": 8}))
    # 8 x 0.5 + 8 = 12 (power binds), then half dies each period and is replaced
    assert fleet_of(solution) == [12, 12, 12, 12]
    assert solution.energised.energised.round(9).tolist() == [8, 6, 6, 6]
    assert solution.objective == pytest.approx(4 * 12 * 2191.5)


def test_opening_fleet_above_its_power_is_scaled_and_the_rest_goes_into_stock() -> None:
    solution = optimize(one_sku(**{"fleet.x.opening.us": 16, "resources.power.capacity": [0.012, 0.016, 0.016, 0.016]}))
    assert fleet_of(solution) == [12, 16, 16, 16]
    assert solution.notes == ["opening fleet of us: 25.0% found no power and stands in stock"]
    assert solution.activities.starts.sum() == pytest.approx(0)


def test_early_retirement_makes_room_for_a_better_chip() -> None:
    base = one_sku(2, **{"fleet.x.opening.us": 12, "resources.fab.capacity": [0, 10]})
    better = Network.build(
        base.horizon,
        [Material("x"), Material("y")],
        [Process("make", ("y",), uses=("fab",))],
        base.resources.values(),
        {
            **base.values,
            "processes.make.output.y": 1,
            **{f"fleet.y.{k}": v for k, v in {"kw_planning": 1, "value": 3, "h100e": 3}.items()},
        },
        fleet=[FleetSku("x", "x", ("us",), early_retirement=True), FleetSku("y", "y", ("us",))],
    )
    solution = optimize(better)
    assert fleet_of(solution, "x") == [12, 2]
    assert fleet_of(solution, "y") == [0, 10]


def test_siting_shares() -> None:
    network = one_sku(1, **{"fleet.x.opening.us": 0, "resources.power.capacity": 1})
    two = Network.build(
        network.horizon,
        network.materials.values(),
        network.processes.values(),
        network.resources.values(),
        {**network.values, "regions.eu.least_share": 0.3},
        fleet=[FleetSku("x", "x", ("us", "eu"))],
        regions=[Region("us"), Region("eu")],
    )
    table = optimize(two).energised.set_index("region").energised
    assert table["eu"] >= 3 - 1e-9
    assert table.sum() == pytest.approx(10)


def test_export_limit_is_a_list_of_regions() -> None:
    base = one_sku(1)
    limited = Network.build(
        base.horizon,
        base.materials.values(),
        base.processes.values(),
        [*base.resources.values(), Resource("power_cn", "power", "MW", region="cn")],
        {**base.values, "resources.power_cn.capacity": 1, "resources.power.capacity": 0.004},
        fleet=[FleetSku("x", "x", ("us",))],
    )
    assert optimize(limited).energised.energised.sum() == pytest.approx(4)


def test_life_long_power_gives_a_flat_price_not_a_lump_at_the_end() -> None:
    solution = Compiled(power_chain(8, life_years=5.0, tail=4)).solve()
    prices = solution.resources.query("resource == 'power_us'").price.to_numpy()
    assert prices[:7] == pytest.approx(np.full(7, prices[0]), rel=1e-9)
    assert prices[0] > 0
    lasting = solution.resources.query("resource == 'power_us'").lasting_price.to_numpy()
    assert np.all(np.diff(lasting[:7]) < 0)
    assert lasting[0] == pytest.approx(solution.lasting_price("power_us", 0))


def segmented(**values: Any) -> Network:
    base = one_sku(1, **{"resources.power.capacity": 1, "fleet.x.value": 1, "processes.make.cost": 1000.0})
    return Network.build(
        base.horizon,
        base.materials.values(),
        base.processes.values(),
        base.resources.values(),
        {
            **base.values,
            "demand.d.reference": 10,
            "demand.d.steps.0.share": 0.4,
            "demand.d.steps.0.discount": 0,
            "demand.d.steps.1.share": 0.3,
            "demand.d.steps.1.discount": 0.5,
            **values,
        },
        fleet=base.fleet.values(),
        segments=[Segment("d", 2)],
    )


def test_demand_of_a_designer_is_price_responsive() -> None:
    # an accelerator is worth 2191.5 in the first 4, half of that in the next 3, nothing beyond; it costs 1000
    solution = optimize(segmented())
    assert fleet_of(solution) == [7]
    assert solution.objective == pytest.approx(4 * 2191.5 + 3 * 2191.5 / 2 - 7 * 1000)
    (step,) = solution.demand_steps.itertuples()
    assert (step.designer, step.step, step.discount, step.fleet) == ("d", 1, 0.5, pytest.approx(7))
    assert optimize(segmented(**{"processes.make.cost": 1200.0})).energised.energised.sum() == pytest.approx(4)


def test_existing_fleet_above_its_demand_is_never_infeasible() -> None:
    solution = optimize(segmented(**{"fleet.x.opening.us": 50, "demand.d.reference": 1}))
    assert fleet_of(solution) == [50]


def test_taste_steps_split_the_volume_of_a_designer() -> None:
    base = power_chain(1, mw=(1e6,))
    network = Network.build(
        base.horizon,
        base.materials.values(),
        base.processes.values(),
        base.resources.values(),
        {
            **base.values,
            "resources.fab.capacity": 1000,
            "processes.make_big.uses.fab": 1,
            "processes.make_small.uses.fab": 1,
            "processes.make_big.cost": 0,
            "processes.make_small.cost": 0,
            "fleet.big.value": 1.0,
            "fleet.small.value": 0.9,
            "fleet.big.tastes.0.share": 0.6,
            "fleet.big.tastes.0.discount": 0.0,
            "fleet.big.tastes.1.share": 0.4,
            "fleet.big.tastes.1.discount": 0.2,
        },
        fleet=[FleetSku("big", "big", ("us",), "one", tastes=2), FleetSku("small", "small", ("us",), "one")],
    )
    solution = optimize(network)
    # beyond 60 % of the designer's volume big is worth 0.8, less than small's 0.9
    assert fleet_of(solution, "big") == [pytest.approx(600)]
    assert fleet_of(solution, "small") == [pytest.approx(400)]


def test_two_cost_views_charge_different_things() -> None:
    values = {"processes.make.cost": 900.0, "fleet.x.purchase_cost": 2500.0, "resources.power.capacity": 1}
    made = optimize(one_sku(1, **values))
    from dataclasses import replace

    bought = optimize(replace(one_sku(1, **values), objective=Objective("value", "purchase")))
    assert made.objective == pytest.approx(10 * (2191.5 - 900))
    assert bought.energised.energised.sum() == pytest.approx(0)  # 2500 for one quarter of 2191.5: buyers wait


def test_capital_costs_are_charged_as_the_part_of_their_annuity_inside_the_horizon() -> None:
    values = {
        "processes.make.cost": 1000.0,
        "costs.life": 1.0,
        "resources.power.capacity": 1,
        "resources.fab.capacity": [0, 0, 10, 0],
    }
    solution = optimize(one_sku(4, **values))
    # made in period 2 of 4, life 4 periods: half of the cost falls inside
    assert solution.objective == pytest.approx(10 * (2 * 2191.5 - 500))


def test_compute_and_units_objectives() -> None:
    from dataclasses import replace

    network = one_sku(2)
    compute = optimize(replace(network, objective=Objective("compute")))
    assert compute.objective == pytest.approx(2 * (10 + 12))
    units = optimize(replace(network, objective=Objective("units")))
    assert units.objective == pytest.approx(12)
    assert units.objective_unit == "accelerators"
