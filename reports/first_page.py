"""The seven statements of the first page, generated from a run by rules."""

from __future__ import annotations

from reports.answer_text import (
    AnswerLine,
    comparison_words,
    cost_words,
    price_words,
    volume_words,
    what_binds,
)
from reports.context import Context
from reports.sections.changes import change_words
from reports.sections.evidence import overturning
from reports.tables import records
from reports.wording import in_sentence, listing, percent

__all__ = ["first_page", "flip_warning"]


def first_page(c: Context, previous: Context | None = None) -> list[AnswerLine]:
    """Answer, limits, worth of scarcity, what could overturn it, change, track record, particulars."""
    lines = [
        AnswerLine("The answer.", f"{_capital(volume_words(c))}{_scope(c)}"),
        AnswerLine("What stops more.", f"{_capital(what_binds(c))}{_next(c)}"),
        AnswerLine(
            "What scarcity is worth.",
            f"{_capital(price_words(c))} These are values to the marginal user at fixed product values, not market "
            "prices.",
        ),
    ]
    if c.reference_sku is not None:
        lines.append(AnswerLine("What it costs.", _capital(cost_words(c))))
    lines += [
        AnswerLine("What could overturn this.", _overturn(c)),
        AnswerLine("Since the last edition.", change_words(c, previous)),
        AnswerLine("Track record.", f"{comparison_words(c)} {_record(c)}".strip()),
        AnswerLine("Particulars.", _particulars(c)),
    ]
    return lines


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _scope(c: Context) -> str:
    designers = sorted({c.designers.get(s, "") for s in c.skus_by_size} - {""})
    if not designers:
        return ""
    return (
        f" Scope: world, {len(c.skus_by_size)} products of {', '.join(designers)}; a conditional result, no forecast."
    )


def _next(c: Context) -> str:
    main = c.main_limit
    if main is None or not main["next_binding"]["resource"] or main["next_binding"]["at_capacity_change"] is None:
        return ""
    after = main["next_binding"]
    rise, follower = percent(after["at_capacity_change"]), in_sentence(c.title(after["resource"]))
    return f" In {main['period']}, {in_sentence(main['title'])} would give way to the {follower} at {rise} more of it."


def _overturn(c: Context) -> str:
    table = c.table("headline")
    found = overturning(c)
    if table is None or not found:
        weak, all_ = c.illustrative
        if weak == 0:
            return f"None of the {all_} inputs is illustrative, and no input has been varied."
        return f"{weak} of {all_} inputs are illustrative; this run holds no study of them (make it with --report)."
    year = str(table["year"].iloc[0])
    flips = int(table["flips"].sum())
    head = (
        f"{flips} weak input{'s' if flips > 1 else ''} alone can change what binds in {year}."
        if flips
        else f"No single weak input changes what binds in {year}, but three move the number most."
    )
    return f"{head} {_capital('; '.join(found))}."


def flip_warning(c: Context) -> str:
    """The sentence that the first page carries where an input flips the binding stage, empty otherwise."""
    table = c.table("headline")
    if table is None or not table["flips"].any():
        return ""
    names = [str(t) for t in table.loc[table["flips"], "title"].head(4)]
    return (
        f"The binding stage of {table['year'].iloc[0]} is not settled by the evidence: within its stated range, "
        f"{'each of these inputs' if len(names) > 1 else 'this input'} alone changes it: {'; '.join(names)}."
    )


def _record(c: Context) -> str:
    """The backtest in one sentence."""
    summary = c.table("backtest_summary")
    if summary is None:
        return "No backtest in this report."
    yearly = summary[(summary["level"] == "designer") & (summary["span"] == "year")].sort_values("origin")
    parts = [f"{r.hits:.0f} of {r.scored} yearly totals inside the 90 % band from {r.origin}" for r in records(yearly)]
    return f"Backtest: {listing(parts)}."


def _particulars(c: Context) -> str:
    weak, all_ = c.illustrative
    return (
        f"{_capital(c.known_words)}; run {c.run.id}; scenario {c.run.scenario}, {c.answer['regime']}, objective "
        f"{c.answer['objective']['kind']}, "
        f"{c.periods[0]} to {c.periods[-1]}; {weak} of {all_} inputs illustrative."
    )
