"""Names that a scenario refers to: every material, resource, process, region and fact must exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from scenarios.errors import Problem, ScenarioError, did_you_mean
from scenarios.measures import UnitError, declare_unit
from scenarios.outputs import SUBJECTS, parse_output
from scenarios.paths_match import match
from scenarios.positions import Loc, dotted
from scenarios.structure import horizon_of
from supply.network import STAGES

if TYPE_CHECKING:
    from scenarios.load import Scenario

__all__ = ["check_references", "idle_costs"]

#: Entries of `costs` that the optimum reads itself.
OWN_COSTS = ("life", "capex_budget")


def check_references(scenario: Scenario) -> list[Problem]:
    """Problems of names that do not resolve, each with its place and the nearest names."""
    found = [*_units(scenario), *_processes(scenario), *_fleet(scenario), *_others(scenario), *_stages(scenario)]
    found += [*_costed(scenario), *_outputs(scenario)]
    return found if found else [*_patterns(scenario), *_costs(scenario)]


def _missing(scenario: Scenario, loc: Loc, name: str, what: str, options: Iterable[str]) -> Iterator[Problem]:
    known = list(options)
    if name not in known:
        message = f"there is no {what} {name!r}{did_you_mean(name, known)}"
        yield Problem(scenario.position(loc), dotted(loc), message)


def _units(scenario: Scenario) -> Iterator[Problem]:
    for name, material in scenario.file.materials.items():
        try:
            declare_unit(material.unit)
        except UnitError as exc:
            loc = ("materials", name, "unit")
            yield Problem(scenario.position(loc), dotted(loc), str(exc))


def _processes(scenario: Scenario) -> Iterator[Problem]:
    file = scenario.file
    for name, process in file.processes.items():
        loc: Loc = ("processes", name)
        for key, ids in (("input", process.input), ("output", process.output)):
            for material in ids:
                yield from _missing(scenario, (*loc, key, material), material, "material", file.materials)
        for resource in process.uses:
            yield from _missing(scenario, (*loc, "uses", resource), resource, "resource", file.resources)
        if isinstance(process.yield_, dict):
            for material in process.yield_:
                yield from _missing(scenario, (*loc, "yield", material), material, "output", process.output)
        if not process.output:
            yield Problem(scenario.position(loc), dotted(loc), "a process needs an `output`: {MATERIAL: QTY}")
        if process.region and file.regions:
            yield from _missing(scenario, (*loc, "region"), process.region, "region", file.regions)


def _fleet(scenario: Scenario) -> Iterator[Problem]:
    file = scenario.file
    for name, sku in file.fleet.items():
        loc: Loc = ("fleet", name)
        if sku.material or not sku.opening:
            yield from _missing(scenario, (*loc, "material"), sku.material, "material", file.materials)
        for index, region in enumerate(sku.regions):
            yield from _missing(scenario, (*loc, "regions", index), region, "region", file.regions)
        for region in sku.opening:
            yield from _missing(scenario, (*loc, "opening", region), region, "region", file.regions)
    for name, resource in file.resources.items():
        if resource.region and file.regions:
            yield from _missing(scenario, ("resources", name, "region"), resource.region, "region", file.regions)
    designers = {sku.designer for sku in file.fleet.values() if sku.designer}
    for name, demand in file.demand.items():
        if name in designers - {*file.materials} and demand.unmet != "lost":
            loc = ("demand", name, "unmet")
            yield Problem(
                scenario.position(loc), dotted(loc), "has no effect on a designer: drop it, or name a material"
            )
        if name in file.materials:  # keys of a designer are refused with the numbers
            continue
        if demand.steps or demand.reference is not None:
            yield from _missing(scenario, ("demand", name), name, "designer", designers)
        else:
            yield from _missing(scenario, ("demand", name), name, "material", file.materials)


def _others(scenario: Scenario) -> Iterator[Problem]:
    file = scenario.file
    for name, contract in file.contracts.items():
        loc: Loc = ("contracts", name)
        yield from _missing(scenario, (*loc, "resource"), contract.resource, "resource", file.resources)
        for index, pattern in enumerate(contract.processes):
            users = [*file.processes, *file.fleet]
            if not match(pattern, users):
                yield from _missing(scenario, (*loc, "processes", index), pattern, "process", users)
    for name, expansion in file.expansions.items():
        yield from _missing(scenario, ("expansions", name, "resource"), expansion.resource, "resource", file.resources)
    for name, disruption in file.disruptions.items():
        loc = ("disruptions", name)
        if bool(disruption.resource) == bool(disruption.process):
            yield Problem(scenario.position(loc), dotted(loc), "a disruption names either a `resource` or a `process`")
        elif disruption.resource:
            yield from _missing(scenario, (*loc, "resource"), disruption.resource, "resource", file.resources)
        else:
            yield from _missing(scenario, (*loc, "process"), disruption.process, "process", file.processes)
    for key, options, what in (("stock", file.materials, "material"), ("pipeline", file.processes, "process")):
        for name in getattr(file.opening, key):
            yield from _missing(scenario, ("opening", key, name), name, what, options)


def _stages(scenario: Scenario) -> Iterator[Problem]:
    """A stage may be any word, but not nearly the name of one that the model knows."""
    for section in ("materials", "processes", "resources"):
        for name, part in getattr(scenario.file, section).items():
            near = difflib.get_close_matches(part.stage.lower(), STAGES, n=1, cutoff=0.8)
            if part.stage not in STAGES and near:
                loc: Loc = (section, name, "stage")
                message = f"there is no stage {part.stage!r}; did you mean {near[0]}? (a new one needs another word)"
                yield Problem(scenario.position(loc), dotted(loc), message)


def _costed(scenario: Scenario) -> Iterator[Problem]:
    """The models and tasks whose costs are wanted."""
    named = {"workloads": scenario.file.workloads, "tasks": scenario.file.tasks}
    if any(named.values()):  # the econ room is slow to import
        from econ.agent_spec import agent_tasks
        from econ.chain import MODEL_CHOICES
        from econ.performance.architecture import ArchitectureError, architecture, known_models
    for index, name in enumerate(named["workloads"]):
        loc: Loc = ("workloads", index)
        try:
            if name not in MODEL_CHOICES:
                architecture(name)
        except ArchitectureError:
            yield from _missing(scenario, loc, name, "model", [*MODEL_CHOICES, *known_models()])
    for index, name in enumerate(named["tasks"]):
        yield from _missing(scenario, ("tasks", index), name, "task", agent_tasks())
    for key, names in named.items():
        for index in (k for k, name in enumerate(names) if name in names[:k]):
            yield Problem(scenario.position((key, index)), f"{key}.{index}", f"{names[index]!r} is given twice")


def _outputs(scenario: Scenario) -> Iterator[Problem]:
    """Outputs need a known quantity, a subject of its kind and a period of the horizon."""
    file = scenario.file
    labels = horizon_of(file).labels()[: file.horizon.periods]
    own = scenario.level_of(("outputs",)) >= scenario.level_of(("horizon", "periods"))  # else a parent had more periods
    for index, name in enumerate(file.outputs):
        loc: Loc = ("outputs", index)
        try:
            wanted = parse_output(name)
        except ScenarioError as exc:
            yield Problem(scenario.position(loc), dotted(loc), f"{name!r} {exc.problems[0].message}")
            continue
        kind = SUBJECTS.get(wanted.quantity)
        if kind is None:
            yield from _missing(scenario, loc, wanted.quantity, "output", SUBJECTS)
            continue
        known = [k for section in kind for k in getattr(file, section)]
        last = wanted.subject.rpartition("/")[2]
        if known and last and not any(fnmatchcase(k, last) for k in known):
            yield from _missing(scenario, loc, last, f"subject of {wanted.quantity}", known)
        if own and wanted.period and not any(label.startswith(wanted.period) for label in labels):
            yield from _missing(scenario, loc, wanted.period, "reported period", labels)


def _costs(scenario: Scenario) -> Iterator[Problem]:
    """Owners of a budget, and entries of `costs` that look like a misspelt name (see `idle_costs` for the others)."""
    owners = {e.owner for e in scenario.file.expansions.values()}
    budget = scenario.file.costs.get("capex_budget")
    for owner in budget if isinstance(budget, dict) else ():
        yield from _missing(scenario, ("costs", "capex_budget", owner), owner, "owner of an expansion", owners)
    for key, message, near in _idle(scenario):
        if "did you mean" in near:
            yield Problem(scenario.position(("costs", key)), f"costs.{key}", f"{message}{near}")


def idle_costs(scenario: Scenario) -> list[str]:
    """Warnings of entries of `costs` that no value names; a child may have replaced what named them."""
    return [f"costs.{key}: {message}" for key, message, _ in _idle(scenario)]


def _idle(scenario: Scenario) -> Iterator[tuple[str, str, str]]:
    """Entries of `costs` without a reader: key, what is wrong, and names it could be."""
    named = list(_paths_named([scenario.data, *(edit.raw for edit in scenario.edits)]))
    for key in scenario.file.costs:
        if key not in OWN_COSTS and not any(f"{path}.".startswith(f"costs.{key}.") for path in named):
            near = did_you_mean(key, [*OWN_COSTS, *(p.split(".")[1] for p in named if p.startswith("costs."))])
            yield key, f"no value names it by {{path: costs.{key}}}, so it changes nothing", near


def _paths_named(data: Any) -> Iterator[str]:
    if isinstance(data, dict):
        if isinstance(data.get("path"), str):
            yield data["path"]
        data = list(data.values())
    for inner in data if isinstance(data, list) else ():
        yield from _paths_named(inner)


def _patterns(scenario: Scenario) -> Iterator[Problem]:
    """Groups, correlations and edits must address at least one number."""
    paths = list(scenario.leaves)
    groups = scenario.file.groups
    for group, patterns in groups.items():
        for index, pattern in enumerate(patterns):
            if not match(pattern, paths):
                loc: Loc = ("groups", group, index)
                yield Problem(scenario.position(loc), dotted(loc), _no_number(pattern, paths))
    for index, correlation in enumerate(scenario.file.correlations):
        for k, pattern in enumerate(correlation.inputs):
            if not match(pattern, paths, groups):
                loc = ("correlations", index, "inputs", k)
                yield Problem(scenario.position(loc), dotted(loc), _no_number(pattern, [*paths, *groups]))
    for applied in scenario.edits:
        if not match(applied.pattern, paths, groups) and not _yield_of(applied.pattern, paths):
            yield Problem(applied.where, f"set.{applied.pattern}", _no_number(applied.pattern, [*paths, *groups]))


def _no_number(pattern: str, paths: list[str]) -> str:
    """The message for a path that addresses nothing, with the nearest paths."""
    parts = pattern.split(".")
    nearby = [p for p in paths if p.split(".")[: len(parts) - 1] == parts[:-1]] or paths
    return f"no number has the path {pattern!r}{did_you_mean(pattern, nearby)}"


def _yield_of(pattern: str, paths: list[str]) -> bool:
    """`processes.P.yield.M` where the file gives one yield for all outputs of P."""
    parts = pattern.split(".")
    return len(parts) == 4 and parts[2] == "yield" and bool(match(".".join(parts[:3]), paths))
