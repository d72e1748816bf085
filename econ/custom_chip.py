"""When an own chip pays: development cost spread over volume, against chips rented or bought from a merchant."""

from __future__ import annotations

from dataclasses import dataclass

from econ.finance import capital_recovery_factor
from econ.workload_card import ChoiceError

__all__ = ["CustomChip", "custom_chip_break_even"]


@dataclass(frozen=True)
class CustomChip:
    """The own chip against the merchant's, per hour of merchant-equivalent work.

    `break_even_volume` is None where the own chip is dearer even with its development for nothing;
    `break_even_share_sold` is None where it does not pay even when every hour is sold.
    """

    usd_per_hour: float
    merchant_usd_per_hour: float
    break_even_volume: float | None
    break_even_share_sold: float | None
    saving_usd_per_year: float

    @property
    def pays(self) -> bool:
        """True when the own chip is the cheaper at the stated volume and use."""
        return self.usd_per_hour < self.merchant_usd_per_hour


def custom_chip_break_even(
    volume: float,
    nre_usd: float,
    share_sold: float,
    *,
    unit_usd: float,
    merchant_usd_per_hour: float,
    life_years: float = 4.0,
    rate: float = 0.08,
    running_usd_per_hour: float = 0.0,
    software_usd_per_year: float = 0.0,
    relative_throughput: float = 1.0,
    hours_per_year: float = 8760.0,
) -> CustomChip:
    """Cost per useful hour of an own chip, and the volume at which it meets the merchant's price.

    Yearly cost of a chip = CRF (unit + NRE / volume) + software / volume; per sold hour it is divided by hours x share
    sold; running cost (power, space) is added, and the sum divided by `relative_throughput` (own work per hour over the
    merchant's). The merchant's price is per sold hour: its owner carries the idle ones.

    Raises:
        ChoiceError: a volume, share, life or price that is not positive.

    >>> case = dict(unit_usd=8000, merchant_usd_per_hour=2.0, running_usd_per_hour=0.3, relative_throughput=0.7)
    >>> chip = custom_chip_break_even(100_000, 500e6, 0.7, **case)
    >>> round(chip.break_even_volume), chip.pays
    (34865, True)
    """
    positive = {
        "volume": volume,
        "share_sold": share_sold,
        "unit_usd": unit_usd,
        "life_years": life_years,
        "merchant_usd_per_hour": merchant_usd_per_hour,
        "relative_throughput": relative_throughput,
    }
    for name, value in positive.items():
        if not 0 < value < float("inf"):
            raise ChoiceError(f"{name} = {value}: must be positive and finite")
    if share_sold > 1 or nre_usd < 0 or software_usd_per_year < 0 or running_usd_per_hour < 0:
        raise ChoiceError("share_sold is at most 1; NRE, software and running cost are not negative")
    crf = float(capital_recovery_factor(rate, life_years))
    sold_hours = hours_per_year * share_sold
    once = nre_usd * crf + software_usd_per_year
    per_hour = (unit_usd * crf + once / volume) / sold_hours + running_usd_per_hour
    target = merchant_usd_per_hour * relative_throughput
    room = (target - running_usd_per_hour) * sold_hours - unit_usd * crf
    needed_share = None
    if target > running_usd_per_hour:
        share = (unit_usd * crf + once / volume) / hours_per_year / (target - running_usd_per_hour)
        needed_share = share if share <= 1 else None
    own = per_hour / relative_throughput
    return CustomChip(
        own,
        merchant_usd_per_hour,
        once / room if room > 0 else None,
        needed_share,
        (merchant_usd_per_hour - own) * relative_throughput * sold_hours * volume,
    )
