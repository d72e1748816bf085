"""What a cluster costs to buy: nodes, switches, cables, racks, cooling; per accelerator, with counts that agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from econ.cost_breakdown import CostBar, CostBreakdown
from econ.finance import plain, require

__all__ = [
    "BillError",
    "check_accelerator_count",
    "cluster_capital_usd_per_accelerator",
    "parts_bill",
    "tray_bill_usd",
]


class BillError(ValueError):
    """A bill of materials whose counts contradict each other."""


def parts_bill(parts: Mapping[str, tuple[float, float]], unit: str = "USD") -> CostBreakdown:
    """A bill of (count, price) parts as a waterfall.

    >>> parts_bill({"compute tray": (18, 2260), "switch tray": (9, 1020)}).total
    49860.0

    Raises:
        FinanceError: when a count or price is negative.
    """
    bars = tuple(
        CostBar(name, float(require(f"{name} count", n, 0) * require(f"{name} price", p, 0)))
        for name, (n, p) in parts.items()
    )
    return CostBreakdown(bars, unit, "bill of materials")


def tray_bill_usd(
    compute_trays: float, usd_per_compute_tray: float, switch_trays: float, usd_per_switch_tray: float
) -> float:
    """A rack's bill by tray (cooling plates and manifolds, for instance).

    >>> tray_bill_usd(18, 2260, 9, 1020)
    49860.0
    """
    parts = {"compute": (compute_trays, usd_per_compute_tray), "switch": (switch_trays, usd_per_switch_tray)}
    return float(parts_bill(parts).total)


def cluster_capital_usd_per_accelerator(
    nodes: ArrayLike,
    accelerators_per_node: ArrayLike,
    usd_per_node: ArrayLike,
    switches: ArrayLike = 0,
    usd_per_switch: ArrayLike = 0.0,
    cables_usd: ArrayLike = 0.0,
    facility_and_operation_usd_per_node: ArrayLike = 0.0,
) -> Any:
    """All-in capital per accelerator: (nodes x (node + lifetime lump) + switches + cables) / accelerators.

    >>> cluster_capital_usd_per_accelerator(2, 8, 310000, cables_usd=12960, facility_and_operation_usd_per_node=50000)
    45810.0

    Raises:
        FinanceError: when a count is not positive or a price is negative.
    """
    count = require("nodes", nodes, 0, open_low=True)
    per_node = require("usd_per_node", usd_per_node, 0) + require(
        "facility_and_operation_usd_per_node", facility_and_operation_usd_per_node, 0
    )
    network = require("switches", switches, 0) * require("usd_per_switch", usd_per_switch, 0)
    whole = count * per_node + network + require("cables_usd", cables_usd, 0)
    return plain(whole / (count * require("accelerators_per_node", accelerators_per_node, 0, open_low=True)))


def check_accelerator_count(
    servers: int, accelerators_per_server: int, stated: int, cost_usd: float | None = None
) -> int:
    """Accelerators of a cluster, refused when the stated count is not servers x accelerators per server.

    >>> check_accelerator_count(14, 8, 112)
    112

    Raises:
        BillError: with both counts, and the cost per accelerator on each where a cost is given.
    """
    counted = servers * accelerators_per_server
    if counted == stated:
        return counted
    spread = ""
    if cost_usd is not None:
        spread = (
            f"; cost per accelerator {cost_usd / counted:,.0f} USD on {counted}, {cost_usd / stated:,.0f} on {stated}"
        )
    raise BillError(
        f"{servers} servers x {accelerators_per_server} = {counted} accelerators, but {stated} are stated "
        f"({stated / accelerators_per_server:g} servers){spread}: settle which count is right"
    )
