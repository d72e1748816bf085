"""User cases on memory fit, latency and throughput sizing, data and units: the stated value or the stated refusal."""

import csv

import pytest

from econ.performance.architecture import architecture
from econ.performance.energy import energy_kwh, joules_per_token
from econ.performance.hardware import hardware
from econ.performance.memory import fit, kv_bytes, least_devices, max_tokens, remaining_bytes, state_bytes, usable_share
from econ.performance.readings import (
    ReadingError,
    arrival_profile,
    count_fleet,
    mean_utilisation,
    one_direction_bytes_per_s,
    share_of,
)
from econ.performance.traffic import decode_ceiling_tokens_per_s, payload_bytes
from supply.paths import data_file

GIB = 2**30


def dense(layers, heads, kv_heads, head_dim, d_model, d_ff=0, **more):
    """A user's own architecture, as a config mapping."""
    return architecture(
        {
            "name": "user model",
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": kv_heads,
            "head_dim": head_dim,
            "hidden_size": d_model,
            "intermediate_size": d_ff or 4 * d_model,
            "vocab_size": 32000,
            **more,
        }
    )


def rows(name):
    with data_file("checks", "files", name).open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def test_case_fit_kv_sliding_window_gemma3_27b():
    kv = float(kv_bytes(architecture("Gemma-3-27B"), 131072))
    assert kv / GIB == pytest.approx(10.4062, rel=0.01)
    assert architecture("Gemma-3-27B").attention.count("full") == 10


def test_case_fit_kv_mla_deepseek_v31():
    model = architecture("DeepSeek-V3.1")
    assert float(kv_bytes(model, 163840)) / GIB == pytest.approx(10.7227, rel=0.005)
    eight = fit(model, "H200", weight_format="fp8", tp=8, ep=8, tokens=131072)
    assert eight.kv_bytes == pytest.approx(float(kv_bytes(model, 131072))), (
        "the latent is replicated under TP, not split"
    )


def test_case_fit_kv_small_model_head_dim():
    model = architecture("Qwen3-0.6B")
    assert model.head_dim == 128 and model.d_model // model.heads == 64
    assert float(kv_bytes(model, 40960)) / GIB == pytest.approx(4.375, rel=0.005)


def test_case_fit_max_len_from_free_memory():
    model = dense(62, 64, 8, 128, 8192)
    assert model.kv_bytes(1) == 253952
    assert float(kv_bytes(model, 262144)) / GIB == pytest.approx(62.0, rel=1e-9)
    assert max_tokens(model, 48.66 * GIB, block_tokens=16) == pytest.approx(205728, rel=0.001)
    assert max_tokens(model, 55.65 * GIB, block_tokens=16) == pytest.approx(235296, rel=0.001)


def test_case_fit_kv_bits_as_bytes():
    model = architecture("Qwen2.5-7B")
    assert model.kv_bytes(1) == 57344
    eight_bit = fit(model, "A10", weight_format="int8", tokens=3072, prefill_tokens=512)
    assert eight_bit.kv_bytes / GIB == pytest.approx(0.164062, rel=0.03), "weight bits do not change the cache"
    assert fit(model, "A10", weight_format="bf16", tokens=3072, prefill_tokens=512).kv_bytes == eight_bit.kv_bytes


def test_case_fit_kv_70b_3000_tokens():
    model = architecture("Llama-3.1-70B")
    sequence = float(kv_bytes(model, 3000))
    assert sequence / 1e9 == pytest.approx(0.98304, rel=0.005)
    free = float(remaining_bytes(4 * 80e9, 70e9, usable_share=0.9))
    assert free / sequence == pytest.approx(220, rel=0.01)  # (288 - 70) / 0.983 is 221.8


def test_case_fit_unified_memory_working_set():
    laptop = hardware({"name": "laptop 48 GB", "base": "M3-Max", "memory_bytes": 48e9})
    budget = laptop.memory_bytes * usable_share(laptop)
    assert budget == pytest.approx(36e9)
    assert 42.7e9 / budget == pytest.approx(1.18611, rel=0.01)
    assert float(remaining_bytes(48e9, 42.7e9, usable_share=usable_share(laptop))) < 0
    assert float(remaining_bytes(48e9, 42.7e9)) > 0, "the physical memory would have called it a fit"
    big = fit("Llama-3.1-70B", laptop, weight_format="q4_k_m", tokens=8192)
    assert not big.fits and "does not fit" in big.reason


def test_case_fit_needs_headroom():
    machine = hardware({"name": "18 GB machine", "base": "M3-Pro", "memory_bytes": 18e9})
    floor = float(payload_bytes(35e9, 0.5))
    assert floor / 1e9 == pytest.approx(17.5, rel=0.001)
    model_a = dense(40, 32, 8, 128, 5120, 15360)  # about 9e9 parameters, 18 GB at 16 bit
    assert model_a.total_parameters * 2 == pytest.approx(18e9, rel=0.35)
    assert not fit(model_a, machine, weight_format="bf16", tokens=512).fits
    with_headroom = fit("Qwen3.5-35B-A3B", machine, weight_format="q4_k_m", tokens=512)
    assert not with_headroom.fits
    assert with_headroom.weight_bytes > floor * 34.66 / 35, "no size below parameters x bits"


