"""Price arithmetic, observed prices by market, margin stack, rent or buy, and user questions about prices."""

from __future__ import annotations

import math
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from econ.cost_breakdown import WaterfallError
from econ.finance import FinanceError
from econ.gpu_hour import CostInputs
from econ.margins import accelerator_margin_stack, known_bills, part_bill
from econ.market import market_table
from econ.price_quotes import (
    MARKETS,
    instance_price_rows,
    observed_price,
    price_quotes,
    price_series,
)
from econ.prices import (
    MarginLayer,
    RentalPriceError,
    accelerator_part_usd,
    commitment_ladder,
    form_factor_spread,
    implied_forward_price,
    implied_one_year_price_two_years_ahead,
    implied_yearly_ratio,
    income_with_price_decline_usd,
    margin_stack,
    normalised_quote,
    price_per_accelerator_hour,
    rental_income_usd,
    spot_discount,
    units_from_revenue,
)
from econ.rent_or_buy import (
    break_even_tokens_per_month,
    break_even_use,
    compare_buy_and_rent,
    monthly_api_bill_usd,
    owned_total_usd,
)
from supply.facts import catalog
from supply.paths import data_file

ON = date(2026, 11, 30)


def test_forward_price_makes_the_long_deal_fair() -> None:
    forward = implied_forward_price(7.2, 5.4)
    assert 7.2 + 2 * forward == pytest.approx(3 * 5.4)
    q = implied_yearly_ratio(7.2, 5.4)
    assert 7.2 * (1 + q + q * q) == pytest.approx(3 * 5.4)
    assert implied_one_year_price_two_years_ahead(7.2, 5.4) == pytest.approx(7.2 * q * q)
    with pytest.raises(RentalPriceError, match="no price path fits"):
        implied_yearly_ratio(7.2, 2.0)


@given(st.floats(0.3, 1.5), st.floats(1.0, 10.0))
@settings(max_examples=25, deadline=None)
def test_constant_ratio_is_recovered(ratio: float, first: float) -> None:
    three = first * (1 + ratio + ratio**2) / 3
    assert implied_yearly_ratio(first, three) == pytest.approx(ratio, rel=1e-6)


def test_ladder_falls_with_commitment() -> None:
    facts = catalog()
    discounts = {y: facts[f"aws_commitment_discount_{y}y_2025"].number for y in (1, 3)}
    rungs = list(commitment_ladder(6.88, discounts).values())
    assert rungs == sorted(rungs, reverse=True)


def test_income_with_decline_agrees_with_the_year_by_year_sum() -> None:
    flat = rental_income_usd(9.4, 16000, 4, 8766)
    falling = sum(9.4 * 0.7**k * 16000 * 8766 for k in range(4))
    assert rental_income_usd(9.4, 16000, 4, 8766, 0.7) == pytest.approx(falling)
    assert income_with_price_decline_usd(flat, 4, 0.7) == pytest.approx(falling)
    assert rental_income_usd(9.4, 16000, 4, 8766, 1.0) == pytest.approx(flat)


def test_units_and_average_price_with_bands() -> None:
    value, low, high = units_from_revenue((10e9, 9e9, 11e9), (25000, 22000, 30000))
    assert (value, low, high) == (400000, 300000, 500000)
    with pytest.raises(RentalPriceError, match="outside its own range"):
        units_from_revenue((10e9, 11e9, 12e9), (25000, 22000, 30000))


def test_normalised_quote_keeps_its_parts() -> None:
    quote = normalised_quote(24.0, 8, missing={"storage": 0.3}, bundled={"support": 0.1})
    assert quote.total == pytest.approx(3.2)
    with pytest.raises(RentalPriceError, match="exceed the quote"):
        normalised_quote(8.0, 8, bundled={"network": 2.0})


LAYERS = st.lists(st.tuples(st.floats(0, 1e4), st.floats(1, 1e5), st.floats(0.01, 100)), min_size=1, max_size=6)


@given(LAYERS)
@settings(max_examples=50, deadline=None)
def test_margins_add_to_the_price_exactly(rows: list[tuple[float, float, float]]) -> None:
    stack = margin_stack([MarginLayer(f"layer {i}", cost, price, units) for i, (cost, price, units) in enumerate(rows)])
    scale = sum(abs(bar.value) for bar in stack) or 1.0
    assert abs(stack.total - rows[-1][1]) <= 1e-12 * scale


def test_margin_stack_from_die_to_model_provider() -> None:
    """Dollars per hour of the final price: every layer's cost and margin carried into the last unit."""
    per_hour = 1 / (4 * 8760 * 0.8)
    stack = margin_stack(
        [
            MarginLayer("foundry", 100.0, 200.0),
            MarginLayer("designer", 5000.0, 25000.0, units_in=2),
            MarginLayer("server maker", 5000.0, 32000.0),
            MarginLayer("cloud", 0.4, 2.5, units_in=per_hour),
            MarginLayer("model provider", 0.05, 0.9, units_in=1 / 5.0),
        ]
    )
    assert stack.total == pytest.approx(0.9)
    assert stack["foundry cost"] == pytest.approx(100 * 2 * per_hour / 5)
    with pytest.raises(WaterfallError, match="at least one layer"):
        margin_stack([])


