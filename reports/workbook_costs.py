"""Live cost sheets of the workbook: watts, an owner's hour, and token classes, in formulas that tie to the run.

Inputs are those of the owner cost of each product on the day of the run; the optimum itself cannot run in a sheet, so
rents, fleets and engine rates stand as values of the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reports.workbook_formula import FIRST, Grid, Line, write_grid

if TYPE_CHECKING:
    from reports.context import Context
    from reports.workbook_style import Book, Sheet

__all__ = ["CostSheet", "Tie", "costs_sheet", "owner_columns", "power_sheet", "tokens_sheet"]

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
    Line("full", "Cost with scarcity", "USD/sold hour", "owner+scarcity", style="total"),
    Line("owner_run", "Owner cost in the run", "USD/sold hour", note="from the run", style="solver"),
    Line("owner_low", "Low end of its 90 % band", "USD/sold hour", note="from the run", style="solver"),
    Line("owner_high", "High end of its 90 % band", "USD/sold hour", note="from the run", style="solver"),
    Line("full_run", "Cost with scarcity in the run", "USD/sold hour", note="from the run", style="solver"),
)
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
class _Owner:
    sku: str
    inputs: Any


def owner_columns(c: Context) -> list[_Owner]:
    """Inputs of the owner cost of the products priced now: the reference first, then those with most of the fleet.

    A product whose inputs no longer give the run's cost (facts changed since) is left out; the Limits sheet says so.
    """
    from econ.chain import CostChoice, hour_cost
    from scenarios.costing import middle_of

    rows = c.quantity("owner_usd_per_gpu_hour")
    here = rows[rows["period"] == c.now].set_index("sku")
    fleet = c.quantity("fleet")
    sizes = fleet[fleet["period"] == c.now].groupby("sku")["value"].sum().sort_values(ascending=False)
    order = dict.fromkeys([*([c.reference_sku] if c.reference_sku else []), *sizes.index, *here.index])
    out = []
    for sku in [s for s in order if s in here.index][:MOST_PRODUCTS]:
        try:
            hour = hour_cost(CostChoice(sku, c.now, middle_of(c.now), region=str(here.loc[sku, "region"])))
        except ValueError:
            continue
        run_value = float(here.loc[sku, "value"])
        if hour.inputs is not None and abs(hour.usd - run_value) <= 1e-9 * run_value:
            out.append(_Owner(sku, hour.inputs))
    return out


def _cost_values(owner: _Owner) -> dict[str, float]:
    """Inputs of the cost grid, USD and years."""
    i = owner.inputs.inputs
    values = {
        "it_usd": i.it_usd, "network_usd": i.network_usd, "facility_usd": i.facility_usd, "rate": i.rate_per_year,
        "it_life": i.it_life_years, "facility_life": i.facility_life_years, "residual_share": i.it_residual_share,
        "delivery": i.delivery_months, "construction": i.construction_months, "tax_rate": i.tax_rate,
        "tax_life": i.tax_life_years, "spares": i.spares_share, "failure_rate": i.failure_rate_per_year,
        "repair": i.repair_share, "insurance_share": i.insurance_share_per_year,
        "maintenance_usd": i.maintenance_usd_per_year, "staff_usd": i.staff_usd_per_year, "busy_kw": i.busy_kw,
        "idle_kw": i.idle_kw, "pue": i.pue, "electricity_price": i.electricity_usd_per_kwh, "sold": i.use.sold,
        "scheduled": i.use.scheduled, "healthy": i.use.healthy, "busy": i.use.busy, "hours_per_year": i.hours_per_year,
    }  # fmt: skip
    return {name: float(value) for name, value in values.items()}


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


def _heads(sheet: Sheet, row: int, c: Context, skus: list[str], first: str) -> None:
    sheet.text(row, 0, first, "header")
    sheet.text(row, 1, "Unit", "header")
    sheet.text(row, 2, "How", "header")
    for index, sku in enumerate(skus):
        sheet.text(row, FIRST + index, c.short(sku), "header_right")


def costs_sheet(book: Book, c: Context, owners: list[_Owner]) -> CostSheet:
    """The owner's hour as a waterfall of live formulas, one column a product."""
    note = f"Bought in {c.now}; change a yellow cell and the hour follows. Hatched cells come from the run."
    sheet = book.sheet("Costs", f"Cost of a sold accelerator-hour, {c.now}", note, "#117733")
    skus = [o.sku for o in owners]
    _heads(sheet, 4, c, skus, "Line")
    parts = (("Inputs", COST_INPUTS), ("Workings", COST_WORKINGS), ("Cost of a sold hour", COST_BARS))
    lines = [line for title, group in parts for line in (Line(f"# {title}", title, "", style="heading"), *group)]
    columns = [_cost_values(o) | _run_values(c, o.sku) for o in owners]
    grid = write_grid(sheet, 5, lines, columns)
    sheet.widths([40, 20, 22, *[13] * len(skus)])
    sheet.raw.freeze_panes(5, FIRST)
    ties = []
    for index, sku in enumerate(skus):
        for live, run in (("owner", "owner_run"), ("full", "full_run")):
            ends = (grid.address(live, index), grid.address(run, index))
            numbers = (grid.values[index][live], grid.values[index][run])
            ties.append(Tie(f"{c.short(sku)}: {live} cost of an hour equals the run", *ends, *numbers))
    if skus:
        _hour_chart(book, sheet, grid, len(skus), 5 + len(lines) + 1)
    return CostSheet(skus, grid, ties)


