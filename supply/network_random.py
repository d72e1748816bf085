"""Random but sensible networks of any size, for speed measurements and property tests (no number in them is a fact)."""

from __future__ import annotations

from typing import Any

import numpy as np

from supply.network import (
    Contract,
    Demand,
    Disruption,
    Expansion,
    FleetSku,
    Horizon,
    Material,
    Network,
    Objective,
    Process,
    Region,
    Resource,
    Segment,
)


def random_industry(
    skus: int = 5,
    suppliers: int = 2,
    regions: int = 2,
    periods: int = 12,
    tail: int = 4,
    seed: int = 7,
    extras: bool = True,
    step: str = "quarter",
) -> Network:
    """Dies, memory by supplier, packages, servers, fleets: `skus` accelerators of up to four designers.

    `extras` adds contracts, shares, demand segments, taste steps, ramps, expansions and a disruption.

    >>> sorted(random_industry(skus=1, suppliers=1, regions=1).processes)
    ['die0', 'hbm0_0', 'package0', 'server0']
    """
    rng = np.random.default_rng(seed)
    length = periods + tail
    builder = _Builder(rng, Horizon("2024-Q1" if step == "quarter" else "2024-01", periods, step, tail))
    growth = 1 + 0.04 * np.arange(length)
    builder.resource("fab", "fab", 60e3 * skus * growth)
    for h in range(suppliers):
        builder.resource(f"hbm{h}", "hbm", 40e3 * skus * growth * rng.uniform(0.7, 1.3))
    builder.resource("cowos", "packaging", 12e3 * skus * growth)
    builder.resource("racks", "server", 220e3 * skus * growth)
    for g in range(regions):
        mw = 250.0 * skus * (1 + 0.5 * np.arange(length)) / regions * rng.uniform(0.8, 1.2)
        builder.resource(f"power{g}", "power", mw, region=f"r{g}")
    for s in range(skus):
        builder.sku(s, suppliers, regions, extras)
    builder.values |= {"discount_rate": 0.1, "costs.life": 5.0}
    contracts, expansions, disruptions, segments = builder.extras(skus, periods) if extras else ([], [], [], [])
    return Network.build(
        builder.horizon,
        builder.materials,
        builder.processes,
        builder.resources,
        builder.values,
        fleet=builder.fleet,
        contracts=contracts,
        expansions=expansions,
        disruptions=disruptions,
        segments=segments,
        regions=[Region(f"r{g}") for g in range(regions)],
        title="Random industry",
    )


