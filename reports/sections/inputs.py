"""Sections: inputs with their sources, method and limits, how to repeat the run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import pandas as pd

from reports.blocks import Cell, Link, Section, Table
from reports.catalogue import say
from reports.context import Context
from reports.spans import Number, Words, join
from reports.traces import FORMULAS
from reports.wording import brief, plain

__all__ = [
    "aim_words",
    "edit_words",
    "inputs_section",
    "method_section",
    "regime_words",
    "repeat_section",
    "rule_section",
]

STALE_DAYS = 540
_SOURCE_WIDTH = 90


def inputs_section(c: Context) -> Section:
    """All inputs, one row a number, and all facts behind them."""
    s = Section("inputs")
    weak, all_ = c.illustrative
    s.paragraphs.append(say("inputs.how_many", all=all_, weak=weak, facts=len(c.facts), months=STALE_DAYS // 30))
    s.tables += [_inputs(c), _facts(c)]
    return s


def _inputs(c: Context) -> Table:
    held = c.run.inputs
    years = [y for y in (c.this_year, c.next_year) if y is not None] if len(c.periods) > 1 else []
    rows = [_input_row(c, str(path), group, years) for path, group in held.groupby("path", sort=True)]
    heads = [f"#{say('inputs.mean', year=y)}" for y in years]
    return Table.named("inputs", rows, folded=True, first=c.periods[0], years=heads, last=c.periods[-1])


def _input_row(c: Context, path: str, group: pd.DataFrame, years: Sequence[str]) -> list[Any]:
    shown = group[group["period"] <= c.periods[-1]]
    first, last = shown.iloc[0], shown.iloc[-1]
    weak = bool((group["kind"] == "illustrative").any())
    ids = list(dict.fromkeys(f for text in group["fact_ids"] for f in str(text).split()))
    same = last["value"] == first["value"] and _range(last) == _range(first)
    source, known = _newest(c, ids)
    return [
        Cell(path, mark=weak),
        (brief(first["value"], 4), first["value"]),
        _range(first),
        *(_mean_cell(c, shown, year) for year in years),
        ("same" if same else brief(last["value"], 4), last["value"]),
        "" if same else _range(last),
        first["unit"],
        ", ".join(dict.fromkeys(group["kind"])),
        source,
        known,
        str(first["note"]),
    ]


def _mean_cell(c: Context, rows: pd.DataFrame, year: str) -> tuple[str, float | None]:
    """Mean of an input over the reported periods of a year; `same` where it is the first value throughout."""
    spans = list(zip(rows["period"], rows["to"], rows["value"], strict=True))
    values = [float(v) for p in c.periods if p.startswith(year) for first, last, v in spans if first <= p <= last]
    if not values:
        return "-", None
    if len(spans) == 1:
        return "same", values[0]
    mean = sum(values) / len(values)
    return brief(mean, 4), mean


def _newest(c: Context, ids: list[str]) -> tuple[Any, str]:
    """Source and date of the newest fact of an input, with the number of facts."""
    held = [(f, c.facts[f]) for f in ids if f in c.facts]
    if not held:
        return "", ""
    name, fact = max(held, key=lambda pair: str(pair[1]["known_on"]))
    text = _cut(name.partition("@")[0], 60) if fact.get("basis") else _told(fact, 60)
    words = text if len(held) == 1 else say("inputs.more_facts", source=text, facts=len(held))
    return Link(words, str(fact.get("url") or "")), _known(c, fact)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _range(row: Any) -> str:
    return "" if pd.isna(row["low"]) else say("inputs.range", low=brief(row["low"]), high=brief(row["high"]))


def _facts(c: Context) -> Table:
    rows = []
    for name, f in sorted(c.facts.items()):
        value = f["value"]
        number = (plain(value, 4), value) if isinstance(value, float | int) else str(value)
        text = _told(f, _SOURCE_WIDTH)
        basis = f.get("basis")
        cell = (
            Link(text, str(f.get("url") or ""))
            if not basis
            else f"{text}: {', '.join(basis[:3])}{' …' if len(basis) > 3 else ''}"
        )
        rows.append([Cell(name, mark=f["kind"] == "illustrative"), number, f["unit"], f["kind"], _known(c, f), cell])
    return Table.named("sources", rows, folded=True)


def _known(c: Context, fact: dict[str, Any]) -> str:
    known = str(fact["known_on"])
    try:
        age = (date.fromisoformat(c.as_of) - date.fromisoformat(known)).days
    except ValueError:
        return known
    return say("inputs.old", day=known) if age > STALE_DAYS else known


def _told(fact: dict[str, Any], width: int) -> str:
    """The source of a fact; where it is a relay, the first publisher before it."""
    source = _cut(str(fact["source"]), width)
    return say("inputs.relay", origin=_cut(str(fact["origin"]), width), source=source) if fact.get("origin") else source


def regime_words(c: Context) -> Words:
    """How far the plan looks ahead."""
    if c.answer["regime"] == "foresight":
        return say("inputs.foresight")
    return say("inputs.rolling", look=c.run.manifest.get("look_ahead"))


def aim_words(c: Context) -> Words:
    """What the plan makes the most of."""
    return say("rule.value") if c.has_money else say("rule.units", unit=c.answer["objective"]["unit"])


def edit_words(c: Context) -> Words:
    """What the edits of a scenario do to which input, values that are replaced as a whole not repeated."""
    parts = []
    for path, steps in (c.run.manifest.get("edits") or {}).items():
        _, name, *rest = [*str(path).split("."), ""]
        title = ", ".join([c.title(name), *[r.replace("_", " ") for r in rest if r]]) if name else str(path)
        done = [say("rule.replaced") if "{" in step else _step(step.removeprefix("edited: ")) for step in steps]
        parts.append(join("", [title, ": ", join(", ", done)]))
    return join("; ", parts)


def _step(step: str) -> Words:
    """An edit as its author wrote it, its numbers kept."""
    words: list[str] = []
    for word in step.split(" "):
        try:
            words.append(Number(word, float(word)))
        except ValueError:
            words.append(word)
    return join(" ", words)


def rule_section(contexts: Sequence[Context]) -> Section:
    """What each scenario assumes, before any of its results, and in which dollars they are."""
    s = Section("rule")
    c = contexts[0]
    for one in contexts:
        note = str((one.run.manifest.get("notes") or {}).get("scenario") or "").strip() or say("rule.no_note")
        edits = edit_words(one)
        changed = say("rule.edits", edits=edits) if edits else say("rule.no_edits")
        s.paragraphs.append(say("rule.case", title=one.run.manifest["title"], note=note, edits=changed))
    s.paragraphs.append(
        say("rule.conditional", objective=aim_words(c), regime=regime_words(c), first=c.periods[0], last=c.periods[-1])
    )
    if c.has_money:
        s.paragraphs.append(say("rule.money"))
    return s


def method_section(c: Context) -> Section:
    """Scope, regime, definitions, and what is first version or missing."""
    s = Section("method")
    objective = c.answer["objective"]
    s.paragraphs.append(say("inputs.method", kind=objective["kind"]))
    if c.has_money:
        s.paragraphs.append(say("inputs.value"))
    s.tables.append(Table.named("limits_of_this_edition", _missing(c)))
    s.tables.append(_made())
    return s


def _made() -> Table:
    """The named formulas behind the numbers; tables and lines of the page lead to its rows."""
    rows = [
        [Cell(say(f"made.{k}.name"), anchor=f"made-{k}"), say(f"made.{k}.how"), say(f"made.{k}.where")]
        for k in FORMULAS
    ]
    return Table.named("made", rows)


def _missing(c: Context) -> list[list[str]]:
    """What this edition leaves out, and why: known gaps of the version, then what the run does not hold."""

    def row(name: str) -> list[str]:
        return [say(f"missing.{name}"), say(f"missing.{name}_why")]

    rows = [row(name) for name in ("draws", "tasks", "pairs", "mix")]
    if gone := [t for t in ("market", "training_runs", "unit_cost") if c.table(t) is None]:
        rows.append([", ".join(say(f"missing.{t}") for t in gone), say("missing.section_why")])
    rows += [row(t) for t in ("headline", "backtest", "accuracy") if c.table(t) is None]
    return rows


def repeat_section(c: Context) -> Section:
    """Run id, hash, command, versions, licences."""
    s = Section("repeat")
    m = c.run.manifest
    versions = ", ".join(f"{k} {v}" for k, v in m["versions"].items())
    edits = "; ".join(f"{k}: {', '.join(v)}" for k, v in (m.get("edits") or {}).items())
    study = m["options"].get("study", False)
    command = f"wafer2token run {c.run.scenario} --out build/runs" + (" --report build/reports" if study else "")
    rows = [
        ("Command", command),
        ("Run", c.run.id),
        (say("inputs.run_hash"), c.run.hash),
        (say("inputs.run_facts"), m["facts_digest"]),
        (say("inputs.run_known"), c.as_of),
        (say("inputs.run_computed"), m["created"]),
        ("Program", f"wafer2token {m['version']}; {versions}"),
        (say("inputs.run_edits"), edits or "none"),
    ]
    s.tables.append(Table.named("run", [list(r) for r in rows]))
    s.paragraphs.append(say("inputs.folder"))
    s.paragraphs.append(say("inputs.beside", id=c.run.id))
    s.paragraphs.append(say("inputs.credits"))
    return s
