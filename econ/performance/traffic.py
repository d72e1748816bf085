"""Traffic and reuse arithmetic that the models share: reads a second, reuse, SRAM area, energy of movement."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "TrafficError",
    "cache_positions",
    "decode_ceiling_tokens_per_s",
    "dense_over_active",
    "macs_per_operand",
    "movement_energy_j",
    "payload_bytes",
    "speedup_from_width",
    "sram_area_mm2",
    "trips_saved",
    "vocabulary_parameters",
    "weight_reads_per_second",
]

Array = NDArray[np.float64]
BITS_PER_BYTE = 8


class TrafficError(ValueError):
    """A size, rate or count that cannot be: not positive, or a share above one."""


def _positive(**values: ArrayLike) -> None:
    bad = [f"{k} = {v!r}" for k, v in values.items() if np.any(~(np.asarray(v, float) > 0))]
    if bad:
        raise TrafficError(f"must be positive: {', '.join(bad)}")


def payload_bytes(parameters: ArrayLike, bytes_per_parameter: ArrayLike) -> Array:
    """Bytes of parameters at a width, scales and padding left out (formats.weight_bytes counts them). Accepts arrays.

    >>> float(payload_bytes(70e9, 2)), float(payload_bytes(70e9, 0.5))
    (140000000000.0, 35000000000.0)
    """
    _positive(parameters=parameters, bytes_per_parameter=bytes_per_parameter)
    return np.asarray(np.asarray(parameters, float) * np.asarray(bytes_per_parameter, float))


def weight_reads_per_second(bytes_per_s: ArrayLike, weight_bytes: ArrayLike) -> Array:
    """Times a second that the whole weights can be read: bandwidth / bytes. Accepts arrays.

    >>> round(float(weight_reads_per_second(3000e9, 140e9)), 4)
    21.4286
    """
    _positive(bytes_per_s=bytes_per_s, weight_bytes=weight_bytes)
    return np.asarray(np.asarray(bytes_per_s, float) / np.asarray(weight_bytes, float))


def decode_ceiling_tokens_per_s(bytes_per_s: ArrayLike, bytes_per_step: ArrayLike, batch: ArrayLike = 1.0) -> Array:
    """Bandwidth ceiling of decode: batch x bandwidth / bytes read a step (active weights + keys and values).

    >>> float(decode_ceiling_tokens_per_s(500e9, 40e9)), round(float(decode_ceiling_tokens_per_s(512e9, 13e9)), 1)
    (12.5, 39.4)
    """
    reads: Array = weight_reads_per_second(bytes_per_s, bytes_per_step)
    return np.asarray(reads * np.asarray(batch, float))


def dense_over_active(total_parameters: ArrayLike, active_parameters: ArrayLike) -> Array:
    """Traffic of reading every weight over that of reading only the active ones (capacity is still on the total).

    >>> round(float(dense_over_active(116.8e9, 5.1e9)), 1)
    22.9
    """
    _positive(total_parameters=total_parameters, active_parameters=active_parameters)
    ratio: Array = np.asarray(total_parameters, float) / np.asarray(active_parameters, float)
    if np.any(ratio < 1):
        raise TrafficError(f"active parameters {active_parameters!r} exceed the total {total_parameters!r}")
    return ratio


def macs_per_operand(side: ArrayLike) -> Array:
    """Multiply-accumulates per operand moved in a weight-stationary systolic array of side N: N^2 a cycle over 2 N.

    >>> float(macs_per_operand(128))
    64.0
    """
    _positive(side=side)
    n = np.asarray(side, float)
    return np.asarray(n * n / (2 * n))


def sram_area_mm2(stored_bytes: ArrayLike, mbit_per_mm2: ArrayLike) -> Array:
    """Cell area in mm2 of on-die memory that holds bytes at a density in Mbit/mm2 (1 Mbit = 1e6 bit).

    >>> round(float(sram_area_mm2(40e9, 38)))
    8421
    """
    _positive(stored_bytes=stored_bytes, mbit_per_mm2=mbit_per_mm2)
    bits = np.asarray(stored_bytes, float) * BITS_PER_BYTE
    return np.asarray(bits / (np.asarray(mbit_per_mm2, float) * 1e6))


def movement_energy_j(moved_bytes: ArrayLike, picojoule_per_bit: ArrayLike) -> Array:
    """Energy in J of moving bytes at pJ/bit. Accepts arrays.

    >>> round(float(movement_energy_j(40e9, 4)), 6)
    1.28
    """
    _positive(moved_bytes=moved_bytes, picojoule_per_bit=picojoule_per_bit)
    return np.asarray(np.asarray(moved_bytes, float) * BITS_PER_BYTE * np.asarray(picojoule_per_bit, float) * 1e-12)


def vocabulary_parameters(added_tokens: ArrayLike, d_model: ArrayLike, tied: bool = False) -> Array:
    """Parameters that a larger vocabulary adds: one row in the embedding, and one in the output matrix unless tied.

    >>> float(vocabulary_parameters(100_000, 8192))
    1638400000.0
    """
    _positive(added_tokens=added_tokens, d_model=d_model)
    return np.asarray(np.asarray(added_tokens, float) * np.asarray(d_model, float) * (1 if tied else 2))


def cache_positions(prompt_tokens: int, generated_tokens_processed: int) -> int:
    """Positions held in the cache: the prompt and every generated token already fed back.

    >>> cache_positions(14, 2)
    16

    Raises:
        TrafficError: when a count is negative.
    """
    if prompt_tokens < 0 or generated_tokens_processed < 0:
        raise TrafficError(f"counts must not be negative: {prompt_tokens}, {generated_tokens_processed}")
    return prompt_tokens + generated_tokens_processed


def speedup_from_width(bytes_before: ArrayLike, bytes_after: ArrayLike) -> Array:
    """Ideal speed-up of a memory-bound step when weights shrink: the ratio of their bytes.

    >>> float(speedup_from_width(2, 1))
    2.0
    """
    _positive(bytes_before=bytes_before, bytes_after=bytes_after)
    return np.asarray(np.asarray(bytes_before, float) / np.asarray(bytes_after, float))


def trips_saved(uses: int, fetches: int = 1) -> int:
    """Trips to memory that reuse saves: uses less fetches.

    >>> trips_saved(8)
    7

    Raises:
        TrafficError: when there are more fetches than uses, or none.
    """
    if not 1 <= fetches <= uses:
        raise TrafficError(f"{fetches} fetches for {uses} uses")
    return uses - fetches
