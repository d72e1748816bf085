"""Accelerator records: known values with facts behind them, custom parts, refusals, what-if copies."""

import csv
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from econ.performance.hardware import (
    PEAK_FORMATS,
    SEGMENTS,
    HardwareError,
    _aliases,
    _entries,
    _peaks,
    _read_entries,
    hardware,
    known_hardware,
)
from econ.performance.names import normalise
from econ.performance.serving import operating_point
from supply.facts import Catalog, catalog
from supply.paths import data_file


@pytest.mark.parametrize("name", known_hardware())
def test_every_part_is_complete_and_traced(name):
    part = hardware(name)
    assert part.memory_bytes > 0 and part.memory_bytes_per_s > 0 and part.tdp_w > 0
    assert part.link_bytes_per_s > 0 and part.domain_size >= 1 and part.segment in SEGMENTS
    assert set(part.peak_flop_per_s) <= set(PEAK_FORMATS)
    assert {"fp16", "bf16"} & set(part.peak_flop_per_s), "every part has a 16-bit rate"
    facts = catalog()
    assert all(i in facts for i in part.fact_ids.values())
    for field in ("memory_bytes", "memory_bytes_per_s", "tdp_w"):
        assert field in part.fact_ids


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("H100", "memory_bytes", 81559 * 2**20),  # as nvidia-smi prints it, not 80e9
        ("H200", "memory_bytes_per_s", 4.8e12),
        ("B200", "memory_bytes", 183359 * 2**20),
        ("H100", "link_bytes_per_s", 450e9),  # one direction of 900
        ("H800", "link_bytes_per_s", 200e9),
        ("GB200", "domain_size", 72),
        ("MI300X", "memory_bytes_per_s", 5.3e12),
        ("TPU-v5e", "memory_bytes_per_s", 819e9),
        ("M1-Max", "memory_bytes_per_s", 400e9),
        ("RTX-3090", "memory_bytes_per_s", 936.2e9),
    ],
)
def test_known_values(name, field, value):
    assert getattr(hardware(name), field) == pytest.approx(value, rel=1e-4)


def test_peaks_are_dense_and_sparse_only_on_request():
    h100 = hardware("H100")
    assert h100.peak("bf16") == pytest.approx(989.4e12)
    assert h100.peak("bf16", sparse=True) == pytest.approx(2 * h100.peak("bf16"), rel=1e-3)
    for name in known_hardware():
        part = hardware(name)
        for number_format, sparse in part.sparse_flop_per_s.items():
            if number_format in part.peak_flop_per_s:
                assert part.peak_flop_per_s[number_format] < sparse, (
                    f"{name} {number_format}: sparse rate taken as dense"
                )


def test_same_silicon_has_the_same_compute():
    assert hardware("H200").peak_flop_per_s == hardware("H100").peak_flop_per_s
    assert hardware("A100-40").peak("bf16") == hardware("A100-80").peak("bf16")


def test_narrower_formats_are_never_slower():
    order = ("fp32", "tf32", "bf16", "fp8", "fp4")
    for name in known_hardware():
        rates = [hardware(name).peak_flop_per_s[f] for f in order if f in hardware(name).peak_flop_per_s]
        assert rates == sorted(rates), name


def test_geforce_runs_half_rate_with_fp32_accumulation():
    assert hardware("RTX-3090").peak("fp16") == pytest.approx(71.2e12, rel=0.01)
    assert hardware("RTX-A6000").peak("fp16") == pytest.approx(154.8e12, rel=0.01)
    assert hardware("RTX-4090").peak("bf16") == pytest.approx(165.2e12, rel=0.01)


def test_unsupported_format_is_named():
    with pytest.raises(HardwareError, match="A100-80 has no native fp8 rate; it has fp32"):
        hardware("A100").peak("fp8")


def benchmark_names():
    with data_file("checks", "benchmark_names.csv").open(encoding="utf-8", newline="") as handle:
        return [r["name"] for r in csv.DictReader(handle) if r["what"] == "hardware"]


@pytest.mark.parametrize("name", benchmark_names())
def test_every_benchmark_device_resolves(name):
    assert hardware(name).memory_bytes > 0


