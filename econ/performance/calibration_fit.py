"""Least squares on logs: robust loss, priors as residuals, shared levels of groups, leave-out predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from econ.performance.calibration_data import Measurement
from econ.performance.inference_rows import InferenceCase
from econ.performance.kernel_engine import KernelBatch, in_metric
from econ.performance.kernel_rows import KernelCase
from econ.performance.load_models import closed_loop, disaggregated, maximum_throughput, throughput_within
from econ.performance.local import LocalCase, local_codes, local_values
from econ.performance.mlperf import mean_tpot_limit_s
from econ.performance.parameters import ParameterSet, ParameterVector
from econ.performance.requests import build_setups
from econ.performance.setups import Setups
from econ.performance.steps import constants, decode_step, prefill

__all__ = ["KernelProblem", "LocalProblem", "Problem", "ServingProblem", "fit", "leave_out"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
HUBER = 1.5
CLIP = 3.0
#: Residual spread within a group and between groups (log), and weight of a load model, by metric.
SPREAD: Mapping[str, tuple[float, float]] = {
    "tpot_mean": (0.10, 0.0),
    "itl_mean": (0.10, 0.0),
    "ttft_mean": (0.22, 0.25),
    "prefill_time": (0.15, 0.12),
    "throughput_output_tokens_total": (0.12, 0.06),
    "throughput_tokens_total": (0.12, 0.10),
}
WEIGHT = {"closed": 1.0, "fixed": 0.7, "offline": 0.8, "mlperf": 0.5, "disaggregated": 0.25}
FITTED_MODES = tuple(WEIGHT)
#: Metrics that each load model is fitted to; closed-loop throughput follows from its two latencies.
FITTED_METRICS: Mapping[str, tuple[str, ...]] = {
    "closed": ("tpot_mean", "itl_mean", "ttft_mean"),
    "fixed": ("tpot_mean", "prefill_time"),
    "offline": ("throughput_output_tokens_total",),
    "mlperf": ("throughput_tokens_total",),
    "disaggregated": ("tpot_mean", "ttft_mean"),
}


class Problem(Protocol):
    """Measurements with a model: log predictions for any parameters, and what each residual is worth."""

    measurements: Sequence[Measurement]

    def log_values(self, parameters: ParameterSet, index: NDArray[np.int64] | None = None) -> Array:
        """Log of the predicted value of each measurement (or of those at ``index``)."""

    def sigma(self) -> tuple[Array, Array, Array]:
        """Within-group spread, between-group spread and weight of each measurement."""


def _signature(case: InferenceCase) -> tuple[object, ...]:
    request = case.request
    return (
        case.mode,
        case.scenario,
        case.accelerators,
        request.model,
        request.hardware_name,
        tuple(sorted(request.members.items())),
        request.load,
        request.widths,
    )


class _Mode:
    """Distinct set-ups of one load model and the measurements that refer to them."""

    def __init__(self, mode: str, cases: list[InferenceCase], setups: Setups, decode: Setups) -> None:
        self.mode = mode
        self.setups = setups
        self.copies = np.array([max(np.floor(c.accelerators / c.request.accelerators), 1.0) for c in cases])
        self.scenario = np.array([c.scenario for c in cases])
        self.workers = np.array([[c.prefill_workers, c.decode_workers] for c in cases])
        self.decode = decode
        self.limit_s = np.array([mean_tpot_limit_s(c.request.model, c.scenario) for c in cases])

    def metrics(self, p: ParameterSet, index: NDArray[np.int64]) -> dict[str, Array]:
        """The fitted metrics of the set-ups at ``index``."""
        s = self.setups.take(index)
        c = constants(p, s)
        copies = self.copies[index]
        if self.mode == "closed":
            served = closed_loop(s.replaced(concurrency=s.concurrency / copies), c)
            return {
                "tpot_mean": served.tpot_s,
                "itl_mean": served.tpot_s,
                "ttft_mean": served.ttft_s,
                "throughput_output_tokens_total": served.output_per_s * copies,
            }
        if self.mode == "fixed":
            step = decode_step(s, c, s.concurrency, s.isl + s.osl / 2).total_s
            first = 0.3 * c.first_token_s + prefill(s, c, batch=s.concurrency).alone_s
            return {"tpot_mean": step, "prefill_time": first}
        if self.mode == "disaggregated":
            d, w = self.decode.take(index), self.workers[index]
            served, _ = disaggregated(s, c, d, constants(p, d), w[:, 0], w[:, 1])
            return {"tpot_mean": served.tpot_s, "ttft_mean": served.ttft_s}
        if self.mode == "offline":
            return {"throughput_output_tokens_total": maximum_throughput(s, c).output_per_s * copies}
        rate = throughput_within(s, c, self.limit_s[index]).output_per_s * copies
        scenario = self.scenario[index]
        share = np.where(scenario == "server", p.value("server_share"), 1.0)
        share = np.where(scenario == "interactive", p.value("interactive_share"), share)
        return {"throughput_tokens_total": rate * share}


class ServingProblem:
    """Closed loop, fixed batch, maximum throughput and MLPerf together, sharing one set of constants."""

    def __init__(self, measurements: Sequence[Measurement], start: ParameterSet) -> None:
        chosen: list[Measurement] = []
        where: dict[tuple[object, ...], int] = {}
        cases: dict[str, list[InferenceCase]] = {mode: [] for mode in FITTED_MODES}
        position: list[int] = []
        for m in measurements:
            case = m.case
            if not isinstance(case, InferenceCase) or m.metric not in FITTED_METRICS.get(case.mode, ()):
                continue
            key = _signature(case)
            if key not in where:
                where[key] = len(cases[case.mode])
                cases[case.mode].append(case)
            chosen.append(m)
            position.append(where[key])
        self.measurements: Sequence[Measurement] = chosen
        self.position = np.array(position, dtype=np.int64)
        self.mode = np.array([_mode(m) for m in self.measurements])
        self.metric = np.array([m.metric for m in self.measurements])
        self.modes = {
            mode: _Mode(
                mode,
                found,
                build_setups([c.request for c in found], start),
                build_setups([c.decode or c.request for c in found], start),
            )
            for mode, found in cases.items()
            if found
        }

    def log_values(self, parameters: ParameterSet, index: NDArray[np.int64] | None = None) -> Array:
        """Log of the predicted seconds or tokens per second."""
        rows = np.arange(len(self.measurements)) if index is None else index
        out = np.empty(len(rows))
        for mode, model in self.modes.items():
            mine = np.nonzero(self.mode[rows] == mode)[0]
            if len(mine) == 0:
                continue
            needed, inverse = np.unique(self.position[rows[mine]], return_inverse=True)
            metrics = model.metrics(parameters, needed)
            names = self.metric[rows[mine]]
            values = np.empty(len(mine))
            for name, column in metrics.items():
                values[names == name] = column[inverse[names == name]]
            out[mine] = np.log(values)
        return out

    def sigma(self) -> tuple[Array, Array, Array]:
        """Spread within and between groups by metric, weight by load model."""
        pairs = np.array([SPREAD[m.metric] for m in self.measurements])
        return pairs[:, 0], pairs[:, 1], np.array([WEIGHT[_mode(m)] for m in self.measurements])


def _mode(m: Measurement) -> str:
    return m.case.mode if isinstance(m.case, InferenceCase) else ""


class KernelProblem:
    """Rows of one kernel operation (collectives together)."""

    def __init__(self, measurements: Sequence[Measurement]) -> None:
        self.measurements: Sequence[Measurement] = list(measurements)
        self._batches: dict[bytes, KernelBatch] = {}

    def log_values(self, parameters: ParameterSet, index: NDArray[np.int64] | None = None) -> Array:
        """Log of the predicted value in the row's own unit."""
        rows = np.arange(len(self.measurements)) if index is None else index
        key = rows.tobytes()
        if key not in self._batches:
            cases = [self.measurements[i].case for i in rows]
            self._batches[key] = KernelBatch([c for c in cases if isinstance(c, KernelCase)])
        batch = self._batches[key]
        return np.log(in_metric(batch, batch.seconds(parameters)))

    def sigma(self) -> tuple[Array, Array, Array]:
        """One spread for all."""
        n = len(self.measurements)
        return np.full(n, 0.12), np.zeros(n), np.ones(n)


