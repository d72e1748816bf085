"""Sections: what changed since an earlier run, and several scenarios side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from reports.blocks import Section, Table
from reports.catalogue import say
from reports.context import Context
from reports.figures.cases import scenario_panels
from reports.figures.style import FigureCard
from reports.sections.limits import scope
from reports.spans import join
from reports.wording import count, in_sentence, listing, money, percent, plain, stage_title
from scenarios.titles import cost_title

if TYPE_CHECKING:
    from scenarios.change_causes import Cause, Causes

__all__ = ["causes_of", "change_words", "changes_section", "compare_section"]

Row = tuple[str, str, str, str]


def headline_rows(c: Context) -> list[tuple[str, float | None, str]]:
    """Headline quantities of a run: name, value, text."""
    rows: list[tuple[str, float | None, str]] = []
    for year in c.years:
        for quantity in ("finished", "energised") if c.has_fleet else ("finished",):
            value = c.total(quantity, year)
            rows.append((f"{quantity.capitalize()} {year}", value, count(value)))
    for year in c.years:
        shares = c.stage_shares(year)
        words = f"{stage_title(str(shares.index[0]))} ({percent(shares.iloc[0])})" if len(shares) else "none"
        rows.append((f"Costliest stage {year}", None, words))
    sku = c.reference_sku
    if sku is not None and (row := c.value_at("usd_per_gpu_hour", sku, c.now)) is not None:
        rows.append((f"Hour of {c.short(sku)} with scarcity, {c.now}", float(row["value"]), money(row["value"])))
    return rows


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
    old = {name: (value, text) for name, value, text in headline_rows(previous)}
    rows: list[list[Any]] = []
    for name, value, text in headline_rows(c):
        before, words = old.get(name, (None, "-"))
        change = "-" if value is None or not before else f"{100 * (value / before - 1):+.1f} %"
        rows.append([name, words, text, change])
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
        [_name(c, cause), say(f"changes.kind_{_key(cause.kind)}"), *[_signed(cause.parts[o]) for o in outputs]]
        for cause in causes.causes
    ]
    total = {o: causes.now[o] - causes.before[o] for o in outputs}
    rows.append([say("changes.total"), "", *[_signed(total[o]) for o in outputs]])
    heads = [f"#{_output_title(o)}" for o in outputs]
    return Table.named("change_causes", rows, outputs=heads)


def _output_title(output: str) -> str:
    quantity, _, year = output.partition(":*@")
    return f"{quantity.capitalize()} {year}"


def _signed(value: float) -> tuple[str, float]:
    sign = "+" if value > 0 else ""
    return (f"{sign}{plain(value)}", value)


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
        return say("changes.nothing", quantity=quantity, year=year, run=previous.run.id)
    share = f" ({100 * (now / before - 1):+.1f} %)" if before else ""
    fields = {"quantity": quantity.capitalize(), "year": year, "before": count(before), "run": previous.run.id}
    text = say("changes.volumes", **fields, now=count(now), share=share)
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
        fields["change"] = _signed(cause.parts[output])[0]
        if shared:
            parts.append(say("changes.part_shared", **fields, share=percent(cause.parts[output] / total)))
        else:  # causes that work against one another have no share of the change
            parts.append(say("changes.part", **fields))
    rest = len(causes.causes) - len(parts)
    more = say("changes.more", more=rest) if rest else ""
    return say("changes.parts", parts=join("; ", parts), more=more)


def _means(c: Context) -> dict[str, float]:
    means = c.run.inputs.groupby("path")["value"].mean()
    return {str(path): float(value) for path, value in means.items()}


def _units(c: Context) -> dict[str, str]:
    return dict(zip(c.run.inputs["path"], c.run.inputs["unit"], strict=True))


def _changed_inputs(c: Context, previous: Context) -> list[list[Any]]:
    new, old = _means(c), _means(previous)
    units = {**_units(previous), **_units(c)}
    rows: list[list[Any]] = []
    for path in sorted({*new, *old}):
        a, b = old.get(path), new.get(path)
        if a != b:
            unit = units[path]
            rows.append([str(path), *[("none", None) if v is None else (plain(v, 4), v) for v in (a, b)], unit])
    return rows


def compare_section(contexts: list[Context]) -> Section:
    """Several runs side by side, with the rule of each case before its results."""
    s = Section("compare")
    for c in contexts:
        edits = "; ".join(f"{k}: {', '.join(v)}" for k, v in (c.run.manifest.get("edits") or {}).items())
        rule = edits or say("changes.no_edits")
        s.paragraphs.append(say("changes.case", title=str(c.run.manifest["title"]), run=c.run.id, edits=rule))
    s.paragraphs.append(say("changes.conditional"))
    if (panels := _panels(contexts)) is not None:
        s.figures.append(panels)
    tables = [{name: text for name, _, text in headline_rows(c)} for c in contexts]
    names = list(dict.fromkeys(n for t in tables for n in t))
    rows = [[n, *[t.get(n, "-") for t in tables]] for n in names]
    s.tables.append(Table.named("compare", rows, runs=[c.run.id for c in contexts]))
    return s


def _panels(contexts: list[Context]) -> FigureCard | None:
    """Accelerators of each case by period beside the first one; None where the cases do not share their periods."""
    base = contexts[0]
    quantity = "energised" if base.has_fleet else "finished"
    if any(c.periods != base.periods or c.has_fleet != base.has_fleet for c in contexts):
        return None
    rows = [(c.run.id, str(c.run.manifest["title"]), p, c.total(quantity, p)) for c in contexts for p in base.periods]
    table = pd.DataFrame(rows, columns=["scenario", "title", "period", "value"])
    return scenario_panels(
        table, base.periods, base.run.id, f"accelerators {quantity} a period", f"world; {scope(base)}"
    )
