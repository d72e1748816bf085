"""Sections: inputs with their sources, method and limits, how to repeat the run."""

from __future__ import annotations

from datetime import date
from typing import Any

import pandas as pd

from reports.blocks import Cell, Link, Section, Table
from reports.context import Context
from reports.wording import brief, plain

__all__ = ["inputs_section", "method_section", "repeat_section"]

STALE_DAYS = 540
_SOURCE_WIDTH = 90


def inputs_section(c: Context) -> Section:
    """All inputs, one row a number, and all facts behind them."""
    s = Section("inputs", "All inputs and their sources")
    weak, all_ = c.illustrative
    s.paragraphs.append(
        f"{all_} numbers feed the model; {weak} of them rest at least partly on an illustrative assumption and are "
        "marked with an asterisk. "
        f"{len(c.facts):,} facts and series points stand behind them. Kinds: published (the maker states it), "
        "measured, estimate (somebody's), interpolated (between dated "
        "facts), derived (physics on facts), stated (a definition or bill of materials), illustrative (ours, with "
        "the reason). A source "
        f"older than {STALE_DAYS // 30} months is flagged."
    )
    s.tables += [_inputs(c), _facts(c)]
    return s


def _inputs(c: Context) -> Table:
    held = c.run.inputs
    rows = [_input_row(c, str(path), group) for path, group in held.groupby("path", sort=True)]
    first, last = c.periods[0], c.periods[-1]
    return Table.of(
        "Inputs of the model",
        ["Input", f"#{first}", "#Range", f"#{last}", "#Range", "Unit", "Kind", "Source", "Known on", "Reason or note"],
        rows,
        note="One row a number, at the first and the last period; the run folder holds every period. An asterisk marks "
        "an illustrative input. Source: the newest of the facts that it rests on, and how many there are.",
        folded=True,
        short="inputs",
    )


def _input_row(c: Context, path: str, group: pd.DataFrame) -> list[Any]:
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
        ("same" if same else brief(last["value"], 4), last["value"]),
        "" if same else _range(last),
        first["unit"],
        ", ".join(dict.fromkeys(group["kind"])),
        source,
        known,
        str(first["note"]),
    ]


def _newest(c: Context, ids: list[str]) -> tuple[Any, str]:
    """Source and date of the newest fact of an input, with the number of facts."""
    held = [(f, c.facts[f]) for f in ids if f in c.facts]
    if not held:
        return "", ""
    name, fact = max(held, key=lambda pair: str(pair[1]["known_on"]))
    text = _cut(name.partition("@")[0] if fact.get("basis") else str(fact["source"]), 60)
    words = text if len(held) == 1 else f"{text} ({len(held)} facts)"
    return Link(words, str(fact.get("url") or "")), _known(c, fact)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _range(row: Any) -> str:
    return "" if pd.isna(row["low"]) else f"{brief(row['low'])} to {brief(row['high'])}"


def _facts(c: Context) -> Table:
    rows = []
    for name, f in sorted(c.facts.items()):
        value = f["value"]
        number = (plain(value, 4), value) if isinstance(value, float | int) else str(value)
        source = str(f["source"])
        text = _cut(source, _SOURCE_WIDTH)
        basis = f.get("basis")
        cell = (
            Link(text, str(f.get("url") or ""))
            if not basis
            else f"{text}: {', '.join(basis[:3])}{' …' if len(basis) > 3 else ''}"
        )
        rows.append([Cell(name, mark=f["kind"] == "illustrative"), number, f["unit"], f["kind"], _known(c, f), cell])
    return Table.of(
        "Facts behind the inputs",
        ["Fact", "#Value", "Unit", "Kind", "Known on", "Source"],
        rows,
        note="A name with @ is a point of a series; its source says how it was set and names "
        "the facts that it rests on.",
        folded=True,
        short="sources",
    )


def _known(c: Context, fact: dict[str, Any]) -> str:
    known = str(fact["known_on"])
    try:
        age = (date.fromisoformat(c.as_of) - date.fromisoformat(known)).days
    except ValueError:
        return known
    return f"{known} (old)" if age > STALE_DAYS else known


