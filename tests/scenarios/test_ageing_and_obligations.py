"""Keys of a scenario for losses by age and for demand that must be met, from the file to the optimum."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scenarios.errors import ScenarioError
from scenarios.load import load_scenario
from scenarios.resolve import resolve
from supply.optimizer.compiled import optimize
from supply.optimizer.errors import InfeasibleError
from supply.potentials import stranded

FLEET = """
title: One accelerator, one region
horizon: {start: 2026-Q1, periods: 4, step: quarter, tail: 0}
objective: {kind: value, costs: purchase}
regions: {us: {}}
materials: {x: {unit: accelerator}}
processes: {make: {output: {x: 1}, uses: {fab: 1}, lead_time: 0 week}}
resources:
  fab: {capacity: 10 accelerator/quarter}
  power: {stage: power, region: us, capacity: 1 MW}
fleet:
  x: {material: x, designer: d, regions: [us], kw_planning: 1 kW, value: 1, purchase_cost: 0, AGEING}
"""

SALE = """
title: A sale
horizon: {start: 2026-Q1, periods: 2, step: quarter}
objective: {kind: value, costs: manufacturing}
materials: {x: {unit: accelerator}}
processes: {make: {output: {x: 1}, uses: {fab: 1}, lead_time: 0 week, cost: 5 USD}}
resources: {fab: {capacity: 10 accelerator/quarter}}
demand: {x: {price: 1 USD/accelerator, QUANTITY, unmet: never}}
"""


def solved(folder: Path, text: str) -> list[float]:
    path = folder / "case.yaml"
    path.write_text(text, encoding="utf-8")
    solution = optimize(resolve(load_scenario(path)).network)
    table = solution.fleet if len(solution.fleet) else solution.finished
    return [float(v) for v in table.iloc[:, -1]]


def test_mean_life_and_age_of_the_opening_fleet(tmp_path: Path) -> None:
    ageing = "survival: 0.9, life: 1 year, wear_out: 2, opening: {us: 8}, opening_age: 2 quarter"
    found = solved(tmp_path, FLEET.replace("AGEING", ageing))
    scale = 4.0 / 0.886226925452758  # Gamma(1.5)
    left = np.exp(-((np.arange(8) / scale) ** 2))
    made = [sum(10 * left[k] * 0.9**k for k in range(t + 1)) for t in range(4)]
    opening = [8 * left[3 + t] / left[2] * 0.9 ** (t + 1) for t in range(4)]
    assert found == pytest.approx(np.add(made, opening), rel=1e-9)


def test_a_monthly_horizon_gives_the_same_life(tmp_path: Path) -> None:
    text = FLEET.replace("AGEING", "life: 1 year, wear_out: 2, opening: {us: 8}").replace(
        "capacity: 10 accelerator/quarter", "capacity: 0"
    )
    quarters = solved(tmp_path, text)
    months = solved(tmp_path, text.replace("2026-Q1, periods: 4, step: quarter", "2026-01, periods: 12, step: month"))
    assert months[2::3] == pytest.approx(quarters, rel=1e-9)


@pytest.mark.parametrize(
    ("ageing", "message"),
    [
        ("wear_out: 2", "wear_out: has no effect without life; give fleet.x.life, or drop it"),
        ("life: 0 year", "life: 0 is outside 0.1 to 1000; give periods"),
        ("life: 2 kg", "life: 'kg' does not fit: the field is a duration, e.g. 13 week or 2 quarter"),
        ("life: 2 year, early_retirement: true", "cannot be combined with losses by age (life, survival_by_age)"),
    ],
)
def test_messages_of_ageing(tmp_path: Path, ageing: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        solved(tmp_path, FLEET.replace("AGEING", ageing))
    assert message in str(caught.value)
    assert "case.yaml:12:" in str(caught.value)


def test_demand_that_must_be_met_is_met_at_a_loss_or_refused(tmp_path: Path) -> None:
    assert solved(tmp_path, SALE.replace("QUANTITY", "quantity: 9")) == [9.0, 9.0]
    with pytest.raises(InfeasibleError, match="the demand for x cannot be met in 2026-Q1: short by 1"):
        solved(tmp_path, SALE.replace("QUANTITY", "quantity: 11"))
    with pytest.raises(ScenarioError, match=r"case.yaml:8:.*never needs a quantity"):
        solved(tmp_path, SALE.replace("QUANTITY, ", ""))


@pytest.mark.parametrize(
    ("demand", "place", "message"),
    [
        (
            "d: {reference: 5, unmet: never}",
            "demand.d.unmet",
            "has no effect on a designer: drop it, or name a material",
        ),
        ("d: {reference: 5, quantity: 3}", "demand.d.quantity", "has no effect: d is a designer"),
        ("x: {price: 1, steps: [{share: 1, discount: 0}]}", "demand.x.steps.0", "has no effect: x is a material"),
    ],
)
def test_keys_of_the_other_kind_of_demand_are_refused(tmp_path: Path, demand: str, place: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        solved(tmp_path, FLEET.replace(", AGEING", "") + f"demand: {{{demand}}}\n")
    assert f"{place}" in str(caught.value)
    assert message in str(caught.value)


def test_losses_by_age_are_no_values_by_period(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"fleet.x.life: changes from 4 to 2, but one number holds"):
        solved(tmp_path, FLEET.replace("AGEING", "life: {2026-Q1: 1 year, 2026-Q3: 0.5 year}"))


def test_an_installed_fleet_needs_no_watts_where_no_power_row_asks_for_them(tmp_path: Path) -> None:
    text = FLEET.replace("  power: {stage: power, region: us, capacity: 1 MW}\n", "").replace("kw_planning: 1 kW, ", "")
    assert solved(tmp_path, text.replace("AGEING", "survival: 0.5, opening: {us: 8}")) == [14.0, 17.0, 18.5, 19.25]
    solution = optimize(resolve(load_scenario(tmp_path / "case.yaml")).network)
    assert list(stranded(solution).mw) == [0.0] * 4


def test_two_edits_of_one_path_are_told_as_two_edits(tmp_path: Path) -> None:
    text = FLEET.replace("AGEING", "survival: 0.9") + "set: {resources.fab.capacity: {scale: 2, add: 3}}\n"
    with pytest.raises(ScenarioError, match=r"an edit has exactly one of .*; got scale, add"):
        solved(tmp_path, text)
