"""Shapes that no constant may break, on random set-ups, and the refusals of one operating point."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from econ.performance.hardware import hardware
from econ.performance.quoted_rates import ceiling, classify_throughput
from econ.performance.requests import EngineError
from econ.performance.serving import OperatingPoints, operating_point, operating_points

USERS = np.array([1.0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024])
SETUPS = st.fixed_dictionaries(
    {
        "model": st.sampled_from(["Llama-3.1-8B", "Llama-3.1-70B", "DeepSeek-V3", "Mixtral-8x7B", "MPT-7b"]),
        "part": st.sampled_from(["H100", "B200", "MI300X", "A100", "L40S", "TPU-v6e", "Gaudi3", "M2-Ultra"]),
        "tp": st.sampled_from([1, 2, 4, 8]),
        "dp": st.sampled_from([1, 2, 8]),
        "weight_format": st.sampled_from([None, "BF16", "FP8", "NVFP4"]),
        "framework": st.sampled_from(["vLLM", "SGLang", "TensorRT-LLM"]),
        "isl": st.sampled_from([1, 100, 2000, 8000]),
        "osl": st.sampled_from([1, 16, 500, 2000]),
    }
)  # fmt: skip
BASE: dict[str, Any] = {"isl": 1000, "osl": 500, "concurrency": 16, "tp": 4, "weight_format": "FP8"}


def points(setup: dict[str, Any], part: Any = None) -> OperatingPoints:
    rest = {k: v for k, v in setup.items() if k not in ("model", "part")}
    try:
        found = operating_points(setup["model"], part or setup["part"], concurrency=USERS, **rest)
    except EngineError:
        assume(False)
    assume(bool(found.fits.all()))
    return found


@settings(max_examples=60, deadline=None)
@given(SETUPS)
def test_rate_never_beats_the_ceiling_and_times_never_fall_with_users(setup: dict[str, Any]) -> None:
    found = points(setup)
    rate = found.output_tokens_per_s_per_accelerator
    rest = {k: v for k, v in setup.items() if k not in ("model", "part")}
    for n in (0, 3, 6, 10):
        top = ceiling(setup["model"], setup["part"], concurrency=float(USERS[n]), **rest)
        assert rate[n] <= top * (1 + 1e-9)
    assert (np.diff(found.tpot_s) >= -1e-9 * found.tpot_s[:-1]).all()
    assert (np.diff(found.decode_step_s) >= -1e-9 * found.decode_step_s[:-1]).all()
    assert (rate >= 0.99 * rate[0]).all()
    judged = classify_throughput(50_000.0, setup["model"], setup["part"], **rest)
    assert judged.predicted <= judged.ceiling * (1 + 1e-9) and judged.low <= judged.high


@settings(max_examples=25, deadline=None)
@given(SETUPS, st.sampled_from(["memory_bytes_per_s", "link_bytes_per_s", "internode_bytes_per_s"]))
def test_more_bandwidth_never_lowers_a_rate(setup: dict[str, Any], field: str) -> None:
    value = getattr(hardware(setup["part"]), field)
    assume(value > 0)
    plain = points(setup, {"name": "own", "base": setup["part"]})
    fast = points(setup, {"name": "own", "base": setup["part"], field: 1.5 * value})
    rates = fast.output_tokens_per_s_per_accelerator, plain.output_tokens_per_s_per_accelerator
    # The running batch is a fixed point of ten rounds: within 0.3 % where answers of one token meet a full queue.
    assert (rates[0] >= rates[1] * (1 - 3e-3)).all()
    assert (fast.tpot_s[0] <= plain.tpot_s[0] * (1 + 1e-9)) and (fast.prefill_s <= plain.prefill_s * (1 + 1e-9)).all()


def test_answers_of_one_token_are_held_by_the_reading_of_prompts() -> None:
    setup: dict[str, Any] = {"tp": 4, "framework": "vLLM", "isl": 2000, "osl": 1}
    found = operating_points("DeepSeek-V3", "B200", concurrency=USERS, **setup)
    answers_per_s = found.output_tokens_per_s_per_accelerator * found.accelerators
    assert (answers_per_s * found.prefill_s <= 1.3).all()
    assert (np.diff(found.output_tokens_per_s_per_accelerator) >= -1e-9).all()


def test_a_custom_part_given_as_a_mapping_is_answered() -> None:
    own = operating_point("Llama-3.1-70B", {"name": "own", "base": "H100", "memory_bytes_per_s": 6e12}, **BASE)
    assert own.hardware == "own" and own.tpot_s < operating_point("Llama-3.1-70B", "H100", **BASE).tpot_s
    with pytest.raises(EngineError, match="memory_bytes"):
        operating_point("Llama-3.1-70B", {"name": "own"}, **BASE)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tp": 3}, "does not divide"),
        ({"tp": 128}, "attention heads"),
        ({"tp": math.nan}, "tp=nan"),
        ({"ep": 4}, "no experts"),
        ({"tp": 1, "weight_format": "BF16"}, "does not fit"),
        ({"isl": 500_000}, "context limit"),
        ({"isl": math.nan}, "isl=nan"),
        ({"osl": 0}, "osl=0"),
        ({"concurrency": 0}, "concurrency=0"),
        ({"concurrency": math.inf}, "concurrency=inf"),
        ({"speculative_tokens": math.nan}, "speculative_tokens=nan"),
        ({"concurrency": None, "arrival_per_s": 0}, "arrival_per_s=0"),
        ({"weight_format": "int3"}, "int3"),
    ],
)
def test_an_operating_point_that_cannot_be_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(EngineError, match=words):
        operating_point("Llama-3.1-70B", "H100", **(BASE | changes))


def test_fifty_thousand_tokens_a_second_of_a_405b_model_are_impossible() -> None:
    judged = classify_throughput(50_000, "Llama-3.1-405B", "H100", tp=8, weight_format="FP8")
    assert judged.verdict == "impossible" and judged.ceiling < 1_000 and "roofline" in judged.reason
