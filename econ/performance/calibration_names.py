"""Models of one architecture count as one model where pairs are told apart."""

from __future__ import annotations

SAME_MODEL: dict[str, str] = {
    "Llama-3.1-70B": "Llama-70B",
    "Llama-3-70B": "Llama-70B",
    "Llama-3.3-70B": "Llama-70B",
    "Llama-2-70B": "Llama-70B",
    "Llama-3-8B": "Llama-8B",
    "Llama-3.1-8B": "Llama-8B",
    "DeepSeek-R1": "DeepSeek-V3",
    "DeepSeek-V3.1": "DeepSeek-V3",
    "DeepSeek-V3.2": "DeepSeek-V3",
}


def model_pair(model: str, hardware: str) -> tuple[str, str]:
    """Pair of model (by architecture) and accelerator.

    >>> model_pair("Llama-3.3-70B", "H100")
    ('Llama-70B', 'H100')
    """
    return SAME_MODEL.get(model, model), hardware
