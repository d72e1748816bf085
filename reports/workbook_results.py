"""Result sheets of the workbook: what came out of the run, on one time axis, and the summary over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reports.workbook_style import Column, cell

if TYPE_CHECKING:
    from reports.context import Context
    from reports.workbook_style import Book, Sheet

__all__ = ["TIME", "hours_sheet", "prices_sheet", "results_sheet", "summary_sheet", "tasks_sheet", "token_costs_sheet"]

#: First column of the periods, the same on every sheet with a time axis.
TIME = 6
_HEADS = ("Quantity", "Subject", "Name", "Region", "Stage", "Unit")
_WIDE = (
    "finished", "energised", "energised_h100e", "fleet", "fleet_mw", "stranded", "stranded_mw", "built_mw",
    "without_power_rows_mw", "without_chip_rows_mw", "power_limited_mw", "chip_limited_mw", "capacity", "used",
    "utilisation", "price", "lasting_price", "rent", "starts", "stock", "built", "objective",
)  # fmt: skip
#: Lines of the yearly summary: label, quantity, unit; a year is the sum of its periods or the level at its end.
_LINES = (
    ("Accelerators finished", "finished", "accelerators", "sum"),
    ("Accelerators energised", "energised", "accelerators", "sum"),
    ("Energised, in H100-equivalents", "energised_h100e", "H100-equivalents", "sum"),
    ("Fleet at the end", "fleet", "accelerators", "last"),
    ("Planning power of the fleet at the end", "fleet_mw", "MW planning", "last"),
    ("Stranded accelerators at the end", "stranded", "accelerators", "last"),
)
_CLASSES = ("uncached_input", "cache_write", "cache_read", "output")
Rows = dict[tuple[str, str, str], int]


def results_sheet(book: Book, c: Context) -> tuple[Rows, int]:
    """Quantities by period; returns the row of (quantity, subject, region) and the last row of the table."""
    note = (
        "Solver output of the run, accelerators per period unless the unit says otherwise. Lines of zeros are left out."
    )
    sheet = book.sheet("Results", "Results by period", note, "#6699CC")
    table = c.results[c.results["quantity"].isin(_WIDE) & c.results["period"].isin(c.periods)]
    keys = ["quantity", "subject", "region", "stage", "unit"]
    wide = table.pivot_table(index=keys, columns="period", values="value", aggfunc="first", sort=False, observed=True)
    wide = wide.reindex(columns=c.periods)
    keep = (wide.abs().fillna(0.0) > 0).any(axis=1) | wide.index.get_level_values("quantity").isin(("finished",))
    wide = wide[keep]
    order = {name: k for k, name in enumerate(_WIDE)}
    wide = wide.iloc[sorted(range(len(wide)), key=lambda k: order[wide.index[k][0]])]
    rows: Rows = {}
    data: list[list[Any]] = []
    for index, values in zip(wide.index, wide.to_numpy().tolist(), strict=True):
        quantity, subject, region, stage, unit = (str(part) for part in index)
        rows[quantity, subject, region] = 6 + len(data)
        data.append([quantity, subject, c.title(subject) if subject else "", region, stage, unit, *values])
    widths = (22, 24, 34, 9, 11, 22)
    columns = [Column(head, "", width) for head, width in zip(_HEADS, widths, strict=True)]
    columns += [Column(period, "", 12, "solver") for period in c.periods]
    sheet.table(4, columns, data, "results")
    sheet.raw.freeze_panes(6, 3)
    return rows, 5 + max(1, len(data))


def summary_sheet(
    book: Book, c: Context, lines: Sequence[tuple[str, str]], warnings: Sequence[str], rows: Rows, last: int
) -> None:
    """The answer in words, totals by period and by year as formulas over Results, and two charts."""
    sheet = book.sheets["Summary"]
    sheet.widths([36, 18, 14, 9, 9, 18, *[12] * max(8, len(c.periods))])
    row = 4
    for label, text in lines:
        sheet.text(row, 0, label, "bold_wrap")
        sheet.paragraph(row, 1, TIME + 5, text)
        row += 1
    for warning in warnings:
        sheet.paragraph(row, 0, TIME + 5, warning, "warn")
        row += 1
    row += 1
    sheet.text(row, 0, "By period (formulas over the Results sheet)", "heading")
    first = _by_period(sheet, c, row + 1, last)
    _by_year(sheet, c, first, first + len(_held(c)) + 2)
    _summary_charts(book, sheet, c, rows, first + 2 * len(_held(c)) + 5)
    sheet.raw.freeze_panes(4, 0)


def _held(c: Context) -> list[tuple[str, str, str, str]]:
    return [line for line in _LINES if len(c.quantity(line[1]))]


def _totals(c: Context, quantity: str) -> list[float]:
    by = c.quantity(quantity).groupby("period")["value"].sum()
    return [float(by.get(p, 0.0)) for p in c.periods]


def _by_period(sheet: Sheet, c: Context, row: int, last: int) -> int:
    """One line a quantity, one SUMIFS a period; returns the row of the first line."""
    for k, head in enumerate(("Total over products and regions", "Quantity", "", "", "", "Unit", *c.periods)):
        sheet.text(row, k, head, "header" if k < TIME else "header_right")
    names = f"{cell(6, 0, 'Results', fixed='rc')}:{cell(last, 0, fixed='rc')}"
    for offset, (label, quantity, unit, _) in enumerate(_held(c), 1):
        sheet.text(row + offset, 0, label)
        sheet.text(row + offset, 1, quantity, "unit")
        sheet.text(row + offset, 5, unit, "unit")
        for t, value in enumerate(_totals(c, quantity)):
            span = f"{cell(6, TIME + t, 'Results', fixed='r')}:{cell(last, TIME + t, fixed='r')}"
            made = f"SUMIFS({span},{names},{cell(row + offset, 1, fixed='c')})"
            sheet.formula(row + offset, TIME + t, made, value, shown="#,##0")
    return row + 1


def _by_year(sheet: Sheet, c: Context, first: int, row: int) -> None:
    """Year totals of flows, levels at the end of the year of stocks."""
    for k, head in enumerate(("By year", "Quantity", "Year is", "", "", "Unit", *c.years)):
        sheet.text(row, k, head, "header" if k < TIME else "header_right")
    spans = {y: [t for t, p in enumerate(c.periods) if p.startswith(y)] for y in c.years}
    for offset, (label, quantity, unit, how) in enumerate(_held(c), 1):
        values = _totals(c, quantity)
        sheet.text(row + offset, 0, label)
        sheet.text(row + offset, 1, quantity, "unit")
        sheet.text(row + offset, 2, "sum" if how == "sum" else "its last period", "unit")
        sheet.text(row + offset, 5, unit, "unit")
        for k, year in enumerate(c.years):
            ends = [cell(first + offset - 1, TIME + t) for t in (spans[year][0], spans[year][-1])]
            total = sum(values[t] for t in spans[year]) if how == "sum" else values[spans[year][-1]]
            made = f"SUM({ends[0]}:{ends[1]})" if how == "sum" else ends[1]
            sheet.formula(row + offset, TIME + k, made, total, "total", "#,##0")


def _summary_charts(book: Book, sheet: Sheet, c: Context, rows: Rows, row: int) -> None:
    from reports.figures.style import STAGE_COLOURS, colour_of

    quantity = "energised" if c.has_fleet else "finished"
    stack = book.chart({"type": "column", "subtype": "stacked"})
    heads = ["Results", 5, TIME, 5, TIME + len(c.periods) - 1]
    for sku in c.skus_by_size[:8]:
        for key, here in rows.items():
            if key[:2] == (quantity, sku):
                name = c.short(sku) + (f", {key[2]}" if key[2] else "")
                span = ["Results", here, TIME, here, TIME + len(c.periods) - 1]
                stack.add_series(
                    {"name": name, "categories": heads, "values": span, "fill": {"color": colour_of(sku)}, "gap": 30}
                )
    stack.set_title({"name": f"Accelerators {quantity} by product and period", "name_font": {"size": 12}})
    millions = max(_totals(c, quantity), default=0.0) >= 1e6
    stack.set_y_axis(
        {"name": "million accelerators a period", "num_format": "0.0,,"}
        if millions
        else {"name": "accelerators a period", "num_format": "#,##0"}
    )
    stack.set_size({"width": 760, "height": 380})
    if c.has_fleet:
        stack.set_legend({"none": True})
    sheet.raw.insert_chart(
        row, 0, stack, {"description": f"Stacked columns: accelerators {quantity} by product and period"}
    )
    rents = [(key, here) for key, here in rows.items() if key[0] == "rent" and key[1] in set(c.binding["subject"])]
    if not rents:
        return
    chart = book.chart({"type": "column", "subtype": "stacked"})
    stages = c.binding.drop_duplicates("subject").set_index("subject")["stage"].to_dict()
    for key, here in rents[:12]:
        span = ["Results", here, TIME, here, TIME + len(c.periods) - 1]
        colour = STAGE_COLOURS.get(str(stages.get(key[1], "")), "#777777")
        look = {"color": colour}
        border = {"color": "#FFFFFF", "width": 0.5}
        chart.add_series(
            {"name": c.title(key[1]), "categories": heads, "values": span, "fill": look, "border": border, "gap": 30}
        )
    chart.set_title({"name": "Scarcity value by limit and period", "name_font": {"size": 12}})
    if c.has_money:
        chart.set_y_axis({"name": "billion USD a period", "num_format": "#,##0.0,,,"})
    else:
        chart.set_y_axis({"name": "price x limit", "num_format": "#,##0"})
    chart.set_size({"width": 760, "height": 380})
    sheet.raw.insert_chart(row, TIME + 1, chart, {"description": "Stacked columns: scarcity value by limit and period"})


def prices_sheet(book: Book, c: Context) -> None:
    """Every binding limit by period: what one more unit is worth, in its own unit and in the reader's three."""
    note = (
        "Value to the marginal user at fixed product values, not a market price. Low and high: gain of +h, loss of -h."
    )
    sheet = book.sheet("Prices", "Prices of the limits that bind", note, "#6699CC")
    columns = [
        Column("Period", "", 10), Column("Limit", "", 34), Column("Id", "", 20), Column("Stage", "", 11),
        Column("Region", "", 9), Column("Use", "fraction", 9, "solver", "0%"),
        Column("Capacity", "unit/period", 14, "solver"),
        Column("Price", "see Unit", 14, "solver"), Column("Price low", "see Unit", 14, "solver"),
        Column("Price high", "see Unit", 14, "solver"), Column("Unit", "", 16),
        Column("Lasting price", "see Unit", 14, "solver"),
        Column("Rent", "price x capacity", 18, "solver"), Column("Per GPU-hour", "USD/sold GPU-hour", 14, "solver"),
        Column("Per million tokens", "USD/million output tokens", 16, "solver"),
        Column("Per task", "USD/task", 14, "solver"),
        Column("Reference product", "", 16), Column("Reference model", "", 16), Column("Reference task", "", 12),
        Column("Finished by +1 %", "accelerators", 14, "solver"),
        Column("Energised by +1 %", "accelerators", 14, "solver"),
        Column("Next limit", "", 26), Column("Next limit binds at", "rise of capacity", 14, "solver", "0.0%"),
    ]  # fmt: skip
    rows = [_price_row(c, period["period"], b) for period in c.answer["periods"] for b in period["binding"]]
    sheet.table(4, columns, rows, "prices")
    sheet.raw.freeze_panes(6, 2)