def test_margins_of_a_real_accelerator_add_to_the_token_price() -> None:
    stack = accelerator_margin_stack(
        "h100",
        on=date(2026, 6, 30),
        contract_usd_per_hour=2.65,
        usd_per_mtoken=1.2,
        tokens_per_sold_hour=3e6,
    )
    assert stack.total == pytest.approx(1.2)
    assert stack["designer margin"] > stack["suppliers cost"]
    assert stack["model provider margin"] == pytest.approx(1.2 - 2.65 / 3)
    with pytest.raises(RentalPriceError, match="needs both"):
        accelerator_margin_stack("h100", on=ON, contract_usd_per_hour=2.0, usd_per_mtoken=1.0)
    with pytest.raises(RentalPriceError, match="selling price of the 'tpu_v7' chip"):
        accelerator_margin_stack("tpu_v7", on=ON, contract_usd_per_hour=2.0)


def test_published_bills_add_up() -> None:
    facts = catalog()
    assert part_bill("gb300_nvl72_cooling").total == facts["gb300_nvl72_rack_liquid_cooling_bom_2025_11_03"].number
    assert part_bill("gb200_nvl72_site").total == facts["nvidia_gb200_nvl72_cost_all_in_2025_10"].number
    assert part_bill("dgx_h100").total == pytest.approx(facts["nvidia_dgx_h100_price_2023_05"].number, rel=0.1)
    assert all(bar.fact_ids for name in known_bills() for bar in part_bill(name))
    with pytest.raises(RentalPriceError, match="known are dgx_h100"):
        part_bill("dgx")


def test_markets_never_fill_in_for_each_other() -> None:
    seen = {market: {q.fact_id for q in price_quotes("H100", market)} for market in MARKETS}
    for a in MARKETS:
        assert seen[a]
        for b in MARKETS:
            assert a == b or not seen[a] & seen[b]
    with pytest.raises(RentalPriceError, match="markets with quotes at any date: contract"):
        observed_price("MI355X", "spot", on=ON)
    with pytest.raises(RentalPriceError, match="use one of list, contract"):
        price_quotes("H100", "retail")


@pytest.mark.parametrize(
    ("chip", "form"),
    [("H100", "SXM"), ("H200", "SXM"), ("B200", None), ("GB200", None), ("MI300X", None), ("MI355X", None)],
)
def test_current_contract_prices_are_inside_their_range(chip: str, form: str | None) -> None:
    price = observed_price(chip, "contract", on=ON, form=form)
    assert price.low <= price.usd_per_gpu_hour <= price.high
    assert all(catalog()[fact_id].unit.startswith("USD/") for fact_id in price.fact_ids)


def test_spot_below_contract_below_list_for_h100() -> None:
    spot, listed = (observed_price("H100", m, on=ON, form="SXM").usd_per_gpu_hour for m in ("spot", "list"))
    contract = observed_price("H100", "contract", on=ON, form="SXM").usd_per_gpu_hour
    assert spot < contract < listed
    with pytest.raises(RentalPriceError, match="mix form factors"):
        observed_price("H100", "list", on=ON)


def test_market_table_shows_every_kind_apart() -> None:
    rows = market_table(["H100", "MI355X"], on=ON)
    assert {r["price_kind"] for r in rows} == {"owner cost", *MARKETS}
    for row in rows:
        if row["usd_per_gpu_hour"] is None:
            assert "no " in row["note"] and not row["fact_ids"]
        else:
            assert row["low"] <= row["usd_per_gpu_hour"] <= row["high"] and row["fact_ids"]
    sxm = {r["price_kind"]: r["usd_per_gpu_hour"] for r in rows if r["chip"] == "H100" and r["form"] == "SXM"}
    assert sxm["list"] == pytest.approx(observed_price("H100", "list", on=ON, form="SXM").usd_per_gpu_hour)


def test_series_keeps_dates_in_order() -> None:
    index = price_series("H100", "index", provider="SemiAnalysis")
    assert [q.usd_per_gpu_hour for q in index] == [1.7, 2.35, 2.65]
    assert index[0].on < index[-1].on


@pytest.mark.parametrize("chip", ["B300", "GB300"])
def test_trap_a_placeholder_is_no_observed_price(chip: str) -> None:
    """One source fills B300 and GB300 with 1.2 times the part before; that is not a contract price."""
    with pytest.raises(RentalPriceError, match=f"no contract price of '{chip}'"):
        observed_price(chip, "contract", on=ON)


