"""Four different watts: chip, chassis, facility, planning; and what a site, a node and a chart of watts can mean.

    chip      board power of the accelerator itself (TDP or measured)
    chassis   its share of the whole server or rack: processors, memory, fans, network interfaces, conversion losses
    facility  chassis watts times PUE, which enters exactly once
    planning  facility watts plus headroom: what is booked from the grid

Every function takes floats or numpy arrays. Chain after InferenceX; PUE as surveyed by the Uptime Institute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from econ.finance import plain, require

__all__ = [
    "PowerChain",
    "PowerError",
    "accelerators_on_site",
    "check_node_power",
    "energy_per_accelerator_hour_kwh",
    "generated_tokens_per_s_per_mw",
    "overhead_ratio",
    "power_chain",
    "shortfall_of_rating",
    "sized_capacity_mw",
    "system_over_chips",
]


class PowerError(ValueError):
    """Watts that cannot be: a node below its own chips, a PUE below one, the wrong kind of watts."""


@dataclass(frozen=True, slots=True)
class PowerChain:
    """The four watts of one accelerator (or chassis) and the two factors between them."""

    chip_w: float
    chassis_w: float
    facility_w: float
    planning_w: float
    pue: float
    headroom: float

    def per_gigawatt(self) -> float:
        """Units that one planned gigawatt carries.

        >>> round(power_chain(chassis_w=4837, pue=1.3, headroom=0.10).per_gigawatt())
        144573
        """
        return 1e9 / self.planning_w


def power_chain(
    *,
    chip_w: float | None = None,
    chassis_over_chip: float | None = None,
    chassis_w: float | None = None,
    pue: float,
    headroom: float = 0.0,
) -> PowerChain:
    """Chip to planning watts; give `chassis_w`, or `chip_w` with `chassis_over_chip`. PUE is applied once.

    >>> chain = power_chain(chassis_w=4837, pue=1.3, headroom=0.10)
    >>> round(chain.facility_w), round(chain.planning_w)
    (6288, 6917)

    Raises:
        PowerError: when the chassis is missing or below the chip, or PUE is below 1.
    """
    if chassis_w is None:
        if chip_w is None or chassis_over_chip is None:
            raise PowerError("chassis watts are missing: give chassis_w, or chip_w and chassis_over_chip")
        chassis_w = chip_w * chassis_over_chip
    if chip_w is not None and chassis_w < chip_w:
        raise PowerError(f"chassis {chassis_w:g} W is below its chip's {chip_w:g} W at the same load")
    if not pue >= 1:
        raise PowerError(
            f"pue = {pue!r}: facility power over IT power is at least 1 (a share of overhead goes in as 1 + share)"
        )
    facility = chassis_w * pue
    return PowerChain(
        chip_w if chip_w is not None else float("nan"),
        chassis_w,
        facility,
        facility * (1 + float(require("headroom", headroom, 0))),
        pue,
        headroom,
    )


def check_node_power(node_w: float, accelerators: int, chip_w: float) -> float:
    """Node watts over the sum of its chips, refused when the node is below that sum.

    >>> round(check_node_power(10200, 8, 700), 5)
    1.82143

    Raises:
        PowerError: when the node draws less than its accelerators at the same load.
    """
    chips = accelerators * chip_w
    if node_w < chips:
        raise PowerError(
            f"node power {node_w:g} W is below its {accelerators} chips' {chips:g} W ({chip_w:g} W each): "
            "give the rated node power, or both at the same load"
        )
    return node_w / chips


def system_over_chips(system_w: float, accelerators: int, chip_w: float) -> dict[str, float]:
    """Split of a system rating: chips, everything else, ratio, and watts per accelerator.

    >>> system_over_chips(10200, 8, 700)["rest_w"]
    4600.0

    Raises:
        PowerError: when the system is below its chips.
    """
    ratio = check_node_power(system_w, accelerators, chip_w)
    chips = float(accelerators * chip_w)
    return {"chips_w": chips, "rest_w": system_w - chips, "ratio": ratio, "per_accelerator_w": system_w / accelerators}


def overhead_ratio(pue_a: ArrayLike, pue_b: ArrayLike) -> Any:
    """How many times the overhead of `pue_a` the overhead of `pue_b` is: (b - 1) / (a - 1).

    >>> round(overhead_ratio(1.2, 1.5), 9)
    2.5

    Raises:
        PowerError: when a PUE is below 1 or the base has no overhead.
    """
    a, b = np.asarray(pue_a, dtype=float), np.asarray(pue_b, dtype=float)
    if np.any(a <= 1) or np.any(b < 1):
        raise PowerError(f"pue_a = {pue_a!r} must exceed 1 and pue_b = {pue_b!r} be at least 1")
    return plain((b - 1) / (a - 1))


def accelerators_on_site(
    site_w: ArrayLike,
    chip_w: ArrayLike,
    chassis_over_chip: ArrayLike = 1.0,
    pue: ArrayLike = 1.0,
    other_it: ArrayLike = 1.0,
) -> Any:
    """Accelerators that a site's facility watts carry: site / (chip x chassis ratio x other IT x PUE).

    With the default ratios only chip watts are counted, which overstates: state the chain.

    >>> round(accelerators_on_site(8e9, 700, 10200 / 5600, 1.25, 1.10))
    4563280
    >>> int(accelerators_on_site(50e6, 1000, 1.3, 1.2))
    32051

    Raises:
        PowerError: when a ratio is below 1.
    """
    for name, value in (("chassis_over_chip", chassis_over_chip), ("pue", pue), ("other_it", other_it)):
        if np.any(np.asarray(value, dtype=float) < 1):
            raise PowerError(f"{name} = {value!r}: a ratio of more watts over fewer is at least 1")
    per_chip = (
        require("chip_w", chip_w, 0, open_low=True)
        * np.asarray(chassis_over_chip, dtype=float)
        * np.asarray(other_it, dtype=float)
        * np.asarray(pue, dtype=float)
    )
    return plain(require("site_w", site_w, 0) / per_chip)


def sized_capacity_mw(
    accelerators: ArrayLike,
    chip_w: ArrayLike,
    chassis_over_chip: ArrayLike = 1.0,
    pue: ArrayLike = 1.0,
    redundancy: ArrayLike = 1.0,
) -> Any:
    """Facility MW to book for a number of accelerators: count x chip x chassis ratio x PUE x redundancy (N+1 factor).

    >>> round(sized_capacity_mw(1000, 1000, 1.3, 1.2, 1.1), 9)
    1.716

    Raises:
        FinanceError: when an input is negative or a factor below 1.
    """
    watts = require("accelerators", accelerators, 0) * require("chip_w", chip_w, 0)
    for name, value in (("chassis_over_chip", chassis_over_chip), ("pue", pue), ("redundancy", redundancy)):
        watts = watts * require(name, value, 1)
    return plain(watts / 1e6)


def shortfall_of_rating(measured_kw: ArrayLike, rated_kw: ArrayLike) -> Any:
    """Share by which a measured peak stays below the rating: 1 - measured / rated.

    >>> round(shortfall_of_rating(8.4, 10.2), 3)
    0.176
    """
    return plain(1 - require("measured_kw", measured_kw, 0) / require("rated_kw", rated_kw, 0, open_low=True))


def energy_per_accelerator_hour_kwh(energy_mwh: ArrayLike, accelerator_hours: ArrayLike) -> Any:
    """Energy of a run over its accelerator-hours, kWh.

    >>> round(energy_per_accelerator_hour_kwh(681, 1.05e6), 4)
    0.6486
    """
    hours = require("accelerator_hours", accelerator_hours, 0, open_low=True)
    return plain(require("energy_mwh", energy_mwh, 0) * 1000 / hours)


def generated_tokens_per_s_per_mw(total_tokens_per_s_per_mw: float, input_tokens: float, output_tokens: float) -> float:
    """Generated tokens/s per facility MW behind a figure that counts prompt tokens too: total x out / (in + out).

    >>> generated_tokens_per_s_per_mw(900000, 8192, 1024)
    100000.0

    Raises:
        PowerError: when the request has no output.
    """
    if output_tokens <= 0 or input_tokens < 0:
        raise PowerError(f"a request of {input_tokens:g} input and {output_tokens:g} output tokens generates nothing")
    return total_tokens_per_s_per_mw * output_tokens / (input_tokens + output_tokens)
