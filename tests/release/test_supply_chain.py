"""What the program is built from: pinned, licensed, needed, and named without any host of packages."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import wafer2token

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("supply", "econ", "scenarios", "reports")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def script(name: str) -> ModuleType:
    """A script of this folder as a module."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


licences, sbom = script("licences"), script("sbom")


def pins() -> list[Requirement]:
    return [Requirement(line) for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()]


def direct() -> list[Requirement]:
    """Every requirement of pyproject.toml."""
    project, groups = PROJECT["project"], PROJECT["dependency-groups"]
    lists = [project["dependencies"], *project["optional-dependencies"].values(), *groups.values()]
    return [Requirement(r) for some in lists for r in some if isinstance(r, str)]


def test_every_pin_is_exact_and_all_that_is_needed_here_has_one() -> None:
    here = {canonicalize_name(p.name): str(p.specifier) for p in pins() if not p.marker or p.marker.evaluate()}
    assert all(re.fullmatch(r"==[\w.]+", spec) for spec in here.values())
    assert licences.roles().keys() <= here.keys()


def test_pins_satisfy_the_bounds_and_every_bound_has_a_lower_end() -> None:
    pinned = {canonicalize_name(p.name): str(p.specifier).removeprefix("==") for p in pins()}
    for requirement in direct():
        assert any(s.operator == ">=" for s in requirement.specifier), f"{requirement}: no lowest version"
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), str(requirement)


def test_no_host_of_packages_is_named_and_no_lock_file_is_there() -> None:
    for name in ("pyproject.toml", "constraints.txt", "Makefile", ".ci/run", ".ci/mkdocs.yml"):
        assert "://" not in (ROOT / name).read_text(encoding="utf-8"), name
    assert not [name for name in ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock") if (ROOT / name).exists()]


def test_no_dependency_is_missing_or_unused() -> None:
    """deptry compares imports with pyproject.toml; it fails on a copy with one dependency less, and on one more."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    checks = {
        text: "",
        text.replace('"jinja2>=3.1",', ""): "jinja2",
        text.replace('"jinja2>', '"loguru>=0.7", "jinja2>'): "loguru",
    }
    assert len(checks) == 3
    for number, (content, offender) in enumerate(checks.items()):
        config = ROOT / "build" / f"deptry_{number}.toml"
        config.parent.mkdir(exist_ok=True)
        config.write_text(content, encoding="utf-8")
        try:
            done = subprocess.run([sys.executable, "-m", "deptry", ".", "--no-ansi", "--config", str(config)], cwd=ROOT,
                                  capture_output=True, text=True, check=False)  # fmt: skip
        finally:
            config.unlink()
        assert (done.returncode == 0) == (not offender), done.stderr
        assert offender in done.stderr


def test_the_page_of_licences_is_current() -> None:
    assert (ROOT / "docs" / "licences.md").read_text(encoding="utf-8") == licences.page(), "run `make pages`"


@pytest.mark.parametrize(("name", "licence"), [("innocent", "GPL-3.0-only"), ("innocent", ""), ("innocent", "MPL-2.0")])
def test_a_licence_that_nobody_looked_at_is_refused(name: str, licence: str) -> None:
    with pytest.raises(
        ValueError, match=f"{name}: licence '{licence}' is not among those looked at: read it, then add"
    ):
        licences.refuse(name, ["MIT", licence])


def test_every_data_file_has_a_line_of_attribution() -> None:
    """Each file below data/, or a folder of it, is named; and the page of licences carries the whole text."""
    text = (ROOT / "data" / "ATTRIBUTION.md").read_text(encoding="utf-8")
    known = set(re.findall(r"`([\w./*]+)`", text))
    missing = []
    for path in (ROOT / "data").rglob("*.*"):
        name = path.relative_to(ROOT / "data")
        options = {name.as_posix(), name.name, *(f"{p.as_posix()}/" for p in name.parents)}
        if not options & known and not any(name.match(k) for k in known if "*" in k):
            missing.append(name.as_posix())
    assert not missing


def test_a_bill_of_materials_with_a_gap_is_refused() -> None:
    name, number = PROJECT["project"]["name"], PROJECT["project"]["version"]
    parts = [{"name": r.name, "version": "1", "purl": "p", "licenses": [1], "bom-ref": r.name} for r in direct()]
    bill: dict[str, Any] = {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "metadata": {"component": {"name": name, "version": number}},
        "components": parts, "dependencies": [{"ref": p["bom-ref"]} for p in parts],
    }  # fmt: skip
    assert sbom.problems(bill) == []
    for key in ("version", "purl"):
        harmed = json.loads(json.dumps(bill))
        del harmed["components"][0][key]
        assert sbom.problems(harmed) == [f"{parts[0]['name']} lacks its {key}"]
    assert sbom.problems({**bill, "components": parts[1:]})[0].startswith(f"{parts[0]['name']}>=")
    assert "not wafer2token" in sbom.problems({**bill, "metadata": {}})[0]


def test_the_version_stands_in_one_place() -> None:
    """pyproject.toml; the metadata of the installation follow it, and the program asks them."""
    number = PROJECT["project"]["version"]
    told = subprocess.run([sys.executable, "-m", "wafer2token", "--version"], cwd=ROOT, capture_output=True, text=True,
                          check=True)  # fmt: skip
    assert version("wafer2token") == wafer2token.__version__ == number, "run `make setup`"
    assert told.stdout == f"wafer2token {number}\n"
    for path in (ROOT / "wafer2token.py", *(p for room in ROOMS for p in (ROOT / room).rglob("*.py"))):
        assert f'"{number}"' not in path.read_text(encoding="utf-8"), path
    versions = re.findall(r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert number in versions[:2]
