"""Section: what changed since an earlier run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from reports.blocks import Section, Table
from reports.catalogue import say
from reports.context import Context
from reports.spans import Number, join
from reports.wording import count, in_sentence, listing, money, percent, plain, stage_title
from scenarios.titles import cost_title

if TYPE_CHECKING:
    from scenarios.change_causes import Cause, Causes

__all__ = [
    "NOTHING",
    "causes_of",
    "change_cell",
    "change_words",
    "changes_section",
    "headline_rows",
    "input_means",
    "input_units",
]

#: What stands where a headline quantity has no value.
NOTHING: tuple[float | None, str] = (None, "-")


def headline_rows(c: Context) -> dict[str, tuple[float | None, str]]:
    """Headline quantities of a run: value and text by name."""
    rows: dict[str, tuple[float | None, str]] = {}
    for year in c.years:
        for quantity in ("finished", "energised") if c.has_fleet else ("finished",):
            value = c.total(quantity, year)
            rows[say(f"changes.row_{quantity}", year=year)] = (value, count(value))
    for year in c.years if len(c.quantity("energised_h100e")) else ():
        value = c.total("energised_h100e", year)
        rows[say("changes.row_h100e", year=year)] = (value, count(value))
    for year in c.years:
        shares = c.stage_shares(year)
        rows[say("changes.stage", year=year)] = (None, _leader(shares) if len(shares) else say("changes.none"))
    sku = c.reference_sku
    if sku is not None and (row := c.value_at("usd_per_gpu_hour", sku, c.now)) is not None:
        name = say("changes.hour", product=c.short(sku), period=c.now)
        rows[name] = (float(row["value"]), money(row["value"]))
    return rows


def _leader(shares: pd.Series[float]) -> str:
    """The scarcest stage with its share."""
    return say("changes.stage_share", stage=stage_title(str(shares.index[0])), share=percent(shares.iloc[0]))


def _change(now: float | None, before: float | None) -> Number | None:
    """A relative change in percent with its sign; None where either number is missing or the earlier one is zero."""
    if now is None or not before:
        return None
    return Number(f"{100 * (now / before - 1):+.1f} %", now / before - 1)


def change_cell(now: float | None, before: float | None) -> tuple[str, float | None]:
    """A relative change as a cell; "-" where there is none."""
    change = _change(now, before)
    return ("-", None) if change is None else (change, change.value)


def causes_of(c: Context, previous: Context) -> Causes:
    """The change of the yearly volumes that both runs report, split over its causes."""
    from scenarios.change_causes import Causes, why_changed

    years = [y for y in (c.this_year, c.next_year) if y and y in previous.years]
    both = ("energised", "finished") if c.has_fleet and previous.has_fleet else ("finished",)
    outputs = [f"{q}:*@{y}" for y in years for q in both]
    return why_changed(previous.run, c.run, outputs) if outputs else Causes(reason="horizon")


def changes_section(c: Context, previous: Context, causes: Causes | None = None) -> Section:
    """Old value, new value and change of the headline quantities, their causes, and the inputs that differ."""
    s = Section("changes")
    causes = causes or causes_of(c, previous)
    s.paragraphs.append(change_words(c, previous, causes))
    old = headline_rows(previous)
    rows: list[list[Any]] = []
    for name, (value, text) in headline_rows(c).items():
        before, words = old.get(name, NOTHING)
        rows.append([name, words, text, change_cell(value, before)])
    s.tables.append(Table.named("changes", rows))
    if causes.causes:
        s.tables.append(_cause_table(c, causes))
    changed = _changed_inputs(c, previous)
    s.tables.append(Table.named("changed_inputs", changed[:200], folded=len(changed) > 15, inputs=len(changed)))
    return s


def _cause_table(c: Context, causes: Causes) -> Table:
    """Each cause with its kind and its part of the change of every output."""
    outputs = list(causes.now)
    rows: list[list[Any]] = [
        [_name(c, cause), say(f"changes.kind_{_key(cause.kind)}"), *[_signed_cell(cause.parts[o]) for o in outputs]]
        for cause in causes.causes
    ]
    total = {o: causes.now[o] - causes.before[o] for o in outputs}
    rows.append([say("changes.total"), "", *[_signed_cell(total[o]) for o in outputs]])
    heads = [f"#{_output_title(o)}" for o in outputs]
    return Table.named("change_causes", rows, outputs=heads)


def _output_title(output: str) -> str:
    quantity, _, year = output.partition(":*@")
    return say(f"changes.row_{quantity}", year=year)


def _signed(value: float) -> Number:
    return Number(f"{'+' if value > 0 else ''}{plain(value)}", value)


def _signed_cell(value: float) -> tuple[str, float]:
    return (_signed(value), value)


def _key(kind: str) -> str:
    return kind.replace(" ", "_")


def _name(c: Context, cause: Cause) -> str:
    """A cause as a reader knows it: the title of the limit, product or path that it is about."""
    if cause.kind in ("method", "scope"):
        return say(f"changes.name_{cause.kind}")
    section, _, name = cause.name.partition(".")
    if not name or "(" in section:
        return cause.name.replace("_", " ")
    title = cost_title(name) if section == "costs" else c.title(name)
    return title or cause.name if section == "costs" else title if title != name.replace("_", " ") else cause.name


def change_words(c: Context, previous: Context | None, causes: Causes | None = None) -> str:
    """The change in words: old, new, and what share each of the largest causes has of it."""
    if previous is None:
        return say("changes.first_edition")
    year = c.this_year
    quantity = "energised" if c.has_fleet else "finished"
    if year not in previous.years:
        return say("changes.no_year", run=previous.run.id, year=year)
    now, before = c.total(quantity, year), previous.total(quantity, year)
    if now == before:
        return say(f"changes.nothing_{quantity}", year=year, run=previous.run.id)
    change = _change(now, before)
    share = say("changes.by", change=change) if change is not None else ""
    fields = {"year": year, "before": count(before), "run": previous.run.id, "now": count(now), "share": share}
    text = say(f"changes.volumes_{quantity}", **fields)
    return join(" ", [text, _why(c, previous, causes or causes_of(c, previous), f"{quantity}:*@{year}")])


def _why(c: Context, previous: Context, causes: Causes, output: str) -> str:
    """The largest causes with their shares, or which inputs differ and why the change was not split."""
    if not causes.causes or output not in causes.now:
        changed = _changed_inputs(c, previous)
        names = listing([str(r[0]) for r in changed[:3]])
        reason = say(f"changes.not_split_{causes.reason or 'unsolved'}")
        return say("changes.inputs_differ", reason=reason, all=len(changed), names=names or say("changes.none"))
    total = causes.now[output] - causes.before[output]
    shared = all(cause.parts[output] / total >= 0 for cause in causes.causes)
    parts = []
    for cause in sorted(causes.causes, key=lambda x: -abs(x.parts[output]))[:3]:
        fields = {"name": in_sentence(_name(c, cause)), "kind": say(f"changes.kind_{_key(cause.kind)}")}
        fields["change"] = _signed(cause.parts[output])
        if shared:
            parts.append(say("changes.part_shared", **fields, share=percent(cause.parts[output] / total)))
        else:  # causes that work against one another have no share of the change
            parts.append(say("changes.part", **fields))
    rest = len(causes.causes) - len(parts)
    more = say("changes.more", more=rest) if rest else ""
    return say("changes.parts", parts=join("; ", parts), more=more)


def input_means(c: Context) -> dict[str, float]:
    """Mean of each input over its rows, by path."""
    means = c.run.inputs.groupby("path")["value"].mean()
    return {str(path): float(value) for path, value in means.items()}


def input_units(c: Context) -> dict[str, str]:
    """Unit of each input, by path."""
    return dict(zip(c.run.inputs["path"], c.run.inputs["unit"], strict=True))


def _changed_inputs(c: Context, previous: Context) -> list[list[Any]]:
    new, old = input_means(c), input_means(previous)
    units = {**input_units(previous), **input_units(c)}
    rows: list[list[Any]] = []
    for path in sorted({*new, *old}):
        a, b = old.get(path), new.get(path)
        if a != b:
            unit = units[path]
            rows.append(
                [str(path), *[(say("changes.none"), None) if v is None else (plain(v, 4), v) for v in (a, b)], unit]
            )
    return rows
