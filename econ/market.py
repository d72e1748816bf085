"""Owner cost, contract, spot, list and index of a chip on one day, beside each other and never blended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from econ.owner_cost import owner_inputs
from econ.price_quotes import MARKETS, observed_price
from econ.prices import RentalPriceError

__all__ = ["market_table"]


#: Form factor of the servers that the owner cost prices, where the maker sells more than one.
_FORMS = {"H100": ("SXM", ""), "H200": ("SXM", ""), "A100": ("SXM", "")}


def market_table(
    chips: Sequence[str] = ("H100", "H200", "B200", "GB200", "MI300X", "MI355X"),
    *,
    on: date,
    region: str = "us",
    owner: str = "neocloud",
    window_days: int = 365,
) -> list[dict[str, Any]]:
    """Rows (chip, form, price_kind, usd_per_gpu_hour, low, high, ...): one per chip, form and kind of price.

    A market without a quote in the window has None and a note that names the markets which have one. Where a maker
    sells several form factors, quotes that state SXM and quotes that state none are separate rows. `over_owner_cost`
    compares an observed price with the owner cost of the chip: the gap holds margin, scarcity and idle risk.

    Raises:
        OwnerCostError: when no facts price a chip.
    """
    rows: list[dict[str, Any]] = []
    for chip in chips:
        cost = owner_inputs(chip, region, on=on, owner=owner).cost()
        rows.append(
            {"chip": chip, "form": "", "price_kind": "owner cost", "usd_per_gpu_hour": cost.total, "low": cost.low}
            | {"high": cost.high, "quotes": None, "on": on, "over_owner_cost": 1.0, "fact_ids": cost.fact_ids}
            | {"note": f"{owner}, annuity"}
        )
        for market in MARKETS:
            for form in _FORMS.get(chip, (None,)):
                rows.append(_observed(chip, market, form, on, window_days, float(cost.total)))
    return rows


def _observed(
    chip: str, market: str, form: str | None, on: date, window_days: int, owner_cost: float
) -> dict[str, Any]:
    head = {"chip": chip, "form": "not stated" if form == "" else form or "", "price_kind": market}
    try:
        seen = observed_price(chip, market, on=on, form=form, window_days=window_days)
    except RentalPriceError as problem:
        none = dict.fromkeys(("usd_per_gpu_hour", "low", "high", "on", "over_owner_cost"))
        return head | none | {"quotes": 0, "fact_ids": (), "note": str(problem)}
    return head | {
        "usd_per_gpu_hour": seen.usd_per_gpu_hour,
        "low": seen.low,
        "high": seen.high,
        "quotes": seen.quotes,
        "on": seen.on,
        "over_owner_cost": seen.usd_per_gpu_hour / owner_cost,
        "fact_ids": seen.fact_ids,
        "note": "",
    }
