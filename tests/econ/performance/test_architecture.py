"""Parameter counts, attention state and names of architectures, against published totals and an independent count."""

import csv
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from econ.performance.architecture import (
    Architecture,
    ArchitectureError,
    architecture,
    from_parameters,
    known_models,
)
from econ.performance.names import parse_model
from supply.paths import data_file


@pytest.mark.parametrize("name", known_models())
def test_parameters_match_the_published_total(name):
    """To 1 %, or to the rounding of the published figure where a name gives one or two digits."""
    model = architecture(name)
    assert sum(model.parameters.values()) == model.total_parameters >= model.active_parameters > 0
    if model.published_total:
        billions = model.published_total / 1e9
        rounding = 0.5 if billions == int(billions) and billions < 1000 else 0.0
        error = abs(model.total_parameters - model.published_total) / 1e9
        assert error <= max(0.01 * billions, rounding), f"{model.total_parameters / 1e9:.2f} of {billions}"


def test_published_totals_cover_most_models():
    with_total = [n for n in known_models() if architecture(n).published_total]
    assert len(with_total) > 50


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [
        ("DeepSeek-V3", 671.0e9, 37.5e9),
        ("gpt-oss-120b", 116.8e9, 5.7e9),
        ("Qwen3-235B-A22B", 235.1e9, 22.2e9),
        ("Kimi-K2", 1026e9, 32.9e9),
        ("Llama-3.1-405B", 405.9e9, 405.9e9),
        ("Mixtral-8x7B", 46.7e9, 12.9e9),
        ("BLOOM-176B", 176.2e9, 176.2e9),
        ("Nemotron-3-Super", 120.6e9, 12.8e9),
        ("Qwen3.5-397B-A17B", 396.4e9, 17.3e9),
    ],
)
def test_known_counts(name, total, active):
    model = architecture(name)
    assert model.total_parameters == pytest.approx(total, rel=0.01)
    assert model.active_parameters == pytest.approx(active, rel=0.02)


def count_by_tensors(m: Architecture) -> int:
    """Independent count of a dense GQA decoder, tensor by tensor."""
    total = m.vocab * m.d_model * (1 if m.tied else 2) + m.d_model
    for _ in range(m.layers):
        for shape in (
            (m.d_model, m.heads * m.head_dim),
            (m.d_model, m.kv_heads * m.head_dim),
            (m.d_model, m.kv_heads * m.head_dim),
            (m.heads * m.head_dim, m.d_model),
            *([(m.d_model, m.d_ff)] * (3 if m.gated else 2)),
        ):
            total += shape[0] * shape[1]
        total += 2 * m.d_model
    return total


@pytest.mark.parametrize("name", ["Llama-3.1-8B", "Qwen2.5-7B", "MPT-7b", "Llama-3.2-1B", "Phi-4"])
def test_dense_count_agrees_with_a_tensor_by_tensor_count(name):
    assert architecture(name).total_parameters == count_by_tensors(architecture(name))


@pytest.mark.parametrize(
    ("name", "bytes_per_token"),
    [
        ("Llama-3.1-70B", 327680),
        ("Llama-3.1-8B", 131072),
        ("DeepSeek-V3", 61 * 576 * 2),
        ("Qwen3-235B-A22B", 192512),
        ("Nemotron-3-Super", 8192),
        ("Qwen3.5-397B-A17B", 15 * 2 * 2 * 256 * 2),
    ],
)
def test_cache_bytes_per_token_are_exact(name, bytes_per_token):
    assert architecture(name).kv_bytes(1) == bytes_per_token


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(known_models()), st.integers(0, 200_000), st.integers(0, 200_000))
def test_cache_grows_with_length_and_never_faster_than_linear(name, a, b):
    model = architecture(name)
    short, long = sorted((a, b))
    assert model.kv_bytes(short) <= model.kv_bytes(long)
    assert model.kv_bytes(long) <= model.kv_bytes(1) * max(long, 1)


def test_sliding_layers_stop_at_the_window():
    model = architecture("gpt-oss-120b")
    growth = model.kv_bytes(100_001) - model.kv_bytes(100_000)
    assert growth == model.attention.count("full") * 2 * 8 * 64 * 2
    assert model.kv_bytes(64) == model.kv_bytes(1) * 64


def test_vocabulary_growth_is_two_rows_a_token():
    base = {"num_hidden_layers": 2, "hidden_size": 8192, "num_attention_heads": 64, "vocab_size": 100_000}
    more = architecture({**base, "vocab_size": 200_000})
    assert more.total_parameters - architecture(base).total_parameters == 1_638_400_000


