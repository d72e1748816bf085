"""How free the mix is: least and greatest energised of a SKU (or finished of a material) close to the optimum.

Fixed values make corner solutions: the mix of a linear programme is exact at the optimum and nearly free beside it.
The range within 0.1 % of the objective is the honest error bar of a mix.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from highspy import HighsModelStatus

from supply.optimizer.prices import Perturbed
from supply.optimizer.solution import Solution

VARIABLES = {"energised": "energise", "started": "start", "sold": "sold"}


def mix_range(
    solution: Solution,
    subjects: Iterable[str],
    periods: Sequence[str],
    *,
    quantity: str = "energised",
    share: float = 0.001,
) -> pd.DataFrame:
    """subject, low, planned, high: total of `quantity` over `periods` in every plan within `share` of the optimum.

    >>> from supply.network_examples import course_11_1
    >>> from supply.optimizer.compiled import Compiled
    >>> found = mix_range(Compiled(course_11_1()).solve(), ["accelerator"], ["2026-Q1"], quantity="sold", share=0.1)
    >>> found[["low", "planned", "high"]].round(6).values.tolist()
    [[9000.0, 10000.0, 10000.0]]

    Raises `ValueError` for another quantity.
    """
    if quantity not in VARIABLES:
        raise ValueError(f"quantity {quantity!r}: choose one of {', '.join(VARIABLES)}")
    labels = solution.network.horizon.labels()
    wanted = {labels.index(p) for p in periods}
    names = solution.compiled.engine.matrix.columns
    records = []
    with Perturbed(solution) as perturbed:
        engine = perturbed.engine
        cost = engine.cost.copy()
        floor = perturbed.objective - share * abs(perturbed.objective)
        nonzero = np.flatnonzero(cost).astype(np.int32)
        row = len(names) and engine.highs.getNumRow()
        engine.highs.addRow(floor, np.inf, len(nonzero), nonzero, cost[nonzero])
        try:
            for subject in subjects:
                weight = np.zeros(len(names))
                for j, (name, key) in enumerate(names):
                    if name == VARIABLES[quantity] and key[0] == subject and key[-1] in wanted:
                        weight[j] = 1.0
                low, high = (sign * _best(perturbed, sign * weight) for sign in (-1.0, 1.0))
                planned = float(weight @ solution.x)
                unit = solution.flow
                records.append((subject, min(low, planned) * unit, planned * unit, max(high, planned) * unit))
        finally:
            engine.set_costs(cost)
            engine.highs.deleteRows(1, np.array([row], dtype=np.int32))
    return pd.DataFrame(records, columns=["subject", "low", "planned", "high"])


def _best(perturbed: Perturbed, weight: np.ndarray) -> float:
    """Greatest weight x over the near-optimal plans."""
    engine = perturbed.engine
    engine.set_costs(weight)
    if engine.run() != HighsModelStatus.kOptimal:
        return float("nan")
    return float(weight @ np.array(engine.highs.getSolution().col_value))
