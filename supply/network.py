"""The resolved supply network: the contract between scenario files and the optimum.

A `Network` is *structure* (small frozen records: which process takes what, who owns which resource, which windows
apply) plus *numbers*: `values`, a dictionary from a dotted path (docs/scenario_language.md, "Paths") to an array over
`horizon.length` = reported periods + tail. A draw, a tornado step or an edit is a new array for a path, nothing else.

Units inside `values` (natural units, per period of the horizon; the optimiser scales them itself):

| path | unit |
|---|---|
| `discount_rate` | per year |
| `materials.M.holding_cost` | USD per unit and period |
| `processes.P.input.M`, `.output.M`, `.uses.R` | units per unit started |
| `processes.P.yield` (all outputs without their own), `.yield.M` | fraction of the output, by start period |
| `processes.P.lead_time` | periods (a quarter is 13 weeks), by start period |
| `processes.P.cost` | USD per unit started |
| `processes.P.ramp`, `.run_down`, `.floor` | factor a period, share of the period before, units a period |
| `resources.R.capacity` | units per period; MW (mean level of the period) where `stage` is `power` |
| `fleet.S.kw_planning`, `.survival`, `.value`, `.h100e` | kW, share kept a period, USD per accelerator-hour, ratio |
| `fleet.S.life`, `.wear_out`, `.opening_age` | mean life in periods, its Weibull shape, mean age of the opening fleet |
| `fleet.S.survival_by_age` | share of a vintage left at age 0, 1 ... (instead of life) |
| `fleet.S.opening.G`, `.energising_cost`, `.purchase_cost` | accelerators; USD per accelerator |
| `fleet.S.tastes.K.share`, `.discount` | share of the designer's fleet, fraction of the value lost (K = 0, 1, ...) |
| `demand.M.price`, `.quantity`, `.cancel` | USD per unit, units a period, share of the backlog lost a period |
| `demand.D.reference`, `.steps.K.share`, `.steps.K.discount` | accelerators, share of the reference, fraction lost |
| `contracts.C.greatest_share`, `.least_share` | share of the resource's capacity |
| `contracts.C.greatest`, `.least` | resource units a period |
| `contracts.C.take_or_pay` | USD per resource unit short of the least |
| `expansions.E.capex`, `.lump`, `.greatest` | USD per unit of capacity, units, units a period |
| `expansions.E.lead_time`, `.life` | periods, years |
| `disruptions.D.remaining` | share of capacity left |
| `regions.G.least_share`, `.greatest_share` | share of the accelerators energised in the period |
| `opening.stock.M`, `opening.pipeline.P` | units; units started in every period before the horizon |
| `costs.life` | years over which capital-like costs are spread (absent: charged at once) |
| `costs.capex_budget.O` | USD a period for expansions of owner O; what is not spent is kept |

Numbers that do not change with time (opening, discount rate, life, lead time of an expansion) are arrays too; their
first entry is used. Optional numbers are absent, never NaN. `supply.consistency.check` finds everything that is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

HOURS_PER_YEAR = 8766.0
"""Mean year: every quarter has the same hours, so that prices do not jitter with the days of a month."""
WEEKS_PER_QUARTER = 13.0

STAGES = ("fab", "hbm", "packaging", "test", "server", "rack", "power", "datacenter")
"""The reader's order of stages; other words are accepted and shown last."""


class NetworkError(ValueError):
    """A network that cannot be built: the place, the offending value and what to do."""


@dataclass(frozen=True)
class Horizon:
    """Reported periods and a tail that is solved but not reported.

    >>> h = Horizon("2024-Q3", periods=2, tail=1)
    >>> h.labels(), h.hours(0), h.index("2025-Q1"), h.length
    (['2024-Q3', '2024-Q4', '2025-Q1'], 2191.5, 2, 3)
    >>> Horizon("2024-11", periods=3, step="month").labels()
    ['2024-11', '2024-12', '2025-01']
    """

    start: str
    periods: int
    step: str = "quarter"
    tail: int = 0

    def __post_init__(self) -> None:
        if self.step not in ("quarter", "month"):
            raise NetworkError(f"horizon.step: {self.step!r} is not quarter or month")
        if self.periods < 1 or self.tail < 0:
            raise NetworkError(f"horizon: {self.periods} periods and a tail of {self.tail}; need at least 1 and 0")
        self._ordinal(self.start)

    def _ordinal(self, label: str) -> int:
        pattern, per_year = (r"(\d{4})-Q([1-4])", 4) if self.step == "quarter" else (r"(\d{4})-(0[1-9]|1[0-2])", 12)
        found = re.fullmatch(pattern, label)
        if not found:
            example = "2026-Q1" if self.step == "quarter" else "2026-01"
            raise NetworkError(f"horizon: {label!r} is not a {self.step}; write it like {example}")
        return int(found[1]) * per_year + int(found[2]) - 1

    @property
    def length(self) -> int:
        """Reported periods + tail: the length of every array in `Network.values`."""
        return self.periods + self.tail

    @property
    def months(self) -> int:
        """Months in a period: 3 or 1."""
        return 3 if self.step == "quarter" else 1

    @property
    def years(self) -> float:
        """Years in a period: 0.25 or 1/12."""
        return self.months / 12

    def hours(self, t: int = 0) -> float:
        """Hours in period `t` (of a mean year, the same for every period)."""
        return HOURS_PER_YEAR * self.years

    @property
    def weeks(self) -> float:
        """Weeks in a period: 13 for a quarter, so that 13 weeks of lead time are exactly one period."""
        return WEEKS_PER_QUARTER * self.months / 3

    def labels(self) -> list[str]:
        """Labels of all periods, tail included."""
        first = self._ordinal(self.start)
        return [self.label(t, first) for t in range(self.length)]

    def label(self, t: int, first: int | None = None) -> str:
        """Label of period `t` (0 is the start; may lie before or after the horizon)."""
        ordinal = (self._ordinal(self.start) if first is None else first) + t
        if self.step == "quarter":
            return f"{ordinal // 4:04d}-Q{ordinal % 4 + 1}"
        return f"{ordinal // 12:04d}-{ordinal % 12 + 1:02d}"

    def index(self, label: str) -> int:
        """Period number of a label; negative before the start. Raises `NetworkError` for another form."""
        return self._ordinal(label) - self._ordinal(self.start)


