"""One table over the library: every named scenario solved once, side by side.

A row: accelerators energised in each year and, since parts differ, their H100-equivalents over all the years; the
stage whose limits cost most in each year; the cost of an hour of one
accelerator and of a million output tokens of one model on it, and the hash of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from scenarios.errors import InfeasibleError, ScenarioError
from scenarios.limit_rents import scarcest_stage
from scenarios.load import load_scenario
from scenarios.locate import names
from scenarios.runner import run

if TYPE_CHECKING:
    from pathlib import Path

    from scenarios.runs import Run

__all__ = ["change_words", "compare_all", "library_cases", "markdown", "money_words"]

#: Scenarios that mean something on today's facts only in their own verb, or have no accelerators.
_APART = ("backtest_", "course_")
Progress = Callable[[str], None]


def library_cases() -> list[str]:
    """Names of the scenarios that are compared: `base` first, then the others; backtests and the course example not.

    >>> library_cases()[0], "backtest_2024" in library_cases()
    ('base', False)
    """
    found = [n for n in names() if not n.startswith(_APART)]
    return sorted(found, key=lambda n: (n != "base", n == "small", n))


def compare_all(
    scenarios: Sequence[str] | None = None,
    *,
    years: Sequence[str] = ("2026", "2027", "2028"),
    sku: str = "b200",
    model: str = "llama_3_1_70b",
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Solve scenarios and put them in one table, a row each; with `out` the runs are stored and found again.

    Columns: scenario, title, regime, energised_YEAR, h100e (energised over the years), binding_YEAR (stage with the
    largest rent), rents_YEAR (shares of the leading stages in words), usd_per_gpu_hour and usd_per_mtoken (of `sku`,
    and of `model` on it, mean of the last year), hash, problem (empty, or why there is no plan). A figure that a
    scenario does not have is missing, never zero.

    Raises:
        ScenarioError: a scenario that is wrong or not there. ValueError: no year, or a product that none of them has.
    """
    if not years:
        raise ValueError("compare_all needs at least one year")
    say = progress or (lambda text: None)
    rows: list[dict[str, Any]] = []
    chosen = list(scenarios) if scenarios is not None else library_cases()
    for number, name in enumerate(chosen, start=1):
        say(f"{name} ({number} of {len(chosen)}) ...")
        try:
            rows.append(_row(run(name, out=out, prices=False), years, sku, model))
        except InfeasibleError as exc:
            title = load_scenario(name).title
            rows.append({"scenario": name, "title": title, "problem": str(exc).splitlines()[0]})
    if rows and not any(r.get("usd_per_gpu_hour") for r in rows) and not all(r["problem"] for r in rows):
        raise ValueError(f"none of the scenarios has a cost of {sku!r} in {years[-1]}: name another --sku or year")
    columns = ["scenario", "title", "regime", *(f"energised_{y}" for y in years), "h100e"]
    columns += [*(f"binding_{y}" for y in years), *(f"rents_{y}" for y in years), "usd_per_gpu_hour", "usd_per_mtoken"]
    return pd.DataFrame(rows, columns=[*columns, "hash", "problem"])


def _row(done: Run, years: Sequence[str], sku: str, model: str) -> dict[str, Any]:
    binding = done.table("binding")
    last = years[-1]
    row: dict[str, Any] = {"scenario": done.scenario, "title": done.answer["title"], "regime": done.answer["regime"]}
    for year in years:
        row[f"energised_{year}"] = _output(done, f"energised:*@{year}")
        row[f"binding_{year}"] = scarcest_stage(binding, year)
        row[f"rents_{year}"] = rent_shares(binding, year)
    found = [_output(done, f"energised_h100e:*@{y}") for y in years]
    row["h100e"] = None if None in found else sum(v for v in found if v is not None)
    row["usd_per_gpu_hour"] = _output(done, f"usd_per_gpu_hour:{sku}@{last}")
    row["usd_per_mtoken"] = _output(done, f"usd_per_mtoken_output:{model}/{sku}@{last}")
    return row | {"hash": done.hash, "problem": ""}


def rent_shares(binding: pd.DataFrame, year: str, most: int = 2) -> str:
    """The stages with most of a year's rents, with their shares.

    >>> rent_shares(pd.DataFrame({"period": ["2026-Q1"] * 2, "stage": ["hbm", "power"], "rent": [3.0, 1.0]}), "2026")
    'hbm 75 %, power 25 %'
    """
    rent = binding[binding["period"].str.startswith(year)].groupby("stage")["rent"].sum()
    whole = float(rent.sum())
    if whole <= 0:
        return ""
    order = rent.sort_values(ascending=False).head(most)
    return ", ".join(f"{s} {100 * v / whole:.0f} %" for s, v in order.items() if v / whole >= 0.005)


def _output(done: Run, name: str) -> float | None:
    """An output of a run; None where the scenario has no such product or year."""
    try:
        return done.output(name)
    except ScenarioError:
        return None


def markdown(table: pd.DataFrame) -> str:
    """The table as Markdown: accelerators in millions, change against the first row in per cent, hashes short.

    >>> row = {"scenario": "a", "energised_2026": 2e6, "h100e": 3e6, "rents_2026": "hbm 90 %", "usd_per_gpu_hour": 2.5,
    ...        "usd_per_mtoken": None, "hash": "0123456789abcdef", "problem": ""}
    >>> print(markdown(pd.DataFrame([row])).splitlines()[-1])
    | a | 2.00 | 3.00 | hbm 90 % | 2.50 | - | 0123456789ab |
    """
    years = [c.removeprefix("energised_") for c in table.columns if c.startswith("energised_")]
    head = [
        "scenario",
        *(f"energised {y}, millions" for y in years),
        "H100e, all years",
        *(f"rents {y}" for y in years),
    ]
    head += ["$/GPU-hour", "$/Mtoken", "run"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    first = table.iloc[0]
    for _, row in table.iterrows():
        cells = [str(row["scenario"])]
        cells += [change_words(row[f"energised_{y}"], first[f"energised_{y}"]) for y in years]
        cells.append(change_words(row["h100e"], first["h100e"]))
        cells += [str(row[f"rents_{y}"]) if pd.notna(row[f"rents_{y}"]) and row[f"rents_{y}"] else "-" for y in years]
        cells += [money_words(row["usd_per_gpu_hour"]), money_words(row["usd_per_mtoken"])]
        cells.append(str(row["hash"])[:12] if pd.notna(row["hash"]) else str(row["problem"]))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def change_words(value: float | None, first: float | None) -> str:
    """Millions, and the change against the first scenario in per cent.

    >>> change_words(11e6, 10e6), change_words(None, 10e6)
    ('11.00 (+10 %)', '-')
    """
    if value is None or pd.isna(value):
        return "-"
    text = f"{value / 1e6:.2f}"
    if first is None or pd.isna(first) or value == first:
        return text
    return f"{text} ({100 * (value / first - 1):+.0f} %)"


def money_words(value: float | None) -> str:
    """An amount with cents; a dash where there is none."""
    return "-" if value is None or pd.isna(value) else f"{value:.2f}"
