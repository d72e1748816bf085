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
            "time, interruption rate and, for rent, the hour",
        )
    )
    s.tables += _runs(c, runs, name)
    checks = c.table("training_checks")
    if checks is not None:
        s.paragraphs.append(_check_words(checks))
        s.tables.append(_checks(c, checks))
    _largest(c, s)
    if (accuracy := c.table("training_accuracy")) is not None:
        s.paragraphs.append(_accuracy_words(accuracy))
    return s


def _run_words(runs: pd.DataFrame, name: str) -> str:
    cheap, fast = (next(records(runs.sort_values(by))) for by in ("rental_usd", "days"))
    ends = [
        f"{count(r.accelerators)} {r.part} take {plain(r.days, 2)} days ({band(r.days_low, r.days_high)}) and "
        f"{money(r.rental_usd, 2)} ({band(r.rental_low, r.rental_high)}) of rent at owner cost"
        for r in (cheap, fast)
    ]
    return (
        f"{name}: {ends[0]}; {ends[1]}. The larger cluster is interrupted every {plain(fast.hours_between, 2)} hours "
        f"in the middle case, and {percent(fast.goodput)} ({band(100 * fast.goodput_low, 100 * fast.goodput_high)}) "
        "of its elapsed time is useful. Ranges are 90 % bands; the rate of interruptions is that between published "
        "runs, which differ more than chance. Only the final run is counted: no experiments, staff or failed runs."
    )


def _runs(c: Context, runs: pd.DataFrame, name: str) -> list[Table]:
    """What a size takes, and how it is laid out."""
    rows, more = [], []
    for r in records(runs):
        size = (f"{r.accelerators:,}", r.accelerators)
        rows.append(
            [
                size,
                (plain(r.days, digits_for(r.days, r.days_low, r.days_high)), r.days),
                band(r.days_low, r.days_high),
                (plain(r.interruptions, 2), r.interruptions),
                band(r.interruptions_low, r.interruptions_high),
                (percent(r.goodput), r.goodput),
                band(100 * r.goodput_low, 100 * r.goodput_high),
                (plain(r.rental_usd / 1e6, 2), r.rental_usd / 1e6),
                band(r.rental_low / 1e6, r.rental_high / 1e6),
                (plain(r.purchase_usd / 1e6, 2), r.purchase_usd / 1e6),
                (plain(r.energy_mwh / 1e3, 2), r.energy_mwh / 1e3),
            ]
        )
        hours = (plain(r.accelerator_hours / 1e6, 2), r.accelerator_hours / 1e6)
        worn = (plain(r.amortised_usd / 1e6, 2), r.amortised_usd / 1e6)
        more.append(
            [size, r.layout, (percent(r.mfu), r.mfu), (plain(r.hours_between, 2), r.hours_between), hours, worn]
        )
    heads = ["#Accelerators", "#Elapsed days", "90 % band", "#Interruptions", "90 % band", "#Useful time"]
    heads += ["90 % band, %", "#Rent, million USD", "90 % band", "#To buy, million USD", "#Energy, GWh"]
    first = Table.of(
        f"{name} by cluster size",
        heads,
        rows,
        note="Rent: accelerator-hours at owner cost. To buy: servers and network of the whole cluster. Energy at the "
        f"facility. Money of the report's day. Purchase and energy are the middle case. {fact_words(c, runs)}",
        short="training_runs",
    )
    heads = ["#Accelerators", "Layout", "#Share of dense BF16 peak", "#Hours between interruptions"]
    second = Table.of(
        "Layouts and hours of the same runs",
        [*heads, "#Million accelerator-hours", "#Used up, million USD"],
        more,
        note="Layout: the fastest that fits; TP tensor, PP pipeline, DP data, CP context parallel. Share of peak: "
        "while steps run. Used up: fall of the market value of the hardware, and energy.",
        folded=True,
        short="training_layouts",
    )
    return [first, second]


def _inside(r: Any) -> bool:
    return bool(r.low <= r.published <= r.high)


def _check_words(checks: pd.DataFrame) -> str:
    good = [r for r in records(checks) if _inside(r)]
    bad = [r for r in records(checks) if not _inside(r)]
    words = f"Beside the published run of the same size, {len(good)} of {len(checks)} figures lie inside our band"
    if not bad:
        return words + "."
    mean = [f"{r.check}: {_shown(r.published)} published, {_shown(r.low, 2)} to {_shown(r.high, 2)} here" for r in bad]
    hours = next((r for r in bad if r.unit == "H100-hours"), None)
    short = f" This plan takes {percent(1 - hours.ours / hours.published)} fewer hours." if hours is not None else ""
    return (
        f"{words}. Outside: {'; '.join(mean)}.{short} We judge that the fastest layout of the search, at full "
        "sequence length from the first step, is better than what was run; read the days as what a well-tuned run "
        "can reach."
    )


