"""Many set-ups at once as arrays: model counts, hardware rates, formats, layout and load, one entry per set-up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from econ.performance.shapes import SHAPE_FIELDS, ModelShape

Array = NDArray[np.float64]


@dataclass(frozen=True)
class HardwareRates:
    """The rates that the step model uses, dense peaks in FLOP/s, bytes/s, bytes."""

    peak_dense: float
    peak_expert: float
    peak_attention: float
    memory_bytes_per_s: float
    memory_bytes: float
    link_bytes_per_s: float
    internode_bytes_per_s: float
    domain_size: float
    compute_units: float


@dataclass(frozen=True)
class StoredWidths:
    """Bytes per parameter of each part of the weights and per element of the cache, scales included."""

    dense: float
    expert: float
    head: float
    kv: float


@dataclass(frozen=True)
class Load:
    """Request shape, load and layout of one set-up.

    ``concurrency`` counts users over the whole deployment (or sequences of a fixed batch); ``arrival_per_s`` is used by
    open arrival. ``prefix_hit`` is the share of input tokens found in the prefix cache.
    ``share_of_free`` above 0 gives the cache that share of what weights leave (TensorRT-LLM's rule); 0 keeps a
    margin of the
    whole memory (vLLM's rule).
    """

    isl: float
    osl: float
    concurrency: float
    tp: float = 1.0
    pp: float = 1.0
    ep: float = 1.0
    dp: float = 1.0
    prefix_hit: float = 0.0
    tokens_per_step: float = 1.0
    share_of_free: float = 0.0


RATE_FIELDS = tuple(HardwareRates.__dataclass_fields__)
LOAD_FIELDS = tuple(Load.__dataclass_fields__)


class Setups:
    """Struct of arrays; access by field name (``s.layers``, ``s.peak_dense``, ``s.bytes_expert``, ``s.isl``)."""

    def __init__(self, columns: Mapping[str, Array], codes: Mapping[str, NDArray[np.int64]]) -> None:
        self.columns = dict(columns)
        self.codes = dict(codes)
        self.size = len(next(iter(self.columns.values())))
        self.__dict__.update(self.columns)  # plain attributes: the engine reads them a hundred times a step

    def __getattr__(self, name: str) -> Array:
        raise AttributeError(name)  # only names that are no column come here; declared for the type checker

    def __len__(self) -> int:
        return self.size

    def take(self, index: NDArray[Any]) -> Setups:
        """The set-ups at ``index`` (integer or boolean array)."""
        return Setups({k: v[index] for k, v in self.columns.items()}, {k: v[index] for k, v in self.codes.items()})

    def replaced(self, **columns: Array) -> Setups:
        """A copy with some columns replaced."""
        return Setups(self.columns | columns, self.codes)

    @classmethod
    def build(
        cls,
        shapes: Sequence[ModelShape],
        rates: Sequence[HardwareRates],
        widths: Sequence[StoredWidths],
        loads: Sequence[Load],
        codes: Mapping[str, Sequence[int]],
    ) -> Setups:
        """Arrays from one record of each kind per set-up."""
        columns: dict[str, Array] = {}
        for name in SHAPE_FIELDS:
            columns[name] = np.array([getattr(x, name) for x in shapes], dtype=float)
        for name in RATE_FIELDS:
            columns[name] = np.array([getattr(x, name) for x in rates], dtype=float)
        for name in ("dense", "expert", "head", "kv"):
            columns[f"bytes_{name}"] = np.array([getattr(x, name) for x in widths], dtype=float)
        for name in LOAD_FIELDS:
            columns[name] = np.array([getattr(x, name) for x in loads], dtype=float)
        return cls(columns, {k: np.array(v, dtype=np.int64) for k, v in codes.items()})
