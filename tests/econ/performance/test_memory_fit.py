"""The subtraction: order, monotonicity, layouts, and clear refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from econ.performance.architecture import architecture
from econ.performance.formats import number_format, weight_bytes
from econ.performance.hardware import hardware
from econ.performance.memory import (
    MemoryFitError,
    default_margin,
    fit,
    gb,
    kv_bytes,
    least_devices,
    max_tokens,
    remaining_bytes,
    usable_share,
    weights_per_device,
)
from econ.performance.memory_layout import Layout, kv_share
from econ.performance.offload import offload

STEPS = ("device memory", "not usable", "weights", "keys and values", "workspaces", "safety margin")


def test_the_subtraction_runs_in_order_and_adds_up():
    answer = fit("Llama-3.1-8B", "H100", batch=16, tokens=4096)
    assert tuple(r.step for r in answer.rows) == STEPS
    left = answer.rows[0].bytes
    for row in answer.rows[1:]:
        left -= row.bytes
        assert row.left_bytes == pytest.approx(left)
    assert answer.left_bytes == answer.rows[-1].left_bytes and answer.fits


def test_known_margins_of_the_course():
    assert float(remaining_bytes(80e9, 140e9)) < 0
    assert float(remaining_bytes(192e9, 140e9)) == 52e9
    np.testing.assert_allclose(remaining_bytes([80e9, 192e9], 140e9), [-60e9, 52e9])


def test_largest_batch_and_context_are_tight():
    base = {"weight_format": "fp8", "tp": 2, "tokens": 4096}
    answer = fit("Llama-3.1-70B", "H100", batch=1, **base)
    assert fit("Llama-3.1-70B", "H100", batch=answer.largest_batch, **base).fits
    assert not fit("Llama-3.1-70B", "H100", batch=answer.largest_batch + 1, **base).fits
    fixed = {"weight_format": "fp8", "tp": 2, "batch": 8, "prefill_tokens": 8192}
    longest = fit("Llama-3.1-70B", "H100", tokens=4096, **fixed).largest_context
    assert fit("Llama-3.1-70B", "H100", tokens=longest, **fixed).fits
    assert not fit("Llama-3.1-70B", "H100", tokens=longest + 16, **fixed).fits


def test_least_tensor_parallel_degree_really_fits():
    answer = fit("Llama-3.1-405B", "H100", weight_format="fp8")
    assert not answer.fits and answer.least_tp == 8
    assert fit("Llama-3.1-405B", "H100", weight_format="fp8", tp=8).fits
    assert not fit("Llama-3.1-405B", "H100", weight_format="fp8", tp=4).fits
    assert "weights alone need 410.16 GB" in answer.reason and "GiB" in answer.reason
    never = fit("Kimi-K2", "RTX-4090")
    assert not never.fits and never.least_tp is None and "no tensor-parallel degree" in never.reason


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["Llama-3.1-8B", "gpt-oss-20b", "DeepSeek-V3", "Qwen3.5-35B-A3B", "Gemma-3-27B"]),
    st.integers(1, 64),
    st.integers(16, 8000),
    st.sampled_from([1, 2, 4]),
)
def test_more_load_never_leaves_more_memory(model, batch, tokens, tp):
    one = fit(model, "B200", batch=batch, tokens=tokens, tp=tp, prefill_tokens=2048)
    assert one.left_bytes >= fit(model, "B200", batch=batch + 1, tokens=tokens, tp=tp, prefill_tokens=2048).left_bytes
    assert one.left_bytes >= fit(model, "B200", batch=batch, tokens=tokens + 16, tp=tp, prefill_tokens=2048).left_bytes
    assert one.fits == (one.left_bytes >= 0) == (batch <= one.largest_batch)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(["Llama-3.1-70B", "gpt-oss-120b", "Gemma-3-27B", "OLMo-3-32B"]), st.floats(1e8, 2e11))
def test_longest_sequence_inverts_the_cache_size(name, free):
    model = architecture(name)
    tokens = max_tokens(model, free, block_tokens=16)
    assert float(kv_bytes(model, tokens)) <= free * (1 + 1e-12)
    assert float(kv_bytes(model, tokens + 16)) > free


def test_cache_is_vectorised_and_rounded_to_blocks():
    model = architecture("Llama-3.1-8B")
    np.testing.assert_allclose(kv_bytes(model, [1, 16, 17], block_tokens=16), np.array([16, 16, 32]) * 131072.0)


def test_cache_under_layouts():
    gqa, mla = architecture("Llama-3.1-70B"), architecture("DeepSeek-V3")
    assert kv_share(gqa, Layout(tp=8)) == 1 / 8 == kv_share(gqa, Layout(tp=64))
    assert kv_share(mla, Layout(tp=8)) == 1
    assert kv_share(gqa, Layout(tp=8, dp=4)) == 1 / 8, "data-parallel attention never divides a sequence"
    assert kv_share(gqa, Layout(pp=4)) == pytest.approx(0.25)
    model = fit("Llama-3.1-70B", "B200", weight_format="fp8", kv_format="fp8", tokens=1000, block_tokens=1)
    assert model.kv_bytes == pytest.approx(327680 / 2 * 1000, rel=0.01)


def test_weights_split_but_never_vanish():
    model, bf16 = architecture("Mixtral-8x7B"), number_format("bf16")
    whole = weights_per_device(model, bf16, Layout())
    assert whole == pytest.approx(weight_bytes(model, bf16))
    assert weights_per_device(model, bf16, Layout(tp=8)) == pytest.approx(whole / 8)
    assert weights_per_device(model, bf16, Layout(tp=2, pp=4)) > whole / 8
    assert weights_per_device(model, bf16, Layout(ep=8)) > whole / 8, "attention is not divided by EP"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tp": 3}, "TP 3 does not divide the 32 heads"),
        ({"pp": 64}, "PP 64 exceeds the 32 layers"),
        ({"ep": 2}, "EP 2 needs experts, which Llama-3.1-8B has not"),
        ({"tokens": 200_000}, "200,000 tokens is beyond the context of 131,072"),
        ({"batch": 0}, "batch 0 and tokens 4096 must be at least 1"),
        ({"tp": 0}, "TP 0 must be at least 1"),
    ],
)
def test_impossible_set_ups_are_refused(options, message):
    with pytest.raises(MemoryFitError, match=message):
        fit("Llama-3.1-8B", "H100", **options)


def test_shared_memory_machines_keep_headroom():
    mac = hardware("M3-Max")
    assert usable_share(mac) == 0.75 and usable_share(hardware("H100")) == 0.92
    small = hardware({"name": "8 GB Mac", "base": "M1", "memory_bytes": 6e9})
    assert (1 - usable_share(small)) * 6e9 + default_margin(small, usable_share(small)) == pytest.approx(2e9)
    assert default_margin(hardware("H100"), 0.92) == 0


def test_units_are_labelled():
    assert gb(2**30) == "1.07 GB (1.00 GiB)"
    text = fit("Llama-3.1-8B", "H100").table()
    assert text.count("GiB") == 2 * len(STEPS) and "weights" in text


def test_device_counts():
    assert least_devices(1.12e12, 80e9) == 14
    assert least_devices(80e9, 80e9) == 1
    with pytest.raises(MemoryFitError, match="must be positive"):
        least_devices(0, 80e9)


def test_offload_costs_more_the_farther_it_goes():
    plans = offload("Llama-3.1-70B", "H100", weight_format="bf16")
    assert [p.slowdown for p in plans] == sorted(p.slowdown for p in plans)
    assert plans[0].offloaded_bytes == pytest.approx(-fit("Llama-3.1-70B", "H100", weight_format="bf16").left_bytes)
    assert 0 < plans[0].tokens_per_s < 3350e9 / 141e9
    fits = offload("Llama-3.1-8B", "H100")
    assert len(fits) == 1 and fits[0].slowdown == 1
    sparse, dense = offload("gpt-oss-120b", "RTX-4090")[0], offload("Llama-3.1-70B", "RTX-4090")[0]
    assert sparse.tokens_per_s > dense.tokens_per_s, "only active experts cross the link"


def test_offload_refuses_when_the_cache_alone_is_too_much():
    with pytest.raises(MemoryFitError, match="cache and workspaces alone"):
        offload("Llama-2-7B", "RTX-3070", tokens=4096, batch=64)


def test_half_a_byte_too_much_does_not_fit() -> None:
    left = fit("Llama-3.1-8B", "H100", margin_bytes=0.0).left_bytes
    assert fit("Llama-3.1-8B", "H100", margin_bytes=left - 0.5).fits
    assert not fit("Llama-3.1-8B", "H100", margin_bytes=left + 0.5).fits
