"""The workbook: every formula against an evaluator of its own, ties to the run, text that stays text."""

from __future__ import annotations

import ast
import math
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import numpy_financial as npf
import openpyxl
import pandas as pd
import pytest

from econ.chain import CostChoice, hour_cost
from econ.gpu_hour import gpu_hour_cost
from reports.context import Context
from reports.market_report import make_report
from reports.workbook import write_workbook
from reports.workbook_formula import FormulaError, evaluate
from reports.workbook_tables import printed_format
from scenarios.costing import middle_of
from scenarios.headline import HEADLINE_COLUMNS
from scenarios.report_tables import track_record
from scenarios.runner import run
from scenarios.runs import Run

_REF = re.compile(r"(?:([A-Za-z]+)!)?\$?([A-Z]{1,2})\$?(\d+)(?::\$?([A-Z]{1,2})\$?(\d+))?")


class Sheets:
    """Evaluates the formulas of a workbook without their stored values; `changes` replace cells."""

    def __init__(self, path: Path) -> None:
        self.book = openpyxl.load_workbook(path)
        self.changes: dict[tuple[str, str], Any] = {}
        self.known: dict[tuple[str, str], Any] = {}

    def change(self, sheet: str, cell: str, value: Any) -> None:
        self.changes[sheet, cell] = value
        self.known = {}

    def value(self, sheet: str, cell: str) -> Any:
        key = (sheet, cell)
        if key not in self.known:
            held = self.book[sheet][cell]
            if key in self.changes:
                self.known[key] = self.changes[key]
            elif held.data_type == "f":
                self.known[key] = self.formula(sheet, str(held.value)[1:])
            else:
                self.known[key] = held.value
        return self.known[key]

    def formula(self, sheet: str, text: str) -> Any:
        names: dict[str, Any] = {}

        def place(match: re.Match[str]) -> str:
            home, column, row, last_column, last_row = match.groups()
            name = f"v{len(names)}"
            if last_column:
                area = self.book[home or sheet][f"{column}{row}:{last_column}{last_row}"]
                names[name] = [self.value(home or sheet, c.coordinate) for line in area for c in line]
            else:
                names[name] = self.value(home or sheet, f"{column}{row}")
            return name

        parts = re.split(r'("[^"]*")', text)
        code = "".join(p if p.startswith('"') else _REF.sub(place, p) for p in parts)
        code = re.sub(r"\bIF\(", "IF_(", code.replace("^", "**").replace("&", "+"))
        code = re.sub(r"(?<![<>=])=(?!=)", "==", code).replace("<>", "!=")
        code = code.replace("TRUE", "True").replace("FALSE", "False")
        tree = ast.fix_missing_locations(_Lazy().visit(ast.parse(code, mode="eval")))
        return eval(compile(tree, text, "eval"), {"__builtins__": {}}, {**names, **_FUNCTIONS})


class _Lazy(ast.NodeTransformer):
    """IF evaluates only the branch that it takes."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "IF_":
            test, yes, no = node.args
            return ast.IfExp(test=test, body=yes, orelse=no)
        return node


def _sumifs(span: list[Any], *rules: Any) -> float:
    keep = [all(a[k] == b for a, b in zip(rules[::2], rules[1::2], strict=True)) for k in range(len(span))]
    return math.fsum(float(x) for x, use in zip(span, keep, strict=True) if use and x is not None)


def _numbers(arguments: tuple[Any, ...]) -> list[float]:
    """Numbers of cells and spans; empty cells count for nothing, as in a sheet."""
    flat = [x for a in arguments for x in (a if isinstance(a, list) else [a])]
    return [x for x in flat if isinstance(x, float | int)]


_FUNCTIONS: dict[str, Any] = {
    "SUM": lambda xs: math.fsum(xs),
    "SUMIFS": _sumifs,
    "PMT": lambda rate, n, pv: float(npf.pmt(rate, n, pv)),
    "LN": math.log,
    "COUNTIF": lambda span, wanted: float(sum(x == wanted for x in span)),
    "COUNTIFS": lambda *rules: _sumifs([1.0] * len(rules[0]), *rules),
    "SQRT": math.sqrt,
    "AND": lambda *xs: all(x for x in (xs[0] if isinstance(xs[0], list) else xs)),
    "OR": lambda *xs: any(xs),
    "MIN": lambda *xs: min(_numbers(xs)),
    "ABS": abs,
    "MAX": lambda *xs: max(_numbers(xs)),
    "ISNUMBER": lambda x: isinstance(x, float | int),
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run as it is read from its folder, with the tables of studies that take no time to make up."""
    done = run("small", out=tmp_path_factory.mktemp("runs"))
    done.tables |= {"headline": _weak_inputs()} | track_record()
    return done


