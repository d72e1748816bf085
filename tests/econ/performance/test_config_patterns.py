"""Layers of a `config.json`: which pattern its keys give, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from econ.performance.hf_config import from_hf_config

PLAIN = {"num_hidden_layers": 8, "hidden_size": 512, "num_attention_heads": 8, "vocab_size": 1000}


@pytest.mark.parametrize(
    ("more", "pattern"),
    [
        ({}, "F"),
        ({"layer_types": ["full_attention", "sliding_attention"] * 4}, "FS" * 4),
        ({"hybrid_override_pattern": "M*-E" * 2}, "MADE" * 2),
        ({"full_attention_interval": 4, "linear_num_value_heads": 4}, "LLLF"),
        ({"full_attention_interval": 4}, "F"),
        ({"sliding_window": 128, "sliding_window_pattern": 3}, "SSF"),
        ({"sliding_window": 128, "sliding_window_pattern": "LLG"}, "SSF"),
        ({"sliding_window": 128, "max_position_embeddings": 4096}, "S"),
        ({"sliding_window": 128, "max_position_embeddings": 128}, "F"),
        ({"sliding_window": 128, "max_position_embeddings": 4096, "use_sliding_window": False}, "F"),
    ],
)
def test_pattern_of_layers(more: dict[str, Any], pattern: str) -> None:
    assert from_hf_config(PLAIN | more, "a model")["layer_pattern"] == pattern


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"text_config": [1]}, "text_config is .*not an object"),
        ({"block_configs": []}, "every layer has its own shape"),
        ({"layer_types": ["full_attention"] * 3}, "has 8 layers and lists the types of 3"),
        ({"layer_types": ["full_attention"] * 7 + ["spiral"]}, "unknown layer types spiral; known: full_attention"),
        ({"layer_types": {"all": "full_attention"}}, "layer_types is .*: a list of layer types is needed"),
        ({"quantization_config": "fp8"}, "quantization_config is 'fp8', not an object"),
        ({"vocab_size": None}, "the config lacks vocab"),
    ],
)
def test_configs_that_cannot_be_read_say_why(more: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        from_hf_config(PLAIN | more, "a model")


def test_sizes_that_are_left_out_follow_from_the_others() -> None:
    found = from_hf_config(PLAIN, "a model")
    assert (found["head_dim"], found["d_ff"], found["kv_heads"]) == (64, 2048, 8)
    assert (
        from_hf_config({**PLAIN, "num_hidden_layers": 0, "layer_types": ["full_attention"] * 6}, "a model")["layers"]
        == 6
    )
    assert from_hf_config({"text_config": PLAIN, "hidden_size": 64}, "a model")["d_model"] == 512  # the text part wins
