"""Manufacturing, current prices and training in the report: numbers from their models, words that follow the data."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from econ.agent_price import ApiPrice
from econ.agent_task import agent_task, task_cost
from econ.price_quotes import observed_price
from reports.blocks import Section, Table
from reports.context import Context
from reports.figures.making import unit_cost_waterfalls, yield_curves
from reports.market_report import Report, make_report, render_html
from reports.pdf import render_pdf
from reports.sections.market import market_section
from reports.sections.training import training_section
from reports.workbook import write_workbook
from scenarios.manifest import fact_sources
from scenarios.report_tables import current, facts_of
from scenarios.report_tables_making import map_table
from scenarios.runner import run
from scenarios.runs import Run
from supply.facts import catalog
from supply.manufacturing import SKUS, product, unit_cost

DAY = date(2026, 11, 30)


@pytest.fixture(scope="module")
def bare() -> Run:
    """The small scenario without the tables of a study."""
    return run("small", prices=False, costs=False)


@pytest.fixture(scope="module")
def tables(bare: Run) -> dict[str, pd.DataFrame]:
    assert bare.solution is not None
    return current(bare.solution, DAY, lambda text: None)


@pytest.fixture(scope="module")
def held(bare: Run, tables: dict[str, pd.DataFrame]) -> Run:
    """The same run with the tables."""
    manifest = bare.manifest | {"facts": bare.manifest["facts"] | fact_sources(facts_of(tables), catalog())}
    return Run(manifest, bare.answer, None, {**bare.tables, **tables}, bare.solution, bare.resolved)


@pytest.fixture(scope="module")
def report(held: Run) -> Report:
    return make_report([held])


def section(report: Report, name: str) -> Section:
    return next(s for s in report.sections if s.id == name)


def table(report: Report, short: str) -> Table:
    return next(t for s in report.sections for t in s.tables if t.short == short)


def column(table: Table, title: str) -> list[float | None]:
    k = [c.title for c in table.columns].index(title)
    return [row[k].value for row in table.rows]


def with_table(held: Run, name: str, frame: pd.DataFrame) -> Context:
    changed = Run(held.manifest, held.answer, None, {**held.tables, name: frame}, held.solution, held.resolved)
    return Context(changed)


# ---- manufacturing


def test_parts_of_a_package_add_up_to_the_model(tables: dict[str, pd.DataFrame]) -> None:
    costs = tables["unit_cost"]
    assert set(costs["sku"]) >= {"h100", "b200", "mi300x", "rubin"} and set(costs["sku"]) <= set(SKUS)
    for sku, mine in costs.groupby("sku"):
        by = mine.set_index("part")["value"]
        assert by.drop("total").sum() == pytest.approx(by["total"], rel=1e-9)
        assert by["total"] == pytest.approx(unit_cost(str(sku), draws=0, nre=False).total)
    assert ((costs["low"] <= costs["value"]) & (costs["value"] <= costs["high"]))[costs["part"] == "total"].all()


def test_published_totals_stand_beside_ours_and_the_words_count_them(report: Report) -> None:
    totals = table(report, "unit_cost_totals")
    facts = catalog()
    assert column(totals, "Published")[0] == facts["h100_manufacturing_cost_raymond_james_2023_08"].number
    assert all(len(row[6].text) > 60 for row in totals.rows), "every gap is told in words"
    inside = 0
    for row in totals.rows:
        low, high = (float(x.replace(",", "")) for x in row[3].text.split(" to "))
        inside += row[4].value is not None and low <= row[4].value <= high
    found = sum(row[4].value is not None for row in totals.rows)
    assert any(f"{inside} of {found} published totals lie inside" in p for p in section(report, "making").paragraphs)
    assert totals.rows[-1][4].text == "none found"


def test_headline_of_the_waterfalls_follows_the_data(tables: dict[str, pd.DataFrame]) -> None:
    costs = tables["unit_cost"]
    assert unit_cost_waterfalls(costs, {}, {}).headline == "Memory stacks are the largest part of every package"
    other = costs.copy()
    other.loc[(other["sku"] == "h100") & (other["part"] == "test"), "value"] = 2000.0
    count = costs["sku"].nunique()
    assert unit_cost_waterfalls(other, {}, {}).headline.endswith(f"largest part of {count - 1} of {count} packages")


def test_yield_curves_fall_and_agree_where_no_area_is(tables: dict[str, pd.DataFrame]) -> None:
    curves = tables["yield_by_area"]
    for _, line in curves.groupby("model"):
        assert (np.diff(line.sort_values("area_mm2")["value"]) < 0).all()
        assert ((line["low"] <= line["value"]) & (line["value"] <= line["high"])).all()
    poisson = curves[curves["model"] == "poisson"].iloc[0]
    assert poisson["value"] == pytest.approx(np.exp(-poisson["area_mm2"] / 100 * poisson["defects_per_cm2"]))
    top = curves[curves["area_mm2"] == curves["area_mm2"].max()]["value"]
    found = [int(x) for x in re.findall(r"\d+", yield_curves(curves, {}).headline.split("give")[1])]
    assert found == [round(100 * top.min()), round(100 * top.max())]


def test_wafer_map_prints_its_counts_and_seed(report: Report, tables: dict[str, pd.DataFrame]) -> None:
    sites = tables["wafer_map"]
    card = next(f for f in report.figures if f.id == "wafer_map")
    counts = sites["kind"].value_counts()
    gross = counts["full"] + counts["cut"] + counts["scrap"]
    assert gross == product("h100").dies[0].gross_dies_per_wafer
    assert f"{gross} whole dies, {counts['full']} full, {counts['cut']} cut, {counts['scrap']} scrap" in card.subtitle
    assert f"seed {sites['seed'].iloc[0]}" in card.subtitle and "not a measured one" in card.subtitle
    assert card.headline.startswith(f"{counts['full'] + counts['cut']} of {gross} ")


def test_cut_dies_of_many_maps_meet_the_closed_formula() -> None:
    served = total = full = 0
    for seed in range(25):
        kinds = map_table("h100", seed)["kind"].value_counts()
        served += int(kinds.get("full", 0) + kinds.get("cut", 0))
        full += int(kinds.get("full", 0))
        total += int(kinds.get("full", 0) + kinds.get("cut", 0) + kinds.get("scrap", 0))
    expected = map_table("h100", 0).iloc[0]
    for seen, share in ((served, expected["serving_share"]), (full, expected["full_share"])):
        assert abs(seen / total - share) < 4 * np.sqrt(share * (1 - share) / total)


def test_higher_stacks_yield_less_and_quotes_are_kept(tables: dict[str, pd.DataFrame]) -> None:
    stacks = tables["stack_yield"]
    for _, line in stacks.groupby("memory"):
        assert (np.diff(line.sort_values("height")["value"]) < 0).all()
    row = stacks[(stacks["memory"] == "hbm3e") & (stacks["height"] == 12)].iloc[0]
    assert row["quoted"]
    assert row["value"] == pytest.approx(catalog().series("hbm_stack_yield_hbm3e_12h_sk_hynix").levels([DAY])[0])


def test_carbon_parts_add_up_and_lie_in_the_range_over_grids(tables: dict[str, pd.DataFrame]) -> None:
    carbon = tables["carbon"]
    for _, mine in carbon.groupby("sku"):
        by = mine.set_index("part")
        assert by.drop("total")["value"].sum() == pytest.approx(by.loc["total", "value"])
        assert by.loc["total", "low"] <= by.loc["total", "value"] <= by.loc["total", "high"]


# ---- market


def test_prices_are_those_of_their_own_market(report: Report) -> None:
    prices = table(report, "market")
    row = next(r for r in prices.rows if r[0].text == "H100 SXM")
    titles = [c.title for c in prices.columns]
    seen = observed_price("H100", "contract", on=DAY, form="SXM")
    assert row[titles.index("Contract")].value == pytest.approx(seen.usd_per_gpu_hour)
    assert f"{seen.quotes}; {seen.on.isoformat()[:7]}" in row[titles.index("Contract") + 1].text
    gone = next(r for r in prices.rows if r[0].text == "MI355X")
    assert gone[titles.index("Spot")].text == "-" and gone[titles.index("Spot")].value is None
    assert {r[0].text.split(",")[0].split()[0] for r in prices.rows} == {
        "H100", "H200", "B200", "GB200", "MI300X", "MI355X"
    }  # fmt: skip


def test_floors_lie_below_the_owner_cost(report: Report) -> None:
    prices = table(report, "market")
    columns = [column(prices, t) for t in ("Owner cost", "Most hours sold", "Running cost")]
    for own, sold, running in zip(*columns, strict=True):
        assert own is not None and sold is not None and running is not None
        assert 0 < running < sold < own


def test_contracts_below_owner_cost_are_named_with_reasons(held: Run, tables: dict[str, pd.DataFrame]) -> None:
    prices = tables["market"]
    rows = prices[(prices["price_kind"] == "contract") & prices["usd_per_gpu_hour"].notna()]
    below = rows[rows["over_owner_cost"] < 0.995]
    section_ = market_section(Context(held))
    assert section_ is not None
    words = next(p for p in section_.paragraphs if "below owner cost" in p)
    for chip, price in zip(below["chip"], below["usd_per_gpu_hour"], strict=True):
        assert re.search(rf"\b{chip}\b[^,]* {price:.2f} against", words)
    assert "sells nearly every hour" in words
    dear = prices.assign(over_owner_cost=prices["over_owner_cost"].clip(lower=1.0))
    changed = market_section(with_table(held, "market", dear))
    assert changed is not None
    assert any(p.startswith(f"None of {len(rows)} contract medians lies below") for p in changed.paragraphs)


def test_six_models_at_two_targets_with_bands_and_labels(held: Run, tables: dict[str, pd.DataFrame]) -> None:
    models = tables["open_models"]
    assert models["model"].nunique() == 6 and models.groupby("model")["target"].nunique().eq(2).all()
    done = models.dropna(subset=["value"])
    assert len(done) >= 10
    assert ((done["low"] < done["value"]) & (done["value"] < done["high"])).all()
    wide = done.pivot_table(index="model", columns="target", values="value").dropna()
    assert (wide["chat_interactive"] > wide["chat"]).all()
    assert set(done["label"]) <= {"consistent", "optimistic", "pessimistic"}
    broken = models.copy()
    broken.loc[0, ["value", "low", "high"]] = np.nan
    broken.loc[0, "reason"] = "no layout meets the targets"
    found = market_section(with_table(held, "open_models", broken))
    assert found is not None
    shown = next(t for t in found.tables if t.short == "open_models")
    assert any(cell.text == "no layout meets the targets" for cell in shown.rows[0])


def test_tasks_at_api_prices_are_those_of_the_task_model(report: Report, tables: dict[str, pd.DataFrame]) -> None:
    tasks = tables["api_tasks"]
    assert len(tasks) == 12 and tasks["model"].nunique() == 3
    for r in tasks.itertuples():
        cost = task_cost(agent_task(str(r.task)), ApiPrice(str(r.model), DAY))
        assert (r.value, r.low, r.high) == pytest.approx((cost.usd_per_verified_task, cost.low, cost.high))
    assert column(table(report, "api_tasks"), "USD per verified task") == pytest.approx(list(tasks["value"]))


# ---- training


def test_run_by_cluster_size(tables: dict[str, pd.DataFrame]) -> None:
    runs = tables["training_runs"]
    assert (runs["days"] * 24 * runs["accelerators"]).to_numpy() == pytest.approx(runs["accelerator_hours"].to_numpy())
    assert runs["rental_usd"].to_numpy() == pytest.approx(
        (runs["accelerator_hours"] * runs["usd_per_gpu_hour"]).to_numpy()
    )
    shares = runs[["goodput", "checkpoint", "lost_work", "down"]].sum(axis=1)
    assert shares.to_numpy() == pytest.approx(np.ones(len(runs)))
    for falls in ("days", "goodput", "hours_between", "mfu"):
        assert (np.diff(runs[falls]) < 0).all(), falls
    for name, low, high in (("days", "days_low", "days_high"), ("goodput", "goodput_low", "goodput_high")):
        assert ((runs[low] < runs[name]) & (runs[name] < runs[high])).all()


def test_the_published_run_is_told_in_or_out_as_it_is(held: Run, tables: dict[str, pd.DataFrame]) -> None:
    checks = tables["training_checks"]
    seen = checks[checks["check"] == "unexpected interruptions"].iloc[0]
    assert seen["published"] == 419 and seen["low"] <= 419 <= seen["high"]
    inside = int(((checks["low"] <= checks["published"]) & (checks["published"] <= checks["high"])).sum())
    found = training_section(Context(held))
    assert found is not None
    assert any(f"{inside} of {len(checks)} figures lie inside our band" in p for p in found.paragraphs)
    good = training_section(with_table(held, "training_checks", checks.assign(published=checks["ours"])))
    assert good is not None
    assert any(f"{len(checks)} of {len(checks)} figures lie inside our band." in p for p in good.paragraphs)


def test_largest_runs_keep_fleet_power_and_half_of_the_time(tables: dict[str, pd.DataFrame]) -> None:
    runs = tables["largest_runs"]
    assert set(runs["year"]) == {"2024", "2025", "2026"}
    assert (runs["accelerators"] <= runs["fleet"] * (1 + 1e-9)).all()
    assert (runs["on_run"] <= runs["accelerators"] * (1 + 1e-9)).all()
    assert (runs["operations"] < runs["bound"]).all() and (runs["goodput"] >= 0.5 - 1e-6).all()
    assert ((runs["low"] < runs["operations"]) & (runs["operations"] < runs["high"])).all()
    sites = runs[runs["case"] == "site"]
    assert set(sites["year"]) == {"2026"}, "no site has dated power before"
    free = runs["bound"] * runs["on_run"] / runs["accelerators"] * runs["goodput"]
    assert free.to_numpy() == pytest.approx(runs["operations"].to_numpy())


# ---- the whole report


def test_figures_have_headlines_and_alternative_texts(report: Report) -> None:
    ids = {f.id for f in report.figures}
    assert {"unit_cost", "yield_by_area", "wafer_map", "stack_yield", "price_series", "training_scaling"} <= ids
    for figure in report.figures:
        assert len(figure.headline.split()) <= 12, figure.headline
        assert figure.headline in figure.alt and len(figure.data)


def test_all_formats_hold_the_sections(report: Report, held: Run, tmp_path: Path) -> None:
    page = render_html(report)
    for name in ("making", "market", "training"):
        assert f'id="{name}"' in page
    assert render_pdf(report).startswith(b"%PDF")
    path = write_workbook(held, tmp_path / "book.xlsx", report)
    assert path.stat().st_size > 20_000


def test_no_placeholder_stands_behind_the_tables(held: Run) -> None:
    assert not [k for k, f in held.manifest["facts"].items() if f["kind"] == "placeholder"]


def test_runs_without_the_tables_say_so(bare: Run) -> None:
    for plain in (make_report([bare]), make_report([run("course_11_1")])):
        assert not {"making", "market", "training"} & {s.id for s in plain.sections}
        missing = table(plain, "limits_of_this_edition")
        assert any(
            row[0].text == "Market prices, Training runs, Manufacturing cost and yield" and "no section" in row[1].text
            for row in missing.rows
        )
