"""What the two archives hold: the source one everything of the checkout, the wheel the rooms and the data alone."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archives")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    return folder


def test_the_source_archive_holds_every_tracked_file(archives: Path) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout: what is tracked is unknown")
    tracked = {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}
    with tarfile.open(next(archives.glob("*.tar.gz"))) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert tracked - held == set()
    assert not [name for name in held if name.startswith((".venv", "build", "dist")) or "__pycache__" in name]


def test_the_wheel_holds_rooms_and_data_and_no_tests(archives: Path) -> None:
    with zipfile.ZipFile(next(archives.glob("*.whl"))) as archive:
        held = set(archive.namelist())
        entry = archive.read("wafer2token-0.1.0.dist-info/entry_points.txt").decode()
    assert "wafer2token = wafer2token:main" in entry
    tops = {name.partition("/")[0] for name in held}
    assert tops == {"wafer2token.py", "supply", "econ", "scenarios", "reports", "wafer2token-0.1.0.dist-info"}
    for path in (ROOT / "data").rglob("*.csv"):
        assert f"supply/_data/{path.relative_to(ROOT / 'data').as_posix()}" in held
    assert "supply/py.typed" in held and "wafer2token-0.1.0.dist-info/licenses/data/ATTRIBUTION.md" in held
    names = {Path(name).name for name in held}
    assert not [name for name in names if name.startswith(("test_", "conftest"))]
