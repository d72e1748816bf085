"""How long the chain survives without a site, what an outage costs, and who holds how much of a stage.

Time to survive: the longest outage (whole periods) that costs at most `tolerance` of the objective, buffers and other
sites doing what they can. Time to recover is an input: how long the site would be out. Both stand beside the shadow
price, because a cheap limit may be the one without a substitute.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from supply.bottleneck import Totals
from supply.network import Network
from supply.optimizer.prices import Perturbed
from supply.optimizer.solution import Solution


def outages(
    solution: Solution,
    start: int,
    longest: int,
    resources: Iterable[str] | None = None,
    remaining: float = 0.0,
) -> pd.DataFrame:
    """Outage of every site from period `start` for 1 .. `longest` periods, known when it begins being felt (foresight).

    resource, periods, loss (objective units, present value), loss_share, energised_lost, finished_lost. An outage that
    leaves no plan (a fleet without power) is a loss of everything: infinite, share 1.
    """
    network, rows = solution.network, []
    names = list(network.resources) if resources is None else list(resources)
    totals = Totals.of(solution)
    with Perturbed(solution) as perturbed:
        for r in names:
            for length in range(1, longest + 1):
                index = [i for t in range(start, start + length) for i, _ in solution.limit_rows(r, t)]
                if not index:
                    continue
                objective, x, _ = perturbed.moved(index, remaining)
                rows.append((r, length, *_losses(solution, perturbed, totals, objective, x)))
    return pd.DataFrame(rows, columns=["resource", "periods", "loss", "loss_share", "energised_lost", "finished_lost"])


def _losses(
    solution: Solution, perturbed: Perturbed, totals: Totals, objective: float, x: np.ndarray
) -> tuple[float, float, float, float]:
    if not np.isfinite(objective):
        return np.inf, 1.0, np.inf, np.inf
    lost = perturbed.objective - objective
    change = {name: float(w @ (perturbed.vertex - x)) for name, w in totals.weights.items()}
    share = lost / max(abs(perturbed.objective), 1e-12)
    return lost * solution.worth, share, change["energised"], change["finished"]


def time_to_survive(
    solution: Solution, start: int, longest: int, tolerance: float = 0.001, resources: Iterable[str] | None = None
) -> pd.DataFrame:
    """resource, time_to_survive (periods; `longest` = at least that), first_loss (of one period), rank, price.

    Ranked by fragility: least time to survive first, then the loss of an outage of one period.
    """
    table = outages(solution, start, longest, resources)
    records = []
    for r, group in table.groupby("resource", sort=False):
        fine = group[group.loss_share <= tolerance].periods
        survived = (
            int(fine.max()) if len(fine) and (group[group.periods <= fine.max()].loss_share <= tolerance).all() else 0
        )
        first = float(group[group.periods == 1].loss.iloc[0])
        records.append((r, survived, first, solution.price(str(r), start)))
    found = pd.DataFrame(records, columns=["resource", "time_to_survive", "first_loss", "price"])
    found = found.sort_values(["time_to_survive", "first_loss"], ascending=[True, False], ignore_index=True)
    return found.assign(rank=np.arange(1, len(found) + 1))


def recovery_cost(solution: Solution, start: int, recovery_periods: dict[str, int]) -> pd.DataFrame:
    """Loss of an outage as long as each site's own time to recover: resource, periods, loss, loss_share, rank."""
    parts = []
    for r, length in recovery_periods.items():
        table = outages(solution, start, length, [r])
        parts.append(table[table.periods == length])
    found = pd.concat(parts, ignore_index=True).sort_values("loss", ascending=False, ignore_index=True)
    return found.assign(rank=np.arange(1, len(found) + 1))


def concentration(network: Network, by: str = "supplier", t: int = 0) -> pd.DataFrame:
    """Shares of capacity by stage and `by` (supplier, owner or region), with the Herfindahl index of each stage.

    stage, holder, share, hhi (0 to 1: one holder). Capacities of one stage must be in one unit; stages where they are
    not are left out. Raises `ValueError` for another `by`.

    >>> from supply.network_examples import course_11_1
    >>> concentration(course_11_1(), "owner").hhi.tolist()
    [1.0, 1.0]
    """
    if by not in ("supplier", "owner", "region"):
        raise ValueError(f"concentration by {by!r}: choose supplier, owner or region")
    rows = [
        (
            row.stage or "other",
            getattr(row, by) or row.title or r,
            row.unit,
            float(network.values[f"resources.{r}.capacity"][t]),
        )
        for r, row in network.resources.items()
    ]
    table = pd.DataFrame(rows, columns=["stage", "holder", "unit", "capacity"])
    table = table[table.groupby("stage").unit.transform("nunique") == 1]
    held = pd.DataFrame(table.groupby(["stage", "holder"], sort=False).capacity.sum()).reset_index()
    held["share"] = held.capacity / held.groupby("stage").capacity.transform("sum")
    held["hhi"] = (held.share**2).groupby(held.stage).transform("sum")
    return held[["stage", "holder", "share", "hhi"]]
