"""Which number format each part of a checkpoint is stored and computed in, from one label such as FP8 or NVFP4.

Published 4-bit checkpoints of mixture-of-experts models quantise only the experts: attention, router, shared layers and
embeddings stay BF16 (their model cards). Dense 4-bit checkpoints quantise all linear layers but not the output head.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from econ.performance.formats import FormatError, number_format

#: Bytes per stored parameter with block scales: NVFP4 16 values share one FP8 scale, MXFP4 32 share one 8-bit exponent,
#: INT4 groups of 32 share one BF16 scale, FP8 blocks of 128 x 128 share one FP32 scale (negligible).
STORED_BYTES: dict[str, float] = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "nvfp4": 0.5625,
    "mxfp4": 0.53125,
    "int4": 0.5625,
}
_LABELS: tuple[tuple[str, str], ...] = (
    (r"mxfp4", "mxfp4"),
    (r"nvfp4|^fp4|[^x]fp4", "nvfp4"),
    (r"int4|uint4|awq|gptq|w4a16|4.?bit", "int4"),
    (r"fp8|e4m3|w8a8.?fp", "fp8"),
    (r"int8|w8a8|w8a16|sq", "int8"),
    (r"fp32|f32|tf32", "fp32"),
    (r"bf16|fp16|f16|bfloat16|float16|half", "bf16"),
)


def stored_bytes(name: str) -> float:
    """Bytes per parameter of a canonical format, or of ``bits:N`` for the mixes of file formats.

    >>> stored_bytes("nvfp4"), stored_bytes("bits:4.0")
    (0.5625, 0.5)
    """
    if name.startswith("bits:"):
        return float(name.removeprefix("bits:")) / 8.0
    return STORED_BYTES[name]


@dataclass(frozen=True)
class PartFormats:
    """Stored format and bytes of the dense layers, the experts and the head, and the format that each computes in."""

    dense: str
    expert: str
    head: str

    @property
    def dense_bytes(self) -> float:
        """Bytes per parameter of attention, dense and shared layers."""
        return stored_bytes(self.dense)

    @property
    def expert_bytes(self) -> float:
        """Bytes per expert parameter."""
        return stored_bytes(self.expert)

    @property
    def head_bytes(self) -> float:
        """Bytes per parameter of head and embeddings."""
        return stored_bytes(self.head)


def canonical_format(label: str) -> str | None:
    """Canonical name of a weight-format label; None when it names none of the served formats.

    >>> canonical_format("NVFP4 MoE"), canonical_format("UINT4"), canonical_format("FP16")
    ('nvfp4', 'int4', 'bf16')
    """
    text = label.strip().lower()
    for pattern, name in _LABELS:
        if re.search(pattern, text):
            return name
    return None


def part_formats(weight_format: str, is_moe: bool, native_format: str = "") -> PartFormats:
    """Formats of the parts of a checkpoint.

    ``native_format`` is that of the published checkpoint: a model released in MXFP4 keeps its experts so under any
    narrower label than BF16.

    >>> part_formats("FP4", is_moe=True)
    PartFormats(dense='bf16', expert='nvfp4', head='bf16')
    >>> part_formats("FP8", is_moe=False)
    PartFormats(dense='fp8', expert='fp8', head='bf16')

    Raises:
        ValueError: when the label names no known format.
    """
    name = canonical_format(weight_format)
    if name is None:
        try:
            name = f"bits:{number_format(weight_format).bits_per_weight}"
        except FormatError as problem:
            raise ValueError(f"unknown weight format {weight_format!r}: {problem}") from problem
    if native_format.lower() == "mxfp4" and is_moe and name != "bf16":
        return PartFormats("bf16", "mxfp4", "bf16")
    if name in ("nvfp4", "mxfp4", "int4") and is_moe:
        return PartFormats("bf16", name, "bf16")
    return PartFormats(name, name, "bf16" if name != "fp32" else "fp32")


def _wanted(stored: str) -> str:
    """Format whose rate weights stored in one would like to have."""
    if stored.startswith("bits:"):
        return "bf16"
    return {"nvfp4": "fp4", "mxfp4": "fp4", "int4": "bf16"}.get(stored, stored)


def format_without_rate(stored: str, native_peaks: frozenset[str]) -> str:
    """The format of the weights where a part has no native rate of it, else an empty text.

    >>> format_without_rate("nvfp4", frozenset({"bf16", "fp8"})), format_without_rate("int4", frozenset({"bf16"}))
    ('fp4', '')
    """
    return "" if _wanted(stored) in native_peaks else _wanted(stored)


def compute_format(stored: str, native_peaks: frozenset[str]) -> str:
    """Format of the tensor-core arithmetic for weights stored in a format: weight-only formats expand to BF16.

    >>> compute_format("nvfp4", frozenset({"bf16", "fp8"}))
    'bf16'
    """
    wanted = _wanted(stored)
    if wanted in native_peaks:
        return wanted
    return "bf16" if "bf16" in native_peaks else "fp16" if "fp16" in native_peaks else "fp32"
