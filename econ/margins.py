"""Margins from the die to the model provider, and bills of materials that are known part by part, all from facts."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from datetime import date
from functools import lru_cache

from econ.cost_breakdown import CostBar, CostBreakdown
from econ.finance import capital_recovery_factor
from econ.owner_cost import econ_sku, owner_inputs
from econ.prices import MarginLayer, RentalPriceError, margin_stack
from supply.facts import catalog
from supply.manufacturing.unit_costs import unit_cost
from supply.paths import data_file

__all__ = ["accelerator_margin_stack", "known_bills", "part_bill"]

#: Where a SKU's package is that of another name in the manufacturing room.
_PACKAGES = {"gb200": "b200", "gb300": "b300"}


@lru_cache(maxsize=1)
def _bills() -> Mapping[str, tuple[Mapping[str, str], ...]]:
    found: dict[str, list[Mapping[str, str]]] = {}
    with data_file("bills_of_materials.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            found.setdefault(row["bill"], []).append(row)
    return {name: tuple(rows) for name, rows in found.items()}


def known_bills() -> tuple[str, ...]:
    """Names of the bills that facts give part by part."""
    return tuple(_bills())


def part_bill(name: str) -> CostBreakdown:
    """A published bill (server, rack cooling, network) as a waterfall, each part from its fact.

    >>> bill = part_bill("gb300_nvl72_cooling")
    >>> round(bill.total), [bar.name for bar in bill]
    (49860, ['cold plates of compute trays', 'cold plates of switch trays'])

    Raises:
        RentalPriceError: when there is no such bill.
    """
    if name not in _bills():
        raise RentalPriceError(f"no bill {name!r}: known are {', '.join(known_bills())}")
    facts = catalog()
    rows = _bills()[name]
    bars = tuple(
        CostBar(r["part"], float(r["count"]) * facts[r["fact_id"]].number, fact_ids=(r["fact_id"],)) for r in rows
    )
    return CostBreakdown(bars, rows[0]["unit"], "bill of materials")


def chip_price_usd(sku: str, on: date) -> tuple[float, str]:
    """Selling price of the packaged chip to server makers on a day, with the id of its series point or fact.

    Raises:
        RentalPriceError: when no series or fact gives a chip price (racks are sold whole, custom chips are not sold).
    """
    name = econ_sku(sku)
    facts = catalog()
    series_id = f"asp_nvidia_{_PACKAGES.get(name, name)}"
    if series_id in facts.series_ids:
        series = facts.series(series_id)
        quarter = f"{on.year}-Q{(on.month + 2) // 3}"
        points = [p for p in series.points if p.period <= quarter] or [series.points[0]]
        return series.levels([on])[0], points[-1].id
    if name == "mi355x":
        fact = facts["amd_mi355x_unit_price_2025_10"]
        return fact.number, fact.id
    raise RentalPriceError(f"no fact gives the selling price of the {sku!r} chip: its makers sell systems or use it")


def _other_parts_usd() -> float:
    """Parts of a server other than the accelerators, per accelerator: one published bill stands for all."""
    return catalog()["nvidia_dgx_h100_non_gpu_bom_2023_05"].number / 8


def accelerator_margin_stack(
    sku: str,
    *,
    on: date,
    region: str = "us",
    contract_usd_per_hour: float,
    usd_per_mtoken: float | None = None,
    tokens_per_sold_hour: float | None = None,
) -> CostBreakdown:
    """Margins of designer, server maker, cloud and (with a token price) model provider, in the last one's unit.

    Suppliers: what the designer pays for a good package. Designer: chip price. Server and network makers: hardware
    over the chip, less one published bill of the other parts. Cloud: capital charge of the hardware plus its own hourly
    costs against the contract price. Model provider: token price against the hours that a million tokens take. The bars
    add to the final price exactly; a layer that sells below cost has a negative margin.

    Raises:
        RentalPriceError: when no fact prices the chip, or only one of token price and rate is given.
    """
    name = econ_sku(sku)
    if (usd_per_mtoken is None) != (tokens_per_sold_hour is None):
        raise RentalPriceError("a token layer needs both usd_per_mtoken and tokens_per_sold_hour")
    making = unit_cost(_PACKAGES.get(name, name), on, draws=0).total
    chip, _ = chip_price_usd(name, on)
    owner = owner_inputs(name, region, on=on)
    hardware = float(owner.inputs.it_usd + owner.inputs.network_usd)
    cost = owner.cost()
    per_hour = capital_recovery_factor(owner.inputs.rate_per_year, owner.inputs.it_life_years) / (
        owner.inputs.hours_per_year * owner.inputs.use.sold
    )
    layers = [
        MarginLayer("suppliers", making, making),
        MarginLayer("designer", 0.0, chip),
        MarginLayer("server and network makers", _other_parts_usd(), max(hardware, chip)),
        MarginLayer("cloud", float(cost.total) - hardware * per_hour, contract_usd_per_hour, units_in=per_hour),
    ]
    if usd_per_mtoken is not None and tokens_per_sold_hour is not None:
        layers.append(MarginLayer("model provider", 0.0, usd_per_mtoken, units_in=1e6 / tokens_per_sold_hour))
    return margin_stack(layers)