def method_section(c: Context) -> Section:
    """Scope, regime, definitions, and what is first version or missing."""
    s = Section("method", "Method, scope and what is missing")
    objective = c.answer["objective"]
    note = str((c.run.manifest.get("notes") or {}).get("scenario") or "")
    if note:
        s.paragraphs.append(f"Scenario: {note}")
    look = c.run.manifest.get("look_ahead")
    regime = (
        "the plan knows all dated inputs to the end (perfect foresight)"
        if c.answer["regime"] == "foresight"
        else f"each period is planned anew, {look} periods ahead"
    )
    s.paragraphs.append(
        "Materials flow through processes that share capacities, with yields and lead times, to finished "
        "accelerators; those wait for racks and energised "
        f"power. A linear programme finds the plan with the largest {objective['kind']}; {regime}. A tail beyond the "
        "last period is solved and not "
        "reported. Results are conditional on the inputs: no forecast of what will happen, and no claim about what "
        "any firm plans."
    )
    if c.has_money:
        s.paragraphs.append(
            "Value accrues while an accelerator runs, at one rental path and fixed ratios between products; costs "
            "are manufacturing costs spread over the "
            "life. So the volumes say what the chain could do if each limit went to its best use; at market prices "
            "less would be bought."
        )
    s.tables.append(
        Table.of(
            "First version or missing in this edition",
            ["What", "State"],
            [list(r) for r in _missing(c)],
            short="limits_of_this_edition",
        )
    )
    return s


def _missing(c: Context) -> list[tuple[str, str]]:
    rows = [
        (
            "Shares of draws",
            "no sampled run stands behind this report: ranges are single inputs moved alone, not probabilities",
        ),
        ("Agent tasks", "first version: one task profile a kind, review by people dominates"),
        (
            "Models and accelerators",
            "pairs without a nearby measurement carry wide bands; confidence is told in the front's data",
        ),
        ("Product mix", "not pinned down by the optimum within a designer; the width of the mix is not printed"),
    ]
    named = {"market": "Market prices", "training_runs": "Training runs", "unit_cost": "Manufacturing cost and yield"}
    if gone := [title for table, title in named.items() if c.table(table) is None]:
        rows.append((", ".join(gone), "no section: not in this run (make it with --report, with a fleet)"))
    if c.table("headline") is None:
        rows.append(("Study of weak inputs", "not in this run: make the run with --report"))
    if c.table("backtest") is None:
        rows.append(("Track record", "no backtest in this run; outside estimates are shown instead"))
    if c.table("accuracy") is None:
        rows.append(("Accuracy of the engine", "not in this run"))
    return rows


def repeat_section(c: Context) -> Section:
    """Run id, hash, command, versions, licences."""
    s = Section("repeat", "How to repeat this, and credits")
    m = c.run.manifest
    versions = ", ".join(f"{k} {v}" for k, v in m["versions"].items())
    edits = "; ".join(f"{k}: {', '.join(v)}" for k, v in (m.get("edits") or {}).items())
    study = m["options"].get("study", False)
    command = f"wafer2token run {c.run.scenario} --out build/runs" + (" --report build/reports" if study else "")
    rows = [
        ("Command", command),
        ("Run", c.run.id),
        ("SHA-256 of the input", c.run.hash),
        ("Facts digest", m["facts_digest"]),
        ("Facts known up to", c.as_of),
        ("Computed on", m["created"]),
        ("Program", f"wafer2token {m['version']}; {versions}"),
        ("Edits of the scenario", edits or "none"),
    ]
    s.tables.append(Table.of("This run", ["What", "Value"], [list(r) for r in rows], short="run"))
    s.paragraphs.append(
        "The run folder holds the scenario as resolved, every result, input and check as Parquet tables, and the "
        "manifest with each fact. The same "
        "command on the same facts and version gives the same hash and the same numbers."
    )
    s.paragraphs.append(
        f"Beside this page, {c.run.id}-figures holds every figure as SVG and PNG, and what is drawn as CSV."
    )
    s.paragraphs.append(
        "Accelerator shipments, sites and parts of the cost model: data by Epoch AI, licensed under CC BY 4.0 "
        "(epoch.ai), shown beside our results or "
        "as inputs where named. All other facts are single figures from the sources named in each row; "
        "data/ATTRIBUTION.md lists licences of "
        "benchmark results and model architectures."
    )
    return s
