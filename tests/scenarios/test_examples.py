"""Every worked figure of the two source texts comes out of the public functions, and a missing function is said."""

from __future__ import annotations

import csv
import importlib

import pytest

from scenarios import examples
from scenarios.examples import ExampleError, run_examples
from supply.paths import data_file


def _published() -> list[dict[str, str]]:
    with data_file("checks", "worked_examples.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("case_id", [row["case_id"] for row in _published()])
def test_worked_example(case_id: str) -> None:
    (row,) = run_examples([case_id])
    assert row.passed, f"{row.function}: expected {row.expected}, computed {row.computed}; {row.reason}"


def test_rows_keep_the_order_and_name_public_functions() -> None:
    rows = _published()
    assert [row["case_id"] for row in rows] == [r.id for r in run_examples()]
    for row in rows:
        module, _, name = row["function"].rpartition(".")
        assert module.split(".")[0] in {"supply", "econ", "scenarios"} and not name.startswith("_")
        assert callable(getattr(importlib.import_module(module), name))


def test_unknown_id_is_refused() -> None:
    with pytest.raises(ExampleError, match=r"no worked example A-99\.9"):
        run_examples(["A-99.9"])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"function": "econ.tokens.no_such_function"}, "does not exist"),
        ({"arguments_json": '{"usd_per_gpu_hour": -1, "tokens_per_s": 2500}'}, "refuses"),
        ({"arguments_json": '{"colour": 1}'}, "refuses"),
        ({"value": "0.25"}, "differs by more than"),
        ({"pick": "none"}, "none"),
    ],
)
def test_a_broken_row_fails_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], reason: str
) -> None:
    good = next(row for row in _published() if row["case_id"] == "A-1.5")
    monkeypatch.setattr(examples, "_rows", lambda: ({**good, **changes},))
    (row,) = run_examples()
    assert not row.passed and reason in row.reason