def _price_row(c: Context, period: str, b: Mapping[str, Any]) -> list[Any]:
    price, reference = b["price"], b["price"]["reference"]
    gain, low_high = b["plus_1_percent"] or {}, b["price_range"]
    following = b["next_binding"]
    named = [
        c.short(reference["sku"]) if reference["sku"] else "",
        c.title(reference["model"]) if reference["model"] else "",
    ]
    return [
        period, b["title"], b["resource"], b["stage"], b["region"], b["utilisation"], b["capacity"], price["native"],
        *low_high, price["unit"], price["lasting"], b["rent"], price["usd_per_gpu_hour"], price["usd_per_mtoken"],
        price["usd_per_task"], *named, reference["task"] or "", gain.get("finished"), gain.get("energised"),
        c.title(following["resource"]) if following["resource"] else "", following["at_capacity_change"],
    ]  # fmt: skip


def hours_sheet(book: Book, c: Context) -> None:
    """Owner cost, scarcity and both together by product and period, with the 90 % band."""
    held = c.quantity("owner_usd_per_gpu_hour")
    if not len(held):
        return
    note = "USD of the period. Owner cost rests on observed purchase prices; scarcity is that of racks and power."
    sheet = book.sheet("Hours", "Cost of an accelerator-hour by product and period", note, "#6699CC")
    unit = "USD/sold GPU-hour"
    columns = [Column("Period", "", 10), Column("Product", "", 26), Column("Id", "", 12), Column("Region", "", 9)]
    heads = (
        "Owner cost",
        "Owner cost low",
        "Owner cost high",
        "Scarcity",
        "With scarcity",
        "With scarcity low",
        "With scarcity high",
    )
    columns += [Column(head, unit, 16, "solver") for head in heads]
    names = ("owner_usd_per_gpu_hour", "scarcity_usd_per_gpu_hour", "usd_per_gpu_hour")
    owner, scarcity, full = ({(r["sku"], r["period"]): r for r in c.quantity(n).to_dict("records")} for n in names)
    rows = []
    for key in sorted(owner, key=lambda k: (k[1], k[0])):
        mine, both = owner[key], full[key]
        values = [
            mine["value"],
            mine["low"],
            mine["high"],
            scarcity[key]["value"],
            both["value"],
            both["low"],
            both["high"],
        ]
        rows.append([key[1], c.title(key[0]), key[0], mine["region"], *values])
    sheet.table(4, columns, rows, "hours")
    sheet.raw.freeze_panes(6, 2)


