"""Figures of flow, uncertainty, engine and maps: what is drawn adds up, words agree with data, labels stay apart."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from reports.context import Context
from reports.figures.fan import draw_timeline, fan_chart
from reports.figures.front_measured import front_measured
from reports.figures.graph import stage_graph
from reports.figures.roofline import roofline
from reports.figures.sankey import FlowBalanceError, check_balance, supply_sankey
from reports.figures.style import STAGE_COLOURS, Drawn, dark_colour
from reports.figures.supply import binding_timeline
from reports.figures.yield_power_map import binding_map
from reports.market_report import make_report
from reports.sections.limits import where
from scenarios.engine_points import measured_front, operator_points
from scenarios.load import load_scenario
from scenarios.runner import run
from scenarios.runs import Run
from scenarios.stage_links import stage_links
from scenarios.supply_flow import FLOW_COLUMNS, FlowError, supply_flow
from tests.reports.figure_tools import texts_apart

#: Figures of the small report that count accelerators, watts or the use of limits.
COUNTED = ("binding_timeline", "utilisation", "accelerators", "sankey", "stage_graph", "power", "potentials")
PERIODS = ["2026-Q1", "2026-Q2", "2026-Q3", "2026-Q4"]


@pytest.fixture(scope="module")
def small() -> Run:
    return run("small")


@pytest.fixture(scope="module")
def flows(small: Run) -> pd.DataFrame:
    return supply_flow(small.results, small.inputs, "2025")


@pytest.fixture(scope="module")
def fan_table() -> pd.DataFrame:
    draws = np.random.default_rng(3).lognormal(np.log([1e6, 1.2e6, 1.5e6, 2e6]), [0.05, 0.1, 0.2, 0.3], (400, 4))
    rows = np.quantile(draws, [0.05, 0.25, 0.5, 0.75, 0.95], axis=0).T
    return pd.DataFrame(rows, columns=["q05", "q25", "q50", "q75", "q95"]).assign(period=PERIODS)


# ---- flow


@pytest.mark.parametrize("year", ["2024", "2025", "2026"])
def test_every_stage_balances_and_the_end_is_what_the_run_energised(small: Run, year: str) -> None:
    made = supply_flow(small.results, small.inputs, year)
    check_balance(made)
    rows = small.results[small.results["quantity"] == "energised"]
    energised = rows.loc[rows["period"].str.startswith(year), "value"].sum()
    assert made.loc[made["target"] == "energised", "accelerators"].sum() == pytest.approx(energised, rel=1e-9)
    total = made.groupby("kind")["accelerators"].sum()
    into = made.loc[made["source"].isin(["start", "stock"]), "accelerators"].sum()
    out = total["loss"] + made.loc[made["target"] == "stock", "accelerators"].sum() + energised
    assert into == pytest.approx(out, rel=1e-9)


def test_losses_equal_starts_times_one_minus_yield_by_hand(small: Run) -> None:
    """Final loss of packaging in a year, from yields and starts without lead times, lies near the cohort sum."""
    made = supply_flow(small.results, small.inputs, "2025")
    lost = float(made.loc[(made["source"] == "packaging") & (made["kind"] == "loss"), "accelerators"].iloc[0])
    starts = small.results[(small.results["quantity"] == "starts") & (small.results["stage"] == "packaging")]
    starts = starts[starts["period"].str.startswith("2025")].groupby("subject")["value"].sum()
    yields = small.inputs[small.inputs["path"].str.match(r"processes\.[^.]+\.yield$")]
    mean = yields.assign(p=yields["path"].str.split(".").str[1]).groupby("p")["value"].mean()
    assert lost == pytest.approx(float(sum(v * (1 - mean[p]) for p, v in starts.items())), rel=0.5)


def test_course_case_flows_are_the_known_optimum() -> None:
    course = run("course_11_1")
    made = supply_flow(course.results, course.inputs, "2026")
    assert made.to_numpy().tolist() == [
        ["start", "fab", "start", 10000.0],
        ["fab", "packaging", "flow", 10000.0],
        ["packaging", "sold", "flow", 10000.0],
    ]
    assert supply_sankey(made, "2026").headline == "10,000 started, 10,000 sold, none lost"


def test_a_year_outside_the_run_is_refused(small: Run) -> None:
    with pytest.raises(FlowError, match=r"2031.*2024-Q1 to 2026-Q4"):
        supply_flow(small.results, small.inputs, "2031")


def test_tables_that_do_not_belong_together_are_refused(small: Run) -> None:
    wrong = small.results.copy()
    wrong.loc[wrong["quantity"] == "energised", "value"] *= 1.5
    with pytest.raises(FlowError, match="do not belong together"):
        supply_flow(wrong, small.inputs, "2025")


def test_a_flow_that_loses_units_is_refused(flows: pd.DataFrame) -> None:
    broken = flows[flows["kind"] != "loss"]
    with pytest.raises(FlowBalanceError, match=r"enter and .* leave; add the missing loss"):
        supply_sankey(broken, "2025")
    with pytest.raises(FlowBalanceError, match="must not be < 0"):
        check_balance(flows.assign(accelerators=-flows["accelerators"]))


def test_sankey_words_and_labels(flows: pd.DataFrame) -> None:
    card = supply_sankey(flows, "2025; small", {"us": "United States"})
    assert len(card.headline.split()) <= 10
    texts_apart(card)
    assert list(card.data.columns) == FLOW_COLUMNS
    largest = flows[flows["kind"] == "loss"].sort_values("accelerators")["source"].iloc[-1]
    assert largest == "fab" and card.headline.endswith("most lost at wafers")


# ---- graph of limits


def test_links_into_each_stage_carry_the_flow_of_the_period(small: Run) -> None:
    nodes, links = stage_links(small.results, small.inputs, "2025-Q4")
    stage = dict(zip(nodes["node"], nodes["stage"], strict=True))
    into = links.assign(stage=links["target"].map(stage)).groupby("stage")["accelerators"].sum()
    rows = small.results[(small.results["quantity"] == "energised") & (small.results["period"] == "2025-Q4")]
    assert into["power"] == pytest.approx(rows["value"].sum(), rel=1e-6)
    use = small.results[(small.results["quantity"] == "utilisation") & (small.results["period"] == "2025-Q4")]
    use = use.set_index("subject")["value"]
    shown = nodes.dropna(subset=["utilisation"]).set_index("node")["utilisation"]
    assert shown.to_dict() == pytest.approx(use[shown.index].to_dict())


def test_stage_graph_counts_what_binds(small: Run) -> None:
    nodes, links = stage_links(small.results, small.inputs, "2025-Q4")
    card = stage_graph(nodes, links, "2025-Q4", "small")
    priced = small.results[(small.results["quantity"] == "price") & (small.results["period"] == "2025-Q4")]
    binding = {s for s, v in zip(priced["subject"], priced["value"], strict=True) if v > 0} & set(nodes["node"])
    assert card.headline.startswith(f"{len(binding)} of ") and len(binding) > 0
    texts_apart(card)


def test_graph_without_flow_or_with_unknown_nodes_is_refused(small: Run) -> None:
    nodes, links = stage_links(small.results, small.inputs, "2025-Q4")
    with pytest.raises(ValueError, match="nothing flows"):
        stage_graph(nodes, links.iloc[:0], "2025-Q4", "")
    with pytest.raises(ValueError, match="there are not: moon"):
        stage_graph(nodes, links.assign(target="moon"), "2025-Q4", "")


# ---- samples


def test_fan_chart_says_its_last_band(fan_table: pd.DataFrame) -> None:
    card = fan_chart(
        fan_table, PERIODS, "Energised accelerators", "accelerators a quarter", 400, "test", None, "2026-Q3"
    )
    row = fan_table.iloc[-1]
    assert f"{row['q05'] / 1e6:.1f} to {row['q95'] / 1e6:.1f} million" in card.headline
    assert "400 draws" in card.subtitle and len(card.headline.split()) <= 10
    texts_apart(card)


def test_fan_labels_stay_apart_where_bands_are_narrow(fan_table: pd.DataFrame) -> None:
    narrow = fan_table.assign(**{q: 1e6 * (1 + 1e-6 * k) for k, q in enumerate(["q05", "q25", "q50", "q75", "q95"])})
    texts_apart(fan_chart(narrow, PERIODS, "Finished", "units", 100, ""))


def test_fan_with_crossed_quantiles_is_refused(fan_table: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="not in order"):
        fan_chart(fan_table.assign(q25=9e9), PERIODS, "x", "units", 100, "")


def test_draw_timeline_names_the_stage_of_most_draws() -> None:
    rows = [
        (p, s, v, s == "power") for p in PERIODS for s, v in (("packaging", 0.4), ("power", 0.78), ("nothing", 0.1))
    ]
    card = draw_timeline(pd.DataFrame(rows, columns=["period", "stage", "share", "plan"]), PERIODS, 50, "test")
    assert card.headline == "Power: binds in 78\xa0% of draws in 2026-Q4"
    assert "78" in card.svg and "50 draws" in card.subtitle


def test_the_demand_row_marks_periods_in_which_no_limit_of_the_run_has_a_price() -> None:
    few = {"value": 200_000, "kind": "illustrative", "note": "test"}
    low = run(load_scenario("small", [(f"demand.{d}.reference", few) for d in ("amd", "google", "nvidia")]))
    c = Context(low)
    card = binding_timeline(c.binding, c.periods, "test")
    data = card.data.set_index(["stage", "period"])["share_of_rent"]
    prices = low.results[low.results["quantity"].isin(["price", "binding_price"])].groupby("period")["value"].max()
    free = [p for p in c.periods if prices.get(p, 0.0) <= 0.0]
    assert 0 < len(free) < len(c.periods)
    assert [p for p in c.periods if data["demand", p] == 1.0] == free
    assert data.unstack("period").sum().to_numpy() == pytest.approx(1.0)
    assert isinstance(card.svg, Drawn)
    assert [t.get_text() for t in card.svg.figure.axes[0].get_yticklabels()][-1] == "Demand only"


def test_subtitles_of_figures_that_count_units_say_where_the_units_are(small: Run) -> None:
    c = Context(small)
    assert where(c) == "world"
    counted = [f for f in make_report([small]).figures if f.id in COUNTED]
    assert len(counted) >= 5 and all(", world," in f.subtitle for f in counted)
    c.results = c.results[c.results["region"] != "rest"]
    assert where(c) == "United States, Europe"


# ---- engine


def test_roofline_points_lie_under_their_roofs_and_shares_sum_to_one() -> None:
    points = operator_points("gpt-oss-120b", "B200", tp=2)
    assert points.groupby("phase")["time_share"].sum().tolist() == pytest.approx([1.0, 1.0])
    card = roofline(points, "test")
    texts_apart(card)
    decode = points[(points["phase"] == "decode") & (points["limited_by"] == "memory_bandwidth")]
    assert f"{100 * decode['time_share'].sum():.0f}\xa0% of a decode step" in card.headline


def test_a_point_above_its_roof_is_refused() -> None:
    points = operator_points("Llama-3.1-70B", "H100", tp=4)
    with pytest.raises(ValueError, match="lies above its roof"):
        roofline(points.assign(attained_flop_per_s=2 * points["attained_flop_per_s"]), "")
    mixed = pd.concat([points, points.assign(hardware="B200")])
    with pytest.raises(ValueError, match="of one accelerator"):
        roofline(mixed, "")


def test_measured_front_is_littles_law_on_the_calibration_rows() -> None:
    front = measured_front("Llama-3.1-70B", {"H100": 3.6})
    row = front[(front["layout"] == "TP2") & (front["concurrency"] == 64)].iloc[0]
    assert row["tokens_per_s_per_user"] == pytest.approx(1000 / 28.7686, rel=1e-4)
    # 64 users x 1024 tokens over two accelerators, each user 1024 x 28.8 ms and more: under 1.12 Mtoken an hour each
    assert 3.6 / row["usd_per_mtoken"] < 64 * 3600 / 0.0287686 / 2 / 1e6
    doubled = measured_front("Llama-3.1-70B", {"H100": 7.2})
    assert (doubled["usd_per_mtoken"] / front["usd_per_mtoken"]).tolist() == pytest.approx([2.0] * len(front))


def test_measured_front_marks_the_best_points() -> None:
    front = measured_front("Llama-3.1-70B", {"H100": 2.5, "B200": 4.0})
    for _, mine in front.groupby("hardware"):
        best = mine[mine["on_front"]].sort_values("tokens_per_s_per_user")
        assert best["usd_per_mtoken"].is_monotonic_increasing
    card = front_measured(front, "test")
    inside = ((front["usd_per_mtoken"] >= front["low"]) & (front["usd_per_mtoken"] <= front["high"])).sum()
    assert card.headline.startswith(f"{inside} of {len(front)} ")
    texts_apart(card)


def test_measured_front_leads_with_the_error_on_what_the_fit_did_not_see() -> None:
    front = measured_front("Llama-3.1-70B", {"H100": 2.5})
    card = front_measured(front, "test", pd.Series({"rows": 533, "median": 12.2, "mape": 25.1}))
    headline, subtitle = (text.replace("\xa0", " ") for text in (card.headline, card.subtitle))
    assert headline == "Left out of its fit, the engine errs by 12 % (median)"
    assert "533 measurements left out of the fit: median 12 %, mean 25 %" in subtitle
    assert f"These {len(front)} points were in the fit" in subtitle


def test_front_without_measurements_is_empty_and_not_drawn() -> None:
    front = measured_front("Llama-3.1-70B", {"H20": 1.0})
    assert front.empty
    with pytest.raises(ValueError, match="no measured point"):
        front_measured(front, "")


# ---- map


@pytest.fixture
def grid() -> dict[str, object]:
    scale = [0.8, 0.9, 1.0, 1.1, 1.2]
    value = [[1e6 * min(a, 1.05 * b) for a in scale] for b in scale]
    binding = [["cowos" if a < 1.05 * b else "power_us" for a in scale] for b in scale]
    return {"x": "a", "y": "b", "x_scale": scale, "y_scale": scale, "outputs": {"e": value}, "binding": binding}


def test_binding_map_draws_a_line_exactly_where_the_limit_switches(grid: dict[str, object]) -> None:
    names = {"a": "Stack yield", "b": "Power", "cowos": "CoWoS", "power_us": "Energised power in the United States"}
    card = binding_map(grid, "e", names, "accelerators", "test")
    assert isinstance(card.svg, Drawn)
    flat = np.array(grid["binding"])
    edges = int((flat[:, 1:] != flat[:, :-1]).sum() + (flat[1:] != flat[:-1]).sum())
    lines = [x for x in card.svg.figure.axes[0].lines if x.get_linewidth() == 2.0]
    assert len(lines) == edges > 0
    count = int((flat == "cowos").sum())
    assert card.headline == f"CoWoS in {count} of 25 cells"
    texts_apart(card)


def test_map_of_an_output_that_was_not_solved_is_refused(grid: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="not on the grid; it holds e"):
        binding_map(grid, "f", {}, "", "")


# ---- files and styles


def test_card_saves_three_files_and_a_dark_pair(flows: pd.DataFrame, tmp_path: Path) -> None:
    card = supply_sankey(flows, "x")
    light, dark = card.save(tmp_path), card.save(tmp_path, "dark")
    assert sorted(p.name for p in {*light, *dark}) == [
        "sankey-dark.png", "sankey-dark.svg", "sankey.csv", "sankey.png", "sankey.svg",
    ]  # fmt: skip
    pixels = {k: imread(io.BytesIO((tmp_path / k).read_bytes()))[..., :3] for k in ("sankey.png", "sankey-dark.png")}
    assert pixels["sankey.png"][0, 0].min() == 1.0 and pixels["sankey-dark.png"][0, 0].max() < 0.1
    assert pixels["sankey.png"].shape == pixels["sankey-dark.png"].shape
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "sankey.csv"), flows)
    with pytest.raises(ValueError, match="it is light or dark"):
        card.save(tmp_path, "sepia")


def contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_dark_text_keeps_its_contrast(flows: pd.DataFrame) -> None:
    paper = dark_colour("#ffffff")
    for ink in ("#1a1a1a", "#333333", "#444444", "#555555"):
        assert contrast(dark_colour(ink), paper) >= 4.5
    card = supply_sankey(flows, "x")
    assert card.dark_svg.startswith("<svg fill=") and "#ffffff" not in re.sub(
        r'fill="#ffffff"', "", card.dark_svg, count=1
    )


def test_stage_colours_stay_apart_under_colour_vision_deficiency() -> None:
    """Full deuteranopia and protanopia after Machado and others (2009), distances in CIE Lab."""
    simulated = {
        "deuteranopia": [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.01182, 0.04294, 0.968881],
        ],
        "protanopia": [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
    }
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])

    def lab(linear: np.ndarray) -> np.ndarray:
        x = to_xyz @ np.clip(linear, 0, 1) / np.array([0.9505, 1.0, 1.089])
        f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16 / 116)
        return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])

    def linear(colour: str) -> np.ndarray:
        parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)

    for matrix in simulated.values():
        seen = [lab(np.array(matrix) @ linear(c)) for c in STAGE_COLOURS.values()]
        nearest = min(float(np.linalg.norm(a - b)) for k, a in enumerate(seen) for b in seen[k + 1 :])
        assert nearest > 15
