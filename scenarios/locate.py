"""Where scenarios live: the shipped library, and files with their one parent."""

from __future__ import annotations

from pathlib import Path

from scenarios.errors import Position, Problem, ScenarioError, did_you_mean
from scenarios.positions import Document, read_document

__all__ = ["find", "lineage", "names"]

MOST_NAME = 1000
MOST_FILE_NAME = 200
FOLDER = Path(__file__).parent / "library"


def names() -> list[str]:
    """Names of the library scenarios, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def find(name_or_path: str | Path) -> Path:
    """File of a library name (`base`) or a path (`my/case.yaml`).

    Raises:
        ScenarioError: when there is no such file; the message offers the nearest library names.
    """
    path = Path(name_or_path)
    if len(str(path)) > MOST_NAME or "\0" in str(path):
        where = Position(str(path)[:40], 1, 1)
        raise ScenarioError([Problem(where, "", f"a scenario name of {len(str(path))} characters: give a file name")])
    if path.suffix.lower() == ".xlsx":
        message = "a workbook is read by `run` and `check`; elsewhere give the folder or the scenario.yaml of its run"
        raise ScenarioError([Problem(Position(str(path), 1, 1), "", message)])
    if path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        if path.exists():
            return path
        beside = [str(f) for f in path.parent.glob("*.y*ml")] if path.parent.is_dir() else []
        message = f"there is no such file{did_you_mean(str(path), beside)}"
        raise ScenarioError([Problem(Position(str(path), 1, 1), "", message)])
    shipped = FOLDER / f"{name_or_path}.yaml"
    if shipped.is_file():
        return shipped
    file = Path(f"{name_or_path}.yaml")
    hint = f"; did you mean the file {file}?" if file.is_file() else did_you_mean(str(name_or_path), names())
    raise ScenarioError([Problem(Position(str(name_or_path), 1, 1), "", f"no library scenario of this name{hint}")])


def shown(path: Path) -> str:
    """The name of a file in messages: short, and the same on every machine for the library."""
    if path.parent == FOLDER:
        return f"library/{path.name}"
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def lineage(path: Path) -> list[Document]:
    """The documents of a scenario, oldest parent first.

    Raises:
        ScenarioError: unknown parent, a parent outside the folder, a circle, or bad YAML.
    """
    documents: list[Document] = []
    seen: list[Path] = []
    current: Path | None = path
    while current is not None:
        seen.append(current.resolve())
        document = read_document(current, shown(current))
        documents.append(document)
        parent = document.data.get("extends")
        current = _parent(current, document, parent) if parent is not None else None
        if current is not None and current.resolve() in seen:
            where = document.position(("extends",))
            raise ScenarioError([Problem(where, "extends", f"{parent} extends this file again: a circle")])
    return documents[::-1]


def _parent(child: Path, document: Document, parent: object) -> Path:
    where = document.position(("extends",))
    if not isinstance(parent, str) or not 0 < len(parent) <= MOST_FILE_NAME:
        raise ScenarioError([Problem(where, "extends", f"{parent!r:.60} is not one name: a scenario has one parent")])
    candidate = Path(parent)
    if candidate.suffix not in (".yaml", ".yml") and len(candidate.parts) == 1:
        sibling = child.parent / f"{parent}.yaml"
        if parent in names():
            return FOLDER / f"{parent}.yaml"
        if sibling.is_file() and sibling.resolve() != child.resolve():
            return sibling
        raise ScenarioError([Problem(where, "extends", f"no scenario {parent!r}{did_you_mean(parent, names())}")])
    if candidate.is_absolute() or ".." in candidate.parts:
        raise ScenarioError(
            [Problem(where, "extends", f"{parent!r} leaves the folder: use a file in the same folder or below")]
        )
    target = child.parent / candidate
    if not target.is_file():
        raise ScenarioError([Problem(where, "extends", f"there is no file {parent!r} beside this one")])
    if not target.resolve().is_relative_to(child.parent.resolve()):
        message = f"{parent!r} is a link out of the folder: copy the parent beside this file"
        raise ScenarioError([Problem(where, "extends", message)])
    return target