def test_names_never_point_to_another_model_silently():
    assert architecture("DeepSeek-R1-NVFP4").name == "DeepSeek-R1"
    assert architecture("Llama-3.1-8B-Instruct-FP8").name == "Llama-3.1-8B"
    assert architecture("gemma-4-26B-A4B-it-UD-Q4_K_XL").name == "gemma-4-26B-A4B"
    for wrong in ("Llama-3.1-7B", "Qwen3-31B", "DeepSeek-V5", "gpt-oss-121b", "Mixtral-8x70B"):
        with pytest.raises(ArchitectureError, match="unknown model"):
            architecture(wrong)
    with pytest.raises(ArchitectureError, match=r"did you mean Llama-3\.1-70B"):
        architecture("Llama-3.1-71B")


@pytest.mark.parametrize(
    ("name", "reason"),
    [("GPT-4", "not published"), ("T5-11B", "encoder-decoder"), ("MegaScale (Production)", "not published")],
)
def test_models_without_a_known_decoder_are_refused_by_name(name, reason):
    with pytest.raises(ArchitectureError, match=reason):
        architecture(name)


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("Qwen3.6-35B-A3B-UD-Q8_K_XL", ("Qwen3.6-35B-A3B", "UD-Q8_K_XL")),
        ("llama-2-7b.Q4_0", ("llama-2-7b", "Q4_0")),
        ("GLM-4.7-Flash-BF16", ("GLM-4.7-Flash", "BF16")),
        ("gpt-oss-120b-mxfp4", ("gpt-oss-120b", "mxfp4")),
        ("Qwen3-32B-NVFP4", ("Qwen3-32B", "NVFP4")),
        ("MPT-7b", ("MPT-7b", None)),
        ("llama2-70b-99.9", ("llama2-70b-99.9", None)),
    ],
)
def test_suffixes_that_are_formats(name, parsed):
    assert parse_model(name) == parsed
    assert architecture(name).layers > 0


def benchmark_models():
    with data_file("checks", "benchmark_names.csv").open(encoding="utf-8", newline="") as handle:
        return sorted({(r["name"], r["kind"]) for r in csv.DictReader(handle) if r["what"] == "model"})


@pytest.mark.parametrize(("name", "kind"), benchmark_models())
def test_every_benchmark_model_resolves_or_is_refused_with_a_reason(name, kind):
    try:
        model = architecture(name)
    except ArchitectureError as exc:
        assert kind == "training", "every served model has a known architecture"
        assert "unknown model" not in str(exc)
        assert any(w in str(exc) for w in ("not published", "encoder-decoder", "no copy of its configuration"))
    else:
        assert model.layers > 0


def test_config_file_round_trip(tmp_path):
    config = {
        "model_type": "qwen2",
        "num_hidden_layers": 28,
        "hidden_size": 3584,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "intermediate_size": 18944,
        "vocab_size": 152064,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    assert architecture(path).parameters == architecture("Qwen2.5-7B").parameters


def test_incomplete_or_contradictory_configs_are_refused():
    with pytest.raises(ArchitectureError, match=r"lacks heads \(num_attention_heads or n_heads\), vocab"):
        architecture({"num_hidden_layers": 2, "hidden_size": 64})
    bad = {
        "num_hidden_layers": 2,
        "hidden_size": 64,
        "num_attention_heads": 6,
        "num_key_value_heads": 4,
        "vocab_size": 9,
    }
    with pytest.raises(ArchitectureError, match="6 heads cannot share 4 KV heads"):
        architecture(bad)
    with pytest.raises(ArchitectureError, match="unknown layer types sideways"):
        architecture({**bad, "num_key_value_heads": 2, "layer_types": ["sideways", "full_attention"]})
    with pytest.raises(ArchitectureError, match="block_configs"):
        architecture({**bad, "block_configs": []})


@settings(max_examples=30, deadline=None)
@given(st.floats(1e8, 5e12))
def test_shape_from_a_parameter_count_is_close(parameters):
    model = from_parameters(parameters)
    blocks = model.total_parameters - model.parameters["embedding"]
    assert blocks == pytest.approx(parameters, rel=0.25)
    assert "estimate" in model.source


def test_shape_from_a_count_refuses_billions():
    with pytest.raises(ArchitectureError, match="billions given as a number"):
        from_parameters(70)
