"""What an outside estimate needs of a run's limits, and how much of the gap they close, on a chain known by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scenarios.load import load_scenario
from scenarios.outcomes import shipments_compared, their_units
from scenarios.outside_gap import explain_gap
from scenarios.outside_needs import needs_of, raised_limits
from scenarios.resolve import resolve
from scenarios.runner import solve
from supply.facts import catalog
from supply.optimizer.solution import Solution

#: One Trainium2 takes a twentieth of a packaging wafer; half of the parts are lost; 1 kW each.
CHAIN = """title: One line
horizon: {{start: 2025-Q1, periods: 4}}
objective: value
regions: {{us: {{title: United States}}}}
materials: {{accelerator: {{unit: accelerator}}}}
resources:
  cowos: {{stage: packaging, title: Packaging line, capacity: {wafers} wafer/quarter}}
  power_us: {{stage: power, title: Power, region: us, capacity: {megawatts} MW}}
processes:
  package:
    {{stage: packaging, output: {{accelerator: 1}}, uses: {{cowos: 0.05 wafer}}, yield: 0.5,
      cost: 1000 USD/accelerator, lead_time: {weeks} week}}
fleet:
  trainium2:
    {{designer: aws, material: accelerator, regions: [us], kw_planning: 1 kW, value: {value} USD/hour}}
"""
UNITS = np.array([p.value for p in catalog().series("shipments_aws_trainium2").points if p.period[:4] == "2025"])
#: Wafers a quarter that make `UNITS` in the largest quarter: two starts for each, a twentieth of a wafer for a start.
ENOUGH = 0.1 * float(UNITS.max())


def solved(tmp_path: Path, wafers: float, megawatts: float = 1e5, value: float = 2.0, weeks: int = 0) -> Solution:
    path = tmp_path / "chain.yaml"
    path.write_text(CHAIN.format(wafers=wafers, megawatts=megawatts, value=value, weeks=weeks), encoding="utf-8")
    return solve(resolve(load_scenario(path)))


def explained(solution: Solution) -> dict[str, pd.DataFrame]:
    designers = {s.id: s.designer for s in solution.network.fleet.values()}
    return explain_gap(solution, shipments_compared(solution.finished.rename(columns={"finished": "value"}), designers))


def test_units_go_to_the_products_that_the_run_makes(tmp_path: Path) -> None:
    theirs = their_units(solved(tmp_path, 1000).network, 4)
    assert list(theirs.units) == ["trainium2"]
    assert theirs.units["trainium2"] == pytest.approx(UNITS)
    assert theirs.totals["aws", "2025"][0] == pytest.approx(UNITS.sum())


def test_a_line_that_is_too_small_explains_the_whole_gap(tmp_path: Path) -> None:
    half = ENOUGH / 4
    tables = explained(solved(tmp_path, half))
    (limit,) = tables["shipments_limits"].to_dict("records")
    assert (limit["cause"], limit["title"], limit["unit"]) == ("packaging", "Packaging line", "wafer")
    assert limit["ours"] == pytest.approx(4 * half) and limit["needed"] == pytest.approx(0.1 * UNITS.sum())
    (gap,) = tables["shipments_gap"].to_dict("records")
    assert gap["ours"] == pytest.approx(4 * half / 0.1) and gap["theirs"] == pytest.approx(UNITS.sum())
    assert gap["reached"] == pytest.approx(UNITS.sum()) and gap["rest"] == pytest.approx(0, abs=1)
    (part,) = tables["shipments_parts"].to_dict("records")
    assert part["units"] == pytest.approx(gap["theirs"] - gap["ours"])
    assert np.isnan(gap["worth_factor"])


def test_two_limits_in_series_share_the_gap(tmp_path: Path) -> None:
    tables = explained(solved(tmp_path, ENOUGH / 4, megawatts=float(UNITS.sum()) / 4e3))
    parts = tables["shipments_parts"].set_index("cause")["units"]
    (gap,) = tables["shipments_gap"].to_dict("records")
    assert set(tables["shipments_limits"]["cause"]) == {"packaging", "power"} == set(parts.index)
    assert gap["ours"] + gap["outside"] + parts.sum() + gap["rest"] == pytest.approx(gap["theirs"])
    assert (parts > 0).all()


def test_what_was_in_the_making_is_followed_before_the_start(tmp_path: Path) -> None:
    """With one quarter from start to part, the first quarter's units were started before the run begins."""
    tables = explained(solution := solved(tmp_path, ENOUGH, weeks=13))
    used = needs_of(solution, {"trainium2": UNITS}).use(solution.network, "cowos")
    assert used == pytest.approx([*(0.1 * UNITS[1:]), 0.0])
    (limit,) = tables["shipments_limits"].to_dict("records")
    assert (limit["cause"], limit["path"]) == ("opening", "opening.pipeline.package")
    assert (limit["ours"], limit["needed"]) == (0.0, pytest.approx(2 * UNITS[0]))
    (part,) = tables["shipments_parts"].to_dict("records")
    assert part["units"] == pytest.approx(UNITS[0])


def test_an_hour_worth_too_little_is_what_remains(tmp_path: Path) -> None:
    """A good part costs 2,000 USD; one of the last quarter runs 13 quarters (12 of the tail) of 2,191.5 hours."""
    tables = explained(solved(tmp_path, ENOUGH, value=0.05))
    (gap,) = tables["shipments_gap"].to_dict("records")
    assert not len(tables["shipments_limits"]) and gap["ours"] == gap["reached"] == 0
    assert gap["worth_factor"] == pytest.approx(2000 / (13 * 2191.5 * 0.05), rel=0.03)
    assert gap["worth_units"] == pytest.approx(4 * ENOUGH / 0.1)


def test_parts_that_the_run_does_not_make_are_told_apart(tmp_path: Path) -> None:
    solution = solved(tmp_path, ENOUGH)
    compared = pd.DataFrame(
        [("aws", "2025", 1.0, UNITS.sum() + 5e5, 9e5, 2e6, 0.0)],
        columns=["group", "year", "ours", "theirs", "low", "high", "ratio"],
    )
    (gap,) = explain_gap(solution, compared)["shipments_gap"].to_dict("records")
    assert gap["outside"] == pytest.approx(5e5)


def test_the_run_stays_as_it_was(tmp_path: Path) -> None:
    solution = solved(tmp_path, ENOUGH / 4)
    before = (dict(solution.values), solution.finished.copy())
    explained(solution)
    assert all(np.array_equal(before[0][p], v) for p, v in solution.values.items())
    assert solution.compiled.solve(tidy=True).finished.equals(before[1])


def test_only_limits_below_the_need_are_raised(tmp_path: Path) -> None:
    solution = solved(tmp_path, ENOUGH)
    needs = needs_of(solution, {"trainium2": UNITS})
    assert needs.use(solution.network, "cowos") == pytest.approx(0.1 * UNITS)
    assert needs.megawatts == pytest.approx(np.cumsum(UNITS) / 1e3)
    assert raised_limits(solution, needs) == []


def test_nothing_compared_or_no_product_in_common_explains_nothing(tmp_path: Path) -> None:
    solution = solved(tmp_path, ENOUGH)
    empty = shipments_compared(solution.finished.rename(columns={"finished": "value"}), {})
    assert explain_gap(solution, empty) == {}
