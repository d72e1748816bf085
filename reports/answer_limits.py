"""What stops more, in sentences beside the scarcest stage: words explained, limits that are not full, thresholds of the
main limit told apart, and what a buyer lacks."""

from __future__ import annotations

import pandas as pd

from reports.answer_text import NAMED
from reports.catalogue import say, spoken
from reports.context import Context
from reports.spans import Number, join
from reports.tables import records
from reports.wording import brief_limit, listing, percent, plain, stage_title

__all__ = ["buyer_words", "contract_words", "meanings", "threshold_words"]

#: Share of a period's value above which power is the one thing short, and below which it is not short.
_ALONE = 0.9
#: A limit used less than this is not full.
_FULL = 0.995


def meanings(c: Context) -> str:
    """The stages that lead this year and at the end, in words."""
    if not len(c.binding):
        return ""
    named = dict.fromkeys([*(s for s in c.leaders[-1:] if s), *c.stage_shares(c.this_year).index[:1]])
    known = [s for s in named if f"page.about_{s}" in spoken().words]
    words = join("; ", [say("page.about", stage=stage_title(s), words=say(f"page.about_{s}")) for s in known])
    return join("", [words, "."]).capitalized() if known else ""


def _use(c: Context, resource: str) -> pd.Series[float]:
    """Used share of a capacity by period."""
    use = c.quantity("utilisation")
    held: pd.Series[float] = use[use["subject"] == resource].set_index("period")["value"]
    return held


def contract_words(c: Context) -> str:
    """Stages of the year that bind through shares held by contract while the capacity itself has room.

    Such a share is called by its capacity (`scenarios.titles`): that is how the two are brought together.
    """
    binding = c.binding[c.binding["year"] == c.this_year]
    capacities = {c.title(str(r)): str(r) for r in c.quantity("utilisation")["subject"].unique()}
    stages: list[str] = []
    most = 0.0
    for stage, share in c.stage_shares(c.this_year).items():
        here = binding[binding["stage"] == stage]
        held = here[here["kind"] == "contract"]
        if share < NAMED or held["rent"].sum() < here["rent"].sum() / 2:
            continue
        used = 0.0
        for r in records(held):
            line = next((name for title, name in capacities.items() if str(r.title).endswith(title)), "")
            used = max(used, float(_use(c, line).get(r.period, 1.0)))
        if used < _FULL:
            stages.append(stage_title(str(stage)))
            most = max(most, used)
    if not stages:
        return ""
    return say("page.contracts", stages=listing(stages), used=percent(most))


def threshold_words(c: Context) -> str:
    """How much more of the main limit moves what binds: in its period, over the year, and with no such limit at all."""
    main = c.main_limit
    if main is None:
        return ""
    names = {"limit": brief_limit(main["title"]), "period": main["period"]}
    parts: list[str] = []
    after, rise = main["next_binding"]["resource"], main["next_binding"]["at_capacity_change"]
    if after and rise is not None:
        parts.append(say("page.next", **names, after=brief_limit(c.title(after)), rise=percent(rise)))
        if (factor := _over_the_year(c, main["title"])) is not None:
            parts.append(say("page.next_year", year=c.this_year, rise=percent(factor - 1)))
    sums = [c.total(q, c.now) for q in ("without_power_rows_mw", "built_mw")]
    if dict(zip(c.periods, c.leaders, strict=True)).get(c.now) == "power" and sums[0] > sums[1] > 0:
        free, built = (Number(f"{plain(v / 1e3, 2)}\N{NO-BREAK SPACE}GW", v / 1e3) for v in sums)
        parts.append(say("page.why_power", period=c.now, free=free, built=built))
    return join("", [join("; ", parts), "."]).capitalized() if parts else ""


def _over_the_year(c: Context, title: str) -> float | None:
    """Multiple of a limit, in all years alike, at which another stage leads the year; None where none was found."""
    table = c.table("headline")
    if table is None or str(table["year"].iloc[0]) != c.this_year:
        return None
    row = table[(table["title"] == title) & (table["break_factor"] > 1)]
    return None if row.empty else float(row["break_factor"].iloc[0])


def buyer_words(c: Context) -> str:
    """What is short now: powered places, chips, or both."""
    shares = c.stage_shares(c.now)
    if not len(shares) or not c.has_fleet:
        return ""
    power = float(shares.get("power", 0.0))
    case = "power" if power > _ALONE else "chips" if power < 1 - _ALONE else "both"
    return say(f"page.buyer_{case}", period=c.now)