def _shown(value: float, digits: int = 3) -> str:
    """A share as percent, any other number in words."""
    return percent(value) if value <= 1 else count(value, digits) if value >= 1e5 else plain(value, digits)


def _checks(c: Context, checks: pd.DataFrame) -> Table:
    rows = [
        [
            r.check[:1].upper() + r.check[1:],
            (_shown(r.ours), r.ours),
            f"{_shown(r.low, 2)} to {_shown(r.high, 2)}",
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
        "whole training; what they hold beyond this plan is not stated.",
        short="training_checks",
    )


def _largest(c: Context, s: Section) -> None:
    table = c.table("largest_runs")
    if table is None:
        return
    rows = []
    for r in records(table):
        rows.append(
            [
                r.period,
                r.place if r.case == "site" else f"region: {c.title(r.place)}",
                c.short(r.sku),
                (plain(r.power_mw / 1000, 2), r.power_mw / 1000),
                (plain(r.accelerators / 1e3, 2), r.accelerators / 1e3),
                r.limited_by,
                (plain(r.bound / 1e26, 2), r.bound / 1e26),
                (plain(r.on_run / 1e3, 2), r.on_run / 1e3),
                (percent(r.goodput), r.goodput),
                (plain(r.operations / 1e26, 2), r.operations / 1e26),
                band(r.low / 1e26, r.high / 1e26),
            ]
        )
    s.paragraphs.append(_largest_words(c, table))
    days, mfu = float(table["days"].iloc[0]), float(table["mfu"].iloc[0])
    heads = ["Period", "Where", "Product", "#Power, GW", "#Could run, thousand", "Limited by"]
    heads += ["#Bound, 1e26 operations", "#On the run, thousand", "#Useful time", "#1e26 operations", "90 % band"]
    s.tables.append(
        Table.of(
            f"Largest training run at the end of each year, in {days:.0f} elapsed days",
            heads,
            rows,
            note="Where: one site by its name, or one region. One product, its fleet in the region, at "
            f"{percent(mfu)} of the dense BF16 peak (default of Epoch AI's cost model). Bound: all accelerators that "
            "fleet and power carry, never interrupted. On the run: held to the size at which half of the time is "
            "useful when the whole job restarts after every interruption. Band: rate of interruptions between "
            "published runs, and the site's range of power. Operations grow in proportion to the days. Site power: "
            "total facility, read as planning power. Fleet and planning power are those of this run. "
            f"{fact_words(c, table)}",
            short="largest_runs",
        )
    )


def _largest_words(c: Context, table: pd.DataFrame) -> str:
    last = table[table["year"] == table["year"].max()]
    said = []
    for r in records(last):
        where = f"{r.place} (one site)" if r.case == "site" else f"one region ({c.title(r.place)})"
        said.append(
            f"{where}: {plain(r.operations / 1e26, 2)}e26 operations (90 % band "
            f"{band(r.low / 1e26, r.high / 1e26)}e26) on {count(r.on_run, 2)} {c.short(r.sku)}, where {r.limited_by} "
            f"would allow {plain(r.bound / 1e26, 2)}e26 on {count(r.accelerators, 2)}"
        )
    held = int((last["on_run"] < 0.999 * last["accelerators"]).sum())
    years = sorted(set(table.loc[table["case"] == "site", "year"]))
    note = "" if not years or years[0] == table["year"].min() else f" No named site has dated power before {years[0]}."
    return (
        f"Largest run that the fleet of this plan and its power allow in {table['days'].iloc[0]:.0f} days at the end "
        f"of {table['year'].max()}: {'; '.join(said)}. "
        + (
            "Interruptions, not power or fleet, set the size here: larger jobs need restarts that take fewer minutes "
            f"or fewer machines.{note}"
            if held == len(last)
            else f"Interruptions set the size in {held} of {len(last)} cases.{note}"
        )
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
                f"{name} {percent(r.mape / 100)} mean error over {r.rows} runs ({percent(r.coverage / 100)} in the "
                "band)"
            )
    return (
        "Accuracy of step times on runs left out of the fit (pairs of model and accelerator): " + "; ".join(said) + "."
    )
