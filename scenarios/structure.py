"""The structure of a network from a scenario file: records, windows in period numbers, patterns expanded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from scenarios.errors import Problem, ScenarioError
from scenarios.horizon import place
from scenarios.load import Scenario
from scenarios.measures import Measure, to_measure
from scenarios.nodes import Array
from scenarios.paths_match import match
from scenarios.schema import ScenarioFile
from supply import network as net

__all__ = ["build_network", "horizon_of", "network_path"]

_TAIL_QUARTERS = 12


def horizon_of(file: ScenarioFile) -> net.Horizon:
    """The horizon; a file with a fleet that says nothing about the tail gets twelve quarters.

    Raises:
        ValueError: a start that is no period of the step.
    """
    spec = file.horizon
    start = spec.start
    if spec.step == "month" and "Q" in start:
        start = f"{start[:4]}-{3 * int(start[-1]) - 2:02d}"
    if spec.step == "quarter" and "Q" not in start:
        start = f"{start[:4]}-Q{(int(start[-2:]) + 2) // 3}"
    default = 0 if not file.fleet else _TAIL_QUARTERS * (3 if spec.step == "month" else 1)
    return net.Horizon(start, spec.periods, spec.step, default if spec.tail is None else spec.tail)


def network_path(path: str) -> str:
    """Path of a number inside the network: numbers keep the path that they have in the file."""
    return path


def build_network(
    scenario: Scenario, horizon: net.Horizon, values: Mapping[str, Array], words: Mapping[str, str]
) -> net.Network:
    """The network of a scenario with its resolved numbers."""
    return _Builder(scenario, horizon, values, words).build()


class _Builder:
    def __init__(
        self, scenario: Scenario, horizon: net.Horizon, values: Mapping[str, Array], words: Mapping[str, str]
    ) -> None:
        self.file = scenario.file
        self.scenario = scenario
        self.horizon = horizon
        self.values = values
        self.words = words

    def build(self) -> net.Network:
        file = self.file
        return net.Network.build(
            self.horizon,
            self._materials(),
            self._processes(),
            [
                net.Resource(k, r.stage, self.words.get(k) or "unit", r.title, r.supplier, r.owner, r.region)
                for k, r in file.resources.items()
            ],
            self._numbers(),
            demand=[net.Demand(k, d.unmet) for k, d in file.demand.items() if k in file.materials],
            segments=[net.Segment(k, len(d.steps) or 1) for k, d in file.demand.items() if k not in file.materials],
            fleet=self._fleet(),
            contracts=self._contracts(),
            expansions=[
                net.Expansion(k, e.resource, e.owner, e.kind, self._first(e.start)) for k, e in file.expansions.items()
            ],
            disruptions=self._disruptions(),
            regions=[net.Region(k, r.title) for k, r in file.regions.items()],
            objective=net.Objective(file.objective.kind, file.objective.costs),
            regime=self._regime(),
            opening=net.Opening(file.opening.at_capacity),
            title=self.scenario.title,
        )

    def _numbers(self) -> dict[str, Array]:
        """The resolved numbers; what is installed and no longer made has an empty stock to draw from."""
        none = {f"opening.stock.{name}_installed": 0.0 for name, sku in self.file.fleet.items() if not sku.material}
        return {**self.values, **{path: np.zeros(self.horizon.length) for path in none}}

    def _first(self, period: str | None) -> int:
        return 0 if period is None else max(0, place(self.horizon, period))

    def _last(self, period: str | None) -> int | None:
        return None if period is None else place(self.horizon, period, end=True)

    def _known(self, period: str | None) -> int | None:
        return None if period is None else place(self.horizon, period)

    def _materials(self) -> Iterator[net.Material]:
        for name, m in self.file.materials.items():
            yield net.Material(name, m.unit, m.stage, m.title)
        for name, sku in self.file.fleet.items():
            if not sku.material:
                yield net.Material(
                    f"{name}_installed", "accelerator", "datacenter", f"{sku.title or name}, installed only"
                )

    def _processes(self) -> Iterator[net.Process]:
        for name, p in self.file.processes.items():
            yield net.Process(
                name,
                tuple(p.output),
                tuple(p.input),
                tuple(p.uses),
                p.stage,
                p.title,
                p.supplier,
                p.owner,
                p.region,
                self._first(p.start),
                self._last(p.end),
                self._known(p.known_from),
            )

    def _fleet(self) -> Iterator[net.FleetSku]:
        for name, sku in self.file.fleet.items():
            regions = sku.regions or tuple(self.file.regions)
            yield net.FleetSku(
                name,
                sku.material or f"{name}_installed",
                regions,
                sku.designer,
                sku.title,
                self._first(sku.start),
                self._last(sku.end),
                sku.early_retirement,
                len(sku.tastes),
            )

    def _contracts(self) -> Iterator[net.Contract]:
        for name, c in self.file.contracts.items():
            known = [*self.file.processes, *self.file.fleet]
            users = dict.fromkeys(p for pattern in c.processes for p in match(pattern, known))
            yield net.Contract(name, c.resource, tuple(users), self._first(c.start), self._last(c.end))

    def _disruptions(self) -> Iterator[net.Disruption]:
        for name, d in self.file.disruptions.items():
            back = self.values.get(f"disruptions.{name}.ramp_back")
            last = self._last(d.end)
            yield net.Disruption(
                name,
                d.resource or d.process,
                self._first(d.start),
                self.horizon.length - 1 if last is None else last,
                "resource" if d.resource else "process",
                0.0 if back is None else float(back[0]),
                self._known(d.known_from),
            )

    def _regime(self) -> net.Regime:
        ahead, kind = self.file.regime.look_ahead, self.file.regime.kind
        if "regime" not in self.scenario.data and self.file.disruptions:
            kind = "rolling"  # nobody foresees a disruption unless the file says so
        if ahead is None:
            return net.Regime(kind)
        periods = to_measure(ahead.magnitude, ahead.unit, Measure("periods"), self.horizon)
        if periods < 1 or abs(periods - round(periods)) > 1e-9:
            where = self.scenario.position(("regime",))
            raise ScenarioError(
                [Problem(where, "regime.look_ahead", f"{periods:g} periods: use a whole number of periods")]
            )
        return net.Regime(kind, round(periods))
