"""Outputs of one solve as a flat vector, fast enough for draws: positions are found once, numbers per solve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from scenarios.nodes import Array
from supply.optimizer.price_map import PriceMap

if TYPE_CHECKING:
    from scenarios.costing import CostModel
    from supply.optimizer.compiled import Compiled

__all__ = ["Extractor", "Reading"]


@dataclass(frozen=True)
class Reading:
    """Primal values, row duals and row activities of one optimum, in model units."""

    x: Array
    y: Array
    activity: Array

    @classmethod
    def of(cls, compiled: Compiled) -> Reading:
        """The last optimum of a compiled programme."""
        solution = compiled.engine.highs.getSolution()
        return cls(np.array(solution.col_value), np.array(solution.row_dual), np.array(solution.row_value))


@dataclass
class Extractor:
    """Reads volumes, prices, binding stages and costs of the reported periods; `names` says what each entry is."""

    compiled: Compiled
    model: CostModel
    names: list[str] = field(default_factory=list)
    units: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        network = self.compiled.network
        self.labels = network.horizon.labels()
        self.periods, self.length = network.horizon.periods, network.horizon.length
        self.resources = [
            r
            for r, row in network.resources.items()
            if any((self._row_name(row.is_power), (r, t)) in self._rows() for t in range(self.length))
        ]
        self.skus = list(network.fleet)
        self._places()
        self._finals()
        self.rent_weights = self.model.weights(self.resources)
        self._name_all()

    def _rows(self) -> dict[tuple[str, tuple[Any, ...]], int]:
        return self.compiled.structure.row

    @staticmethod
    def _row_name(power: bool) -> str:
        return "power" if power else "limit"

    def _places(self) -> None:
        """Column positions by SKU and period, summed over regions, and row positions of the limits."""
        column = self.compiled.structure.column
        self.where: dict[str, tuple[Array, Array]] = {}
        for kind in ("energise", "fleet"):
            target, source = [], []
            for (name, key), j in column.items():
                if name == kind and key[-1] < self.periods:
                    target.append(self.skus.index(key[0]) * self.periods + key[-1])
                    source.append(j)
            self.where[kind] = (np.array(target, dtype=np.int64), np.array(source, dtype=np.int64))
        network, rows = self.compiled.network, self._rows()
        none = len(
            self.compiled.engine.matrix.rows
        )  # a limit that nothing can use in a period has no row: it reads zero
        self.limit_rows = np.array(
            [
                [rows.get((self._row_name(network.resources[r].is_power), (r, t)), none) for t in range(self.length)]
                for r in self.resources
            ],
            dtype=np.int64,
        ).reshape(len(self.resources), self.length)
        self.natural = np.array([self.compiled.structure.natural[r] for r in self.resources])
        self.price_map = PriceMap(self.compiled)
        self.priced = [self.price_map.resources.index(r) for r in self.resources]

    def _finals(self) -> None:
        """Final materials: matrix entries of what starts deliver into their balance, and opening pipelines."""
        from supply.optimizer.tables import finished_material

        network, engine = self.compiled.network, self.compiled.engine
        shared: dict[str, list[str]] = {}
        for s in network.fleet:
            shared.setdefault(finished_material(network, s), []).append(s)
        self.finals = {m: (skus[0] if len(skus) == 1 else m) for m, skus in shared.items()}
        self.sold = {m: m for m in network.demand if m not in self.finals}
        place = {}
        for k, m in enumerate(self.finals):
            for t in range(self.periods):
                place[self._rows()["balance", (m, t)]] = k * self.periods + t
        columns = engine.column_of_entry
        starts = np.array([name == "start" for name, _ in engine.matrix.columns])
        target, entry, source = [], [], []
        for e, i in enumerate(engine.matrix.index.tolist()):
            if i in place and starts[columns[e]] and engine.data[e] > 0:
                target.append(place[i])
                entry.append(e)
                source.append(columns[e])
        self.delivered = tuple(np.array(a, dtype=np.int64) for a in (target, entry, source))

    def _name_all(self) -> None:
        labels = self.labels[: self.periods]

        def add(quantity: str, subjects: list[str], unit: str) -> None:
            self.names += [f"{quantity}:{s}@{p}" for s in subjects for p in labels]
            self.units += [unit] * (len(subjects) * len(labels))

        self.names, self.units = ["objective"], [self.compiled.network.objective.kind]
        for quantity in ("energised", "energised_h100e", "fleet"):
            add(quantity, self.skus, "accelerators")
        add("finished", [*self.finals.values(), *self.sold.values()], "accelerators")
        for quantity in ("price", "lasting_price", "utilisation", "rent"):
            add(quantity, self.resources, quantity)
        for quantity, part in (("usd_per_gpu_hour", ""), ("scarcity_usd_per_gpu_hour", "")):
            self.names += [f"{quantity}:{sku}{part}@{period}" for sku, _, period, _ in self.model.rows]
            self.units += ["USD/GPU-hour"] * len(self.model.rows)
        self._cost_names()

    def _cost_names(self) -> None:
        """Slopes of token and task costs in the hour of their SKU: cost = at + slope * (hour - nominal hour)."""
        from scenarios.costing import CLASSES

        row_of = {(sku, period): k for k, (sku, _, period, _) in enumerate(self.model.rows)}
        rows, at, slope, hour = [], [], [], []
        for c in self.model.costs:
            k = row_of[c["sku"], c["period"]]
            for name in CLASSES:
                usd = c["usd_per_mtoken"][name]
                if usd is None:
                    continue
                self.names.append(f"usd_per_mtoken_{name}:{c['model']}/{c['sku']}@{c['period']}")
                self.units.append("USD/Mtoken")
                rows.append(k)
                at.append(usd)
                slope.append(usd / c["usd_per_gpu_hour"])
                hour.append(c["usd_per_gpu_hour"])
        by_task: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
        for r in self.model.tasks:
            by_task.setdefault((r["task"], r["model"], r["sku"]), []).append(r)
        hours = {(c["sku"], c["period"]): c["usd_per_gpu_hour"] for c in self.model.costs}
        for (task, model, sku), entries in by_task.items():
            for r in entries:
                self.names.append(f"usd_per_verified_task:{task}/{model}/{sku}@{r['period']}")
                self.units.append("USD/task")
                rows.append(row_of[sku, r["period"]])
                at.append(r["usd_per_verified_task"])
                slope.append(_task_slope(entries, hours, sku, r))
                hour.append(hours[sku, r["period"]])
        self.cost_row = np.array(rows, dtype=np.int64)
        self.cost_at, self.cost_slope, self.cost_hour = (np.array(a, dtype=float) for a in (at, slope, hour))

    def read(self, reading: Reading) -> Array:
        """The vector of outputs of one optimum, in the order of `names`."""
        compiled = self.compiled
        flow, worth = compiled.scale.flow, compiled.scale.flow * compiled.scale.money
        values, periods = compiled.values, self.periods
        x = reading.x
        energised = np.bincount(*self._spot("energise"), weights=self._weights("energise", x), minlength=self._size())
        fleet = np.bincount(*self._spot("fleet"), weights=self._weights("fleet", x), minlength=self._size())
        ratio = np.concatenate(
            [np.asarray(values.get(f"fleet.{s}.h100e", np.zeros(self.length)))[:periods] for s in self.skus]
            or [np.zeros(0)]
        )
        discount = self._discount()
        price = self.price_map(reading.y, values)[self.priced] / discount[None, :]
        lasting = np.cumsum((price * discount)[:, ::-1], axis=1)[:, ::-1] / discount
        limit = np.append(compiled.engine.rhs, 0.0)[self.limit_rows[:, :periods]]
        used = np.append(reading.activity, 0.0)[self.limit_rows[:, :periods]]
        share = np.divide(used, limit, out=np.zeros_like(used), where=limit > 0)
        rent = price[:, :periods] * limit * self.natural[:, None]
        blocks = [
            np.array([self._objective(x) * worth]),
            energised * flow,
            energised * flow * ratio,
            fleet * flow,
            self._finished(x, values),
            price[:, :periods].ravel(),
            lasting[:, :periods].ravel(),
            share.ravel(),
            rent.ravel(),
            *self._money(lasting, price, values),
        ]
        return np.concatenate(blocks)

    def _size(self) -> int:
        return len(self.skus) * self.periods

    def _spot(self, kind: str) -> tuple[Array]:
        return (self.where[kind][0],)

    def _weights(self, kind: str, x: Array) -> Array:
        return np.asarray(x[self.where[kind][1]])

    def _discount(self) -> Array:
        network = self.compiled.network
        if network.objective.kind == "units":
            return np.ones(self.length)
        rate = self.compiled.values.get("discount_rate")
        base = 0.0 if rate is None else float(rate[0])
        return np.asarray((1 + base) ** (-network.horizon.years * np.arange(self.length)))

    def _objective(self, x: Array) -> float:
        if not hasattr(self, "_reported"):
            keys = self.compiled.engine.matrix.columns
            self._reported = np.array([key[-1] < self.periods for _, key in keys])
        return float(self.compiled.engine.cost[self._reported] @ x[self._reported])

    def _finished(self, x: Array, values: Any) -> Array:
        target, entry, source = self.delivered
        made = self.compiled.engine.data[entry] * x[source] * self.compiled.scale.flow
        delivered = np.bincount(target, weights=made, minlength=len(self.finals) * self.periods)
        total = delivered + self._pipelines(values)
        sold = [
            np.array([self._sold(m, t, x) for t in range(self.periods)]) * self.compiled.scale.flow for m in self.sold
        ]
        return np.concatenate([total, *sold])

    def _sold(self, material: str, t: int, x: Array) -> float:
        j = self.compiled.structure.column.get(("sold", (material, t)))
        return 0.0 if j is None else float(x[j])

    def _pipelines(self, values: Any) -> Array:
        """What was started before the horizon and arrives in it."""
        from supply.optimizer.families.flows import arrival
        from supply.optimizer.parameters import Values

        out = np.zeros((len(self.finals), self.periods))
        reader = Values(values, self.length)
        for k, m in enumerate(self.finals):
            for p, lag in self.compiled.context.layout.makers[m]:
                started = values.get(f"opening.pipeline.{p}")
                if started is not None and lag > 0:
                    out[k, : min(lag, self.periods)] += arrival(p, m, lag, reader)[0] * started[0]
        return out.ravel()

    def _money(self, lasting: Array, price: Array, values: Mapping[str, Array]) -> list[Array]:
        if not self.model.rows:
            return []
        rents = self.rent_weights(lasting, price)
        hours = self.model.owner_at(values) + rents
        return [hours, rents, self.cost_at + self.cost_slope * (hours[self.cost_row] - self.cost_hour)]


def _task_slope(
    entries: list[dict[str, Any]], hours: dict[tuple[str, str], float], sku: str, row: dict[str, Any]
) -> float:
    """Slope of a task's cost in the hour of its SKU, from its rows at different hours (they lie on one line)."""
    points = sorted({(hours[sku, r["period"]], r["usd_per_verified_task"]) for r in entries})
    if len(points) > 1 and points[-1][0] - points[0][0] > 1e-6 * points[-1][0]:
        return float((points[-1][1] - points[0][1]) / (points[-1][0] - points[0][0]))
    return float(row["accelerator_hours_per_task"] or 0.0)
