"""Shadow prices in money: translation against its definition, the two routes, and the identity at the margin."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from econ.finance import annuity_per_year
from econ.scarcity import (
    Reference,
    ResourcePrice,
    ScarcityError,
    bottom_up_price,
    check_marginal_identity,
    rent_usd_per_gpu_hour,
    top_down_price,
    translate,
)

REF = Reference("h100", "llama_3_1_70b", "coding", 0.10, 5, 0.8, 5e6, 0.02)
COWOS = ResourcePrice("cowos", "packaging", 41000, 1 / 28, price_low_usd=39000, price_high_usd=45000)
MEGAWATT = ResourcePrice("mw_us", "power", 0.65e6, 1.7, kind="power")


def test_manufacturing_rent_by_definition() -> None:
    out = translate(COWOS, REF)
    assert out.usd_per_accelerator == pytest.approx(41000 / 28)
    assert out.usd_per_gpu_hour == pytest.approx(annuity_per_year(41000 / 28, 0.10, 5) / (8760 * 0.8))
    assert out.usd_per_mtoken == pytest.approx(out.usd_per_gpu_hour / 5)
    assert out.usd_per_task == pytest.approx(out.usd_per_gpu_hour * 0.02)
    assert out.low_usd_per_gpu_hour < out.usd_per_gpu_hour < out.high_usd_per_gpu_hour
    assert out.reference == ("h100", "llama_3_1_70b", "coding")


def test_power_rent_by_definition() -> None:
    out = translate(MEGAWATT, REF)
    assert out.usd_per_gpu_hour == pytest.approx(1.7 * 650 / (2190 * 0.8))
    assert out.usd_per_accelerator == pytest.approx(1.7 * 650)


def test_lasting_power_price_is_capital_over_its_own_life() -> None:
    lasting = replace(MEGAWATT, price_usd=8e6, lasting=True)
    expected = annuity_per_year(8000 * 1.7, 0.10, REF.power_life_years) / (8760 * 0.8)
    assert translate(lasting, REF).usd_per_gpu_hour == pytest.approx(expected)


@given(st.floats(0, 1e6), st.floats(0, 10), st.floats(0.1, 1))
@settings(max_examples=40, deadline=None)
def test_rent_is_linear_in_price_and_falls_in_use(price: float, use: float, sold: float) -> None:
    ref = replace(REF, sold=sold)
    one = translate(ResourcePrice("r", "fab", price, use), ref).usd_per_gpu_hour
    two = translate(ResourcePrice("r", "fab", 2 * price, use), ref).usd_per_gpu_hour
    assert two == pytest.approx(2 * one)
    assert rent_usd_per_gpu_hour(price, 0.1, 5, sold) >= rent_usd_per_gpu_hour(price, 0.1, 5, 1.0)


def test_routes_are_never_mixed() -> None:
    modelled = bottom_up_price(5000, [COWOS], observed_usd=25000)
    assert modelled.total == pytest.approx(5000 + 41000 / 28)
    assert modelled.assumptions["observed_usd"] == 25000
    with pytest.raises(ScarcityError, match="after the sale"):
        bottom_up_price(5000, [MEGAWATT])
    observed = top_down_price(2.4, [MEGAWATT], REF)
    assert observed.total == pytest.approx(2.4 + translate(MEGAWATT, REF).usd_per_gpu_hour)
    assert "observed purchase price" in observed.method
    with pytest.raises(ScarcityError, match="already holds its rent"):
        top_down_price(2.4, [COWOS], REF)


def test_identity_holds_on_an_optimum_solved_elsewhere() -> None:
    """Oracle: a small LP by another solver; both products are made, so value = running cost + rents for each."""
    use = np.array([[2.0, 1.0], [1.0, 3.0]])
    value, running = np.array([100.0, 120.0]), np.array([40.0, 30.0])
    best = linprog(running - value, A_ub=use, b_ub=[100, 150], method="highs")
    prices = -best.ineqlin.marginals
    assert (best.x > 1).all()
    for s in range(2):
        gap = check_marginal_identity(value[s], running[s], list(prices), list(use[:, s]))
        assert gap < 1e-9
    named = dict(zip("ab", prices, strict=True))
    assert check_marginal_identity(100.0, 40.0, named, {"a": 2.0, "b": 1.0}) < 1e-9


def test_identity_failure_gives_both_sides() -> None:
    with pytest.raises(ScarcityError, match=r"value 100 against running cost 40 \+ rents 30"):
        check_marginal_identity(100.0, 40.0, {"fab": 10.0}, {"fab": 3.0})
    with pytest.raises(ScarcityError, match="uses without a price: hbm"):
        check_marginal_identity(100.0, 40.0, {"fab": 10.0}, {"fab": 3.0, "hbm": 8.0})
    with pytest.raises(ScarcityError, match="one length"):
        check_marginal_identity(100.0, 40.0, [1.0], [1.0, 2.0])
    with pytest.raises(ScarcityError, match="use 'capital' or 'power'"):
        translate(replace(COWOS, kind="magic"), REF)
