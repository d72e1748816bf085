"""What stands behind the app: a scenario compiled once, its sliders, and the answer at any setting of them.

A `Preview` is a run in memory. It re-solves in place, always from the first optimum, so that a case does not depend on
how one came to it, and settles ties as a reported run does, so that app and report show the same numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reports.app_controls import Control, control_of, edited, edits, usual_controls
from reports.app_costs import Costing, CostRow
from scenarios.nodes import Array, Draw

if TYPE_CHECKING:
    import pandas as pd

    from scenarios.load import Scenario
    from scenarios.resolve import Resolved
    from supply.optimizer.solution import Solution

__all__ = ["Band", "Case", "Preview", "Reach", "open_preview"]

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Case:
    """The answer at one setting of the sliders.

    `volume`: accelerators energised (finished, where a scenario has no fleet) by SKU and reported period; `h100e` the
    same in H100-equivalents; `binding`: every limit with a price (see `scenarios.limit_rents`); `utilisation`: share in
    use by limit and period.
    `failed` says in words why there is no plan, and then the rest is empty.
    """

    name: str
    settings: dict[str, float]
    start: str
    periods: tuple[str, ...]
    skus: tuple[str, ...] = ()
    volume: Array = field(default_factory=lambda: np.zeros((0, 0)))
    h100e: Array = field(default_factory=lambda: np.zeros((0, 0)))
    binding: pd.DataFrame | None = None
    utilisation: dict[str, Array] = field(default_factory=dict)
    costs: tuple[CostRow, ...] = ()
    seconds: float = 0.0
    failed: str = ""

    def total(self, year: str) -> float:
        """Accelerators of a year (or one period), all SKUs."""
        return float(self.volume[:, self._inside(year)].sum())

    def h100e_total(self, year: str) -> float:
        """H100-equivalents of a year, all SKUs."""
        return float(self.h100e[:, self._inside(year)].sum())

    def shares(self, period: str) -> dict[str, float]:
        """Share of all scarcity rent by stage in a period or year, largest first; empty where nothing binds."""
        if self.binding is None or self.binding.empty:
            return {}
        here = self.binding[self.binding["period"].str.startswith(period)]
        rent = here.groupby("stage")["rent"].sum().sort_values(ascending=False)
        total = float(rent.sum())
        return {str(s): float(v) / total for s, v in rent.items() if v > 0.005 * total} if total > 0 else {}

    def stage(self, period: str) -> str:
        """Stage with the largest rent in a period or year; empty where nothing binds."""
        return next(iter(self.shares(period)), "")

    def limit(self, period: str, stage: str = "") -> str:
        """Title of the limit with the largest rent in a period or year, of one stage or of all."""
        if self.binding is None or self.binding.empty:
            return ""
        here = self.binding[self.binding["period"].str.startswith(period)]
        here = here[here["stage"] == stage] if stage else here
        rent = here.groupby("title")["rent"].sum()
        return str(rent.idxmax()) if len(rent) and float(rent.max()) > 0 else ""

    def cost(self, sku: str, model: str = "", task: str = "") -> CostRow | None:
        """Cost row of an accelerator; None where it does not run in the focus period."""
        found = [c for c in self.costs if c.sku == sku and c.model in ("", model) and c.task in ("", task)]
        return found[0] if found else None

    def _inside(self, year: str) -> list[int]:
        return [t for t, label in enumerate(self.periods) if label.startswith(year)]


@dataclass(frozen=True)
class Band:
    """Spread of the headline over draws of every other uncertain input: 10 %, 50 % and 90 % points."""

    low: float
    middle: float
    high: float
    draws: int
    failed: int
    stages: dict[str, float]


@dataclass(frozen=True)
class Reach:
    """Where one slider must stand for a target, None where no place on it gives that; `least` and `most` it gives."""

    setting: float | None
    least: float
    most: float


class Preview:
    """A scenario compiled once; `solve` re-solves it in place at any setting of the sliders.

    >>> preview = Preview.open("course_11_1")
    >>> preview.base.total("2026"), preview.base.stage("2026")
    (10000.0, 'packaging')
    >>> preview.solve({"resources_cowos_capacity": 120}).total("2026")
    12000.0
    """

    def __init__(
        self,
        resolved: Resolved,
        year: str,
        origin: str = "",
        costing: Costing | None = None,
        study: Sequence[str] = (),
    ) -> None:
        from supply.optimizer.compiled import Compiled

        self.resolved = resolved
        self.year = year
        self.origin = origin
        self.compiled = Compiled(resolved.network)
        self.controls = {c.id: c for c in usual_controls(resolved, year, study)}
        self.usual = [c.address for c in self.controls.values()]
        self.periods = tuple(resolved.horizon.labels()[: resolved.horizon.periods])
        solution = self.compiled.solve(tidy=True)
        self.costing = costing or Costing.of(resolved, solution)
        self.costing.attach(self.compiled)
        self.base = self._case("base", {}, "", solution, 0.0)

    @classmethod
    def open(cls, scenario: str | Path | Scenario, year: str | None = None, *, costs: bool = True) -> Preview:
        """Preview of a library scenario, a file, or the scenario of a finished run folder.

        Raises:
            ScenarioError: wrong scenario. SolveError: no optimum at the base.
        """
        return open_preview(scenario, year, costs=costs)

    @property
    def years(self) -> list[str]:
        """Reported years."""
        return sorted({p[:4] for p in self.periods})

    @property
    def large(self) -> bool:
        """Whether a re-solve may be felt (over 2,000 rows)."""
        return self.compiled.rows > 2000

    @property
    def kind(self) -> str:
        """What the headline counts."""
        return "energised" if self.resolved.network.fleet else "finished"

    def focus(self, year: str) -> None:
        """Look at another year: captions, costs and headline follow.

        Raises:
            ValueError: for a year that the scenario does not report.
        """
        if year not in self.years:
            raise ValueError(f"year {year!r} is not reported; choose one of {', '.join(self.years)}")
        if year != self.year:
            self.year = year
            self.choose([c.address for c in self.controls.values()])
            self.base = self.solve({}, name="base")

    def add(self, address: str) -> Control:
        """Put another number, pattern or group under a slider."""
        control = control_of(self.resolved, address, self.year)
        self.controls[control.id] = control
        return control

    def choose(self, addresses: Sequence[str]) -> dict[str, Control]:
        """Sliders of these addresses, in this order, and no others."""
        self.controls = {}
        for address in addresses:
            self.add(address)
        return self.controls

    def settings(self, given: Mapping[str, float] | None = None) -> dict[str, float]:
        """All sliders at the base, those given moved; a name that is no slider is an error.

        Raises:
            KeyError: for an unknown slider.
        """
        known = {c.id: c.base for c in self.controls.values()}
        if unknown := set(given or {}) - set(known):
            raise KeyError(f"no slider {', '.join(sorted(unknown))}; there are {', '.join(known)}")
        return known | {k: float(v) for k, v in (given or {}).items()}

    def edits(self, settings: Mapping[str, float], start: str = "") -> list[tuple[str, dict[str, Any]]]:
        """The settings as (address, edit) pairs, the form that `load_scenario(..., sets)` takes."""
        return edits(self.resolved, self.controls.values(), settings, start)

    def solve(self, settings: Mapping[str, float] | None = None, start: str = "", name: str = "current") -> Case:
        """The answer with some sliders moved, from period `start` on (whole horizon by default).

        An infeasible setting gives a case that says so in `failed`; it never gives numbers.
        """
        from supply.optimizer.errors import SolveError

        begin = time.perf_counter()
        full = self.settings(settings)
        self._set(self.edits(full, start))
        try:
            solution = self.compiled.solve(tidy=True)
        except SolveError as problem:
            return Case(name, full, start, self.periods, failed=str(problem), seconds=time.perf_counter() - begin)
        return self._case(name, full, start, solution, begin)

    def _set(self, entries: Sequence[tuple[str, dict[str, Any]]], draw: Draw | None = None, row: int = 0) -> None:
        replaced = edited(self.resolved, entries, draw)
        numbers = self.resolved.at(Draw(draw.ranks if draw else {}, replaced))
        nominal = self.resolved.network.values
        changed = {p: a[min(row, len(a) - 1)] for p, a in numbers.items() if not np.array_equal(a[0], nominal[p])}
        self.compiled.reset()
        self.compiled.update(changed)

    def _case(self, name: str, settings: dict[str, float], start: str, solution: Solution, begin: float) -> Case:
        from scenarios.limit_rents import binding_table

        table = solution.energised if self.kind == "energised" else solution.finished
        skus = tuple(self.resolved.network.fleet) or tuple(dict.fromkeys(table["sku"]))
        wide = table.pivot_table(index="sku", columns="period", values=self.kind, aggfunc="sum")
        volume = wide.reindex(index=list(skus), columns=list(self.periods)).fillna(0.0).to_numpy(dtype=float)
        length = len(self.periods)
        ratio = np.array([np.ones(length) if (r := self._number(f"fleet.{s}.h100e")) is None else r for s in skus])
        used = solution.resources.pivot_table(index="resource", columns="period", values="utilisation", aggfunc="max")
        used = used.reindex(columns=list(self.periods)).fillna(0.0)
        return Case(
            name,
            settings or self.settings(),
            start,
            self.periods,
            skus,
            volume,
            volume * ratio.reshape(volume.shape) if volume.size else volume,
            binding_table(solution),
            {str(r): row for r, row in zip(used.index, used.to_numpy(dtype=float), strict=True)},
            self.costing.rows(solution, self.year),
            time.perf_counter() - begin if begin else 0.0,
        )

    def _number(self, path: str) -> Array | None:
        found = self.compiled.values.get(path)
        return None if found is None else np.asarray(found)[: len(self.periods)]

    def bands(
        self,
        settings: Mapping[str, float] | None = None,
        start: str = "",
        draws: int = 60,
        progress: Progress | None = None,
    ) -> Band:
        """The headline over draws of all uncertain inputs around the settings (Latin hypercube, seed 0).

        A number under a moved slider keeps its relative spread (a factor) or is held (a value).
        """
        from scenarios.limit_rents import binding_table
        from scenarios.sampling import factors, ranks_by_driver
        from supply.optimizer.errors import SolveError

        entries = self.edits(self.settings(settings), start)
        ranks = ranks_by_driver(self.resolved, factors(self.resolved), draws, 0, "lhs")
        found, stages = [], dict[str, float]()
        for k in range(draws):
            self._set(entries, Draw({d: r[k : k + 1] for d, r in ranks.items()}))
            try:
                solution = self.compiled.solve(quick=True)
            except SolveError:
                continue
            table = solution.energised if self.kind == "energised" else solution.finished
            found.append(float(table.loc[table["period"].str.startswith(self.year), self.kind].sum()))
            case = Case("", {}, "", self.periods, binding=binding_table(solution))
            stages[case.stage(self.year)] = stages.get(case.stage(self.year), 0.0) + 1.0
            if progress:
                progress(k + 1, draws)
        if not found:
            return Band(np.nan, np.nan, np.nan, 0, draws, {})
        low, middle, high = (float(q) for q in np.quantile(found, [0.1, 0.5, 0.9]))
        return Band(low, middle, high, len(found), draws - len(found), {s: n / len(found) for s, n in stages.items()})

    def swings(self, progress: Progress | None = None) -> list[tuple[Control, float, float]]:
        """Headline change at the low and the high end of the sources of each slider alone, largest swing first."""
        rows = []
        for k, control in enumerate(self.controls.values()):
            if progress:
                progress(k, len(self.controls))
            if control.low is None or control.high is None:
                continue
            ends = (max(control.low, control.start), min(control.high, control.stop))
            cases = [self.solve({control.id: end}) for end in ends]
            if not any(c.failed for c in cases):
                low, high = (c.total(self.year) - self.base.total(self.year) for c in cases)
                rows.append((control, low, high))
        return sorted(rows, key=lambda r: -max(abs(r[1]), abs(r[2]), abs(r[2] - r[1])))

    def reach(
        self,
        control_id: str,
        target: float,
        settings: Mapping[str, float] | None = None,
        start: str = "",
        *,
        measure: Callable[[Case], float] | None = None,
        progress: Progress | None = None,
    ) -> Reach:
        """Setting of one slider at which a figure (the headline by default) reaches a target, the others held.

        Bisection where a scan of nine points first crosses the target: 21 solves, or 9 where nothing crosses it.
        """
        control = self.controls[control_id]
        of = measure or (lambda case: case.total(self.year))
        done = 0

        def gap(setting: float) -> float:
            nonlocal done
            done += 1
            if progress:
                progress(done, 21)
            case = self.solve({**(settings or {}), control_id: setting}, start)
            return np.nan if case.failed else of(case) - target

        grid = np.linspace(control.start, control.stop, 9)
        values = np.array([gap(float(s)) for s in grid])
        known = values[np.isfinite(values)]
        if not known.size:
            return Reach(None, np.nan, np.nan)
        ends = (float(known.min()) + target, float(known.max()) + target)
        for a, b, ya, yb in zip(grid, grid[1:], values, values[1:], strict=False):
            if np.isfinite(ya) and np.isfinite(yb) and ya * yb <= 0 and ya != yb:
                for _ in range(12):
                    middle = (a + b) / 2
                    ym = gap(float(middle))
                    a, b, ya = (middle, b, ym) if ya * ym > 0 else (a, middle, ya)
                return Reach(float((a + b) / 2), *ends)
        return Reach(None, *ends)

    def twin(self) -> Preview:
        """The same scenario, year and sliders compiled once more: a long question leaves this one free to answer."""
        other = Preview(self.resolved, self.year, self.origin, self.costing.copy())
        other.choose([c.address for c in self.controls.values()])
        return other

    def scenario_text(self, settings: Mapping[str, float], start: str = "", title: str = "") -> str:
        """A scenario file of the settings: `extends` and `set`, ready for the command line."""
        from reports.app_files import scenario_text

        return scenario_text(self, self.edits(self.settings(settings), start), title)


@dataclass
class _Prepared:
    """What does not change while sliders move; the costing is filled in by the first preview."""

    resolved: Resolved
    year: str
    origin: str
    study: tuple[str, ...] = ()
    costing: Costing | None = None


@lru_cache(maxsize=4)
def _prepared(key: str, stamp: float, year: str | None) -> _Prepared:
    from scenarios.load import load_scenario
    from scenarios.resolve import resolve

    place = Path(key)
    folder = place.is_dir()
    resolved = resolve(load_scenario(place / "scenario.yaml", name=_run_name(place)) if folder else load_scenario(key))
    return _Prepared(resolved, year or _focus_year(resolved), "" if folder else key, _study(place) if folder else ())


def _study(folder: Path) -> tuple[str, ...]:
    """Inputs of the study of weak inputs that a run stored, the first moves most; none where it stored none."""
    from scenarios.runs import Run

    try:
        return tuple(Run.open(folder).table("headline")["input"])
    except KeyError:
        return ()


def _focus_year(resolved: Resolved) -> str:
    from datetime import date

    from scenarios.headline import headline_year

    return headline_year(resolved, date.today().isoformat())


def _run_name(folder: Path) -> str:
    from scenarios.run_store import check_complete

    return str(check_complete(folder)["scenario"])


def open_preview(scenario: str | Path | Scenario, year: str | None = None, *, costs: bool = True) -> Preview:
    """See `Preview.open`; what a scenario resolves to is kept, so that a second window opens at once."""
    from scenarios.load import Scenario
    from scenarios.resolve import resolve

    if isinstance(scenario, Scenario):
        resolved = resolve(scenario)
        return Preview(resolved, year or _focus_year(resolved), costing=None if costs else Costing.none())
    stamp = Path(scenario).stat().st_mtime if Path(scenario).is_file() else 0.0
    held = _prepared(str(scenario), stamp, year)
    if not costs:
        return Preview(held.resolved, held.year, held.origin, Costing.none())
    preview = Preview(held.resolved, held.year, held.origin, held.costing.copy() if held.costing else None, held.study)
    held.costing = preview.costing
    return preview
