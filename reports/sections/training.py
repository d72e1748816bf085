"""Section: what a training run costs at several cluster sizes, what failures take, and the largest run a year."""

from __future__ import annotations

from typing import Any

import pandas as pd

from reports.blocks import Section, Table
from reports.catalogue import say
from reports.context import Context
from reports.figures import training
from reports.sections.making import fact_words
from reports.spans import Number, join, number
from reports.tables import records
from reports.wording import band, count, digits_for, money, percent, plain

__all__ = ["training_section"]


def training_section(c: Context) -> Section | None:
    """A named run by cluster size, checks against the published run, largest runs, accuracy."""
    runs = c.table("training_runs")
    if runs is None:
        return None
    s = Section("training")
    first = runs.iloc[0]
    name = say("training.name", model=first["model"], tokens=plain(first["tokens"] / 1000000000000.0))
    s.paragraphs.append(_run_words(runs, name))
    s.figures.append(
        training.training_scaling(
            runs,
            say("training.subtitle", name=name, part=first["part"], rent=plain(first["usd_per_gpu_hour"])),
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
        say(
            "training.size",
            accelerators=count(r.accelerators),
            part=r.part,
            days=plain(r.days, 2),
            band=band(r.days_low, r.days_high),
            rent=money(r.rental_usd, 2),
            rent_band=band(r.rental_low, r.rental_high),
        )
        for r in (cheap, fast)
    ]
    return say(
        "training.sizes",
        name=name,
        cheap=ends[0],
        fast=ends[1],
        hours=plain(fast.hours_between, 2),
        useful=percent(fast.goodput),
        band=band(100 * fast.goodput_low, 100 * fast.goodput_high),
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
    first = Table.named("training_runs", rows, name=name, facts=fact_words(c, runs))
    second = Table.named("training_layouts", more, folded=True)
    return [first, second]


def _inside(r: Any) -> bool:
    return bool(r.low <= r.published <= r.high)


def _check_words(checks: pd.DataFrame) -> str:
    good = [r for r in records(checks) if _inside(r)]
    bad = [r for r in records(checks) if not _inside(r)]
    words = say("training.checks", inside=len(good), all=len(checks))
    if not bad:
        return words + "."
    mean = [
        say(
            "training.outside",
            check=r.check,
            published=_shown(r.published),
            low=_shown(r.low, 2),
            high=_shown(r.high, 2),
        )
        for r in bad
    ]
    hours = next((r for r in bad if r.unit == "H100-hours"), None)
    short = say("training.fewer", share=percent(1 - hours.ours / hours.published)) if hours is not None else ""
    return say("training.outside_words", words=words, outside=join("; ", mean), short=short)


def _shown(value: float, digits: int = 3) -> str:
    """A share as percent, any other number in words."""
    return percent(value) if value <= 1 else count(value, digits) if value >= 1e5 else plain(value, digits)


def _checks(c: Context, checks: pd.DataFrame) -> Table:
    rows = [
        [
            r.check[:1].upper() + r.check[1:],
            (_shown(r.ours), r.ours),
            say("training.range", low=_shown(r.low, 2), high=_shown(r.high, 2)),
            (_shown(r.published), r.published),
            "inside" if _inside(r) else "outside",
            str(c.facts.get(r.fact_ids.split()[0], {}).get("source", "")),
        ]
        for r in records(checks)
    ]
    return Table.named("training_checks", rows)


def _largest(c: Context, s: Section) -> None:
    table = c.table("largest_runs")
    if table is None:
        return
    rows = []
    for r in records(table):
        rows.append(
            [
                r.period,
                r.place if r.case == "site" else say("training.region", place=c.title(r.place)),
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
    s.tables.append(
        Table.named("largest_runs", rows, days=number(days, ".0f"), mfu=percent(mfu), facts=fact_words(c, table))
    )


def _largest_words(c: Context, table: pd.DataFrame) -> str:
    last = table[table["year"] == table["year"].max()]
    said = []
    for r in records(last):
        where = (
            say("training.one_site", place=r.place)
            if r.case == "site"
            else say("training.one_region", place=c.title(r.place))
        )
        said.append(
            say(
                "training.largest_one",
                where=where,
                operations=_power_of_ten(r.operations),
                band=say("training.range", low=_power_of_ten(r.low), high=_power_of_ten(r.high)),
                on_run=count(r.on_run, 2),
                sku=c.short(r.sku),
                limit=r.limited_by,
                bound=_power_of_ten(r.bound),
                accelerators=count(r.accelerators, 2),
            )
        )
    held = int((last["on_run"] < 0.999 * last["accelerators"]).sum())
    years = sorted(set(table.loc[table["case"] == "site", "year"]))
    note = "" if not years or years[0] == table["year"].min() else say("training.no_site", year=years[0])
    return say(
        "training.largest", days=number(table["days"].iloc[0], ".0f"), year=table["year"].max(), runs=join("; ", said)
    ) + (
        say("training.interruptions_set", note=note)
        if held == len(last)
        else say("training.some_set", held=held, all=len(last), note=note)
    )


def _power_of_ten(value: float) -> Number:
    """Two digits and the power of ten, as operations are counted.

    >>> _power_of_ten(1.24e29)
    '1.2e29'
    """
    return Number(f"{value:.1e}".replace("e+", "e"), value)


def _accuracy_words(accuracy: pd.DataFrame) -> str:
    said = []
    for name, group, left in (("stated", "layout stated", "pair"), ("all", "all", "pair"), ("family", "all", "family")):
        rows = accuracy[(accuracy["group"] == group) & (accuracy["left_out"] == left)]
        for r in records(rows):
            said.append(
                say(
                    "training.accuracy_one",
                    name=say(f"training.left_{name}"),
                    error=percent(r.mape / 100),
                    runs=r.rows,
                    coverage=percent(r.coverage / 100),
                )
            )
    return say("training.accuracy", runs=join("; ", said))
