"""All verbs in the order of the help, and the console entry."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from reports.cli import model_verbs, study_verbs  # noqa: F401  (each verb signs itself on)
from reports.cli.exits import INTERRUPTED, no_more_readers, verb
from reports.cli.program import Json, app

__all__ = ["app", "main"]


@app.command()
@verb
def view(
    target: Annotated[
        str, typer.Argument(metavar="[RUN|SCENARIO]", help="Run folder, library scenario or YAML file.")
    ] = "base",
    port: Annotated[
        int | None, typer.Option("--port", min=1024, max=65535, help="Port; a free one by default.")
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the browser.")] = True,
    json_: Json = False,
) -> None:
    """Open the interactive app: sliders on the limits; this machine only.

    Example: wafer2token view base
    """
    from reports.cli.view import view_verb

    view_verb(target, port, browser, json_)


@app.command()
@verb
def new(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")], json_: Json = False
) -> None:
    """Start a project: a scenario that runs, its schema and a note.

    Example: wafer2token new my_study
    """
    from reports.cli.run import new_verb

    new_verb(folder, json_)


def main() -> None:
    """Console entry; a usage error exits with 2. A reader that goes away (`| head`) or Ctrl-C leaves no trace."""
    try:
        app()
        sys.stdout.flush()
    except BrokenPipeError:
        no_more_readers()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
