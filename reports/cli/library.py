"""`wafer2token compare-all`: the library side by side."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from reports.cli.exits import print_json

__all__ = ["compare_all_verb"]


def compare_all_verb(
    scenarios: Sequence[str], years: Sequence[str], sku: str, model: str, out: Path | None, as_json: bool
) -> None:
    """Solve the scenarios (all of the library by default), print the table, write it and the runs below `out`."""
    import json

    from scenarios.library_table import compare_all, markdown

    found = compare_all(
        list(scenarios) or None,
        years=years,
        sku=sku,
        model=model,
        out=out,
        progress=lambda text: print(text, file=sys.stderr, flush=True),
    )
    if out is not None:
        found.to_csv(out / "compare_all.csv", index=False)
        (out / "compare_all.md").write_text(markdown(found), encoding="utf-8")
    if as_json:
        print_json({"scenarios": json.loads(found.to_json(orient="records"))})
    else:
        print(markdown(found), end="")
