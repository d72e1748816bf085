"""Operators and steps: exact counts, saturation, monotone times, both statements of a step held together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from econ.performance.architecture import architecture
from econ.performance.ideal import ideal_parameters
from econ.performance.operators import operators, total_flops
from econ.performance.requests import EngineError, Request, build_setups, make_request
from econ.performance.roofline import batch_gain, joined, ridge_point, time_at_rate
from econ.performance.setups import Load
from econ.performance.shapes import expected_distinct_experts, shape_of
from econ.performance.steps import (
    collective_s,
    constants,
    decode_step,
    distinct_experts,
    kv_bytes_per_sequence,
    prefill,
    weight_bytes_per_rank,
)
from econ.performance.tables import serving_parameters


def request(model: str = "Llama-3.1-70B", hardware: str = "H100", **changes: float) -> Request:
    load = Load(**({"isl": 1000.0, "osl": 1000.0, "concurrency": 16.0} | changes))
    return make_request(model, hardware, load, weight_format="BF16", framework="vLLM")


@pytest.mark.parametrize(
    ("model", "values"),
    [("Llama-3.1-70B", 2 * 8 * 128 * 80), ("DeepSeek-V3", (512 + 64) * 61), ("Llama-2-7B", 2 * 32 * 128 * 32)],
)
def test_cache_elements_of_grouped_latent_and_full_attention_are_exact(model: str, values: int) -> None:
    assert shape_of(architecture(model)).kv_elements(1) == values


def test_latent_cache_is_not_divided_by_tensor_parallelism_and_grouped_only_to_its_heads() -> None:
    p = ideal_parameters()
    for model, tp, ways in (("DeepSeek-V3", 8, 1), ("Llama-3.1-70B", 8, 8), ("Llama-3.1-70B", 32, 8)):
        one, many = (build_setups([request(model, tp=float(t))], p) for t in (1, tp))
        context = np.array([500.0])
        assert kv_bytes_per_sequence(one, context)[0] / kv_bytes_per_sequence(many, context)[0] == pytest.approx(ways)


@given(st.integers(1, 512), st.integers(1, 16), st.floats(1, 1e6))
@settings(max_examples=40, deadline=None)
def test_distinct_experts_rise_and_saturate(experts: int, k: int, tokens: float) -> None:
    k = min(k, experts)
    some = expected_distinct_experts(experts, k, tokens)
    assert min(k, experts) <= some <= experts + 1e-9
    assert expected_distinct_experts(experts, k, tokens * 2) >= some
    assert expected_distinct_experts(experts, k, 1e9) == pytest.approx(experts)


def test_scalar_and_array_forms_of_distinct_experts_agree() -> None:
    s = build_setups([request("DeepSeek-V3")], ideal_parameters())
    for tokens in (1.0, 7.0, 300.0):
        both = distinct_experts(s, np.array([tokens]), np.array([0.8]))[0]
        assert both == pytest.approx(expected_distinct_experts(256, 8, tokens, 0.8))


@pytest.mark.parametrize("model", ["Llama-3.1-8B", "DeepSeek-V3", "gpt-oss-120b", "Qwen3.5-397B-A17B"])
def test_decode_time_never_falls_with_batch(model: str) -> None:
    p = serving_parameters()
    batches = np.array([1.0, 2, 3, 5, 8, 16, 33, 64, 128, 256, 1024])
    s = build_setups([request(model, tp=8.0)] * len(batches), p)
    step = decode_step(s, constants(p, s), batches, np.full(len(batches), 2000.0)).total_s
    assert (np.diff(step) >= 0).all()


@pytest.mark.parametrize("model", ["Llama-3.1-8B", "gpt-oss-120b"])
def test_batch_never_lowers_throughput_below_one_stream(model: str) -> None:
    p = serving_parameters()
    batches = np.array([1.0, 2, 4, 16, 64, 512])
    s = build_setups([request(model)] * len(batches), p)
    rate = batches / decode_step(s, constants(p, s), batches, np.full(len(batches), 1000.0)).total_s
    assert (rate >= rate[0] * 0.999).all()


def test_cache_is_read_once_a_step_whatever_is_verified() -> None:
    p = ideal_parameters()
    plain, checked = (build_setups([request(tokens_per_step=t, tp=8.0)], p) for t in (1.0, 3.0))
    batch, context = np.array([32.0]), np.array([8000.0])
    parts = [decode_step(s, constants(p, s), batch, context) for s in (plain, checked)]
    assert parts[0].memory_s[0] == pytest.approx(parts[1].memory_s[0])
    assert parts[1].compute_s[0] > 2.5 * parts[0].compute_s[0]


@pytest.mark.parametrize("model", ["Llama-3.1-70B", "DeepSeek-V3", "Mixtral-8x7B"])
def test_named_operators_sum_to_the_vectorised_ideal_step(model: str) -> None:
    one = request(model, tp=8.0)
    found = operators(one, "decode", 16.0, 2000.0)
    p = ideal_parameters()
    s = build_setups([one], p)
    step = decode_step(s, constants(p, s), np.array([16.0]), np.array([2000.0]))
    moved = sum(o.weight_bytes + o.cache_bytes for o in found) / one.rates.memory_bytes_per_s
    assert moved == pytest.approx(step.memory_s[0], rel=1e-6)
    compute = sum(o.flops / o.peak_flop_per_s for o in found)
    # The vectorised step grants decode attention half of the peak, as its kernels reach.
    attention = next(o for o in found if o.name == "attention")
    assert compute + attention.flops / attention.peak_flop_per_s == pytest.approx(step.compute_s[0], rel=1e-3)


def test_prefill_flops_are_two_per_weight_and_token_plus_the_causal_half() -> None:
    one = request("Llama-3.1-70B")
    total = total_flops(operators(one, "prefill", 1.0, 4096.0))
    shape = shape_of(architecture("Llama-3.1-70B"))
    weights = 2 * (shape.active_params - shape.head_params) * 4096 + 2 * shape.head_params
    causal = 4 * 64 * 128 * 80 * 4096**2 / 2
    assert total == pytest.approx(weights + causal, rel=1e-9)


def test_weights_are_shared_by_tensor_pipeline_and_data_ranks() -> None:
    p = ideal_parameters()
    whole = weight_bytes_per_rank(build_setups([request("Llama-3.1-70B")], p))[0]
    assert whole == pytest.approx(2 * architecture("Llama-3.1-70B").total_parameters, rel=1e-3)
    half = weight_bytes_per_rank(build_setups([request("Llama-3.1-70B", tp=2.0)], p))[0]
    assert half == pytest.approx(whole / 2)
    staged = weight_bytes_per_rank(build_setups([request("Llama-3.1-70B", pp=4.0)], p))[0]
    assert staged == pytest.approx(whole / 4)


def test_one_rank_needs_no_collective_and_more_bytes_take_longer() -> None:
    p = serving_parameters()
    s = build_setups([request(tp=8.0)] * 3, p)
    c = constants(p, s)
    ranks = np.array([1.0, 8.0, 8.0])
    times = collective_s(s, c, np.array([1e6, 1e6, 1e8]), ranks, 2 * (ranks - 1) / ranks)
    assert times[0] == 0 and times[2] > times[1] > 0


def test_prefix_cache_saves_prefill_but_never_all_of_it() -> None:
    p = serving_parameters()
    s = build_setups([request(prefix_hit=hit, isl=8000.0) for hit in (0.0, 0.5, 0.9)], p)
    times = prefill(s, constants(p, s)).work_s
    assert times[0] > times[1] > times[2] > 0
    assert times[1] > 0.5 * times[0]  # new tokens still attend to the cached ones


def test_roofline_closed_forms() -> None:
    assert float(ridge_point(989e12, 3.35e12)) == pytest.approx(295.2, rel=1e-3)
    assert float(batch_gain(64, 2, 989e12, 3.35e12)) == 64
    assert float(batch_gain(4096, 2, 989e12, 3.35e12)) == pytest.approx(295.2, rel=1e-3)
    assert float(time_at_rate(1000, 100)) == 10
    assert float(joined(np.array(3.0), np.array(4.0), 2.0)) == pytest.approx(5.0)
    with pytest.raises(ValueError, match="rate"):
        time_at_rate(1.0, 0.0)


@pytest.mark.parametrize(("phase", "batch", "message"), [("train", 1.0, "phase"), ("decode", 0.0, "positive")])
def test_operators_refuse_nonsense(phase: str, batch: float, message: str) -> None:
    with pytest.raises(EngineError, match=message):
        operators(request(), phase, batch, 100.0)  # type: ignore[arg-type]


def test_operators_of_a_dense_decode_step_are_the_counts_of_the_model_card() -> None:
    """Llama 70B: 80 layers of 8,192; 64 heads of 128 over 8 kept ones; two ranks, 16 sequences of 1,000 tokens."""
    found = {o.name: o for o in operators(request(tp=2.0), "decode", 16, 1000)}
    projections = found["attention_projections"]
    params = 80 * (2 * 8192 * 8192 + 2 * 8192 * 1024)
    assert projections.flops == pytest.approx(2 * params * 16 / 2)
    assert (projections.weight_bytes, projections.cache_bytes) == (pytest.approx(2 * params / 2), 0.0)
    assert projections.activation_bytes == 2 * 16 * 8192 * 2  # read and written, two bytes each
    attention = found["attention"]
    assert attention.flops == pytest.approx(16 * 1000 * 80 * 4 * 64 * 128 / 2)
    assert attention.cache_bytes == pytest.approx(16 * 1000 * 2 * 8 * 128 * 80 * 2 / 2)
    assert (attention.weight_bytes, attention.activation_bytes) == (0.0, 0.0)
    for operator in found.values():
        moved = operator.weight_bytes + operator.cache_bytes + operator.activation_bytes
        assert operator.intensity_flop_per_byte == pytest.approx(operator.flops / moved)


def test_experts_are_spread_over_the_ranks_of_data_parallel_attention() -> None:
    """DeepSeek-V3: 8 of 256 experts of 3 x 7168 x 2048 a token, in 58 layers; every rank brings its own 16 tokens."""
    one, four = (
        next(o for o in operators(request("DeepSeek-V3", tp=2.0, dp=dp), "decode", 16, 1000) if o.name == "experts")
        for dp in (1.0, 4.0)
    )
    expert = 3 * 7168 * 2048 * 58
    assert one.flops == four.flops == pytest.approx(2 * 8 * expert * 16 / 2)
    for found, tokens, ranks in ((one, 16, 2), (four, 64, 8)):
        stored = found.weight_bytes * ranks / expert
        assert stored == pytest.approx(2 * expected_distinct_experts(256, 8, tokens))
        assert (found.cache_bytes, found.activation_bytes) == (0.0, 2 * 16 * 7168 * 2)


def test_prefill_attention_of_full_and_windowed_layers() -> None:
    """gpt-oss-120b: 18 full layers (the causal half) and 18 that look back 128 tokens; 64 heads of 64."""
    (found,) = (o for o in operators(request("gpt-oss-120b"), "prefill", 2, 1000) if o.name == "attention")
    assert found.flops == pytest.approx(2 * 18 * 4 * 64 * 64 * (1000**2 / 2 + 1000 * 128))
    (short,) = (o for o in operators(request("gpt-oss-120b"), "prefill", 2, 100) if o.name == "attention")
    assert short.flops == pytest.approx(2 * 36 * 4 * 64 * 64 * 100**2 / 2)  # the window holds all: causal half


def test_linear_attention_adds_work_for_each_token_whatever_the_context() -> None:
    r = request("Qwen3.5-397B-A17B")
    for phase, slope in (("decode", 1), ("prefill", 2)):
        at = {c: operators(r, phase, 4, c) for c in (1000, 2000)}  # type: ignore[arg-type]
        first, second = (next(o.flops for o in at[c] if o.name == "attention") for c in (1000, 2000))
        linear = 4 * r.shape.linear_flops * (1 if phase == "decode" else 1000)
        assert linear > 0
        # the part of the pairs grows with the context (its square in prefill), the linear part once with its tokens
        assert 2**slope * first - second == pytest.approx(linear * (2**slope - slope), rel=1e-9)


@pytest.mark.parametrize(("batch", "context"), [(0, 1000), (16, 0), (-1, 1000), (16, -1)])
def test_a_step_of_nothing_is_refused(batch: int, context: int) -> None:
    with pytest.raises(EngineError, match="must be positive"):
        operators(request(), "decode", batch, context)


def test_work_below_one_has_a_time_and_none_is_refused() -> None:
    assert time_at_rate(0.25, 0.5) == 0.5
    for rate in (0.0, -1.0):
        with pytest.raises(ValueError, match="rate"):
            time_at_rate(1.0, rate)
