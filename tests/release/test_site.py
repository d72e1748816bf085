"""The pages as a site: it builds without a warning, asks nothing of the network, and a dead link stops it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytest.importorskip("material", reason="mkdocs-material is not installed: `make setup`")
#: What a browser loads by itself.
LOADED = re.compile(r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?([^"'\s>]+)|<link[^>]*\shref=["']?([^"'\s>]+)""")


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--config-file", str(config), "--site-dir", str(site)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )


def test_every_page_is_built_and_loads_only_what_lies_beside_it(tmp_path: Path) -> None:
    done = build(ROOT / ".ci" / "mkdocs.yml", tmp_path)
    assert done.returncode == 0, done.stderr
    for page in (ROOT / "docs").glob("*.md"):
        html = (tmp_path / f"{page.stem}.html").read_text(encoding="utf-8")
        addresses = [a or b for a, b in LOADED.findall(html)]
        assert addresses
        for address in addresses:
            assert not re.match(r"\w+:|//", address), f"{page.name} loads {address}"
            assert (tmp_path / address.partition("?")[0]).exists(), f"{page.name}: {address}"
    for sheet in tmp_path.rglob("*.css"):
        assert not re.search(r"url\([\"']?https?:|@import", sheet.read_text(encoding="utf-8")), sheet.name


@pytest.mark.parametrize(
    ("line", "complaint"),
    [("[a](nowhere.md)", "nowhere.md"), ("[a](errors.md#no-such-heading)", "no-such-heading"), ("", "orphan.md")],
)
def test_a_dead_link_and_a_page_in_no_menu_stop_the_build(line: str, complaint: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "mkdocs.yml", tmp_path / ".ci")
    page = tmp_path / "docs" / ("glossary.md" if line else complaint)
    page.write_text((page.read_text(encoding="utf-8") if line else "# Orphan\n") + f"\n{line}\n", encoding="utf-8")
    done = build(tmp_path / ".ci" / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 1 and complaint in done.stderr, done.stderr
