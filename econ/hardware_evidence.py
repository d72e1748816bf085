"""Checks of the figures that a hardware decision rests on: measured scaling, and peaks of one generation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from econ.workload_card import ChoiceError

__all__ = ["Scaling", "check_dense_peaks", "parallel_scaling"]


@dataclass(frozen=True)
class Scaling:
    """One point of a measured scaling series: speed-up and accelerator-seconds against the smallest system."""

    accelerators: int
    speedup: float
    gpu_seconds: float
    gpu_seconds_ratio: float


def parallel_scaling(latency_s: Mapping[int, float]) -> tuple[Scaling, ...]:
    """What more accelerators for one job buy (speed-up) and cost (accelerator-seconds).

    Raises:
        ChoiceError: an empty series, or a latency or size that is not positive.

    >>> round(parallel_scaling({1: 68.85, 2: 78.08, 4: 79.90})[-1].gpu_seconds_ratio, 5)
    4.64198
    """
    if not latency_s or any(n < 1 or not t > 0 for n, t in latency_s.items()):
        raise ChoiceError(f"latencies {dict(latency_s)}: give at least one, with positive sizes and times")
    first = min(latency_s)
    base, base_s = latency_s[first], latency_s[first] * first
    return tuple(
        Scaling(n, base / latency_s[n], n * latency_s[n], n * latency_s[n] / base_s) for n in sorted(latency_s)
    )


def check_dense_peaks(
    narrow_tflops: float, wide_tflops: float, expected_ratio: float = 2.0, tolerance: float = 0.15
) -> float:
    """The dense peak of the narrower format, refused where the pair mixes a sparse and a dense figure.

    On one generation the dense peak doubles from 16 to 8 bits; structured sparsity doubles it again.

    Raises:
        ChoiceError: when the ratio is not the expected one; the message gives the dense value if it looks sparse.

    >>> check_dense_peaks(1978.9, 989.4)
    1978.9
    """
    ratio = narrow_tflops / wide_tflops
    if abs(ratio / expected_ratio - 1) <= tolerance:
        return narrow_tflops
    if abs(ratio / (2 * expected_ratio) - 1) <= tolerance:
        raise ChoiceError(
            f"{narrow_tflops:g} over {wide_tflops:g} TFLOPS is a ratio of {ratio:.2f}, where dense peaks have "
            f"{expected_ratio:g}: the first is with sparsity, its dense value is {narrow_tflops / 2:g}"
        )
    raise ChoiceError(
        f"{narrow_tflops:g} over {wide_tflops:g} TFLOPS is a ratio of {ratio:.2f}, where dense peaks of one generation "
        f"have {expected_ratio:g}: check both figures against the data sheet"
    )
