"""Questions that people asked about die cost, HBM and packaging, answered through the public API."""

import pytest

from supply.facts import catalog
from supply.manufacturing import (
    DiePart,
    ManufacturingError,
    Quoted,
    Unit,
    die_yield,
    dies_per_shot,
    good_unit_cost,
    gross_dies,
    gross_dies_formula,
    growth,
    memory_spend,
    packages_per_wafer,
    parts_against_total,
    place,
    wafer_starts,
    yield_from_counts,
)


def test_case_yield_field_scribe_zero():
    """Die plus scribe does not fit the field: refused with the sizes, never a silent 0 or an infinite cost."""
    with pytest.raises(
        ManufacturingError, match=r"die plus scribe is 26\.2 x 33\.2 mm, larger than the exposure field"
    ):
        gross_dies(26, 33, scribe_mm=0.2, field_mm=(26, 33))
    with pytest.raises(ManufacturingError, match=r"26\.2 x 33\.2"):
        dies_per_shot(26, 33, 0.2)
    assert dies_per_shot(26, 33, 0.0) == (1, 1)
    assert gross_dies(26, 33, scribe_mm=0.0, full_shots=True) == place(26, 33, scribe_mm=0.0).count > 0
    with pytest.raises(ManufacturingError, match="dies_per_wafer = 0 must be above 0"):
        good_unit_cost(Unit([DiePart("d", 1, 10_000, 0, 0.9)]))


def test_case_yield_textbook_chain():
    side = 389**0.5
    dies = gross_dies_formula(side, side, 300, 0, 0)
    fraction = die_yield(389, 0.30, alpha=4)
    assert fraction == pytest.approx(0.36, abs=0.001)
    assert dies == pytest.approx(148, abs=0.5)
    cost = good_unit_cost(Unit([DiePart("die", 1, 500, dies, fraction)])).total
    assert cost == pytest.approx(9.41132, rel=0.005)
    assert cost == pytest.approx(9.411, abs=0.001)


def test_case_yield_h200_wafer_starts():
    good = wafer_starts(1.3e6, 55, 0.85, counted="good")
    gross = wafer_starts(1.3e6, 55, 0.85, counted="gross")
    assert good.wafers == pytest.approx(23_636.4, rel=0.002)
    assert gross.wafers == pytest.approx(27_807, rel=0.002)
    assert good.gross_per_wafer == pytest.approx(64.7, abs=0.05)
    side = 814**0.5
    assert gross_dies_formula(side, side) < good.gross_per_wafer < gross_dies(26, 814 / 26)
    with pytest.raises(TypeError):
        wafer_starts(1.3e6, 55, 0.85)  # the reader must choose
    with pytest.raises(ManufacturingError, match="say 'good' if the dies per wafer are after yield"):
        wafer_starts(1.3e6, 55, 0.85, counted="dies")
    assert wafer_starts(1.3e6, 55, 0.85, counted="good", later_yield=0.96).wafers > good.wafers


def test_case_hbm_capacity_sum():
    check = parts_against_total(250_000, {"Samsung": 130_000, "SK hynix": 120_000}, also_active=("Micron",))
    assert check.residual == 0
    assert "nothing is left for Micron" in check.flag
    assert pytest.approx(1.786e6, rel=0.001) == 250_000 / 0.14
    facts = catalog()
    ids = ("samsung_hbm_capacity_forecast_for_end_2024_2024", "sk_hynix_hbm_capacity_forecast_for_end_2024_2024")
    total = facts["world_hbm_tsv_capacity_forecast_for_end_2024_2024"].number
    assert parts_against_total(total, {i: facts[i].number for i in ids}, ("Micron",)).flag


def test_case_hbm_tsv_growth_conflict():
    base, early, late = Quoted(120_000, "2024-09"), Quoted(130_000, "2024-03"), Quoted(170_000, "2024-09")
    assert growth(base, late) == pytest.approx(0.416667, rel=0.002)
    with pytest.raises(ManufacturingError, match="keep the two vintages apart"):
        growth(early, late)


def test_case_hbm_spend_per_fleet():
    spend = memory_spend(1.3e6, sold_gb=141, installed_gb=6 * 24, usd_per_gb=15)
    assert spend.on_sold_usd == pytest.approx(2.7495e9, rel=0.002)
    assert spend.on_installed_usd == pytest.approx(2.808e9, rel=0.002)
    assert spend.sold_gb == pytest.approx(183.3e6, rel=0.002)
    with pytest.raises(ManufacturingError, match="GB and GiB"):
        memory_spend(1.3e6, sold_gb=144, installed_gb=141, usd_per_gb=15)


def test_case_pack_cowos_wafers_h200():
    need = wafer_starts(1.3e6, 28, counted="gross")
    assert need.wafers == pytest.approx(46_428.6, rel=0.002)
    assert need.wafers / 12 == pytest.approx(3869, rel=0.002)
    assert need.wafers / 8 == pytest.approx(5804, rel=0.002)
    line = 80_000 * 0.35
    assert (need.wafers / 12 / line, need.wafers / 8 / line) == pytest.approx((0.138, 0.207), abs=0.001)
    assert need.wafers * 12_000 == pytest.approx(557e6, rel=0.002)
    lossy = wafer_starts(1.3e6, 28, counted="gross", later_yield=0.97)
    assert lossy.wafers == pytest.approx(need.wafers / 0.97)  # the post leaves package yield at 1


def test_case_pack_yield_or_reject():
    with pytest.raises(ManufacturingError, match=r"yield is 0.968, nearer to the target 0.99: say which"):
        yield_from_counts(8, 250, target=0.99)
    assert yield_from_counts(250 - 8, 250, target=0.99) == pytest.approx(0.968, rel=1e-9)
    assert yield_from_counts(8, 250, target=0.99, confirmed=True) == pytest.approx(0.032)
    with pytest.raises(ManufacturingError, match="swap them"):
        yield_from_counts(250, 8)


def test_case_pack_split_does_not_sum():
    check = parts_against_total(595_000, {"foundry": 510_000, "OSATs": 80_000})
    assert check.residual == 5000
    assert check.residual_share == pytest.approx(0.0084, abs=0.0001)
    assert "not explained" in check.flag
    assert pytest.approx(0.595) == 595_000 / 1e6
    new = wafer_starts(2.4e6, 9, counted="gross").wafers
    assert new == pytest.approx(266_667, rel=1e-5)
    assert (5.4e6 - 2.4e6) / (510_000 - new) == pytest.approx(12.3, abs=0.05)
    assert packages_per_wafer(catalog()["nvidia_rubin_interposer_area_2026"].number) == 9
    over = parts_against_total(100, {"a": 70, "b": 40})
    assert "exceed the total by 10" in over.flag
