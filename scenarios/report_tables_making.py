"""Study tables of manufacturing: cost of a good package, yields, a wafer map, memory stacks, embodied carbon.

`unit_cost` (parts with bands), `unit_cost_published` (ours beside estimates), `yield_by_area`, `die_yields`,
`wafer_map` (sites and defects of one simulated wafer), `stack_yield`, `carbon`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["COSTED", "MAP_SEED", "manufacturing_tables"]

#: Packages with a published total or part to stand beside: those of `cost_against_published`.
COSTED = ("h100", "h200", "b200", "mi300x", "rubin")
MAPPED = "h100"
MAP_SEED = 7
_NODE = "d0_n5"
_MEMORIES = ("hbm3", "hbm3e", "hbm4")
_HEIGHTS = (8, 12, 16)


def manufacturing_tables(on: date) -> dict[str, pd.DataFrame]:
    """All tables; prices and yields of a package at its reference day, those of a node or memory at the day given.

    Raises:
        ManufacturingError: when a fact that a package needs is missing.
    """
    makers: dict[str, Callable[[date], pd.DataFrame]] = {
        "unit_cost": lambda _: unit_cost_table(),
        "unit_cost_published": lambda _: published_table(),
        "yield_by_area": yield_table,
        "die_yields": lambda _: die_table(),
        "wafer_map": lambda _: map_table(),
        "stack_yield": stack_table,
        "carbon": lambda _: carbon_table(),
    }
    return {name: make(on) for name, make in makers.items()}


def unit_cost_table() -> pd.DataFrame:
    """Cost of a good package by part without set-up cost: sku, name, on, part, value, low, high, unit, fact_ids."""
    from supply.manufacturing import product, unit_cost

    rows = []
    for sku in COSTED:
        cost = unit_cost(sku, nre=False)
        ids = " ".join(dict.fromkeys(i for names in cost.trace.values() for i in names))
        head = (sku, product(sku).name, cost.on.isoformat())
        for part, value in cost.waterfall.items():
            if part != "nre":
                rows.append((*head, part, float(np.asarray(value)), *cost.bands[part], "USD/package", ids))
        rows.append((*head, "total", cost.total, cost.low, cost.high, "USD/package", ids))
    columns = ["sku", "name", "on", "part", "value", "low", "high", "unit", "fact_ids"]
    return pd.DataFrame(rows, columns=columns)


def published_table() -> pd.DataFrame:
    """Ours beside published estimates: sku, part, ours, low, high, published, fact_ids, source, words (of totals)."""
    from supply.facts import catalog
    from supply.manufacturing import cost_against_published

    facts = catalog()
    rows: list[tuple[Any, ...]] = []
    for c in cost_against_published():
        for part, (ours, published, fact) in c.parts.items():
            rows.append((c.sku, part, ours, None, None, published, fact or "", facts[fact].source if fact else "", ""))
        source = facts[c.published_fact].source if c.published_fact else ""
        whole = (c.ours_usd, c.low_usd, c.high_usd, c.published_usd)
        rows.append((c.sku, "total", *whole, c.published_fact or "", source, c.explanation))
    columns = ["sku", "part", "ours", "low", "high", "published", "fact_ids", "source", "words"]
    frame = pd.DataFrame(rows, columns=columns)
    numbers = ["ours", "low", "high", "published"]
    return frame.assign(**{n: frame[n].astype(float) for n in numbers})


def yield_table(on: date) -> pd.DataFrame:
    """Share of dies free of defects by area and model, at the N5 density of the day and its low and high.

    Columns model, area_mm2, value, low, high, defects_per_cm2, alpha, fact_ids. Bose-Einstein is Seeds for one layer
    and is left out.
    """
    from supply.facts import catalog
    from supply.manufacturing import MODELS, die_yield

    facts = catalog()
    alpha = facts["asm_yield_alpha"].number
    density, low, high = (facts.series(_NODE).levels([on], which)[0] for which in ("value", "low", "high"))
    area = np.arange(25.0, 860.0, 25.0)
    rows = []
    for model in MODELS:
        if model == "bose_einstein":
            continue
        middle, worst, best = (np.asarray(die_yield(area, d, model, alpha)) for d in (density, high, low))
        for a, y, y_low, y_high in zip(area, middle, worst, best, strict=True):
            rows.append((model, a, y, y_low, y_high, density, alpha, f"{_NODE} asm_yield_alpha"))
    columns = ["model", "area_mm2", "value", "low", "high", "defects_per_cm2", "alpha", "fact_ids"]
    return pd.DataFrame(rows, columns=columns)


def die_table() -> pd.DataFrame:
    """Leading die of each package at its reference day: area, gross dies, share free of defects, share that serves.

    Columns sku, name, on, die, per_package, area_mm2, node, defects_per_cm2, gross, full_yield, die_yield, fact_ids;
    `die_yield` counts dies with spare blocks switched off, and line yield.
    """
    from supply.manufacturing import product

    rows = []
    for sku in COSTED:
        p = product(sku)
        ids = " ".join(dict.fromkeys(i for key, names in p.trace.items() if key.startswith("dies.") for i in names))
        d = p.dies[0]
        head = (sku, p.name, p.on.isoformat(), d.name, d.count, d.area_mm2, d.node)
        rows.append((*head, d.defects_per_cm2, d.gross_dies_per_wafer, d.full_yield, d.die_yield, ids))
    columns = ["sku", "name", "on", "die", "per_package", "area_mm2", "node", "defects_per_cm2", "gross"]
    return pd.DataFrame(rows, columns=[*columns, "full_yield", "die_yield", "fact_ids"])


def map_table(sku: str = MAPPED, seed: int = MAP_SEED) -> pd.DataFrame:
    """One simulated wafer of the package's leading die: a row a site (full, cut, scrap, edge) and a row a defect.

    A die with defects serves (cut) when no defect fell outside the repeated blocks and no more blocks are hit than it
    may spare; where in the die the blocks lie is not known, so each defect falls in one by chance (same seed).
    Columns kind, x_mm, y_mm (lower left corner), width_mm, height_mm, sku, die, defects_per_cm2, seed, serving_share
    (expected), full_share (expected), radius_mm, usable_radius_mm, fact_ids.
    """
    from supply.facts import catalog
    from supply.manufacturing import product, wafer_map
    from supply.manufacturing.product_specs import SPECS
    from supply.manufacturing.wafer import FIELD_MM

    facts, p, spec = catalog(), product(sku), SPECS[sku].dies[0]
    die, harvest = p.dies[0], spec.harvest
    if harvest is None:
        raise ValueError(f"{sku}: the map shows cut dies, and no fact tells the repeated blocks of {die.name}")
    width = min(FIELD_MM[0], die.area_mm2**0.5)
    height = die.area_mm2 / width
    alpha = facts["asm_yield_alpha"].number
    m = wafer_map(width, height, die.defects_per_cm2, alpha=alpha, seed=seed)
    blocks, active = (round(facts[n].number / harvest.dies) for n in (harvest.present, harvest.active))
    share = facts["asm_block_area_share_gpu"].number
    rng = np.random.default_rng(seed + 1)
    rows = []
    for x, y, state in zip(m.x_mm, m.y_mm, m.state, strict=True):
        inside = (
            (m.defect_x_mm >= x) & (m.defect_x_mm < x + width) & (m.defect_y_mm >= y) & (m.defect_y_mm < y + height)
        )
        kind = "edge" if state == "partial" else _bin(int(inside.sum()), blocks, blocks - active, share, rng)
        rows.append((kind, x, y, width, height))
    rows += [("defect", x, y, 0.0, 0.0) for x, y in zip(m.defect_x_mm, m.defect_y_mm, strict=True)]
    serving = die.die_yield / facts["asm_line_yield"].number
    ids = " ".join(p.trace[f"dies.{die.name}.die_yield"])
    frame = pd.DataFrame(rows, columns=["kind", "x_mm", "y_mm", "width_mm", "height_mm"])
    return frame.assign(
        sku=sku, die=die.name, defects_per_cm2=die.defects_per_cm2, seed=seed, serving_share=serving,
        full_share=die.full_yield, radius_mm=150.0, usable_radius_mm=m.usable_radius_mm, fact_ids=ids,
    )  # fmt: skip


def _bin(defects: int, blocks: int, spare: int, block_share: float, rng: np.random.Generator) -> str:
    if defects == 0:
        return "full"
    in_blocks = rng.random(defects) < block_share
    hit = np.unique(rng.integers(0, blocks, int(in_blocks.sum())))
    return "cut" if in_blocks.all() and hit.size <= spare else "scrap"


def stack_table(on: date) -> pd.DataFrame:
    """Yield from DRAM die to good stack by generation and height: memory, height, value, low, high, quoted, fact_ids.

    `quoted` marks heights with a yield in the facts; the others follow from its bond yield. The band is that of the
    quoted yield, in proportion.
    """
    from supply.facts import catalog
    from supply.manufacturing import stack_yield_by_height
    from supply.manufacturing.product_specs import MEMORIES
    from supply.manufacturing.products import stack_yield_series

    facts = catalog()
    rows = []
    for memory in _MEMORIES:
        for height, value in stack_yield_by_height(memory, on, _HEIGHTS).items():
            series = stack_yield_series(memory, height)[0]
            middle, low, high = (facts.series(series).levels([on], w)[0] for w in ("value", "low", "high"))
            ends = (value * low / middle, min(value * high / middle, 1.0))
            rows.append((memory, height, value, *ends, height in MEMORIES[memory].yields, on.isoformat(), series))
    return pd.DataFrame(rows, columns=["memory", "height", "value", "low", "high", "quoted", "on", "fact_ids"])


def carbon_table() -> pd.DataFrame:
    """Embodied carbon and fab water of a good package by part on Taiwan's grid, with the least and most over grids.

    Columns sku, name, on, part, value (kg CO2e), low, high, water_liters, unit, fact_ids.
    """
    from supply.manufacturing import footprint, product
    from supply.manufacturing.carbon import GRIDS

    rows = []
    for sku in COSTED:
        by_grid = [footprint(sku, grid=g) for g in GRIDS]
        base = next(f for f in by_grid if f.grid == "taiwan")
        for part in [p for p, v in base.carbon_kg.items() if float(np.asarray(v))] + ["total"]:
            totals = [f.carbon_kg.total if part == "total" else f.carbon_kg[part] for f in by_grid]
            water = base.water_liters.total if part == "total" else base.water_liters[part]
            value = totals[GRIDS.index("taiwan")]
            numbers = [float(np.asarray(v)) for v in (value, min(totals), max(totals), water)]
            head = (sku, product(sku).name, base.on.isoformat(), part)
            rows.append((*head, *numbers, "kg CO2e/package", " ".join(base.trace)))
    columns = ["sku", "name", "on", "part", "value", "low", "high", "water_liters", "unit", "fact_ids"]
    return pd.DataFrame(rows, columns=columns)
