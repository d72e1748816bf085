"""Section: what an hour, a million tokens and a task cost."""

from __future__ import annotations

from typing import Any

import pandas as pd

from reports.blocks import Section, Table
from reports.context import Context
from reports.figures import econ
from reports.sections.limits import scope
from reports.tables import records
from reports.wording import band, digits_for, plain

__all__ = ["costs_section"]

PARTS = {
    "equipment": "Server and chips", "network": "Network", "spares": "Spares", "building": "Building and power plant",
    "interest_before_income": "Interest before income", "residual_value": "Residual value", "income_tax": "Income tax",
    "colocation": "Colocation", "insurance": "Insurance", "maintenance": "Maintenance", "staff": "Staff",
    "software": "Software", "failures": "Failures", "electricity": "Electricity",
}  # fmt: skip
CLASSES = (("uncached_input", "input"), ("cache_read", "cached input"), ("output", "output"))
TASKS = ("chat", "research", "coding", "browser")


def costs_section(c: Context) -> Section | None:
    """Owner cost by part, hours by product, tokens by model and product, tasks."""
    if c.reference_sku is None:
        return None
    s = Section("costs", "What an hour, a million tokens and a task cost")
    s.paragraphs.append(
        "Owner cost is what a cloud company pays to own and run the accelerator, per hour that it sells; it is not a "
        "market price. The scarcity "
        "on top is the rent of limits that come after the sale (racks and power), carried by one accelerator. "
        "Contract, spot, index and list prices are other series"
        + (", shown in the next section." if c.table("market") is not None else " and are not shown here.")
    )
    falls = c.table("waterfall")
    if falls is not None:
        s.figures.append(_waterfall(c, falls, c.reference_sku))
    s.tables.append(_hours(c))
    front = c.table("front")
    if front is not None:
        names = {k: c.short(k) for k in front["sku"].unique()} | {m: c.title(m) for m in front["model"].unique()}
        s.figures.append(
            econ.cost_front(front, f"hours at owner cost plus scarcity in {front['period'].iloc[0]}; {scope(c)}", names)
        )
    s.tables += [_tokens(c), _tasks(c)]
    s.paragraphs.append(
        "Token costs come from the per-token engine at the cheapest operating point within the latency target of the "
        "chat workload, at the hour "
        "cost of the same quarter. The band joins the engine's 90 % band with that of the hour. Tasks count failed "
        "runs, tools and "
        "review by people, which is why the accelerator is a small part of most of them."
    )
    return s


def _waterfall(c: Context, falls: pd.DataFrame, sku: str) -> Any:
    mine = falls[falls["sku"] == sku]
    if mine.empty:
        mine = falls[falls["sku"] == falls["sku"].iloc[0]]
    by_part = mine.set_index("part")["value"]
    rows = [
        (PARTS.get(p, p), float(by_part[p]), "part")
        for p in by_part.index
        if p not in ("total", "scarcity") and by_part[p] != 0
    ]
    rows.append(("Owner cost", float(by_part["total"]), "subtotal"))
    rows.append(("Scarcity of racks and power", float(by_part["scarcity"]), "part"))
    parts = pd.DataFrame(rows, columns=["part", "value", "kind"])
    first = mine.iloc[0]
    return econ.cost_waterfall(
        parts, "Cost with scarcity", f"{c.short(first['sku'])} bought in {first['period']}; {scope(c)}"
    )


def _hours(c: Context) -> Table:
    owner = c.quantity("owner_usd_per_gpu_hour")
    full = c.quantity("usd_per_gpu_hour").set_index(["subject", "period"])["value"]
    here = owner[owner["period"] == c.now].sort_values("value", ascending=False)
    rows = []
    for r in records(here):
        digits = digits_for(r.value, r.low, r.high)
        total = float(full[r.subject, r.period])
        rows.append(
            [
                c.title(r.subject),
                c.title(r.region),
                (plain(r.value, digits), r.value),
                band(r.low, r.high),
                (plain(total - r.value, 2), total - r.value),
                (plain(total, digits), total),
            ]
        )
    return Table.of(
        f"Owner cost of an accelerator-hour in {c.now}, USD per sold hour",
        ["Product", "Region", "#Owner cost", "#90 % band", "#Scarcity of racks and power", "#Together"],
        rows,
        note="Money of the period. Accelerators differ in work per hour: compare tokens, not hours. "
        "Band: inputs of the owner cost only.",
        short="hours",
    )


def _tokens(c: Context) -> Table:
    rows = []
    out = c.quantity("usd_per_mtoken_output")
    out = out[out["period"] == c.now].sort_values(["model", "value"])
    for r in records(out):
        cells: list[Any] = [c.title(r.model), c.title(r.sku)]
        for name, _ in CLASSES:
            found = c.value_at(f"usd_per_mtoken_{name}", r.subject, c.now)
            cells.append(("-", None) if found is None else (plain(found["value"], 2), found["value"]))
        cells.append(band(r.low, r.high))
        rows.append(cells)
    return Table.of(
        f"Cost of a million tokens in {c.now}, USD by token class",
        ["Model", "Product", *[f"#{title}" for _, title in CLASSES], "#Output, 90 % band"],
        rows,
        note="Each class bears its share of the busy time; classes times volumes add up to the spending. "
        "Writing to the cache costs as much as input.",
        short="tokens",
    )


def _tasks(c: Context) -> Table:
    rows = c.quantity("usd_per_verified_task")
    rows = rows[(rows["period"] == c.now) & (rows["sku"] == c.reference_sku)]
    body = []
    for subject in sorted(rows["subject"], key=lambda x: (_rank(x.split("/")[0]), x)):
        r = rows[rows["subject"] == subject].iloc[0]
        task, model, sku = subject.split("/")
        digits = digits_for(r["value"], r["low"], r["high"])
        body.append(
            [task, c.title(model), c.title(sku), (plain(r["value"], digits), r["value"]), band(r["low"], r["high"])]
        )
    return Table.of(
        f"Cost of a verified task in {c.now}, USD",
        ["Task", "Model", "Product", "#USD per verified task", "#Band"],
        body,
        note="Verified: failed runs are paid for by the successful ones. Chat: one answered message.",
        short="tasks",
    )


def _rank(task: str) -> int:
    return TASKS.index(task) if task in TASKS else len(TASKS)
