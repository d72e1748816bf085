"""The command line as a whole: its name, its version and the options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Json", "Out", "Scenario", "Sets", "app"]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="From wafer starts to the price of a token. Every verb takes --json and --quiet; exit codes: 0 done, "
    "1 unexpected, 2 usage, 3 invalid input, 4 infeasible, 5 a check failed, 130 interrupted.",
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"wafer2token {version('wafer2token')}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and end.")
    ] = False,
) -> None:
    """What stands before a verb."""


Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout; progress goes to stderr.")]
Out = Annotated[Path | None, typer.Option("--out", help="Folder (or file) to write to.")]
Sets = Annotated[list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Override one input; repeatable.")]
Scenario = Annotated[str, typer.Argument(help="Library name (base, small, ...), a YAML file, or an edited workbook.")]
