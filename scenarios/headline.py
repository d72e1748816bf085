"""Which inputs could overturn the headline: every input without two sources, moved over its stated range, one at a time.

The headline is the costliest stage of a year and the accelerators energised in it. An input is moved with every number that
rests on it (a driver: a fact, a series, or the path of an assumption); the optimum is re-solved in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from scenarios.nodes import Draw

if TYPE_CHECKING:
    from scenarios.resolve import Resolved
    from supply.optimizer.solution import Solution

__all__ = ["HEADLINE_COLUMNS", "headline_study"]

HEADLINE_COLUMNS = ("input", "kind", "note", "low_input", "high_input", "energised_base", "energised_low", "energised_high",
                    "stage_base", "stage_low", "stage_high", "flips", "swing", "year")  # fmt: skip


def headline_study(resolved: Resolved, year: str, progress: Callable[[str], None] | None = None) -> pd.DataFrame:
    """Energised accelerators and costliest stage of a year at the low and high end of each weak input, largest swing first.

    Weak: illustrative, or resting on one fact. Columns `HEADLINE_COLUMNS`; inputs that change nothing are left out. An end at which no
    plan exists is reported with missing values, never as zero.
    """
    from supply.optimizer.compiled import Compiled

    compiled = Compiled(resolved.network)
    base = _headline(compiled.solve(), year)
    rows = []
    drivers = _weak_drivers(resolved)
    for count, (driver, paths) in enumerate(drivers.items()):
        if progress and count % 25 == 0:
            progress(f"headline study: input {count + 1} of {len(drivers)}")
        ends = [_at(resolved, compiled, driver, paths, rank, year) for rank in (0.0, 1.0)]
        rows.append(_row(resolved, driver, paths, base, ends, year))
        compiled.reset()
    table = pd.DataFrame(rows, columns=list(HEADLINE_COLUMNS))
    moved = table[(table["swing"].isna()) | (table["swing"] > 1e-4 * max(1.0, base[0])) | table["flips"]]
    return moved.sort_values(["flips", "swing"], ascending=False, na_position="first").reset_index(drop=True)


def _weak_drivers(resolved: Resolved) -> dict[str, list[str]]:
    """Driver -> the paths that it moves, for inputs that are illustrative or rest on a single fact."""
    from supply.facts import catalog

    cat = catalog()
    out: dict[str, list[str]] = {}
    for path, drivers in resolved.uncertain.items():
        if path not in resolved.nodes:
            continue
        for driver in drivers:
            out.setdefault(driver, []).append(path)
    return {d: p for d, p in sorted(out.items()) if _is_weak(d, resolved, cat)}


def _is_weak(driver: str, resolved: Resolved, cat: Any) -> bool:
    node = resolved.nodes.get(driver)
    if node is not None and "illustrative" in node.source.kinds:
        return True
    if driver in cat.series_ids:
        points = cat.series(driver).points
        return len({b for p in points for b in p.basis}) <= 1 or any(p.kind == "illustrative" for p in points)
    return node is None or driver in cat


def _at(resolved: Resolved, compiled: Any, driver: str, paths: list[str], rank: float, year: str) -> tuple[float, str] | None:
    from supply.optimizer.errors import SolveError

    changes = resolved.at(Draw(ranks={driver: np.array([rank])}), paths)
    try:
        return _headline(compiled.update({p: v[0] for p, v in changes.items()}).solve(), year)
    except SolveError:
        return None


def _headline(solution: Solution, year: str) -> tuple[float, str]:
    flows = solution.energised if solution.network.fleet else solution.finished
    name = "energised" if solution.network.fleet else "finished"
    total = float(flows.loc[flows["period"].str.startswith(year), name].sum())
    limits = solution.resources
    rent = limits[limits["period"].str.startswith(year)].groupby("stage")["rent"].sum()
    stage = str(rent.idxmax()) if len(rent) and float(rent.max()) > 0 else ""
    return total, stage


def _row(
    resolved: Resolved, driver: str, paths: Iterable[str], base: tuple[float, str], ends: list[tuple[float, str] | None], year: str
) -> tuple[Any, ...]:
    low, high = ends
    node = resolved.nodes.get(driver)
    shown = [float(np.mean(node.at(Draw(ranks={driver: np.array([r])})))) if node is not None else r for r in (0.0, 1.0)]
    values = [end[0] if end else float("nan") for end in (low, high)]
    stages = [end[1] if end else "no plan" for end in (low, high)]
    kind = "illustrative" if node is not None and "illustrative" in node.source.kinds else "single source"
    note = "; ".join(node.source.notes) if node is not None else ", ".join(list(paths)[:3])
    flips = any(s != base[1] for s in stages)
    return (driver, kind, note, *shown, base[0], *values, base[1], *stages, flips, abs(values[1] - values[0]), year)
