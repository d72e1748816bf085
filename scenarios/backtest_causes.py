"""Which inputs caused the misses of a backtest: one stage at a time gets today's figures, and the plan is made again.

This looks back with hindsight, after the score, and changes no forecast. `all` gives the whole catalogue of today to
the same scenario: what is still off then is the model, its illustrative values or the outcome estimate, not what was
known.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pandas as pd

from scenarios.asof import as_of_catalog, is_outcome
from scenarios.backtest import ORIGINS
from scenarios.backtest_outcomes import GROUPS, outcomes
from scenarios.backtest_reasons import INPUTS
from supply.facts import Catalog, catalog

__all__ = ["causes", "with_today"]

#: Yields and packages per wafer join the stages of `INPUTS`; every series whose name begins so.
YIELDS = ("hbm_stack_yield_", "cowos_s_package_yield", "cowos_l_package_yield", "packages_per_cowos_wafer_", "d0_")
WATTS = ("facility_power_",)
Progress = Callable[[str], None]


def with_today(as_of: Catalog, stage: str, cat: Catalog | None = None) -> Catalog:
    """The catalogue of the day with today's series of one stage (`all`: of every stage, and facts)."""
    today = catalog() if cat is None else cat
    series = {name: as_of.series(name) for name in as_of.series_ids}
    swapped = [n for n in series if n in today.series_ids and _belongs(n, stage)]
    for name in swapped:
        series[name] = today.series(name)
    facts = {f.id: f for f in as_of}
    if stage == "all":
        facts |= {f.id: f for f in today if f.id in facts and not is_outcome(f)}
    return Catalog(facts.values(), series.values())


def _belongs(name: str, stage: str) -> bool:
    if stage == "yields":
        return name.startswith(YIELDS)
    if stage == "watts":
        return name.startswith(WATTS)
    if stage == "shares":
        return name.startswith("cowos_share_")
    return stage == "all" or name in INPUTS.get(stage, ())


STAGES = ("packaging", "hbm", "power", "rack", "shares", "yields", "watts", "all")


def causes(origin: date, cat: Catalog | None = None, progress: Progress | None = None) -> pd.DataFrame:
    """Units by designer and year in the nominal plan, as forecast and with today's inputs of each stage.

    Columns designer, year, stage ('none' is the forecast), units, outcome, change (against 'none'), ratio (to the
    outcome).
    """
    from scenarios.load import load_scenario
    from scenarios.resolve import resolve
    from supply.optimizer.rolling import solve_rolling

    as_of, _ = as_of_catalog(origin, cat)
    rows = []
    for stage in ("none", *STAGES):
        facts = as_of if stage == "none" else with_today(as_of, stage, cat)
        resolved = resolve(load_scenario(ORIGINS[origin], facts=facts))
        made = solve_rolling(resolved.network, tidy=False).finished
        labels = resolved.horizon.labels()[: resolved.horizon.periods]
        made = made[made["period"].isin(labels)]
        for group in (g for g in GROUPS if g.level == "designer"):
            for year in sorted({p[:4] for p in labels}):
                inside = made["sku"].isin(group.skus) & made["period"].str.startswith(year)
                came = sum(o.value for o in outcomes(group, [p for p in labels if p.startswith(year)], cat))
                rows.append((group.name, year, stage, float(made.loc[inside, "finished"].sum()), came))
        if progress is not None:
            progress(f"{ORIGINS[origin]}: today's figures of {stage}")
    table = pd.DataFrame(rows, columns=["designer", "year", "stage", "units", "outcome"])
    plain = table[table["stage"] == "none"][["designer", "year", "units"]].rename(columns={"units": "before"})
    table = table.merge(plain, on=["designer", "year"], how="left", sort=False)
    change = table["units"] - table.pop("before")
    return table.assign(change=change, ratio=table["units"] / table["outcome"], origin=origin.isoformat())
