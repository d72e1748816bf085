"""An owner's hour as live formulas, one column a product, tied to the run.

Inputs are those of the owner cost of each product on the day of the run; the optimum itself cannot run in a sheet, so
rents, fleets and engine rates stand as values of the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reports.workbook_formula import FIRST, Grid, Line, write_grid
from reports.workbook_palette import PARTS

if TYPE_CHECKING:
    from reports.context import Context
    from reports.workbook_style import Book, Sheet

__all__ = ["CLASSES", "CostSheet", "Owner", "Tie", "costs_sheet", "heads", "owner_columns"]

MOST_PRODUCTS = 12
CLASSES = ("uncached_input", "cache_write", "cache_read", "output")

COST_INPUTS = (
    Line("it_usd", "Accelerator with its share of the server", "USD", style="input"),
    Line("network_usd", "Share of switches and cables", "USD", style="input"),
    Line("facility_usd", "Share of the building", "USD", style="input"),
    Line("rate", "Cost of capital", "1/year", style="input"),
    Line("it_life", "Life of equipment", "years", style="input"),
    Line("facility_life", "Life of the building", "years", style="input"),
    Line("residual_share", "Resale value at the end of life", "share of price", style="input"),
    Line("delivery", "Delivery and installation, paid and idle", "months", style="input"),
    Line("construction", "Construction, paid evenly", "months", style="input"),
    Line("tax_rate", "Income tax rate", "fraction", style="input"),
    Line("tax_life", "Tax life", "years", note="0: expensed at once", style="input"),
    Line("spares", "Spares", "share of hardware", style="input"),
    Line("failure_rate", "Permanent failures", "1/year", style="input"),
    Line("repair", "Cost of a repair", "share of price", style="input"),
    Line("insurance_share", "Insurance", "share of capital/year", style="input"),
    Line("maintenance_usd", "Maintenance", "USD/year", style="input"),
    Line("staff_usd", "Staff", "USD/year", style="input"),
    Line("busy_kw", "Draw while computing", "kW IT", style="input"),
    Line("idle_kw", "Draw while idle", "kW IT", style="input"),
    Line("pue", "PUE", "facility/IT watts", style="input"),
    Line("electricity_price", "Electricity price", "USD/kWh", style="input"),
    Line("sold", "Sold hours", "share of installed", style="input"),
    Line("scheduled", "Hours with a job", "share of sold", style="input"),
    Line("healthy", "Hours without a fault", "share of scheduled", style="input"),
    Line("busy", "Hours computing", "share of healthy", style="input"),
    Line("hours_per_year", "Hours of a year", "hours", style="input"),
)
#: Name of an input in the run where the line of the grid has a shorter one.
_STORED = {
    "rate": "rate_per_year", "it_life": "it_life_years", "facility_life": "facility_life_years",
    "residual_share": "it_residual_share", "delivery": "delivery_months", "construction": "construction_months",
    "tax_life": "tax_life_years", "spares": "spares_share", "failure_rate": "failure_rate_per_year",
    "repair": "repair_share", "insurance_share": "insurance_share_per_year",
    "maintenance_usd": "maintenance_usd_per_year", "staff_usd": "staff_usd_per_year",
    "electricity_price": "electricity_usd_per_kwh", "sold": "use.sold", "scheduled": "use.scheduled",
    "healthy": "use.healthy", "busy": "use.busy",
}  # fmt: skip
COST_WORKINGS = (
    Line("sold_hours", "Sold hours of a year", "hours", "hours_per_year*sold", "hours x sold share"),
    Line("crf", "Yearly payment for equipment", "1/year", "PMT(rate,it_life,-1)", "annuity"),
    Line("crf_building", "Yearly payment for the building", "1/year", "PMT(rate,facility_life,-1)", "annuity"),
    Line("wait", "Interest until the equipment works", "factor", "(1+rate)^(delivery/12)", "paid up front"),
    Line(
        "build",
        "Interest during construction",
        "factor",
        "IF(rate*construction>0,((1+rate)^(construction/12)-1)/(LN(1+rate)*construction/12),1)",
        "spent evenly",
    ),
    Line(
        "gross_up",
        "Income tax on the charge",
        "factor",
        "IF(tax_life>0,(1-tax_rate/(tax_life*PMT(rate,tax_life,-1)))/(1-tax_rate),1)",
        "(1 - T z)/(1 - T)",
    ),
    Line("hardware", "Hardware with spares", "USD", "(it_usd+network_usd)*(1+spares)", "price x (1 + spares)"),
    Line("computing", "Share of installed hours computing", "fraction", "sold*scheduled*healthy*busy", "use chain"),
)
COST_BARS = (
    Line("equipment", "Equipment", "USD/sold hour", "it_usd*crf/sold_hours"),
    Line("network", "Network", "USD/sold hour", "network_usd*crf/sold_hours"),
    Line("spares_bar", "Spares", "USD/sold hour", "(it_usd+network_usd)*spares*crf/sold_hours"),
    Line("building", "Building", "USD/sold hour", "facility_usd*crf_building/sold_hours"),
    Line(
        "interest",
        "Interest before income",
        "USD/sold hour",
        "(hardware*crf*(wait-1)+facility_usd*crf_building*(build-1))/sold_hours",
    ),
    Line(
        "residual",
        "Resale value",
        "USD/sold hour",
        "0-hardware*residual_share/(1+rate)^it_life*crf*wait/sold_hours",
    ),
    Line(
        "tax",
        "Income tax",
        "USD/sold hour",
        "(equipment+network+spares_bar+building+interest+residual)*(gross_up-1)",
    ),
    Line(
        "insurance",
        "Insurance",
        "USD/sold hour",
        "(it_usd+network_usd+facility_usd)*insurance_share/sold_hours",
    ),
    Line("maintenance", "Maintenance", "USD/sold hour", "maintenance_usd/sold_hours"),
    Line("staff", "Staff", "USD/sold hour", "staff_usd/sold_hours"),
    Line("failures", "Failures", "USD/sold hour", "it_usd*failure_rate*repair/sold_hours"),
    Line(
        "electricity",
        "Electricity",
        "USD/sold hour",
        "pue*electricity_price*(busy_kw*computing+idle_kw*(1-computing))/sold",
    ),
    Line("owner", "Owner cost", "USD/sold hour", style="total", first="equipment", last="electricity"),
    Line("scarcity", "Scarcity of racks and power", "USD/sold hour", note="from the optimum", style="solver"),
    Line("full", "Cost with scarcity", "USD/sold hour", "owner+scarcity", style="export_total"),
    Line("owner_run", "Owner cost in the run", "USD/sold hour", note="from the run", style="solver"),
    Line("owner_low", "Low end of its 90 % band", "USD/sold hour", note="from the run", style="solver"),
    Line("owner_high", "High end of its 90 % band", "USD/sold hour", note="from the run", style="solver"),
    Line("full_run", "Cost with scarcity in the run", "USD/sold hour", note="from the run", style="solver"),
)


@dataclass(frozen=True)
class Tie:
    """A check of the workbook: two cells that must agree, relative to the second."""

    what: str
    left: str
    right: str
    left_value: float
    right_value: float
    tolerance: float = 1e-9


@dataclass
class CostSheet:
    """The products in the columns of the live sheets, the grid of their hours, and the ties to check."""

    skus: list[str]
    grid: Grid
    ties: list[Tie]


@dataclass(frozen=True)
class Owner:
    """A product and the inputs of its owner cost now, by the names of `scenarios.report_tables_costs`."""

    sku: str
    inputs: Mapping[str, float]


def owner_columns(c: Context) -> list[Owner]:
    """Inputs of the owner cost of the products priced now: the reference first, then those with most of the fleet.

    They are those that the run stored; a run without them has no live sheets.
    """
    table = c.table("cost_inputs")
    if table is None:
        return []
    here = table[table["period"] == c.now]
    inputs = {str(sku): dict(zip(rows["input"], rows["value"], strict=True)) for sku, rows in here.groupby("sku")}
    fleet = c.quantity("fleet")
    sizes = fleet[fleet["period"] == c.now].groupby("sku")["value"].sum().sort_values(ascending=False)
    order = dict.fromkeys([*([c.reference_sku] if c.reference_sku else []), *sizes.index, *inputs])
    return [Owner(sku, inputs[sku]) for sku in order if sku in inputs][:MOST_PRODUCTS]


def _cost_values(owner: Owner) -> dict[str, float]:
    """Inputs of the cost grid, USD and years."""
    return {line.key: owner.inputs[_STORED.get(line.key, line.key)] for line in COST_INPUTS}


def _run_values(c: Context, sku: str) -> dict[str, float]:
    found = {
        key: c.value_at(quantity, sku, c.now)
        for key, quantity in (
            ("owner_run", "owner_usd_per_gpu_hour"),
            ("scarcity", "scarcity_usd_per_gpu_hour"),
            ("full_run", "usd_per_gpu_hour"),
        )
    }
    values = {key: float(row["value"]) for key, row in found.items() if row is not None}
    owner = found["owner_run"]
    assert owner is not None
    return values | {"owner_low": float(owner["low"]), "owner_high": float(owner["high"])}


def heads(sheet: Sheet, row: int, c: Context, skus: list[str], first: str) -> None:
    """Header of a grid: label, unit, explanation, one product a column."""
    sheet.text(row, 0, first, "header")
    sheet.text(row, 1, "Unit", "header")
    sheet.text(row, 2, "How", "header")
    for index, sku in enumerate(skus):
        sheet.text(row, FIRST + index, c.short(sku), "header_right")
    sheet.height(row, [(c.short(sku), 11) for sku in skus])


def costs_sheet(book: Book, c: Context, owners: list[Owner]) -> CostSheet:
    """The owner's hour as a waterfall of live formulas, one column a product."""
    note = f"Bought in {c.now}; change a yellow cell and the hour follows. Hatched cells come from the run."
    sheet = book.sheet("Costs", f"Cost of a sold accelerator-hour, {c.now}", note, "workings")
    skus = [o.sku for o in owners]
    heads(sheet, 4, c, skus, "Line")
    parts = (("Inputs", COST_INPUTS), ("Workings", COST_WORKINGS), ("Cost of a sold hour", COST_BARS))
    lines = [line for title, group in parts for line in (Line(f"# {title}", title, "", style="heading"), *group)]
    columns = [_cost_values(o) | _run_values(c, o.sku) for o in owners]
    grid = write_grid(sheet, 5, lines, columns)
    sheet.widths([38, 20, 20, *[11] * len(skus)])
    sheet.freeze(5, FIRST)
    _validate(sheet, grid, len(skus))
    ties = []
    for index, sku in enumerate(skus):
        for live, run in (("owner", "owner_run"), ("full", "full_run")):
            ends = (grid.address(live, index), grid.address(run, index))
            numbers = (grid.values[index][live], grid.values[index][run])
            ties.append(Tie(f"{c.short(sku)}: {live} cost of an hour equals the run", *ends, *numbers))
    if skus:
        _hour_chart(book, sheet, grid, len(skus), 5 + len(lines) + 1)
    return CostSheet(skus, grid, ties)


