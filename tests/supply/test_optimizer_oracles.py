"""The optimum against what does not share its code: scipy, max-flow, brute force, differences, a fresh compile."""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from supply.network import Demand, Expansion, Horizon, Material, Network, Objective, Process, Resource
from supply.network_examples import course_11_1, power_chain
from supply.network_random import random_industry, random_small
from supply.optimizer.compiled import Compiled, optimize
from supply.optimizer.formulation import formulate
from supply.optimizer.matrix import Entries, edited_entries, fresh_entries


def by_scipy(network: Network) -> Any:
    """The same problem assembled by other means: dense, natural units, straight from the book of recipes."""
    v, length = network.values, network.horizon.length
    materials, processes = list(network.materials), list(network.processes)
    x = {(p, t): i for i, (p, t) in enumerate(itertools.product(processes, range(length)))}
    s = {(m, t): len(x) + i for i, (m, t) in enumerate(itertools.product(materials, range(length)))}
    q = {(m, t): len(x) + len(s) + i for i, (m, t) in enumerate(itertools.product(network.demand, range(length)))}
    size = len(x) + len(s) + len(q)
    d = (1 + v["discount_rate"][0]) ** (-0.25 * np.arange(length))
    c = np.zeros(size)
    for (p, t), j in x.items():
        c[j] -= d[t] * v[f"processes.{p}.cost"][t]
    for (m, t), j in s.items():
        c[j] -= d[t] * v[f"materials.{m}.holding_cost"][t]
    for (m, t), j in q.items():
        c[j] += d[t] * v[f"demand.{m}.price"][t]
    a_eq, b_eq, a_ub, b_ub = [], [], [], []
    for m, t in itertools.product(materials, range(length)):
        row = np.zeros(size)
        row[s[m, t]] -= 1
        if t:
            row[s[m, t - 1]] += 1
        if (m, t) in q:
            row[q[m, t]] -= 1
        for p in processes:
            process, lead = network.processes[p], float(v[f"processes.{p}.lead_time"][0])
            if m in process.input:
                row[x[p, t]] -= v[f"processes.{p}.input.{m}"][t]
            for lag, weight in ((int(lead), 1 - lead % 1), (int(lead) + 1, lead % 1)):
                if m in process.output and t >= lag:
                    made = v[f"processes.{p}.output.{m}"][t - lag] * v[f"processes.{p}.yield"][t - lag]
                    row[x[p, t - lag]] += weight * made
        a_eq.append(row)
        b_eq.append(0.0)
    for r, t in itertools.product(network.resources, range(length)):
        row = np.zeros(size)
        for p in processes:
            if r in network.processes[p].uses:
                row[x[p, t]] += v[f"processes.{p}.uses.{r}"][t]
        a_ub.append(row)
        b_ub.append(v[f"resources.{r}.capacity"][t])
    for (m, t), j in q.items():
        row = np.zeros(size)
        row[j] = 1
        a_ub.append(row)
        b_ub.append(v[f"demand.{m}.quantity"][t])
    return linprog(-c, A_ub=np.array(a_ub), b_ub=b_ub, A_eq=np.array(a_eq), b_eq=b_eq, method="highs")


@pytest.mark.parametrize("seed", range(25))
def test_parity_with_scipy_on_random_networks(seed: int) -> None:
    network = random_small(seed)
    mine, other = Compiled(network).solve(), by_scipy(network)
    assert mine.objective_total == pytest.approx(-other.fun, rel=1e-9, abs=1e-9)
    duals = -other.ineqlin.marginals[: len(network.resources) * network.horizon.length]
    if mine.objective_total > 1e-6:
        prices = np.array(
            [[mine.price(r, t) * mine.discount[t] for t in range(network.horizon.length)] for r in network.resources]
        )
        rents = prices.ravel() * np.concatenate([network.values[f"resources.{r}.capacity"] for r in network.resources])
        caps = np.concatenate([network.values[f"resources.{r}.capacity"] for r in network.resources])
        if (
            np.abs(prices.ravel() - duals).max() > 1e-7
        ):  # degenerate: both must still be supporting prices of one optimum
            assert abs(rents.sum() - duals @ caps) < abs(mine.objective_total)


