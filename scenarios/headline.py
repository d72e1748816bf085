"""Which inputs could overturn the headline: every input without two sources, moved over its stated range, one at a
time, and the three that matter most moved on until the answer breaks.

The headline is the scarcest stage of a year, the accelerators energised and finished in it, the worth of the main
limit, and the scarcity in an hour of the reference product. The optimum is re-solved in place at both ends of each
input (see `scenarios.headline_inputs`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from scenarios.break_evens import BREAK_COLUMNS, UNSEARCHED, break_evens
from scenarios.headline_inputs import Inputs, WeakInput, weak_inputs
from scenarios.limit_rents import binding_table, stage_rents

if TYPE_CHECKING:
    from scenarios.costing import CostModel
    from scenarios.nodes import Array
    from scenarios.resolve import Resolved
    from supply.optimizer.compiled import Compiled
    from supply.optimizer.solution import Solution

__all__ = [
    "HEADLINE_COLUMNS",
    "MEASURES",
    "Reading",
    "Watched",
    "headline_study",
    "headline_year",
    "newest_product",
    "read",
    "watched",
]

#: Numbers of the first page; each has columns `_base`, `_low` and `_high` (at the low and high end of the input).
MEASURES = (
    "energised", "next", "h100e", "next_h100e", "finished", "next_finished", "share", "price", "unit_price", "scarcity",
    "newest_scarcity",
)  # fmt: skip
HEADLINE_COLUMNS = (
    "input", "title", "kind", "note", "input_unit", "base_input", "low_input", "high_input",
    "stage_base", "stage_low", "stage_high", "flips", "flips_at", "swing", "year", "period", "limit", "sku",
    "newest",
    *(f"{m}_{end}" for m in MEASURES for end in ("base", "low", "high")), *BREAK_COLUMNS,
)  # fmt: skip
#: Inputs whose break-even is searched beyond their range.
SEARCHED = 3
#: Parts of the scarcity in an hour.
Terms = tuple[tuple[str, str, float, str], ...]
_BISECTIONS = 6
_STILL = 1e-4


@dataclass(frozen=True)
class Watched:
    """What the first page says besides volumes: the worth of a limit in a period, and the scarcity of two products.

    `limit_use` is the path of the planning power of the reference product where the limit is power; `terms` (of the
    reference product) and `newest_terms` are (resource, column of its price, USD per hour for each USD of it, path
    that the amount follows).
    """

    period: str = ""
    limit: str = ""
    limit_column: str = "price"
    limit_use: str = ""
    sku: str = ""
    terms: Terms = ()
    newest: str = ""
    newest_terms: Terms = ()


@dataclass(frozen=True)
class Reading:
    """The headline of one optimum: the scarcest stage, the rents by stage, and the numbers of `MEASURES`."""

    stage: str
    rents: Mapping[str, float]
    numbers: Mapping[str, float]

    def share(self, stage: str) -> float:
        """Share of the year's scarcity value that a stage carries."""
        total = sum(self.rents.values())
        return self.rents.get(stage, 0.0) / total if total > 0 else 0.0


def headline_year(resolved: Resolved, today: str) -> str:
    """The year of `today` (an ISO date) where the horizon reports it whole, else its last whole (or last) year."""
    labels = resolved.horizon.labels()[: resolved.horizon.periods]
    per_year = 12 // resolved.horizon.months
    years = sorted({p[:4] for p in labels})
    whole = [y for y in years if sum(p.startswith(y) for p in labels) == per_year]
    return today[:4] if today[:4] in whole else (whole or years)[-1]


def newest_product(energised: pd.DataFrame, year: str) -> str:
    """The product of which most is energised in a year; empty where none is.

    >>> newest_product(pd.DataFrame({"sku": ["a", "b"], "period": ["2027-Q1"] * 2, "energised": [1.0, 2.0]}), "2027")
    'b'
    """
    if energised.empty:
        return ""
    here = energised[energised["period"].str.startswith(year)].groupby("sku")["energised"].sum()
    return str(here.idxmax()) if len(here) and here.max() > 0 else ""


