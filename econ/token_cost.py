"""Cost per million tokens of a model on an accelerator under a latency target: the engine joined to an hour's price."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Protocol

from econ.throughput_check import CheckedThroughput, EngineRate, check_throughput
from econ.tokens import ClassCosts, StepTimes, TokenCostError, class_costs, denominators
from econ.usage import TokenUsage
from econ.use_chain import UseChain
from supply.paths import data_dir, data_file

__all__ = [
    "Engine",
    "NoFitError",
    "ServingPoint",
    "TokenCost",
    "Workload",
    "cheapest_point",
    "token_cost",
    "workload",
    "workloads",
]


class NoFitError(TokenCostError):
    """No layout of the model fits the accelerator; the message holds the engine's reason."""


@dataclass(frozen=True)
class Workload:
    """Request shape, cache use and latency target of a service; lengths are means, in tokens.

    `cache_hit_share` and `cache_write_share` are shares of the prompt. A target of None is none; `targets_at` says
    whether it binds the mean or the 99th percentile. `mean_requests_per_s` with `peak_over_mean` is the load of the
    whole service where provisioning is wanted.
    """

    name: str
    prompt_tokens: float
    output_tokens: float
    cache_hit_share: float = 0.0
    cache_write_share: float = 0.0
    ttft_target_s: float | None = None
    tpot_target_s: float | None = None
    mean_requests_per_s: float | None = None
    peak_over_mean: float = 1.0
    targets_at: Literal["mean", "p99"] = "mean"
    source: str = ""

    def __post_init__(self) -> None:
        if self.targets_at not in ("mean", "p99"):
            raise TokenCostError(f"workload {self.name!r}: targets_at {self.targets_at!r} is mean or p99")
        if self.prompt_tokens < 0 or self.output_tokens < 1:
            raise TokenCostError(
                f"workload {self.name!r}: {self.prompt_tokens:g} prompt and {self.output_tokens:g} output tokens; "
                "a request has at least one output token"
            )
        hit, write = self.cache_hit_share, self.cache_write_share
        if hit < 0 or write < 0 or hit + write > 1:
            raise TokenCostError(
                f"workload {self.name!r}: cache hit {hit:g} and write {write:g} are shares of the prompt, so "
                "their sum is at most 1"
            )
        for target in (self.ttft_target_s, self.tpot_target_s):
            if target is not None and not target > 0:
                raise TokenCostError(f"workload {self.name!r}: a latency target of {target} s cannot be met")

    @property
    def usage(self) -> TokenUsage:
        """Tokens of one request by class."""
        read, write = self.prompt_tokens * self.cache_hit_share, self.prompt_tokens * self.cache_write_share
        return TokenUsage(self.prompt_tokens - read - write, write, read, self.output_tokens)

    def admits(self, ttft_s: float, tpot_s: float) -> bool:
        """True when both latencies meet the targets."""
        first = self.ttft_target_s is None or ttft_s <= self.ttft_target_s
        return first and (self.tpot_target_s is None or tpot_s <= self.tpot_target_s)


@dataclass(frozen=True)
class ServingPoint:
    """One operating point of the engine: rates are per accelerator, `output` counts output tokens.

    `most_sessions` is how many requests of this length the replica's memory holds.
    """

    concurrency: float
    accelerators: int
    ttft_s: float
    tpot_s: float
    requests_per_s_per_accelerator: float
    output: EngineRate
    times: StepTimes
    ttft_p99_s: float | None = None
    tpot_p99_s: float | None = None
    most_sessions: float | None = None

    def latencies_s(self, load: Workload) -> tuple[float, float]:
        """First-token time and time per token at the percentile that the workload's targets bind.

        A source without percentiles is held to the mean.
        """
        if load.targets_at == "mean" or self.ttft_p99_s is None or self.tpot_p99_s is None:
            return self.ttft_s, self.tpot_s
        return self.ttft_p99_s, self.tpot_p99_s


class Engine(Protocol):
    """Anything that predicts operating points: the per-token engine, a table of measurements, or a test double."""

    def points(self, model: str, hardware: str, load: Workload, **setup: Any) -> Iterable[ServingPoint]:
        """Operating points over layouts and concurrencies that fit the hardware, for one workload."""


