"""Sensitivity against known answers: Ishigami, an additive model, and a hand-made chain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from scenarios.sensitivity import analyse, grid, sample_ranks, sensitivity

CHAIN = Path(__file__).parent / "cases" / "chain.yaml"


def ishigami(u: np.ndarray) -> np.ndarray:
    x = -np.pi + 2 * np.pi * u
    return np.asarray(np.sin(x[:, 0]) + 7 * np.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * np.sin(x[:, 0]))


def test_sobol_indices_of_ishigami() -> None:
    names = ["a", "b", "c"]
    points = sample_ranks(names, "sobol", 8192, seed=1)
    rows, second = analyse(names, "sobol", points, ishigami(points), seed=1)
    found = {r["input"]: r for r in rows}
    for name, first, total in (("a", 0.3139, 0.5576), ("b", 0.4424, 0.4424), ("c", 0.0, 0.2437)):
        assert found[name]["first"] == pytest.approx(first, abs=0.02)
        assert found[name]["total"] == pytest.approx(total, abs=0.02)
    pair = next(s for s in second if s["inputs"] == ["a", "c"])
    assert pair["second"] == pytest.approx(0.2437, abs=0.03)
    assert next(r["input"] for r in rows) == "a"


def test_an_additive_model_has_no_interactions() -> None:
    names = ["big", "small"]
    points = sample_ranks(names, "sobol", 1024, seed=2)
    rows, _ = analyse(names, "sobol", points, 3 * points[:, 0] + points[:, 1], seed=2)
    found = {r["input"]: r for r in rows}
    assert found["big"]["first"] == pytest.approx(0.9, abs=0.02)
    assert found["big"]["total"] == pytest.approx(0.9, abs=0.02)
    assert found["small"]["first"] == pytest.approx(0.1, abs=0.02)


def test_morris_finds_the_slopes_of_a_linear_model() -> None:
    names = ["x", "y"]
    points = sample_ranks(names, "morris", 10, seed=3)
    rows, _ = analyse(names, "morris", points, 5 * points[:, 0] - 2 * points[:, 1], seed=3)
    found = {r["input"]: r for r in rows}
    assert found["x"]["total"] == pytest.approx(5, rel=1e-3)
    assert found["y"]["mu"] == pytest.approx(-2, rel=1e-3)
    assert found["x"]["sigma"] == pytest.approx(0, abs=1e-6)


def test_pawn_ranks_inputs() -> None:
    names = ["strong", "none"]
    points = sample_ranks(names, "pawn", 512, seed=4)
    rows, _ = analyse(names, "pawn", points, stats.norm.ppf(points[:, 0]), seed=4)
    assert rows[0]["input"] == "strong" and rows[0]["total"] > 2 * rows[1]["total"]


def test_a_constant_output_has_no_sensitivity_and_missing_ones_are_refused() -> None:
    points = sample_ranks(["x", "y"], "morris", 4, seed=5)
    rows, _ = analyse(["x", "y"], "morris", points, np.full(len(points), 3.0))
    assert [r["total"] for r in rows] == [0.0, 0.0]
    broken = np.where(np.arange(len(points)) == 2, np.nan, points[:, 0])
    with pytest.raises(ValueError, match=r"1 of .* have no optimum"):
        analyse(["x", "y"], "morris", points, broken)


def test_tornado_swings_and_slopes() -> None:
    found = sensitivity(CHAIN, "tornado", outputs=["objective", "fleet:*@2027-Q2"])
    rows = {r["input"]: r for r in found.outputs["objective"]}
    nominal = found.nominal["objective"]
    power = rows["resources.power_us.capacity#2"]
    assert power["low"] < nominal < power["high"] and power["slope"] > 0
    swings = [max(r["high"], r["low"], nominal) - min(r["low"], r["high"], nominal) for r in found.outputs["objective"]]
    assert swings == sorted(swings, reverse=True) and swings[0] > 0
    assert found.evaluations == 2 * len(rows) + 1


def test_groups_move_together_and_sobol_runs_on_the_chain() -> None:
    found = sensitivity(CHAIN, "sobol", inputs=["yield", "power"], outputs=["fleet:*@2027-Q2"], samples=32)
    rows = {r["input"]: r for r in found.outputs["fleet:*@2027-Q2"]}
    assert set(rows) == {"yield", "power"} and rows["power"]["total"] > rows["yield"]["total"]
    assert found.second["fleet:*@2027-Q2"][0]["inputs"] == ["yield", "power"]
    assert found.evaluations == 32 * 6


def test_the_map_names_what_binds() -> None:
    found = grid(CHAIN, "costs.use", "power", outputs=["energised:*@2026-Q4"], steps=3, span=(0.3, 1.7))
    table = np.array(found["outputs"]["energised:*@2026-Q4"])
    assert table.shape == (3, 3) and not np.isnan(table).any()
    assert found["binding"][2][0] == "line" and found["binding"][0][2] == "power_us"


def test_unknown_method_is_refused() -> None:
    with pytest.raises(ValueError, match="not one of tornado, morris, sobol, pawn"):
        sensitivity(CHAIN, "guess")


def test_a_grid_gives_the_indices_of_a_kinked_function_with_its_error() -> None:
    from scenarios.surrogate import check_points, grid_points, interpolators

    def kinked(u: np.ndarray) -> np.ndarray:
        return np.minimum(2 * u[:, 0] + 0.5 * u[:, 1], 1.5)

    (interpolate,) = interpolators(kinked(grid_points(2))[:, None], 2)
    checks = check_points(2, 1)
    assert np.max(np.abs(interpolate(checks) - kinked(checks))) < 0.05
    names = ["x", "y"]
    points = sample_ranks(names, "sobol", 4096, seed=1)
    exact, by_grid = (analyse(names, "sobol", points, f(points), seed=1)[0] for f in (kinked, interpolate))
    for a, b in zip(exact, by_grid, strict=True):
        assert a["input"] == b["input"] and b["total"] == pytest.approx(a["total"], abs=0.01)


def test_sobol_of_two_groups_has_narrow_intervals() -> None:
    found = sensitivity(CHAIN, "sobol", inputs=["yield", "power"], outputs=["fleet:*@2027-Q2"])
    leading = found.outputs["fleet:*@2027-Q2"][0]
    assert leading["input"] == "power" and leading["first_ci"] < 0.05 and leading["total_ci"] < 0.05
    assert found.surrogate["fleet:*@2027-Q2"] < 0.2
    assert found.evaluations == 225 + 24
