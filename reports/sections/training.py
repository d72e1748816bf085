"""Section: what a training run costs at several cluster sizes, what failures take, and the largest run a year."""

from __future__ import annotations

from typing import Any

import pandas as pd

from reports.blocks import Section, Table
from reports.context import Context
from reports.figures import training
from reports.sections.making import fact_words
from reports.tables import records
from reports.wording import band, count, digits_for, money, percent, plain

__all__ = ["training_section"]


def training_section(c: Context) -> Section | None:
    """A named run by cluster size, checks against the published run, largest runs, accuracy."""
    runs = c.table("training_runs")
    if runs is None:
        return None
    s = Section("training", "Training runs and failures")
    first = runs.iloc[0]
    name = f"{first['model']} on {plain(first['tokens'] / 1e12)} trillion tokens"
    s.paragraphs.append(_run_words(runs, name))
    s.figures.append(
        training.training_scaling(
            runs,
            f"{name}, {first['part']}, BF16, fastest layout that fits, 2,048 sequences of 8,192 a step; rent at owner "
            f"cost of USD {plain(first['usd_per_gpu_hour'])} per sold accelerator-hour; shaded: 90 % band of step "
            "time, "
            "interruption rate and, for rent, the hour",
        )
    )
    s.tables.append(_runs(c, runs, name))
    checks = c.table("training_checks")
    if checks is not None:
        s.paragraphs.append(_check_words(checks))
        s.tables.append(_checks(c, checks))
    _largest(c, s)
    if (accuracy := c.table("training_accuracy")) is not None:
        s.paragraphs.append(_accuracy_words(accuracy))
    return s


def _run_words(runs: pd.DataFrame, name: str) -> str:
    cheap, fast = runs.loc[runs["rental_usd"].idxmin()], runs.loc[runs["days"].idxmin()]
    ends = [
        f"{count(r['accelerators'])} {r['part']} take {plain(r['days'], 2)} days "
        f"({band(r['days_low'], r['days_high'])}) "
        f"and {money(r['rental_usd'], 2)} ({band(r['rental_low'], r['rental_high'])}) of rent at owner cost"
        for r in (cheap, fast)
    ]
    return (
        f"{name}: {ends[0]}; {ends[1]}. The larger cluster is interrupted every {plain(fast['hours_between'], 2)} "
        "hours in "
        f"the middle case, and {percent(fast['goodput'])} "
        f"({band(100 * fast['goodput_low'], 100 * fast['goodput_high'])}) "
        "of its elapsed time is useful. Ranges are 90 % bands; the rate of interruptions is that between published "
        "runs, "
        "which differ more than chance. Only the final run is counted: no experiments, staff or failed runs."
    )


def _runs(c: Context, runs: pd.DataFrame, name: str) -> Table:
    rows = []
    for r in records(runs):
        days = digits_for(r.days, r.days_low, r.days_high)
        rows.append(
            [
                (f"{r.accelerators:,}", r.accelerators),
                (f"{plain(r.days, days)} ({band(r.days_low, r.days_high)})", r.days),
                (percent(r.mfu), r.mfu),
                (f"{count(r.interruptions, 2)} ({band(r.interruptions_low, r.interruptions_high)})", r.interruptions),
                (plain(r.hours_between, 2), r.hours_between),
                (f"{percent(r.goodput)} ({band(100 * r.goodput_low, 100 * r.goodput_high)})", r.goodput),
                (
                    f"{plain(r.rental_usd / 1e6, 2)} ({band(r.rental_low / 1e6, r.rental_high / 1e6)})",
                    r.rental_usd / 1e6,
                ),
                (plain(r.amortised_usd / 1e6, 2), r.amortised_usd / 1e6),
                (plain(r.purchase_usd / 1e6, 2), r.purchase_usd / 1e6),
                (plain(r.energy_mwh / 1e3, 2), r.energy_mwh / 1e3),
                r.layout,
            ]
        )
    return Table.of(
        f"{name} by cluster size",
        ["#Accelerators", "#Elapsed days (90 % band)", "#Share of dense peak", "#Interruptions (90 % band)",
         "#Hours between", "#Useful time (90 % band)", "#Rent, million USD (90 % band)", "#Used up, million USD",
         "#To buy, million USD", "#Energy, GWh", "Layout"],
        rows,
        note="Rent: accelerator-hours at owner cost. Used up: fall of market value and energy. To buy: servers and "
        "network "
        "of the whole cluster. Energy at the facility. Money of the report's day. Purchase, wear and energy at the "
        "middle "
        f"case. {fact_words(c, runs)}",
        short="training_runs",
    )  # fmt: skip


def _inside(r: Any) -> bool:
    return bool(r.low <= r.published <= r.high)


