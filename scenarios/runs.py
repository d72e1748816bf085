"""A finished run: its tables, its answer as one object, and the folder that holds it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.run_store import RunFolderError, check_complete, check_file, read_table

if TYPE_CHECKING:
    import pandas as pd

    from scenarios.resolve import Resolved
    from supply.optimizer.solution import Solution

__all__ = ["Run", "main_limit"]


@dataclass
class Run:
    """One run, in memory or opened from its folder.

    `results`, `inputs` and `checks` are tidy tables (docs/scenario_language.md and the design give their columns);
    `json()` is what `wafer2token run --json` prints. A run made in this process also holds `solution` and `resolved`.
    """

    manifest: dict[str, Any]
    answer: dict[str, Any]
    folder: Path | None = None
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    solution: Solution | None = None
    resolved: Resolved | None = None

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """Open a finished run folder.

        Raises:
            RunFolderError: when the folder is not a whole run.
        """
        place = Path(folder)
        manifest = check_complete(place)
        if "answer.json" not in manifest["files"]:
            raise RunFolderError(f"{place} holds no answer of a run (a folder of draws has none): give a run's folder")
        answer = json.loads((place / "answer.json").read_text(encoding="utf-8"))
        return cls(manifest, answer, place)

    @property
    def id(self) -> str:
        """Short name of the run: scenario and the first digits of its hash."""
        return str(self.manifest["run"])

    @property
    def hash(self) -> str:
        """SHA-256 of the run's input, facts and program version."""
        return str(self.manifest["hash"])

    @property
    def scenario(self) -> str:
        """Name of the scenario."""
        return str(self.manifest["scenario"])

    @property
    def status(self) -> str:
        """Solver status, `optimal` for a finished run."""
        return str(self.answer["status"])

    def table(self, name: str) -> pd.DataFrame:
        """`results`, `inputs`, `checks` or a table of `scenarios.report_tables`.

        Raises:
            KeyError: the run has no such table. RunFolderError: its file was changed since the run was opened.
        """
        if name not in self.tables:
            file, held = f"{name}.parquet", self.manifest.get("files", {})
            if self.folder is None or file not in held:
                there = sorted({*self.tables, *(f.removesuffix(".parquet") for f in held if f.endswith(".parquet"))})
                raise KeyError(f"the run has no table {name!r}; it has {', '.join(there)}")
            self.tables[name] = read_table(check_file(self.folder, self.manifest, file))
        return self.tables[name]

    @property
    def results(self) -> pd.DataFrame:
        """run, scenario, draw, period, region, stage, subject, sku, model, quantity, value, low, high, unit."""
        return self.table("results")

    @property
    def inputs(self) -> pd.DataFrame:
        """path, period, to, value, low, high, unit, kind, fact_ids, spread, note."""
        return self.table("inputs")

    @property
    def checks(self) -> pd.DataFrame:
        """check, subject, period, value, tolerance, passed."""
        return self.table("checks")

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return bool(self.checks["passed"].all())

    def json(self) -> dict[str, Any]:
        """The answer of the run as one object (see the design, section 8)."""
        return self.answer

    def output(self, name: str) -> float:
        """Value of an output such as `energised:*@2026-Q4`, read from the results."""
        from scenarios.outputs import read_output

        return read_output(self.results, name)

    def query(self, sql: str) -> pd.DataFrame:
        """Ask the tables in SQL: `SELECT sku, sum(value) FROM results WHERE quantity = 'energised' GROUP BY sku`."""
        import duckdb

        with duckdb.connect() as connection:
            for name in ("results", "inputs", "checks"):
                connection.register(name, self.table(name))
            frame: pd.DataFrame = connection.execute(sql).df()
        return frame

    def __repr__(self) -> str:
        return f"Run({self.id}, {self.status}, {self.folder or 'in memory'})"


def main_limit(answer: Mapping[str, Any], period: str) -> dict[str, Any] | None:
    """The binding capacity with the largest rent in a period, or in the last period that has one."""
    by_period = {p["period"]: p["binding"] for p in answer["periods"]}
    for label in [period, *reversed(by_period)]:
        if rows := by_period.get(label):
            return {**rows[0], "period": label}
    return None
