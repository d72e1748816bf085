"""Zero, one, tiny, huge, equal and late: the right answer or a refusal in words; every solver status; any threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from highspy import HighsModelStatus

from scenarios.load import load_scenario
from scenarios.resolve import check, resolve
from scenarios.runner import run
from supply.network_examples import course_11_1
from supply.optimizer.compiled import Compiled
from supply.optimizer.errors import InfeasibleError, SolveError, UnboundedError
from tests.hostile.hostile_tools import limited


def optimum(*sets: tuple[str, Any]) -> dict[str, Any]:
    """The answer of the example whose optimum is the least of fab yield x wafers and packaging."""
    return run("course_11_1", sets, prices=False, costs=False).json()["objective"]


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        ([("resources.fab.capacity", 0)], 0.0),
        ([("resources.fab.capacity", 0), ("resources.cowos.capacity", 0)], 0.0),
        ([("resources.fab.capacity", -0.0)], 0.0),
        ([("processes.package.yield", 1)], 10_000.0),
        ([("processes.package.yield", 0)], 0.0),
        ([("resources.fab.capacity", 10_000)], 10_000.0),  # two limits bind alike
        ([("resources.fab.capacity", 1e-6), ("resources.cowos.capacity", 1e-6)], 1e-6),
        ([("resources.fab.capacity", 1e12), ("resources.cowos.capacity", 1e12)], 1e12),
        ([("resources.fab.capacity", 1e12)], 10_000.0),
        ([("processes.package.lead_time", 7)], 0.0),  # longer than the horizon
    ],
)
def test_extreme_but_lawful_numbers_give_the_right_optimum(sets: list[tuple[str, Any]], expected: float) -> None:
    assert optimum(*sets)["value"] == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    "value", [1e-9, 1e-12, 1e-300, 5e-324, 1e30, "1e400", ".nan", ".inf", -1, "-.inf", True, None, 10**400]
)
def test_capacities_that_mean_nothing_are_refused(value: Any) -> None:
    found = check("course_11_1", [("resources.fab.capacity", value)])
    assert found and all("capacity" in str(p) or "--set" in str(p) for p in found), found


@pytest.mark.parametrize(
    "sets", [[("processes.package.yield", 1.0000001)], [("processes.package.lead_time", 1e9)], [("horizon.periods", 0)]]
)
def test_other_numbers_that_mean_nothing_are_refused(sets: list[tuple[str, Any]]) -> None:
    assert check("course_11_1", sets)


def test_capacities_far_apart_are_warned_of() -> None:
    far = resolve(load_scenario("course_11_1", [("resources.fab.capacity", 1e-4), ("resources.cowos.capacity", 1e8)]))
    assert any("resources.fab.capacity" in w and "apart" in w for w in far.warnings)
    assert not any("apart" in w for w in resolve(load_scenario("course_11_1")).warnings)


@pytest.mark.parametrize("step", ["quarter", "month"])
def test_the_longest_horizon_is_solved_in_time_and_memory(step: str) -> None:
    with limited(120, 4 * 2**30):
        found = optimum(("horizon.periods", 1200), ("horizon.step", step))
    assert found["value"] == pytest.approx(1200 * 10_000.0 / (3 if step == "month" else 1), rel=1e-9)


def test_one_period_more_than_the_longest_is_refused() -> None:
    assert "1200" in str(check("course_11_1", [("horizon.periods", 1201)])[0])


@pytest.mark.parametrize("status", sorted(HighsModelStatus.__members__))
def test_every_solver_status_is_a_plan_or_a_refusal(status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    member = HighsModelStatus.__members__[status]
    compiled = Compiled(course_11_1())
    monkeypatch.setattr(compiled.engine, "run", lambda *a, **k: _solved(compiled, member))
    if status == "kOptimal":
        assert compiled.solve().objective == pytest.approx(10_000)
        return
    kinds = {"kInfeasible": InfeasibleError, "kUnbounded": UnboundedError, "kUnboundedOrInfeasible": UnboundedError}
    with pytest.raises(kinds.get(status, SolveError)) as caught:
        compiled.solve()
    assert len(str(caught.value)) > 30


def _solved(compiled: Compiled, status: HighsModelStatus) -> HighsModelStatus:
    compiled.engine.highs.run()
    return status


PROGRAM = """
import json, sys
import highspy
from supply.optimizer import engine, quiet
threads = int(sys.argv[1])
made = quiet.quiet_highs
def quiet_highs():
    highs = made()
    highs.setOptionValue("threads", threads)
    return highs
engine.quiet_highs = quiet_highs
from scenarios.runner import run
done = run(sys.argv[2])
names = ["quantity", "subject", "region", "period"]
rows = done.results.sort_values(names)[[*names, "value"]]
print(json.dumps([[*map(str, row[:4]), float(row[4])] for row in rows.to_numpy()]))
"""


@pytest.mark.parametrize("scenario", ["course_11_1", os.environ.get("HOSTILE_SCENARIO", "")])
def test_results_do_not_depend_on_threads_or_hash_seeds(scenario: str) -> None:
    if not scenario:
        pytest.skip("HOSTILE_SCENARIO=small compares every stored number of a larger scenario")
    answers = []
    for threads, seed in (("1", "0"), ("2", "1"), ("4", "77")):
        surroundings = {**os.environ, "OMP_NUM_THREADS": threads, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", PROGRAM, threads, scenario]
        said = subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=500, check=True)
        answers.append(json.loads(said.stdout))
    for other in answers[1:]:
        assert [row[:4] for row in other] == [row[:4] for row in answers[0]]
        assert [row[4] for row in other] == pytest.approx([row[4] for row in answers[0]], rel=1e-9, abs=1e-9)
