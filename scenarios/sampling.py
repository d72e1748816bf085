"""Draws of the uncertain inputs: ranks by driver, correlated, the same for the same driver in every scenario.

ranks          LHS: each driver has its own stratified, shuffled column, seeded by (seed, driver name), so that two
scenarios share
               the numbers of every driver that both have (common random numbers). Sobol: scrambled points, drivers in
               name order.
correlations   Gaussian copula: normal scores are mixed by the Cholesky factor, then go back to ranks. A rank
correlation rho asks
               for the normal correlation 2 sin(pi rho / 6).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from scenarios.errors import Problem, ScenarioError
from scenarios.nodes import Array

if TYPE_CHECKING:
    from scenarios.resolve import Resolved

__all__ = ["Factor", "correlated", "drivers_of", "factors", "rank_matrix", "ranks_by_driver"]

#: Ranks stay inside, because 0 and 1 stand for the printed ends of a range.
_EDGE = 1e-9


@dataclass(frozen=True, slots=True)
class Factor:
    """One uncertain input of a study: a name, and the drivers that move together with it."""

    name: str
    drivers: tuple[str, ...]


def drivers_of(resolved: Resolved) -> list[str]:
    """All drivers of a scenario in name order, those that only move lead times, lives and the like left out.

    Such numbers decide which entries the programme has; a study that names them moves them, at the price of a compile.
    """
    from supply.optimizer.compiled import STRUCTURAL

    free = (d for path, drivers in resolved.uncertain.items() if not STRUCTURAL.fullmatch(path) for d in drivers)
    return sorted(set(free))


def factors(resolved: Resolved, inputs: Iterable[str] | None = None) -> list[Factor]:
    """Factors of a study: one a driver, or one for each path, pattern or group that is named.

    Raises:
        ScenarioError: when an input addresses nothing, or nothing that is uncertain.
    """
    if inputs is None:
        return [Factor(d, (d,)) for d in drivers_of(resolved)]
    out = []
    for name in inputs:
        if name in drivers_of(resolved):
            out.append(Factor(name, (name,)))
            continue
        found = sorted({d for path in resolved.matching(name) for d in resolved.uncertain.get(path, ())})
        if not found:
            where = resolved.scenario.position(())
            message = "is certain: give it a range or a distribution, or edit it with {scale: {distribution: ...}}"
            raise ScenarioError([Problem(where, name, message)])
        out.append(Factor(name, tuple(found)))
    return out


def _column(name: str, draws: int, seed: int) -> Array:
    """Stratified ranks of one driver: one in each of `draws` equal strata, in an order of its own."""
    digest = hashlib.sha256(f"{seed}|{name}".encode()).digest()
    generator = np.random.default_rng(np.frombuffer(digest, dtype=np.uint64))
    return np.asarray((generator.permutation(draws) + generator.random(draws)) / draws)


def rank_matrix(names: Sequence[str], draws: int, seed: int = 0, method: str = "lhs") -> Array:
    """Independent ranks: one row a draw, one column a name.

    >>> u = rank_matrix(["a", "b"], 4)
    >>> sorted((u[:, 0] * 4).astype(int).tolist()), bool((u == rank_matrix(["a", "b"], 4)).all())
    ([0, 1, 2, 3], True)

    Raises:
        ValueError: for an unknown method.
    """
    if method == "lhs":
        matrix = np.column_stack([_column(n, draws, seed) for n in names]) if names else np.zeros((draws, 0))
    elif method == "sobol":
        from scipy.stats import qmc

        order = np.argsort(np.array(names, dtype=str), kind="stable")
        points = qmc.Sobol(len(names), scramble=True, rng=np.random.default_rng(seed))
        whole = points.random_base2(int(np.ceil(np.log2(max(2, draws)))))[:draws]
        matrix = np.empty_like(whole)
        matrix[:, order] = whole
    elif method == "random":
        matrix = np.random.default_rng(seed).random((draws, len(names)))
    else:
        raise ValueError(f"method {method!r} is not lhs, sobol or random")
    return np.clip(matrix, _EDGE, 1.0 - _EDGE)


def correlated(ranks: Array, names: Sequence[str], pairs: Iterable[tuple[str, str, float]]) -> Array:
    """Ranks with given rank correlations, by a Gaussian copula; marginal strata are kept only approximately.

    Raises:
        ValueError: when the correlations contradict each other (no positive definite matrix).
    """
    from scipy.special import ndtr, ndtri

    place = {n: k for k, n in enumerate(names)}
    matrix = np.eye(len(names))
    for a, b, rho in pairs:
        if a in place and b in place and a != b:
            matrix[place[a], place[b]] = matrix[place[b], place[a]] = 2.0 * np.sin(np.pi * rho / 6.0)
    if np.array_equal(matrix, np.eye(len(names))):
        return ranks
    least = float(np.linalg.eigvalsh(matrix)[0])
    if least < -1e-9:
        raise ValueError("the rank correlations contradict each other: lower some of them towards zero")
    factor = np.linalg.cholesky(matrix + max(0.0, 1e-10 - least) * np.eye(len(names)))
    return np.asarray(np.clip(ndtr(ndtri(ranks) @ factor.T), _EDGE, 1.0 - _EDGE))


def correlation_pairs(resolved: Resolved) -> list[tuple[str, str, float]]:
    """Correlations of a scenario between drivers: every pair of drivers behind the inputs that are named together."""
    out = []
    for entry in resolved.scenario.file.correlations:
        sets = [
            sorted({d for path in resolved.matching(pattern) for d in resolved.uncertain.get(path, ())})
            for pattern in entry.inputs
        ]
        for k, first in enumerate(sets):
            for second in sets[k + 1 :]:
                out += [(a, b, entry.rank) for a in first for b in second if a != b]
        if len(set(entry.inputs)) == 1 or (len(sets) == 2 and sets[0] == sets[1]):
            out += [(a, b, entry.rank) for i, a in enumerate(sets[0]) for b in sets[0][i + 1 :]]
    return out


def ranks_by_driver(
    resolved: Resolved, chosen: Sequence[Factor], draws: int, seed: int = 0, method: str = "lhs"
) -> dict[str, Array]:
    """Ranks of every driver of the factors, correlated as the scenario says."""
    names = [f.name for f in chosen]
    base = rank_matrix(names, draws, seed, method)
    single = {f.drivers[0]: f.name for f in chosen if len(f.drivers) == 1}
    pairs = [(single[a], single[b], rho) for a, b, rho in correlation_pairs(resolved) if a in single and b in single]
    mixed = correlated(base, names, pairs)
    return {d: mixed[:, k] for k, f in enumerate(chosen) for d in f.drivers}