def watched(answer: Mapping[str, Any], model: CostModel, period: str, sku: str, newest: str = "") -> Watched:
    """What the first page of a run says of its main limit and of an hour of one or two products in a period."""
    from scenarios.runs import main_limit

    main = main_limit(answer, period)
    limit, column, use = "", "price", ""
    if main is not None and main["period"] == period:
        limit, power = main["resource"], main["stage"] == "power"
        reference = main["price"]["reference"]["sku"]
        column = "lasting_price" if power else "price"
        use = f"fleet.{reference}.kw_planning" if power and reference else ""
    mine, other = _terms(model, sku, period), _terms(model, newest, period)
    held = Watched(period, limit, column, use)
    if mine is not None:
        held = replace(held, sku=sku, terms=mine)
    return held if other is None else replace(held, newest=newest, newest_terms=other)


def _terms(model: CostModel, sku: str, period: str) -> Terms | None:
    """The scarcity in an hour of a product, None where no hour of it is priced."""
    found = next((k for k, (s, _, p, _) in enumerate(model.rows) if (s, p) == (sku, period)), None)
    if found is None:
        return None
    return tuple(
        (resource, "lasting_price" if lasting else "price", factor, f"fleet.{sku}.kw_planning" if lasting else "")
        for resource, lasting, factor in model.rent_terms(found)
    )


def headline_study(
    resolved: Resolved, year: str, progress: Callable[[str], None] | None = None, watch: Watched | None = None
) -> pd.DataFrame:
    """The headline of a year at the low and high end of each weak input, largest swing first.

    Weak: illustrative, or resting on one fact. Inputs that change nothing are left out. `low_input`, `high_input`:
    the mean over the year of a number that the input moves, in `input_unit`. `flips_at`: where between the value and
    an end the scarcest stage changes. An end at which no plan exists is reported with missing values, never as zero.
    The first inputs are moved on beyond their range (see `scenarios.break_evens`).
    """
    from supply.optimizer.compiled import Compiled

    study = _Study(resolved, Compiled(resolved.network), year, watch or Watched())
    study.base = study.solve({})
    weak = weak_inputs(resolved)
    rows = []
    for count, driver in enumerate(weak):
        if progress and count % 25 == 0:
            progress(f"headline study: input {count + 1} of {len(weak)}")
        rows.append(study.row(driver))
        study.compiled.reset()
    table = pd.DataFrame(rows, columns=list(HEADLINE_COLUMNS), index=range(len(rows)))
    table = table[table["swing"].isna() | table["flips"] | _moves(table)]
    table = table.sort_values(["flips", "swing"], ascending=False, na_position="first")
    if progress:
        progress("headline study: break-evens of the first inputs")
    for place in table.index[:SEARCHED]:
        table.loc[place, list(BREAK_COLUMNS)] = study.breaks(weak[place])
        study.compiled.reset()
    return table.reset_index(drop=True)


def _moves(table: pd.DataFrame) -> pd.Series[bool]:
    """Rows in which a number of the headline moves by more than a speck."""
    moves = pd.Series(False, index=table.index)
    for m in MEASURES:
        base = table[f"{m}_base"].abs().clip(lower=1e-12)
        for end in ("low", "high"):
            moves |= (table[f"{m}_{end}"] - table[f"{m}_base"]).abs() > _STILL * base
    return moves


