"""Result sheets of the workbook: what came out of the run, on one time axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reports.workbook_style import Column

if TYPE_CHECKING:
    from reports.context import Context
    from reports.workbook_style import Book

__all__ = ["TIME", "hours_sheet", "prices_sheet", "results_sheet", "tasks_sheet", "token_costs_sheet"]

#: First column of the periods, the same on every sheet with a time axis.
TIME = 6
_HEADS = ("Quantity", "Subject", "Name", "Region", "Stage", "Unit")
_WIDE = (
    "finished", "energised", "energised_h100e", "fleet", "fleet_mw", "stranded", "stranded_mw", "built_mw",
    "without_power_rows_mw", "without_chip_rows_mw", "power_limited_mw", "chip_limited_mw", "capacity", "used",
    "utilisation", "price", "lasting_price", "rent", "starts", "stock", "built", "objective",
)  # fmt: skip
_CLASSES = ("uncached_input", "cache_write", "cache_read", "output")
Rows = dict[tuple[str, str, str], int]


def results_sheet(book: Book, c: Context) -> tuple[Rows, int]:
    """Quantities by period; returns the row of (quantity, subject, region) and the last row of the table."""
    note = (
        "Solver output of the run, accelerators per period unless the unit says otherwise. Lines of zeros are left out."
    )
    sheet = book.sheet("Results", "Results by period", note, "results")
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
    widths = (22, 29, 38, 9, 11, 20)
    columns = [Column(head, "", width) for head, width in zip(_HEADS, widths, strict=True)]
    columns += [Column(period, "", 15, "solver") for period in c.periods]
    sheet.table(4, columns, data, "results")
    sheet.freeze(6, 3)
    return rows, 5 + max(1, len(data))


def prices_sheet(book: Book, c: Context) -> None:
    """Every binding limit by period: what one more unit is worth, in its own unit and in the reader's three."""
    note = (
        "Value to the marginal user at fixed product values, not a market price. Low and high: gain of +h, loss of -h."
    )
    sheet = book.sheet("Prices", "Prices of the limits that bind", note, "results")
    gained = "accelerators, all periods"
    columns = [
        Column("Period", "", 10), Column("Limit", "", 34), Column("Id", "", 20), Column("Stage", "", 11),
        Column("Region", "", 9), Column("Use", "fraction", 9, "solver", "0%"),
        Column("Capacity", "unit/period", 14, "solver"),
        Column("Price, this period only", "see Unit", 14, "solver"), Column("Price low", "see Unit", 14, "solver"),
        Column("Price high", "see Unit", 14, "solver"), Column("Unit", "", 16),
        Column("Lasting price", "see Unit", 14, "solver"),
        Column("Rent", "price x capacity", 18, "solver"), Column("Per GPU-hour", "USD/sold GPU-hour", 14, "solver"),
        Column("Per million tokens", "USD/million output tokens", 20, "solver"),
        Column("Per task", "USD/task", 14, "solver"),
        Column("Reference product", "", 16), Column("Reference model", "", 16), Column("Reference task", "", 12),
        Column("More finished with 1 % more of the limit", gained, 18, "solver"),
        Column("More energised with 1 % more of the limit", gained, 18, "solver"),
        Column("Next limit", "", 34), Column("Next limit binds at", "rise of capacity", 14, "solver", "0.0%"),
    ]  # fmt: skip
    rows = [_price_row(c, period["period"], b) for period in c.answer["periods"] for b in period["binding"]]
    sheet.table(4, columns, rows, "prices")
    sheet.freeze(6, 2)


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
    sheet = book.sheet("Hours", "Cost of an accelerator-hour by product and period", note, "results")
    unit = "USD/sold GPU-hour"
    columns = [Column("Period", "", 10), Column("Product", "", 31), Column("Id", "", 12), Column("Region", "", 9)]
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
    sheet.freeze(6, 2)


def token_costs_sheet(book: Book, c: Context) -> None:
    """Cost of a million tokens by class, with the band of the output class and the check of the rate."""
    costs = [r for r in c.answer["costs"] if r["usd_per_mtoken"]["output"] is not None]
    if not costs:
        return
    note = (
        "At the hour with scarcity; band: 90 %, hour and engine together; the check compares the rate with the engine."
    )
    sheet = book.sheet("Token costs", "Cost of a million tokens by class, product and period", note, "results")
    unit = "USD/million tokens"
    columns = [Column("Period", "", 10), Column("Model", "", 18), Column("Product", "", 22)]
    columns += [Column("Hour", "USD/sold GPU-hour", 14, "solver")]
    heads = ("Uncached input", "Cache write", "Cache read", "Output", "Output low", "Output high")
    columns += [Column(head, unit, 16, "solver") for head in heads]
    columns += [Column("Check of the rate", "", 90)]
    rows = [
        [r["period"], c.title(r["model"]), c.short(r["sku"]), r["usd_per_gpu_hour"],
         *(r["usd_per_mtoken"][k] for k in _CLASSES), r["low"], r["high"], r["check"]]
        for r in costs
    ]  # fmt: skip
    sheet.table(4, columns, rows, "token_costs")
    sheet.freeze(6, 3)


def tasks_sheet(book: Book, c: Context) -> None:
    """Cost of a verified task by model, product and period."""
    if not c.answer["tasks"]:
        return
    note = "Failed runs, tools, review by people and waiting included; 90 % band."
    sheet = book.sheet("Tasks", "Cost of a verified task", note, "results")
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
    sheet.freeze(6, 4)
