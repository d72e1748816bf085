"""The stage graph continued past energised accelerators: accelerator-hour, million tokens by class, verified task.

Nodes `hour:SKU`, `mtoken:CLASS:MODEL/SKU`, `task:TASK:MODEL/SKU` with `stage` "econ"; edges carry `quantity` (units of
the tail per unit of the head) and `usd` (money of the head that flows through). One walk backwards explains a task's
dollar: token classes, accelerator-hours, cost bars, then the supply nodes behind the accelerator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import networkx as nx

from econ.chain import CLASSES, CostTables, HourCost
from econ.cost_breakdown import CostBar, CostBreakdown

__all__ = ["add_econ_nodes", "explain_task"]

#: Parts of a task that are accelerator time but no single token class.
COMPUTED = frozenset({"retries", "children", "held_while_waiting"})


def add_econ_nodes(
    graph: nx.MultiDiGraph, tables: CostTables, period: str, hours: Mapping[str, HourCost] | None = None
) -> nx.MultiDiGraph:
    """Copy of a stage graph with the econ nodes of one period; SKUs that the graph lacks start at their hour node.

    `hours` gives the waterfalls, whose bars become `bar:SKU:NAME` nodes feeding the accelerator-hour.

    Raises:
        ValueError: when the tables hold nothing of that period.
    """
    out = graph.copy()
    costs = [row for row in tables.costs if row["period"] == period]
    if not costs:
        periods = sorted({row["period"] for row in tables.costs})
        raise ValueError(f"no cost rows of period {period!r}; periods: {', '.join(periods) or 'none'}")
    for sku in dict.fromkeys(row["sku"] for row in costs):
        _add_hour(out, sku, next(r for r in costs if r["sku"] == sku), (hours or {}).get(sku))
    for row in costs:
        _add_tokens(out, row)
    for row in (r for r in tables.tasks if r["period"] == period):
        _add_task(out, row)
    return out


def _add_hour(graph: nx.MultiDiGraph, sku: str, row: Mapping[str, Any], hour: HourCost | None) -> None:
    node = f"hour:{sku}"
    graph.add_node(
        node,
        kind="hour",
        id=sku,
        title=f"{sku} sold hour",
        stage="econ",
        usd=row["usd_per_gpu_hour"],
        unit="USD/GPU-hour",
    )
    if f"fleet:{sku}" in graph:
        graph.add_edge(f"fleet:{sku}", node, role="runs", quantity=1.0)
    if hour is not None and hour.breakdown is not None:
        for bar in hour.breakdown:
            name = f"bar:{sku}:{bar.name}"
            graph.add_node(
                name,
                kind="bar",
                id=bar.name,
                title=bar.name,
                stage="econ",
                usd=bar.value,
                fact_ids=";".join(bar.fact_ids),
            )
            graph.add_edge(name, node, role="costs", quantity=1.0, usd=bar.value)


def _add_tokens(graph: nx.MultiDiGraph, row: Mapping[str, Any]) -> None:
    for name in CLASSES:
        usd = row["usd_per_mtoken"][name]
        if usd is None:
            continue
        node = f"mtoken:{name}:{row['model']}/{row['sku']}"
        graph.add_node(
            node, kind="mtoken", id=name, title=f"{name} of {row['model']}", stage="econ", usd=usd, unit="USD/Mtoken"
        )
        graph.add_edge(f"hour:{row['sku']}", node, role="computes", quantity=usd / row["usd_per_gpu_hour"], usd=usd)


def _add_task(graph: nx.MultiDiGraph, row: Mapping[str, Any]) -> None:
    node = f"task:{row['task']}:{row['model']}/{row['sku']}"
    usd = row["usd_per_verified_task"]
    graph.add_node(node, kind="task", id=row["task"], title=f"verified {row['task']} task", stage="econ", usd=usd)
    graph.nodes[node]["unit"] = "USD/task"
    for name, usd_part in row["parts"].items():
        tokens = f"mtoken:{name}:{row['model']}/{row['sku']}"
        if usd_part == 0:
            continue
        if tokens in graph:
            quantity = usd_part / graph.nodes[tokens]["usd"]
            graph.add_edge(tokens, node, role="spends", quantity=quantity, usd=usd_part)
        elif name in COMPUTED:
            hour = f"hour:{row['sku']}"
            graph.add_edge(hour, node, role=name, quantity=usd_part / graph.nodes[hour]["usd"], usd=usd_part)
        else:
            graph.add_node(f"{name}:{node}", kind="bar", id=name, title=name, stage="econ", usd=usd_part, fact_ids="")
            graph.add_edge(f"{name}:{node}", node, role="costs", quantity=1.0, usd=usd_part)


def explain_task(graph: nx.MultiDiGraph, task_node: str) -> CostBreakdown:
    """The dollar of a verified task split over everything that it is finally spent on; the bars sum to its cost.

    Token money is carried back through the accelerator-hour into the hour's cost bars.

    Raises:
        KeyError: when the graph has no such task node; the message lists those that it has.
    """
    if task_node not in graph:
        known = [n for n, kind in graph.nodes(data="kind") if kind == "task"]
        raise KeyError(f"no node {task_node!r}; task nodes: {', '.join(known) or 'none'}")
    bars: list[CostBar] = []
    for source, edge in _inputs(graph, task_node):
        kind = graph.nodes[source]["kind"]
        if kind == "mtoken":
            for hour, _ in _inputs(graph, source):
                bars += _hour_bars(graph, hour, graph.nodes[source]["id"], edge["usd"])
        elif kind == "hour":
            bars += _hour_bars(graph, source, edge["role"], edge["usd"])
        else:
            bars.append(CostBar(graph.nodes[source]["title"], edge["usd"]))
    return CostBreakdown(tuple(bars), "USD/task", f"walk from {task_node}")


def _hour_bars(graph: nx.MultiDiGraph, hour: str, label: str, usd: float) -> list[CostBar]:
    """Money spent on an accelerator-hour, split over the hour's own cost bars."""
    share = usd / graph.nodes[hour]["usd"]
    parts = [n for n, _ in _inputs(graph, hour) if graph.nodes[n]["kind"] == "bar"]
    whole = sum(graph.nodes[n]["usd"] for n in parts)
    bars = []
    for name in parts:
        ids = tuple(i for i in graph.nodes[name]["fact_ids"].split(";") if i)
        bars.append(CostBar(f"{label}: {graph.nodes[name]['title']}", graph.nodes[name]["usd"] * share, fact_ids=ids))
    rest = graph.nodes[hour]["usd"] - whole
    if not parts or abs(rest) > 1e-9 * graph.nodes[hour]["usd"]:
        bars.append(CostBar(f"{label}: rents after the sale" if parts else f"{label}: price of the hour", rest * share))
    return bars


def _inputs(graph: nx.MultiDiGraph, node: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    return [(source, data) for source, _, data in graph.in_edges(node, data=True)]
