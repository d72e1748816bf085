"""Rules: known boxes found on synthetic draws, a threshold that can be worked out by hand, and what is refused."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scenarios.discovery import DiscoverError, discover, find_rules
from scenarios.errors import ScenarioError

pytest.importorskip("sklearn")
NAMES = ["a", "b", "c", "d"]


def _ranks(draws: int, seed: int = 1) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.random.default_rng(seed).random((draws, len(NAMES)))


def test_a_box_is_found_with_its_thresholds_inside_their_intervals() -> None:
    ranks = _ranks(1500)
    hit = (ranks[:, 0] > 0.7) & (ranks[:, 2] <= 0.4)
    rules = find_rules(NAMES, ranks, hit)
    assert len(rules) == 1
    low = next(c for c in rules[0].conditions if c.input == "a")
    high = next(c for c in rules[0].conditions if c.input == "c")
    assert {c.input for c in rules[0].conditions} == {"a", "c"}
    assert low.low == pytest.approx(0.7, abs=0.02) and low.high is None
    assert high.high == pytest.approx(0.4, abs=0.02) and high.low is None
    assert low.low_interval is not None and low.low_interval[0] - 0.01 <= 0.7 <= low.low_interval[1] + 0.01
    assert low.low_interval[1] - low.low_interval[0] < 0.1
    assert rules[0].coverage > 0.9 and rules[0].density > 0.9
    assert rules[0].mass == pytest.approx(hit.mean(), abs=0.04)
    assert "a above 0.7" in rules[0].words() and "c below 0.4" in rules[0].words()


def test_noise_lowers_density_and_widens_the_interval() -> None:
    ranks = _ranks(1500)
    clean = ranks[:, 1] > 0.6
    noisy = clean ^ (np.random.default_rng(5).random(1500) < 0.2)
    (sharp,), (blurred,) = find_rules(NAMES, ranks, clean, depth=1), find_rules(NAMES, ranks, noisy, depth=1)
    assert sharp.density > 0.97
    assert blurred.density == pytest.approx(0.8, abs=0.07)
    assert blurred.density_interval[0] < 0.8 < blurred.density_interval[1] + 0.03
    wide, narrow = blurred.conditions[0].low_interval, sharp.conditions[0].low_interval
    assert wide is not None and narrow is not None and wide[1] - wide[0] > narrow[1] - narrow[0]


def test_two_boxes_are_two_rules_and_cover_together() -> None:
    ranks = _ranks(2000)
    hit = (ranks[:, 0] < 0.2) | ((ranks[:, 0] > 0.8) & (ranks[:, 3] > 0.3))
    rules = find_rules(NAMES, ranks, hit)
    assert len(rules) == 2
    assert sum(r.coverage for r in rules) > 0.9 and min(r.density for r in rules) > 0.9
    assert rules[0].coverage >= rules[1].coverage


def test_pure_chance_gives_no_rule_that_holds() -> None:
    ranks = _ranks(900)
    hit = np.random.default_rng(9).random(900) < 0.3
    assert find_rules(NAMES, ranks, hit) == []


def test_the_score_is_of_draws_the_tree_has_not_seen() -> None:
    ranks = _ranks(240, seed=4)
    hit = (ranks[:, 0] > 0.5) ^ (np.random.default_rng(11).random(240) < 0.3)
    unseen = np.random.default_rng(7).permutation(240)[160:]
    rules = find_rules(NAMES, ranks, hit, depth=1, seed=7)
    assert rules
    for rule in rules:
        (condition,) = rule.conditions
        column = ranks[unseen, NAMES.index(condition.input)]
        inside = column > condition.low if condition.low is not None else column <= (condition.high or 0.0)
        assert rule.density == pytest.approx(hit[unseen][inside].mean())
        assert rule.coverage == pytest.approx((hit[unseen] & inside).sum() / hit[unseen].sum())


SCENARIO = """
title: One uncertain limit before a fixed one
horizon: {start: 2026-Q1, periods: 1, step: quarter}
objective: units
materials: {die: {unit: die}, accelerator: {unit: accelerator}}
resources:
  fab: {stage: fab, capacity: {distribution: uniform, low: 8000, high: 16000}}
  cowos: {stage: packaging, capacity: 10000}
processes:
  make_die: {stage: fab, output: {die: 1}, uses: {fab: 1}, yield: 1, lead_time: 0 week}
  package: {stage: packaging, input: {die: 1}, output: {accelerator: 1}, uses: {cowos: 1}, yield: 1, lead_time: 0 week}
demand: {accelerator: {price: 1 USD/accelerator}}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("discovery") / "one_limit.yaml"
    path.write_text(SCENARIO)
    return path


@pytest.mark.parametrize("target", ["binding:packaging@2026", "priced:cowos@2026-Q1", "finished:*@2026>9999.9"])
def test_packaging_binds_above_ten_thousand_dies(place: Path, target: str) -> None:
    """Uniform 8,000 to 16,000 passes 10,000 at a quarter of its range."""
    found = discover(place, target, draws=240, seed=2)
    assert found.share == pytest.approx(0.75, abs=0.01)
    (rule,) = found.rules
    (condition,) = rule.conditions
    assert condition.input == "resources.fab.capacity"
    assert condition.low == pytest.approx(0.25, abs=0.02)
    assert rule.density > 0.97 and rule.coverage > 0.97
    value = float(condition.reading.split("above ")[1].split()[0])
    assert value == pytest.approx(10_000, rel=0.02)
    assert found.json()["rules"][0]["words"] == rule.words()


def test_what_always_or_never_happens_is_said(place: Path) -> None:
    always = discover(place, "finished:*@2026>1", draws=60)
    never = discover(place, "finished:*@2026>1e9", draws=60)
    assert (always.share, always.note, always.rules) == (1.0, "it happens in every draw", [])
    assert (never.share, never.note, never.rules) == (0.0, "it happens in no draw", [])


@pytest.mark.parametrize(
    ("target", "message"),
    [("binding:cowoz@2026", "cowos"), ("energised", "binding:STAGE@PERIOD"), ("finished:*@2026<many", "OUTPUT<VALUE")],
)
def test_a_wrong_target_says_what_may_stand(place: Path, target: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        discover(place, target, draws=60)


def test_too_few_draws_are_refused(place: Path) -> None:
    with pytest.raises(DiscoverError, match="at least 60"):
        discover(place, "binding:packaging@2026", draws=20)


def test_without_scikit_learn_the_extra_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("sklearn"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(DiscoverError, match=r"wafer2token\[discover\]"):
        discover(place, "binding:packaging@2026", draws=60)
