"""Verbs that study a scenario: draws, sensitivities, comparisons, maps. Each body loads its module when called."""

from __future__ import annotations

from typing import Annotated

import typer

from reports.cli.exits import verb
from reports.cli.program import Json, Out, Scenario, Sets, app


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