def test_aliases_are_exact_and_unambiguous():
    with data_file("hardware_aliases.csv").open(encoding="utf-8", newline="") as handle:
        for row in csv.DictReader(handle):
            assert _aliases()[normalise(row["alias"])] == row["name"]
            assert row["name"] in _entries()
    with pytest.raises(HardwareError, match="unknown hardware 'H1000'; did you mean H100"):
        hardware("H1000")
    for near in ("A10O", "H100 SXM 64GB", "RTX 40", "M5"):
        with pytest.raises(HardwareError, match="unknown hardware"):
            hardware(near)


def test_custom_part_from_mapping_and_file(tmp_path):
    record = {
        "name": "next",
        "memory_bytes": 400e9,
        "memory_bytes_per_s": 20e12,
        "peak_flop_per_s": {"bf16": 5e15, "fp8": 1e16},
        "tdp_w": 1800,
    }
    part = hardware(record)
    assert part.peak("fp8") == 1e16 and part.band_class == "first_principles"
    path = tmp_path / "next.yaml"
    path.write_text("name: next\nbase: B200\nmemory_bytes_per_s: 16e12\n", encoding="utf-8")
    from_file = hardware(path)
    assert from_file.memory_bytes_per_s == 16e12 and from_file.peak("bf16") == hardware("B200").peak("bf16")


def test_a_rate_that_is_null_is_none():
    record = {"name": "next", "base": "B200", "peak_flop_per_s": {"bf16": 2e15, "fp8": 4e15, "fp4": None}}
    part = hardware(record)
    assert "fp4" in hardware("B200").peak_flop_per_s and "fp4" not in part.peak_flop_per_s
    sparse = {**record, "sparse_flop_per_s": {"fp4": 2e16, "fp8": 8e15}}
    assert hardware(sparse).sparse_flop_per_s == {"fp8": 8e15}
    assert part.peak("fp16") == part.peak("bf16") == 2e15 and part.peak("int8") == hardware("B200").peak("int8")
    with pytest.raises(HardwareError, match="next has no native fp4 rate; it has"):
        part.peak("fp4")
    with pytest.raises(HardwareError, match="give the rate of one format at least"):
        hardware({"name": "x", "memory_bytes": 8e10, "memory_bytes_per_s": 3e12, "tdp_w": 700, "peak_flop_per_s": {}})


def test_a_fact_of_zero_says_that_a_part_lacks_a_format_of_its_base():
    row = next(f for f in catalog() if f.id == "nvidia_h100_sxm5_80gb_bf16_dense_2022")
    facts = Catalog([replace(row, id="x", subject="Xylo X1", quantity="fp4_dense", value=0.0)])
    entry = replace(_entries()["B200"], subject="Xylo X1")
    own = _peaks(facts, entry, hardware("B200"), {}, "dense")
    assert own == {k: v for k, v in hardware("B200").peak_flop_per_s.items() if k != "fp4"} and len(own) > 3


def test_an_operating_point_says_that_a_part_lacks_the_format():
    record = {"name": "next", "base": "B200", "peak_flop_per_s": {"fp4": None}}
    load = {"isl": 1000, "osl": 100, "concurrency": 4, "tp": 2}
    for name, lacks, rate in ((record, "fp4", "bf16"), ("B200", "", "fp4")):
        point = operating_point("Llama-3.1-70B", name, weight_format="NVFP4", **load)
        assert (point.format_without_rate, point.computed_in) == (lacks, rate)


def test_an_invented_part_is_judged_from_first_principles_unless_it_names_a_family():
    load = {"isl": 1000, "osl": 100, "concurrency": 4, "tp": 2}
    invented = {"name": "next", "base": "B200", "memory_bytes_per_s": 16e12}
    assert hardware(invented).family == "custom" and hardware(invented).vendor == "custom"
    own, named = (operating_point("Llama-3.1-70B", r, **load) for r in (invented, {**invented, "family": "blackwell"}))
    assert own.confidence == "first_principles" and named.confidence == "same_family"
    wide, narrow = (p.tpot_band_s[1] / p.tpot_band_s[0] for p in (own, named))
    assert wide > narrow
    with pytest.raises(HardwareError, match="name 'b200' is that of a known part"):
        hardware({**invented, "name": "b200"})


