"""Rules for sharing scarce output, with the value that each loses against the optimum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from supply.network import Contract, Network, NetworkError
from supply.optimizer.compiled import optimize
from supply.optimizer.solution import Solution


@dataclass(frozen=True)
class SharingResult:
    """Optimum under a rule: objective, what the rule loses against the free optimum, energised or sold units lost."""

    rule: str
    objective: float
    value_lost: float
    share_lost: float
    solution: Solution


def with_shares(network: Network, resource: str, shares: Mapping[str, tuple[Sequence[str], ArrayLike]]) -> Network:
    """Network in which each group of processes may take at most its share of a resource.

    `shares`: group -> (processes, share of capacity, number or one per period).
    Raises `NetworkError` where shares sum to more than 1 or the resource is not there.
    """
    if resource not in network.resources:
        raise NetworkError(f"sharing: no such resource: {resource}")
    total = np.sum(
        [np.broadcast_to(np.asarray(s, dtype=float), network.horizon.length) for _, s in shares.values()], axis=0
    )
    if float(total.max()) > 1 + 1e-9:
        raise NetworkError(f"sharing: shares of {resource} sum to {total.max():g}; make them at most 1")
    contracts = {
        f"share_{g}_{resource}": Contract(f"share_{g}_{resource}", resource, tuple(p)) for g, (p, _) in shares.items()
    }
    values = {f"contracts.share_{g}_{resource}.greatest_share": s for g, (_, s) in shares.items()}
    return replace(network, contracts={**network.contracts, **contracts}).with_values(values)


def equal_shares(network: Network, resource: str, groups: Mapping[str, Sequence[str]]) -> Network:
    """Every group gets the same share."""
    return with_shares(network, resource, {g: (p, 1 / len(groups)) for g, p in groups.items()})


def proportional_shares(
    network: Network, resource: str, groups: Mapping[str, Sequence[str]], weights: Mapping[str, ArrayLike]
) -> Network:
    """Shares in proportion to weights (contracted volumes, reference demand), number or one per period."""
    length = network.horizon.length
    spread = {g: np.broadcast_to(np.asarray(weights[g], dtype=float), length) for g in groups}
    total = np.sum(list(spread.values()), axis=0)
    return with_shares(network, resource, {g: (p, spread[g] / total) for g, p in groups.items()})


def compare_rules(network: Network, rules: Mapping[str, Network]) -> list[SharingResult]:
    """The free optimum first, then every rule, with the value lost (in objective units, tail included)."""
    best = optimize(network)
    results = [SharingResult("optimum", best.objective_total, 0.0, 0.0, best)]
    for name, ruled in rules.items():
        found = optimize(ruled)
        lost = best.objective_total - found.objective_total
        results.append(
            SharingResult(name, found.objective_total, lost, lost / max(abs(best.objective_total), 1e-12), found)
        )
    return results