def _weak_inputs() -> pd.DataFrame:
    """A study of weak inputs: one that moves the number, one that changes the stage, one without a plan at an end."""
    rows = [
        ("series a", "Power of a region", 10.0, 8.0, 13.0, 900.0, 1200.0, "power", "power", False, math.nan),
        ("costs.b", "=SUM(1): a share", 0.5, 0.2, 0.9, 1010.0, 700.0, "power", "packaging", True, 0.8),
        ("costs.c", "A yield", 0.7, 0.1, 0.9, math.nan, 1100.0, "power", "power", False, math.nan),
    ]
    columns = ["input", "title", "base_input", "low_input", "high_input", "energised_low", "energised_high"]
    columns += ["stage_low", "stage_high", "flips", "flips_at"]
    table = pd.DataFrame(rows, columns=columns)
    more: dict[str, Any] = {
        "kind": "illustrative",
        "note": "",
        "input_unit": "GW",
        "energised_base": 1000.0,
        "stage_base": "power",
    }
    full = table.assign(**more, swing=300.0, year="2026", next_base=1.0, next_low=1.0, next_high=1.0)
    return full.reindex(columns=[*full.columns, *(c for c in HEADLINE_COLUMNS if c not in full)])


@pytest.fixture(scope="module")
def book(small: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_workbook(small, tmp_path_factory.mktemp("books") / "small.xlsx")


def _column(sheet: Any, label: str) -> str:
    return next(c.column_letter for c in sheet[5] if c.value == label)


def _row(sheet: Any, label: str) -> int:
    return next(c.row for c in sheet["A"] if c.value == label)


def test_every_stored_value_is_what_its_formula_gives(book: Path) -> None:
    stored = openpyxl.load_workbook(book, data_only=True)
    sheets = Sheets(book)
    count = 0
    for sheet in sheets.book:
        for cell in (c for row in sheet.iter_rows() for c in row if c.data_type == "f"):
            found, held = sheets.value(sheet.title, cell.coordinate), stored[sheet.title][cell.coordinate].value
            count += 1
            if isinstance(found, float) and sheet.title != "Checks":
                assert found == pytest.approx(held, rel=1e-12, abs=1e-12), (sheet.title, cell.coordinate, cell.value)
            elif not isinstance(found, float):
                assert (found or None) == (held or None), (sheet.title, cell.coordinate, cell.value)
    assert count > 1500


def test_the_hour_of_the_sheet_is_the_owner_cost_and_follows_its_inputs(small: Run, book: Path) -> None:
    c = Context(small)
    sheets = Sheets(book)
    costs = sheets.book["Costs"]
    sku = "b200"
    column = _column(costs, c.short(sku))
    place = f"{column}{_row(costs, 'Owner cost')}"
    row = c.value_at("owner_usd_per_gpu_hour", sku, c.now)
    assert row is not None
    assert sheets.value("Costs", place) == pytest.approx(row["value"], rel=1e-12)
    region = str(row["region"])
    inputs = hour_cost(CostChoice(sku, c.now, middle_of(c.now), region=region)).inputs
    assert inputs is not None
    for label, name, value in (
        ("Cost of capital", "rate_per_year", 0.05),
        ("Life of equipment", "it_life_years", 3.5),
        ("Resale value at the end of life", "it_residual_share", 0.2),
        ("Construction, paid evenly", "construction_months", 30.0),
        ("Tax life", "tax_life_years", 5.0),
        ("Sold hours", "use.sold", 0.55),
        ("Electricity price", "electricity_usd_per_kwh", 0.2),
    ):
        sheets.change("Costs", f"{column}{_row(costs, label)}", value)
        expected = gpu_hour_cost(inputs.inputs.with_value(name, value)).total
        assert sheets.value("Costs", place) == pytest.approx(expected, rel=1e-9), label
        sheets.changes.clear()
        sheets.known = {}


def test_token_classes_follow_the_hour_and_add_up_to_it(book: Path) -> None:
    sheets = Sheets(book)
    tokens, costs = sheets.book["Tokens"], sheets.book["Costs"]
    output = f"D{_row(tokens, 'Output: cost')}"
    earned = f"D{_row(tokens, 'Requests x cost of a request')}"
    before, hour = sheets.value("Tokens", output), sheets.value("Tokens", "D6")
    assert sheets.value("Tokens", earned) == pytest.approx(hour, rel=1e-6)
    target = re.fullmatch(r"=Costs!([A-Z]+)\d+", str(tokens["D6"].value))
    assert target
    sheets.change("Costs", f"{target[1]}{_row(costs, 'Scarcity of racks and power')}", 0.0)
    after = sheets.value("Tokens", "D6")
    assert after < hour
    assert sheets.value("Tokens", output) == pytest.approx(before * after / hour, rel=1e-12)


def test_a_broken_tie_shows_on_every_sheet(book: Path) -> None:
    sheets = Sheets(book)
    assert sheets.value("Checks", "B4") is True
    assert str(sheets.value("Inputs", "A3")).endswith("yes")
    costs = sheets.book["Costs"]
    place = f"D{_row(costs, 'Owner cost in the run')}"
    sheets.change("Costs", place, sheets.value("Costs", place) * (1 + 1e-6))
    assert sheets.value("Checks", "B4") is False
    assert "NO" in str(sheets.value("Inputs", "A3"))


def test_power_chain_is_that_of_the_owner_cost_and_the_fleet_that_of_the_run(small: Run, book: Path) -> None:
    c = Context(small)
    sheets = Sheets(book)
    power = sheets.book["Power"]
    column = _column(power, c.short("h100"))
    row = c.value_at("owner_usd_per_gpu_hour", "h100", c.now)
    assert row is not None
    inputs = hour_cost(CostChoice("h100", c.now, middle_of(c.now), region=str(row["region"]))).inputs
    assert inputs is not None
    watts = sheets.value("Power", f"{column}{_row(power, 'Booked from the grid')}")
    assert watts == pytest.approx(1000 * inputs.planning_kw, rel=1e-12)
    total = _row(power, "Planning power, all products and regions")
    first = sheets.value("Power", f"D{total}")
    held = c.quantity("fleet_mw")
    assert first == pytest.approx(held.loc[held["period"] == c.periods[0], "value"].sum(), rel=1e-12)


def test_yearly_totals_are_sums_of_the_run(small: Run, book: Path) -> None:
    stored = openpyxl.load_workbook(book, data_only=True)["Summary"]
    c = Context(small)
    row = _row(stored, "Accelerators energised")
    for k, year in enumerate(c.years):
        assert stored.cell(row, 7 + k).value == pytest.approx(c.total("energised", year), rel=1e-12)


def test_it_has_real_tables_charts_validation_and_units(book: Path) -> None:
    held = openpyxl.load_workbook(book)
    single = ("Inputs", "Results", "Prices", "Hours", "Token costs", "Tasks", "Sensitivity", "Backtest", "Checks")
    for name in (*single, "Sources", "Units"):
        (table,) = held[name].tables.values()
        assert held[name][table.ref.split(":")[0]].value
    assert len(held["Summary"]._charts) == 2 and len(held["Costs"]._charts) == 1
    assert held["Prices"]["H5"].value == "see Unit" and held["Hours"]["E5"].value == "USD/sold GPU-hour"
    rules = held["Inputs"].data_validations.dataValidation
    found = {(r.type, r.formula1, r.formula2) for r in rules}
    assert found >= {("decimal", "0", "1"), ("decimal", "$D7", None), ("list", '"stated,illustrative"', None)}
    assert len(held["Sensitivity"]._charts) == 1


BANNED = ("OFFSET", "INDIRECT", "INDEX", "VLOOKUP", "HLOOKUP", "NOW(", "TODAY(", "RAND", "WEBSERVICE", "HYPERLINK", "[")


def test_it_holds_nothing_that_a_reviewer_would_refuse(book: Path) -> None:
    """No volatile or hidden parts, no names, no links to other files, no macros; one IF a formula."""
    held = openpyxl.load_workbook(book)
    assert all(sheet.sheet_state == "visible" for sheet in held) and not held.defined_names
    formulas = [str(c.value) for s in held for row in s.iter_rows() for c in row if c.data_type == "f"]
    for formula in formulas:
        assert not any(word in formula for word in BANNED), formula
        assert len(re.findall(r"(?<!SUM)\bIF\(", formula)) <= 1 and len(formula) < 200, formula
    with zipfile.ZipFile(book) as archive:
        names = archive.namelist()
        text = b"".join(archive.read(n) for n in names if n.endswith(".rels"))
    assert not [n for n in names if "external" in n.lower() or "vba" in n.lower()]
    assert b'TargetMode="External"' not in text


def test_every_sheet_shows_the_master_check_in_its_frozen_pane(book: Path) -> None:
    held = openpyxl.load_workbook(book)
    for sheet in held:
        assert sheet.freeze_panes and int(re.sub(r"\D", "", sheet.freeze_panes)) > 3, sheet.title
        master = sheet["B4"] if sheet.title == "Checks" else sheet["A3"]
        assert str(master.value).startswith("=AND(" if sheet.title == "Checks" else '="All checks'), sheet.title


def test_contents_name_every_sheet_and_why_others_are_missing(book: Path) -> None:
    held = openpyxl.load_workbook(book)
    rows = {r[0]: r[2] for r in held["Contents"].iter_rows(min_row=6, max_col=3, values_only=True)}
    assert set(held.sheetnames) <= {*rows, "Cover", "Contents"}
    assert list(rows)[-5:] == ["Checks", "Changes", "Limits", "Sources", "Units"]
    assert rows["Uncertainty"].startswith("not in this workbook: no stored draws")
    words = [c.value for c in held["Limits"]["B"] if c.value]
    assert any("No sheet Uncertainty" in w for w in words)


def test_backtest_counts_its_own_hits(book: Path) -> None:
    held = openpyxl.load_workbook(book, data_only=True)["Backtest"]
    summary = track_record()["backtest_summary"]
    yearly = summary[summary["span"] == "year"].sort_values(["origin", "level"])
    first = next(c.row for c in held["C"] if c.value == "Yearly totals") + 1
    for row, wanted in enumerate(yearly.itertuples(), first):
        n, hits, share, low, high = (held.cell(row, k).value for k in range(5, 10))
        assert (n, hits, share) == (wanted.scored, wanted.hits, pytest.approx(wanted.coverage, rel=1e-5))
        assert (low, high) == pytest.approx((wanted.coverage_low, wanted.coverage_high))


def test_an_edited_input_counts_and_a_value_out_of_its_range_breaks_the_check(book: Path) -> None:
    sheets = Sheets(book)
    inputs = sheets.book["Inputs"]
    ranged = next(r[6].row for r in inputs.iter_rows(min_row=7) if isinstance(r[6].value, float | int))
    sheets.change("Inputs", f"D{ranged}", inputs[f"G{ranged}"].value - 1.0)
    assert sheets.value("Inputs", f"M{ranged}") == "edited" and sheets.value("Inputs", f"N{ranged}") is False
    assert sheets.value("Changes", "B5") == 1
    assert sheets.value("Checks", "B4") is False


def test_results_inputs_and_checks_hold_the_numbers_of_the_run(small: Run, book: Path) -> None:
    held = openpyxl.load_workbook(book, data_only=True)
    rows = list(held["Inputs"].iter_rows(min_row=7, max_col=5, values_only=True))
    assert [(r[0], r[1], r[3]) for r in rows] == [
        (r.path, r.period, pytest.approx(r.value, rel=1e-15)) for r in small.inputs.itertuples()
    ]
    c = Context(small)
    sheet = held["Results"]
    heads = [cell.value for cell in sheet[6]]
    for line in sheet.iter_rows(min_row=7, values_only=True):
        mine = small.results[
            (small.results["quantity"] == line[0])
            & (small.results["subject"] == (line[1] or ""))
            & (small.results["region"] == (line[3] or ""))
            & (small.results["stage"] == (line[4] or ""))
        ].set_index("period")["value"]
        for period, value in zip(heads[6:], line[6:], strict=True):
            if value is not None:
                assert value == pytest.approx(mine[period], rel=1e-15)
    assert heads[6:] == c.periods
    assert held["Checks"].max_row - 7 >= len(small.checks)


def test_report_tables_keep_every_digit_and_show_the_printed_ones(small: Run, book: Path) -> None:
    held_book = openpyxl.load_workbook(book, data_only=True)
    cells = (c.value for sheet in held_book for row in sheet.iter_rows() for c in row)
    values = {f"{v:.12e}" for v in cells if isinstance(v, float | int)}
    for section in make_report([small]).sections:
        for table in (t for t in section.tables if t.short not in ("inputs", "sources", "weak_inputs")):
            for row in table.rows:
                for held, column in zip(row, table.columns, strict=True):
                    if held.value is not None and column.number and math.isfinite(held.value):
                        assert f"{held.value:.12e}" in values, (table.caption, held)
    assert printed_format("1.2", 1.2345) == "#,##0.0"


def test_a_spreadsheet_program_recalculates_the_same(book: Path, tmp_path: Path) -> None:
    """Stored values are dropped first, so that every number of the copy is one that LibreOffice computed."""
    program = shutil.which("soffice")
    if program is None:
        pytest.skip("LibreOffice (soffice) is not installed: formulas are checked by the evaluator of this file alone")
    (tmp_path / "in").mkdir()
    openpyxl.load_workbook(book).save(tmp_path / "in" / "book.xlsx")
    profile = f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}"
    call = [
        program,
        profile,
        "--headless",
        "--convert-to",
        "xlsx",
        "--outdir",
        str(tmp_path),
        str(tmp_path / "in" / "book.xlsx"),
    ]
    subprocess.run(call, check=True, capture_output=True, timeout=120)
    stored, again = (openpyxl.load_workbook(p, data_only=True) for p in (book, tmp_path / "book.xlsx"))
    for sheet in openpyxl.load_workbook(book):
        for cell in (c for row in sheet.iter_rows() for c in row if c.data_type == "f"):
            mine, theirs = (held[sheet.title][cell.coordinate].value for held in (stored, again))
            if isinstance(mine, float):
                assert theirs == pytest.approx(mine, rel=1e-12, abs=1e-12), (sheet.title, cell.coordinate, cell.value)
            else:
                assert (mine or None) == (theirs or None), (sheet.title, cell.coordinate, cell.value)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose words look like formulas and markup."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "hostile.yaml").write_text(
        "extends: course_11_1\n"
        "title: '=cmd|''/c calc''!A1'\n"
        "note: '<img src=x onerror=alert(1)> {{ 7 * 7 }} #eval(1)'\n"
        "resources:\n  fab: {stage: fab, title: '@SUM(1+1)', capacity: 15000 die/quarter, supplier: '+1'}\n"
        "  cowos: {stage: packaging, title: '-2+3', capacity: 10000 accelerator/quarter}\n",
        encoding="utf-8",
    )
    return write_workbook(run(folder / "hostile.yaml", out=folder / "runs"), folder / "hostile.xlsx")


