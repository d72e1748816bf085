"""Runs end to end: the answer object, tables, hashes, folders, refusal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scenarios.errors import InfeasibleError, ScenarioError
from scenarios.load import load_scenario
from scenarios.results import CHECK_COLUMNS, RESULT_COLUMNS
from scenarios.runner import run, run_hash
from scenarios.runs import Run

CHAIN = Path(__file__).parent / "cases" / "chain.yaml"


@pytest.fixture(scope="module")
def chain() -> Run:
    return run(CHAIN)


def test_course_case_gives_the_printed_answer() -> None:
    answer = run("course_11_1").json()
    period = answer["periods"][0]
    assert answer["objective"] == {"kind": "units", "value": 10000.0, "unit": "accelerators"}
    assert period["finished"] == {"accelerator": 10000.0}
    assert [b["resource"] for b in period["binding"]] == ["cowos"]
    price = period["binding"][0]["price"]
    assert price["native"] == pytest.approx(1.0)
    assert price["usd_per_gpu_hour"] is price["usd_per_mtoken"] is price["usd_per_task"] is None
    assert period["binding"][0]["plus_1_percent"]["finished"] == pytest.approx(100.0)
    assert period["binding"][0]["next_binding"] == {
        "resource": "fab",
        "at_capacity_change": pytest.approx(0.5, abs=0.1),
    }


def test_the_answer_has_the_agreed_keys(chain: Run) -> None:
    answer = json.loads(json.dumps(chain.json()))
    assert {"run", "scenario", "hash", "status", "objective", "evidence", "periods", "costs", "tasks"} <= set(answer)
    assert {"primal_residual", "dual_residual", "gap", "complementarity", "rows", "columns", "solver"} == set(
        answer["evidence"]
    )
    period = answer["periods"][3]
    assert {"period", "finished", "energised", "fleet", "stranded", "binding", "prices"} == set(period)
    binding = period["binding"][0]
    assert {
        "resource",
        "stage",
        "region",
        "utilisation",
        "price",
        "price_range",
        "plus_1_percent",
        "next_binding",
    } <= set(binding)
    assert {"native", "unit", "usd_per_gpu_hour", "usd_per_mtoken", "usd_per_task", "reference"} <= set(
        binding["price"]
    )
    assert binding["price_range"][0] <= binding["price"]["native"] * (1 + 1e-9)
    assert binding["price_range"][1] >= binding["price"]["native"] * (1 - 1e-9)


def test_the_fleet_never_draws_more_than_the_grid(chain: Run) -> None:
    used = chain.query(
        "SELECT m.period, m.value AS mw, c.value AS cap FROM results m JOIN results c USING (period) "
        "WHERE m.quantity = 'used' AND m.subject = 'power_us' AND c.quantity = 'capacity' AND c.subject = 'power_us'"
    )
    assert len(used) == 6 and (used["mw"] <= used["cap"] * (1 + 1e-9)).all()
    fleet = chain.results[chain.results["quantity"] == "fleet_mw"].groupby("period")["value"].sum()
    assert (fleet.sort_index().to_numpy() <= used.sort_values("period")["cap"].to_numpy() * (1 + 1e-6)).all()


def test_an_mw_hour_price_is_the_native_price_over_the_hours(chain: Run) -> None:
    binding = next(b for p in chain.json()["periods"] for b in p["binding"] if b["resource"] == "power_us")
    kw = {"alpha": 1.2, "beta": 1.8}[binding["price"]["reference"]["sku"]]
    sold = binding["price"]["native"] * kw / 1000 / 2191.5 / binding["price"]["usd_per_gpu_hour"]
    assert 0 < sold <= 1


def test_tables_have_the_agreed_columns(chain: Run) -> None:
    assert tuple(chain.results.columns) == RESULT_COLUMNS
    assert tuple(chain.checks.columns) == CHECK_COLUMNS
    assert {"path", "period", "value", "unit", "fact_ids", "kind"} <= set(chain.inputs.columns)
    failed = chain.checks[~chain.checks["passed"]]  # no fact prices these two, and the scenario does not either
    assert failed[["check", "subject"]].to_numpy().tolist() == [
        ["priced_by_facts", "alpha"],
        ["priced_by_facts", "beta"],
    ]
    assert not chain.results["value"].isna().any()


def test_outputs_sum_and_refuse(chain: Run) -> None:
    parts = [chain.output(f"energised:{sku}@2026-Q{q}") for sku in ("alpha", "beta") for q in (1, 2, 3, 4)]
    assert chain.output("energised:*@2026") == pytest.approx(sum(parts))
    levels = chain.output("fleet:alpha@2026-Q4") + chain.output("fleet:beta@2026-Q4")
    assert chain.output("fleet:*@2026") == pytest.approx(levels)
    with pytest.raises(ScenarioError, match="no quantity 'energized'; did you mean energised"):
        chain.output("energized:alpha@2026-Q4")
    with pytest.raises(ScenarioError, match="several subjects is not one number"):
        chain.output("price:*@2026-Q4")
    with pytest.raises(ScenarioError, match="not of the form"):
        chain.output("energised")


def test_same_content_same_hash_other_content_other_hash(tmp_path: Path) -> None:
    copy = tmp_path / "renamed.yaml"
    copy.write_text("# a comment\n" + CHAIN.read_text(encoding="utf-8"), encoding="utf-8")
    base = run_hash(load_scenario(CHAIN))
    assert run_hash(load_scenario(copy)) == base
    assert run_hash(load_scenario(CHAIN, [("costs.use", "{scale: 0.99}")])) != base
    assert run_hash(load_scenario(CHAIN), {"prices": False}) != base


def test_a_stored_run_opens_the_same_and_is_reused(tmp_path: Path) -> None:
    said: list[str] = []
    first = run(CHAIN, out=tmp_path, prices=False, costs=False, progress=said.append)
    assert first.folder is not None and first.folder.name == first.id
    opened = Run.open(first.folder)
    assert opened.json() == first.json()
    for name in ("results", "inputs", "checks"):
        stored, made = opened.table(name), first.table(name)
        assert list(stored.columns) == list(made.columns) and len(stored) == len(made)
    assert stored["value"].tolist() == made["value"].tolist()
    again = run(CHAIN, out=tmp_path, prices=False, costs=False, progress=said.append)
    assert again.manifest["created"] == first.manifest["created"]
    assert "the run is there already" in said[-1]
    assert [p.name for p in tmp_path.iterdir()] == [first.id]


def test_the_resolved_file_in_the_folder_runs_to_the_same_numbers(tmp_path: Path) -> None:
    sets = [
        ("costs.use", "{scale: 0.9}"),
        ("costs.use", "{add: 0.01}"),
        ("resources.power_us.capacity", "{delay: 1 quarter}"),
    ]
    first = run(CHAIN, sets, out=tmp_path, prices=False, costs=False)
    assert first.folder is not None
    again = run(first.folder / "scenario.yaml", prices=False, costs=False)
    assert again.json()["objective"] == first.json()["objective"]
    assert first.manifest["edits"]["costs.use"] == ["edited: scale 0.9", "edited: add 0.01"]


def test_the_manifest_traces_facts_to_sources(tmp_path: Path) -> None:
    case = tmp_path / "facts.yaml"
    text = CHAIN.read_text(encoding="utf-8").replace(
        "{2026-Q1: 10000 wafer/quarter, 2026-Q3: 20000 wafer/quarter}", "{series: tsmc_cowos_capacity}"
    )
    case.write_text(text, encoding="utf-8")
    manifest = run(case, prices=False, costs=False).manifest
    point = manifest["facts"]["tsmc_cowos_capacity@2026-Q1"]
    assert point["unit"] == "wafers/month" and point["basis"]
    assert all(basis in manifest["facts"] for basis in point["basis"])
    assert manifest["as_of"] >= point["known_on"]
    assert manifest["created"][:4].isdigit() and manifest["facts_digest"]


def test_what_cannot_be_met_is_said_in_words(tmp_path: Path) -> None:
    case = tmp_path / "impossible.yaml"
    more = "contracts: {all: {resource: line, processes: [make_beta], least: 1e9 wafer/quarter}}\n"
    case.write_text(CHAIN.read_text(encoding="utf-8") + more, encoding="utf-8")
    with pytest.raises(InfeasibleError) as caught:
        run(case)
    assert caught.value.exit_code == 4
    assert "impossible: infeasible" in str(caught.value) and "least take of contract all" in str(caught.value)


def test_disruptions_are_not_foreseen_unless_the_file_says_so(tmp_path: Path) -> None:
    case = tmp_path / "quake.yaml"
    body = CHAIN.read_text(encoding="utf-8").replace("regime: foresight\n", "")
    case.write_text(
        body + "disruptions: {quake: {resource: line, from: 2026-Q3, to: 2026-Q4, remaining: 0.3}}\n", encoding="utf-8"
    )
    assert run(case, prices=False, costs=False).manifest["regime"] == "rolling"
    assert run(case, [("regime", "foresight")], prices=False, costs=False).manifest["regime"] == "foresight"


def test_a_later_scenario_opens_with_what_an_earlier_run_left(tmp_path: Path) -> None:
    first = run(CHAIN, out=tmp_path, prices=False, costs=False)
    assert first.folder is not None
    (tmp_path / "chain.yaml").write_text(CHAIN.read_text(encoding="utf-8"), encoding="utf-8")
    later = tmp_path / "later.yaml"
    moved = "extends: chain.yaml\nhorizon: {start: 2026-Q4, periods: 3, step: quarter, tail: 4}\n"
    later.write_text(moved, encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"later.yaml:2:11: horizon.start: the start moves from 2026-Q1 to 2026-Q4"):
        load_scenario(later)
    later.write_text(moved + f"opening: {{from_run: {first.folder.name}}}\n", encoding="utf-8")
    second = run(later, prices=False, costs=False)
    before = first.output("fleet:alpha@2026-Q3")
    assert second.resolved is not None
    assert second.resolved.network.values["fleet.alpha.opening.us"][0] == pytest.approx(before)
    for period in ("2026-Q4", "2027-Q1", "2027-Q2"):
        assert second.output(f"energised:*@{period}") == pytest.approx(first.output(f"energised:*@{period}"), rel=0.02)
    later.write_text(moved + "opening: {from_run: nowhere}\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"opening.from_run: nowhere is not a run"):
        load_scenario(later)