def token_costs_sheet(book: Book, c: Context) -> None:
    """Cost of a million tokens by class, with the band of the output class and the check of the rate."""
    costs = [r for r in c.answer["costs"] if r["usd_per_mtoken"]["output"] is not None]
    if not costs:
        return
    note = (
        "At the hour with scarcity; band: 90 %, hour and engine together; the check compares the rate with the engine."
    )
    sheet = book.sheet("Token costs", "Cost of a million tokens by class, product and period", note, "#6699CC")
    unit = "USD/million tokens"
    columns = [Column("Period", "", 10), Column("Model", "", 18), Column("Product", "", 22)]
    columns += [Column("Hour", "USD/sold GPU-hour", 14, "solver")]
    heads = ("Uncached input", "Cache write", "Cache read", "Output", "Output low", "Output high")
    columns += [Column(head, unit, 14, "solver") for head in heads]
    columns += [Column("Check of the rate", "", 90)]
    rows = [
        [r["period"], c.title(r["model"]), c.short(r["sku"]), r["usd_per_gpu_hour"],
         *(r["usd_per_mtoken"][k] for k in _CLASSES), r["low"], r["high"], r["check"]]
        for r in costs
    ]  # fmt: skip
    sheet.table(4, columns, rows, "token_costs")
    sheet.raw.freeze_panes(6, 3)


def tasks_sheet(book: Book, c: Context) -> None:
    """Cost of a verified task by model, product and period."""
    if not c.answer["tasks"]:
        return
    note = "Failed runs, tools, review by people and waiting included; 90 % band."
    sheet = book.sheet("Tasks", "Cost of a verified task", note, "#6699CC")
    columns = [Column("Period", "", 10), Column("Task", "", 12), Column("Model", "", 18), Column("Product", "", 22)]
    columns += [Column(head, "USD/verified task", 16, "solver") for head in ("Cost", "Low", "High")]
    rows = [
        [
            r["period"],
            r["task"],
            c.title(r["model"]),
            c.short(r["sku"]),
            r["usd_per_verified_task"],
            r["low"],
            r["high"],
        ]
        for r in c.answer["tasks"]
    ]
    sheet.table(4, columns, rows, "tasks")
    sheet.raw.freeze_panes(6, 4)
