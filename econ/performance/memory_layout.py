"""How weights and cache are shared out over the ranks of a parallel layout."""

from __future__ import annotations

import math
from dataclasses import dataclass

from econ.performance.architecture import Architecture

__all__ = ["Layout", "expert_ranks", "kv_share", "stage_share"]


@dataclass(frozen=True, slots=True)
class Layout:
    """Degrees of tensor, pipeline and expert parallelism, and of data-parallel attention."""

    tp: int = 1
    pp: int = 1
    ep: int = 1
    dp: int = 1

    @property
    def ranks(self) -> int:
        """Devices of one replica: TP x PP x DP; expert parallelism reuses them."""
        return self.tp * self.pp * self.dp

    def problems(self, model: Architecture) -> list[str]:
        """Reasons why the layout cannot run the model; empty when it can.

        >>> from econ.performance.architecture import architecture
        >>> Layout(tp=3).problems(architecture("Llama-3.1-8B"))
        ['TP 3 does not divide the 32 heads of Llama-3.1-8B']
        """
        out = [
            f"{k} {v} must be at least 1" for k, v in zip(("TP", "PP", "EP", "DP"), self.degrees, strict=True) if v < 1
        ]
        if out:
            return out
        if model.heads and model.heads % self.tp:
            out.append(f"TP {self.tp} does not divide the {model.heads} heads of {model.name}")
        if self.pp > model.layers:
            out.append(f"PP {self.pp} exceeds the {model.layers} layers of {model.name}")
        if self.ep > 1 and not model.is_moe:
            out.append(f"EP {self.ep} needs experts, which {model.name} has not")
        elif self.ep > 1 and model.experts % self.ep:
            out.append(f"EP {self.ep} does not divide the {model.experts} experts of {model.name}")
        return out

    @property
    def degrees(self) -> tuple[int, int, int, int]:
        """(TP, PP, EP, DP)."""
        return self.tp, self.pp, self.ep, self.dp


def stage_share(layers: int, pp: int) -> float:
    """Share of the layers on the fullest pipeline stage.

    >>> stage_share(61, 4)
    0.26229508196721313
    """
    return math.ceil(layers / pp) / layers


def expert_ranks(layout: Layout) -> int:
    """Ranks over which the experts of a layer are shared: TP x DP (data-parallel attention spreads them over all)."""
    return max(layout.ep, layout.tp * layout.dp)


def kv_share(model: Architecture, layout: Layout) -> float:
    """Share of a sequence's cache on its fullest rank.

    Keys and values split over TP until one KV head a rank, then are replicated; a latent cache is replicated on every
    TP rank; data-parallel attention holds whole sequences, so it never divides; pipeline stages hold their layers.

    >>> from econ.performance.architecture import architecture
    >>> kv_share(architecture("Llama-3.1-70B"), Layout(tp=16)), kv_share(architecture("DeepSeek-V3"), Layout(tp=8))
    (0.125, 1.0)
    """
    split = 1 if model.is_mla else min(layout.tp, max(model.kv_heads, 1))
    return stage_share(model.layers, layout.pp) / split
