"""Every mechanism of the optimum on a network small enough to solve by hand."""

from __future__ import annotations

from typing import Any

import pytest

from supply.network import (
    Contract,
    Demand,
    Disruption,
    Expansion,
    Horizon,
    Material,
    Network,
    Objective,
    Process,
    Resource,
)
from supply.network_examples import course_11_1
from supply.optimizer.compiled import Compiled, optimize
from supply.optimizer.errors import InfeasibleError, UnboundedError
from supply.optimizer.parameters import Values, disruption_factor


def line(periods: int = 4, capacity: object = 10.0, *, tail: int = 0, step: str = "quarter", **extra: Any) -> Network:
    """One process `make` of one product `x`, capacity of `fab`, sale at price 1 (natural units, nothing scaled)."""
    values: dict[str, Any] = {
        "processes.make.output.x": 1,
        "processes.make.uses.fab": 1,
        "resources.fab.capacity": capacity,
        "demand.x.price": 1,
    }
    values |= extra.pop("values", {})
    demand = extra.pop("demand", [Demand("x")])
    return Network.build(
        Horizon("2026-Q1" if step == "quarter" else "2026-01", periods, step, tail),
        extra.pop("materials", [Material("x")]),
        extra.pop("processes", [Process("make", ("x",), uses=("fab",), stage="fab")]),
        extra.pop("resources", [Resource("fab", "fab")]),
        values,
        demand=demand,
        **{"objective": Objective("value"), **extra},
    )


def sold(network: Network, material: str = "x") -> list[float]:
    return [round(float(v), 9) for v in optimize(network).sold.query("material == @material").sold]


def test_course_case_has_its_three_known_answers() -> None:
    solution = optimize(course_11_1())
    assert solution.objective == pytest.approx(10000, rel=1e-12)
    assert solution.finished.finished.tolist() == [pytest.approx(10000)]
    assert (solution.price("fab", 0), solution.price("cowos", 0)) == (0.0, pytest.approx(1.0, rel=1e-12))
    assert solution.evidence.good


def test_whole_lead_time_delays_and_the_last_starts_bring_nothing() -> None:
    assert sold(line(values={"processes.make.lead_time": 2})) == [0, 0, 10, 10]


def test_fractional_lead_time_spreads_a_start_over_two_periods() -> None:
    # 10 started in each period: a quarter of them arrives one period later than the rest
    assert sold(line(values={"processes.make.lead_time": 1.25})) == [0, 7.5, 10, 10]


def test_yield_of_the_start_period_applies_and_inputs_are_spent_at_start() -> None:
    network = line(2, [10, 10], values={"processes.make.yield": [0.5, 0.8], "processes.make.lead_time": 1})
    assert sold(network) == [0, 5]


def test_opening_pipeline_and_stock_arrive_before_anything_is_started() -> None:
    values = {"processes.make.lead_time": 1.5, "opening.pipeline.make": 4, "opening.stock.x": 3}
    # starts of 4 in each period before: half a period's worth late. t0: stock 3 + 4; t1: half of 4 + half of 10
    assert sold(line(3, 10, values=values)) == [7, 7, 10]


def test_opening_at_capacity_fills_the_pipeline() -> None:
    from supply.network import Opening

    network = line(3, 10, values={"processes.make.lead_time": 1}, opening=Opening(at_capacity=True))
    assert sold(network) == [10, 10, 10]
    assert "1 processes from a warm-up" in optimize(network).notes[0]


def test_stock_is_carried_to_the_dear_period_and_pays_its_holding_cost() -> None:
    values = {"demand.x.price": [1, 1, 2], "demand.x.quantity": [10, 10, 25], "materials.x.holding_cost": 0.1}
    solution = optimize(line(3, 10, values=values))
    # period 2 buys 25 at 2: 10 made then, 10 kept from period 1 (worth 1.9 against 1), 5 from period 0 (1.8)
    assert solution.sold.sold.round(9).tolist() == [5, 0, 25]
    assert solution.stocks.stock.round(9).tolist() == [5, 15, 0]
    assert solution.objective == pytest.approx(5 + 50 - 0.1 * (5 + 15))


