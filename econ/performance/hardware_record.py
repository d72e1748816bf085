"""One accelerator as a record of rates and capacities, with what-if copies and the bounds of a plausible field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

__all__ = ["BOUNDS", "PEAK_FORMATS", "SEGMENTS", "Hardware", "HardwareError"]

PEAK_FORMATS = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "int4")
SEGMENTS = ("datacenter", "workstation", "consumer", "unified", "cpu", "wafer_scale", "sram")
#: Physical bounds of a plausible field; outside is an error (a unit slip of 1e3 is the usual cause).
BOUNDS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "peak_flop_per_s": (1e9, 1e18),
        "memory_bytes": (1e7, 1e14),
        "memory_bytes_per_s": (1e9, 1e17),
        "link_bytes_per_s": (0.0, 1e16),
        "internode_bytes_per_s": (0.0, 1e14),
        "domain_size": (1, 1e6),
        "tdp_w": (1, 1e5),
        "compute_units": (1, 1e7),
        "l2_bytes": (1e3, 1e12),
    }
)


class HardwareError(ValueError):
    """An unknown accelerator, a field out of bounds, or a format that a part does not have."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """One accelerator: rates in FLOP/s and B/s, capacities in decimal bytes, link rates in one direction.

    `peak_flop_per_s` holds dense rates by format; a missing format has no native path. `sparse_flop_per_s` holds 2:4
    sparse rates where the maker states them. `band_class` says whether the engine's calibration has measurements of it.
    """

    name: str
    vendor: str
    family: str
    segment: str
    peak_flop_per_s: Mapping[str, float]
    memory_bytes: float
    memory_bytes_per_s: float
    link_bytes_per_s: float
    domain_size: int
    internode_bytes_per_s: float
    tdp_w: float
    compute_units: int | None
    l2_bytes: float | None
    process: str
    fact_ids: Mapping[str, str]
    band_class: str = "measured"
    sparse_flop_per_s: Mapping[str, float] = field(default_factory=dict)

    def peak(self, number_format: str, sparse: bool = False) -> float:
        """Peak rate in FLOP/s of a format; dense unless `sparse` is asked for.

        >>> from econ.performance.hardware import hardware
        >>> hardware("H100").peak("bf16")
        989400000000000.0

        Raises:
            HardwareError: when the part has no native path for the format; the message lists those it has.
        """
        table = self.sparse_flop_per_s if sparse else self.peak_flop_per_s
        if number_format not in table:
            kind = "sparse" if sparse else "native"
            raise HardwareError(
                f"{self.name} has no {kind} {number_format} rate; it has {', '.join(table) or 'none'}"
                " (weights may be stored in any format and computed in one of these)"
            )
        return table[number_format]

    def ridge_flop_per_byte(self, number_format: str = "bf16") -> float:
        """Arithmetic intensity at which compute and memory time are equal, in FLOP/B.

        >>> from econ.performance.hardware import hardware
        >>> round(hardware("H100").ridge_flop_per_byte(), 1)
        295.3
        """
        return self.peak(number_format) / self.memory_bytes_per_s

    def scaled(
        self, compute: float = 1.0, bandwidth: float = 1.0, capacity: float = 1.0, link: float = 1.0
    ) -> Hardware:
        """A what-if copy with scaled rates, e.g. `scaled(bandwidth=2)`; its band is that of an unmeasured part.

        >>> from econ.performance.hardware import hardware
        >>> hardware("H100").scaled(bandwidth=2).memory_bytes_per_s
        6700000000000.0

        Raises:
            HardwareError: when a factor is not positive.
        """
        factors = {"compute": compute, "bandwidth": bandwidth, "capacity": capacity, "link": link}
        bad = [f"{k}={v}" for k, v in factors.items() if not v > 0]
        if bad:
            raise HardwareError(f"scale factors must be positive: {', '.join(bad)}")
        changed = [f"{v:g}x {k}" for k, v in factors.items() if v != 1]
        if not changed:
            return self
        return replace(
            self,
            name=f"{self.name} with {', '.join(changed)}",
            peak_flop_per_s={k: v * compute for k, v in self.peak_flop_per_s.items()},
            sparse_flop_per_s={k: v * compute for k, v in self.sparse_flop_per_s.items()},
            memory_bytes=self.memory_bytes * capacity,
            memory_bytes_per_s=self.memory_bytes_per_s * bandwidth,
            link_bytes_per_s=self.link_bytes_per_s * link,
            internode_bytes_per_s=self.internode_bytes_per_s * link,
            band_class="first_principles",
        )
