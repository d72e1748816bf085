"""Values of the language against hand-worked numbers: series, levels, arithmetic, distributions, edits, provenance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from scenarios.errors import ScenarioError
from scenarios.load import load_scenario
from scenarios.nodes import Draw, Shape, outer_range
from scenarios.resolve import Resolved, resolve
from supply.facts import catalog

BASE = """\
title: Values
horizon: {{start: 2025-Q1, periods: 6, step: {step}, tail: 2}}
objective: value
materials: {{chip: {{unit: accelerator}}}}
resources: {{line: {{capacity: {capacity}}}}}
processes: {{make: {{output: {{chip: 1}}, uses: {{line: 1}}, yield: {yield_}, lead_time: {lead}, cost: {cost}}}}}
demand: {{chip: {{price: 1000}}}}
costs: {{shared: {shared}}}
{more}
"""


def case(folder: Path, **parts: str) -> Resolved:
    given_ = {
        "step": "quarter",
        "capacity": "100",
        "yield_": "0.8",
        "lead": "0",
        "cost": "5",
        "shared": "2",
        "more": "",
    } | parts
    path = folder / "values.yaml"
    path.write_text(BASE.format(**given_), encoding="utf-8")
    return resolve(load_scenario(path))


def number(folder: Path, path: str, **parts: str) -> list[float]:
    return case(folder, **parts).nodes[path].value.round(9).tolist()


CAPACITY, YIELD, COST = "resources.line.capacity", "processes.make.yield", "processes.make.cost"


def test_series_by_period_steps_and_interpolates(tmp_path: Path) -> None:
    step = number(tmp_path, CAPACITY, capacity="{2025-Q2: 10, 2026-Q1: 30}")
    assert step == [10, 10, 10, 10, 30, 30, 30, 30]
    linear = number(tmp_path, CAPACITY, capacity="{2025-Q1: 0, 2026-Q1: 40, fill: linear}")
    assert linear == [0, 10, 20, 30, 40, 40, 40, 40]


def test_a_rate_becomes_the_length_of_the_period(tmp_path: Path) -> None:
    assert number(tmp_path, CAPACITY, capacity="100 wafers/month")[0] == 300
    monthly = BASE.replace("2025-Q1", "2025-01")
    path = tmp_path / "m.yaml"
    parts = {
        "step": "month",
        "capacity": "1200 wafers/year",
        "yield_": "1",
        "lead": "2 months",
        "cost": "5",
        "shared": "1",
    }
    path.write_text(monthly.format(**parts, more=""), encoding="utf-8")
    found = resolve(load_scenario(path))
    assert found.nodes[CAPACITY].value[0] == 100
    assert found.nodes["processes.make.lead_time"].value[0] == 2
    assert found.horizon.labels()[:2] == ["2025-01", "2025-02"]


def test_thirteen_weeks_are_one_quarter(tmp_path: Path) -> None:
    assert number(tmp_path, "processes.make.lead_time", lead="13 week")[0] == 1
    assert number(tmp_path, "processes.make.lead_time", lead="6 week")[0] == pytest.approx(6 / 13)


def test_a_level_series_is_the_mean_level_times_the_months(tmp_path: Path) -> None:
    series = catalog().series("tsmc_cowos_capacity")
    before, after = series.at("2024-Q4").value, series.at("2025-Q1").value
    found = case(tmp_path, capacity="{series: tsmc_cowos_capacity}")
    assert found.nodes[CAPACITY].value[0] == pytest.approx(3 * (before + after) / 2)
    assert found.nodes[CAPACITY].source.facts[0] == ("tsmc_cowos_capacity@2025-Q1",)
    low = case(tmp_path, capacity="{series: tsmc_cowos_capacity, column: low, scale: 0.5}").nodes[CAPACITY]
    assert low.value[0] == pytest.approx(1.5 * (series.at("2024-Q4").low + series.at("2025-Q1").low) / 2)
    assert not low.drivers()


def test_a_flow_series_is_the_flow_of_its_quarter(tmp_path: Path) -> None:
    value = catalog().series("nvl72_rack_output_limit").at("2025-Q3").value
    assert case(tmp_path, capacity="{series: nvl72_rack_output_limit}").nodes[CAPACITY].value[2] == pytest.approx(value)


def test_growth_is_scaled_inside_a_window_and_what_was_lost_stays_lost(tmp_path: Path) -> None:
    capacity = "{2025-Q1: 100, 2025-Q2: 150, 2025-Q3: 250, 2025-Q4: 240}"
    edit = "set: {resources.line.capacity: {scale_growth: 0.8, from: 2025-Q2, to: 2025-Q3}}"
    # +50 and +100 become +40 and +80; the 10 fewer of Q4 stay 10 fewer
    assert number(tmp_path, CAPACITY, capacity=capacity, more=edit)[:5] == [100, 140, 220, 210, 210]
    whole = edit.replace(", from: 2025-Q2, to: 2025-Q3", "")
    assert number(tmp_path, CAPACITY, capacity=capacity, more=whole)[:5] == [100, 140, 220, 212, 212]
    idle = f"set.{CAPACITY}: {CAPACITY} does not change there: scale_growth has no effect on it"
    assert idle in case(tmp_path, more=edit).warnings
    assert idle not in case(tmp_path, capacity=capacity, more=edit).warnings
    none = edit.replace("0.8", "1")
    assert number(tmp_path, CAPACITY, capacity=capacity, more=none)[:4] == [100, 150, 250, 240]
    uncertain = "{value: 0.8, range: [0.5, 1.0]}"
    drawn = case(tmp_path, capacity=capacity, more=edit.replace("0.8", uncertain)).nodes[CAPACITY]
    low, high = drawn.at(Draw({f"{CAPACITY} (scale_growth)": np.array([0.0, 1.0])}))
    assert low[:4].tolist() == [100, 125, 175, 165] and high[:4].tolist() == [100, 150, 250, 240]


def test_arithmetic_carries_units(tmp_path: Path) -> None:
    wafer_price = catalog().series("cowos_wafer_price").at("2025-Q1").value
    per_wafer = catalog().series("packages_per_cowos_wafer_nvidia_b200").at("2025-Q1").value
    cost = "{sum: [{ratio: [{series: cowos_wafer_price}, {series: packages_per_cowos_wafer_nvidia_b200}]}, 250]}"
    assert number(tmp_path, COST, cost=cost)[0] == pytest.approx(wafer_price / per_wafer + 250)
    assert number(tmp_path, CAPACITY, capacity="{product: [1000 wafers/month, 0.3]}")[0] == pytest.approx(900)
    with pytest.raises(ScenarioError, match=r"its units .* leave USD\^2"):
        case(tmp_path, cost="{product: [3 USD/wafer, 2 USD]}")
    with pytest.raises(ScenarioError, match="divides by zero"):
        case(tmp_path, cost="{ratio: [3, {2025-Q1: 1, 2025-Q3: 0}]}")


def test_a_shared_value_moves_everything_that_names_it(tmp_path: Path) -> None:
    shared = "{value: 2, range: [1, 4], kind: illustrative, note: test}"
    found = case(tmp_path, shared=shared, cost="{product: [{path: costs.shared}, 10]}")
    node = found.nodes[COST]
    assert node.value[0] == 20 and node.drivers() == {"costs.shared"}
    assert node.at(Draw({"costs.shared": np.array([0.0, 1.0])}))[:, 0].tolist() == [10, 40]
    assert node.at(Draw(replaced={"costs.shared": np.full(8, 3.0)}))[0, 0] == 30
    edited = case(tmp_path, shared="2", cost="{path: costs.shared}", more="set: {costs.shared: {scale: 1.5}}")
    assert edited.nodes[COST].value[0] == 3


def test_circles_are_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"in a circle: processes.make.cost -> costs.shared -> processes.make.cost"):
        case(tmp_path, shared="{path: processes.make.cost}", cost="{path: costs.shared}")


def test_placeholders_and_outcomes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="an outcome"):
        case(tmp_path, capacity="{series: shipments_nvidia_b200}")
    marked = "{value: {series: shipments_nvidia_b200}, kind: illustrative, note: shown only}"
    assert set(case(tmp_path, capacity=marked).nodes[CAPACITY].source.kinds) == {"illustrative"}


def test_illustrative_needs_a_reason_and_a_range_holds_its_value(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="needs a `note`"):
        case(tmp_path, cost="{value: 5, kind: illustrative}")
    with pytest.raises(ScenarioError, match="does not hold the value 5"):
        case(tmp_path, cost="{value: 5, range: [6, 7]}")


def test_ranges_and_the_default_rule(tmp_path: Path) -> None:
    stated = case(tmp_path, cost="{value: 5, range: [4, 8], kind: illustrative, note: why}").nodes[COST]
    assert [x[0] for x in outer_range(stated)] == [4, 8]
    ruled = case(tmp_path, cost="{value: 8, kind: illustrative, note: why}").nodes[COST]
    assert [x[0] for x in outer_range(ruled)] == pytest.approx([6, 10])
    assert ruled.source.spread == "rule: illustrative +-25%"
    assert not case(tmp_path, cost="5").nodes[COST].drivers()


@pytest.mark.parametrize(
    ("text", "shape", "reference"),
    [
        ("{distribution: normal, mean: 5, sd: 2}", "normal", stats.norm(5, 2)),
        ("{distribution: lognormal, median: 5, sigma: 0.3}", "lognormal", stats.lognorm(0.3, scale=5)),
        ("{distribution: triangular, low: 1, mode: 2, high: 6}", "triangular", stats.triang(0.2, 1, 5)),
        ("{distribution: uniform, low: 1, high: 6}", "uniform", stats.uniform(1, 5)),
        ("{distribution: beta, a: 2, b: 3, low: 1, high: 6}", "beta", stats.beta(2, 3, 1, 5)),
    ],
)
def test_distributions_match_scipy(tmp_path: Path, text: str, shape: str, reference: object) -> None:
    node = case(tmp_path, cost=text).nodes[COST]
    u = np.array([0.03, 0.4, 0.9])
    assert node.at(Draw({COST: u}))[:, 3] == pytest.approx(reference.ppf(u))  # type: ignore[attr-defined]
    assert node.value[0] == pytest.approx(reference.median())  # type: ignore[attr-defined]
    assert node.source.spread == shape


def test_discrete_and_bounds(tmp_path: Path) -> None:
    node = case(tmp_path, cost="{distribution: discrete, values: [3, 1, 2], weights: [1, 1, 2]}").nodes[COST]
    assert node.at(Draw({COST: np.array([0.2, 0.3, 0.74, 0.76])}))[:, 0].tolist() == [1, 2, 2, 3]
    cut = case(tmp_path, yield_="{distribution: normal, mean: 0.9, sd: 0.2, min: 0.5}").nodes[YIELD]
    assert cut.at(Draw({YIELD: np.array([0.001, 0.999])}))[:, 0].tolist() == [0.5, 1.0]
    with pytest.raises(ScenarioError, match="lacks mode"):
        case(tmp_path, cost="{distribution: triangular, low: 1, high: 2}")


def test_edits_in_order(tmp_path: Path) -> None:
    ramp = "{2025-Q1: 10, 2025-Q2: 20, 2025-Q3: 30, 2025-Q4: 40}"

    def edited(edit: str) -> list[float]:
        return number(tmp_path, CAPACITY, capacity=ramp, more=f"set: {{{edit}}}")[:6]

    assert edited("resources.line.capacity: {scale: 0.5, from: 2025-Q3}") == [10, 20, 15, 20, 20, 20]
    assert edited("resources.line.capacity: {add: 1, to: 2025-Q2}") == [11, 21, 30, 40, 40, 40]
    assert edited("resources.line.capacity: {replace: 7, from: 2025-Q2, to: 2025-Q3}") == [10, 7, 7, 40, 40, 40]
    assert edited("resources.line.capacity: {delay: 2 quarter}") == [10, 10, 10, 20, 30, 40]
    assert edited("resources.line.capacity: {delay: 2 quarter, from: 2025-Q4}") == [10, 20, 30, 20, 30, 40]
    assert edited("resources.*.capacity: 5") == [5] * 6


def test_parent_first_then_child_then_command_line(tmp_path: Path) -> None:
    (tmp_path / "parent.yaml").write_text(
        BASE.format(
            step="quarter",
            capacity="100",
            yield_="0.8",
            lead="0",
            cost="5",
            shared="2",
            more="set: {processes.make.cost: {add: 1}}",
        ),
        encoding="utf-8",
    )
    (tmp_path / "child.yaml").write_text(
        "extends: parent.yaml\nset: {processes.make.cost: {scale: 2}}\n", encoding="utf-8"
    )
    both = resolve(load_scenario(tmp_path / "child.yaml", [("processes.make.cost", "{add: 10}")]))
    assert both.nodes[COST].value[0] == (5 + 1) * 2 + 10
    (tmp_path / "own.yaml").write_text("extends: parent.yaml\nprocesses: {make: {cost: 7}}\n", encoding="utf-8")
    assert resolve(load_scenario(tmp_path / "own.yaml")).nodes[COST].value[0] == 7


def test_yield_of_one_output_and_absent_yields(tmp_path: Path) -> None:
    found = case(tmp_path, more="set: {processes.make.yield.chip: {scale: 0.5}}")
    assert found.network.values["processes.make.yield.chip"][0] == pytest.approx(0.4)
    path = tmp_path / "no_yield.yaml"
    path.write_text(
        (tmp_path / "values.yaml").read_text().replace("yield: 0.8, ", "").split("set:")[0], encoding="utf-8"
    )
    found = resolve(load_scenario(path, [("processes.make.yield", "{scale: 0.9}"), ("objective", "units")]))
    assert found.network.values["processes.make.yield"][0] == pytest.approx(0.9)
    assert found.network.objective.kind == "units"


def test_the_inputs_table_names_facts_and_kinds(tmp_path: Path) -> None:
    table = case(tmp_path, capacity="{series: tsmc_cowos_capacity}").inputs()
    rows = table[table["path"] == CAPACITY]
    assert (rows["low"] < rows["value"]).all() and (rows["value"] < rows["high"]).all()
    assert rows.iloc[0]["fact_ids"] == "tsmc_cowos_capacity@2025-Q1"
    assert set(table.loc[table["path"] == COST, "kind"]) == {"stated"}


@settings(max_examples=40, deadline=None)
@given(
    value=st.floats(-50, 50),
    down=st.floats(0, 30),
    up=st.floats(0, 30),
    u=st.floats(0.001, 0.999),
)
def test_a_spread_stays_inside_its_range_with_the_value_as_median(
    value: float, down: float, up: float, u: float
) -> None:
    from scenarios.nodes import Source, Spread

    node = Spread(np.array([value]), np.array([value - down]), np.array([value + up]), "x", Source.same(1, "estimate"))
    drawn = float(node.at(Draw({"x": np.array([u])}))[0, 0])
    assert value - down - 1e-9 <= drawn <= value + up + 1e-9
    assert (drawn <= value + 1e-9) == (u <= 0.5 or up < 1e-9 or drawn <= value + 1e-9)
    assert float(node.at(Draw({"x": np.array([0.5])}))[0, 0]) == pytest.approx(value, abs=1e-12)


def test_shape_of_a_discrete_never_leaves_its_values() -> None:
    shape = Shape("discrete", (1.0, 2.0), (0.3, 0.7))
    assert set(shape(np.linspace(0.001, 0.999, 50)).tolist()) == {1.0, 2.0}
