"""Why two runs differ: the change of each output split over the groups of changed inputs, exactly.

Shapley values: a group's part is its mean marginal effect over all orders in which the groups could have changed. The
parts add up to
the whole change. Up to `EXACT` groups every subset is solved; beyond that, orders are sampled (in pairs of opposites)
and the parts still add up, since each order does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np

from scenarios.draw_outputs import is_there, selection
from scenarios.errors import Position, Problem, ScenarioError
from scenarios.evaluators import Chunk, Worker
from scenarios.load import Scenario, load_scenario
from scenarios.nodes import Array
from scenarios.outputs import FLOWS, LEVELS, parse_output
from scenarios.resolve import Resolved
from scenarios.runs import Run
from scenarios.study import default_outputs, prepare

__all__ = ["EXACT", "Comparison", "Game", "changed_groups", "compare", "shapley", "structure_differs"]

EXACT = 6
ORDERS = 24
#: A change below this share of the values is the tolerance of the solves, and counts as none.
NOISE = 1e-9


@dataclass
class Comparison:
    """Difference of two scenarios: per output its values, the parts of each changed group, and the interactions.

    `only` holds the outputs (prices, costs) that one of the two has: scenario -> output -> value; `absent` those of
    accelerators that neither makes or prices.
    """

    first: str
    second: str
    groups: dict[str, list[str]]
    outputs: dict[str, dict[str, Any]]
    binding: dict[str, dict[str, list[str]]]
    exact: bool
    only: dict[str, dict[str, float]] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def json(self) -> dict[str, Any]:
        """All of it as one object."""
        return dict(vars(self))


def compare(
    first: str | Path | Scenario | Run,
    second: str | Path | Scenario | Run,
    *,
    outputs: Sequence[str] | None = None,
) -> Comparison:
    """Split the change of outputs from the first to the second scenario over the inputs that differ.

    Changed numbers are grouped by section and id (`resources.cowos`); a change of structure (a process, a window, a
    disruption) is one
    group, `structure`, made of the second scenario's structure. Rolling regimes are compared with foresight.

    Raises:
        ScenarioError: when the scenarios have different horizons, so that their periods cannot be compared.
    """
    a, b = (_scenario(s) for s in (first, second))
    resolved_a, _, worker_a = prepare(a)
    resolved_b, _, worker_b = prepare(b)
    _same_horizon(resolved_a, resolved_b)
    wanted = list(outputs or dict.fromkeys([*default_outputs(resolved_b), *default_outputs(resolved_a)]))
    wanted, only, absent = _in_both(wanted, [(a.name, worker_a), (b.name, worker_b)])
    groups = changed_groups(resolved_a, resolved_b)
    structural = structure_differs(resolved_a, resolved_b)
    players = [*groups, *(["structure"] if structural else [])]
    game = Game(resolved_a, resolved_b, worker_a, worker_b if structural else worker_a, groups, wanted)
    parts, exact = shapley(game, players, len(wanted))
    start, end = game(frozenset()), game(frozenset(players))
    result = Comparison(a.name, b.name, groups, {}, _bindings(worker_a, worker_b), exact, only, absent)
    for k, name in enumerate(wanted):
        alone = {p: game(frozenset([p]))[k] - start[k] for p in players}
        by_part = {p: parts[i, k] for i, p in enumerate(players)}
        result.outputs[name] = _entry(float(start[k]), float(end[k]), by_part, alone)
    result.words = _words(result)
    return result


def _entry(first: float, second: float, parts: dict[str, float], alone: dict[str, float]) -> dict[str, Any]:
    """One output of a comparison; what lies within the tolerance of a solve is zero."""
    noise = NOISE * max(abs(first), abs(second))

    def told(value: float) -> float:
        return float(value) if abs(value) > noise else 0.0

    total = told(second - first)
    return {
        "first": first,
        "second": second,
        "change": total,
        "parts": {p: told(v) for p, v in sorted(parts.items(), key=lambda item: (-abs(told(item[1])), item[0]))},
        "alone": {p: told(v) for p, v in alone.items()},
        "interaction": told(total - sum(alone.values())),
    }


def _in_both(
    wanted: Sequence[str], workers: Sequence[tuple[str, Worker]]
) -> tuple[list[str], dict[str, dict[str, float]], list[str]]:
    """Outputs to split, what only one scenario has, and what neither has of an accelerator that one of them knows.

    What a scenario does not know, it neither makes nor runs: amounts of it are zero there, but it has no price.

    Raises:
        ScenarioError: for an output that nothing could have.
    """
    both: list[str] = []
    absent: list[str] = []
    only: dict[str, dict[str, float]] = {}
    for name in wanted:
        there = [(s, worker) for s, worker in workers if is_there(worker.extractor.names, name)]
        output = parse_output(name)
        if not there and any(output.subject.split("/")[-1] in w.compiled.network.fleet for _, w in workers):
            absent.append(name)
        elif not there:
            selection(workers[-1][1].extractor.names, [name])  # raises, with the nearest names
        elif len(there) == len(workers) or output.quantity in FLOWS | LEVELS:
            both.append(name)
        else:
            scenario, worker = there[0]
            value = selection(worker.extractor.names, [name])[0] @ worker.extractor.read(worker.nominal)
            only.setdefault(scenario, {})[name] = float(value)
    return both, only, absent


def _rows(names: Sequence[str], wanted: Sequence[str]) -> Array:
    """`selection`, with zeros for what a scenario does not know."""
    rows = [selection(names, [n])[0] if is_there(names, n) else np.zeros(len(names)) for n in wanted]
    return np.array(rows).reshape(len(wanted), len(names))


def _scenario(given: str | Path | Scenario | Run) -> Scenario:
    if isinstance(given, Scenario):
        return given
    if isinstance(given, Run):
        if given.resolved is not None:
            return given.resolved.scenario
        assert given.folder is not None
        return load_scenario(given.folder / "scenario.yaml", name=given.scenario)
    folder = Path(given)
    if (folder / "manifest.json").is_file():
        return _scenario(Run.open(folder))
    return load_scenario(given)


def _same_horizon(a: Resolved, b: Resolved) -> None:
    if a.horizon != b.horizon:
        message = (
            f"horizons differ ({a.horizon.start}, {a.horizon.periods} x {a.horizon.step} against {b.horizon.start}, "
        )
        message += f"{b.horizon.periods} x {b.horizon.step}): compare scenarios of one horizon"
        raise ScenarioError([Problem(Position(b.scenario.source, 1, 1), "horizon", message)])


def changed_groups(a: Resolved, b: Resolved) -> dict[str, list[str]]:
    """Numbers that differ, by section and id; what follows from a shared number (`{path: ...}`) belongs to it."""
    out: dict[str, list[str]] = {}
    for path in sorted(set(a.network.values) | set(b.network.values)):
        old, new = a.network.values.get(path), b.network.values.get(path)
        if old is None or new is None or np.array_equal(old, new):
            continue
        parts = path.split(".")
        shared = next((p for p in _shared_with(a, path) if not _equal(a, b, p)), None)
        name = ".".join((shared or path).split(".")[:2]) if len(parts) > 1 else path
        out.setdefault(name, []).append(path)
    return out


def _shared_with(resolved: Resolved, path: str) -> list[str]:
    """Paths of `costs` that the number at a path refers to."""
    node = resolved.nodes.get(path)
    found: list[str] = []
    stack = [node] if node is not None else []
    while stack:
        current = stack.pop()
        reference = getattr(current, "path", None)
        if isinstance(reference, str):
            found.append(reference)
        part = getattr(current, "part", None)
        stack += [part] if part is not None else []
        stack += list(getattr(current, "parts", ()))
    return found


def _equal(a: Resolved, b: Resolved, path: str) -> bool:
    old, new = a.network.values.get(path), b.network.values.get(path)
    return old is not None and new is not None and bool(np.array_equal(old, new))


def structure_differs(a: Resolved, b: Resolved) -> bool:
    """Whether anything but numbers differs: records, windows, new or missing numbers."""
    keys = (
        "materials",
        "processes",
        "resources",
        "demand",
        "segments",
        "fleet",
        "contracts",
        "expansions",
        "disruptions",
    )
    if any(getattr(a.network, k) != getattr(b.network, k) for k in (*keys, "regions", "objective", "opening")):
        return True
    return set(a.network.values) != set(b.network.values)


class Game:
    """Outputs of the first scenario with some groups set as in the second one; every set is solved once."""

    def __init__(
        self,
        a: Resolved,
        b: Resolved,
        old: Worker,
        new: Worker,
        groups: dict[str, list[str]],
        wanted: Sequence[str],
    ) -> None:
        self.a, self.b, self.groups = a, b, groups
        self.workers = {False: old, True: new}
        self.pick = {flag: _rows(w.extractor.names, wanted) for flag, w in self.workers.items()}
        self.known: dict[frozenset[str], Array] = {}

    def __call__(self, players: frozenset[str]) -> Array:
        """Outputs with the groups of `players` as in the second scenario."""
        if players not in self.known:
            self.known[players] = self._solve(players)
        return self.known[players]

    def _solve(self, players: frozenset[str]) -> Array:
        moved = "structure" in players
        worker = self.workers[moved]
        other = self.a if moved else self.b
        take = [p for g, paths in self.groups.items() if (g in players) != moved for p in paths]
        worker._set({p: other.network.values[p] for p in take if p in other.network.values})
        problem = worker._solve()
        if problem:
            chosen = ", ".join(sorted(players)) or "none"
            where = Position(self.b.scenario.source, 1, 1)
            raise ScenarioError([Problem(where, "compare", f"with only {chosen} changed, {problem}")])
        from scenarios.extract import Reading

        return np.asarray(self.pick[moved] @ worker.extractor.read(Reading.of(worker.compiled)))


def shapley(game: Any, players: Sequence[str], size: int, exact_up_to: int = EXACT) -> tuple[Array, bool]:
    """Shapley parts (players x outputs) of a game, and whether they are exact.

    >>> worth = {frozenset(): 0.0, frozenset("a"): 1.0, frozenset("b"): 2.0, frozenset("ab"): 5.0}
    >>> shapley(lambda s: np.array([worth[s]]), ["a", "b"], 1)[0].ravel().tolist()
    [2.0, 3.0]
    """
    if len(players) <= exact_up_to:
        return _exact(game, players, size), True
    generator = np.random.default_rng(0)
    parts = np.zeros((len(players), size))
    orders: list[list[int]] = []
    for _ in range(ORDERS // 2):
        order = generator.permutation(len(players)).tolist()
        orders += [order, order[::-1]]
    for order in orders:
        inside: frozenset[str] = frozenset()
        before = game(inside)
        for k in order:
            inside = inside | {players[k]}
            after = game(inside)
            parts[k] += (after - before) / len(orders)
            before = after
    return parts, False


def _exact(game: Any, players: Sequence[str], size: int) -> Array:
    n = len(players)
    parts = np.zeros((n, size))
    for mask in range(2**n):
        inside = frozenset(players[k] for k in range(n) if mask >> k & 1)
        weight = factorial(len(inside)) * factorial(n - len(inside) - 1) / factorial(n) if len(inside) < n else 0.0
        for k in range(n):
            if not mask >> k & 1:
                parts[k] += weight * (game(inside | {players[k]}) - game(inside))
    return parts


def _bindings(a: Worker, b: Worker) -> dict[str, dict[str, list[str]]]:
    """period -> resources that bind in one scenario only."""
    found = [_binding_sets(w) for w in (a, b)]
    out: dict[str, dict[str, list[str]]] = {}
    for period in found[0]:
        left, right = found[0][period], found[1].get(period, set())
        if left != right:
            out[period] = {"only_first": sorted(left - right), "only_second": sorted(right - left)}
    return out


def _binding_sets(worker: Worker) -> dict[str, set[str]]:
    vector = (
        worker.extractor.read(worker.nominal) if not worker._touched else worker.evaluate(Chunk(0, 0, size=1)).values[0]
    )
    rents: dict[str, dict[str, float]] = {}
    for name, value in zip(worker.extractor.names, vector, strict=True):
        if name.startswith("rent:"):
            resource, period = name[5:].split("@")
            rents.setdefault(period, {})[resource] = float(value)
    return {p: {r for r, v in by.items() if v > 0.01 * max(by.values()) and v > 0} for p, by in rents.items()}


def _words(result: Comparison) -> list[str]:
    """The comparison in sentences."""
    lines = []
    for name, entry in result.outputs.items():
        share = f" ({entry['change'] / entry['first']:+.1%})" if entry["first"] else ""
        parts = [f"{group} {value:+,.4g}" for group, value in _largest(entry["parts"].items())]
        lines.append(
            f"{name} goes from {entry['first']:,.6g} to {entry['second']:,.6g}{share}: "
            + ("; ".join(parts) if parts else "nothing that matters to it changed")
        )
    for scenario, values in result.only.items():
        lines += [f"{name} is {value:,.6g} in {scenario}; the other does not have it" for name, value in values.items()]
    lines += [
        f"{name}: neither has it; the accelerator is not run then, or its cost is not known" for name in result.absent
    ]
    for period, sets in result.binding.items():
        gone, new = ", ".join(sets["only_first"]) or "nothing", ", ".join(sets["only_second"]) or "nothing"
        lines.append(f"{period}: no longer binding {gone}; newly binding {new}")
    return lines


def _largest(items: Iterable[tuple[str, float]], count: int = 5) -> list[tuple[str, float]]:
    ranked = sorted(items, key=lambda item: (-abs(item[1]), item[0]))
    return [item for item in ranked if item[1] != 0][:count]
