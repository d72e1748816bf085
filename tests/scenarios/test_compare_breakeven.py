"""Break-even values with their uniqueness, and comparisons whose parts add up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.breakeven import breakeven
from scenarios.compare import compare, shapley
from scenarios.errors import ScenarioError
from scenarios.load import load_scenario
from scenarios.runner import run

CHAIN = Path(__file__).parent / "cases" / "chain.yaml"


def test_break_even_of_the_course_case_is_exact() -> None:
    found = breakeven("course_11_1", "resources.cowos.capacity", "finished:accelerator@2026-Q1=12000")
    assert found.value == pytest.approx(12000, rel=1e-6)
    assert found.unique and found.unit == "accelerator/period"
    assert found.nominal_output == pytest.approx(10000)
    assert run("course_11_1", [("resources.cowos.capacity", found.value)]).output(
        "finished:*@2026-Q1"
    ) == pytest.approx(12000)


def test_a_target_out_of_reach_says_what_is_reachable() -> None:
    with pytest.raises(
        ScenarioError, match=r"does not reach 16000: between 2500 and 40000 .* it runs from 2500 to 15000"
    ):
        breakeven("course_11_1", "resources.cowos.capacity", ("finished:accelerator@2026-Q1", 16000))


def test_a_yield_never_goes_above_one() -> None:
    found = breakeven(CHAIN, "processes.make_alpha.yield", "energised:alpha@2026-Q2=100000")
    assert 0 < found.value <= 1 and found.bracket[1] <= 1 + 1e-9


def test_a_flat_or_touching_answer_is_not_called_unique(monkeypatch: pytest.MonkeyPatch) -> None:
    import scenarios.breakeven as module

    def parabola(worker: object, resolved: object, paths: object, scale: float, pick: object) -> float:
        return (scale - 1.0) ** 2

    monkeypatch.setattr(module, "_output", parabola)
    found = breakeven("course_11_1", "resources.cowos.capacity", ("finished:accelerator@2026-Q1", 0.25))
    assert not found.unique
    assert found.all_values == pytest.approx((5000, 15000))


def test_bad_target_is_refused() -> None:
    with pytest.raises(ValueError, match="OUTPUT=VALUE"):
        breakeven("course_11_1", "resources.cowos.capacity", "finished:accelerator@2026-Q1=lots")


def test_parts_add_up_to_the_change() -> None:
    a = load_scenario(CHAIN)
    b = load_scenario(
        CHAIN,
        [
            ("costs.use", "{scale: 0.7}"),
            ("resources.power_us.capacity", "{scale: 1.3}"),
            ("processes.make_beta.yield", 0.75),
        ],
        name="other",
    )
    found = compare(a, b)
    assert set(found.groups) == {"costs.use", "processes.make_beta", "resources.power_us"} and found.exact
    for entry in found.outputs.values():
        assert sum(entry["parts"].values()) == pytest.approx(entry["change"], rel=1e-9, abs=1e-6)
        alone = sum(entry["alone"].values())
        assert entry["interaction"] == pytest.approx(entry["change"] - alone, abs=1e-6)
    assert found.outputs["objective"]["second"] == pytest.approx(
        run(b, prices=False, costs=False).json()["objective"]["value"]
    )
    assert any("energised:*@2026 goes from" in line for line in found.words)


def test_a_change_of_structure_is_a_part(tmp_path: Path) -> None:
    b = load_scenario(CHAIN, [("processes.make_alpha.to", "2026-Q3"), ("costs.use", "{scale: 0.9}")], name="ends")
    found = compare(CHAIN, b, outputs=["energised:*@2026"])
    entry = found.outputs["energised:*@2026"]
    assert set(entry["parts"]) == {"structure", "costs.use"}
    assert sum(entry["parts"].values()) == pytest.approx(entry["change"], rel=1e-9)


def test_equal_scenarios_have_no_parts() -> None:
    found = compare(CHAIN, CHAIN)
    assert found.groups == {} and all(e["change"] == 0 and e["parts"] == {} for e in found.outputs.values())


def test_other_horizons_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="horizons differ"):
        compare(CHAIN, "course_11_1")


def test_stored_runs_are_compared(tmp_path: Path) -> None:
    first = run(CHAIN, out=tmp_path, prices=False, costs=False)
    second = run(CHAIN, [("costs.use", "{scale: 0.8}")], out=tmp_path, prices=False, costs=False)
    assert first.folder is not None and second.folder is not None
    found = compare(first.folder, second.folder, outputs=["energised:*@2026"])
    assert list(found.outputs["energised:*@2026"]["parts"]) == ["costs.use"]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-10, 10), min_size=16, max_size=16))
def test_shapley_properties(worths: list[float]) -> None:
    """Efficiency, and symmetry against the definition over all orders."""
    from itertools import permutations

    players = ["a", "b", "c", "d"]
    table = {frozenset(p for k, p in enumerate(players) if m >> k & 1): np.array([w]) for m, w in enumerate(worths)}
    game: Callable[[frozenset[str]], np.ndarray] = table.__getitem__
    parts, exact = shapley(game, players, 1)
    assert exact
    assert parts.sum() == pytest.approx(table[frozenset(players)][0] - table[frozenset()][0], abs=1e-9)
    mean = np.zeros(4)
    for order in permutations(range(4)):
        inside: frozenset[str] = frozenset()
        for k in order:
            mean[k] += (table[inside | {players[k]}] - table[inside])[0] / 24
            inside = inside | {players[k]}
    assert parts.ravel() == pytest.approx(mean, abs=1e-9)


def test_sampled_orders_still_add_up() -> None:
    players = [f"p{k}" for k in range(9)]

    def game(inside: frozenset[str]) -> np.ndarray:
        return np.array([len(inside) ** 2.0 + ("p0" in inside) * 3])

    parts, exact = shapley(game, players, 1)
    assert not exact and parts.sum() == pytest.approx(84)
    assert parts[0, 0] > parts[1:, 0].mean()


def test_a_lead_time_is_moved_with_a_new_compile(tmp_path: Path) -> None:
    from scenarios.sensitivity import sensitivity

    case = tmp_path / "slow.yaml"
    slow = "lead_time: {value: 1 quarter, range: [0 quarter, 2 quarter], kind: illustrative, note: test}"
    case.write_text(CHAIN.read_text(encoding="utf-8").replace("lead_time: 1 quarter", slow, 1), encoding="utf-8")
    found = sensitivity(case, "tornado", inputs=["processes.make_alpha.lead_time"], outputs=["energised:alpha@2026-Q1"])
    (row,) = found.outputs["energised:alpha@2026-Q1"]
    for end, quarters in (("low", "0 quarter"), ("high", "2 quarter")):
        alone = run(case, [("processes.make_alpha.lead_time", quarters)], prices=False, costs=False)
        assert row[end] == pytest.approx(alone.output("energised:alpha@2026-Q1"), abs=1e-3)
    assert row["low"] > row["nominal"]


def test_a_changed_lead_time_is_compared_rightly() -> None:
    b = load_scenario(
        CHAIN, [("processes.make_alpha.lead_time", "2 quarter"), ("costs.use", "{scale: 0.9}")], name="slow"
    )
    found = compare(CHAIN, b, outputs=["energised:*@2026"]).outputs["energised:*@2026"]
    assert set(found["parts"]) == {"processes.make_alpha", "costs.use"}
    assert found["second"] == pytest.approx(run(b, prices=False, costs=False).output("energised:*@2026"), rel=1e-6)
    assert sum(found["parts"].values()) == pytest.approx(found["change"], rel=1e-9)


def test_numbers_that_only_one_scenario_has_are_structure() -> None:
    b = load_scenario(CHAIN, [("processes.make_alpha.ramp", 1.2), ("processes.make_alpha.floor", 50000)], name="ramped")
    found = compare(CHAIN, b, outputs=["energised:*@2026"]).outputs["energised:*@2026"]
    assert set(found["parts"]) == {"structure"}
    assert found["second"] == pytest.approx(run(b, prices=False, costs=False).output("energised:*@2026"), rel=1e-6)


def test_as_many_players_as_are_split_exactly_are_split_exactly() -> None:
    def game(inside: frozenset[str]) -> np.ndarray:
        return np.array([len(inside) ** 2.0])

    for exact_up_to, expected in ((2, False), (3, True), (4, True)):
        parts, exact = shapley(game, ["a", "b", "c"], 1, exact_up_to)
        assert exact is expected
        assert parts.sum() == pytest.approx(9.0)


NEW_PRODUCT = """\
title: A new product
extends: course_11_1
materials: {gadget: {unit: gadget}}
resources: {line: {stage: packaging, capacity: 3000}}
processes: {pack: {input: {die: 1}, output: {gadget: 1}, uses: {line: 1}, lead_time: 0 week}}
demand: {gadget: {price: 2}}
outputs: ["finished:gadget@2026", "finished:*@2026", "price:line@2026", "objective"]
"""


def test_what_one_scenario_does_not_have_is_zero_or_told(tmp_path: Path) -> None:
    path = tmp_path / "gadget.yaml"
    path.write_text(NEW_PRODUCT, encoding="utf-8")
    found = compare("course_11_1", path)
    gadget = found.outputs["finished:gadget@2026"]
    assert (gadget["first"], gadget["second"], gadget["parts"]) == (0.0, 3000.0, {"structure": 3000.0})
    assert list(found.only) == ["gadget"] and list(found.only["gadget"]) == ["price:line@2026"]
    assert "price:line@2026" not in found.outputs
    assert any("price:line@2026 is 1 in gadget; the other does not have it" in words for words in found.words)
    back = compare(path, "course_11_1")  # the outputs of either scenario are compared
    assert back.outputs["finished:gadget@2026"]["change"] == -3000.0
    with pytest.raises(ScenarioError, match="no subject 'gadgte' of finished; did you mean gadget"):
        compare("course_11_1", path, outputs=["finished:gadgte@2026"])
    with pytest.raises(ScenarioError, match="period 2031 is not reported; periods are 2026-Q1 to 2026-Q1"):
        compare("course_11_1", path, outputs=["finished:gadget@2031"])


def test_noise_of_the_solves_is_no_change() -> None:
    from scenarios.compare import _entry

    entry = _entry(10_000.0, 12_000.0, {"a": 2000.0, "b": -1.3e-9}, {"a": 2000.0, "b": 4e-10})
    assert entry["parts"] == {"a": 2000.0, "b": 0.0} and entry["alone"]["b"] == 0.0
    assert entry["interaction"] == 0.0


def test_an_hour_that_neither_scenario_has_is_told() -> None:
    found = compare(CHAIN, CHAIN, outputs=["energised:*@2026-Q2", "usd_per_gpu_hour:alpha@2026-Q2"])
    assert found.absent == ["usd_per_gpu_hour:alpha@2026-Q2"] and list(found.outputs) == ["energised:*@2026-Q2"]
    assert any("neither has it" in words for words in found.words)
