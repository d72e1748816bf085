"""Section: current answers - owner cost beside market prices, tokens of open models, tasks at API prices."""

from __future__ import annotations

from typing import Any

import pandas as pd

from reports.blocks import Section, Table
from reports.context import Context
from reports.figures import market as figures
from reports.sections.making import fact_words
from reports.tables import records
from reports.wording import band, digits_for, listing, percent, plain

__all__ = ["market_section"]

OWNER, SOLD, RUNNING = "owner cost", "owner cost, most hours sold", "running cost"
#: A price this near owner cost (as a ratio) is not called below it.
SAME = 0.995
KINDS = (("contract", "Contract"), ("spot", "Spot"), ("list", "List"))
CONFIDENCE = {
    "measured_nearby": "measured nearby", "same_hardware": "same hardware measured",
    "same_family": "same family measured",
    "first_principles": "first principles",
}  # fmt: skip


def market_section(c: Context) -> Section | None:
    """Prices of an hour, a million tokens and a task on the day of the report."""
    prices, quotes = c.table("market"), c.table("price_series")
    if prices is None or quotes is None:
        return None
    s = Section("market", "Current answers: hours, tokens and tasks on the market")
    day = str(prices.loc[prices["price_kind"] == OWNER, "on"].iloc[0])
    s.paragraphs.append(
        f"As of {day}, in USD of the day of each quote. Owner cost, contract, spot, list and index are different "
        "things and are never blended: owner cost is computed (United States, bought now by a neocloud); the others "
        "are medians of quotes of the last 365 days, the newest of each seller, with their range. A range of one "
        "quote is no range."
    )
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
        row[0] += ", form not stated" if form == "not stated" else ""
        own = _pick(prices, chip, OWNER)
        row += [_number(own), "-" if own is None else band(own.low, own.high)]
        row += [_number(_pick(prices, chip, kind)) for kind in (SOLD, RUNNING)]
        rows.append([*row, *[x for kind, _ in KINDS for x in _observed(_pick(prices, chip, kind, form))]])
    return Table.of(
        f"Price of one accelerator-hour on {day}, USD",
        ["Accelerator", "#Owner cost", "90 % band", "#Most hours sold", "#Running cost",
         *[x for _, t in KINDS for x in (f"#{t}", "range; quotes; newest")]],
        rows,
        note="Owner cost per sold hour. -: no quote in the 365 days. Index and capacity blocks: in the figure. "
        "Contract: one to three years, terms mixed. List: on demand. Most hours sold: the high end of the sold "
        "share. Running cost: power, people, upkeep and repairs of hardware that is paid for, per sold hour. "
        f"{fact_words(c, prices)}",
        short="market",
    )  # fmt: skip


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
        return f"None of {len(rows)} contract medians lies below owner cost."
    said, covered = [], 0
    for r in records(below):
        own, full = _pick(prices, r.chip, OWNER), _pick(prices, r.chip, SOLD)
        name = f"{r.chip} {r.form}" if r.form not in ("", "not stated") else r.chip
        said.append(f"{name} {r.usd_per_gpu_hour:.2f} against {own.usd_per_gpu_hour:.2f}")
        covered += full is not None and r.usd_per_gpu_hour >= full.low
    running = [x for chip in dict.fromkeys(below["chip"]) if (x := _pick(prices, chip, RUNNING)) is not None]
    above = all(r.usd_per_gpu_hour > x.usd_per_gpu_hour for r in records(below) for x in running if x.chip == r.chip)
    share = (
        f"{covered} of these {len(below)} lie inside the band at most hours sold. "
        if covered < len(below)
        else "All of these lie inside the band at most hours sold. "
    )
    return (
        f"Contract medians below owner cost: {listing(said)} USD per hour. This can be so for four reasons. A "
        "contract sells nearly every hour, while owner cost spreads the hardware over the mean sold share. "
        f"{share}Hardware that was bought earlier is paid for: "
        + ("every contract here is above the running cost, so it still earns. " if above and running else "")
        + "The owner may pay less for capital or servers than our middle case. And quotes differ in term, volume and "
        "in what they bundle (network, storage, support), with one to three quotes behind each median."
    )


def _model_words(c: Context, models: pd.DataFrame) -> str:
    first = models.iloc[0]
    done = models.dropna(subset=["value"])
    ratio = done.pivot_table(index="model", columns="target", values="value").dropna()
    targets = list(dict.fromkeys(models["target"]))
    spread = ratio[targets[1]] / ratio[targets[0]] if len(targets) > 1 and len(ratio) else None
    words = (
        f"Open models on {c.short(first['sku'])} at its owner cost of USD {plain(first['usd_per_gpu_hour'])} per sold "
        f"hour ({band(first['hour_low'], first['hour_high'])}), requests of {first['prompt_tokens']:,.0f} prompt and "
        f"{first['output_tokens']:,.0f} output tokens."
    )
    if spread is not None and len(spread):
        words += f" The faster target costs {band(float(spread.min()), float(spread.max()))} times the slower one."
    return words


def _models(c: Context, models: pd.DataFrame) -> Table:
    rows = []
    for r in records(models):
        target = f"first token {r.ttft_s:g} s, then {1000 * r.tpot_s:.0f} ms"
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
                (f"{plain(r.tokens_per_s, 2)} ({band(r.rate_low, r.rate_high)})", r.tokens_per_s),
                f"{r.label}, {CONFIDENCE.get(r.confidence, r.confidence)}",
                _layout(r.setup),
            ]
        )
    return Table.of(
        f"Cost of a million tokens of open models on {c.short(models['sku'].iloc[0])}, USD",
        ["Model", "Target, 99th percentile", "#Output", "#Output, 90 % band", "#Input",
         "#Output tokens/s an accelerator",
         "Check", "Layout"],
        rows,
        note="Cheapest point within the target; each token class bears its share of the busy time. Band: hour and "
        "engine joined. Check: the rate is the engine's own, or its class where a rate is quoted; then how near a "
        f"measurement is. No margin. {fact_words(c, models)}",
        short="open_models",
    )  # fmt: skip


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
    most = [f"{t} ({percent(v)})" for t, v in people.items() if v > 0.5]
    words = (
        "Course tasks at API prices: calls, tokens and success rates are those of each task's own evidence, so "
        "models differ here by price alone and not by skill; a weaker model would need more attempts."
    )
    return words + (f" Review by people is most of the cost of {listing(most)}." if most else "")


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
    evidence = "; ".join(f"{r.task}: {r.source}" for r in records(tasks.drop_duplicates("task")))
    return Table.of(
        "Cost of a verified task at API prices, USD",
        ["Task", "Model", "#USD per verified task", "#90 % interval", "#Attempts verified", "#Review by people",
         "Input / output price, USD per million", "Source of prices"],
        rows,
        note="Verified: failed attempts are paid for by the successful ones. Interval: success rate, and spread of "
        f"spending where seen; list prices are taken as exact. Calls and success: {evidence}. {fact_words(c, tasks)}",
        short="api_tasks",
    )  # fmt: skip
