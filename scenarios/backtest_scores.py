"""Scores of a backtest: forecasts by reporting group from rolling draws, beside outcomes and naive forecasts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from scenarios.backtest_outcomes import GROUPS, Group, Outcome, naives, outcomes, site_power
from scenarios.nodes import Array
from scenarios.scoring import Interval, coverage, interval_score

if TYPE_CHECKING:
    from scenarios.backtest_draws import RollingDraws
    from scenarios.resolve import Resolved
    from supply.facts import Catalog

__all__ = ["LEVEL_ERROR", "PUBLISHED", "component_scores", "group_scores", "summarise"]

#: Levels of the base are good to about 30 % (its own note): 90 % ends of a log-normal factor, one per part and draw.
LEVEL_ERROR = 0.30
_Z = 1.6448536269514722


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
    return np.asarray(total[~np.isnan(drawn.values).any(axis=1)])


def _interval(values: Array) -> Interval:
    low, middle, high = (float(q) for q in np.quantile(np.maximum(values, 0.0), [0.05, 0.5, 0.95]))
    return Interval(middle, low, high)


def group_scores(origin: date, resolved: Resolved, drawn: RollingDraws, seed: int, cat: Catalog | None) -> pd.DataFrame:
    """One row a group and quarter or year: outcome, forecast, naive forecasts, scores over the scale of the group."""
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
def component_scores(resolved: Resolved, drawn: RollingDraws, cat: Catalog | None) -> pd.DataFrame:
    """Energised power by quarter, component shares and spend by year, each beside what was published."""
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
