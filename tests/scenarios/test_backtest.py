"""Backtest: nothing from after the origin reaches a run, the stand-ins follow their rules, the scores add up."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scenarios.asof import AsOfError, StandIn, as_of_catalog, is_outcome, known_catalog
from scenarios.backtest import ORIGINS, backtest, backtest_scenario, stand_ins_used
from scenarios.backtest_causes import with_today
from scenarios.backtest_draws import rolling_draws
from scenarios.backtest_outcomes import GROUPS, history, naives, outcomes
from scenarios.backtest_scores import summarise
from scenarios.backtest_store import stored_backtest
from scenarios.errors import ScenarioError
from scenarios.load import load_scenario
from scenarios.resolve import resolve
from scenarios.scoring import ScoreError
from supply.facts import Catalog, Series, catalog
from supply.optimizer.rolling import solve_rolling

DAYS = sorted(ORIGINS)
STAND_IN = "assumption of the backtest"


def _poisoned(origin: date) -> Catalog:
    """The catalogue with every number that was not known on the origin, and every outcome, turned into nonsense."""
    rng = np.random.default_rng(7)
    facts = []
    for f in catalog():
        late = f.known_on >= origin or is_outcome(f)
        if late and not isinstance(f.value, str):
            f = replace(f, value=f.value * rng.uniform(2, 9) + 1, low=None, high=None)
        facts.append(f)
    series = []
    for name in catalog().series_ids:
        whole = catalog().series(name)
        outcome = is_outcome(whole)
        points = tuple(
            replace(p, value=p.value * 7 + 1, low=p.value * 6, high=p.value * 9 + 2)
            if outcome or p.known_on >= origin
            else p
            for p in whole.points
        )
        series.append(Series(name, points))
    return Catalog(facts, series)


def _content(cat: Catalog) -> dict[str, Any]:
    facts = {f.id: (f.value, f.low, f.high, f.unit) for f in cat}
    return facts | {p.id: (p.value, p.low, p.high) for n in cat.series_ids for p in cat.series(n).points}


@pytest.mark.parametrize("origin", DAYS)
def test_no_later_row_and_no_shipment_can_reach_a_backtest(origin: date) -> None:
    clean, made = as_of_catalog(origin)
    spoilt, remade = as_of_catalog(origin, _poisoned(origin))
    assert _content(clean) == _content(spoilt)
    assert made == remade
    assert len(_content(_poisoned(origin)).items() - _content(catalog()).items()) > 2000, "the poison bites"


@pytest.mark.parametrize("origin", DAYS)
def test_every_row_was_known_or_is_a_marked_stand_in(origin: date) -> None:
    facts, _ = as_of_catalog(origin)
    whole = catalog()
    for f in facts:
        if f.source == STAND_IN:
            assert f.kind == "illustrative" and f.note
        else:
            assert f.known_on < origin and f == whole[f.id] and not is_outcome(f)
    for name in facts.series_ids:
        for p in facts.series(name).points:
            known = p.kind != "illustrative" or p.id in whole
            assert p.known_on < origin
            assert known or p.method
    assert not any("shipments" in name for name in facts.series_ids)
    assert not any(name.startswith("ai_power_energised") for name in facts.series_ids)


def test_a_backtest_reads_no_other_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the shipped catalogue emptied, the scenario still resolves to the same numbers."""
    origin = date(2025, 1, 1)
    whole = catalog()
    copy = Catalog(list(whole), [whole.series(n) for n in whole.series_ids])
    monkeypatch.setattr(whole, "_facts", {})
    monkeypatch.setattr(whole, "_series", {})
    resolved, made = backtest_scenario(origin, copy)
    used = set(resolved.facts_used())
    facts = resolved.scenario.facts
    assert used and all(i in facts or i in facts.series_ids for i in used)
    for i in used:
        if i not in facts.series_ids:
            assert (facts.point(i) if "@" in i else facts[i]).known_on < origin
    listed = stand_ins_used(resolved, made)
    assert set(listed["basis"]) <= {"continued", "vintage", "then", "announced", "later", "inert", "scenario"}
    ours = {i.split("@")[0] for i in used if i in copy and (copy.point(i) if "@" in i else copy[i]).known_on >= origin}
    assert ours <= set(listed["id"]), "every input that was not known is listed"
    assert "costs.hbm_use" in set(listed["id"]), "what the scenario file assumes is listed as well"
    assert resolved.network.regime.kind == "rolling"
    assert resolved.network.regime.look_ahead == 4


