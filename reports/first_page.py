"""The seven statements of the first page, generated from a run by rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.answer_text import (
    AnswerLine,
    comparison_words,
    cost_words,
    price_words,
    volume_words,
    what_binds,
)
from reports.catalogue import say
from reports.context import Context
from reports.sections.changes import change_words
from reports.sections.evidence import overturning
from reports.sections.limits import where
from reports.spans import Words, join, pieces
from reports.tables import records
from reports.wording import brief, in_sentence, listing, percent
from scenarios.break_evens import FARTHEST

if TYPE_CHECKING:
    from scenarios.change_causes import Causes

__all__ = ["first_page", "flip_warning"]


def first_page(c: Context, previous: Context | None = None, causes: Causes | None = None) -> list[AnswerLine]:
    """Answer, limits, worth of scarcity, what could overturn it, change, track record, particulars."""
    texts = {
        "answer": [volume_words(c), _scope(c)],
        "stops": [what_binds(c), _next(c), say("page.costliest") if len(c.binding) else ""],
        "worth": [price_words(c), say("page.values")],
        "costs": [cost_words(c)] if c.reference_sku is not None else [],
        "overturn": _overturn(c),
        "changes": [change_words(c, previous, causes)],
        "record": [comparison_words(c), _record(c)],
        "particulars": [_particulars(c)],
    }
    held = {name: [t for t in parts if t] for name, parts in texts.items()}
    return [AnswerLine(say(f"first_page.{n}"), _capital(join(" ", parts))) for n, parts in held.items() if parts]


def _capital(text: str) -> str:
    return Words(pieces(text)).capitalized()


def _scope(c: Context) -> str:
    designers = sorted({c.designers.get(s, "") for s in c.skus_by_size} - {""})
    if not designers:
        return ""
    return say("page.scope", where=where(c), products=len(c.skus_by_size), designers=", ".join(designers))


def _next(c: Context) -> str:
    main = c.main_limit
    if main is None or not main["next_binding"]["resource"] or main["next_binding"]["at_capacity_change"] is None:
        return ""
    after = main["next_binding"]
    names = {"limit": in_sentence(main["title"]), "after": in_sentence(c.title(after["resource"]))}
    return say("page.next", period=main["period"], **names, rise=percent(after["at_capacity_change"]))


def _overturn(c: Context) -> list[str]:
    table = c.table("headline")
    found = overturning(c)
    if table is None or not found:
        weak, all_ = c.illustrative
        return [say("page.no_study", weak=weak, all=all_) if weak else say("page.none_weak", all=all_)]
    year = str(table["year"].iloc[0])
    flips = int(table["flips"].sum())
    if flips:
        head = say("page.flips_one" if flips == 1 else "page.flips_many", flips=flips, year=year)
    else:
        head = join(" ", [say("page.no_flip", year=year), say("page.three")])
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


def _record(c: Context) -> str:
    """The backtest in one sentence."""
    summary = c.table("backtest_summary")
    if summary is None:
        return say("page.no_backtest")
    yearly = summary[(summary["level"] == "designer") & (summary["span"] == "year")].sort_values("origin")
    parts = [say("page.hits", hits=int(r.hits), scored=int(r.scored), origin=str(r.origin)) for r in records(yearly)]
    return say("page.backtest", parts=listing(parts))


def _particulars(c: Context) -> str:
    weak, all_ = c.illustrative
    return say(
        "page.particulars",
        known=c.known_words,
        run=c.run.id,
        scenario=c.run.scenario,
        regime=c.answer["regime"],
        objective=c.answer["objective"]["kind"],
        first=c.periods[0],
        last=c.periods[-1],
        weak=weak,
        all=all_,
    )
