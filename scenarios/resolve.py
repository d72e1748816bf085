"""A scenario to the network of the supply room: every number evaluated, edited, bounded, with its sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from scenarios.errors import Problem, ScenarioError, did_you_mean
from scenarios.evaluate import Evaluator, ValueFaultError
from scenarios.horizon import window
from scenarios.load import AppliedEdit, Scenario
from scenarios.measures import Measure
from scenarios.nodes import Array, Clipped, Constant, Draw, Node, Source, outer_range
from scenarios.paths_match import Leaf, match, resource_words
from scenarios.positions import Loc
from scenarios.references import idle_costs
from scenarios.structure import build_network, horizon_of, network_path
from scenarios.values import EDIT_KEYS
from supply.network import Horizon, Network

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Resolved", "check", "resolve"]


@dataclass
class Resolved:
    """A scenario as a network, with the node behind each number."""

    scenario: Scenario
    network: Network
    nodes: dict[str, Node]
    measures: dict[str, Measure]
    touched: dict[str, tuple[str, ...]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def horizon(self) -> Horizon:
        """Reported periods and tail."""
        return self.network.horizon

    @cached_property
    def uncertain(self) -> dict[str, frozenset[str]]:
        """Paths that draw, with their drivers."""
        return {path: drivers for path, node in self.nodes.items() if (drivers := node.drivers())}

    def at(self, draw: Draw, paths: list[str] | None = None) -> dict[str, Array]:
        """Arrays of the network's numbers in a draw: path in the network -> rows of draws x periods."""
        chosen = self.nodes if paths is None else {p: self.nodes[p] for p in paths}
        out = {}
        for path, node in chosen.items():
            held = draw.replaced.get(path)
            out[network_path(path)] = np.atleast_2d(held) if held is not None else node.at(draw)
        return out

    def matching(self, pattern: str) -> list[str]:
        """Paths with a number that a path, pattern or group addresses.

        Raises:
            ScenarioError: when it addresses none.
        """
        found = match(pattern, self.nodes, self.scenario.file.groups)
        if not found:
            known = [*self.nodes, *self.scenario.file.groups]
            where = self.scenario.position(())
            raise ScenarioError([Problem(where, pattern, f"no number has this path{did_you_mean(pattern, known)}")])
        return found

    def inputs(self) -> pd.DataFrame:
        """One row per number and run of equal periods, with range, unit, kind, fact ids and note."""
        import pandas as pd

        labels = self.horizon.labels()
        rows = [row for path in self.nodes for row in _rows(path, self.nodes[path], self.measures[path].label, labels)]
        columns = ["path", "period", "to", "value", "low", "high", "unit", "kind", "fact_ids", "spread", "note"]
        return pd.DataFrame(rows, columns=columns)

    def facts_used(self) -> list[str]:
        """Ids of the facts, series points and series behind the numbers, sorted."""
        return sorted({f for node in self.nodes.values() for facts in node.source.facts for f in facts})


def _rows(path: str, node: Node, unit: str, labels: list[str]) -> Iterator[tuple[Any, ...]]:
    value, (low, high) = node.value, outer_range(node)
    source = node.source
    notes = "; ".join(source.notes)
    start = 0
    for t in range(1, len(labels) + 1):
        if t < len(labels) and value[t] == value[start] and low[t] == low[start] and high[t] == high[start]:
            same = source.facts[t] == source.facts[start] and source.kinds[t] == source.kinds[start]
            if same:
                continue
        last = t - 1
        spread = (float(low[start]), float(high[start])) if high[start] > low[start] else (None, None)
        yield (
            path,
            labels[start],
            labels[last],
            float(value[start]),
            *spread,
            unit,
            source.kinds[start],
            " ".join(source.facts[start]),
            source.spread if spread[0] is not None else "",
            notes,
        )
        start = t