def _hour_chart(book: Book, sheet: Sheet, grid: Grid, count: int, row: int) -> None:
    chart = book.chart({"type": "bar", "subtype": "stacked"})
    colours = ("#332288", "#6699CC", "#88CCEE", "#117733", "#44AA99", "#DDCC77", "#999933", "#CC6677", "#882255",
               "#AA4499", "#661100", "#777777", "#BBBBBB")  # fmt: skip
    bars = [line for line in COST_BARS if not line.first and line.style != "solver" and line.key != "full"]
    for line, colour in zip([*bars, _line("scarcity")], colours, strict=False):
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
    sheet.raw.insert_chart(row, 0, chart, {"description": "Stacked bars: parts of the cost of an hour by product"})


def _line(key: str) -> Line:
    return next(line for line in COST_BARS if line.key == key)


def power_sheet(book: Book, c: Context, owners: list[_Owner], results: Mapping[tuple[str, str, str], int]) -> list[Tie]:
    """Chip to planning watts by product, and the fleet's planning power as formulas over the run's fleet."""
    from supply.facts import catalog

    note = "Four different watts: chip, chassis, facility, planning. The fleet block multiplies the run's fleet."
    sheet = book.sheet("Power", "Power of an accelerator and of the fleet", note, "#117733")
    headroom = catalog()["power_headroom_inferencex_2026"].number
    skus, columns = [], []
    for owner in owners:
        pue = float(owner.inputs.inputs.pue)
        chip = _chip_w(owner)
        if chip is None:
            continue
        it_w = 1000 * owner.inputs.planning_kw / (pue * (1 + headroom))
        skus.append(owner.sku)
        columns.append({"chip_w": chip, "it_w": it_w, "pue": pue, "headroom": headroom})
    _heads(sheet, 4, c, skus, f"One accelerator, {c.now}")
    write_grid(sheet, 5, POWER_CHAIN, columns)
    ties = _fleet_power(book, sheet, c, 5 + len(POWER_CHAIN) + 2, results)
    sheet.widths([40, 20, 22, *[12] * max(len(skus), len(c.periods))])
    sheet.raw.freeze_panes(5, FIRST)
    return ties


def _chip_w(owner: _Owner) -> float | None:
    """Rated watts of the accelerator alone, None where no record has them."""
    from econ.performance.hardware import hardware

    for name in (owner.sku, owner.inputs.title):
        try:
            return float(hardware(name).tdp_w)
        except ValueError:
            continue
    return None


def _fleet_power(
    book: Book, sheet: Sheet, c: Context, row: int, results: Mapping[tuple[str, str, str], int]
) -> list[Tie]:
    """Fleet x planning kW / 1000 by product and region, summed and tied to the run's MW."""
    from reports.workbook_results import TIME
    from reports.workbook_style import cell

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
    from reports.workbook_results import TIME

    chart = book.chart({"type": "line"})
    last = FIRST + len(c.periods) - 1
    chart.add_series(
        {
            "name": [sheet.name, total_row, 0],
            "categories": ["Results", 5, TIME, 5, TIME + len(c.periods) - 1],
            "values": [sheet.name, total_row, FIRST, total_row, last],
            "line": {"color": "#882255", "width": 2.25},
        }
    )
    chart.set_title({"name": "Planning power of the fleet", "name_font": {"size": 12}})
    chart.set_y_axis({"name": "MW planning", "num_format": "#,##0", "min": 0})
    chart.set_size({"width": 900, "height": 300})
    chart.set_legend({"none": True})
    sheet.raw.insert_chart(row, 0, chart, {"description": "Line: planning power of the fleet by period"})


def tokens_sheet(book: Book, c: Context, costs: CostSheet) -> list[Tie]:
    """Token classes as formulas: engine seconds x the price of an hour; the classes add up to the hour."""
    from econ.chain import MODEL_CHOICES
    from econ.token_cost import workload

    note = (
        "Seconds come from the per-token engine; the price of an hour from the Costs sheet, so that both move together."
    )
    sheet = book.sheet("Tokens", f"Cost of a million tokens, {c.now}", note, "#117733")
    labels = {choice.name: choice for choice in MODEL_CHOICES.values()}
    rows = [
        r
        for r in c.answer["costs"]
        if r["period"] == c.now and r["sku"] in costs.skus and r["usd_per_mtoken"]["output"]
    ]
    columns, links, heads = [], [], []
    for row in rows:
        sold_tokens = c.value_at("tokens_per_sold_hour", f"{row['model']}/{row['sku']}", c.now)
        choice = labels.get(row["model"])
        if sold_tokens is None or choice is None:
            continue
        load = workload(choice.workload) if isinstance(choice.workload, str) else choice.workload
        usage = load.usage
        values = {f"s_{k}": row["usd_per_mtoken"][k] / row["usd_per_gpu_hour"] * 3600 for k in CLASSES}
        values |= {f"run_{k}": row["usd_per_mtoken"][k] for k in CLASSES}
        values |= {"v_uncached_input": usage.uncached_input, "v_cache_write": usage.cache_write + usage.cache_write_1h}
        values |= {
            "v_cache_read": usage.cache_read,
            "v_output": usage.output,
            "sold_tokens": float(sold_tokens["value"]),
        }
        index = costs.skus.index(row["sku"])
        values["hour"] = costs.grid.values[index]["full"]
        columns.append({k: float(v) for k, v in values.items()})
        links.append({"hour": costs.grid.address("full", index)})
        heads.append(f"{c.title(row['model'])} on {c.short(row['sku'])}")
    lines = _token_lines()
    for k, head in enumerate(("Line", "Unit", "How", *heads)):
        sheet.text(4, k, head, "header" if k < FIRST else "header_right")
    grid = write_grid(sheet, 5, lines, columns, links)
    sheet.widths([40, 24, 26, *[15] * len(heads)])
    sheet.raw.freeze_panes(5, FIRST)
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