def test_an_outcome_named_in_a_scenario_is_refused() -> None:
    facts, _ = as_of_catalog(date(2025, 1, 1))
    fact = next(f.id for f in catalog() if f.id.startswith("nvidia_b200_shipments"))
    with pytest.raises(ScenarioError, match=re.escape(fact)):
        load_scenario("course_11_1", [("resources.fab.capacity", {"fact": fact})], facts=facts)
        resolve(load_scenario("course_11_1", [("resources.fab.capacity", {"fact": fact})], facts=facts))


# ---- rules of the stand-ins
def _series(values: list[float], unit: str) -> Catalog:
    whole = catalog()
    like = whole.series("tsmc_n5_capacity").points[0]
    points = [
        replace(
            like,
            id=f"x@2022-Q{k + 1}",
            series_id="x",
            period=f"2022-Q{k + 1}",
            value=v,
            low=0.9 * v,
            high=1.1 * v,
            unit=unit,
        )
        for k, v in enumerate(values)
    ]
    points = [replace(p, known_on=date(2022, 12, 31)) for p in points]
    return Catalog([], [Series("x", tuple(points))])


def test_capacities_go_on_growing_for_as_long_as_they_were_known() -> None:
    cat, made = as_of_catalog(date(2024, 1, 1), _series([100.0, 200.0, 300.0, 400.0], "wafers/month"))
    x = cat.series("x")
    assert [x.at(p).value for p in ("2022-Q4", "2023-Q1", "2023-Q3", "2023-Q4", "2026-Q4")] == [400, 500, 700, 700, 700]
    one = x.at("2023-Q1")
    assert (one.low, one.high) == pytest.approx((450 - 15, 550 + 15))  # the known 10 % and 3 % a quarter
    assert {s.basis for s in made if s.id == "x"} == {"continued"}


def test_everything_else_is_held_and_a_fraction_stays_below_one() -> None:
    cat, _ = as_of_catalog(date(2024, 1, 1), _series([0.7, 0.8, 0.9, 0.95], "fraction"))
    point = cat.series("x").at("2024-Q4")
    assert point.value == 0.95 and point.high == 1.0 and point.low < 0.9 * 0.95


def test_packaging_takes_the_forecasts_of_the_time() -> None:
    seen = {d: as_of_catalog(d)[0].series("tsmc_cowos_capacity") for d in DAYS}
    first, second = seen[DAYS[0]].at("2024-Q4"), seen[DAYS[1]].at("2025-Q4")
    assert (first.value, first.low, first.high) == (35000, 14500, 38500)  # November 2023; June 2023 was the lowest
    assert second.value == 77500 and second.low == 39600 and second.high == 88000
    with pytest.raises(ValueError, match="no series"):
        as_of_catalog(DAYS[0])[0].series("tsmc_cowos_capacity_vintage")


def test_a_guessed_date_counts_as_known_a_year_later() -> None:
    guessed = next(f for f in catalog() if f.date_rule.endswith("?") and not is_outcome(f))
    made = Catalog([replace(guessed, known_on=date(2023, 6, 1))])
    assert len(known_catalog(date(2024, 1, 1), made)) == 0
    assert len(known_catalog(date(2024, 6, 2), made)) == 1


def test_a_malformed_table_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import scenarios.asof as module

    table = tmp_path / "assumptions.csv"
    table.write_text(
        "origin,id,unit,points,low_factor,high_factor,basis,note\nany,a,count,=1,1,1,later,\n", encoding="utf-8"
    )
    monkeypatch.setattr(module, "data_file", lambda *_: table)
    module._assumptions.cache_clear()
    with pytest.raises(AsOfError, match=r"assumptions\.csv:2: a"):
        as_of_catalog(date(2024, 1, 1), Catalog([]))
    module._assumptions.cache_clear()


