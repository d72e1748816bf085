"""The backtest: what the chain would have forecast on 1 January 2024 and 2025, scored against what came.

    result = backtest(date(2024, 1, 1), draws=100)
    result.scores      one row a group and quarter or year: outcome, forecast, band, naive forecasts, score, reason
    result.summary     coverage, width and interval score beside the naive forecasts

Rules that were fixed before the first score (docs/backtest.md): the scenario runs on `scenarios.asof`; a forecast is
the median and the 5 and 95 % points over rolling draws; each part of each draw carries a level error of 30 % (90 %
ends), which is what the base says of itself; nothing is scored twice with changed inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from scenarios.asof import StandIn, as_of_catalog
from scenarios.backtest_scores import component_scores, group_scores, summarise
from scenarios.scoring import ScoreError

if TYPE_CHECKING:
    from scenarios.resolve import Resolved
    from supply.facts import Catalog

__all__ = [
    "ORIGINS",
    "Backtest",
    "backtest",
    "backtest_scenario",
    "stand_ins_used",
]

ORIGINS = {date(2024, 1, 1): "backtest_2024", date(2025, 1, 1): "backtest_2025"}
DRAWS = 100
#: Tables of a backtest, as attributes and as file names.
TABLES = ("summary", "scores", "others", "stand_ins", "inputs_later")
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Backtest:
    """A scored backtest. `scores`: groups; `others`: power, components; `stand_ins`: every input that was not known."""

    origin: date
    scenario: str
    draws: int
    failed: int
    scores: pd.DataFrame
    others: pd.DataFrame
    summary: pd.DataFrame
    stand_ins: pd.DataFrame
    inputs_later: pd.DataFrame

    def json(self) -> dict[str, Any]:
        """The scoreboard as plain data."""
        tables = {n: getattr(self, n) for n in TABLES}
        frames = {n: [_plain(r) for r in t.to_dict("records")] for n, t in tables.items()}
        head = {
            "origin": self.origin.isoformat(),
            "scenario": self.scenario,
            "draws": self.draws,
            "failed": self.failed,
        }
        return head | frames


def _plain(row: dict[Any, Any]) -> dict[str, Any]:
    """Numbers that JSON cannot hold become null."""
    return {str(k): None if isinstance(v, float) and not np.isfinite(v) else v for k, v in row.items()}


def backtest_scenario(origin: date, cat: Catalog | None = None) -> tuple[Resolved, list[StandIn]]:
    """The scenario of an origin on the facts of its day, and the stand-ins.

    Raises:
        ScoreError: for a day without a backtest scenario.
        ScenarioError: when an input has neither a known row nor a stand-in.
    """
    from scenarios.load import load_scenario
    from scenarios.resolve import resolve

    if origin not in ORIGINS:
        days = ", ".join(d.isoformat() for d in ORIGINS)
        raise ScoreError(f"no backtest from {origin.isoformat()}: choose one of {days}")
    facts, made = as_of_catalog(origin, cat)
    return resolve(load_scenario(ORIGINS[origin], facts=facts)), made


def backtest(
    origin: date, draws: int = DRAWS, seed: int = 0, cat: Catalog | None = None, progress: Progress | None = None
) -> Backtest:
    """Forecast from an origin and score it.

    Raises:
        ScoreError: for a day without a backtest scenario.
        SolveError: when the nominal plan does not exist.
    """
    from scenarios.backtest_draws import rolling_draws
    from scenarios.backtest_reasons import inputs_later, with_reasons

    resolved, made = backtest_scenario(origin, cat)
    drawn = rolling_draws(resolved, draws, seed, progress)
    later = inputs_later(resolved, cat)
    scores = with_reasons(group_scores(origin, resolved, drawn, seed, cat), resolved, drawn, later)
    others = component_scores(resolved, drawn, cat)
    summary = summarise(scores)
    listed = stand_ins_used(resolved, made)
    return Backtest(origin, ORIGINS[origin], draws, len(drawn.failed), scores, others, summary, listed, later)


def stand_ins_used(resolved: Resolved, made: Sequence[StandIn]) -> pd.DataFrame:
    """Every illustrative input of the run, one row an id: basis, periods, value, range, unit, note.

    First the stand-ins for facts and series; then, as basis `scenario`, what the scenario file itself assumes.
    """
    used = set(resolved.facts_used()) | {f.split("@")[0] for f in resolved.facts_used()}
    last = resolved.horizon.labels()[-1]
    table = pd.DataFrame([vars_of(s) for s in made if s.id in used and s.period <= last], columns=StandIn.__slots__)
    grouped = table.groupby(["id", "basis", "unit"], sort=True)
    columns: dict[str, Any] = {
        "first": ("period", "first"),
        "last": ("period", "last"),
        "value": ("value", "first"),
        "low": ("low", "min"),
        "high": ("high", "max"),
        "note": ("note", "first"),
    }
    rows = resolved.inputs()
    stated = rows[(rows["kind"] == "illustrative") & (rows["fact_ids"] == "")].assign(basis="scenario")
    stated = stated.rename(columns={"path": "id", "period": "first", "to": "last"})
    own = stated.groupby(["id", "basis", "unit"], sort=True, as_index=False).first()
    parts = [grouped.agg(**columns).reset_index(), own]
    whole: pd.DataFrame = pd.concat(parts, ignore_index=True)[["id", "basis", "unit", *columns]]
    return whole


def vars_of(row: StandIn) -> dict[str, Any]:
    """Fields of a stand-in by name."""
    return {name: getattr(row, name) for name in StandIn.__slots__}
