"""Break-even of splitting (P05), cycle time (P16), carbon and water on the cost tree."""

import numpy as np
import pytest

from supply.facts import catalog
from supply.manufacturing import (
    ManufacturingError,
    SplitCase,
    break_even_area_mm2,
    cycle_time,
    fab_cycle_weeks,
    footprint,
    package_cost_usd,
    product,
    set_up_cost_usd,
    split_saving,
    step_sum,
    tapeout_weeks,
    time_to_market_weeks,
    unit_cost,
    wafer_carbon_kg,
    wafer_price,
)

FIVE, SEVEN = SplitCase(16_988, 0.11), SplitCase(9_346, 0.09)


def test_p05_two_chiplets_pay_from():
    assert break_even_area_mm2(2, FIVE) == pytest.approx(285, rel=0.02)
    assert break_even_area_mm2(2, SEVEN) == pytest.approx(420, rel=0.02)


def test_p05_saving_at_800_mm2():
    assert split_saving(800, 2, FIVE) == pytest.approx(0.25, abs=0.005)
    assert split_saving(800, 2, SEVEN) == pytest.approx(0.17, abs=0.005)


def test_break_even_is_where_the_costs_meet():
    area = break_even_area_mm2(2, FIVE)
    assert package_cost_usd(area, 2, FIVE) == pytest.approx(package_cost_usd(area, 1, FIVE), rel=1e-6)
    assert split_saving(np.array([area - 20, area + 20]), 2, FIVE)[0] < 0


def test_break_even_falls_with_defects_and_refuses_where_it_never_pays():
    assert break_even_area_mm2(2, SplitCase(16_988, 0.2)) < break_even_area_mm2(2, FIVE)
    with pytest.raises(ManufacturingError, match="do not pay up to 858"):
        break_even_area_mm2(2, SplitCase(3_000, 0.001))
    with pytest.raises(ManufacturingError, match="at least 1"):
        package_cost_usd(100, 0, FIVE)


def test_p16_fab_weeks_by_node_and_assembly():
    published = [cycle_time(nm).published_weeks for nm in ("14", "10", "7", "5")]
    assert published == [14, 16, 18, 20]
    assert cycle_time("28").published_weeks == 12  # the low end of 12 to 20
    assert cycle_time("5").assembly_and_test_weeks == 6


def test_layers_times_days_stand_beside_the_published_weeks():
    for nm in ("7", "5"):
        ours = cycle_time(nm)
        assert ours.low_weeks < ours.by_layers_weeks < ours.high_weeks
        assert ours.low_weeks < ours.published_weeks < ours.high_weeks
        assert all(name in catalog() for name in ours.trace)
    assert cycle_time("14").by_layers_weeks < cycle_time("7").by_layers_weeks
    with pytest.raises(ManufacturingError, match="no mask-layer fact"):
        cycle_time("90")


def test_time_to_market_counts_the_queue():
    alone = time_to_market_weeks(10, 20, 6, 5000, 2500)
    queued = time_to_market_weeks(10, 20, 6, 5000, 2500, ahead=10_000)
    assert queued - alone == pytest.approx(4.0)
    assert fab_cycle_weeks(80, 1.0) == pytest.approx(80 / 7)


def test_tapeout_and_set_up():
    effort = catalog()["tapeout_hours_per_transistor_5nm_2023"].number
    one, many = tapeout_weeks(5e9, effort, 1), tapeout_weeks(5e9, effort, 100)
    assert one == pytest.approx(100 * many)
    assert tapeout_weeks(5e9, effort, 100, parallel_share=0.5) > 10 * many
    assert set_up_cost_usd(449e6, 18.1e6, 3) == pytest.approx(503.3e6)


def test_wafer_carbon_by_hand_and_by_grid():
    area = np.pi * 15**2
    assert wafer_carbon_kg(2.75, 500, 430, 500) == pytest.approx(area * (1375 + 930) / 1000)
    grids = {g: float(footprint("h100", grid=g).carbon_kg.total) for g in ("taiwan", "usa", "korea")}
    assert grids["usa"] < grids["korea"] < grids["taiwan"]


@pytest.mark.parametrize("sku", ["h100", "mi300x", "rubin"])
def test_carbon_stands_on_the_cost_tree(sku):
    cost, carbon = unit_cost(sku, draws=0).waterfall, footprint(sku)
    assert tuple(carbon.carbon_kg) == tuple(cost)
    for tree in (carbon.carbon_kg, carbon.water_liters):
        assert sum(tree.values()) == pytest.approx(tree.total)
    if len(product(sku).dies) == 1:  # defects waste the same share of silicon whatever it is counted in
        ratio = [t["defective_silicon"] / t["raw_silicon"] for t in (cost, carbon.carbon_kg, carbon.water_liters)]
        assert ratio[0] == pytest.approx(ratio[1]) == pytest.approx(ratio[2])
    assert all(name in catalog() for name in carbon.trace)
    assert 30 < float(carbon.carbon_kg.total) < 500


def test_unknown_grid_is_refused():
    with pytest.raises(ManufacturingError, match="choose one of taiwan, usa"):
        footprint("h100", grid="mars")


def test_wafer_cost_by_price_and_by_steps():
    from datetime import date

    price = wafer_price("n5", date(2025, 9, 30))
    assert price.low_usd <= price.usd <= price.high_usd
    assert price.fact == "tsmc_n5_wafer_price"
    built = step_sum()["total"]
    assert price.low_usd * 0.8 < built < price.high_usd * 1.2
    assert step_sum(uptime=0.4)["total"] > built
    with pytest.raises(ManufacturingError, match="choose one of n7, n5, n3, n2"):
        wafer_price("n1", date(2025, 9, 30))
