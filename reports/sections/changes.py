"""Sections: what changed since an earlier run, and several scenarios side by side."""

from __future__ import annotations

from typing import Any

from reports.blocks import Section, Table
from reports.context import Context
from reports.wording import count, listing, money, percent, plain, stage_title

__all__ = ["change_words", "changes_section", "compare_section"]

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


def changes_section(c: Context, previous: Context) -> Section:
    """Old value, new value and change of the headline quantities, and the inputs that differ."""
    s = Section("changes", "What changed since the last edition")
    s.paragraphs.append(change_words(c, previous))
    old = {name: (value, text) for name, value, text in headline_rows(previous)}
    rows: list[list[Any]] = []
    for name, value, text in headline_rows(c):
        before, words = old.get(name, (None, "-"))
        change = "-" if value is None or not before else f"{100 * (value / before - 1):+.1f} %"
        rows.append([name, words, text, change])
    s.tables.append(Table.of("Headline, before and now", ["What", "Before", "Now", "#Change"], rows, short="changes"))
    changed = _changed_inputs(c, previous)
    s.tables.append(
        Table.of(
            f"Inputs that differ ({len(changed)})",
            ["Input", "#Before, mean", "#Now, mean", "Unit"],
            changed[:200],
            note="Means over the reported rows. The effect of each change by itself is not split in this edition.",
            folded=len(changed) > 15,
            short="changed_inputs",
        )
    )
    return s


def change_words(c: Context, previous: Context | None) -> str:
    """The change in one sentence."""
    if previous is None:
        return "No earlier edition was given to compare with (--previous RUN)."
    year = c.this_year
    quantity = "energised" if c.has_fleet else "finished"
    if year not in previous.years:
        return f"The earlier run {previous.run.id} does not report {year}."
    now, before = c.total(quantity, year), previous.total(quantity, year)
    if now == before:
        return f"Nothing: {quantity} accelerators of {year} are the same as in run {previous.run.id}."
    changed = _changed_inputs(c, previous)
    names = listing([str(r[0]) for r in changed[:3]])
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    cause = f"; inputs that differ: {names}{more}" if changed else "; no input differs, so the method did"
    share = f" ({100 * (now / before - 1):+.1f} %)" if before else ""
    volumes = f"{count(before)} in run {previous.run.id}, {count(now)} now{share}"
    return f"{quantity.capitalize()} accelerators of {year}: {volumes}{cause}."


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
    s = Section("compare", "Scenarios side by side")
    for c in contexts:
        edits = "; ".join(f"{k}: {', '.join(v)}" for k, v in (c.run.manifest.get("edits") or {}).items())
        s.paragraphs.append(f"{c.run.manifest['title']} (run {c.run.id}): {edits or 'as in its file, no edits'}.")
    s.paragraphs.append("Cases are conditional on their inputs; their spread is no confidence interval.")
    tables = [{name: text for name, _, text in headline_rows(c)} for c in contexts]
    names = list(dict.fromkeys(n for t in tables for n in t))
    rows = [[n, *[t.get(n, "-") for t in tables]] for n in names]
    s.tables.append(Table.of("Headline by scenario", ["What", *[c.run.id for c in contexts]], rows, short="compare"))
    return s
