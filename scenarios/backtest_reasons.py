"""Why a backtest missed: what held the plan, and how far the inputs of the day lie from what is said of them today.

A miss from below is laid to the limit that held the quarter in most draws; a miss from above to the input that was
furthest above its later figure. Parts that nobody had announced are named as such. All by rule, after scoring.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from scenarios.backtest_outcomes import GROUPS
from supply.facts import Catalog, catalog

if TYPE_CHECKING:
    from scenarios.backtest_draws import RollingDraws
    from scenarios.resolve import Resolved

__all__ = ["binding", "inputs_later", "with_reasons"]

#: Stage -> series whose as-of values are put beside today's.
INPUTS = {
    "packaging": ("tsmc_cowos_capacity", "osat_cowos_like_capacity"),
    "hbm": ("hbm_capacity_sk_hynix", "hbm_capacity_samsung", "hbm_capacity_micron"),
    "power": ("ai_power_sites_us", "ai_power_sites_china", "ai_power_sites_europe", "ai_power_sites_rest"),
    "fab": ("tsmc_n5_capacity", "tsmc_n3_capacity"),
    "rack": ("nvl72_rack_output_limit",),
    "share nvidia": ("cowos_share_nvidia",),
    "share broadcom": ("cowos_share_broadcom",),
}
#: Share series that decides a designer's part of packaging.
SHARE_OF = {"nvidia": "share nvidia", "google": "share broadcom"}
MATERIAL = 1.15


def inputs_later(resolved: Resolved, cat: Catalog | None = None) -> pd.DataFrame:
    """Inputs of the day beside the figures of today, by stage and quarter: as_of, today, ratio."""
    from scenarios.asof import quarter_end

    today, then = catalog() if cat is None else cat, resolved.scenario.facts
    rows = []
    for stage, names in INPUTS.items():
        for period in resolved.horizon.labels()[: resolved.horizon.periods]:
            day = [quarter_end(period)]
            sums = [sum(source.series(n).levels(day)[0] for n in names) for source in (then, today)]
            ratio = sums[0] / sums[1] if sums[1] else float("nan")
            rows.append((stage, period, sums[0], sums[1], ratio))
    return pd.DataFrame(rows, columns=["stage", "period", "as_of", "today", "ratio"])


def binding(resolved: Resolved, drawn: RollingDraws) -> dict[str, tuple[str, float]]:
    """Quarter -> (stage with the largest rent in most draws, share of draws)."""
    network = resolved.network
    out = {}
    for period in resolved.horizon.labels()[: resolved.horizon.periods]:
        names = [f"rent:{r}@{period}" for r in network.resources if f"rent:{r}@{period}" in drawn.names]
        table = drawn.values[:, [drawn.names.index(n) for n in names]]
        table = table[~np.isnan(table).any(axis=1)]
        stages = np.array([network.resources[n[5:].split("@")[0]].stage for n in names])
        if not len(table):
            continue
        winners = stages[np.argmax(table, axis=1)][table.max(axis=1) > 0]
        found, counts = np.unique(winners, return_counts=True)
        if len(found):
            out[period] = (str(found[np.argmax(counts)]), float(counts.max() / len(table)))
    return out


def with_reasons(scores: pd.DataFrame, resolved: Resolved, drawn: RollingDraws, later: pd.DataFrame) -> pd.DataFrame:
    """The scores with `stage` and `reason` of each miss."""
    held = binding(resolved, drawn)
    ratio = {(str(r["stage"]), str(r["period"])): float(r["ratio"]) for r in later.to_dict("records")}
    made = _made(resolved)
    pairs = [_reason({str(k): v for k, v in row.items()}, held, ratio, made) for row in scores.to_dict("records")]
    return scores.assign(stage=[p[0] for p in pairs], reason=[p[1] for p in pairs])


def _made(resolved: Resolved) -> set[str]:
    """Parts whose packaging may start within the reported periods."""
    periods = resolved.horizon.periods
    return {
        name.removeprefix("package_").removesuffix("_osat")
        for name, process in resolved.network.processes.items()
        if process.stage == "packaging" and process.first < periods
    }


def _reason(
    row: dict[str, object],
    held: dict[str, tuple[str, float]],
    ratio: dict[tuple[str, str], float],
    made: set[str],
) -> tuple[str, str]:
    if row["inside"]:
        return "", ""
    group = next(g for g in GROUPS if g.name == row["group"])
    period = str(row["period"])
    last = period if "Q" in period else max((p for p in held if p.startswith(period)), default="")
    if not made & set(group.skus):
        return "product", "the part was not announced on the origin, and nothing is made of it"
    if float(str(row["high"])) < 1.0:
        return "timing", "the part was expected later than it came"
    below = float(str(row["outcome"])) > float(str(row["high"]))
    stages = ["packaging", "hbm", "power", "rack"]
    designer = "nvidia" if group.series[0].startswith("nvidia") else group.series[0].split("_")[0]
    if designer in SHARE_OF:
        stages.append(SHARE_OF[designer])
    off = {s: r for s in stages if (r := ratio.get((s, last), float("nan"))) > 0 and np.isfinite(r)}
    if below:
        stage, share = held.get(last, ("", 0.0))
        words = f"too low: {stage or 'no limit'} holds the quarter in {share:.0%} of draws"
        return stage, words + (f", its input was {off[stage]:.2f} of today's figure" if stage in off else "")
    worst = max(off, key=lambda s: off[s], default="")
    if worst and off[worst] > MATERIAL:
        return worst, f"too high: the input of {worst} was {off[worst]:.2f} times today's figure"
    return "mix", "too high although no capacity input was: another part of the designer, a delay, or a sale that ended"
