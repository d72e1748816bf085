"""The preview behind the app: same numbers as a run, no memory of the way to a case, files that reproduce it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.app_controls import addresses, control_of, edits, usual_controls
from reports.app_link import Given, case_text, restore
from reports.app_model import Preview
from reports.app_questions import Job, get_words, measures, need_words
from reports.app_session import Held, opened, other_than_first, report_page
from scenarios.load import load_scenario
from scenarios.resolve import resolve
from scenarios.runner import run

PROMISE = """title: A promise that needs half the fab
horizon: {start: 2026-Q1, periods: 2}
objective: units
materials: {die: {unit: die}}
resources: {fab: {stage: fab, capacity: 10 die/quarter}}
processes: {make: {stage: fab, output: {die: 1}, uses: {fab: 1 die}, yield: 0.8}}
contracts: {promise: {resource: fab, processes: [make], least: 8 die/quarter}}
demand: {die: {price: 1 USD/die}}
"""


@pytest.fixture(scope="module")
def small() -> Preview:
    return Preview.open("small")


@pytest.fixture(scope="module")
def course() -> Preview:
    return Preview.open("course_11_1")


@given(st.integers(50, 150))
@settings(max_examples=20, deadline=None)
def test_the_course_answer_is_the_smaller_capacity(percent: int) -> None:
    preview = Preview.open("course_11_1")
    case = preview.solve({"resources_cowos_capacity": percent})
    assert case.total("2026") == pytest.approx(min(15000.0, 100.0 * percent))
    assert case.stage("2026") == ("packaging" if percent < 150 else case.stage("2026"))


def test_the_binding_stage_switches_where_the_fab_becomes_the_smaller(course: Preview) -> None:
    case = course.solve({"resources_cowos_capacity": 140, "resources_fab_capacity": 80})
    assert (case.total("2026"), case.stage("2026"), case.limit("2026")) == (12000.0, "fab", "Fab")


def test_base_equals_the_run(small: Preview) -> None:
    reported = run("small")
    for year in small.years:
        assert small.base.total(year) == pytest.approx(reported.output(f"energised:*@{year}"), rel=1e-9)
    held = {c["sku"]: c for c in reported.json()["costs"] if c["period"] == "2026-Q4" and c["model"] == "llama_3_1_70b"}
    assert held
    for sku, row in held.items():
        shown = small.base.cost(sku, "llama_3_1_70b", "chat")
        assert shown is not None
        assert shown.hour == pytest.approx(row["usd_per_gpu_hour"], rel=1e-9)
        assert shown.mtoken == pytest.approx(row["usd_per_mtoken"]["output"], rel=1e-9)
        assert shown.mtoken_low == pytest.approx(row["low"], rel=1e-6)
        assert shown.mtoken_high == pytest.approx(row["high"], rel=1e-6)


def test_a_case_does_not_depend_on_the_way_to_it(small: Preview) -> None:
    direct = small.solve({"power": 90, "memory": 120})
    for power in (60, 130, 100):
        small.solve({"power": power, "costs_survival": 0.98})
    again = small.solve({"power": 90, "memory": 120})
    assert np.allclose(direct.volume, again.volume, rtol=1e-12, atol=1e-6)
    assert np.allclose(small.solve({}).volume, small.base.volume, rtol=1e-12, atol=1e-6)


@pytest.mark.parametrize(
    ("moved", "start"),
    [
        ({"power": 110, "yield": 115, "costs_survival": 0.98}, ""),
        ({"packaging": 90, "costs_power_used_of_peak": 0.9, "costs_rental": 120}, "2026-Q1"),
        ({"discount_rate": 120, "power": 120}, "2026-Q1"),
    ],
)
def test_the_downloaded_scenario_is_the_case(
    small: Preview, tmp_path: Path, moved: dict[str, float], start: str
) -> None:
    path = tmp_path / "case.yaml"
    path.write_text(small.scenario_text(moved, start), encoding="utf-8")
    case = small.solve(moved, start)
    values = resolve(load_scenario(path)).network.values
    assert not [p for p, v in values.items() if not np.allclose(v, small.compiled.values[p], rtol=1e-12, atol=0)]
    reported = run(path, prices=False, costs=False)
    assert case.total("2026") == pytest.approx(reported.output("energised:*@2026"), rel=1e-7)
    assert case.total("2026") != pytest.approx(small.base.total("2026"), rel=1e-9)


def test_a_yield_stops_at_one(small: Preview) -> None:
    small.solve({"yield": 150})
    yields = {p: v for p, v in small.compiled.values.items() if ".yield" in p}
    assert yields and max(float(v.max()) for v in yields.values()) <= 1.0
    entries = small.edits({"yield": 150})
    assert len(entries) > 5 and all(e["scale"] <= 1.5 for _, e in entries)
    assert min(e["scale"] for _, e in entries) < 1.1


def test_references_follow_an_edited_path(small: Preview) -> None:
    """`fleet.*.kw_planning` is a product with `costs.power_used_of_peak`: it follows, and nothing else does."""
    small.solve({"costs_power_used_of_peak": 1.02})
    moved = {p for p, v in small.compiled.values.items() if not np.array_equal(v, small.resolved.network.values[p])}
    assert {p for p in moved if not p.startswith("costs.")} == {f"fleet.{s}.kw_planning" for s in small.base.skus}
    ratio = small.compiled.values["fleet.h100.kw_planning"] / small.resolved.network.values["fleet.h100.kw_planning"]
    assert ratio == pytest.approx(1.2)


def test_more_of_a_limit_is_never_worth_less(small: Preview) -> None:
    values = []
    for power in (70, 100, 130):
        small.solve({"power": power})
        values.append(small.compiled.solve(tidy=False).objective_total)
    assert values == sorted(values)


def test_no_plan_gives_words_and_no_number(tmp_path: Path) -> None:
    path = tmp_path / "promise.yaml"
    path.write_text(PROMISE, encoding="utf-8")
    preview = Preview.open(path)
    assert preview.base.total("2026") == pytest.approx(16.0)
    case = preview.solve({"resources_fab_capacity": 60})
    assert "promise" in case.failed and case.volume.size == 0 and case.costs == ()
    assert preview.solve({}).total("2026") == pytest.approx(16.0)
    assert preview.scenario_text({"resources_fab_capacity": 60}).startswith("extends: promise.yaml\n")


def test_controls_know_their_sources(small: Preview) -> None:
    power = small.controls["power"]
    inputs = small.resolved.inputs()
    rows = inputs[inputs["path"].str.startswith("resources.power_") & inputs["path"].str.endswith(".capacity")]
    mean = sum(float(small.resolved.nodes[p].value[8:12].mean()) for p in rows["path"].unique())
    assert power.natural == pytest.approx(mean)
    assert power.low is not None and power.high is not None and power.low < 100 < power.high
    assert power.outside(power.high + 1) and not power.outside(100)
    assert f"{mean / 1000:.0f},000 MW in 2026" in power.caption(100, "2026")
    kept = small.controls["costs_survival"]
    assert (kept.kind, kept.base, kept.low, kept.high) == ("value", 0.9875, 0.98, 0.995)
    steps = (kept.base - kept.start) / kept.step
    assert steps == pytest.approx(round(steps), abs=1e-6), "the base is a step of the slider"


def test_any_number_can_be_put_under_a_slider(small: Preview) -> None:
    preview = Preview.open("small", costs=False)
    found = addresses(preview.resolved)
    assert len(found) == len(set(found.values())) > 100
    control = preview.add("processes.hbm3e_*.yield")
    assert control.kind == "scale" and len(control.paths) > 1
    assert preview.solve({control.id: 80}).total("2026") != preview.base.total("2026")
    with pytest.raises(ValueError, match="no number has this path"):
        control_of(preview.resolved, "resources.nothing.capacity", "2026")
    with pytest.raises(KeyError, match="no slider poewr; there are power"):
        small.solve({"poewr": 3})


def test_at_the_base_nothing_is_edited(small: Preview) -> None:
    assert edits(small.resolved, small.controls.values(), small.settings()) == []
    assert "set:" not in small.scenario_text({})


def test_another_year_in_focus() -> None:
    preview = Preview.open("small", costs=False)
    preview.focus("2025")
    assert preview.year == "2025" and "in 2025" in preview.controls["power"].caption(100, "2025")
    assert preview.base.total("2026") == pytest.approx(Preview.open("small", costs=False).base.total("2026"))
    with pytest.raises(ValueError, match="2031"):
        preview.focus("2031")


def test_ranking_and_inverse_question(course: Preview, small: Preview) -> None:
    assert course.swings() == [], "no source of this scenario has a range"
    found = course.reach("resources_cowos_capacity", 12345.0)
    assert found.setting == pytest.approx(123.45, abs=0.02)
    assert (found.least, found.most) == (5000.0, 15000.0)
    beyond = course.reach("resources_cowos_capacity", 20000.0)
    assert beyond.setting is None and beyond.most == 15000.0
    rows = small.swings()
    assert rows[0][0].id == "power"
    sizes = [max(abs(low), abs(high), abs(high - low)) for _, low, high in rows]
    assert sizes == sorted(sizes, reverse=True)


def test_bands_hold_what_is_set(course: Preview, small: Preview) -> None:
    certain = course.bands({"resources_cowos_capacity": 110}, draws=3)
    assert (certain.low, certain.middle, certain.high) == (11000.0, 11000.0, 11000.0)
    assert certain.stages == {"packaging": 1.0}
    wide, again = small.bands({}, draws=8), small.bands({}, draws=8)
    assert wide == again and wide.low < wide.middle < wide.high
    scarce = small.bands({"power": 60}, draws=8)
    assert scarce.middle < wide.middle and scarce.stages.get("power", 0.0) > wide.stages.get("power", 0.0)


def test_a_run_folder_opens_and_downloads_whole(tmp_path: Path) -> None:
    stored = run("course_11_1", [("resources.cowos.capacity", {"scale": 1.1})], tmp_path)
    assert stored.folder is not None
    preview = Preview.open(stored.folder)
    assert preview.base.total("2026") == pytest.approx(11000.0)
    path = tmp_path / "again.yaml"
    path.write_text(preview.scenario_text({"resources_cowos_capacity": 120}), encoding="utf-8")
    assert "extends" not in path.read_text(encoding="utf-8")
    assert run(path).output("finished:*@2026") == pytest.approx(13200.0)


def test_the_address_bar_cannot_name_a_file() -> None:
    asked = Given.of({}, {"scenario": "/etc/passwd", "power": "110", "memory": "x", "year": "2025"})
    assert asked.choice == "base" and "/etc/passwd" not in asked.choices.values()
    assert asked.settings == {"power": 110.0} and asked.year == "2025"
    assert Given.of({"run": "/runs/mine"}, {}).choice == "run mine"


def test_a_link_holds_the_model_and_task_that_are_not_the_first(small: Preview) -> None:
    asked = Given.of({}, {"model": "deepseek_v3", "task": "chat", "power": "90"})
    assert (asked.model, asked.task, asked.settings) == ("deepseek_v3", "chat", {"power": 90.0})
    (first, *_), (task, *_) = small.costing.models(), small.costing.tasks()
    assert other_than_first(small, first, task) == {"model": "", "task": ""}
    assert other_than_first(small, "deepseek_v3", "chat") == {"model": "deepseek_v3", "task": "chat"}
    assert other_than_first(small, "<b>", "") == {"model": "", "task": ""}


def test_a_stored_study_orders_the_sliders(small: Preview, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts and series stand for the limits that rest on them; a number of the study gets a slider of its own."""
    study = ["costs.custom_silicon_discount", "series hbm_capacity_sk_hynix", "no such input", "costs.rental"]
    found = [c.address for c in usual_controls(small.resolved, "2026", study)]
    usual = [c.address for c in usual_controls(small.resolved, "2026")]
    assert found[:3] == ["costs.custom_silicon_discount", "memory", "costs.rental"] and len(found) == len(usual)
    rest = [a for a in usual if a not in found[:3]]
    assert [a for a in found[3:] if a in rest] == rest[: len(found) - 3], "what it does not name keeps its order"
    stored = run("course_11_1", out=tmp_path / "plain").folder
    assert stored is not None and Preview.open(stored).usual == Preview.open("course_11_1").usual
    studied = run("course_11_1", out=tmp_path / "studied").folder
    held = SimpleNamespace(table=lambda name: {"headline": pd.DataFrame({"input": ["resources.cowos.capacity"]})}[name])
    monkeypatch.setattr("scenarios.runs.Run.open", lambda folder: held)
    assert studied is not None and Preview.open(studied).usual[0] == "resources.cowos.capacity"
    assert Preview.open("course_11_1").usual[0] != "resources.cowos.capacity"


