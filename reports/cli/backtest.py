"""`wafer2token backtest`."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.cli.exits import print_json

if TYPE_CHECKING:
    import pandas as pd

    from scenarios.backtest import Backtest

__all__ = ["backtest_verb"]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


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
    done = [backtest(day, draws, seed, progress=_say) for day in days]
    looked = pd.concat([causes(day, progress=_say) for day in days], ignore_index=True) if with_causes else None
    if out is not None:
        _say(f"tables: {write_backtest(done, out, {} if looked is None else {'causes': looked})}")
    if as_json:
        found = {"backtests": [_plain(b.json()) for b in done]}
        print_json(found if looked is None else found | {"causes": _plain(looked.to_dict("records"))})
        return
    for b in done:
        _print(b)
    if looked is not None:
        _print_causes(looked)


def _day(text: str) -> date:
    from scenarios.scoring import ScoreError

    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ScoreError(f"--origin {text!r} is not a day such as 2024-01-01") from None


def _print(b: Backtest) -> None:
    inputs = f"{len(b.stand_ins)} inputs illustrative"
    print(f"\nBacktest from {b.origin}: {b.draws} draws, {b.failed} without a plan, {inputs}")
    print(f"{'':19}{'scored':>7}{'coverage':>10}{'width':>8}{'score':>8}{'last':>8}{'growth':>8}  beats both")
    for r in b.summary.to_dict("records"):
        name = f"{r['level']} {r['span']}s"
        print(
            f"{name:19}{r['scored']:7d}{r['coverage']:10.0%}{r['width']:8.2f}{r['score']:8.2f}{r['score_last']:8.2f}"
            f"{r['score_growth']:8.2f}  {'yes' if r['beats_both'] else 'no'}"
        )
    print(f"\n{'group':24}{'period':9}{'outcome':>9} {'its band':>14}{'forecast':>10} {'90 % band':>14}  thousand")
    for r in b.scores.to_dict("records"):
        if r["span"] == "year" or r["level"] == "part":
            print(_line(r))
    for r in b.others.to_dict("records"):
        ours = f"{r['value']:.3g} ({r['low']:.3g} to {r['high']:.3g})"
        print(f"{r['what']:20} {r['period']:8} {r['outcome']:8.3g} against {ours} {r['unit']}")


def _print_causes(table: pd.DataFrame) -> None:
    """Thousand units of the nominal plan, as forecast and with today's figures of one stage at a time."""
    print("\nNominal plan with today's figures of one stage, thousand units")
    for (origin, designer, year), rows in table.groupby(["origin", "designer", "year"], sort=False):
        units = ", ".join(f"{r['stage']} {r['units'] / 1e3:.0f}" for r in rows.to_dict("records"))
        print(f"  {origin} {designer} {year}: outcome {rows['outcome'].iloc[0] / 1e3:.0f}; {units}")


def _line(r: dict[Any, Any]) -> str:
    k = {key: float(r[key]) / 1e3 for key in ("outcome", "outcome_low", "outcome_high", "value", "low", "high")}
    theirs, ours = f"{k['outcome_low']:.0f}-{k['outcome_high']:.0f}", f"{k['low']:.0f}-{k['high']:.0f}"
    head = f"{r['title']:24}{r['period']:9}{k['outcome']:9.0f} {theirs:>14}{k['value']:10.0f} {ours:>14}"
    return head + ("" if r["inside"] else f"  MISS {r['reason']}")


def _plain(value: Any) -> Any:
    """numpy numbers as plain ones, what is not finite as null."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))) else value
