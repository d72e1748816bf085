"""The tutorials run as they stand, print their story, and their numbers agree with each other."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"


def tutorial(name: str) -> dict[str, float]:
    spec = importlib.util.spec_from_file_location(f"tutorial_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, float] = module.main()
    return found


def test_every_tutorial_is_tested() -> None:
    assert {p.stem for p in FOLDER.glob("*.py")} == {"first_study", "own_chip", "own_workload"}


def test_first_study(capsys: pytest.CaptureFixture[str]) -> None:
    found = tutorial("first_study")
    assert found["gained"] > 0 and found["q05"] < found["energised"] < found["q95"]
    assert 1.0 < found["scale"] < 2.0
    assert f"{found['energised']:,.0f} accelerators energised in 2026" in capsys.readouterr().out


def test_own_chip(capsys: pytest.CaptureFixture[str]) -> None:
    found = tutorial("own_chip")
    said = capsys.readouterr().out
    assert "CoWoS wafers allotted binds" in said and "Wafers allotted binds" in said.split("40 % fewer")[1]
    # wafers bind in the poor case: four quarters of good dies, two a package, times assembly yield
    assembly = float(said.split("assembly yield ")[1].split(" %")[0]) / 100
    expected = 4 * 12000 * 0.6 * found["good_dies"] / 2 * assembly
    assert found["fewer"] == pytest.approx(expected, rel=2e-3)
    assert found["fewer"] < found["made"]


def test_own_workload(capsys: pytest.CaptureFixture[str]) -> None:
    found = tutorial("own_workload")
    assert 0 < found["own_task"] < found["api_task"]
    assert found["ratio"] == pytest.approx((9 / 0.72) / (6 / 0.9))
    assert "USD per closed ticket" in capsys.readouterr().out
