"""Bits per weight from block layouts, checkpoint bytes, and the compute path of a format on a device."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from econ.performance.architecture import architecture, known_models
from econ.performance.formats import (
    FormatError,
    compute_format,
    known_formats,
    needs_dequantisation,
    number_format,
    part_bytes,
    weight_bytes,
)
from econ.performance.hardware import hardware, known_hardware


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("mxfp4", 4.25),  # 32 nibbles and an 8-bit exponent
        ("nvfp4", 4.5),  # 16 nibbles and an 8-bit scale
        ("q4_0", 18 * 8 / 32),  # 18 bytes a block of 32
        ("q4_k", 144 * 8 / 256),
        ("q5_k", 176 * 8 / 256),
        ("q6_k_block", None),
        ("q8_0", 8.5),
        ("bf16", 16),
        ("int8", 8),
    ],
)
def test_block_layouts(name, bits):
    if bits is None:
        with pytest.raises(FormatError, match="unknown number format"):
            number_format(name)
        return
    assert number_format(name).bits_per_weight == pytest.approx(bits)


def test_a_mix_lies_between_its_block_types():
    assert number_format("q4_k").bits_per_weight < number_format("Q4_K_M").bits_per_weight
    assert number_format("Q4_K_M").bits_per_weight < number_format("Q5_K_M").bits_per_weight
    assert number_format("Q4_K_M").bits_per_weight == pytest.approx(4.8944)


@pytest.mark.parametrize("name", known_formats())
def test_every_format_has_sane_bits(name):
    fmt = number_format(name)
    assert 1.5 <= fmt.bits_per_weight <= 32
    if fmt.kind == "float":
        assert fmt.exponent + fmt.mantissa + 1 <= fmt.element_bits


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("GGUF Q4_K_M", "q4_k_m"),
        ("Q8_0 GGUF", "q8_0"),
        ("MXFP4 GGUF", "mxfp4"),
        ("GPTQ 4bit g128", "int4"),
        ("UD-Q5_K_XL", "q5_k_xl"),
        ("FP8_E4M3", "fp8"),
        ("NVFP4 MoE", "nvfp4"),
        ("F16", "fp16"),
    ],
)
def test_spellings_of_data_sets(spelling, name):
    assert number_format(spelling).name == name


def test_exl2_bits_are_in_the_name():
    assert number_format("EXL2 2.5 bpw").bits_per_weight == 2.5


def test_gpt_oss_weights_are_65_gb():
    """B-11: 114.7e9 expert values at 4.25 bit and 2.1e9 others at 16 bit."""
    model = architecture("gpt-oss-120b")
    assert weight_bytes(model) == pytest.approx(65.2e9, rel=0.01)
    assert weight_bytes(model) / 2**30 == pytest.approx(60.7, rel=0.01)
    parts = part_bytes(model, "mxfp4")
    assert parts["experts"] / model.parameters["experts"] == pytest.approx(4.25 / 8)
    assert parts["attention"] / model.parameters["attention"] == 2


def test_llama_cpp_file_sizes():
    """llama.cpp prints 4.9 GB for Llama 3.1 8B and 43.1 for 70B at Q4_K_M (its own disk table)."""
    assert weight_bytes(architecture("Llama-3.1-8B"), "q4_k_m") == pytest.approx(4.9e9, rel=0.02)
    assert weight_bytes(architecture("Llama-3.1-70B"), "q4_k_m") == pytest.approx(43.1e9, rel=0.02)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(known_models()), st.sampled_from(known_formats()))
def test_bytes_never_fall_below_parameters_times_bits(model_name, format_name):
    model, fmt = architecture(model_name), number_format(format_name)
    floor = model.total_parameters * min(fmt.bits_per_weight, 16) / 8
    assert weight_bytes(model, fmt) >= floor * (1 - 1e-12)


@pytest.mark.parametrize(
    ("stored", "device", "path"),
    [
        ("fp8", "A100", "bf16"),
        ("fp8", "H100", "fp8"),
        ("nvfp4", "H100", "fp8"),
        ("nvfp4", "B200", "fp4"),
        ("q4_k_m", "RTX-4090", "fp16"),
        ("bf16", "V100", "fp16"),
        ("bf16", "WSE-3", "fp16"),
    ],
)
def test_compute_path(stored, device, path):
    part = hardware(device)
    assert compute_format(stored, part) == path
    assert needs_dequantisation(stored, part) == (path != number_format(stored).native)


def test_weight_only_quantisation_computes_in_16_bit():
    assert compute_format("int4", hardware("H100"), activations="bf16") == "bf16"
    assert compute_format("fp8", hardware("H100"), activations="bf16") == "bf16"


def test_every_format_runs_somewhere_on_every_part_or_is_refused():
    for part in known_hardware():
        assert compute_format("bf16", hardware(part)) in hardware(part).peak_flop_per_s
    tiny = hardware({"name": "int8 only", "base": "T4"})
    object.__setattr__(tiny, "peak_flop_per_s", {"int8": 1e14})
    with pytest.raises(FormatError, match="int8 only computes none of"):
        compute_format("bf16", tiny)


def test_unknown_format_is_refused_with_a_hint():
    with pytest.raises(FormatError, match="unknown number format 'q4_k_n'; did you mean"):
        number_format("q4_k_n")
