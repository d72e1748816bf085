"""The calibration measurements: reading, grouping, pairs to leave out, and the rows that the fit does not see."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from econ.performance.calibration_names import model_pair
from econ.performance.inference_rows import InferenceCase, parse_row
from econ.performance.kernel_rows import KernelCase, parse_kernel_row, parse_operator_row
from econ.performance.local import LocalCase
from econ.performance.requests import EngineError
from supply.paths import data_file

__all__ = ["Measurement", "inference_measurements", "kernel_measurements", "read_rows", "suspect_reason"]

INFERENCE_FILES = (
    "inference_inferencex.csv",
    "inference_serving_misc.csv",
    "inference_splitwise.csv",
    "inference_trtllm.csv",
    "inference_mlperf.csv",
    "inference_local.csv",
)


def _ids(prefix: str, *ranges: tuple[int, int]) -> frozenset[str]:
    return frozenset(f"{prefix}-{i:05d}" for low, high in ranges for i in range(low, high + 1))


#: Rows that the fit leaves out, with the reason; they are scored and count in the bands.
SUSPECT: tuple[tuple[str, frozenset[str]], ...] = (
    ("concurrency is not what the label says", _ids("ifx", (439, 440), (453, 454), (463, 464), (477, 478))),
    ("faster than the compute peak allows; prefix-cache hits are likely", _ids("ifx", (1045, 1086))),
    ("time per token does not depend on the load; kernels were not tuned", _ids("ifx", (1425, 1468), (425, 434))),
    ("attention parallelism as labelled cannot serve the load", _ids("ifx", (175, 176))),
    ("speculative decoding or attention data parallelism not recorded, builds differ twofold", _ids("ifx", (205, 250))),
    ("first-token time out of line with its neighbours", _ids("ifx", (694, 694), (698, 698), (738, 738), (742, 742))),
    ("sequence limit below the concurrency", _ids("ifx", (1012, 1012), (1014, 1014), (1016, 1016))),
    ("first-token time of seconds at a few users", _ids("ifx", (1160, 1160), (1416, 1416), (1420, 1420), (1424, 1424))),
    ("the batch did not fit, so only part of it was prefilled", _ids("spl", (105, 105), (219, 219))),
    ("rate printed with one digit, 0.01 GB/s", _ids("ker", (1020, 1020))),
    ("first call, compilation included: 24 and 50 times the roofline", _ids("silicon_points", (54, 54), (129, 129))),
)
#: Rows out of the range above that belong to a sound build.
_SOUND_FRAMEWORKS = ("SGLang", "vLLM")


@dataclass(frozen=True)
class Measurement:
    """One measured row: its case, the measured value in seconds or tokens per second, its id and file."""

    identity: str
    file: str
    case: InferenceCase | LocalCase | KernelCase
    metric: str
    value: float
    suspect: str

    @property
    def pair(self) -> tuple[str, str]:
        """(model or operation, accelerator): what cross-validation leaves out whole."""
        if isinstance(self.case, KernelCase):
            return f"{self.case.op}/{self.case.backend}", self.case.hardware
        if isinstance(self.case, LocalCase):
            return model_pair(self.case.model, self.case.hardware_name)
        request = self.case.request
        return model_pair(request.model, request.hardware_name)

    @property
    def group(self) -> tuple[str, ...]:
        """Rows that share an unknown level: pair, software and format."""
        if isinstance(self.case, InferenceCase):
            m = self.case.request.members
            return (*self.pair, m["framework"], m["generation"], m["stored"], self.case.scenario)
        return self.pair


def read_rows(name: str) -> list[dict[str, str]]:
    """Rows of a calibration file; comment lines are skipped; rows without an id are numbered."""
    with data_file("calibration", name).open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(line for line in handle if not line.startswith("#")))
    for number, row in enumerate(rows):
        row.setdefault("id", f"{name.removesuffix('.csv')}-{number:05d}")
    return rows


def suspect_reason(identity: str, row: Mapping[str, str]) -> str:
    """Why the fit leaves a row out; empty for a sound row."""
    for reason, ids in SUSPECT:
        if identity in ids:
            if reason.startswith("speculative") and row.get("framework") in _SOUND_FRAMEWORKS:
                return ""
            return reason
    return ""


def _value(row: Mapping[str, str]) -> float:
    value = float(row.get("value") or row.get("latency_ms") or "nan")
    return value / 1e3 if row.get("unit") == "ms" and "kernel" not in row else value


@lru_cache(maxsize=1)
def inference_measurements() -> tuple[Measurement, ...]:
    """All inference rows that parse and have a positive value."""
    out = []
    for name in INFERENCE_FILES:
        for row in read_rows(name):
            try:
                case = parse_row(row)
            except EngineError:
                continue
            value = _value(row)
            if math.isfinite(value) and value > 0:
                metric = row.get("metric") or ""
                out.append(Measurement(row["id"], name, case, metric, value, suspect_reason(row["id"], row)))
    return tuple(out)


@lru_cache(maxsize=1)
def kernel_measurements() -> tuple[Measurement, ...]:
    """All kernel and operator rows that have a model; the value is in the row's own unit."""
    out = []
    for name, parse in (("kernels.csv", parse_kernel_row), ("silicon_points.csv", parse_operator_row)):
        for row in read_rows(name):
            try:
                case = parse(row)
            except EngineError:
                continue
            value = float(row.get("value") or row.get("latency_ms") or "nan")
            if math.isfinite(value) and value > 0:
                reason = suspect_reason(row["id"], row)
                out.append(Measurement(row["id"], name, case, case.metric, value, reason))
    return tuple(out)
