"""Small parts of the room: what each refuses, in words, next to the nearest input that it takes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from econ.agent_success import Success
from econ.cost_breakdown import CostBar, CostBreakdown
from econ.energy_cost import energy_share_of_cost, grid_carbon_kg_per_kwh
from econ.first_principles import all_reduce, dot_product, meets_service_level

BARS = CostBreakdown((CostBar("capital", 1.5), CostBar("power", 0.5)))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: all_reduce([]), "0 values by 'sum'"),
        (lambda: all_reduce([1.0], "max"), "give values and 'sum' or 'mean'"),
        (lambda: dot_product([1, 2], [1]), "vectors of 2 and 1 values"),
        (lambda: meets_service_level(3, 2), "3 of 2 requests"),
        (lambda: meets_service_level(0, 0), "0 of 0 requests"),
        (lambda: meets_service_level(-1, 2), "-1 of 2 requests"),
        (lambda: energy_share_of_cost(0.0, 0.0), "both zero"),
        (lambda: grid_carbon_kg_per_kwh("mars"), "region = 'mars': use one of"),
        (lambda: Success(1.2), "success rate 1.2"),
        (lambda: Success(0.5, -0.1), "correlation -0.1"),
        (lambda: Success(0.5).any_of(-1), "-1 tries: give a whole number from 0"),
        (lambda: BARS["staff"], "no bar 'staff': the bars are capital, power"),
        (lambda: BARS.check_total(2.1), "parts sum to 2 .*stated total 2.1"),
    ],
)
def test_what_is_refused(call: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


def test_the_nearest_inputs_are_taken() -> None:
    assert all_reduce([1.0]) == 1.0
    assert meets_service_level(0, 1) is False and meets_service_level(1, 1) is True
    assert energy_share_of_cost(0.0, 1.0) == 1.0
    BARS.check_total(2.0)
    assert [row["part"] for row in BARS.table()] == ["capital", "power", "total"]


def test_success_of_no_tries_and_of_tasks_that_always_or_never_work() -> None:
    assert (Success(0.5).any_of(0), Success(0.5).all_of(0)) == (0.0, 1.0)
    always_or_never = Success(0.3, 1.0)
    assert set(np.unique(always_or_never.chances)) == {0.0, 1.0}
    assert always_or_never.chances.mean() == pytest.approx(0.3, abs=0.01)
    assert always_or_never.any_of(5) == pytest.approx(0.3)
