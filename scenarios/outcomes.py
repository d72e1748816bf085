"""Outcomes shown beside a run: Epoch AI's unit estimates and the CoWoS balance. Never inputs, never tuned to.

Shipment estimates are Epoch AI's (CC BY 4.0): quarterly medians with a 90 % interval. The interval of a yearly sum
is taken as the sum of the quarterly ends (quarters of one product move together), so it is wide.
"""

from __future__ import annotations

import pandas as pd

from supply.facts import Catalog, catalog

__all__ = ["cowos_balance", "shipments_by_year", "shipments_compared"]

#: outcome group -> prefix of the shipment series
GROUPS = {
    "nvidia": "shipments_nvidia_",
    "amd": "shipments_amd_",
    "google": "shipments_google_",
    "aws": "shipments_aws_",
}


def shipments_by_year(cat: Catalog | None = None) -> pd.DataFrame:
    """Epoch AI's units by designer and year: columns group, year, quarters, theirs, low, high (packages a year)."""
    cat = cat or catalog()
    rows = [
        (group, p.period[:4], p.period, p.value, p.low, p.high)
        for group, prefix in GROUPS.items()
        for name in cat.series_ids
        if name.startswith(prefix)
        for p in cat.series(name).points
    ]
    table = pd.DataFrame(rows, columns=["group", "year", "period", "theirs", "low", "high"])
    sums = table.groupby(["group", "year"]).agg(
        quarters=("period", "nunique"), theirs=("theirs", "sum"), low=("low", "sum"), high=("high", "sum")
    )
    return sums.reset_index()


def shipments_compared(finished: pd.DataFrame, designers: dict[str, str]) -> pd.DataFrame:
    """A run's finished units beside Epoch AI's, for the years that both cover whole.

    `finished`: columns sku, period, value (units a period). `designers`: sku -> designer.
    Returns columns group, year, ours, theirs, low, high, ratio (ours / theirs).
    """
    ours = finished.assign(group=finished["sku"].map(designers), year=finished["period"].str[:4])
    per_year = ours.groupby("year")["period"].nunique()
    whole = set(per_year[per_year == per_year.max()].index)
    yearly: pd.DataFrame = ours[ours["year"].isin(whole)].groupby(["group", "year"])[["value"]].sum().reset_index()
    theirs = shipments_by_year()
    both = yearly.merge(theirs[theirs["quarters"] == 4], on=["group", "year"]).rename(columns={"value": "ours"})
    both["ratio"] = both["ours"] / both["theirs"]
    return both[["group", "year", "ours", "theirs", "low", "high", "ratio"]]


def cowos_balance(years: tuple[str, ...] = ("2024", "2025"), cat: Catalog | None = None) -> pd.DataFrame:
    """CoWoS wafers that NVIDIA's estimated units need, beside its share of the wafers that the lines could make.

    Units over packages per wafer, at yield 1, against capacity x share in the same year; the two rest on different
    sources and do not close in 2025: the gap is shown, not hidden. Columns year, wafers_from_units,
    wafers_from_capacity, ratio.

    >>> t = cowos_balance(("2024",)).set_index("year")
    >>> round(float(t.loc["2024", "wafers_from_units"]), -3)
    138000.0
    """
    cat = cat or catalog()
    rows = []
    for year in years:
        quarters = [f"{year}-Q{q}" for q in (1, 2, 3, 4)]
        used = 0.0
        for sku in ("h100", "h20", "b200", "b300"):
            packages = cat.series(f"packages_per_cowos_wafer_nvidia_{sku}")
            used += sum(
                p.value / packages.at(p.period).value
                for p in cat.series(f"shipments_nvidia_{sku}").points
                if p.period in quarters
            )
        possible = sum(
            cat.series("tsmc_cowos_wafers_possible").at(q).value * cat.series("cowos_share_nvidia").at(q).value
            for q in quarters
        )
        rows.append((year, used, possible, possible / used))
    return pd.DataFrame(rows, columns=["year", "wafers_from_units", "wafers_from_capacity", "ratio"])
