"""Carbon beside cost: kilograms per sold accelerator-hour, operational and embodied, on the inputs of the money."""

from __future__ import annotations

from datetime import date
from typing import Any

from econ.cost_breakdown import CostBar, CostBreakdown
from econ.energy_cost import grid_carbon_kg_per_kwh
from econ.owner_cost import OwnerInputs, econ_sku, owner_inputs
from supply.facts import catalog
from supply.manufacturing.carbon import footprint
from supply.manufacturing.products import all_products

__all__ = ["carbon_per_sold_hour"]

#: SKUs whose package is that of another name in the manufacturing room.
_PACKAGES = {"gb200": "b200", "gb300": "b300"}


def embodied_carbon_kg(sku: str, on: date) -> tuple[float, tuple[str, ...]]:
    """Embodied carbon of one package, kg CO2e, with its facts: the manufacturing footprint where the package is known.

    Server, rack and building are left out (no fact per accelerator); the A100 value is a published share of a node.

    Raises:
        ValueError: when neither a package nor a fact describes the SKU.
    """
    name = econ_sku(sku)
    package = _PACKAGES.get(name, name)
    if package in all_products():
        found = footprint(package, on)
        return float(found.carbon_kg.total), found.trace
    if name == "a100":
        fact = catalog()["nvidia_a100_embodied_carbon_2023"]
        return fact.number, (fact.id,)
    raise ValueError(
        f"no package or fact gives the embodied carbon of {sku!r}: known are a100, {', '.join(all_products())}"
    )


def carbon_per_sold_hour(
    sku: str, region: str = "us", *, on: date, inputs: OwnerInputs | None = None, **options: Any
) -> CostBreakdown:
    """Carbon of a sold hour: facility kWh x grid intensity, and embodied kg over the sold hours of the life.

    >>> carbon = carbon_per_sold_hour("h100", "us", on=date(2026, 6, 30))
    >>> [bar.name for bar in carbon], 0.2 < carbon.total < 0.6
    (['electricity', 'embodied'], True)

    Raises:
        ValueError: when the SKU has no price or no footprint.
    """
    owner = inputs or owner_inputs(sku, region, on=on, **options)
    i = owner.inputs
    grid, grid_fact = grid_carbon_kg_per_kwh(region)
    computing = i.use.computing_share
    kwh = i.pue * (i.busy_kw * computing + i.idle_kw * (1 - computing)) / i.use.sold
    embodied, trace = embodied_carbon_kg(sku, on)
    per_hour = embodied * (1 + i.spares_share) / (i.it_life_years * i.hours_per_year * i.use.sold)
    bars = (
        CostBar("electricity", kwh * grid, fact_ids=(*owner.fact_ids["electricity"], grid_fact)),
        CostBar("embodied", per_hour, fact_ids=trace),
    )
    return CostBreakdown(bars, "kg CO2e/GPU-hour", "location-based grid, package footprint")
