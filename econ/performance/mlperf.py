"""MLPerf Inference scenarios: lengths of the data sets, latency limits, and the layout that submitters choose.

Lengths and limits are rows of `data/calibration/mlperf_workloads.csv` with their source; the output length that a
submission's accuracy log prints takes precedence.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from econ.performance.names import normalise
from econ.performance.requests import EngineError, Request, make_request, resolve
from econ.performance.setups import Load
from supply.paths import data_file

#: Layers of weights that may fill a board before the next power of two is taken.
WEIGHT_SHARE = 0.62


@dataclass(frozen=True)
class Dataset:
    """Mean input and output tokens of one MLPerf language benchmark."""

    isl: float
    osl: float


@lru_cache(maxsize=1)
def _workloads() -> list[dict[str, str]]:
    with data_file("calibration", "mlperf_workloads.csv").open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


@lru_cache(maxsize=1)
def _datasets() -> dict[str, Dataset]:
    rows = [row for row in _workloads() if not row["scenario"]]
    return {row["model"]: Dataset(float(row["mean_input_tokens"]), float(row["mean_output_tokens"])) for row in rows}


@lru_cache(maxsize=1)
def _limits() -> dict[tuple[str, str], tuple[float, float]]:
    rows = [row for row in _workloads() if row["scenario"]]
    return {(r["model"], r["scenario"]): (float(r["ttft_limit_s"]), float(r["tpot_limit_s"])) for r in rows}


def latency_limits(model: str, scenario: str) -> tuple[float, float] | None:
    """First-token and per-token limits in seconds; None for Offline and for models without a rule.

    >>> latency_limits("Llama-2-70B", "server")
    (2.0, 0.2)
    """
    return _limits().get((normalise(model), scenario.lower()))


#: Mean over 99th-percentile limit of time per token in logged submissions, which load the server up to the limit.
MEAN_OF_LIMIT = 0.72


def mean_tpot_limit_s(model: str, scenario: str) -> float:
    """Mean time per token that a submission can afford under the rule of its scenario; infinite without one.

    >>> round(mean_tpot_limit_s("Llama-2-70B", "interactive"), 4)
    0.0288
    """
    limits = latency_limits(model, scenario)
    return MEAN_OF_LIMIT * limits[1] if limits else float("inf")


def dataset_of(model: str) -> Dataset | None:
    """Length statistics of the data set behind an MLPerf model name; None for a model that is no benchmark.

    >>> dataset_of("llama2-70b-99.9").osl
    294.45
    """
    name = normalise(re.sub(r"-99(\.9)?$", "", model.strip()))
    return _datasets().get(name)


def default_format(hardware_name: str, peaks: frozenset[str]) -> str:
    """Narrowest format that submitters used on a part with these native formats."""
    del hardware_name
    return "FP4" if "fp4" in peaks else "FP8" if "fp8" in peaks else "INT8" if "int8" in peaks else "BF16"


def mlperf_request(row: Mapping[str, str], accelerators: float) -> Request:
    """Set-up of one MLPerf result: smallest power-of-two tensor width that leaves room for the cache, replicated.

    Raises:
        EngineError: when the model has no known data set or does not fit the stated accelerators.
    """
    model = re.sub(r"-99(\.9)?$", "", row.get("model", "").strip())
    data = dataset_of(model)
    if data is None:
        raise EngineError(f"no published length statistics for the MLPerf model {model!r}")
    printed = re.search(r"mean_output_tokens_accuracy_run=(\d+\.?\d*)", row.get("conditions") or "")
    osl = max(float(printed[1]), 1.0) if printed else data.osl
    label = row.get("weight_format") or ""
    if not label:
        _, part = resolve(model, row.get("hardware", ""))
        peaks = frozenset(part.peak_flop_per_s)
        label = default_format(row.get("hardware", ""), peaks - {"fp4"})
    width = 1.0
    while True:
        request = make_request(
            model,
            row.get("hardware", ""),
            Load(data.isl, osl, 1.0, tp=width),
            weight_format=label,
            framework=row.get("framework") or "TensorRT-LLM",
            version=row.get("version") or "",
            benchmark="mlperf",
        )
        stored = weight_bytes(request) / width
        if stored <= WEIGHT_SHARE * request.rates.memory_bytes or width * 2 > max(accelerators, 1):
            break
        width *= 2
    return request


def weight_bytes(request: Request) -> float:
    """Bytes of all weights of a request."""
    s, w = request.shape, request.widths
    dense = (s.attention_params + s.dense_params + s.shared_params) * w.dense
    experts = s.expert_params * s.n_experts * s.moe_layers * w.expert
    return dense + experts + (s.head_params + s.embedding_params) * w.head
