"""An edited workbook back to a scenario: every row with a changed yellow cell is one entry of `set`."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.workbook_inputs import INPUT_HEADS, INPUT_ROW, OWN_KINDS, SCENARIO_ROW
from supply.input_files import InputFileError, read_bytes

if TYPE_CHECKING:
    from scenarios.load import Scenario
    from scenarios.resolve import Resolved

__all__ = ["WorkbookError", "load_workbook_scenario", "read_workbook"]

#: Relative difference that a spreadsheet program may leave in a number that nobody touched (15 digits kept).
_UNTOUCHED = 1e-14
#: Limits of a workbook that is read back; the one of base has 1 MB, 8 MB unpacked, in some 40 parts.
MOST_UNPACKED = 64_000_000
MOST_PARTS = 1000
MOST_ROWS = 100_000
#: Numbers beyond this are slips of a keyboard, and would overflow in what follows.
_LARGEST = 1e300
#: Beginning of a declaration of entities, in one and in two bytes a letter.
_DECLARED = (b"<!DOCTYPE", b"<!ENTITY", "<!DOCTYPE".encode("utf-16-le"), "<!DOCTYPE".encode("utf-16-be"))
_COLUMNS = {head: chr(65 + k) for k, head in enumerate(INPUT_HEADS)}
#: The columns that are read: those of a row, and its note.
_READ = (*INPUT_HEADS[:9], "Note")


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
    kind: Any
    note: Any

    def cell(self, head: str) -> str:
        return f"Inputs!{_COLUMNS[head]}{self.row}"


def read_workbook(path: str | Path) -> str:
    """The scenario that a workbook states: the text of a file with `extends` (or the whole scenario) and `set`.

    A workbook that nobody edited gives a scenario with the hash of its run. A row whose value, low, high or kind was
    edited becomes what it says: `PATH: VALUE`, or `{value, range, kind, note}` where it has a range or is illustrative,
    within `{replace: .., from: .., to: ..}` where it does not hold in every period; in the unit of the row.

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
        content = io.BytesIO(read_bytes(path, "workbook"))  # openpyxl leaves a file open when it fails
    except InputFileError as exc:
        raise WorkbookError(str(path), [str(exc).removeprefix(f"{path}: ")]) from exc
    try:
        _refuse_giants(path, content)
        book = load_workbook(content, read_only=True, data_only=True)
    except WorkbookError:
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


def _refuse_giants(path: Path, content: io.BytesIO) -> None:
    """A workbook that would fill the memory is refused by the sizes that its own directory states."""
    from zipfile import ZipFile

    with ZipFile(content) as archive:
        parts = archive.infolist()
        unpacked = sum(part.file_size for part in parts)
        if unpacked > MOST_UNPACKED or len(parts) > MOST_PARTS:
            most = f"at most {MOST_UNPACKED:,} in {MOST_PARTS}"
            raise WorkbookError(str(path), [f"it unpacks to {unpacked:,} bytes in {len(parts)} parts: {most}"])
        for part in parts:
            if any(sign in archive.read(part) for sign in _DECLARED):
                message = f"its part {part.filename!r} declares entities, which no spreadsheet program writes"
                raise WorkbookError(str(path), [f"{message}: save it again"])


def _cells(path: Path, book: Any) -> tuple[list[str], list[_Row]]:
    missing = [name for name in ("Scenario", "Inputs") if name not in book.sheetnames]
    if missing:
        raise WorkbookError(str(path), [f"there is no sheet {' or '.join(missing)}: give a workbook of a report"])
    lines = [
        str(row[0]) if row and row[0] is not None else ""
        for row in book["Scenario"].iter_rows(min_row=SCENARIO_ROW + 1, max_row=MOST_ROWS, max_col=1, values_only=True)
    ]
    heads = next(book["Inputs"].iter_rows(min_row=INPUT_ROW, max_row=INPUT_ROW, values_only=True), ())
    _check_heads(path, heads)
    rows = list(_rows(book["Inputs"]))
    while lines and not lines[-1]:
        lines.pop()
    return lines, rows


def _check_heads(path: Path, heads: tuple[Any, ...]) -> None:
    found = dict(zip(INPUT_HEADS, [*heads, *[None] * len(INPUT_HEADS)], strict=False))
    wrong = [
        f"Inputs!{_COLUMNS[head]}{INPUT_ROW}: the header must be {head!r}, it is {_said(found[head])}"
        for head in _READ
        if head != found[head]
    ]
    if wrong:
        raise WorkbookError(str(path), wrong)


def _rows(sheet: Any) -> Iterator[_Row]:
    width = len(INPUT_HEADS)
    rows = sheet.iter_rows(min_row=INPUT_ROW + 1, max_row=MOST_ROWS, max_col=width, values_only=True)
    for offset, cells in enumerate(rows):
        held = dict(zip(INPUT_HEADS, (*cells, *[None] * (width - len(cells))), strict=False))
        values = [held[head] for head in _READ]
        if any(value is not None for value in values[:-1]):
            yield _Row(INPUT_ROW + 1 + offset, *values)


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
        if wrong or not _edited(row, known[key]):
            continue
        value = _stated(row, known[key], resolved)
        whole = row.start == labels[0] and row.end == labels[-1]
        edits.append((str(row.path), value if whole else _window(value, row, labels)))
        places.append((str(row.path), row.cell("Value")))
    gone = [key for key in known if key not in seen]
    problems += [f"Inputs: the row of {path} from {start} is missing; put it back" for path, start in gone]
    return edits, problems, places


