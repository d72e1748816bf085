"""An edited workbook back to a scenario: every changed yellow cell becomes one entry of `set`."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.workbook_inputs import INPUT_HEADS, INPUT_ROW, SCENARIO_ROW

if TYPE_CHECKING:
    from scenarios.load import Scenario
    from scenarios.resolve import Resolved

__all__ = ["WorkbookError", "load_workbook_scenario", "read_workbook"]

#: Relative difference that a spreadsheet program may leave in a number that nobody touched (15 digits kept).
_UNTOUCHED = 1e-14
#: Limits of a workbook that is read back; the one of base has 1 MB, 8 MB unpacked, in some 40 parts.
MOST_BYTES = 20_000_000
MOST_UNPACKED = 200_000_000
MOST_PARTS = 1000
_COLUMNS = {head: chr(65 + k) for k, head in enumerate(INPUT_HEADS)}


class WorkbookError(ValueError):
    """A workbook that cannot be read back; every problem stands on its own line as `sheet!cell: what is wrong`."""

    def __init__(self, file: str, problems: list[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{file}: {problem}" for problem in problems))


@dataclass(frozen=True)
class _Row:
    """One row of the Inputs sheet as it stands in the file; `row` counts from 1."""

    row: int
    path: Any
    start: Any
    end: Any
    value: Any
    held: Any
    unit: Any
    low: Any
    high: Any

    def cell(self, head: str) -> str:
        return f"Inputs!{_COLUMNS[head]}{self.row}"


def read_workbook(path: str | Path) -> str:
    """The scenario that a workbook states: the text of a file with `extends` (or the whole scenario) and `set`.

    A workbook that nobody edited gives a scenario with the hash of its run. An edited value that holds in every period
    becomes `PATH: VALUE`, any other `{replace: VALUE, from: .., to: ..}`; both are in the unit of the row.

    Raises:
        WorkbookError: with every problem at once, each with its sheet and cell.
    """
    lines, rows = _sheets(Path(path))
    text = "\n".join(lines) + "\n"
    resolved = _resolved(Path(path), text)
    edits, problems, places = _edits(rows, resolved)
    if problems:
        raise WorkbookError(str(path), problems)
    if not edits:
        return text
    edited = _with_edits(text, edits)
    _check_edited(Path(path), edited, places)
    return edited


def load_workbook_scenario(path: str | Path, sets: Sequence[tuple[str, Any]] = (), name: str | None = None) -> Scenario:
    """The scenario of a workbook, with further edits after its own; named after its library scenario or the file.

    Raises:
        WorkbookError: as `read_workbook`.
        ScenarioError: when a further edit is wrong.
    """
    text = read_workbook(path)
    return _load(text, name or _parent_name(text) or Path(path).stem, sets)


def _parent_name(text: str) -> str:
    first = text.splitlines()[0] if text.strip() else ""
    return first.removeprefix("extends:").strip() if first.startswith("extends:") else ""


def _sheets(path: Path) -> tuple[list[str], list[_Row]]:
    """Lines of the Scenario sheet and rows of the Inputs sheet."""
    from zipfile import BadZipFile

    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        _refuse_giants(path)
        content = io.BytesIO(path.read_bytes())  # openpyxl leaves a file open when it fails
        book = load_workbook(content, read_only=True, data_only=True)
    except (FileNotFoundError, PermissionError, IsADirectoryError, WorkbookError):
        raise
    except (BadZipFile, InvalidFileException, KeyError, EOFError, SyntaxError, ValueError, TypeError) as exc:
        raise WorkbookError(str(path), [f"this is not an Excel workbook ({exc})"]) from exc
    except Exception as exc:  # openpyxl raises many types, AttributeError and zlib.error among them, on harmed parts
        raise WorkbookError(str(path), [f"this workbook is harmed ({exc}): save it again"]) from exc
    try:
        return _cells(path, book)
    except (FileNotFoundError, PermissionError, IsADirectoryError, WorkbookError):
        raise
    except Exception as exc:  # the sheets are read here, part by part
        raise WorkbookError(str(path), [f"this workbook is harmed ({exc}): save it again"]) from exc
    finally:
        book.close()


def _refuse_giants(path: Path) -> None:
    """A workbook that would fill the memory is refused by the sizes that its own directory states."""
    from zipfile import ZipFile

    size = path.stat().st_size
    if size > MOST_BYTES:
        raise WorkbookError(str(path), [f"{size:,} bytes: a workbook has at most {MOST_BYTES:,}"])
    with ZipFile(path) as archive:
        parts = archive.infolist()
        unpacked = sum(part.file_size for part in parts)
    if unpacked > MOST_UNPACKED or len(parts) > MOST_PARTS:
        message = f"it unpacks to {unpacked:,} bytes in {len(parts)} parts: at most {MOST_UNPACKED:,} in {MOST_PARTS}"
        raise WorkbookError(str(path), [message])


def _cells(path: Path, book: Any) -> tuple[list[str], list[_Row]]:
    missing = [name for name in ("Scenario", "Inputs") if name not in book.sheetnames]
    if missing:
        raise WorkbookError(str(path), [f"there is no sheet {' or '.join(missing)}: give a workbook of a report"])
    lines = [
        str(row[0]) if row and row[0] is not None else ""
        for row in book["Scenario"].iter_rows(min_row=SCENARIO_ROW + 1, max_col=1, values_only=True)
    ]
    heads = next(book["Inputs"].iter_rows(min_row=INPUT_ROW, max_row=INPUT_ROW, values_only=True), ())
    _check_heads(path, heads)
    rows = list(_rows(book["Inputs"]))
    while lines and not lines[-1]:
        lines.pop()
    return lines, rows


def _check_heads(path: Path, heads: tuple[Any, ...]) -> None:
    wanted = INPUT_HEADS[:8]
    wrong = [
        f"Inputs!{_COLUMNS[head]}{INPUT_ROW}: the header must be {head!r}, it is {found!r}"
        for head, found in zip(wanted, [*heads, *[None] * 8], strict=False)
        if head != found
    ]
    if wrong:
        raise WorkbookError(str(path), wrong)


def _rows(sheet: Any) -> Iterator[_Row]:
    for offset, cells in enumerate(sheet.iter_rows(min_row=INPUT_ROW + 1, max_col=8, values_only=True)):
        padded = (*cells, *[None] * (8 - len(cells)))
        if any(value is not None for value in padded):
            path, start, end, value, held, unit, low, high = padded
            yield _Row(INPUT_ROW + 1 + offset, path, start, end, value, held, unit, low, high)


def _load(text: str, name: str, sets: Sequence[tuple[str, Any]] = ()) -> Scenario:
    """A scenario from text; its only parent can be a library scenario, so the folder does not matter."""
    from scenarios.load import load_scenario

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "workbook.yaml"
        file.write_text(text, encoding="utf-8")
        return load_scenario(file, sets, name=name)


def _resolved(path: Path, text: str) -> Resolved:
    from scenarios.errors import ScenarioError
    from scenarios.resolve import resolve

    try:
        return resolve(_load(text, "workbook"))
    except ScenarioError as exc:
        found = [f"Scenario!A{SCENARIO_ROW + p.where.line}: {p.path}: {p.message}" for p in exc.problems]
        raise WorkbookError(str(path), found) from exc


Edits = list[tuple[str, Any]]
Places = list[tuple[str, str]]


def _edits(rows: list[_Row], resolved: Resolved) -> tuple[Edits, list[str], Places]:
    """Edits in the order of the sheet, every problem, and (path, cell) of each edit."""
    labels = resolved.horizon.labels()
    known = {(r.path, r.period): r for r in resolved.inputs().itertuples()}
    edits: Edits = []
    problems: list[str] = []
    places: Places = []
    seen: dict[tuple[Any, Any], _Row] = {}
    for row in rows:
        key = (row.path, row.start)
        if key in seen:
            problems.append(f"{row.cell('Path')}: {row.path} from {row.start} stands in row {seen[key].row} too")
            continue
        seen[key] = row
        wrong = _wrong(row, known.get(key))
        problems += wrong
        if wrong or _same(row.value, row.held):
            continue
        value = _inside(float(row.value), resolved, str(row.path))
        whole = row.start == labels[0] and row.end == labels[-1]
        edits.append((str(row.path), value if whole else _window(value, row, labels)))
        places.append((str(row.path), row.cell("Value")))
    gone = [key for key in known if key not in seen]
    problems += [f"Inputs: the row of {path} from {start} is missing; put it back" for path, start in gone]
    return edits, problems, places


def _inside(value: float, resolved: Resolved, path: str) -> float:
    """A value of the sheet as a plain number in a file: survival is written a quarter and shown a period."""
    if resolved.measures[path].kind == "survival" and value > 0:
        return float(value ** (3.0 / resolved.horizon.months))
    return value


def _window(value: float, row: _Row, labels: list[str]) -> dict[str, Any]:
    edit: dict[str, Any] = {"replace": value}
    if row.start != labels[0]:
        edit["from"] = str(row.start)
    if row.end != labels[-1]:
        edit["to"] = str(row.end)
    return edit


def _same(a: Any, b: Any) -> bool:
    return bool(abs(float(a) - float(b)) <= _UNTOUCHED * max(abs(float(a)), abs(float(b))))


def _is_number(value: Any) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool) and abs(value) < 1e300


def _wrong(row: _Row, known: Any) -> list[str]:
    """What is wrong with a row: names that are not the run's, a value that is no number, cells that are not read."""
    if known is None:
        return [f"{row.cell('Path')}: {row.path!r} from {row.start!r} is no input of this scenario; undo the change"]
    found = []
    for head, value, wanted in (("To", row.end, known.to), ("Unit", row.unit or "", known.unit or "")):
        if value != wanted:
            found.append(f"{row.cell(head)}: must be {wanted!r}, it is {value!r}; only the column Value is read back")
    if not _is_number(row.value):
        what = (
            "is empty, or a formula that no program has computed"
            if row.value is None
            else f"{row.value!r} is no number"
        )
        found.append(f"{row.cell('Value')}: {what}; write a number in {row.unit or 'the unit of the row'}")
    if not _is_number(row.held) or abs(row.held - known.value) > 1e-12 * max(abs(known.value), 1e-300):
        found.append(
            f"{row.cell('Value in the run')}: the scenario gives {known.value!r}, the cell {row.held!r}: the column "
            "was edited, or the facts have changed since; make the workbook again"
        )
    for head, value, wanted in (("Low", row.low, known.low), ("High", row.high, known.high)):
        if not _same_range(value, wanted):
            found.append(
                f"{row.cell(head)}: a range is not read back (was {wanted!r}); state a distribution in the file"
            )
    return found


