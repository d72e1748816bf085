"""Choosing hardware by workload: reject what fails a required condition, with reasons, then rank the survivors by cost.

The order is that of course Part 10: memory fit, links, software, then latency and throughput, quality, reliability,
power, cooling, delivery, budget. A low price does not make a failing system viable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from econ.workload_card import Candidate, ChoiceError, WorkloadCard

__all__ = [
    "Decision",
    "Estimate",
    "Evaluator",
    "Reject",
    "Survivor",
    "choose_hardware",
]

HOURS_PER_MONTH = 730.0


@dataclass(frozen=True)
class Estimate:
    """What running the exact model on a candidate gives.

    `group` is the smallest set of accelerators that holds the model, `crosses_link` whether that set is larger than the
    fast-link domain. `results_per_s` is per accelerator under the card's targets (requests, or runs for training), with
    its 90 % band; None with `miss` where a target cannot be met, or where nothing fits (`fits` False).
    """

    fits: bool
    group: int
    memory_note: str = ""
    crosses_link: bool = False
    link_note: str = ""
    results_per_s: float | None = None
    low: float = 0.0
    high: float = 0.0
    miss: str = ""
    confidence: str = ""
    limited_by: str = ""


class Evaluator(Protocol):
    """Runs the card's model on a candidate: the engine, or a table of measurements."""

    def __call__(self, card: WorkloadCard, candidate: Candidate) -> Estimate:
        """The estimate; raises only for questions that cannot be put."""


@dataclass(frozen=True)
class Reject:
    """A candidate that fails, with every failing condition in the order of the procedure."""

    candidate: Candidate
    reasons: tuple[tuple[str, str], ...]

    @property
    def first(self) -> str:
        """The condition that fails first."""
        return self.reasons[0][0]


@dataclass(frozen=True)
class Survivor:
    """A candidate that passes, with its cost per useful result (90 % band of engine and price together).

    `separable` is False where the band overlaps that of the cheapest: the ranking between them is not evidence.
    """

    candidate: Candidate
    usd_per_result: float
    low: float
    high: float
    unit: str
    accelerators: int
    usd_per_month: float
    facility_kw: float | None
    estimate: Estimate
    separable: bool = True


@dataclass(frozen=True)
class Decision:
    """Survivors, cheapest useful result first, and rejects with their reasons."""

    card: WorkloadCard
    survivors: tuple[Survivor, ...]
    rejects: tuple[Reject, ...]

    @property
    def best(self) -> Survivor:
        """The cheapest survivor.

        Raises:
            ChoiceError: when every candidate was rejected; the message gives each one's first reason.
        """
        if not self.survivors:
            lines = "; ".join(f"{r.candidate.name}: {r.reasons[0][1]}" for r in self.rejects)
            raise ChoiceError(f"no candidate passes the card {self.card.name!r}: {lines}")
        return self.survivors[0]


def choose_hardware(
    card: WorkloadCard,
    candidates: Sequence[Candidate],
    evaluate: Evaluator | None = None,
    delivery: Mapping[str, date] | None = None,
) -> Decision:
    """Apply the procedure to every candidate.

    `delivery` gives dates by accelerator or candidate name from a supply run; they replace those of the candidates.

    Raises:
        ChoiceError: no candidates, or two with one name.
    """
    names = [c.name for c in candidates]
    if not names or len(set(names)) != len(names):
        raise ChoiceError("give at least one candidate, and each name once")
    run = evaluate or _default_evaluator()
    rejects: list[Reject] = []
    survivors: list[Survivor] = []
    for candidate in candidates:
        estimate = run(card, candidate)
        reasons = [*_technical(card, candidate, estimate), *_site(card, candidate, estimate, delivery or {})]
        survivor = None if estimate.results_per_s is None else _cost(card, candidate, estimate)
        if survivor is not None:
            reasons += _limits(card, survivor)
        if reasons or survivor is None:
            rejects.append(Reject(candidate, tuple(reasons)))
        else:
            survivors.append(survivor)
    survivors.sort(key=lambda s: s.usd_per_result)
    return Decision(card, tuple(_mark(s, survivors[0]) for s in survivors), tuple(rejects))


def _default_evaluator() -> Evaluator:
    from econ.choice_evaluators import engine_evaluator

    return engine_evaluator


def _technical(card: WorkloadCard, c: Candidate, e: Estimate) -> list[tuple[str, str]]:
    """Fit, links, software, targets, quality, reliability: in this order."""
    reasons: list[tuple[str, str]] = []
    if not e.fits:
        reasons.append(("fit", e.memory_note or f"{card.model} does not fit {c.most_accelerators} x {c.hardware}"))
    if e.crosses_link:
        reasons.append(("link", e.link_note or f"the model needs {e.group} accelerators, beyond the fast-link domain"))
    if c.software != "yes":
        state = "was never run" if c.software == "unknown" else "does not run"
        note = f": {c.software_note}" if c.software_note else ""
        reasons.append(("software", f"{card.model} {state} on {c.name} with the intended software{note}"))
    if e.fits and e.results_per_s is None:
        reasons.append(("target", e.miss or "the latency or throughput target cannot be met"))
    if card.quality_target is not None:
        if c.quality is None:
            reasons.append(
                ("quality", f"quality on {c.name} is unknown; {card.quality_target:g} {card.quality_unit} asked")
            )
        elif c.quality < card.quality_target:
            text = f"{c.quality:g} {card.quality_unit} measured, {card.quality_target:g} asked"
            reasons.append(("quality", text))
    if c.healthy < card.least_healthy:
        reasons.append(("reliability", f"healthy {c.healthy:.1%} of hours, {card.least_healthy:.1%} asked"))
    return reasons


