"""Sections: how many accelerators, and the power that they wait for."""

from __future__ import annotations

import pandas as pd

from reports.blocks import Section, Table
from reports.catalogue import say
from reports.context import Context
from reports.figures import supply
from reports.sections.limits import scope
from reports.tables import records
from reports.wording import listing

__all__ = ["power_section", "supply_section"]

FULL = 0.995


def supply_section(c: Context) -> Section:
    """Finished and energised accelerators by product, designer and region."""
    s = Section("supply")
    rows = c.results[c.results["quantity"].isin(["finished", "energised"])]
    table = rows.assign(sku=rows["subject"])[["period", "sku", "quantity", "value"]]
    s.figures.append(supply.accelerator_stack(table, c.periods, scope(c), {k: c.short(k) for k in c.skus_by_size}))
    s.paragraphs.append(say("supply.finished_energised") if c.has_fleet else say("supply.no_fleet"))
    if len(c.years) > 1:
        s.paragraphs.append(say("supply.loose_split"))
    for quantity in ("finished", "energised"):
        if len(c.quantity(quantity)):
            s.tables.append(_by_year(c, quantity))
    if c.has_fleet:
        s.tables.append(_by_region(c))
    return s


def _by_year(c: Context, quantity: str) -> Table:
    rows = c.quantity(quantity)
    sums = (
        rows.groupby(["subject", "year"])["value"].sum().unstack(fill_value=0).reindex(columns=c.years, fill_value=0.0)
    )
    sums = sums[sums.sum(axis=1) > 0.5]
    sums = sums.loc[sums.sum(axis=1).sort_values(ascending=False).index]
    scale, unit = (1e3, "thousand") if sums.to_numpy().sum() > 2e6 else (1.0, "units")
    body = [
        [c.title(k), c.designers.get(k, "-"), *[_thousand(v, scale) for v in line]]
        for k, line in zip(sums.index, sums.to_numpy(), strict=True)
    ]
    body.append(["All", "", *[_thousand(v, scale) for v in sums.sum()]])
    years = [f"#{y}" for y in c.years]
    return Table.named(f"{quantity}_by_year", body, unit=say(f"units.{unit}"), years=years)


def _thousand(value: float, scale: float) -> tuple[str, float]:
    value = 0.0 if abs(value) < 1e-6 else value
    return (f"{value / scale:,.0f}" if abs(value / scale) >= 0.5 else "-", value / scale)


def _by_region(c: Context) -> Table:
    rows = c.quantity("energised")
    sums = (
        rows.groupby(["region", "year"])["value"].sum().unstack(fill_value=0).reindex(columns=c.years, fill_value=0.0)
    )
    body = [
        [c.title(k), *[_thousand(v, 1e3) for v in line]] for k, line in zip(sums.index, sums.to_numpy(), strict=True)
    ]
    return Table.named("energised_by_region", body, years=[f"#{y}" for y in c.years])


def power_section(c: Context) -> Section | None:
    """Energised power, what the fleet takes of it, the cases, and who waits for whom."""
    capacity = c.quantity("capacity")
    capacity = capacity[capacity["stage"] == "power"]
    if capacity.empty:
        return None
    s = Section("power")
    table = _power_table(c, capacity)
    s.figures.append(supply.power_limits(table, c.periods, _power_headline(c), scope(c), _idle_words(c)))
    s.paragraphs.append(say("supply.power"))
    names = ("without_power_rows_mw", "without_chip_rows_mw", "built_mw")
    wide = c.results[c.results["quantity"].isin(names)].pivot_table(index="period", columns="quantity", values="value")
    if set(names) <= set(wide.columns):
        s.figures.append(supply.potentials(wide.reset_index(), c.periods, scope(c)))
    s.tables.append(_power_by_year(c, table))
    return s


def _power_in_use(c: Context) -> pd.DataFrame:
    """Share of its power that each region uses, a row a period."""
    use = c.quantity("utilisation")
    return use[use["stage"] == "power"].pivot_table(index="period", columns="region", values="value").reindex(c.periods)


def _idle_words(c: Context) -> str:
    """Whose power is free at the end, where the others are full then."""
    last = _power_in_use(c).iloc[-1]
    free = [c.title(str(g)) for g in last.index[last <= FULL]]
    return say("supply.idle", regions=listing(free)) if 0 < len(free) < len(last) else ""


def _power_headline(c: Context) -> str:
    """Since when which regions are full, in about ten words."""
    use = _power_in_use(c)
    full = use > FULL
    regions = [g for g in use.columns if full[g].iloc[-1]]
    if not regions:
        last = c.periods[-1]
        return say("supply.none_full", period=last)
    since = next(p for k, p in enumerate(c.periods) if bool(full[regions].iloc[k:].all(axis=None)))
    rest = [c.title(g) for g in use.columns if g not in regions]
    return say("supply.full_since", period=since) + (say("supply.full_except", regions=listing(rest)) if rest else "")


def _power_table(c: Context, capacity: pd.DataFrame) -> pd.DataFrame:
    used = c.quantity("used")
    taken = used[used["stage"] == "power"].groupby("period")["value"].sum()
    total = capacity.groupby("period")["value"].sum()
    low, high = _cases(c, sorted(set(capacity["subject"])), total)
    table = pd.DataFrame({"used_mw": taken, "capacity_mw": total, "low_mw": low, "high_mw": high}).reindex(c.periods)
    return table.rename_axis("period").reset_index()


def _cases(c: Context, subjects: list[str], total: pd.Series[float]) -> tuple[pd.Series[float], pd.Series[float]]:
    """Sums of the regions' low and high inputs by period; a row of the inputs holds from `period` to `to`."""
    held = c.run.inputs
    held = held[held["path"].isin([f"resources.{r}.capacity" for r in subjects])]
    low, high = total * 0.0, total * 0.0
    for r in records(held):
        inside = [p for p in total.index if r.period <= p <= r.to]
        low.loc[inside] += r.value if pd.isna(r.low) else r.low
        high.loc[inside] += r.value if pd.isna(r.high) else r.high
    return low, high


def _power_by_year(c: Context, table: pd.DataFrame) -> Table:
    last = table.groupby(table["period"].str[:4]).last()
    limited = c.quantity("power_limited_mw").groupby("year")["value"].last()
    chips = c.quantity("chip_limited_mw").groupby("year")["value"].last()
    rows = []
    for year, r in last.iterrows():
        cells = [r["capacity_mw"], r["low_mw"], r["high_mw"], r["used_mw"], limited.get(year), chips.get(year)]
        rows.append(
            [f"{r['period']}", *[("-", None) if v is None or pd.isna(v) else (f"{v:,.0f}", float(v)) for v in cells]]
        )
    return Table.named("power", rows)