def test_prices_of_instances_and_superchips_are_per_accelerator() -> None:
    block = [q for q in price_quotes("H200", "block") if "instance" in q.fact_id]
    assert block and all(4 < q.usd_per_gpu_hour < 6 for q in block)
    assert observed_price("GB200", "list", on=ON).usd_per_gpu_hour == pytest.approx(9.08 / 2)


def test_quotes_before_a_day_do_not_know_later_ones() -> None:
    early = observed_price("H100", "index", on=date(2026, 3, 31))
    assert early.high == 2.35 and early.on <= date(2026, 3, 31)


def test_buying_wins_when_used_and_renting_when_idle() -> None:
    inputs = CostInputs(it_usd=39000, network_usd=9000, rate_per_year=0.1, busy_kw=1.06, electricity_usd_per_kwh=0.07)

    def best(share: float) -> str:
        options = compare_buy_and_rent(
            inputs,
            years=4,
            wanted_share=share,
            on_demand_usd=3.4,
            reserved_usd=2.4,
            spot_usd=2.2,
            yearly_price_ratio=0.9,
        )
        return min(options.values(), key=lambda o: o.present_value_usd).name

    assert best(1.0) == "buy" and best(0.1) == "spot"
    options = compare_buy_and_rent(inputs, years=4, wanted_share=0.5, on_demand_usd=3.0, reserved_usd=3.0)
    assert options["reserve"].present_value_usd == pytest.approx(2 * options["on demand"].present_value_usd)
    with pytest.raises(FinanceError, match="whole years"):
        compare_buy_and_rent(inputs, years=0, wanted_share=0.5, on_demand_usd=3.0, reserved_usd=3.0)


def test_case_price_bid_per_gpu() -> None:
    assert price_per_accelerator_hour(4.00, 4) == pytest.approx(1.0, rel=1e-9)
    with pytest.raises(FinanceError, match="accelerators = 0"):
        price_per_accelerator_hour(4.00, 0)


def test_case_price_two_part_tariff() -> None:
    assert accelerator_part_usd(4.05, 0.94) == pytest.approx(3.11, rel=0.005)
    with pytest.raises(RentalPriceError, match="rows swapped"):
        accelerator_part_usd(0.94, 4.05)


def test_case_price_book_file() -> None:
    rows = instance_price_rows(data_file("checks", "files", "gpu_price_book_two_vendors.csv"))
    wanted = {"H100": 2.95, "H200": 3.50, "B200": 5.50, "V100": 0.79, "A6000": 1.09}
    for row in rows:
        if row["accelerator"] in wanted:
            assert row["usd_per_gpu_hour"] == pytest.approx(wanted[row["accelerator"]], rel=0.001)
    eights = {row["accelerator"]: row for row in rows if row["count"] == 8}
    assert eights["H100"]["spot_discount"] == pytest.approx(0.576, abs=5e-4)
    assert eights["H200"]["spot_discount"] == pytest.approx(0.586, abs=5e-4)
    assert eights["H100"]["total_memory_mib"] == 655360 and eights["H100"]["total_column_agrees"]
    assert eights["V100"]["total_memory_mib"] == 131072 and not eights["V100"]["total_column_agrees"]
    assert spot_discount(1.25, 2.95) == pytest.approx(0.576, abs=5e-4)


def test_case_price_which_h100() -> None:
    nodes = {"H100 SXM": 34.4, "H100 NVL": 32.0, "H100 PCIe": 29.0}
    prices = form_factor_spread(nodes, 8)
    assert prices == {"H100 SXM": 4.3, "H100 NVL": 4.0, "H100 PCIe": 3.625}
    assert prices["H100 SXM"] / prices["H100 PCIe"] == pytest.approx(1.18621, rel=0.001)
    with pytest.raises(RentalPriceError, match=r"'H100' is ambiguous.*factor 1.186"):
        form_factor_spread(nodes, 8, "H100")


def test_case_rent_api_breakeven_1000x() -> None:
    assert break_even_tokens_per_month(4608, 10) == pytest.approx(4.608e8, rel=0.001)
    assert break_even_use(4608, 10, 12.24e6, 730) == pytest.approx(0.0516, abs=5e-5)
    assert break_even_use(4608, 10, 12.24e6) * 10 == pytest.approx(0.516, abs=5e-4)


def test_case_rent_blended_bill_6x() -> None:
    bill = monthly_api_bill_usd(2.7e9, {"small": (0.8, 0.10), "large": (0.2, 0.75)})
    assert bill == pytest.approx(621, rel=0.001)
    assert 3750 / bill == pytest.approx(6.0, abs=0.05)
    owned = owned_total_usd(155000, 2450, 10000, 3)
    assert owned == 273200 and owned / (36 * bill) == pytest.approx(12, abs=0.3)
    with pytest.raises(FinanceError, match=r"shares add to 0\.9"):
        monthly_api_bill_usd(1e9, {"small": (0.8, 0.1), "large": (0.1, 0.75)})
    assert math.isclose(monthly_api_bill_usd(5e9, {"large": (1.0, 0.75)}), 3750)
