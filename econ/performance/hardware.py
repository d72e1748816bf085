"""Accelerator records built from facts, one per name; custom and unreleased parts from a mapping or a YAML file.

Peaks are dense. Link rates are one direction, per accelerator. `memory_bytes` is what the driver reports where a fact
says so, else the nominal decimal capacity, which is the lower of the two. Every field names the fact that it came from.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from econ.performance.hardware_custom import custom_hardware, read_mapping
from econ.performance.hardware_record import PEAK_FORMATS, SEGMENTS, Hardware, HardwareError
from econ.performance.names import did_you_mean, normalise
from supply.facts import Catalog, catalog
from supply.input_files import read_utf8
from supply.paths import data_file

__all__ = ["PEAK_FORMATS", "SEGMENTS", "Hardware", "HardwareError", "hardware", "hardware_name", "known_hardware"]

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
#: Whether the calibration has measurements of a part.
BAND_CLASSES = ("measured", "first_principles")
_SPELLING = " (case, spaces, hyphens and _ do not count)"
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
    return _read_entries(data_file("hardware.csv"))


def _read_entries(path: Path) -> Mapping[str, _Entry]:
    """Rows by name; a wrong column or cell is refused with its line, all at once."""
    reader = csv.DictReader(io.StringIO(read_utf8(path, "facts table"), newline=""))
    if tuple(reader.fieldnames or ()) != _Entry.__slots__:
        raise HardwareError(f"{path.name}:1: the columns are {', '.join(_Entry.__slots__)}")
    lines = [(reader.line_num, _Entry(**{k: r[k] or "" for k in _Entry.__slots__})) for r in reader]
    first = {row.name: line for line, row in reversed(lines)}
    spelt = {normalise(row.name): line for line, row in reversed(lines)}
    bases = {row.name: row.base for _, row in lines}
    problems = []
    for line, row in lines:
        if (held := spelt[normalise(row.name)]) != line:
            problems.append(f"{path.name}:{line}: name {row.name!r} stands in line {held} already{_SPELLING}")
        if _in_circle(row.name, bases):
            problems.append(f"{path.name}:{line}: base {row.base!r} leads back to {row.name!r}")
        elif row.base and (row.base not in first or row.base == row.name):
            near = did_you_mean(row.base, first)
            problems.append(f"{path.name}:{line}: base {row.base!r} is no name of another row{near}")
        for column, options in (("segment", SEGMENTS), ("band_class", BAND_CLASSES)):
            if getattr(row, column) not in options:
                said = f"{column} {getattr(row, column)!r} is not one of {', '.join(options)}"
                problems.append(f"{path.name}:{line}: {said}")
    if problems:
        raise HardwareError("\n".join(problems))
    return {row.name: row for _, row in lines}


def _in_circle(name: str, bases: Mapping[str, str]) -> bool:
    """Whether a part is the base of its base, over others; one that names itself is told apart."""
    seen, at = {name}, bases[name]
    while at in bases and at not in seen:
        seen.add(at)
        at = bases[at]
    return at == name != bases[name]


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


def hardware_name(text: str) -> str | None:
    """The name in `data/hardware.csv` that a spelling stands for (case, spaces, hyphens and _ do not count), or None.

    >>> hardware_name("tpu_v5e"), hardware_name("h10")
    ('TPU-v5e', None)
    """
    return _aliases().get(normalise(text))


def hardware(name_or_mapping: str | Path | Mapping[str, object]) -> Hardware:
    """The record of a name, of a custom part given as a mapping, or of a YAML or JSON file with such a mapping.

    A custom part needs `name`, `memory_bytes`, `memory_bytes_per_s`, `peak_flop_per_s` (format: dense FLOP/s, null for
    a format that it lacks) and `tdp_w`, or `base: KNOWN` with only what differs. Its `band_class` is
    `first_principles`.

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
        return _custom(read_mapping(Path(text)), text)
    name = hardware_name(text)
    if name is None:
        more = "the known parts stand in data/hardware.csv; one of your own is given as a mapping or a YAML file"
        raise HardwareError(f"unknown hardware {text!r}{did_you_mean(text, known_hardware(), more)}")
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
        sparse_flop_per_s=MappingProxyType(
            {k: v for k, v in _peaks(facts, entry, base, {}, "sparse").items() if k in peaks}
        ),
    )


def _first(facts: Catalog, subject: str, sources: tuple[tuple[str, str, float], ...]) -> tuple[float, str] | None:
    for quantity, unit, factor in sources:
        if facts.find(subject, quantity):
            fact = facts.select(subject, quantity)
            return (fact.to(unit) if unit else fact.number) * factor, fact.id
    return None


def _peaks(facts: Catalog, entry: _Entry, base: Hardware | None, ids: dict[str, str], kind: str) -> dict[str, float]:
    """Rates by format; those without a fact come from the base. A fact of 0 says that the part lacks the format."""
    own: dict[str, float] = {}
    for number_format in PEAK_FORMATS:
        found = _first(facts, entry.subject, ((f"{number_format}_{kind}", "FLOP/second", 1),))
        if found:
            own[number_format], ids[f"peak_{number_format}"] = found
    if "fp16" not in own and "bf16" in own:  # the 16-bit tensor paths of these parts run at one rate
        own["fp16"] = own["bf16"]
        ids["peak_fp16"] = ids["peak_bf16"]
    inherited = (base.peak_flop_per_s if kind == "dense" else base.sparse_flop_per_s) if base is not None else {}
    return {name: rate for name, rate in {**inherited, **own}.items() if rate > 0}


def _text(facts: Catalog, subject: str, quantity: str, base: Hardware | None) -> tuple[str, str]:
    if facts.find(subject, quantity):
        fact = facts.select(subject, quantity)
        return str(fact.value), fact.id
    return (base.process, base.fact_ids.get("process", "")) if base else ("", "")


def _custom(data: Mapping[str, object], where: str) -> Hardware:
    if hardware_name(str(data.get("name"))) is not None:  # measurements of that part would count for this one
        raise HardwareError(f"{where}: name {data['name']!r} is that of a known part: give your own another")
    base = hardware(str(data["base"])) if "base" in data else None
    return custom_hardware(data, where, base)
