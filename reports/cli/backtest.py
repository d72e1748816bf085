"""`wafer2token backtest`."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.cli.exits import UsageError, plain, print_json
from reports.cli.terminal import head, line, say, table, whole

if TYPE_CHECKING:
    import pandas as pd

    from scenarios.backtest import Backtest

__all__ = ["backtest_verb"]


def backtest_verb(
    origin: str | None, draws: int, seed: int, out: Path | None, as_json: bool, with_causes: bool = False
) -> None:
    """Forecast from the origin (default: both), score, print the scoreboard.

    Raises:
        ScoreError: for a day without a backtest scenario (exit code 3).
    """
    import pandas as pd

    from scenarios.backtest import ORIGINS, backtest
    from scenarios.backtest_causes import causes
    from scenarios.backtest_store import write_backtest

    days = list(ORIGINS) if origin is None else [_day(origin)]
    done = [backtest(day, draws, seed, progress=say) for day in days]
    looked = pd.concat([causes(day, progress=say) for day in days], ignore_index=True) if with_causes else None
    written = None
    if out is not None:
        written = write_backtest(done, out, {} if looked is None else {"causes": looked})
    if as_json:
        found = {"backtests": [plain(b.json()) for b in done]}
        print_json(found if looked is None else found | {"causes": plain(looked.to_dict("records"))})
        return
    for b in done:
        _print(b)
    if looked is not None:
        _print_causes(looked)
    if written is not None:
        whole(f"written: {written}")
    else:
        line("Not stored: --out DIR writes the scores as tables. What they mean: docs/backtest.md.")


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--origin {text!r}: not a day; write one such as 2024-01-01") from None


def _print(b: Backtest) -> None:
    head(f"Backtest from {b.origin}: what was known on that day, against what came")
    line(f"{b.draws} draws, {b.failed} of them without a plan; {len(b.stand_ins)} inputs are illustrative.")
    rows = [
        [
            f"{r['level']}, by {r['span']}", f"{r['scored']:d}", f"{r['coverage']:.0%}", f"{r['width']:.2f}",
            f"{r['score']:.2f}", f"{r['score_last']:.2f}", f"{r['score_growth']:.2f}",
            "yes" if r["beats_both"] else "no",
        ]
        for r in b.summary.to_dict("records")
    ]  # fmt: skip
    table(["", "scored", "in band", "width", "score", "last", "growth", "beats both"], rows)
    line("in band: outcomes inside the 90 % band. width and score (smaller is better) in logarithms; last and growth: "
         "scores of two naive forecasts, that the last value or its growth goes on.")  # fmt: skip
    head("Thousands of units: outcome (its band) against forecast (90 % band)")
    lines = [_row(r) for r in b.scores.to_dict("records") if r["span"] == "year" or r["level"] == "part"]
    table(["group", "period", "outcome", "its band", "forecast", "90 % band", ""], [r[:7] for r in lines], words=2)
    line("* outside the 90 % band. Years that were missed, and why:")
    for title, period, *_, missed, reason in lines:
        if missed and "-" not in period:
            line(f"{title} {period}: {reason or 'no reason found'}", indent=2)
    for r in b.others.to_dict("records"):
        ours = f"{r['value']:.3g} ({r['low']:.3g} to {r['high']:.3g})"
        line(f"{r['what']} {r['period']}: outcome {r['outcome']:.3g}, forecast {ours} {r['unit']}")


def _print_causes(table: pd.DataFrame) -> None:
    """Thousand units of the nominal plan, as forecast and with today's figures of one stage at a time."""
    head("Nominal plan with today's figures of one stage, thousand units")
    for (origin, designer, year), rows in table.groupby(["origin", "designer", "year"], sort=False):
        units = ", ".join(f"{r['stage']} {r['units'] / 1e3:.0f}" for r in rows.to_dict("records"))
        line(f"{origin} {designer} {year}: outcome {rows['outcome'].iloc[0] / 1e3:.0f}; {units}", indent=2)


def _row(r: dict[Any, Any]) -> list[str]:
    """Cells of one scored total, and why it was missed."""
    k = {key: float(r[key]) / 1e3 for key in ("outcome", "outcome_low", "outcome_high", "value", "low", "high")}
    theirs, ours = f"{k['outcome_low']:.0f}-{k['outcome_high']:.0f}", f"{k['low']:.0f}-{k['high']:.0f}"
    missed = "" if r["inside"] else "*"
    reason = "" if r["inside"] else str(r["reason"])
    return [r["title"], r["period"], f"{k['outcome']:.0f}", theirs, f"{k['value']:.0f}", ours, missed, reason]
