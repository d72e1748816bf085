"""Time in manufacture: fab cycle by mask layers, tape-out, and time to market of a first batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from supply.facts import Catalog, catalog
from supply.manufacturing.numeric import FloatArray, ManufacturingError, Numbers, positive, share, unwrap

__all__ = ["CycleTime", "cycle_time", "fab_cycle_weeks", "set_up_cost_usd", "tapeout_weeks", "time_to_market_weeks"]

DAYS_PER_WEEK = 7.0
HOURS_PER_ENGINEER_WEEK = 40.0
BASE_TAPEOUT_HOURS = 96.0
LAYERS = {
    "28": "mask_layers_28nm_2017",
    "14": "mask_layers_14nm_2017",
    "10": "mask_layers_10nm_2017",
    "7": "tsmc_n7_mask_layers_2021",
    "5": "mask_layers_5nm_2017",
    "3": "asm_mask_layers_3nm",
}
LATENCY = {**{nm: f"fab_latency_{nm}nm_2023" for nm in ("28", "14", "10", "7", "5")}, "3": "asm_fab_latency_3nm"}


def fab_cycle_weeks(mask_layers: Numbers, days_per_layer: Numbers = 1.25) -> float | FloatArray:
    """Weeks from wafer start to wafer out: mask layers x days per layer / 7.

    >>> fab_cycle_weeks(84, 1.5)
    18.0
    """
    return unwrap(positive("mask_layers", mask_layers) * positive("days_per_layer", days_per_layer) / DAYS_PER_WEEK)


@dataclass(frozen=True)
class CycleTime:
    """Fab weeks by layers (with the range of days per layer) beside the published latency, and assembly and test."""

    node: str
    by_layers_weeks: float
    low_weeks: float
    high_weeks: float
    published_weeks: float
    assembly_and_test_weeks: float
    trace: tuple[str, ...]


def cycle_time(node_nm: str, cat: Catalog | None = None) -> CycleTime:
    """Cycle time of a node from facts: layers x days per layer, beside the published base latency (12 to 20 weeks).

    Raises:
        ManufacturingError: for a node without layer facts.

    >>> cycle_time("5").published_weeks
    20.0
    """
    if node_nm not in LAYERS:
        raise ManufacturingError(f"node {node_nm!r} nm has no mask-layer fact; choose one of {', '.join(LAYERS)}")
    facts = catalog() if cat is None else cat
    layers, days = facts[LAYERS[node_nm]], facts["fab_days_per_mask_layer_2017"]
    (few, many), (fast, slow) = layers.range, days.range
    return CycleTime(
        node_nm,
        float(np.asarray(fab_cycle_weeks(layers.number, days.number))),
        float(np.asarray(fab_cycle_weeks(few, fast))),
        float(np.asarray(fab_cycle_weeks(many, slow))),
        facts[LATENCY[node_nm]].number,
        facts["osat_latency_2023"].number,
        (layers.id, days.id, LATENCY[node_nm], "osat_latency_2023"),
    )


def tapeout_weeks(
    unique_transistors: Numbers, hours_per_transistor: Numbers, engineers: Numbers, parallel_share: Numbers = 1.0
) -> float | FloatArray:
    """Calendar weeks of tape-out.

    (96 + transistors x effort) engineer hours, of which the parallel share is divided among the engineers. Source:
    ttm-cas (ISCA 2023); only new transistors count, reused blocks do not.

    >>> round(tapeout_weeks(1e9, 5.5068e-6, 100), 2)
    1.4
    """
    hours = BASE_TAPEOUT_HOURS + positive("unique_transistors", unique_transistors, zero=True) * positive(
        "hours_per_transistor", hours_per_transistor
    )
    parallel = share("parallel_share", parallel_share, zero=True)
    return unwrap(hours * (1.0 - parallel + parallel / positive("engineers", engineers)) / HOURS_PER_ENGINEER_WEEK)


def time_to_market_weeks(
    tapeout: Numbers,
    fab: Numbers,
    assembly_and_test: Numbers,
    wafers: Numbers,
    wafers_per_week: Numbers,
    ahead: Numbers = 0.0,
) -> float | FloatArray:
    """Weeks from design to the last good unit of a batch.

    Tape-out + queue + fab + wafers at the line's rate + assembly and test. Queue = wafers ahead / rate. All in weeks.

    >>> time_to_market_weeks(10, 20, 6, 5000, 2500)
    38.0
    """
    rate = positive("wafers_per_week", wafers_per_week)
    queue = (positive("ahead", ahead, zero=True) + positive("wafers", wafers, zero=True)) / rate
    times = [
        positive(n, v, zero=True) for n, v in (("tapeout", tapeout), ("fab", fab), ("assembly", assembly_and_test))
    ]
    return unwrap(times[0] + times[1] + times[2] + queue)


def set_up_cost_usd(design_usd: Numbers, mask_set_usd: Numbers, mask_sets: Numbers = 1.0) -> float | FloatArray:
    """Cost before the first good wafer: design and IP plus mask sets (first tape-out and revisions).

    >>> set_up_cost_usd(449e6, 18.1e6, 3)
    503300000.0
    """
    masks = positive("mask_set_usd", mask_set_usd, zero=True) * positive("mask_sets", mask_sets)
    return unwrap(positive("design_usd", design_usd, zero=True) + masks)
