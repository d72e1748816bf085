"""The answer in about five plain lines, for the terminal and the first page; every number is read from the run."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reports.context import REFERENCE_TASK, Context
from reports.tables import records
from reports.wording import (
    band,
    count,
    digits_for,
    in_sentence,
    leader_since,
    listing,
    money,
    percent,
    plain,
    span_words,
    stage_title,
)

if TYPE_CHECKING:
    import pandas as pd

    from scenarios.runs import Run

__all__ = [
    "AnswerLine",
    "answer_lines",
    "comparison_words",
    "cost_words",
    "price_words",
    "sure_words",
    "terminal_lines",
    "volume_words",
    "what_binds",
]

WIDTH = 80


@dataclass(frozen=True)
class AnswerLine:
    """One line of the answer: what it answers, and the sentence."""

    label: str
    text: str


def answer_lines(run: Run) -> list[AnswerLine]:
    """What binds, how many, what one more is worth, what it costs, how sure; lines that a run cannot answer say why.

    >>> from scenarios.runner import run
    >>> answer_lines(run("course_11_1"))[1].text
    '10,000 accelerators finished in 2026-Q1.'
    """
    c = Context(run)
    return [
        AnswerLine("What binds:", what_binds(c)),
        AnswerLine("How many:", volume_words(c)),
        AnswerLine("What one more is worth:", price_words(c)),
        AnswerLine("What it costs:", cost_words(c)),
        AnswerLine("How sure:", f"{sure_words(c)} {comparison_words(c)}".strip()),
    ]


def terminal_lines(run: Run, width: int = WIDTH) -> list[str]:
    """The answer wrapped to a terminal, continuation lines indented."""
    out: list[str] = []
    for line in answer_lines(run):
        out += textwrap.wrap(f"{line.label} {line.text}", width, subsequent_indent="  ", break_long_words=False)
    return out


def what_binds(c: Context) -> str:
    """The costliest stage over time, and who carries it this year."""
    if not any(s.stage for s in c.stage_spans):
        return "no limit has a price: demand, not supply, sets the volume."
    text = stages_in_words(c.leaders, c.periods)
    shares = c.stage_shares(c.this_year)
    if len(c.periods) > 1 and len(shares):
        first = shares.index[0]
        share = percent(shares.iloc[0])
        text += (
            f" In {c.this_year} {stage_title(str(first))} carries {share} of the scarcity value{_others(c, shares)}."
        )
    return text


def _others(c: Context, shares: pd.Series[float]) -> str:
    """The next stage of the year, with its largest limit."""
    if len(shares) < 2 or shares.iloc[1] < 0.01:
        return ""
    limits = c.limits_of(c.this_year)
    lead = limits[limits["stage"] == shares.index[1]].iloc[0]
    return (
        f", {stage_title(str(shares.index[1]))} {percent(shares.iloc[1])} (first the {in_sentence(str(lead['title']))})"
    )


def stages_in_words(leaders: list[str], periods: list[str]) -> str:
    """The stage that leads now and since when, its breaks, and the earlier ones with their times.

    >>> stages_in_words(["hbm", "power", "packaging", "power"], ["2024-Q1", "2024-Q2", "2024-Q3", "2024-Q4"])
    'Energised power from 2024-Q2 on, except advanced packaging in 2024-Q3; before it HBM memory (2024-Q1).'
    """
    end = max(k for k, stage in enumerate(leaders) if stage)
    start, breaks = leader_since(leaders[: end + 1])
    name = stage_title(leaders[end])
    text = f"{name[0].upper()}{name[1:]} {span_words(periods[start], periods[end], periods[-1])}"
    if breaks:
        missed: dict[str, list[str]] = {}
        for k in breaks:
            missed.setdefault(_stage(leaders[k]), []).append(periods[k])
        text += f", except {listing([f'{stage} in {listing(when)}' for stage, when in missed.items()])}"
    before: dict[str, list[str]] = {}
    for stage, first, last in _runs(leaders[:start]):
        if stage:
            times = periods[first] if first == last else f"{periods[first]} to {periods[last]}"
            before.setdefault(stage, []).append(times)
    words = [f"{stage_title(stage)} ({', '.join(times)})" for stage, times in before.items()]
    return text + (f"; before it {listing(words)}." if words else ".")


def _stage(name: str) -> str:
    return stage_title(name) if name else "nothing"


def _runs(leaders: list[str]) -> list[tuple[str, int, int]]:
    """Equal neighbours: value, first and last place."""
    out: list[tuple[str, int, int]] = []
    for k, stage in enumerate(leaders):
        if out and out[-1][0] == stage:
            out[-1] = (stage, out[-1][1], k)
        else:
            out.append((stage, k, k))
    return out


def volume_words(c: Context) -> str:
    """Finished and energised this year and next, with the range of the study."""
    if len(c.periods) == 1:
        done = c.total("finished", c.periods[0])
        return f"{count(done)} accelerators finished in {c.periods[0]}."
    parts = []
    for year in [c.this_year, *([c.next_year] if c.next_year else [])]:
        finished = c.total("finished", year)
        if not c.has_fleet:
            parts.append(f"{count(finished)} accelerators finished in {year}")
            continue
        low, high = study_range(c, year)
        energised = c.total("energised", year)
        digits = digits_for(energised, low, high)
        span = f" ({band(low, high)})" if low is not None and high is not None else ""
        parts.append(
            f"{count(energised, digits)} accelerators energised in {year}{span} and {count(finished, digits)} finished"
        )
    ranged = " Ranges: single inputs moved over theirs." if any("(" in p for p in parts) else ""
    return f"{'; '.join(parts)}.{ranged}"


def study_range(c: Context, year: str) -> tuple[float | None, float | None]:
    """Lowest and highest energised of a year over all single moves of the study, None where there is no study of it."""
    table = c.table("headline")
    if table is None or not len(table):
        return None, None
    studied = str(table["year"].iloc[0])
    names = {studied: ("energised_low", "energised_high"), str(int(studied) + 1): ("next_low", "next_high")}
    if year not in names:
        return None, None
    values = table[list(names[year])]
    return float(values.min().min()), float(values.max().max())


def price_words(c: Context) -> str:
    """What one more unit of the main limit is worth, in its own unit and in the three of the reader."""
    main = c.main_limit
    if main is None:
        return "no limit has a price."
    price, title = main["price"], main["title"]
    unit = str(price["unit"])
    if not c.has_money:
        amount, _, per = unit.partition("/")
        return (
            f"one more {_one(per)} of {in_sentence(title)} in {main['period']} gives {price['native']:.3g} "
            f"{_plural(amount, price['native'])}; "
            "prices in money need the objective value."
        )
    power = main["stage"] == "power"
    native = price["lasting"] if power else price["native"]
    kind = "lasting to the end of the model" if power else "for the quarter"
    what = f"{_one(unit.partition('/')[2])} of {in_sentence(title)}"
    text = f"one more {what}, {kind}, is worth {money(native, 2)} in {main['period']}"
    if (usd := money_price(price, "usd_per_gpu_hour")) is not None:
        text += f": {money(usd, 2)} per GPU-hour of {c.short(price['reference']['sku'])}"
    if (usd := money_price(price, "usd_per_mtoken")) is not None:
        model = c.title(price["reference"]["model"])
        text += f", {money(usd, 2)} per million output tokens of {model}"
    if (usd := money_price(price, "usd_per_task")) is not None:
        text += f", {money(usd, 2)} per {_task(price['reference']['task'])}"
    return text + "."


def money_price(price: dict[str, Any], name: str) -> float | None:
    """A price in a money unit: the lasting one where the answer holds it (power), else that of the period."""
    lasting = price.get(f"lasting_{name}")
    value = price[name] if lasting is None else lasting
    return None if value is None else float(value)


def _task(name: str) -> str:
    return "answered chat message" if name == "chat" else f"verified {name} task"


def _one(unit: str) -> str:
    return unit or "unit"


def _plural(unit: str, amount: float) -> str:
    return unit.removesuffix("s") if amount == 1 else unit


def cost_words(c: Context) -> str:
    """Owner cost of an hour, a million tokens and a task on the reference product, scarcity told apart."""
    sku = c.reference_sku
    if sku is None:
        return "this run has no fleet or no money, so hours, tokens and tasks are not costed."
    owner = c.value_at("owner_usd_per_gpu_hour", sku, c.now)
    full = c.value_at("usd_per_gpu_hour", sku, c.now)
    assert owner is not None and full is not None
    digits = digits_for(owner["value"], owner["low"], owner["high"])
    text = (
        f"an owner pays {money(owner['value'], digits)} ({band(owner['low'], owner['high'])}) per sold hour of "
        f"{c.short(sku)} "
        f"in {c.now}, {money(full['value'], digits)} with the scarcity of racks and power"
    )
    tokens = c.quantity("usd_per_mtoken_output")
    tokens = tokens[(tokens["sku"] == sku) & (tokens["period"] == c.now)]
    if len(tokens):
        row = tokens.iloc[0]
        ends = band(row["low"], row["high"])
        text += f"; {c.title(row['model'])} on it {money(row['value'], 2)} ({ends}) per million output tokens"
        task = c.value_at("usd_per_verified_task", f"{REFERENCE_TASK}/{row['model']}/{sku}", c.now)
        if task is not None:
            text += f"; a verified {REFERENCE_TASK} task {money(task['value'])} (review by people included)"
    return text + "."


def sure_words(c: Context) -> str:
    """How much rests on assumptions, and whether one of them overturns what binds."""
    weak, all_ = c.illustrative
    text = f"{weak} of {all_} input numbers rest on an illustrative assumption."
    if weak == 0:
        text = f"none of the {all_} input numbers is illustrative."
    table = c.table("headline")
    if table is None:
        return text + ("" if weak == 0 else " No study of weak inputs was run (add --report DIR for the range).")
    flips = table[table["flips"]]
    year = str(table["year"].iloc[0])
    if len(flips):
        names = listing([str(t) for t in flips["title"].head(3)])
        more = f" and {len(flips) - 3} more" if len(flips) > 3 else ""
        return f"{text} Moved alone over its range, each of these changes which stage binds in {year}: {names}{more}."
    return f"{text} Moved alone over its range, none of them changes which stage binds in {year}."


def comparison_words(c: Context) -> str:
    """The run's finished units beside Epoch AI's estimates."""
    table = c.table("shipments")
    if table is None:
        return ""
    inside = int(((table["ours"] >= table["low"]) & (table["ours"] <= table["high"])).sum())
    text = f"Of {len(table)} yearly totals {inside} lie inside Epoch AI's 90 % interval"
    lead = table[table["group"] == "nvidia"]
    if len(lead):
        pairs = [
            f"{plain(r.ours / 1e6, 2)} against {plain(r.theirs / 1e6, 2)} million in {r.year}" for r in records(lead)
        ]
        text += f"; NVIDIA {listing(pairs)}"
    return text + "."
