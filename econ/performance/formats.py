"""Number formats: true bits per weight with scales, exponent and mantissa, compute path and bytes of a checkpoint.

Block formats cost their scales too: a GGUF `q4_0` block of 32 weights is 16 bytes of nibbles and a 2-byte scale, 4.5
bits a weight; NVFP4 has an 8-bit scale per 16 values (4.5), MXFP4 one per 32 (4.25).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from econ.performance.architecture import Architecture
from econ.performance.hardware import Hardware
from econ.performance.names import did_you_mean
from supply.facts import catalog

__all__ = ["FormatError", "NumberFormat", "compute_format", "known_formats", "number_format", "weight_bytes"]


class FormatError(ValueError):
    """An unknown number format, or one that a device cannot compute or dequantise."""


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """One storage format.

    `element_bits` are the bits of a value, `block` the values that share `scale_bits` of scales and offsets.
    `exponent` and `mantissa` exclude the sign bit; both are 0 for integers. `mix_bits` overrides the block arithmetic
    for GGUF mixes, whose tensors have several block types. `experts_only` is the practice of shipped MoE checkpoints:
    routed experts in this format, the rest in `rest`.
    """

    name: str
    kind: str
    element_bits: float
    block: int = 0
    scale_bits: float = 0.0
    exponent: int = 0
    mantissa: int = 0
    mix_bits: float = 0.0
    experts_only: bool = False
    rest: str = "bf16"
    native: str = ""
    layout: str = ""

    @property
    def bits_per_weight(self) -> float:
        """Bits per weight with scales, e.g. 4.25 for MXFP4.

        >>> number_format("mxfp4").bits_per_weight, number_format("q8_0").bits_per_weight
        (4.25, 8.5)
        """
        if self.mix_bits:
            return self.mix_bits
        return self.element_bits + (self.scale_bits / self.block if self.block else 0.0)

    @property
    def bytes_per_weight(self) -> float:
        """Bytes per weight with scales."""
        return self.bits_per_weight / 8


def _formats() -> dict[str, NumberFormat]:
    f = NumberFormat
    plain = [
        f("fp32", "float", 32, exponent=8, mantissa=23, native="fp32"),
        f("tf32", "float", 32, exponent=8, mantissa=10, native="tf32", layout="19 bits computed, 32 stored"),
        f("bf16", "float", 16, exponent=8, mantissa=7, native="bf16"),
        f("fp16", "float", 16, exponent=5, mantissa=10, native="fp16"),
        f("fp8", "float", 8, 128 * 128, 32, 4, 3, native="fp8", layout="E4M3, one fp32 scale a 128 x 128 block"),
        f("fp8_e5m2", "float", 8, exponent=5, mantissa=2, native="fp8"),
        f("mxfp8", "float", 8, 32, 8, 4, 3, native="fp8", layout="E8M0 scale a block of 32"),
        f("int8", "integer", 8, native="int8", layout="one scale a row"),
        f("mxfp4", "float", 4, 32, 8, 2, 1, experts_only=True, native="fp4", layout="E2M1, E8M0 scale a block of 32"),
        f("nvfp4", "float", 4, 16, 8, 2, 1, experts_only=True, native="fp4", layout="E2M1, E4M3 scale a block of 16"),
        f("fp4", "float", 4, 16, 8, 2, 1, experts_only=True, native="fp4", layout="read as NVFP4"),
        f(
            "int4",
            "integer",
            4,
            128,
            20,
            experts_only=True,
            native="int4",
            layout="scale and zero point a group of 128",
        ),
        f("int4_g32", "integer", 4, 32, 16, experts_only=True, native="int4", layout="16-bit scale a group of 32"),
    ]
    # GGUF block layouts: (element bits, block, bits of scales and minima a block), from the block structs of ggml.
    gguf = {
        "q4_0": (4, 32, 16),
        "q4_1": (4, 32, 32),
        "q5_0": (5, 32, 16),
        "q5_1": (5, 32, 32),
        "q8_0": (8, 32, 16),
        "q2_k": (2, 256, 64 + 96),
        "q3_k": (3, 256, 96 + 16),
        "q4_k": (4, 256, 96 + 32),
        "q5_k": (5, 256, 96 + 32),
        "q6_k": (6, 256, 128 + 16),
        "iq4_nl": (4, 32, 16),
        "iq4_xs": (4, 256, 64 + 16),
        "iq3_s": (3.3125, 256, 32),
        "iq2_xs": (2.25, 256, 16),
    }
    blocks = [
        f(name, "gguf", b, n, s, native="gguf", layout=f"{n} weights a block") for name, (b, n, s) in gguf.items()
    ]
    return {x.name: x for x in [*plain, *blocks]}


FORMATS: Mapping[str, NumberFormat] = _formats()
#: Other spellings in data sets and file names -> our name.
SPELLINGS: Mapping[str, str] = {
    "f16": "fp16",
    "f32": "fp32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "float32": "fp32",
    "half": "fp16",
    "fp8_e4m3": "fp8",
    "fp8_block": "fp8",
    "fp8_dynamic": "fp8",
    "w8a8": "int8",
    "uint8": "int8",
    "uint4": "int4",
    "awq": "int4",
    "gptq": "int4",
    "gptq_int4": "int4",
    "w4a16": "int4",
    "4bit": "int4",
    "8bit": "int8",
    "gguf": "q4_k_m",
}


@lru_cache(maxsize=1)
def _mixes() -> Mapping[str, NumberFormat]:
    """GGUF presets whose tensors have several block types: bits per weight of whole files, from the facts."""
    out = {}
    for fact in catalog().find(quantity="bits_per_weight"):
        name = fact.subject.removeprefix("GGUF ").lower()
        out[name] = NumberFormat(
            name, "gguf", float(round(fact.number)), mix_bits=fact.number, native="gguf", layout=f"mix, fact {fact.id}"
        )
    return out


def known_formats() -> list[str]:
    """Names of the formats: plain ones, single block types, then the GGUF mixes.

    >>> {"bf16", "nvfp4", "q4_0", "q4_k_m"} <= set(known_formats())
    True
    """
    return list({**FORMATS, **_mixes()})


def number_format(name: str) -> NumberFormat:
    """The format of a name in any common spelling (`FP8`, `UD-Q4_K_XL`, `MXFP4 GGUF`, `Q8_0 GGUF`, `EXL2 4.0 bpw`).

    >>> number_format("UD-Q4_K_XL").name, number_format("GGUF Q4_K_M").bits_per_weight
    ('q4_k_xl', 4.8944)

    Raises:
        FormatError: when the name is unknown; the message lists the known ones.
    """
    text = re.sub(r"[\s\-]+", "_", name.strip().lower())
    bits = re.search(r"(\d+(?:\.\d+)?)_bpw", text)
    if bits:
        return NumberFormat(text, "gguf", round(float(bits[1])), mix_bits=float(bits[1]), native="gguf", layout="EXL2")
    text = re.sub(r"^gguf_|_gguf$|^ud_|_moe$", "", text)
    text = SPELLINGS.get(text, text)
    if text in _mixes() and text not in ("q8_0", "q4_0"):  # the presets, not the bare block types
        return _mixes()[text]
    if text in FORMATS:
        return FORMATS[text]
    for spelling in ("gptq", "awq", "nvfp4", "mxfp4", "mxfp8", "fp8", "fp4", "bf16", "fp16"):
        if text.startswith(spelling) or f"_{spelling}" in text:
            return FORMATS[SPELLINGS.get(spelling, spelling)]
    if "4_bit" in text:
        return _mixes()["q4_k_m"]
    raise FormatError(
        f"unknown number format {name!r}{did_you_mean(text, known_formats(), 'e.g. bf16, fp8, nvfp4, q4_k_m')}"
    )


#: Which native formats can stand in for another, nearest first: weights are widened, never narrowed.
FALLBACKS: Mapping[str, tuple[str, ...]] = {
    "fp4": ("fp4", "fp8", "bf16", "fp16", "fp32"),
    "fp8": ("fp8", "bf16", "fp16", "fp32"),
    "int8": ("int8", "bf16", "fp16", "fp32"),
    "int4": ("bf16", "fp16", "fp32"),
    "gguf": ("fp16", "bf16", "fp32"),
    "bf16": ("bf16", "fp16", "fp32"),
    "fp16": ("fp16", "bf16", "fp32"),
    "tf32": ("tf32", "fp32"),
    "fp32": ("fp32", "tf32"),
}


def compute_format(stored: str | NumberFormat, hardware: Hardware, activations: str = "") -> str:
    """The format in which a device multiplies weights stored in a format: the native one, else the nearest wider.

    `activations` of 16 bit (weight-only quantisation, W4A16) force the 16-bit path.

    >>> from econ.performance.hardware import hardware
    >>> compute_format("nvfp4", hardware("B200")), compute_format("nvfp4", hardware("H100"))
    ('fp4', 'fp8')
    >>> compute_format("fp8", hardware("A100"))
    'bf16'

    Raises:
        FormatError: when the device has no path that is wide enough.
    """
    fmt = number_format(stored) if isinstance(stored, str) else stored
    wanted = fmt.native
    if activations:
        act = number_format(activations)
        if act.element_bits >= 16 and fmt.element_bits < 16:
            wanted = act.native
    for option in FALLBACKS[wanted]:
        if option in hardware.peak_flop_per_s:
            return option
    raise FormatError(
        f"{hardware.name} computes none of {', '.join(FALLBACKS[wanted])}, so {fmt.name} cannot run on it"
    )


def needs_dequantisation(stored: str | NumberFormat, hardware: Hardware, activations: str = "") -> bool:
    """Whether weights must be widened before they are multiplied (extra work in compute-bound steps)."""
    fmt = number_format(stored) if isinstance(stored, str) else stored
    return compute_format(fmt, hardware, activations) != fmt.native


def weight_bytes(model: Architecture, stored: str | NumberFormat | None = None) -> float:
    """Bytes of a checkpoint in a format (default: the model's native one).

    Shipped 4-bit MoE checkpoints quantise the routed experts only; the rest stays in the format's `rest` (BF16).
    GGUF mixes and 8-bit formats cover every matrix, the embedding included.

    >>> from econ.performance.architecture import architecture
    >>> round(weight_bytes(architecture("gpt-oss-120b")) / 1e9, 1)
    65.2

    Raises:
        FormatError: when the format is unknown.
    """
    fmt = number_format(stored or model.native_format) if not isinstance(stored, NumberFormat) else stored
    parts = part_bytes(model, fmt)
    return sum(parts.values())


def part_bytes(model: Architecture, stored: str | NumberFormat) -> dict[str, float]:
    """Bytes of each part (attention, dense_mlp, experts, shared, router, embedding, lm_head, norms) in a format."""
    fmt = number_format(stored) if isinstance(stored, str) else stored
    rest = number_format(fmt.rest).bytes_per_weight
    out: dict[str, float] = {}
    for part, count in model.parameters.items():
        whole = part in ("router", "norms")  # never quantised
        table = part in ("embedding", "lm_head") and fmt.kind != "gguf" and fmt.element_bits <= 8
        outside = fmt.experts_only and model.is_moe and part != "experts"
        out[part] = count * (rest if whole or table or outside else fmt.bytes_per_weight)
    return out
