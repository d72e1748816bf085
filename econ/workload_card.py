"""The one-page test of a hardware decision: the job and its targets, the site, and the candidates (course Part 10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import Any, Literal, get_args

from econ.token_cost import Workload
from supply.paths import data_dir, data_file

__all__ = ["Buyer", "Candidate", "ChoiceError", "Job", "Readiness", "Site", "WorkloadCard", "buyer", "buyers"]

Job = Literal["interactive", "batch", "training"]
Readiness = Literal["yes", "no", "unknown"]


class ChoiceError(ValueError):
    """A hardware question that cannot be put: an impossible card, a candidate without a price."""


@dataclass(frozen=True)
class Site:
    """Where the system will stand; None is 'no limit'. Watts are facility watts of this job's share."""

    power_kw: float | None = None
    rack_kw: float | None = None
    liquid_cooling: bool = False


@dataclass(frozen=True)
class WorkloadCard:
    """The work, its success target and its limits, written down before any candidate is looked at.

    interactive   `workload` with latency targets at `requests_per_s` (peak)
    batch         `workload` without targets; `requests` to finish within `deadline_hours`
    training      `training` options of the run (tokens, batch, sequence, format), within `deadline_hours`

    `quality_target` is the least measured score of the model on that candidate's software (in `quality_unit`).
    """

    name: str
    job: Job
    model: str
    workload: Workload | None = None
    requests_per_s: float = 0.0
    requests: float = 0.0
    deadline_hours: float | None = None
    training: Mapping[str, Any] = field(default_factory=dict)
    quality_target: float | None = None
    quality_unit: str = ""
    least_healthy: float = 0.0
    budget_usd_per_month: float | None = None
    budget_usd: float | None = None
    needed_by: date | None = None
    site: Site = Site()
    memory_margin: float = 0.0
    title: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        if self.job not in get_args(Job):
            raise ChoiceError(f"card {self.name!r}: job {self.job!r} is one of {', '.join(get_args(Job))}")
        if self.job != "training" and self.workload is None:
            raise ChoiceError(f"card {self.name!r}: write down the request lengths (workload) first")
        if self.job == "interactive" and not self.requests_per_s > 0:
            raise ChoiceError(f"card {self.name!r}: an interactive service needs its request load (requests_per_s)")
        if self.job == "batch" and not (self.requests > 0 and (self.deadline_hours or 0) > 0):
            raise ChoiceError(f"card {self.name!r}: a batch needs its number of requests and its deadline_hours")
        if self.job == "training" and not self.training:
            raise ChoiceError(f"card {self.name!r}: a training run needs its options (training), tokens first")


@dataclass(frozen=True)
class Candidate:
    """One system that could do the job. `software` and `quality` say what was run, not what is promised.

    `setup` goes to the engine (weight_format, framework, tp ...). `healthy` is the share of hours without a fault.
    `available_from` is the day of delivery; a supply run can replace it.
    """

    name: str
    hardware: str
    usd_per_gpu_hour: float
    price_basis: str = ""
    usd_low: float | None = None
    usd_high: float | None = None
    most_accelerators: int = 1_000_000
    facility_kw_per_accelerator: float | None = None
    rack_kw: float | None = None
    needs_liquid_cooling: bool = False
    available_from: date | None = None
    software: Readiness = "unknown"
    software_note: str = ""
    quality: float | None = None
    healthy: float = 1.0
    engineering_usd: float = 0.0
    setup: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.usd_per_gpu_hour < float("inf"):
            raise ChoiceError(f"candidate {self.name!r}: {self.usd_per_gpu_hour} USD an hour; a price is positive")
        if self.software not in get_args(Readiness):
            raise ChoiceError(f"candidate {self.name!r}: software {self.software!r} is yes, no or unknown")
        if not 0 < self.healthy <= 1:
            raise ChoiceError(f"candidate {self.name!r}: healthy = {self.healthy} is a share in (0, 1]")

    @property
    def price_band(self) -> tuple[float, float]:
        """Low and high factors of the hour price."""
        low = self.usd_low if self.usd_low is not None else self.usd_per_gpu_hour
        high = self.usd_high if self.usd_high is not None else self.usd_per_gpu_hour
        return low / self.usd_per_gpu_hour, high / self.usd_per_gpu_hour


@dataclass(frozen=True)
class Buyer:
    """A card with the candidates to be compared under it."""

    card: WorkloadCard
    candidates: tuple[Candidate, ...]


def buyers() -> list[str]:
    """Names of the shipped buyers."""
    return sorted(p.stem for p in (data_dir() / "cases" / "buyers").glob("*.yaml"))


@lru_cache(maxsize=16)
def buyer(name: str) -> Buyer:
    """A shipped buyer: research_lab, chat_service or overnight_documents.

    Raises:
        ChoiceError: unknown name; the message lists the shipped ones.
    """
    from econ.case_files import read_case

    if name not in buyers():
        raise ChoiceError(f"no buyer {name!r}: shipped ones are {', '.join(buyers())}, or build a Buyer")
    return read_case(data_file("cases", "buyers", f"{name}.yaml"), Buyer, ChoiceError)
