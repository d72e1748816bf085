"""Time to survive and to recover: buffers worked out by hand, no hoarding for what nobody foresees, and refusals."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from scenarios.resilience import COLUMNS, ResilienceError, resilience

SCENARIO = """
title: A big and a small fab
horizon: {start: 2026-Q1, periods: 6, step: quarter}
objective: units
materials: {x: {unit: unit, holding_cost: HOLD}}
resources:
  big: {stage: fab, title: Big fab, capacity: BIG}
  spare: {stage: fab, title: Spare fab, capacity: 2}
  tester: {stage: test, title: Tester, capacity: 100}
processes:
  make: {stage: fab, output: {x: 1}, uses: {big: 1, tester: 1}, yield: 1, lead_time: 0 week}
  other: {stage: fab, output: {x: 1}, uses: {spare: 1, tester: 1}, yield: 1, lead_time: 0 week}
demand: {x: {price: 1 USD/unit, quantity: 10, unmet: lost}}
opening: {stock: {x: STOCK}}
"""


def _file(place: Path, hold: float, big: float, stock: float) -> Path:
    path = place / "fabs.yaml"
    path.write_text(SCENARIO.replace("HOLD", str(hold)).replace("BIG", str(big)).replace("STOCK", str(stock)))
    return path


def _by_id(table: pd.DataFrame) -> dict[str, pd.Series]:
    return {str(row["id"]): row for _, row in table.iterrows()}


def test_stock_bridges_two_quarters_without_the_big_fab(tmp_path: Path) -> None:
    """Without it 8 a quarter are missing; 18 in stock bridge two quarters, and four miss 4 x 8 - 18 = 14."""
    table = resilience(_file(tmp_path, 0, 10, 18), "2026-Q1", longest=4, recover={"big": 4, "fab": 3})
    assert tuple(table.columns) == COLUMNS
    rows = _by_id(table)
    assert (rows["big"].time_to_survive, bool(rows["big"].at_least)) == (2, False)
    assert rows["big"].loss == pytest.approx(14) and rows["big"].loss_one_period == pytest.approx(0)
    assert rows["big"].loss_share == pytest.approx(14 / 60)
    assert (rows["spare"].time_to_survive, bool(rows["spare"].at_least)) == (4, True)
    assert rows["spare"].loss == pytest.approx(0) and rows["spare"].time_to_recover == 3
    # the whole stage out: 10 a quarter are missing, 18 last one quarter, three miss 30 - 18
    assert (rows["fab"].level, rows["fab"].time_to_survive) == ("stage", 1)
    assert rows["fab"].loss == pytest.approx(12)
    assert table["rank"].tolist() == list(range(1, len(table) + 1))
    assert table["time_to_survive"].is_monotonic_increasing


def test_a_limit_without_a_price_may_be_the_fragile_one(tmp_path: Path) -> None:
    rows = _by_id(resilience(_file(tmp_path, 0, 10, 0), "2026-Q1", longest=2))
    assert rows["tester"].price == pytest.approx(0)
    assert rows["tester"].time_to_survive == 0 and rows["tester"].loss == pytest.approx(20)


def test_nobody_hoards_for_an_outage_that_nobody_foresees(tmp_path: Path) -> None:
    """Spare capacity before the outage could have filled a stock; as it was not foreseen, the whole quarter is lost."""
    rows = _by_id(resilience(_file(tmp_path, 0.001, 20, 0), "2026-Q3", longest=1, recover={"fab": 1}, sites=["fab"]))
    assert set(rows) == {"fab"}
    assert rows["fab"].loss == pytest.approx(10, abs=0.05)


def test_a_second_call_gives_the_same_numbers(tmp_path: Path) -> None:
    place = _file(tmp_path, 0, 10, 18)
    pd.testing.assert_frame_equal(resilience(place, "2026-Q2"), resilience(place, "2026-Q2"))


@pytest.mark.parametrize(
    ("start", "sites", "recover", "message"),
    [
        ("2030-Q1", None, {}, "2026-Q1 to 2027-Q2"),
        ("2026-Q1", ["bigg"], {}, "did you mean .*big"),
        ("2026-Q1", None, {"fabb": 2}, "did you mean .*fab"),
        ("2026-Q1", None, {"fab": 0}, "at least one period"),
    ],
)
def test_wrong_questions_are_refused(
    tmp_path: Path, start: str, sites: list[str] | None, recover: dict[str, int], message: str
) -> None:
    with pytest.raises(ResilienceError, match=message):
        resilience(_file(tmp_path, 0, 10, 0), start, sites=sites, recover=recover)