@dataclass(frozen=True)
class Material:
    """What flows; `unit` is any counting word."""

    id: str
    unit: str = "unit"
    stage: str = ""
    title: str = ""


@dataclass(frozen=True)
class Process:
    """Turns `input` into `output` at a site; starts run from period `first` to `last` (inclusive; None = no end).

    `known_from`: the period from which the *end* is known (rolling runs); None = always known.
    """

    id: str
    output: tuple[str, ...]
    input: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    stage: str = ""
    title: str = ""
    supplier: str = ""
    owner: str = ""
    region: str = ""
    first: int = 0
    last: int | None = None
    known_from: int | None = None


@dataclass(frozen=True)
class Resource:
    """A capacity that processes share; with stage `power` and a region, a limit on the planning MW of the fleet."""

    id: str
    stage: str = ""
    unit: str = "unit"
    title: str = ""
    supplier: str = ""
    owner: str = ""
    region: str = ""

    @property
    def is_power(self) -> bool:
        """True for the power row of a region (fleet MW), False for a capacity used by process starts."""
        return self.stage == "power" and bool(self.region)


@dataclass(frozen=True)
class FleetSku:
    """An accelerator type in operation: drawn from stock of `material`, energised in `regions`."""

    id: str
    material: str
    regions: tuple[str, ...]
    designer: str = ""
    title: str = ""
    first: int = 0
    last: int | None = None
    early_retirement: bool = False
    tastes: int = 0


@dataclass(frozen=True)
class Demand:
    """Final sale of a material; `unmet` is lost, backlog, or never (must be met in full)."""

    material: str
    unmet: str = "lost"


@dataclass(frozen=True)
class Segment:
    """Price-responsive demand for a designer's whole fleet, in `steps` steps."""

    designer: str
    steps: int


@dataclass(frozen=True)
class Contract:
    """Limits on what `processes` (ids, patterns already expanded) may or must take of `resource`."""

    id: str
    resource: str
    processes: tuple[str, ...]
    first: int = 0
    last: int | None = None


@dataclass(frozen=True)
class Expansion:
    """An option to build capacity of `resource` from period `first` on; lumpy where `expansions.ID.lump` is given."""

    id: str
    resource: str
    owner: str = ""
    kind: str = "greenfield"
    first: int = 0
    last: int | None = None


@dataclass(frozen=True)
class Disruption:
    """A loss of capacity from `first` to `last` (inclusive), then back to full over `ramp_back` periods.

    `target` is "resource" or "process", `subject` its id; known from period `known_from` on (rolling runs).
    """

    id: str
    subject: str
    first: int
    last: int
    target: str = "resource"
    ramp_back: float = 0.0
    known_from: int | None = None


@dataclass(frozen=True)
class Region:
    """Where accelerators stand; `regions.ID.least_share` and `.greatest_share` limit siting."""

    id: str
    title: str = ""


@dataclass(frozen=True)
class Objective:
    """`kind`: value, compute or units; `costs`: manufacturing (what binds) or purchase (how many are bought)."""

    kind: str = "value"
    costs: str = "manufacturing"


@dataclass(frozen=True)
class Regime:
    """`foresight`, or `rolling` with the number of periods seen ahead."""

    kind: str = "foresight"
    look_ahead: int = 4


@dataclass(frozen=True)
class Opening:
    """`at_capacity`: fill pipelines that are not given by a warm-up at the opening capacities (marked illustrative)."""

    at_capacity: bool = False


