"""What could overturn the answer and how sure it is: break-evens, joint ends, track record, assumptions."""

from __future__ import annotations

import math

from reports.answer_text import comparison_words, weak_words
from reports.catalogue import say
from reports.context import Context
from reports.sections.evidence import overturning
from reports.spans import Words, pieces
from reports.tables import records
from reports.wording import brief_limit, count, listing, percent, plain, stage_title

__all__ = ["overturn_words", "sure_words"]

#: Share of the totals that a 90 % band should hold.
_BAND = 0.9
#: A break-even that lies no farther beyond a range is named.
_NEAR = 0.1
#: Two plans whose counts differ by less are one.
_SAME = 0.01


def overturn_words(c: Context) -> list[str]:
    """Whether an input alone, or all limits of the stage together, change the scarcest stage; the three largest."""
    table = c.table("headline")
    found = overturning(c)
    if table is None or not found:
        return [say("page.no_study") if c.illustrative[0] else say("page.not_varied")]
    year, flips = str(table["year"].iloc[0]), int(table["flips"].sum())
    head = say("page.flips_one" if flips == 1 else "page.flips_many", flips=flips, year=year)
    if not flips:
        head = say("page.no_flip", year=year, near=_nearest(c))
    items = [say("page.item", k=k, text=text) for k, text in enumerate(found, 1)]
    return [_other_plan(c, year), head, _joint(c), "" if flips else say("page.three"), *items]


def _other_plan(c: Context, year: str) -> str:
    """That the study starts from another plan than the run: foresight beside a rolling plan."""
    table = c.table("headline")
    if table is None or "energised_base" not in table:
        return ""
    base, made = float(table["energised_base"].iloc[0]), c.total("energised" if c.has_fleet else "finished", year)
    same = abs(base - made) <= _SAME * abs(made)
    return "" if same else say("page.other_plan", energised=count(base, 2), year=year)


def _nearest(c: Context) -> str:
    """The input whose break-even lies least beyond an end of its range, where one lies close."""
    table = c.table("headline")
    gaps: list[tuple[float, str]] = []
    for r in records(table.dropna(subset=["break_at"])) if table is not None else ():
        ends = sorted((r.low_input, r.high_input))
        end = ends[1] if r.break_at > ends[1] else ends[0]
        if end:
            gaps.append((abs(r.break_at / end - 1), str(r.title)))
    gap, title = min(gaps, default=(math.inf, ""))
    return say("page.near", title=brief_limit(title), gap=percent(gap, 1)) if gap < _NEAR else ""


def _joint(c: Context) -> str:
    """All capacities of the scarcest stage at their high, and at their low, ends together."""
    table = c.table("headline_joint")
    if table is None or table["energised"].isna().any():
        return ""
    low, high = (table[table["end"] == end].iloc[0] for end in ("low", "high"))
    fields = {"limits": int(high["limits"]), "stage": stage_title(str(high["stage_base"]))}
    ends = {"high": count(high["energised"], 2), "low": count(low["energised"], 2)}
    stages = {"then": stage_title(str(high["stage"])), "below": stage_title(str(low["stage"]))}
    return say("page.joint_same" if high["stage"] == low["stage"] else "page.joint", **fields, **ends, **stages)


def sure_words(c: Context) -> list[str]:
    """What the ranges are, what the record says of them, and how much is assumed."""
    ranges = say("page.ranges") if c.table("headline") is not None else ""
    weak = Words(pieces(weak_words(c))).capitalized()
    return [ranges, _record(c), _misses(c), comparison_words(c), weak]


def _record(c: Context) -> str:
    """The backtest in one sentence: hits, score against the naive forecast, and what it says of the ranges."""
    summary = c.table("backtest_summary")
    if summary is None:
        return say("page.no_backtest")
    yearly = summary[(summary["level"] == "designer") & (summary["span"] == "year")].sort_values("origin")
    held = list(records(yearly))
    fields = {
        "origins": listing([str(r.origin)[:4] for r in held]),
        "hits": listing([say("page.hits", hits=int(r.hits), scored=int(r.scored)) for r in held]),
        "scores": listing([plain(r.score / r.score_last, 2) for r in held]),
    }
    short = yearly["hits"].sum() < _BAND * yearly["scored"].sum()
    return say("page.backtest", **fields, so=say("page.larger") if short else "")


def _misses(c: Context) -> str:
    """What half of the missed yearly totals or more are laid to."""
    scores = c.table("backtest")
    if scores is None or "stage" not in scores:
        return ""
    missed = scores[(scores["level"] == "designer") & (scores["span"] == "year") & ~scores["inside"].astype(bool)]
    low = missed[missed["outcome"] > missed["high"]]
    counts = low["stage"].value_counts()
    if not len(counts) or counts.iloc[0] < len(missed) / 2:
        return ""
    fields = {"missed": len(missed), "low": len(low), "laid": int(counts.iloc[0])}
    return say("page.misses", **fields, stage=stage_title(str(counts.index[0])))
