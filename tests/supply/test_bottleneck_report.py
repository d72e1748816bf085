"""Prices that can be trusted: differences both ways, ranges at kinks, gains, next binding, embodied use, limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from supply.bottleneck import embodied, limits, rents_by_owner, report, stranded
from supply.network import Demand, FleetSku, Horizon, Material, Network, Objective, Process, Region, Resource
from supply.network_examples import course_11_1, power_chain
from supply.network_random import random_industry
from supply.optimizer.compiled import Compiled, optimize
from supply.optimizer.prices import Perturbed, PriceError
from supply.potentials import fleet_mw, made_from


def test_course_report_names_packaging_then_dies() -> None:
    (binding,) = report(optimize(course_11_1())).bindings
    assert (binding.resource, binding.price, binding.unit) == ("cowos", pytest.approx(1), "accelerator")
    assert binding.plus_1_percent == {"finished": 100, "energised": 0, "h100e": 0}
    # dies take over exactly where packaging reaches 15,000
    assert (binding.next_resource, binding.next_at) == ("fab", pytest.approx(0.5, abs=1e-6))


def test_a_kink_is_shown_as_a_range_not_as_a_number() -> None:
    network = course_11_1(dies=10000, packaging=10000)  # both bind: either price may be anything from 0 to 1
    solution = optimize(network)
    rows = report(solution).bindings
    assert rows
    assert all((b.price_low, b.price_high) == (pytest.approx(0), pytest.approx(1)) and b.is_range for b in rows)


@pytest.mark.parametrize("seed", range(6))
def test_every_dual_lies_between_its_finite_differences(seed: int) -> None:
    solution = Compiled(random_industry(skus=3, periods=6, tail=2, seed=seed)).solve()
    rows = [
        i
        for i, (name, _) in enumerate(solution.compiled.engine.matrix.rows)
        if name in ("limit", "power", "contract_share_limit")
    ]
    tested = 0
    with Perturbed(solution) as perturbed:
        for i in rows:
            if solution.y[i] > 1e-6:
                found = perturbed.price_range([(i, 1.0)])
                assert found.low <= found.price <= found.high
                tested += 1
    assert tested >= 3


def test_a_wrong_dual_is_an_error() -> None:
    solution = Compiled(random_industry(skus=2, periods=4, tail=2)).solve()
    limits_ = [name in ("limit", "power") for name, _ in solution.compiled.engine.matrix.rows]
    i = int(np.argmax(np.where(limits_, solution.y, 0.0)))
    wrong = replace(solution, y=np.where(np.arange(len(solution.y)) == i, 1.1 * solution.y, solution.y))
    with Perturbed(wrong) as perturbed, pytest.raises(PriceError, match="outside its finite differences"):
        perturbed.price_range([(i, 1.0)])


def test_gain_of_one_percent_is_what_a_new_solve_gives() -> None:
    network = random_industry(skus=3, periods=6, tail=2, extras=False)
    solution = optimize(network)
    binding = max(report(solution, next_for=0).bindings, key=lambda b: b.rent)
    path = f"resources.{binding.resource}.capacity"
    changed = network.values[path].copy()
    changed[binding.t] *= 1.01
    after = optimize(network.with_values({path: changed}))
    worth = after.objective_total - solution.objective_total
    expected = binding.price * solution.discount[binding.t] * 0.01 * binding.capacity
    assert worth == pytest.approx(expected, rel=0.05)
    assert binding.plus_1_percent is not None
    assert set(binding.plus_1_percent) == {"finished", "energised", "h100e"}


def test_perturbing_leaves_the_model_as_it_was() -> None:
    compiled = Compiled(random_industry(skus=2, periods=4, tail=2))
    solution = compiled.solve()
    report(solution)
    limits(solution)
    assert compiled.solve().objective_total == pytest.approx(solution.objective_total, rel=1e-12)


def test_report_after_other_draws_belongs_to_its_own_numbers() -> None:
    network = random_industry(skus=2, periods=4, tail=2)
    compiled = Compiled(network)
    first = compiled.solve()
    expected = report(first, next_for=0).table
    compiled.update({"resources.cowos.capacity": 0.3 * network.values["resources.cowos.capacity"]}).solve()
    pd.testing.assert_frame_equal(report(first, next_for=0).table, expected)


@pytest.mark.parametrize("seed", range(4))
def test_value_is_cost_plus_rents_for_every_accelerator_that_is_energised(seed: int) -> None:
    solution = Compiled(random_industry(skus=4, periods=8, tail=4, seed=seed)).solve()
    table = embodied(solution).identity
    assert len(table) > 5
    assert table.gap.max() < 1e-6
    contributions = embodied(solution).table.groupby(["sku", "region", "t"]).contribution_usd.sum()
    rents = table.set_index(["sku", "region", "t"]).rents_usd
    assert contributions.sub(rents).abs().max() < 1e-4


def test_embodied_amounts_include_yields_of_every_stage() -> None:
    values: dict[str, Any] = {
        "processes.die.output.die": 50,
        "processes.die.uses.fab": 1,
        "processes.die.yield": 0.8,
        "processes.pack.input.die": 2,
        "processes.pack.output.x": 1,
        "processes.pack.yield": 0.9,
        "processes.pack.uses.cowos": 0.1,
        "resources.fab.capacity": 10,
        "resources.cowos.capacity": 100,
        "fleet.x.value": 1,
        "fleet.x.kw_planning": 1,
    }
    network = Network.build(
        Horizon("2026-Q1", 1), [Material("die"), Material("x")],
        [Process("die", ("die",), uses=("fab",)), Process("pack", ("x",), ("die",), ("cowos",))],
        [Resource("fab"), Resource("cowos")], values, fleet=[FleetSku("x", "x", ("us",))],
    )  # fmt: skip
    found = embodied(optimize(network)).amounts(0)
    assert found.loc["fab", "x"] == pytest.approx(2 / 0.9 / (50 * 0.8))
    assert found.loc["cowos", "x"] == pytest.approx(0.1 / 0.9)


def test_power_limited_and_chip_limited_megawatts() -> None:
    tight = limits(optimize(power_chain(4, life_years=5.0)))  # plenty of chips
    assert (tight.power_limited_mw > 0).all()
    assert (tight.chip_limited_mw == 0).all()
    network = power_chain(4, life_years=5.0, mw=(1e5, 1e5, 1e5, 1e5)).with_values({"resources.fab.capacity": 100})
    loose = limits(optimize(network))
    assert (loose.chip_limited_mw > 0).all()
    # 100 wafers a period at 0.02 a piece: 5,000 small ones of 1.2 kW (worth more per wafer), 6 MW more each period
    assert loose.built_mw.to_numpy() == pytest.approx([6, 12, 18, 24])
    assert loose.without_chip_rows_mw.to_numpy() == pytest.approx([1e5] * 4)


def test_rents_by_owner() -> None:
    network = course_11_1()
    owned = replace(network, resources={r: replace(row, owner=f"owner of {r}") for r, row in network.resources.items()})
    table = rents_by_owner(optimize(owned)).set_index("owner").rent
    assert table.to_dict() == {"owner of cowos": pytest.approx(10000), "owner of fab": 0}


def test_stranded_counts_finished_accelerators_that_power_keeps_waiting() -> None:
    network = Network.build(
        Horizon("2026-Q1", 3),
        [Material("x")],
        [Process("make", ("x",), uses=("fab",), stage="packaging")],
        [Resource("fab"), Resource("power", "power", "MW", region="us")],
        {
            "processes.make.output.x": 1,
            "processes.make.uses.fab": 1,
            "resources.fab.capacity": 10,
            "resources.power.capacity": [0.004, 0.004, 0.008],
            "opening.stock.x": 20,
            "fleet.x.value": 1,
            "fleet.x.kw_planning": 1,
        },
        fleet=[FleetSku("x", "x", ("us",))],
        regions=[Region("us")],
    )
    table = stranded(optimize(network))
    # 20 in stock, 4 switched on at once, none in the second period, 4 in the third
    assert table.accelerators.tolist() == pytest.approx([16, 12, 8])
    assert table.mw.tolist() == pytest.approx([0.016, 0.012, 0.008])
    # each takes two kilowatts: half as many are switched on, and those that wait count twice
    double = stranded(optimize(network.with_values({"fleet.x.kw_planning": 2})))
    assert double.accelerators.tolist() == pytest.approx([18, 16, 14])
    assert double.mw.tolist() == pytest.approx([0.036, 0.032, 0.028])
    # nothing is stranded where less than the next period takes waits
    none = stranded(optimize(network.with_values({"opening.stock.x": 4, "resources.fab.capacity": 4})))
    assert (none.accelerators == 0).all() and (none.mw == 0).all()


def test_a_share_that_binds_is_part_of_the_price_of_the_resource() -> None:
    from supply.network import Contract

    values: dict[str, Any] = {"resources.line.capacity": 10, "contracts.big.greatest_share": 0.6}
    for p, price in (("a", 3.0), ("b", 1.0)):
        values |= {f"processes.{p}.output.{p}": 1, f"processes.{p}.uses.line": 1, f"demand.{p}.price": price}
    network = Network.build(
        Horizon("2026-Q1", 1),
        [Material("a"), Material("b")],
        [Process(p, (p,), uses=("line",)) for p in "ab"],
        [Resource("line")],
        {**values, "demand.b.quantity": 1},
        demand=[Demand("a"), Demand("b")],
        contracts=[Contract("big", "line", ("a",))],
    )
    solution = optimize(network)
    # 6 of a and 1 of b: the line has room, but one more unit of it gives 0.6 more to a, worth 3 each
    assert solution.resources.utilisation.tolist() == pytest.approx([0.7])
    (binding,) = report(solution).bindings
    assert (binding.resource, binding.price, binding.shares) == ("line", pytest.approx(1.8), ("big",))
    assert (binding.price_low, binding.price_high) == (pytest.approx(1.8), pytest.approx(1.8))
    assert binding.plus_1_percent is not None
    assert binding.plus_1_percent["finished"] == pytest.approx(0.06)


def test_lumpy_report_says_that_prices_hold_given_the_plan() -> None:
    from supply.network import Expansion

    network = Network.build(
        Horizon("2026-Q1", 3),
        [Material("x")],
        [Process("make", ("x",), uses=("fab",))],
        [Resource("fab")],
        {
            "processes.make.output.x": 1,
            "processes.make.uses.fab": 1,
            "resources.fab.capacity": 5,
            "demand.x.price": 1,
            "expansions.e.capex": 1,
            "expansions.e.lump": 3,
            "expansions.e.greatest": 4,
        },
        demand=[Demand("x")],
        expansions=[Expansion("e", "fab")],
        objective=Objective("value"),
    )
    found = report(optimize(network))
    assert "given the plan" in found.notes[0]
    assert [b.price for b in found.bindings] == pytest.approx([1, 1, 1])
    assert all(np.isfinite([b.price_low, b.price_high]).all() for b in found.bindings)


def test_price_map_gives_the_same_prices_at_once() -> None:
    from supply.optimizer.price_map import PriceMap

    compiled = Compiled(random_industry(skus=3, periods=6, tail=2))
    solution = compiled.solve()
    found = PriceMap(compiled)(solution.y, solution.values) / solution.discount
    for k, r in enumerate(compiled.network.resources):
        expected = [solution.price(r, t) for t in range(compiled.network.horizon.length)]
        assert found[k].tolist() == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert (found > 0).sum() > 5


def test_identity_of_the_economics_room_holds_with_prices_read_from_the_resource_table() -> None:
    from econ.scarcity import check_marginal_identity

    solution = Compiled(random_industry(skus=3, periods=6, tail=3, extras=False, seed=4)).solve()
    found, labels = embodied(solution), solution.network.horizon.labels()
    checked = 0
    for row in found.identity.itertuples():
        mine = found.table.query("sku == @row.sku and region == @row.region and t == @row.t")
        prices, uses = {}, {}
        for k, part in enumerate(mine.itertuples()):
            name = f"{part.row}:{part.subject}:{part.row_period}:{k}"
            if part.row in ("limit", "power"):
                tau = labels.index(part.row_period)
                price = solution.price(part.subject, tau) * solution.discount[tau] / solution.discount[row.t]
            else:  # opening stock: a rent of its holder, priced by the stock itself
                price = part.contribution_usd / part.amount
            prices[name], uses[name] = price, part.amount
        assert check_marginal_identity(row.value_usd, row.cost_usd, prices, uses) < 1e-6
        checked += 1
    assert checked > 5


def test_an_accelerator_without_planning_power_takes_no_megawatts() -> None:
    solution = optimize(power_chain(4, life_years=5.0))
    unpowered = {path: value for path, value in solution.values.items() if not path.endswith(".kw_planning")}
    assert (fleet_mw(solution) > 0).all()
    assert fleet_mw(replace(solution, values=unpowered)).tolist() == [0.0] * 4


def test_what_is_made_from_a_material_ends_where_parts_are_recycled() -> None:
    values = {"processes.make.input.x": 1, "processes.make.output.y": 1, "processes.back.input.y": 1}
    network = Network.build(
        Horizon("2026-Q1", 1),
        [Material("x"), Material("y"), Material("z")],
        [Process("make", ("y",), ("x",)), Process("back", ("x",), ("y",))],
        [],
        {**values, "processes.back.output.x": 0.5},
    )
    assert made_from(network, "x") == made_from(network, "y") == {"x", "y"}
    assert made_from(network, "z") == {"z"}