def test_undo_goes_back_one_change_at_a_time(course: Preview) -> None:
    held = Held()
    for percent in (100, 110, 120):
        held.take(course, course.solve({"resources_cowos_capacity": percent}))
    first = held.undo()
    assert first["resources_cowos_capacity"] == 110
    assert held.undo()["resources_cowos_capacity"] == 100
    assert held.undo()["resources_cowos_capacity"] == 120, "nothing older: stays"
    assert "scale: 1.2" in held.text()


def test_what_cannot_be_shown_is_said_in_words(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(PROMISE.replace("yield: 0.8", "yeild: 0.8"), encoding="utf-8")
    said = opened(str(path))
    assert isinstance(said, str) and "unknown key 'yeild'" in said and "wrong.yaml:6" in said
    assert isinstance(opened("course_11_1"), Preview)


def test_the_report_of_a_case_is_a_page(course: Preview) -> None:
    held = Held()
    held.take(course, course.solve({"resources_cowos_capacity": 120}))
    said: list[str] = []
    page = report_page(held, said.append)
    assert isinstance(page, bytes) and b"<html" in page[:500].lower() and said
    assert b"12,000" in page and b"Course 11.1: a case from the app" in page


def test_new_sliders_stand_where_the_old_ones_stood(course: Preview) -> None:
    held, asked = Held(), {"resources_cowos_capacity": 130.0}
    assert held.values(asked) == asked, "a link or preset is obeyed"
    held.take(course, course.solve({"resources_cowos_capacity": 110}))
    assert held.values(asked)["resources_cowos_capacity"] == 110, "another year was chosen: nothing moves"
    assert held.values({}) == {}, "reset is obeyed"
    held.forget()
    held.values(asked)
    held.forget()
    assert held.values(asked) == {}, "another scenario starts at its base"


def test_a_link_holds_the_pinned_case_its_start_and_the_inputs() -> None:
    preview = Preview.open("small", costs=False)
    pinned = preview.solve({"power": 90, "memory": 120}, "2025-Q1", name="pinned")
    word = case_text(preview, pinned)
    assert word == "power:90,memory:120@2025-Q1"
    query = {"pin": word, "from": "2026-Q1", "inputs": "power,memory,resources.nothing.capacity", "packaging": "80"}
    asked = Given.of({}, query)
    assert (asked.start, asked.settings) == ("2026-Q1", {"packaging": 80.0})
    again = Preview.open("small", costs=False)
    held = restore(again, asked)
    assert held is not None and np.array_equal(held.volume, pinned.volume) and held.start == "2025-Q1"
    assert list(again.controls) == ["power", "memory"], "what the link names and the scenario has"
    base = restore(Preview.open("small", costs=False), Given.of({}, {"pin": "base"}))
    assert base is not None and base.total("2026") == pytest.approx(preview.base.total("2026"))


@pytest.mark.parametrize(
    "pin", ["nothing:3", "power:nan", "power:inf", "power:1e300", "power", "@", ":::,,@@", "power:x@2099-Q9"]
)
def test_a_link_with_nonsense_is_the_base(pin: str) -> None:
    preview = Preview.open("small", costs=False)
    case = restore(preview, Given.of({}, {"pin": pin, "inputs": ",,nothing"}))
    assert case is not None and case.start == "" and next(iter(preview.controls)) == "power"
    assert case.total("2026") == pytest.approx(preview.base.total("2026"))


def test_a_twin_leaves_the_one_on_screen_alone(small: Preview) -> None:
    case = small.solve({"power": 90})
    twin = small.twin()
    assert twin.compiled is not small.compiled and list(twin.controls) == list(small.controls)
    before = small.compiled.values["resources.power_us.capacity"].copy()
    assert np.allclose(twin.solve({"power": 90}).volume, case.volume, rtol=1e-9, atol=1e-6)
    twin.solve({"power": 60})
    assert np.array_equal(small.compiled.values["resources.power_us.capacity"], before)


def test_amounts_and_targets_are_answered_in_words(course: Preview) -> None:
    control = course.controls["resources_cowos_capacity"]
    aims = measures(course)
    aim = aims["accelerators finished in 2026"]
    got = get_words(course, control, control.natural * 1.2, {}, "")
    assert "<b>12,000</b> accelerators finished in 2026" in got and "120.0 % of base" in got and "+20.0 %" in got
    needed = need_words(course, control, aim, 12345.0, {}, "")
    assert "123.4 % of base" in needed or "123.5 % of base" in needed
    assert "Not reachable" not in needed and "All other inputs at the base" in needed
    beyond = need_words(course, control, aim, 20000.0, {"resources_fab_capacity": 90.0}, "")
    assert "<b>Not reachable.</b>" in beyond and "5,000 to 13,500" in beyond and "With Fab" in beyond
    assert "above zero" in get_words(course, control, 0.0, {}, "") + get_words(course, control, np.nan, {}, "")


def test_a_price_is_a_target_too(small: Preview) -> None:
    model, task = small.costing.models()[0], small.costing.tasks()[0]
    aims = measures(small, model, task)
    hour = next(m for name, m in aims.items() if name.startswith("USD per sold hour"))
    assert len(aims) == 5
    base = hour.value(small.base)
    scarce = hour.value(small.solve({"power": 80}))
    assert np.isfinite(base) and scarce != base
    found = small.reach("power", (base + scarce) / 2, measure=hour.value)
    assert found.setting is not None and found.least <= base <= found.most
    assert hour.value(small.solve({"power": found.setting})) == pytest.approx((base + scarce) / 2, rel=0.05)
    assert "Not reachable" in need_words(small, small.controls["power"], hour, 1e-6, {}, "")


def test_a_long_question_is_told_and_ends_when_asked(course: Preview) -> None:
    shown = Shown()
    job, began, go = Job(), threading.Event(), threading.Event()

    def work(step: Callable[[int, int], None]) -> str:
        step(1, 3)
        began.set()
        assert go.wait(10)
        step(2, 3)
        return "the answer"

    job.ask(shown, "A question <b>", work)
    assert began.wait(10)
    job.cancel()
    go.set()
    shown.join()
    assert "1 of 3" in shown.said[-2] and "A question &lt;b&gt;" in shown.said[-2]
    assert "Cancelled; nothing was changed" in shown.said[-1] and "the answer" not in shown.said
    job.ask(shown, "Again", work)
    shown.join()
    assert shown.said[-1] == "the answer"
    job.ask(shown, "Wrong", lambda step: course.focus("2031"))
    shown.join()
    assert "There is no answer" in shown.said[-1] and "2031" in shown.said[-1]


class Shown:
    """What a question needs of marimo: a place for its output and a thread."""

    def __init__(self) -> None:
        self.said: list[Any] = []
        self.output = self
        self.threads: list[threading.Thread] = []

    def replace(self, value: Any) -> None:
        self.said.append(value)

    def Html(self, text: str) -> str:  # noqa: N802
        return text

    def Thread(self, **given: Any) -> threading.Thread:  # noqa: N802
        self.threads.append(threading.Thread(**given))
        return self.threads[-1]

    def current_thread(self) -> Any:
        return SimpleNamespace(should_exit=False)

    def join(self) -> None:
        self.threads[-1].join(20)
