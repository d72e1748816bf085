"""The seven statements of the first page, generated from a run by rules: answer, limits, worth and cost, what could
overturn it, how sure, change, particulars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.answer_limits import buyer_words, contract_words, meanings, threshold_words
from reports.answer_money import cost_words, later_words, market_words, price_words, value_words
from reports.answer_sure import overturn_words, sure_words
from reports.answer_text import AnswerLine, growth_words, unbuilt_words, volume_words, what_binds
from reports.catalogue import say
from reports.context import Context
from reports.ranges import study_span
from reports.sections.changes import change_words
from reports.sections.inputs import aim_words
from reports.sections.limits import where
from reports.spans import Words, join, pieces
from reports.wording import listing

if TYPE_CHECKING:
    from scenarios.change_causes import Causes

__all__ = ["first_page", "flip_warning"]


def first_page(c: Context, previous: Context | None = None, causes: Causes | None = None) -> list[AnswerLine]:
    """Answer, limits, worth of scarcity, what could overturn it, how sure, change, particulars."""
    texts = {
        "answer": [volume_words(c), _reading(c), *growth_words(c), _scope(c)],
        "stops": [
            say("page.scarcest") if len(c.binding) else "",
            what_binds(c, history=False),
            meanings(c),
            contract_words(c),
            threshold_words(c),
            buyer_words(c),
        ],
        "worth": [price_words(c), value_words(c)],
        "costs": [cost_words(c), market_words(c), *later_words(c)] if c.reference_sku is not None else [],
        "overturn": overturn_words(c),
        "sure": sure_words(c),
        "particulars": [change_words(c, previous, causes), _capital(_particulars(c))],
    }
    held = {name: [t for t in parts if t] for name, parts in texts.items()}
    return [AnswerLine(say(f"first_page.{n}"), _capital(join(" ", parts))) for n, parts in held.items() if parts]


def _capital(text: str) -> str:
    return Words(pieces(text)).capitalized()


def _reading(c: Context) -> str:
    """How the volumes are to be read: no forecast, how far the plan sees, and what the ranges are."""
    made = c.total("finished", c.this_year)
    brackets = say("page.brackets") if study_span(c, "finished", made) is not None else ""
    return say(f"page.reading_{c.answer['regime']}", brackets=brackets)


def _scope(c: Context) -> str:
    """Where, how many products of whom, and of which of these designers nothing is made soon."""
    designers = sorted({c.designers.get(s, "") for s in c.skus_by_size} - {""})
    if not designers:
        return ""
    fields = {"where": where(c), "products": len(c.skus_by_size), "designers": listing(designers)}
    return say("page.scope", **fields, unbuilt=unbuilt_words(c))


def flip_warning(c: Context) -> str:
    """The sentence that the first page carries where an input flips the binding stage, empty otherwise."""
    table = c.table("headline")
    if table is None or not table["flips"].any():
        return ""
    names = [str(t) for t in table.loc[table["flips"], "title"].head(4)]
    fields = {"year": str(table["year"].iloc[0]), "names": "; ".join(names)}
    return say("page.warning_many", **fields) if len(names) > 1 else say("page.warning_one", **fields)


def _particulars(c: Context) -> str:
    return say(
        "page.particulars",
        known=c.known_words,
        run=c.run.id,
        scenario=c.run.scenario,
        regime=c.answer["regime"],
        aim=aim_words(c),
        first=c.periods[0],
        last=c.periods[-1],
    )
