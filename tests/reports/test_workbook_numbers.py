"""Sheets of the workbook against the tables of the run folder and of the sample, and how they are printed."""

from __future__ import annotations

import colorsys
import itertools
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest

from reports import workbook_palette
from reports.context import Context
from reports.draws import add_draws
from reports.market_report import make_report
from reports.workbook import write_workbook
from reports.workbook_style import Book, Column
from scenarios.runner import run
from scenarios.runs import Run
from scenarios.sample import Sample, sample

EXACT = 1e-15


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = run("small", out=tmp_path_factory.mktemp("runs")).folder
    assert folder is not None
    return Run.open(folder)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return sample("small", 8, out=tmp_path_factory.mktemp("draws"))


@pytest.fixture(scope="module")
def path(small: Run, drawn: Sample, tmp_path_factory: pytest.TempPathFactory) -> Path:
    report = make_report([small])
    add_draws(report, Context(small), drawn)
    return write_workbook(small, tmp_path_factory.mktemp("book") / "book.xlsx", report)


@pytest.fixture(scope="module")
def book(path: Path) -> Any:
    return openpyxl.load_workbook(path, data_only=True)


def lines(sheet: Any) -> Iterator[dict[str, Any]]:
    """Rows of the one table of a sheet by header."""
    (table,) = sheet.tables.values()
    heads, *rows = sheet[table.ref]
    for row in rows:
        yield {head.value: held.value for head, held in zip(heads, row, strict=True)}


def keyed(run_: Run, quantity: str) -> pd.DataFrame:
    held = run_.results[run_.results["quantity"] == quantity]
    made = held.set_index(["subject", "period"])
    assert made.index.is_unique
    return made


def ids(run_: Run, *names: str) -> dict[str, str]:
    """Ids of results by the name that the report prints."""
    c = Context(run_)
    return {title(name): name for name in names for title in (c.title, c.short)}


def test_prices_are_those_of_the_run(small: Run, book: Any) -> None:
    columns = {
        "Price, this period only": ("binding_price", "value"), "Price low": ("binding_price", "low"),
        "Price high": ("binding_price", "high"), "Lasting price": ("lasting_price", "value"), "Rent": ("rent", "value"),
        "Capacity": ("capacity", "value"), "Use": ("utilisation", "value"),
        "More finished with 1 % more of the limit": ("plus_1_percent_finished", "value"),
        "More energised with 1 % more of the limit": ("plus_1_percent_energised", "value"),
        "Next limit binds at": ("next_binding_at", "value"),
    }  # fmt: skip
    tables = {quantity: keyed(small, quantity) for quantity, _ in columns.values()}
    rows = list(lines(book["Prices"]))
    assert len(rows) == sum(len(p["binding"]) for p in small.answer["periods"]) > 20
    c = Context(small)
    compared = 0
    for row in rows:
        key = (row["Id"], row["Period"])
        assert row["Limit"] == c.title(row["Id"]) and row["Stage"] == tables["capacity"].loc[key, "stage"]
        for head, (quantity, what) in columns.items():
            if key in tables[quantity].index and np.isfinite(wanted := tables[quantity].loc[key, what]):
                assert row[head] == pytest.approx(wanted, rel=EXACT), (head, key)
                compared += 1
            else:
                assert row[head] is None, (head, key)
    assert compared > 9 * len(rows)


def test_hours_are_those_of_the_run(small: Run, book: Any) -> None:
    owner, full = keyed(small, "owner_usd_per_gpu_hour"), keyed(small, "usd_per_gpu_hour")
    scarcity = keyed(small, "scarcity_usd_per_gpu_hour")
    rows = list(lines(book["Hours"]))
    assert {(r["Id"], r["Period"]) for r in rows} == set(owner.index) == set(full.index)
    for row in rows:
        key = (row["Id"], row["Period"])
        mine = [row[h] for h in ("Owner cost", "Owner cost low", "Owner cost high")]
        both = [row[h] for h in ("With scarcity", "With scarcity low", "With scarcity high")]
        assert mine == pytest.approx(list(owner.loc[key, ["value", "low", "high"]]), rel=EXACT)
        assert both == pytest.approx(list(full.loc[key, ["value", "low", "high"]]), rel=EXACT)
        assert row["Scarcity"] == pytest.approx(scarcity.loc[key, "value"], rel=EXACT)
        assert row["Region"] == owner.loc[key, "region"]


def test_token_costs_are_those_of_the_run(small: Run, book: Any) -> None:
    classes = {"Uncached input": "uncached_input", "Cache write": "cache_write", "Cache read": "cache_read"}
    tables = {head: keyed(small, f"usd_per_mtoken_{name}") for head, name in (classes | {"Output": "output"}).items()}
    hour = keyed(small, "usd_per_gpu_hour")
    output = tables["Output"]
    named = ids(small, *output["model"].unique(), *output["sku"].unique())
    rows = list(lines(book["Token costs"]))
    assert len(rows) == len(output) > 100
    for row in rows:
        sku = named[row["Product"]]
        key = (f"{named[row['Model']]}/{sku}", row["Period"])
        for head, table in tables.items():
            assert row[head] == pytest.approx(table.loc[key, "value"], rel=EXACT), (head, key)
        ends = (row["Output low"], row["Output high"])
        assert ends == pytest.approx(tuple(output.loc[key, ["low", "high"]]), rel=EXACT)
        assert row["Hour"] == pytest.approx(hour.loc[(sku, row["Period"]), "value"], rel=EXACT)


