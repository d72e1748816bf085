"""The answer in about five plain lines, for the terminal and the first page; every number is read from the run."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reports.context import REFERENCE_TASK, Context, StageSpan
from reports.wording import band, count, digits_for, listing, money, percent, plain, span_words, stage_title

if TYPE_CHECKING:
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
    spans = [s for s in c.stage_spans if s.stage]
    if not spans:
        return "no limit has a price: demand, not supply, sets the volume."
    words = [f"{stage_title(s.stage)} {span_words(s.first, s.last, c.periods[-1])}" for s in _merged(spans)]
    text = f"{'; '.join(words)}".strip()
    text = f"{text[0].upper()}{text[1:]}."
    shares = c.stage_shares(c.this_year)
    limits = c.limits_of(c.this_year).head(3)
    if len(c.periods) > 1 and len(shares):
        first = shares.index[0]
        named = listing([str(t) for t in limits["title"]])
        text += f" In {c.this_year} {stage_title(str(first))} carries {percent(shares.iloc[0])} of the scarcity value; largest: {named}."
    return text


def _merged(spans: list[StageSpan], most: int = 5) -> list[StageSpan]:
    """At most so many spans: the shortest early ones give way, so that the sentence stays readable."""
    return spans if len(spans) <= most else [spans[0], *spans[-(most - 1) :]]


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
        span = f" ({band(low, high)} as single inputs move over their ranges)" if low is not None and high is not None else ""
        parts.append(
            f"{count(energised, digits)} accelerators energised in {year}{span}, {count(finished, digits)} finished"
        )
    return "; ".join(parts) + "."


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
            f"one more {_one(per)} of {title} in {main['period']} gives {plain(price['native'])} {_plural(amount, price['native'])}; "
            "prices in money need the objective value."
        )
    power = main["stage"] == "power"
    native = price["lasting"] if power else price["native"]
    kind = "lasting to the end of the model" if power else "for the quarter"
    text = f"one more {_one(unit.partition('/')[2])} of {title}, {kind}, is worth {money(native)} in {main['period']}"
    scale = lasting_ratio(price) if power else 1.0
    if price["usd_per_gpu_hour"] is not None:
        text += f": {money(price['usd_per_gpu_hour'] * scale)} per GPU-hour of {c.short(price['reference']['sku'])}"
    if price["usd_per_mtoken"] is not None:
        text += f", {money(price['usd_per_mtoken'] * scale, 2)} per million output tokens of {c.title(price['reference']['model'])}"
    if price["usd_per_task"] is not None:
        text += f", {money(price['usd_per_task'] * scale, 2)} per {price['reference']['task']} task"
    return text + "."


def lasting_ratio(price: dict[str, Any]) -> float:
    """Lasting over one-period price per GPU-hour; tokens and tasks scale alike."""
    lasting, now = price.get("lasting_usd_per_gpu_hour"), price["usd_per_gpu_hour"]
    return float(lasting / now) if lasting is not None and now else 1.0


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
        f"an owner pays {money(owner['value'], digits)} ({band(owner['low'], owner['high'])}) per sold hour of {c.short(sku)} "
        f"in {c.now}, {money(full['value'], digits)} with the scarcity of racks and power"
    )
    tokens = c.quantity("usd_per_mtoken_output")
    tokens = tokens[(tokens["sku"] == sku) & (tokens["period"] == c.now)]
    if len(tokens):
        row = tokens.iloc[0]
        text += (
            f"; {c.title(row['model'])} on it {money(row['value'], 2)} ({band(row['low'], row['high'])}) per million output tokens"
        )
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
        return text + ("" if weak == 0 else " No study of weak inputs was run.")
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
        pairs = [f"{plain(r.ours / 1e6, 2)} against {plain(r.theirs / 1e6, 2)} million in {r.year}" for r in lead.itertuples()]
        text += f"; NVIDIA {listing(pairs)}"
    return text + "."
