"""Accelerator records built from facts, one per name; custom and unreleased parts from a mapping or a YAML file.

Peaks are dense. Link rates are one direction, per accelerator. `memory_bytes` is what the driver reports where a fact
says so, else the nominal decimal capacity, which is the lower of the two. Every field names the fact that it came from.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from econ.performance.names import did_you_mean, normalise
from supply.facts import Catalog, catalog
from supply.paths import data_file

__all__ = ["PEAK_FORMATS", "Hardware", "HardwareError", "hardware", "known_hardware"]

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

        >>> round(hardware("H100").ridge_flop_per_byte(), 1)
        295.3
        """
        return self.peak(number_format) / self.memory_bytes_per_s

    def scaled(
        self, compute: float = 1.0, bandwidth: float = 1.0, capacity: float = 1.0, link: float = 1.0
    ) -> Hardware:
        """A what-if copy with scaled rates, e.g. `scaled(bandwidth=2)`; its band is that of an unmeasured part.

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


#: Field -> (fact quantity, unit, factor), first that exists wins. A bidirectional total is halved.
SOURCES: Mapping[str, tuple[tuple[str, str, float], ...]] = MappingProxyType(
    {
        "memory_bytes": (("memory_reported", "byte", 1), ("memory_capacity", "byte", 1)),
        "memory_bytes_per_s": (("memory_bandwidth", "byte/second", 1),),
        "link_bytes_per_s": (
            ("scaleup_bandwidth_unidir", "byte/second", 1),
            ("scaleup_bandwidth_bidir", "byte/second", 0.5),
        ),
        "domain_size": (("scaleup_domain", "accelerator", 1),),
        "internode_bytes_per_s": (("internode_bandwidth_unidir", "byte/second", 1),),
        "tdp_w": (("tdp", "watt", 1), ("power_mean", "watt", 1)),
        "compute_units": (("compute_units", "", 1),),
        "l2_bytes": (("l2_capacity", "byte", 1),),
    }
)
#: Fields without which a part cannot be modelled; the others may be unknown (None) or have the stated fall-back.
REQUIRED = ("memory_bytes", "memory_bytes_per_s", "tdp_w")


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    subject: str
    vendor: str
    family: str
    segment: str
    base: str
    band_class: str


@lru_cache(maxsize=1)
def _entries() -> Mapping[str, _Entry]:
    with data_file("hardware.csv").open(encoding="utf-8", newline="") as handle:
        rows = [_Entry(**{k: r[k] for k in _Entry.__slots__}) for r in csv.DictReader(handle)]
    return {r.name: r for r in rows}


@lru_cache(maxsize=1)
def _aliases() -> Mapping[str, str]:
    """Normalised spelling -> name; exact matches only, so no alias leads to another part silently."""
    table = {normalise(name): name for name in _entries()}
    with data_file("hardware_aliases.csv").open(encoding="utf-8", newline="") as handle:
        for row in csv.DictReader(handle):
            key = normalise(row["alias"])
            if table.setdefault(key, row["name"]) != row["name"]:
                raise HardwareError(f"hardware_aliases.csv: {row['alias']!r} names both {table[key]} and {row['name']}")
            if row["name"] not in _entries():
                raise HardwareError(f"hardware_aliases.csv: {row['alias']!r} points to unknown {row['name']!r}")
    return table


def known_hardware() -> list[str]:
    """Names of the shipped accelerators, in file order (aliases not listed).

    >>> "H100" in known_hardware()
    True
    """
    return list(_entries())


def hardware(name_or_mapping: str | Path | Mapping[str, object]) -> Hardware:
    """The record of a name, of a custom part given as a mapping, or of a YAML or JSON file with such a mapping.

    A custom part needs `name`, `memory_bytes`, `memory_bytes_per_s`, `peak_flop_per_s` (format: dense FLOP/s) and
    `tdp_w`, or `base: KNOWN` with only what differs. Its `band_class` is `first_principles`.

    >>> hardware("NVIDIA H100 SXM5 80GB").name
    'H100'
    >>> hardware({"name": "next", "base": "B200", "memory_bytes_per_s": 16e12}).memory_bytes_per_s
    16000000000000.0

    Raises:
        HardwareError: for an unknown name (with the nearest ones), a missing or unknown field, or one out of bounds.
    """
    if isinstance(name_or_mapping, Mapping):
        return _custom(name_or_mapping, "custom hardware")
    text = str(name_or_mapping)
    if text.lower().endswith((".yaml", ".yml", ".json")):
        return _custom(_read_mapping(Path(text)), text)
    name = _aliases().get(normalise(text))
    if name is None:
        hint = did_you_mean(text, known_hardware())
        raise HardwareError(f"unknown hardware {text!r}{hint}; a custom part is given as a mapping or a YAML file")
    return _build(name)


@lru_cache(maxsize=256)
def _build(name: str) -> Hardware:
    entry, facts = _entries()[name], catalog()
    base = _build(entry.base) if entry.base else None
    values: dict[str, float] = {}
    ids: dict[str, str] = dict(base.fact_ids) if base else {}
    for target, sources in SOURCES.items():
        found = _first(facts, entry.subject, sources)
        if found:
            values[target], ids[target] = found
        elif base is not None and getattr(base, target) is not None:
            values[target] = float(getattr(base, target))
    missing = [f for f in REQUIRED if f not in values]
    if missing:
        raise HardwareError(f"{name}: no fact of subject {entry.subject!r} gives {', '.join(missing)}")
    peaks = _peaks(facts, entry, base, ids, "dense")
    if not peaks:
        raise HardwareError(f"{name}: no fact of subject {entry.subject!r} gives a dense peak")
    process, ids["process"] = _text(facts, entry.subject, "process_node", base)
    internode = values.get("internode_bytes_per_s", 0.0)
    return Hardware(
        name=name,
        vendor=entry.vendor,
        family=entry.family,
        segment=entry.segment,
        peak_flop_per_s=MappingProxyType(peaks),
        memory_bytes=values["memory_bytes"],
        memory_bytes_per_s=values["memory_bytes_per_s"],
        link_bytes_per_s=values.get("link_bytes_per_s", internode),
        domain_size=int(values.get("domain_size", 1)),
        internode_bytes_per_s=internode,
        tdp_w=values["tdp_w"],
        compute_units=int(values["compute_units"]) if "compute_units" in values else None,
        l2_bytes=values.get("l2_bytes"),
        process=process,
        fact_ids=MappingProxyType({k: v for k, v in ids.items() if v}),
        band_class=entry.band_class,
        sparse_flop_per_s=MappingProxyType(_peaks(facts, entry, base, {}, "sparse")),
    )


def _first(facts: Catalog, subject: str, sources: tuple[tuple[str, str, float], ...]) -> tuple[float, str] | None:
    for quantity, unit, factor in sources:
        if facts.find(subject, quantity):
            fact = facts.select(subject, quantity)
            return (fact.to(unit) if unit else fact.number) * factor, fact.id
    return None


def _peaks(facts: Catalog, entry: _Entry, base: Hardware | None, ids: dict[str, str], kind: str) -> dict[str, float]:
    """Rates by format; a part without any fact of its own takes those of its base (same die, other memory)."""
    own: dict[str, float] = {}
    for number_format in PEAK_FORMATS:
        found = _first(facts, entry.subject, ((f"{number_format}_{kind}", "FLOP/second", 1),))
        if found:
            own[number_format], ids[f"peak_{number_format}"] = found
    if "fp16" not in own and "bf16" in own:  # the 16-bit tensor paths of these parts run at one rate
        own["fp16"] = own["bf16"]
        ids["peak_fp16"] = ids["peak_bf16"]
    if base is None:
        return own
    inherited = base.peak_flop_per_s if kind == "dense" else base.sparse_flop_per_s
    return {**inherited, **own}


def _text(facts: Catalog, subject: str, quantity: str, base: Hardware | None) -> tuple[str, str]:
    if facts.find(subject, quantity):
        fact = facts.select(subject, quantity)
        return str(fact.value), fact.id
    return (base.process, base.fact_ids.get("process", "")) if base else ("", "")


def _read_mapping(path: Path) -> Mapping[str, object]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    if not path.exists():
        raise HardwareError(f"no hardware file {path}; known names: {', '.join(known_hardware()[:8])} ...")
    try:
        data = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    except YAMLError as exc:
        raise HardwareError(f"{path}: not YAML: {exc}") from exc
    if not isinstance(data, Mapping):
        raise HardwareError(f"{path}: expected a mapping of hardware fields, found {type(data).__name__}")
    return data


def _custom(data: Mapping[str, object], where: str) -> Hardware:
    fields = {f for f in Hardware.__slots__ if f != "fact_ids"} | {"base"}
    unknown = [k for k in data if k not in fields]
    if unknown:
        hints = "; ".join(f"{k!r}{did_you_mean(str(k), sorted(fields))}" for k in unknown)
        raise HardwareError(f"{where}: unknown field {hints}")
    base = hardware(str(data["base"])) if "base" in data else None
    need = ("name", "memory_bytes", "memory_bytes_per_s", "peak_flop_per_s", "tdp_w")
    missing = [k for k in need if k not in data and (base is None or k == "name")]
    if missing:
        raise HardwareError(f"{where}: missing {', '.join(missing)} (or give `base: NAME` and only what differs)")

    def pick(key: str, default: object) -> object:
        return data.get(key, getattr(base, key) if base is not None else default)

    peaks = _number_map(pick("peak_flop_per_s", {}), f"{where}: peak_flop_per_s")
    if base is not None:
        peaks = {**base.peak_flop_per_s, **peaks}
    number: Callable[[str, object], float] = lambda key, default: _number(key, pick(key, default), where)  # noqa: E731
    segment = str(pick("segment", "datacenter"))
    if segment not in SEGMENTS:
        raise HardwareError(f"{where}: segment {segment!r} is not one of {', '.join(SEGMENTS)}")
    units, l2 = pick("compute_units", None), pick("l2_bytes", None)
    return Hardware(
        name=str(data["name"]),
        vendor=str(pick("vendor", "custom")),
        family=str(pick("family", "custom")),
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
        sparse_flop_per_s=MappingProxyType(_number_map(pick("sparse_flop_per_s", {}), where, "peak_flop_per_s")),
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


def _number_map(value: object, where: str, key: str = "peak_flop_per_s") -> dict[str, float]:
    if not isinstance(value, Mapping):
        raise HardwareError(f"{where}: expected formats with dense FLOP/s, e.g. {{bf16: 1e15}}, found {value!r}")
    unknown = [k for k in value if k not in PEAK_FORMATS]
    if unknown:
        raise HardwareError(f"{where}: unknown format {', '.join(map(str, unknown))}; known: {', '.join(PEAK_FORMATS)}")
    return {str(k): _number(key, v, where) for k, v in value.items()}