class LocalProblem:
    """Local decode, batches and prefill."""

    def __init__(self, measurements: Sequence[Measurement], start: ParameterSet) -> None:
        self.measurements: Sequence[Measurement] = [m for m in measurements if isinstance(m.case, LocalCase)]
        self.cases = [m.case for m in self.measurements if isinstance(m.case, LocalCase)]
        self.codes = local_codes(self.cases, start)

    def log_values(self, parameters: ParameterSet, index: NDArray[np.int64] | None = None) -> Array:
        """Log of the predicted tokens per second."""
        rows = np.arange(len(self.cases)) if index is None else index
        chosen = [self.cases[i] for i in rows]
        return np.log(local_values(chosen, parameters, {k: v[rows] for k, v in self.codes.items()}))

    def sigma(self) -> tuple[Array, Array, Array]:
        """Prefill varies twice as much as decode."""
        n = len(self.cases)
        return np.array([0.2 if c.mode == "prefill" else 0.1 for c in self.cases]), np.zeros(n), np.ones(n)


def _huber(residual: Array) -> Array:
    """Residual whose square is the Huber loss."""
    size = np.abs(residual)
    tail = np.sign(residual) * np.sqrt(np.maximum(2 * HUBER * size - HUBER**2, 0.0))
    return np.where(size <= HUBER, residual, tail)


