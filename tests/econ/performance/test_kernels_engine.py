"""Kernel models: limits that physics sets, the metrics they are asked in, and rows that have no model."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from econ.performance.hardware import hardware
from econ.performance.kernel_predict import predict_kernel_rows
from econ.performance.kernel_rows import parse_kernel_row, parse_operator_row, weight_format
from econ.performance.kernels import wave_factor
from econ.performance.requests import EngineError


def gemm(m: int, n: int, k: int, part: str = "H100", dtype: str = "bf16", metric: str = "latency_ms") -> dict[str, str]:
    unit = {"latency_ms": "ms", "tflops": "TFLOP/s", "memory_bandwidth": "GB/s"}[metric]
    shape = f"m={m} n={n} k={k}"
    return {"hardware": part, "kernel": "GEMM (trtllm)", "shape": shape, "dtype": dtype, "metric": metric, "unit": unit}


def value(row: dict[str, str]) -> float:
    answer = predict_kernel_rows([row])[0]
    assert answer.predicted is not None, answer.reason
    return answer.predicted


@given(st.sampled_from([1, 16, 128, 1000, 4096]), st.sampled_from([512, 4096, 16384]), st.sampled_from([512, 7168]))
@settings(max_examples=25, deadline=None)
def test_matrix_product_never_beats_compute_or_memory(m: int, n: int, k: int) -> None:
    part = hardware("H100")
    seconds = value(gemm(m, n, k)) / 1e3
    assert seconds > 2.0 * m * n * k / part.peak("bf16")
    if 2.0 * n * k > 60e6:  # beyond the cache
        assert seconds > 2.0 * n * k / part.memory_bytes_per_s


def test_rate_and_time_of_one_product_agree() -> None:
    seconds = value(gemm(4096, 4096, 4096)) / 1e3
    assert value(gemm(4096, 4096, 4096, metric="tflops")) == pytest.approx(2 * 4096**3 / seconds / 1e12)
    moved = 2.0 * 3 * 4096**2
    assert value(gemm(4096, 4096, 4096, metric="memory_bandwidth")) == pytest.approx(moved / seconds / 1e9)


@pytest.mark.parametrize("part", ["H100", "B200", "L40S"])
def test_narrower_weights_are_never_slower_when_memory_bound(part: str) -> None:
    assert value(gemm(1, 16384, 16384, part, "fp8")) < value(gemm(1, 16384, 16384, part, "bf16"))


def test_partly_filled_waves_cost_time() -> None:
    units = np.array([132.0, 132.0])
    full, odd = wave_factor(np.array([128.0 * 12, 128.0 * 12 + 1]), np.array([128.0 * 11, 128.0 * 11]), units)
    assert 1.0 <= full < odd


def test_all_reduce_has_a_floor_and_a_wire_rate() -> None:
    def row(size: int) -> dict[str, str]:
        return {
            "hardware": "H100",
            "kernel": "NCCL all_reduce",
            "shape": f"8 GPUs, {size} bytes",
            "dtype": "fp16",
            "metric": "latency_ms",
            "unit": "ms",
        }

    small, large = value(row(1024)) / 1e3, value(row(2**30)) / 1e3
    assert 3e-6 < small < 60e-6
    assert large > 2 * 7 / 8 * 2**30 / (1.1 * hardware("H100").link_bytes_per_s)
    assert value(row(2048)) >= value(row(1024))


@pytest.mark.parametrize(
    ("op", "params"),
    [
        ("gemm", {"gemm_dtype": "fp8", "m": 128, "n": 4096, "k": 4096}),
        ("moe", {"moe_dtype": "bfloat16", "num_tokens": 64, "hidden_size": 4096, "inter_size": 1536, "num_experts": 128,
                 "topk": 8, "moe_ep_size": 1, "moe_tp_size": 2, "distribution": "power_law_1.2"}),
        ("context_attention", {"attn_dtype": "bfloat16", "batch_size": 2, "isl": 4096, "num_heads": 32,
                               "num_key_value_heads": 8, "head_dim": 128, "step": 0, "window_size": 0}),
        ("generation_attention", {"attn_dtype": "bfloat16", "kv_cache_dtype": "fp8", "batch_size": 32, "isl": 1,
                                  "num_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "step": 4095}),
        ("mla_generation", {"mla_dtype": "bfloat16", "kv_cache_dtype": "bfloat16", "batch_size": 32, "isl": 1,
                            "num_heads": 128, "step": 4095, "tp_size": 1}),
        ("mla_context", {"mla_dtype": "bfloat16", "kv_cache_dtype": "fp8", "batch_size": 1, "isl": 4096,
                         "num_heads": 128, "step": 0, "tp_size": 1}),
        ("nccl_all_gather", {"nccl_dtype": "half", "message_size": 1048576, "num_gpus": 8}),
        ("custom_all_reduce", {"allreduce_dtype": "bfloat16", "message_size": 8192, "num_gpus": 4, "kernel": "TRTLLM"}),
        ("moe_a2a_dispatch", {"comm_backend": "deepep_ht", "comm_dtype": "default", "ep_size": 8, "hidden_size": 7168,
                              "node_num": 1, "num_experts": 256, "num_tokens": 1024, "topk": 8, "phase": "dispatch"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("system", ["h200_sxm", "b300_sxm", "gb300"])
def test_every_operator_is_answered_in_milliseconds_with_a_band(
    op: str, params: dict[str, object], system: str
) -> None:
    row = {"system": system, "framework": "trtllm", "version": "1.0", "op": op, "params_json": json.dumps(params)}
    answer = predict_kernel_rows([row])[0]
    assert answer.answered, answer.reason
    assert answer.low is not None and answer.predicted is not None and answer.high is not None
    assert 1e-3 < answer.predicted < 1e3 and answer.low < answer.predicted < answer.high


def test_longer_cache_takes_longer_and_a_window_caps_it() -> None:
    def row(step: int, window: int = 0) -> dict[str, str]:
        params = {"attn_dtype": "bfloat16", "kv_cache_dtype": "bfloat16", "batch_size": 64, "isl": 1, "num_heads": 32,
                  "num_key_value_heads": 8, "head_dim": 128, "step": step, "window_size": window}  # fmt: skip
        return {
            "system": "h100_sxm",
            "framework": "vllm",
            "op": "generation_attention",
            "params_json": json.dumps(params),
        }

    assert value(row(32768)) > 4 * value(row(4096))
    assert value(row(32768, 4096)) == pytest.approx(value(row(4095)), rel=1e-6)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"kernel": "softmax", "hardware": "H100", "metric": "latency_ms"}, "no model of the kernel"),
        (
            {"kernel": "GEMM", "shape": "m=1 n=1 k=1", "hardware": "no-such-chip", "metric": "latency_ms"},
            "no-such-chip",
        ),
        ({"kernel": "GEMM", "shape": "m=1 n=1 k=1", "hardware": "H100", "metric": "watts"}, "watts"),
    ],
)
def test_unanswerable_kernels_say_why(row: dict[str, str], words: str) -> None:
    answer = predict_kernel_rows([row])[0]
    assert not answer.answered and words in answer.reason


def test_bad_operator_parameters_are_named() -> None:
    with pytest.raises(EngineError, match="not JSON"):
        parse_operator_row({"op": "gemm", "params_json": "{oops"})


def test_shapes_and_formats_are_read() -> None:
    case = parse_kernel_row({"kernel": "all_reduce (PyTorch bench)", "shape": "32 GPUs 4 nodes, payload 64MiB"})
    assert (case.get("ranks"), case.get("nodes"), case.get("bytes")) == (32, 4, 64 * 2**20)
    assert [weight_format(x) for x in ("w4a8_mxfp4_mxfp8", "nvfp4", "sq", "int4_wo")] == [
        "w4a8",
        "fp4",
        "int8",
        "int4_wo",
    ]
