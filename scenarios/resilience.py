"""How long the chain survives without a site or a whole stage, and what an outage costs, beside the price of the limit.

time to survive   longest outage, in whole periods from a given one, that costs at most a tolerance of the objective,
                  stocks and other sites doing what they can. Nobody knows of the outage before it begins: what was done
                  earlier stays done (nothing is hoarded for it); then its length is known
time to recover   an input: how long a site or stage would be out; its loss is the loss of an outage of that length
A cheap limit may be the one without a substitute: order by fragility and order by price are not the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from scenarios.errors import did_you_mean
from scenarios.load import Scenario, load_scenario
from scenarios.resolve import resolve
from scenarios.runner import solve

if TYPE_CHECKING:
    from supply.optimizer.solution import Solution

__all__ = ["COLUMNS", "ResilienceError", "resilience"]

COLUMNS = (
    "level", "id", "title", "stage", "unit", "price", "time_to_survive", "at_least", "loss_one_period",
    "time_to_recover", "loss", "loss_share", "rank",
)  # fmt: skip
#: Periods that a site is out where nothing is said: an assumption, not a fact.
RECOVER = 2
#: Kinds of columns, by period, that are past when an outage begins.
_DONE = frozenset({"start", "stock", "energise", "retire", "fleet"})
Progress = Callable[[str], None]


class ResilienceError(ValueError):
    """A wrong period, site or recovery time; the message says what may stand."""


@dataclass(frozen=True)
class _Place:
    level: str
    id: str
    title: str
    stage: str
    unit: str
    sites: tuple[str, ...]


def resilience(
    scenario: str | Path | Scenario,
    start: str | None = None,
    *,
    longest: int = 4,
    tolerance: float = 0.001,
    recover: Mapping[str, int] | None = None,
    sites: Sequence[str] | None = None,
    sets: Sequence[tuple[str, Any]] = (),
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Every site, and every stage with several sites, ranked by fragility: least time to survive, then greatest loss.

    `start`: first period of the outage (default: the middle of the horizon). `recover`: periods out by site or stage
    id, else two. `sites`: patterns of site or stage ids. `price`: of one more unit of the site's limit in `start`
    (missing for a stage). `at_least`: survived the longest outage tried. `loss`: objective units, present value;
    infinite with share 1 where no plan is left. `attrs` of the table: `start`, `objective_unit`.

    Raises:
        ResilienceError: an unknown period, site or recovery time. ScenarioError, InfeasibleError: as for a run.
    """
    resolved = resolve(scenario if isinstance(scenario, Scenario) else load_scenario(scenario, sets))
    labels = list(resolved.horizon.labels())[: resolved.horizon.periods]
    first = start or labels[len(labels) // 2]
    if first not in labels:
        raise ResilienceError(f"--from {first!r}: no such period; the horizon is {labels[0]} to {labels[-1]}")
    solution = solve(resolved)
    every = _places(solution)
    places = [p for p in every if sites is None or any(fnmatchcase(p.id, s) for s in sites)]
    _known([*(sites or ()), *(recover or {})], every)
    if not places or longest < 1 or any(n < 1 for n in (recover or {}).values()):
        raise ResilienceError("give at least one site or stage, and outages of at least one period")
    table = _table(solution, labels.index(first), longest, tolerance, dict(recover or {}), places, progress)
    table.attrs = {"start": first, "objective_unit": solution.objective_unit}
    return table


def _known(words: Sequence[str], places: Sequence[_Place]) -> None:
    ids = [p.id for p in places]
    for word in words:
        if not any(fnmatchcase(i, word) for i in ids):
            raise ResilienceError(f"no site or stage {word!r}{did_you_mean(word, ids)}")


def _places(solution: Solution) -> list[_Place]:
    network = solution.network
    resources = network.resources
    out = [_Place("site", r, row.title or r, row.stage or "", row.unit, (r,)) for r, row in resources.items()]
    stages = dict.fromkeys(row.stage for row in resources.values() if row.stage)
    for stage in stages:
        members = tuple(r for r, row in resources.items() if row.stage == stage)
        if len(members) > 1 and stage not in resources:
            out.append(_Place("stage", stage, f"all of {stage}", stage, "", members))
    return out


def _table(
    solution: Solution,
    first: int,
    longest: int,
    tolerance: float,
    recover: Mapping[str, int],
    places: Sequence[_Place],
    progress: Progress | None,
) -> pd.DataFrame:
    from supply.optimizer.prices import Perturbed

    rows = []
    last = solution.network.horizon.length - first
    with Perturbed(solution) as perturbed, _held_before(solution, perturbed, first):
        whole = max(abs(perturbed.objective), 1e-12)
        for place in places:
            out = recover.get(place.id, recover.get(place.stage, RECOVER))
            length = min(max(longest, out), last)
            losses = [_loss(solution, perturbed, place.sites, first, n) for n in range(1, length + 1)]
            survived = next((n for n, lost in enumerate(losses[:longest]) if lost / whole > tolerance), longest)
            loss = losses[min(out, last) - 1]
            price = solution.price(place.id, first) if place.level == "site" else float("nan")
            head = (place.level, place.id, place.title, place.stage, place.unit, price)
            share = 1.0 if np.isinf(loss) else loss / whole
            rows.append(
                (*head, survived, survived == longest, losses[0] * solution.worth, out, loss * solution.worth, share)
            )
            if progress is not None:
                progress(f"{len(rows)} of {len(places)} sites and stages")
    frame = pd.DataFrame(rows, columns=list(COLUMNS[:-1]))
    frame = frame.sort_values(["time_to_survive", "loss", "id"], ascending=[True, False, True], ignore_index=True)
    return frame.assign(rank=np.arange(1, len(frame) + 1))


@contextmanager
def _held_before(solution: Solution, perturbed: Any, first: int) -> Iterator[None]:
    """Hold starts, stocks and the fleet of the periods before `first` at the plan: nobody saw the outage coming."""
    engine = perturbed.engine
    lower, upper = solution.bounds[2:] if solution.bounds is not None else (None, None)
    low = np.zeros(len(perturbed.vertex)) if lower is None else np.array(lower)
    high = np.array(engine.matrix.col_upper if upper is None else upper)
    held = [k for k, (kind, key) in enumerate(engine.matrix.columns) if kind in _DONE and key[-1] < first]
    fixed_low, fixed_high = low.copy(), high.copy()
    fixed_low[held] = fixed_high[held] = np.clip(solution.x[held], low[held], high[held])
    engine.set_col_bounds(fixed_low, fixed_high)
    try:
        yield
    finally:
        engine.set_col_bounds(low, high)


def _loss(solution: Solution, perturbed: Any, sites: Sequence[str], first: int, length: int) -> float:
    """Objective lost (in the programme's own scale) when the sites stand still from `first` for `length` periods."""
    index = [i for r in sites for t in range(first, first + length) for i, _ in solution.limit_rows(r, t)]
    if not index:
        return 0.0
    objective, _, _ = perturbed.moved(index, 0.0)
    return float(perturbed.objective - objective) if np.isfinite(objective) else float("inf")
