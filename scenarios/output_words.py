"""Outputs and inputs as a reader calls them: titles, units, and the value of an input at the ends of its range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from scenarios.nodes import Draw
from scenarios.outputs import parse_output
from scenarios.titles import driver_title, path_title

if TYPE_CHECKING:
    from scenarios.resolve import Resolved
    from supply.network import Network

__all__ = ["InputValues", "input_title", "input_values", "output_unit", "output_words"]

#: Quantity -> words around its subject ({}), and its unit; {money} and {unit} are those of the objective and the limit.
_QUANTITIES = {
    "objective": ("objective of the scenario", "{money}"),
    "finished": ("{} finished", "accelerators"),
    "energised": ("{} energised", "accelerators"),
    "energised_h100e": ("{} energised, in H100-equivalents", "H100-equivalents"),
    "fleet": ("fleet of {}", "accelerators"),
    "price": ("one more of {}, for one period", "{money}/{unit}"),
    "lasting_price": ("one more of {}, lasting", "{money}/{unit}"),
    "rent": ("scarcity value of {}", "{money}"),
    "utilisation": ("use of {}", "share of 1"),
    "usd_per_gpu_hour": ("cost of a sold hour of {} (scarcity included)", "USD/GPU-hour"),
    "owner_usd_per_gpu_hour": ("owner's cost of a sold hour of {}", "USD/GPU-hour"),
    "scarcity_usd_per_gpu_hour": ("scarcity in a sold hour of {}", "USD/GPU-hour"),
    "usd_per_mtoken_uncached_input": ("input tokens of {}", "USD/million tokens"),
    "usd_per_mtoken_cache_write": ("tokens written to the cache, {}", "USD/million tokens"),
    "usd_per_mtoken_cache_read": ("tokens read from the cache, {}", "USD/million tokens"),
    "usd_per_mtoken_output": ("output tokens of {}", "USD/million tokens"),
    "usd_per_verified_task": ("verified task, {}", "USD/task"),
}


def output_words(name: str, network: Network) -> str:
    """An output in words, with its period.

    >>> from supply.network_examples import course_11_1
    >>> output_words("finished:*@2026-Q1", course_11_1()), output_words("price:cowos@2026", course_11_1())
    ('accelerators finished in 2026-Q1', 'one more of cowos, for one period in 2026')
    """
    parsed = parse_output(name)
    words, _ = _QUANTITIES.get(parsed.quantity, (parsed.quantity.replace("_", " ") + " of {}", ""))
    subject = "accelerators" if parsed.subject in ("", "*") else _subject(parsed.subject, network)
    return words.format(subject) + (f" in {parsed.period}" if parsed.period else "")


def output_unit(name: str, network: Network) -> str:
    """Unit of an output; empty for a quantity without one.

    >>> from supply.network_examples import course_11_1
    >>> output_unit("price:cowos@2026", course_11_1()), output_unit("energised:*@2026", course_11_1())
    ('accelerators/accelerator', 'accelerators')
    """
    from supply.optimizer.solution import OBJECTIVE_UNITS

    parsed = parse_output(name)
    _, unit = _QUANTITIES.get(parsed.quantity, ("", ""))
    limit = network.resources.get(parsed.subject)
    return unit.format(money=OBJECTIVE_UNITS[network.objective.kind], unit=limit.unit if limit else "unit")


def _subject(subject: str, network: Network) -> str:
    """Titles of the parts of a subject such as `coding/llama_3_1_70b/h100`."""
    titles = {k: v.title for held in (network.fleet, network.resources, network.materials) for k, v in held.items()}
    parts = [titles.get(part) or part for part in subject.split("/")]
    return " on ".join(parts[-2:]) if len(parts) == 2 else ", ".join(parts)


def input_title(name: str, resolved: Resolved) -> str:
    """An input of a study in words: a driver, a path, or a group by its name.

    >>> from scenarios.load import load_scenario
    >>> from scenarios.resolve import resolve
    >>> input_title("resources.cowos.capacity", resolve(load_scenario("course_11_1")))
    'CoWoS: capacity'
    """
    if name in resolved.scenario.file.groups:
        return f"{name} (group)"
    if "*" in name:
        return f"{name} (pattern)"
    base = name.partition("#")[0]
    if base in resolved.nodes:
        return path_title(base, resolved.network)
    return driver_title(name, resolved.network)


@dataclass(frozen=True, slots=True)
class InputValues:
    """Values of an input at some ranks: `name` is a driver or the path of a number that moves with it."""

    name: str
    period: str
    unit: str
    values: tuple[float, ...]


def input_values(
    resolved: Resolved, drivers: Sequence[str], ranks: Sequence[float], period: str = ""
) -> InputValues | None:
    """An input at some ranks in `period`; None where nothing moves.

    A single fact or series in its own unit (over the whole period); else the number with the fewest other drivers that
    the ranks change, in the first part of the period, or in the first one in which it changes.
    """
    moved = tuple(p for p, d in resolved.uncertain.items() if set(drivers) & set(d))
    labels = resolved.horizon.labels()
    if any(label.startswith(period) for label in labels):
        own = _own_values(resolved, tuple(drivers), moved, ranks, period or labels[0])
        if own is not None:
            return own
    start = next((k for k, label in enumerate(labels) if label.startswith(period)), 0)
    for path in sorted(moved, key=lambda p: (len(resolved.uncertain[p]), p)):
        found = np.atleast_2d(resolved.nodes[path].at(Draw({d: np.array(ranks) for d in drivers}, {})))
        changes = np.flatnonzero(np.ptp(found, axis=0) > 0)
        if len(changes) or len(ranks) == 1:
            t = start if start in changes or not len(changes) else int(changes[0])
            values = tuple(float(v) for v in np.broadcast_to(found[:, t], (len(ranks),)))
            return InputValues(path, labels[t], resolved.measures[path].label, values)
    return None


def _own_values(
    resolved: Resolved, drivers: tuple[str, ...], moved: tuple[str, ...], ranks: Sequence[float], period: str
) -> InputValues | None:
    """A single fact or series in its own unit; None where there is none, or where it does not cover the period."""
    from scenarios.headline_inputs import WeakInput, own_range, spread_at
    from supply.facts import FactError

    try:
        own = own_range(WeakInput(drivers, moved, "", ""), resolved, period)
    except FactError:
        return None
    if own is None:
        return None
    unit, value, low, high = own
    return InputValues(drivers[0], period, unit, tuple(spread_at(value, low, high, r) for r in ranks))
