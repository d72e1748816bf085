"""No silent default: a misspelt key or name anywhere in a scenario is refused where it stands, with the nearest."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from scenarios.resolve import check
from scenarios.schema import SECTIONS
from tests.hostile.hostile_tools import EXAMPLES, Place, look, places, put

SEED = Path(__file__).parent / "rich.yaml"
DATA: dict[str, Any] = YAML(typ="safe", pure=True).load(SEED)
#: Mappings whose keys are names that the file gives itself: a new key there is a new thing.
NAMED = {(section,) for section in (*SECTIONS, "groups", "set", "costs")}
#: Text that is shown and means nothing to the model.
FREE = ("title", "note", "unit", "supplier", "owner", "start", "stage")


def problems(tmp_path: Path, data: Any) -> list[str]:
    out = io.StringIO()
    YAML().dump(data, out)
    path = tmp_path / "x.yaml"
    path.write_text(out.getvalue(), encoding="utf-8")
    return [str(p) for p in check(path)]


def mappings() -> list[Place]:
    return [p for p in places(DATA) if isinstance(look(DATA, p), dict) and p not in NAMED]


def names() -> list[Place]:
    """Places of words that refer to something: no free text, number or unit."""
    found = [p for p in places(DATA) if isinstance(look(DATA, p), str)]
    return [p for p in found if p[-1] not in FREE and not look(DATA, p)[:1].isdigit()]


def shown(place: Place) -> str:
    return ".".join(map(str, place)) or "top"


def test_the_seed_is_accepted_and_uses_the_language(tmp_path: Path) -> None:
    assert problems(tmp_path, DATA) == []
    used = {p[2] for p in places(DATA) if len(p) == 3 and p[0] in SECTIONS}
    known = {i.alias or k for model in SECTIONS.values() for k, i in model.model_fields.items()}
    assert known - used == {"least_share", "take_or_pay", "least", "process"} - used


@pytest.mark.parametrize("place", mappings(), ids=shown)
def test_a_misspelt_key_is_refused_with_the_nearest(tmp_path: Path, place: Place) -> None:
    """A key of each mapping (at length: each key) is joined by a copy of itself with one letter twice."""
    mapping = look(DATA, place)
    for key in mapping if EXAMPLES > 100 else [min(mapping)]:
        slip = f"{key[:-1]}{key[-1]}{key[-1]}" if key[-1].isalpha() else f"{key}x"
        found = problems(tmp_path, put(DATA, (*place, slip), mapping[key]))
        assert found, f"{slip} beside {key} changes nothing and is not reported"
        assert any(slip in one for one in found), found


@pytest.mark.parametrize("place", names(), ids=shown)
def test_an_unknown_name_is_refused_with_the_nearest(tmp_path: Path, place: Place) -> None:
    name = look(DATA, place)
    slip = f"{name}x"
    for word in ("pack", "fab", "make", "chip"):  # in a pattern, the slip stands in the word
        slip = name.replace(word, word[::-1]) if word in name and ("*" in name or ":" in name) else slip
    found = problems(tmp_path, put(DATA, place, slip))
    assert found, f"{slip} for {name} is not reported"
    hinted = ("did you mean", "it may be", "should be", "is not a period", "is not a value", "searches them")
    assert any(hint in one for one in found for hint in hinted), found


@pytest.mark.parametrize("place", [p for p in places(DATA) if p[-1:] == ("stage",)], ids=shown)
def test_a_stage_that_is_nearly_one_is_refused(tmp_path: Path, place: Place) -> None:
    stage = look(DATA, place)
    assert any(f"did you mean {stage}" in one for one in problems(tmp_path, put(DATA, place, f"{stage}s")))
    assert problems(tmp_path, put(DATA, place, "polishing")) == [] or stage == "power"


@pytest.mark.parametrize(
    ("key", "value", "near"),
    [
        ("workloads", ["chat_70"], "chat_70b"),
        ("workloads", ["Llama-3.1-70"], "Llama-3.1-70B"),
        ("workloads", ["chat_70b", "chat_70b"], "given twice"),
        ("tasks", ["codign"], "coding"),
        ("outputs", ["energized:chip@2026"], "energised"),
        ("outputs", ["energised:chop@2026"], "chip"),
        ("outputs", ["energised:chip@2062"], "2026-Q2"),
        ("costs", {"lfe": 5}, "life"),
        ("costs", {"rentl": 2, "rental": 2.4}, "rental"),
        ("costs", {"rental": 2.4, "capex_budget": {"makr": 1}}, "maker"),
    ],
)
def test_what_once_passed_unread_is_refused(tmp_path: Path, key: str, value: Any, near: str) -> None:
    found = problems(tmp_path, put(DATA, (key,), value))
    assert any(near in one and key in one for one in found), found


def test_an_edit_outside_the_horizon_is_warned_of() -> None:
    from scenarios.load import load_scenario
    from scenarios.resolve import resolve

    late = [("resources.fab.capacity", {"scale": 0.5, "from": "2206-Q1"})]
    assert any("changes nothing" in text for text in resolve(load_scenario(SEED, late)).warnings)


def test_a_replacement_of_nothing_inside_a_window_is_refused() -> None:
    sets = [("contracts.promise.least", {"replace": 5, "from": "2026-Q2"})]
    assert any("outside `from` and `to`" in str(p) for p in check(SEED, sets))
