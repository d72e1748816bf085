"""Section: stored studies that were made beside the run - maps, resilience, sensitivity, discovery, other scenarios."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from reports.blocks import Section, Table
from reports.catalogue import say
from reports.context import Context
from reports.figures.cases import headline_curve, row_of
from reports.figures.style import FigureCard
from reports.figures.yield_power_map import binding_map
from reports.sections.limits import scope
from reports.tables import records
from reports.wording import count, percent, plain
from scenarios.break_evens import FALL

__all__ = ["StudyError", "studies_section"]

#: Rows of a ranking that are printed; the file holds the rest.
MOST_ROWS = 15
#: Plans that a curve needs: a line through fewer hides its kinks.
FEWEST_PLANS = 5


class StudyError(ValueError):
    """A folder of studies that cannot stand in this report; the message says why and what to do."""


def studies_section(c: Context, folders: Sequence[Path]) -> Section | None:
    """What the files of the folders hold, each with the words that it needs; None where no folder is given.

    Raises:
        StudyError: a folder without a file of a study, a broken file, or a study of another scenario.
    """
    if not folders:
        return None
    s = Section("studies")
    s.paragraphs.append(say("studies.stored", scenario=c.run.scenario))
    for folder in folders:
        found = [(read, path) for name, read in _READERS.items() for path in sorted(Path(folder).glob(name))]
        if not found:
            raise StudyError(f"{folder}: no file of a study ({', '.join(_READERS)}); make one with `--out {folder}`")
        for read, path in found:
            try:
                read(c, s, path)
            except (KeyError, IndexError, TypeError, json.JSONDecodeError, pd.errors.ParserError) as exc:
                raise StudyError(f"{path} is broken ({exc!r}): make the study again") from exc
    return s


def _load(c: Context, path: Path) -> dict[str, Any]:
    held: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    named = held.get("scenario", c.run.scenario)
    if named != c.run.scenario:
        raise StudyError(f"{path}: a study of {named!r}, but the run is of {c.run.scenario!r}")
    return held


def _map(c: Context, s: Section, path: Path) -> None:
    found = _load(c, path)
    stages = dict(zip(c.quantity("capacity")["subject"], c.quantity("capacity")["stage"], strict=True))
    titles = {r: c.title(r) for r in stages}
    for name in found["outputs"]:
        _add(s, binding_map(found, name, titles, name, scope(c), stages))
        if (card := _curve(c, found, name, titles)) is not None:
            _add(s, card)
    rows = [
        [plain(x, 2), plain(y, 2), *[(count(t[j][i]), t[j][i]) for t in found["outputs"].values()],
         titles.get(found["binding"][j][i], found["binding"][j][i] or "-")]
        for j, y in enumerate(found["y_scale"]) for i, x in enumerate(found["x_scale"])
    ]  # fmt: skip
    outputs = [f"#{name}" for name in found["outputs"]]
    s.tables.append(Table.named("map", rows, folded=True, x=found["x"], y=found["y"], outputs=outputs))


def _curve(c: Context, found: Mapping[str, Any], name: str, titles: Mapping[str, str]) -> FigureCard | None:
    """The output against the first input of a map, where a tenth of it is lost marked; None with too few plans."""
    curve, at = row_of(found, name)
    if curve["output"].count() < FEWEST_PLANS:
        return None
    solved = curve.dropna(subset=["output"])
    base = 1.0 if solved["input"].min() <= 1.0 <= solved["input"].max() else None
    target = None if base is None else (1 - FALL) * float(np.interp(1.0, solved["input"], solved["output"]))
    other = say("studies.curve_at", input=found["y"], at=percent(at), scope=scope(c))
    axis = say("figures.axes.of_base", input=found["x"])
    return headline_curve(curve, (axis, name), other, titles, base=base, target=target, shown=percent)


def _add(s: Section, card: FigureCard) -> None:
    """A figure with a name of its own among those of its kind."""
    many = sum(f.id.startswith(card.id) for f in s.figures)
    s.figures.append(replace(card, id=f"{card.id}_{many + 1}") if many else card)


def _resilience(c: Context, s: Section, path: Path) -> None:
    rows = []
    for r in records(pd.read_csv(path)):
        lasts = say("studies.at_least", periods=int(r.time_to_survive)) if r.at_least else f"{r.time_to_survive}"
        price = ("-", None) if pd.isna(r.price) else (plain(r.price), r.price)
        rows.append(
            [
                c.title(r.id),
                (lasts, float(r.time_to_survive)),
                (f"{r.time_to_recover}", float(r.time_to_recover)),
                (plain(r.loss), r.loss),
                (percent(r.loss_share), r.loss_share),
                price,
            ]
        )
    s.tables.append(Table.named("resilience", rows[:MOST_ROWS]))


def _sensitivity(c: Context, s: Section, path: Path) -> None:
    found = _load(c, path)
    for name, ranking in found["outputs"].items():
        heads = [k for k in ranking[0] if not isinstance(ranking[0][k], list | dict)]
        rows = [[_cell(row[k]) for k in heads] for row in ranking[:MOST_ROWS]]
        kinds = [f"#{k}" if isinstance(ranking[0][k], int | float) else k for k in heads]
        titles = [k.replace("_", " ") for k in kinds]
        s.tables.append(
            Table.named(
                "sensitivity", rows, output=name, method=found["method"], solves=found["evaluations"], measures=titles
            )
        )


def _cell(value: Any) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return (plain(float(value)), float(value)) if number else ("-" if value is None else str(value))


def _discovery(c: Context, s: Section, path: Path) -> None:
    found = _load(c, path)
    rows = [
        [r["words"], (percent(r["density"]), r["density"]), (percent(r["coverage"]), r["coverage"])]
        for r in found["rules"]
    ]
    share = percent(found["share"])
    s.tables.append(Table.named("discovery", rows, target=found["target"], draws=found["draws"], share=share))


def _library(c: Context, s: Section, path: Path) -> None:
    table = pd.read_csv(path)
    numbers = set(table.select_dtypes("number").columns)
    rows = [[_cell(None if pd.isna(v) else v) for v in line] for line in table.itertuples(index=False, name=None)]
    heads = [f"#{k}" if k in numbers else str(k) for k in table.columns]
    s.tables.append(Table.named("library", rows, measures=[h.replace("_", " ") for h in heads]))


_READERS: Mapping[str, Callable[[Context, Section, Path], None]] = {
    "map.json": _map,
    "resilience.csv": _resilience,
    "sensitivity_*.json": _sensitivity,
    "discovery.json": _discovery,
    "compare_all.csv": _library,
}
