"""Section: current answers - owner cost beside market prices, tokens of open models, tasks at API prices."""

from __future__ import annotations

from typing import Any

import pandas as pd

from reports.blocks import Section, Table
from reports.catalogue import say
from reports.context import Context
from reports.figures import market as figures
from reports.sections.making import fact_words
from reports.spans import join, number
from reports.tables import records
from reports.wording import band, digits_for, listing, percent, plain

__all__ = ["market_section"]

OWNER, SOLD, RUNNING = "owner cost", "owner cost, most hours sold", "running cost"
#: A price this near owner cost (as a ratio) is not called below it.
SAME = 0.995
KINDS = ("contract", "spot", "list")


def market_section(c: Context) -> Section | None:
    """Prices of an hour, a million tokens and a task on the day of the report."""
    prices, quotes = c.table("market"), c.table("price_series")
    if prices is None or quotes is None:
        return None
    s = Section("market")
    day = str(prices.loc[prices["price_kind"] == OWNER, "on"].iloc[0])
    s.paragraphs.append(say("market.as_of", day=day))
    s.tables.append(_hours(c, prices, day))
    s.paragraphs.append(_below_words(prices))
    owner = prices[prices["price_kind"] == OWNER].rename(columns={"usd_per_gpu_hour": "value"})
    owner = owner.dropna(subset=["value"])[["chip", "value", "low", "high"]]
    s.figures.append(figures.price_panels(quotes, owner, list(dict.fromkeys(prices["chip"])), day))
    if (models := c.table("open_models")) is not None:
        s.paragraphs.append(_model_words(c, models))
        s.tables.append(_models(c, models))
    if (tasks := c.table("api_tasks")) is not None:
        s.paragraphs.append(_task_words(tasks))
        s.tables.append(_tasks(c, tasks))
    return s


def _pick(prices: pd.DataFrame, chip: str, kind: str, form: str = "") -> Any:
    """The row of a chip, kind and form; None where it has no price."""
    found = prices[(prices["chip"] == chip) & (prices["price_kind"] == kind) & (prices["form"] == form)]
    found = found.dropna(subset=["usd_per_gpu_hour"])
    return None if found.empty else next(records(found))


def _hours(c: Context, prices: pd.DataFrame, day: str) -> Table:
    rows = []
    observed = prices[~prices["price_kind"].isin([OWNER, SOLD, RUNNING])]
    for chip, form in observed[["chip", "form"]].drop_duplicates().itertuples(index=False):
        row: list[Any] = [f"{chip} {form}" if form not in ("", "not stated") else chip]
        row[0] += say("market.form_not_stated") if form == "not stated" else ""
        own = _pick(prices, chip, OWNER)
        row += [_number(own), "-" if own is None else band(own.low, own.high)]
        row += [_number(_pick(prices, chip, kind)) for kind in (SOLD, RUNNING)]
        rows.append([*row, *[x for kind in KINDS for x in _observed(_pick(prices, chip, kind, form))]])
    return Table.named(
        "market",
        rows,
        day=day,
        facts=fact_words(c, prices),
        kinds=[x for k in KINDS for x in (f"#{say(f'price_kinds.{k}')}", str(say("price_kinds.range")))],
    )


def _number(r: Any) -> Any:
    if r is None:
        return ("-", None)
    return (plain(r.usd_per_gpu_hour, 2), r.usd_per_gpu_hour)


def _observed(r: Any) -> list[Any]:
    """The median, and its range with the number of quotes and the month of the newest."""
    if r is None:
        return [("-", None), ""]
    spread = f"{band(r.low, r.high)}; " if r.high > r.low else ""
    return [(f"{r.usd_per_gpu_hour:.2f}", r.usd_per_gpu_hour), f"{spread}{r.quotes:.0f}; {r.on[:7]}"]


