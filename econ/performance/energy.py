"""Energy: average power by phase from how busy compute and memory are, and joules per token at chip and facility scope.

    P = TDP x min(1, idle + (1 - idle) x compute share + (memory-bound share - idle) x memory share)

A memory-saturated decode step then draws the measured share of the limit, a compute-bound prefill the limit itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from econ.performance.hardware import Hardware, hardware
from supply.facts import catalog

__all__ = [
    "EnergyError",
    "PhaseEnergy",
    "average_power_w",
    "chip_power_w",
    "energy_kwh",
    "joules_per_token",
    "phase_energy",
    "request_energy",
    "weight_sweep_energy_j",
]

Array = NDArray[np.float64]
JOULES_PER_KWH = 3.6e6


class EnergyError(ValueError):
    """A power, share or time that cannot be: negative, a share above one, a PUE below one."""


@dataclass(frozen=True, slots=True)
class PhaseEnergy:
    """Power and energy of one phase on all its devices: W, s, J and J per token, at chip scope."""

    phase: str
    power_w: float
    seconds: float
    joules: float
    joules_per_token: float


@lru_cache(maxsize=1)
def _shares() -> tuple[float, float]:
    """(idle, memory-saturated) power over the limit."""
    cat = catalog()
    return (
        cat["accelerator_idle_power_share_2026_06"].number,
        cat["eng_energy_decode_power_share_h200"].number,
    )


def chip_power_w(device: str | Hardware, compute_share: ArrayLike, memory_share: ArrayLike) -> Array:
    """Average chip watts when compute and memory are busy for the given shares of their peak. Accepts arrays.

    >>> float(chip_power_w("H200", 0, 0)), round(float(chip_power_w("H200", 0, 1))), float(chip_power_w("H200", 1, 0.2))
    (105.0, 300, 700.0)

    Raises:
        EnergyError: when a share lies outside 0..1.
    """
    gpu = hardware(device) if isinstance(device, str) else device
    compute, memory = np.asarray(compute_share, float), np.asarray(memory_share, float)
    for name, share in (("compute", compute), ("memory", memory)):
        if np.any((share < 0) | (share > 1) | np.isnan(share)):
            raise EnergyError(f"{name} share {share!r} lies outside 0..1: a device is never more than fully busy")
    idle, saturated = _shares()
    return np.asarray(gpu.tdp_w * np.minimum(1.0, idle + (1 - idle) * compute + (saturated - idle) * memory))


def joules_per_token(power_w: ArrayLike, tokens_per_s: ArrayLike, pue: float = 1.0) -> Array:
    """Energy of one token: watts / (tokens/s), times PUE once where facility scope is wanted. Accepts arrays.

    >>> round(float(joules_per_token(400, 1900)), 4)
    0.2105

    Raises:
        EnergyError: when a rate is not positive or the PUE is below 1.
    """
    power, rate = np.asarray(power_w, float), np.asarray(tokens_per_s, float)
    if np.any(rate <= 0) or np.any(power < 0) or pue < 1:
        raise EnergyError(f"power {power_w!r} W, rate {tokens_per_s!r} tokens/s, PUE {pue}: none may be so")
    return np.asarray(power * pue / rate)


def energy_kwh(power_w: Mapping[str, float], seconds: float, pue: float = 1.0) -> dict[str, float]:
    """Energy of a measured run by scope: `it` (devices alone) and `facility` (PUE applied once), in kWh.

    >>> e = energy_kwh({"cpu": 45, "ram": 10}, 10, pue=1.5)
    >>> round(e["it"], 9), round(e["facility"], 9)
    (0.000152778, 0.000229167)

    Raises:
        EnergyError: for negative watts or time, or a PUE below 1.
    """
    if min(power_w.values(), default=0) < 0 or seconds < 0 or pue < 1:
        raise EnergyError(f"watts {dict(power_w)}, {seconds} s, PUE {pue}: negative, or a PUE below 1")
    device = sum(power_w.values()) * seconds / JOULES_PER_KWH
    return {"it": device, "facility": device * pue}


def weight_sweep_energy_j(weight_bytes: ArrayLike, picojoule_per_bit: float | None = None) -> Array:
    """Energy in J of reading weights once from device memory: bytes x 8 x pJ/bit (default: HBM3E, a fact).

    >>> round(float(weight_sweep_energy_j(40e9, 4)), 6)
    1.28
    """
    from econ.performance.traffic import movement_energy_j

    energy = catalog()["hbm3e_energy_per_bit_2025_10"].number if picojoule_per_bit is None else picojoule_per_bit
    return movement_energy_j(weight_bytes, energy)


def phase_energy(
    phase: str,
    device: str | Hardware,
    *,
    seconds: float,
    flop: float,
    moved_bytes: float,
    tokens: float,
    devices: int = 1,
    number_format: str = "bf16",
) -> PhaseEnergy:
    """Power and energy of a phase from its work: shares are achieved over peak on every device.

    >>> e = phase_energy("decode", "H100", seconds=0.05, flop=1.41e11, moved_bytes=1.41e11, tokens=1)
    >>> round(e.power_w), round(e.joules_per_token, 1)
    (271, 13.6)

    Raises:
        EnergyError: when the time is shorter than the device's peaks allow, or counts are not positive.
    """
    gpu = hardware(device) if isinstance(device, str) else device
    if seconds <= 0 or tokens <= 0 or devices < 1:
        raise EnergyError(f"{phase}: seconds {seconds}, tokens {tokens} and devices {devices} must be positive")
    compute = flop / (seconds * devices * gpu.peak(number_format))
    memory = moved_bytes / (seconds * devices * gpu.memory_bytes_per_s)
    if max(compute, memory) > 1 + 1e-9:
        raise EnergyError(
            f"{phase}: {seconds} s is shorter than the peaks of {gpu.name} allow ({compute:.2f}, {memory:.2f})"
        )
    power = float(chip_power_w(gpu, min(compute, 1.0), min(memory, 1.0))) * devices
    return PhaseEnergy(phase, power, seconds, power * seconds, power * seconds / tokens)


def average_power_w(phases: Sequence[PhaseEnergy], idle_seconds: float = 0.0, idle_w: float = 0.0) -> float:
    """Time-weighted mean power of phases and idle time, in W.

    Raises:
        EnergyError: when no time passes.
    """
    seconds = sum(p.seconds for p in phases) + idle_seconds
    if seconds <= 0:
        raise EnergyError("no phase has any duration")
    return (sum(p.joules for p in phases) + idle_w * idle_seconds) / seconds


def request_energy(phases: Sequence[PhaseEnergy], requests: float, pue: float = 1.0) -> dict[str, float]:
    """Joules per request by phase and in all, PUE applied once.

    Raises:
        EnergyError: when requests are not positive or the PUE is below 1.
    """
    if requests <= 0 or pue < 1:
        raise EnergyError(f"{requests} requests at PUE {pue}")
    out = {p.phase: p.joules * pue / requests for p in phases}
    return {**out, "total": sum(out.values())}
