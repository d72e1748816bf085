"""Why the headline of a run differs from that of an earlier run: the change split over its causes, told apart by kind.

data: a fact or series has another value; assumption: a number that the scenario states; scope: other products, limits,
regions or rules; method: what is left when today's program solves the stored numbers of the earlier run. Both runs are
rebuilt from the numbers in their folders, whatever the facts say today.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from scenarios.compare import EXACT, Game, changed_groups, shapley, structure_differs
from scenarios.costing import no_costs
from scenarios.errors import ScenarioError
from scenarios.evaluators import Study, Worker
from scenarios.nodes import Array
from scenarios.resolve import Resolved, resolve
from scenarios.runs import Run

__all__ = ["Cause", "Causes", "stored_numbers", "why_changed"]

_STRUCTURE = "structure"
#: Change of an output that is left over from settling ties, relative to the output.
_SPECK = 1e-6


@dataclass(frozen=True)
class Cause:
    """A group of numbers that differ, its kind, and its part of the change of each output."""

    name: str
    kind: str
    parts: dict[str, float]


@dataclass(frozen=True)
class Causes:
    """Values before and now by output, and the causes, largest part of the first output first; or why not split."""

    before: dict[str, float] = field(default_factory=dict)
    now: dict[str, float] = field(default_factory=dict)
    causes: list[Cause] = field(default_factory=list)
    reason: str = ""


def why_changed(previous: Run, run: Run, outputs: Sequence[str], most: int = EXACT) -> Causes:
    """Split the change of outputs such as `energised:*@2026` between two runs.

    At most `most` groups of numbers are told apart (all subsets of them are solved); where more differ, those of one
    section and kind count as one, and the smallest sections together. `reason` is `horizon`, `rolling` or `unsolved`
    where the change cannot be split.
    """
    before, now = ({o: r.output(o) for o in outputs} for r in (previous, run))
    if before == now:
        return Causes(before, now)
    if "rolling" in (previous.manifest["regime"], run.manifest["regime"]):
        return Causes(before, now, reason="rolling")
    try:
        a, b = (_rebuilt(r) for r in (previous, run))
        if a.horizon != b.horizon:
            return Causes(before, now, reason="horizon")
        causes = _split(a, b, previous, run, list(outputs), most)
    except (ScenarioError, ValueError):
        return Causes(before, now, reason="unsolved")
    left = {o: now[o] - before[o] - sum(c.parts[o] for c in causes) for o in outputs}
    if any(abs(v) > _SPECK * max(abs(now[o]), abs(before[o])) for o, v in left.items()):
        causes.append(Cause("method", "method", left))
    causes.sort(key=lambda c: -abs(c.parts[outputs[0]]))
    return Causes(before, now, causes)


def _split(a: Resolved, b: Resolved, previous: Run, run: Run, outputs: list[str], most: int) -> list[Cause]:
    groups = changed_groups(a, b)
    structural = structure_differs(a, b)
    room = most - structural
    kinds = {name: _kind(paths, previous, run) for name, paths in groups.items()}
    groups, kinds = _merged(groups, kinds, room)
    players = [*groups, *([_STRUCTURE] if structural else [])]
    old = Worker(Study.of(a, no_costs()))
    new = Worker(Study.of(b, no_costs())) if structural else old
    game = Game(a, b, old, new, groups, outputs)
    parts, _ = shapley(game, players, len(outputs))
    kinds[_STRUCTURE] = "scope"
    return [
        Cause(name, kinds[name], {o: float(parts[i, k]) for k, o in enumerate(outputs)})
        for i, name in enumerate(players)
    ]


def _merged(
    groups: dict[str, list[str]], kinds: dict[str, str], room: int
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Groups joined by section and kind where there are more than `room`, then the smallest together."""
    if len(groups) <= room:
        return groups, kinds
    joined: dict[str, list[str]] = {}
    named: dict[str, str] = {}
    for name, paths in groups.items():
        section = f"{name.partition('.')[0]} ({kinds[name]})"
        joined.setdefault(section, []).extend(paths)
        named[section] = kinds[name]
    order = sorted(joined, key=lambda n: -len(joined[n]))
    if len(order) > room:
        rest = order[room - 1 :]
        joined = {n: joined[n] for n in order[: room - 1]} | {"others": [p for n in rest for p in joined[n]]}
        named["others"] = named[rest[0]] if len({named[n] for n in rest}) == 1 else "data and assumption"
    return joined, named


def stored_numbers(run: Run, length: int, labels: Sequence[str]) -> dict[str, Array]:
    """Numbers of a run by path and period, from its table of inputs."""
    place = {label: t for t, label in enumerate(labels)}
    out: dict[str, Array] = {}
    rows: Any = run.inputs.itertuples()
    for row in rows:
        if row.period in place and row.to in place:
            out.setdefault(row.path, np.full(length, np.nan))[place[row.period] : place[row.to] + 1] = row.value
    return {path: values for path, values in out.items() if not np.isnan(values).any()}


def _rebuilt(run: Run) -> Resolved:
    """The scenario of a run with the numbers that the run was made of."""
    if run.resolved is not None:
        return run.resolved
    from scenarios.load import load_scenario

    assert run.folder is not None
    resolved = resolve(load_scenario(run.folder / "scenario.yaml", name=run.scenario))
    labels = resolved.horizon.labels()
    held = stored_numbers(run, resolved.horizon.length, labels)
    known = {path: v for path, v in held.items() if path in resolved.network.values}
    return replace(resolved, network=resolved.network.with_values(known))


def _kind(paths: Sequence[str], previous: Run, run: Run) -> str:
    """Whether numbers differ because a fact behind them does, or because the scenario states another number."""
    if previous.manifest["facts_digest"] == run.manifest["facts_digest"]:
        return "assumption"
    edits = [[r.manifest["edits"].get(p) for p in paths] for r in (previous, run)]
    if edits[0] != edits[1]:
        return "assumption"
    wanted = set(paths)
    used: list[set[str]] = []
    for held in (previous.inputs, run.inputs):
        rows = held.loc[held["path"].isin(wanted), "fact_ids"].fillna("")
        used.append({name for text in rows for name in str(text).split()})
    facts = [r.manifest["facts"] for r in (previous, run)]
    values = [{n: held.get(n, {}).get("value") for n in names} for held, names in zip(facts, used, strict=True)]
    return "data" if values[0] != values[1] else "assumption"
