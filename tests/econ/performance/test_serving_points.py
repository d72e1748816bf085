"""Operating points: refusals, monotone shapes, ceilings, quoted rates and the published latency exponents."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from econ.performance.load_models import (
    closed_loop,
    disaggregated,
    maximum_throughput,
    rank_factor,
    throughput_within,
)
from econ.performance.quoted_rates import ceiling, classify_throughput
from econ.performance.requests import EngineError, build_setups, make_request
from econ.performance.serving import operating_point, operating_points
from econ.performance.setups import Load, Setups
from econ.performance.steps import Constants, constants, decode_step
from econ.performance.tables import serving_parameters

BASE = {"isl": 1024, "osl": 1024, "concurrency": 16}


@pytest.mark.parametrize(
    ("model", "part", "changes", "words"),
    [
        ("no-such-model", "H100", {}, "unknown model"),
        ("Llama-3.1-8B", "no-such-chip", {}, "no-such-chip"),
        ("Llama-3.1-405B", "H100", {}, "does not fit"),
        ("Llama-3.1-8B", "H100", {"isl": 200_000}, "context limit"),
        ("Llama-3.1-8B", "H100", {"tp": 64}, "attention heads"),
        ("Llama-3.1-8B", "H100", {"ep": 8}, "no experts"),
        ("Llama-3.1-8B", "H100", {"pp": 33}, "layers"),
        ("Llama-3.1-8B", "H100", {"weight_format": "XYZ9"}, "unknown weight format"),
        ("Llama-3.1-8B", "H100", {"prefix_hit": 1.0}, "prefix_hit"),
        ("Llama-3.1-8B", "H100", {"osl": 0}, "osl"),
    ],
)
def test_impossible_questions_are_refused_in_words(
    model: str, part: str, changes: dict[str, object], words: str
) -> None:
    with pytest.raises(EngineError, match=words):
        operating_point(model, part, **(BASE | changes))  # type: ignore[arg-type]


def test_exactly_one_load_must_be_given() -> None:
    with pytest.raises(EngineError, match="concurrency"):
        operating_point("Llama-3.1-8B", "H100", isl=100, osl=100)


def test_misfit_message_shows_the_sums() -> None:
    with pytest.raises(EngineError, match=r"weights 811\.\d GB.*tp=1"):
        operating_point("Llama-3.1-405B", "H100", **BASE)  # type: ignore[arg-type]


def test_point_explains_itself() -> None:
    point = operating_point("Llama-3.1-70B", "H100", isl=1024, osl=1024, concurrency=16, tp=4, weight_format="FP8")
    parts = point.breakdown_s
    assert sum(parts.values()) == pytest.approx(point.tpot_s, rel=0.02)
    assert point.tpot_band_s[0] < point.tpot_s < point.tpot_band_s[1]
    assert point.output_band[0] < point.output_tokens_per_s_per_accelerator < point.output_band[1]
    assert point.end_to_end_s(1024) == pytest.approx(point.ttft_s + 1023 * point.tpot_s)
    assert point.energy_per_token(700.0) == pytest.approx(700 / point.output_tokens_per_s_per_accelerator)
    assert point.bytes_per_step_by_link["scale_out"] == 0 < point.bytes_per_step_by_link["scale_up"]


def test_closed_loop_obeys_littles_law() -> None:
    point = operating_point("Llama-3.1-8B", "H200", isl=1000, osl=500, concurrency=64)
    requests_per_s = point.output_tokens_per_s_per_accelerator * point.accelerators / 500
    assert requests_per_s * (point.ttft_s + 500 * point.tpot_s) == pytest.approx(64, rel=1e-6)


def test_more_users_never_speed_up_one_and_never_lower_the_total() -> None:
    users = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256])
    points = operating_points("Llama-3.1-70B", "H200", isl=2048, osl=512, concurrency=users, tp=4, weight_format="FP8")
    assert (np.diff(points.tpot_s) >= -1e-9).all() and (np.diff(points.ttft_s) >= -1e-9).all()
    assert (np.diff(points.output_tokens_per_s_per_accelerator) > -1e-6).all()


def test_full_cache_makes_users_wait_and_holds_time_per_token() -> None:
    few, many = (
        operating_point("Llama-3.3-70B", "H100", isl=5000, osl=500, concurrency=n, tp=2, weight_format="FP8")
        for n in (40, 250)
    )
    assert many.limited_by == "memory_capacity" and many.running_batch <= many.largest_batch * 1.0001
    assert many.ttft_s > 10 * few.ttft_s
    more = operating_point("Llama-3.3-70B", "H100", isl=5000, osl=500, concurrency=500, tp=2, weight_format="FP8")
    assert more.tpot_s == pytest.approx(many.tpot_s, rel=0.01)


def test_points_that_do_not_fit_are_nan_not_numbers() -> None:
    points = operating_points("Llama-3.1-405B", "H100", isl=1000, osl=1000, concurrency=8, tp=[1, 8, 16])
    assert points.fits.tolist() == [False, False, True]
    assert np.isnan(points.tpot_s[:2]).all() and points.tpot_s[2] > 0


@given(
    st.sampled_from(["Llama-3.1-8B", "Llama-3.1-70B", "DeepSeek-V3", "gpt-oss-120b", "Qwen3-30B-A3B"]),
    st.sampled_from(["H100", "H200", "B200", "MI300X"]),
    st.integers(64, 8000),
    st.integers(16, 4000),
    st.integers(1, 1024),
)
@settings(max_examples=40, deadline=None)
def test_throughput_never_beats_the_physical_ceiling(model: str, part: str, isl: int, osl: int, users: int) -> None:
    points = operating_points(model, part, isl=isl, osl=osl, concurrency=users, tp=8, weight_format="FP8")
    if not points.fits[0]:
        return
    top = ceiling(model, part, isl=isl, osl=osl, concurrency=users, tp=8, weight_format="FP8")
    assert points.output_tokens_per_s_per_accelerator[0] <= top * 1.0001


def test_quoted_rates_are_classed() -> None:
    common = {"isl": 1000.0, "osl": 1000.0, "tp": 4, "weight_format": "FP8"}
    fair = classify_throughput(1.0, "Llama-3.1-70B", "H100", **common)  # type: ignore[arg-type]
    assert fair.verdict == "pessimistic"
    for rate, verdict in (
        (fair.ceiling * 1.01, "impossible"),
        ((fair.ceiling + fair.high) / 2, "optimistic"),
        (fair.predicted, "consistent"),
        (fair.low * 0.5, "pessimistic"),
    ):
        found = classify_throughput(rate, "Llama-3.1-70B", "H100", **common)  # type: ignore[arg-type]
        assert found.verdict == verdict and f"{rate:,.0f}" in found.reason
    with pytest.raises(EngineError, match="positive"):
        classify_throughput(0.0, "Llama-3.1-70B", "H100")


def test_unseen_hardware_has_a_wider_band() -> None:
    near = operating_point("Llama-3.1-70B", "H100", isl=1000, osl=1000, concurrency=8, tp=8)
    far = operating_point("Llama-3.1-70B", "TPU-v5p", isl=1000, osl=1000, concurrency=8, tp=8)
    assert far.confidence == "first_principles"
    assert far.tpot_band_s[1] / far.tpot_band_s[0] >= near.tpot_band_s[1] / near.tpot_band_s[0]


def test_speculative_tokens_shorten_memory_bound_decode() -> None:
    plain, fast = (
        operating_point("Llama-3.1-70B", "H100", isl=500, osl=500, concurrency=1, tp=8, speculative_tokens=t)
        for t in (1.0, 2.5)
    )
    assert plain.tpot_s / 2.5 <= fast.tpot_s < plain.tpot_s / 1.8


def test_open_arrival_follows_the_rate_until_it_saturates() -> None:
    slow, fast = (
        operating_point("Llama-3.1-8B", "H200", isl=467, osl=256, arrival_per_s=r, framework="TensorRT-LLM")
        for r in (2.0, 8.0)
    )
    assert slow.output_tokens_per_s_per_accelerator == pytest.approx(2 * 256, rel=0.05)
    assert fast.output_tokens_per_s_per_accelerator == pytest.approx(8 * 256, rel=0.05)
    assert fast.tpot_s > slow.tpot_s
    flood = operating_point("Llama-3.1-8B", "H200", isl=467, osl=256, arrival_per_s=1e4, framework="TensorRT-LLM")
    assert flood.ttft_s > 10 * fast.ttft_s


def _fastest_s(scale: float, bandwidth: float) -> float:
    """Best single-stream time per token over tensor widths, with the terms of the published model.

    These are weight reads over bandwidth and a collective latency that grows with the ranks (arXiv 2506.04645);
    launch and host time are left out. Depth takes a third of a model's growth.
    """
    stored = serving_parameters()
    free = dict.fromkeys(("layer_us", "moe_layer_us", "step_ms", "sequence_us", "shard_loss", "rows_floor"), -30.0)
    p = replace(stored, base=dict(stored.base) | free, offsets={})
    base = make_request("Llama-3.1-70B", "H100", Load(1.0, 1.0, 1.0), weight_format="BF16")
    widths = np.geomspace(1, 1e5, 400)
    s = build_setups([base], p).take(np.zeros(len(widths), dtype=np.int64))
    grown = {n: s.columns[n] * scale for n in ("attention_params", "dense_params", "head_params")}
    grown["layers"] = s.layers * scale ** (1 / 3)
    rate = s.memory_bytes_per_s * bandwidth
    s = s.replaced(tp=widths, memory_bytes_per_s=rate, domain_size=np.full(len(widths), 1e9), **grown)
    step = decode_step(s, constants(p, s), np.ones(len(widths)), np.ones(len(widths))).total_s
    return float(step.min())


def test_p18_best_latency_exponents() -> None:
    size = np.log(_fastest_s(8.0, 1.0) / _fastest_s(1.0, 1.0)) / np.log(8.0)
    rate = np.log(_fastest_s(1.0, 8.0) / _fastest_s(1.0, 1.0)) / np.log(8.0)
    assert size == pytest.approx(1 / 2, abs=0.1)
    assert rate == pytest.approx(-1 / 3, abs=0.1)


def _setups(**changes: float) -> tuple[Setups, Constants]:
    load = Load(**({"isl": 1000.0, "osl": 500.0, "concurrency": 64.0, "tp": 8.0} | changes))
    p = serving_parameters()
    s = build_setups([make_request("DeepSeek-V3", "H200", load, weight_format="FP8", framework="SGLang")], p)
    return s, constants(p, s)


def test_rate_within_a_latency_limit_keeps_it_and_loses_throughput() -> None:
    s, c = _setups()
    free = maximum_throughput(s, c)
    target = free.tpot_s * 0.6
    held = throughput_within(s, c, target)
    assert held.tpot_s[0] <= target[0] * 1.001 and held.output_per_s[0] < free.output_per_s[0]
    assert throughput_within(s, c, np.array([np.inf])).output_per_s[0] == pytest.approx(free.output_per_s[0])


def test_ranks_of_data_parallel_attention_wait_for_each_other() -> None:
    one, many = _setups()[0], _setups(tp=1.0, dp=8.0)[0]
    p = serving_parameters()
    assert rank_factor(one, constants(p, one))[0] == 1.0
    assert rank_factor(many, constants(p, many))[0] >= 1.0


def test_separate_prefill_keeps_decode_undisturbed_and_sends_the_cache() -> None:
    s, c = _setups(isl=8000.0)
    together = closed_loop(s, c)
    apart, _ = disaggregated(s, c, s, c, np.array([4.0]), np.array([1.0]))
    assert apart.tpot_s[0] < together.tpot_s[0]
    slow = s.replaced(internode_bytes_per_s=np.array([1e9]))
    late, _ = disaggregated(slow, c, s, c, np.array([4.0]), np.array([1.0]))
    assert late.ttft_s[0] > apart.ttft_s[0] + 0.1
