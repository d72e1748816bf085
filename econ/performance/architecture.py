"""Model architectures: parameters by part, and bytes of attention state, for dense, GQA, MLA, sliding, hybrid and MoE.

A layer is a mixer (`full`, `sliding`, `linear`, `mamba` or `none`) followed by an MLP (`dense`, `moe` or `none`). The
counts are those of the matrices plus norms; biases and quantisation scales are left out (below 0.1 % of any model).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from econ.performance.hf_config import from_hf_config
from econ.performance.names import did_you_mean, normalise, parse_model, stage_free
from supply.paths import data_file

__all__ = ["Architecture", "ArchitectureError", "architecture", "from_parameters", "known_models"]

MIXERS = ("full", "sliding", "linear", "mamba", "none")
MLPS = ("dense", "moe", "none")
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


class ArchitectureError(ValueError):
    """An unknown or undisclosed model, or an architecture whose fields contradict each other."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """One decoder architecture. Sizes are counts of values; `*_lora`, `qk_*` and `v_head` are zero outside MLA."""

    name: str
    family: str
    layers: int
    d_model: int
    heads: int
    kv_heads: int
    head_dim: int
    d_ff: int
    gated: bool
    vocab: int
    tied: bool
    context: int | None
    attention: tuple[str, ...]
    mlp: tuple[str, ...]
    window: int | None = None
    q_lora: int = 0
    kv_lora: int = 0
    qk_nope: int = 0
    qk_rope: int = 0
    v_head: int = 0
    experts: int = 0
    experts_per_token: int = 0
    shared_experts: int = 0
    moe_d_ff: int = 0
    shared_d_ff: int = 0
    first_dense_layers: int = 0
    mtp: int = 0
    global_kv_heads: int = 0
    global_head_dim: int = 0
    attn_gate: bool = False
    key_is_value: bool = False
    linear_key_heads: int = 0
    linear_value_heads: int = 0
    linear_head_dim: int = 0
    mamba_heads: int = 0
    mamba_head_dim: int = 0
    mamba_state: int = 0
    mamba_groups: int = 0
    moe_latent: int = 0
    positions: int = 0
    native_format: str = "bf16"
    published_total: float | None = None
    published_active: float | None = None
    source: str = ""
    url: str = ""
    notes: str = ""

    def __post_init__(self) -> None:
        problems = [
            f"{k} is {v}, must be positive"
            for k, v in (("layers", self.layers), ("d_model", self.d_model), ("vocab", self.vocab))
            if v <= 0
        ]
        if len(self.attention) != self.layers or len(self.mlp) != self.layers:
            problems.append(f"{len(self.attention)} mixers and {len(self.mlp)} MLPs for {self.layers} layers")
        if set(self.attention) - set(MIXERS) or set(self.mlp) - set(MLPS):
            problems.append(f"mixers are {', '.join(MIXERS)}; MLPs are {', '.join(MLPS)}")
        if "sliding" in self.attention and not self.window:
            problems.append("has sliding layers but no window")
        if not self.is_mla and self.heads and self.kv_heads and self.heads % self.kv_heads:
            problems.append(f"{self.heads} heads cannot share {self.kv_heads} KV heads")
        if self.experts and not 0 < self.experts_per_token <= self.experts:
            problems.append(f"{self.experts_per_token} of {self.experts} experts a token")
        if problems:
            raise ArchitectureError(f"{self.name}: {'; '.join(problems)}")

    @property
    def is_mla(self) -> bool:
        """Whether attention keeps one latent per token (rank + rope) instead of keys and values per head."""
        return self.kv_lora > 0

    @property
    def is_moe(self) -> bool:
        """Whether any layer has routed experts."""
        return "moe" in self.mlp

    def head_shape(self, kind: str) -> tuple[int, int]:
        """(KV heads, head size) of a mixer kind; some models give their full layers another shape than sliding ones."""
        if kind == "full" and self.global_head_dim:
            return self.global_kv_heads or self.kv_heads, self.global_head_dim
        return self.kv_heads, self.head_dim

    def mixer_parameters(self, kind: str) -> int:
        """Parameters of one mixer of a kind."""
        d = self.d_model
        if kind == "none":
            return 0
        if kind == "linear":
            key, value = self.linear_key_heads * self.linear_head_dim, self.linear_value_heads * self.linear_head_dim
            return d * (2 * key + 2 * value + 2 * self.linear_value_heads) + 4 * (2 * key + value) + value * d
        if kind == "mamba":
            inner, state = self.mamba_heads * self.mamba_head_dim, self.mamba_groups * self.mamba_state
            return d * (2 * inner + 2 * state + self.mamba_heads) + 4 * (inner + 2 * state) + inner * d
        if self.is_mla:
            qk = self.qk_nope + self.qk_rope
            query = d * self.q_lora + self.q_lora * self.heads * qk if self.q_lora else d * self.heads * qk
            latent = d * (self.kv_lora + self.qk_rope) + self.kv_lora * self.heads * (self.qk_nope + self.v_head)
            return query + latent + self.heads * self.v_head * d
        kv_heads, size = self.head_shape(kind)
        values = 1 if self.key_is_value and kind == "full" else 2
        return d * size * (self.heads * (2 + self.attn_gate) + values * kv_heads)

    @property
    def expert_parameters(self) -> int:
        """Parameters of one routed expert."""
        return (3 if self.gated else 2) * (self.moe_latent or self.d_model) * self.moe_d_ff

    @property
    def moe_layers(self) -> int:
        """Number of layers with routed experts."""
        return self.mlp.count("moe")

    @property
    def parameters(self) -> Mapping[str, int]:
        """Parameters by part: attention, dense_mlp, experts, shared, router, embedding, lm_head, norms.

        >>> architecture("Llama-3.1-8B").parameters["attention"]
        1342177280
        """
        d, matrices = self.d_model, 3 if self.gated else 2
        shared = self.moe_layers * matrices * d * self.shared_d_ff * (1 if self.shared_experts else 0)
        latent = 2 * d * self.moe_latent * self.moe_layers
        return {
            "attention": sum(self.mixer_parameters(k) for k in self.attention),
            "dense_mlp": self.mlp.count("dense") * matrices * d * self.d_ff,
            "experts": self.moe_layers * self.experts * self.expert_parameters,
            "shared": shared + latent,
            "router": self.moe_layers * d * self.experts,
            "embedding": (self.vocab + self.positions) * d,
            "lm_head": 0 if self.tied else self.vocab * d,
            "norms": (2 * self.layers + 1) * d,
        }

    @property
    def total_parameters(self) -> int:
        """Parameters of the checkpoint without its multi-token-prediction layers.

        >>> round(architecture("DeepSeek-V3").total_parameters / 1e9)
        671
        """
        return sum(self.parameters.values())

    @property
    def active_parameters(self) -> int:
        """Parameters that one token passes through: all but the experts not chosen (embedding table included)."""
        parts = self.parameters
        idle = parts["experts"] - self.moe_layers * self.experts_per_token * self.expert_parameters
        return self.total_parameters - idle

    def kv_values_per_token(self, kind: str) -> int:
        """Cached values per token of one layer: 2 x KV heads x head size; MLA rank + rope; linear layers none.

        >>> architecture("DeepSeek-V3").kv_values_per_token("full")
        576
        """
        if kind not in ("full", "sliding"):
            return 0
        if self.is_mla:
            return self.kv_lora + self.qk_rope
        kv_heads, size = self.head_shape(kind)
        return 2 * kv_heads * size

    @property
    def state_values(self) -> int:
        """Values of recurrent state per sequence, constant in its length (linear and state-space layers)."""
        linear = self.linear_value_heads * self.linear_head_dim**2 * self.attention.count("linear")
        mamba = self.mamba_heads * self.mamba_head_dim * self.mamba_state * self.attention.count("mamba")
        return linear + mamba

    def kv_bytes(self, tokens: float, bytes_per_value: float = 2.0) -> float:
        """Bytes of cached keys and values of one sequence: full layers grow with it, sliding ones stop at the window.

        >>> architecture("Llama-3.1-70B").kv_bytes(1)
        327680.0
        >>> round(architecture("Gemma-3-27B").kv_bytes(131072) / 2**30, 2)
        10.41

        Raises:
            ArchitectureError: when tokens or bytes are negative.
        """
        if tokens < 0 or bytes_per_value <= 0:
            raise ArchitectureError(f"{self.name}: kv_bytes of {tokens} tokens at {bytes_per_value} B a value")
        full = self.attention.count("full") * self.kv_values_per_token("full") * tokens
        kept = min(tokens, self.window) if self.window else tokens
        sliding = self.attention.count("sliding") * self.kv_values_per_token("sliding") * kept
        return (full + sliding) * bytes_per_value


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
        return _from_mapping(json.loads(path.read_text(encoding="utf-8")), path.stem)
    base, _ = parse_model(text)
    for candidate in (text, base, stage_free(base)):
        key = normalise(candidate)
        if key in _refusals():
            raise ArchitectureError(f"{text}: {_refusals()[key]}; give a config.json or a mapping")
        if key in _aliases():
            return _build(_aliases()[key])
    raise ArchitectureError(
        f"unknown model {text!r}{did_you_mean(base, known_models())}; give a config.json or a mapping for your own"
    )


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