def max_flow_network(seed: int) -> tuple[Network, float]:
    """Sources through middle sites to sinks; every arc a process with its own capacity: the optimum is a max-flow."""
    rng = np.random.default_rng(seed)
    graph = nx.DiGraph()
    values: dict[str, Any] = {"demand.end.price": 1}
    processes, resources = [], []
    arcs = [("src", f"a{i}") for i in range(3)]
    arcs += [(f"a{i}", f"b{j}") for i in range(3) for j in range(3) if rng.random() < 0.7]
    arcs += [(f"b{j}", "end") for j in range(3) if any(b == f"b{j}" for _, b in arcs)]
    for a, b in arcs:
        capacity = float(rng.integers(1, 20))
        graph.add_edge(a, b, capacity=capacity)
        p = f"{a}_{b}"
        processes.append(Process(p, (b,), () if a == "src" else (a,), (p,)))
        resources.append(Resource(p))
        values |= {f"processes.{p}.output.{b}": 1, f"processes.{p}.uses.{p}": 1, f"resources.{p}.capacity": capacity}
        if a != "src":
            values[f"processes.{p}.input.{a}"] = 1
    names = sorted({b for _, b in arcs})
    network = Network.build(
        Horizon("2026-Q1", 1), [Material(m) for m in names], processes, resources, values,
        demand=[Demand("end")], objective=Objective("units"),
    )  # fmt: skip
    return network, float(nx.maximum_flow_value(graph, "src", "end"))


@pytest.mark.parametrize("seed", range(10))
def test_max_flow(seed: int) -> None:
    network, flow = max_flow_network(seed)
    assert optimize(network).objective == pytest.approx(flow, abs=1e-9)


def test_max_flow_prices_mark_a_minimum_cut() -> None:
    network, flow = max_flow_network(3)
    solution = optimize(network)
    table = solution.resources
    assert float((table.price * table.capacity).sum()) == pytest.approx(flow)  # strong duality: capacity of the cut


def lumpy_line(prices: Any, capex: float, lump: float) -> Network:
    values = {
        "processes.make.output.x": 1,
        "processes.make.uses.fab": 1,
        "resources.fab.capacity": 3,
        "demand.x.price": prices,
        "demand.x.quantity": 8,
        "expansions.e.capex": capex,
        "expansions.e.lump": lump,
        "expansions.e.greatest": 2 * lump,
    }
    return Network.build(
        Horizon("2026-Q1", 3),
        [Material("x")],
        [Process("make", ("x",), uses=("fab",))],
        [Resource("fab")],
        values,
        demand=[Demand("x")],
        expansions=[Expansion("e", "fab")],
    )


@pytest.mark.parametrize("seed", range(4))
def test_lumps_by_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    prices, capex, lump = rng.uniform(1, 3, 3), float(rng.uniform(1, 5)), float(rng.integers(2, 5))
    plans = itertools.product(range(3), repeat=3)
    best = max(_best_sales(prices, 3 + np.cumsum(np.array(n) * lump), 8.0) - capex * lump * sum(n) for n in plans)
    solution = optimize(lumpy_line(prices, capex, lump))
    assert solution.objective == pytest.approx(best, abs=1e-7)
    assert solution.evidence.mip_gap == pytest.approx(0, abs=1e-6)
    assert solution.evidence.good


def _best_sales(prices: Any, made: Any, most: float) -> float:
    """Best sale of goods made over time, at most `most` a period, stock free: fill the dearest periods first."""
    left, total = np.cumsum(made), 0.0
    sold = np.zeros(3)
    for t in sorted(range(3), key=lambda k: -prices[k]):
        room = min(left[k] - sold[: k + 1].sum() for k in range(t, 3))
        sold[t] = max(0.0, min(most, room))
        total += prices[t] * sold[t]
    return float(total)