def test_case_fit_context_default():
    per_token = 20e9 / 262144
    model = dense(round(per_token / (2 * 4 * 128 * 2)), 32, 4, 128, 4096)
    assert model.kv_bytes(262144) / 1e9 == pytest.approx(20, rel=0.04)
    assert model.kv_bytes(8192) / model.kv_bytes(262144) * 20 == pytest.approx(0.625, rel=0.02)
    card = 8e9
    assert float(remaining_bytes(card, 5680529408, 0.625e9)) > 0
    assert float(remaining_bytes(card, 5680529408, 20e9)) < 0
    file_bytes = 5680529408
    assert file_bytes / GIB == pytest.approx(5.29, rel=0.001)


def test_case_fit_hybrid_config_file():
    model = architecture(data_file("checks", "files", "config_qwen3_next_80b.json"))
    assert model.attention.count("full") == 12 and model.attention.count("linear") == 36
    assert model.kv_bytes(1) == 24576
    assert float(kv_bytes(model, 262144)) / GIB == pytest.approx(6.0, rel=0.01)
    assert state_bytes(model) / 2**20 == pytest.approx(72, rel=0.01)


def test_case_fit_adam_70b_8gpu():
    state = float(payload_bytes(70.6e9, 16))
    assert state / 1e9 == pytest.approx(1129.6, rel=0.001)
    assert float(remaining_bytes(8 * 80 * GIB, state)) / 1e9 == pytest.approx(687.2 - 1129.6, rel=0.001)
    assert least_devices(state, 80 * GIB) == 14
    assert least_devices(state, 80 * GIB, devices_per_node=8) == 16


def test_case_speed_moe_total_params_falsified():
    cap_if_all_read = float(decode_ceiling_tokens_per_s(512e9, 13e9))
    cap_active = float(decode_ceiling_tokens_per_s(512e9, 1.1e9))
    assert cap_if_all_read == pytest.approx(39.3846, rel=0.01)
    assert cap_if_all_read < 77.6 < cap_active
    assert 77.6 / cap_active == pytest.approx(0.167, rel=0.01)
    with pytest.raises(ReadingError, match="exceeds"):
        share_of(77.6, cap_if_all_read)


def test_case_speed_nvlink_directions():
    nominal = one_direction_bytes_per_s(400, "GB/s", "both")
    assert share_of(160e9, nominal) == pytest.approx(0.8, rel=1e-9)
    assert 160e9 / one_direction_bytes_per_s(400, "Gb/s", "one") == pytest.approx(3.2)
    assert hardware("H800").link_bytes_per_s == nominal


def test_case_speed_energy_per_token_napkin():
    joules = float(joules_per_token(400, 1900))
    assert joules / 3.6 == pytest.approx(0.0585, rel=0.005)  # mWh
    assert joules * 512 / 3600 == pytest.approx(0.0299415, rel=0.005)  # Wh


def test_case_power_pue_energy_not_power():
    energy = energy_kwh({"cpu": 45, "ram": 10}, 10, pue=1.5)
    assert energy["it"] == pytest.approx(0.0001528, rel=0.001)
    assert energy["facility"] == pytest.approx(0.000229167, rel=0.005)


def test_case_data_fleet_counts_file():
    fleet = count_fleet(rows("fleet_node_counts.csv"))
    assert (fleet.nodes, fleet.accelerators) == (4278, 10412)
    assert fleet.node_share["A10"] == pytest.approx(0.583, abs=5e-4)
    assert fleet.accelerator_share["A10"] == pytest.approx(0.240, abs=5e-4)
    assert fleet.accelerator_share["A100-SXM4-80GB"] == pytest.approx(0.332, abs=5e-4)
    assert {"GPU-series-1", "GPU-series-2"} <= set(fleet.unknown)


def test_case_data_code_trace_file():
    trace = arrival_profile(rows("azure_llm_code_200.csv"))
    assert (trace.input_tokens, trace.output_tokens) == (414215, 4907)
    assert trace.mean_per_s == pytest.approx(1.0, rel=0.01)
    assert trace.peak_per_s == 26
    assert trace.longest_gap_s == pytest.approx(144, rel=0.01)


def test_case_data_utilisation_above_one():
    with pytest.raises(ReadingError, match=r"1\.294 lies outside"):
        mean_utilisation([1.294, 0.977])
    assert mean_utilisation([1.0], devices=2) == pytest.approx(0.5, rel=1e-9)


def test_case_data_peak_mislabelled():
    h100 = hardware("H100")
    assert h100.peak("bf16") / 1e12 == pytest.approx(989, rel=0.002)
    assert h100.peak("fp8") / 1e12 == pytest.approx(1979, rel=0.002)
    assert h100.peak("bf16", sparse=True) / 1e12 == pytest.approx(1979, rel=0.002)
    assert hardware("A100").peak("bf16") / 1e12 == pytest.approx(312)
