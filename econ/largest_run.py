"""The largest training run that a fleet, its power and a time limit allow, and the batch that tokens allow.

A supply run gives accelerators by SKU and energised megawatts by site; the engine gives the sustained share of peak
and the failure model the goodput. Sites joined by long links lose what their gradient exchange cannot hide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from econ.failures import FailureError, require_positive
from econ.goodput import goodput
from supply.facts import catalog

__all__ = [
    "Growth",
    "LargestRun",
    "Site",
    "growth_per_year",
    "largest_global_batch",
    "largest_run",
    "multi_site_share",
    "run_rate_flop_per_s",
]


@dataclass(frozen=True)
class Site:
    """One site: accelerators by SKU that may work on the run, and energised megawatts (planning watts)."""

    name: str
    accelerators: Mapping[str, float]
    power_mw: float


@dataclass(frozen=True)
class LargestRun:
    """The answer: operations, accelerators used, what limits each site, goodput and the share kept over several
    sites."""

    operations: float
    accelerators: float
    limited_by: Mapping[str, str]
    goodput: float
    multi_site_share: float
    days: float


def run_rate_flop_per_s(
    accelerators: Mapping[str, float], peak_flop_per_s: Mapping[str, float], mfu: Mapping[str, float] | float
) -> float:
    """Model FLOP/s of a mixed fleet: sum over SKUs of count x dense peak x MFU.

    >>> run_rate_flop_per_s({"H100": 1000}, {"H100": 989.4e12}, 0.4)
    3.9576e+17

    Raises:
        FailureError: for a SKU without peak or MFU, or a share above one.
    """
    total = 0.0
    for sku, count in accelerators.items():
        share = mfu if isinstance(mfu, float | int) else mfu.get(sku, float("nan"))
        if sku not in peak_flop_per_s or not 0 < share <= 1:
            raise FailureError(f"{sku}: a dense peak and an MFU in (0, 1] are needed, got mfu = {share!r}")
        total += count * peak_flop_per_s[sku] * share
    return total


def multi_site_share(
    params: float,
    step_s: float,
    link_bytes_per_s: float,
    sites: int = 2,
    local_steps: int = 1,
    hidden_share: float = 0.8,
    bytes_per_gradient: float = 2.0,
) -> float:
    """Share of speed kept by data parallelism over sites: step / (step + exposed exchange / local steps).

    The exchange is a ring all-reduce over sites of all gradients; `hidden_share` of a step's time can cover it.

    >>> round(multi_site_share(405e9, 20.0, 1.25e12), 3)
    1.0
    >>> round(multi_site_share(405e9, 5.0, 0.05e12), 3)
    0.291
    """
    require_positive(params=params, step_s=step_s, link_bytes_per_s=link_bytes_per_s, local_steps=local_steps)
    if sites < 2:
        return 1.0
    exchange = 2 * (sites - 1) / sites * params * bytes_per_gradient / link_bytes_per_s
    exposed = max(0.0, exchange / local_steps - hidden_share * step_s)
    return step_s / (step_s + exposed)


def largest_run(
    sites: Sequence[Site],
    peak_flop_per_s: Mapping[str, float],
    planning_kw: Mapping[str, float],
    mfu: Mapping[str, float] | float,
    days: float,
    hours_per_accelerator: float,
    checkpoint_s: float,
    restart_s: float,
    fleet_share: float = 1.0,
    kept_over_sites: float = 1.0,
) -> LargestRun:
    """Operations of the largest run within `days`: at each site power or chips limit, whichever is less.

    `fleet_share` is the part of the fleet that may work on one run; `kept_over_sites` applies when more than one site
    runs.

    >>> run = largest_run([Site("a", {"H100": 20_000}, 20.0)], {"H100": 989.4e12}, {"H100": 1.4}, 0.4, 100,
    ...                   50_000, 30.0, 600.0)
    >>> round(run.accelerators), run.limited_by["a"], f"{run.operations:.2e}"
    (14286, 'power', '4.35e+25')

    Raises:
        FailureError: for an unknown SKU or shares out of range.
    """
    require_positive(days=days, hours_per_accelerator=hours_per_accelerator)
    if not 0 < fleet_share <= 1 or not 0 < kept_over_sites <= 1:
        raise FailureError(f"fleet_share {fleet_share!r} and kept_over_sites {kept_over_sites!r} are shares above zero")
    rate, count, limits, used = 0.0, 0.0, {}, 0
    for site in sites:
        unknown = [s for s in site.accelerators if s not in planning_kw]
        if unknown:
            raise FailureError(f"site {site.name}: no planning kW for {', '.join(unknown)}")
        available = {s: n * fleet_share for s, n in site.accelerators.items() if n > 0}
        need_mw = sum(n * planning_kw[s] for s, n in available.items()) / 1000
        powered = min(1.0, site.power_mw / need_mw) if need_mw > 0 else 0.0
        limits[site.name] = "power" if powered < 1 else "accelerators"
        running = {s: n * powered for s, n in available.items()}
        if not running or powered <= 0:
            continue
        used += 1
        rate += run_rate_flop_per_s(running, peak_flop_per_s, mfu)
        count += sum(running.values())
    if count <= 0:
        raise FailureError("no site has both accelerators and power: no run is possible")
    useful = goodput(count, hours_per_accelerator, checkpoint_s, restart_s).useful
    kept = kept_over_sites if used > 1 else 1.0
    return LargestRun(rate * useful * kept * days * 86_400, count, limits, useful, kept, days)


def largest_global_batch(tokens: float, sequence: float, least_steps: float | None = None) -> float:
    """Largest global batch in sequences when a run must take at least so many optimizer steps (a fact by default).

    Fewer steps mean a batch beyond what training makes use of, so that more accelerators no longer shorten the run.

    >>> largest_global_batch(15e12, 8192)
    36621.09375
    """
    steps = catalog()["training_least_steps"].number if least_steps is None else least_steps
    require_positive(tokens=tokens, sequence=sequence, least_steps=steps)
    return tokens / sequence / steps


@dataclass(frozen=True)
class Growth:
    """Growth a year with the 90 % interval of the slope, and the number of points."""

    per_year: float
    low: float
    high: float
    points: int


def growth_per_year(days: Sequence[date], values: Sequence[float]) -> Growth:
    """Growth a year by least squares on log value against date.

    >>> g = growth_per_year([date(2020, 1, 1), date(2021, 1, 1), date(2022, 1, 1)], [1.0, 2.0, 4.0])
    >>> round(g.per_year, 2), g.points
    (2.0, 3)

    Raises:
        FailureError: for fewer than three points, or a value that is not positive.
    """
    if len(days) != len(values) or len(days) < 3 or min(values) <= 0:
        raise FailureError(f"{len(days)} dates and {len(values)} values: at least three positive pairs are needed")
    x = np.array([d.toordinal() / 365.25 for d in days])
    y = np.log(np.asarray(values, dtype=float))
    slope, intercept = np.polyfit(x - x.mean(), y, 1)
    error = y - slope * (x - x.mean()) - intercept
    spread = float(np.sqrt(np.sum(error**2) / max(len(x) - 2, 1) / np.sum((x - x.mean()) ** 2)))
    middle, low, high = (float(np.exp(slope + k * spread)) for k in (0.0, -1.645, 1.645))
    return Growth(middle, low, high, len(days))
