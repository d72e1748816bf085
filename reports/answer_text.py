"""The answer in about five plain lines, for the terminal and the first page; every number is read from the run."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reports.answer_money import cost_words, price_words
from reports.catalogue import say
from reports.context import Context
from reports.ranges import ranged, study_span
from reports.spans import join
from reports.tables import records
from reports.wording import count, leader_since, listing, percent, plain, span_words, stage_title

if TYPE_CHECKING:
    import pandas as pd

    from scenarios.runs import Run

__all__ = [
    "AnswerLine",
    "answer_lines",
    "comparison_words",
    "growth_words",
    "sure_words",
    "terminal_lines",
    "unbuilt_words",
    "volume_words",
    "weak_words",
    "what_binds",
]

WIDTH = 80
#: Least share of a year's value with which a stage is named.
NAMED = 0.05
#: A count that moves by less than this stands still.
STILL = 0.1


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


def what_binds(c: Context, history: bool = True) -> str:
    """The scarcest stage over time, and how the value of all limits lies in the stages this year.

    `history` False leaves out the stages before the last one, which the first figure shows.
    """
    if not any(s.stage for s in c.stage_spans):
        return say("answer.nothing_binds")
    text = stages_in_words(c.leaders, c.periods, history)
    shares = c.stage_shares(c.this_year)
    if len(c.periods) > 1 and len(shares):
        first, share = str(shares.index[0]), float(shares.iloc[0])
        carried = ranged(share, study_span(c, "share", share), percent, digits=2)
        words = {"year": c.this_year, "stage": stage_title(first), "share": carried}
        text = join(" ", [text, say("answer.share", **words, others=_others(shares))])
    return text


def _others(shares: pd.Series[float]) -> str:
    """The other stages of the year that carry more than a twentieth."""
    parts = [
        say("answer.next_share", stage=stage_title(str(stage)), share=percent(share))
        for stage, share in shares.iloc[1:].items()
        if share >= NAMED
    ]
    return join("", [", ", listing(parts)]) if parts else ""


def stages_in_words(leaders: list[str], periods: list[str], history: bool = True) -> str:
    """The stage that leads now and since when, its breaks, and the earlier ones with their times.

    >>> stages_in_words(["hbm", "power", "packaging", "power"], ["2024-Q1", "2024-Q2", "2024-Q3", "2024-Q4"])
    'The scarcest stage is energised power from 2024-Q2 on, except advanced packaging in 2024-Q3. Before it: HBM \
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
    text = say("answer.leader", stage=stage_title(leaders[end]), when=when, breaks=breaks_words)
    if not history:
        return text
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
    digits = 2 if c.illustrative[0] else 3
    if len(c.periods) == 1:
        return say("answer.finished_once", finished=count(c.total("finished", c.periods[0])), period=c.periods[0])
    parts: list[str] = []
    for year, later in [(c.this_year, ""), (c.next_year, "next_")]:
        if year is None:
            continue
        words = {q: _volume(c, q, year, later, digits) for q in ("finished", "energised", "h100e")}
        if c.has_fleet:
            parts.append(say(f"answer.{later}volumes", year=year, **words))
        else:
            parts.append(say("answer.finished", year=year, finished=words["finished"]))
    return join(" ", parts)


def _volume(c: Context, quantity: str, year: str, later: str, digits: int) -> str:
    """A yearly volume with its range; the thing counted is named where it stands first."""
    value = c.total("energised_h100e" if quantity == "h100e" else quantity, year)
    measure = {"energised": later.rstrip("_") or "energised"}.get(quantity, f"{later}{quantity}")
    span = study_span(c, measure, value) if _studied(c, year, later) else None
    named = not later and quantity == ("energised" if c.has_fleet else "finished")
    return ranged(value, span, digits=digits, what=say("answer.accelerators") if named else "")


def growth_words(c: Context) -> list[str]:
    """Why more may be energised than finished, and why computing may grow while the count does not."""
    if not c.has_fleet or c.next_year is None:
        return []
    out: list[str] = []
    years = [c.this_year, c.next_year]
    energised, finished, h100e = ([c.total(q, y) for y in years] for q in ("energised", "finished", "energised_h100e"))
    more = [y for y, e, f in zip(years, energised, finished, strict=True) if e > f * (1 + NAMED)]
    if more:
        out.append(say("answer.from_stock", years=listing(more)))
    if min(energised[0], h100e[0]) > 0:
        counts, rates = energised[1] / energised[0] - 1, h100e[1] / h100e[0] - 1
        if abs(counts) < STILL < rates:
            out.append(say("answer.newer", rise=percent(rates)))
    return out


def unbuilt_words(c: Context) -> str:
    """Designers of the scope of whom the plan finishes nothing this year or next."""
    rows = c.quantity("finished").assign(designer=lambda t: t["subject"].map(c.designers))
    made = rows[rows["designer"].fillna("") != ""].groupby(["designer", "year"])["value"].sum()
    named = sorted({str(d) for d, _ in made[made > 1].index})
    parts: list[str] = []
    for year in (c.this_year, c.next_year):
        gone = [d for d in named if made.get((d, year), 0.0) <= 1]
        if year is not None and gone:
            parts.append(say("answer.unbuilt_in", designers=listing(gone), year=year))
    return say("answer.unbuilt", parts=listing(parts)) if parts else ""


def _studied(c: Context, year: str, later: str) -> bool:
    table = c.table("headline")
    return table is not None and int(table["year"].iloc[0]) + bool(later) == int(year)


def sure_words(c: Context) -> str:
    """How much rests on assumptions, and whether one of them overturns what binds."""
    text = weak_words(c)
    table = c.table("headline")
    if table is None:
        return join(" ", [text, say("answer.no_study")]) if c.illustrative[0] else text
    flips = table[table["flips"]]
    year = str(table["year"].iloc[0])
    if not len(flips):
        return join(" ", [text, say("answer.no_flip", year=year)])
    more = say("answer.more", more=len(flips) - 3) if len(flips) > 3 else ""
    return join(" ", [text, say("answer.flips", year=year, names=listing(list(flips["title"].head(3))), more=more)])


def weak_words(c: Context) -> str:
    """How many input numbers are assumptions of our own."""
    weak, all_ = c.illustrative
    return say("answer.weak", weak=weak, all=all_) if weak else say("answer.none_weak", all=all_)


def comparison_words(c: Context) -> str:
    """The run's finished units beside Epoch AI's estimates."""
    table = c.table("shipments")
    if table is None:
        return ""
    inside = int(((table["ours"] >= table["low"]) & (table["ours"] <= table["high"])).sum())
    pairs = [
        say(
            "answer.pair_half" if 2 * r.ours < r.theirs else "answer.pair",
            ours=plain(r.ours / 1e6, 2),
            theirs=plain(r.theirs / 1e6, 2),
            year=str(r.year),
        )
        for r in records(table[table["group"] == "nvidia"])
    ]
    told = say("answer.pairs", pairs=join("; ", pairs)) if pairs else ""
    return join(" ", [t for t in (told, say("answer.inside", inside=inside, all=len(table))) if t])
