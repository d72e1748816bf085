"""`wafer2token report RUN...`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from reports.cli.exits import print_json

__all__ = ["report_verb"]


def report_verb(folders: Sequence[Path], previous: Path | None, out: Path | None, as_json: bool) -> None:
    """Write the HTML report of finished runs; the first run is the subject, the others are compared with it."""
    from reports.market_report import write_report
    from scenarios.runs import Run

    runs = [Run.open(folder) for folder in folders]
    before = Run.open(previous) if previous is not None else None
    path = write_report(runs, out or Path("reports_out"), previous=before, progress=lambda t: print(t, file=sys.stderr))
    if as_json:
        print_json({"report": str(path), "runs": [r.id for r in runs]})
    else:
        print(path)
