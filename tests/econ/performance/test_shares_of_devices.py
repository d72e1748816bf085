"""What one device holds and computes of a model: stages, recurrent states, windows, batches. Known answers."""

from __future__ import annotations

import pytest

from econ.performance.architecture import architecture
from econ.performance.memory import fit, kv_bytes, state_bytes
from econ.performance.operators import operators
from econ.performance.requests import make_request
from econ.performance.setups import Load
from econ.performance.shapes import shape_of

#: Sixty layers, fifteen with full attention, forty-five with a recurrent state.
HYBRID = "Qwen3.5-397B-A17B"


def test_stages_share_the_weights_and_the_work() -> None:
    def of(pp: float) -> dict[str, tuple[float, float]]:
        load = Load(isl=1000.0, osl=1000.0, concurrency=16.0, tp=2.0, pp=pp)
        request = make_request("Llama-3.1-70B", "H100", load, weight_format="BF16", framework="vLLM")
        return {o.name: (o.flops, o.weight_bytes) for o in operators(request, "decode", 16.0, 1500.0)}

    one, four = of(1.0), of(4.0)
    for name, (flops, weights) in one.items():
        assert four[name] == (pytest.approx(flops / 4), pytest.approx(weights / 4)), name


def test_windowed_layers_add_to_the_work_of_full_ones() -> None:
    shape = shape_of(architecture("gpt-oss-120b"))
    assert shape.pair_flops_window > 0 and shape.decode_pair_flops > 0
    request = make_request("gpt-oss-120b", "H100", Load(1000.0, 1000.0, 1.0), framework="vLLM")
    attention = next(o for o in operators(request, "decode", 3.0, 5000.0) if o.name == "attention")
    pairs = shape.decode_pair_flops * 5000.0 + shape.pair_flops_window * shape.window
    assert attention.flops == pytest.approx(3.0 * (pairs + shape.linear_flops))


def test_a_recurrent_state_is_held_by_every_sequence_on_its_stage() -> None:
    model = architecture(HYBRID)
    state, tokens = float(state_bytes(model)), 4096
    assert state > 0
    whole = float(kv_bytes(model, tokens, 2.0, 16)) + state
    single = fit(HYBRID, "B200", weight_format="fp8", tokens=tokens, batch=8)
    assert single.kv_bytes == pytest.approx(8 * whole)
    staged = fit(HYBRID, "B200", weight_format="fp8", tokens=tokens, batch=8, pp=4)
    assert staged.kv_bytes == pytest.approx(8 * whole / 4, rel=0.1)
    assert staged.kv_bytes < single.kv_bytes / 3


def test_longest_context_pays_for_the_states_of_the_whole_batch() -> None:
    fixed = {"weight_format": "fp8", "kv_format": "fp8", "tp": 8, "batch": 256, "prefill_tokens": 8192}
    longest = fit(HYBRID, "B200", tokens=1024, **fixed).largest_context  # type: ignore[arg-type]
    assert 1024 < longest < 262_144
    assert fit(HYBRID, "B200", tokens=longest, **fixed).fits  # type: ignore[arg-type]
    assert not fit(HYBRID, "B200", tokens=longest + 16, **fixed).fits  # type: ignore[arg-type]


def test_least_degree_holds_the_cache_of_the_whole_batch() -> None:
    fixed = {"weight_format": "fp8", "kv_format": "bf16", "tokens": 32_768}
    alone = fit("Llama-3.1-70B", "H100", batch=1, **fixed)  # type: ignore[arg-type]
    many = fit("Llama-3.1-70B", "H100", batch=24, **fixed)  # type: ignore[arg-type]
    assert not many.fits and many.least_tp is not None and (alone.fits or many.least_tp > (alone.least_tp or 1))
    assert fit("Llama-3.1-70B", "H100", batch=24, tp=many.least_tp, **fixed).fits  # type: ignore[arg-type]
    assert not fit("Llama-3.1-70B", "H100", batch=24, tp=many.least_tp // 2, **fixed).fits  # type: ignore[arg-type]


def test_largest_batch_of_short_sequences_pays_for_their_logits() -> None:
    fixed = {"weight_format": "fp8", "kv_format": "fp8", "tp": 4, "tokens": 16, "prefill_tokens": 2048}
    largest = fit("Llama-3.1-8B", "H100", batch=1, **fixed).largest_batch  # type: ignore[arg-type]
    assert fit("Llama-3.1-8B", "H100", batch=largest, **fixed).fits  # type: ignore[arg-type]
    assert not fit("Llama-3.1-8B", "H100", batch=largest + 1, **fixed).fits  # type: ignore[arg-type]
