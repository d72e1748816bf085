"""The report on how far apart the numbers of a solve are."""

from __future__ import annotations

import json

import numpy as np
from typer.testing import CliRunner

from reports.cli.app import app
from supply.network_examples import course_11_1
from supply.optimizer.compiled import Compiled
from supply.optimizer.evidence import matrix_of
from supply.optimizer.scaling import scaling_report


def test_ends_are_those_of_the_arrays_and_are_named() -> None:
    network = course_11_1().with_values({"processes.package.input.die": 8.0, "processes.package.yield": 0.25})
    compiled = Compiled(network)
    found = {r.part: r for r in scaling_report(compiled)}
    sizes = np.abs(matrix_of(compiled.engine).data)
    coefficients = found["coefficients"]
    assert (coefficients.smallest, coefficients.largest) == (sizes[sizes > 0].min(), sizes.max()) == (0.25, 8.0)
    assert coefficients.largest_at == "start[package, 0] in balance[die, 0]"
    assert coefficients.smallest_at == "start[package, 0] in balance[accelerator, 0]"
    assert coefficients.apart == 32.0 and not coefficients.wide


def test_numbers_that_a_solve_cannot_tell_together_are_called_wide() -> None:
    network = course_11_1().with_values({"resources.fab.capacity": 1e12, "resources.cowos.capacity": 1e-3})
    limits = {r.part: r for r in scaling_report(Compiled(network))}["right-hand sides"]
    assert limits.wide and limits.smallest_at == "limit[cowos, 0]" and limits.largest_at == "limit[fab, 0]"


def test_check_prints_it() -> None:
    done = CliRunner().invoke(app, ["check", "course_11_1", "--scaling"])
    assert done.exit_code == 0 and "All within a factor of 1e9" in done.output
    told = json.loads(CliRunner().invoke(app, ["check", "course_11_1", "--scaling", "--json"]).output)
    assert [r["part"] for r in told["scaling"]] == ["coefficients", "right-hand sides", "objective"]
    set_ = ["--set", "resources.fab.capacity=1e12", "--set", "resources.cowos.capacity=1e-3"]
    wide = CliRunner().invoke(app, ["check", "course_11_1", "--scaling", *set_])
    assert "More than 1e9 apart: right-hand sides" in wide.output
