"""What the cost of an hour and of a request rest on, as one table: a workbook builds its live formulas from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from econ.chain import CostChoice
    from econ.owner_cost import OwnerInputs
    from scenarios.costing import CostModel
    from scenarios.resolve import Resolved

__all__ = ["OWNER_INPUTS", "REQUEST_TOKENS", "cost_inputs"]

COLUMNS = ("sku", "model", "period", "region", "input", "value", "unit")
#: Inputs of an owner's hour (`econ.gpu_hour.CostInputs`) and their units.
OWNER_INPUTS: Mapping[str, str] = {
    "it_usd": "USD", "network_usd": "USD", "facility_usd": "USD", "rate_per_year": "1/year", "it_life_years": "year",
    "facility_life_years": "year", "it_residual_share": "fraction", "delivery_months": "month",
    "construction_months": "month", "tax_rate": "fraction", "tax_life_years": "year", "spares_share": "fraction",
    "failure_rate_per_year": "1/year", "repair_share": "fraction", "insurance_share_per_year": "1/year",
    "maintenance_usd_per_year": "USD/year", "staff_usd_per_year": "USD/year", "busy_kw": "kW IT", "idle_kw": "kW IT",
    "pue": "ratio", "electricity_usd_per_kwh": "USD/kWh", "use.sold": "fraction", "use.scheduled": "fraction",
    "use.healthy": "fraction", "use.busy": "fraction", "hours_per_year": "hour",
}  # fmt: skip
#: Token classes of one request of the workload of a model.
REQUEST_TOKENS = ("uncached_input", "cache_write", "cache_read", "output")
HEADROOM = "power_headroom_inferencex_2026"


def cost_inputs(resolved: Resolved, model: CostModel) -> pd.DataFrame:
    """Inputs of the owner cost of every priced product and period, its watts, and the tokens of a request.

    Columns sku, model, period, region, input, value, unit. Rows of a model (tokens of a request) have no sku and no
    period; `chip_w` is the rated power of the accelerator alone, missing where no record has it.
    """
    rows = [row for k in range(len(model.rows)) for row in _owner_rows(model.choice(k))]
    frame = pd.DataFrame([*rows, *_request_rows(resolved)], columns=list(COLUMNS))
    return frame.astype({"value": float})


def _owner_rows(choice: CostChoice) -> Iterator[tuple[Any, ...]]:
    from econ.chain import hour_cost
    from supply.facts import catalog

    found = hour_cost(choice).inputs
    assert found is not None  # the model holds only what could be costed
    head = (choice.sku, "", choice.period, choice.region)
    for name, unit in OWNER_INPUTS.items():
        yield (*head, name, float(attrgetter(name)(found.inputs)), unit)
    yield (*head, "planning_kw", found.planning_kw, "kW")
    yield (*head, "headroom", catalog()[HEADROOM].number, "fraction")
    if (watts := _chip_w(choice.sku, found)) is not None:
        yield (*head, "chip_w", watts, "W")


def _chip_w(sku: str, inputs: OwnerInputs) -> float | None:
    from econ.performance.hardware import hardware

    for name in (sku, inputs.title):
        try:
            return float(hardware(name).tdp_w)
        except ValueError:
            continue
    return None


def _request_rows(resolved: Resolved) -> Iterator[tuple[Any, ...]]:
    from econ.chain import MODEL_CHOICES
    from econ.token_cost import workload
    from scenarios.runner import workloads_and_tasks

    for name in workloads_and_tasks(resolved.scenario)[0]:
        choice = MODEL_CHOICES.get(name)
        if choice is None:
            continue
        usage = (workload(choice.workload) if isinstance(choice.workload, str) else choice.workload).usage
        counts = (usage.uncached_input, usage.cache_write + usage.cache_write_1h, usage.cache_read, usage.output)
        for token_class, count in zip(REQUEST_TOKENS, counts, strict=True):
            yield ("", choice.name, "", "", f"request_{token_class}", float(count), "tokens")
