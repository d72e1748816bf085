"""Model and hardware names: exact normalised look-up, and the number format that a model name carries as a suffix."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

__all__ = ["did_you_mean", "normalise", "parse_model"]

#: Suffix patterns that say how a checkpoint is stored, not which architecture it is; checked at the end of the name.
_FORMATS = re.compile(
    r"[-_. ](?P<format>(?:UD[-_])?(?:I?Q\d(?:_[0-9A-Z]+)*|TQ\d_\d)|MXFP[48]|NVFP4|FP4|FP8(?:[-_]DYNAMIC)?|FP16|BF16"
    r"|FP32|F16|F32|INT4|INT8|AWQ|GPTQ(?:[-_]INT[48])?|W4A16|W8A8|[48]BIT|EXL2|GGUF)$",
    re.IGNORECASE,
)
#: Words that tell the training stage, not the architecture; removed only when the name does not resolve with them.
_STAGES = re.compile(r"[-_ ](?:instruct|it|chat|base|hf|v0\.1|v1|bf16)(?:[-_ ]\d{4})?$", re.IGNORECASE)


def normalise(name: str) -> str:
    """Lower case without spaces, hyphens and underscores: the only freedom that a look-up has.

    >>> normalise("RTX_4070-Ti Super")
    'rtx4070tisuper'
    """
    return re.sub(r"[\s_\-]+", "", name.strip().lower())


def did_you_mean(word: str, options: Iterable[str], more: str = "") -> str:
    """`; did you mean A, B?` with the nearest options, or an empty text; `more` follows as a sentence of its own.

    >>> did_you_mean("H10", ["H100", "L4"])
    '; did you mean H100?'
    >>> did_you_mean("X2", ["X1", "L4"], "give a file"), did_you_mean("abacus", ["X1"], "give a file")
    ('; did you mean X1? Give a file', '; give a file')
    """
    table = {normalise(o): o for o in options}
    key = normalise(word)
    near = difflib.get_close_matches(key, list(table), n=3, cutoff=0.5 if len(key) < 4 else 0.6)
    if not near:
        return f"; {more}" if more else ""
    return f"; did you mean {', '.join(table[n] for n in near)}?" + (f" {more[0].upper()}{more[1:]}" if more else "")


def parse_model(name: str) -> tuple[str, str | None]:
    """Split a model name into (architecture name, stored format or None). Spelling of both is kept.

    >>> parse_model("DeepSeek-R1-NVFP4")
    ('DeepSeek-R1', 'NVFP4')
    >>> parse_model("llama-2-7b.Q4_K_M")
    ('llama-2-7b', 'Q4_K_M')
    >>> parse_model("Qwen3.6-35B-A3B-UD-Q8_K_XL")
    ('Qwen3.6-35B-A3B', 'UD-Q8_K_XL')
    >>> parse_model("Llama-3.1-70B")
    ('Llama-3.1-70B', None)
    """
    text = name.strip()
    found = _FORMATS.search(text)
    if found is None:
        return text, None
    head, tail = text[: found.start()], found["format"]
    more = _FORMATS.search(head)
    if tail.upper() == "GGUF" and more is not None:
        return head[: more.start()], more["format"]
    return head, tail


def stage_free(name: str) -> str:
    """The name without a trailing training-stage word (Instruct, it, chat ...).

    >>> stage_free("Llama-3.1-8B-Instruct")
    'Llama-3.1-8B'
    """
    return _STAGES.sub("", name)
