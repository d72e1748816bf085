"""What a run was made of: hashes, dates, versions, facts with their sources, evidence."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from scenarios.run_store import facts_digest, package_version, program_digest

if TYPE_CHECKING:
    from scenarios.resolve import Resolved
    from supply.facts import Catalog

__all__ = ["as_of", "fact_sources", "make_manifest"]


def fact_sources(ids: Iterable[str], facts: Catalog) -> dict[str, dict[str, Any]]:
    """Source, date and kind of each id, and the first publisher where the source is a relay; a series point brings the
    facts that it rests on.
    """
    out: dict[str, dict[str, Any]] = {}
    for name in ids:
        for item in _trace(name, facts):
            if item in out:
                continue
            if item in facts and "@" not in item:
                fact = facts[item]
                out[item] = {
                    "value": fact.value,
                    "unit": fact.unit,
                    "kind": fact.kind,
                    "source": fact.source,
                    "url": fact.url,
                    "known_on": fact.known_on.isoformat(),
                } | ({"origin": fact.origin} if fact.origin and fact.origin != fact.source else {})
            elif "@" in item:
                point = facts.point(item)
                out[item] = {
                    "value": point.value,
                    "unit": point.unit,
                    "kind": point.kind,
                    "source": point.method,
                    "basis": list(point.basis),
                    "known_on": point.known_on.isoformat(),
                }
    return out


def _trace(name: str, facts: Catalog) -> list[str]:
    if name in facts.series_ids:
        return list(dict.fromkeys(item.id for p in facts.series(name).points for item in facts.trace(p.id)))
    return [item.id for item in facts.trace(name)]


def as_of(sources: dict[str, dict[str, Any]]) -> str:
    """The latest day on which a fact of the run became known: the run knows nothing later."""
    days = [source["known_on"] for source in sources.values()]
    return max(days) if days else date(1970, 1, 1).isoformat()


def make_manifest(
    resolved: Resolved, run: str, digest: str, options: dict[str, Any], evidence: dict[str, Any], extra: Iterable[str]
) -> dict[str, Any]:
    """The manifest of a run; `created` is the only part that differs between two runs of the same input."""
    sources = fact_sources([*resolved.facts_used(), *extra], resolved.scenario.facts)
    return {
        "run": run,
        "scenario": resolved.scenario.name,
        "title": resolved.scenario.title,
        "hash": digest,
        "as_of": as_of(sources),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": package_version(),
        "program_sha256": program_digest(),
        "versions": _versions(),
        "facts_digest": facts_digest(),
        "options": options,
        "regime": resolved.network.regime.kind,
        "look_ahead": resolved.network.regime.look_ahead if resolved.network.regime.kind == "rolling" else None,
        "solver": evidence,
        "notes": {"scenario": resolved.scenario.file.note, "warnings": resolved.warnings},
        "edits": {path: list(words) for path, words in resolved.touched.items()},
        "facts": sources,
    }


def _versions() -> dict[str, str]:
    from importlib.metadata import version
    from platform import python_version

    names = ("highspy", "pyomo", "numpy", "scipy", "pandas", "duckdb")
    return {"python": python_version(), **{name: version(name) for name in names}}
