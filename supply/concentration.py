"""Who holds how much of a stage."""

from __future__ import annotations

import pandas as pd

from supply.network import Network

__all__ = ["concentration"]


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
