"""The backtest: what the chain would have forecast on 1 January 2024 and 2025, scored against what came.

    result = backtest(date(2024, 1, 1), draws=100)
    result.scores      one row a group and quarter or year: outcome, forecast, band, naive forecasts, score, reason
    result.summary     coverage, width and interval score beside the naive forecasts

Rules that were fixed before the first score (docs/backtest.md): the scenario runs on `scenarios.asof`; a forecast is
the median and the 5 and 95 % points over rolling draws; each part of each draw carries a level error of 30 % (90 %
ends), which is what the base says of itself; nothing is scored twice with changed inputs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from scenarios.asof import StandIn, as_of_catalog
from scenarios.backtest_outcomes import GROUPS, Group, Outcome, naives, outcomes, site_power
from scenarios.nodes import Array
from scenarios.scoring import Interval, ScoreError, coverage, interval_score

if TYPE_CHECKING:
    from scenarios.backtest_draws import RollingDraws
    from scenarios.resolve import Resolved
    from supply.facts import Catalog

__all__ = [
    "LEVEL_ERROR",
    "ORIGINS",
    "Backtest",
    "backtest",
    "backtest_scenario",
    "stand_ins_used",
    "summarise",
]

ORIGINS = {date(2024, 1, 1): "backtest_2024", date(2025, 1, 1): "backtest_2025"}
#: Levels of the base are good to about 30 % (its own note): 90 % ends of a log-normal factor, one per part and draw.
LEVEL_ERROR = 0.30
DRAWS = 100
#: Tables of a backtest, as attributes and as file names.
TABLES = ("summary", "scores", "others", "stand_ins", "inputs_later")
_Z = 1.6448536269514722
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
    scores = with_reasons(_scores(origin, resolved, drawn, seed, cat), resolved, drawn, later)
    others = _others(resolved, drawn, cat)
    summary = summarise(scores)
    listed = stand_ins_used(resolved, made)
    return Backtest(origin, ORIGINS[origin], draws, len(drawn.failed), scores, others, summary, listed, later)


# ---- forecasts
def _level_error(name: str, draws: int, seed: int) -> Array:
    """One factor a draw, the same for a part in every quarter; seeded by the part's name."""
    digest = hashlib.sha256(f"{seed}|level error|{name}".encode()).digest()
    generator = np.random.default_rng(np.frombuffer(digest, dtype=np.uint64))
    return np.asarray(np.exp(np.log1p(LEVEL_ERROR) / _Z * generator.standard_normal(draws)))


def _units(group: Group, period: str, drawn: RollingDraws, seed: int) -> Array:
    """Finished units of a group in a quarter, by draw, level error included; draws without a plan left out."""
    total = np.zeros(len(drawn.values))
    for sku in group.skus:
        name = f"finished:{sku}@{period}"
        if name in drawn.names:
            total += drawn.values[:, drawn.names.index(name)] * _level_error(sku, len(drawn.values), seed)
    return np.asarray(total[~np.isnan(total)])


def _interval(values: Array) -> Interval:
    low, middle, high = (float(q) for q in np.quantile(np.maximum(values, 0.0), [0.05, 0.5, 0.95]))
    return Interval(middle, low, high)


def _scores(origin: date, resolved: Resolved, drawn: RollingDraws, seed: int, cat: Catalog | None) -> pd.DataFrame:
    horizon = resolved.horizon
    labels = horizon.labels()[: horizon.periods]
    simple = naives(origin, horizon.periods, cat)
    rows: list[dict[str, Any]] = []
    for group in GROUPS:
        found = {o.period: o for o in outcomes(group, labels, cat)}
        if not found:
            continue
        units = {p: _units(group, p, drawn, seed) for p in labels}
        scale = float(np.mean([o.value for o in found.values()]))
        naive = simple.get(group.name)
        for k, p in enumerate(labels):
            if p in found:
                beside = {n: v[k] for n, v in naive.items()} if naive else {}
                rows.append(_row(group, "quarter", found[p], _interval(units[p]), beside, scale))
        for year in sorted({p[:4] for p in labels}):
            inside = [k for k, p in enumerate(labels) if p[:4] == year]
            sums = [found[labels[k]] for k in inside if labels[k] in found]
            if not sums:
                continue
            whole = Outcome(year, *(sum(getattr(o, key) for o in sums) for key in ("value", "low", "high")))
            ours = _interval(np.sum([units[labels[k]] for k in inside], axis=0))
            beside = {n: _summed([v[k] for k in inside]) for n, v in naive.items()} if naive else {}
            rows.append(_row(group, "year", whole, ours, beside, 4 * scale))
    return pd.DataFrame(rows).assign(origin=origin.isoformat())


def _summed(parts: Sequence[Interval]) -> Interval:
    return Interval(*(sum(getattr(i, key) for i in parts) for key in ("value", "low", "high")))


def _row(
    group: Group, span: str, outcome: Outcome, ours: Interval, beside: dict[str, Interval], scale: float
) -> dict[str, Any]:
    def score(i: Interval | None) -> float:
        return float("nan") if i is None else float(interval_score(i.low, i.high, outcome.value)) / scale

    row: dict[str, Any] = {
        "group": group.name,
        "title": group.title,
        "level": group.level,
        "span": span,
        "period": outcome.period,
        "outcome": outcome.value,
        "outcome_low": outcome.low,
        "outcome_high": outcome.high,
        "value": ours.value,
        "low": ours.low,
        "high": ours.high,
        "inside": ours.low <= outcome.value <= ours.high,
        "score": score(ours),
    }
    for name in ("last", "growth"):
        i = beside.get(name)
        row |= {
            f"naive_{name}": float("nan") if i is None else i.value,
            f"naive_{name}_low": float("nan") if i is None else i.low,
            f"naive_{name}_high": float("nan") if i is None else i.high,
            f"score_{name}": score(i),
        }
    return row


