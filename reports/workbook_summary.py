"""The first sheet that a reader opens: the answer in words, years and periods as formulas over Results, charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reports.workbook_palette import GRID, OTHER, PAPER
from reports.workbook_results import TIME
from reports.workbook_style import cell

if TYPE_CHECKING:
    from reports.context import Context
    from reports.workbook_style import Book, Sheet

__all__ = ["summary_sheet"]

#: Label, quantity, unit, and whether a year is the sum of its periods or the level at its end.
_LINES = (
    ("Accelerators finished", "finished", "accelerators", "sum"),
    ("Accelerators energised", "energised", "accelerators", "sum"),
    ("Energised, in H100-equivalents", "energised_h100e", "H100-equivalents", "sum"),
    ("Fleet at the end", "fleet", "accelerators", "last"),
    ("Planning power of the fleet at the end", "fleet_mw", "MW planning", "last"),
    ("Stranded accelerators at the end", "stranded", "accelerators", "last"),
)
_CHART_ROWS = 19
_MOST_PRODUCTS = 14


@dataclass(frozen=True)
class _Line:
    """A line over Results: what it sums (quantity, subject, stage; empty: all), and its values by period."""

    label: str
    quantity: str
    subject: str
    stage: str
    unit: str
    values: list[float]


def summary_sheet(book: Book, c: Context, lines: Sequence[tuple[str, str]], warnings: Sequence[str], last: int) -> None:
    """Answer, years, charts, then totals by period, product and stage; `last` is the last row of Results."""
    sheet = book.sheets["Summary"]
    sheet.widths([38, 17, 14, 11, 11, 18, *[12] * max(8, len(c.periods))])
    row = 4
    for warning in warnings:
        sheet.paragraph(row, 0, TIME + 5, warning, "warn", 190)
        row += 1
    for label, text in lines:
        sheet.text(row, 0, label, "bold_wrap")
        sheet.paragraph(row, 1, TIME + 5, text, per_line=140)
        row += 1
    totals = _total_lines(c)
    charts_row = row + 1
    years_row = charts_row + _CHART_ROWS + 1
    first = years_row + len(totals) + 3
    _period_block(sheet, c, first, "Total over products and regions", totals, last)
    _by_year(sheet, c, years_row, first + 1)
    products = _product_lines(c)
    products_row = first + len(totals) + 3
    _period_block(sheet, c, products_row, f"{products[0].quantity.capitalize()} by product", products, last)
    stages = _stage_lines(c)
    stages_row = products_row + len(products) + 3
    if stages:
        _period_block(sheet, c, stages_row, "Scarcity value of capacities by stage", stages, last)
    _charts(book, sheet, c, charts_row, (products, products_row + 1), (stages, stages_row + 1))
    sheet.break_before(first)
    sheet.freeze(4, 1)


def _held(c: Context) -> list[tuple[str, str, str, str]]:
    return [line for line in _LINES if len(c.quantity(line[1]))]


def _sums(c: Context, rows: Any) -> list[float]:
    by = rows.groupby("period")["value"].sum()
    return [float(by.get(p, 0.0)) for p in c.periods]


def _total_lines(c: Context) -> list[_Line]:
    return [_Line(label, q, "", "", unit, _sums(c, c.quantity(q))) for label, q, unit, _ in _held(c)]


def _product_lines(c: Context) -> list[_Line]:
    quantity = "energised" if c.has_fleet else "finished"
    rows = c.quantity(quantity)
    return [
        _Line(c.short(sku), quantity, sku, "", "accelerators", _sums(c, rows[rows["subject"] == sku]))
        for sku in (c.skus_by_size or list(rows["subject"].unique()))[:_MOST_PRODUCTS]
    ]


def _stage_lines(c: Context) -> list[_Line]:
    from reports.figures.style import STAGE_ORDER
    from reports.wording import stage_head

    rows = c.quantity("rent")
    unit = "USD, in millions" if c.has_money else ""
    known = [*STAGE_ORDER, *sorted(set(rows["stage"]) - set(STAGE_ORDER))]
    lines = [
        _Line(stage_head(s), "rent", "", s, unit or str(mine["unit"].iloc[0]), _sums(c, mine))
        for s in known
        if len(mine := rows[rows["stage"] == s])
    ]
    return [line for line in lines if any(line.values)]


def _period_block(sheet: Sheet, c: Context, row: int, title: str, lines: Sequence[_Line], last: int) -> None:
    """A header and one SUMIFS a cell; the criteria stand in the columns in which Results holds them."""
    for k, head in enumerate((title, "Quantity", "Subject", "", "Stage", "Unit", *c.periods)):
        sheet.text(row, k, head, "header" if k < TIME else "header_right")
    for here, line in enumerate(lines, row + 1):
        sheet.text(here, 0, line.label)
        for column, word in ((1, line.quantity), (2, line.subject), (4, line.stage), (5, line.unit)):
            sheet.text(here, column, word, "unit")
        wanted = [(0, 1), *([(1, 2)] if line.subject else []), *([(4, 4)] if line.stage else [])]
        rules = ",".join(
            f"{cell(6, held, 'Results', fixed='rc')}:{cell(last, held, fixed='rc')},{cell(here, mine, fixed='c')}"
            for held, mine in wanted
        )
        for t, value in enumerate(line.values):
            span = f"{cell(6, TIME + t, 'Results', fixed='r')}:{cell(last, TIME + t, fixed='r')}"
            shown = "#,##0,," if line.quantity == "rent" and c.has_money else "#,##0"
            sheet.formula(here, TIME + t, f"SUMIFS({span},{rules})", value, "counter", shown)


def _by_year(sheet: Sheet, c: Context, row: int, first: int) -> None:
    """Year totals of flows, levels at the end of the year of stocks, over the period block that starts at `first`."""
    for k, head in enumerate(("By year", "Quantity", "A year is", "", "", "Unit", *c.years)):
        sheet.text(row, k, head, "header" if k < TIME else "header_right")
    spans = {y: [t for t, p in enumerate(c.periods) if p.startswith(y)] for y in c.years}
    for offset, (label, quantity, unit, how) in enumerate(_held(c)):
        values = _sums(c, c.quantity(quantity))
        here = row + 1 + offset
        sheet.text(here, 0, label)
        sheet.text(here, 1, quantity, "unit")
        sheet.text(here, 2, "sum of periods" if how == "sum" else "its last period", "unit")
        sheet.text(here, 5, unit, "unit")
        for k, year in enumerate(c.years):
            ends = [cell(first + offset, TIME + t) for t in (spans[year][0], spans[year][-1])]
            total = sum(values[t] for t in spans[year]) if how == "sum" else values[spans[year][-1]]
            made = f"SUM({ends[0]}:{ends[1]})" if how == "sum" else ends[1]
            sheet.formula(here, TIME + k, made, total, shown="#,##0")


Block = tuple[Sequence[_Line], int]


def _charts(book: Book, sheet: Sheet, c: Context, row: int, products: Block, stages: Block) -> None:
    """Accelerators by product, and scarcity value by stage, over the blocks of this sheet."""
    from reports.figures.style import STAGE_COLOURS, colour_of

    lines, first = products
    colours = [colour_of(line.subject) for line in lines]
    quantity = lines[0].quantity
    large = max((max(line.values) for line in lines), default=0.0) >= 1e6
    axis = ("million accelerators a period", "0.0,,") if large else ("accelerators a period", "#,##0")
    made = _stack(book, sheet, c, first, colours, f"Accelerators {quantity} by product", axis, 780)
    what = f"Stacked columns: accelerators {quantity} by product and period"
    sheet.raw.insert_chart(row, 0, made, {"description": what})
    lines, first = stages
    if not lines:
        return
    axis = ("billion USD a period", "#,##0.0,,,") if c.has_money else ("price x capacity", "#,##0")
    colours = [STAGE_COLOURS.get(line.stage, OTHER) for line in lines]
    made = _stack(book, sheet, c, first, colours, "Scarcity value of capacities by stage", axis, 540)
    what = "Stacked columns: scarcity value of capacities by stage and period"
    sheet.raw.insert_chart(row, TIME, made, {"description": what})


def _stack(
    book: Book,
    sheet: Sheet,
    c: Context,
    first: int,
    colours: Sequence[str],
    title: str,
    axis: tuple[str, str],
    width: int,
) -> Any:
    end = TIME + len(c.periods) - 1
    chart = book.chart({"type": "column", "subtype": "stacked"})
    for offset, colour in enumerate(colours):
        series = {
            "name": [sheet.name, first + offset, 0],
            "categories": [sheet.name, first - 1, TIME, first - 1, end],
            "values": [sheet.name, first + offset, TIME, first + offset, end],
        }
        chart.add_series({**series, "fill": {"color": colour}, "border": {"color": PAPER, "width": 0.25}, "gap": 30})
    chart.set_title({"name": title, "name_font": {"size": 12}})
    chart.set_x_axis({"num_font": {"size": 8}})
    chart.set_y_axis(
        {"name": axis[0], "num_format": axis[1], "major_gridlines": {"visible": True, "line": {"color": GRID}}}
    )
    chart.set_size({"width": width, "height": 370})
    return chart