def test_tasks_are_those_of_the_run(small: Run, book: Any) -> None:
    tasks = keyed(small, "usd_per_verified_task")
    named = ids(small, *tasks["model"].unique(), *tasks["sku"].unique())
    rows = list(lines(book["Tasks"]))
    assert len(rows) == len(tasks) > 400
    for row in rows:
        key = (f"{row['Task']}/{named[row['Model']]}/{named[row['Product']]}", row["Period"])
        held = (row["Cost"], row["Low"], row["High"])
        assert held == pytest.approx(tuple(tasks.loc[key, ["value", "low", "high"]]), rel=EXACT), key


def test_uncertainty_is_that_of_the_stored_draws(small: Run, drawn: Sample, book: Any) -> None:
    sheet = book["Uncertainty"]
    c = Context(small)
    heads = ["Draws below: 5 %", "25 %", "Median", "75 %", "95 %", "This plan"]
    assert [sheet.cell(6, k).value for k in range(2, 8)] == heads
    for row, period in enumerate(c.periods, 7):
        wanted = np.quantile(drawn.column(f"energised:*@{period}"), [0.05, 0.25, 0.5, 0.75, 0.95])
        plan = c.quantity("energised").query("period == @period")["value"].sum()
        found = [sheet.cell(row, k).value for k in range(1, 10)]
        assert found[0] == period and found[1:7] == pytest.approx([*wanted, plan], rel=1e-12)
        assert found[7] == pytest.approx((wanted[4] - wanted[0]) / wanted[2], rel=1e-12)
        assert found[8] is bool(wanted[0] <= plan <= wanted[4])
    first = 6 + len(c.periods) + 5
    stages = [sheet.cell(first - 1, k).value for k in range(2, 10) if sheet.cell(first - 1, k).value]
    assert sheet.cell(first - 1, 1).value == "Period" and {"Advanced packaging", "Energised power"} <= set(stages)
    shares = [sheet.cell(first + row, 2 + k).value for row in range(len(c.periods)) for k in range(len(stages))]
    assert all(0 <= s <= 1 and s * drawn.draws == pytest.approx(round(s * drawn.draws)) for s in shares)
    assert len(sheet._charts) == 1 and sheet.page_setup.fitToHeight in (None, 1)
    words = [str(r[0].value) for r in sheet.iter_rows(min_row=first + len(c.periods)) if r[0].value]
    assert any("of draws" in w for w in words) and any("Stored sample" in w for w in words)


def test_print_repeats_the_heads_and_keeps_words_readable(book: Any) -> None:
    for name in ("Inputs", "Results", "Prices", "Hours", "Token costs", "Tasks", "Sources", "Units"):
        (table,) = book[name].tables.values()
        first = int(re.findall(r"\d+", table.ref)[0])
        assert book[name].print_title_rows == f"${first - 1}:${first}", name
    assert book["Prices"].print_title_cols == "$A:$B" and book["Tasks"].page_setup.orientation == "portrait"
    across = {sheet.title: sheet.page_setup.fitToWidth for sheet in book}
    assert across["Prices"] == 2 and across["Hours"] in (None, 1)
    assert not book["Report tables"].print_title_rows
    check = next(r for r in book["Token costs"].iter_rows(min_row=7, min_col=11, max_col=11))[0]
    height = book["Token costs"].row_dimensions[check.row].height
    assert check.alignment.wrap_text and height > 13 * len(check.value) / 110
    assert book["Costs"].row_breaks.brk and book["Summary"].row_breaks.brk


def test_one_palette(path: Path) -> None:
    """Each colour of a cell or a tab is in the palette; parts of a cost are told apart from their neighbours."""
    with zipfile.ZipFile(path) as archive:
        text = archive.read("xl/styles.xml").decode() + "".join(
            archive.read(n).decode() for n in archive.namelist() if n.startswith("xl/worksheets/sheet")
        )
    values = [v for v in vars(workbook_palette).values() if isinstance(v, str) and v.startswith("#")]
    known = {v[1:].upper() for v in [*values, *workbook_palette.TABS.values()]}
    assert {c.upper() for c in re.findall(r'rgb="FF([0-9A-Fa-f]{6})"', text)} <= known
    parts = workbook_palette.PARTS
    assert len(set(parts)) == len(parts) == 13
    for one, other in itertools.pairwise(parts):
        assert np.abs(np.subtract(hls(one), hls(other))).max() > 0.1, (one, other)


def hls(colour: str) -> tuple[float, float, float]:
    """Hue, lightness and saturation; enough to tell that two colours are not nearly the same."""
    return colorsys.rgb_to_hls(*(int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)))


ODD = {
    "\ud800x": r"\ud800x",
    "a\u202egnp.exe": r"a\u202egnp.exe",
    "b\x07\x00": r"b\x07\x00",
    "\u2066c\uffff": r"\u2066c\uffff",
}


def test_what_cannot_be_shown_is_shown_as_its_escape(tmp_path: Path) -> None:
    with Book(tmp_path / "odd.xlsx", {"title": "odd"}) as made:
        sheet = made.sheet("Checks", "".join(ODD), "".join(ODD), "control")
        sheet.table(4, [Column("".join(ODD), "\ud800", 20)], [[odd] for odd in ODD], "odd")
        made.finish(True)
    held = openpyxl.load_workbook(tmp_path / "odd.xlsx")["Checks"]
    assert [held.cell(7 + k, 1).value for k in range(4)] == list(ODD.values())
    assert held["A1"].value == held["A6"].value == "".join(ODD.values())
