"""Owner costs of accelerators that no fact prices: what a run says of them, and a price that the scenario states."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from econ.owner_cost import owner_inputs
from reports.cli.app import app
from reports.context import Context
from reports.sections.costs import costs_section
from scenarios.compare import compare
from scenarios.costing import middle_of
from scenarios.load import load_scenario
from scenarios.runner import run
from scenarios.runs import Run

CHAIN = Path(__file__).parent / "cases" / "chain.yaml"
PRICE = "purchase_cost: {value: 30000, range: [25000, 40000], kind: illustrative, note: a list price}"


def priced(folder: Path, name: str = "priced", price: str = PRICE, kw: str = "1.2") -> Path:
    """The chain with a price of alpha alone."""
    path = folder / f"{name}.yaml"
    text = CHAIN.read_text(encoding="utf-8")
    path.write_text(text.replace("kw_planning: 1.2,", f"kw_planning: {kw}, {price},"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(priced(tmp_path_factory.mktemp("stated")))


def test_the_check_is_passed_only_where_every_energised_product_has_an_hour(done: Run) -> None:
    checks = done.checks[done.checks["check"].str.startswith("priced")].set_index(["check", "subject"])
    assert checks.loc[("priced_by_facts", "alpha"), "value"] == 0 and checks.loc[("priced_by_facts", "alpha"), "passed"]
    fleet = done.results[(done.results["quantity"] == "fleet") & (done.results["subject"] == "beta")]
    assert checks.loc[("priced_by_facts", "beta"), "value"] == (fleet["value"] > 0).sum() > 0
    assert not checks.loc[("priced_by_facts", "beta"), "passed"] and not done.passed
    assert checks.loc[("priced_as_stated", "alpha"), "value"] == 6 and ("priced_as_stated", "beta") not in checks.index
    hours = done.results[done.results["quantity"] == "owner_usd_per_gpu_hour"]
    assert set(hours["sku"]) == {"alpha"} and len(hours) == 6
    reasons = {p["sku"]: p["reason"] for p in done.answer["problems"] if "model" not in p}
    assert set(reasons) == {"beta"} and "state `fleet.beta.purchase_cost`" in reasons["beta"]


def test_the_hour_is_that_of_a_part_of_the_same_price_and_watts(done: Run) -> None:
    """By another route: an H100 whose price, network and watts are replaced by those stated."""
    row = done.results[(done.results["quantity"] == "owner_usd_per_gpu_hour") & (done.results["period"] == "2026-Q3")]
    day = middle_of("2026-Q3")
    h100 = owner_inputs("h100", on=day)
    inputs = h100.inputs
    watts = {"busy_kw", "idle_kw", "facility_usd", "maintenance_usd_per_year", "staff_usd_per_year"}
    ratio = 1.2 / (h100.planning_kw / 1.1)  # planning watts of the facts hold a headroom of a tenth
    moved = {name: getattr(inputs, name) * ratio for name in watts}
    network = inputs.network_usd / inputs.it_usd * 30000
    expected = h100.cost(it_usd=30000.0, network_usd=network, **moved)
    assert row["value"].item() == pytest.approx(expected.total, rel=1e-9)
    assert row["low"].item() < row["value"].item() < row["high"].item()


def test_the_stated_price_stands_among_the_inputs_as_what_it_is(done: Run) -> None:
    row = done.inputs[done.inputs["path"] == "fleet.alpha.purchase_cost"].iloc[0]
    assert (row["value"], row["low"], row["high"], row["kind"]) == (30000, 25000, 40000, "illustrative")
    held = done.table("cost_inputs")
    price = held[(held["sku"] == "alpha") & (held["input"] == "it_usd")]
    assert (price["value"] == 30000).all() and len(price) == 6


def test_the_report_says_which_price_is_stated(done: Run) -> None:
    section = costs_section(Context(done))
    assert section is not None
    assert any("hour of alpha is one that the scenario states" in str(p) for p in section.paragraphs)
    assert len([p for p in section.paragraphs if "scenario states" in str(p)]) == 1


@pytest.mark.parametrize(("price", "kw"), [("purchase_cost: 45000", "1.2"), (PRICE, "1.5")])
def test_a_comparison_sees_the_stated_numbers_move_the_hour(tmp_path: Path, price: str, kw: str) -> None:
    first, second = load_scenario(priced(tmp_path)), load_scenario(priced(tmp_path, "dearer", price, kw))
    hour, scarcity = names = [f"{kind}usd_per_gpu_hour:alpha@2026-Q4" for kind in ("", "scarcity_")]
    found = compare(first, second, outputs=names).outputs
    for side, scenario in (("first", first), ("second", second)):
        owner = run(scenario, prices=False).output(f"owner_{hour}")
        assert found[hour][side] - found[scarcity][side] == pytest.approx(owner, rel=1e-6)
    assert found[hour]["change"] - found[scarcity]["change"] > 0.01


def test_a_price_in_the_scenario_goes_before_that_of_the_facts(tmp_path: Path) -> None:
    path = tmp_path / "named.yaml"
    text = CHAIN.read_text(encoding="utf-8").replace("alpha: {material: alpha", "h100: {material: alpha")
    path.write_text(text.split("groups:")[0], encoding="utf-8")
    by_facts = run(path, prices=False).output("usd_per_gpu_hour:h100@2026-Q4")
    path.write_text(
        path.read_text(encoding="utf-8").replace("kw_planning: 1.2,", "kw_planning: 1.2, purchase_cost: 9e4,")
    )
    assert run(path, prices=False).output("usd_per_gpu_hour:h100@2026-Q4") > 1.5 * by_facts


def test_a_run_says_aloud_what_it_does_not_cost(tmp_path: Path) -> None:
    said = CliRunner().invoke(app, ["run", str(CHAIN), "--out", str(tmp_path)])
    assert said.exit_code == 0
    lines = [line for line in said.stderr.splitlines() if line.startswith("warning:")]
    assert len(lines) == 2 and "beta (beta): no cost of its hours" in lines[1] and "purchase_cost" in lines[1]
    for option in ("--quiet", "--json"):
        silent = CliRunner().invoke(app, ["run", str(CHAIN), "--out", str(tmp_path), option])
        assert silent.exit_code == 0 and "warning:" not in silent.output
    assert '"problems": [\n  {' in silent.stdout