def _below_words(prices: pd.DataFrame) -> str:
    """Which contracts lie below owner cost, and what an owner who sells there may still cover."""
    rows = prices[(prices["price_kind"] == "contract") & prices["usd_per_gpu_hour"].notna()]
    below = rows[rows["over_owner_cost"] < SAME]
    if below.empty:
        return say("market.none_below", rows=len(rows))
    said, covered = [], 0
    for r in records(below):
        own, full = _pick(prices, r.chip, OWNER), _pick(prices, r.chip, SOLD)
        name = f"{r.chip} {r.form}" if r.form not in ("", "not stated") else r.chip
        said.append(
            say(
                "market.below",
                name=name,
                price=number(r.usd_per_gpu_hour, ".2f"),
                owner=number(own.usd_per_gpu_hour, ".2f"),
            )
        )
        covered += full is not None and r.usd_per_gpu_hour >= full.low
    running = [x for chip in dict.fromkeys(below["chip"]) if (x := _pick(prices, chip, RUNNING)) is not None]
    above = all(r.usd_per_gpu_hour > x.usd_per_gpu_hour for r in records(below) for x in running if x.chip == r.chip)
    share = (
        say("market.covered", covered=covered, all=len(below)) if covered < len(below) else say("market.all_covered")
    )
    return (
        say("market.below_words", prices=listing(said), share=share)
        + (say("market.above_running") if above and running else "")
        + say("market.other_reasons")
    )


def _model_words(c: Context, models: pd.DataFrame) -> str:
    first = models.iloc[0]
    done = models.dropna(subset=["value"])
    ratio = done.pivot_table(index="model", columns="target", values="value").dropna()
    targets = list(dict.fromkeys(models["target"]))
    spread = ratio[targets[1]] / ratio[targets[0]] if len(targets) > 1 and len(ratio) else None
    words = say(
        "market.models",
        sku=c.short(first["sku"]),
        rent=plain(first["usd_per_gpu_hour"], 2),
        band=band(first["hour_low"], first["hour_high"]),
        prompt_tokens=number(first["prompt_tokens"], ",.0f"),
        output_tokens=number(first["output_tokens"], ",.0f"),
    )
    if spread is not None and len(spread):
        words += say("market.faster", band=band(float(spread.min()), float(spread.max())))
    return words


def _models(c: Context, models: pd.DataFrame) -> Table:
    rows = []
    for r in records(models):
        target = say("market.target", first=number(r.ttft_s, "g"), next=number(1000 * r.tpot_s, ".0f"))
        if pd.isna(r.value):
            rows.append([r.model, target, *[("-", None)] * 4, r.reason, "-"])
            continue
        rows.append(
            [
                r.model,
                target,
                (plain(r.value, 2), r.value),
                band(r.low, r.high),
                (plain(r.input_value, 2), r.input_value),
                (say("market.rate", rate=plain(r.tokens_per_s, 2), band=band(r.rate_low, r.rate_high)), r.tokens_per_s),
                f"{r.label}, {say(f'confidence.{r.confidence}')}",
                _layout(r.setup),
            ]
        )
    return Table.named("open_models", rows, sku=c.short(models["sku"].iloc[0]), facts=fact_words(c, models))


def _layout(setup: str) -> str:
    """Layout and users of an engine's set-up line.

    >>> _layout("Kimi-K2 on B200 (published format, DP8, 1024 users, 1154.7 + 211.1 tokens)")
    'DP8, 1024 users'
    """
    inside = setup.partition("(")[2].rstrip(")").split(", ")
    return ", ".join(x for x in inside if not x.endswith(("format", "tokens"))) or setup


def _task_words(tasks: pd.DataFrame) -> str:
    done = tasks.dropna(subset=["value"])
    people = done.groupby("task", sort=False)["people_share"].mean()
    most = [say("market.share_of", task=t, share=percent(v)) for t, v in people.items() if v > 0.5]
    words = say("market.tasks")
    return words + (say("market.people", tasks=listing(most)) if most else "")


def _tasks(c: Context, tasks: pd.DataFrame) -> Table:
    rows = []
    for r in records(tasks):
        if pd.isna(r.value):
            rows.append([r.task, r.model, *[("-", None)] * 4, "-", r.reason])
            continue
        digits = digits_for(r.value, r.low, r.high)
        rows.append(
            [
                r.task,
                r.model,
                (plain(r.value, digits), r.value),
                band(r.low, r.high),
                (percent(r.verified_share), r.verified_share),
                (percent(r.people_share) if r.people_share else "0", r.people_share),
                f"{plain(r.usd_input)} / {plain(r.usd_output)}",
                r.prices,
            ]
        )
    evidence = join(
        "; ", (say("market.evidence", task=r.task, source=r.source) for r in records(tasks.drop_duplicates("task")))
    )
    return Table.named("api_tasks", rows, evidence=evidence, facts=fact_words(c, tasks))