def test_tail_is_solved_but_not_reported() -> None:
    solution = optimize(line(2, 10, tail=2, values={"processes.make.lead_time": 1}))
    assert solution.sold.t.tolist() == [0, 1]
    assert solution.activities.starts.tolist() == [10, 10]  # the tail makes the last starts worth while
    assert solution.objective == pytest.approx(10)
    assert solution.objective_total == pytest.approx(30)


def test_discount_rate_is_yearly() -> None:
    assert optimize(line(5, 1, values={"discount_rate": 0.1})).objective == pytest.approx(
        sum(1.1 ** (-t / 4) for t in range(5))
    )


def two_suppliers(**values: Any) -> Network:
    return line(
        1,
        10,
        processes=[
            Process("a", ("x",), uses=("fab",), supplier="A"),
            Process("b", ("x",), uses=("fab",), supplier="B"),
        ],
        values={
            **{f"processes.{p}.output.x": 1 for p in "ab"},
            **{f"processes.{p}.uses.fab": 1 for p in "ab"},
            "processes.a.cost": 0.1,
            "processes.b.cost": 0.3,
            **values,
        },
        contracts=[Contract("share", "fab", ("a",)), Contract("due", "fab", ("b",))],
    )


def starts(solution: Any, t: int = 0) -> dict[str, float]:
    table = solution.activities.query("t == @t")
    return {p: round(float(v), 9) for p, v in zip(table.process, table.starts, strict=True)}


def test_greatest_share_of_a_contract() -> None:
    assert starts(optimize(two_suppliers(**{"contracts.share.greatest_share": 0.7}))) == {"a": 7, "b": 3}
    assert starts(optimize(two_suppliers(**{"contracts.share.greatest": 4}))) == {"a": 4, "b": 6}


def test_hard_least_share_and_take_or_pay() -> None:
    assert starts(optimize(two_suppliers(**{"contracts.due.least_share": 0.25}))) == {"a": 7.5, "b": 2.5}
    # missing one unit costs 0.15 less than the 0.2 that b costs more: pay
    paid = optimize(two_suppliers(**{"contracts.due.least": 4, "contracts.due.take_or_pay": 0.15}))
    assert starts(paid) == {"a": 10, "b": 0}
    assert paid.objective == pytest.approx(10 * 0.9 - 4 * 0.15)
    taken = optimize(two_suppliers(**{"contracts.due.least": 4, "contracts.due.take_or_pay": 0.25}))
    assert starts(taken) == {"a": 6, "b": 4}


def test_fee_is_not_in_the_price_of_the_resource() -> None:
    paid = optimize(two_suppliers(**{"contracts.due.least": 4, "contracts.due.take_or_pay": 0.15}))
    assert paid.price("fab", 0) == pytest.approx(0.9)


def test_contract_table_shows_what_loosening_is_worth() -> None:
    table = optimize(two_suppliers(**{"contracts.share.greatest_share": 0.7})).contracts
    (row,) = table.itertuples()
    assert (row.contract, row.rule, row.used, row.limit, row.binds) == ("share", "greatest share", 7, 7, True)
    assert row.price == pytest.approx(0.2)  # one more of a (0.9) instead of b (0.7)
    due = optimize(two_suppliers(**{"contracts.due.least_share": 0.25})).contracts
    assert due.price.tolist() == pytest.approx([0.2])


def test_qualification_window_by_product_and_date() -> None:
    network = line(4, 10, processes=[Process("make", ("x",), uses=("fab",), first=1, last=2)])
    assert sold(network) == [0, 10, 10, 0]


def test_substitute_takes_over_and_lowers_the_price() -> None:
    def chain(with_b: bool) -> Any:
        processes = [Process("a", ("x",), uses=("fab",))] + ([Process("b", ("x",), uses=("other",))] if with_b else [])
        values = {f"processes.{p}.output.x": 1 for p in "ab"} | {
            "processes.b.cost": 0.4,
            "resources.other.capacity": 50,
        }
        values |= {"processes.a.uses.fab": 1, "processes.b.uses.other": 1, "demand.x.quantity": 30}
        return optimize(line(1, 10, processes=processes, resources=[Resource("fab"), Resource("other")], values=values))

    assert chain(False).price("fab", 0) == pytest.approx(1.0)
    assert chain(True).price("fab", 0) == pytest.approx(0.4)  # only the dearer route is saved


