"""Tables of the app as HTML text: cases side by side, costs, rankings; figures with units, changes in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from reports.wording import count, plain, stage_title

if TYPE_CHECKING:
    from reports.app_controls import Control
    from reports.app_costs import CostRow
    from reports.app_model import Case, Preview

__all__ = [
    "change_words",
    "comparison",
    "costs",
    "model_title",
    "percent_text",
    "ranking",
    "reference",
    "titles_of",
    "volume_table",
]

DIGITS = 4


def change_words(value: float, base: float) -> tuple[str, str]:
    """A change against a base in words, and its class.

    >>> change_words(11.0, 10.0), change_words(10.0, 10.0), change_words(1.0, 0.0)
    (('+10.0 %', 'w2t-up'), ('no change', 'w2t-same'), ('from nothing', 'w2t-up'))
    """
    if not (np.isfinite(value) and np.isfinite(base)):
        return "-", "w2t-same"
    if abs(value - base) <= 1e-6 * max(abs(base), 1e-12):
        return "no change", "w2t-same"
    if base == 0:
        return "from nothing", "w2t-up"
    share = 100.0 * (value / base - 1.0)
    if abs(share) < 0.0005:
        return "no change", "w2t-same"
    text = f"{share:+.1f} %" if abs(share) >= 0.05 else f"{share:+.3f} %"
    return text, "w2t-up" if share > 0 else "w2t-down"


def percent_text(share: float) -> str:
    """A share as percent without decimals.

    >>> percent_text(0.053)
    '5 %'
    """
    return f"{100 * share:.0f} %"


def titles_of(preview: Preview) -> dict[str, str]:
    """Readable name of each accelerator."""
    network = preview.resolved.network
    materials = {m.id: m.title or m.id for m in network.materials.values()}
    return materials | {s.id: s.title or s.id for s in network.fleet.values()}


def model_title(model: str) -> str:
    """A model as it is written.

    >>> model_title("llama_3_1_70b"), model_title("mine")
    ('Llama-3.1-70B', 'mine')
    """
    from econ.chain import MODEL_CHOICES

    return next((c.model for c in MODEL_CHOICES.values() if c.name == model), model)


def _table(caption: str, heads: Sequence[str], rows: Sequence[str]) -> str:
    """A table whose first column is the row header; `caption` and `heads` are HTML already."""
    first, *rest = heads
    cells = "".join(f'<th scope="col">{h}</th>' for h in rest)
    return (
        f'<div class="w2t-scroll"><table class="w2t-table"><caption>{caption}</caption><thead><tr>'
        f'<th scope="col" class="w2t-left">{first}</th>{cells}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _row(label: str, cells: Sequence[str], change: str | None = None) -> str:
    inner = "".join(f"<td>{c}</td>" for c in cells)
    last = "" if change is None else f'<td class="w2t-nowrap">{change}</td>'
    return f'<tr><th scope="row" class="w2t-left">{escape(label)}</th>{inner}{last}</tr>'


def _range(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return "-"
    if low is None or high is None:
        return plain(value)
    return f'{plain(value)}<br><small class="w2t-nowrap">{plain(low)} to {plain(high)}</small>'


def costs(preview: Preview, case: Case, model: str, task: str) -> str:
    """Owner cost of an hour, tokens and a task by accelerator in the last period of the year, with low and high."""
    rows = _chosen(case, model, task)
    problem = preview.costing.problem
    note = f'<p class="w2t-warn">{escape(problem[:1].upper() + problem[1:])}.</p>' if problem else ""
    if not rows:
        return f'<div class="w2t"><h2>What it costs</h2>{note or "<p class=w2t-note>No costs in this year.</p>"}</div>'
    titles, held = titles_of(preview), {r.sku: r for r in _chosen(preview.base, model, task)}
    body = [_cost_row(r, held.get(r.sku), titles) for r in rows]
    caption = (
        "Owner cost, scarcity of racks and power included; small figures: low to high. "
        f"Model: {escape(model_title(model) or 'none')}. Task: {escape(task or 'none')}."
    )
    heads = (
        "accelerator",
        "USD per sold hour",
        "of it scarcity",
        "USD per million output tokens",
        "USD per verified task",
    )
    table = _table(caption, [*heads, "change of the hour"], body)
    return f'<div class="w2t"><h2>What it costs in {rows[0].period}</h2>{note}{table}</div>'


def _chosen(case: Case, model: str, task: str) -> list[CostRow]:
    """One row an accelerator: the one that fits model and task best."""
    found: dict[str, CostRow] = {}
    for row in case.costs:
        held = found.get(row.sku)
        fits = (row.model == model) + (row.task == task)
        if held is None or fits > (held.model == model) + (held.task == task):
            found[row.sku] = row
    return list(found.values())


def _cost_row(row: CostRow, base: CostRow | None, titles: Mapping[str, str]) -> str:
    cells = [
        _range(row.hour, row.hour_low, row.hour_high),
        plain(row.rent, 2) if row.rent > 1e-6 else "0",
        _range(row.mtoken, row.mtoken_low, row.mtoken_high),
        _range(row.usd_per_task, row.task_low, row.task_high),
    ]
    return _row(titles.get(row.sku, row.sku), cells, change_words(row.hour, base.hour)[0] if base else "-")


def comparison(preview: Preview, cases: Sequence[tuple[str, Case]], model: str, task: str) -> str:
    """Cases side by side: accelerators by year, what binds, costs, inputs; the last column compares the last two."""
    cases = [(name, case) for name, case in cases if not case.failed]
    only, year = [case for _, case in cases], preview.year
    rows = [_amounts(f"Accelerators {preview.kind} in {y}", [c.total(y) for c in only]) for y in preview.years]
    if preview.kind == "energised":
        rows.append(_amounts(f"H100-equivalents energised in {year}", [c.h100e_total(year) for c in only]))
    rows.append(_words(f"Stage that binds most in {year}", [stage_title(c.stage(year)) or "none" for c in only]))
    rows.append(_words(f"Limit worth most in {year}", [c.limit(year) or "none" for c in only]))
    rows += _cost_lines(preview, only, model, task)
    rows += _inputs(preview, only)
    heads = ["figure", *(escape(name) for name, _ in cases), "change, last two"]
    return f'<div class="w2t"><h2>Side by side</h2>{_table("Every case at its own settings", heads, rows)}</div>'


def _cost_lines(preview: Preview, cases: Sequence[Case], model: str, task: str) -> list[str]:
    sku = reference(preview)
    if not sku:
        return []
    found = [next((r for r in _chosen(c, model, task) if r.sku == sku), None) for c in cases]
    title = titles_of(preview).get(sku, sku)
    return [
        _money(f"USD per sold hour, {title}", [r.hour if r else None for r in found]),
        _money(f"USD per million output tokens, {title}", [r.mtoken if r else None for r in found]),
        _money(f"USD per verified task, {title}", [r.usd_per_task if r else None for r in found]),
    ]


def reference(preview: Preview) -> str:
    """The accelerator with most units in the year at the base that has a cost."""
    known = {r.sku for r in preview.base.costs}
    inside = [t for t, p in enumerate(preview.periods) if p.startswith(preview.year)]
    sizes = {s: float(preview.base.volume[k, inside].sum()) for k, s in enumerate(preview.base.skus) if s in known}
    return max(sizes, key=lambda s: sizes[s]) if sizes else ""


def _amounts(label: str, values: Sequence[float]) -> str:
    return _row(label, [count(v, DIGITS) for v in values], _last_change(values))


def _money(label: str, values: Sequence[float | None]) -> str:
    change = _last_change([np.nan if v is None else v for v in values])
    return _row(label, ["-" if v is None else plain(v) for v in values], change)


def _words(label: str, values: Sequence[str]) -> str:
    changed = len(values) > 1 and values[-1] != values[-2]
    return _row(label, [escape(v) for v in values], "changed" if changed else "same")


def _last_change(values: Sequence[float]) -> str:
    return change_words(values[-1], values[-2])[0] if len(values) > 1 else "-"


def _inputs(preview: Preview, cases: Sequence[Case]) -> list[str]:
    rows = []
    for control in preview.controls.values():
        settings = [c.settings.get(control.id, control.base) for c in cases]
        if any(abs(s - control.base) > 1e-9 for s in settings):
            rows.append(_row(f"Input: {control.label}", [f"{s:g}" for s in settings], _last_change(settings)))
    return rows


def volume_table(preview: Preview, case: Case) -> str:
    """The volume chart as a table, by product and year."""
    titles, rows = titles_of(preview), []
    for k, sku in enumerate(case.skus):
        sums = [case.volume[k, [t for t, p in enumerate(case.periods) if p.startswith(y)]].sum() for y in preview.years]
        if sum(sums) > 0:
            rows.append(_row(titles.get(sku, sku), [count(float(v), DIGITS) for v in sums]))
    table = _table(f"Accelerators {preview.kind}", ["accelerator", *preview.years], rows)
    return f"<details><summary>The same as a table, by year</summary>{table}</details>"


def ranking(preview: Preview, rows: Sequence[tuple[Control, float, float]]) -> str:
    """How far each slider moves the headline alone, at the ends of its sources."""
    caption = (
        f"Change of accelerators {preview.kind} in {preview.year} with one input at an end of its sources, the others "
        "at the base"
    )
    body = [
        _row(c.label, [f"{plain(c.low or 0)} to {plain(c.high or 0)}", _signed(low), _signed(high)])
        for c, low, high in rows
    ]
    return f'<div class="w2t">{_table(caption, ["input", "sources", "at the low end", "at the high end"], body)}</div>'


def _signed(value: float) -> str:
    if abs(value) < 0.5:
        return "no change"
    return ("+" if value > 0 else "-") + count(float(round(abs(value))), 3)
