"""The cost of an accelerator-hour: waterfall, monotone inputs, four methods, use chain, bands, facts, traps."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from econ.bill_of_materials import BillError, check_accelerator_count
from econ.carbon_per_hour import carbon_per_sold_hour
from econ.cost_breakdown import WaterfallError
from econ.energy_cost import electricity_cost_usd, energy_share_of_cost, price_at_energy_share
from econ.finance import FinanceError
from econ.gpu_hour import (
    METHODS,
    CostInputs,
    break_even_life_years,
    break_even_rent,
    break_even_sold_share,
    cost_by_method,
    economic_life_years,
    gpu_hour_cost,
    running_cost_per_sold_hour,
)
from econ.owner_cost import OwnerCostError, econ_sku, known_skus, owner_cost, owner_inputs
from econ.prices import components_of_node_price
from econ.use_chain import UseChain, UseError
from supply.facts import catalog

ON = date(2026, 6, 30)
FULL = CostInputs(
    it_usd=38000,
    network_usd=8900,
    facility_usd=24000,
    rate_per_year=0.1,
    it_residual_share=0.1,
    delivery_months=2,
    construction_months=18,
    tax_rate=0.21,
    tax_life_years=5,
    spares_share=0.05,
    failure_rate_per_year=0.04,
    repair_share=0.5,
    insurance_share_per_year=0.003,
    maintenance_usd_per_year=200,
    staff_usd_per_year=210,
    software_usd_per_year=100,
    busy_kw=1.06,
    idle_kw=0.2,
    pue=1.2,
    electricity_usd_per_kwh=0.07,
    use=UseChain(0.8, 0.9, 0.95, 0.6),
)


@pytest.mark.parametrize("method", METHODS)
def test_waterfall_sums_to_an_independent_total(method: str) -> None:
    cost = gpu_hour_cost(FULL, method=method)
    assert cost.total == pytest.approx(sum(bar.value for bar in cost), rel=1e-12)
    assert cost.total == pytest.approx(_by_hand(FULL, method), rel=1e-9)


def _by_hand(i: CostInputs, method: str) -> float:
    """The same cost written out once more from the definitions, without the library's helpers."""
    r, n, m = i.rate_per_year, i.it_life_years, i.facility_life_years
    crf = {k: r / (1 - (1 + r) ** -k) for k in (n, m, i.tax_life_years)}
    hardware = (i.it_usd + i.network_usd) * (1 + i.spares_share)
    idle = (1 + r) ** (i.delivery_months / 12)
    years = i.construction_months / 12
    build = ((1 + r) ** years - 1) / (years * np.log(1 + r))
    if method == "annuity":
        yearly = hardware * idle * (1 - i.it_residual_share / (1 + r) ** n) * crf[n] + i.facility_usd * build * crf[m]
    elif method == "straight_line":
        yearly = hardware * idle * (1 - i.it_residual_share) / n + i.facility_usd * build / m
    elif method == "payback":
        yearly = (hardware + i.facility_usd) / i.payback_years
    else:
        lost = 1 - 10 ** (-i.decline_oom_per_year * n)
        yearly = hardware * idle * lost / n + i.facility_usd * build * crf[m]
    z = 1 / (i.tax_life_years * crf[i.tax_life_years])
    yearly *= (1 - i.tax_rate * z) / (1 - i.tax_rate)
    yearly += i.insurance_share_per_year * (i.it_usd + i.network_usd + i.facility_usd)
    yearly += i.maintenance_usd_per_year + i.staff_usd_per_year + i.software_usd_per_year
    yearly += i.it_usd * i.failure_rate_per_year * i.repair_share
    b = i.use.sold * i.use.scheduled * i.use.healthy * i.use.busy
    yearly += i.hours_per_year * i.pue * i.electricity_usd_per_kwh * (i.busy_kw * b + i.idle_kw * (1 - b))
    return float(yearly / (i.hours_per_year * i.use.sold))


