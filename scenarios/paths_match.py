"""The numbers of a scenario: their dotted paths, units and bounds, and the patterns that address them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from scenarios.measures import Measure, UnitError, numerator
from scenarios.positions import Loc, dotted
from scenarios.schema import Process, Resource, ScenarioFile, Spec, specs
from scenarios.value_units import unit_in
from supply.facts import Catalog

__all__ = ["Leaf", "leaves", "match", "resource_words"]


@dataclass(frozen=True)
class Leaf:
    """One number: its path, the value in the file (None: absent), its spec and measure, and where it stands."""

    path: str
    loc: Loc
    form: Any
    spec: Spec
    measure: Measure


def match(pattern: str, paths: Iterable[str], groups: Mapping[str, tuple[str, ...]] | None = None) -> list[str]:
    """Paths that a path, a pattern (`*` inside an id) or a group addresses; `processes.P.yield` takes every yield of P.

    >>> match("processes.hbm*.yield", ["processes.hbm3.yield.stack", "processes.fab.yield"])
    ['processes.hbm3.yield.stack']
    >>> match("power", ["resources.power_us.capacity"], {"power": ("resources.power_*.capacity",)})
    ['resources.power_us.capacity']
    """
    known = list(paths)
    if groups and pattern in groups:
        return list(dict.fromkeys(p for inner in groups[pattern] for p in match(inner, known)))
    parts = pattern.split(".")
    out = []
    for path in known:
        split = path.split(".")
        size = 3 if len(parts) == 3 and split[0] == "processes" and split[2:3] == ["yield"] else len(split)
        if size == len(parts) and all(fnmatchcase(a, b) for a, b in zip(split, parts, strict=False)):
            out.append(path)
    return out


def resource_words(file: ScenarioFile, facts: Catalog) -> dict[str, str]:
    """Unit word of each resource: MW for power, else what its capacity counts, else what the first user names."""
    words: dict[str, str] = {}
    for name, resource in file.resources.items():
        words[name] = _resource_word(name, resource, file, facts)
    return words


def _resource_word(name: str, resource: Resource, file: ScenarioFile, facts: Catalog) -> str:
    if resource.stage == "power" and resource.region:
        return "MW"
    candidates = [unit_in(resource.capacity, facts)]
    candidates += [unit_in(p.uses[name], facts) for p in file.processes.values() if name in p.uses]
    for unit in candidates:
        try:
            word = numerator(unit)
        except UnitError:
            continue
        if word:
            return "" if word == "dimensionless" else word
    return ""


def leaves(file: ScenarioFile, facts: Catalog) -> Iterator[Leaf]:
    """Every number that a scenario has or may have (absent ones with form None), in file order of the sections."""
    context = _Context(file, resource_words(file, facts), facts)
    spec = specs(ScenarioFile)["discount_rate"][0]
    yield Leaf("discount_rate", ("discount_rate",), file.discount_rate, spec, Measure("rate"))
    for section in (
        "materials",
        "regions",
        "resources",
        "processes",
        "fleet",
        "demand",
        "contracts",
        "expansions",
        "disruptions",
    ):
        for name, part in getattr(file, section).items():
            yield from context.part((section, name), part)
    yield from context.part(("opening",), file.opening)
    yield from context.costs(("costs",), file.costs)


class _Context:
    """Knows the unit words that paths refer to."""

    def __init__(self, file: ScenarioFile, resources: dict[str, str], facts: Catalog) -> None:
        self.file = file
        self.facts = facts
        self.resources = resources
        self.units = {name: m.unit for name, m in file.materials.items()}

    def part(self, loc: Loc, part: Any) -> Iterator[Leaf]:
        for key, (spec, mapping) in specs(type(part)).items():
            held = getattr(part, _attribute(type(part), key))
            here = (*loc, key)
            if key == "yield" and isinstance(part, Process):
                yield from self._yields(here, held, spec, part)
            elif mapping:
                for name, form in held.items():
                    yield self._leaf((*here, name), form, spec, part)
            else:
                yield self._leaf(here, held, spec, part)
        for key in ("tastes", "steps"):
            for index, step in enumerate(getattr(part, key, ())):
                for field, (spec, _) in specs(type(step)).items():
                    yield self._leaf((*loc, key, index, field), getattr(step, field), spec, part)

    def _yields(self, loc: Loc, held: Any, spec: Spec, part: Process) -> Iterator[Leaf]:
        if not isinstance(held, dict):
            yield Leaf(dotted(loc), loc, held, spec, Measure("fraction"))
            return
        for name in dict.fromkeys((*part.output, *held)):
            yield Leaf(dotted((*loc, name)), (*loc, name), held.get(name), spec, Measure("fraction"))

    def _leaf(self, loc: Loc, form: Any, spec: Spec, part: Any) -> Leaf:
        return Leaf(dotted(loc), loc, form, spec, Measure(spec.measure, self._word(loc, part)))

    def _word(self, loc: Loc, part: Any) -> str:
        section, key, last = loc[0], loc[1] if section_is_flat(loc) else loc[2], str(loc[-1])
        if section == "materials":
            return str(part.unit)
        if section == "processes":
            if key == "uses":
                return self.resources.get(last, "")
            if key in ("input", "output"):
                return self.units.get(last, "")
            return self.units.get(next(iter(part.output), ""), "") if key == "cost" else ""
        if section == "resources":
            return self.resources[str(loc[1])]
        if section == "fleet":
            return self.units.get(part.material, "")
        if section == "demand":
            return self.units.get(str(loc[1]), "")
        if section in ("contracts", "expansions"):
            return self.resources.get(part.resource, "")
        if section == "opening" and key == "stock":
            return self.units.get(last, "")
        return ""

    def costs(self, loc: Loc, held: Any) -> Iterator[Leaf]:
        """Leaves of `costs`: life and capital budgets for the optimum, the rest in its own unit."""
        from scenarios.values import form_of, parse_value

        for key, raw in held.items():
            here = (*loc, key)
            plain_tree = isinstance(raw, dict) and form_of(raw) == "form:number"
            if plain_tree:
                yield from self.costs(here, raw)
            elif not isinstance(raw, (str, list, bool)) or _numeric_text(raw):
                kind = "years" if here == ("costs", "life") else "own"
                if here[:2] == ("costs", "capex_budget"):
                    kind = "money_per_period"
                form = parse_value(raw)
                word = unit_in(form, self.facts) if kind == "own" else ""
                yield Leaf(dotted(here), here, form, Spec(kind), Measure(kind, word))


def _numeric_text(raw: Any) -> bool:
    return isinstance(raw, str) and raw[:1].isdigit()


def section_is_flat(loc: Loc) -> bool:
    """Whether a section has no ids of its own (`opening`)."""
    return loc[0] == "opening"


def _attribute(model: Any, key: str) -> str:
    for name, info in model.model_fields.items():
        if (info.alias or name) == key:
            return str(name)
    raise KeyError(key)
