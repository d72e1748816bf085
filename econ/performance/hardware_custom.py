"""A custom or unreleased accelerator from a mapping or a YAML file: fields checked, bounds checked, band widened."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from econ.performance.hardware_record import BOUNDS, PEAK_FORMATS, SEGMENTS, Hardware, HardwareError
from econ.performance.names import did_you_mean
from supply.input_files import InputFileError, read_utf8
from supply.input_text import InputTextError, parse_yaml

__all__ = ["custom_hardware", "read_mapping"]


def read_mapping(path: Path) -> Mapping[str, object]:
    """The mapping of hardware fields in a YAML or JSON file.

    Raises:
        HardwareError: when the file is missing, not YAML, or no mapping.
    """
    if not path.exists():
        raise HardwareError(f"no hardware file {path}: give its path, or a mapping")
    try:
        data = parse_yaml(read_utf8(path, "hardware record"))
    except InputFileError as exc:
        raise HardwareError(str(exc)) from exc
    except InputTextError as exc:
        raise HardwareError(f"{path}: {exc}") from exc
    if not isinstance(data, Mapping):
        raise HardwareError(f"{path}: expected a mapping of hardware fields, found {type(data).__name__}")
    return data


def custom_hardware(data: Mapping[str, object], where: str, base: Hardware | None) -> Hardware:
    """A part from its fields; those left out come from `base`, but not its vendor and family: nobody has measured the
    part, so it is judged from first principles unless it names a measured family itself. A rate that is null says that
    the part does not have this format.

    Raises:
        HardwareError: for a missing or unknown field, an unknown format, the name of a known part, or a value out of
            bounds.
    """
    fields = {f for f in Hardware.__slots__ if f != "fact_ids"} | {"base"}
    unknown = [k for k in data if k not in fields]
    if unknown:
        hints = "; ".join(f"{k!r}{did_you_mean(str(k), sorted(fields))}" for k in unknown)
        raise HardwareError(f"{where}: unknown field {hints}")
    need = ("name", "memory_bytes", "memory_bytes_per_s", "peak_flop_per_s", "tdp_w")
    missing = [k for k in need if k not in data and (base is None or k == "name")]
    if missing:
        raise HardwareError(f"{where}: missing {', '.join(missing)} (or give `base: NAME` and only what differs)")

    def pick(key: str, default: object) -> object:
        return data.get(key, getattr(base, key) if base is not None else default)

    def number(key: str, default: object) -> float:
        return _number(key, pick(key, default), where)

    stated, lacking = _rates(data.get("peak_flop_per_s", {}), f"{where}: peak_flop_per_s")
    if "bf16" in stated:  # the 16-bit tensor paths run at one rate, as in the records made from facts
        stated.setdefault("fp16", stated["bf16"])
    peaks = {**(base.peak_flop_per_s if base is not None else {}), **stated}
    peaks = {name: rate for name, rate in peaks.items() if name not in lacking}
    if not peaks:
        raise HardwareError(f"{where}: peak_flop_per_s: give the rate of one format at least, e.g. {{bf16: 1e15}}")
    sparse, _ = _rates(pick("sparse_flop_per_s", {}), where)
    segment = str(pick("segment", "datacenter"))
    if segment not in SEGMENTS:
        raise HardwareError(f"{where}: segment {segment!r} is not one of {', '.join(SEGMENTS)}")
    units, l2 = pick("compute_units", None), pick("l2_bytes", None)
    return Hardware(
        name=str(data["name"]),
        vendor=str(data.get("vendor", "custom")),
        family=str(data.get("family", "custom")),
        segment=segment,
        peak_flop_per_s=MappingProxyType(peaks),
        memory_bytes=number("memory_bytes", None),
        memory_bytes_per_s=number("memory_bytes_per_s", None),
        link_bytes_per_s=number("link_bytes_per_s", 0.0),
        domain_size=int(number("domain_size", 1)),
        internode_bytes_per_s=number("internode_bytes_per_s", 0.0),
        tdp_w=number("tdp_w", None),
        compute_units=None if units is None else int(_number("compute_units", units, where)),
        l2_bytes=None if l2 is None else _number("l2_bytes", l2, where),
        process=str(pick("process", "")),
        fact_ids=MappingProxyType({} if base is None else dict(base.fact_ids)),
        band_class="first_principles",
        sparse_flop_per_s=MappingProxyType({k: v for k, v in sparse.items() if k not in lacking}),
    )


def _number(key: str, value: object, where: str) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError) as exc:
        raise HardwareError(f"{where}: {key} is {value!r}, not a number") from exc
    low, high = BOUNDS[key]
    if not low <= number <= high:
        raise HardwareError(
            f"{where}: {key} = {number:g} lies outside {low:g} .. {high:g}: rates are B/s and FLOP/s, capacities bytes"
        )
    return number


def _rates(value: object, where: str) -> tuple[dict[str, float], frozenset[str]]:
    """Rates by format, and the formats that are null: those that the part does not have."""
    if not isinstance(value, Mapping):
        raise HardwareError(f"{where}: expected formats with dense FLOP/s, e.g. {{bf16: 1e15}}, found {value!r}")
    unknown = [k for k in value if k not in PEAK_FORMATS]
    if unknown:
        raise HardwareError(f"{where}: unknown format {', '.join(map(str, unknown))}; known: {', '.join(PEAK_FORMATS)}")
    stated = {str(k): _number("peak_flop_per_s", v, where) for k, v in value.items() if v is not None}
    return stated, frozenset(str(k) for k, v in value.items() if v is None)
