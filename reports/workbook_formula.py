"""Grids of live formulas: each is stated once, in names; its cell text and its value both come from that statement.

A statement uses names of lines, numbers, `+ - * / ^ >`, and the functions PMT, LN, IF, ABS, MAX, MIN as Excel has them.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reports.workbook_style import Sheet

__all__ = ["FIRST", "FormulaError", "Grid", "Line", "evaluate", "write_grid"]

#: First column of the values in a grid: label, unit and explanation stand before it.
FIRST = 3
_NAME = re.compile(r"\b[a-z][a-z0-9_]*\b")


class FormulaError(ValueError):
    """A statement that uses a name or a sign that the grid does not have."""


@dataclass(frozen=True)
class Line:
    """One line of a grid: `formula` is empty for an input; `total` lines sum `first` to `last`."""

    key: str
    label: str
    unit: str
    formula: str = ""
    note: str = ""
    style: str = "calc"
    first: str = ""
    last: str = ""


@dataclass
class Grid:
    """A written grid: the row of each line and the values of each column."""

    sheet: str
    rows: dict[str, int]
    values: list[dict[str, float]]

    def address(self, key: str, index: int, *, sheet: bool = True) -> str:
        """Address of a line in one of the columns."""
        from reports.workbook_style import cell

        return cell(self.rows[key], FIRST + index, self.sheet if sheet else "")


def _pmt(rate: float, periods: float, present: float) -> float:
    """Excel's PMT at the end of each period.

    >>> round(_pmt(0.08, 5, -1), 4), _pmt(0.0, 5, -1)
    (0.2505, 0.2)
    """
    if rate == 0:
        return -present / periods
    return -present * rate / (1 - math.pow(1 + rate, -periods))


_FUNCTIONS: Mapping[str, Callable[..., float]] = {"PMT": _pmt, "LN": math.log, "ABS": abs, "MAX": max, "MIN": min}
_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: float(a**b),
}


def evaluate(formula: str, values: Mapping[str, float]) -> float:
    """Value of a statement.

    >>> evaluate("capital * PMT(rate, life, -1)", {"capital": 1000.0, "rate": 0.0, "life": 4.0})
    250.0

    Raises:
        FormulaError: for a name or a sign outside the statement language.
    """
    try:
        return _value(ast.parse(formula.replace("^", "**"), mode="eval").body, values)
    except KeyError as exc:
        raise FormulaError(f"{formula!r}: no line {exc.args[0]!r} above; lines: {', '.join(values)}") from exc


def _value(node: ast.expr, values: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=name):
            return values[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, values)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, values), _value(right, values))
        case ast.Compare(left=left, ops=[ast.Gt()], comparators=[right]):
            return float(_value(left, values) > _value(right, values))
        case ast.Call(func=ast.Name(id="IF"), args=[test, yes, no]):
            return _value(yes if _value(test, values) else no, values)
        case ast.Call(func=ast.Name(id=name), args=args) if name in _FUNCTIONS:
            return float(_FUNCTIONS[name](*(_value(a, values) for a in args)))
    raise FormulaError(f"a formula cannot hold {ast.unparse(node)!r}")


def write_grid(
    sheet: Sheet,
    row: int,
    lines: Sequence[Line],
    columns: Sequence[Mapping[str, float]],
    links: Sequence[Mapping[str, str]] | None = None,
) -> Grid:
    """Write lines downwards and columns to the right: label, unit, explanation, then one cell for each column.

    `columns` hold the values of the inputs; `links` the cell that an input is read from, where it is not typed here.
    """
    from reports.workbook_style import cell

    grid = Grid(sheet.name, {}, [dict(column) for column in columns])
    for offset, line in enumerate(lines):
        here = row + offset
        grid.rows[line.key] = here
        if line.style == "heading":
            for column in range(FIRST + len(grid.values)):
                sheet.text(here, column, line.label if column == 0 else "", "heading")
            continue
        sheet.text(here, 0, line.label, "total" if line.style.endswith("total") else "text")
        sheet.text(here, 1, line.unit, "unit")
        sheet.text(here, 2, line.note, "unit")
        for index, values in enumerate(grid.values):
            column = FIRST + index
            link = links[index].get(line.key) if links else None
            if line.first:
                span = [lines[k].key for k in _span(lines, line)]
                values[line.key] = math.fsum(values[key] for key in span)
                made = f"SUM({cell(grid.rows[span[0]], column)}:{cell(grid.rows[span[-1]], column)})"
            elif line.formula:
                values[line.key] = evaluate(line.formula, values)
                made = _NAME.sub(lambda m, c=column: cell(grid.rows[m[0]], c), line.formula)  # type: ignore[misc]
            elif link:
                made = link
            else:
                sheet.number(here, column, values[line.key], line.style)
                continue
            sheet.formula(here, column, made, values[line.key], "link" if link else line.style)
    return grid


def _span(lines: Sequence[Line], total: Line) -> range:
    keys = [line.key for line in lines]
    return range(keys.index(total.first), keys.index(total.last) + 1)
