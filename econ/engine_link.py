"""The per-token engine as cost models take it: operating points, ceilings and stand-alone token times.

Layouts and batches are searched as arrays; only the points that a decision can need are worked out in full: the best
one that meets the latency targets, the nearest miss, and the smallest group that holds the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from econ.performance.answers import TPOT_TAIL, TTFT_TAIL
from econ.performance.quoted_rates import ceiling
from econ.performance.serving import (
    EngineError,
    OperatingPoint,
    OperatingPoints,
    operating_point,
    operating_points,
)
from econ.throughput_check import EngineRate
from econ.token_cost import Engine, NoFitError, ServingPoint, Workload
from econ.tokens import StepTimes, TokenCostError

__all__ = ["PerformanceEngine", "performance_engine"]

Array = NDArray[np.float64]
Options = dict[str, Any]
CONCURRENCIES = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048)
WIDTHS = ((1, 2, 4, 8), (16, 32, 64))
#: Share of the prompt taken as cached where a workload states none, to find what a cached token costs.
PROBE_SHARE = 0.5
LAYOUT_KEYS = ("tp", "pp", "ep", "dp")


@dataclass(frozen=True)
class _Grid:
    """Layouts x concurrencies as columns, with what the engine says of each."""

    layouts: Sequence[tuple[int, int, int, int]]
    concurrency: Array
    index: NDArray[np.int64]
    points: OperatingPoints


class PerformanceEngine:
    """Operating points from `econ.performance.serving`.

    Set-up options: `weight_format`, `kv_format`, `framework`, `speculative_tokens`; `tp`, `pp`, `ep`, `dp` and
    `concurrency` fix what is otherwise searched; `most_accelerators` limits a replica (default 64).
    """

    def points(self, model: str, hardware: str, load: Workload, **setup: Any) -> list[ServingPoint]:
        """The best point within the targets, the nearest miss and the smallest group, without repeats.

        Raises:
            NoFitError: when no layout holds the model and one request.
            TokenCostError: for an unknown model, accelerator, format or set-up option.
        """
        fixed = {k: setup.pop(k) for k in (*LAYOUT_KEYS, "concurrency") if k in setup}
        most = int(setup.pop("most_accelerators", 64))
        known = ("weight_format", "kv_format", "framework", "speculative_tokens")
        unknown = [k for k in setup if k not in known]
        if unknown:
            raise TokenCostError(f"unknown set-up option {unknown[0]!r}: one of {', '.join((*fixed, *known))}")
        shape: Options = {"isl": load.prompt_tokens, "osl": load.output_tokens, "prefix_hit": load.cache_hit_share}
        try:
            grid = _search(model, hardware, shape, fixed, most, setup)
            chosen = _choose(grid, load)
            return [self._point(model, hardware, load, shape, setup, grid, i) for i in chosen]
        except EngineError as problem:
            raise TokenCostError(f"{model} on {hardware}: {problem}") from problem

    def _point(
        self,
        model: str,
        hardware: str,
        load: Workload,
        shape: Options,
        setup: Options,
        grid: _Grid,
        i: int,
    ) -> ServingPoint:
        layout: Options = dict(zip(LAYOUT_KEYS, grid.layouts[grid.index[i]], strict=True))
        users = float(grid.concurrency[i])
        point = operating_point(model, hardware, concurrency=users, **layout, **shape, **setup)
        top = _ceiling(model, hardware, layout, shape, setup)
        predicted = point.output_tokens_per_s_per_accelerator
        low, high = point.output_band
        words = " ".join(f"{k.upper()}{v}" for k, v in layout.items() if v > 1) or "one accelerator"
        rate = EngineRate(
            predicted,
            min(low, predicted),
            max(predicted, min(high, top)),
            max(top, predicted),
            point.confidence,
            point.limited_by,
            f"{point.model} on {point.hardware} ({setup.get('weight_format') or 'published format'}, {words}, "
            f"{users:g} users, {load.prompt_tokens:g} + {load.output_tokens:g} tokens)",
            "peak arithmetic and memory bandwidth, prefill included, as many requests as the cache holds",
        )
        return ServingPoint(
            users,
            int(point.accelerators),
            point.ttft_s,
            point.tpot_s,
            predicted / load.output_tokens,
            rate,
            _times(point, model, hardware, load, users, layout, setup),
            point.ttft_s * TTFT_TAIL,
            point.tpot_s * TPOT_TAIL,
            point.largest_batch,
        )


def _search(model: str, hardware: str, shape: Options, fixed: Options, most: int, setup: Options) -> _Grid:
    """The first set of widths on which something fits, small groups before large ones."""
    for widths in WIDTHS:
        layouts = _layouts(widths, fixed, most)
        if not layouts:
            continue
        grid = _grid(model, hardware, shape, fixed, layouts, setup)
        if grid.points.fits.any():
            return grid
    width = int(fixed.get("tp", min(8, most)))
    try:
        operating_point(model, hardware, concurrency=1, tp=width, **shape, **setup)
        reason = f"no layout of at most {most} accelerators holds one request"
    except EngineError as problem:
        reason = str(problem)
    raise NoFitError(reason)


def _layouts(widths: Sequence[int], fixed: Options, most: int) -> list[tuple[int, int, int, int]]:
    """Distinct (TP, PP, EP, DP): experts over one or all ranks; data-parallel attention in eights."""
    tensor = (int(fixed["tp"]),) if "tp" in fixed else tuple(widths)
    stages = (int(fixed.get("pp", 1)),)
    replicas = (int(fixed["dp"]),) if "dp" in fixed else (1, 8)
    out = []
    for tp, pp, dp in product(tensor, stages, replicas):
        experts = (int(fixed["ep"]),) if "ep" in fixed else tuple(dict.fromkeys((1, tp * dp)))
        out += [(tp, pp, ep, dp) for ep in experts if tp * pp * dp <= most]
    return out


def _grid(
    model: str,
    hardware: str,
    shape: Options,
    fixed: Options,
    layouts: Sequence[tuple[int, int, int, int]],
    setup: Options,
) -> _Grid:
    users = np.array([fixed["concurrency"]] if "concurrency" in fixed else CONCURRENCIES, dtype=float)
    index = np.repeat(np.arange(len(layouts)), len(users))
    columns = np.array(layouts, dtype=float)[index].T
    concurrency = np.tile(users, len(layouts))
    names: Options = dict(zip(LAYOUT_KEYS, columns, strict=True))
    found = operating_points(model, hardware, concurrency=concurrency, **names, **shape, **setup)
    # fewer users than data-parallel ranks leave ranks empty: not an operating point of that layout
    fits = found.fits & (concurrency >= columns[3]) & np.isfinite(found.output_tokens_per_s_per_accelerator)
    return _Grid(layouts, concurrency, index, _with_fits(found, fits))


def _with_fits(points: OperatingPoints, fits: NDArray[np.bool_]) -> OperatingPoints:
    return replace(points, fits=fits)


def _choose(grid: _Grid, load: Workload) -> list[int]:
    """Rows worth working out: best within the targets, nearest miss, smallest group."""
    p = grid.points
    tail = load.targets_at == "p99"
    first = p.ttft_s * (TTFT_TAIL if tail else 1.0)
    each = p.tpot_s * (TPOT_TAIL if tail else 1.0)
    with np.errstate(invalid="ignore"):
        miss = np.maximum(_over(first, load.ttft_target_s), _over(each, load.tpot_target_s))
    miss = np.where(p.fits, miss, np.inf)
    rate = np.where(p.fits & (miss <= 1), p.output_tokens_per_s_per_accelerator, -np.inf)
    size = np.where(p.fits, p.accelerators, np.inf)
    rows = [int(np.argmin(miss)), int(np.argmin(size))]
    if np.isfinite(rate).any():
        rows.insert(0, int(np.argmax(rate)))
    return list(dict.fromkeys(rows))


def _over(value: Array, target: float | None) -> Array:
    return np.zeros_like(value) if target is None else value / target


def _ceiling(model: str, hardware: str, layout: Options, shape: Options, setup: Options) -> float:
    options: Options = {k: v for k, v in setup.items() if k != "framework"}
    sizes: Options = {k: layout[k] for k in ("tp", "pp", "dp")}
    return ceiling(model, hardware, **sizes, **shape, **options)


def _times(
    point: OperatingPoint,
    model: str,
    hardware: str,
    load: Workload,
    users: float,
    layout: Options,
    setup: Options,
) -> StepTimes:
    """Accelerator-seconds a token of each class by itself.

    Prefill work inside full chunks on one copy of the layout gives a fresh token (written or not); the same prompt with
    a part cached gives a cached one; the decode step at the point's batch gives an output token.
    """
    copy = layout["tp"] * layout["pp"]
    options: Options = {"isl": load.prompt_tokens, "osl": load.output_tokens, "concurrency": users, **layout, **setup}
    fresh = operating_point(model, hardware, **options).prefill_s_per_token * copy
    share = load.cache_hit_share or PROBE_SHARE
    mixed = operating_point(model, hardware, prefix_hit=share, **options).prefill_s_per_token * copy
    cached = max(0.0, (mixed - fresh * (1 - share)) / share)
    output = point.decode_step_s * point.accelerators / point.running_batch
    return StepTimes(fresh, fresh, min(cached, fresh), output)


@lru_cache(maxsize=1)
def performance_engine() -> Engine:
    """The shared engine."""
    return PerformanceEngine()
