"""A new project checks and runs as it is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scenarios.resolve import check
from scenarios.template import new_project


def test_the_new_project_has_no_problem(tmp_path: Path) -> None:
    made = new_project(tmp_path / "mine")
    assert [p.name for p in made] == ["scenario.yaml", "scenario.schema.json", "README.md"]
    assert check(made[0]) == []
    assert json.loads(made[1].read_text(encoding="utf-8"))["title"] == "wafer2token scenario"
    with pytest.raises(FileExistsError, match="is not empty"):
        new_project(tmp_path / "mine")
