"""The inputs under the sliders of the app: which numbers each moves, over which range, and how a file says it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reports.wording import plain
from scenarios.nodes import Array, Draw, outer_range
from scenarios.titles import path_title

if TYPE_CHECKING:
    from scenarios.resolve import Resolved

__all__ = ["Control", "addresses", "control_of", "edited", "edits", "usual_controls"]

#: What an analyst moves first, by how far each moves the base headline: address (group, pattern or path) -> title.
_USUAL = {
    "power": "Energised power",
    "costs.power_used_of_peak": "Watts a plan reserves, of peak",
    "memory": "HBM wafer capacity",
    "yield": "Yields: dies, stacks, packages",
    "packaging": "CoWoS capacity",
    "costs.survival": "Fleet kept each quarter",
    "costs.rental": "Rental price of an H100-hour",
    "discount_rate": "Discount rate",
    "costs.hbm_use": "HBM wafers that yield accelerator memory",
    "costs.cowos_use": "CoWoS capacity in use",
    "costs.sold_share": "Share of hours sold",
    "costs.electricity": "Electricity price",
}
MOST = 8
_WHOLE = ("discount_rate", "costs.life")
_PLACES = 4


@dataclass(frozen=True)
class Control:
    """One slider: a factor in percent of the base (`kind` scale) or a value that holds in every period (`kind` value).

    `start`, `stop` and `step` bound the slider; `low` and `high` are the range of the sources in the same unit, None
    where the sources give none. `natural` is the amount that the year sees: sum of capacities, mean of the rest.
    """

    id: str
    title: str
    address: str
    paths: tuple[str, ...]
    kind: str
    unit: str
    base: float
    low: float | None
    high: float | None
    start: float
    stop: float
    step: float
    natural: float
    natural_unit: str
    kinds: tuple[str, ...]

    @property
    def label(self) -> str:
        """Title with its unit, as it is shown and spoken."""
        return f"{self.title}, {self.unit}" if self.unit else self.title

    def outside(self, setting: float) -> bool:
        """Whether a setting lies outside the range of the sources."""
        if self.low is None or self.high is None:
            return False
        return not self.low - 1e-9 <= setting <= self.high + 1e-9

    def amount(self, setting: float) -> float:
        """Amount in the focus year at a setting, in `natural_unit` (yields may stop at their upper bound earlier)."""
        return self.natural * setting / self.base if self.base else setting

    def caption(self, setting: float, year: str) -> str:
        """What the setting means, with its sources: `13,900 MW in 2026, base 12,600; sources 9,600 to 17,700`."""
        if self.kind == "value":
            ends = "" if self.low is None or self.high is None else f"; sources {self.low:g} to {self.high:g}"
            return f"base {self.base:g}{ends or '; the sources give no range'}"
        unit = f" {self.natural_unit}" if self.natural_unit else ""
        now = f"{plain(self.amount(setting))}{unit} in {year}"
        base = f", base {plain(self.natural)}" if abs(setting - self.base) > 1e-9 else ""
        if self.low is None or self.high is None:
            return f"{now}{base}; the sources give no range"
        return f"{now}{base}; sources {plain(self.amount(self.low))} to {plain(self.amount(self.high))}"


def usual_controls(resolved: Resolved, year: str, study: Sequence[str] = ()) -> list[Control]:
    """The usual inputs that a scenario has; where it has none of them, its capacities and yields.

    `study`: inputs of a stored study of the scenario (`headline`), the one that could overturn most first. They set the
    order, and a number of theirs that is no usual input gets a slider too.
    """
    chosen = [a for a in _USUAL if _found(resolved, a)]
    if not chosen:
        chosen = [p for p in resolved.nodes if p.endswith(".capacity") or ".yield" in p]
    if study:
        offered = set(addresses(resolved).values())
        chosen = list(dict.fromkeys([*chosen, *(name for name in study if name in offered)]))
        chosen.sort(key=lambda address: _place(resolved, address, study))
    return [control_of(resolved, address, year) for address in chosen[:MOST]]


def _place(resolved: Resolved, address: str, study: Sequence[str]) -> int:
    """Place of the first input of a study that is this address, or a fact or series behind its numbers."""
    sources = (resolved.nodes[path].source for path in resolved.matching(address))
    facts = {name.partition("@")[0] for source in sources for names in source.facts for name in names}
    return next((k for k, n in enumerate(study) if n == address or n.partition(" ")[2] in facts), len(study))


def addresses(resolved: Resolved) -> dict[str, str]:
    """Everything that may stand under a slider: title -> address, the usual inputs first, titles unique."""
    usual = {title: address for address, title in _USUAL.items() if _found(resolved, address)}
    rest = {a: f"Group: {a}" for a in resolved.scenario.file.groups if a not in _USUAL}
    for path, node in resolved.nodes.items():
        if path not in _USUAL and not path.endswith((".lead_time", ".life")) and np.any(node.value != 0):
            rest[path] = path_title(path, resolved.network)
    out = dict(usual)
    for address, title in rest.items():
        out[title if title not in out else f"{title} ({address})"] = address
    return out


def _found(resolved: Resolved, address: str) -> bool:
    return address in resolved.nodes or address in resolved.scenario.file.groups


def control_of(resolved: Resolved, address: str, year: str) -> Control:
    """The slider of a path, pattern or group.

    Raises:
        ScenarioError: when the address names no number.
    """
    paths = tuple(resolved.matching(address))
    inside = _inside(resolved, year)
    nodes = [resolved.nodes[p] for p in paths]
    total = all(p.endswith((".capacity", ".reference")) for p in paths)
    join = np.sum if total else np.mean
    value = float(join([np.mean(n.value[inside]) for n in nodes]))
    ends = [outer_range(n) for n in nodes]
    low, high = (float(join([np.mean(end[k][inside]) for end in ends])) for k in (0, 1))
    ranged = high > low
    unit = resolved.measures[paths[0]].label.replace("/period", f"/{_period(resolved)}")
    unit = "" if unit in ("fraction", "ratio", "unit", f"fraction/{_period(resolved)}") else unit
    kinds = tuple(dict.fromkeys(k for n in nodes for k in n.source.kinds))
    title = _USUAL.get(address) or (
        path_title(address, resolved.network) if address in resolved.nodes else address.replace("_", " ").capitalize()
    )
    constant = len(paths) == 1 and unit == "" and np.ptp(nodes[0].value) == 0 and value != 0
    bounds = _bounds(resolved, paths[0])
    constant = len(paths) == 1 and unit == "" and np.ptp(nodes[0].value) == 0 and value != 0
    span = _value_span(value, low, high, bounds) if constant else _scale_span(value, low, high)
    ends_in_unit = (None, None) if not ranged else (low, high) if constant else (100 * low / value, 100 * high / value)
    return Control(
        id=address.replace(".", "_").replace("*", "all"),
        title=title,
        address=address,
        paths=paths,
        kind="value" if constant else "scale",
        unit=("share" if value <= 1 else "") if constant else "% of base",
        base=value if constant else 100.0,
        low=ends_in_unit[0],
        high=ends_in_unit[1],
        start=span[0],
        stop=span[1],
        step=span[2],
        natural=value,
        natural_unit=unit if total or len(paths) == 1 else "",
        kinds=kinds,
    )


def _scale_span(value: float, low: float, high: float) -> tuple[float, float, float]:
    """Ends and step of a factor in percent: half to one and a half times the base, and the range of the sources."""
    ends = (100 * low / value, 100 * high / value) if value > 0 else (100.0, 100.0)
    return max(5.0, min(50.0, float(np.floor(ends[0])))), min(300.0, max(150.0, float(np.ceil(ends[1])))), 1.0


def _value_span(value: float, low: float, high: float, bounds: tuple[float, float]) -> tuple[float, float, float]:
    """Ends and step of a value: the range of the sources and a quarter of it beyond each end, inside its bounds."""
    near, far = (low, high) if high > low else (value * 0.5, value * 1.5)
    wide = 0.25 * (far - near)
    size = float(10.0 ** np.floor(np.log10((far - near + 2 * wide) / 100.0)))
    step = next(s for s in (size, 2 * size, 5 * size, 10 * size) if (far - near + 2 * wide) / s <= 100.0)
    # the steps are counted from the base, so that the base is one of them
    down = np.floor((value - max(bounds[0], near - wide)) / step + 1e-9)
    up = np.floor((min(bounds[1], far + wide) - value) / step + 1e-9)
    start, stop = (float(np.round(value + k * step, 9)) for k in (-down, up))
    return start, stop, float(np.round(step, 9))


def _bounds(resolved: Resolved, path: str) -> tuple[float, float]:
    leaf = resolved.scenario.leaves.get(path)
    return (leaf.spec.lower, leaf.spec.upper) if leaf is not None else (-np.inf, np.inf)


def _inside(resolved: Resolved, year: str) -> Any:
    labels = resolved.horizon.labels()
    inside = np.array([label.startswith(year) for label in labels])
    return inside if inside.any() else np.ones(len(labels), dtype=bool)


def _period(resolved: Resolved) -> str:
    return "quarter" if resolved.horizon.months == 3 else "month"


def edits(
    resolved: Resolved, controls: Iterable[Control], settings: Mapping[str, float], start: str = ""
) -> list[tuple[str, dict[str, Any]]]:
    """The settings as entries of `set`: (address, edit); settings at the base make none.

    A factor that would carry a yield above its bound stops there; then every path has its own entry.
    """
    out: list[tuple[str, dict[str, Any]]] = []
    for control in controls:
        setting = settings.get(control.id, control.base)
        if abs(setting - control.base) < 1e-9:
            continue
        note = f"set in the app: {plain(setting, _PLACES)} {control.unit}, base {plain(control.base, _PLACES)}".strip()
        window = {"from": start} if start and control.address not in _WHOLE else {}
        if control.kind == "value":
            out.append((control.address, {"replace": setting, **window, "note": note}))
            continue
        factor = round(setting / control.base, 6)
        factors = {p: min(factor, _most(resolved, p)) for p in control.paths}
        if all(f == factor for f in factors.values()):
            out.append((control.address, {"scale": factor, **window, "note": note}))
        else:
            out += [(p, {"scale": f, **window, "note": note}) for p, f in factors.items()]
    return out


def _most(resolved: Resolved, path: str) -> float:
    """Greatest factor that keeps a number inside the bound of its field."""
    upper, value = _bounds(resolved, ".".join(path.split(".")[:3]))[1], float(np.max(resolved.nodes[path].value))
    return float(np.floor(1e6 * upper / value) / 1e6) if np.isfinite(upper) and value > 0 else np.inf


def edited(
    resolved: Resolved, entries: Iterable[tuple[str, Mapping[str, Any]]], draw: Draw | None = None
) -> dict[str, Array]:
    """Numbers of the edited paths after the edits: path -> rows of draws x periods.

    A path that refers to another edited one follows it, as in a file; so the edits are applied until nothing moves.
    """
    draw = draw or Draw()
    labels = resolved.horizon.labels()
    by_path: dict[str, list[Mapping[str, Any]]] = {}
    for address, edit in entries:
        for path in resolved.matching(address):
            by_path.setdefault(path, []).append(edit)
    found: dict[str, Array] = {}
    for _ in range(len(by_path) + 1):
        before = found
        found = {}
        for path, applied in by_path.items():
            others = {p: a for p, a in before.items() if p != path}
            found[path] = _apply(resolved.nodes[path].at(Draw(draw.ranks, others)), applied, labels)
        if all(np.array_equal(found[p], before.get(p, np.nan)) for p in found):
            break
    return found


def _apply(array: Array, applied: Iterable[Mapping[str, Any]], labels: list[str]) -> Array:
    out = np.array(np.atleast_2d(array), dtype=float, copy=True)
    for edit in applied:
        first = labels.index(edit["from"]) if "from" in edit else 0
        if "scale" in edit:
            out[:, first:] *= edit["scale"]
        else:
            out[:, first:] = edit["replace"]
    return out
