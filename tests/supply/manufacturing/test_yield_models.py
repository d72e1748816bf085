"""Seven yield models: published values, Monte Carlo, limits, inverse, manual and line yield."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supply.manufacturing import MODELS, ManufacturingError, defect_density, die_yield, line_times_defect_yield
from supply.manufacturing.rate_mixture import rate_nodes, sample_rates

PUBLISHED = {  # target P01: 814 mm2 at 0.1 per cm2
    ("moore", 3.0): 0.406,
    ("poisson", 3.0): 0.443,
    ("negative_binomial", 10.0): 0.457,
    ("murphy", 3.0): 0.468,
    ("negative_binomial", 3.0): 0.487,
    ("rectangular", 3.0): 0.494,
    ("seeds", 3.0): 0.551,
    ("bose_einstein", 3.0): 0.551,
}
AREAS = st.floats(0.0, 858.0)
DENSITIES = st.floats(0.0, 3.0)


@pytest.mark.parametrize(("model", "alpha"), PUBLISHED)
def test_p01_yield_by_model(model, alpha):
    assert die_yield(814, 0.1, model=model, alpha=alpha) == pytest.approx(PUBLISHED[model, alpha], abs=0.0005)


def test_p01_model_choice_is_a_cost_swing_of_1_36():
    values = [die_yield(814, 0.1, model=m) for m in MODELS]
    assert max(values) / min(values) == pytest.approx(1.36, abs=0.005)


@pytest.mark.parametrize("model", MODELS)
def test_simulated_defects_agree_with_every_closed_yield(model):
    rng = np.random.default_rng(11)
    draws, faults = 200_000, 0.814
    counts = rng.poisson(faults * sample_rates(model, draws, rng, 3.0))
    share = float((counts == 0).mean())
    closed = die_yield(814, 0.1, model=model)
    assert abs(share - closed) < 4 * np.sqrt(closed * (1 - closed) / draws)


@pytest.mark.parametrize("model", MODELS)
def test_quadrature_over_the_rate_gives_the_closed_yield(model):
    spread, weights = rate_nodes(model)
    for faults in (0.05, 0.8, 3.0):
        assert float((weights * np.exp(-faults * spread)).sum()) == pytest.approx(
            die_yield(100 * faults, 1.0, model=model), rel=1e-6
        )


@pytest.mark.parametrize("alpha", [0.5, 2.0, 40.0, 90.0, 2000.0, np.inf])
def test_quadrature_of_any_clustering(alpha):
    spread, weights = rate_nodes("negative_binomial", alpha)
    closed = die_yield(100, 1.0, alpha=alpha)
    assert float((weights * np.exp(-spread)).sum()) == pytest.approx(closed, rel=1e-6)


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=25, deadline=None)
@given(area=AREAS, density=DENSITIES, more=st.floats(0.01, 2.0))
def test_yield_is_a_fraction_and_falls_with_area_and_defects(model, area, density, more):
    here = die_yield(area, density, model=model)
    assert 0 < here <= 1
    assert die_yield(area * (1 + more), density, model=model) <= here + 1e-15
    assert die_yield(area, density * (1 + more), model=model) <= here + 1e-15


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=20, deadline=None)
@given(area=st.floats(10.0, 858.0), density=st.floats(0.001, 2.0))
def test_defect_density_inverts_the_yield(model, area, density):
    quoted = die_yield(area, density, model=model)
    assert defect_density(quoted, area, model=model) == pytest.approx(density, rel=1e-6)


def test_area_zero_gives_one_and_limits_hold():
    for model in MODELS:
        assert die_yield(0.0, 0.5, model=model) == 1.0
    assert die_yield(500, 0.2, alpha=1e7) == pytest.approx(die_yield(500, 0.2, model="poisson"), rel=1e-6)
    assert die_yield(500, 0.2, alpha=np.inf) == die_yield(500, 0.2, model="poisson")
    assert die_yield(500, 0.2, alpha=1.0) == pytest.approx(die_yield(500, 0.2, model="seeds"))


def test_layers_multiply_and_critical_fraction_shrinks_the_area():
    assert die_yield(400, 0.01, model="bose_einstein", layers=12) == pytest.approx((1 / 1.04) ** 12)
    assert die_yield(400, 0.1, critical_fraction=0.5) == die_yield(200, 0.1)


def test_trap_manual_yield_stays_at_zero_defects():
    assert die_yield(814, 0.0, manual_yield=0.80) == 0.80
    assert die_yield(814, 0.3, manual_yield=0.80) == 0.80


def test_line_yield_is_apart_from_defect_yield():
    assert line_times_defect_yield(die_yield(814, 0.1), 0.97) == pytest.approx(0.97 * die_yield(814, 0.1))


def test_arrays_broadcast():
    grid = die_yield(np.array([[100.0], [800.0]]), np.array([0.05, 0.1, 0.2]))
    assert grid.shape == (2, 3)
    assert grid[1, 1] == die_yield(800, 0.1)
    assert defect_density(grid, np.array([[100.0], [800.0]])) == pytest.approx(
        np.broadcast_to([0.05, 0.1, 0.2], (2, 3)), rel=1e-6
    )


def test_messages_name_the_value_and_the_remedy():
    with pytest.raises(ManufacturingError, match="area_mm2 = -1 must be at least 0"):
        die_yield(-1, 0.1)
    with pytest.raises(ManufacturingError, match=r"per cent, give 0\.8"):
        defect_density(80, 814)
    with pytest.raises(ManufacturingError, match="'nb' is not known; choose one of poisson"):
        die_yield(100, 0.1, model="nb")
    with pytest.raises(ManufacturingError, match="not finite"):
        die_yield(float("nan"), 0.1)
    with pytest.raises(ManufacturingError, match="not a number"):
        die_yield("large", 0.1)
    with pytest.raises(ManufacturingError, match="no closed mixture"):
        rate_nodes("murphy", layers=2)


def test_defect_density_counts_the_critical_part_of_the_area_only():
    quoted = die_yield(400, 0.2, critical_fraction=0.5)
    assert defect_density(quoted, 400, critical_fraction=0.5) == pytest.approx(0.2, rel=1e-9)
    assert defect_density(quoted, 400) == pytest.approx(0.1, rel=1e-9)  # all of it critical: half the density does
