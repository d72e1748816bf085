"""Every problem of a scenario file at once, each with its place and a fix."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scenarios.errors import ScenarioError
from scenarios.load import load_scenario
from scenarios.resolve import check, resolve
from scenarios.schema import json_schema

CHAIN = """\
title: Two steps
horizon: {start: 2026-Q1, periods: 2}
objective: units
materials:
  die: {unit: die}
  accelerator: {unit: accelerator}
resources:
  fab: {stage: fab, capacity: 15000 die/quarter}
  cowos: {stage: packaging, capacity: 10000 accelerator/quarter}
processes:
  make_die: {output: {die: 1}, uses: {fab: 1 die}, yield: 0.9}
  package:
    input: {die: 1}
    output: {accelerator: 1}
    uses: {cowos: 1 accelerator}
demand:
  accelerator: {price: 1 USD/accelerator}
"""


def write(folder: Path, text: str, name: str = "case.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def problems(folder: Path, text: str) -> list[str]:
    return [str(p).removeprefix(str(folder) + "/") for p in check(write(folder, text))]


def test_the_good_file_has_no_problem(tmp_path: Path) -> None:
    assert problems(tmp_path, CHAIN) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "yield: 0.9",
            "yeild: 0.9",
            ["case.yaml:11:52: processes.make_die.yeild: unknown key 'yeild'; did you mean yield?"],
        ),
        (
            "yield: 0.9",
            "yield: -0.1",
            ["case.yaml:11:52: processes.make_die.yield: -0.1 is below 0: yield must be between 0 and 1"],
        ),
        (
            "{fab: 1 die}",
            "{fab: 1 wafer}",
            ["case.yaml:11:39: processes.make_die.uses.fab: 'wafer' does not fit: the field is a quantity in die"],
        ),
        (
            "input: {die: 1}",
            "input: {dye: 1}",
            ["case.yaml:13:13: processes.package.input.dye: there is no material 'dye'; did you mean die?"],
        ),
        (
            "15000 die/quarter",
            "15000 die",
            [
                "case.yaml:8:21: resources.fab.capacity: 'die' does not fit: "
                "the field is a flow in die per time, e.g. die/quarter"
            ],
        ),
        (
            "start: 2026-Q1",
            "start: 2026-Q5",
            ["case.yaml:2:11: horizon.start: '2026-Q5' is not a period such as 2026-Q1"],
        ),
        ("objective: units", "objective: money", ["case.yaml:3:1: objective.kind: input should be"]),
        ("{price: 1 USD/accelerator}", "{price: 1 USD/die}", ["case.yaml:17:17: demand.accelerator.price: 'USD/die'"]),
        (
            "yield: 0.9",
            "yield: {fact: no_such_fact}",
            ["case.yaml:11:52: processes.make_die.yield: no fact 'no_such_fact'"],
        ),
        (
            "yield: 0.9",
            "yield: {scale: 0.9}",
            ["case.yaml:11:52: processes.make_die.yield: an edit (scale) stands only under"],
        ),
        ("yield: 0.9", "yield: .nan", ["case.yaml:11:59: processes.make_die.yield: .nan is not a number"]),
        (
            "title: Two steps",
            "title: Two\ntitle: Twice",
            ["case.yaml:2:1: title: the key is given twice (first on line 1)"],
        ),
        (
            "demand:\n  accelerator: {price: 1 USD/accelerator}",
            "demand:\n  accelerator: {price: 1 USD/accelerator}\nset: {processes.package.yeild: 0.5}",
            ["case.yaml:18:7: set.processes.package.yeild: no number has the path 'processes.package.yeild'"],
        ),
    ],
)
def test_one_problem(tmp_path: Path, old: str, new: str, expected: list[str]) -> None:
    assert old in CHAIN
    found = problems(tmp_path, CHAIN.replace(old, new))
    assert len(found) == len(expected)
    for message, start in zip(found, expected, strict=True):
        assert message.startswith(start), message


def test_two_errors_at_once_in_file_order(tmp_path: Path) -> None:
    text = CHAIN.replace("capacity: 15000", "capactiy: 15000").replace("yield: 0.9", "yeild: 0.9")
    found = problems(tmp_path, text)
    assert [f.split(" ", 1)[0] for f in found] == ["case.yaml:8:3:", "case.yaml:8:21:", "case.yaml:11:52:"]
    assert "did you mean capacity?" in found[1]
    assert "'capacity' is required" in found[0]


def test_a_misspelt_key_does_not_hide_a_wrong_value(tmp_path: Path) -> None:
    text = CHAIN.replace("yield: 0.9", "yield: -0.1, yeild: 1, cost: 3 wafer").replace("{price:", "{prize: 1, price:")
    found = problems(tmp_path, text)
    assert [f.split(": ")[1] for f in found] == [
        "processes.make_die.yield",
        "processes.make_die.yeild",
        "processes.make_die.cost",
        "demand.accelerator.prize",
    ]


def test_two_value_errors_at_once(tmp_path: Path) -> None:
    text = CHAIN.replace("yield: 0.9", "yield: 1.4").replace("10000 accelerator/quarter", "-5 accelerator/quarter")
    found = problems(tmp_path, text)
    assert len(found) == 2
    assert found[0].startswith("case.yaml:9:29: resources.cowos.capacity: -5 is below 0")
    assert found[1].startswith("case.yaml:11:52: processes.make_die.yield: 1.4 is above 1")


def test_an_unreachable_product_is_named_with_its_fix(tmp_path: Path) -> None:
    text = CHAIN.replace("materials:\n", "materials:\n  hbm: {unit: stack}\n").replace(
        "input: {die: 1}", "input: {die: 1, hbm: 5}"
    )
    found = problems(tmp_path, text)
    assert any(f.startswith("case.yaml:14:21: processes.package.input.hbm: no process makes it") for f in found)
    assert any("accelerator can never be made" in f for f in found)


def test_bad_yaml_and_a_list_are_placed(tmp_path: Path) -> None:
    assert problems(tmp_path, "title: [a\nb: 1")[0].startswith("case.yaml:2:")
    assert "a scenario is a mapping" in problems(tmp_path, "- a\n- b\n")[0]


def test_error_carries_the_exit_code(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(write(tmp_path, CHAIN.replace("fab:", "Fab:")))
    assert caught.value.exit_code == 3
    assert "'Fab' is not an id" in str(caught.value)


def test_unknown_library_name_offers_the_nearest() -> None:
    with pytest.raises(ScenarioError, match="did you mean course_11_1"):
        load_scenario("course_11_2")


def test_extends_must_stay_below_and_not_run_in_a_circle(tmp_path: Path) -> None:
    write(tmp_path, "extends: b\ntitle: a\n", "a.yaml")
    write(tmp_path, "extends: a\ntitle: b\n", "b.yaml")
    with pytest.raises(ScenarioError, match="a circle"):
        load_scenario(tmp_path / "a.yaml")
    with pytest.raises(ScenarioError, match="leaves the folder"):
        load_scenario(write(tmp_path, "extends: ../other.yaml\n", "c.yaml"))


def test_json_schema_knows_the_keys_and_is_valid_json() -> None:
    schema = json.loads(json.dumps(json_schema()))
    assert {"title", "processes", "set", "disruptions"} <= set(schema["properties"])
    process = schema["$defs"]["Process"]["properties"]
    assert "yield" in process and "lead_time" in process and "from" in process


def test_course_case_resolves_to_its_numbers() -> None:
    network = resolve(load_scenario("course_11_1")).network
    assert network.objective.kind == "units"
    assert network.values["resources.fab.capacity"].tolist() == [15000.0]
    assert network.horizon.length == 1


def test_a_child_that_writes_the_value_of_a_product_keeps_the_rest_of_it(tmp_path: Path) -> None:
    child = write(tmp_path, "title: Child\nextends: small\nfleet: {b200: {value: 3, regions: [us]}}\n")
    scenario = load_scenario(child)
    assert scenario.file.fleet["b200"].material == "b200_ready"
    assert scenario.file.fleet["b200"].regions == ("us",)
    assert resolve(scenario).network.values["fleet.b200.value"][0] == 3


def test_a_wrong_name_is_told_once_and_a_wrong_key_names_those_of_its_place(tmp_path: Path) -> None:
    child = "title: Child\nextends: small\nfleet: {b200: {regions: [us, mars]}}\n"
    assert problems(tmp_path, child) == [
        "case.yaml:3:30: fleet.b200.regions.1: there is no region 'mars'; it may be europe, rest, us"
    ]
    edits = "title: Child\nextends: small\nset:\n  power: {scale: 2, til: 2026}\n  yield: {value: 1, rnge: [1, 2]}\n"
    found = problems(tmp_path, edits)
    assert found[0].endswith("unknown key 'til'; it may be add, delay, from, note, replace, scale, scale_growth, to")
    assert found[1].endswith("unknown key 'rnge'; did you mean range?")


def test_a_file_meant_by_its_name_alone_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "title: x\n", "my_case.yaml")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScenarioError, match=r"no library scenario of this name; did you mean the file my_case.yaml\?"):
        load_scenario("my_case")
    with pytest.raises(ScenarioError, match="a workbook is read by `run` and `check`"):
        load_scenario("book.xlsx")
    with pytest.raises(ScenarioError, match=r"there is no such file; did you mean my_case.yaml\?"):
        load_scenario("my_csae.yaml")
