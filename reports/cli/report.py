"""`wafer2token report RUN...`."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING

from reports.cli.exits import print_json
from reports.cli.terminal import say, whole

if TYPE_CHECKING:
    from reports.choices import Choices
    from reports.market_report import Report
    from scenarios.runs import Run

__all__ = ["FORMATS", "parse_formats", "report_verb"]

FORMATS = ("html", "pdf", "xlsx", "exchange")


def parse_formats(text: str) -> str:
    """A comma-separated list of formats, checked, in the order of `FORMATS`.

    >>> parse_formats("xlsx, html")
    'html,xlsx'

    Raises:
        typer.BadParameter: for a format that there is not.
    """
    import typer

    wanted = [part.strip().lower() for part in text.split(",") if part.strip()]
    unknown = [part for part in wanted if part not in FORMATS]
    if unknown or not wanted:
        raise typer.BadParameter(f"{text!r}: write some of {','.join(FORMATS)}, separated by commas")
    return ",".join(name for name in FORMATS if name in wanted)


def report_verb(
    folders: Sequence[Path],
    previous: Path | None,
    out: Path | None,
    as_json: bool,
    formats: str = "html",
    sections: Path | None = None,
    sample: Path | None = None,
    studies: Sequence[Path] = (),
) -> None:
    """Write the report of finished runs; the first run is the subject, the others are compared with it.

    The page and the PDF hold all runs; a workbook and a folder of exchange files are made for each run.
    """
    from reports.choices import read_choices
    from scenarios.runs import Run

    choices = read_choices(sections) if sections is not None else None
    runs = [Run.open(folder) for folder in folders]
    before = Run.open(previous) if previous is not None else None
    files = _write(runs, before, out or Path("reports_out"), formats.split(","), sample, choices, studies)
    if as_json:
        print_json({"report": str(files[0]), "files": [str(f) for f in files], "runs": [r.id for r in runs]})
    else:
        for file in files:
            whole(str(file))


def _write(
    runs: Sequence[Run],
    before: Run | None,
    out: Path,
    formats: Sequence[str],
    sample: Path | None = None,
    choices: Choices | None = None,
    studies: Sequence[Path] = (),
) -> list[Path]:
    """One report object feeds the page, the PDF and the workbook of the first run.

    Typst works outside Python, so the page and the workbooks are written beside it.
    """
    from reports.catalogue import english, using
    from reports.market_report import make_report, write_report
    from reports.pdf import write_pdf

    report = make_report(runs, before, sample, choices, studies) if {"html", "pdf", "xlsx"} & set(formats) else None
    files = []
    with using(choices.catalogue if choices is not None else english()), ThreadPoolExecutor(1) as other:
        pdf = None
        if "pdf" in formats:
            say("setting the PDF")
            here = copy_context().run
            pdf = other.submit(here, write_pdf, runs, out / f"{runs[0].id}.pdf", before, report)
        if "html" in formats:
            files.append(write_report(runs, out, previous=before, progress=say, report=report))
        if pdf is not None:
            files.append(pdf.result())
        files += _books(runs, out, formats, report)
    return files


def _books(runs: Sequence[Run], out: Path, formats: Sequence[str], report: Report | None) -> list[Path]:
    """A workbook and a folder of exchange files for each run."""
    files = []
    for number, run in enumerate(runs):
        if "xlsx" in formats:
            from reports.workbook import write_workbook

            say(f"writing the workbook of {run.id}")
            files.append(write_workbook(run, out / f"{run.id}.xlsx", report if number == 0 else None))
        if "exchange" in formats:
            from reports.exchange import write_exchange

            say(f"writing the exchange files of {run.id}")
            files.append(write_exchange(run, out / f"{run.id}-exchange"))
    return files
