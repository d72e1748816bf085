"""Scores of a backtest from made-up draws: what a perfect, a doubled and a scattered forecast must score."""

from __future__ import annotations

from datetime import date
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import scenarios.backtest_scores as scores
from scenarios.backtest_draws import RollingDraws
from scenarios.backtest_outcomes import GROUPS, naives, outcomes, site_power
from scenarios.backtest_scores import PUBLISHED, component_scores, group_scores, summarise
from supply.network import Horizon

ORIGIN = date(2024, 1, 1)
HORIZON = Horizon("2024-Q1", 8)
LABELS = HORIZON.labels()[:8]
RESOLVED: Any = SimpleNamespace(horizon=HORIZON)
DRAWS = 5


def forecasts(factors: list[float]) -> RollingDraws:
    """Each part-level group is forecast by its first part as its outcome times the factor of the draw."""
    columns: dict[str, np.ndarray[Any, Any]] = {}
    for group in GROUPS:
        if group.level == "part":
            for o in outcomes(group, LABELS):
                columns[f"finished:{group.skus[0]}@{o.period}"] = o.value * np.array(factors)
    values = np.column_stack(list(columns.values()))
    return RollingDraws(list(columns), values, {}, values[0])


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "LEVEL_ERROR", 0.0)


@pytest.mark.usefixtures("exact")
def test_a_perfect_forecast_scores_zero_and_beats_both_naives() -> None:
    table = group_scores(ORIGIN, RESOLVED, forecasts([1.0] * DRAWS), 0, None)
    parts = table[table["level"] == "part"]
    assert parts["inside"].all() and parts["score"].abs().max() < 1e-9
    assert parts["value"].to_numpy() == pytest.approx(parts["outcome"].to_numpy())
    assert set(table["origin"]) == {"2024-01-01"} and set(parts["span"]) == {"quarter", "year"}
    summary = summarise(table).set_index(["span", "level"])
    held = summary.loc[("quarter", "part")]
    assert held["coverage"] == 1.0 and held["width"] == pytest.approx(1.0)
    assert held["median_factor_error"] == pytest.approx(1.0) and held["beats_both"]
    assert held["scored"] == sum(len(outcomes(g, LABELS)) for g in GROUPS if g.level == "part")


@pytest.mark.usefixtures("exact")
def test_a_doubled_forecast_misses_by_its_distance() -> None:
    table = group_scores(ORIGIN, RESOLVED, forecasts([2.0] * DRAWS), 0, None)
    row = table[(table["group"] == "h100_h200") & (table["span"] == "quarter")].iloc[0]
    scale = np.mean([o.value for o in outcomes(GROUPS[0], LABELS)])
    assert not row["inside"] and row["score"] == pytest.approx(20 * row["outcome"] / scale)  # 2 / 0.1 x the miss
    last = naives(ORIGIN, 8)["h100_h200"]["last"][0]
    assert (row["naive_last"], row["naive_last_low"], row["naive_last_high"]) == (last.value, last.low, last.high)
    year = table[(table["group"] == "h100_h200") & (table["span"] == "year") & (table["period"] == "2024")].iloc[0]
    assert year["outcome"] == pytest.approx(sum(o.value for o in outcomes(GROUPS[0], LABELS[:4])))
    assert year["value"] == pytest.approx(2 * year["outcome"])
    assert summarise(table).set_index(["span", "level"]).loc[("quarter", "part"), "coverage"] == 0.0


def test_level_errors_widen_the_band_and_failed_draws_are_left_out() -> None:
    many = forecasts([1.0] * 4000)
    many.values[::7] = np.nan
    table = group_scores(ORIGIN, RESOLVED, many, 3, None)
    row = table[(table["group"] == "tpu_v6e") & (table["span"] == "quarter")].iloc[0]
    # 90 % of a log-normal factor of 30 % lies between 1 / 1.3 and 1.3
    assert row["high"] / row["value"] == pytest.approx(1.3, rel=0.05)
    assert row["value"] / row["low"] == pytest.approx(1.3, rel=0.05)
    assert np.isfinite(table["value"]).all()


def test_a_group_without_history_has_no_naive_forecast_and_no_comparison() -> None:
    table = group_scores(ORIGIN, RESOLVED, forecasts([1.0] * DRAWS), 0, None)
    new = table[table["group"] == "blackwell"]
    assert new["score_last"].isna().all() and new["naive_growth"].isna().all() and new["score"].notna().all()
    alone = summarise(new).iloc[0]
    assert alone["compared"] == 0 and not alone["beats_both"] and np.isnan(alone["coverage_last"])


def test_components_are_held_against_what_was_published() -> None:
    published = {(year, what): value for year, what, _, value, _, _ in PUBLISHED}
    power = {o.period: o.value for o in site_power(LABELS)}
    columns: dict[str, float] = {}
    for p in LABELS:
        year = p[:4]
        columns[f"power_mw:world@{p}"] = 1e3 * power[p]
        for part in ("cowos", "hbm", "logic"):
            columns[f"supply_{part}:world@{p}"] = 100.0
            columns[f"used_{part}:world@{p}"] = 100.0 * published.get((year, f"share {part}"), 0.5)
        whole = published[year, "spend all"] * 1e9 / 4
        hbm = published[year, "hbm part"] * whole
        columns |= {f"spend_hbm:world@{p}": hbm, f"spend_packaging:world@{p}": 0.25 * (whole - hbm)}
        columns[f"spend_logic:world@{p}"] = 0.75 * (whole - hbm)
    values = np.tile(list(columns.values()), (3, 1))
    values[2, 0] = np.nan  # a draw without a plan
    table = component_scores(RESOLVED, RollingDraws(list(columns), values, {2: "no plan"}, values[0]), None)
    assert len(table) == len(LABELS) + len(PUBLISHED)
    ours = table[table["what"] != "spend hbm"]
    assert ours["value"].to_numpy() == pytest.approx(ours["outcome"].to_numpy())
    spent = table[table["what"] == "spend hbm"].set_index("period")["value"]
    assert spent["2024"] == pytest.approx(0.52 * 22.0) and spent["2025"] == pytest.approx(0.63 * 52.0)
    early = component_scores(
        SimpleNamespace(horizon=Horizon("2024-Q1", 4)),  # type: ignore[arg-type]
        RollingDraws(list(columns), values, {}, values[0]),
        None,
    )
    assert set(early["period"].str[:4]) == {"2024"}


def test_a_table_without_rows_of_a_level_has_no_line_for_it() -> None:
    table = group_scores(ORIGIN, RESOLVED, forecasts([1.0] * DRAWS), 0, None)
    found = summarise(pd.DataFrame(table[table["level"] == "designer"]))
    assert list(found["level"].unique()) == ["designer"]
