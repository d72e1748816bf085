"""The limits of a run as a graph: how full each is in a period, and how many accelerators pass from one to the next."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from scenarios.supply_flow import Chain
from supply.graph import stage_rank

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["stage_links"]


def stage_links(results: pd.DataFrame, inputs: pd.DataFrame, period: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Nodes (limits, and steps without one) and links between them in a period, read from the tables of a run.

    Nodes: node, title, stage, utilisation (fraction, missing for a step without a limit), binds. Links: source, target,
    accelerators a period (accelerator-equivalents started in the step that takes; memory counts as the set that one
    accelerator needs). Where a step uses several limits of one stage, its flow is split among them evenly.

    Raises:
        FlowError: when the run has no such period.
    """
    import pandas as pd

    chain = Chain(results, inputs, period)
    entries, exits, links = _steps(chain)
    for process, materials in chain.all_inputs.items():
        flow = _flow(chain, process)
        for material in materials:
            for maker, share in _shares(chain, material).items():
                _link(links, exits[maker], entries[process], flow * share)
    nodes = _nodes(chain, period)
    _energised(chain, exits, links, nodes)
    table = pd.DataFrame([(s, t, v) for (s, t), v in links.items()], columns=["source", "target", "accelerators"])
    floor = 1e-6 * float(table["accelerators"].max()) if len(table) else 0.0
    table = table[(table["accelerators"] > floor) & (table["source"] != table["target"])].reset_index(drop=True)
    seen = {*table["source"], *table["target"]}
    return nodes[nodes["node"].isin(seen)].reset_index(drop=True), table


def _flow(chain: Chain, process: str) -> float:
    if not chain.outputs[process] or process not in chain.followed:
        return 0.0
    return chain.equivalents(process) * chain.window_sum(chain.series("starts", process))


def _steps(chain: Chain) -> tuple[dict[str, list[str]], dict[str, list[str]], dict[tuple[str, str], float]]:
    """First and last limits of every step, and the links inside steps that pass several stages."""
    stage_of = _stages(chain)
    used: dict[str, list[str]] = {p: [] for p in chain.stages}
    for path in chain.numbers:
        parts = path.split(".")
        if parts[0] == "processes" and parts[2] == "uses" and parts[1] in used and parts[3] in stage_of:
            used[parts[1]].append(parts[3])
    entries, exits = {}, {}
    links: dict[tuple[str, str], float] = defaultdict(float)
    for process, names in used.items():
        if not names:
            entries[process] = exits[process] = [f"step:{chain.stages[process]}"]
            continue
        ranks = sorted({stage_rank(stage_of[r]) for r in names})
        groups = [[r for r in names if stage_rank(stage_of[r]) == k] for k in ranks]
        entries[process], exits[process] = groups[0], groups[-1]
        for first, second in pairwise(groups):
            _link(links, first, second, _flow(chain, process))
    return entries, exits, links


def _stages(chain: Chain) -> dict[str, str]:
    rows = chain.results[chain.results["quantity"] == "capacity"]
    return dict(zip(rows["subject"], rows["stage"], strict=True))


def _link(links: dict[tuple[str, str], float], sources: list[str], targets: list[str], value: float) -> None:
    for s in sources:
        for t in targets:
            links[s, t] += value / (len(sources) * len(targets))


def _shares(chain: Chain, material: str) -> dict[str, float]:
    """Share of each maker in what was started of a material in the period (evenly where nothing was)."""
    makers = chain.makers.get(material, [])
    amounts = {p: chain.window_sum(chain.series("starts", p)) for p in makers}
    total = sum(amounts.values())
    return {p: (a / total if total > 0 else 1.0 / len(makers)) for p, a in amounts.items()}


def _nodes(chain: Chain, period: str) -> pd.DataFrame:
    import pandas as pd

    rows = chain.results[(chain.results["quantity"] == "utilisation") & (chain.results["period"] == period)]
    priced = chain.results[(chain.results["quantity"] == "price") & (chain.results["period"] == period)]
    price = dict(zip(priced["subject"], priced["value"], strict=True))
    found = [
        (
            r["subject"],
            r["subject"],
            r["stage"],
            float(r["value"]),
            float(price.get(r["subject"], 0.0)) > 0,
            r["region"],
        )
        for r in rows.to_dict("records")
    ]
    found += [(f"step:{s}", s, s, float("nan"), False, "") for s in sorted(set(chain.stages.values()))]
    return pd.DataFrame(found, columns=["node", "title", "stage", "utilisation", "binds", "region"])


def _energised(
    chain: Chain, exits: dict[str, list[str]], links: dict[tuple[str, str], float], nodes: pd.DataFrame
) -> None:
    """Links from the last steps to the power of each region."""
    taken = {m for ms in chain.all_inputs.values() for m in ms}
    last = {p: _flow(chain, p) for m, ps in chain.makers.items() if m not in taken for p in ps}
    total = sum(last.values())
    rows = chain.results[
        (chain.results["quantity"] == "energised") & chain.results["period"].str.startswith(chain.year)
    ]
    power = nodes[nodes["stage"] == "power"]
    for region, value in rows.groupby("region")["value"].sum().items():
        targets = list(power.loc[power["region"] == region, "node"])
        for process, flow in last.items():
            if targets and total > 0:
                _link(links, exits[process], targets, float(value) * flow / total)