@dataclass
class _Study:
    resolved: Resolved
    compiled: Compiled
    year: str
    watch: Watched
    base: Reading | None = None

    @property
    def inputs(self) -> Inputs:
        return Inputs(self.resolved, self.year)

    def row(self, weak: WeakInput) -> tuple[Any, ...]:
        assert self.base is not None
        start = self.base.stage
        ends = [self.solve(self.inputs.at_rank(weak, rank)) for rank in (0.0, 1.0)]
        stages = [end.stage if end else "no plan" for end in ends]
        flips = any(s != start for s in stages)
        unit, shown = self.inputs.shown(weak, (0.5, 0.0, 1.0))
        at = self.flip_point(weak, 0.0 if stages[0] != start else 1.0) if flips else float("nan")
        numbers = [self.number(reading, m) for m in MEASURES for reading in (self.base, *ends)]
        base, low, high = numbers[:3]
        swing = max(abs(high - low), abs(low - base), abs(high - base)) if np.isfinite([low, high]).all() else np.nan
        head = (" ".join(weak.names[:3]), weak.title, weak.kind, self.inputs.note(weak), unit, *shown)
        about = (self.year, self.watch.period, self.watch.limit, self.watch.sku, self.watch.newest)
        return (*head, start, *stages, flips, at, swing, *about, *numbers, *UNSEARCHED)

    def number(self, reading: Reading | None, measure: str) -> float:
        assert self.base is not None
        if reading is None:
            return float("nan")
        return reading.share(self.base.stage) if measure == "share" else reading.numbers[measure]

    def solve(self, changes: Mapping[str, Array]) -> Reading | None:
        """The headline with some numbers changed, None where no plan exists."""
        from supply.optimizer.errors import SolveError

        try:
            return read(self.compiled.update(changes).solve(), self.year, self.watch)
        except SolveError:
            if not changes:
                raise
            return None

    def flip_point(self, weak: WeakInput, end: float) -> float:
        """The shown input where the scarcest stage changes on the way to an end, by bisection of the rank."""
        assert self.base is not None
        near, far = 0.5, end
        for _ in range(_BISECTIONS):
            middle = (near + far) / 2
            found = self.solve(self.inputs.at_rank(weak, middle))
            same = found is not None and found.stage == self.base.stage
            near, far = (middle, far) if same else (near, middle)
        return self.inputs.shown(weak, ((near + far) / 2,))[1][0]

    def breaks(self, weak: WeakInput) -> list[Any]:
        """Break-evens of an input, as `BREAK_COLUMNS`."""

        def at(factor: float) -> tuple[str, float] | None:
            found = self.solve(self.inputs.times(weak, factor))
            return None if found is None else (found.stage, found.numbers["energised"])

        assert self.base is not None
        unit, (base, _, high) = self.inputs.shown(weak, (0.5, 0.0, 1.0))
        ceiling = 1.0 / base if unit.partition(" ")[0] in ("", "fraction") and 0 < base <= 1 and high <= 1 else np.inf
        found = break_evens(at, (self.base.stage, self.base.numbers["energised"]), ceiling)
        return found.row(lambda factor: self.inputs.shown_times(weak, factor))


def read(solution: Solution, year: str, watch: Watched) -> Reading:
    """The headline of an optimum."""
    numbers: dict[str, float] = {}
    flows = {"finished": solution.finished}
    flows["energised"] = solution.energised if solution.network.fleet else solution.finished
    for name, flow in flows.items():
        column = "energised" if name == "energised" and solution.network.fleet else "finished"
        by_year = flow.groupby(flow["period"].str[:4])[column].sum()
        later = "next" if name == "energised" else "next_finished"
        numbers |= {name: float(by_year.get(year, 0.0)), later: float(by_year.get(str(int(year) + 1), 0.0))}
    numbers |= _equivalents(solution, year)
    rents = stage_rents(binding_table(solution), year)
    stage = max(rents, key=lambda s: rents[s]) if rents else ""
    return Reading(stage, rents, numbers | _worth(solution, watch))


def _equivalents(solution: Solution, year: str) -> dict[str, float]:
    """H100-equivalents energised in a year and in the next."""
    out = {"h100e": 0.0, "next_h100e": 0.0}
    for sku, period, t, number in solution.energised[["sku", "period", "t", "energised"]].itertuples(index=False):
        name = {year: "h100e", str(int(year) + 1): "next_h100e"}.get(period[:4])
        rate = solution.values.get(f"fleet.{sku}.h100e")
        if name and rate is not None:
            out[name] += number * float(rate[t])
    return out


def _worth(solution: Solution, watch: Watched) -> dict[str, float]:
    """Price of the watched limit, the same for one reference product, and the scarcity in an hour."""
    out = dict.fromkeys(("price", "unit_price", "scarcity", "newest_scarcity"), float("nan"))
    if not watch.period:
        return out
    table = solution.resources
    now = table[table["period"] == watch.period].set_index("resource")
    t = solution.network.horizon.labels().index(watch.period)

    def ratio(path: str) -> float:
        """The number of a path now, for each unit of it in the scenario."""
        return float(solution.values[path][t] / solution.network.values[path][t]) if path else 1.0

    if watch.limit:
        out["price"] = max(float(now[watch.limit_column][watch.limit]), 0.0)
        out["unit_price"] = out["price"] * ratio(watch.limit_use)
    for name, terms in (("scarcity", watch.terms), ("newest_scarcity", watch.newest_terms)):
        if terms:
            parts = [float(now[column][r]) * factor * ratio(path) for r, column, factor, path in terms]
            out[name] = max(sum(parts), 0.0)
    return out
