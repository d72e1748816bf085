"""The scenario of a run as a short file, and its stage graph: a workbook and graph files need no scenario anew."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    import networkx as nx

    from scenarios.load import Scenario
    from supply.network import Network

__all__ = ["graph_of", "graph_tables", "library_text"]

#: Entries of a file that are no data of the merged scenario.
_NO_DATA = ("set", "extends")


def library_text(scenario: Scenario) -> str | None:
    """A library scenario with the edits made to it as a file: `extends` and `set`; None for any other scenario.

    >>> from scenarios.load import load_scenario
    >>> print(library_text(load_scenario("course_11_1", [("resources.cowos.capacity", 9000)])))
    extends: course_11_1
    set:
    - resources.cowos.capacity: 9000
    <BLANKLINE>
    """
    from ruamel.yaml import YAML

    levels = {p.file: scenario.levels.get(loc, 0) for loc, p in scenario.positions.items() if loc[0] not in _NO_DATA}
    if not levels or max(levels, key=levels.__getitem__) != f"library/{scenario.name}.yaml":
        return None
    if not all(file.startswith("library/") for file in levels):
        return None
    content: dict[str, Any] = {"extends": scenario.name}
    if own := [{e.pattern: e.raw} for e in scenario.edits if not e.where.file.startswith("library/")]:
        content["set"] = own
    text = io.StringIO()
    YAML().dump(content, text)
    return text.getvalue()


def graph_tables(network: Network) -> dict[str, pd.DataFrame]:
    """The stage graph as `graph_nodes` (node, kind, id, title, stage, ..) and `graph_edges` (source, target, role, ..).

    A text that a kind of node does not have is missing; so is the yield of an edge that is no output.
    """
    from supply.graph import build_graph

    graph = build_graph(network)
    nodes = pd.DataFrame([{"node": node, **data} for node, data in graph.nodes(data=True)])
    edges = pd.DataFrame([{"source": a, "target": b, **data} for a, b, data in graph.edges(data=True)])
    if "yield_fraction" not in edges:
        edges["yield_fraction"] = float("nan")
    return {"graph_nodes": nodes, "graph_edges": edges}


def graph_of(nodes: pd.DataFrame, edges: pd.DataFrame) -> nx.MultiDiGraph:
    """The stage graph from its tables; what is missing there is no attribute."""
    import networkx as nx

    graph = nx.MultiDiGraph()
    for row in nodes.to_dict("records"):
        graph.add_node(row.pop("node"), **{str(k): v for k, v in row.items() if isinstance(v, str)})
    for row in edges.to_dict("records"):
        ends = row.pop("source"), row.pop("target")
        graph.add_edge(*ends, **{str(k): v for k, v in row.items() if v is not None and v == v})
    return graph
