"""What a backtest is scored against: Epoch AI's unit estimates by reporting group, site power, and the naive forecasts.

Epoch AI's figures (CC BY 4.0) are estimates themselves: each row carries the 90 % interval of the source. A quarter is
scored where the source gives at least one member of the group. The interval of a sum is the sum of the ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from scenarios.asof import quarter_of, quarters
from scenarios.scoring import Interval, ScoreError, log_steps, naive_growth, naive_last
from supply.facts import Catalog, FactError, catalog

__all__ = ["GROUPS", "REPORTING_LAG", "Group", "Outcome", "history", "naives", "outcomes", "site_power"]

#: Quarters between the origin and the last quarter whose company reports were out: on 1 January, the third quarter.
REPORTING_LAG = 2


@dataclass(frozen=True, slots=True)
class Group:
    """A reporting group: parts of the scenario, outcome series (after `shipments_`), designer or part level."""

    name: str
    title: str
    skus: tuple[str, ...]
    series: tuple[str, ...]
    level: str = "part"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One outcome with the interval of its source."""

    period: str
    value: float
    low: float
    high: float


_NVIDIA = ("nvidia_h100", "nvidia_h20", "nvidia_b200", "nvidia_b300")
_AMD = ("amd_mi250x", "amd_mi300a", "amd_mi300x", "amd_mi308x", "amd_mi325x", "amd_mi350x", "amd_mi355x")
_GOOGLE = ("google_tpu_v5e", "google_tpu_v5p", "google_tpu_v6e", "google_tpu_v7")
_AWS = ("aws_trainium1", "aws_trainium2")
GROUPS = (
    Group("h100_h200", "NVIDIA H100 and H200", ("h100", "h200"), ("nvidia_h100",)),
    Group("blackwell", "NVIDIA Blackwell", ("b200", "b300"), ("nvidia_b200", "nvidia_b300")),
    Group("h20", "NVIDIA H20", ("h20",), ("nvidia_h20",)),
    Group("mi300", "AMD MI300 family", ("mi300x",), ("amd_mi300a", "amd_mi300x", "amd_mi308x", "amd_mi325x")),
    Group("mi350", "AMD MI350 family", ("mi355x",), ("amd_mi350x", "amd_mi355x")),
    Group("tpu_v5", "Google TPU v5e and v5p", ("tpu_v5p",), ("google_tpu_v5e", "google_tpu_v5p")),
    Group("tpu_v6e", "Google TPU v6e", ("tpu_v6e",), ("google_tpu_v6e",)),
    Group("tpu_v7", "Google TPU v7", ("tpu_v7",), ("google_tpu_v7",)),
    Group("trainium2", "AWS Trainium2", ("trainium2",), ("aws_trainium2",)),
    Group("nvidia", "NVIDIA, all", ("h100", "h200", "h20", "b200", "b300", "rubin"), _NVIDIA, "designer"),
    Group("amd", "AMD, all", ("mi300x", "mi355x"), _AMD, "designer"),
    Group("google", "Google, all", ("tpu_v5p", "tpu_v6e", "tpu_v7"), _GOOGLE, "designer"),
    Group("aws", "AWS, all", ("trainium2", "trainium3"), _AWS, "designer"),
)


def outcomes(group: Group, periods: Sequence[str], cat: Catalog | None = None) -> list[Outcome]:
    """Units of a group in the quarters that the source covers, accelerators a quarter.

    >>> rows = outcomes(GROUPS[0], ["2024-Q1"])
    >>> rows[0].period, round(rows[0].value / 1e3)
    ('2024-Q1', 552)
    """
    cat = catalog() if cat is None else cat
    out = []
    for period in periods:
        found = []
        for name in group.series:
            try:
                found.append(cat.series(f"shipments_{name}").at(period))
            except FactError:  # the source has no such quarter: the part was not sold, or the data end
                continue
        if found:
            sums = (sum(getattr(p, key) for p in found) for key in ("value", "low", "high"))
            out.append(Outcome(period, *sums))
    return out


def history(group: Group, origin: date, cat: Catalog | None = None) -> list[float]:
    """Quarterly units up to the last quarter that companies had reported on the origin, for the naive forecasts only.

    The figures are the source's later estimates, which nobody had at the time: a gift to the naive forecasts.
    """
    last = _shift(quarter_of(origin), -REPORTING_LAG)
    rows = outcomes(group, [q for q in quarters("2022-Q1", 40) if q <= last], cat)
    if not rows or rows[-1].period != last:
        return []
    return [r.value for r in rows]


def naives(origin: date, ahead: int, cat: Catalog | None = None) -> dict[str, dict[str, list[Interval]]]:
    """Group -> naive -> one interval for each of the next quarters; groups without history are left out.

    The spread is the standard deviation of the quarterly log changes of the group, pooled over all groups where it has
    less than four.
    """
    past = {g.name: history(g, origin, cat) for g in GROUPS}
    pooled = float(np.std([s for h in past.values() for s in log_steps(h)]))
    out: dict[str, dict[str, list[Interval]]] = {}
    for name, units in past.items():
        steps = log_steps(units)
        sd = float(np.std(steps)) if len(steps) >= 4 else pooled
        lead = range(REPORTING_LAG, REPORTING_LAG + ahead)
        try:
            out[name] = {
                "last": [naive_last(units, k, sd) for k in lead],
                "growth": [naive_growth(units, k, sd) for k in lead],
            }
        except ScoreError:  # nothing to carry forward
            continue
    return out


def site_power(periods: Sequence[str], cat: Catalog | None = None) -> list[Outcome]:
    """Energised AI power of the world from sites, GW at the end of each quarter; half-way band between regions."""
    cat = catalog() if cat is None else cat
    rows = [cat.series(f"ai_power_sites_{region}") for region in ("us", "china", "europe", "rest")]
    return [
        Outcome(p, *(sum(getattr(s.at(p), key) for s in rows) for key in ("value", "low", "high"))) for p in periods
    ]


def _shift(period: str, by: int) -> str:
    number = int(period[:4]) * 4 + int(period[-1]) - 1 + by
    return f"{number // 4}-Q{number % 4 + 1}"
