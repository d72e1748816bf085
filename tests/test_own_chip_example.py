"""The worked example of `docs/how_to_add.md`: an accelerator of one's own, in a scenario and as a part of the program.

The page prints the files of `docs/examples/x1`. The scenario runs here; the rows of the program are added to a copy of
it, as the page says, and asked there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from econ.performance.serving import operating_point
from scenarios.runner import run
from scenarios.runs import Run

ROOT = Path(__file__).resolve().parents[1]
FILES = ROOT / "docs" / "examples" / "x1"
SETUP: Any = {"isl": 1000, "osl": 1000, "concurrency": 32, "tp": 2, "weight_format": "fp8"}
ASK = f"""
import json
from datetime import date
from econ.chain import CostChoice, cost_tables
from econ.owner_cost import owner_cost
from econ.performance.hardware import hardware
from econ.performance.serving import operating_point
from supply.facts import catalog

part = hardware("x1")
point = operating_point("Llama-3.1-70B", "X1", **{SETUP!r})
tables = cost_tables([CostChoice("x1", "2026-Q4", date(2026, 11, 15))], ["chat_70b"], ["chat"])
print(json.dumps({{
    "fact": catalog()["xylo_x1_unit_price_2026"].number, "formats": list(part.peak_flop_per_s),
    "tpot": point.tpot_s, "confidence": point.confidence,
    "hour": owner_cost("x1", on=date(2026, 11, 15)).total, "bars": owner_cost("x1", on=date(2026, 11, 15)).fact_ids,
    "mtoken": tables.costs[0]["usd_per_mtoken"]["output"], "task": tables.tasks[0]["usd_per_verified_task"],
    "problems": tables.problems,
}}))
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the program whose data may change."""
    folder = tmp_path_factory.mktemp("program")
    shutil.copytree(ROOT / "supply", folder / "supply", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "data", folder / "data")
    for room in ("econ", "scenarios"):
        (folder / room).symlink_to(ROOT / room)
    return folder


def python(program: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=program,
        env={**os.environ, "PYTHONPATH": str(program)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def append(program: Path, name: str) -> None:
    """The rows of an example file at the end of the table of the same name."""
    rows = (FILES / f"x1_{name}.csv").read_text(encoding="utf-8").partition("\n")[2]
    with (program / "data" / f"{name}.csv").open("a", encoding="utf-8") as handle:
        handle.write(rows)


def test_as_a_part_of_the_program(program: Path) -> None:
    said = python(program, "-m", "supply.facts.ingest", str(FILES / "x1_facts.csv"), "data/facts/x1.csv")
    assert said == "10 rows added to data/facts/x1.csv\n"
    shutil.copy(FILES / "x1_series.csv", program / "data" / "facts" / "x1_series.csv")
    append(program, "hardware")
    append(program, "owner_cost")
    found = json.loads(python(program, "-c", ASK))
    assert found["problems"] == [] and found["fact"] == 35000
    assert "fp4" not in found["formats"] and {"bf16", "fp8"} <= set(found["formats"])
    assert "xylo_x1_unit_price_2026" in found["bars"] and "it_power_xylo_x1@2026-Q3" in found["bars"]
    assert 2 < found["hour"] < 8 and found["mtoken"] > 0 and found["task"] > 0
    by_rates = operating_point("Llama-3.1-70B", str(FILES / "x1.yaml"), **SETUP)
    assert found["tpot"] == pytest.approx(by_rates.tpot_s, rel=1e-12)
    assert found["confidence"] == by_rates.confidence == "first_principles"


@pytest.fixture(scope="module")
def base_x1() -> Run:
    return run(FILES / "base_x1.yaml", prices=False)


def test_in_a_scenario_only(base_x1: Run) -> None:
    finished = {p["period"]: p["finished"].get("x1", 0.0) for p in base_x1.answer["periods"]}
    assert finished["2026-Q2"] == 0 < finished["2026-Q3"] < finished["2026-Q4"]  # packages start in 2026-Q3
    hours = [c["usd_per_gpu_hour"] for c in base_x1.answer["costs"] if c["sku"] == "x1"]
    assert hours and all(2 < hour < 8 for hour in hours)
    assert {p["sku"] for p in base_x1.answer["problems"]} == {"x1"} and all(
        "model" in p for p in base_x1.answer["problems"]
    )
    price = base_x1.inputs[base_x1.inputs["path"] == "fleet.x1.purchase_cost"]
    assert price["kind"].tolist() == ["illustrative"] and base_x1.passed


def test_the_page_prints_the_files() -> None:
    page = (ROOT / "docs" / "how_to_add.md").read_text(encoding="utf-8")
    for path in sorted(FILES.iterdir()):
        text = path.read_text(encoding="utf-8")
        assert f"<!-- file: {path.name} -->\n```{path.suffix[1:]}\n{text}```" in page, path.name
