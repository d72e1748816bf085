"""Cost of a sold accelerator-hour: capital by four methods, power with idle draw, and everything in between.

Cost per sold hour divides the cost of an installed year by `hours_per_year x sold` and by nothing else (use chain).
Electricity per sold hour = PUE x price x (P_busy b + P_idle (1 - b)) / sold, b the computing share of installed hours.
The bars add to the total exactly. All inputs may be numpy arrays of one shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from econ import finance
from econ.cost_breakdown import CostBar, CostBreakdown
from econ.finance import FinanceError, plain, require
from econ.use_chain import UseChain

__all__ = [
    "METHODS",
    "CostInputs",
    "break_even_life_years",
    "break_even_rent",
    "break_even_sold_share",
    "cost_by_method",
    "economic_life_years",
    "gpu_hour_cost",
    "payback_cost_per_gpu_hour",
    "running_cost_per_sold_hour",
    "site_cost_per_year",
]

METHODS = ("annuity", "straight_line", "payback", "market_value")
#: Bars that are cash while running: what an owner saves by switching off.
RUNNING = ("electricity", "colocation", "maintenance", "staff", "software", "failures")


@dataclass(frozen=True)
class CostInputs:
    """Inputs of one installed accelerator; money in USD per accelerator, lives in years, shares as fractions.

    `it_usd` holds the accelerator with its share of the server, `network_usd` its share of switches and cables.
    Give a building (`facility_usd`) or colocation rent, or both parts. `spares_share` is extra hardware held per unit
    installed, `failure_rate_per_year x repair_share` the yearly loss on `it_usd`. `extra_usd_per_sold_hour` takes lumps
    that a source states per paid hour. Defaults are neutral: a cost that is not given is absent, not guessed.
    """

    it_usd: Any = 0.0
    network_usd: Any = 0.0
    facility_usd: Any = 0.0
    it_life_years: Any = 5.0
    facility_life_years: Any = 14.0
    rate_per_year: Any = 0.0
    it_residual_share: Any = 0.0
    delivery_months: Any = 0.0
    construction_months: Any = 0.0
    tax_rate: Any = 0.0
    tax_life_years: Any = 0.0
    spares_share: Any = 0.0
    failure_rate_per_year: Any = 0.0
    repair_share: Any = 0.0
    insurance_share_per_year: Any = 0.0
    maintenance_usd_per_year: Any = 0.0
    staff_usd_per_year: Any = 0.0
    software_usd_per_year: Any = 0.0
    colocation_usd_per_kw_month: Any = 0.0
    colocation_kw: Any = 0.0
    busy_kw: Any = 0.0
    idle_kw: Any = 0.0
    pue: Any = 1.0
    electricity_usd_per_kwh: Any = 0.0
    use: UseChain = field(default_factory=UseChain)
    hours_per_year: Any = 8760.0
    payback_years: Any = 3.0
    decline_oom_per_year: Any = 0.14
    age_years: Any = None
    extra_usd_per_sold_hour: Mapping[str, Any] = field(default_factory=dict)

    def with_value(self, name: str, value: Any) -> CostInputs:
        """A copy with one field replaced; `use.sold` and its like reach the use chain.

        Raises:
            FinanceError: when there is no such field.
        """
        self.value_of(name)
        if name.startswith("use."):
            return replace(self, use=replace(self.use, **{name[4:]: value}))
        return replace(self, **{name: value})

    def value_of(self, name: str) -> Any:
        """A field by name, `use.sold` included.

        Raises:
            FinanceError: when there is no such field.
        """
        owner, field_name = (self.use, name[4:]) if name.startswith("use.") else (self, name)
        if not hasattr(owner, field_name):
            raise FinanceError(
                f"gpu_hour_cost has no input {name!r}; inputs: {', '.join(f.name for f in fields(self))}"
            )
        return getattr(owner, field_name)


def _yearly_capital(inputs: CostInputs, method: str) -> dict[str, Any]:
    """Yearly capital bars by method: equipment, network, building, interest before income, residual, tax."""
    it_charge: Any
    building_charge: Any
    residual = 0.0
    waits = (
        1.0
        if method == "payback"
        else finance.capitalised_interest(inputs.rate_per_year, inputs.delivery_months, "upfront")
    )
    builds = (
        1.0 if method == "payback" else finance.capitalised_interest(inputs.rate_per_year, inputs.construction_months)
    )
    crf_building = finance.capital_recovery_factor(inputs.rate_per_year, inputs.facility_life_years)
    if method == "annuity":
        it_charge = finance.capital_recovery_factor(inputs.rate_per_year, inputs.it_life_years)
        net = finance.annuity_per_year(1.0, inputs.rate_per_year, inputs.it_life_years, inputs.it_residual_share)
        residual, building_charge = net - it_charge, crf_building
    elif method == "straight_line":
        it_charge = finance.straight_line_per_year(1.0, inputs.it_life_years)
        residual = -np.asarray(inputs.it_residual_share) * it_charge
        building_charge = finance.straight_line_per_year(1.0, inputs.facility_life_years)
    elif method == "payback":
        it_charge = building_charge = finance.payback_per_year(1.0, inputs.payback_years)
    elif method == "market_value":
        over = {"life_years": inputs.it_life_years} if inputs.age_years is None else {"age_years": inputs.age_years}
        it_charge = finance.market_value_charge_per_year(1.0, inputs.decline_oom_per_year, **over)
        building_charge = crf_building
    else:
        raise FinanceError(f"method = {method!r}: use one of {', '.join(METHODS)}")
    it, network = require("it_usd", inputs.it_usd, 0), require("network_usd", inputs.network_usd, 0)
    building = require("facility_usd", inputs.facility_usd, 0)
    hardware = (it + network) * (1 + require("spares_share", inputs.spares_share, 0))
    bars = {
        "equipment": it * it_charge,
        "network": network * it_charge,
        "spares": (hardware - it - network) * it_charge,
        "building": building * building_charge,
        "interest_before_income": hardware * it_charge * (waits - 1) + building * building_charge * (builds - 1),
        "residual_value": hardware * residual * waits,
    }
    gross_up = finance.tax_gross_up(inputs.rate_per_year, inputs.it_life_years, inputs.tax_rate, inputs.tax_life_years)
    return bars | {"income_tax": sum(bars.values()) * (gross_up - 1)}


def _yearly_running(inputs: CostInputs) -> dict[str, Any]:
    """Yearly running bars, electricity aside."""
    it = np.asarray(inputs.it_usd, dtype=float)
    insured = it + np.asarray(inputs.network_usd) + np.asarray(inputs.facility_usd)
    rent = require("colocation_usd_per_kw_month", inputs.colocation_usd_per_kw_month, 0)
    return {
        "colocation": 12 * rent * require("colocation_kw", inputs.colocation_kw, 0),
        "insurance": insured * require("insurance_share_per_year", inputs.insurance_share_per_year, 0, 1),
        "maintenance": require("maintenance_usd_per_year", inputs.maintenance_usd_per_year, 0),
        "staff": require("staff_usd_per_year", inputs.staff_usd_per_year, 0),
        "software": require("software_usd_per_year", inputs.software_usd_per_year, 0),
        "failures": it
        * require("failure_rate_per_year", inputs.failure_rate_per_year, 0)
        * require("repair_share", inputs.repair_share, 0, 1),
    }


def _electricity_per_sold_hour(inputs: CostInputs) -> Any:
    computing = inputs.use.computing_share
    busy, idle = require("busy_kw", inputs.busy_kw, 0), require("idle_kw", inputs.idle_kw, 0)
    if np.any(idle > busy):
        raise FinanceError(f"idle_kw = {inputs.idle_kw!r} exceeds busy_kw = {inputs.busy_kw!r}")
    draw = busy * computing + idle * (1 - computing)
    price = require("electricity_usd_per_kwh", inputs.electricity_usd_per_kwh, 0)
    return require("pue", inputs.pue, 1) * price * draw / inputs.use.sold


def _bars(inputs: CostInputs, method: str) -> dict[str, Any]:
    per_hour = require("hours_per_year", inputs.hours_per_year, 0, 8784, open_low=True) * inputs.use.sold
    yearly = _yearly_capital(inputs, method) | _yearly_running(inputs)
    hourly = {name: plain(value / per_hour) for name, value in yearly.items()}
    hourly["electricity"] = plain(_electricity_per_sold_hour(inputs))
    for name, value in inputs.extra_usd_per_sold_hour.items():
        hourly[name] = plain(require(name, value, 0))
    return hourly


def gpu_hour_cost(
    inputs: CostInputs | None = None,
    *,
    method: str = "annuity",
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    fact_ids: Mapping[str, Sequence[str]] | None = None,
    **values: Any,
) -> CostBreakdown:
    """Cost per sold accelerator-hour as a waterfall; give `CostInputs`, or its fields by name, or both (fields win).

    `bands` maps an input (`it_usd`, `use.sold`, ...) to its low and high; the band of the total takes each input alone
    to its ends and adds the swings as squares (independent inputs). `fact_ids` maps a bar to the facts behind it.

    >>> cost = gpu_hour_cost(method="straight_line", it_usd=40000, it_life_years=4, use=UseChain(sold=0.7))
    >>> round(cost.total, 4)
    1.6308

    Raises:
        FinanceError: when an input is unknown or outside its domain, or the method is unknown.
    """
    given = inputs or CostInputs()
    for name, value in values.items():
        given = given.with_value(name, value)
    centre = _bars(given, method)
    lows, highs, low, high = _band(given, method, bands or {}, centre)
    ids = fact_ids or {}
    bars = tuple(
        CostBar(name, value, lows.get(name), highs.get(name), tuple(ids.get(name, ())))
        for name, value in centre.items()
    )
    return CostBreakdown(bars, "USD/GPU-hour", method, low, high, {"sold": given.use.sold})


def _band(
    inputs: CostInputs, method: str, bands: Mapping[str, tuple[ArrayLike, ArrayLike]], centre: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], Any, Any]:
    """Band of each bar and of the total: one evaluation over a stack of one-at-a-time changes."""
    if not bands:
        return {}, {}, None, None
    plain_fields: dict[str, Any] = {}
    use_fields: dict[str, Any] = {}
    for i, (name, ends) in enumerate(bands.items()):
        stack = np.full(2 * len(bands), inputs.value_of(name), dtype=float)
        stack[2 * i : 2 * i + 2] = ends
        (use_fields if name.startswith("use.") else plain_fields)[name.removeprefix("use.")] = stack
    changed = replace(inputs, **plain_fields, use=replace(inputs.use, **use_fields))
    stacked = {
        k: np.broadcast_to(np.asarray(v, dtype=float), 2 * len(bands)) for k, v in _bars(changed, method).items()
    }
    stacked["total"] = np.sum(list(stacked.values()), axis=0)
    base = dict(centre) | {"total": sum(centre.values())}
    lows, highs = {}, {}
    for name, values in stacked.items():
        swing = (values - base[name]).reshape(-1, 2)
        lows[name] = float(base[name] - np.sqrt(np.sum(np.minimum(swing.min(axis=1), 0) ** 2)))
        highs[name] = float(base[name] + np.sqrt(np.sum(np.maximum(swing.max(axis=1), 0) ** 2)))
    return lows, highs, lows.pop("total"), highs.pop("total")


def cost_by_method(inputs: CostInputs, **options: Any) -> dict[str, CostBreakdown]:
    """The four capital methods side by side on the same inputs.

    >>> rows = cost_by_method(CostInputs(it_usd=40000, it_life_years=5, rate_per_year=0.1))
    >>> {name: round(cost.total, 3) for name, cost in rows.items()}
    {'annuity': 1.205, 'straight_line': 0.913, 'payback': 1.522, 'market_value': 0.731}
    """
    return {method: gpu_hour_cost(inputs, method=method, **options) for method in METHODS}


def payback_cost_per_gpu_hour(
    capital_usd: ArrayLike,
    payback_years: ArrayLike,
    opex_share: ArrayLike = 0.0,
    accelerators: ArrayLike = 1,
    hours_per_year: ArrayLike = 8760,
) -> Any:
    """Cash payback rule: capital / (accelerators x years x hours) x (1 + running cost as a share of capital).

    >>> round(payback_cost_per_gpu_hour(5e6, 3, 0.2, accelerators=72), 3)
    3.171

    Raises:
        FinanceError: when an input is outside its domain.
    """
    per_year = finance.payback_per_year(capital_usd, payback_years) * (1 + require("opex_share", opex_share, 0))
    count = require("accelerators", accelerators, 0, open_low=True)
    return plain(per_year / count / require("hours_per_year", hours_per_year, 0, 8784, open_low=True))


def site_cost_per_year(
    capital_usd: ArrayLike,
    it_capital_usd: ArrayLike,
    rate_per_year: ArrayLike,
    it_life_years: ArrayLike,
    facility_life_years: ArrayLike,
    opex_usd_per_year: ArrayLike = 0.0,
) -> Any:
    """Yearly cost of a site: annuities of IT and of the rest of the capital at their own lives, plus running cost.

    >>> round(site_cost_per_year(38e9, 25.5e9, 0.07, 5, 14, 0.9e9) / 1e9, 2)
    8.55

    Raises:
        FinanceError: when IT capital exceeds the whole.
    """
    whole, it = require("capital_usd", capital_usd, 0), require("it_capital_usd", it_capital_usd, 0)
    if np.any(it > whole):
        raise FinanceError(
            f"it_capital_usd = {it_capital_usd!r} exceeds capital_usd = {capital_usd!r}: it is a part of it"
        )
    return plain(
        finance.annuity_per_year(it, rate_per_year, it_life_years)
        + finance.annuity_per_year(whole - it, rate_per_year, facility_life_years)
        + require("opex_usd_per_year", opex_usd_per_year, 0)
    )


def running_cost_per_sold_hour(inputs: CostInputs) -> Any:
    """Cash per sold hour that stops when the accelerator stops: power, space, upkeep, staff, software, failures."""
    bars = _bars(inputs, "annuity")
    return sum(bars[name] for name in RUNNING) + sum(inputs.extra_usd_per_sold_hour.values())


def break_even_rent(inputs: CostInputs, margin: float = 0.0, method: str = "annuity") -> float:
    """Rent per sold hour that covers the cost and leaves a margin (a share of the rent): cost / (1 - margin).

    >>> round(break_even_rent(CostInputs(it_usd=40000, rate_per_year=0.08, use=UseChain(sold=0.9)), margin=0.25), 3)
    1.694

    Raises:
        FinanceError: when the margin is not below 1.
    """
    share = float(require("margin", margin, 0, 0.999999))
    return float(sum(_bars(inputs, method).values())) / (1 - share)


def break_even_sold_share(inputs: CostInputs, rent_usd_per_hour: float, method: str = "annuity") -> float:
    """Share of hours that must be sold for a rent to cover the cost, idle draw included.

    >>> round(break_even_sold_share(CostInputs(it_usd=40000, rate_per_year=0.08), 1.5), 3)
    0.762

    Raises:
        FinanceError: when the rent does not cover the cost even with every hour sold.
    """
    gap = partial(_gap, inputs, method, "use.sold", rent_usd_per_hour)
    if gap(1.0) > 0:
        raise FinanceError(
            f"a rent of {rent_usd_per_hour:g} USD/h never covers the cost: with every hour sold an hour costs "
            f"{gap(1.0) + rent_usd_per_hour:.3f} USD"
        )
    return float(brentq(gap, 1e-4, 1.0, xtol=1e-9))


def break_even_life_years(inputs: CostInputs, rent_usd_per_hour: float, method: str = "annuity") -> float:
    """Life of the equipment at which the cost per sold hour equals a rent.

    >>> round(break_even_life_years(CostInputs(it_usd=40000, rate_per_year=0.08, use=UseChain(sold=0.9)), 1.5), 2)
    4.1

    Raises:
        FinanceError: when no life up to 100 years reaches the rent; the message says what the cost is there.
    """
    name = "payback_years" if method == "payback" else "it_life_years"
    cost = partial(_gap, inputs, method, name, rent_usd_per_hour)
    if cost(100.0) > 0:
        floor = cost(100.0) + rent_usd_per_hour
        raise FinanceError(
            f"a rent of {rent_usd_per_hour:g} USD/h never pays: over 100 years an hour still costs {floor:.3f} USD"
        )
    return float(brentq(cost, 1e-3, 100.0, xtol=1e-6))


def _gap(inputs: CostInputs, method: str, name: str, rent: float, life: float) -> float:
    return float(sum(_bars(inputs.with_value(name, life), method).values())) - rent


def economic_life_years(
    rent_usd_per_hour: ArrayLike, running_usd_per_hour: ArrayLike, rent_decline_oom_per_year: ArrayLike = 0.14
) -> Any:
    """Age at which a falling rent no longer covers running cost: log10(rent / running) / decline.

    >>> round(economic_life_years(2.35, 0.35), 2)
    5.91

    Raises:
        FinanceError: when a rent or running cost is not positive; an age below zero means it never paid.
    """
    rent = require("rent_usd_per_hour", rent_usd_per_hour, 0, open_low=True)
    running = require("running_usd_per_hour", running_usd_per_hour, 0, open_low=True)
    decline = require("rent_decline_oom_per_year", rent_decline_oom_per_year, 0, open_low=True)
    return plain(np.log10(rent / running) / decline)
