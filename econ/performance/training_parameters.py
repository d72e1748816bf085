"""Fitted constants of the training step model: few, physical, with a spread from physics and offsets by hardware
family."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from econ.performance.hardware import Hardware
from supply.paths import data_file

__all__ = ["FAMILIES", "SPECS", "Constant", "TrainingConstants", "default_constants", "family_of", "training_constants"]

FAMILIES = ("ampere", "hopper", "blackwell", "tpu", "other")


@dataclass(frozen=True)
class Constant:
    """One constant: value and spread (of its log) before any data, hard bounds, and the spread of its family
    offsets."""

    value: float
    spread: float
    low: float
    high: float
    meaning: str
    family_spread: float = 0.0


SPECS: Mapping[str, Constant] = {
    "gemm": Constant(0.72, 0.15, 0.3, 0.95, "share of the dense 16-bit peak that wide linear layers sustain", 0.15),
    "fp8_ratio": Constant(0.83, 0.15, 0.4, 1.0, "that share at FP8 over that at 16 bit"),
    "mxfp8_ratio": Constant(0.78, 0.15, 0.4, 1.0, "that share at block-scaled FP8 over that at 16 bit"),
    "nvfp4_ratio": Constant(0.72, 0.2, 0.3, 1.0, "that share at FP4 over that at 16 bit"),
    "wide_share": Constant(0.12, 0.3, 0.02, 0.4, "share of linear work that an FP4 recipe keeps at 16 bit"),
    "gemm_width": Constant(150, 0.5, 10, 800, "matrix width at which the sustained share halves"),
    "expert_rows": Constant(250, 0.7, 10, 3000, "rows an expert at which its sustained share halves"),
    "grouped": Constant(1.15, 0.15, 1.0, 2.0, "time of grouped expert products over plain ones"),
    "attention": Constant(0.45, 0.25, 0.1, 0.85, "share of the 16-bit peak of fused attention, long sequences", 0.2),
    "alibi": Constant(0.7, 0.3, 0.2, 1.0, "speed of attention with a position bias over plain attention"),
    "head_power": Constant(0.4, 0.4, 0.05, 1.0, "power of head width (over 128) in the speed of fused attention"),
    "attention_half_length": Constant(1200, 0.5, 100, 6000, "sequence at which fused attention reaches half of it"),
    "touches": Constant(4.0, 0.35, 1.0, 12.0, "times each stored activation byte is moved by elementwise passes", 0.25),
    "autocast": Constant(1.3, 0.2, 1.0, 2.5, "elementwise traffic under automatic casting over pure 16-bit training"),
    "cast": Constant(1.25, 0.15, 1.0, 2.5, "elementwise traffic with casts to 8 or 4 bit over 16-bit training"),
    "loss_touches": Constant(8.0, 0.5, 1.0, 30.0, "times the logits are moved by the loss"),
    "permute_touches": Constant(12.0, 0.5, 2.0, 60.0, "times routed tokens are moved by permutation and weighting"),
    "scan_touches": Constant(40.0, 0.5, 4.0, 300.0, "times the width is moved by a state-space layer"),
    "link": Constant(0.75, 0.1, 0.4, 0.95, "share of the link rate that large collectives reach"),
    "collective_latency_s": Constant(15e-6, 0.3, 3e-6, 60e-6, "latency of one collective"),
    "tensor_exposed": Constant(0.6, 0.3, 0.05, 1.0, "share of tensor-parallel messages that computing does not hide"),
    "expert_exposed": Constant(0.6, 0.4, 0.05, 1.0, "share of expert messages that computing does not hide"),
    "data_exposed": Constant(0.4, 0.4, 0.02, 1.0, "share of gradient and weight messages that computing does not hide"),
    "pipeline_exposed": Constant(0.5, 0.4, 0.02, 1.0, "share of stage-to-stage messages that computing does not hide"),
    "gather_exposed": Constant(0.6, 0.3, 0.05, 1.0, "share of sharded-weight messages that computing does not hide"),
    "overlap_power": Constant(2.5, 0.2, 1.2, 8.0, "power of the norm that joins work running side by side"),
    "layer_launch_s": Constant(600e-6, 0.4, 50e-6, 4e-3, "host time to launch a layer, forward and backward"),
    "moe_launch_s": Constant(1e-3, 0.6, 50e-6, 2e-2, "the same for routing and experts of a layer", 0.6),
    "step_fixed_s": Constant(10e-3, 0.5, 1e-4, 0.2, "data loading, clipping and logging of a step"),
    "jitter": Constant(0.006, 0.5, 0.0002, 0.04, "time added per doubling of accelerators from eight"),
}
_RATIO = {"fp8": "fp8_ratio", "mxfp8": "mxfp8_ratio", "nvfp4": "nvfp4_ratio"}


def family_of(hw: Hardware) -> str:
    """The family whose offsets apply, by maker and generation.

    >>> from econ.performance.hardware import hardware
    >>> family_of(hardware("H200"))
    'hopper'
    """
    text = f"{hw.family} {hw.name} {hw.vendor}".lower()
    for family in FAMILIES[:4]:
        if family in text:
            return family
    return "other"


@dataclass(frozen=True)
class TrainingConstants:
    """Values by name, log offsets by name and family, and band quantiles by confidence class and group."""

    values: Mapping[str, float]
    offsets: Mapping[str, Mapping[str, float]]

    def at(self, family: str, number_format: str) -> dict[str, float]:
        """The constants that apply to a family and a training format."""
        k = {name: value * math.exp(self.offsets.get(name, {}).get(family, 0.0)) for name, value in self.values.items()}
        k["gemm_wide"] = min(k["gemm"], SPECS["gemm"].high)
        k["gemm"] = k["gemm_wide"] * (k[_RATIO[number_format]] if number_format in _RATIO else 1.0)
        return k


def default_constants() -> TrainingConstants:
    """The constants before any data."""
    return TrainingConstants({name: spec.value for name, spec in SPECS.items()}, {})


@lru_cache(maxsize=1)
def training_constants() -> TrainingConstants:
    """The shipped constants, fitted by `training_calibration`."""
    with data_file("calibration", "parameters_training.json").open(encoding="utf-8") as handle:
        body = json.load(handle)
    return TrainingConstants(body["values"], body["offsets"])