def _by_id(records: Iterable[Any], key: str = "id") -> dict[str, Any]:
    table: dict[str, Any] = {}
    for record in records:
        name = getattr(record, key)
        if name in table:
            raise NetworkError(f"{type(record).__name__.lower()} {name!r} is defined twice")
        table[name] = record
    return table


@dataclass(frozen=True)
class Network:
    """Structure plus `values`. Build it with `Network.build`; change numbers with `with_values`."""

    horizon: Horizon
    materials: dict[str, Material]
    processes: dict[str, Process]
    resources: dict[str, Resource]
    values: dict[str, Array]
    demand: dict[str, Demand] = field(default_factory=dict)
    segments: dict[str, Segment] = field(default_factory=dict)
    fleet: dict[str, FleetSku] = field(default_factory=dict)
    contracts: dict[str, Contract] = field(default_factory=dict)
    expansions: dict[str, Expansion] = field(default_factory=dict)
    disruptions: dict[str, Disruption] = field(default_factory=dict)
    regions: dict[str, Region] = field(default_factory=dict)
    objective: Objective = Objective()
    regime: Regime = Regime()
    opening: Opening = Opening()
    title: str = ""

    @classmethod
    def build(
        cls,
        horizon: Horizon,
        materials: Iterable[Material],
        processes: Iterable[Process],
        resources: Iterable[Resource] = (),
        values: Mapping[str, ArrayLike] | None = None,
        *,
        demand: Iterable[Demand] = (),
        segments: Iterable[Segment] = (),
        fleet: Iterable[FleetSku] = (),
        contracts: Iterable[Contract] = (),
        expansions: Iterable[Expansion] = (),
        disruptions: Iterable[Disruption] = (),
        regions: Iterable[Region] = (),
        objective: Objective = Objective(),
        regime: Regime = Regime(),
        opening: Opening = Opening(),
        title: str = "",
    ) -> Network:
        """Network from records and numbers; a scalar or a shorter array is held over the whole horizon.

        >>> n = Network.build(Horizon("2026-Q1", 2), [Material("die")], [Process("make", ("die",))],
        ...                   values={"processes.make.output.die": 1, "processes.make.cost": [1, 2]})
        >>> n.values["processes.make.cost"]
        array([1., 2.])

        Raises `NetworkError` for an id that is defined twice or an array that is too long.
        """
        numbers = {path: spread(path, value, horizon.length) for path, value in (values or {}).items()}
        return cls(
            horizon,
            _by_id(materials),
            _by_id(processes),
            _by_id(resources),
            numbers,
            _by_id(demand, "material"),
            _by_id(segments, "designer"),
            _by_id(fleet),
            _by_id(contracts),
            _by_id(expansions),
            _by_id(disruptions),
            _by_id(regions),
            objective,
            regime,
            opening,
            title,
        )

    def get(self, path: str, default: float | None = None) -> Array:
        """Array of a path; `default` held over the horizon where it has no value.

        Raises `NetworkError` where the path has neither a value nor a default.
        """
        found = self.values.get(path)
        if found is not None:
            return found
        if default is None:
            raise NetworkError(f"{path}: no value; give one in the scenario")
        return np.full(self.horizon.length, float(default))

    def scalar(self, path: str, default: float | None = None) -> float:
        """First entry of a path, for numbers that do not change with time."""
        return float(self.get(path, default)[0])

    def match(self, pattern: str) -> list[str]:
        """Paths that match a pattern (`*` inside an id), sorted.

        Raises `NetworkError` where none does, naming the nearest paths.
        """
        parts = pattern.split(".")
        found = [
            path
            for path in self.values
            if len(split := path.split(".")) == len(parts) and all(map(fnmatchcase, split, parts))
        ]
        if not found:
            from difflib import get_close_matches

            near = get_close_matches(pattern, self.values, n=3)
            raise NetworkError(f"{pattern}: no such number" + (f"; did you mean {', '.join(near)}?" if near else ""))
        return sorted(found)

    def with_values(self, changes: Mapping[str, ArrayLike]) -> Network:
        """The same structure with new numbers for some paths (new paths are allowed where the structure uses them)."""
        spreaded = {path: spread(path, value, self.horizon.length) for path, value in changes.items()}
        return replace(self, values={**self.values, **spreaded})


def spread(path: str, value: ArrayLike, length: int) -> Array:
    """Number or array as an array of `length`; the last entry is held.

    >>> spread("x", [1, 2], 4)
    array([1., 2., 2., 2.])
    """
    array = np.atleast_1d(np.asarray(value, dtype=float))
    if array.ndim != 1 or not 1 <= len(array) <= length:
        raise NetworkError(f"{path}: shape {array.shape} does not fit {length} periods")
    if len(array) < length:
        array = np.concatenate([array, np.full(length - len(array), array[-1])])
    return array


def in_window(first: int, last: int | None, t: int) -> bool:
    """True where period `t` lies in the window, both ends included."""
    return t >= first and (last is None or t <= last)
