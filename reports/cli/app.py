"""All verbs, their options, and nothing else: each body loads its module only when the verb is called."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from reports.cli.exits import INTERRUPTED, no_more_readers, verb
from reports.cli.report import parse_formats

__all__ = ["app", "main"]

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
    json_: Json = False,
) -> None:
    """Print every problem of a scenario file at once.

    Example: wafer2token check my_scenario.yaml

    Example: wafer2token check base --outputs
    """
    from reports.cli.run import check_verb

    check_verb(scenario, set_ or [], outputs, json_)


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


@app.command()
@verb
def sample(
    scenario: Scenario,
    draws: Annotated[int, typer.Option("--draws", min=1, help="Number of draws.")] = 500,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes; the numbers do not depend on it.")] = 1,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same numbers.")] = 0,
    inputs: Annotated[str | None, typer.Option("--inputs", help="Paths or groups to draw, comma-separated.")] = None,
    outputs: Annotated[str | None, typer.Option("--outputs", help="Output names, comma-separated.")] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", help="Dask scheduler (tcp://HOST:PORT), or local; same numbers.")
    ] = None,
    set_: Sets = None,
    out: Out = None,
    json_: Json = False,
) -> None:
    """Draw the uncertain inputs, solve each draw, print the spread.

    Example: wafer2token sample small --draws 200 --out samples

    Outputs in their own units: mean, 5 %, median and 95 % of the draws.
    """
    from reports.cli.studies import sample_verb, split_names

    sample_verb(
        scenario,
        set_ or [],
        out,
        json_,
        draws=draws,
        workers=workers,
        seed=seed,
        inputs=split_names(inputs),
        outputs=split_names(outputs),
        cluster=cluster,
    )


@app.command()
@verb
def sensitivity(
    scenario: Scenario,
    method: Annotated[str, typer.Option("--method", help="tornado, morris, sobol or pawn.")] = "tornado",
    inputs: Annotated[
        str | None, typer.Option("--inputs", help="Paths or groups, comma-separated; all by default.")
    ] = None,
    outputs: Annotated[str | None, typer.Option("--outputs", help="Output names, comma-separated.")] = None,
    samples: Annotated[int | None, typer.Option("--samples", min=1, help="Base samples or trajectories.")] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes; same numbers.")] = 1,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same numbers.")] = 0,
    set_: Sets = None,
    out: Out = None,
    json_: Json = False,
) -> None:
    """Rank the inputs by how far they move the outputs.

    Example: wafer2token sensitivity small

    Example: wafer2token sensitivity small --method morris --outputs energised:*@2026-Q4

    A tornado prints outputs in their units at the low and high end of each input.
    """
    from reports.cli.studies import sensitivity_verb, split_names

    sensitivity_verb(
        scenario,
        set_ or [],
        out,
        json_,
        method=method,
        inputs=split_names(inputs),
        outputs=split_names(outputs),
        samples=samples,
        workers=workers,
        seed=seed,
    )


@app.command()
@verb
def compare(
    first: Annotated[str, typer.Argument(help="Scenario, or run folder.")],
    second: Annotated[str, typer.Argument(help="Scenario, or run folder.")],
    outputs: Annotated[str | None, typer.Option("--outputs", help="Output names, comma-separated.")] = None,
    json_: Json = False,
) -> None:
    """Split the change between two scenarios over the inputs that differ.

    Example: wafer2token compare base cowos_slip

    Parts are in the unit of the output and add up to its change.
    """
    from reports.cli.studies import compare_verb, split_names

    compare_verb(first, second, json_, split_names(outputs))


@app.command()
@verb
def breakeven(
    scenario: Scenario,
    input_: Annotated[str, typer.Option("--input", metavar="PATH", help="The input to move.")],
    target: Annotated[str, typer.Option("--target", metavar="OUTPUT=VALUE", help="e.g. energised:*@2026=1e7")],
    set_: Sets = None,
    json_: Json = False,
) -> None:
    """Find the value of an input at which an output reaches a target.

    Example: wafer2token breakeven small --input resources.power_us.capacity --target energised:*@2025=6e6

    The target is in the unit of the output, the answer in that of the input.
    """
    from reports.cli.studies import breakeven_verb

    breakeven_verb(scenario, set_ or [], input_, target, json_)


@app.command()
@verb
def discover(
    scenario: Scenario,
    target: Annotated[
        str, typer.Option("--target", help="binding:hbm@2026, priced:cowos@2027 or OUTPUT<VALUE; quote it.")
    ],
    draws: Annotated[int, typer.Option("--draws", min=60, help="Number of draws.")] = 400,
    inputs: Annotated[str | None, typer.Option("--inputs", help="Paths or groups to draw, comma-separated.")] = None,
    depth: Annotated[int, typer.Option("--depth", min=1, max=6, help="Conditions of a rule at most.")] = 3,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes; same numbers.")] = 1,
    cluster: Annotated[str | None, typer.Option("--cluster", help="Dask scheduler, or local.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same numbers.")] = 0,
    set_: Sets = None,
    out: Out = None,
    json_: Json = False,
) -> None:
    """Find when something happens, such as HBM binding.

    Example: wafer2token discover small --target "binding:hbm@2025" --draws 200

    Conditions are shares of an input's range, and values in its unit.
    """
    from reports.cli.explore import discover_verb
    from reports.cli.studies import split_names

    names = split_names(inputs)
    how = {"draws": draws, "depth": depth, "workers": workers, "cluster": cluster, "seed": seed, "inputs": names}
    discover_verb(scenario, target, set_ or [], out, json_, **how)


@app.command()
@verb
def resilience(
    scenario: Scenario,
    start: Annotated[str | None, typer.Option("--from", metavar="PERIOD", help="First period of the outage.")] = None,
    longest: Annotated[int, typer.Option("--longest", min=1, help="Longest outage tried, in periods.")] = 4,
    recover: Annotated[str | None, typer.Option("--recover", help="Periods out, e.g. fab=4,power=2; else 2.")] = None,
    sites: Annotated[str | None, typer.Option("--sites", help="Site or stage ids, comma-separated.")] = None,
    set_: Sets = None,
    out: Out = None,
    json_: Json = False,
) -> None:
    """How long the chain survives without a site, and what an outage costs.

    Example: wafer2token resilience small --from 2026-Q1

    Times in periods; losses in the unit of the objective (USD), present value.
    """
    from reports.cli.explore import resilience_verb
    from reports.cli.studies import split_names

    resilience_verb(scenario, start, recover, split_names(sites), set_ or [], out, json_, longest)


@app.command(name="map")
@verb
def map_(
    scenario: Scenario,
    x: Annotated[str, typer.Option("--x", help="Path or group across.")] = "yield",
    y: Annotated[str, typer.Option("--y", help="Path or group down.")] = "power",
    outputs: Annotated[str | None, typer.Option("--outputs", help="Output names, comma-separated.")] = None,
    steps: Annotated[int, typer.Option("--steps", min=2, max=25, help="Cells each way.")] = 7,
    span: Annotated[str, typer.Option("--span", help="Least and greatest scale of both.")] = "0.8,1.2",
    set_: Sets = None,
    out: Out = None,
    json_: Json = False,
) -> None:
    """Outputs over two scaled inputs, and what binds hardest in each cell.

    Example: wafer2token map small --x yield --y power --steps 5 --out maps

    Scales are multiples of the inputs; cells are in the unit of the output.
    """
    from reports.cli.explore import map_verb
    from reports.cli.studies import split_names

    map_verb(scenario, x, y, split_names(outputs), set_ or [], out, json_, steps, span)


@app.command(name="compare-all")
@verb
def compare_all(
    scenarios: Annotated[list[str] | None, typer.Argument(help="Scenarios; the whole library by default.")] = None,
    years: Annotated[str, typer.Option("--years", help="Years, comma-separated.")] = "2026,2027,2028",
    sku: Annotated[str, typer.Option("--sku", help="Accelerator whose hour is shown.")] = "b200",
    model: Annotated[str, typer.Option("--model", help="Model whose tokens are shown.")] = "llama_3_1_70b",
    out: Out = None,
    json_: Json = False,
) -> None:
    """Solve every library scenario once and put them side by side.

    Example: wafer2token compare-all --out runs

    Accelerators in millions; costs in USD per hour and per million tokens.
    """
    from reports.cli.explore import compare_all_verb
    from reports.cli.studies import split_names

    compare_all_verb(scenarios or [], split_names(years) or [], sku, model, out, json_)


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