def _group_codes(problem: Problem, index: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    chosen = [problem.measurements[int(i)] for i in index]
    keys = [(m.metric, *m.group) for m in chosen]
    table = {key: n for n, key in enumerate(dict.fromkeys(keys))}
    codes = np.array([table[key] for key in keys], dtype=np.int64)
    return codes, np.bincount(codes)


def residual_function(problem: Problem, vector: ParameterVector, mask: Mask) -> Callable[[Array], Array]:
    """Residuals of the solver: priors, then measurements with the mean of each group partly removed.

    Rows of a group share an unknown level (software build), so their errors are correlated: removing the share theta of
    the group mean, theta = 1 - sqrt(w^2 / (w^2 + n b^2)), is generalised least squares for that covariance.
    """
    index = np.nonzero(mask)[0]
    target = np.log(np.array([problem.measurements[int(i)].value for i in index]))
    within, between, weight = (column[index] for column in problem.sigma())
    codes, sizes = _group_codes(problem, index)
    theta = 1 - np.sqrt(within**2 / (within**2 + sizes[codes] * between**2))

    def residuals(x: Array) -> Array:
        error = np.clip(problem.log_values(vector.unpack(x), index) - target, -CLIP, CLIP)
        mean = np.bincount(codes, error) / sizes
        scaled = _huber((error - theta * mean[codes]) / within) * np.sqrt(weight)
        return np.concatenate([vector.penalty(x), scaled])

    return residuals


def fit(problem: Problem, vector: ParameterVector, mask: Mask, start: Array | None = None, steps: int = 25) -> Array:
    """Fitted parameter vector of the measurements in ``mask``."""
    function = residual_function(problem, vector, mask)
    first = vector.prior if start is None else start
    found = least_squares(function, first, x_scale=vector.spread, max_nfev=steps, ftol=1e-4, xtol=1e-4)
    return np.asarray(found.x)


def leave_out(
    problem: Problem,
    vector: ParameterVector,
    usable: Mask,
    keys: Sequence[object],
    start: Array,
    folds: int,
    seed: int = 0,
    steps: int = 6,
) -> Array:
    """Log error (predicted over measured) of each row when its key was left out; keys are dealt into folds."""
    distinct = sorted(set(keys), key=str)
    order = np.random.default_rng(seed).permutation(len(distinct))
    fold_of = {distinct[key]: n % folds for n, key in enumerate(order)}
    fold = np.array([fold_of[key] for key in keys])
    target = np.log(np.array([m.value for m in problem.measurements]))
    errors = np.full(len(fold), np.nan)
    for number in range(folds):
        out = fold == number
        if not out.any():
            continue
        found = vector.unpack(fit(problem, vector, usable & ~out, start, steps))
        rows = np.nonzero(out)[0]
        errors[rows] = problem.log_values(found, rows) - target[rows]
    return errors
