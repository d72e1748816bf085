"""Harvest and bins: simulation, exact inclusion-exclusion, conservation, parametric loss."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supply.manufacturing import ManufacturingError, bin_outputs, die_yield, harvested_yield, parametric_yield
from supply.manufacturing.rate_mixture import sample_rates

GPU = {"block_area_mm2": 3.0, "blocks": 144, "bins": {"full": 0, "cut": 12}, "other_area_mm2": 382.0}


@pytest.mark.parametrize("model", ["poisson", "negative_binomial", "murphy", "seeds", "rectangular", "moore"])
def test_simulated_dies_agree_with_the_harvest(model):
    rng = np.random.default_rng(5)
    draws, density = 120_000, 0.25
    rate = density / 100 * sample_rates(model, draws, rng, 2.0)
    bad_blocks = rng.binomial(144, -np.expm1(-3.0 * rate))
    rest_good = rng.poisson(382.0 * rate) == 0
    seen = {"full": (bad_blocks == 0) & rest_good, "cut": (bad_blocks > 0) & (bad_blocks <= 12) & rest_good}
    ours = harvested_yield(**GPU, defects_per_cm2=density, model=model, alpha=2.0)
    for name, hits in seen.items():
        assert abs(hits.mean() - ours[name]) < 4.5 * np.sqrt(ours[name] * (1 - ours[name]) / draws) + 1e-6


def test_inclusion_exclusion_oracle_for_poisson_and_seeds():
    """P(exactly k bad) = C(n, k) sum_j (-1)^j C(k, j) Y((n - k + j) a + other), in exact arithmetic for seeds."""
    n, block, other, density = 8, Fraction(20), Fraction(100), Fraction(1, 500)  # per mm2

    def exactly(k):
        terms = [(-1) ** j * comb(k, j) * 1 / (1 + density * ((n - k + j) * block + other)) for j in range(k + 1)]
        return comb(n, k) * sum(terms)

    ours = harvested_yield(20.0, 8, {"full": 0, "two": 2}, 100.0, 0.2, model="seeds")
    assert ours["full"] == pytest.approx(float(exactly(0)), rel=1e-9)
    assert ours["two"] == pytest.approx(float(exactly(1) + exactly(2)), rel=1e-9)


def test_full_bin_is_the_plain_die_yield():
    ours = harvested_yield(**GPU, defects_per_cm2=0.1)
    assert ours["full"] == pytest.approx(die_yield(144 * 3.0 + 382.0, 0.1), rel=1e-9)


def test_clustering_is_kept_within_a_die():
    """Independent blocks at the marginal yield would harvest more and fill fewer full dies than clustered ones."""
    clustered = harvested_yield(**GPU, defects_per_cm2=0.3, alpha=1.0)
    marginal = die_yield(3.0, 0.3, alpha=1.0) ** 144 * die_yield(382.0, 0.3, alpha=1.0)
    assert clustered["full"] > 1.5 * marginal


@settings(max_examples=40, deadline=None)
@given(
    block=st.floats(0.1, 6),
    blocks=st.integers(1, 160),
    allowed=st.integers(0, 160),
    other=st.floats(0, 600),
    density=st.floats(0, 3),
    alpha=st.floats(0.6, 100),
)
def test_bins_conserve_dies_and_harvest_never_hurts(block, blocks, allowed, other, density, alpha):
    bins = {"full": 0, "cut": min(allowed, blocks)} if min(allowed, blocks) > 0 else {"full": 0}
    ours = harvested_yield(block, blocks, bins, other, density, alpha=alpha)
    assert sum(ours.values()) == pytest.approx(1.0, abs=1e-9)
    assert all(0 <= v <= 1 for v in ours.values())
    more = harvested_yield(block, blocks, bins, other, density * 1.5 + 0.01, alpha=alpha)
    assert 1 - more["scrap"] <= 1 - ours["scrap"] + 1e-9


def test_arrays_of_defects():
    ours = harvested_yield(**GPU, defects_per_cm2=np.array([0.05, 0.1]))
    assert ours["full"].shape == (2,)
    assert ours["cut"][1] == pytest.approx(harvested_yield(**GPU, defects_per_cm2=0.1)["cut"])


def test_bins_as_co_products_conserve_dies():
    shares = harvested_yield(**GPU, defects_per_cm2=0.1)
    out = bin_outputs(1000.0, shares, {"full": 0.9, "cut": 0.95})
    assert sum(out.values()) == pytest.approx(1000.0)
    assert out["full"] == pytest.approx(900 * shares["full"])


def test_parametric_yield_is_a_normal_share():
    assert parametric_yield(0, 1, low=-1.959963985) == pytest.approx(0.975, abs=1e-9)
    assert parametric_yield(0, 1, -1, 1) == pytest.approx(0.682689492, abs=1e-9)
    with pytest.raises(ManufacturingError, match="check the limits"):
        parametric_yield(0, 1e-3, low=5)


def test_impossible_bins_are_refused():
    with pytest.raises(ManufacturingError, match="allows 9 bad blocks of 8"):
        harvested_yield(1, 8, {"cut": 9})
    with pytest.raises(ManufacturingError, match="could never fill"):
        harvested_yield(1, 8, {"a": 2, "b": 2})
    with pytest.raises(ManufacturingError, match="scrap"):
        harvested_yield(1, 8, {"scrap": 2})
    with pytest.raises(ManufacturingError, match="include the bin 'scrap'"):
        bin_outputs(10, {"full": 0.5})
    with pytest.raises(ManufacturingError, match="not a bin"):
        bin_outputs(10, {"full": 0.5, "scrap": 0.5}, {"half": 0.9})
    with pytest.raises(ManufacturingError, match="at least 1"):
        harvested_yield(1, 0, {"cut": 0})


def test_bins_are_full_and_twelve_bad_blocks_where_none_are_named():
    named = harvested_yield(3.0, 144, {"full": 0, "cut": 12}, 38.0, 8.0)
    assert harvested_yield(3.0, 144, None, 38.0, 8.0) == named
    one_more = harvested_yield(3.0, 144, {"full": 0, "cut": 13}, 38.0, 8.0)
    assert one_more["cut"] > named["cut"] * 1.001
