"""Reading an inference row: which load model it asks for, the set-up in numbers. Measured columns are never read."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from econ.performance.local import LocalCase, local_case
from econ.performance.mlperf import dataset_of, mlperf_request
from econ.performance.requests import EngineError, Request, make_request
from econ.performance.setups import Load

__all__ = ["InferenceCase", "parse_row"]

#: Mean prompt and reply of the ShareGPT sample used by the vLLM paper (arXiv 2309.06180, figure 11), in tokens.
SHAREGPT = (161.0, 338.0)
MODES = (
    "closed",
    "fixed",
    "offline",
    "open",
    "disaggregated",
    "mlperf",
    "local_decode",
    "local_prefill",
    "local_batch",
)
#: Cells that say nothing, and words for a load that nothing bounds.
_BLANK = ("", "n/a", "na", "nan", "none", "-")
_UNBOUNDED = re.compile(r"max|inf|unlimited|unbounded|saturat", re.IGNORECASE)
#: Beyond any request, load or deployment: such a number is a slip.
MOST = 1e7
_LOCAL = re.compile(r"llama\.?cpp|ollama|exllama|mlx|gguf", re.IGNORECASE)


@dataclass(frozen=True)
class InferenceCase:
    """One inference question: the load model, the set-up, the metric asked for and what else the row states."""

    mode: str
    request: Request
    metric: str
    unit: str
    accelerators: float
    arrival_per_s: float = 0.0
    decode: Request | None = None
    decode_workers: float = 1.0
    prefill_workers: float = 1.0
    scenario: str = ""
    note: str = ""


def number(row: Mapping[str, str], column: str, least: float = 1.0) -> float | None:
    """Number of a cell; None when it is empty or says that nothing bounds it (`max`, `unlimited`).

    >>> number({"tp": "8"}, "tp"), number({"isl": "1,024"}, "isl"), number({"osl": "n/a"}, "osl")
    (8.0, 1024.0, None)

    Raises:
        EngineError: when the cell holds something else, or a number below ``least`` or beyond any set-up.
    """
    text = (row.get(column) or "").strip().replace(",", "")
    if text.lower() in _BLANK:
        return None
    try:
        value = float(text)
    except ValueError:
        found = re.search(r"(?:max_num_seqs|batch|concurrency)\D*(\d+)", text)
        if found is None:
            if column == "concurrency_or_batch" and _UNBOUNDED.match(text):
                return None
            raise EngineError(f"{column} = {text!r} is not a number") from None
        value = float(found[1])
    if column == "concurrency_or_batch" and value == math.inf:
        return None
    if not least <= value <= MOST:
        raise EngineError(f"{column} = {text!r} must be a number between {least:g} and {MOST:g}")
    return value


def mode_of(row: Mapping[str, str]) -> str:
    """Load model that a row asks for, from its scenario, framework and filled columns."""
    scenario = (row.get("scenario") or "").lower()
    framework = f"{row.get('framework', '')} {row.get('weight_format', '')}"
    if dataset_of(row.get("model", "")) and scenario in ("offline", "server", "interactive"):
        return "mlperf"
    if "disagg" in scenario and "closed" in scenario:
        return "disaggregated"
    if "batched_decode" in scenario:
        return "local_batch"
    if "single_stream_prefill" in scenario or (_LOCAL.search(framework) and "prefill" in row.get("metric", "")):
        return "local_prefill"
    if "single_stream" in scenario or _LOCAL.search(framework):
        return "local_decode"
    if "fixed_batch" in scenario:
        return "fixed"
    if re.search(r"wide.?ep|large ep|production", scenario):
        return "wide"
    if "offline" in scenario or (row.get("concurrency_or_batch") or "").startswith("max ("):
        return "offline"
    if "qps=" in scenario or "rate" in scenario or "sessions/s" in scenario:
        return "open"
    if number(row, "concurrency_or_batch") is not None:
        return "closed"
    return "offline"


def _layout(row: Mapping[str, str], accelerators: float) -> tuple[float, float, float, float]:
    """TP, PP, EP, DP of a row; unstated TP is what the accelerators leave after PP and DP."""
    text = row.get("conditions") or ""
    pp = number(row, "pp") or 1.0
    dp = number(row, "dp") or 1.0
    ep = number(row, "ep") or 1.0
    attention = re.search(r"attention TP=(\d+) attention DP=(\d+) MoE TP=\d+ MoE EP=(\d+)", text)
    if attention and not number(row, "tp"):
        return float(attention[1]), pp, float(attention[3]), float(attention[2])
    tp = number(row, "tp") or max((accelerators or 1.0) / (pp * dp), 1.0)
    if dp == 1 and "attention data-parallel option enabled" in text:
        # The stated width is that of the experts; attention runs one replica per accelerator.
        return 1.0, pp, ep, tp
    if accelerators and tp * pp * dp > accelerators:
        if tp * pp > accelerators or tp % dp:
            raise EngineError(f"tp x pp x dp = {tp * pp * dp:g} is more than n_accelerators = {accelerators:g}")
        # Data-parallel attention inside the tensor width, as servers of expert models count it.
        tp /= dp
    return tp, pp, ep, dp


def _arrival(scenario: str) -> float:
    """Requests per second of an open load; infinite where all arrive at once."""
    found = re.search(r"(?:qps|rate)=(\d+\.?\d*(?:e\d+)?)", scenario) or re.search(r"(\d+\.?\d*) sessions/s", scenario)
    if found is None:
        return math.inf
    rate = float(found[1])
    if not 0 < rate < MOST:
        raise EngineError(f"scenario {scenario!r}: the arrival rate must be positive and below {MOST:g} a second")
    return rate


def _lengths(row: Mapping[str, str], metric: str) -> tuple[float | None, float | None]:
    """Input and output tokens of a row; a first token alone may state an output of 0."""
    first_only = metric.startswith(("ttft", "prefill"))
    osl = number(row, "osl", least=0.0 if first_only else 1.0)
    return number(row, "isl", least=0.0), osl if osl is None else max(osl, 1.0)


def _request(row: Mapping[str, str], load: Load) -> Request:
    return make_request(
        row.get("model", ""),
        row.get("hardware", ""),
        load,
        weight_format=row.get("weight_format") or "",
        kv_format=row.get("kv_format") or "",
        framework=row.get("framework") or "",
        version=row.get("version") or "",
        limit_context=False,
    )


def _wide(row: Mapping[str, str], isl: float | None, osl: float | None) -> InferenceCase:
    """Wide expert parallelism: one attention replica an accelerator, experts over all; rates are per accelerator
    or node.

    Unstated widths and lengths are those of the published deployments (32 ranks, 2,000 tokens in, 1,000 out).
    """
    text = row.get("conditions") or ""
    cached = re.search(r"prefix-cache hits \((\d+\.?\d*)%", text)
    held = re.search(r"mean KV length per output token (\d+)", text)
    length_out = osl or 1000.0
    length_in = isl or (float(held[1]) - length_out / 2 if held else 2000.0)
    ranks = number(row, "ep") or 32.0
    hit = min(float(cached[1]) / 100, 1.0) if cached else 0.0
    request = _request(row, Load(length_in, length_out, ranks, dp=ranks, ep=ranks, prefix_hit=hit))
    return InferenceCase("wide", request, row.get("metric") or "", row.get("unit") or "", ranks)


def _workers(text: str, side: str) -> tuple[float, float, float, float] | None:
    """Workers, TP, DP and EP of one side of a disaggregated deployment, as its set-up text states them."""
    found = re.search(side + r" workers=(\d+) TP=(\d+) DP=(\d+) EP=(\d+)", text)
    return (float(found[1]), float(found[2]), float(found[3]), float(found[4])) if found else None


def _disaggregated(row: Mapping[str, str], base: Load) -> InferenceCase:
    text = row.get("conditions") or ""
    sides = [_workers(text, side) for side in ("prefill", "decode")]
    if sides[0] is None or sides[1] is None or min(*sides[0], *sides[1]) < 1:
        raise EngineError("disaggregated serving without a stated layout of prefill and decode workers")
    requests = []
    for _, tp, dp, ep in (sides[0], sides[1]):
        # A data-parallel width equal to the expert width covers the same accelerators: tensor width counts
        # inside a rank.
        inner = tp if dp == 1 else max(tp / dp, 1.0) if tp >= dp else tp
        load = Load(base.isl, base.osl, base.concurrency, tp=inner, dp=dp, ep=ep)
        requests.append(_request(row, load))
    count = sum(w[0] * r.accelerators for w, r in zip((sides[0], sides[1]), requests, strict=True))
    return InferenceCase(
        "disaggregated",
        requests[0],
        row.get("metric", ""),
        row.get("unit", ""),
        number(row, "n_accelerators") or count,
        decode=requests[1],
        prefill_workers=sides[0][0],
        decode_workers=sides[1][0],
    )


def parse_row(row: Mapping[str, str]) -> InferenceCase | LocalCase:
    """The case of one row.

    Raises:
        EngineError: when the row states too little, or asks for something impossible.
    """
    mode = mode_of(row)
    metric, unit = row.get("metric") or "", row.get("unit") or ""
    accelerators = number(row, "n_accelerators") or 0.0
    if mode == "mlperf":
        request = mlperf_request(row, accelerators or 1.0)
        return InferenceCase(mode, request, metric, unit, accelerators or 1.0, scenario=row.get("scenario", "").lower())
    isl, osl = _lengths(row, metric)
    concurrency = number(row, "concurrency_or_batch") or 1.0
    if mode.startswith("local"):
        return local_case(row, isl, osl, concurrency, accelerators or 1.0)
    if mode == "wide":
        return _wide(row, isl, osl)
    if isl is None and "sharegpt" in (row.get("scenario") or "").lower():
        isl, osl = SHAREGPT
    if isl is None:
        raise EngineError("the row states no input length (isl)")
    note = ""
    if osl is None:
        if not metric.startswith(("throughput", "ttft", "prefill")):
            raise EngineError("the row states no output length (osl)")
        osl = max(isl, 1.0) if metric.startswith("throughput") else 1.0
        note = f"assumed: {osl:g} output tokens" if metric.startswith("throughput") else ""
    if mode == "disaggregated":
        return _disaggregated(row, Load(isl, osl, concurrency))
    if mode == "offline" and "closed" in (row.get("scenario") or "").lower() and not row.get("concurrency_or_batch"):
        raise EngineError("a closed loop needs its number of users (concurrency_or_batch)")
    tp, pp, ep, dp = _layout(row, accelerators)
    request = _request(row, Load(isl, osl, concurrency, tp=tp, pp=pp, ep=ep, dp=dp))
    if request.shape.n_experts == 0 and dp > 1 and not number(row, "dp"):
        request = _request(row, Load(isl, osl, concurrency, tp=tp * dp, pp=pp))
    arrival = _arrival(row.get("scenario") or "")
    return InferenceCase(
        mode, request, metric, unit, accelerators or request.accelerators, arrival_per_s=arrival, note=note
    )
