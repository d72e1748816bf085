"""What a report reads from a stored sample: quantiles by period, and in how many draws each stage binds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from reports.blocks import Section, Table
from reports.catalogue import say
from reports.figures.fan import draw_timeline, fan_chart
from reports.sections.limits import scope
from reports.spans import join
from reports.tables import records
from reports.wording import band, count, digits_for, percent, stage_title

if TYPE_CHECKING:
    from reports.context import Context
    from reports.market_report import Report
    from scenarios.sample import Sample

__all__ = ["SampleError", "add_draws", "binding_shares", "draws_section", "open_draws", "quantiles"]

QUANTILES = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}
#: A stage binds in a draw where it carries more than this share of the period's rent.
LEAST_RENT = 0.005
PATHS = 5


class SampleError(ValueError):
    """A sample that cannot stand in a report of this run; the message says why and what to do."""


def open_draws(folder: Path, c: Context) -> Sample:
    """The stored sample, checked to be of the run's scenario and to cover its periods.

    Raises:
        SampleError: another scenario, or other periods. RunFolderError: a folder that is not whole.
    """
    from scenarios.sample import open_sample

    found = open_sample(folder)
    if found.scenario != c.run.scenario:
        raise SampleError(
            f"{folder}: a sample of {found.scenario!r}, but the run is of {c.run.scenario!r}; "
            f"make one with `wafer2token sample {c.run.scenario}`"
        )
    if not any(n.endswith(f"@{c.periods[-1]}") for n in found.names):
        raise SampleError(f"{folder}: the sample does not reach {c.periods[-1]}, the last period of the run")
    if _done(found) < 20:
        raise SampleError(f"{folder}: {_done(found)} draws with an optimum; a fan needs at least 20")
    return found


def quantiles(sample: Sample, quantity: str, periods: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Quantiles of the sum of a quantity over its subjects by period, and a few draws as columns.

    Raises:
        SampleError: when the sample does not hold the quantity.
    """
    heads = [f"{quantity}:*@{p}" for p in periods]
    if not any(n.startswith(f"{quantity}:") for n in sample.names):
        raise SampleError(f"the sample holds no {quantity}; draw it with all outputs")
    values = np.column_stack([sample.column(h) for h in heads])
    rows = np.quantile(values, list(QUANTILES.values()), axis=0).T
    table = pd.DataFrame(rows, columns=list(QUANTILES)).assign(period=list(periods))
    order = np.argsort(values[:, -1])
    places = order[np.linspace(0.1, 0.9, PATHS).__mul__(len(order) - 1).astype(int)]
    paths = pd.DataFrame({f"draw {k}": values[k] for k in places})
    return table[["period", *QUANTILES]], paths


def binding_shares(sample: Sample, stages: dict[str, str], periods: Sequence[str]) -> pd.DataFrame:
    """Share of draws in which a stage carries rent, by period; `nothing`: draws without any: period, stage, share.

    Args:
        sample: draws with the outputs `rent:RESOURCE@PERIOD`.
        stages: stage of each resource.
        periods: labels wanted.
    """
    good = ~np.isnan(sample.values).all(axis=1)
    rents: dict[tuple[str, str], np.ndarray] = {}
    for k, name in enumerate(sample.names):
        head, _, period = name.partition("@")
        if head.startswith("rent:") and period in periods:
            stage = stages.get(head.removeprefix("rent:"), "other")
            column = np.nan_to_num(sample.values[good, k])
            rents[stage, period] = rents.get((stage, period), np.zeros(int(good.sum()))) + column
    if not rents:
        raise SampleError("the sample holds no rents; draw it with all outputs")
    rows = []
    for period in periods:
        here = {s: v for (s, p), v in rents.items() if p == period}
        if not here:
            continue
        total = np.sum(list(here.values()), axis=0)
        binds = {s: (v > LEAST_RENT * total) & (v > 0) for s, v in here.items()}
        rows += [(period, s, float(b.mean())) for s, b in binds.items()]
        rows.append((period, "nothing", float(1 - np.any(list(binds.values()), axis=0).mean())))
    table = pd.DataFrame(rows, columns=["period", "stage", "share"])
    if table.loc[table["stage"] == "nothing", "share"].max() == 0:
        table = table[table["stage"] != "nothing"]
    return table.reset_index(drop=True)