def networks() -> list[Network]:
    return [
        course_11_1(),
        power_chain(6, life_years=3.0, tail=4),
        random_industry(skus=3, periods=6, tail=2),
        random_industry(skus=4, suppliers=1, regions=3, periods=5, tail=3, extras=False, seed=2),
        random_small(4),
    ]


@settings(max_examples=6, deadline=None)
@given(which=st.integers(0, 4), seed=st.integers(0, 10_000))
def test_edited_matrix_equals_a_fresh_compile_entry_by_entry(which: int, seed: int) -> None:
    network = networks()[which]
    compiled = Compiled(network)
    rng = np.random.default_rng(seed)
    editable = [p for p in network.values if not p.endswith((".lead_time", ".discount", ".life")) or p == "costs.life"]
    chosen = rng.choice(editable, size=max(1, len(editable) // 2), replace=False)
    changes = {p: network.values[p] * rng.uniform(0.8, 1.0, network.horizon.length) for p in chosen}
    compiled.update(changes)
    fresh = formulate(network.with_values(changes), compiled.scale)
    expected = fresh_entries(fresh, fresh.table.theta())
    found = edited_entries(compiled.engine.matrix, compiled.theta)
    assert set(expected) == set(found)
    assert max(abs(found[k] - v) for k, v in expected.items()) < 1e-12
    # and the solver holds the same numbers
    lp = compiled.engine.highs.getLp()
    assert np.allclose(np.asarray(lp.col_cost_), compiled.engine.cost, rtol=0, atol=1e-12)


def test_change_of_a_lead_time_compiles_again_and_agrees_with_a_new_model() -> None:
    network = random_industry(skus=2, periods=6, tail=2)
    change = {"processes.die0.lead_time": np.full(network.horizon.length, 2.4)}
    compiled = Compiled(network)
    nominal = compiled.solve().objective_total
    edited = compiled.update(change).solve().objective_total
    assert edited == pytest.approx(Compiled(network.with_values(change)).solve().objective_total, rel=1e-9)
    assert edited != pytest.approx(nominal, rel=1e-6)
    assert compiled.reset().solve().objective_total == pytest.approx(nominal, rel=1e-9)


def test_a_number_that_was_not_there_may_be_added_and_taken_back() -> None:
    compiled = Compiled(random_small(4))
    nominal = compiled.solve().objective_total
    once = {f"processes.{p}.{what}": 0.0 for p in compiled.network.processes for what in ("ramp", "floor")}
    limited = compiled.update(once).solve()  # starts in the first period only
    assert limited.objective_total < nominal
    assert compiled.reset().solve().objective_total == pytest.approx(nominal, rel=1e-9)


def test_updates_do_not_depend_on_their_order_and_reset_restores() -> None:
    network = random_industry(skus=3, periods=6, tail=2)
    compiled = Compiled(network)
    nominal = compiled.solve().objective_total
    draws = [{"resources.cowos.capacity": k * network.values["resources.cowos.capacity"]} for k in (0.5, 1.3, 0.8)]
    forward = [compiled.update(d).solve().objective_total for d in draws]
    backward = [compiled.update(d).solve().objective_total for d in reversed(draws)]
    assert forward == pytest.approx(backward[::-1], rel=1e-12)
    assert compiled.reset().solve().objective_total == pytest.approx(nominal, rel=1e-12)


def test_fingerprints_that_mix_two_parameters_are_refused() -> None:
    with pytest.raises(AssertionError, match="not exactly one parameter"):
        Entries.read(np.array([2.5, 7.0]), "matrix")
    with pytest.raises(AssertionError, match="is not a parameter"):
        Entries.read(np.array([0.5]), "matrix")


def test_evidence_is_small_and_catches_a_wrong_answer() -> None:
    from supply.optimizer.evidence import Programme, prove

    compiled = Compiled(random_industry(skus=3, periods=8, tail=4))
    solution = compiled.solve()
    programme = Programme.now(compiled.engine)
    proof = solution.evidence
    assert compiled.solve(quick=True).evidence == proof
    assert proof.primal_residual < 1e-7
    assert proof.dual_residual < 1e-7
    assert proof.gap < 1e-9
    assert proof.complementarity < 1e-9
    wrong = prove(programme, solution.x * 1.01, solution.y, "none")
    assert wrong.gap > 1e-3
    assert prove(programme, solution.x, solution.y * 1.01, "none").gap > 1e-3
    activity_as_dual = prove(programme, solution.x, compiled.engine.data[0] + 0 * solution.y, "none")
    assert not activity_as_dual.good


def test_tidy_plan_is_as_good_and_does_not_depend_on_the_algorithm() -> None:
    network = random_industry(skus=3, periods=8, tail=4)
    plans = []
    for solver in ("simplex", "ipm"):
        solution = Compiled(network, solver=solver).solve(tidy=True)
        assert float(solution._cost @ solution.x) == pytest.approx(float(solution._cost @ solution.vertex), rel=1e-7)
        plans.append(solution.activities.starts.to_numpy())
    assert plans[0] == pytest.approx(plans[1], rel=1e-4, abs=1.0)


def textbook_lp() -> Network:
    """max 3x + 5y; x <= 4; 2y <= 12; 3x + 2y <= 18 as two products of three capacities."""
    values: dict[str, Any] = {"demand.x.price": 3, "demand.y.price": 5}
    uses = {"x": {"r1": 1, "r3": 3}, "y": {"r2": 2, "r3": 2}}
    for p, parts in uses.items():
        values |= {f"processes.make_{p}.uses.{r}": v for r, v in parts.items()} | {f"processes.make_{p}.output.{p}": 1}
    values |= {"resources.r1.capacity": 4, "resources.r2.capacity": 12, "resources.r3.capacity": 18}
    return Network.build(
        Horizon("2026-Q1", 1), [Material("x"), Material("y")],
        [Process(f"make_{p}", (p,), uses=tuple(parts)) for p, parts in uses.items()],
        [Resource(f"r{i}") for i in (1, 2, 3)], values, demand=[Demand("x"), Demand("y")], objective=Objective("value"),
    )  # fmt: skip


def test_case_tool_dual_is_row_activity() -> None:
    solution = optimize(textbook_lp())
    assert solution.objective == pytest.approx(36)
    prices = [solution.price(f"r{i}", 0) for i in (1, 2, 3)]
    assert prices == pytest.approx([0, 1.5, 1], rel=1e-9)
    assert solution.resources.used.tolist() == pytest.approx([2, 12, 18])
    assert float((solution.resources.price * solution.resources.capacity).sum()) == pytest.approx(solution.objective)


def test_case_tool_infeasible_returns_results() -> None:
    from supply.optimizer.errors import InfeasibleError

    network = textbook_lp().with_values(
        {"demand.x.quantity": 30, "resources.r1.capacity": 20, "resources.r3.capacity": 1e3}
    )
    from dataclasses import replace

    must = replace(network, demand={"x": Demand("x", "never"), "y": Demand("y")})
    with pytest.raises(InfeasibleError) as error:
        optimize(must)
    assert [r.amount for r in error.value.relaxations] == [pytest.approx(10)]
    assert "short by 10" in str(error.value)


def ascend(dies: float, stacks: float, package_yield: float = 1.0) -> Network:
    return Network.build(
        Horizon("2026-Q1", 1),
        [Material("die", "die"), Material("stack", "stack"), Material("package", "package")],
        [Process("package", ("package",), ("die", "stack"), stage="packaging")],
        values={
            "processes.package.input.die": 2,
            "processes.package.input.stack": 8,
            "processes.package.output.package": 1,
            "processes.package.yield": package_yield,
            "opening.stock.die": dies,
            "opening.stock.stack": stacks,
            "demand.package.price": 1,
        },
        demand=[Demand("package")],
        objective=Objective("units"),
    )


def test_case_supply_ascend_min_of_stages() -> None:
    assert optimize(ascend(2.9e6, 13e6)).objective == pytest.approx(1.45e6, rel=1e-9)
    assert optimize(ascend(2.9e6, 13e6, 0.75)).objective == pytest.approx(1.0875e6, rel=1e-9)
    assert optimize(ascend(2.0e6, 13e6)).objective == pytest.approx(1.0e6, rel=1e-9)
    assert optimize(ascend(2.0e6, 13e6, 0.75)).objective == pytest.approx(0.75e6, rel=1e-9)
    # memory binds only after 0.35 million more dies
    assert optimize(ascend(2.9e6 + 0.36e6, 13e6)).objective == pytest.approx(1.625e6, rel=1e-9)
    assert optimize(ascend(2.9e6 + 0.34e6, 13e6)).objective < 1.625e6


def test_case_supply_exit_rate_vs_year() -> None:
    # month by month, each at the mean of its linear ramp: a year is 978,000 wafers, not 93,000 x 12
    level = 70e3 + (93e3 - 70e3) * (np.arange(12) + 0.5) / 12
    network = Network.build(
        Horizon("2026-01", 12, "month"),
        [Material("wafer", "wafer")],
        [Process("pack", ("wafer",), uses=("line",), stage="packaging")],
        [Resource("line", "packaging", "wafer")],
        {
            "processes.pack.output.wafer": 1,
            "processes.pack.uses.line": 1,
            "resources.line.capacity": level,
            "demand.wafer.price": 1,
            "demand.wafer.quantity": 1e6 / 12,
        },
        demand=[Demand("wafer", "backlog")],
        objective=Objective("units"),
    )
    solution = optimize(network)
    assert solution.resources.capacity.sum() == pytest.approx(978e3, rel=1e-3)
    # demand was above capacity only in the first half: with a backlog everything made is sold
    assert solution.objective == pytest.approx(978e3, rel=1e-3)
    assert 1 - solution.objective / 1e6 == pytest.approx(0.022, abs=1e-3)
    assert pytest.approx(0.329, abs=1e-3) == 93 / 70 - 1


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 500), which=st.integers(0, 30), factor=st.floats(0.3, 3.0))
def test_optimum_is_monotone_and_concave_in_every_limit(seed: int, which: int, factor: float) -> None:
    network = random_small(seed)
    paths = sorted(p for p in network.values if p.endswith((".capacity", ".quantity")))
    path = paths[which % len(paths)]
    compiled = Compiled(network)
    ends = [compiled.update({path: k * network.values[path]}).solve().objective_total for k in (1.0, factor)]
    middle = compiled.update({path: (1 + factor) / 2 * network.values[path]}).solve().objective_total
    slack = 1e-9 * (1 + abs(ends[0]))
    assert (ends[1] - ends[0]) * (factor - 1) >= -slack
    assert middle >= sum(ends) / 2 - slack


@pytest.mark.parametrize("seed", range(3))
def test_answer_does_not_depend_on_the_units_inside(seed: int) -> None:
    from supply.optimizer.parameters import Scale

    network = random_industry(skus=2, periods=5, tail=2, seed=seed)
    one, thousand = (Compiled(network, scale).solve() for scale in (Scale(1.0, 1.0), Scale(1000.0, 1000.0)))
    assert one.objective_total == pytest.approx(thousand.objective_total, rel=1e-7)
    assert one.lasting_price("power0", 0) == pytest.approx(thousand.lasting_price("power0", 0), rel=1e-5, abs=1e-6)
