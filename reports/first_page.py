"""The seven statements of the first page, generated from a run by rules: answer, limits, worth and cost, what could
overturn it, how sure, change, particulars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.answer_money import SEEN, build_words, cost_words, later_words, price_words
from reports.answer_text import AnswerLine, comparison_words, growth_words, volume_words, weak_words, what_binds
from reports.catalogue import say, spoken
from reports.context import Context
from reports.ranges import study_span
from reports.sections.changes import change_words
from reports.sections.evidence import overturning
from reports.sections.inputs import aim_words, regime_words
from reports.sections.limits import where
from reports.spans import Number, Words, join, pieces
from reports.tables import records
from reports.wording import brief, in_sentence, listing, percent, plain, stage_title
from scenarios.break_evens import FARTHEST

if TYPE_CHECKING:
    from scenarios.change_causes import Causes

__all__ = ["first_page", "flip_warning"]

#: Share of a period's value above which power is the one thing short, and below which it is not short.
_ALONE = 0.9
#: A limit used less than this is not full.
_FULL = 0.995


def first_page(c: Context, previous: Context | None = None, causes: Causes | None = None) -> list[AnswerLine]:
    """Answer, limits, worth of scarcity, what could overturn it, how sure, change, particulars."""
    texts = {
        "answer": [volume_words(c), *_brackets(c), *growth_words(c), _scope(c)],
        "stops": [what_binds(c), *_meanings(c), _idle(c), _why_power(c), _next(c), _buyer(c)],
        "worth": [price_words(c), build_words(c), say("page.values") if c.has_money else ""],
        "costs": [cost_words(c), *later_words(c)] if c.reference_sku is not None else [],
        "overturn": _overturn(c),
        "sure": _sure(c),
        "particulars": [change_words(c, previous, causes), _capital(_particulars(c))],
    }
    held = {name: [t for t in parts if t] for name, parts in texts.items()}
    return [AnswerLine(say(f"first_page.{n}"), _capital(join(" ", parts))) for n, parts in held.items() if parts]


def _capital(text: str) -> str:
    return Words(pieces(text)).capitalized()


def _brackets(c: Context) -> list[str]:
    """What the ranges of the volumes are, where they have any."""
    made = c.total("finished", c.this_year)
    return [say("page.brackets")] if study_span(c, "finished", made) is not None else []


def _scope(c: Context) -> str:
    designers = sorted({c.designers.get(s, "") for s in c.skus_by_size} - {""})
    if not designers:
        return ""
    return say("page.scope", where=where(c), products=len(c.skus_by_size), designers=listing(designers))


def _meanings(c: Context) -> list[str]:
    """What scarcest means, and the stages that the line names."""
    if not len(c.binding):
        return []
    named = dict.fromkeys([*(s for s in c.leaders if s), *c.stage_shares(c.this_year).index])
    known = [s for s in named if f"page.about_{s}" in spoken().words]
    words = join("; ", [say("page.about", stage=stage_title(s), words=say(f"page.about_{s}")) for s in known])
    about = Words([words, "."]).capitalized() if known else ""
    return [say("page.scarcest"), about]


def _idle(c: Context) -> str:
    """Where the stage that leads the year has no value in some of its quarters because its limit is not full then."""
    shares = c.stage_shares(c.this_year)
    if not len(shares):
        return ""
    stage = str(shares.index[0])
    periods = [p for p in c.periods if p.startswith(c.this_year) and c.stage_shares(p).get(stage, 0.0) < SEEN]
    limits = c.limits_of(c.this_year)
    lead = limits[limits["stage"] == stage].iloc[0]
    use = c.quantity("utilisation")
    held = use[use["subject"] == lead["subject"]].set_index("period")["value"]
    if not periods or any(p not in held.index or held[p] >= _FULL for p in periods):
        return ""
    fields = {"limit": in_sentence(str(lead["title"])), "periods": listing(periods)}
    return say("page.idle", **fields, used=listing([percent(float(held[p])) for p in periods]))


def _why_power(c: Context) -> str:
    """How much more could run now without the limits of power, where power is the scarcest."""
    if dict(zip(c.periods, c.leaders, strict=True)).get(c.now) != "power":
        return ""
    sums = [c.total(q, c.now) for q in ("without_power_rows_mw", "built_mw")]
    if not sums[1] or sums[0] <= sums[1]:
        return ""
    free, built = (Number(f"{plain(v / 1e3, 2)}\N{NO-BREAK SPACE}GW", v / 1e3) for v in sums)
    return say("page.why_power", period=c.now, free=free, built=built)


def _next(c: Context) -> str:
    main = c.main_limit
    if main is None or not main["next_binding"]["resource"] or main["next_binding"]["at_capacity_change"] is None:
        return ""
    after = main["next_binding"]
    names = {"limit": in_sentence(main["title"]), "after": in_sentence(c.title(after["resource"]))}
    return say("page.next", period=main["period"], **names, rise=percent(after["at_capacity_change"]))


def _buyer(c: Context) -> str:
    """What is short now: powered places, chips, or both."""
    shares = c.stage_shares(c.now)
    if not len(shares) or not c.has_fleet:
        return ""
    power = float(shares.get("power", 0.0))
    case = "power" if power > _ALONE else "chips" if power < 1 - _ALONE else "both"
    return say(f"page.buyer_{case}", period=c.now)


def _overturn(c: Context) -> list[str]:
    table = c.table("headline")
    found = overturning(c)
    if table is None or not found:
        return [say("page.no_study") if c.illustrative[0] else say("page.not_varied")]
    year = str(table["year"].iloc[0])
    flips = int(table["flips"].sum())
    if flips:
        head = say("page.flips_one" if flips == 1 else "page.flips_many", flips=flips, year=year)
    else:
        head = join(" ", [say("page.no_flip", year=year), say("page.three", year=year)])
    listed = [say("page.item", k=k, text=text) for k, text in enumerate(found, 1)]
    return [head, *listed, say("page.searched", times=brief(FARTHEST))]


def flip_warning(c: Context) -> str:
    """The sentence that the first page carries where an input flips the binding stage, empty otherwise."""
    table = c.table("headline")
    if table is None or not table["flips"].any():
        return ""
    names = [str(t) for t in table.loc[table["flips"], "title"].head(4)]
    fields = {"year": str(table["year"].iloc[0]), "names": "; ".join(names)}
    return say("page.warning_many", **fields) if len(names) > 1 else say("page.warning_one", **fields)


def _sure(c: Context) -> list[str]:
    """What the ranges are, what the record says of them, and how much is assumed."""
    ranges = say("page.ranges") if c.table("headline") is not None else ""
    return [ranges, _record(c), comparison_words(c), _capital(weak_words(c))]


def _record(c: Context) -> str:
    """The backtest in one sentence, and what it says of the ranges."""
    summary = c.table("backtest_summary")
    if summary is None:
        return say("page.no_backtest")
    yearly = summary[(summary["level"] == "designer") & (summary["span"] == "year")].sort_values("origin")
    parts = [say("page.hits", hits=int(r.hits), scored=int(r.scored), origin=str(r.origin)) for r in records(yearly)]
    short = yearly["hits"].sum() < _ALONE * yearly["scored"].sum()
    return say("page.backtest", parts=listing(parts), so=say("page.larger") if short else "")


def _particulars(c: Context) -> str:
    return say(
        "page.particulars",
        known=c.known_words,
        run=c.run.id,
        scenario=c.run.scenario,
        regime=c.answer["regime"],
        rule=regime_words(c),
        objective=c.answer["objective"]["kind"],
        aim=aim_words(c),
        first=c.periods[0],
        last=c.periods[-1],
    )
