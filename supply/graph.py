"""The stage graph: materials and processes as a bipartite `networkx.MultiDiGraph`, with resources attached.

Nodes: `material:ID`, `process:ID`, `resource:ID`, `fleet:SKU`, each with `kind`, `id`, `title`, `stage` and
more of its record. Edges carry `quantity` (per unit started, first period) and `role`: input, output, uses, energises,
powers, sold. The graph is for walking, drawing and export; the optimum is built from the same `Network`.
"""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import networkx as nx

from supply.network import STAGES, Network


def build_graph(network: Network) -> nx.MultiDiGraph:
    """Graph of a network.

    >>> from supply.network_examples import course_11_1
    >>> g = build_graph(course_11_1())
    >>> list(nx.shortest_path(g, "resource:fab", "demand:accelerator"))[1:4]
    ['process:make_die', 'material:die', 'process:package']
    """
    graph = nx.MultiDiGraph(title=network.title)
    for m, material in network.materials.items():
        graph.add_node(
            f"material:{m}", kind="material", id=m, title=material.title or m, stage=material.stage, unit=material.unit
        )
    for r, row in network.resources.items():
        attributes = {"owner": row.owner, "supplier": row.supplier, "region": row.region, "unit": row.unit}
        graph.add_node(f"resource:{r}", kind="resource", id=r, title=row.title or r, stage=row.stage, **attributes)
    for p in network.processes:
        _add_process(graph, network, p)
    for s, sku in network.fleet.items():
        graph.add_node(
            f"fleet:{s}", kind="fleet", id=s, title=sku.title or s, stage="datacenter", designer=sku.designer
        )
        graph.add_edge(f"material:{sku.material}", f"fleet:{s}", role="energises", quantity=1.0)
        for r, row in network.resources.items():
            if row.is_power and row.region in sku.regions:
                kw = _first(network, f"fleet.{s}.kw_planning", 0.0)
                graph.add_edge(f"resource:{r}", f"fleet:{s}", role="powers", quantity=kw)
    for m in network.demand:
        graph.add_node(f"demand:{m}", kind="demand", id=m, title=f"demand for {m}", stage="")
        graph.add_edge(f"material:{m}", f"demand:{m}", role="sold", quantity=1.0)
    return graph


def _first(network: Network, path: str, default: float) -> float:
    return float(network.values[path][0]) if path in network.values else default


def _add_process(graph: nx.MultiDiGraph, network: Network, p: str) -> None:
    process = network.processes[p]
    attributes = {"supplier": process.supplier, "owner": process.owner, "region": process.region}
    attributes["lead_time_periods"] = str(_first(network, f"processes.{p}.lead_time", 0.0))
    graph.add_node(f"process:{p}", kind="process", id=p, title=process.title or p, stage=process.stage, **attributes)
    for m in process.input:
        quantity = _first(network, f"processes.{p}.input.{m}", 1.0)
        graph.add_edge(f"material:{m}", f"process:{p}", role="input", quantity=quantity)
    for m in process.output:
        yields = _first(network, f"processes.{p}.yield.{m}", _first(network, f"processes.{p}.yield", 1.0))
        quantity = _first(network, f"processes.{p}.output.{m}", 1.0)
        graph.add_edge(f"process:{p}", f"material:{m}", role="output", quantity=quantity, yield_fraction=yields)
    for r in process.uses:
        quantity = _first(network, f"processes.{p}.uses.{r}", 1.0)
        graph.add_edge(f"resource:{r}", f"process:{p}", role="uses", quantity=quantity)


def stage_rank(stage: str) -> int:
    """Place of a stage from left to right; words that are not known come last."""
    return STAGES.index(stage) if stage in STAGES else len(STAGES)


def positions(graph: nx.MultiDiGraph) -> dict[str, tuple[float, float]]:
    """Place of every node for drawing: stages from left to right, materials after the processes that make them.

    x is the stage (materials half a step to the right, resources below their stage), y spreads the nodes of a column.

    >>> from supply.network_examples import course_11_1
    >>> place = positions(build_graph(course_11_1()))
    >>> [place[n][0] for n in ("process:make_die", "material:die", "process:package", "demand:accelerator")]
    [0.0, 0.5, 2.0, 8.5]
    """
    column: dict[str, float] = {}
    for node, data in graph.nodes(data=True):
        if data["kind"] in ("process", "resource"):
            column[node] = float(stage_rank(data["stage"]))
    for node, data in graph.nodes(data=True):
        if data["kind"] == "material":
            before = [column[p] for p in graph.predecessors(node) if p in column]
            column[node] = max(before, default=-1.0) + 0.5
        elif data["kind"] in ("fleet", "demand"):
            column[node] = len(STAGES) + 0.5
    rows: dict[tuple[float, bool], int] = {}
    place = {}
    for node in sorted(graph.nodes):
        below = graph.nodes[node]["kind"] == "resource"
        rank = rows[column[node], below] = rows.get((column[node], below), 0) + 1
        place[node] = (column[node], -float(rank) if below else float(rank))
    return place


def decorate(graph: nx.MultiDiGraph, solution: Any, t: int) -> nx.MultiDiGraph:
    """Copy of the graph with what flowed in period `t`: starts of processes, utilisation and price of resources."""
    drawn = graph.copy()
    for row in solution.activities.query("t == @t").itertuples():
        drawn.nodes[f"process:{row.process}"]["starts"] = float(row.starts)
    for row in solution.resources.query("t == @t").itertuples():
        drawn.nodes[f"resource:{row.resource}"].update(utilisation=float(row.utilisation), price=float(row.price))
    for source, target, data in drawn.edges(data=True):
        process = source if source.startswith("process:") else target
        starts = drawn.nodes[process].get("starts")
        if starts is not None:
            data["flow"] = starts * data["quantity"]
    return drawn


def write_graphml(graph: nx.MultiDiGraph, path: Path) -> None:
    """GraphML for yEd, Gephi and others."""
    nx.write_graphml(graph, path)


def to_json(graph: nx.MultiDiGraph) -> str:
    """Node-link JSON (`networkx.node_link_graph` reads it back)."""
    return json.dumps(nx.node_link_data(graph, edges="edges"))


def html_card(network: Network) -> str:
    """Short HTML summary of a network for notebooks."""
    by_stage: dict[str, list[str]] = {}
    for process in network.processes.values():
        by_stage.setdefault(process.stage or "other", []).append(process.title or process.id)
    rows = "".join(
        f"<tr><th>{html.escape(stage)}</th><td>{html.escape(', '.join(by_stage[stage]))}</td></tr>"
        for stage in sorted(by_stage, key=stage_rank)
    )
    head = f"{len(network.materials)} materials, {len(network.processes)} processes, {len(network.resources)} resources"
    title = html.escape(network.title or "Network")
    return f"<h4>{title}</h4><p>{head}, {len(network.fleet)} accelerators</p><table>{rows}</table>"
