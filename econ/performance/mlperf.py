"""MLPerf Inference scenarios: the length statistics of the data sets and the layout that submitters choose.

Mean output lengths are those that the accuracy logs of submissions print; input means follow from the data sets'
published
limits and are marked illustrative in the parameter file's notes where no page states them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from econ.performance.names import normalise
from econ.performance.requests import EngineError, Request, make_request
from econ.performance.setups import Load

#: Layers of weights that may fill a board before the next power of two is taken.
WEIGHT_SHARE = 0.62


@dataclass(frozen=True)
class Dataset:
    """Mean input and output tokens of one MLPerf language benchmark."""

    isl: float
    osl: float


DATASETS: dict[str, Dataset] = {
    "llama270b": Dataset(294.0, 301.0),
    "mixtral8x7b": Dataset(345.0, 145.0),
    "llama3.1405b": Dataset(9400.0, 650.0),
    "llama3.18b": Dataset(778.0, 73.0),
    "deepseekr1": Dataset(850.0, 3880.0),
    "gptoss120b": Dataset(1000.0, 1000.0),
}


#: Limits of the rules on the 99th percentile of first-token time and time per token, in seconds, by scenario.
LATENCY_LIMITS: dict[tuple[str, str], tuple[float, float]] = {
    ("llama270b", "server"): (2.0, 0.200),
    ("llama270b", "interactive"): (0.450, 0.040),
    ("mixtral8x7b", "server"): (2.0, 0.200),
    ("llama3.1405b", "server"): (6.0, 0.175),
    ("llama3.1405b", "interactive"): (4.5, 0.080),
    ("llama3.18b", "server"): (2.0, 0.100),
    ("llama3.18b", "interactive"): (0.5, 0.030),
    ("deepseekr1", "server"): (2.0, 0.080),
}


def latency_limits(model: str, scenario: str) -> tuple[float, float] | None:
    """First-token and per-token limits in seconds; None for Offline and for models without a rule.

    >>> latency_limits("Llama-2-70B", "server")
    (2.0, 0.2)
    """
    return LATENCY_LIMITS.get((normalise(model), scenario.lower()))


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
    301.0
    """
    name = normalise(re.sub(r"-99(\.9)?$", "", model.strip()))
    return DATASETS.get(name)


def default_format(hardware_name: str, peaks: frozenset[str]) -> str:
    """Narrowest format that submitters used on a part with these native formats."""
    del hardware_name
    return "FP4" if "fp4" in peaks else "FP8" if "fp8" in peaks else "INT8" if "int8" in peaks else "BF16"


def mlperf_request(row: Mapping[str, str], accelerators: float) -> Request:
    """Set-up of one MLPerf result: smallest power-of-two tensor width that leaves room for the cache, replicated.

    Raises:
        EngineError: when the model has no known data set or does not fit the stated accelerators.
    """
    from econ.performance.hardware import hardware

    model = re.sub(r"-99(\.9)?$", "", row.get("model", "").strip())
    data = dataset_of(model)
    if data is None:
        raise EngineError(f"no published length statistics for the MLPerf model {model!r}")
    printed = re.search(r"mean_output_tokens_accuracy_run=(\d+\.?\d*)", row.get("conditions") or "")
    osl = float(printed[1]) if printed else data.osl
    label = row.get("weight_format") or ""
    if not label:
        peaks = frozenset(hardware(row.get("hardware", "")).peak_flop_per_s)
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