class _Builder:
    def __init__(self, rng: np.random.Generator, horizon: Horizon) -> None:
        self.rng, self.horizon = rng, horizon
        self.values: dict[str, Any] = {}
        self.materials: list[Material] = []
        self.processes: list[Process] = []
        self.resources: list[Resource] = []
        self.fleet: list[FleetSku] = []

    def resource(self, name: str, stage: str, capacity: object, region: str = "") -> None:
        self.resources.append(Resource(name, stage, "MW" if region else "wafer", region=region, owner=f"owner_{stage}"))
        self.values[f"resources.{name}.capacity"] = capacity

    def material(self, name: str, holding: float) -> None:
        self.materials.append(Material(name))
        self.values[f"materials.{name}.holding_cost"] = holding

    def process(self, name: str, stage: str, first: int, **numbers: dict[str, float] | float) -> None:
        parts: dict[str, tuple[str, ...]] = {}
        for key, entry in numbers.items():
            if isinstance(entry, dict):
                parts[key] = tuple(entry)
                self.values |= {f"processes.{name}.{key}.{k}": v for k, v in entry.items()}
            else:
                self.values[f"processes.{name}.{key.replace('yields', 'yield')}"] = entry
        self.processes.append(
            Process(name, parts["output"], parts.get("input", ()), parts.get("uses", ()), stage, first=first)
        )

    def sku(self, s: int, suppliers: int, regions: int, extras: bool) -> None:
        rng, first = self.rng, (2 * s) % max(self.horizon.periods // 2, 1)
        size = 1 + 0.25 * s
        self.material(f"die{s}", 4.0)
        self.material(f"stack{s}", 8.0)
        self.material(f"package{s}", 150.0)
        self.material(f"ready{s}", 400.0)
        lead = rng.uniform(0.6, 1.4) * 3 / self.horizon.months
        self.process(
            f"die{s}", "fab", first, output={f"die{s}": 60.0}, uses={"fab": 1.0}, yields=rng.uniform(0.6, 0.9),
            lead_time=lead, cost=16000.0,
        )  # fmt: skip
        for h in range(suppliers):
            self.process(
                f"hbm{h}_{s}", "hbm", first, output={f"stack{s}": 20.0}, uses={f"hbm{h}": 1.0},
                yields=rng.uniform(0.6, 0.8), lead_time=lead, cost=6000.0,
            )  # fmt: skip
        self.process(
            f"package{s}", "packaging", first, input={f"die{s}": 1.0, f"stack{s}": 6.0}, output={f"package{s}": 1.0},
            uses={"cowos": 1 / rng.uniform(14, 29)}, yields=rng.uniform(0.9, 0.99), lead_time=0.5, cost=800.0,
        )  # fmt: skip
        self.process(
            f"server{s}", "server", first, input={f"package{s}": 1.0}, output={f"ready{s}": 1.0}, uses={"racks": 1.0},
            lead_time=0.3, cost=9000.0,
        )  # fmt: skip
        tastes = 3 if extras else 0
        places = tuple(f"r{g}" for g in range(regions))
        self.fleet.append(FleetSku(f"sku{s}", f"ready{s}", places, f"d{s % 4}", first=first, tastes=tastes))
        numbers = {
            "kw_planning": 1.2 * size,
            "survival": 0.9875,
            "value": 1.4 * size * rng.uniform(0.9, 1.2),
            "h100e": size,
        }
        self.values |= {f"fleet.sku{s}.{k}": v for k, v in numbers.items()}
        for k, (share, lost) in enumerate(((0.5, 0.0), (0.3, 0.08), (0.2, 0.18))[:tastes]):
            self.values |= {f"fleet.sku{s}.tastes.{k}.share": share, f"fleet.sku{s}.tastes.{k}.discount": lost}
        if s == 0:
            for g in range(regions):
                self.values[f"fleet.sku0.opening.r{g}"] = 40e3
            self.values |= {"opening.pipeline.die0": 4e3, "opening.stock.stack0": 1e5}
            if extras:
                self.values |= {"processes.package0.ramp": 1.6, "processes.package0.floor": 3e4}
                self.values |= {"processes.package0.run_down": 0.3}

    def extras(
        self, skus: int, periods: int
    ) -> tuple[list[Contract], list[Expansion], list[Disruption], list[Segment]]:
        values, length = self.values, self.horizon.length
        packages = [tuple(f"package{s}" for s in range(skus) if s % 4 == d) for d in range(min(4, skus))]
        contracts = [Contract(f"cowos_d{d}", "cowos", group) for d, group in enumerate(packages)]
        for d in range(len(packages)):
            values |= {f"contracts.cowos_d{d}.greatest_share": 0.7, f"contracts.cowos_d{d}.least_share": 0.05}
            values[f"contracts.cowos_d{d}.take_or_pay"] = 4000.0
            values[f"demand.d{d}.reference"] = 1e5 * skus * (1 + 0.1 * np.arange(length))
            for k, (share, lost) in enumerate(((0.4, 0.0), (0.4, 0.15), (0.4, 0.3))):
                values |= {f"demand.d{d}.steps.{k}.share": share, f"demand.d{d}.steps.{k}.discount": lost}
        values |= {"expansions.line.capex": 60e3, "expansions.line.greatest": 3e3, "expansions.line.lead_time": 2.5}
        values["disruptions.quake.remaining"] = 0.6
        return (
            contracts,
            [Expansion("line", "cowos", "owner_packaging", first=1)],
            [Disruption("quake", "fab", periods // 3, periods // 3 + 1, ramp_back=2.0, known_from=periods // 3)],
            [Segment(f"d{d}", 3) for d in range(len(packages))],
        )


def random_small(seed: int) -> Network:
    """A few materials in layers, random recipes, sales of the last layer: for parity with other solvers.

    >>> random_small(1).horizon.length >= 1
    True
    """
    rng = np.random.default_rng(seed)
    length = int(rng.integers(1, 5))
    layers = [[f"m{i}{j}" for j in range(int(rng.integers(1, 4)))] for i in range(int(rng.integers(2, 4)))]
    values: dict[str, Any] = {"discount_rate": float(rng.uniform(0, 0.3))}
    processes = []
    for i, layer in enumerate(layers):
        for j, made in enumerate(layer):
            p = f"p{i}{j}"
            inputs = tuple(rng.choice(layers[i - 1], size=min(2, len(layers[i - 1])), replace=False)) if i else ()
            values |= {
                f"processes.{p}.output.{made}": float(rng.uniform(0.5, 3)),
                f"processes.{p}.yield": rng.uniform(0.4, 1),
            }
            values |= {f"processes.{p}.input.{m}": float(rng.uniform(0.5, 2)) for m in inputs}
            values |= {f"processes.{p}.uses.r{i}": float(rng.uniform(0.5, 2)), f"processes.{p}.cost": rng.uniform(0, 2)}
            values |= {
                f"processes.{p}.lead_time": float(rng.choice([0.0, 0.5, 1.0])),
                f"materials.{made}.holding_cost": 0.01,
            }
            processes.append(Process(p, (made,), tuple(map(str, inputs)), (f"r{i}",)))
    for i in range(len(layers)):
        values[f"resources.r{i}.capacity"] = rng.uniform(1, 50, length)
    for m in layers[-1]:
        values |= {f"demand.{m}.price": rng.uniform(5, 60, length), f"demand.{m}.quantity": rng.uniform(1, 40, length)}
    return Network.build(
        Horizon("2026-Q1", length),
        [Material(m) for layer in layers for m in layer],
        processes,
        [Resource(f"r{i}") for i in range(len(layers))],
        values,
        demand=[Demand(m) for m in layers[-1]],
        objective=Objective("value"),
    )
