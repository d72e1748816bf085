"""Watts as live formulas: chip to planning watts of a product, and the planning power of the run's fleet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reports.workbook_costs import Owner, Tie, heads
from reports.workbook_formula import FIRST, Line, write_grid
from reports.workbook_palette import ACCENT
from reports.workbook_results import TIME
from reports.workbook_style import cell

if TYPE_CHECKING:
    from reports.context import Context
    from reports.workbook_style import Book, Sheet

__all__ = ["power_sheet"]

POWER_CHAIN = (
    Line("chip_w", "Accelerator alone (rated)", "W chip", style="input"),
    Line("it_w", "With its share of server and rack", "W chassis", style="input"),
    Line("pue", "PUE", "facility/IT watts", style="input"),
    Line("headroom", "Headroom of a plan", "fraction", style="input"),
    Line("chassis_over_chip", "Chassis over chip", "ratio", "it_w/chip_w"),
    Line("facility_w", "At the meter of the site", "W facility", "it_w*pue", "PUE enters once"),
    Line("planning_w", "Booked from the grid", "W planning", "facility_w*(1+headroom)"),
    Line("per_gw", "Accelerators per planned gigawatt", "accelerators", "1000000000/planning_w", style="total"),
)


def power_sheet(book: Book, c: Context, owners: list[Owner], results: Mapping[tuple[str, str, str], int]) -> list[Tie]:
    """Chip to planning watts by product, and the fleet's planning power as formulas over the run's fleet."""
    note = "Four different watts: chip, chassis, facility, planning. The fleet block multiplies the run's fleet."
    sheet = book.sheet("Power", "Power of an accelerator and of the fleet", note, "workings")
    rated = [owner for owner in owners if "chip_w" in owner.inputs]
    skus, columns = [owner.sku for owner in rated], [_chain_values(owner.inputs) for owner in rated]
    heads(sheet, 4, c, skus, f"One accelerator, {c.now}")
    write_grid(sheet, 5, POWER_CHAIN, columns)
    ties = _fleet_power(book, sheet, c, 5 + len(POWER_CHAIN) + 2, results)
    sheet.widths([40, 20, 22, *[12] * max(len(skus), len(c.periods))])
    sheet.freeze(5, FIRST)
    return ties


def _chain_values(inputs: Mapping[str, float]) -> dict[str, float]:
    pue, headroom = inputs["pue"], inputs["headroom"]
    it_w = 1000 * inputs["planning_kw"] / (pue * (1 + headroom))
    return {"chip_w": inputs["chip_w"], "it_w": it_w, "pue": pue, "headroom": headroom}


def _fleet_power(
    book: Book, sheet: Sheet, c: Context, row: int, results: Mapping[tuple[str, str, str], int]
) -> list[Tie]:
    """Fleet x planning kW / 1000 by product and region, summed and tied to the run's MW."""
    fleet, held = c.quantity("fleet"), c.quantity("fleet_mw")
    watts = c.run.inputs[c.run.inputs["path"].str.endswith(".kw_planning")]
    pairs = [key for key in results if key[0] == "fleet" and (held["sku"] == key[1]).any()]
    if not pairs:
        return []
    sheet.text(row, 0, "Planning power of the fleet", "heading")
    for k, head in enumerate(("Product", "Unit", "Region", *c.periods)):
        sheet.text(row + 1, k, head, "header" if k < FIRST else "header_right")
    kw_rows: dict[str, int] = {}
    kw: dict[str, list[float]] = {}
    here = row + 2
    for sku in dict.fromkeys(key[1] for key in pairs):
        kw_rows[sku], kw[sku] = here, [_at(watts[watts["path"] == f"fleet.{sku}.kw_planning"], p) for p in c.periods]
        sheet.text(here, 0, c.short(sku))
        sheet.text(here, 1, "kW planning/accelerator", "unit")
        for t, value in enumerate(kw[sku]):
            sheet.number(here, FIRST + t, value, "input")
        here += 1
    first = here
    totals = [0.0] * len(c.periods)
    for _, sku, region in pairs:
        mine = fleet[(fleet["sku"] == sku) & (fleet["region"] == region)].set_index("period")["value"]
        sheet.text(here, 0, c.short(sku))
        sheet.text(here, 1, "MW planning", "unit")
        sheet.text(here, 2, region, "unit")
        for t, period in enumerate(c.periods):
            mw = float(mine.get(period, 0.0)) * kw[sku][t] / 1000
            totals[t] += mw
            source = cell(results["fleet", sku, region], TIME + t, "Results")
            sheet.formula(here, FIRST + t, f"{source}*{cell(kw_rows[sku], FIRST + t)}/1000", mw)
        here += 1
    ties = []
    by_period = held.groupby("period")["value"].sum()
    sheet.text(here, 0, "Planning power, all products and regions", "total")
    sheet.text(here, 1, "MW planning", "unit")
    sheet.text(here + 1, 0, "The same in the run")
    sheet.text(here + 1, 1, "MW planning", "unit")
    for t, period in enumerate(c.periods):
        column = FIRST + t
        sheet.formula(here, column, f"SUM({cell(first, column)}:{cell(here - 1, column)})", totals[t], "total")
        sheet.number(here + 1, column, float(by_period.get(period, 0.0)), "solver")
        ends = (cell(here, column, "Power"), cell(here + 1, column, "Power"))
        ties.append(Tie(f"{period}: planning MW of the fleet", *ends, totals[t], float(by_period.get(period, 0.0))))
    _power_chart(book, sheet, c, here, here + 3)
    return ties


def _at(rows: Any, period: str) -> float:
    """Value of an input in a period, 0 where it has none."""
    held = rows[(rows["period"] <= period) & (rows["to"] >= period)]
    return float(held["value"].iloc[0]) if len(held) else 0.0


def _power_chart(book: Book, sheet: Sheet, c: Context, total_row: int, row: int) -> None:
    chart = book.chart({"type": "line"})
    last = FIRST + len(c.periods) - 1
    chart.add_series(
        {
            "name": [sheet.name, total_row, 0],
            "categories": ["Results", 5, TIME, 5, TIME + len(c.periods) - 1],
            "values": [sheet.name, total_row, FIRST, total_row, last],
            "line": {"color": ACCENT, "width": 2.25},
        }
    )
    chart.set_title({"name": "Planning power of the fleet", "name_font": {"size": 12}})
    chart.set_y_axis({"name": "MW planning", "num_format": "#,##0", "min": 0})
    chart.set_size({"width": 900, "height": 300})
    chart.set_legend({"none": True})
    sheet.break_before(row)
    sheet.raw.insert_chart(row, 0, chart, {"description": "Line: planning power of the fleet by period"})
