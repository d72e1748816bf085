"""Outcomes shown beside a run: Epoch AI's unit estimates and the CoWoS balance. Never inputs, never tuned to.

Shipment estimates are Epoch AI's (CC BY 4.0): quarterly medians with a 90 % interval. The interval of a yearly sum
is taken as the sum of the quarterly ends (quarters of one product move together), so it is wide.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from supply.facts import Catalog, catalog

if TYPE_CHECKING:
    from scenarios.nodes import Array
    from supply.network import Network

__all__ = ["TheirUnits", "cowos_balance", "finished_by_year", "shipments_by_year", "shipments_compared", "their_units"]

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
    per_year = finished.groupby(finished["period"].str[:4])["period"].nunique()
    yearly = finished_by_year(finished, designers).rename("ours").reset_index()
    yearly = yearly[yearly["year"].isin(per_year[per_year == per_year.max()].index)]
    theirs = shipments_by_year()
    both = yearly.merge(theirs[theirs["quarters"] == 4], on=["group", "year"])
    both["ratio"] = both["ours"] / both["theirs"]
    return both[["group", "year", "ours", "theirs", "low", "high", "ratio"]]


def finished_by_year(finished: pd.DataFrame, designers: Mapping[str, str]) -> pd.Series[float]:
    """Finished units by group (designer) and year; `finished`: columns sku, period, value."""
    keys = [finished["sku"].map(designers).rename("group"), finished["period"].str[:4].rename("year")]
    return finished["value"].groupby(keys).sum()


@dataclass(frozen=True)
class TheirUnits:
    """Epoch AI's units in the products of a network: by product and period, and value, low and high by group and year.

    What is not in `totals` is of products that the network does not make.
    """

    units: dict[str, Array]
    totals: dict[tuple[str, str], tuple[float, float, float]]


def their_units(network: Network, length: int, cat: Catalog | None = None) -> TheirUnits:
    """Epoch AI's units in the products that a network makes, over the first `length` periods of its horizon.

    A series goes to the product of its name, else to the first product of its reporting group
    (`scenarios.backtest_outcomes.GROUPS`); a quarter is split evenly over its months.
    """
    cat = cat or catalog()
    made = {m for process in network.processes.values() for m in process.output}
    places: dict[str, list[int]] = {}
    for t, label in enumerate(network.horizon.labels()[:length]):
        year, _, part = label.partition("-")
        quarter = part if part.startswith("Q") else f"Q{(int(part) + 2) // 3}"
        places.setdefault(f"{year}-{quarter}", []).append(t)
    units: dict[str, Array] = {}
    totals: dict[tuple[str, str], tuple[float, float, float]] = {}
    for group, prefix in GROUPS.items():
        for name in (n for n in cat.series_ids if n.startswith(prefix)):
            sku = _product(network, name.removeprefix("shipments_"), name.removeprefix(prefix), made)
            for p in cat.series(name).points if sku else ():
                if (inside := places.get(p.period)) is None:
                    continue
                units.setdefault(sku, np.zeros(length))[inside] += p.value / len(inside)
                key = (group, p.period[:4])
                held = totals.get(key, (0.0, 0.0, 0.0))
                totals[key] = (held[0] + p.value, held[1] + p.low, held[2] + p.high)
    return TheirUnits(units, totals)


def _product(network: Network, series: str, own: str, made: Container[str]) -> str:
    """The product of a network that an outcome series counts; empty where it makes none."""
    from scenarios.backtest_outcomes import GROUPS as REPORTED

    members = [s for g in REPORTED if g.level == "part" and series in g.series for s in g.skus]
    fleet = network.fleet
    return next((s for s in (own, *members) if s in fleet and fleet[s].material in made), "")


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
