"""Search over layouts, batches, formats and modes: the front of throughput per accelerator against user speed.

Every combination is one row of arrays that the serving model evaluates at once; what does not fit or cannot be laid out
is counted by reason, never returned as the best of nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from econ.performance.load_models import Served, batch_limit, closed_loop, disaggregated
from econ.performance.parameters import ParameterSet
from econ.performance.requests import EngineError, Request, build_setups, make_request
from econ.performance.setups import Load, Setups
from econ.performance.steps import constants, decode_step
from econ.performance.tables import serving_parameters

__all__ = ["Front", "Option", "SearchError", "SearchSpace", "best", "explain", "front", "what_if"]

Array = NDArray[np.float64]
POWERS = (1, 2, 4, 8)
CONCURRENCIES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048)
#: Prefill and decode workers of a disaggregated set-up, in copies of the layout.
WORKER_RATIOS = ((1, 1), (1, 2), (1, 3), (2, 1))


class SearchError(ValueError):
    """No set-up of the space can run, or none meets the target; the message says what was nearest and why."""


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """What to try: parallel degrees, batches (users per deployment), formats and modes."""

    tp: Sequence[int] = POWERS
    pp: Sequence[int] = (1,)
    ep: Sequence[int] = (1, 8)
    dp: Sequence[int] = (1, 8)
    concurrency: Sequence[int] = CONCURRENCIES
    weight_formats: Sequence[str] = ("",)
    kv_formats: Sequence[str] = ("",)
    modes: Sequence[str] = ("aggregated",)
    most_accelerators: int = 64

    def layouts(self) -> list[tuple[int, int, int, int]]:
        """Distinct (TP, PP, EP, DP) within the accelerator limit; EP is 1 or all ranks of TP x DP."""
        return [
            (tp, pp, ep, dp)
            for tp, pp, ep, dp in product(self.tp, self.pp, self.ep, self.dp)
            if tp * pp * dp <= self.most_accelerators and ep in (1, tp * dp)
        ]


@dataclass(frozen=True, slots=True)
class Option:
    """One set-up and what it delivers: seconds, tokens/s for one user, output tokens/s per accelerator."""

    tp: int
    pp: int
    ep: int
    dp: int
    concurrency: int
    weight_format: str
    kv_format: str
    mode: str
    accelerators: int
    ttft_s: float
    tpot_s: float
    user_tokens_per_s: float
    tokens_per_s_per_accelerator: float

    def usd_per_million_output_tokens(self, usd_per_accelerator_hour: float) -> float:
        """Rent over output: USD/h / (tokens/s x 3600) x 1e6; input tokens are not priced here."""
        return usd_per_accelerator_hour / (self.tokens_per_s_per_accelerator * 3600) * 1e6

    @property
    def layout(self) -> str:
        """The set-up in words."""
        parts = [f"{k}{v}" for k, v in (("TP", self.tp), ("PP", self.pp), ("EP", self.ep), ("DP", self.dp)) if v > 1]
        return f"{' '.join(parts) or 'one accelerator'}, {self.concurrency} users, {self.mode}"


@dataclass(frozen=True, slots=True)
class Front:
    """The front, fastest user first; how many set-ups were evaluated, and why the others were not."""

    model: str
    hardware: str
    points: tuple[Option, ...]
    options: tuple[Option, ...]
    evaluated: int
    refused: Mapping[str, int]


@dataclass(frozen=True)
class _Case:
    request: Request
    labels: tuple[str, str, str]
    workers: tuple[int, int]


def front(
    model: str,
    hardware: str,
    *,
    isl: int,
    osl: int,
    space: SearchSpace | None = None,
    framework: str = "",
    parameters: ParameterSet | None = None,
    scale: Mapping[str, float] | None = None,
) -> Front:
    """Front of output tokens/s per accelerator against tokens/s of one user, over the whole space.

    `scale` multiplies rates of the hardware (`memory_bytes_per_s`, `link_bytes_per_s`, `peak_dense` ...) for a what-if.

    Raises:
        SearchError: when nothing of the space can run, with the commonest reasons.
    """
    tried = space or SearchSpace()
    fitted = parameters or serving_parameters()
    cases, refused = _cases(model, hardware, isl, osl, tried, framework, scale or {})
    options = [o for case_group in _by_mode(cases) for o in _evaluate(case_group, tried, fitted, refused)]
    if not options:
        why = "; ".join(f"{n} x {r}" for r, n in refused.most_common(3))
        raise SearchError(f"no set-up of {model} on {hardware} can run: {why}")
    return Front(
        model, hardware, tuple(_pareto(options)), tuple(options), len(options), {k: n for k, n in refused.items() if n}
    )


def _cases(
    model: str,
    hardware: str,
    isl: int,
    osl: int,
    space: SearchSpace,
    framework: str,
    scale: Mapping[str, float],
) -> tuple[list[_Case], Counter[str]]:
    cases: list[_Case] = []
    refused: Counter[str] = Counter()
    for (tp, pp, ep, dp), weight, kv in product(space.layouts(), space.weight_formats, space.kv_formats):
        load = Load(isl, osl, 1.0, tp, pp, ep, dp)
        try:
            request = make_request(model, hardware, load, weight_format=weight, kv_format=kv, framework=framework)
        except EngineError as problem:
            refused[str(problem)] += 1
            continue
        if scale:
            rates = replace(request.rates, **{k: getattr(request.rates, k) * v for k, v in scale.items()})
            request = replace(request, rates=rates)
        for mode in space.modes:
            for workers in WORKER_RATIOS if mode == "disaggregated" else ((1, 0),):
                if tp * pp * dp * sum(workers) <= space.most_accelerators:
                    cases.append(_Case(request, (weight, kv, mode), workers))
    return cases, refused


def _by_mode(cases: Sequence[_Case]) -> Iterable[list[_Case]]:
    for mode in sorted({c.labels[2] for c in cases}):
        yield [c for c in cases if c.labels[2] == mode]


def _evaluate(
    cases: Sequence[_Case], space: SearchSpace, parameters: ParameterSet, refused: Counter[str]
) -> list[Option]:
    """All cases at all batches in one array evaluation."""
    base = build_setups([c.request for c in cases], parameters)
    repeats = len(space.concurrency)
    index = np.repeat(np.arange(len(cases)), repeats)
    users = np.tile(np.asarray(space.concurrency, float), len(cases))
    setups = base.take(index).replaced(concurrency=users)
    fitted = constants(parameters, setups)
    limit = batch_limit(setups, fitted)
    served, shared = _serve(cases, index, setups, parameters)
    good = (limit >= 1) & np.isfinite(served.output_per_s) & (served.output_per_s > 0)
    room = users / np.maximum(setups.dp, 1.0) <= np.maximum(limit, 1.0)
    refused["weights leave no room for one sequence"] += int((limit < 1).sum())
    refused["users beyond the cache"] += int(((limit >= 1) & ~room).sum())
    keep = np.flatnonzero(good & room)
    return [_option(cases[index[i]], int(users[i]), served, shared, int(i)) for i in keep]


def _serve(
    cases: Sequence[_Case], index: NDArray[np.int64], setups: Setups, parameters: ParameterSet
) -> tuple[Served, Array]:
    """Results and the number of accelerators of each row."""
    fitted = constants(parameters, setups)
    ranks = setups.tp * setups.pp * setups.dp
    if cases[0].labels[2] != "disaggregated":
        return closed_loop(setups, fitted), np.asarray(ranks)
    workers = np.array([cases[i].workers for i in index], dtype=float)
    served, _ = disaggregated(setups, fitted, setups, fitted, workers[:, 0], workers[:, 1])
    return served, np.asarray(ranks * workers.sum(axis=1))


def _option(case: _Case, users: int, served: Served, accelerators: Array, i: int) -> Option:
    load, (weight, kv, mode) = case.request.load, case.labels
    devices = int(accelerators[i])
    copies = case.workers[1] if mode == "disaggregated" else 1
    tpot = float(served.tpot_s[i])
    return Option(
        int(load.tp),
        int(load.pp),
        int(load.ep),
        int(load.dp),
        users,
        weight,
        kv,
        mode,
        devices,
        float(served.ttft_s[i]),
        tpot,
        1.0 / tpot,
        float(served.output_per_s[i]) * (copies if mode == "disaggregated" else 1) / devices,
    )


def _pareto(options: Sequence[Option]) -> list[Option]:
    """Options that no other beats in both user speed and throughput per accelerator, fastest user first."""
    ranked = sorted(options, key=lambda o: (-o.user_tokens_per_s, -o.tokens_per_s_per_accelerator))
    out: list[Option] = []
    highest = -1.0
    for option in ranked:
        if option.tokens_per_s_per_accelerator > highest:
            out.append(option)
            highest = option.tokens_per_s_per_accelerator
    return out


def best(
    found: Front,
    *,
    ttft_s: float | None = None,
    tpot_s: float | None = None,
    user_tokens_per_s: float | None = None,
    most_accelerators: int | None = None,
) -> Option:
    """The set-up with most output per accelerator that meets every target.

    Raises:
        SearchError: when none does; the message gives the nearest one and by how much it misses.
    """
    limits = {"TTFT": ttft_s, "TPOT": tpot_s, "seconds a token": 1 / user_tokens_per_s if user_tokens_per_s else None}
    bounds = {k: v for k, v in limits.items() if v is not None}

    def miss(option: Option) -> float:
        values = {"TTFT": option.ttft_s, "TPOT": option.tpot_s, "seconds a token": option.tpot_s}
        return max((values[k] / v for k, v in bounds.items()), default=0.0)

    pool = [o for o in found.options if most_accelerators is None or o.accelerators <= most_accelerators]
    if not pool:
        raise SearchError(f"no set-up of {found.model} uses at most {most_accelerators} accelerators")
    meeting = [o for o in pool if miss(o) <= 1.0]
    if meeting:
        return max(meeting, key=lambda o: o.tokens_per_s_per_accelerator)
    nearest = min(pool, key=miss)
    raise SearchError(
        f"no set-up of {found.model} on {found.hardware} meets {', '.join(f'{k} {v:g} s' for k, v in bounds.items())}; "
        f"nearest: {nearest.layout} with TTFT {nearest.ttft_s:.3g} s and TPOT {nearest.tpot_s:.3g} s "
        f"({miss(nearest):.2f} times the limit)"
    )


def what_if(
    model: str,
    hardware: str,
    changes: Mapping[str, Mapping[str, float]],
    *,
    isl: int,
    osl: int,
    target_tpot_s: float,
    space: SearchSpace | None = None,
    parameters: ParameterSet | None = None,
) -> dict[str, float]:
    """Gain in best output per accelerator under a TPOT target when rates change.

    `changes` is e.g. `{"2x bandwidth": {"memory_bytes_per_s": 2}, "2x link": {"link_bytes_per_s": 2}}`. The first entry
    of the answer, `base`, is 1; each other is the ratio to it after a search of its own (the best set-up may change).

    Raises:
        SearchError: when the base misses the target.
    """
    base = best(front(model, hardware, isl=isl, osl=osl, space=space, parameters=parameters), tpot_s=target_tpot_s)
    out = {"base": 1.0}
    for name, scale in changes.items():
        changed = front(model, hardware, isl=isl, osl=osl, space=space, parameters=parameters, scale=scale)
        found = best(changed, tpot_s=target_tpot_s)
        out[name] = found.tokens_per_s_per_accelerator / base.tokens_per_s_per_accelerator
    return out


def explain(
    model: str, hardware: str, option: Option, *, isl: int, osl: int, parameters: ParameterSet | None = None
) -> dict[str, float]:
    """Share of a decode step by operator group (weights, experts, attention, collectives, launch) and its bound.

    `compute_over_memory` above 1 says that arithmetic binds, below 1 that bandwidth does.
    """
    fitted = parameters or serving_parameters()
    load = Load(isl, osl, option.concurrency, option.tp, option.pp, option.ep, option.dp)
    request = make_request(model, hardware, load, weight_format=option.weight_format, kv_format=option.kv_format)
    setups = build_setups([request], fitted)
    batch = np.array([max(1.0, option.concurrency / option.dp)])
    step = decode_step(setups, constants(fitted, setups), batch, np.array([isl + osl / 2]))
    total = float(step.total_s[0])
    parts = {name: float(getattr(step, f"{name}_s")[0]) / total for name in PARTS}
    return {**parts, "compute_over_memory": float(step.compute_s[0] / step.memory_s[0]), "step_s": total}


PARTS = ("weights", "experts", "attention", "collectives", "launch")
