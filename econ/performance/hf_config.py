"""Translation of a Hugging Face style `config.json` into the fields of `Architecture`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

__all__ = ["from_hf_config"]

#: Our field -> keys that checkpoints use for it, first that exists wins.
KEYS: Mapping[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layers", "n_layer", "layers"),
    "d_model": ("hidden_size", "d_model", "n_embd"),
    "heads": ("num_attention_heads", "n_heads", "n_head", "heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "n_kv_heads", "n_head_kv", "kv_heads"),
    "head_dim": ("head_dim", "kv_channels"),
    "d_ff": ("intermediate_size", "ffn_hidden_size", "n_inner", "d_ff"),
    "vocab": ("vocab_size", "vocab"),
    "context": ("max_position_embeddings", "max_seq_len", "n_positions", "seq_length", "context"),
    "window": ("sliding_window", "attention_chunk_size", "window"),
    "q_lora": ("q_lora_rank",),
    "kv_lora": ("kv_lora_rank",),
    "qk_nope": ("qk_nope_head_dim",),
    "qk_rope": ("qk_rope_head_dim",),
    "v_head": ("v_head_dim",),
    "experts": ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts", "experts"),
    "experts_per_token": ("num_experts_per_tok", "experts_per_token", "moe_top_k", "top_k_experts"),
    "shared_experts": ("n_shared_experts", "num_shared_experts", "shared_experts"),
    "moe_d_ff": ("moe_intermediate_size", "expert_ffn_hidden_size", "moe_d_ff"),
    "shared_d_ff": (
        "shared_expert_intermediate_size",
        "moe_shared_expert_intermediate_size",
        "shared_intermediate_size",
        "shared_d_ff",
    ),
    "first_dense_layers": ("first_k_dense_replace", "first_dense_layers"),
    "mtp": ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"),
    "global_kv_heads": ("num_global_key_value_heads",),
    "global_head_dim": ("global_head_dim",),
    "linear_key_heads": ("linear_num_key_heads",),
    "linear_value_heads": ("linear_num_value_heads",),
    "linear_head_dim": ("linear_value_head_dim",),
    "mamba_heads": ("mamba_num_heads",),
    "mamba_head_dim": ("mamba_head_dim",),
    "mamba_state": ("ssm_state_size", "mamba_d_state"),
    "mamba_groups": ("n_groups", "mamba_n_groups"),
    "moe_latent": ("moe_latent_size",),
}
REQUIRED = ("layers", "d_model", "heads", "vocab")
LETTERS = {
    "full_attention": "F",
    "sliding_attention": "S",
    "chunked_attention": "S",
    "deepseek_sparse_attention": "F",
    "linear_attention": "L",
    "attention": "A",
    "mamba": "M",
    "moe": "E",
    "mlp": "D",
}
#: Activation names without a gate matrix; every other common one (silu, swiglu, geglu ...) has three MLP matrices.
UNGATED_TYPES = ("gpt2", "gpt_neox", "gptj", "opt", "bloom", "mpt", "falcon", "gpt_bigcode", "bert", "nemotron")
UNGATED_ACTIVATIONS = ("relu", "relu2", "squared_relu")


#: Keys beside `KEYS` that change the result, for the search of slips of the pen.
OTHER_KEYS = (
    "text_config",
    "layer_types",
    "layers_block_type",
    "hybrid_override_pattern",
    "full_attention_interval",
    "sliding_window_pattern",
    "use_sliding_window",
    "interleave_moe_layer_step",
    "moe_layer_freq",
    "intermediate_size_mlp",
    "enable_moe_block",
    "tie_word_embeddings",
    "attn_output_gate",
    "attention_k_eq_v",
    "quantization_config",
    "mlp_gated",
)
#: Beyond any model: such a count is a slip, and would fill the memory.
MOST_LAYERS, MOST = 10_000, 1_000_000_000


def from_hf_config(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Fields of `Architecture` from a config mapping, with `layer_pattern` (letters) and `moe_every` beside them.

    Raises:
        ValueError: when a required size is missing, is no count or is misspelt, or the layer types are unknown.
    """
    text = config.get("text_config")
    if text is not None and not isinstance(text, Mapping):
        raise ValueError(f"text_config is {text!r:.60}, not an object of sizes")
    merged: dict[str, Any] = {**config, **text} if isinstance(text, Mapping) else dict(config)
    if "block_configs" in merged:
        raise ValueError("every layer has its own shape (block_configs): not a repeated pattern, so not supported")
    _refuse_slips(merged)
    found = {field: _count(field, *_first(merged, keys)) for field, keys in KEYS.items()}
    listed = len(_layer_list(merged))
    if listed and found["layers"] and listed != found["layers"]:
        raise ValueError(f"the config has {found['layers']} layers and lists the types of {listed}")
    found["layers"] = found["layers"] or listed
    missing = [f"{f} ({' or '.join(KEYS[f][:2])})" for f in REQUIRED if not found[f]]
    if missing:
        raise ValueError(f"the config lacks {', '.join(missing)}")
    out: dict[str, Any] = dict(found)
    kind = str(merged.get("model_type", ""))
    out["kv_heads"] = _kv_heads(merged, out)
    out["head_dim"] = out["head_dim"] or out["d_model"] // out["heads"]
    out["d_ff"] = out["d_ff"] or 4 * out["d_model"]
    out["gated"] = _gated(merged, kind)
    if kind.startswith("llama4"):  # its dense layers and one shared expert have widths under other keys
        out.update(moe_d_ff=out["d_ff"], shared_experts=1, shared_d_ff=out["d_ff"])
        out["d_ff"] = _count("d_ff", "intermediate_size_mlp", merged.get("intermediate_size_mlp")) or out["d_ff"]
    if _switch(merged, "enable_moe_block"):  # a dense MLP runs beside the routed experts
        out.update(shared_experts=1, shared_d_ff=out["d_ff"])
    if out["experts"] and not out["moe_d_ff"]:
        out["moe_d_ff"] = out["d_ff"]
    if out["shared_d_ff"] and not out["shared_experts"]:
        out["shared_experts"] = 1
    out["shared_d_ff"] = out["shared_d_ff"] or out["shared_experts"] * out["moe_d_ff"]
    pattern = _pattern(merged, out)
    out["window"] = out["window"] if "S" in pattern else None
    out["context"] = out["context"] or None
    step = merged.get("interleave_moe_layer_step") or merged.get("moe_layer_freq")
    quantisation = merged.get("quantization_config") or config.get("quantization_config") or {}
    if not isinstance(quantisation, Mapping):
        raise ValueError(f"quantization_config is {quantisation!r:.60}, not an object")
    out.update(
        name=name,
        family=kind or "custom",
        tied=_switch(merged, "tie_word_embeddings"),
        attn_gate=_switch(merged, "attn_output_gate"),
        key_is_value=_switch(merged, "attention_k_eq_v"),
        native_format=str(quantisation.get("quant_method", "")) or "bf16",
        layer_pattern=pattern,
        moe_every=step if isinstance(step, int) and 0 < step <= out["layers"] else 1,
        source="config.json",
    )
    return out


