"""Yield learning as a rival of new tools: engineering spend that opens a better version of a process.

Learning is an expansion of a resource that only the improved process uses: until the project is paid for and its lead
time has passed, the improved process cannot start. The optimum then chooses between tools, learning and waiting with
one yardstick; a project is all or nothing (`lump`) or may be done in part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from supply.network import Expansion, Network, NetworkError, Resource


@dataclass(frozen=True)
class LearningProject:
    """Spend `cost_usd` once; `lead_time` periods later the process yields `improved_yield` (all outputs)."""

    id: str
    process: str
    improved_yield: ArrayLike
    cost_usd: float
    lead_time: float = 0.0
    owner: str = ""
    all_or_nothing: bool = True


def with_learning(network: Network, project: LearningProject) -> Network:
    """Network with the improved version of a process, open only after the project is paid for.

    Raises `NetworkError` where the process is missing, uses no resource, or the yield is not better anywhere.
    """
    if project.process not in network.processes:
        raise NetworkError(f"learning {project.id}: no such process: {project.process}")
    process = network.processes[project.process]
    if not process.uses:
        raise NetworkError(f"learning {project.id}: {project.process} uses no resource, so nothing limits it")
    better = np.broadcast_to(np.asarray(project.improved_yield, dtype=float), network.horizon.length)
    if not np.any(better > network.get(f"processes.{project.process}.yield", 1.0)):
        raise NetworkError(f"learning {project.id}: yield {better.max():g} is nowhere better than today's")
    gate, improved = f"learned_{project.id}", f"{project.process}_{project.id}"
    limits = [
        network.get(f"resources.{r}.capacity") / network.get(f"processes.{project.process}.uses.{r}")
        for r in process.uses
    ]
    most = float(np.max(np.min(limits, axis=0)))
    values = {
        f"{path.replace(f'processes.{project.process}.', f'processes.{improved}.', 1)}": array
        for path, array in network.values.items()
        if path.startswith(f"processes.{project.process}.") and ".yield." not in path
    }
    values |= {
        f"processes.{improved}.yield": better,
        f"processes.{improved}.uses.{gate}": np.ones(network.horizon.length),
        f"resources.{gate}.capacity": np.zeros(network.horizon.length),
        f"expansions.{project.id}.capex": np.full(network.horizon.length, project.cost_usd / most),
        f"expansions.{project.id}.greatest": np.full(network.horizon.length, most),
        f"expansions.{project.id}.lead_time": np.full(network.horizon.length, project.lead_time),
    }
    if project.all_or_nothing:
        values[f"expansions.{project.id}.lump"] = np.full(network.horizon.length, most)
    copy = replace(process, id=improved, uses=(*process.uses, gate))
    return replace(
        network,
        processes={**network.processes, improved: copy},
        resources={**network.resources, gate: Resource(gate, "learning", "start", owner=project.owner)},
        expansions={**network.expansions, project.id: Expansion(project.id, gate, project.owner, kind="learning")},
    ).with_values(values)
