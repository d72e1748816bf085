"""A training set-up: layout, batch, recompute and number format, with the quantities that follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = [
    "FORMATS",
    "NetworkLevel",
    "SetupError",
    "TrainingSetup",
    "bubble_fraction",
    "fat_tree",
]

#: Training formats: (format of the linear layers' peak, bytes of an activation in a matmul, scale or cast passes).
FORMATS: dict[str, tuple[str, float]] = {
    "fp32": ("fp32", 4.0),
    "tf32": ("tf32", 4.0),
    "bf16": ("bf16", 2.0),
    "fp16": ("fp16", 2.0),
    "fp8": ("fp8", 1.0),
    "mxfp8": ("fp8", 1.0),
    "nvfp4": ("fp4", 0.5),
}
RECOMPUTE = ("none", "selective", "full")
SHARDING = ("none", "zero1", "zero2", "zero3")
SCHEDULES = ("1f1b", "interleaved", "zero_bubble")


class SetupError(ValueError):
    """A layout that cannot be: the message names the field, the value and the rule."""


@dataclass(frozen=True)
class NetworkLevel:
    """One level of a network beyond the scale-up domain: what an accelerator can send to any of so many neighbours."""

    accelerators: float
    bytes_per_s: float


def fat_tree(
    port_bytes_per_s: float,
    reach: Sequence[float],
    oversubscription: Sequence[float],
    site_bytes_per_s: float | None = None,
) -> tuple[NetworkLevel, ...]:
    """Levels of a fat tree (rail, pod, core): level i reaches `reach[i]` accelerators at port rate / oversubscription.

    `site_bytes_per_s` adds a last level: what an accelerator gets of the links between sites.

    >>> [level.bytes_per_s for level in fat_tree(50e9, (256, 4096, 65536), (1, 1, 4))]
    [50000000000.0, 50000000000.0, 12500000000.0]

    Raises:
        SetupError: for lists of different length, a reach that does not grow, or an oversubscription below one.
    """
    growing = all(a < b for a, b in pairwise(reach))
    if len(reach) != len(oversubscription) or not growing or min(oversubscription, default=0) < 1:
        raise SetupError(
            f"reach {reach!r} must grow, with one oversubscription (at least 1) a level: {oversubscription!r}"
        )
    levels = [NetworkLevel(r, port_bytes_per_s / o) for r, o in zip(reach, oversubscription, strict=True)]
    if site_bytes_per_s is not None:
        levels.append(NetworkLevel(float("inf"), site_bytes_per_s))
    return tuple(levels)


@dataclass(frozen=True)
class TrainingSetup:
    """How one training step runs. Degrees are numbers of accelerators; `global_batch` and `micro_batch` are sequences.

    `sharding` is that of the data-parallel group: none (plain DDP), zero1 (optimizer), zero2 (and gradients), zero3
    (and weights; FSDP full shard). Under full recompute, `recompute_share` of the layers keep only
    their input; selective recompute repeats scores, and `selective_share` of linear work (half where every second
    product is dropped).
    `virtual` is the number of model chunks a pipeline stage holds (1: plain 1F1B).
    """

    accelerators: int
    sequence: int
    global_batch: float
    micro_batch: float = 1.0
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    virtual: int = 1
    schedule: str = "1f1b"
    sharding: str = "zero1"
    recompute: str = "none"
    recompute_share: float = 1.0
    selective_share: float = 0.0
    number_format: str = "bf16"
    sequence_parallel: bool = True
    fused_attention: bool = True
    tensor_overlap: bool = True
    autocast: bool = False
    balanced_stages: bool = True
    adapters_only: bool = False
    internode_bytes_per_s: float = 0.0
    network: tuple[NetworkLevel, ...] = ()

    def __post_init__(self) -> None:
        for name in ("accelerators", "sequence", "global_batch", "micro_batch", "tp", "pp", "cp", "ep", "virtual"):
            if not getattr(self, name) > 0:
                raise SetupError(f"{name} = {getattr(self, name)!r} must be positive")
        for name, allowed in (("sharding", SHARDING), ("recompute", RECOMPUTE), ("schedule", SCHEDULES)):
            if getattr(self, name) not in allowed:
                raise SetupError(f"{name} = {getattr(self, name)!r} is not one of {', '.join(allowed)}")
        if not 0 <= self.recompute_share <= 1:
            raise SetupError(f"recompute_share = {self.recompute_share!r} is a share of layers, 0 to 1")
        if self.number_format not in FORMATS:
            raise SetupError(f"number_format = {self.number_format!r} is not one of {', '.join(FORMATS)}")
        replica = self.tp * self.pp * self.cp
        if self.accelerators % replica:
            raise SetupError(
                f"{self.accelerators} accelerators do not divide by tp x pp x cp = {self.tp} x {self.pp} x {self.cp}"
            )
        if self.ep > self.tp * self.cp * self.dp:
            raise SetupError(f"ep = {self.ep} exceeds the {self.tp * self.cp * self.dp} accelerators of a stage")

    @property
    def dp(self) -> int:
        """Data-parallel replicas: accelerators / (tp x pp x cp).

        >>> TrainingSetup(accelerators=280, sequence=2048, global_batch=280, tp=8, pp=35).dp
        1
        """
        return self.accelerators // (self.tp * self.pp * self.cp)

    def outside_bytes_per_s(self, default: float, span: float) -> float:
        """Bytes/s of one accelerator to a group that spans so many: by network level, else as set, else of the part."""
        for level in self.network:
            if span <= level.accelerators:
                return level.bytes_per_s
        if self.network:
            return self.network[-1].bytes_per_s
        return self.internode_bytes_per_s or default

    @property
    def microbatches(self) -> float:
        """Micro-batches a pipeline runs in one step: global batch / (dp x micro-batch), at least one."""
        return max(1.0, self.global_batch / (self.dp * self.micro_batch))

    @property
    def recomputed(self) -> float:
        """Share of forward linear work that runs again in the backward pass."""
        return {"full": self.recompute_share, "selective": self.selective_share}.get(self.recompute, 0.0)

    @property
    def tokens_per_step(self) -> float:
        """Tokens of one optimizer step: global batch x sequence (each counted once, whatever the layout)."""
        return self.global_batch * self.sequence

    @property
    def local_batch(self) -> float:
        """Sequences of one micro-batch, less where the global batch does not fill all replicas."""
        return min(self.micro_batch, self.global_batch / self.dp)

    @property
    def rank_tokens(self) -> float:
        """Tokens of one micro-batch on one context-parallel rank (before tensor parallelism)."""
        return self.local_batch * self.sequence / self.cp


def bubble_fraction(stages: int, microbatches: float, virtual: int = 1, schedule: str = "1f1b") -> float:
    """Idle time of a pipeline over its busy time.

    1F1B: (p - 1)/m; interleaved with v chunks a stage: (p - 1)/(m v) (Narayanan et al. 2021); zero-bubble H1: a third
    of 1F1B where forward, input-gradient and weight-gradient parts take equal time (Qi et al. 2023).

    >>> bubble_fraction(8, 32), bubble_fraction(8, 32, virtual=2, schedule="interleaved")
    (0.21875, 0.109375)

    Raises:
        SetupError: for fewer than one stage, micro-batch or chunk, or an unknown schedule.
    """
    if schedule not in SCHEDULES:
        raise SetupError(f"schedule = {schedule!r} is not one of {', '.join(SCHEDULES)}")
    if stages < 1 or microbatches < 1 or virtual < 1:
        raise SetupError(f"stages {stages}, microbatches {microbatches} and virtual {virtual} must be at least 1")
    plain = (stages - 1) / microbatches
    if schedule == "zero_bubble":
        return plain / 3
    return plain / virtual if schedule == "interleaved" or virtual > 1 else plain
