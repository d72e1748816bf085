"""Why a run differs from an earlier one: parts add up, kinds are told apart, and what cannot be split says so."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

from scenarios.change_causes import stored_numbers, why_changed
from scenarios.runner import run
from scenarios.runs import Run

OUTPUT = "finished:*@2026"
CHAIN = """title: Two capacities
horizon: {start: 2026-Q1, periods: 4}
objective: units
materials: {die: {unit: die}, accelerator: {unit: accelerator}}
resources:
  fab: {stage: fab, title: Wafer line, capacity: 12000 die/quarter}
  cowos: {stage: packaging, title: Packaging line, capacity: 10000 accelerator/quarter}
processes:
  make_die: {stage: fab, output: {die: 1}, uses: {fab: 1 die}}
  package: {stage: packaging, input: {die: 1}, output: {accelerator: 1}, uses: {cowos: 1 accelerator}}
demand: {accelerator: {price: 1 USD/accelerator}}
"""


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    path = tmp_path / "chain.yaml"
    path.write_text(CHAIN, encoding="utf-8")
    return path


def stored(path: Path, *sets: tuple[str, object]) -> Run:
    made = run(path, list(sets), out=path.parent / "runs")
    assert made.folder is not None
    return Run.open(made.folder)


def test_two_limits_share_what_both_together_gain(chain: Path) -> None:
    """Wafers 12 to 14 and packages 10 to 16 thousand a quarter: 40 to 56 thousand, Shapley 4 and 12."""
    sets = [("resources.fab.capacity", "14000 die/quarter"), ("resources.cowos.capacity", "16000 accelerator/quarter")]
    found = why_changed(stored(chain), stored(chain, *sets), [OUTPUT])
    assert (found.before[OUTPUT], found.now[OUTPUT]) == (40_000, 56_000)
    parts = {c.name: c.parts[OUTPUT] for c in found.causes}
    assert parts == pytest.approx({"resources.cowos": 12_000, "resources.fab": 4_000})
    assert {c.kind for c in found.causes} == {"assumption"} and not found.reason


def test_stored_numbers_are_those_that_were_solved(chain: Path) -> None:
    made = run(chain)
    assert made.resolved is not None
    network = made.resolved.network
    held = stored_numbers(made, network.horizon.length, network.horizon.labels())
    assert set(held) == set(network.values)
    assert all(np.array_equal(held[p], network.values[p]) for p in held)


def test_a_new_limit_is_scope(chain: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.yaml"
    text = CHAIN.replace("uses: {cowos: 1 accelerator}}", "uses: {cowos: 1 accelerator, test: 1 accelerator}}")
    line = "  test: {stage: test, title: Test cells, capacity: 8000 accelerator/quarter}\nprocesses:"
    more.write_text(text.replace("processes:", line, 1), encoding="utf-8")
    found = why_changed(stored(chain), stored(more), [OUTPUT])
    assert [(c.kind, c.parts[OUTPUT]) for c in found.causes] == [("scope", pytest.approx(-8_000))]


def test_what_todays_program_does_otherwise_is_method(chain: Path) -> None:
    old, new = stored(chain), stored(chain, ("resources.cowos.capacity", "11000 accelerator/quarter"))
    results = old.results.copy()
    finished = results["quantity"] == "finished"
    results.loc[finished, "value"] *= 0.9  # as if an earlier program had found 36,000
    older = Run(old.manifest, old.answer, old.folder, {**old.tables, "results": results})
    found = {c.kind: c.parts[OUTPUT] for c in why_changed(older, new, [OUTPUT]).causes}
    assert found == pytest.approx({"assumption": 4_000, "method": 4_000})


def test_a_fact_with_another_value_is_data(chain: Path) -> None:
    old, new = stored(chain), stored(chain, ("resources.cowos.capacity", "11000 accelerator/quarter"))
    runs = []
    for made, value in ((old, 10_000), (new, 11_000)):
        manifest = copy.deepcopy(made.manifest)
        manifest |= {"facts_digest": str(value), "facts": {"line": {"value": value}}, "edits": {}}
        inputs = made.inputs.assign(fact_ids=np.where(made.inputs["path"] == "resources.cowos.capacity", "line", ""))
        runs.append(Run(manifest, made.answer, made.folder, {**made.tables, "inputs": inputs}))
    found = why_changed(runs[0], runs[1], [OUTPUT])
    assert [(c.name, c.kind) for c in found.causes] == [("resources.cowos", "data")]
    assert found.causes[0].parts[OUTPUT] == pytest.approx(4_000)


def test_many_groups_are_joined_and_still_add_up(chain: Path) -> None:
    sets = [("resources.fab.capacity", {"scale": 1.1}), ("resources.cowos.capacity", {"scale": 1.3})]
    found = why_changed(stored(chain), stored(chain, *sets), [OUTPUT], most=1)
    assert [c.name for c in found.causes] == ["resources (assumption)"]
    assert found.causes[0].parts[OUTPUT] == pytest.approx(52_000 - 40_000)


def test_what_cannot_be_split_says_why(chain: Path, tmp_path: Path) -> None:
    longer = tmp_path / "longer.yaml"
    longer.write_text(CHAIN.replace("periods: 4", "periods: 5").replace("12000", "9000"), encoding="utf-8")
    assert why_changed(stored(chain), stored(longer), [OUTPUT]).reason == "horizon"
    assert why_changed(stored(chain), stored(chain), [OUTPUT]).causes == []