@pytest.mark.parametrize("method", ["annuity", "straight_line", "payback"])
@given(st.floats(0.3, 0.95), st.floats(2.0, 9.0))
@settings(max_examples=15, deadline=None)
def test_cost_falls_in_use_and_life(method: str, sold: float, life: float) -> None:
    name = "payback_years" if method == "payback" else "it_life_years"
    base = FULL.with_value("use.sold", sold).with_value(name, life)
    cost = gpu_hour_cost(base, method=method).total
    assert gpu_hour_cost(base.with_value("use.sold", min(1.0, sold * 1.05)), method=method).total < cost
    assert gpu_hour_cost(base.with_value(name, life * 1.05), method=method).total < cost


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["electricity_usd_per_kwh", "pue", "it_usd", "facility_usd", "failure_rate_per_year"])
def test_cost_rises_in_each_cost(method: str, name: str) -> None:
    raised = FULL.with_value(name, FULL.value_of(name) * 1.1)
    assert gpu_hour_cost(raised, method=method).total > gpu_hour_cost(FULL, method=method).total


def test_cost_rises_in_the_rate_where_money_has_a_price() -> None:
    for method in ("annuity", "straight_line", "market_value"):
        dearer = gpu_hour_cost(FULL, method=method, rate_per_year=0.14).total
        assert dearer > gpu_hour_cost(FULL, method=method).total


def test_four_methods_side_by_side_on_the_same_inputs() -> None:
    rows = cost_by_method(FULL)
    assert tuple(rows) == METHODS
    assert len({round(row["electricity"], 12) for row in rows.values()}) == 1
    assert rows["annuity"].total > rows["straight_line"].total


def test_course_11_2_equipment_power_and_owner_cost() -> None:
    cost = gpu_hour_cost(
        method="straight_line",
        it_usd=40000,
        it_life_years=4,
        use=UseChain(sold=0.7),
        busy_kw=1.2,
        idle_kw=0.0,
        electricity_usd_per_kwh=0.08,
        extra_usd_per_sold_hour={"maintenance and staff": 0.30, "financing": 0.45},
    )
    assert cost["equipment"] == pytest.approx(1.6308, rel=1e-3)
    assert cost["electricity"] == pytest.approx(0.096, rel=1e-12)
    assert cost.total == pytest.approx(2.4768, rel=1e-3)


def test_idle_draw_is_paid_by_the_sold_hours() -> None:
    free = gpu_hour_cost(FULL, idle_kw=0.0)["electricity"]
    paid = gpu_hour_cost(FULL, idle_kw=0.3)["electricity"]
    half = gpu_hour_cost(FULL.with_value("use.sold", 0.4), idle_kw=0.3)["electricity"]
    assert free < paid < half


def test_trap_use_fractions_are_not_swapped() -> None:
    """Only `sold` divides the cost; scheduled, healthy and busy divide tokens and move electricity alone."""
    busier = FULL.with_value("use.busy", 0.9)
    base, changed = gpu_hour_cost(FULL), gpu_hour_cost(busier)
    for bar in base:
        assert (changed[bar.name] == bar.value) == (bar.name != "electricity")
    assert busier.use.tokens_per_sold_hour(100.0) == pytest.approx(1.5 * FULL.use.tokens_per_sold_hour(100.0))
    assert gpu_hour_cost(FULL.with_value("use.efficient", 0.3)).total == base.total
    with pytest.raises(UseError, match=r"busy = 60.*share of the one before"):
        UseChain(busy=60)


def test_trap_halving_uptime_raises_the_cost() -> None:
    half = gpu_hour_cost(FULL.with_value("use.sold", 0.4)).total
    assert half > 1.8 * gpu_hour_cost(FULL).total


def test_arrays_give_the_scalar_answers() -> None:
    prices = np.array([20000.0, 30000.0, 40000.0])
    stacked = gpu_hour_cost(FULL.with_value("it_usd", prices)).total
    single = [gpu_hour_cost(FULL.with_value("it_usd", p)).total for p in prices]
    assert stacked == pytest.approx(single)


def test_band_is_the_square_sum_of_single_swings() -> None:
    bands = {"it_usd": (30000.0, 46000.0), "use.sold": (0.65, 0.95)}
    cost = gpu_hour_cost(FULL, bands=bands)
    swings = []
    for name, ends in bands.items():
        totals = [gpu_hour_cost(FULL.with_value(name, end)).total - cost.total for end in ends]
        swings.append((min(totals), max(totals)))
    assert cost.low == pytest.approx(cost.total - np.hypot(swings[0][0], swings[1][0]))
    assert cost.high == pytest.approx(cost.total + np.hypot(swings[0][1], swings[1][1]))
    assert all(bar.low <= bar.value + 1e-12 and bar.value <= bar.high + 1e-12 for bar in cost)