# ---- outcomes and naive forecasts
def test_naive_history_ends_with_the_last_reported_quarter() -> None:
    hopper = GROUPS[0]
    past = history(hopper, date(2024, 1, 1))
    assert past[-1] == pytest.approx(catalog().series("shipments_nvidia_h100").at("2023-Q3").value)
    later = _poisoned_outcomes_from("2023-Q4")
    assert naives(date(2024, 1, 1), 8) == naives(date(2024, 1, 1), 8, later)
    assert "blackwell" not in naives(date(2024, 1, 1), 8), "nothing had been sold: there is nothing to carry forward"
    assert len(naives(date(2025, 1, 1), 4)["h20"]["last"]) == 4


def _poisoned_outcomes_from(period: str) -> Catalog:
    whole = catalog()
    series = [
        Series(n, tuple(replace(p, value=p.value * 5) if p.period >= period else p for p in whole.series(n).points))
        for n in whole.series_ids
    ]
    return Catalog(list(whole), series)


def test_a_designer_is_the_sum_of_its_series() -> None:
    nvidia = next(g for g in GROUPS if g.name == "nvidia")
    (row,) = outcomes(nvidia, ["2025-Q1"])
    parts = ("h100", "h20", "b200")
    assert row.value == pytest.approx(sum(catalog().series(f"shipments_nvidia_{s}").at("2025-Q1").value for s in parts))
    assert row.low < row.value < row.high


# ---- rolling draws
TINY = """
extends: course_11_1
title: Two limits and a step in one
horizon: {start: 2026-Q1, periods: 3, step: quarter, tail: 1}
regime: {kind: rolling, look_ahead: 1 quarter}
materials: {die: {unit: die}, accelerator: {unit: accelerator}}
resources:
  fab: {capacity: {value: 15000 die/quarter, range: [9000 die/quarter, 20000 die/quarter]}}
  cowos:
    capacity:
      2026-Q1: {value: 10000 accelerator/quarter, range: [8000 accelerator/quarter, 13000 accelerator/quarter]}
      2026-Q3: 12000 accelerator/quarter
"""


def test_rolling_draws_equal_single_rolling_solves(tmp_path: Path) -> None:
    file = tmp_path / "tiny.yaml"
    file.write_text(TINY, encoding="utf-8")
    resolved = resolve(load_scenario(file))
    drawn = rolling_draws(resolved, 6, seed=3)
    names = [f"finished:accelerator@2026-Q{q}" for q in (1, 2, 3)]
    columns = [drawn.names.index(n) for n in names]
    alone = solve_rolling(resolved.network).finished
    # when an accelerator is sold is free without holding costs, how many are finished in all is not
    assert drawn.nominal[columns].sum() == pytest.approx(alone["finished"].to_numpy()[:3].sum()) == 32000
    assert not drawn.failed
    again = rolling_draws(resolved, 6, seed=3)
    assert np.array_equal(drawn.values, again.values)
    # a draw on its own, as a network of its own numbers: no draw leaves a trace in the next
    from scenarios.backtest_draws import _arrays
    from scenarios.sampling import factors, ranks_by_driver

    arrays = _arrays(resolved, ranks_by_driver(resolved, factors(resolved), 6, 3), 6)
    last = resolved.network.with_values({p: a[5] for p, a in arrays.items()})
    assert drawn.values[5, columns].sum() == pytest.approx(
        solve_rolling(last).finished["finished"].to_numpy()[:3].sum()
    )
    assert len(set(drawn.values[:, columns].sum(axis=1).round())) == 6


# ---- scores
def _scores() -> pd.DataFrame:
    row = {"level": "part", "span": "quarter", "outcome_low": 5.0, "outcome_high": 15.0, "outcome": 10.0, "value": 10.0}
    naive = {f"naive_{n}_{e}": v for n in ("last", "growth") for e, v in (("low", 8.0), ("high", 9.0))}
    good = (
        row | naive | {"low": 5.0, "high": 20.0, "score": 1.5, "score_last": 2.0, "score_growth": 2.0, "inside": True}
    )
    lone = row | {"low": 0.0, "high": 5.0, "score": 10.0, "score_last": np.nan, "score_growth": np.nan, "inside": False}
    lone |= dict.fromkeys(naive, np.nan)
    return pd.DataFrame([good, good, good, lone])