# ---- power and components
def _others(resolved: Resolved, drawn: RollingDraws, cat: Catalog | None) -> pd.DataFrame:
    labels = resolved.horizon.labels()[: resolved.horizon.periods]
    good = drawn.values[~np.isnan(drawn.values).any(axis=1)]

    def total(kind: str, periods: Sequence[str]) -> Array:
        return np.asarray(good[:, [drawn.names.index(f"{kind}:world@{p}") for p in periods]].sum(axis=1))

    rows = []
    for o in site_power(labels, cat):
        rows.append(("energised AI power", "GW", o, _interval(total("power_mw", [o.period]) / 1e3)))
    for year, what, unit, value, low, high in PUBLISHED:
        inside = [p for p in labels if p.startswith(year)]
        if not inside:
            continue
        if what.startswith("share"):
            part = what.split(" ")[1]
            ours = total(f"used_{part}", inside) / total(f"supply_{part}", inside)
        else:
            spent = {c: total(f"spend_{c}", inside) for c in ("hbm", "packaging", "logic")}
            whole = sum(spent.values(), np.zeros(len(good)))
            ours = {"spend all": whole, "spend hbm": spent["hbm"], "hbm part": spent["hbm"] / whole}[what]
            ours = ours / 1e9 if unit == "billion USD" else ours
        rows.append((what, unit, Outcome(year, value, low, high), _interval(np.asarray(ours))))
    table = [
        (w, o.period, u, o.value, o.low, o.high, i.value, i.low, i.high, i.low <= o.value <= i.high)
        for w, u, o, i in rows
    ]
    columns = ["what", "period", "unit", "outcome", "outcome_low", "outcome_high", "value", "low", "high", "inside"]
    return pd.DataFrame(table, columns=columns)


#: Epoch AI's chip component study (targets P10, P11): year, what, unit, value, low, high; ends equal where no range.
PUBLISHED = (
    ("2025", "share cowos", "fraction", 0.90, 0.90, 0.90),
    ("2025", "share hbm", "fraction", 0.90, 0.90, 0.90),
    ("2025", "share logic", "fraction", 0.12, 0.12, 0.12),
    ("2024", "spend all", "billion USD", 22.0, 22.0, 22.0),
    ("2025", "spend all", "billion USD", 52.0, 52.0, 52.0),
    ("2024", "spend hbm", "billion USD", 12.0, 12.0, 12.0),
    ("2025", "spend hbm", "billion USD", 32.0, 32.0, 32.0),
    ("2024", "hbm part", "fraction", 0.52, 0.52, 0.52),
    ("2025", "hbm part", "fraction", 0.63, 0.60, 0.67),
)


# ---- summary
def summarise(scores: pd.DataFrame) -> pd.DataFrame:
    """Coverage, median width and mean scaled interval score by span and level; naives only where they exist.

    A score is scaled by the mean outcome of its group, so that every group counts alike. `beats_both` compares over the
    rows that all three forecast.
    """
    rows = []
    for span, level in [("quarter", "part"), ("year", "part"), ("quarter", "designer"), ("year", "designer")]:
        part = scores[(scores["span"] == span) & (scores["level"] == level)]
        if part.empty:
            continue
        both = part[part["score_last"].notna()]
        width = np.divide(part["high"], part["low"], out=np.full(len(part), np.inf), where=part["low"].to_numpy() > 0)
        error = np.abs(np.log(np.maximum(part["value"], 1.0) / part["outcome"]))
        ours, last, growth = (float(both[c].mean()) for c in ("score", "score_last", "score_growth"))
        rows.append(
            {
                "span": span,
                "level": level,
                "scored": len(part),
                "coverage": coverage(part["low"], part["high"], part["outcome"]),
                "inside_source_band": float(
                    np.mean((part["outcome_low"] <= part["value"]) & (part["value"] <= part["outcome_high"]))
                ),
                "width": float(np.median(width)),
                "median_factor_error": float(np.exp(np.median(error))),
                "score_all": float(part["score"].mean()),
                "compared": len(both),
                "score": ours,
                "score_last": last,
                "score_growth": growth,
                "coverage_compared": coverage(both["low"], both["high"], both["outcome"])
                if len(both)
                else float("nan"),
                "coverage_last": _covered(both, "last"),
                "coverage_growth": _covered(both, "growth"),
                "beats_both": bool(ours < min(last, growth)) if len(both) else False,
            }
        )
    return pd.DataFrame(rows)


def _covered(rows: pd.DataFrame, name: str) -> float:
    if rows.empty:
        return float("nan")
    return coverage(rows[f"naive_{name}_low"], rows[f"naive_{name}_high"], rows["outcome"])


def stand_ins_used(resolved: Resolved, made: Sequence[StandIn]) -> pd.DataFrame:
    """The stand-ins that the run rests on, one row an id: basis, first and last period, range, note."""
    used = set(resolved.facts_used()) | {f.split("@")[0] for f in resolved.facts_used()}
    table = pd.DataFrame([vars_of(s) for s in made if s.id in used])
    if table.empty:
        return table
    inside = table[(table["period"] == "") | (table["period"] <= resolved.horizon.labels()[-1])]
    grouped = inside.groupby(["id", "basis", "unit"], sort=True)
    out = grouped.agg(
        first=("period", "first"),
        last=("period", "last"),
        value=("value", "first"),
        low=("low", "min"),
        high=("high", "max"),
        note=("note", "first"),
    )
    return out.reset_index()


def vars_of(row: StandIn) -> dict[str, Any]:
    """Fields of a stand-in by name."""
    return {name: getattr(row, name) for name in StandIn.__slots__}
