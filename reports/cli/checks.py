"""`wafer2token examples` and `wafer2token cases`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from reports.cli.exits import CheckFailedError, print_json
from reports.cli.terminal import line, table, whole

__all__ = ["cases_verb", "examples_verb"]


def examples_verb(as_json: bool) -> None:
    """Compute every worked example; raises CheckFailedError (exit 5) when one is off."""
    from scenarios.examples import run_examples

    rows = run_examples()
    failed = [r for r in rows if not r.passed]
    if as_json:
        print_json({"examples": [asdict(r) for r in rows], "failed": len(failed)})
    else:
        cells = []
        for r in rows:
            computed = "-" if r.computed is None else f"{r.computed:.6g}"
            mark = "" if r.passed else f" OFF {r.reason}"
            cells.append([r.id, f"{r.function.rpartition('.')[2]}{mark}", r.unit, f"{r.expected:.6g}", computed])
        table(["example", "function", "unit", "expected", "computed"], cells, words=3)
        line(f"{len(rows) - len(failed)} of {len(rows)} worked examples agree.")
    if failed:
        raise CheckFailedError(f"{len(failed)} worked example(s) are off: {', '.join(r.id for r in failed)}")


def cases_verb(rows: Path, out: Path, as_json: bool) -> None:
    """Answer a table of cost cases."""
    from econ.cases import cases_file

    answered = cases_file(rows, out)
    if as_json:
        print_json({"out": str(out), "rows": answered})
    else:
        whole(f"{answered} rows written to {out}")