def _validate(sheet: Sheet, grid: Grid, count: int) -> None:
    """Yellow cells take numbers only, shares between 0 and 1, lives and hours above 0."""
    if not count:
        return
    for line in COST_INPUTS:
        share = line.unit.startswith(("share", "fraction"))
        positive = line.key in ("it_life", "facility_life", "hours_per_year", "sold", "scheduled", "healthy", "busy")
        rule = {"validate": "decimal", "criteria": "between", "minimum": 1e-9 if positive else 0}
        rule |= {"maximum": 1 if share else 1e12, "error_title": "Not a value"}
        rule["error_message"] = f"{line.label}: a number in {line.unit}" + (", at most 1." if share else ".")
        row = grid.rows[line.key]
        sheet.raw.data_validation(row, FIRST, row, FIRST + count - 1, rule)


def _hour_chart(book: Book, sheet: Sheet, grid: Grid, count: int, row: int) -> None:
    chart = book.chart({"type": "bar", "subtype": "stacked"})
    bars = [line for line in COST_BARS if not line.first and line.style != "solver" and line.key != "full"]
    for line, colour in zip([*bars, _line("scarcity")], PARTS, strict=True):
        here = grid.rows[line.key]
        if not any(abs(values[line.key]) > 1e-12 for values in grid.values):
            continue
        chart.add_series(
            {
                "name": [sheet.name, here, 0],
                "categories": [sheet.name, 4, FIRST, 4, FIRST + count - 1],
                "values": [sheet.name, here, FIRST, here, FIRST + count - 1],
                "fill": {"color": colour},
                "gap": 40,
            }
        )
    chart.set_title({"name": "What makes up a sold accelerator-hour", "name_font": {"size": 12}})
    chart.set_x_axis({"name": "USD per sold GPU-hour", "num_format": "0.00", "major_gridlines": {"visible": True}})
    chart.set_y_axis({"reverse": True})
    chart.set_size({"width": 900, "height": 120 + 34 * count})
    sheet.break_before(row)
    sheet.raw.insert_chart(row, 0, chart, {"description": "Stacked bars: parts of the cost of an hour by product"})


def _line(key: str) -> Line:
    return next(line for line in COST_BARS if line.key == key)
