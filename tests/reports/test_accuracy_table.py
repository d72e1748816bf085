"""The accuracy table of the README is the one that the stored left-out predictions give."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.accuracy import BEGIN, END, accuracy_markdown, rewrite
from supply.paths import data_dir

README = data_dir().parent / "README.md"


@pytest.mark.skipif(not README.is_file(), reason="the README is only in a checkout")
def test_the_readme_quotes_the_generated_table() -> None:
    quoted = README.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0].strip()
    assert quoted == accuracy_markdown(), "run `python -m reports.accuracy README.md`"


def test_a_file_without_markers_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("no table here", encoding="utf-8")
    with pytest.raises(ValueError, match="lacks the lines"):
        rewrite(page)