@pytest.mark.parametrize("name", ["it_price", "use.sould"])
def test_unknown_band_or_input_is_refused(name: str) -> None:
    with pytest.raises(FinanceError, match=f"has no input '{name}'; inputs: it_usd"):
        gpu_hour_cost(FULL, bands={name: (1.0, 2.0)})


def test_break_even_life_inverts_the_cost() -> None:
    life = break_even_life_years(FULL, 3.0)
    assert gpu_hour_cost(FULL, it_life_years=life).total == pytest.approx(3.0, abs=1e-4)
    with pytest.raises(FinanceError, match=r"never pays: over 100 years an hour still costs"):
        break_even_life_years(FULL, 0.2)


def test_break_even_rent_and_use_invert_the_cost() -> None:
    rent = break_even_rent(FULL, margin=0.2)
    assert gpu_hour_cost(FULL).total == pytest.approx(0.8 * rent)
    share = break_even_sold_share(FULL, rent)
    assert gpu_hour_cost(FULL.with_value("use.sold", share)).total == pytest.approx(rent, rel=1e-6)
    assert share < FULL.use.sold
    with pytest.raises(FinanceError, match="never covers the cost: with every hour sold"):
        break_even_sold_share(FULL, 0.5)


def test_economic_life_ends_where_rent_meets_running_cost() -> None:
    running = running_cost_per_sold_hour(FULL)
    age = economic_life_years(2.35, running)
    assert 2.35 * 10 ** (-0.14 * age) == pytest.approx(running)
    assert 0 < running < gpu_hour_cost(FULL).total


def test_colocation_or_own_building() -> None:
    own = owner_inputs("h100", on=ON).cost()
    rented = owner_inputs("h100", on=ON, site="colocation").cost()
    assert own["building"] > 0 and own["colocation"] == 0
    assert rented["colocation"] > 0 and rented["building"] == 0
    assert rented["equipment"] == own["equipment"]


@pytest.mark.parametrize("sku", known_skus())
def test_every_priced_sku_has_a_traced_waterfall(sku: str) -> None:
    cost = owner_cost(sku, "us", on=ON)
    assert 0 < cost.low < cost.total < cost.high
    facts = catalog()
    for bar in cost:
        assert bar.value == 0 or bar.fact_ids or bar.name == "residual_value", bar.name
        for fact_id in bar.fact_ids:
            assert facts.trace(fact_id)


PUBLISHED = {
    "h100": "h100_sxm",
    "h200": "h200_sxm",
    "b200": "b200_hgx",
    "gb200": "gb200_nvl72",
    "mi300x": "mi300x",
    "mi355x": "mi355x",
}


@pytest.mark.parametrize("owner", ["hyperscaler", "neocloud"])
@pytest.mark.parametrize("sku", PUBLISHED)
def test_owner_cost_near_a_published_model(sku: str, owner: str) -> None:
    """An independent published model lies within a factor 1.45 of ours with all hours sold; its scope is not stated."""
    published = catalog()[f"{PUBLISHED[sku]}_owner_cost_{owner}_2026_04_03"].number
    ours = owner_inputs(sku, on=date(2026, 4, 3), owner=owner).cost(**{"use.sold": 1.0}).total
    assert 1 / 1.45 < ours / published < 1.45


def test_regions_and_dates_move_the_cost() -> None:
    us, europe = owner_cost("h100", "us", on=ON), owner_cost("h100", "europe", on=ON)
    assert europe["electricity"] > us["electricity"]
    assert owner_cost("h100", on=date(2023, 1, 15))["equipment"] > us["equipment"]
    for region in ("china", "rest"):
        assert owner_cost("h20", region, on=ON).total > 0


def test_names_used_elsewhere_resolve_and_unknown_ones_are_refused() -> None:
    assert econ_sku("NVIDIA H100 SXM") == "h100" and econ_sku("aws_trainium2") == "trainium2"
    with pytest.raises(OwnerCostError, match=r"no facts price 'h10'.*did you mean h100"):
        owner_cost("h10", on=ON)
    with pytest.raises(OwnerCostError, match="region = 'mars'"):
        owner_cost("h100", "mars", on=ON)


def test_no_placeholder_enters_an_owner_cost() -> None:
    facts = catalog()
    for sku in known_skus():
        for fact_id in owner_cost(sku, on=ON).fact_ids:
            assert facts.trace(fact_id)[0].kind != "placeholder"


