"""Cost of a training run: operations, accelerator-hours, energy, staff, experiments; rental, amortised and purchase
views.

Operations are counted twice and shown side by side: 6 N D, and layer by layer with attention. Elapsed time comes from
the step-time engine and the goodput of the cluster; every view is in USD of the prices given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from econ.failures import FailureError, require_positive
from econ.performance.training import training_flops_per_token
from econ.performance.training_model import TrainingModel
from supply.facts import catalog

__all__ = [
    "RunCost",
    "RunPlan",
    "TrainingRunError",
    "accelerator_hours",
    "accelerator_years",
    "amortised_usd_per_chip_hour",
    "classify_training_rate",
    "cluster_purchase_usd",
    "days_at_rate",
    "detailed_operations",
    "elapsed_days",
    "energy_mwh",
    "implied_mfu",
    "rent_of_days",
    "rental_usd",
    "run_cost",
    "tokens_per_s_of_log",
    "training_days",
    "training_operations",
    "training_over_inference",
]

HOURS_PER_YEAR = 8766.0


class TrainingRunError(ValueError):
    """An input of a training-run cost that cannot be."""


def training_operations(params: float, tokens: float, factor: float = 6.0) -> float:
    """Operations of a run: factor x parameters x tokens (6: two forward, four backward). Active parameters for experts.

    >>> f"{training_operations(70e9, 15e12):.2e}"
    '6.30e+24'
    """
    _check(params=params, tokens=tokens, factor=factor)
    return factor * params * tokens


def training_over_inference(forward: float = 2.0, backward: float = 4.0) -> float:
    """Operations a token of training over those of inference: (forward + backward) / forward.

    >>> training_over_inference()
    3.0
    """
    _check(forward=forward)
    if backward < 0:
        raise TrainingRunError(f"backward = {backward!r} must not be negative")
    return (forward + backward) / forward


def detailed_operations(
    model: TrainingModel, tokens: float, sequence: float, attention: str = "causal", adapters_only: bool = False
) -> float:
    """Operations counted layer by layer: parameters that multiply, output head, attention scores.

    >>> from econ.performance.training_model import training_model
    >>> llama = training_model("Llama-3.1-405B")
    >>> round(detailed_operations(llama, 15.6e12, 8192) / training_operations(405.85e9, 15.6e12), 3)
    1.036
    """
    _check(tokens=tokens, sequence=sequence)
    return tokens * training_flops_per_token(model, sequence, attention, adapters_only=adapters_only)


def accelerator_hours(operations: float, flop_per_s: float, achieved_share: float = 1.0) -> float:
    """Accelerator-hours: operations / (rate x achieved share) / 3600. A sustained rate already holds its share.

    >>> round(accelerator_hours(1e26, 1e15) / 1e6, 1), round(accelerator_hours(1e26, 1e15, 0.30) / 1e6, 1)
    (27.8, 92.6)
    """
    _check(operations=operations, flop_per_s=flop_per_s, achieved_share=achieved_share)
    if achieved_share > 1:
        raise TrainingRunError(f"achieved_share = {achieved_share!r} is above one: no run exceeds the dense peak")
    return operations / (flop_per_s * achieved_share) / 3600


def accelerator_years(hours: float) -> float:
    """Accelerator-years of accelerator-hours (365.25 days).

    >>> round(accelerator_years(accelerator_hours(1e26, 1e15)))
    3169
    """
    return hours / HOURS_PER_YEAR


def training_days(operations: float, accelerators: float, flop_per_s: float, achieved_share: float) -> float:
    """Days of computing on a number of accelerators, before failures.

    >>> round(training_days(6.3e24, 4096, 1e15, 0.40), 3)
    44.505
    """
    _check(accelerators=accelerators)
    return accelerator_hours(operations, flop_per_s, achieved_share) / accelerators / 24


def days_at_rate(tokens: float, tokens_per_s: float, goodput: float = 1.0) -> float:
    """Days to train on tokens at a measured rate of the whole job; goodput below one adds failures and restarts.

    >>> round(days_at_rate(15e12, 1.154e6), 1)
    150.4
    """
    _check(tokens=tokens, tokens_per_s=tokens_per_s, goodput=goodput)
    if goodput > 1:
        raise TrainingRunError(f"goodput = {goodput!r} is a share of elapsed time, at most one")
    return tokens / tokens_per_s / goodput / 86_400


def implied_mfu(tokens_per_s: float, params: float, accelerators: float, peak_flop_per_s: float) -> float:
    """Model FLOP utilisation that a measured rate stands for, by 6 N: 6 N x tokens/s / (accelerators x dense peak).

    >>> round(implied_mfu(1.154e6, 70e9, 1024, 989.4e12), 3)
    0.478
    """
    _check(tokens_per_s=tokens_per_s, params=params, accelerators=accelerators, peak_flop_per_s=peak_flop_per_s)
    return 6 * params * tokens_per_s / (accelerators * peak_flop_per_s)


def tokens_per_s_of_log(
    tokens_per_step_per_rank: float, ranks: int, step_s: float, tp: int = 1, pp: int = 1, cp: int = 1
) -> float:
    """Tokens/s of a job from its per-rank log: only data-parallel ranks see different tokens.

    `ranks` is the number of workers; tensor-, pipeline- and context-parallel workers of one replica share its tokens.

    >>> tokens_per_s_of_log(4096, ranks=16, step_s=2.0, tp=4)
    8192.0
    """
    _check(tokens_per_step_per_rank=tokens_per_step_per_rank, ranks=ranks, step_s=step_s)
    shared = tp * pp * cp
    if shared < 1 or ranks % shared:
        raise TrainingRunError(f"{ranks} ranks do not divide by tp x pp x cp = {shared}")
    return tokens_per_step_per_rank * (ranks // shared) / step_s


#: Shares of the dense peak between which published dense runs lie (Epoch table and calibration rows: 0.15 to 0.70).
PLAUSIBLE_MFU = (0.15, 0.70)


def classify_training_rate(
    tokens_per_s: float, params: float, accelerators: float, peak_flop_per_s: float
) -> tuple[str, float]:
    """Whether a training rate can be: impossible, optimistic, consistent or pessimistic, and its implied MFU.

    >>> verdict, share = classify_training_rate(8e9 / (8 * 3600), 1.5e9, 1, 154.8e12)
    >>> verdict, round(share, 1)
    ('impossible', 16.1)
    """
    share = implied_mfu(tokens_per_s, params, accelerators, peak_flop_per_s)
    low, high = PLAUSIBLE_MFU
    if share > 1:
        return "impossible", share
    if share > high:
        return "optimistic", share
    return ("consistent" if share >= low else "pessimistic"), share


def rental_usd(hours: float, usd_per_accelerator_hour: float) -> float:
    """Rent of accelerator-hours.

    >>> rental_usd(accelerator_hours(6.3e24, 1e15, 0.40), 2.0)
    8750000.0
    """
    if hours < 0 or usd_per_accelerator_hour < 0:
        raise TrainingRunError(f"hours {hours!r} and price {usd_per_accelerator_hour!r} must not be negative")
    return hours * usd_per_accelerator_hour


def rent_of_days(accelerators: float, days: float, usd_per_accelerator_hour: float) -> float:
    """Rent of a cluster by the day: accelerators x days x 24 x price.

    >>> rent_of_days(1000, 30, 2.50)
    1800000.0
    """
    return rental_usd(accelerators * days * 24, usd_per_accelerator_hour)


def cluster_purchase_usd(accelerators: float, usd_per_accelerator: float, network_share: float | None = None) -> float:
    """Purchase of a cluster: accelerators x price with server / (1 - share of the network), a fact by default.

    >>> round(cluster_purchase_usd(6144, 44489.9, 0.19) / 1e6, 1)
    337.5
    """
    share = _share("Epoch AI cost model", "interconnect_share_of_cluster_cost", network_share)
    _check(accelerators=accelerators, usd_per_accelerator=usd_per_accelerator)
    return accelerators * usd_per_accelerator / (1 - share)


def amortised_usd_per_chip_hour(
    usd_per_accelerator: float,
    age_years: float,
    decline_orders_per_year: float | None = None,
    network_share: float | None = None,
) -> float:
    """Fall of market value of one accelerator (with its part of server and network) in one hour, at an age.

    Value is price x 10^(-d t); its fall an hour is value x d x ln 10 / 8766 (Epoch AI; d = 0.14 orders a year).

    >>> round(amortised_usd_per_chip_hour(24_875, 1.0, 0.14, 0.19), 3)
    0.818
    """
    decline = decline_orders_per_year
    if decline is None:
        decline = catalog().select("Epoch AI cost model", "hardware_value_decline").number
    if age_years < 0 or decline <= 0:
        raise TrainingRunError(f"age {age_years!r} years must not be negative and decline {decline!r} positive")
    share = _share("Epoch AI cost model", "interconnect_share_of_cluster_cost", network_share)
    value = usd_per_accelerator / (1 - share) * 10 ** (-decline * age_years)
    return value * decline * math.log(10) / HOURS_PER_YEAR


def energy_mwh(hours: float, peak_server_kw: float, power_fraction: float | None = None, pue: float = 1.0) -> float:
    """Electricity at the meter: hours x peak server kW an accelerator x mean share of peak x PUE (once), in MWh.

    >>> round(energy_mwh(1_050_000, 10.2 / 8, 0.51), 0)
    683.0
    """
    share = _share("Epoch AI cost model", "average_power_fraction_gpu", power_fraction)
    _check(peak_server_kw=peak_server_kw, pue=pue)
    if pue < 1:
        raise TrainingRunError(f"pue = {pue!r} is facility over IT power, at least one")
    return hours * peak_server_kw * share * pue / 1000


def elapsed_days(compute_days: float, goodput_share: float, queue_days: float = 0.0) -> float:
    """Elapsed days: computing / goodput + waiting.

    >>> elapsed_days(45.0, 0.9)
    50.0
    """
    if not 0 < goodput_share <= 1 or compute_days < 0 or queue_days < 0:
        raise TrainingRunError(f"compute_days {compute_days!r}, goodput {goodput_share!r}, queue_days {queue_days!r}")
    return compute_days / goodput_share + queue_days


@dataclass(frozen=True)
class RunPlan:
    """A run to be priced. Rates are of the whole job; `step_band` are factors of the engine's 90 % band on step
    time."""

    operations_6nd: float
    operations_detailed: float
    accelerators: float
    compute_days: float
    goodput: float
    step_band: tuple[float, float]
    usd_per_accelerator_hour: float
    usd_per_accelerator: float
    peak_server_kw: float
    usd_per_kwh: float
    pue: float
    hardware_age_years: float | None = None
    evaluation_share: float | None = None
    failed_runs_share: float = 0.0
    final_run_share: float | None = None
    staff_share: float | None = None


@dataclass(frozen=True)
class RunCost:
    """Cost of the final run by three views, what comes around it, and elapsed days with a band (USD)."""

    accelerator_hours: float
    elapsed_days: float
    elapsed_low: float
    elapsed_high: float
    energy_mwh: float
    energy_usd: float
    rental_usd: float
    amortised_usd: float
    purchase_usd: float
    experiments_usd: float
    staff_usd: float
    development_usd: float

    @property
    def views(self) -> Mapping[str, float]:
        """The three views of the final run, in USD: what is rented, what is used up, what must be bought."""
        return {"rental": self.rental_usd, "amortised": self.amortised_usd, "purchase": self.purchase_usd}


def run_cost(plan: RunPlan) -> RunCost:
    """Price a plan. Evaluation and failed runs add hours; experiments follow from the final run's share of research
    compute.

    Amortised view: market-value fall plus energy. Development: rental of final run and experiments, plus staff as a
    share.

    Raises:
        TrainingRunError: for a share out of range.
    """
    facts = catalog()
    evaluation = _given(plan.evaluation_share, facts["training_evaluation_share"].number, "evaluation_share")
    final = _given(plan.final_run_share, facts["training_final_run_share"].number, "final_run_share")
    staff = _given(plan.staff_share, facts["training_staff_share"].number, "staff_share")
    failed = _given(plan.failed_runs_share, 0.0, "failed_runs_share")
    days = elapsed_days(plan.compute_days * (1 + evaluation), plan.goodput) / (1 - failed)
    hours = days * 24 * plan.accelerators
    energy = energy_mwh(hours, plan.peak_server_kw, pue=plan.pue)
    energy_usd = energy * 1000 * plan.usd_per_kwh
    rental = rental_usd(hours, plan.usd_per_accelerator_hour)
    lag_days = facts.select("Epoch AI cost model", "acquisition_to_training_lag").number
    age = lag_days / 365.25 if plan.hardware_age_years is None else plan.hardware_age_years
    worn = hours * amortised_usd_per_chip_hour(plan.usd_per_accelerator, age) + energy_usd
    experiments = rental * (1 / final - 1)
    staff_usd = (rental + experiments) * staff / (1 - staff)
    low, high = plan.step_band
    return RunCost(
        hours,
        days,
        days * low,
        days * high,
        energy,
        energy_usd,
        rental,
        worn,
        cluster_purchase_usd(plan.accelerators, plan.usd_per_accelerator),
        experiments,
        staff_usd,
        rental + experiments + staff_usd,
    )


def _given(value: float | None, default: float, name: str) -> float:
    number = default if value is None else value
    if not 0 <= number < 1 or (name == "final_run_share" and number == 0):
        raise TrainingRunError(f"{name} = {number!r} is a share, 0 to 1")
    return number


def _share(subject: str, quantity: str, value: float | None) -> float:
    number = catalog().select(subject, quantity).number if value is None else value
    if not 0 <= number < 1:
        raise TrainingRunError(f"{quantity} = {number!r} is a share, 0 to 1")
    return number


def _check(**values: float) -> None:
    try:
        require_positive(**values)
    except FailureError as error:
        raise TrainingRunError(str(error)) from error
