"""Layouts: recompute by memory, scaling curves, slower links and larger domains, stated and open set-ups."""

from __future__ import annotations

from dataclasses import replace

import pytest

from econ.performance.hardware import hardware
from econ.performance.training import step_time
from econ.performance.training_layout import best_layout, candidate_layouts, scaling_curve, with_fitting_recompute
from econ.performance.training_memory import fits
from econ.performance.training_model import training_model
from econ.performance.training_rows import training_case
from econ.performance.training_setup import TrainingSetup

H100, TPU = hardware("H100"), hardware("TPU-v5e")
LLAMA = training_model("Llama-3.1-70B")


def test_recompute_is_as_light_as_memory_allows() -> None:
    roomy = with_fitting_recompute(LLAMA, hardware("GB300"), TrainingSetup(64, 4096, 256, tp=8, pp=4))
    tight = with_fitting_recompute(LLAMA, H100, TrainingSetup(64, 8192, 256, 2, tp=4, pp=4))
    assert roomy.recompute == "none" and tight.recompute == "full" and fits(LLAMA, H100, tight)
    lighter = replace(tight, recompute_share=tight.recompute_share - 0.125)
    assert not fits(LLAMA, H100, lighter if lighter.recompute_share else replace(tight, recompute="none"))


def test_candidates_stay_inside_their_limits() -> None:
    base = TrainingSetup(64, 8192, 64)
    for setup in candidate_layouts(LLAMA, H100, base):
        assert setup.tp <= 8 and setup.accelerators == 64 and setup.dp <= base.global_batch
    assert all(s.pp == 1 for s in candidate_layouts(LLAMA, TPU, base))


def test_experts_are_sharded_by_a_common_divisor() -> None:
    model = training_model("Mixtral-8x7B")
    degrees = {s.ep for s in candidate_layouts(model, H100, TrainingSetup(64, 4096, 256))}
    assert degrees <= {1, 2, 4, 8} and 8 in degrees


def test_slower_links_and_larger_domains() -> None:
    base = TrainingSetup(512, 8192, 512)
    normal = step_time(LLAMA, H100, best_layout(LLAMA, H100, base)).total_s
    slow = H100.scaled(link=0.2)
    assert step_time(LLAMA, slow, best_layout(LLAMA, slow, base)).total_s > normal
    wide = replace(H100, domain_size=64)
    assert step_time(LLAMA, wide, best_layout(LLAMA, wide, base)).total_s <= normal * (1 + 1e-9)


def test_fixed_batch_scales_worse_than_a_growing_one() -> None:
    base = TrainingSetup(256, 8192, 512)
    fixed = scaling_curve(LLAMA, H100, base, [256, 4096], global_batch_limit=4096)
    grown = scaling_curve(LLAMA, H100, base, [256, 4096])
    assert fixed[1].efficiency < grown[1].efficiency <= 1.02
    assert grown[1].setup.global_batch == 8192


ROW = {
    "model": "MT-NLG-530B", "hardware": "A100-80", "n_accelerators": "2240", "precision": "FP16", "metric": "mfu",
    "recompute": "full", "conditions": "8-way data parallel over 280-GPU model replicas",
}  # fmt: skip


def test_stated_replicas_fix_the_search() -> None:
    case = training_case(ROW)
    assert case.setup.dp == 8 and case.setup.tp * case.setup.pp == 280 and not case.stated


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ("FSDP FULL_SHARD, MP mode DEFAULT", "zero3"),
        ("FSDP SHARD_GRAD_OP", "zero2"),
        ("Pre-Training Performance; virtual pipeline 5; FSDP=0", "zero1"),
        ("Pre-Training Performance; virtual pipeline n/a; FSDP=64", "zero3"),
        ("ZeRO-3 with offload", "zero3"),
    ],
)
def test_sharding_is_read_from_the_set_up(conditions: str, expected: str) -> None:
    row = ROW | {
        "model": "Llama-3.1-70B", "hardware": "H100", "n_accelerators": "64", "tp": "4", "pp": "4", "seq": "4096",
        "global_batch": "64", "precision": "BF16", "conditions": conditions,
    }  # fmt: skip
    assert training_case(row).setup.sharding == expected


def test_network_and_chunks_are_read_from_the_set_up() -> None:
    row = ROW | {"tp": "8", "pp": "35", "n_accelerators": "280", "seq": "2048", "global_batch": "280"}
    case = training_case(row | {"conditions": "4x100 Gb/s per node"})
    assert case.setup.internode_bytes_per_s == 400e9 / 8 / 8
    assert (case.setup.virtual, case.setup.fused_attention, case.setup.balanced_stages) == (3, False, False)
    modern = training_case(row | {"precision": "BF16", "conditions": "virtual pipeline 2; 400 Gb/s per GPU"})
    assert modern.setup.virtual == 2 and modern.setup.internode_bytes_per_s == 50e9 and modern.attention == "causal"