def test_summary_by_hand() -> None:
    row = summarise(_scores()).iloc[0]
    assert row["scored"] == 4 and row["coverage"] == 0.75
    assert row["width"] == 4.0 and row["score_all"] == pytest.approx((3 * 1.5 + 10) / 4)
    assert row["compared"] == 3 and row["score"] == 1.5 and row["beats_both"]
    assert row["coverage_last"] == 0.0


def test_a_miss_is_laid_to_a_stage() -> None:
    base = {"inside": False, "group": "h100_h200", "period": "2024-Q1", "outcome": 10.0}
    rows = [base | {"low": 1.0, "high": 2.0}, base | {"low": 20.0, "high": 30.0}, base | {"low": 0.0, "high": 0.0}]
    rows.append(rows[0] | {"group": "tpu_v7"})
    later = pd.DataFrame({"stage": ["packaging", "hbm"], "period": ["2024-Q1"] * 2, "ratio": [1.5, 0.5]})
    import scenarios.backtest_reasons as module

    held = {"2024-Q1": ("hbm", 0.8)}
    ratio = {(s, p): r for s, p, r in zip(later["stage"], later["period"], later["ratio"], strict=True)}
    stages = [module._reason(r, held, ratio, {"h100"})[0] for r in rows]
    assert stages == ["hbm", "packaging", "timing", "product"]
    assert module._reason(base | {"inside": True, "low": 1.0, "high": 20.0}, held, ratio, set()) == ("", "")


def test_a_day_without_a_scenario_is_refused() -> None:
    with pytest.raises(ScoreError, match="2024-01-01, 2025-01-01"):
        backtest(date(2023, 1, 1), 20)


def test_a_stand_in_knows_its_fields() -> None:
    from scenarios.backtest import vars_of

    row = StandIn("a", "", 1.0, 0.5, 2.0, "count", "later", "why")
    assert vars_of(row)["basis"] == "later" and set(vars_of(row)) == set(StandIn.__slots__)


def test_today_s_figures_of_one_stage_change_only_that_stage() -> None:
    as_of, _ = as_of_catalog(date(2025, 1, 1))
    swapped = with_today(as_of, "power")
    changed = {n for n in as_of.series_ids if as_of.series(n).points != swapped.series(n).points}
    assert changed == {f"ai_power_sites_{r}" for r in ("us", "china", "europe", "rest")}
    every = with_today(as_of, "all")
    assert {n.split("_")[0] for n in every.series_ids} == {n.split("_")[0] for n in as_of.series_ids}
    assert not any("shipments" in n for n in every.series_ids)


def test_the_shipped_scoreboard_is_whole_and_agrees_with_itself() -> None:
    stored = stored_backtest()
    scores = stored["scores"]
    for origin, rows in scores.groupby("origin"):
        again = summarise(rows).set_index(["span", "level"])
        kept = stored["summary"][stored["summary"]["origin"] == origin].set_index(["span", "level"])
        for column in ("scored", "coverage", "score", "score_last", "score_growth", "median_factor_error"):
            assert kept[column].to_numpy() == pytest.approx(again.loc[kept.index, column].to_numpy(), rel=1e-3)
    missed = scores[~scores["inside"]]
    assert missed["reason"].notna().all() and scores[scores["inside"]]["reason"].isna().all()
    assert set(stored["stand_ins"]["origin"]) == {d.isoformat() for d in DAYS}


def test_a_wrong_origin_is_told() -> None:
    from typer.testing import CliRunner

    from reports.cli.app import app

    for text, code, word in (("2023-01-01", 3, "choose one of"), ("tomorrow", 2, "not a day")):
        done = CliRunner().invoke(app, ["backtest", "--origin", text])
        assert done.exit_code == code and word in done.output
