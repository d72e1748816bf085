"""`new`: a folder with a scenario to start from and the schema that editors complete it with."""

from __future__ import annotations

import json
from pathlib import Path

from scenarios.schema import json_schema
from supply.files import whole_text

__all__ = ["new_project"]

SCENARIO = """\
# yaml-language-server: $schema=./scenario.schema.json
extends: base
title: My scenario
note: >
  Say here what is different from base, why, and on which facts that rests.
set:
  # any number of base, by its dotted path; `wafer2token check scenario.yaml` finds every mistake at once
  resources.cowos.capacity: {delay: 1 quarter, from: 2026-Q1, note: new lines a quarter late}
  # resources.power_us.capacity: {scale: 0.9, from: 2026-Q3}
  # processes.package_rubin.yield: {distribution: triangular, low: 0.7, mode: 0.9, high: 0.97}
outputs: ["energised:*@2026", "usd_per_gpu_hour:h100@2026-Q2"]
"""
READ = """\
# My scenario

    wafer2token check scenario.yaml
    wafer2token run scenario.yaml --out runs
    wafer2token compare base scenario.yaml
    wafer2token sensitivity scenario.yaml --method tornado

`scenario.schema.json` lets an editor complete keys; the language is described in docs/scenario_language.md.
"""


def new_project(folder: str | Path) -> list[Path]:
    """Write scenario.yaml, its schema and a README into a new or empty folder; returns the files.

    Raises:
        FileExistsError: when the folder holds anything already.
    """
    place = Path(folder)
    texts = {
        "scenario.schema.json": json.dumps(json_schema(), indent=1) + "\n",
        "README.md": READ,
        "scenario.yaml": SCENARIO,
    }
    if place.exists() and not _begun(place, texts):
        raise FileExistsError(f"{place} is not empty: give a new folder, so that nothing of yours is overwritten")
    place.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        with whole_text(place / name) as stream:
            stream.write(text)
    return [place / name for name in ("scenario.yaml", "scenario.schema.json", "README.md")]


def _begun(place: Path, texts: dict[str, str]) -> bool:
    """Whether a folder is empty, or holds no more than what a call that was stopped half-way wrote."""
    found = [path for path in place.iterdir() if not (path.name.startswith(".") and path.suffix == ".tmp")]
    names = {path.name for path in found}
    return names < texts.keys() and all(path.read_text(encoding="utf-8") == texts[path.name] for path in found)
