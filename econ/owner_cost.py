"""Owner cost of an accelerator-hour by SKU, region and date, every input taken from a dated fact.

`data/owner_cost.csv` says which fact prices a SKU from which day and what that price includes: `chip` (a server is
added), `server`, `rack` (scale-up network included), `site` (servers and network of a whole site per chip). A part that
a scenario prices itself is a `StatedPart`. The price already holds whatever rent its maker takes: this is the top-down
route of `econ.scarcity`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property, lru_cache
from typing import Any

from econ.cost_breakdown import CostBreakdown
from econ.finance import weighted_average_rate
from econ.gpu_hour import CostInputs, gpu_hour_cost
from econ.owner_cost_table import OwnerCostError, Row, read_owner_costs
from econ.performance.names import did_you_mean
from econ.use_chain import UseChain
from supply.facts import Catalog, catalog
from supply.paths import data_file

__all__ = [
    "REGIONS",
    "OwnerCostError",
    "OwnerInputs",
    "StatedPart",
    "econ_sku",
    "known_skus",
    "owner_cost",
    "owner_inputs",
]

REGIONS = ("us", "europe", "china", "rest")
OWNERS = ("neocloud", "hyperscaler")
#: Bars that hold a charge on capital.
CAPITAL = ("equipment", "network", "building", "interest_before_income")
#: Debt of one listed accelerator cloud: (principal, effective rate) facts.
_DEBT = tuple(
    (f"coreweave_{name}_principal_2025_06_30", f"coreweave_{name}_effective_interest_rate_2025_06_30")
    for name in ("ddtl_1_0", "ddtl_2_0", "2030_senior_notes", "revolver", "oem_financing", "magnetar_loan")
)
_BUILDING = {
    "us": ("us_data_center_19_markets_construction_cost_2024_10",),
    "europe": ("london_data_centre_construction_cost_2025", "frankfurt_data_centre_construction_cost_2025"),
    "rest": ("tokyo_data_centre_construction_cost_2025", "singapore_data_centre_construction_cost_2025"),
}
_LEAD = {"us": "us", "europe": "europe", "china": "asia_pacific", "rest": "asia_pacific"}
_COLOCATION = (
    "wholesale_colo_250_500_kw_price_2018",
    "wholesale_colo_250_500_kw_price_2023_12",
    "wholesale_colo_250_500_kw_price_2024_12",
    "wholesale_colo_250_500_kw_price_2025_12",
)
#: Network between servers as a share of a cluster's cost.
_NETWORK = "epoch_ai_cost_model_interconnect_share_of_cluster_cost_2026_04_01"
_ALIASES = {"vr200": "rubin", "nvidia_rubin": "rubin", "tpu7x": "tpu_v7", "ironwood": "tpu_v7", "trillium": "tpu_v6e"}


@lru_cache(maxsize=1)
def _table() -> Mapping[str, tuple[Row, ...]]:
    return read_owner_costs(data_file("owner_cost.csv"), catalog())


def known_skus() -> tuple[str, ...]:
    """SKUs that facts price, in the order of the table."""
    return tuple(_table())


def econ_sku(name: str) -> str:
    """The SKU of a name as used elsewhere: `nvidia_h100`, `H100 SXM`, `h100_sxm` all give `h100`.

    >>> econ_sku("nvidia_h100"), econ_sku("AMD MI355X"), econ_sku("GB200 NVL72"), econ_sku("google_tpu_v7")
    ('h100', 'mi355x', 'gb200', 'tpu_v7')

    Raises:
        OwnerCostError: when no priced SKU has that name.
    """
    text = "_".join(name.lower().replace("-", " ").replace("_", " ").split())
    for word in ("nvidia_", "amd_", "google_", "aws_", "instinct_"):
        text = text.removeprefix(word) if text not in _ALIASES else text
    for ending in ("_nvl72", "_hgx", "_sxm", "_sxm5", "_trillium", "_ironwood"):
        text = text.removesuffix(ending)
    text = _ALIASES.get(text, text)
    if text not in _table():
        fix = f"state `fleet.{name}.purchase_cost` in the scenario, or add rows to data/owner_cost.csv"
        raise OwnerCostError(
            f"no facts price {name!r}; {fix}; priced: {', '.join(_table())}{did_you_mean(text, _table())}"
        )
    return text


@dataclass(frozen=True)
class StatedPart:
    """A part that a scenario prices itself, each number as (value, low, high).

    `purchase_usd` per accelerator with its share of the server, without the network between servers; `planning_kw` of
    site power: with the PUE taken off it stands for the rated watts.
    """

    purchase_usd: tuple[float, float, float]
    planning_kw: tuple[float, float, float]


@dataclass(frozen=True)
class OwnerInputs:
    """Inputs of one SKU with their bands and the facts behind each bar."""

    sku: str
    title: str
    inputs: CostInputs
    bands: Mapping[str, tuple[float, float]]
    fact_ids: Mapping[str, tuple[str, ...]]
    price_scope: str
    planning_kw: float

    def cost(self, method: str = "annuity", **values: Any) -> CostBreakdown:
        """The waterfall by one method; `values` replace inputs (and drop their bands)."""
        bands = {k: v for k, v in self.bands.items() if k not in values}
        return gpu_hour_cost(self.inputs, method=method, bands=bands, fact_ids=self.fact_ids, **values)


@lru_cache(maxsize=4096)
def _level(facts: Catalog, series_id: str, on: date) -> tuple[float, float, float, str]:
    """(value, low, high) of a series on a day, and the id of the last point of or before its quarter."""
    series = facts.series(series_id)
    value, low, high = (series.levels([on], which)[0] for which in ("value", "low", "high"))
    quarter = f"{on.year}-Q{(on.month + 2) // 3}"
    points = [p for p in series.points if p.period <= quarter] or [series.points[0]]
    return value, low, high, points[-1].id


@dataclass
class _Builder:
    """Collects values, bands and fact ids of one owner-cost question."""

    facts: Catalog
    on: date
    bands: dict[str, tuple[float, float]] = field(default_factory=dict)
    ids: dict[str, list[str]] = field(default_factory=dict)

    def fact(self, fact_id: str, *bars: str, name: str = "") -> float:
        """Value of a fact, noted under bars; its range becomes the band of input `name`."""
        found = self.facts[fact_id]
        if name and found.range[0] < found.range[1]:
            self.bands[name] = found.range
        for bar in bars:
            self.ids.setdefault(bar, []).append(fact_id)
        return found.number

    def level(self, series_id: str, *bars: str) -> tuple[float, float, float]:
        """(value, low, high) of a series on the day, noted under bars by its nearest point."""
        value, low, high, point_id = _level(self.facts, series_id, self.on)
        for bar in bars:
            self.ids.setdefault(bar, []).append(point_id)
        return value, low, high

    def row(self, sku: str, name: str) -> Row:
        """Row of the table in force on the day: the latest started, else the earliest."""
        rows = [r for r in _table()[sku] if r["input"] == name]
        started = [r for r in rows if r["valid_from"] <= self.on.isoformat()]
        return started[-1] if started else rows[0]

    @cached_property
    def server_over_chip(self) -> float:
        """Server price per accelerator over chip price: mean of the H100 and B200 servers of January 2025."""
        pairs = (
            ("buy_nvidia_h100_sxm5_80gb_2025_01_31", "asp_nvidia_h100"),
            ("buy_nvidia_b200_2024_12_17", "asp_nvidia_b200"),
        )
        ratios = [self.facts[server].number / self.facts.series(chip).at("2024-Q4").value for server, chip in pairs]
        return sum(ratios) / len(ratios)


def _purchase(b: _Builder, row: Row, it_kw: float) -> tuple[float, float, tuple[float, float]]:
    """(equipment, network, band of equipment) per accelerator, USD, from the row that prices the SKU."""
    scope, source = row["scope"], row["source_ids"]
    if scope == "chip_series":
        value, low, high = b.level(source, "equipment")
    else:
        value, low, high = _spread(b, b.fact(source, "equipment"), *b.facts[source].range)
    scale = 1.0 / float(row["divide_by"])
    if scope in ("chip", "chip_series"):
        scale *= b.server_over_chip
        b.ids["equipment"] += ["buy_nvidia_h100_sxm5_80gb_2025_01_31", "buy_nvidia_b200_2024_12_17"]
    if scope == "site":
        share = b.fact("ai_data_center_1_gw_asic_share_racks_and_servers_2026_05", "equipment")
        network_share = b.fact("ai_data_center_1_gw_share_networking_2026_05", "network")
        pue, _, _ = b.level("pue_ai_new_build", "equipment")
        per_watt = it_kw * pue * 1e3 / 1e9
        equipment = value * share * per_watt
        return equipment, value * network_share * per_watt, _spread(b, equipment, equipment, equipment)[1:]
    network_fact = "ai_data_center_1_gw_gb200_share_networking_2025_10" if scope == "rack" else _NETWORK
    share = b.fact(network_fact, "network")
    return value * scale, value * scale * share / (1 - share), (low * scale, high * scale)


def _spread(b: _Builder, value: float, low: float, high: float) -> tuple[float, float, float]:
    """(value, low, high) of a price; one without a range gets the usual spread of purchase prices."""
    if low < high:
        return value, low, high
    spread = b.facts["purchase_price_spread_2026_06"].number
    return value, value * (1 - spread), value * (1 + spread)


def _stated(b: _Builder, part: StatedPart) -> tuple[tuple[float, float, float], float, float, tuple[float, float]]:
    """(rated watts with low and high, equipment, network, band of equipment) of a part that a scenario prices."""
    pue, _, _ = b.level("pue_ai_new_build", "electricity")
    watts, low, high = (1e3 * kw / pue for kw in part.planning_kw)
    share = b.fact(_NETWORK, "network")
    value, *band = _spread(b, *part.purchase_usd)
    return (watts, low, high), value, value * share / (1 - share), (band[0], band[1])


def _capital_rate(b: _Builder, owner: str) -> float:
    if owner == "hyperscaler":
        return b.fact("hyperscaler_capital_charge_2026", *CAPITAL, name="rate_per_year")
    rates = [b.fact(rate, *CAPITAL) for _, rate in _DEBT]
    principals = [b.fact(principal) for principal, _ in _DEBT]
    b.bands["rate_per_year"] = (min(rates), max(rates))
    return weighted_average_rate(principals, rates)


def _building(b: _Builder, region: str, it_kw: float) -> dict[str, Any]:
    """Own building: AI facility cost per MW of IT, scaled by regional cost; own lead time and life."""
    cost = b.fact("ai_data_centre_facility_capex_2026", "building")
    low, high = b.facts["ai_data_centre_facility_capex_2026"].range
    base = b.facts[_BUILDING["us"][0]].number
    places = _BUILDING.get(region, _BUILDING["us"])
    factor = sum(b.fact(p, "building") for p in places) / len(places) / base
    per_kw = factor * it_kw / 1e3
    b.bands["facility_usd"] = (low * per_kw, high * per_kw)
    months, m_low, m_high = b.level(f"lead_time_dc_{_LEAD[region]}", "interest_before_income")
    share = b.fact("construction_spend_share_of_lead_time_2026", "interest_before_income")
    b.bands["construction_months"] = (m_low * share, m_high * share)
    return {
        "facility_usd": cost * per_kw,
        "facility_life_years": b.fact("facility_life_band_2026", "building", name="facility_life_years"),
        "construction_months": months * share,
    }


def _power(b: _Builder, region: str, it_w: tuple[float, float, float]) -> dict[str, Any]:
    busy = b.fact("8xh100_hgx_node_compute_heavy_power_over_rated_2025_06", "electricity")
    idle = b.fact("accelerator_idle_power_share_2026_06", "electricity")
    idle_low, idle_high = b.facts["accelerator_idle_power_share_2026_06"].range
    price, p_low, p_high = b.level(f"electricity_price_{region}", "electricity")
    pue, u_low, u_high = b.level("pue_ai_new_build", "electricity")
    kw = it_w[0] / 1e3
    b.bands |= {
        "busy_kw": (it_w[1] * busy / 1e3, it_w[2] * busy / 1e3),
        "idle_kw": (kw * idle_low, kw * idle_high),
        "electricity_usd_per_kwh": (p_low, p_high),
        "pue": (max(1.0, u_low), u_high),
    }
    return {"busy_kw": kw * busy, "idle_kw": kw * idle, "electricity_usd_per_kwh": price, "pue": pue}


def _operations(b: _Builder, it_kw: float) -> dict[str, Any]:
    """Running cost other than power, split between upkeep and staff as in one published operating-cost model."""
    opex = b.fact("data_center_non_energy_opex_2026", "maintenance", "staff") * it_kw
    low, high = b.facts["data_center_non_energy_opex_2026"].range
    upkeep = b.fact("ai_data_centre_maintenance_share_of_opex_2025", "maintenance", "staff")
    share = upkeep / (1 - b.fact("ai_data_centre_electricity_share_of_opex_2025", "maintenance", "staff"))
    b.bands["maintenance_usd_per_year"] = (low * it_kw * share, high * it_kw * share)
    b.bands["staff_usd_per_year"] = (low * it_kw * (1 - share), high * it_kw * (1 - share))
    return {
        "maintenance_usd_per_year": opex * share,
        "staff_usd_per_year": opex * (1 - share),
        "insurance_share_per_year": b.fact(
            "data_center_insurance_rate_2026", "insurance", name="insurance_share_per_year"
        ),
        "spares_share": b.fact("delta_cluster_overprovision_needed_2025", "spares"),
        "failure_rate_per_year": b.fact(
            "datacentre_gpu_permanent_failure_rate_2025", "failures", name="failure_rate_per_year"
        ),
        "repair_share": b.fact("accelerator_repair_cost_share_2026", "failures", name="repair_share"),
    }


def default_use(facts: Catalog | None = None) -> UseChain:
    """Use chain of a rented serving fleet from facts (their ranges are wide; see each fact's note)."""
    cat = facts or catalog()
    return UseChain(
        sold=cat["owner_sold_share_2026"].number,
        scheduled=cat["scheduled_share_2026"].number,
        healthy=cat["healthy_share_2026"].number,
        busy=cat["owner_busy_share_2026"].number,
    )


def owner_inputs(
    sku: str,
    region: str = "us",
    *,
    on: date,
    owner: str = "neocloud",
    site: str = "own_building",
    use: UseChain | None = None,
    facts: Catalog | None = None,
    stated: StatedPart | None = None,
) -> OwnerInputs:
    """Inputs of the owner cost of a SKU bought on a day, with bands and the facts behind each bar.

    `stated` takes the place of the table: its price and watts serve for any name.

    Raises:
        OwnerCostError: when SKU, region, owner or site is unknown.
    """
    name = sku if stated else econ_sku(sku)
    for label, value, options in (
        ("region", region, REGIONS),
        ("owner", owner, OWNERS),
        ("site", site, ("own_building", "colocation")),
    ):
        if value not in options:
            raise OwnerCostError(f"{label} = {value!r}: use one of {', '.join(options)}")
    b = _Builder(facts or catalog(), on)
    if stated:
        title, scope = sku, "stated"
        it_w, equipment, network, b.bands["it_usd"] = _stated(b, stated)
    else:
        row = b.row(name, "purchase")
        title, scope = row["title"], row["scope"]
        it_w = b.level(b.row(name, "it_power")["source_ids"], "electricity")
        equipment, network, b.bands["it_usd"] = _purchase(b, row, it_w[0] / 1e3)
    it_kw = it_w[0] / 1e3
    values: dict[str, Any] = {
        "it_usd": equipment,
        "network_usd": network,
        "rate_per_year": _capital_rate(b, owner),
        "it_life_years": b.fact("it_life_band_2026", "equipment", "network", name="it_life_years"),
        "delivery_months": b.fact("server_delivery_band_2026", "interest_before_income", name="delivery_months"),
        "decline_oom_per_year": b.fact("epoch_ai_cost_model_hardware_value_decline_2026_04_01", "residual_value"),
        "tax_rate": b.fact("us_corporate_tax_rate_2025", "income_tax") if region == "us" else 0.0,
        "use": use or default_use(b.facts),
    }
    if region == "us" and b.fact("us_bonus_depreciation_2025", "income_tax") != 1:
        raise OwnerCostError("us_bonus_depreciation_2025 is not 1: give a tax life for the part that is not expensed")
    if use is None:
        b.fact("owner_sold_share_2026", *CAPITAL, "electricity", name="use.sold")
        for share in ("scheduled_share_2026", "healthy_share_2026", "owner_busy_share_2026"):
            b.fact(share, "electricity")
    salvage = 10.0 ** (-values["decline_oom_per_year"] * values["it_life_years"])
    b.bands["it_residual_share"] = (0.0, salvage)
    values |= _power(b, region, it_w) | _operations(b, it_kw)
    values |= _building(b, region, it_kw) if site == "own_building" else _colocation(b, it_kw)
    planning = it_kw * values["pue"] * (1 + b.facts["power_headroom_inferencex_2026"].number)
    ids = {bar: tuple(dict.fromkeys(found)) for bar, found in b.ids.items()}
    return OwnerInputs(name, title, CostInputs(**values), b.bands, ids, scope, planning)


def _colocation(b: _Builder, it_kw: float) -> dict[str, Any]:
    dated = [f for f in _COLOCATION if b.facts[f].valid_from <= b.on] or [_COLOCATION[0]]
    return {"colocation_usd_per_kw_month": b.fact(dated[-1], "colocation"), "colocation_kw": it_kw}


def owner_cost(sku: str, region: str = "us", *, on: date, method: str = "annuity", **options: Any) -> CostBreakdown:
    """Owner cost of one sold accelerator-hour of a SKU bought on a day, as a waterfall with its 90 % band.

    `options` are those of `owner_inputs` (owner, site, use, facts).

    >>> from datetime import date
    >>> cost = owner_cost("h100", "us", on=date(2026, 6, 30))
    >>> cost.low < cost.total < cost.high
    True

    Raises:
        OwnerCostError: when SKU, region, owner or site is unknown.
    """
    return owner_inputs(sku, region, on=on, **options).cost(method)
