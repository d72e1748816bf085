"""Token classes as live formulas: the engine's seconds at the price of an hour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.workbook_costs import CLASSES, CostSheet, Tie
from reports.workbook_formula import FIRST, Line, write_grid

if TYPE_CHECKING:
    from reports.context import Context
    from reports.workbook_style import Book

__all__ = ["tokens_sheet"]


def tokens_sheet(book: Book, c: Context, costs: CostSheet) -> list[Tie]:
    """Token classes as formulas: engine seconds x the price of an hour; the classes add up to the hour."""
    note = (
        "Seconds come from the per-token engine; the price of an hour from the Costs sheet, so that both move together."
    )
    sheet = book.sheet("Tokens", f"Cost of a million tokens, {c.now}", note, "workings")
    requests = _requests(c)
    rows = [
        r
        for r in c.answer["costs"]
        if r["period"] == c.now and r["sku"] in costs.skus and r["usd_per_mtoken"]["output"]
    ]
    columns, links, heads = [], [], []
    for row in rows:
        sold_tokens = c.value_at("tokens_per_sold_hour", f"{row['model']}/{row['sku']}", c.now)
        request = requests.get(row["model"])
        if sold_tokens is None or request is None:
            continue
        values = {f"s_{k}": row["usd_per_mtoken"][k] / row["usd_per_gpu_hour"] * 3600 for k in CLASSES}
        values |= {f"run_{k}": row["usd_per_mtoken"][k] for k in CLASSES}
        values |= {f"v_{k}": request[f"request_{k}"] for k in CLASSES} | {"sold_tokens": float(sold_tokens["value"])}
        index = costs.skus.index(row["sku"])
        values["hour"] = costs.grid.values[index]["full"]
        columns.append({k: float(v) for k, v in values.items()})
        links.append({"hour": costs.grid.address("full", index)})
        heads.append(f"{c.title(row['model'])} on {c.short(row['sku'])}")
    lines = _token_lines()
    for k, head in enumerate(("Line", "Unit", "How", *heads)):
        sheet.text(4, k, head, "header" if k < FIRST else "header_right")
    sheet.height(4, [(head, 10) for head in heads])
    grid = write_grid(sheet, 5, lines, columns, links)
    sheet.widths([36, 18, 20, *[12] * len(heads)])
    sheet.freeze(5, FIRST)
    ties = []
    for index, head in enumerate(heads):
        held = grid.values[index]
        for name in CLASSES:
            ends = (grid.address(f"usd_{name}", index), grid.address(f"run_{name}", index))
            ties.append(
                Tie(f"{head}: {name.replace('_', ' ')} equals the run", *ends, held[f"usd_{name}"], held[f"run_{name}"])
            )
        ends = (grid.address("earned", index), grid.address("hour", index))
        ties.append(Tie(f"{head}: classes add up to the hour", *ends, held["earned"], held["hour"], 1e-6))
    return ties


def _requests(c: Context) -> dict[str, dict[str, float]]:
    """Tokens of a request by model, as the run stored them."""
    table = c.table("cost_inputs")
    if table is None:
        return {}
    rows = table[table["model"] != ""]
    return {str(m): dict(zip(held["input"], held["value"], strict=True)) for m, held in rows.groupby("model")}


def _token_lines() -> list[Line]:
    named = {k: k.replace("_", " ").capitalize() for k in CLASSES}
    lines = [Line("hour", "Price of a sold hour, scarcity included", "USD/sold hour", note="Costs sheet")]
    lines += [
        Line(f"s_{k}", f"{n}: accelerator time", "s/million tokens", note="engine, per paid hour", style="solver")
        for k, n in named.items()
    ]
    lines += [
        Line(f"usd_{k}", f"{n}: cost", "USD/million tokens", f"s_{k}*hour/3600", "seconds x hour price", "total")
        for k, n in named.items()
    ]
    lines += [Line(f"v_{k}", f"{n} of a request", "tokens", note="workload", style="input") for k, n in named.items()]
    spend = "+".join(f"usd_{k}*v_{k}" for k in CLASSES)
    lines += [
        Line("request", "Cost of a request", "USD", f"({spend})/1000000", "class cost x volume"),
        Line("sold_tokens", "Output tokens of a sold hour", "tokens", note="engine x use chain", style="solver"),
        Line("requests", "Requests of a sold hour", "requests", "sold_tokens/v_output"),
        Line("earned", "Requests x cost of a request", "USD/sold hour", "requests*request", "must be the hour"),
    ]
    lines += [
        Line(f"run_{k}", f"{n} in the run", "USD/million tokens", note="from the run", style="solver")
        for k, n in named.items()
    ]
    return lines