def test_wrong_rows_of_the_table_are_named_with_their_line(tmp_path):
    path = tmp_path / "hardware.csv"
    text = data_file("hardware.csv").read_text(encoding="utf-8")
    line = text.count("\n") + 1
    rows = "X1,Xylo X1,xylo,xylo,data center,B2000,guess\nH100,NVIDIA H100,nvidia,hopper,datacenter,,measured\n"
    path.write_text(text + rows, encoding="utf-8")
    with pytest.raises(HardwareError) as caught:
        _read_entries(path)
    base, segment, band, twice = str(caught.value).splitlines()
    assert base == f"hardware.csv:{line}: base 'B2000' is no name of another row; did you mean B200, GB200, H200?"
    assert segment.startswith(f"hardware.csv:{line}: segment 'data center' is not one of datacenter, workstation")
    assert band.endswith("band_class 'guess' is not one of measured, first_principles")
    spelling = "(case, spaces, hyphens and _ do not count)"
    assert twice == f"hardware.csv:{line + 1}: name 'H100' stands in line 10 already {spelling}"
    path.write_text(text.replace("segment,base", "segment,bass", 1), encoding="utf-8")
    with pytest.raises(HardwareError, match=r"hardware\.csv:1: the columns are name, subject, vendor, family, segment"):
        _read_entries(path)


def test_a_spelling_in_use_a_circle_of_bases_and_a_wrong_byte_are_refused(tmp_path):
    path = tmp_path / "hardware.csv"
    text = data_file("hardware.csv").read_text(encoding="utf-8")
    more = "h-100,X,nvidia,hopper,datacenter,,measured\nY,X,x,x,datacenter,Z,measured\nZ,X,x,x,datacenter,Y,measured\n"
    path.write_text(text + more, encoding="utf-8")
    with pytest.raises(HardwareError) as caught:
        _read_entries(path)
    line = len(text.splitlines()) + 1
    assert str(caught.value).splitlines() == [
        f"hardware.csv:{line}: name 'h-100' stands in line 10 already (case, spaces, hyphens and _ do not count)",
        f"hardware.csv:{line + 1}: base 'Z' leads back to 'Y'",
        f"hardware.csv:{line + 2}: base 'Y' leads back to 'Z'",
    ]
    path.write_bytes(text.encode() + b"\xff")
    with pytest.raises(ValueError, match=rf"hardware.csv:{line}: the byte 0xff is not UTF-8 text"):
        _read_entries(path)


def test_near_names_come_before_the_advice():
    with pytest.raises(HardwareError, match=r"'H1'; did you mean H100, M1\? The known parts stand in data"):
        hardware("H1")
    with pytest.raises(HardwareError, match=r"'abacus'; the known parts stand in data/hardware\.csv"):
        hardware("abacus")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"memory_bytes": 80}, "memory_bytes = 80 lies outside"),  # GB given as bytes
        ({"memory_bytes_per_s": "fast"}, "is 'fast', not a number"),
        ({"peak_flop_per_s": {"bf17": 1e15}}, "unknown format bf17"),
        ({"memory_bandwith": 1e12}, "unknown field 'memory_bandwith'; did you mean memory_bytes"),
        ({"segment": "phone"}, "segment 'phone' is not one of"),
        ({"tdp_w": None}, "tdp_w is None"),
    ],
)
def test_custom_part_is_bounds_checked(change, message):
    record = {
        "name": "x",
        "memory_bytes": 80e9,
        "memory_bytes_per_s": 3e12,
        "peak_flop_per_s": {"bf16": 1e15},
        "tdp_w": 700,
        **change,
    }
    with pytest.raises(HardwareError, match=message):
        hardware(record)


def test_custom_part_needs_its_fields():
    with pytest.raises(HardwareError, match="missing memory_bytes, memory_bytes_per_s, peak_flop_per_s, tdp_w"):
        hardware({"name": "x"})


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(known_hardware()), st.floats(0.25, 8), st.floats(0.25, 8))
def test_scaling_moves_the_ridge(name, compute, bandwidth):
    part = hardware(name)
    number_format = next(iter(part.peak_flop_per_s))
    scaled = part.scaled(compute=compute, bandwidth=bandwidth)
    expected = part.ridge_flop_per_byte(number_format) * compute / bandwidth
    assert scaled.ridge_flop_per_byte(number_format) == pytest.approx(expected)


def test_scaling_refuses_nonsense():
    with pytest.raises(HardwareError, match="bandwidth=0"):
        hardware("H100").scaled(bandwidth=0)
