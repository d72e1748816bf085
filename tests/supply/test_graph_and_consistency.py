"""The stage graph, and the list of everything that is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supply.consistency import ConsistencyError, check, require_consistent
from supply.graph import build_graph, decorate, html_card, stage_rank, to_json, write_graphml
from supply.network import Contract, Demand, Disruption, FleetSku, Network, NetworkError, Process, Resource
from supply.network_examples import course_11_1, power_chain
from supply.network_random import random_industry, random_small
from supply.optimizer.compiled import Compiled, optimize
from supply.optimizer.errors import SolveError


def paths(network: Network, severity: str = "error") -> dict[str, str]:
    return {p.path: f"{p.message}; {p.fix}" for p in check(network) if p.severity == severity}


def test_graph_is_bipartite_and_carries_quantities() -> None:
    graph = build_graph(power_chain())
    kinds = nx.get_node_attributes(graph, "kind")
    for a, b in graph.edges():
        assert {kinds[a], kinds[b]} in (
            {"material", "process"},
            {"resource", "process"},
            {"material", "fleet"},
            {"resource", "fleet"},
        )
    assert graph.edges["resource:fab", "process:make_big", 0]["quantity"] == 0.05
    assert graph.edges["resource:power_us", "fleet:big", 0]["quantity"] == 2.0
    assert nx.has_path(graph, "resource:fab", "fleet:small")


def test_graph_with_a_solution_shows_flow_and_utilisation() -> None:
    solution = optimize(course_11_1())
    graph = decorate(build_graph(course_11_1()), solution, 0)
    assert graph.nodes["resource:cowos"]["utilisation"] == pytest.approx(1)
    assert graph.nodes["resource:fab"]["utilisation"] == pytest.approx(2 / 3)
    assert graph.edges["material:die", "process:package", 0]["flow"] == pytest.approx(10000)


def test_graph_export(tmp_path: Path) -> None:
    graph = build_graph(random_industry(skus=2))
    write_graphml(graph, tmp_path / "g.graphml")
    assert set(nx.read_graphml(tmp_path / "g.graphml").nodes) == set(graph.nodes)
    back = nx.node_link_graph(json.loads(to_json(graph)), edges="edges", multigraph=True, directed=True)
    assert back.number_of_edges() == graph.number_of_edges()
    assert "<table>" in html_card(power_chain())
    assert "&lt;b&gt;" in html_card(replace(power_chain(), title="<b>"))
    assert sorted(["power", "fab", "odd", "hbm"], key=stage_rank) == ["fab", "hbm", "power", "odd"]


def test_all_problems_come_at_once_each_with_its_fix() -> None:
    network = course_11_1().with_values(
        {"processes.package.yield": -0.1, "resources.fab.capacity": -5, "resources.cowos.capacity": float("nan")}
    )
    network = replace(
        network,
        processes={**network.processes, "odd": Process("odd", ("accelerator",), ("dye",), ("cowoss",))},
    )
    found = paths(network)
    assert found["processes.package.yield"] == "-0.1 is outside 0 to 1; give a fraction"
    assert found["resources.fab.capacity"] == "-5 is negative; give zero or more"
    assert found["resources.cowos.capacity"] == "not a finite number; give a number for every period"
    assert found["processes.odd.input.dye"] == "no such material; did you mean die?"
    assert found["processes.odd.uses.cowoss"] == "no such resource; did you mean cowos?"
    with pytest.raises(ConsistencyError) as error:
        optimize(network)
    assert len(error.value.problems) >= 5


def test_unreachable_products_unused_capacity_and_idle_processes() -> None:
    network = course_11_1()
    without_dies = replace(network, processes={"package": network.processes["package"]})
    assert "no process makes it" in paths(without_dies)["processes.package.input.die"]
    assert "can never be made" in paths(without_dies)["demand.accelerator"]
    assert "no process uses it" in paths(without_dies, "warning")["resources.fab"]
    spare = replace(network, resources={**network.resources, "spare": Resource("spare")}).with_values(
        {"resources.spare.capacity": 1}
    )
    assert "no process uses it" in paths(spare, "warning")["resources.spare"]
    idle = replace(network, processes={**network.processes, "idle": Process("idle", ("die",), ("accelerator",))})
    idle = idle.with_values({"processes.idle.input.accelerator": 1, "processes.idle.output.die": 0.5})
    assert "run in a circle" in " ".join(paths(idle, "warning").values())


def test_a_loop_that_makes_something_from_nothing_is_an_error() -> None:
    network = course_11_1()
    loop = replace(network, processes={**network.processes, "magic": Process("magic", ("die",), ("accelerator",))})
    loop = loop.with_values({"processes.magic.input.accelerator": 1, "processes.magic.output.die": 2})
    assert any("makes 2 of one within a period" in text for text in paths(loop).values())


def test_contracts_disruptions_tastes_and_regions() -> None:
    network = random_industry(skus=2, periods=4, tail=1)
    bad = replace(
        network,
        contracts={
            "a": Contract("a", "cowos", ("die0",)),
            "b": Contract("b", "cowos", ("package0",)),
            "c": Contract("c", "cowos", ("package1",)),
        },
        disruptions={"d": Disruption("d", "nowhere", 0, 1)},
        fleet={**network.fleet, "x": FleetSku("x", "ready0", ("mars",), tastes=2)},
    ).with_values(
        {
            "contracts.b.least_share": 0.7, "contracts.c.least_share": 0.6, "contracts.b.greatest_share": 0.5,
            "disruptions.d.remaining": 0.5, "fleet.x.value": 1, "fleet.x.kw_planning": 1,
            **{f"fleet.x.tastes.{k}.{f}": 0.3 for k in (0, 1) for f in ("share", "discount")},
        }
    )  # fmt: skip
    found = paths(bad)
    assert "none of its processes uses cowos" in found["contracts.a.processes"]
    assert "is above greatest_share" in found["contracts.b.least_share"]
    assert "hard least shares sum to more than 1" in found["resources.cowos"]
    assert "no such resource" in found["disruptions.d.resource"]
    assert "shares sum to 0.6" in found["fleet.x.tastes"]
    assert "no such region: mars" in found["fleet.x.regions"]


def test_shares_that_leave_capacity_to_nobody_are_a_warning() -> None:
    network = replace(course_11_1(), contracts={"only": Contract("only", "cowos", ("package",))})
    short = network.with_values({"contracts.only.greatest_share": 0.8})
    assert paths(short, "warning")["resources.cowos"].startswith("greatest shares sum to 0.80 in 2026-Q1")
    assert "resources.cowos" not in paths(network.with_values({"contracts.only.greatest_share": 1.0}), "warning")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("costs.life", 0.0, "0 is outside 0.1 to 100; give years"),
        ("discount_rate", 12.0, "12 is outside -0.5 to 10; give a year, as a fraction"),
        ("processes.die0.lead_time", 1e6, "1e+06 is outside 0 to 200; give periods"),
        ("materials.die0.holding_cost", -1.0, "-1 is negative; give zero or more"),
        ("fleet.sku0.survival", 1.2, "1.2 is outside 0 to 1; give a fraction"),
    ],
)
def test_numbers_outside_any_sense(path: str, value: float, message: str) -> None:
    assert paths(random_industry(skus=1, periods=2).with_values({path: value}))[path] == message


def test_missing_numbers_are_named() -> None:
    network = course_11_1()
    values = {
        k: v for k, v in network.values.items() if k not in ("resources.fab.capacity", "processes.package.input.die")
    }
    assert set(paths(replace(network, values=values))) == {"resources.fab.capacity", "processes.package.input.die"}
    with pytest.raises(ConsistencyError, match=r"resources.fab.capacity: has no number; give one"):
        require_consistent(replace(network, values=values))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_bad_networks_end_in_an_explanation_or_a_proof_never_a_stack_trace(seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = (
        random_small(int(rng.integers(0, 50)))
        if rng.random() < 0.5
        else random_industry(skus=2, periods=3, tail=1, seed=seed)
    )
    values: dict[str, Any] = dict(network.values)
    for path in rng.choice(sorted(values), size=4, replace=False):
        what = rng.integers(0, 5)
        values[path] = values[path] * (0.0, -1.0, 1e6, 1e-9, 1.0)[what]
        if what == 4:
            del values[path]
    processes = dict(network.processes)
    if rng.random() < 0.3:
        processes.pop(str(rng.choice(sorted(processes))))
    if rng.random() < 0.3:
        p = processes[str(rng.choice(sorted(processes)))]
        processes["loop"] = Process("loop", p.input or p.output, p.output)
        values |= {
            f"processes.loop.output.{m}": 1.0 * np.ones(network.horizon.length) for m in processes["loop"].output
        }
        values |= {f"processes.loop.input.{m}": 0.5 * np.ones(network.horizon.length) for m in processes["loop"].input}
    demand = {m: Demand(m, str(rng.choice(["lost", "never"]))) for m in network.demand}
    broken = replace(network, values=values, processes=processes, demand=demand)
    try:
        solution = Compiled(broken).solve()
    except (NetworkError, SolveError) as error:
        assert len(str(error)) > 20
    else:
        assert solution.evidence.gap < 1e-6
        assert solution.evidence.primal_residual < 1e-5


@pytest.mark.parametrize("path", ["discount_rate", "costs.life"])
def test_a_number_of_the_whole_horizon_is_not_given_by_period(path: str) -> None:
    network = random_industry(skus=2, periods=3, tail=1, seed=1)
    given = network.values[path]
    assert not check(network.with_values({path: given * 0.5}))
    later = np.where(np.arange(len(given)) < 2, given, given * 0.5)
    (problem,) = [p for p in check(replace(network, values={**network.values, path: later})) if p.path == path]
    assert str(problem) == (
        f"{path}: changes from {given[0]:g} to {given[0] / 2:g}, but one number holds for the whole horizon; "
        "give one value, without `from` and `to`"
    )
