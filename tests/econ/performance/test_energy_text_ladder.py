"""Energy by phase, tokens of text, the memory ladder, reuse arithmetic and readings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from econ.performance import traffic
from econ.performance.energy import (
    EnergyError,
    average_power_w,
    chip_power_w,
    energy_kwh,
    joules_per_token,
    phase_energy,
    request_energy,
    weight_sweep_energy_j,
)
from econ.performance.hardware import hardware, known_hardware
from econ.performance.memory_ladder import ladder, rows
from econ.performance.readings import ReadingError, arrival_profile, count_fleet, one_direction_bytes_per_s, share_of
from econ.performance.text_tokens import (
    TextError,
    languages,
    tokens_for_same_meaning,
    tokens_from_characters,
    tokens_from_pages,
    tokens_from_words,
)
from supply.facts import catalog


def test_power_of_the_phases():
    assert float(chip_power_w("H200", 0, 1)) == pytest.approx(300, rel=0.01)  # measured upper end of decode
    assert float(chip_power_w("H200", 1, 1)) == 700
    np.testing.assert_array_less(chip_power_w("H100", [0.0, 0.2], [0.5, 0.5]), 700)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(known_hardware()), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_power_rises_with_work_and_never_passes_the_limit(name, compute, memory, more):
    part = hardware(name)
    low = float(chip_power_w(part, compute * more, memory * more))
    high = float(chip_power_w(part, compute, memory))
    assert 0 < low <= high * (1 + 1e-12) <= part.tdp_w * (1 + 1e-9)


def test_energy_of_a_step_and_its_mean():
    decode = phase_energy("decode", "H100", seconds=0.05, flop=1.4e11, moved_bytes=1.4e11, tokens=8)
    prefill = phase_energy("prefill", "H100", seconds=0.2, flop=1.4e14, moved_bytes=1.4e11, tokens=1000)
    assert decode.joules == pytest.approx(decode.power_w * 0.05)
    assert decode.joules_per_token > prefill.joules_per_token
    mean = average_power_w([decode, prefill], idle_seconds=0.25, idle_w=105)
    assert mean == pytest.approx((decode.joules + prefill.joules + 105 * 0.25) / 0.5)
    per_request = request_energy([decode, prefill], requests=4, pue=1.2)
    assert per_request["total"] == pytest.approx((decode.joules + prefill.joules) * 1.2 / 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: chip_power_w("H100", 1.2, 0), "compute share 1.2 lies outside|compute share array"),
        (lambda: joules_per_token(400, 0), "none may be so"),
        (lambda: energy_kwh({"cpu": 45}, 10, pue=0.9), "PUE below 1"),
        (lambda: phase_energy("x", "H100", seconds=1e-9, flop=1e14, moved_bytes=1, tokens=1), "shorter than the peaks"),
        (lambda: average_power_w([]), "no phase"),
    ],
)
def test_energy_refusals(call, message):
    with pytest.raises(EnergyError, match=message):
        call()


def test_weight_sweep_energy():
    assert float(weight_sweep_energy_j(40e9, 4)) == pytest.approx(1.28)
    per_bit = catalog()["hbm3e_energy_per_bit_2025_10"].number
    assert float(weight_sweep_energy_j(40e9)) == pytest.approx(40e9 * 8 * per_bit * 1e-12)


def test_tokens_of_text():
    assert tokens_from_words(750, words_per_token=0.75).tokens == pytest.approx(1000)
    assert tokens_from_words(750).tokens == pytest.approx(1000)
    assert tokens_from_pages(40).tokens == pytest.approx(20000, rel=0.1)
    assert tokens_from_pages(40, tokens_per_page=500).tokens == 20000
    assert tokens_from_words(100, "Malayalam").tokens / tokens_from_words(100).low == pytest.approx(11.5, rel=0.01)
    assert tokens_from_characters(1000, "o200k").tokens < tokens_from_characters(1000, "cl100k").tokens
    assert tokens_from_characters(1000, "cl100k", code=True).tokens > tokens_from_characters(1000, "cl100k").tokens


@pytest.mark.parametrize("language", languages())
def test_text_ranges_hold_the_value(language):
    count = tokens_from_words(1000, language)
    assert count.low <= count.tokens <= count.high and count.basis in catalog()


def test_the_same_meaning_costs_more_tokens():
    english = tokens_for_same_meaning(750, "English")
    for language in ("spanish", "french", "arabic", "japanese", "chinese"):
        count = tokens_for_same_meaning(750, language)
        assert english.tokens < count.tokens and count.low <= count.tokens <= count.high
    with pytest.raises(TextError, match="no token premium of 'klingon'"):
        tokens_for_same_meaning(750, "klingon")


def test_text_refusals():
    with pytest.raises(TextError, match="no fertility of 'tamul'; did you mean tamil"):
        tokens_from_words(10, "tamul")
    with pytest.raises(TextError, match="-1 words"):
        tokens_from_words(-1)
    with pytest.raises(TextError, match=r"known: .*cl100k"):
        tokens_from_characters(10, "nonesuch")


@pytest.mark.parametrize("name", known_hardware())
def test_ladder_falls_in_speed_and_never_in_latency(name):
    rungs = ladder(name)
    inside = [rungs[r] for r in ("registers", "shared memory", "L2 cache", "device memory") if r in rungs]
    assert [r.bytes_per_s for r in inside] == sorted((r.bytes_per_s for r in inside), reverse=True)
    latencies = [r.latency_s for r in rungs.values() if r.name != "host memory"]
    assert latencies == sorted(latencies)
    assert all(i in catalog() for r in rungs.values() for i in r.fact_ids if i)
    assert len(rows(name)) == len(rungs)


def test_reuse_arithmetic():
    assert float(traffic.macs_per_operand(128)) == 64
    assert float(traffic.dense_over_active(116.8e9, 5.1e9)) == pytest.approx(22.9, rel=0.01)
    assert float(traffic.sram_area_mm2(40e9, 38)) == pytest.approx(8421, rel=0.01)
    assert float(traffic.sram_area_mm2(40e9, 38)) / 858 == pytest.approx(9.8, rel=0.01)
    assert float(traffic.vocabulary_parameters(100_000, 8192)) == 1.6384e9
    assert float(traffic.weight_reads_per_second(3000e9, 140e9)) == pytest.approx(21.4286, rel=1e-4)
    assert float(traffic.decode_ceiling_tokens_per_s(8e12, 40e9)) == 200
    assert float(traffic.speedup_from_width(2, 1)) == 2
    assert traffic.cache_positions(14, 2) == 16
    assert traffic.trips_saved(8) == 7


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: traffic.payload_bytes(-1, 2), "must be positive"),
        (lambda: traffic.dense_over_active(1e9, 2e9), "exceed the total"),
        (lambda: traffic.trips_saved(0), "0 uses"),
        (lambda: traffic.cache_positions(-1, 2), "must not be negative"),
    ],
)
def test_reuse_refusals(call, message):
    with pytest.raises(traffic.TrafficError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: one_direction_bytes_per_s(900, "GBps", "both"), "a b is a bit"),
        (lambda: one_direction_bytes_per_s(900, "GB/s", "sideways"), "must be `one` or `both`"),
        (lambda: share_of(2, 1), "bits against bytes"),
        (lambda: count_fleet([]), "no rows"),
        (lambda: arrival_profile([]), "0 requests has no rate"),
        (lambda: count_fleet([{"gpu_model": "A10", "gpus_per_node": "0", "nodes": "1"}]), "row 1"),
    ],
)
def test_reading_refusals(call, message):
    with pytest.raises(ReadingError, match=message):
        call()
