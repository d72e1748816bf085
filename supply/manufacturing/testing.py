"""Test: coverage and escapes, cost by tester seconds at an uptime, burn-in, and where in the flow to test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from supply.manufacturing.numeric import FloatArray, ManufacturingError, Numbers, positive, share, unwrap

__all__ = ["Insertion", "InsertionPlan", "Tested", "burn_in", "compare_insertions", "tested", "tester_cost_usd"]

HOURS_PER_YEAR = 8760.0
SECONDS_PER_HOUR = 3600.0


class Tested(NamedTuple):
    """What leaves a test: the share that passes, and the bad share among those that passed."""

    pass_rate: float | FloatArray
    escape_share: float | FloatArray


def tested(yield_fraction: Numbers, coverage: Numbers) -> Tested:
    """Pass rate 1 - (1 - Y) c and escapes 1 - Y / pass: bad parts that the test of coverage c lets through.

    >>> result = tested(0.8, 0.9)
    >>> round(result.pass_rate, 3), round(result.escape_share, 4)
    (0.82, 0.0244)
    """
    good, caught = share("yield_fraction", yield_fraction), share("coverage", coverage, zero=True)
    missed = (1.0 - good) * (1.0 - caught)  # the same pass rate and escapes, without cancellation at tiny yields
    return Tested(unwrap(good + missed), unwrap(missed / (good + missed)))


def tester_cost_usd(
    seconds: Numbers,
    tester_usd: Numbers,
    life_years: Numbers,
    uptime: Numbers,
    running_usd_per_hour: Numbers = 0.0,
    sites: Numbers = 1,
) -> float | FloatArray:
    """Cost of one test: seconds x (price / (life hours x uptime) + running cost per used hour) / sites tested at once.

    Uptime divides: a tester that runs half the time costs about twice as much per part.

    >>> round(tester_cost_usd(60, 2_000_000, 5, 0.85, 30), 4)
    1.3953
    """
    used_hours = positive("life_years", life_years) * HOURS_PER_YEAR * share("uptime", uptime)
    per_hour = positive("tester_usd", tester_usd, zero=True) / used_hours + positive(
        "running", running_usd_per_hour, zero=True
    )
    return unwrap(positive("seconds", seconds, zero=True) / SECONDS_PER_HOUR * per_hour / positive("sites", sites))


def burn_in(yield_fraction: Numbers, weak_share: Numbers, caught: Numbers = 1.0) -> Tested:
    """Burn-in of parts that pass at time zero: a weak share fails under stress and `caught` of it is removed.

    `pass_rate` is relative to the parts put in; `escape_share` holds what was bad before and weak parts not caught.

    >>> round(burn_in(1.0, 0.01, 0.9).pass_rate, 3)
    0.991
    """
    good = share("yield_fraction", yield_fraction)
    weak, removed = share("weak_share", weak_share, zero=True), share("caught", caught, zero=True)
    passed = 1.0 - good * weak * removed
    return Tested(unwrap(passed), unwrap(1.0 - good * (1.0 - weak) / passed))


# pytest takes names that start with "test" for tests wherever they are imported; these two are not.
tested.__test__ = False  # type: ignore[attr-defined]
tester_cost_usd.__test__ = False  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Insertion:
    """One test point: cost per part tested (USD) and coverage of the faults present there."""

    cost_usd: float
    coverage: float


@dataclass(frozen=True)
class InsertionPlan:
    """Cost of a good package under one choice of test points."""

    name: str
    usd_per_good_package: float
    package_pass_rate: float
    shipped_bad_share: float


def compare_insertions(
    die_usd: float,
    die_yield: float,
    dies: int,
    other_parts_usd: float,
    assembly_yield: float,
    wafer_test: Insertion,
    final_test: Insertion,
    shipped_bad_usd: float = 0.0,
) -> list[InsertionPlan]:
    """Cost per good package with test at wafer sort, at final test, or at both; the cheapest first.

    Bad dies that sort lets through, or that are never sorted, are bonded and take good parts with them; a bad package
    that is shipped costs `shipped_bad_usd` (replacement, rack downtime) on top.

    Raises:
        ManufacturingError: for fractions outside (0, 1] or no die.

    >>> sort, final = Insertion(5, 0.95), Insertion(40, 0.99)
    >>> [p.name for p in compare_insertions(250, 0.8, 2, 3000, 0.98, sort, final, shipped_bad_usd=10_000)]
    ['both', 'wafer sort only', 'final only']
    """
    if dies < 1:
        raise ManufacturingError(f"dies = {dies} must be at least 1")
    skip = Insertion(0.0, 0.0)
    choices = {
        "wafer sort only": (wafer_test, skip),
        "final only": (skip, final_test),
        "both": (wafer_test, final_test),
    }
    plans = [
        _plan(name, die_usd, die_yield, dies, other_parts_usd, assembly_yield, sort, final, shipped_bad_usd)
        for name, (sort, final) in choices.items()
    ]
    return sorted(plans, key=lambda plan: plan.usd_per_good_package)


def _plan(
    name: str,
    die_usd: float,
    die_yield: float,
    dies: int,
    other_usd: float,
    assembly_yield: float,
    sort: Insertion,
    final: Insertion,
    shipped_bad_usd: float,
) -> InsertionPlan:
    probe = tested(die_yield, sort.coverage)
    accepted_usd = (die_usd + sort.cost_usd) / probe.pass_rate
    package_yield = float(np.asarray((1.0 - probe.escape_share) ** dies * share("assembly_yield", assembly_yield)))
    last = tested(package_yield, final.coverage)
    shipped_bad = float(np.asarray(last.pass_rate)) - package_yield
    built_usd = dies * float(accepted_usd) + other_usd + final.cost_usd + shipped_bad * shipped_bad_usd
    return InsertionPlan(name, built_usd / package_yield, float(last.pass_rate), float(last.escape_share))
