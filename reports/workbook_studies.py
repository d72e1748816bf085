"""Sheets of the studies that a run stored: what could overturn it, how the draws spread, how earlier forecasts did.

Numbers of the studies are values of the run; differences, hits, shares and intervals are formulas over them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reports.tables import records
from reports.workbook_costs import Tie
from reports.workbook_palette import ACCENT, GUIDE, INK, LEAST, MOST
from reports.workbook_style import Column, cell

if TYPE_CHECKING:
    import pandas as pd

    from reports.blocks import Section, Table
    from reports.context import Context
    from reports.workbook_style import Book, Sheet

__all__ = ["backtest_sheet", "sensitivity_sheet", "uncertainty_sheet"]

#: First row of the data in a sheet with a table at its top, counted from 0.
DATA = 6
MOST_BARS = 15
_Z = 1.959964


def sensitivity_sheet(book: Book, c: Context) -> list[Tie]:
    """Every weak input at both ends of its range: what it does to the headline, as a table and a tornado."""
    table = c.table("headline")
    if table is None or "energised_base" not in table:
        return []
    year = str(table["year"].iloc[0])
    note = f"Each input that is illustrative or rests on one source, moved alone over its range; headline: {year}."
    sheet = book.sheet("Sensitivity", "Which inputs could overturn the answer", note, "studies")
    unit = f"accelerators energised in {year}"
    columns = [
        Column("Input", "", 46), Column("Kind", "", 13), Column("Unit", "", 18),
        Column("Low", "see Unit", 14, "solver"), Column("Base", "see Unit", 14, "solver"),
        Column("High", "see Unit", 14, "solver"),
        *(Column(f"Energised, input at {k}", f"accelerators, {year}", 17, "solver") for k in ("low", "base", "high")),
        Column("Change at low", "at low - at base", 15, "number", "#,##0"),
        Column("Change at high", "at high - at base", 15, "number", "#,##0"),
        Column("Swing", "share of base", 12, "number", "0.0%"),
        Column("Costliest stage", "base", 15), Column("Stage at low", "", 15), Column("Stage at high", "", 15),
        Column("Changes it", "", 11, "number"), Column("Changes it at", "see Unit", 14, "solver"),
        Column("Why it is weak", "", 50),
    ]  # fmt: skip
    rows = [
        [r.title, r.kind, r.input_unit, r.low_input, r.base_input, r.high_input, r.energised_low, r.energised_base,
         r.energised_high, None, None, None, r.stage_base, r.stage_low, r.stage_high, None, r.flips_at, r.note]
        for r in records(table)
    ]  # fmt: skip
    sheet.table(DATA - 2, columns, rows, "sensitivity")
    for row, r in enumerate(records(table), DATA):
        _effects(sheet, row, r)
    sheet.freeze(DATA, 1)
    _tornado(book, sheet, len(rows), unit)
    flips = f"COUNTIF({cell(DATA, 15, 'Sensitivity')}:{cell(DATA + len(rows) - 1, 15)},TRUE)"
    count = float(table["flips"].sum())
    return [Tie("Sensitivity: inputs that change the scarcest stage", flips, f"{count:.0f}", count, count)]


def _effects(sheet: Sheet, row: int, r: Any) -> None:
    """Formulas of a row: change at both ends, swing, and whether the scarcest stage changes."""
    low, base, high = (cell(row, k) for k in (6, 7, 8))
    ends = [v for v in (float(r.energised_low), float(r.energised_high)) if math.isfinite(v)]
    for column, end, value in ((9, low, r.energised_low), (10, high, r.energised_high)):
        shown = value - r.energised_base if math.isfinite(value) else ""
        sheet.formula(row, column, f'IF(ISNUMBER({end}),{end}-{base},"")', shown, shown="#,##0")
    known = [*ends, float(r.energised_base)]
    swing = (max(known) - min(known)) / r.energised_base
    sheet.formula(row, 11, f"(MAX({low}:{high})-MIN({low}:{high}))/{base}", swing, shown="0.0%")
    stages = (cell(row, 12), cell(row, 13), cell(row, 14))
    changes = r.stage_base not in (r.stage_low, r.stage_high) or r.stage_low != r.stage_high
    sheet.formula(row, 15, f"OR({stages[1]}<>{stages[0]},{stages[2]}<>{stages[0]})", bool(changes))


def _tornado(book: Book, sheet: Sheet, count: int, unit: str) -> None:
    """The largest swings as bars to both sides of the base."""
    last = DATA + min(count, MOST_BARS) - 1
    chart = book.chart({"type": "bar"})
    for column, name, colour in ((9, "at the low end", LEAST), (10, "at the high end", MOST)):
        series: dict[str, Any] = {"name": name, "categories": [sheet.name, DATA, 0, last, 0]}
        series |= {"values": [sheet.name, DATA, column, last, column], "fill": {"color": colour}}
        chart.add_series({**series, "overlap": 100, "gap": 40})
    chart.set_title({"name": f"Change of {unit}", "name_font": {"size": 12}})
    chart.set_x_axis({"num_format": "#,##0", "num_font": {"size": 8}, "major_gridlines": {"visible": True}})
    chart.set_y_axis({"reverse": True, "label_position": "low", "num_font": {"size": 8}})
    chart.set_size({"width": 1000, "height": 130 + 26 * (last - DATA + 1)})
    what = "Bars: change of the headline at the low and high end of each input"
    sheet.break_before(DATA + count + 1)
    sheet.raw.insert_chart(DATA + count + 1, 0, chart, {"description": what})


def backtest_sheet(book: Book, c: Context) -> list[Tie]:
    """The scoreboard of earlier forecasts: each forecast with its band and outcome, then hits with their interval."""
    table, summary = c.table("backtest"), c.table("backtest_summary")
    if table is None or summary is None:
        return []
    note = "Forecasts that knew only facts dated before the day, beside what came; hits and misses alike."
    sheet = book.sheet("Backtest", "Backtest: forecasts and outcomes", note, "studies")
    unit = "accelerators a year"
    numbers = ("Outcome", "Outcome low", "Outcome high", "Forecast", "90 % of draws low", "90 % of draws high")
    columns = [Column("Known up to", "", 13), Column("Level", "", 10), Column("What", "", 34), Column("Year", "", 8)]
    columns += [Column(head, unit, 14, "solver", "#,##0") for head in numbers]
    columns += [
        Column("Inside", "hit: TRUE", 9, "number"), Column("Forecast / outcome", "ratio", 12, "number", "0.00"),
        Column("Last value held", unit, 14, "solver", "#,##0"), Column("Nearer than last value", "", 12, "number"),
        Column("Draws", "", 8, "solver", "0"), Column("Why it missed", "", 50),
    ]  # fmt: skip
    order = table.sort_values(["origin", "level", "period", "outcome"], ascending=[True, True, True, False])
    rows = [
        [r.origin, r.level, r.title, r.period, r.outcome, r.outcome_low, r.outcome_high, r.value, r.low, r.high,
         None, None, r.naive_last, None, float(r.draws), r.reason]
        for r in records(order)
    ]  # fmt: skip
    sheet.table(DATA - 2, columns, rows, "backtest")
    for row, r in enumerate(records(order), DATA):
        outcome, forecast, low, high, held = (cell(row, k) for k in (4, 7, 8, 9, 12))
        sheet.formula(row, 10, f"AND({outcome}>={low},{outcome}<={high})", bool(r.low <= r.outcome <= r.high))
        sheet.formula(row, 11, f"{forecast}/{outcome}", r.value / r.outcome, shown="0.00")
        nearer = "" if math.isnan(r.naive_last) else bool(abs(r.value - r.outcome) < abs(r.naive_last - r.outcome))
        made = f'IF(ISNUMBER({held}),ABS({forecast}-{outcome})<ABS({held}-{outcome}),"")'
        sheet.formula(row, 13, made, nearer)
    sheet.freeze(DATA, 3)
    bad = {"type": "cell", "criteria": "==", "value": "FALSE", "format": book.style("warn")}
    sheet.raw.conditional_format(DATA, 10, DATA + len(rows) - 1, 10, bad)
    return _scores(sheet, order, summary, DATA + len(rows) + 2)


def _scores(sheet: Sheet, table: pd.DataFrame, summary: pd.DataFrame, row: int) -> list[Tie]:
    """Number, hits, coverage and its 95 % interval by origin and level, counted from the rows above."""
    heads = ("Known up to", "Level", "Yearly totals", "", "n", "Hits", "Coverage", "95 % low", "95 % high",
             "Score", "Score of last value", "Score / last")  # fmt: skip
    for k, head in enumerate(heads):
        sheet.text(row - 1, k, head, "header" if k < 4 else "header_right")
    sheet.height(row - 1, [(head, 10) for head in heads])
    first, last = DATA, DATA + len(table) - 1
    ties = []
    yearly = summary[summary["span"] == "year"].sort_values(["origin", "level"])
    for here, r in enumerate(records(yearly), row):
        sheet.text(here, 0, str(r.origin))
        sheet.text(here, 1, str(r.level))
        rules = ",".join(
            f"{cell(first, k, fixed='rc')}:{cell(last, k, fixed='rc')},{cell(here, k, fixed='c')}" for k in (0, 1)
        )
        mine = table[(table["origin"] == r.origin) & (table["level"] == r.level)]
        n, hits = float(len(mine)), float(mine["inside"].sum())
        sheet.formula(here, 4, f"COUNTIFS({rules})", n, shown="0")
        inside = f"{cell(first, 10, fixed='rc')}:{cell(last, 10, fixed='rc')},TRUE"
        sheet.formula(here, 5, f"COUNTIFS({rules},{inside})", hits, shown="0")
        count, share = cell(here, 4), cell(here, 6)
        sheet.formula(here, 6, f"{cell(here, 5)}/{count}", hits / n, shown="0%")
        for column, sign, value in ((7, "-", r.coverage_low), (8, "+", r.coverage_high)):
            z = f"{_Z}"
            spread = f"{z}*SQRT({share}*(1-{share})/{count}+{z}^2/(4*{count}^2))"
            made = f"({share}+{z}^2/(2*{count}){sign}{spread})/(1+{z}^2/{count})"
            sheet.formula(here, column, made, float(value), shown="0%")
        sheet.number(here, 9, r.score, "solver", "0.00")
        sheet.number(here, 10, r.score_last, "solver", "0.00")
        sheet.formula(here, 11, f"{cell(here, 9)}/{cell(here, 10)}", r.score / r.score_last, shown="0.00")
        what = f"Backtest from {r.origin}, {r.level}: hits"
        ties.append(Tie(what, cell(here, 5, "Backtest"), f"{r.hits:.0f}", hits, float(r.hits)))
    sheet.text(
        row + len(yearly),
        0,
        "Score: interval score, smaller is better; over the last value held below 1 beats it.",
        "note",
    )
    return ties


def uncertainty_sheet(book: Book, c: Context, sections: Sequence[Section]) -> None:
    """Quantiles over the stored draws and the share of draws in which each stage binds, with charts."""
    draws = next((s for s in sections if s.id == "draws"), None)
    tables = {t.short: t for t in draws.tables} if draws is not None else {}
    if draws is None or "fan" not in tables:
        return
    note = "Shares of draws are no chances in the world: draws move the inputs over their ranges, and nothing else."
    sheet = book.sheet("Uncertainty", draws.title, note, "studies")
    fan = tables["fan"]
    heads = ("Draws below: 5 %", "25 %", "Median", "75 %", "95 %", "This plan")
    columns = [Column("Period", "", 12), *(Column(h, "accelerators a period", 15, "solver", "#,##0") for h in heads)]
    columns += [
        Column("Width of the band", "share of median", 12, "number", "0%"),
        Column("Plan in the band", "", 12, "number"),
    ]
    rows: list[list[Any]] = [[r[0].text, *(held.value for held in r[1:7]), None, None] for r in fan.rows]
    sheet.table(DATA - 2, columns, rows, "uncertainty")
    for row, values in enumerate(rows, DATA):
        low, middle, high, plan = (cell(row, k) for k in (1, 3, 5, 6))
        width = (values[5] - values[1]) / values[3] if values[3] else ""
        sheet.formula(row, 7, f'IF({middle}>0,({high}-{low})/{middle},"")', width, shown="0%")
        sheet.formula(row, 8, f"AND({plan}>={low},{plan}<={high})", bool(values[1] <= values[6] <= values[5]))
    sheet.freeze(DATA, 1)
    sheet.one_page = True
    row = DATA + len(rows) + 2
    if "draw_shares" in tables:
        row = _shares(book, sheet, tables["draw_shares"], row)
    _fan(book, sheet, len(rows), row)
    row += 20
    for words in draws.paragraphs:
        sheet.paragraph(row, 0, 8, words)
        row += 1


def _shares(book: Book, sheet: Sheet, table: Table, row: int) -> int:
    sheet.text(row - 1, 0, table.caption, "heading")
    columns = [Column("Period", "", 12), *(Column(h.title, "of draws", 15, "solver", "0%") for h in table.columns[1:])]
    rows = [[r[0].text, *(held.value for held in r[1:])] for r in table.rows]
    sheet.table(row, columns, rows, "draw_shares")
    return row + len(rows) + 3


def _fan(book: Book, sheet: Sheet, count: int, row: int) -> None:
    chart = book.chart({"type": "line"})
    last = DATA + count - 1
    looks = ((1, GUIDE, "dash"), (3, INK, "solid"), (5, GUIDE, "dash"), (6, ACCENT, "round_dot"))
    for column, colour, dash in looks:
        series = {"name": [sheet.name, DATA - 1, column], "categories": [sheet.name, DATA, 0, last, 0]}
        series |= {"values": [sheet.name, DATA, column, last, column]}
        chart.add_series({**series, "line": {"color": colour, "width": 2, "dash_type": dash}})
    chart.set_title({"name": "Accelerators by share of draws", "name_font": {"size": 12}})
    chart.set_y_axis({"name": "accelerators a period", "num_format": "#,##0", "min": 0})
    chart.set_size({"width": 900, "height": 360})
    sheet.raw.insert_chart(row, 0, chart, {"description": "Lines: quantiles of the draws and the plan by period"})
