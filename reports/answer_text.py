"""The answer in about five plain lines, for the terminal and the first page; every number is read from the run."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reports.catalogue import say
from reports.context import REFERENCE_TASK, Context
from reports.ranges import Span, ranged, study_span, times, widest
from reports.spans import Words, join
from reports.tables import records
from reports.wording import (
    brief,
    count,
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
        AnswerLine(say("answer.binds"), what_binds(c)),
        AnswerLine(say("answer.many"), volume_words(c)),
        AnswerLine(say("answer.worth"), price_words(c)),
        AnswerLine(say("answer.costs"), cost_words(c)),
        AnswerLine(say("answer.sure"), join(" ", [t for t in (sure_words(c), comparison_words(c)) if t])),
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
        return say("answer.nothing_binds")
    text = stages_in_words(c.leaders, c.periods)
    shares = c.stage_shares(c.this_year)
    if len(c.periods) > 1 and len(shares):
        first, share = str(shares.index[0]), float(shares.iloc[0])
        carried = ranged(share, study_span(c, "share", share), percent, digits=2)
        words = {"year": c.this_year, "stage": stage_title(first), "share": carried}
        text = join(" ", [text, say("answer.share", **words, others=_others(c, shares))])
    return text


def _others(c: Context, shares: pd.Series[float]) -> str:
    """The next stage of the year, with its largest limit."""
    if len(shares) < 2 or shares.iloc[1] < 0.01:
        return ""
    limits = c.limits_of(c.this_year)
    lead = limits[limits["stage"] == shares.index[1]].iloc[0]
    share = percent(shares.iloc[1])
    title = in_sentence(str(lead["title"]))
    return say("answer.next_share", stage=stage_title(str(shares.index[1])), share=share, limit=title)


def stages_in_words(leaders: list[str], periods: list[str]) -> str:
    """The stage that leads now and since when, its breaks, and the earlier ones with their times.

    >>> stages_in_words(["hbm", "power", "packaging", "power"], ["2024-Q1", "2024-Q2", "2024-Q3", "2024-Q4"])
    'Energised power is the costliest limit from 2024-Q2 on, except advanced packaging in 2024-Q3. Before it: HBM \
memory (2024-Q1).'
    """
    end = max(k for k, stage in enumerate(leaders) if stage)
    start, breaks = leader_since(leaders[: end + 1])
    when = span_words(periods[start], periods[end], periods[-1])
    missed: dict[str, list[str]] = {}
    for k in breaks:
        missed.setdefault(_stage(leaders[k]), []).append(periods[k])
    gaps = [say("answer.break", stage=stage, times=listing(at)) for stage, at in missed.items()]
    breaks_words = say("answer.except", breaks=listing(gaps)) if gaps else ""
    text = Words([say("answer.leader", stage=stage_title(leaders[end]), when=when, breaks=breaks_words)]).capitalized()
    before: dict[str, list[str]] = {}
    for stage, first, last in _runs(leaders[:start]):
        if stage:
            same = first == last
            at = periods[first] if same else say("phrases.range", low=periods[first], high=periods[last])
            before.setdefault(stage, []).append(at)
    words = [say("answer.earlier", stage=stage_title(s), times=join(", ", at)) for s, at in before.items()]
    return join(" ", [text, say("answer.before", stages=listing(words))]) if words else text


def _stage(name: str) -> str:
    return stage_title(name) if name else say("answer.nothing")


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
    """Energised and finished accelerators this year and next, with the ranges of the study."""
    if len(c.periods) == 1:
        return say("answer.finished_once", finished=count(c.total("finished", c.periods[0])), period=c.periods[0])
    parts: list[str] = []
    spans: list[Span] = []
    for year, later in [(c.this_year, ""), (c.next_year, "next_")]:
        if year is None:
            continue
        finished, energised = c.total("finished", year), c.total("energised", year)
        made = study_span(c, f"{later}finished", finished) if _studied(c, year, later) else None
        lit = study_span(c, later.rstrip("_") or "energised", energised) if _studied(c, year, later) else None
        spans += [made, lit]
        things = say("answer.accelerators")
        if c.has_fleet:
            both = {"energised": ranged(energised, lit, what=things), "finished": ranged(finished, made)}
            parts.append(say("answer.volumes", year=year, **both))
        else:
            parts.append(say("answer.finished", year=year, finished=ranged(finished, made, what=things)))
    if any(spans):
        parts.append(say("answer.ranges"))
    return join(" ", parts)


def _studied(c: Context, year: str, later: str) -> bool:
    table = c.table("headline")
    return table is not None and int(table["year"].iloc[0]) + bool(later) == int(year)


def price_words(c: Context) -> str:
    """What one more unit of the main limit is worth, in its own unit and in the three of the reader."""
    main = c.main_limit
    if main is None:
        return say("answer.no_price")
    price, title = main["price"], in_sentence(main["title"])
    amount, _, per = str(price["unit"]).partition("/")
    fields = {"per": per or say("answer.unit"), "limit": title, "period": main["period"]}
    if not c.has_money:
        gained = amount.removesuffix("s") if price["native"] == 1 else amount
        return say("answer.gives", **fields, amount=brief(price["native"]), unit=gained)
    power = main["stage"] == "power"
    native = price["lasting"] if power else price["native"]
    study = study_span(c, "price", native) if _watched(c, main) else None
    interval = None if power else _interval(main)
    worth = ranged(native, widest(study, interval), money, digits=2)
    words = say("answer.worth_kept" if power else "answer.worth_period", **fields, worth=worth)
    spread = _spread(c, main, study)
    return join(" ", [words, say("answer.spread", parts=listing(spread))]) if spread else words


def _watched(c: Context, main: dict[str, Any]) -> bool:
    """Whether the study followed the price of this limit in this period."""
    table = c.table("headline")
    if table is None or "limit" not in table:
        return False
    return (str(table["limit"].iloc[0]), str(table["period"].iloc[0])) == (main["resource"], main["period"])


def _interval(main: dict[str, Any]) -> Span:
    """The interval of the check by re-solving where it is wider than 1 %: at a kink every price in it is right."""
    low, high = main["price_range"]
    return (low, high) if high - low > 0.01 * max(abs(main["price"]["native"]), abs(high)) else None


def _spread(c: Context, main: dict[str, Any], study: Span) -> list[str]:
    """The price of a limit for each accelerator-hour, million tokens and task of its reference product."""
    price = main["price"]
    reference = price["reference"]
    ratio: Span = None
    table = c.table("headline")
    if study is not None and table is not None:
        base = float(table["unit_price_base"].iloc[0])
        held = widest(
            *((v / base, v / base) for end in ("low", "base", "high") for v in table[f"unit_price_{end}"].dropna())
        )
        ratio = held if base > 0 else None
    engine = _engine(c, reference["sku"], reference["model"], main["period"])
    found: list[str] = []
    for name in ("usd_per_gpu_hour", "usd_per_mtoken", "usd_per_task"):
        if (usd := money_price(price, name)) is None:
            continue
        span = times(usd, ratio if name == "usd_per_gpu_hour" else widest(ratio, engine))
        names = {"sku": c.short(reference["sku"]), "model": c.title(reference["model"] or "")}
        task = _task(reference["task"] or "")
        found.append(say(f"answer.{name}", usd=ranged(usd, span, money, digits=2), **names, task=task))
    return found


def _engine(c: Context, sku: str | None, model: str | None, period: str) -> Span:
    """Band of the per-token engine as multiples of a token cost, None where the run holds none."""
    for row in c.answer["costs"]:
        if (row["sku"], row["model"], row["period"]) == (sku, model, period) and row.get("engine_low"):
            return float(row["engine_low"]), float(row["engine_high"])
    return None


def money_price(price: dict[str, Any], name: str) -> float | None:
    """A price in a money unit: the lasting one where the answer holds it (power), else that of the period."""
    lasting = price.get(f"lasting_{name}")
    value = price[name] if lasting is None else lasting
    return None if value is None else float(value)


def _task(name: str) -> str:
    return say("answer.chat") if name == "chat" else say("answer.task", task=name)


def cost_words(c: Context) -> str:
    """Owner cost of an hour, a million tokens and a task on the reference product, scarcity told apart."""
    sku = c.reference_sku
    if sku is None:
        return say("answer.no_costs")
    owner = c.value_at("owner_usd_per_gpu_hour", sku, c.now)
    full = c.value_at("usd_per_gpu_hour", sku, c.now)
    assert owner is not None and full is not None
    scarcity = float(full["value"] - owner["value"])
    rents = study_span(c, "scarcity", scarcity) if _follows(c, sku) else None
    moved = None if rents is None else (owner["value"] + rents[0], owner["value"] + rents[1])
    whole = widest((full["low"], full["high"]), moved)
    parts: list[str] = [
        say(
            "answer.hour",
            owner=ranged(owner["value"], (owner["low"], owner["high"]), money),
            sku=c.short(sku),
            period=c.now,
            scarcity=ranged(scarcity, rents, money, digits=2),
            full=ranged(full["value"], whole, money),
        )
    ]
    tokens = c.quantity("usd_per_mtoken_output")
    tokens = tokens[(tokens["sku"] == sku) & (tokens["period"] == c.now)]
    if len(tokens):
        row = tokens.iloc[0]
        rate = (
            None
            if moved is None
            else (row["value"] * moved[0] / full["value"], row["value"] * moved[1] / full["value"])
        )
        usd = ranged(row["value"], widest((row["low"], row["high"]), rate), money)
        parts += [say("answer.tokens", model=c.title(row["model"]), usd=usd), *_task_words(c, str(row["model"]), sku)]
    return join(" ", parts)


def _follows(c: Context, sku: str) -> bool:
    """Whether the study followed the scarcity in an hour of this product now."""
    table = c.table("headline")
    if table is None or "sku" not in table:
        return False
    return (str(table["sku"].iloc[0]), str(table["period"].iloc[0])) == (sku, c.now)


def _task_words(c: Context, model: str, sku: str) -> list[str]:
    key = (REFERENCE_TASK, model, sku, c.now)
    row = next((t for t in c.answer["tasks"] if (t["task"], t["model"], t["sku"], t["period"]) == key), None)
    if row is None:
        return []
    value, span = row["usd_per_verified_task"], (row["low"], row["high"])
    review = row.get("review_usd", 0.0)
    whole = ranged(value, span, money)
    if not review:
        return [say("answer.task_cost", task=_task(REFERENCE_TASK), usd=whole)]
    work = ranged(value - review, (span[0] - review, span[1] - review), money)
    return [say("answer.task_parts", task=_task(REFERENCE_TASK), usd=whole, work=work, review=money(review))]


def sure_words(c: Context) -> str:
    """How much rests on assumptions, and whether one of them overturns what binds."""
    weak, all_ = c.illustrative
    text = say("answer.weak", weak=weak, all=all_) if weak else say("answer.none_weak", all=all_)
    table = c.table("headline")
    if table is None:
        return join(" ", [text, say("answer.no_study")]) if weak else text
    flips = table[table["flips"]]
    year = str(table["year"].iloc[0])
    if not len(flips):
        return join(" ", [text, say("answer.no_flip", year=year)])
    more = say("answer.more", more=len(flips) - 3) if len(flips) > 3 else ""
    return join(" ", [text, say("answer.flips", year=year, names=listing(list(flips["title"].head(3))), more=more)])


def comparison_words(c: Context) -> str:
    """The run's finished units beside Epoch AI's estimates."""
    table = c.table("shipments")
    if table is None:
        return ""
    inside = int(((table["ours"] >= table["low"]) & (table["ours"] <= table["high"])).sum())
    text = say("answer.inside", inside=inside, all=len(table))
    lead = table[table["group"] == "nvidia"]
    if not len(lead):
        return text
    pairs = [
        say("answer.pair", ours=plain(r.ours / 1e6, 2), theirs=plain(r.theirs / 1e6, 2), year=str(r.year))
        for r in records(lead)
    ]
    return join(" ", [text, say("answer.pairs", pairs=listing(pairs))])