def _site(card: WorkloadCard, c: Candidate, e: Estimate, delivery: Mapping[str, date]) -> list[tuple[str, str]]:
    """Rack power, cooling, delivery date."""
    del e
    reasons: list[tuple[str, str]] = []
    site = card.site
    if site.rack_kw is not None and c.rack_kw is not None and c.rack_kw > site.rack_kw:
        reasons.append(("power", f"a rack draws {c.rack_kw:g} kW, the site feeds {site.rack_kw:g} kW a rack"))
    if c.needs_liquid_cooling and not site.liquid_cooling:
        reasons.append(("cooling", f"{c.name} needs liquid cooling, which the site does not have"))
    day = delivery.get(c.name, delivery.get(c.hardware, c.available_from))
    if card.needed_by is not None:
        if day is None:
            reasons.append(("delivery", f"delivery date unknown; needed by {card.needed_by}"))
        elif day > card.needed_by:
            reasons.append(("delivery", f"delivered on {day}, needed by {card.needed_by}"))
    return reasons


def _cost(card: WorkloadCard, c: Candidate, e: Estimate) -> Survivor:
    """Accelerators for the load, and the cost of a useful result (a million output tokens, or the whole run)."""
    rate = (e.results_per_s or 0.0) * c.healthy
    groups_of = max(e.group, 1)
    if card.job == "interactive":
        needed = card.requests_per_s / rate
    else:
        seconds = (card.deadline_hours or 0.0) * 3600
        needed = (card.requests if card.job == "batch" else 1.0) / rate / seconds if seconds else groups_of
    accelerators = -int(-(needed - 1e-9) // groups_of) * groups_of
    accelerators = max(accelerators, groups_of)
    usd_s = c.usd_per_gpu_hour / 3600
    per_result = usd_s / rate
    unit, scale = "USD per run", 1.0
    if card.job != "training" and card.workload is not None:
        unit, scale = "USD per million output tokens", 1e6 / card.workload.output_tokens
    if card.job == "interactive":  # whole groups for the peak are paid whether busy or not
        per_result = accelerators * usd_s / _mean_rate(card)
    results = {"interactive": _mean_rate(card) * HOURS_PER_MONTH * 3600, "batch": card.requests, "training": 1.0}
    per_result += c.engineering_usd / results[card.job]
    cheap, dear = c.price_band
    slow, fast = (e.low, e.high) if e.low > 0 else (e.results_per_s or 0.0, e.results_per_s or 0.0)
    centre = e.results_per_s or 0.0
    kw = c.facility_kw_per_accelerator
    return Survivor(
        c,
        per_result * scale,
        per_result * scale * cheap * centre / fast,
        per_result * scale * dear * centre / slow,
        unit,
        accelerators,
        accelerators * c.usd_per_gpu_hour * HOURS_PER_MONTH,
        None if kw is None else accelerators * kw,
        e,
    )


def _mean_rate(card: WorkloadCard) -> float:
    """Mean requests/s of a service whose card gives the peak."""
    return card.requests_per_s / (card.workload.peak_over_mean if card.workload else 1.0)


def _limits(card: WorkloadCard, s: Survivor) -> list[tuple[str, str]]:
    """Limits that need the size of the system: accelerators, site power, budget."""
    reasons: list[tuple[str, str]] = []
    if s.accelerators > s.candidate.most_accelerators:
        text = f"the load needs {s.accelerators} accelerators, {s.candidate.most_accelerators} can be had"
        reasons.append(("target", text))
    limit = card.site.power_kw
    if limit is not None:
        if s.facility_kw is None:
            reasons.append(("power", f"facility power of {s.candidate.name} is unknown; the site has {limit:g} kW"))
        elif s.facility_kw > limit:
            reasons.append(("power", f"{s.facility_kw:,.0f} kW needed, the site has {limit:,.0f} kW"))
    monthly = card.budget_usd_per_month
    if monthly is not None and s.usd_per_month > monthly:
        reasons.append(("budget", f"{s.usd_per_month:,.0f} USD a month, {monthly:,.0f} allowed"))
    if card.budget_usd is not None and card.job == "training" and s.usd_per_result > card.budget_usd:
        reasons.append(("budget", f"{s.usd_per_result:,.0f} USD for the run, {card.budget_usd:,.0f} allowed"))
    return reasons


def _mark(s: Survivor, best: Survivor) -> Survivor:
    from dataclasses import replace

    return replace(s, separable=s is best or s.low > best.high)