def _same_range(value: Any, wanted: Any) -> bool:
    empty = wanted is None or wanted != wanted
    if value is None or empty:
        return value is None and empty
    return _is_number(value) and abs(value - wanted) <= 1e-12 * max(abs(wanted), 1e-300)


def _with_edits(text: str, edits: Edits) -> str:
    """The scenario with the edits at the end of its `set`; one entry an edit."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.width = 140
    data = yaml.load(text)
    held = data.get("set")
    entries = [{k: v} for k, v in held.items()] if isinstance(held, dict) else list(held or [])
    entries += [{path: value} for path, value in edits]
    patterns = [next(iter(entry)) for entry in entries]
    once = len(set(patterns)) == len(patterns)
    data["set"] = {k: v for entry in entries for k, v in entry.items()} if once else entries
    out = io.StringIO()
    yaml.dump(data, out)
    return out.getvalue()


def _check_edited(path: Path, text: str, places: Places) -> None:
    """The edited scenario must load and resolve; a problem is told at the cell that caused it."""
    from scenarios.errors import ScenarioError
    from scenarios.resolve import resolve

    try:
        resolve(_load(text, "workbook"))
    except ScenarioError as exc:
        cells: dict[str, str] = {}
        for name, place in places:
            cells[name] = f"{cells[name]}, {place}" if name in cells else place
        found = [f"{cells.get(p.path, 'Inputs')}: {p.path}: {p.message}" for p in exc.problems]
        raise WorkbookError(str(path), found) from exc