def test_words_stay_words(hostile: Path) -> None:
    held = openpyxl.load_workbook(hostile)
    assert held["Cover"]["A1"].value == "=cmd|'/c calc'!A1"
    formulas = [str(c.value) for s in held for row in s.iter_rows() for c in row if c.data_type == "f"]
    texts = [str(c.value) for s in held for row in s.iter_rows() for c in row if c.data_type == "s"]
    assert formulas and not any("cmd" in f or "onerror" in f for f in formulas)
    allowed = re.compile(r"=(ABS\(COUNTIF\(|COUNTIF\(|SUMIFS\(|SUM\(|IF\(|AND\(|[A-Z]+\d+$|\"All checks)")
    assert all(allowed.match(f) for f in formulas), [f for f in formulas if not allowed.match(f)][:3]
    assert "@SUM(1+1)" in texts and "-2+3" in texts
    assert any("onerror" in t for t in texts)


def test_a_run_without_money_has_a_workbook_too(hostile: Path) -> None:
    held = openpyxl.load_workbook(hostile, data_only=True)
    assert "Costs" not in held.sheetnames
    assert held["Checks"]["B4"].value is True
    assert held["Summary"].cell(_row(held["Summary"], "Accelerators finished"), 7).value == pytest.approx(10000)


def test_statements_refuse_what_they_do_not_know() -> None:
    with pytest.raises(FormulaError, match="no line 'price'"):
        evaluate("price * 2", {"cost": 1.0})
    with pytest.raises(FormulaError, match="cannot hold"):
        evaluate("open('x')", {})
    assert evaluate("IF(tax > 0, 1 / tax, 1)", {"tax": 0.0}) == 1.0