def _first(config: Mapping[str, Any], keys: tuple[str, ...]) -> tuple[str, Any]:
    return next(((key, config[key]) for key in keys if config.get(key) is not None), (keys[0], None))


def _count(field: str, key: str, value: Any) -> int:
    """A size as a whole number; absent is 0."""
    if value is None:
        return 0
    most = MOST_LAYERS if field == "layers" else MOST
    whole = not isinstance(value, bool) and isinstance(value, (int, float)) and 0 <= value <= most
    if not whole or value != int(value):
        raise ValueError(f"{key} is {value!r:.60}: a whole number from 0 to {most:,} is needed")
    return int(value)


def _switch(config: Mapping[str, Any], key: str) -> bool:
    value = config.get(key)
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"{key} is {value!r:.60}: write true or false")
    return bool(value)


def _refuse_slips(config: Mapping[str, Any]) -> None:
    """A checkpoint has many keys that do not matter here; one that is nearly a key that does is not taken for one."""
    wanted = [k for keys in KEYS.values() if _first(config, keys)[1] is None for k in keys]
    wanted += [k for k in OTHER_KEYS if k not in config]
    read = {*OTHER_KEYS, *(k for keys in KEYS.values() for k in keys)}
    slips = [
        f"{key!r} (did you mean {near}?)"
        for key in config
        for near in wanted
        if key not in read and len(near) > 8 and _is_slip(str(key), near)
    ]
    if slips:
        raise ValueError(f"the config has {', '.join(slips)}")


def _is_slip(key: str, near: str) -> bool:
    """One letter left out, put in, or two exchanged; one letter for another makes real names of other things.

    >>> _is_slip("num_key_value_head", "num_key_value_heads"), _is_slip("o_lora_rank", "q_lora_rank")
    (True, False)
    """
    if abs(len(key) - len(near)) > 1 or key == near:
        return False
    if len(key) == len(near):
        return sorted(key) == sorted(near) and sum(a != b for a, b in zip(key, near, strict=True)) == 2
    blocks = difflib.SequenceMatcher(None, key, near, autojunk=False).get_matching_blocks()
    return sum(b.size for b in blocks) == min(len(key), len(near))


def _kv_heads(config: Mapping[str, Any], out: Mapping[str, int]) -> int:
    if out["kv_heads"]:
        return out["kv_heads"]
    return 1 if config.get("multi_query") else out["heads"]


def _gated(config: Mapping[str, Any], kind: str) -> bool:
    for key in ("mlp_gated", "gated"):
        if key in config:
            return _switch(config, key)
    activation = str(config.get("mlp_hidden_act") or config.get("hidden_act") or "")
    return kind not in UNGATED_TYPES and activation not in UNGATED_ACTIVATIONS


def _layer_list(config: Mapping[str, Any]) -> Any:
    for key in ("hybrid_override_pattern", "layer_types", "layers_block_type"):
        if found := config.get(key):
            if not isinstance(found, (str, list)):
                raise ValueError(f"{key} is {found!r:.60}: a list of layer types is needed")
            return found
    return ()


def _pattern(config: Mapping[str, Any], out: Mapping[str, int]) -> str:
    """One letter per layer; see `architecture.PATTERN`."""
    own = config.get("hybrid_override_pattern")
    if isinstance(own, str):
        return own.replace("*", "A").replace("-", "D")
    types = config.get("layer_types") or config.get("layers_block_type")
    if isinstance(types, list):
        unknown = sorted({str(t) for t in types} - set(LETTERS))
        if unknown:
            raise ValueError(f"unknown layer types {', '.join(unknown)}; known: {', '.join(LETTERS)}")
        return "".join(LETTERS[str(t)] for t in types)
    interval = config.get("full_attention_interval")
    if isinstance(interval, int) and interval > 1 and out["linear_value_heads"]:
        return ("L" * (min(interval, out["layers"] + 1) - 1)) + "F"
    every = config.get("sliding_window_pattern")
    if out["window"] and isinstance(every, int) and every > 1:
        return "S" * (min(every, out["layers"] + 1) - 1) + "F"
    if out["window"] and isinstance(every, str) and every and set(every) <= set("LG"):  # local and global layers
        return every.replace("L", "S").replace("G", "F")
    if out["window"] and config.get("use_sliding_window", True) and out["window"] < (out["context"] or 0):
        return "S"
    return "F"
