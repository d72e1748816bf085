"""Vintages, power queues, sharing rules, concentration, near-optimal mixes, substitutes, conflict sets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

from supply.bottleneck import embodied, price_without
from supply.concentration import concentration
from supply.consistency import check
from supply.fleet import opening_survival, sharp_survival, weibull_scale, weibull_survival
from supply.network import (
    Contract,
    Demand,
    FleetSku,
    Horizon,
    Material,
    Network,
    NetworkError,
    Objective,
    Process,
    Region,
    Resource,
)
from supply.network_examples import course_11_1, power_chain
from supply.network_random import random_industry
from supply.optimizer.compiled import Compiled, optimize
from supply.optimizer.errors import InfeasibleError
from supply.optimizer.near_optimal import mix_range
from supply.power import Site, grid_queue, mean_level, waiting_mw
from supply.sharing import compare_rules, equal_shares, proportional_shares, with_shares


def ageing(curve: Any, **values: Any) -> Network:
    return Network.build(
        Horizon("2026-Q1", 4),
        [Material("x")],
        [Process("make", ("x",), uses=("fab",))],
        [Resource("fab"), Resource("power", "power", "MW", region="us")],
        {
            "processes.make.output.x": 1,
            "processes.make.uses.fab": 1,
            "resources.fab.capacity": 10,
            "resources.power.capacity": 0.015,
            "fleet.x.kw_planning": 1,
            "fleet.x.value": 1,
            "fleet.x.survival_by_age": curve,
            **values,
        },
        fleet=[FleetSku("x", "x", ("us",))],
        regions=[Region("us")],
    )


def fleet_of(solution: Any) -> list[float]:
    return solution.fleet.groupby("t").fleet.sum().round(9).tolist()


def test_vintages_die_by_age() -> None:
    # everything lives two periods: 10; 15 (power); 15 (10 of the first gone, 5 + 10); 15 (5 gone, 10 + 5)
    solution = optimize(ageing(sharp_survival(4, 2.0)))
    assert fleet_of(solution) == [10, 15, 15, 15]
    assert solution.energised.energised.round(9).tolist() == [10, 5, 10, 5]
    assert embodied(solution).identity.gap.max() < 1e-9


def test_opening_fleet_has_an_age() -> None:
    values = {"fleet.x.opening.us": 8, "fleet.x.opening_age": 1, "resources.fab.capacity": 0}
    assert fleet_of(optimize(ageing([1.0, 0.8, 0.4, 0.0], **values))) == [4, 0, 0, 0]
    assert opening_survival(np.array([1.0, 0.5]), 5.0).tolist() == [1.0, 1.0]  # beyond the curve its last value holds


def test_survival_curves() -> None:
    assert weibull_survival(5, 2.0, 1.0) == pytest.approx(np.exp(-np.arange(5) / 2))
    assert weibull_survival(4, 2.0, 3.0) == pytest.approx([1.0, np.exp(-1 / 8), np.exp(-1.0), np.exp(-27 / 8)])
    assert opening_survival(np.array([1.0, 0.5, 0.0]), 2.0).tolist() == [0.0, 0.0, 0.0]  # nothing of that age is left
    assert sharp_survival(3, 1.25).tolist() == [1, 0.25, 0]
    with pytest.raises(NetworkError, match="must be positive"):
        weibull_survival(3, 0, 1)
    both = ageing(sharp_survival(4, 2.0), **{"fleet.x.life": 8.0})
    assert [str(p) for p in check(both)] == ["fleet.x.life: stands beside fleet.x.survival_by_age; keep one of the two"]


def test_losses_at_any_age_come_on_top_of_losses_by_age() -> None:
    values = {"fleet.x.survival": [0.5, 0.9, 0.8, 0.7], "resources.power.capacity": 1.0}
    solution = optimize(ageing(sharp_survival(4, 3.0), **values))
    # 10 a period, each kept for three: 10; 9 + 10; 7.2 + 8 + 10; 5.6 + 7 + 10
    assert fleet_of(solution) == [10, 19, 25.2, 22.6]
    assert embodied(solution).identity.gap.max() < 1e-9
    opening = {**values, "fleet.x.opening.us": 8, "fleet.x.opening_age": 1, "resources.fab.capacity": 0}
    # one period old at the start: 8 * 0.5, then 4 * 0.9 loses its last period of life
    assert fleet_of(optimize(ageing(sharp_survival(4, 3.0), **opening))) == [4, 0, 0, 0]


def test_mean_life_and_wear_out_give_the_curve() -> None:
    by_life = ageing([1.0], **{"resources.power.capacity": 1.0})
    del by_life.values["fleet.x.survival_by_age"]
    by_life = by_life.with_values({"fleet.x.life": 2.0, "fleet.x.wear_out": 1.0})
    kept = np.exp(-np.arange(4) / 2.0)
    assert fleet_of(optimize(by_life)) == pytest.approx(10 * np.cumsum(kept), rel=1e-9)
    # a steady loss by age is the same as a share kept a period
    steady = ageing([1.0], **{"resources.power.capacity": 1.0, "fleet.x.survival": float(np.exp(-0.5))})
    del steady.values["fleet.x.survival_by_age"]
    assert fleet_of(optimize(by_life)) == pytest.approx(fleet_of(optimize(steady)), rel=1e-9)
    # the mean of the life is what was asked for
    scale = weibull_scale(5.0, 3.0)
    assert quad(lambda age: np.exp(-((age / scale) ** 3.0)), 0.0, np.inf)[0] == pytest.approx(5.0, rel=1e-6)
    old = by_life.with_values({"fleet.x.opening.us": 8, "fleet.x.opening_age": 30.0, "resources.fab.capacity": 0})
    assert fleet_of(optimize(old)) == pytest.approx(8 * np.exp(-np.arange(1, 5) / 2.0), rel=1e-9)
    assert (weibull_scale(0.5, 1.0), weibull_scale(5.0, 0.5)) == (0.5, 2.5)
    for mean, shape in ((0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (1.0, -1.0)):
        with pytest.raises(NetworkError, match="must be positive"):
            weibull_scale(mean, shape)


def test_ageing_that_does_nothing_is_refused() -> None:
    network = ageing([1.0])
    del network.values["fleet.x.survival_by_age"]
    found = check(network.with_values({"fleet.x.wear_out": 3.0, "fleet.x.opening_age": 2.0}))
    assert [p.path for p in found] == ["fleet.x.wear_out", "fleet.x.opening_age"]
    wild = check(network.with_values({"fleet.x.life": 0.0, "fleet.x.wear_out": 90.0}))
    assert {p.path for p in wild if p.severity == "error"} == {"fleet.x.life", "fleet.x.wear_out"}


def test_grid_connects_first_come_first_served_and_in_parts() -> None:
    sites = [Site("late", 10, 2), Site("first", 30, 0), Site("second", 20, 0.5)]
    rate = np.array([20.0, 20.0, 20.0])
    assert grid_queue(sites, rate).tolist() == [20, 40, 60]
    assert waiting_mw(sites, rate).tolist() == [10, 10, 0]
    assert grid_queue([Site("a", 5, 1)], rate).tolist() == [0, 5, 5]
    assert mean_level(np.array([20.0, 40.0]), 0.0).tolist() == [10, 30]
    with pytest.raises(NetworkError, match="negative MW"):
        grid_queue([Site("a", -5, 1)], rate)


def test_two_limits_of_one_region_have_their_own_prices() -> None:
    network = ageing(np.ones(4))
    cooled = replace(
        network, resources={**network.resources, "cooling": Resource("cooling", "power", "MW", region="us")}
    )
    solution = optimize(cooled.with_values({"resources.cooling.capacity": 0.006}))
    assert fleet_of(solution) == [6, 6, 6, 6]
    assert solution.lasting_price("power", 0) == 0
    assert solution.lasting_price("cooling", 0) == pytest.approx(4 * 2191.5 * 1000)


def two_products() -> Network:
    values: dict[str, Any] = {"resources.line.capacity": 10}
    for p, price in (("a", 3.0), ("b", 1.0)):
        values |= {f"processes.{p}.output.{p}": 1, f"processes.{p}.uses.line": 1, f"demand.{p}.price": price}
    return Network.build(
        Horizon("2026-Q1", 1),
        [Material("a"), Material("b")],
        [Process(p, (p,), uses=("line",)) for p in "ab"],
        [Resource("line")],
        values,
        demand=[Demand("a"), Demand("b")],
        objective=Objective("value"),
    )


def test_sharing_rules_state_the_value_they_lose() -> None:
    network = two_products()
    groups = {"one": ["a"], "two": ["b"]}
    results = compare_rules(
        network,
        {
            "equal": equal_shares(network, "line", groups),
            "by contract": proportional_shares(network, "line", groups, {"one": 8, "two": 2}),
        },
    )
    lost = {r.rule: (round(r.value_lost, 9), round(r.share_lost, 9)) for r in results}
    assert lost == {"optimum": (0, 0), "equal": (10, round(1 / 3, 9)), "by contract": (4, round(4 / 30, 9))}
    with pytest.raises(NetworkError, match=r"sum to 1\.2"):
        with_shares(network, "line", {"one": (["a"], 0.6), "two": (["b"], 0.6)})


def test_concentration_by_supplier() -> None:
    network = Network.build(
        Horizon("2026-Q1", 1),
        [Material("x")],
        [Process("make", ("x",), uses=("fab",)), Process("other", ("x",), uses=("spare",))],
        [Resource("fab", "fab", supplier="one"), Resource("spare", "fab", supplier="two")],
        {
            "processes.make.output.x": 1,
            "processes.make.uses.fab": 1,
            "processes.other.output.x": 1,
            "processes.other.uses.spare": 1,
            "resources.fab.capacity": 10,
            "resources.spare.capacity": 2,
            "demand.x.price": 1,
            "demand.x.quantity": 10,
        },
        demand=[Demand("x")],
    )
    shares = concentration(network, "supplier")
    assert shares.share.tolist() == pytest.approx([10 / 12, 2 / 12])
    assert shares.hhi.iloc[0] == pytest.approx((100 + 4) / 144)
    with pytest.raises(ValueError, match="choose supplier, owner or region"):
        concentration(network, "colour")


def test_substitutes_with_and_without() -> None:
    values = {f"processes.{p}.output.x": 1 for p in "ab"} | {"processes.b.cost": 0.4, "resources.other.capacity": 50}
    values |= {
        "processes.a.uses.fab": 1,
        "processes.b.uses.other": 1,
        "resources.fab.capacity": 10,
        "demand.x.price": 1,
    }
    network = Network.build(
        Horizon("2026-Q1", 1), [Material("x")],
        [Process("a", ("x",), uses=("fab",)), Process("b", ("x",), uses=("other",))],
        [Resource("fab"), Resource("other")], {**values, "demand.x.quantity": 30}, demand=[Demand("x")],
    )  # fmt: skip
    solution = optimize(network)
    assert price_without(solution, "fab", 0, ["b"]) == (pytest.approx(0.4), pytest.approx(1.0))
    with pytest.raises(ValueError, match="no such process: c"):
        price_without(solution, "fab", 0, ["c"])


def test_mix_is_nearly_free_beside_the_optimum() -> None:
    network = two_products().with_values({"demand.a.price": 1.0005, "demand.b.price": 1.0})
    found = mix_range(optimize(network), ["a", "b"], ["2026-Q1"], quantity="sold").set_index("subject")
    assert found.planned.to_dict() == {"a": pytest.approx(10), "b": pytest.approx(0)}
    assert found.loc["a", "low"] == pytest.approx(0, abs=1e-6)
    assert found.loc["b", "high"] == pytest.approx(10)
    compiled = Compiled(random_industry(skus=2, periods=4, tail=2))
    solution = compiled.solve()
    table = mix_range(solution, ["sku0"], solution.network.horizon.labels()[:4])
    assert (table.low <= table.planned).all()
    assert (table.planned <= table.high).all()
    assert compiled.solve().objective_total == pytest.approx(solution.objective_total, rel=1e-12)


def test_conflict_names_both_sides() -> None:
    network = replace(course_11_1(), contracts={"ours": Contract("ours", "cowos", ("package",))})
    with pytest.raises(InfeasibleError) as error:
        optimize(network.with_values({"contracts.ours.least": 12000}))
    message = str(error.value)
    assert "the least take of contract ours cannot be reached in 2026-Q1: short by 2,000 accelerator" in message
    assert "It stands against: the capacity of cowos" in message
    assert {name for name, _, _ in error.value.conflict} == {"limit", "contract_least_due"}


def test_balances_alone_can_be_impossible() -> None:
    # a fleet without early retirement under falling power: the power row has to give way
    network = power_chain(3, mw=(100.0, 50.0, 10.0)).with_values({"fleet.big.opening.us": 40e3})
    with pytest.raises(
        InfeasibleError, match="power of power_us is too small for the fleet that must run there in 2026-Q2"
    ):
        optimize(network)


def test_a_longer_tail_is_compared_year_by_year() -> None:
    from supply.optimizer.tail import tail_effect, with_tail

    network = power_chain(8, life_years=2.0, tail=0)
    short = tail_effect(optimize(network))
    assert short.year.tolist() == ["2026", "2027"]
    assert short.planned.sum() > 0
    settled = tail_effect(optimize(with_tail(network, 12)))
    assert settled.passed.all()
    longer = with_tail(network, 3)
    assert longer.values["resources.power_us.capacity"][-3:].tolist() == [800, 800, 800]
    assert with_tail(longer, 1).horizon.length == 9


def learning(cost: float, tool_capex: float) -> Any:
    """Three periods of 10 starts at 50 % yield, sold at 1; learning lifts it to 80 %, tools add starts."""
    from supply.learning import LearningProject, with_learning
    from supply.network import Expansion

    values = {
        "processes.make.output.x": 1,
        "processes.make.uses.fab": 1,
        "processes.make.yield": 0.5,
        "resources.fab.capacity": 10,
        "demand.x.price": 1,
        "expansions.tools.capex": tool_capex,
        "expansions.tools.greatest": 4,
        "expansions.tools.lead_time": 1,
    }
    network = Network.build(
        Horizon("2026-Q1", 3),
        [Material("x")],
        [Process("make", ("x",), uses=("fab",))],
        [Resource("fab", "fab")],
        values,
        demand=[Demand("x")],
        expansions=[Expansion("tools", "fab")],
    )
    return optimize(with_learning(network, LearningProject("study", "make", 0.8, cost, lead_time=1.0)))


def test_learning_and_tools_are_rivals() -> None:
    # learning: 0.3 x 10 in two periods = 6; a tool: 0.5 in two periods = 1, or 1.6 after learning
    only_learning = learning(cost=5.0, tool_capex=2.0)
    assert only_learning.objective == pytest.approx(5 + 8 + 8 - 5)
    only_tools = learning(cost=50.0, tool_capex=0.6)
    assert only_tools.objective == pytest.approx(5 + 7 + 7 - 4 * 0.6)
    neither = learning(cost=50.0, tool_capex=2.0)
    assert neither.objective == pytest.approx(15)
    assert neither.evidence.mip_gap == pytest.approx(0, abs=1e-9)
    from supply.learning import LearningProject, with_learning

    with pytest.raises(NetworkError, match="nowhere better"):
        with_learning(course_11_1(), LearningProject("s", "package", 0.9, 1.0))
    with pytest.raises(NetworkError, match="no such process: paint"):
        with_learning(course_11_1(), LearningProject("s", "paint", 0.9, 1.0))


def test_power_can_be_bought_and_shared_by_contract() -> None:
    from supply.network import Expansion

    network = ageing(np.ones(4))
    site = replace(
        network,
        expansions={"plant": Expansion("plant", "power", "owner")},
        contracts={"cap": Contract("cap", "power", ("x",))},
    )
    # 15 kW of grid; a plant of up to 5 kW a period, two periods later, at 1,000 USD per kW: worth 4 x 2191.5 at most
    bought = site.with_values(
        {
            "expansions.plant.capex": 1e6,
            "expansions.plant.greatest": 0.005,
            "expansions.plant.lead_time": 2,
            "contracts.cap.greatest_share": 1.0,
        }
    )
    solution = optimize(bought)
    assert solution.built.built.round(9).tolist() == [0.005, 0.005, 0, 0]
    assert fleet_of(solution) == [10, 15, 20, 25]
    shared = optimize(bought.with_values({"contracts.cap.greatest_share": 0.4}))
    # 40 % of a later plant earns one period of 0.4 x 2191.5, less than it costs
    assert fleet_of(shared) == [6, 6, 8, 8]


def test_rolling_with_lumps_decides_each_lump_once() -> None:
    from supply.network import Expansion
    from supply.optimizer.rolling import solve_rolling

    values = {
        "processes.make.output.x": 1,
        "processes.make.uses.fab": 1,
        "resources.fab.capacity": 5,
        "demand.x.price": 1,
        "expansions.e.capex": 1.5,
        "expansions.e.lump": 3,
        "expansions.e.greatest": 4,
    }
    network = Network.build(
        Horizon("2026-Q1", 4),
        [Material("x")],
        [Process("make", ("x",), uses=("fab",))],
        [Resource("fab")],
        values,
        demand=[Demand("x")],
        expansions=[Expansion("e", "fab")],
    )
    rolled = solve_rolling(network)
    assert rolled.built.built.round(9).tolist() == optimize(network).built.built.round(9).tolist() == [3, 3, 3, 0]
    assert rolled.sold.sold.round(9).tolist() == [8, 11, 14, 14]


def test_giants_are_refused_with_advice_before_anything_is_built() -> None:
    from supply.optimizer.errors import SizeError

    network = random_industry(skus=2, periods=12, tail=4, step="month")
    with pytest.raises(SizeError, match=r"quarters instead of months.*most_rows=") as error:
        Compiled(network, most_rows=500)
    told = int(str(error.value).split(" rows")[0].split()[-1].replace(",", ""))
    assert told == pytest.approx(Compiled(network).rows, rel=0.2)


def uncertain_demand(capex: float) -> Network:
    from supply.network import Expansion

    return Network.build(
        Horizon("2026-Q1", 1),
        [Material("x")],
        [Process("make", ("x",), uses=("fab",))],
        [Resource("fab")],
        {
            "processes.make.output.x": 1,
            "processes.make.uses.fab": 1,
            "resources.fab.capacity": 10,
            "demand.x.price": 1,
            "demand.x.quantity": 10,
            "expansions.e.capex": capex,
        },
        demand=[Demand("x")],
        expansions=[Expansion("e", "fab")],
    )


def test_two_stage_investment_risk_and_information() -> None:
    from supply.optimizer.stochastic import Case, cvar, two_stage

    cases = [Case(1, {"demand.x.quantity": 10}, "low"), Case(1, {"demand.x.quantity": 20}, "high")]
    # a unit more is sold in half of the cases: worth 0.5
    built = two_stage(uncertain_demand(0.4), cases)
    assert built.plan.built.tolist() == pytest.approx([10])
    assert built.expected == pytest.approx(0.5 * (10 - 4) + 0.5 * (20 - 4))
    # who knew would save 4 in the low case; who planned for 15 would have built 5
    assert built.value_of_information == pytest.approx(0.5 * 4)
    assert built.value_of_planning == pytest.approx(11 - (0.5 * 8 + 0.5 * 13))
    dear = two_stage(uncertain_demand(0.6), cases)
    assert dear.plan.empty
    assert dear.value_of_information == pytest.approx(0.5 * 4)
    careful = two_stage(uncertain_demand(0.4), cases, risk=1.0, alpha=0.5)
    assert careful.plan.empty
    assert (careful.cvar, built.cvar) == (pytest.approx(10), pytest.approx(6))
    assert cvar([1, 2, 3], [1 / 3] * 3, 0.5) == pytest.approx((1 / 3 + 2 / 6) / 0.5)
    with pytest.raises(ValueError, match="positive weight"):
        two_stage(uncertain_demand(0.4), [])
    with pytest.raises(ValueError, match="must lie in 0 to 1"):
        two_stage(uncertain_demand(0.4), cases, alpha=1.0)


def test_two_stage_with_one_case_is_the_plain_optimum() -> None:
    from supply.optimizer.stochastic import Case, two_stage

    network = random_industry(skus=2, periods=4, tail=2)
    found = two_stage(
        network, [Case(1, {"resources.cowos.capacity": 0.5 * network.values["resources.cowos.capacity"]})]
    )
    same = network.with_values({"resources.cowos.capacity": 0.5 * network.values["resources.cowos.capacity"]})
    assert found.expected == pytest.approx(optimize(same).objective_total, rel=1e-9)
    assert found.value_of_information == pytest.approx(0, abs=1e-3 * abs(found.expected))