def test_co_products_from_bins_share_one_start_and_may_be_thrown_away() -> None:
    values = {
        "processes.make.output.x": 1,
        "processes.make.output.y": 1,
        "processes.make.yield.x": 0.6,
        "processes.make.yield.y": 0.3,
        "demand.y.price": 0.5,
        "demand.y.quantity": 2,
        "materials.y.holding_cost": 5,
    }
    solution = optimize(
        line(
            1,
            10,
            materials=[Material("x"), Material("y")],
            processes=[Process("make", ("x", "y"), uses=("fab",))],
            demand=[Demand("x"), Demand("y")],
            values=values,
        )
    )
    assert solution.sold.set_index("material").sold.to_dict() == {"x": pytest.approx(6), "y": pytest.approx(2)}
    assert solution.price("fab", 0) == pytest.approx(0.6)  # one more start: 0.6 x, its y has no buyer left


def test_a_process_may_give_part_of_its_input_back_at_once() -> None:
    # refining takes 4 of x, gives 1 back and makes 1 y
    values = {"processes.refine.input.x": 4, "processes.refine.output.x": 1, "processes.refine.output.y": 1}
    network = line(
        1,
        12,
        materials=[Material("x"), Material("y")],
        processes=[Process("make", ("x",), uses=("fab",)), Process("refine", ("x", "y"), ("x",))],
        demand=[Demand("y")],
        values={**values, "demand.y.price": 1},
    )
    assert sold(network, "y") == [4]


def test_ramp_from_a_floor_and_run_down() -> None:
    ramp = {"processes.make.ramp": 2, "processes.make.floor": 1, "opening.pipeline.make": 0}
    assert sold(line(4, 10, values=ramp)) == [1, 3, 7, 10]
    # a unit now (worth 1) obliges to 0.5, 0.25 and 0.125 later, at a cost of 1 each: 0.125 left, so all 10 are made
    falling = line(4, 10, values={"demand.x.price": [1, 0, 0, 0], "processes.make.cost": [0, 1, 1, 1]})
    kept = falling.with_values({"processes.make.run_down": 0.5})
    assert optimize(falling).activities.starts.round(9).tolist() == [10, 0, 0, 0]
    assert optimize(kept).activities.starts.round(9).tolist() == [10, 5, 2.5, 1.25]
    assert optimize(kept).objective == pytest.approx(10 - 8.75)


def test_lost_sales_and_backlog_with_cancellations() -> None:
    values = {"demand.x.quantity": [15, 0, 0]}
    assert sold(line(3, 10, values=values)) == [10, 0, 0]
    assert sold(line(3, 10, values=values, demand=[Demand("x", "backlog")])) == [10, 5, 0]
    cancelling = optimize(line(3, 10, values={**values, "demand.x.cancel": 0.4}, demand=[Demand("x", "backlog")]))
    assert cancelling.sold.sold.round(9).tolist() == [10, 3, 0]


def expanding(**values: Any) -> Network:
    return line(
        4,
        10,
        expansions=[Expansion("line", "fab", owner="foundry", first=0)],
        values={"expansions.line.capex": 1.2, "expansions.line.lead_time": 1, "expansions.line.greatest": 5, **values},
    )


def test_continuous_expansion_pays_only_early() -> None:
    solution = optimize(expanding())
    # a unit built in t adds one unit in t+1 .. 3: worth 3, 2, 1 against 1.2
    assert solution.built.built.round(9).tolist() == [5, 5, 0, 0]
    assert sold(expanding()) == [10, 15, 20, 20]
    assert solution.resources.capacity.round(9).tolist() == [10, 15, 20, 20]


def test_expansion_life_ends() -> None:
    assert sold(expanding(**{"expansions.line.life": 0.5, "expansions.line.greatest": [5, 0, 0, 0]})) == [
        10,
        15,
        15,
        10,
    ]


