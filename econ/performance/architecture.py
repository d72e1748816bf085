"""Architectures by name, from a Hugging Face style `config.json` or mapping, or estimated from a parameter count."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from econ.performance.decoder import Architecture, ArchitectureError
from econ.performance.hf_config import from_hf_config
from econ.performance.names import did_you_mean, normalise, parse_model, stage_free
from supply.input_files import InputFileError, read_utf8
from supply.input_text import InputTextError, parse_json
from supply.paths import data_file

__all__ = ["Architecture", "ArchitectureError", "architecture", "from_parameters", "known_models"]

#: One letter per layer in `layer_pattern` of models.csv, repeated to the number of layers: mixer and MLP.
PATTERN = {
    "F": ("full", None),
    "S": ("sliding", None),
    "L": ("linear", None),
    "M": ("mamba", "none"),
    "E": ("none", "moe"),
    "D": ("none", "dense"),
    "A": ("full", "none"),
}


def known_models() -> list[str]:
    """Names of the shipped architectures, in file order (aliases not listed).

    >>> "gpt-oss-120b" in known_models()
    True
    """
    return list(_table())


def architecture(name: str | Path | Mapping[str, object]) -> Architecture:
    """The architecture of a name (a stored-format suffix is ignored), of a `config.json`, or of its mapping.

    >>> architecture("DeepSeek-R1-NVFP4").name
    'DeepSeek-R1'

    Raises:
        ArchitectureError: for an unknown name (with the nearest ones), one whose architecture is not published (with
            the reason), or a config that is incomplete.
    """
    if isinstance(name, Mapping):
        return _from_mapping(name, str(name.get("name") or name.get("_name_or_path") or "custom model"))
    text = str(name)
    if text.lower().endswith(".json"):
        path = Path(text)
        if not path.exists():
            raise ArchitectureError(f"no config file {path}")
        return _from_mapping(_config(path), path.stem)
    base, _ = parse_model(text)
    for candidate in (text, base, stage_free(base)):
        key = normalise(candidate)
        if key in _refusals():
            raise ArchitectureError(f"{text}: {_refusals()[key]}; give a config.json or a mapping")
        if key in _aliases():
            return _build(_aliases()[key])
    raise ArchitectureError(
        f"unknown model {text!r}{did_you_mean(base, known_models(), 'give a config.json or a mapping for your own')}"
    )


def _config(path: Path) -> Mapping[str, object]:
    try:
        found = parse_json(read_utf8(path, "model config"))
    except InputFileError as exc:
        raise ArchitectureError(str(exc)) from exc
    except InputTextError as exc:
        raise ArchitectureError(f"{path}: {exc}") from exc
    if not isinstance(found, dict):
        raise ArchitectureError(f"{path}: expected one JSON object, found {type(found).__name__}")
    return found


def from_parameters(
    parameters: float, name: str = "estimated", vocab: int = 50304, context: int = 2048
) -> Architecture:
    """A dense decoder of a given size where no shape is published: width by N = 12 L d^2 with d = 128 L, gated no.

    The rule is that of the GPT-3 family (96 layers of 12,288). Its `source` says that it is an estimate.

    >>> from_parameters(175e9).layers
    96

    Raises:
        ArchitectureError: when the size is below 1e7 or above 1e14 parameters.
    """
    if not 1e7 <= parameters <= 1e14:
        raise ArchitectureError(
            f"{name}: {parameters:g} parameters is outside 1e7 .. 1e14 (billions given as a number?)"
        )
    layers = max(2, round((parameters / (12 * 128**2)) ** (1 / 3)))
    width = max(128, 128 * round((parameters / (12 * layers)) ** 0.5 / 128))
    return Architecture(
        name=name,
        family="estimated",
        layers=layers,
        d_model=width,
        heads=width // 128,
        kv_heads=width // 128,
        head_dim=128,
        d_ff=4 * width,
        gated=False,
        vocab=vocab,
        tied=True,
        context=context,
        attention=("full",) * layers,
        mlp=("dense",) * layers,
        source="estimate from the parameter count alone",
        notes="shape not published: depth and width follow the GPT-3 rule",
    )


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Mapping[str, str]]:
    with data_file("models.csv").open(encoding="utf-8", newline="") as handle:
        return {row["model"]: row for row in csv.DictReader(handle)}


@lru_cache(maxsize=1)
def _alias_rows() -> list[dict[str, str]]:
    with data_file("model_aliases.csv").open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


@lru_cache(maxsize=1)
def _aliases() -> Mapping[str, str]:
    table = {normalise(name): name for name in _table()}
    for row in _alias_rows():
        if not row["name"]:
            continue
        if row["name"] not in _table():
            raise ArchitectureError(f"model_aliases.csv: {row['alias']!r} points to unknown {row['name']!r}")
        if table.setdefault(normalise(row["alias"]), row["name"]) != row["name"]:
            raise ArchitectureError(f"model_aliases.csv: {row['alias']!r} names two models")
    return table


@lru_cache(maxsize=1)
def _refusals() -> Mapping[str, str]:
    """Names whose architecture is not published or not a decoder, with the reason."""
    return {normalise(r["alias"]): r["note"] for r in _alias_rows() if not r["name"]}


@lru_cache(maxsize=256)
def _build(name: str) -> Architecture:
    row = _table()[name]

    def integer(key: str, default: int = 0) -> int:
        return int(float(row[key])) if row.get(key) else default

    layers, experts = integer("layers"), integer("n_experts")
    attention, mlp = _layer_kinds(
        layers, row.get("layer_pattern") or "F", experts > 0, integer("first_dense_layers"), integer("moe_every", 1)
    )
    return Architecture(
        name=name,
        family=row["family"],
        layers=layers,
        d_model=integer("d_model"),
        heads=integer("n_heads"),
        kv_heads=integer("n_kv_heads") or integer("n_heads"),
        head_dim=integer("head_dim"),
        d_ff=integer("d_ff"),
        gated=row["mlp_gated"] == "True",
        vocab=integer("vocab"),
        tied=row["tie_embeddings"] == "True",
        context=integer("context") or None,
        attention=attention,
        mlp=mlp,
        window=integer("sliding_window") or None,
        q_lora=integer("mla_q_lora"),
        kv_lora=integer("mla_kv_lora"),
        qk_nope=integer("mla_qk_nope"),
        qk_rope=integer("mla_qk_rope"),
        v_head=integer("mla_v_head"),
        experts=experts,
        experts_per_token=integer("experts_per_token"),
        shared_experts=integer("n_shared_experts"),
        moe_d_ff=integer("moe_d_ff"),
        shared_d_ff=integer("shared_expert_d_ff") or integer("n_shared_experts") * integer("moe_d_ff"),
        first_dense_layers=integer("first_dense_layers"),
        mtp=integer("mtp_layers"),
        **{key: integer(key) for key in _EXTRA},
        attn_gate=row.get("attn_gate") == "True",
        key_is_value=row.get("key_is_value") == "True",
        native_format=_FORMAT_WORDS.get(row["native_weight_format"], row["native_weight_format"] or "bf16"),
        published_total=float(row["published_total_params_b"]) * 1e9 if row["published_total_params_b"] else None,
        published_active=float(row["published_active_params_b"]) * 1e9 if row["published_active_params_b"] else None,
        source=row["source"],
        url=row["url"],
        notes=row["notes"],
    )


_EXTRA = (
    "global_kv_heads",
    "global_head_dim",
    "linear_key_heads",
    "linear_value_heads",
    "linear_head_dim",
    "mamba_heads",
    "mamba_head_dim",
    "mamba_state",
    "mamba_groups",
    "moe_latent",
    "positions",
)
_FORMAT_WORDS = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


def _layer_kinds(
    layers: int, pattern: str, moe: bool, first_dense: int, every: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Mixer and MLP of each layer from a repeated letter pattern; MoE every `every`-th layer after the first dense."""
    attention, mlp = [], []
    for i in range(layers):
        letter = pattern[i % len(pattern)]
        if letter not in PATTERN:
            raise ArchitectureError(f"layer pattern {pattern!r}: {letter!r} is not one of {', '.join(PATTERN)}")
        mixer, own = PATTERN[letter]
        attention.append(mixer)
        routed = moe and i >= first_dense and (i + 1) % every == 0
        mlp.append(own or ("moe" if routed else "dense"))
    return tuple(attention), tuple(mlp)


def _from_mapping(config: Mapping[str, object], name: str) -> Architecture:
    try:
        fields = from_hf_config(config, name)
    except (KeyError, TypeError, ValueError) as exc:
        raise ArchitectureError(f"{name}: {exc}") from exc
    pattern, moe_every = str(fields.pop("layer_pattern")), int(fields.pop("moe_every"))
    attention, mlp = _layer_kinds(
        fields["layers"], pattern, fields["experts"] > 0, fields["first_dense_layers"], moe_every
    )
    return Architecture(attention=attention, mlp=mlp, **fields)
