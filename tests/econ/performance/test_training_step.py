"""Step time: exact bubble and recompute, shape of scaling, definitions of utilisation, refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from econ.performance.hardware import hardware
from econ.performance.training import (
    hfu,
    mfu,
    peak_flop_per_s,
    step_time,
    tokens_per_s,
    training_flops_per_token,
)
from econ.performance.training_model import TrainingModelError, dense_model, training_model
from econ.performance.training_setup import SetupError, TrainingSetup, bubble_fraction, fat_tree

H100 = hardware("H100")
LLAMA = training_model("Llama-3.1-70B")
BASE = TrainingSetup(256, 8192, 512, 1, tp=8, pp=4, virtual=5, schedule="interleaved", recompute="none")


def test_bubble_of_a_simulated_pipeline() -> None:
    """1F1B by event simulation: stage s starts micro-batch i after s - 1, and after its own earlier work."""
    stages, micro, forward, backward = 4, 12, 1.0, 2.0
    done_f = [[0.0] * micro for _ in range(stages)]
    done_b = [[0.0] * micro for _ in range(stages)]
    order = []
    for s in range(stages):
        warm = min(stages - s, micro)
        seq = [("f", i) for i in range(warm)]
        for i in range(micro):
            seq.append(("b", i))
            if warm + i < micro:
                seq.append(("f", warm + i))
        order.append(seq)
    clock = [0.0] * stages
    position = [0] * stages
    finished: set[tuple[str, int, int]] = set()
    while any(p < len(order[s]) for s, p in enumerate(position)):
        for s in range(stages):
            if position[s] == len(order[s]):
                continue
            kind, i = order[s][position[s]]
            before = ("f", s - 1, i) if kind == "f" else ("b", s + 1, i)
            edge = s == 0 if kind == "f" else s == stages - 1
            if not edge and before not in finished:
                continue
            ready = 0.0 if edge else (done_f if kind == "f" else done_b)[before[1]][i]
            clock[s] = max(clock[s], ready) + (forward if kind == "f" else backward)
            (done_f if kind == "f" else done_b)[s][i] = clock[s]
            finished.add((kind, s, i))
            position[s] += 1
    busy = micro * (forward + backward)
    assert max(clock) / busy - 1 == pytest.approx(bubble_fraction(stages, micro))


def test_bubble_by_schedule() -> None:
    assert bubble_fraction(8, 64) == 7 / 64
    assert bubble_fraction(8, 64, 4, "interleaved") == 7 / 256
    assert bubble_fraction(8, 64, schedule="zero_bubble") == pytest.approx(7 / 192)
    assert bubble_fraction(1, 1) == 0
    with pytest.raises(SetupError, match="schedule = 'gpipe'"):
        bubble_fraction(8, 64, schedule="gpipe")


def test_bubble_enters_the_step_exactly() -> None:
    plain = step_time(LLAMA, H100, BASE)
    busy = sum(
        getattr(plain, f"{k}_s")
        for k in (
            "linear",
            "attention",
            "elementwise",
            "tensor_parallel",
            "expert_parallel",
            "context_parallel",
            "launch",
        )
    )
    assert plain.bubble_s == pytest.approx(busy * 3 / (BASE.microbatches * 5))


def test_parts_add_up() -> None:
    step = step_time(LLAMA, H100, BASE)
    parts = [getattr(step, f) for f in step.__dataclass_fields__]
    assert step.total_s == pytest.approx(sum(parts)) and min(parts) >= 0


def test_full_recompute_adds_a_third_of_the_linear_work() -> None:
    none = step_time(LLAMA, H100, BASE)
    full = step_time(LLAMA, H100, replace(BASE, recompute="full"))
    head = LLAMA.head_params / LLAMA.matmul_params
    assert full.linear_s / none.linear_s == pytest.approx(1 + (1 - head) / 3, rel=0.02)
    half = step_time(LLAMA, H100, replace(BASE, recompute="full", recompute_share=0.5))
    assert none.total_s < half.total_s < full.total_s
    assert hfu(300e12, H100.peak("bf16"), "full") == pytest.approx(4 / 3 * mfu(300e12, H100.peak("bf16")))


@settings(max_examples=25, deadline=None)
@given(
    power=st.integers(0, 5),
    tp=st.sampled_from([1, 2, 4, 8]),
    pp=st.sampled_from([1, 2, 4]),
    sharding=st.sampled_from(["none", "zero1", "zero2", "zero3"]),
    name=st.sampled_from(["Llama-3.1-70B", "Llama-3.1-8B", "Mixtral-8x7B"]),
)
def test_more_data_parallelism_never_saves_accelerator_hours(
    power: int, tp: int, pp: int, sharding: str, name: str
) -> None:
    """Layout of a replica, recompute and global batch fixed; only the number of replicas doubles."""
    model = training_model(name)
    hours = []
    for dp in (2**power, 2 ** (power + 1)):
        setup = TrainingSetup(
            dp * tp * pp, 4096, 256, 1, tp=tp, pp=pp, sharding=sharding,
            recompute="full",
        )  # fmt: skip
        hours.append(step_time(model, H100, setup).total_s * setup.accelerators)
    assert hours[1] >= hours[0] * (1 - 1e-9)


def test_slower_link_and_smaller_domain_never_help() -> None:
    base = step_time(LLAMA, H100, BASE).total_s
    assert step_time(LLAMA, H100.scaled(link=0.25), BASE).total_s > base
    assert step_time(LLAMA, replace(H100, domain_size=4), BASE).total_s > base
    assert step_time(LLAMA, replace(H100, domain_size=72), BASE).total_s <= base


def test_network_levels_slow_only_what_crosses_them() -> None:
    """An oversubscribed core costs a job that spans pods, not one inside a pod; a long link costs more."""
    port = H100.internode_bytes_per_s
    full = fat_tree(port, (512, 65_536), (1, 1))
    lean = fat_tree(port, (512, 65_536), (1, 8))
    small, large = BASE, replace(BASE, accelerators=2048)
    times = {
        (n, levels): step_time(LLAMA, H100, replace(setup, network=net)).total_s
        for n, setup in (("small", small), ("large", large))
        for levels, net in (("full", full), ("lean", lean))
    }
    assert times["small", "full"] == times["small", "lean"]
    assert times["large", "full"] < times["large", "lean"]
    sites = fat_tree(port, (512,), (1,), site_bytes_per_s=port / 50)
    assert step_time(LLAMA, H100, replace(large, network=sites)).total_s > times["large", "lean"]
    with pytest.raises(SetupError, match="must grow"):
        fat_tree(port, (512, 256), (1, 1))


def test_narrower_formats_are_faster_and_fall_back() -> None:
    blackwell = hardware("GB200")
    times = [step_time(LLAMA, blackwell, replace(BASE, number_format=f)).total_s for f in ("bf16", "fp8", "nvfp4")]
    assert times == sorted(times, reverse=True)
    assert peak_flop_per_s(hardware("A100-80"), "fp8") == hardware("A100-80").peak("bf16")


def test_low_rank_adapters_leave_out_weight_gradients() -> None:
    full = training_flops_per_token(LLAMA, 8192, "none")
    assert training_flops_per_token(LLAMA, 8192, "none", adapters_only=True) / full == pytest.approx(2 / 3)
    setup = replace(BASE, adapters_only=True)
    assert step_time(LLAMA, H100, setup).linear_s < step_time(LLAMA, H100, BASE).linear_s


def test_flops_count_active_parameters_of_expert_models() -> None:
    mixtral = training_model("Mixtral-8x7B")
    assert training_flops_per_token(mixtral, 4096, "none") < 6 * 0.3 * mixtral.total_params


def test_dense_model_matches_a_known_one() -> None:
    known, sized = training_model("GPT-3-175B"), dense_model(174.6e9)
    assert sized.layers == pytest.approx(known.layers, rel=0.1) and sized.d_model == pytest.approx(12288, rel=0.06)
    assert sized.total_params == pytest.approx(known.total_params, rel=1e-3)


def test_case_train_mfu_sparse_peak() -> None:
    assert mfu(420e12, 989.5e12) == pytest.approx(0.424457, rel=0.002)
    h200 = hardware("H200")
    assert mfu(420e12, h200.peak("bf16")) == pytest.approx(0.4245, rel=0.002)


def test_case_token_tps_overcounted_by_tp() -> None:
    """Ranks of one tensor-parallel group see the same tokens; the engine counts each once."""
    from econ.training_run import tokens_per_s_of_log

    right = tokens_per_s_of_log(4096, ranks=16, step_s=1.0, tp=4)
    assert 4096 * 16 / 1.0 / right == 4
    rates = []
    for tp in (1, 2, 4, 8):
        setup = TrainingSetup(64, 4096, 256, 1, tp=tp, recompute="full")
        rates.append(tokens_per_s(setup.tokens_per_step, step_time(LLAMA, H100, setup).total_s))
    assert rates == sorted(rates, reverse=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tp": 3}, "do not divide by tp x pp x cp = 3 x 4 x 1"),
        ({"micro_batch": 0}, "micro_batch = 0 must be positive"),
        ({"recompute": "some"}, "recompute = 'some' is not one of none, selective, full"),
        ({"number_format": "fp6"}, "number_format = 'fp6'"),
        ({"ep": 512}, "ep = 512 exceeds"),
        ({"recompute_share": 2.0}, "share of layers"),
    ],
)
def test_setup_refusals(change: dict[str, object], message: str) -> None:
    with pytest.raises(SetupError, match=message):
        replace(BASE, **change)  # type: ignore[arg-type]


def test_more_stages_than_layers_is_refused() -> None:
    with pytest.raises(SetupError, match="pp = 128 exceeds the 80 layers"):
        step_time(LLAMA, H100, TrainingSetup(128, 4096, 256, pp=128))


def test_impossible_utilisation_is_refused() -> None:
    with pytest.raises(SetupError, match="exceeds the dense peak"):
        mfu(2e15, H100.peak("bf16"))


def test_unknown_model_offers_near_names() -> None:
    with pytest.raises(TrainingModelError, match="MPT-30b"):
        training_model("MPT-31b")
