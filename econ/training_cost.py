"""Cost of a run of known accelerator-hours: rented, or on own hardware that loses market value while it runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from econ.finance import FinanceError, market_value_charge_per_year, plain, require

__all__ = ["amortised_usd", "rental_usd"]


def rental_usd(accelerator_hours: ArrayLike, usd_per_accelerator_hour: ArrayLike, deflator: ArrayLike = 1.0) -> Any:
    """Rental view: accelerator-hours x price, in money of the deflator's base year.

    >>> rental_usd(2788000, 2)
    5576000.0

    Raises:
        FinanceError: when an input is outside its domain.
    """
    price = require("usd_per_accelerator_hour", usd_per_accelerator_hour, 0)
    spend = require("accelerator_hours", accelerator_hours, 0) * price
    return plain(spend * require("deflator", deflator, 0, open_low=True))


def amortised_usd(
    accelerator_hours: ArrayLike,
    usd_per_accelerator_with_server: ArrayLike,
    years_from_purchase: ArrayLike,
    *,
    server_peak_w: ArrayLike,
    usd_per_kwh: ArrayLike,
    average_power_fraction: ArrayLike = 0.75,
    pue: ArrayLike = 1.0,
    network_share: ArrayLike = 0.0,
    decline_oom_per_year: ArrayLike = 0.14,
    hours_per_year: ArrayLike = 8766,
    deflator: ArrayLike = 1.0,
) -> Any:
    """Amortised view (Epoch AI): each hour pays the fall of market value at that age, network added, plus energy.

    >>> round(amortised_usd(57e6, 24875, 1.747, server_peak_w=812.5, usd_per_kwh=0.0806, pue=1.25, network_share=0.19,
    ...                     deflator=1.01344) / 1e6, 2)
    40.69

    Raises:
        FinanceError: when an input is outside its domain.
    """
    share = require("network_share", network_share, 0)
    if np.any(share >= 1):
        raise FinanceError(f"network_share = {network_share!r}: a share of the whole cluster is below 1")
    per_year = market_value_charge_per_year(
        usd_per_accelerator_with_server, decline_oom_per_year, age_years=years_from_purchase
    )
    capital = per_year / (1 - share) / require("hours_per_year", hours_per_year, 0, 8784, open_low=True)
    kw = (
        require("server_peak_w", server_peak_w, 0)
        / 1000
        * require("average_power_fraction", average_power_fraction, 0, 1)
    )
    energy = kw * require("pue", pue, 1) * require("usd_per_kwh", usd_per_kwh, 0)
    hours = require("accelerator_hours", accelerator_hours, 0)
    return plain(hours * (capital + energy) * require("deflator", deflator, 0, open_low=True))
