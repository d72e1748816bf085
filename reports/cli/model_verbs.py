"""Verbs of one model: run, check, report, facts, the engine. Each body loads its module when the verb is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reports.cli.exits import verb
from reports.cli.program import Json, Out, Scenario, Sets, app
from reports.cli.report import parse_formats


@app.command()
@verb
def run(
    scenario: Scenario,
    set_: Sets = None,
    out: Out = None,
    report: Annotated[Path | None, typer.Option("--report", help="Also write the HTML report to this folder.")] = None,
    json_: Json = False,
) -> None:
    """Solve a scenario, cost it, store the run and print the answer.

    Example: wafer2token run base --set "discount_rate=0.08" --out runs

    Prices are in USD per unit and period of the limit; counts in accelerators.
    """
    from reports.cli.run import run_verb

    run_verb(scenario, set_ or [], out, report, json_)


@app.command()
@verb
def check(
    scenario: Scenario,
    set_: Sets = None,
    outputs: Annotated[bool, typer.Option("--outputs", help="List the names of all outputs.")] = False,
    scaling: Annotated[bool, typer.Option("--scaling", help="How far apart the numbers of the solve are.")] = False,
    json_: Json = False,
) -> None:
    """Print every problem of a scenario file at once.

    Example: wafer2token check my_scenario.yaml

    Example: wafer2token check base --outputs

    Example: wafer2token check base --scaling
    """
    from reports.cli.run import check_verb

    check_verb(scenario, set_ or [], outputs, scaling, json_)


@app.command()
@verb
def report(
    runs: Annotated[list[Path], typer.Argument(help="Finished run folders.")],
    previous: Annotated[Path | None, typer.Option("--previous", help="An earlier run to compare with.")] = None,
    format_: Annotated[
        str, typer.Option("--format", callback=parse_formats, help="html, pdf, xlsx, exchange; separate by commas.")
    ] = "html",
    sections: Annotated[
        Path | None, typer.Option("--sections", metavar="FILE.yaml", help="Sections, title, logo, notes, language.")
    ] = None,
    sample: Annotated[
        Path | None, typer.Option("--sample", metavar="DIR", help="A stored sample of the scenario: bands over time.")
    ] = None,
    study: Annotated[
        list[Path] | None,
        typer.Option("--study", metavar="DIR", help="A folder of stored studies: maps, outages and others."),
    ] = None,
    out: Out = None,
    json_: Json = False,
) -> None:
    """Write the report of finished runs: page, PDF, workbook, files for others.

    Example: wafer2token report runs/RUN --format html,pdf,xlsx --out reports
    """
    from reports.cli.report import report_verb

    report_verb(runs, previous, out, json_, format_, sections, sample, study or ())


@app.command()
@verb
def facts(
    search: Annotated[str, typer.Argument(help="Words to look for.")] = "",
    show: Annotated[str | None, typer.Option("--show", metavar="ID", help="One fact, series or point, whole.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Facts to print.")] = 20,
    json_: Json = False,
) -> None:
    """Search the facts, or show one with its source and what it rests on.

    Example: wafer2token facts "cowos wafer price"

    Example: wafer2token facts --show tsmc_cowos_wafer_price_2026_01

    Every fact has its unit, dates and kind.
    """
    from reports.cli.facts import search_facts, show_fact

    if show is not None:
        show_fact(show, json_)
    else:
        search_facts(search, limit, json_)


@app.command()
@verb
def examples(json_: Json = False) -> None:
    """Compute every worked example; exit 5 if one is off.

    Example: wafer2token examples
    """
    from reports.cli.checks import examples_verb

    examples_verb(json_)


@app.command()
@verb
def cases(
    table: Annotated[Path, typer.Argument(metavar="CASES.csv", help="Table of cases; docs/data_dictionary.md.")],
    out: Annotated[Path, typer.Option("--out", metavar="OUT.csv", help="Table of answers.")],
    json_: Json = False,
) -> None:
    """Answer published cost cases through the public functions.

    Example: wafer2token cases cases.csv --out answers.csv

    Units are those that the rows state.
    """
    from reports.cli.checks import cases_verb

    cases_verb(table, out, json_)


@app.command()
@verb
def predict(
    table: Annotated[Path, typer.Argument(metavar="CASES.csv", help="Table of cases; docs/data_dictionary.md.")],
    out: Annotated[Path, typer.Option("--out", metavar="OUT.csv", help="Table of answers.")],
    anchor: Annotated[Path | None, typer.Option("--anchor", help="Your own measurements, same columns.")] = None,
    json_: Json = False,
) -> None:
    """Predict every row of a table of serving, training or kernel cases.

    Example: wafer2token predict cases.csv --out answers.csv

    Each answer has a 90 % band, in the unit of its row (ms, tokens/s, ...).
    """
    from reports.cli.engine import predict_verb

    predict_verb(table, out, anchor, json_)


@app.command()
@verb
def validate(json_: Json = False) -> None:
    """Print the engine's cross-validated accuracy.

    Example: wafer2token validate

    Errors in percent of the measured value, by family, hardware and confidence.
    """
    from reports.cli.engine import validate_verb

    validate_verb(json_)


@app.command()
@verb
def backtest(
    origin: Annotated[str | None, typer.Option("--origin", help="2024-01-01 or 2025-01-01; both by default.")] = None,
    draws: Annotated[int, typer.Option("--draws", min=20, help="Draws of the uncertain inputs, per origin.")] = 100,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same numbers.")] = 0,
    causes: Annotated[bool, typer.Option("--causes", help="Also plan with today's figures, stage by stage.")] = False,
    out: Out = None,
    json_: Json = False,
) -> None:
    """Forecast from facts known on a past day only, scored against what came.

    Example: wafer2token backtest --origin 2024-01-01

    Units in thousands a quarter and a year.
    """
    from reports.cli.backtest import backtest_verb

    backtest_verb(origin, draws, seed, out, json_, causes)


@app.command()
@verb
def engine(
    model: Annotated[str, typer.Argument(help="Model name or a config.json.")],
    hardware: Annotated[str, typer.Argument(help="Accelerator name or a YAML record.")],
    isl: Annotated[int, typer.Option("--isl", min=1, help="Input tokens.")] = 1000,
    osl: Annotated[int, typer.Option("--osl", min=1, help="Output tokens.")] = 1000,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Requests in flight, whole group.")] = 16,
    tp: Annotated[int, typer.Option("--tp", min=1, help="Accelerators that share each layer.")] = 1,
    pp: Annotated[int, typer.Option("--pp", min=1, help="Groups that hold the layers in turn.")] = 1,
    ep: Annotated[int, typer.Option("--ep", min=1, help="Accelerators that share the experts.")] = 1,
    dp: Annotated[int, typer.Option("--dp", min=1, help="Copies of the whole.")] = 1,
    weight_format: Annotated[str | None, typer.Option("--format", help="Weight format, e.g. fp8.")] = None,
    framework: Annotated[str, typer.Option("--framework", help="vLLM, SGLang, TensorRT-LLM, ...")] = "vLLM",
    anchor: Annotated[Path | None, typer.Option("--anchor", help="Your own measurements, as for predict.")] = None,
    json_: Json = False,
) -> None:
    """One operating point: time, rate, band, memory and what limits it.

    Example: wafer2token engine Llama-3.1-70B H100 --tp 4 --concurrency 64

    Times in ms, rates in tokens/s per accelerator, memory in GB.
    """
    from reports.cli.engine import engine_verb

    engine_verb(
        model,
        hardware,
        json_,
        isl=isl,
        osl=osl,
        concurrency=concurrency,
        tp=tp,
        pp=pp,
        ep=ep,
        dp=dp,
        weight_format=weight_format,
        anchor=anchor,
        framework=framework,
    )
