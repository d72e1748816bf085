"""The shipped scenarios: no problem, reasons that name existing facts, and a change against base."""

from __future__ import annotations

import re

import numpy as np
import pytest

from scenarios.library import names
from scenarios.load import load_scenario
from scenarios.resolve import Resolved, resolve
from supply.facts import catalog

CASES = (
    "cowos_slip",
    "hbm_qualification_failure",
    "slow_yield_ramp",
    "grid_queue",
    "export_limits",
    "efficiency_shock",
    "fast_yield_ramp",
    "gas_turbine_buildout",
    "taiwan_disruption",
    "custom_silicon_share",
    "demand_collapse",
    "price_war",
)


@pytest.fixture(scope="module")
def base() -> Resolved:
    return resolve(load_scenario("base"))


def test_the_library_holds_the_promised_scenarios() -> None:
    assert {"base", "small", "course_11_1", *CASES} <= set(names())


@pytest.mark.parametrize("name", CASES)
def test_a_case_differs_from_base_and_names_its_facts(name: str, base: Resolved) -> None:
    scenario = load_scenario(name)
    case = resolve(scenario)
    moved = [
        p
        for p in base.network.values
        if p not in case.network.values or not np.array_equal(base.network.values[p], case.network.values[p])
    ]
    structure = case.network.processes != base.network.processes or case.network.fleet != base.network.fleet
    assert moved or structure or case.network.disruptions != base.network.disruptions
    note = scenario.file.note
    assert len(note) > 250
    named = [w for w in re.findall(r"[a-z0-9_]{12,}", note) if w.count("_") >= 3]
    known = catalog()
    assert named, "a case names the facts that it rests on"
    for word in named:
        assert word in known or word in known.series_ids, f"{name}: no fact {word}"


def test_the_disruption_is_not_foreseen() -> None:
    """Lines are whole until it begins, almost gone for two quarters, and the plan rolls."""
    network = resolve(load_scenario("taiwan_disruption")).network
    assert network.regime.kind == "rolling"
    start = network.horizon.labels().index("2027-Q1")
    assert {d.subject for d in network.disruptions.values()} == {"n5", "n3", "cowos", "cowos_osat"}
    for d in network.disruptions.values():
        assert (d.first, d.last, d.known_from) == (start, start + 1, start)


def test_slow_and_fast_ramps_lie_on_both_sides_of_base(base: Resolved) -> None:
    slow, fast = (resolve(load_scenario(n)).network.values for n in ("slow_yield_ramp", "fast_yield_ramp"))
    for path in ("processes.make_die_rubin.yield", "processes.package_b300.yield"):
        assert (slow[path] <= base.network.values[path]).all() and (fast[path] >= base.network.values[path]).all()
        assert slow[path].sum() < base.network.values[path].sum() < fast[path].sum()


DEFINED = (".input.", ".output.", ".uses.", ".lead_time", ".h100e", ".share")


def test_every_number_of_base_has_a_fact_or_a_reason(base: Resolved) -> None:
    """Plain numbers are left to what defines a product or a step; zero and one are not claims."""
    loose = {
        path
        for path, node in base.nodes.items()
        for kind, value in zip(node.source.kinds, node.value.tolist(), strict=True)
        if kind == "stated" and value not in (0.0, 1.0) and not any(part in path for part in DEFINED)
    }
    assert loose == set()


def test_no_outcome_enters_base_after_the_opening(base: Resolved) -> None:
    known = catalog()
    outcomes = {p.id for s in known.series_ids if known.series(s).outcome_derived for p in known.series(s).points}
    for path, node in base.nodes.items():
        used = {f for facts in node.source.facts for f in facts}
        assert not used & outcomes, path
        if any("shipments" in f for f in used):
            assert ".opening." in path
