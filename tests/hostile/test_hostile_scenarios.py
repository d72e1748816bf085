"""Hostile scenario files: every one is run or refused at a place, whatever it holds.

`HOSTILE_EXAMPLES=2000` runs the fuzzing at length.
"""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from scenarios.errors import ScenarioError
from scenarios.load import load_scenario
from scenarios.locate import FOLDER
from scenarios.positions import read_text
from scenarios.resolve import resolve
from tests.hostile.hostile_tools import JUNK, NUMBERS, WORDS, fuzzed, harmed_bytes, harmed_data, limited, places

SEED = (FOLDER / "course_11_1.yaml").read_text(encoding="utf-8")
RICH = (Path(__file__).parent / "rich.yaml").read_text(encoding="utf-8")
PLAIN, FULL = (YAML(typ="safe", pure=True).load(text) for text in (SEED, RICH))
FORMS = st.sampled_from(
    [
        {"fact": "x"},
        {"fact": "h200", "scale": 1e308},
        {"series": "tsmc_cowos_capacity"},
        {"path": "resources.fab.capacity"},
        {"ratio": [1, 0]},
        {"product": [1e200, 1e200]},
        {"distribution": "normal", "mean": 0, "sd": 0},
        {"distribution": "discrete", "values": [], "weights": []},
        {"value": 1, "range": [2, 1]},
        {"2026-Q1": 1, "fill": "linear"},
        {"scale": 2},
        {"manufacturing": "h100.x"},
    ]
)
PATHS = [".".join(map(str, p)) for p in places(FULL) if p]


def _text(data: Any) -> str:
    out = io.StringIO()
    yaml = YAML()
    yaml.dump(data, out)
    return out.getvalue()


def _try(path: Path) -> None:
    """Resolved with finite numbers, or refused with at least one place."""
    with limited():
        try:
            resolved = resolve(load_scenario(path))
        except ScenarioError as exc:
            assert exc.problems and all(p.message for p in exc.problems)
            return
    assert all(float(abs(array).max()) < 1e300 for array in resolved.network.values.values())


@fuzzed()
@given(harmed_data(PLAIN, PATHS) | harmed_data(FULL, PATHS))
def test_a_scenario_with_junk_anywhere_is_run_or_refused_at_a_place(
    tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    path = tmp_path_factory.getbasetemp() / "junk.yaml"
    path.write_text(_text(data), encoding="utf-8", errors="surrogatepass")
    _try(path)


@fuzzed()
@given(harmed_bytes(SEED.encode()) | harmed_bytes(RICH.encode()))
def test_a_scenario_with_bytes_cut_or_put_in_is_run_or_refused_at_a_place(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.yaml"
    path.write_bytes(raw)
    _try(path)


@fuzzed()
@given(
    st.sampled_from(PATHS + WORDS + ["processes.*.yield", "*", "yield", "set", "extends"]),
    JUNK
    | FORMS
    | st.sampled_from(NUMBERS)
    | st.dictionaries(st.sampled_from(["scale", "add", "replace", "delay", "from"]), JUNK, min_size=1, max_size=2),
    st.booleans(),
)
def test_any_set_is_applied_or_refused_at_a_place(path: str, value: Any, full: bool) -> None:
    with limited():
        try:
            resolve(load_scenario(Path(__file__).parent / "rich.yaml" if full else "course_11_1", [(path, value)]))
        except ScenarioError as exc:
            assert exc.problems


LAUGHS = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9)
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LAUGHS, "entries once its anchors are followed"),
        ("a: &a [*a]\n", "deep in each other"),
        ("a: " + "[" * 3000 + "]" * 3000, "deep in each other"),
        ("costs: " + "{a: " * 80 + "1" + "}" * 80, "deep in each other"),
        ("a: '\x01'\n", "not allowed in YAML"),
        ("a: !!python/object/apply:os.system [id]\n", "is not part of the language"),
        ("a: " + "9" * 5000, "digits"),
        ("a: 1e400\n", "too large"),
        ("a: 1\nb: 2\na: 3\n", "given twice"),
    ],
)
def test_a_text_that_would_grow_or_run_is_refused_quickly(text: str, words: str) -> None:
    started = time.monotonic()
    with pytest.raises(ScenarioError, match=words):
        read_text(text, "bomb.yaml")
    assert time.monotonic() - started < 30


def test_bytes_that_are_not_utf8_are_named_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"title: x\nnote: caf\xe9\n")
    with pytest.raises(ScenarioError, match=r"latin.yaml:2:1: the byte 0xe9 is not UTF-8"):
        load_scenario(path)


@pytest.mark.parametrize(
    "parent", ["[]", "false", '""', "[base, small]", "/etc/passwd", "../x.yaml", "a" * 5000, "b.yaml", "self.yaml"]
)
def test_extends_takes_one_name_below_the_folder(tmp_path: Path, parent: str) -> None:
    outside = tmp_path / "outside.yaml"
    outside.write_text(SEED, encoding="utf-8")
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "b.yaml").symlink_to(outside)
    path = folder / "self.yaml"
    path.write_text(f"extends: {parent}\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match="extends"):
        load_scenario(path)


@pytest.mark.parametrize(
    "line",
    [
        "workloads: x",
        "tasks: 5",
        "workloads: [1]",
        "costs: {a: [1]}",
        "costs: {a: word}",
        "costs: {life: null}",
        "outputs: [nope]",
        "set: [1]",
        "set: [[[1]]]",
        "discount_rate: 2026-01-01",
    ],
)
def test_what_was_once_ignored_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(f"{SEED}\n{line}\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"x.yaml:\d+:\d+: "):
        load_scenario(path)


@pytest.mark.parametrize("pattern", ["extends", "set", ""])
def test_a_set_of_the_file_itself_is_refused(pattern: str) -> None:
    with pytest.raises(ScenarioError, match="set"):
        load_scenario("course_11_1", [(pattern, "base")])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("output: {die: 1}", "output: {die: 1e-12}"),
        ("input: {die: 1}", "input: {die: 1e12}"),
        ("uses: {fab: 1 die}", "uses: {fab: 1e12 die}"),
        ("capacity: 15000 die", "capacity: 1e30 die"),
        ("price: 1 USD", "price: 1e-12 USD"),
    ],
)
def test_numbers_that_a_solve_takes_for_nothing_are_refused(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "x.yaml"
    assert old in SEED
    path.write_text(SEED.replace(old, new).replace("objective: units", "objective: value"), encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"too (small|large) for a solve|cannot tell it from nothing"):
        resolve(load_scenario(path))


@pytest.mark.parametrize("capacity", [1e-6, 1e-3, 1.0, 1e6, 1e12])
def test_every_size_of_capacity_is_solved_right(tmp_path: Path, capacity: float) -> None:
    from scenarios.runner import run

    sets = [("resources.fab.capacity", capacity), ("resources.cowos.capacity", 2 * capacity)]
    found = run("course_11_1", sets, prices=False, costs=False).json()["objective"]["value"]
    assert found == pytest.approx(capacity, rel=1e-9)


@pytest.mark.parametrize("unit", ["9**9**9 die", "die**99", "(" * 60, "__import__('os')", "a*" * 200, "0*die", "nan"])
def test_a_unit_is_a_word_and_never_a_computation(tmp_path: Path, unit: str) -> None:
    started = time.monotonic()
    with pytest.raises(ScenarioError, match="unit"):
        resolve(load_scenario("course_11_1", [("resources.fab.capacity", f"15000 {unit}")]))
    assert time.monotonic() - started < 10