def test_lumpy_expansion_gives_prices_given_the_plan() -> None:
    lumpy = optimize(expanding(**{"expansions.line.lump": 4, "expansions.line.capex": 1.2}))
    assert lumpy.built.built.round(9).tolist() == [4, 4, 0, 0]  # at most 5 a period: one lump of 4
    assert lumpy.evidence.mip_gap == pytest.approx(0, abs=1e-9)
    prices = lumpy.resources.price.tolist()
    assert prices == pytest.approx([1, 1, 1, 1])
    assert lumpy.evidence.good


def test_capex_budget_is_a_cash_ledger() -> None:
    # 3 a period, capex 1.2: 2.5 units in the first period; what is left is kept
    solution = optimize(expanding(**{"costs.capex_budget.foundry": [3, 2, 9, 9]}))
    assert solution.built.built.round(6).tolist() == [2.5, round(2 / 1.2, 6), 0, 0]
    late = optimize(expanding(**{"costs.capex_budget.foundry": [0, 3, 0, 0]}))
    assert late.built.built.round(6).tolist() == [0, 2.5, 0, 0]


def test_disruption_of_a_resource_with_ramp_back() -> None:
    hit = line(
        5, 10, disruptions=[Disruption("quake", "fab", 1, 1, ramp_back=2)], values={"disruptions.quake.remaining": 0.2}
    )
    assert sold(hit) == [10, 2, 6, 10, 10]


def test_disruption_of_a_process_leaves_the_other_process_alone() -> None:
    network = line(
        1,
        10,
        processes=[Process("a", ("x",), uses=("fab",)), Process("b", ("x",), uses=("fab",))],
        disruptions=[Disruption("recall", "a", 0, 0, target="process")],
        values={
            **{f"processes.{p}.output.x": 1 for p in "ab"},
            **{f"processes.{p}.uses.fab": 1 for p in "ab"},
            "processes.b.cost": 0.5,
            "disruptions.recall.remaining": 0.3,
        },
    )
    assert starts(optimize(network)) == {"a": 3, "b": 7}


def test_demand_that_must_be_met_but_cannot_is_explained() -> None:
    network = line(2, 20, values={"demand.x.quantity": 30}, demand=[Demand("x", "never")])
    with pytest.raises(InfeasibleError, match=r"demand for x cannot be met in 2026-Q1: short by 10 unit") as error:
        optimize(network)
    assert [(r.period, r.amount) for r in error.value.relaxations] == [
        ("2026-Q1", pytest.approx(10)),
        ("2026-Q2", pytest.approx(10)),
    ]


def test_unbounded_names_what_grows() -> None:
    free = line(1, 10, processes=[Process("make", ("x",))], resources=[])
    with pytest.raises(UnboundedError, match="x can grow without limit through make"):
        optimize(free)


def test_after_an_infeasible_draw_the_same_model_solves_again() -> None:
    compiled = Compiled(line(1, 20, values={"demand.x.quantity": 15}, demand=[Demand("x", "never")]))
    assert compiled.solve().objective == pytest.approx(15)
    with pytest.raises(InfeasibleError):
        compiled.update({"resources.fab.capacity": 10}).solve()
    assert compiled.reset().solve().objective == pytest.approx(15)


def test_disruptions_meet_only_their_own_subject_and_keep_the_loss_of_their_last_period() -> None:
    lost = {"disruptions.quake.remaining": [0.9, 0.4, 0.2, 0.1]}
    hit = line(4, 10, disruptions=[Disruption("quake", "fab", 0, 1, ramp_back=2)], values=lost)
    values = Values(dict(hit.values), 4)
    # 0.4 is left in the last period of two; half of the 0.6 that is lost comes back each period
    assert disruption_factor(hit, values, "resource", "fab").tolist() == pytest.approx([0.9, 0.4, 0.7, 1.0])
    at_once = line(4, 10, disruptions=[Disruption("quake", "fab", 0, 0, ramp_back=4)], values=lost)
    assert disruption_factor(at_once, values, "resource", "fab").tolist() == pytest.approx([0.9, 0.925, 0.95, 0.975])
    for target, subject in (("resource", "other"), ("process", "fab"), ("process", "make")):
        assert disruption_factor(hit, values, target, subject).tolist() == [1.0] * 4
