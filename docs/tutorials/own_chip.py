"""Tutorial 2: an own chip and its package. What does a good unit cost, how many can be made, what stops more?

The chip is invented: its size, stacks and allocations below are yours to change. Prices and defect densities are dated
facts. Run it with `python docs/tutorials/own_chip.py`; it takes a few seconds.
"""

import tempfile
from datetime import date
from pathlib import Path

from scenarios.runner import run
from supply.facts import catalog
from supply.manufacturing import (
    DiePart,
    MemoryPart,
    Unit,
    die_yield,
    good_unit_cost,
    gross_dies,
    package,
    packages_per_wafer,
    wafer_price,
)

ON = date(2026, 6, 30)
WIDTH_MM, HEIGHT_MM, DIES, STACKS, INTERPOSER_MM2 = 25.0, 30.0, 2, 8, 2800.0

SCENARIO = """
title: Own chip, one year
horizon: {{start: 2027-Q1, periods: 4, step: quarter}}
objective: units
materials: {{die: {{unit: die}}, hbm: {{unit: stack}}, chip: {{unit: accelerator, title: Own chip}}}}
resources:
  wafers: {{stage: fab, title: Wafers allotted, capacity: 12000 wafer/quarter}}
  stacks: {{stage: hbm, title: HBM stacks allotted, capacity: 1200000 stack/quarter}}
  cowos:  {{stage: packaging, title: CoWoS wafers allotted, capacity: 9000 wafer/quarter}}
processes:
  make_die: {{stage: fab, output: {{die: {good_dies:.4f}}}, uses: {{wafers: 1 wafer}}, lead_time: 1 quarter}}
  buy_hbm:  {{stage: hbm, output: {{hbm: 1}}, uses: {{stacks: 1 stack}}}}
  package:
    {{stage: packaging, input: {{die: {dies}, hbm: {stacks}}}, output: {{chip: 1}}, yield: {assembly:.4f},
     uses: {{cowos: {per_package:.6f} wafer}}}}
opening: {{pipeline: {{make_die: 12000}}}}
demand: {{chip: {{price: 1 USD/accelerator}}}}
"""


def main() -> dict[str, float]:
    """Physics, cost and supply of the chip; returns the numbers printed."""
    cat = catalog()
    # %% 1. Dies on a wafer, and the good ones: negative binomial at the published defect density of N5.
    density = cat["tsmc_n5_defect_density_d0_2020_08"].number
    gross = gross_dies(WIDTH_MM, HEIGHT_MM)
    good_share = float(die_yield(WIDTH_MM * HEIGHT_MM, density))
    good_dies = gross * good_share
    print(f"{gross} dies on a wafer, {100 * good_share:.1f} % good at {density} defects/cm2: {good_dies:.1f} good ones")

    # %% 2. The package: chip-last, two dies and eight stacks on a silicon interposer.
    assembly = package(DIES, INTERPOSER_MM2, memory_stacks=STACKS)
    multiplier = float(assembly.die_multiplier)
    print(f"assembly yield {100 * float(assembly.package_yield):.1f} %: {multiplier:.3f} dies started for each shipped")

    # %% 3. Cost of a good unit as a waterfall whose bars sum to the total.
    wafer = wafer_price("n3", ON)
    per_wafer = packages_per_wafer(INTERPOSER_MM2)
    unit = Unit(
        dies=[DiePart("compute", DIES, wafer.usd, gross, good_share)],
        memory=[MemoryPart("HBM3E", STACKS, cat["hbm3e_price_2025_11"].number)],
        interposer_usd=cat["tsmc_cowos_wafer_price_2026_01"].number / per_wafer,
        interposer_yield=assembly.interposer_yield,
        die_bond_yield=0.99,
        memory_bond_yield=0.99,
        final_yield=0.98,
    )
    cost = good_unit_cost(unit)
    print(f"one good unit costs {cost.total:,.0f} USD before test, substrate and design:")
    for part, usd in cost.items():
        if usd > 0:
            print(f"    {part:20} {usd:8,.0f}")

    # %% 4. A scenario of your own: the physics above gives its coefficients, your allocations its limits.
    text = SCENARIO.format(
        good_dies=good_dies,
        dies=DIES,
        stacks=STACKS,
        assembly=float(assembly.package_yield),
        per_package=1.0 / per_wafer,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "own_chip.yaml"
        path.write_text(text, encoding="utf-8")
        done = run(path)
        worse = run(path, [("processes.make_die.output.die", {"scale": 0.6})])
    made = done.output("finished:chip@2027")
    binding = done.json()["periods"][1]["binding"][0]
    price = binding["price"]
    print(f"{made:,.0f} chips in 2027; {binding['title']} binds: one more gives {price['native']:.2f} chips")

    # %% 5. A slow yield ramp: four in ten good dies fewer. What binds now?
    later = worse.json()["periods"][1]["binding"][0]
    fewer = worse.output("finished:chip@2027")
    print(f"with 40 % fewer good dies: {fewer:,.0f} chips; {later['title']} binds")
    return {"cost": float(cost.total), "made": made, "fewer": fewer, "good_dies": good_dies}


if __name__ == "__main__":
    main()
