"""docs/mathematics.md against the code, and a golden text of every constraint family."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from supply.network import Contract, Demand, Expansion, FleetSku, Network, Process, Region, Segment
from supply.network_examples import power_chain
from supply.optimizer.formulation import formulate
from supply.optimizer.matrix import compile_matrix, edited_entries
from supply.optimizer.parameters import Scale

PAGE = Path(__file__).parents[2] / "docs" / "mathematics.md"
GOLDEN = Path(__file__).parent / "golden_optimum.txt"


def everything() -> Network:
    """Two periods with one example of every family; natural units."""
    from dataclasses import replace

    from supply.network import Disruption

    base = power_chain(2, life_years=None)
    values = {
        "materials.big.holding_cost": 0.0,
        "processes.make_big.lead_time": 0.5,
        "processes.make_big.ramp": 2.0,
        "processes.make_big.run_down": 0.25,
        "processes.make_big.floor": 7.0,
        "opening.pipeline.make_big": 3.0,
        "fleet.big.opening.us": 5.0,
        "regions.us.least_share": 0.3,
        "regions.eu.greatest_share": 0.9,
        "fleet.big.tastes.0.share": 0.6,
        "fleet.big.tastes.0.discount": 0.0,
        "fleet.big.tastes.1.share": 0.4,
        "fleet.big.tastes.1.discount": 0.2,
        "demand.one.reference": 50.0,
        "demand.one.steps.0.share": 1.0,
        "demand.one.steps.0.discount": 0.1,
        "contracts.c.greatest_share": 0.8,
        "contracts.c.least_share": 0.1,
        "contracts.c.take_or_pay": 2.0,
        "contracts.c.greatest": 70.0,
        "contracts.c.least": 4.0,
        "expansions.e.capex": 9.0,
        "expansions.e.lump": 11.0,
        "expansions.e.greatest": 22.0,
        "expansions.e.lead_time": 1.0,
        "costs.capex_budget.foundry": 500.0,
        "demand.small.price": 13.0,
        "demand.small.quantity": 6.0,
        "demand.small.cancel": 0.2,
        "disruptions.d.remaining": 0.5,
        "fleet.small.survival_by_age": [1.0, 0.75],
    }
    network = replace(
        base,
        fleet={
            "big": FleetSku("big", "big", ("us", "eu"), "one", early_retirement=True, tastes=2),
            "small": FleetSku("small", "small", ("us",), "one"),
        },
        regions={"us": Region("us"), "eu": Region("eu")},
        segments={"one": Segment("one", 1)},
        contracts={"c": Contract("c", "fab", ("make_big",))},
        expansions={"e": Expansion("e", "fab", "foundry")},
        demand={"small": Demand("small", "backlog"), "big": Demand("big", "lost")},
        disruptions={"d": Disruption("d", "make_small", 1, 1, target="process")},
        processes={
            **base.processes,
            "split": Process("split", ("big", "small"), ("small",), uses=("fab",), last=0),
            "pack": Process("pack", ("big",), ("small",), last=0),
        },
    )
    values |= {"demand.big.price": 1.0, "demand.big.quantity": 8.0}
    values |= {
        "fleet.big.energising_cost": 40.0,
        "processes.split.input.small": 0.125,
        "processes.pack.input.small": 3.0,
        "processes.pack.output.big": 0.25,
    }
    values |= {"processes.split.output.big": 1.0, "processes.split.output.small": 2.0, "processes.split.uses.fab": 0.5}
    numbers = {path: array for path, array in network.values.items() if path != "fleet.small.survival"}
    return replace(network, values=numbers).with_values(values)


def rows_as_text(network: Network) -> str:
    context = formulate(network, Scale(1.0, 1.0))
    matrix = compile_matrix(context)
    entries = edited_entries(matrix, context.table.theta())
    sense = {-1: ">=", 0: "=", 1: "<="}
    lines = []
    for i, row in enumerate(matrix.rows):
        terms = sorted((c, v) for (r, c), v in entries.items() if r == row and c != "rhs")
        left = " ".join(f"{v:+.6g} {c[0]}[{','.join(map(str, c[1]))}]" for c, v in terms)
        right = f"{sense[int(matrix.kind[i])]} {entries.get((row, 'rhs'), 0.0):.6g}"
        lines.append(f"{row[0]}[{','.join(map(str, row[1]))}]: {left} {right}")
    objective = sorted((c, v) for (r, c), v in entries.items() if r == "objective")
    lines.append("maximise " + " ".join(f"{v:+.6g} {c[0]}[{','.join(map(str, c[1]))}]" for c, v in objective))
    return "\n".join(sorted(lines)) + "\n"


def test_golden_text_of_every_constraint_family() -> None:
    assert rows_as_text(everything()) == GOLDEN.read_text(encoding="utf-8")


def names(kind: str) -> set[str]:
    context = formulate(everything(), Scale(1.0, 1.0))
    matrix = compile_matrix(context)
    if kind == "parameters":
        return {p.name for p in context.table.parameters}
    return {name for name, _ in (matrix.rows if kind == "rows" else matrix.columns)}


@pytest.mark.parametrize("kind", ["rows", "variables", "parameters"])
def test_page_names_every_row_variable_and_parameter(kind: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = text.split(f"## {kind.capitalize()}", 1)[1].split("\n## ", 1)[0]
    named = set(re.findall(r"^\| `([a-z0-9_]+)", table, flags=re.MULTILINE))
    assert names(kind) - named == set(), "missing on the page"
    extra = named - names(kind) - {"demand_met"}
    assert extra == set(), "no longer in the code"
