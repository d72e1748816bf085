"""The plain roofline as a parameter set: every efficiency 1, no launch, latency, queueing or imbalance."""

from __future__ import annotations

import math
from functools import lru_cache

from econ.performance.parameters import ParameterSet

#: Values of the constants of `steps.Constants` on an ideal machine; times are a nanosecond's thousandth, not zero.
_IDEAL: dict[str, float] = {
    "weight_bandwidth": 1.0,
    "kv_bandwidth": 1.0,
    "compute": 1.0,
    "compute_format_dense": 1.0,
    "compute_format_expert": 1.0,
    "prefill_compute": 1.0,
    "attention_peak": 1.0,
    "attention_half_length": 1e-6,
    "rows_floor": 1e-6,
    "expert_rows_floor": 1e-6,
    "layer_us": 1e-9,
    "moe_layer_us": 1e-9,
    "linear_layer_share": 1.0,
    "step_ms": 1e-9,
    "sequence_us": 1e-9,
    "skew": 1.0,
    "ep_imbalance": 1e-9,
    "collective_us": 1e-9,
    "collective_bandwidth": 1.0,
    "first_token_ms": 1e-9,
    "prefill_layer_us": 1e-9,
    "interference": 1.0,
    "burst": 1e-9,
    "floor_share": 1e-9,
    "release_rate": 1.0,
    "shard_loss": 1e-9,
    "expert_width": 1e-9,
    "rank_wait": 1e-9,
    "separate_step": 1.0,
    "separate_first_ms": 1e-9,
    "separate_burst": 1e-9,
    "waits": 1e-9,
    "overload": 1.0,
    "chunk_tokens": 1e9,
    "capacity": 1.0,
    "server_share": 1.0,
    "interactive_share": 1.0,
}


@lru_cache(maxsize=1)
def ideal_parameters() -> ParameterSet:
    """Parameters of the physical ceiling.

    >>> float(ideal_parameters().value("weight_bandwidth"))
    1.0
    """
    return ParameterSet({name: math.log(value) for name, value in _IDEAL.items()}, {}, {})