def test_target_p19_energy_share_of_cost() -> None:
    """NVL72 class: about 0.07 of the cost of a year when all hours are sold and run; more where hours stand idle."""
    inputs = owner_inputs("gb200", on=date(2026, 5, 14), owner="hyperscaler", use=UseChain())
    assert inputs.cost().share("electricity") == pytest.approx(0.07, abs=0.035)


def test_carbon_of_an_hour_follows_its_power_and_grid() -> None:
    us = carbon_per_sold_hour("h100", "us", on=ON)
    china = carbon_per_sold_hour("h100", "china", on=ON)
    assert china["electricity"] / us["electricity"] == pytest.approx(582 / 370)
    hour = owner_inputs("h100", on=ON)
    kwh = hour.cost()["electricity"] / hour.inputs.electricity_usd_per_kwh
    assert us["electricity"] == pytest.approx(kwh * 0.370)
    assert us["embodied"] < us["electricity"] and us.fact_ids
    with pytest.raises(ValueError, match="embodied carbon of 'tpu_v5e'"):
        carbon_per_sold_hour("tpu_v5e", on=ON)


def test_case_tco_energy_share_claim() -> None:
    kwh = 0.5 * 8760 * 10
    energy = electricity_cost_usd(500, 1, 0.10, years=10)
    assert energy == pytest.approx(4380)
    assert energy_share_of_cost(30000, energy) == pytest.approx(0.1274, rel=0.005)
    assert price_at_energy_share(30000, kwh, 0.75) == pytest.approx(2.05, abs=0.01)


def test_case_tco_count_mismatch() -> None:
    with pytest.raises(BillError, match=r"= 112 accelerators, but 144 are stated.*44,643 USD on 112, 34,722 on 144"):
        check_accelerator_count(14, 8, 144, cost_usd=5e6)
    assert check_accelerator_count(18, 8, 144) == 144


def test_case_tco_components_sum_to_node() -> None:
    parts = components_of_node_price(4, 0.010603, 16454709248, 0.001421, 1, 0.461814, node_usd_per_hour=0.526)
    assert parts.total == pytest.approx(0.526002, rel=0.001)
    with pytest.raises(WaterfallError, match="counted twice or missing"):
        components_of_node_price(4, 0.010603, 16454709248, 0.001421, 2, 0.461814, node_usd_per_hour=0.526)


def test_stated_values_replace_inputs_and_their_bands() -> None:
    inputs = owner_inputs("h100", on=ON)
    exact = inputs.cost(it_usd=30000.0)
    assert exact["equipment"] < inputs.cost()["equipment"]
    narrowed = replace(inputs, bands={k: v for k, v in inputs.bands.items() if k == "use.sold"}).cost()
    assert narrowed.high - narrowed.low < inputs.cost().high - inputs.cost().low
    with pytest.raises(FinanceError, match="has no input 'it_price'"):
        inputs.cost(it_price=1.0)


NOT_NEGATIVE = [
    *("it_usd", "network_usd", "facility_usd", "spares_share", "failure_rate_per_year", "repair_share"),
    *("insurance_share_per_year", "maintenance_usd_per_year", "staff_usd_per_year", "software_usd_per_year"),
    *("colocation_usd_per_kw_month", "colocation_kw", "busy_kw", "idle_kw", "electricity_usd_per_kwh"),
    *("rate_per_year", "delivery_months", "construction_months", "tax_rate"),
]


@pytest.mark.parametrize("name", NOT_NEGATIVE)
def test_inputs_may_be_nothing_but_not_less(name: str) -> None:
    base = replace(FULL, idle_kw=0.0, colocation_kw=1.0, colocation_usd_per_kw_month=100.0)
    assert gpu_hour_cost(base.with_value(name, 0.0)).total < gpu_hour_cost(base.with_value(name, 0.01)).total
    with pytest.raises(FinanceError, match="months" if name.endswith("months") else name):
        gpu_hour_cost(base.with_value(name, -0.01))


@pytest.mark.parametrize(("name", "worst", "least"), [("pue", 0.99, 1.0), ("hours_per_year", 0.0, 0.5)])
def test_inputs_that_start_higher(name: str, worst: float, least: float) -> None:
    assert np.isfinite(gpu_hour_cost(FULL.with_value(name, least)).total)
    with pytest.raises(FinanceError, match=name):
        gpu_hour_cost(FULL.with_value(name, worst))
