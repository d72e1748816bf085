"""Cost tables and econ nodes with a stand-in engine: linear in money, banded, honest about what does not run, fast."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any

import networkx as nx
import pytest

from econ.agent_price import OwnPrice
from econ.agent_task import agent_task, task_cost
from econ.chain import (
    CLASSES,
    CostChoice,
    ModelChoice,
    cost_tables,
    hour_cost,
    priced_at,
    token_point,
)
from econ.chain_graph import add_econ_nodes, explain_task
from econ.owner_cost import owner_cost
from econ.throughput_check import EngineRate
from econ.token_cost import ServingPoint, Workload, token_cost
from econ.tokens import StepTimes
from econ.use_chain import UseChain

LOAD = Workload("chat", 1000, 200)
MODEL = ModelChoice("toy", "toy-70b", LOAD)
ON = date(2026, 6, 30)


class StandIn:
    """An engine with one operating point; a hardware named `small` does not fit."""

    def __init__(self) -> None:
        self.asked = 0

    def points(self, model: str, hardware: str, load: Workload, **setup: Any) -> Iterable[ServingPoint]:
        self.asked += 1
        if hardware == "h20":
            return []
        rate = EngineRate(800, 600, 1000, 4000, "same_family", "memory_bandwidth", f"{model} on {hardware}")
        return [ServingPoint(32, 8, 0.4, 0.03, 4.0, rate, StepTimes(2e-5, 2e-5, 1e-6, 1.2e-3))]


@pytest.fixture(scope="module")
def engine() -> StandIn:
    return StandIn()


def _choices(*skus: str) -> list[CostChoice]:
    return [CostChoice(s, f"{y}-Q2", date(y, 6, 30)) for s in skus for y in (2024, 2025, 2026)]


def test_rows_agree_with_the_models_they_come_from(engine: StandIn) -> None:
    choice = CostChoice("h100", "2026-Q2", ON)
    tables = cost_tables([choice], [MODEL], ["coding"], engine)
    hour = owner_cost("h100", on=ON)
    row, task = tables.costs[0], tables.tasks[0]
    assert row["usd_per_gpu_hour"] == pytest.approx(hour.total)
    direct = token_cost("toy-70b", "h100", hour.total, LOAD, hour_cost(choice).use, engine=engine)
    for name in CLASSES:
        assert row["usd_per_mtoken"][name] == pytest.approx(direct.usd_per_mtoken[name])
        assert row["usd_per_mtoken_low"][name] < row["usd_per_mtoken"][name] < row["usd_per_mtoken_high"][name]
    exact = task_cost(agent_task("coding"), OwnPrice(direct))
    assert task["usd_per_verified_task"] == pytest.approx(exact.usd_per_verified_task)
    assert task["low"] < exact.low < exact.high < task["high"]
    assert row["tokens_per_sold_hour"] == pytest.approx(800 * 3600 * 0.9 * 0.95 * 0.6)
    assert row["check"].startswith("consistent")


def test_task_costs_between_the_ends_are_exact(engine: StandIn) -> None:
    tables = cost_tables(_choices("h100"), [MODEL], ["research"], engine)
    use = hour_cost(CostChoice("h100", "x", ON)).use
    point = token_point(MODEL, "h100", use, engine)
    assert not isinstance(point, str)
    for row, cost in zip(tables.tasks, tables.costs, strict=True):
        exact = task_cost(agent_task("research"), OwnPrice(priced_at(point, cost["usd_per_gpu_hour"])))
        assert row["usd_per_verified_task"] == pytest.approx(exact.usd_per_verified_task, rel=1e-9)
        assert sum(row["parts"].values()) == pytest.approx(row["usd_per_verified_task"])


def test_engine_is_asked_once_per_set_up() -> None:
    counting = StandIn()
    cost_tables(_choices("h100", "h200"), [MODEL], ["chat", "coding"], counting)
    assert counting.asked == 2


def test_what_does_not_run_or_is_not_priced_is_said(engine: StandIn) -> None:
    tables = cost_tables([*_choices("h20"), CostChoice("abacus", "2026-Q2", ON)], [MODEL], ["chat"], engine)
    assert all(row["usd_per_mtoken"]["output"] is None and "does not fit" in row["check"] for row in tables.costs)
    assert not tables.tasks
    reasons = " ".join(p["reason"] for p in tables.problems)
    assert "no facts price 'abacus'" in reasons and "does not fit" in reasons


def test_stated_price_and_rents_replace_or_add(engine: StandIn) -> None:
    stated = CostChoice("h100", "2026-Q2", ON, usd_per_gpu_hour=2.5, usd_low=2.0, usd_high=3.0)
    with_rent = CostChoice("h100", "2026-Q2", ON, usd_per_gpu_hour=2.5, rents_usd_per_gpu_hour=0.5)
    first, second = cost_tables([stated, with_rent], [MODEL], [], engine).costs
    assert (first["usd_per_gpu_hour"], first["usd_per_gpu_hour_low"]) == (2.5, 2.0)
    assert second["usd_per_gpu_hour"] == 3.0
    ratio = second["usd_per_mtoken"]["output"] / first["usd_per_mtoken"]["output"]
    assert ratio == pytest.approx(1.2)


def test_idle_fleet_pays_more_per_token(engine: StandIn) -> None:
    idle = CostChoice("h100", "2026-Q2", ON, use=UseChain(0.8, 0.9, 0.95, 0.3))
    full = CostChoice("h100", "2026-Q2", ON, use=UseChain(0.8, 0.9, 0.95, 0.6))
    costs = [cost_tables([c], [MODEL], [], engine).costs[0]["usd_per_mtoken"]["output"] for c in (idle, full)]
    assert costs[0] > 1.9 * costs[1]


def test_one_walk_explains_a_task_dollar(engine: StandIn) -> None:
    stage_graph = nx.MultiDiGraph()
    stage_graph.add_node("fleet:h100", kind="fleet", id="h100", title="H100", stage="datacenter")
    stage_graph.add_node("process:make_die", kind="process", id="make_die", title="die", stage="fab")
    stage_graph.add_edge("process:make_die", "fleet:h100", role="energises", quantity=1.0)
    choice = CostChoice("h100", "2026-Q2", ON)
    tables = cost_tables([choice], [MODEL], ["coding"], engine)
    graph = add_econ_nodes(stage_graph, tables, "2026-Q2", {"h100": hour_cost(choice)})
    node = "task:coding:toy/h100"
    assert nx.has_path(graph, "process:make_die", node)
    walk = explain_task(graph, node)
    assert walk.total == pytest.approx(tables.tasks[0]["usd_per_verified_task"])
    assert any(bar.name == "output: equipment" and bar.fact_ids for bar in walk)
    assert len(stage_graph) == 2
    with pytest.raises(KeyError, match="task nodes: task:coding:toy/h100"):
        explain_task(graph, "task:coding:other/h100")
    with pytest.raises(ValueError, match="periods: 2026-Q2"):
        add_econ_nodes(stage_graph, tables, "2031-Q1")


def test_the_shipped_engine_costs_real_skus() -> None:
    """One SKU, one model, two dates through the engine: class costs, band, and a part that no operating point meets."""
    choices = [CostChoice("h100", f"{y}-Q2", date(y, 6, 30)) for y in (2025, 2026)]
    tables = cost_tables(choices, ["chat_70b"], ["chat"])
    assert [row["model"] for row in tables.costs] == ["llama_3_1_70b"] * 2
    for row in tables.costs:
        tokens = row["usd_per_mtoken"]
        assert tokens["cache_read"] < tokens["uncached_input"] < tokens["output"]
        assert row["low"] < tokens["output"] < row["high"]
    assert all(row["low"] <= row["usd_per_verified_task"] <= row["high"] for row in tables.tasks)
    strict = ModelChoice("strict", "Llama-3.1-405B", Workload("instant", 8000, 500, tpot_target_s=1e-4))
    refused = cost_tables(choices[:1], [strict], [])
    assert refused.costs[0]["usd_per_mtoken"]["output"] is None
    assert refused.problems and refused.problems[0]["reason"] == refused.costs[0]["check"]
