"""What a training step needs of a model: parameters by kind, attention work and widths; look-up by name or by size.

Shapes come from `data/models_training.csv` (models that are only known as training workloads) and `data/models.csv`.
A model of which only the parameter count is known gets the depth and width of a dense transformer of that size.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from econ.performance.architecture import ArchitectureError, architecture
from econ.performance.names import did_you_mean, normalise, parse_model, stage_free
from supply.paths import data_file

__all__ = ["TrainingModel", "TrainingModelError", "dense_model", "known_training_models", "training_model"]

#: Depth of dense transformers: width is about 128 times the number of layers (GPT-3 to Llama 3 span 80 to 160).
WIDTH_PER_LAYER = 128
_TUNING = re.compile(r"[-_ ](?:lora|qlora|sft)$", re.IGNORECASE)


class TrainingModelError(ValueError):
    """An unknown model, or a size that cannot be."""


@dataclass(frozen=True)
class TrainingModel:
    """Counts of one model. Parameters in units; `*_flops` in FLOP; a multiply-add is two FLOP.

    `attention_layers` are layers with a softmax over the sequence (all of them in a plain transformer); `score_width`
    is query heads x (query-key width + value width) of one such layer. `workload`: known as a
    training set-up.
    """

    name: str
    layers: int
    d_model: int
    n_heads: int
    attention_layers: float
    score_width: float
    kv_width: float
    attention_params: float
    mlp_params: float
    dense_layers: int
    expert_params: float
    n_experts: int
    experts_per_token: int
    shared_params: float
    moe_layers: int
    ff_width: float
    expert_width: float
    vocab: int
    tied: bool
    sequence: int
    window: float = 0.0
    window_layers: float = 0.0
    total_override: float = 0.0
    active_override: float = 0.0
    mtp_layers: int = 0
    gated: bool = True
    alibi: bool = False
    workload: bool = False

    @property
    def hybrid(self) -> bool:
        """Whether some layers have no softmax attention."""
        return self.attention_layers < self.layers

    @property
    def embedding_params(self) -> float:
        """Parameters of the token embedding: vocabulary x width."""
        return float(self.vocab * self.d_model)

    @property
    def layer_params(self) -> float:
        """Parameters of all layers, all experts included, embeddings and head left out."""
        if self.total_override:
            return self.total_override - self.embedding_params * (1 if self.tied else 2)
        experts = self.moe_layers * (self.n_experts * self.expert_params + self.shared_params)
        return self.layers * self.attention_params + self.dense_layers * self.mlp_params + experts

    @property
    def total_params(self) -> float:
        """All parameters.

        >>> round(training_model("GPT-3-175B").total_params / 1e9, 1)
        174.6
        """
        return self.layer_params + self.embedding_params * (1 if self.tied else 2)

    @property
    def active_layer_params(self) -> float:
        """Layer parameters that one token multiplies with, layers that predict further tokens included."""
        expert = self.experts_per_token * self.expert_params + self.shared_params
        further = self.mtp_layers * (self.attention_params + (expert if self.moe_layers else self.mlp_params))
        if self.active_override:
            return self.active_override - self.embedding_params * (1 if self.tied else 2) + further
        once = self.layers * self.attention_params + self.dense_layers * self.mlp_params
        return once + self.moe_layers * expert + further

    @property
    def head_params(self) -> float:
        """Parameters of the output projection that one token multiplies with, once for each predicted token."""
        return self.embedding_params * (1 + self.mtp_layers)

    @property
    def matmul_params(self) -> float:
        """Parameters that one token multiplies with, output head included, embedding look-up left out."""
        return self.active_layer_params + self.head_params

    @property
    def routed_params(self) -> float:
        """Parameters of routed experts, which expert parallelism shards."""
        return self.moe_layers * self.n_experts * self.expert_params

    @property
    def routed_active_params(self) -> float:
        """Parameters of the routed experts that one token uses."""
        return self.moe_layers * self.experts_per_token * self.expert_params

    def score_flops_per_token(self, sequence: float, causal: bool = True) -> float:
        """Forward attention-score FLOP a token: 2 x sequence x score width x layers, half of it under a causal mask.

        >>> training_model("GPT-3-175B").score_flops_per_token(2048, causal=False) == 4 * 96 * 12288 * 2048
        True
        """
        full = (self.attention_layers - self.window_layers) * sequence
        windowed = self.window_layers * min(self.window or sequence, sequence) * (2 if self.window else 1)
        span = full + min(windowed, self.window_layers * sequence)
        return 2 * span * self.score_width * (0.5 if causal else 1.0)


def _number(row: Mapping[str, str], key: str, default: float = 0.0) -> float:
    text = (row.get(key) or "").strip()
    return float(text) if text else default


def _attention(row: Mapping[str, str]) -> tuple[float, float, float]:
    """Parameters of one attention layer, width of its scores and of its keys and values."""
    d, heads, width = _number(row, "d_model"), _number(row, "n_heads"), _number(row, "head_dim")
    kv_heads = _number(row, "n_kv_heads", heads)
    rank = _number(row, "mla_kv_lora")
    if not rank:
        params = d * width * (2 * heads + 2 * kv_heads)
        return params, 2 * heads * width, 2 * kv_heads * width
    nope, rope, value = _number(row, "mla_qk_nope"), _number(row, "mla_qk_rope"), _number(row, "mla_v_head")
    q_rank = _number(row, "mla_q_lora")
    query = d * q_rank + q_rank * heads * (nope + rope) if q_rank else d * heads * (nope + rope)
    params = query + d * (rank + rope) + rank * heads * (nope + value) + heads * value * d
    return params, heads * (nope + rope + value), rank + rope


def _model(row: Mapping[str, str]) -> TrainingModel:
    d, layers = int(_number(row, "d_model")), int(_number(row, "layers"))
    attention, score_width, kv_width = _attention(row)
    matrices = 3 if (row.get("mlp_gated") or "True").strip().lower() in ("true", "1") else 2
    experts = int(_number(row, "n_experts"))
    first_dense = int(_number(row, "first_dense_layers")) if experts else layers
    expert_width = _number(row, "moe_d_ff", _number(row, "d_ff")) if experts else 0.0
    shared = _number(row, "shared_expert_d_ff") or _number(row, "n_shared_experts") * expert_width
    window = _number(row, "sliding_window")
    return TrainingModel(
        name=row["model"],
        layers=layers,
        d_model=d,
        n_heads=int(_number(row, "n_heads")),
        attention_layers=_number(row, "attention_layers", layers),
        score_width=score_width,
        kv_width=kv_width,
        attention_params=attention,
        mlp_params=matrices * d * _number(row, "d_ff"),
        dense_layers=first_dense,
        expert_params=matrices * d * expert_width,
        n_experts=experts,
        experts_per_token=int(_number(row, "experts_per_token")),
        shared_params=matrices * d * shared if experts else 0.0,
        moe_layers=layers - first_dense,
        ff_width=_number(row, "d_ff") or expert_width,
        expert_width=expert_width,
        vocab=int(_number(row, "vocab")),
        tied=(row.get("tie_embeddings") or "False").strip().lower() in ("true", "1"),
        sequence=int(_number(row, "seq")),
        window=window,
        window_layers=layers * _window_share(row) if window else 0.0,
        total_override=_number(row, "total_params_b") * 1e9,
        active_override=_number(row, "active_params_b") * 1e9,
        mtp_layers=int(_number(row, "mtp_layers")),
        gated=matrices == 3,
        alibi=(row.get("position") or "").strip().lower() == "alibi",
    )


def _window_share(row: Mapping[str, str]) -> float:
    """Share of layers with a sliding window: `a:b` means a windowed layers to b full ones; unknown patterns count
    half."""
    pattern = re.search(r"(\d+)\s*:\s*(\d+)", row.get("sliding_pattern") or "")
    if not pattern:
        return 0.5
    windowed, full = int(pattern[1]), int(pattern[2])
    return windowed / (windowed + full)


@lru_cache(maxsize=1)
def _table() -> Mapping[str, TrainingModel]:
    """Normalised name or alias -> model."""
    table: dict[str, TrainingModel] = {}
    for file in ("models_training.csv", "models.csv"):
        for row in _rows(file):
            if not _number(row, "d_model"):
                continue
            model = replace(_model(row), workload=file == "models_training.csv")
            for name in (row["model"], *filter(None, (row.get("aliases") or "").split(";"))):
                table.setdefault(normalise(name), model)
    for row in _rows("model_aliases.csv"):
        known = table.get(normalise(row["name"]))
        if known is not None:
            table.setdefault(normalise(row["alias"]), known)
    return table


def _rows(file: str) -> list[dict[str, str]]:
    with data_file(file).open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def known_training_models() -> list[str]:
    """Names of all models with a known shape, sorted.

    >>> "MPT-7b" in known_training_models()
    True
    """
    return sorted({m.name for m in _table().values()})


def training_model(name: str) -> TrainingModel:
    """The model of a name; spelling may differ in case, hyphens and spaces, and a tuning suffix (LoRA, SFT) is dropped.

    >>> training_model("LLAMA3.1_405B").layers, training_model("Llama-2-70B-LoRA").name
    (126, 'Llama-2-70B')

    Raises:
        TrainingModelError: when no shape is known; the message offers the nearest names and the way by size.
    """
    table = _table()
    plain, _ = parse_model(name)
    for text in (name, _TUNING.sub("", name.strip()), plain, stage_free(plain)):
        found = table.get(normalise(text))
        if found is not None:
            return found
    try:
        architecture(name)
    except ArchitectureError as problem:
        if not str(problem).startswith("unknown"):
            raise TrainingModelError(f"{problem}; or give its parameter count (params)") from problem
    hint = did_you_mean(name, known_training_models(), "or give its parameter count (dense_model)")
    raise TrainingModelError(f"unknown model {name!r}{hint}")


def dense_model(params: float, name: str = "", vocab: int = 50_000, sequence: int = 2048) -> TrainingModel:
    """A dense transformer of a size: width 128 x layers, four-fold feed-forward, 12 x layers x width^2 parameters.

    >>> m = dense_model(6.7e9)
    >>> m.layers, m.d_model, round(m.total_params / 1e9, 1)
    (32, 4224, 6.7)

    Raises:
        TrainingModelError: for a size under 10 million or over 1e14 parameters.
    """
    if not 1e7 <= params <= 1e14:
        raise TrainingModelError(f"params = {params!r}: a size between 1e7 and 1e14 parameters is needed")
    layers = max(4, round((params / (12 * WIDTH_PER_LAYER**2)) ** (1 / 3)))
    d = max(128, 128 * round(math.sqrt(params / (12 * layers)) / 128))
    row = {
        "model": name or f"dense {params / 1e9:g}B",
        "layers": str(layers),
        "d_model": str(d),
        "n_heads": str(max(1, d // 128)),
        "head_dim": "128",
        "d_ff": str(4 * d),
        "mlp_gated": "False",
        "vocab": str(vocab),
        "tie_embeddings": "True",
        "seq": str(sequence),
    }
    return replace(_model(row), total_override=params, active_override=params)
