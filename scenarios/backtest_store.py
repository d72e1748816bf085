"""Backtests as tables: written to a folder, and the scoreboard that ships with the program for reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from scenarios.backtest import TABLES, Backtest
from supply.files import whole_file, whole_text
from supply.paths import data_file

__all__ = ["STORED", "stored_backtest", "write_backtest"]

#: Tables of the shipped scoreboard under `data/backtest`.
STORED = ("summary", "scores", "others", "causes", "stand_ins")


def write_backtest(
    done: Sequence[Backtest], folder: str | Path, extra: Mapping[str, pd.DataFrame] | None = None
) -> Path:
    """Store the tables of backtests with their origin, as `backtest_scores.parquet` ... and `scores.csv` ...

    The CSV files are rounded to six digits, so that the shipped scoreboard is small and its changes can be read.
    Returns the folder.
    """
    from scenarios.run_store import write_table

    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    tables = dict(extra or {})
    for name in TABLES:
        frames = [getattr(b, name).assign(origin=b.origin.isoformat(), draws=b.draws, failed=b.failed) for b in done]
        tables[name] = pd.concat(frames, ignore_index=True)
    for name, table in tables.items():
        with whole_file(place / f"backtest_{name}.parquet") as working:
            write_table(table, working)
        with whole_text(place / f"{name}.csv") as stream:
            table.to_csv(stream, index=False, float_format="%.6g", lineterminator="\n")
    return place


def stored_backtest() -> dict[str, pd.DataFrame]:
    """The scoreboard that ships with the program: tables `summary`, `scores`, `others`, `causes`, `stand_ins`.

    >>> sorted(stored_backtest()["summary"]["origin"].unique().tolist())
    ['2024-01-01', '2025-01-01']

    Raises:
        FileNotFoundError: when the data folder holds no scoreboard.
    """
    return {
        name: pd.read_csv(data_file("backtest", f"{name}.csv"), keep_default_na=False, na_values=[""])
        for name in STORED
    }
