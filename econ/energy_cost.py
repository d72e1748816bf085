"""Electricity bills of fleets and sites, and their carbon: watts of a stated kind x hours x price, idle draw included.

Facility energy = IT watts x PUE (once) x hours. `utilisation` with `idle_share` 0 is the habit of several public
calculators: it treats idle hours as free and understates the bill.
"""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from econ.finance import FinanceError, plain, require
from supply.facts import Catalog, catalog

__all__ = [
    "electricity_cost_usd",
    "electricity_usd_per_kwh",
    "energy_cost_from_mwh_usd",
    "energy_share_of_cost",
    "grid_carbon_kg_per_kwh",
    "price_at_energy_share",
    "purchase_and_power_usd",
]

#: Grid intensity fact by region.
_GRID = {
    "us": "us_grid_carbon_intensity_2024",
    "europe": "europe_six_grid_carbon_intensity_2023",
    "china": "china_grid_carbon_intensity_2023",
    "rest": "world_grid_carbon_intensity_2023",
}


def electricity_cost_usd(
    it_watts: ArrayLike,
    accelerators: ArrayLike,
    usd_per_kwh: ArrayLike,
    *,
    pue: ArrayLike = 1.0,
    utilisation: ArrayLike = 1.0,
    idle_share: ArrayLike = 0.0,
    years: ArrayLike = 1.0,
    hours_per_year: ArrayLike = 8760.0,
) -> Any:
    """Bill of a fleet: watts x (u + idle share x (1 - u)) x PUE x hours x price.

    >>> round(electricity_cost_usd(1000, 32051, 0.08, pue=1.2, utilisation=0.7, years=5) / 1e6, 2)
    94.34

    Raises:
        FinanceError: when an input is outside its domain.
    """
    used = require("utilisation", utilisation, 0, 1)
    draw = used + require("idle_share", idle_share, 0, 1) * (1 - used)
    kw = require("it_watts", it_watts, 0) / 1000.0 * require("accelerators", accelerators, 0) * require("pue", pue, 1)
    hours = require("years", years, 0) * require("hours_per_year", hours_per_year, 0, 8784)
    return plain(kw * draw * hours * require("usd_per_kwh", usd_per_kwh, 0))


def energy_cost_from_mwh_usd(energy_mwh: ArrayLike, usd_per_kwh: ArrayLike) -> Any:
    """Bill of a metered energy.

    >>> round(energy_cost_from_mwh_usd(681, 0.08))
    54480
    """
    return plain(require("energy_mwh", energy_mwh, 0) * 1000 * require("usd_per_kwh", usd_per_kwh, 0))


def purchase_and_power_usd(
    accelerators: ArrayLike,
    usd_per_accelerator: ArrayLike,
    power_cost_usd: ArrayLike | None = None,
    **power: Any,
) -> Any:
    """Purchase plus power: what several public calculators call TCO; network, building, staff, money are left out.

    Give the power bill, or the inputs of `electricity_cost_usd` (`it_watts`, `usd_per_kwh`, `pue`, `years`, ...).

    >>> purchase_and_power_usd(32051, 40000, 94.34e6)
    1376380000.0
    >>> round(purchase_and_power_usd(1024, 30000, it_watts=700, usd_per_kwh=0.08, pue=1.2, utilisation=0.7, years=5))
    32829800

    Raises:
        FinanceError: when an input is outside its domain.
    """
    bought = require("accelerators", accelerators, 0) * require("usd_per_accelerator", usd_per_accelerator, 0)
    bill = electricity_cost_usd(accelerators=accelerators, **power) if power_cost_usd is None else power_cost_usd
    return plain(bought + require("power_cost_usd", bill, 0))


def energy_share_of_cost(capital_usd: ArrayLike, energy_usd: ArrayLike) -> Any:
    """Energy over capital plus energy of the same thing over the same years, without interest.

    >>> round(energy_share_of_cost(30000, 4380), 4)
    0.1274

    Raises:
        FinanceError: when both are zero.
    """
    capital, energy = require("capital_usd", capital_usd, 0), require("energy_usd", energy_usd, 0)
    if np.any(capital + energy == 0):
        raise FinanceError("capital and energy are both zero: their share is undefined")
    return plain(energy / (capital + energy))


def price_at_energy_share(capital_usd: ArrayLike, energy_kwh: ArrayLike, share: ArrayLike) -> Any:
    """Electricity price at which energy would be a stated share of capital plus energy: C s / ((1 - s) kWh).

    >>> round(price_at_energy_share(30000, 43800, 0.75), 2)
    2.05

    Raises:
        FinanceError: when the share is outside [0, 1) or there is no energy.
    """
    part = require("share", share, 0, 0.999999)
    kwh = require("energy_kwh", energy_kwh, 0, open_low=True)
    return plain(require("capital_usd", capital_usd, 0) * part / ((1 - part) * kwh))


def electricity_usd_per_kwh(region: str, on: date, facts: Catalog | None = None) -> tuple[float, float, float]:
    """Price to large users in a region on a day: (value, low, high), USD/kWh, from the region's series.

    Raises:
        FactError: when the region has no series.
    """
    series = (facts or catalog()).series(f"electricity_price_{region}")
    value, low, high = (series.levels([on], which)[0] for which in ("value", "low", "high"))
    return value, low, high


def grid_carbon_kg_per_kwh(region: str, facts: Catalog | None = None) -> tuple[float, str]:
    """Grid carbon intensity of a region, kg CO2 per kWh, with the id of its fact (annual average, location-based).

    >>> grid_carbon_kg_per_kwh("us")
    (0.37, 'us_grid_carbon_intensity_2024')

    Raises:
        FinanceError: when the region is unknown.
    """
    if region not in _GRID:
        raise FinanceError(f"region = {region!r}: use one of {', '.join(_GRID)}")
    fact = (facts or catalog())[_GRID[region]]
    return fact.to("kilogram/kilowatt/hour"), fact.id
