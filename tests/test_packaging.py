"""The facade: lazy names, the guard against folders that shadow a room, and one data locator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import wafer2token
from supply.paths import data_dir, data_file


def test_every_public_name_resolves() -> None:
    for name in wafer2token.__all__:
        assert getattr(wafer2token, name) is not None


def test_unknown_public_name_lists_the_known_ones() -> None:
    with pytest.raises(AttributeError, match="public names: facts"):
        wafer2token.nonsense  # noqa: B018


def test_a_folder_that_shadows_a_room_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "__init__.py").write_text("", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", "import wafer2token"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "shadows wafer2token's own" in done.stderr and str(tmp_path) in done.stderr


def test_a_data_folder_of_the_analyst_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data.py").write_text("raise SystemExit('wrong data')", encoding="utf-8")
    code = "import wafer2token; print(wafer2token.facts['tsmc_cowos_wafer_price_2026_01'].value)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "12000.0"


def test_a_missing_data_file_names_the_folder_searched() -> None:
    with pytest.raises(FileNotFoundError, match=str(data_dir().name)):
        data_file("facts", "no_such_file.csv")


def test_no_module_reads_outside_the_project() -> None:
    root = Path(wafer2token.__file__).parent
    for room in ("supply", "econ", "scenarios", "reports"):
        for path in (root / room).rglob("*.py"):
            assert "shared/" not in path.read_text(encoding="utf-8"), path