def _edited(row: _Row, known: Any) -> bool:
    """Whether value, range or kind are no longer those of the run; a note alone changes nothing."""
    same = _same(row.value, row.held) and _same_end(row.low, known.low) and _same_end(row.high, known.high)
    return not same or row.kind != known.kind


def _stated(row: _Row, known: Any, resolved: Resolved) -> Any:
    """What an edited row says: its number, `{value, range}` where it has a range, kind and note where they count."""

    def inside(value: float) -> float:
        return _inside(float(value), resolved, str(row.path))

    value = inside(row.value)
    form: dict[str, Any] = {"value": value}
    if row.low is not None:
        form["range"] = [inside(row.low), inside(row.high)]
    if row.kind == "illustrative":
        form.setdefault("range", [value, value])  # no range in the row: without this line the rule would add one
        form |= {"kind": "illustrative", "note": _text(row.note) or "edited in a workbook; illustrative before"}
    elif row.note is not None and _text(row.note) != _text(known.note):
        form["note"] = _text(row.note)
    return form if len(form) > 1 else value


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip()


def _inside(value: float, resolved: Resolved, path: str) -> float:
    """A value of the sheet as a plain number in a file: survival is written a quarter and shown a period."""
    if resolved.measures[path].kind == "survival" and value > 0:
        return float(value ** (3.0 / resolved.horizon.months))
    return value


def _window(value: Any, row: _Row, labels: list[str]) -> dict[str, Any]:
    edit: dict[str, Any] = {"replace": value}
    if row.start != labels[0]:
        edit["from"] = str(row.start)
    if row.end != labels[-1]:
        edit["to"] = str(row.end)
    return edit


def _same(a: Any, b: Any) -> bool:
    return bool(abs(float(a) - float(b)) <= _UNTOUCHED * max(abs(float(a)), abs(float(b))))


def _is_number(value: Any) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool) and abs(value) < _LARGEST


def _said(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:40]} ... ({len(text)} characters)"


def _not_a_number(value: Any, unit: Any) -> str:
    if value is None:
        return f"is empty, or a formula that no program has computed; write a number in {unit or 'the unit of the row'}"
    if isinstance(value, float | int) and not isinstance(value, bool):
        return f"{_said(value)} is beyond {_LARGEST:g}; write a number in {unit or 'the unit of the row'}"
    return f"{_said(value)} is no number; write a number in {unit or 'the unit of the row'}"


def _wrong(row: _Row, known: Any) -> list[str]:
    """What is wrong with a row: names that are not the run's, a value or an end that is no number, an unknown kind."""
    if known is None:
        place = f"{_said(row.path)} from {_said(row.start)}"
        return [f"{row.cell('Path')}: {place} is no input of this scenario; undo the change"]
    found = []
    for head, value, wanted in (("To", row.end, known.to), ("Unit", row.unit or "", known.unit or "")):
        if value != wanted:
            found.append(f"{row.cell(head)}: must be {wanted!r}, it is {_said(value)}; undo the change")
    if not _is_number(row.value):
        found.append(f"{row.cell('Value')}: {_not_a_number(row.value, row.unit)}")
    if not _is_number(row.held) or not _same(row.held, known.value):
        found.append(
            f"{row.cell('Value in the run')}: the scenario gives {known.value!r}, the cell {_said(row.held)}: "
            "the column was edited, or the facts have changed since; make the workbook again"
        )
    return [*found, *_wrong_range(row), *_wrong_kind(row, known)]


def _wrong_range(row: _Row) -> list[str]:
    ends = [(head, value) for head, value in (("Low", row.low), ("High", row.high)) if value is not None]
    found = [f"{row.cell(head)}: {_not_a_number(value, row.unit)}" for head, value in ends if not _is_number(value)]
    if len(ends) == 1:
        other = "High" if ends[0][0] == "Low" else "Low"
        found.append(f"{row.cell(other)}: is empty, but {ends[0][0]} is not; a range has both ends, or clear both")
    if found or not ends or not _is_number(row.value):
        return found
    slack = 1e-12 * abs(row.value)
    if not row.low - slack <= row.value <= row.high + slack:
        found.append(
            f"{row.cell('Value')}: {row.value:g} is outside Low and High, {row.low:g} to {row.high:g}; "
            "change them too, or clear both"
        )
    return found


def _wrong_kind(row: _Row, known: Any) -> list[str]:
    if row.kind == known.kind:
        return []
    if row.kind not in OWN_KINDS:
        words = f"must be stated, illustrative or unchanged ({known.kind}), it is {_said(row.kind)}"
        return [f"{row.cell('Kind')}: {words}; any other kind needs a fact in the file"]
    if row.kind == "illustrative" and not _text(row.note):
        return [f"{row.cell('Note')}: is empty; an illustrative value needs its reason here"]
    return []


def _same_end(value: Any, wanted: Any) -> bool:
    """Whether an end of a range is that of the run; both may be absent."""
    empty = wanted is None or wanted != wanted
    return value is None if empty else value is not None and _same(value, wanted)


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
