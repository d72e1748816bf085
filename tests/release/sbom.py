"""What a bill of materials must hold beside its schema: `python tests/release/sbom.py build/sbom.json` checks it."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]


def problems(bill: dict[str, Any]) -> list[str]:
    """What is missing: form, subject, version, purl and licence of each part, its edges, and every direct dependency.

    >>> problems({})[0]
    'not a CycloneDX bill of materials'
    """
    out = (
        []
        if bill.get("bomFormat") == "CycloneDX" and bill.get("specVersion")
        else ["not a CycloneDX bill of materials"]
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    root = bill.get("metadata", {}).get("component", {})
    if (root.get("name"), root.get("version")) != (project["name"], project["version"]):
        out.append(f"it is about {root.get('name')} {root.get('version')}, not {project['name']} {project['version']}")
    page = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    parts = {canonicalize_name(c["name"]): c for c in bill.get("components", [])}
    for name, part in parts.items():
        out += [f"{name} lacks its {key}" for key in ("version", "purl") if not part.get(key)]
        if not part.get("licenses") and f"\n| {name} | " not in page:  # some words are in no list of the tool
            out.append(f"{name} lacks a licence")
    direct = [*project["dependencies"], *(r for e in project["optional-dependencies"].values() for r in e)]
    out += [f"{r} is missing" for r in direct if canonicalize_name(Requirement(r).name) not in parts]
    edges = {e["ref"] for e in bill.get("dependencies", [])}
    return out + [
        f"{name} is not among the dependencies" for name, part in parts.items() if part.get("bom-ref") not in edges
    ]


def main(path: Path) -> None:
    """Print the count of parts, or end with what is missing."""
    bill = json.loads(path.read_text(encoding="utf-8"))
    if found := problems(bill):
        sys.exit("\n".join(found))
    print(f"{path}: {len(bill['components'])} parts")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
