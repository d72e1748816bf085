"""Cost of a past run of known accelerator-hours in money of a base year: rented, bought, or worn down on own hardware.

`econ.training_run` prices a plan; these are the published after-the-fact views, with the deflator of their tables.
"""

from __future__ import annotations

from econ.finance import deflated, require
from econ.training_run import amortised_usd_per_chip_hour, cluster_purchase_usd, energy_mwh, rental_usd

__all__ = ["amortised_in_base_year_usd", "purchase_in_base_year_usd", "rental_in_base_year_usd"]

#: Hours of a year in `amortised_usd_per_chip_hour`.
_HOURS = 8766.0


def rental_in_base_year_usd(accelerator_hours: float, usd_per_accelerator_hour: float, deflator: float = 1.0) -> float:
    """Rental view: accelerator-hours x price x deflator.

    >>> rental_in_base_year_usd(2788000, 2)
    5576000.0

    Raises:
        TrainingRunError: when hours or price are negative.
    """
    return float(deflated(rental_usd(accelerator_hours, usd_per_accelerator_hour), deflator))


def purchase_in_base_year_usd(
    accelerators: float, usd_per_accelerator_with_server: float, network_share: float = 0.0, deflator: float = 1.0
) -> float:
    """Purchase view: accelerators x price / (1 - network share of the cluster) x deflator.

    >>> round(purchase_in_base_year_usd(4096, 24875, 0.19, 1.00889))
    126905907

    Raises:
        TrainingRunError: when a number is not positive.
    """
    return float(deflated(cluster_purchase_usd(accelerators, usd_per_accelerator_with_server, network_share), deflator))


def amortised_in_base_year_usd(
    accelerator_hours: float,
    usd_per_accelerator_with_server: float,
    years_from_purchase: float,
    *,
    server_peak_w: float,
    usd_per_kwh: float,
    average_power_fraction: float = 0.75,
    pue: float = 1.0,
    network_share: float = 0.0,
    decline_oom_per_year: float = 0.14,
    hours_per_year: float = 8766,
    deflator: float = 1.0,
) -> float:
    """Amortised view (Epoch AI): each hour pays the fall of market value at that age, network added, plus energy.

    >>> round(amortised_in_base_year_usd(57e6, 24875, 1.747, server_peak_w=812.5, usd_per_kwh=0.0806, pue=1.25,
    ...                                  network_share=0.19, deflator=1.01344) / 1e6, 2)
    40.69

    Raises:
        ValueError: when an input is outside its domain.
    """
    per_hour = amortised_usd_per_chip_hour(
        usd_per_accelerator_with_server, years_from_purchase, decline_oom_per_year, network_share
    )
    per_hour *= _HOURS / float(require("hours_per_year", hours_per_year, 0, 8784, open_low=True))
    energy = energy_mwh(accelerator_hours, server_peak_w / 1000, average_power_fraction, pue) * 1000 * usd_per_kwh
    return float(deflated(accelerator_hours * per_hour + energy, deflator))
