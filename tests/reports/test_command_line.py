"""The command line: import budget, exit codes with their messages, and the JSON contract."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from reports.cli.app import app

HEAVY = ("pandas", "scipy", "pyomo", "matplotlib", "networkx", "pint", "SALib")


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize("arguments", [["--help"], ["facts", "--show", "cloud_providers_gpus_utilisation_2026"]])
def test_import_budget(arguments: list[str]) -> None:
    code = (
        "import sys, wafer2token\n"
        f"sys.argv = ['wafer2token', *{arguments!r}]\n"
        "try:\n    wafer2token.main()\nexcept SystemExit as done:\n    assert not done.code, done.code\n"
        f"print('HEAVY', sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.rstrip().endswith("HEAVY []")
    assert len(done.stdout) > 200


def test_usage_error_is_two() -> None:
    assert call("run").exit_code == 2
    assert call("nonsense").exit_code == 2


WRONG = """title: wrong
horizon: {start: 2026-Q1, periods: 1}
objective: units
materials: {die: {unit: die}}
resources: {fab: {stage: fab, capacity: 10 die/quarter}}
processes:
  make: {stage: fab, output: {die: 1}, uses: {fab: 1 die}, yeild: 0.5, yield: -0.2}
demand: {die: {price: 1 USD/die}}
"""

INFEASIBLE = """title: too much
horizon: {start: 2026-Q1, periods: 1}
objective: units
materials: {die: {unit: die}}
resources: {fab: {stage: fab, capacity: 10 die/quarter}}
processes:
  make: {stage: fab, output: {die: 1}, uses: {fab: 1 die}}
demand: {die: {price: 1 USD/die}}
contracts: {promise: {resource: fab, processes: [make], least: 100 die/quarter}}
"""


def test_invalid_input_is_three_with_every_problem_at_its_place(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(WRONG, encoding="utf-8")
    done = call("run", str(path))
    assert done.exit_code == 3
    assert "wrong.yaml:7:" in done.stderr and "did you mean" in done.stderr and "yeild" in done.stderr
    assert "Traceback" not in done.output


def test_a_malformed_set_is_two_and_an_unknown_scenario_three() -> None:
    assert call("run", "course_11_1", "--set", "no equals sign").exit_code == 2
    done = call("run", "no_such_scenario")
    assert done.exit_code == 3 and "no_such_scenario" in done.stderr


def test_infeasible_is_four_and_says_what_to_relax(tmp_path: Path) -> None:
    path = tmp_path / "too_much.yaml"
    path.write_text(INFEASIBLE, encoding="utf-8")
    done = call("run", str(path))
    assert done.exit_code == 4, done.stderr
    assert "short by 90 die" in done.stderr and "capacity of fab" in done.stderr and "Traceback" not in done.output


def test_unfinished_folder_is_three(tmp_path: Path) -> None:
    done = call("report", str(tmp_path))
    assert done.exit_code == 3 and "manifest.json" in done.stderr


def test_run_json_contract() -> None:
    done = call("run", "course_11_1", "--json")
    assert done.exit_code == 0
    answer = json.loads(done.stdout)
    assert {"run", "scenario", "hash", "status", "objective", "evidence", "periods", "costs", "tasks"} <= set(answer)
    assert answer["status"] == "optimal" and len(answer["hash"]) == 64
    assert set(answer["objective"]) == {"kind", "value", "unit"}
    assert {"primal_residual", "dual_residual", "gap", "complementarity", "rows", "columns", "solver"} <= set(
        answer["evidence"]
    )
    (period,) = answer["periods"]
    assert period["finished"] == {"accelerator": 10000.0}
    assert set(period["stranded"]) == {"accelerators", "mw"}
    (limit,) = period["binding"]
    assert (limit["resource"], limit["price"]["native"]) == ("cowos", 1.0)
    assert limit["price"]["usd_per_gpu_hour"] is None and limit["price"]["usd_per_task"] is None
    assert set(limit["plus_1_percent"]) == {"finished", "energised", "h100e"}
    assert limit["next_binding"]["resource"] == "fab"


def test_run_prints_the_answer_and_report_follows(tmp_path: Path) -> None:
    done = call("run", "course_11_1", "--out", str(tmp_path / "runs"), "--report", str(tmp_path / "reports"))
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("What binds:") and any(line.startswith("How sure:") for line in lines)
    page = Path(next(line for line in lines if line.startswith("report: ")).removeprefix("report: "))
    assert page.is_file() and "10,000" in page.read_text(encoding="utf-8")
    folder = next(line for line in lines if line.startswith("run: ")).removeprefix("run: ")
    again = call("report", folder, "--out", str(tmp_path / "again"), "--json")
    assert again.exit_code == 0, again.output
    assert Path(json.loads(again.stdout)["report"]).read_text(encoding="utf-8") == page.read_text(encoding="utf-8")


def test_engine_takes_the_users_own_measurements(tmp_path: Path) -> None:
    from supply.paths import data_file

    lines = data_file("calibration", "inference_inferencex.csv").read_text(encoding="utf-8").splitlines()
    own = [line for line in lines if ",Llama-3.1-70B,B200," in line and "tpot_mean" in line][:1]
    anchor = tmp_path / "own.csv"
    anchor.write_text("\n".join([lines[0], *own]) + "\n", encoding="utf-8")
    done = call("engine", "Llama-3.1-70B", "B200", "--format", "FP4", "--framework", "TensorRT-LLM",
                "--isl", "1024", "--osl", "1024", "--concurrency", "32", "--anchor", str(anchor), "--json")  # fmt: skip
    rows = {row["metric"]: row for row in json.loads(done.stdout)["anchored"]}
    assert rows["tpot_mean"]["confidence"] == "measured_nearby"
    assert rows["tpot_mean"]["low"] <= rows["tpot_mean"]["predicted"] <= rows["tpot_mean"]["high"]