def _check_words(checks: pd.DataFrame) -> str:
    good = [r for r in records(checks) if _inside(r)]
    bad = [r for r in records(checks) if not _inside(r)]
    words = f"Beside the published run of the same size, {len(good)} of {len(checks)} figures lie inside our band"
    if not bad:
        return words + "."
    mean = [f"{r.check}: {_shown(r.published)} published, {_shown(r.low)} to {_shown(r.high)} here" for r in bad]
    return (
        f"{words}. Outside: {'; '.join(mean)}. The fastest layout of the search, at full sequence length from the "
        "first "
        "step, is better than what was run; read the days as what a well-tuned run can reach."
    )


def _shown(value: float) -> str:
    return percent(value) if value <= 1 else count(value)


def _checks(c: Context, checks: pd.DataFrame) -> Table:
    rows = [
        [
            r.check[:1].upper() + r.check[1:],
            (_shown(r.ours), r.ours),
            f"{_shown(r.low)} to {_shown(r.high)}",
            (_shown(r.published), r.published),
            "inside" if _inside(r) else "outside",
            str(c.facts.get(r.fact_ids.split()[0], {}).get("source", "")),
        ]
        for r in records(checks)
    ]
    return Table.of(
        "Plan beside the published Llama 3.1 405B run on 16,384 H100",
        ["What", "#Ours", "#90 % band", "#Published", "Inside the band", "Source"],
        rows,
        note="Interruptions are predicted from the other published runs only. The published hours are the model's "
        "whole "
        "training; what they hold beyond this plan is not stated.",
        short="training_checks",
    )


def _largest(c: Context, s: Section) -> None:
    table = c.table("largest_runs")
    if table is None:
        return
    rows = []
    for r in records(table):
        place = c.title(r.place) if r.case == "region" else r.place
        rows.append(
            [
                r.period,
                "one site" if r.case == "site" else "one region",
                place,
                c.short(r.sku),
                (f"{plain(r.power_mw / 1000, 2)}", r.power_mw / 1000),
                (count(r.fleet, 2), r.fleet),
                (count(r.accelerators, 2), r.accelerators),
                r.limited_by,
                (percent(r.goodput), r.goodput),
                (plain(r.operations / 1e26, 2), r.operations / 1e26),
                band(r.low / 1e26, r.high / 1e26),
            ]
        )
    s.paragraphs.append(_largest_words(c, table))
    days, mfu = float(table["days"].iloc[0]), float(table["mfu"].iloc[0])
    s.tables.append(
        Table.of(
            f"Largest training run at the end of each year, in {days:.0f} elapsed days",
            [
                "Period",
                "Where",
                "Place",
                "Product",
                "#Power, GW",
                "#Fleet of the product",
                "#On the run",
                "Limited by",
                "#Useful time",
                "#1e26 operations",
                "#90 % band",
            ],
            rows,
            note=f"One product with its whole fleet of the region, {percent(mfu)} of the dense BF16 peak (Epoch AI's "
            "default), restart of the whole job after each interruption. Band: interruption rate between published "
            "runs, "
            "and the site's range of power. Operations grow in proportion to the days. Site power: total facility, "
            "read "
            f"as planning power. {fact_words(c, table)}",
            short="largest_runs",
        )  # fmt: skip
    )


def _largest_words(c: Context, table: pd.DataFrame) -> str:
    last = table[table["year"] == table["year"].max()]
    said = []
    for r in records(last):
        where = f"{r.place} (one site)" if r.case == "site" else f"one region ({c.title(r.place)})"
        said.append(
            f"{where}: {plain(r.operations / 1e26, 2)}e26 operations (90 % band "
            f"{band(r.low / 1e26, r.high / 1e26)}e26) on "
            f"{count(r.accelerators, 2)} {c.short(r.sku)}, limited by {r.limited_by}, {percent(r.goodput)} of the time "
            "useful"
        )
    years = sorted(set(table.loc[table["case"] == "site", "year"]))
    note = "" if not years or years[0] == table["year"].min() else f" No named site has dated power before {years[0]}."
    return (
        f"Largest run that the fleet of this plan and its power allow in {table['days'].iloc[0]:.0f} days at the end "
        "of "
        f"{table['year'].max()}: {'; '.join(said)}. With a restart of the whole job after every interruption, useful "
        "speed "
        f"grows ever more slowly with size: the largest fleets lose most of their time to restarts.{note}"
    )


def _accuracy_words(accuracy: pd.DataFrame) -> str:
    said = []
    for name, group, left in (
        ("layout stated", "layout stated", "pair"),
        ("all runs", "all", "pair"),
        ("all runs, hardware family left out", "all", "family"),
    ):
        rows = accuracy[(accuracy["group"] == group) & (accuracy["left_out"] == left)]
        for r in records(rows):
            said.append(
                f"{name} {plain(r.mape, 2)} % mean error over {r.rows} runs ({plain(r.coverage, 2)} % in the band)"
            )
    return (
        "Accuracy of step times on runs left out of the fit (pairs of model and accelerator): " + "; ".join(said) + "."
    )
