"""`opening: {from_run: FOLDER}`: start from what another run held at the end of the period before the start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.run_store import RunFolderError
from scenarios.runs import Run

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["OpeningError", "closing_state", "fill_opening"]


class OpeningError(ValueError):
    """A run that cannot give an opening: not there, not whole, or without the period before the start."""


def fill_opening(data: dict[str, Any], beside: Path, stated: Callable[[tuple[str, ...]], bool]) -> None:
    """Write the closing state of the run that `opening.from_run` names into merged scenario data.

    What the file that names the run states itself (`stated` tells) is kept; what it inherits is replaced.

    Raises:
        OpeningError: when the folder is no run or does not report the period before `horizon.start`.
    """
    opening = data.get("opening")
    if not isinstance(opening, dict) or not opening.get("from_run"):
        return
    named = str(opening["from_run"])
    folder = next((p for p in (beside / named, Path(named)) if p.is_dir()), Path(named))
    try:
        run = Run.open(folder)
    except RunFolderError as exc:
        raise OpeningError(str(exc)) from exc
    horizon = data.get("horizon") or {}
    before = _period_before(str(horizon.get("start", "")))
    state = closing_state(run, before)
    note = f"closing state of run {run.id} in {before}"
    del opening["from_run"]  # the numbers are in the scenario now: its hash and its resolved file stand on their own
    opening["note"] = f"{opening.get('note', '')} {note}".strip()
    for key, known in (("stock", data.get("materials")), ("pipeline", data.get("processes"))):
        kept = {n: v for n, v in (opening.get(key) or {}).items() if stated(("opening", key, n))}
        found = {n: {"value": v, "note": note} for n, v in state[key].items() if n in (known or {})}
        opening[key] = {**found, **kept}
    for sku, entry in (data.get("fleet") or {}).items():
        kept = {g: v for g, v in (entry.get("opening") or {}).items() if stated(("fleet", sku, "opening", g))}
        found = {g: {"value": v, "note": note} for (s, g), v in state["fleet"].items() if s == sku}
        entry["opening"] = {**found, **kept}


def closing_state(run: Run, period: str) -> dict[str, dict[Any, float]]:
    """Stocks, starts and fleet of a run at the end of a period; starts stand for the pipeline of every later period.

    Raises:
        OpeningError: when the run does not report the period; the message gives its span.
    """
    rows = run.results[run.results["period"] == period]
    if rows.empty:
        periods = sorted(set(run.results["period"]))
        raise OpeningError(f"run {run.id} does not report {period}: it covers {periods[0]} to {periods[-1]}")
    return {
        "stock": _by(rows, "stock"),
        "pipeline": _by(rows, "starts"),
        "fleet": {
            (str(s), str(g)): float(v)
            for s, g, v in rows.loc[rows["quantity"] == "fleet", ["subject", "region", "value"]].to_numpy().tolist()
            if v > 0
        },
    }


def _by(rows: pd.DataFrame, quantity: str) -> dict[Any, float]:
    mine = rows.loc[rows["quantity"] == quantity, ["subject", "value"]].to_numpy().tolist()
    return {str(subject): float(value) for subject, value in mine if value > 0}


def _period_before(start: str) -> str:
    """The quarter or month before a period.

    >>> _period_before("2026-Q1"), _period_before("2026-03")
    ('2025-Q4', '2026-02')
    """
    from supply.network import Horizon

    step = "quarter" if "Q" in start else "month"
    return Horizon(start, 1, step).label(-1)