class _Resolver:
    """Evaluates leaves on demand, so that a number may refer to any other; finds circles."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.horizon = horizon_of(scenario.file)
        self.memory: dict[tuple[str, str], Any] = {}
        self.nodes: dict[str, Node | None] = {}
        self.open: list[str] = []
        self.problems: list[Problem] = []
        self.idle: list[str] = []
        self.leaves = dict(scenario.leaves)
        self.edits = self._by_path()

    def _by_path(self) -> dict[str, list[AppliedEdit]]:
        out: dict[str, list[AppliedEdit]] = {}
        groups = self.scenario.file.groups
        for applied in self.scenario.edits:
            found = match(applied.pattern, self.leaves, groups) or self._split_yield(applied.pattern)
            for path in found:
                if applied.level >= self.scenario.level_of(self.leaves[path].loc):
                    out.setdefault(path, []).append(applied)
        return out

    def _split_yield(self, pattern: str) -> list[str]:
        """`processes.P.yield.M`: give each output of P its own yield, starting from the common one."""
        made = []
        for path in match(".".join(pattern.split(".")[:3]), self.leaves):
            leaf = self.leaves[path]
            process = self.scenario.file.processes[str(leaf.loc[1])]
            for output in process.output:
                own = f"{path}.{output}"
                if match(pattern, [own]):
                    self.leaves[own] = Leaf(own, (*leaf.loc, output), leaf.form, leaf.spec, leaf.measure)
                    made.append(own)
        return made

    def lookup(self, path: str) -> tuple[Node, Measure]:
        if path not in self.leaves:
            raise ValueFaultError(f"{{path: {path}}} names no number{did_you_mean(path, self.leaves)}")
        if path in self.open:
            raise ValueFaultError(f"the values refer to each other in a circle: {' -> '.join([*self.open, path])}")
        node = self.node(path)
        if node is None:
            failed = self.leaves[path].form is not None
            raise ValueFaultError("" if failed else f"{{path: {path}}} has no value")
        return node, self.leaves[path].measure

    def node(self, path: str) -> Node | None:
        if path in self.nodes:
            return self.nodes[path]
        self.open.append(path)
        try:
            self.nodes[path] = self._evaluate(self.leaves[path])
        finally:
            self.open.pop()
        return self.nodes[path]

    def _evaluator(self) -> Evaluator:
        return Evaluator(self.horizon, self.scenario.facts, self.lookup, self.memory)

    def _evaluate(self, leaf: Leaf) -> Node | None:
        node: Node | None = None
        where = self.scenario.position(leaf.loc)
        edits = self.edits.get(leaf.path, [])
        try:
            if leaf.form is not None:
                node = self._evaluator().node(leaf.form, leaf.measure, leaf.path)
            elif edits and leaf.spec.default is not None:
                length = self.horizon.length
                node = Constant(np.full(length, leaf.spec.default), Source.same(length, "default"))
            for applied in edits:
                where = applied.where
                note = applied.edit.note or _words(applied)
                evaluator = self._evaluator()
                before, node = node, evaluator.edited(node, applied.edit, leaf.measure, leaf.path, note)
                self._grows_not(before, applied, leaf.path)
        except ValueFaultError as exc:
            if str(exc):  # empty: a number that it refers to failed, and is reported there
                self.problems.append(Problem(where, leaf.path, str(exc)))
            return None
        return node if node is None else self._bounded(node, leaf, where)

    def _grows_not(self, before: Node | None, applied: AppliedEdit, path: str) -> None:
        """A warning for an edit of growth where nothing grows."""
        if applied.edit.scale_growth is None or before is None:
            return
        inside = window(self.horizon, applied.edit.start, applied.edit.end)
        if not np.any(np.diff(before.value, prepend=before.value[:1])[inside]):
            self.idle.append(f"set.{applied.pattern}: {path} does not change there: scale_growth has no effect on it")

    def _bounded(self, node: Node, leaf: Leaf, where: Any) -> Node:
        value, spec = node.value, leaf.spec
        low, high = float(np.min(value)), float(np.max(value))
        name = str(leaf.loc[2] if len(leaf.loc) > 2 else leaf.loc[-1]).replace("_", " ")
        rule = _range_words(spec.lower, spec.upper)
        if not np.all(np.isfinite(value)):
            self.problems.append(Problem(where, leaf.path, "the value is not finite in some period"))
        elif low < spec.lower:
            self.problems.append(Problem(where, leaf.path, f"{low:g} is below {spec.lower:g}: {name} must be {rule}"))
        elif high > spec.upper * (1 + 1e-12):
            self.problems.append(Problem(where, leaf.path, f"{high:g} is above {spec.upper:g}: {name} must be {rule}"))
        if np.isfinite(spec.lower) or np.isfinite(spec.upper):
            return Clipped(node, spec.lower, spec.upper, node.source) if node.drivers() else node
        return node


def _range_words(lower: float, upper: float) -> str:
    if np.isfinite(lower) and np.isfinite(upper):
        return f"between {lower:g} and {upper:g}"
    return f"at least {lower:g}" if np.isfinite(lower) else f"at most {upper:g}"


def _words(applied: AppliedEdit) -> str:
    """An edit in words, for the notes of the inputs table."""
    edit = applied.edit
    raw = applied.raw if isinstance(applied.raw, dict) else {"replace": applied.raw}
    kind = next((k for k in EDIT_KEYS if getattr(edit, k) is not None), "replace")
    detail = raw.get(kind, raw) if isinstance(raw, dict) else raw
    span = (f" from {edit.start}" if edit.start else "") + (f" to {edit.end}" if edit.end else "")
    return f"edited: {kind} {detail}{span}"


def resolve(scenario: Scenario) -> Resolved:
    """Evaluate every number of a scenario and build its network.

    >>> from scenarios.load import load_scenario
    >>> resolve(load_scenario("course_11_1")).network.values["resources.cowos.capacity"][0]
    np.float64(10000.0)

    Raises:
        ScenarioError: with every value that cannot be evaluated, and every inconsistency of the network.
    """
    resolver = _Resolver(scenario)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused at its place as not finite
        for path in list(resolver.leaves):
            resolver.node(path)
    problems = list(dict.fromkeys([*resolver.problems]))
    nodes = {path: node for path, node in resolver.nodes.items() if node is not None}
    measures = {path: resolver.leaves[path].measure for path in nodes}
    if problems:
        raise ScenarioError(problems)
    words = resource_words(scenario.file, scenario.facts)
    values = {network_path(path): node.value for path, node in nodes.items()}
    network = build_network(scenario, resolver.horizon, values, words)
    touched = {path: tuple(_words(a) for a in applied) for path, applied in resolver.edits.items()}
    errors, warnings = _consistency(scenario, network)
    warnings += [*_idle_edits(resolver), *sorted(set(resolver.idle)), *idle_costs(scenario)]
    if errors:
        raise ScenarioError(errors)
    return Resolved(scenario, network, nodes, measures, touched, warnings)


def _idle_edits(resolver: _Resolver) -> list[str]:
    """Edits whose `from` and `to` leave no period of the horizon."""
    found = {
        f"set.{edit.pattern}: no period of the horizon lies in its `from` and `to`: it changes nothing"
        for edits in resolver.edits.values()
        for edit in edits
        if (inside := window(resolver.horizon, edit.edit.start, edit.edit.end)).start >= inside.stop
        or inside.start >= resolver.horizon.length
    }
    return sorted(found)


def _consistency(scenario: Scenario, network: Network) -> tuple[list[Problem], list[str]]:
    """What `supply.consistency` finds: errors at the place of the entry they name, and warnings in words."""
    from supply.consistency import check as check_consistency

    errors, warnings = [], []
    for found in check_consistency(network):
        if found.severity != "error":
            warnings.append(str(found))
            continue
        loc: Loc = tuple(int(p) if p.isdigit() else p for p in found.path.split("."))
        errors.append(Problem(scenario.position(loc), found.path, f"{found.message}; {found.fix}"))
    return errors, warnings


def check(name_or_path: Any, sets: Any = ()) -> list[Problem]:
    """Every problem of a scenario, empty when it can run.

    >>> check("course_11_1")
    []
    """
    from scenarios.load import load_scenario

    try:
        resolve(load_scenario(name_or_path, sets))
    except ScenarioError as exc:
        return list(exc.problems)
    return []
