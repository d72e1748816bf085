"""The stored parameter files, parsed once: parameter sets, bands and what the calibration has seen."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from econ.performance.bands import Band, Knowledge
from econ.performance.parameters import ParameterSet, from_mapping, load_file
from econ.performance.prediction import Confidence
from supply.paths import data_file

__all__ = ["band_for", "constants_table", "kernel_parameters", "knowledge", "local_parameters", "serving_parameters"]

#: Band of a question that no measurement is like.
UNSEEN = Band(0.33, 3.0, 0)


def _inference() -> dict[str, Any]:
    return load_file(data_file("calibration", "parameters_inference.json"))


def _kernel() -> dict[str, Any]:
    return load_file(data_file("calibration", "parameters_kernel.json"))


@lru_cache(maxsize=1)
def serving_parameters() -> ParameterSet:
    """Constants of the step and load models.

    >>> 0.5 < float(serving_parameters().value("weight_bandwidth")) <= 1.0
    True
    """
    return from_mapping(_inference()["serving"])


@lru_cache(maxsize=1)
def local_parameters() -> ParameterSet:
    """Constants of local inference."""
    return from_mapping(_inference()["local"])


@lru_cache(maxsize=16)
def kernel_parameters(operation: str) -> ParameterSet:
    """Constants of one kernel operation (`gemm`, `collective`, `moe` ...)."""
    return from_mapping(_kernel()["operations"][operation])


@lru_cache(maxsize=32)
def knowledge(topic: str) -> Knowledge:
    """What was seen: `serving`, `local`, or a kernel operation."""
    inference = _inference()["known"]
    seen = inference[topic] if topic in inference else _kernel()["known"][topic]
    return Knowledge(
        frozenset((str(a), str(b)) for a, b in seen["pairs"]),
        frozenset(seen["hardware"]),
        frozenset(seen["families"]),
    )


def band_for(topic: str, confidence: Confidence) -> Band:
    """Band factors of a topic and class; a wide one where nothing like it was measured."""
    bands: Mapping[str, Any] = _inference()["bands"] | _kernel()["bands"]
    if topic not in bands:
        return UNSEEN
    found = bands[topic].get(confidence)
    return Band(**found) if found else UNSEEN


def constants_table() -> list[dict[str, Any]]:
    """Constants, rows and rows per constant of every fitted problem."""
    inference, kernel = _inference(), _kernel()
    blocks = {"serving": inference["serving"], "local": inference["local"]} | kernel["operations"]
    return [
        {"problem": name, "constants": b["constants"], "rows": b["rows"], "rows_per_constant": b["rows_per_constant"]}
        for name, b in blocks.items()
    ]
