"""Does the end of the horizon show? The tail is solved but not reported; a longer one should change nothing much."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from supply.network import Network
from supply.optimizer.compiled import optimize
from supply.optimizer.solution import Solution

ALLOWED = 0.05
"""Greatest relative change of a reported year that a tail four quarters longer may make."""


def with_tail(network: Network, tail: int) -> Network:
    """The same network with another tail; numbers of the last period are held (or cut).

    >>> from supply.network_examples import power_chain
    >>> with_tail(power_chain(2), 3).horizon.length
    5
    """
    horizon = replace(network.horizon, tail=tail)
    values = {}
    for path, array in network.values.items():
        kept = array[: horizon.length]
        values[path] = np.concatenate([kept, np.full(horizon.length - len(kept), kept[-1])])
    return replace(network, horizon=horizon, values=values)


def tail_effect(solution: Solution, extra_years: float = 1.0) -> pd.DataFrame:
    """Energised (or sold) accelerators: year, planned, longer (with the longer tail), change, passed."""
    network = solution.network
    extra = round(extra_years / network.horizon.years)
    base = network.with_values(dict(solution.values))
    longer = optimize(with_tail(base, network.horizon.tail + extra))
    totals = pd.DataFrame({"planned": _by_year(solution), "longer": _by_year(longer)}).fillna(0.0)
    totals["change"] = totals.longer / totals.planned.where(totals.planned > 0) - 1
    totals["change"] = totals.change.fillna(0.0)
    totals["passed"] = totals.change.abs() <= ALLOWED
    return totals.rename_axis("year").reset_index()


def _by_year(solution: Solution) -> pd.Series[float]:
    table, column = (solution.energised, "energised") if solution.network.fleet else (solution.sold, "sold")
    return table.groupby(table.period.str[:4])[column].sum()