@dataclass(frozen=True)
class TokenCost:
    """USD per million tokens of a model on an accelerator.

    `classes` at the best estimate; `low` and `high` scale every class alike (the engine's error); `by_denominator`
    holds the same spending over output, input, total and weighted tokens.
    """

    model: str
    hardware: str
    workload: Workload
    usd_per_gpu_hour: float
    use: UseChain
    point: ServingPoint
    rate: CheckedThroughput
    classes: ClassCosts
    by_denominator: Mapping[str, float]

    @property
    def usd_per_mtoken(self) -> Mapping[str, float]:
        """Best estimate by class."""
        return self.classes.usd_per_mtoken

    @property
    def low_factor(self) -> float:
        """Low end of the cost over its best estimate (the engine's fast end)."""
        return self.rate.tokens_per_s / self.rate.high

    @property
    def high_factor(self) -> float:
        """High end of the cost over its best estimate (the engine's slow end)."""
        return self.rate.tokens_per_s / self.rate.low

    @property
    def low(self) -> dict[str, float]:
        """Low end by class."""
        return {k: v * self.low_factor for k, v in self.usd_per_mtoken.items()}

    @property
    def high(self) -> dict[str, float]:
        """High end by class."""
        return {k: v * self.high_factor for k, v in self.usd_per_mtoken.items()}

    @property
    def gpu_s_per_mtoken(self) -> dict[str, float]:
        """Paid accelerator-seconds per million tokens by class."""
        if self.usd_per_gpu_hour == 0:
            raise TokenCostError("accelerator-seconds by class need an hour price above 0")
        return {k: v / self.usd_per_gpu_hour * 3600 for k, v in self.usd_per_mtoken.items()}

    def kwh_per_mtoken(self, facility_watts: float, idle_watts: float = 0.0) -> dict[str, float]:
        """Facility energy per million tokens by class: paid accelerator-seconds x mean watts (PUE already in).

        Hours that are paid and not computing draw `idle_watts`.
        """
        busy = float(self.use.computing_share_of_sold)
        mean_watts = facility_watts * busy + idle_watts * (1 - busy)
        return {k: seconds * mean_watts / 3.6e6 for k, seconds in self.gpu_s_per_mtoken.items()}


def cheapest_point(points: Iterable[ServingPoint], load: Workload) -> ServingPoint:
    """The point with the most requests/s per accelerator among those that meet the latency targets.

    Raises:
        TokenCostError: when no point exists or none meets the targets; the message gives the nearest miss.
    """
    candidates = list(points)
    if not candidates:
        raise NoFitError(f"no operating point for workload {load.name!r}: the model does not fit any layout tried")
    meeting = [p for p in candidates if load.admits(*p.latencies_s(load))]
    if meeting:
        return max(meeting, key=lambda p: p.requests_per_s_per_accelerator)
    nearest = min(candidates, key=lambda p: _miss(p, load))
    ttft_s, tpot_s = nearest.latencies_s(load)
    raise TokenCostError(
        f"no layout or batch meets the targets of workload {load.name!r} (TTFT {load.ttft_target_s} s, TPOT "
        f"{load.tpot_target_s} s, {load.targets_at}): the nearest reaches TTFT {ttft_s:.3g} s and TPOT {tpot_s:.3g} s "
        f"on {nearest.accelerators} accelerators at {nearest.concurrency:g} requests in flight"
    )


def _miss(point: ServingPoint, load: Workload) -> float:
    """Latency over target, the worse of the two."""
    pairs = zip(point.latencies_s(load), (load.ttft_target_s, load.tpot_target_s), strict=True)
    return max(0.0 if target is None else value / target for value, target in pairs)


def token_cost(
    model: str,
    hardware: str,
    usd_per_gpu_hour: float,
    workload: Workload | str,
    use: UseChain | None = None,
    *,
    quoted_tokens_per_s: float | None = None,
    engine: Engine | None = None,
    **setup: Any,
) -> TokenCost:
    """Cost per million tokens by class, from the cheapest operating point that meets the workload's latency targets.

    `usd_per_gpu_hour` is per sold (paid) hour; `use` says what part of it computes. `quoted_tokens_per_s` is an output
    rate per accelerator that replaces the engine's after the check. `setup` goes to the engine: `tp`, `weight_format`,
    `kv_format`, `framework`, `concurrency`.

    Raises:
        TokenCostError: when no operating point meets the targets.
        ImpossibleThroughputError: when the quote is above the ceiling of the set-up.
    """
    load = _workload(workload) if isinstance(workload, str) else workload
    chain = use or UseChain()
    if not 0 <= usd_per_gpu_hour < float("inf"):
        raise TokenCostError(f"an accelerator-hour at {usd_per_gpu_hour} USD: give a finite price that is not negative")
    source = engine or default_engine()
    point = cheapest_point(source.points(model, hardware, load, **setup), load)
    rate = check_throughput(point.output, quoted_tokens_per_s)
    paid_s = 1 / (rate.tokens_per_s / load.output_tokens * float(chain.computing_share_of_sold))
    spend = usd_per_gpu_hour / 3600 * paid_s
    classes = class_costs(load.usage, point.times, spend)
    return TokenCost(
        model, hardware, load, usd_per_gpu_hour, chain, point, rate, classes, denominators(load.usage, spend)
    )


def default_engine() -> Engine:
    """The per-token engine of `econ.performance`."""
    from econ.engine_link import performance_engine

    return performance_engine()


def workloads() -> list[str]:
    """Names of the shipped workloads."""
    return sorted(p.stem for p in (data_dir() / "cases" / "workloads").glob("*.yaml"))


def workload(name: str, **changes: Any) -> Workload:
    """A shipped workload by name, with changed fields.

    Raises:
        TokenCostError: unknown name; the message lists the shipped ones.
    """
    return replace(_workload(name), **changes)


@lru_cache(maxsize=64)
def _workload(name: str) -> Workload:
    if name not in workloads():
        raise TokenCostError(f"no workload {name!r}: shipped ones are {', '.join(workloads())}, or pass a Workload")
    return load_workload(data_file("cases", "workloads", f"{name}.yaml"))


def load_workload(path: Path) -> Workload:
    """Read a workload file; a number may be written `{fact: ID}`.

    Raises:
        TokenCostError: unknown keys, with the file and the known ones.
    """
    from econ.case_files import read_case

    return read_case(path, Workload, TokenCostError)
