"""Where wafers become running accelerators, and where they are lost: flows between stages in one unit.

The unit is the accelerator-equivalent: what one accelerator needs of a thing counts as one. The chain followed is that
of the logic dies: at every process the input that comes from the earliest stage. Memory joins at packaging with the
same number of equivalents and is not counted a second time. Read from the tables of a run alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from supply.graph import stage_rank
from supply.network import Array, Horizon
from supply.optimizer.families.flows import arrival
from supply.optimizer.parameters import Values

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FLOW_COLUMNS", "Chain", "FlowError", "supply_flow"]

FLOW_COLUMNS = ["source", "target", "kind", "accelerators"]
#: Relative difference up to which inflow and outflow count as equal.
TOLERANCE = 1e-6
_LAGS = 40


class FlowError(ValueError):
    """A run whose flows cannot be followed or do not add up; the message says where."""


def supply_flow(results: pd.DataFrame, inputs: pd.DataFrame, year: str) -> pd.DataFrame:
    """Flows of a year from the first stage to energised accelerators, in accelerator-equivalents.

    Columns source, target, kind, accelerators. Sources and targets are stages (`fab`, `packaging`, ...), `energised`
    (or `sold`), `energised:REGION`, and `start`, `loss`, `stock`; kind is start, flow, loss or stock. For every stage:
    started + taken from stock = passed on + lost + added to stock, where stock holds work in progress too.

    Args:
        results: the run's table of results.
        inputs: the run's table of inputs.
        year: first letters of the periods, such as 2026.

    Raises:
        FlowError: when the run has no such periods, or what arrives does not equal what was energised.
    """
    import pandas as pd

    rows = _netted(Chain(results, inputs, year).rows())
    most = max((v for *_, v in rows), default=0.0)
    kept = [r for r in rows if r[3] > TOLERANCE * most]
    return pd.DataFrame(kept, columns=FLOW_COLUMNS)


def _netted(rows: list[tuple[str, str, str, float]]) -> list[tuple[str, str, str, float]]:
    """Flows summed by pair of stages, steps inside a stage left out, one stock change (in or out) a stage."""
    sums: dict[tuple[str, str, str], float] = {}
    change: dict[str, float] = {}
    for source, target, kind, value in rows:
        if kind == "stock":
            stage, sign = (source, 1.0) if target == "stock" else (target, -1.0)
            change[stage] = change.get(stage, 0.0) + sign * value
        elif source != target:
            sums[source, target, kind] = sums.get((source, target, kind), 0.0) + value
    order = sorted(sums, key=lambda k: (stage_rank(k[0]) if k[0] != "start" else -1, stage_rank(k[1]), k))
    out = [(*key, sums[key]) for key in order]
    for stage in sorted(change, key=lambda x: (stage_rank(x), x)):
        _stock(stage, change[stage], out)
    return out


@dataclass
class Chain:
    """Processes, materials and weights of one run over one year."""

    results: pd.DataFrame
    inputs: pd.DataFrame
    year: str

    def __post_init__(self) -> None:
        labels = sorted(set(self.results.loc[self.results["period"] != "", "period"]))
        shown = [p for p in labels if p.startswith(self.year)]
        if not shown:
            raise FlowError(f"no period of this run starts with {self.year!r}; it holds {labels[0]} to {labels[-1]}")
        step = "quarter" if "Q" in labels[0] else "month"
        self.horizon = Horizon(labels[0], len(labels), step)
        self.first, self.last = self.horizon.index(shown[0]), self.horizon.index(shown[-1])
        self.numbers = _numbers(self.inputs, self.horizon)
        self.values = Values(self.numbers, self.horizon.length)

    @cached_property
    def stages(self) -> dict[str, str]:
        """Stage of each process."""
        rows = self.results[self.results["quantity"] == "starts"]
        return dict(zip(rows["subject"], rows["stage"], strict=True))

    def _links(self, word: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {p: [] for p in self.stages}
        for path in self.numbers:
            parts = path.split(".")
            if parts[0] == "processes" and parts[2] == word and len(parts) == 4 and parts[1] in found:
                found[parts[1]].append(parts[3])
        return found

    @cached_property
    def outputs(self) -> dict[str, list[str]]:
        """Materials that a process makes."""
        return self._links("output")

    @cached_property
    def all_inputs(self) -> dict[str, list[str]]:
        """Materials that a process takes."""
        return self._links("input")

    @cached_property
    def makers(self) -> dict[str, list[str]]:
        """Processes that make a material."""
        found: dict[str, list[str]] = {}
        for process, materials in self.outputs.items():
            for m in materials:
                found.setdefault(m, []).append(process)
        return found

    def _origin(self, material: str, seen: frozenset[str] = frozenset()) -> int:
        """Rank of the earliest stage upstream of a material."""
        ranks = [stage_rank("~")]
        for p in self.makers.get(material, []):
            ranks.append(stage_rank(self.stages[p]))
            ranks += [self._origin(m, seen | {material}) for m in self.all_inputs[p] if m not in seen]
        return min(ranks)

    @cached_property
    def main(self) -> dict[str, str]:
        """The input that is followed, by process; the processes that start the chain are not in it."""
        return {p: min(ms, key=self._origin) for p, ms in self.all_inputs.items() if ms}

    def series(self, quantity: str, subject: str) -> Array:
        """A quantity by period, 0 where the run has no row."""
        found = self._series.get((quantity, subject))
        return np.zeros(self.horizon.length) if found is None else found

    @cached_property
    def _series(self) -> dict[tuple[str, str], Array]:
        rows = self.results[self.results["quantity"].isin(["starts", "stock"])]
        sums = rows.groupby(["quantity", "subject", "period"])["value"].sum().unstack("period")
        wide = sums.reindex(columns=self.horizon.labels()).fillna(0.0)
        return dict(zip(wide.index, wide.to_numpy(dtype=float), strict=True))

    def window_sum(self, flow: Array) -> float:
        """Sum of a series over the periods of the year."""
        return float(flow[self.first : self.last + 1].sum())

    def arrived(self, process: str, material: str, whole: bool = False) -> Array:
        """Units that a process delivers by period; `whole`: before yield."""
        total = np.zeros(self.horizon.length)
        starts, pipeline = self.series("starts", process), f"opening.pipeline.{process}"
        for lag in range(_LAGS):
            rate = np.broadcast_to(arrival(process, material, lag, self.values), total.shape)
            if lag and not np.any(rate):
                if not self.values.given(f"processes.{process}.lead_time") or lag > 12:
                    break
                continue
            if whole:
                rate = rate / self._yield(process, material)
            total[lag:] += (rate * starts)[: len(total) - lag]
            if lag and self.values.given(pipeline):
                total[:lag] += rate[0] * self.values(pipeline)[0]
            if not self.values.given(f"processes.{process}.lead_time"):
                break
        return total

    def _yield(self, process: str, material: str) -> Array:
        own = f"processes.{process}.yield.{material}"
        if self.values.given(own):
            return np.asarray(self.values(own))
        return np.asarray(self.values(f"processes.{process}.yield", 1.0))

    @cached_property
    def weights(self) -> dict[str, float]:
        """Accelerator-equivalents of a unit of each followed material."""
        found: dict[str, float] = {}
        for material in self.makers:
            self._weight(material, found)
        return found

    def _weight(self, material: str, found: dict[str, float]) -> float:
        if material in found:
            return found[material]
        takers = [p for p, m in self.main.items() if m == material]
        if not takers:
            found[material] = 1.0
            return 1.0
        each = [sum(self._output(p, m) * self._weight(m, found) for m in self.outputs[p]) for p in takers]
        need = [float(self.values(f"processes.{p}.input.{material}")[self.first]) for p in takers]
        amount = [self.window_sum(self.series("starts", p)) for p in takers]
        amount = amount if sum(amount) > 0 else [1.0] * len(takers)
        worth = sum(a * e for a, e in zip(amount, each, strict=True))
        found[material] = worth / sum(a * n for a, n in zip(amount, need, strict=True))
        return found[material]

    def _output(self, process: str, material: str) -> float:
        return float(np.broadcast_to(self.values(f"processes.{process}.output.{material}"), self.horizon.length)[0])

    @cached_property
    def followed(self) -> list[str]:
        """Processes on the chain of the logic die: from those that reach the end backwards."""
        ends = [m for m in self.makers if m not in {x for ms in self.all_inputs.values() for x in ms}]
        front, seen = list(ends), []
        while front:
            for p in self.makers.get(front.pop(), []):
                if p not in seen:
                    seen.append(p)
                    front += [self.main[p]] if p in self.main else []
        return seen

    def rows(self) -> list[tuple[str, str, str, float]]:
        """All flows, several a pair of stages."""
        out: list[tuple[str, str, str, float]] = []
        for p in self.followed:
            self._process_rows(p, out)
        arrived = sum(v for _, target, _, v in out if target == "end")
        return [(s, self._end if t == "end" else t, k, v) for s, t, k, v in out] + self._end_rows(arrived)

    def equivalents(self, process: str) -> float:
        """Accelerator-equivalents of one start of a process."""
        return float(sum(self._output(process, m) * self.weights[m] for m in self.outputs[process]))

    def _process_rows(self, p: str, out: list[tuple[str, str, str, float]]) -> None:
        stage = self.stages[p]
        started = self.equivalents(p) * self.window_sum(self.series("starts", p))
        if p not in self.main:
            out.append(("start", stage, "start", started))
        gross = good = 0.0
        for m in self.outputs[p]:
            weight, mine = self.weights[m], self.window_sum(self.arrived(p, m))
            gross += weight * self.window_sum(self.arrived(p, m, whole=True))
            good += weight * mine
            self._material_rows(p, m, mine, out)
        out.append((stage, "loss", "loss", gross - good))
        _stock(stage, started - gross, out)

    def _material_rows(self, p: str, m: str, mine: float, out: list[tuple[str, str, str, float]]) -> None:
        """What became of the units that a process delivered: its share of every taker and of the stock change."""
        stage, weight = self.stages[p], self.weights[m]
        total = sum(self.window_sum(self.arrived(q, m)) for q in self.makers[m])
        share = mine / total if total > 0 else 1.0 / len(self.makers[m])
        change = self._stock_change(m)
        _stock(stage, share * weight * change, out)
        left = total - change
        for q, materials in self.all_inputs.items():
            if m in materials:
                used = self.window_sum(self.series("starts", q) * self.values(f"processes.{q}.input.{m}"))
                out.append((stage, self.stages[q], "flow", share * weight * used))
                left -= used
        if m not in {x for ms in self.all_inputs.values() for x in ms} or left > TOLERANCE * max(total, 1.0):
            out.append((stage, "end", "flow", share * weight * left))

    def _stock_change(self, m: str) -> float:
        stock = self.series("stock", m)
        before = float(self.values(f"opening.stock.{m}", 0.0)[0]) if self.first == 0 else float(stock[self.first - 1])
        return float(stock[self.last]) - before

    @cached_property
    def _end(self) -> str:
        return "energised" if (self.results["quantity"] == "energised").any() else "sold"

    def _end_rows(self, arrived: float) -> list[tuple[str, str, str, float]]:
        """Energised accelerators by region; what more there is than arrived stood ready before the first period."""
        if self._end == "sold":
            return []
        rows = self.results[
            (self.results["quantity"] == "energised") & self.results["period"].str.startswith(self.year)
        ]
        by_region = rows.groupby("region")["value"].sum()
        total = float(by_region.sum())
        old = total - arrived - self._idle_change()
        allowed = TOLERANCE * max(total, 1.0)
        if old < -allowed or (old > allowed and self.first > 0):
            raise FlowError(
                f"{self.year}: {arrived:,.0f} accelerators arrived for energising and {total:,.0f} were energised: "
                "the tables of this run do not belong together"
            )
        out = [("stock", "energised", "stock", total - arrived)] if total - arrived > allowed else []
        return out + [("energised", f"energised:{g}", "flow", float(v)) for g, v in by_region.items()]

    def _idle_change(self) -> float:
        """Fall of the stock of finished accelerators that nothing in this run makes (older products)."""
        made = set(self.makers)
        names = {s for q, s in self._series if q == "stock" and s not in made}
        return -sum(self._stock_change(m) for m in names) if self.first > 0 else 0.0


def _stock(stage: str, change: float, out: list[tuple[str, str, str, float]]) -> None:
    """A rise of stock leaves the stage, a fall enters it."""
    out.append((stage, "stock", "stock", change) if change >= 0 else ("stock", stage, "stock", -change))


def _numbers(inputs: pd.DataFrame, horizon: Horizon) -> Mapping[str, Array]:
    """Arrays by path over the reported periods, from the rows of the inputs."""
    wanted = inputs[inputs["path"].str.startswith(("processes.", "opening."))]
    found: dict[str, Array] = {}
    rows: Any = zip(wanted["path"], wanted["period"], wanted["to"], wanted["value"], strict=True)
    for path, first, last, value in rows:
        array = found.setdefault(path, np.full(horizon.length, np.nan))
        if not first:
            array[:] = value
            continue
        array[max(0, horizon.index(first)) : horizon.index(last or first) + 1] = value
    return found
