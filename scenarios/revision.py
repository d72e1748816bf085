"""Revision log: which input moved the answer between two snapshots of the facts.

log = revision_log("base", before, after, outputs=["energised:*@2026"])
log.changes      facts and series points that differ and that the scenario rests on
log.answers      one row an output and changed input: its part of the change, and the facts behind it
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from supply.facts import Catalog

if TYPE_CHECKING:
    from scenarios.resolve import Resolved

__all__ = ["RevisionLog", "changed_facts", "read_snapshot", "revision_log"]

CHANGE_COLUMNS = ["id", "what", "before", "after", "low_before", "high_before", "low_after", "high_after", "unit"]
ANSWER_COLUMNS = ["output", "input", "before", "after", "change", "part", "share", "facts"]


@dataclass(frozen=True)
class RevisionLog:
    """Changed facts that a scenario rests on, and how far each changed input moved each output."""

    scenario: str
    changes: pd.DataFrame
    answers: pd.DataFrame

    @property
    def words(self) -> list[str]:
        """One sentence an output: its change and the input that moved it most."""
        out = []
        for name, rows in self.answers.groupby("output", sort=False):
            first = rows.iloc[0]
            facts = f" ({first['facts']})" if first["facts"] else ""
            out.append(
                f"{name}: {first['before']:.6g} to {first['after']:.6g}; most of it from {first['input']}"
                f"{facts}, {first['part']:+.6g}"
            )
        return out

    def json(self) -> dict[str, Any]:
        """All of it as one object."""
        tables = {name: getattr(self, name).to_dict("records") for name in ("changes", "answers")}
        return {"scenario": self.scenario, "words": self.words} | tables


def read_snapshot(folder: str | Path) -> Catalog:
    """The catalogue of a folder of fact files, e.g. the `data/facts` of an earlier version.

    Raises:
        FactError: with every malformed row.
    """
    from supply.facts.catalog import load

    return load(Path(folder))


def changed_facts(before: Catalog, after: Catalog, used: Iterable[str] | None = None) -> pd.DataFrame:
    """Facts and series points whose number, range or existence differs, of those named in `used` (default: all)."""
    old, new = _rows(before), _rows(after)
    wanted = None if used is None else set(used)
    rows = []
    for name in sorted(set(old) | set(new)):
        a, b = old.get(name), new.get(name)
        if a == b or (wanted is not None and name not in wanted and name.split("@")[0] not in wanted):
            continue
        what = "added" if a is None else "removed" if b is None else "changed"
        first, second = a or (None, None, None, ""), b or (None, None, None, "")
        unit = second[3] or first[3]
        rows.append((name, what, first[0], second[0], first[1], first[2], second[1], second[2], unit))
    return pd.DataFrame(rows, columns=CHANGE_COLUMNS)


def _rows(cat: Catalog) -> dict[str, tuple[Any, Any, Any, str]]:
    out: dict[str, tuple[Any, Any, Any, str]] = {f.id: (f.value, f.low, f.high, f.unit) for f in cat}
    for name in cat.series_ids:
        out |= {p.id: (p.value, p.low, p.high, p.unit) for p in cat.series(name).points}
    return out


def revision_log(
    scenario: str | Path, before: Catalog, after: Catalog, outputs: Sequence[str] | None = None
) -> RevisionLog:
    """Solve a scenario on two snapshots and split the change of its outputs over the inputs that moved.

    Parts are Shapley values (`scenarios.compare`), so they add up to the change. Rolling regimes are compared with
    foresight.

    Raises:
        ScenarioError: when a snapshot lacks a fact that the scenario needs.
        InfeasibleError: when either snapshot gives no optimum.
    """
    from scenarios.compare import compare
    from scenarios.load import load_scenario
    from scenarios.resolve import resolve

    first, second = (load_scenario(scenario, facts=cat) for cat in (before, after))
    found = compare(first, second, outputs=outputs)
    pair = [resolve(s) for s in (first, second)]
    used = {f for r in pair for f in r.facts_used()}
    changes = changed_facts(before, after, used | {f.split("@")[0] for f in used})
    moved = set(changes["id"])
    behind = {g: _behind(pair, paths, moved) for g, paths in found.groups.items()}
    rows = [
        (
            name,
            group,
            row["first"],
            row["second"],
            row["change"],
            part,
            part / row["change"] if row["change"] else 0.0,
            behind.get(group, ""),
        )
        for name, row in found.outputs.items()
        for group, part in row["parts"].items()
    ]
    return RevisionLog(second.name, changes, pd.DataFrame(rows, columns=ANSWER_COLUMNS))


def _behind(pair: Sequence[Resolved], paths: Sequence[str], moved: set[str]) -> str:
    """Changed facts behind the numbers of a group; a series is named once."""
    ids = set()
    for resolved in pair:
        for path in paths:
            node = resolved.nodes.get(path)
            if node is not None:
                ids |= {f for facts in node.source.facts for f in facts}
    hit = {i for i in ids if i in moved or any(m.startswith(f"{i}@") for m in moved)}
    return " ".join(sorted({i.split("@")[0] for i in hit}))
