"""Memory: published profiles, exact sharding formulas, refusals with the shortfall."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from econ.performance.hardware import hardware
from econ.performance.training_layout import best_layout, scaling_curve, smallest_cluster, with_fitting_recompute
from econ.performance.training_memory import (
    GIB,
    RECIPES,
    TrainingMemoryError,
    activation_bytes,
    check_training_fit,
    fits,
    least_accelerators,
    state_bytes_per_parameter,
    training_memory,
    training_state_bytes,
)
from econ.performance.training_model import training_model
from econ.performance.training_setup import TrainingSetup


def test_worked_examples_of_state() -> None:
    """A-2.4a to A-2.4d and B-16 of the course and the token text."""
    assert state_bytes_per_parameter(2, 2, 4, 4, 4) == 16
    assert RECIPES["adam_mixed"].total == 16
    assert training_state_bytes(70e9, 16) == pytest.approx(1.12e12, rel=1e-9)
    assert least_accelerators(1.12e12, 80e9) == 14
    assert state_bytes_per_parameter(2, 2, 4, 4, 4) / 2 == 8


@pytest.mark.parametrize(
    ("model", "accelerators", "batch", "micro", "pp", "virtual", "plain", "selective", "state"),
    [
        ("GPT-22B", 8, 4, 4, 1, 1, 59.25, 9.5625, 45.5625),
        ("MT-NLG-530B", 280, 280, 1, 35, 3, 114.0234375, 23.076171875, 31.640625),
    ],
)
def test_published_profiles(
    model: str, accelerators: int, batch: int, micro: int, pp: int, virtual: int, plain: float, selective: float,
    state: float,
) -> None:  # fmt: skip
    """Figure 1 of arXiv 2205.05198: activations exactly, state within 2 percent (embeddings are left out there)."""
    shape = training_model(model)
    base = TrainingSetup(
        accelerators, 2048, batch, micro, tp=8, pp=pp, virtual=virtual, sharding="none", fused_attention=False,
        sequence_parallel=False,
    )  # fmt: skip
    assert activation_bytes(shape, base) / GIB == pytest.approx(plain, rel=1e-9)
    lean = replace(base, recompute="selective", sequence_parallel=True)
    assert activation_bytes(shape, lean) / GIB == pytest.approx(selective, rel=1e-9)
    assert training_memory(shape, base).state_bytes / GIB == pytest.approx(state, rel=0.02)


@given(power=st.integers(0, 10))
@settings(max_examples=11, deadline=None)
def test_zero_formulas(power: int) -> None:
    """ZeRO: 16 bytes; 4 + 12/N; 2 + 14/N; 16/N, for mixed-precision Adam."""
    ranks, model = 2**power, training_model("Llama-2-7B")
    expected = {"none": 16, "zero1": 4 + 12 / ranks, "zero2": 2 + 14 / ranks, "zero3": 16 / ranks}
    for sharding, bytes_each in expected.items():
        setup = TrainingSetup(ranks, 4096, 2048, sharding=sharding)
        state = training_memory(model, setup, "adam_mixed").state_bytes
        assert state / model.total_params == pytest.approx(bytes_each, rel=1e-12)


def test_full_recompute_keeps_layer_inputs_only() -> None:
    model = training_model("MPT-7b")
    setup = TrainingSetup(8, 2048, 96, 12, recompute="full", sharding="zero3")
    kept = setup.rank_tokens * 2 * model.d_model * model.layers
    assert activation_bytes(model, setup) - kept < 0.2 * activation_bytes(model, replace(setup, recompute="none"))


def test_pipeline_holds_a_micro_batch_for_each_stage() -> None:
    model = training_model("Llama-3.1-70B")
    few = TrainingSetup(16, 4096, 2, 1, tp=1, pp=16)
    many = TrainingSetup(16, 4096, 64, 1, tp=1, pp=16)
    assert activation_bytes(model, few) == pytest.approx(activation_bytes(model, many) * 2 / 16)
    chunks = replace(many, virtual=5, schedule="interleaved")
    assert activation_bytes(model, chunks) == pytest.approx(activation_bytes(model, many) * (1 + 15 / 80))


def test_state_of_70b_on_eight_cards_is_refused_with_the_shortfall() -> None:
    with pytest.raises(TrainingMemoryError) as error:
        check_training_fit(70.6e9, 8, 80 * GIB)
    text = str(error.value)
    for part in ("1,129.6 GB", "687.2 GB", "442.4 GB", "141.2 GB", "least 14 accelerators", "16 in whole nodes"):
        assert part in text
    assert check_training_fit(70.6e9, 16, 80 * GIB) == pytest.approx(70.6e9)


def test_best_layout_fits_and_beats_a_naive_one() -> None:
    model, hw = training_model("Llama-3.1-70B"), hardware("H100")
    base = TrainingSetup(128, 8192, 256)
    best = best_layout(model, hw, base)
    assert fits(model, hw, best)
    from econ.performance.training import step_time

    naive = with_fitting_recompute(model, hw, replace(base, tp=8, pp=8))
    assert step_time(model, hw, best).total_s <= step_time(model, hw, naive).total_s


def test_refuses_what_fits_nowhere() -> None:
    with pytest.raises(TrainingMemoryError, match=r"leanest needs .* short by"):
        best_layout(training_model("Llama-3.1-405B"), hardware("H100"), TrainingSetup(8, 8192, 64))


def test_smallest_cluster_of_70b() -> None:
    count, setup = smallest_cluster(training_model("Llama-3.1-70B"), hardware("H100"), TrainingSetup(8, 4096, 256))
    assert count == 16 and fits(training_model("Llama-3.1-70B"), hardware("H100"), setup)


def test_scaling_to_a_hundred_thousand() -> None:
    model, hw = training_model("Llama-3.1-405B"), hardware("H100")
    base = TrainingSetup(1024, 8192, 1024)
    points = scaling_curve(model, hw, base, [1024, 8192, 98_304], global_batch_limit=4096)
    rates = [p.tokens_per_s for p in points]
    assert rates == sorted(rates)
    assert points[0].efficiency == 1 and points[1].efficiency > points[2].efficiency > 0.05


def test_unknown_recipe() -> None:
    with pytest.raises(TrainingMemoryError, match="recipe 'lion' is not one of adam_mixed"):
        training_memory(training_model("MPT-7b"), TrainingSetup(8, 2048, 8), "lion")