def add_draws(report: Report, c: Context, sample: Sample) -> None:
    """Put the draws into a report: a section after what binds, the band in the first sentence, no claim of absence."""
    place = next((k + 1 for k, s in enumerate(report.sections) if s.id == "binds"), 0)
    report.sections.insert(place, draws_section(c, sample))
    quantity = "energised" if c.has_fleet else "finished"
    if any(n.startswith(f"{quantity}:") for n in sample.names):
        low, middle, high = np.quantile(sample.column(f"{quantity}:*@{c.this_year}"), [0.05, 0.5, 0.95])
        digits = digits_for(float(middle), float(low), float(high))
        words = say("draws.band", middle=count(float(middle), digits), band=band(float(low), float(high), digits))
        first = report.answer[0]
        text = say(
            "draws.first",
            text=first.text,
            quantity=quantity.capitalize(),
            year=c.this_year,
            draws=_done(sample),
            words=words,
        )
        report.answer[0] = type(first)(first.label, text)
    for section in report.sections:
        for table in section.tables:
            if table.short == "limits_of_this_edition":
                table.rows = [row for row in table.rows if row[0].text != "Shares of draws"]


def _done(sample: Sample) -> int:
    return sample.draws - len(sample.failed)


def draws_section(c: Context, sample: Sample) -> Section:
    """Fan chart, share of draws in which each stage binds, and the numbers of both."""
    done = _done(sample)
    s = Section("draws")
    quantity = "energised" if c.has_fleet else "finished"
    try:
        table, paths = quantiles(sample, quantity, c.periods)
    except SampleError:
        quantity = "finished"
        table, paths = quantiles(sample, quantity, c.periods)
    plan = c.quantity(quantity).groupby("period")["value"].sum().reindex(c.periods, fill_value=0.0)
    table = table.assign(plan=plan.to_numpy())
    what, origin = say("draws.what", quantity=quantity.capitalize()), _after(c)
    s.figures.append(fan_chart(table, c.periods, what, say("draws.per_period"), done, scope(c), paths, origin))
    stages = dict(zip(c.quantity("capacity")["subject"], c.quantity("capacity")["stage"], strict=True))
    shares = binding_shares(sample, stages, c.periods)
    binds = set(zip(c.binding["stage"], c.binding["period"], strict=True))
    shares = shares.assign(plan=[(r.stage, r.period) in binds for r in records(shares)])
    s.figures.append(draw_timeline(shares, c.periods, done, scope(c)))
    s.paragraphs += [_words(c, shares, table, quantity, done), _limits_of_draws(sample)]
    s.tables += [_fan_table(table, what), _share_table(shares)]
    return s


def _after(c: Context) -> str:
    """The first period after the as-of date, empty where there is none."""
    return next((p for p in c.periods if p > c.now), "") if c.facts else ""


def _words(c: Context, shares: pd.DataFrame, table: pd.DataFrame, quantity: str, done: int) -> str:
    parts = []
    for period in dict.fromkeys([c.now, c.periods[-1]]):
        here = shares[(shares["period"] == period) & (shares["stage"] != "nothing")].sort_values(
            "share", ascending=False
        )
        named = [
            say("draws.stage", stage=stage_title(r.stage), share=percent(r.share))
            for r in records(here.head(3))
            if r.share > 0
        ]
        parts.append(
            say("draws.binds", period=period, stages=join(", ", named)) if named else say("draws.none", period=period)
        )
    row = table[table["period"] == c.periods[-1]].iloc[0]
    low, middle, high = float(row["q05"]), float(row["q50"]), float(row["q95"])
    digits = digits_for(middle, low, high)
    return say(
        "draws.words",
        draws=done,
        parts=join(". ", parts),
        quantity=quantity.capitalize(),
        last=c.periods[-1],
        middle=count(middle, digits),
        band=band(low, high, digits),
    )


def _limits_of_draws(sample: Sample) -> str:
    failed = say("draws.failed", failed=len(sample.failed)) if sample.failed else ""
    return say("draws.meaning", failed=failed, scenario=sample.scenario, hash=sample.hash[:12])


def _fan_table(table: pd.DataFrame, what: str) -> Table:
    rows = [
        [r.period, *[(count(v, 3), float(v)) for v in (r.q05, r.q25, r.q50, r.q75, r.q95, r.plan)]]
        for r in records(table)
    ]
    return Table.named("fan", rows, folded=len(rows) > 20, what=what)


def _share_table(shares: pd.DataFrame) -> Table:
    wide = shares.pivot_table(index="period", columns="stage", values="share").fillna(0.0)
    rows = [
        [period, *[(percent(v) if v > 0 else "-", float(v)) for v in line]]
        for period, line in zip(wide.index, wide.to_numpy(), strict=True)
    ]
    heads = [f"#{stage_title(str(s)).capitalize() if s != 'hbm' else 'HBM memory'}" for s in wide.columns]
    return Table.named("draw_shares", rows, folded=True, stages=heads)
