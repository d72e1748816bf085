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
