"""`wafer2token discover`, `resilience`, `map` and `compare-all`: studies over many solves of one or many scenarios."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.cli.exits import plain, print_json
from reports.cli.sets import parse_sets
from reports.cli.terminal import amount, head, line, say, table, whole
from reports.wording import stage_title
from supply.files import whole_text

if TYPE_CHECKING:
    import pandas as pd

    from scenarios.resolve import Resolved
    from supply.network import Network

__all__ = ["compare_all_verb", "discover_verb", "map_verb", "parse_recover", "parse_span", "resilience_verb"]


def discover_verb(scenario: str, target: str, sets: Sequence[str], out: Path | None, as_json: bool, **how: Any) -> None:
    """Print the rules for a target, with coverage and density."""
    from scenarios.discovery import discover

    found = discover(scenario, target, sets=parse_sets(sets), out=out, progress=say, **how)
    if as_json:
        print_json(plain(found.json()))
        return
    note = f"; {found.note}" if found.note else ""
    line(f"{found.scenario}: {found.target} happens in {100 * found.share:.0f} % of {found.draws} draws{note}.")
    for rule in found.rules:
        head(f"When {rule.words()}")
        low, high = rule.density_interval
        line(
            f"it happens in {100 * rule.density:.0f} % of these draws (density, 90 % interval {_shares(low, high)})",
            indent=2,
        )
        low, high = rule.coverage_interval
        words = f"(coverage, {_shares(low, high)})"
        line(f"and this holds {100 * rule.coverage:.0f} % of all draws in which it happens {words}", indent=2)
    line()
    if found.rules:
        line("Thresholds: 0 is the low end of an input's range, 1 its high end, in [] their 90 % interval. Found on "
             "two thirds of the draws, counted on the last third.")  # fmt: skip
    line(f"The draws are below {out}; the same call reads them again." if out else "Not stored: --out DIR keeps them.")


def _shares(low: float, high: float) -> str:
    return f"{100 * low:.0f} to {100 * high:.0f} %"


def parse_recover(text: str | None) -> dict[str, int]:
    """`fab=4, power=2` as periods by site or stage.

    >>> parse_recover("fab=4, power=2")
    {'fab': 4, 'power': 2}

    Raises:
        ValueError: anything else.
    """
    out = {}
    for part in (text or "").split(","):
        name, _, number = part.strip().partition("=")
        if name and not number.strip().isdigit():
            raise ValueError(f"--recover {part.strip()!r}: give SITE=PERIODS, e.g. fab=4")
        if name:
            out[name.strip()] = int(number)
    return out


def resilience_verb(
    scenario: str, start: str | None, recover: str | None, sites: list[str] | None, sets: Sequence[str],
    out: Path | None, as_json: bool, longest: int,
) -> None:  # fmt: skip
    """Print time to survive and the loss of an outage beside the price of every site and stage."""
    from scenarios.resilience import resilience

    table_ = resilience(
        scenario, start, longest=longest, recover=parse_recover(recover), sites=sites, sets=parse_sets(sets),
        progress=say,
    )  # fmt: skip
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        with whole_text(out / "resilience.csv") as stream:
            table_.to_csv(stream, index=False)
    if as_json:
        print_json({"scenario": scenario, **table_.attrs, "sites": plain(table_.to_dict("records"))})
        return
    _print_resilience(table_, scenario)
    if out is not None:
        whole(f"written: {out / 'resilience.csv'}")
    else:
        line("Not stored: --out DIR writes the table as CSV.")


def _print_resilience(places: pd.DataFrame, scenario: str) -> None:
    """Sites and stages, the most fragile first, with what the columns say."""
    first, unit = places.attrs["start"], places.attrs["objective_unit"]
    line(f"{scenario}: outages that begin in {first} without warning, most fragile first; losses in {unit}, present "
         "value.")  # fmt: skip
    line()
    rows = []
    for row in places.to_dict("records"):
        name = f"{row['title']} [{row['unit']}]" if row["unit"] else f"{stage_title(row['stage'])}, all sites"
        survives = f"{row['time_to_survive']}" + (" or more" if row["at_least"] else "")
        cells = [amount(row["loss_one_period"]), f"{row['time_to_recover']}", amount(row["loss"])]
        rows.append([name, survives, *cells, f"{100 * row['loss_share']:.1f} %", amount(row["price"])])
    table(["site or stage", "survives", "loss of 1", "out", "its loss", "of all", "price"], rows)
    line("survives: periods out that cost at most 0.1 % of the objective. loss of 1: of one period. out: periods that "
         "it is out (2 unless --recover says more), and its loss. price: of one more unit in that period; 0 where it "
         "has slack then, so order by price and by fragility differ.")  # fmt: skip


def parse_span(text: str) -> tuple[float, float]:
    """`0.8,1.2` as the least and greatest scale.

    >>> parse_span("0.8,1.2")
    (0.8, 1.2)

    Raises:
        ValueError: not two numbers above zero, the first the lower.
    """
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        low, high = 0.0, 0.0
    if not 0 < low < high < float("inf"):
        raise ValueError(f"--span {text!r}: give the least and the greatest scale, e.g. 0.8,1.2")
    return low, high


def map_verb(
    scenario: str, x: str, y: str, outputs: list[str] | None, sets: Sequence[str], out: Path | None, as_json: bool,
    steps: int, span: str,
) -> None:  # fmt: skip
    """Print outputs over two scaled inputs, and what binds hardest in each cell."""
    from scenarios.sensitivity import grid

    edits = parse_sets(sets)
    found = grid(scenario, x, y, outputs=outputs, steps=steps, span=parse_span(span), sets=edits, progress=say)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in (("map.json", json.dumps(plain(found), indent=1) + "\n"), ("map.csv", _long(found))):
            with whole_text(out / name) as stream:
                stream.write(text)
        _map_figures(found, scenario, edits, out)
    if as_json:
        print_json(plain(found))
        return
    _print_map(found, _network(scenario, edits))
    if out is not None:
        whole(f"written: {out / 'map.csv'}, map.json, and a figure of each output (PNG, SVG, CSV)")
    else:
        line("Not stored: --out DIR writes the cells and a figure of each output.")


def _print_map(found: dict[str, Any], network: Network) -> None:
    """The map, a block an output, cells in the unit of the output."""
    from scenarios.output_words import output_unit, output_words

    x, y = found["x"], found["y"]
    line(f"Across: {x} times the number above; down: {y} times the number on the left; 1 is the scenario itself.")
    scales = [f"{s:.3g}" for s in found["x_scale"]]
    for name, cells in found["outputs"].items():
        head(f"{output_words(name, network)} [{output_unit(name, network)}]")
        rows = [[f"{s:.3g}", *(amount(v) for v in row)] for s, row in zip(found["y_scale"], cells, strict=True)]
        table([f"{y} | {x}", *scales], rows)
    head(f"What binds hardest in {found['binding_period']}: the limit with the largest scarcity value")
    used = sorted({v for row in found["binding"] for v in row if v})
    letters = {r: chr(65 + k % 26) * (1 + k // 26) for k, r in enumerate(used)}
    cells = [[letters.get(v, "-") for v in row] for row in found["binding"]]
    table([f"{y} | {x}", *scales], [[f"{s:.3g}", *row] for s, row in zip(found["y_scale"], cells, strict=True)])
    line("; ".join(f"{letter}: {network.resources[r].title or r}" for r, letter in letters.items()))
    line("From cell to cell the plan changes what it makes, so a count may fall where a limit rises.")


def _network(scenario: str, sets: Sequence[tuple[str, Any]]) -> Network:
    from scenarios.load import load_scenario
    from scenarios.resolve import resolve

    return resolve(load_scenario(scenario, sets)).network


def _map_figures(found: dict[str, Any], scenario: str, sets: Sequence[tuple[str, Any]], out: Path) -> None:
    """A drawing of every output on the map, and of the output against the first input: SVG, PNG and what is drawn."""
    from dataclasses import replace

    from reports.figures.cases import headline_curve, row_of
    from reports.figures.yield_power_map import binding_map
    from scenarios.load import load_scenario
    from scenarios.resolve import resolve

    resolved = resolve(load_scenario(scenario, sets))
    titles = {r: row.title or r for r, row in resolved.network.resources.items()}
    stages = {r: row.stage for r, row in resolved.network.resources.items()}
    ranges = {n: span for n in (found["x"], found["y"]) if (span := _stated_range(resolved, n)) is not None}
    scope = f"scenario {scenario}"
    for k, name in enumerate(found["outputs"], start=1):
        card = binding_map(found, name, titles, name, scope, stages, ranges)
        replace(card, id=f"map-{k}").save(out)
        curve, at = row_of(found, name)
        if curve["output"].count() < 3:  # no curve: the map says it all
            continue
        axis = f"{found['x']}, multiple of base"
        card = headline_curve(curve, (axis, name), f"{found['y']} at {at:g} of base; {scope}", titles, base=1.0)
        replace(card, id=f"curve-{k}").save(out)


def _stated_range(resolved: Resolved, name: str) -> tuple[float, float] | None:
    """Least and greatest multiple of base in the stated range of an input (of a group: of all its numbers together)."""
    from scenarios.nodes import outer_range

    nodes = [resolved.nodes[p] for p in resolved.matching(name)]
    base = sum(float(n.value.sum()) for n in nodes)
    low, high = (sum(float(outer_range(n)[k].sum()) for n in nodes) for k in (0, 1))
    return (low / base, high / base) if base > 0 and high > low else None


def _long(found: dict[str, Any]) -> str:
    """The map as CSV, a line a cell."""
    names = list(found["outputs"])
    lines = [",".join(["x_scale", "y_scale", *(f'"{n}"' for n in names), "binding"])]
    for j, ys in enumerate(found["y_scale"]):
        for i, xs in enumerate(found["x_scale"]):
            cells = [f"{found['outputs'][n][j][i]!r}" for n in names]
            lines.append(",".join([f"{xs!r}", f"{ys!r}", *cells, found["binding"][j][i]]))
    return "\n".join(lines) + "\n"


def compare_all_verb(
    scenarios: Sequence[str], years: Sequence[str], sku: str, model: str, out: Path | None, as_json: bool
) -> None:
    """Solve the scenarios (all of the library by default), print the table, write it and the runs below `out`."""
    from scenarios.library_table import compare_all, markdown

    found = compare_all(list(scenarios) or None, years=years, sku=sku, model=model, out=out, progress=say)
    if out is not None:
        for name, text in (("compare_all.csv", found.to_csv(index=False)), ("compare_all.md", markdown(found))):
            with whole_text(out / name) as stream:
                stream.write(text)
    if as_json:
        print_json({"scenarios": json.loads(found.to_json(orient="records"))})
        return
    _print_all(found, years, sku, model)
    if out is not None:
        whole(f"written: {out / 'compare_all.csv'}, compare_all.md, and the runs beside them")
    else:
        line("Not stored: --out DIR keeps the table (CSV, Markdown) and the runs.")


def _print_all(found: pd.DataFrame, years: Sequence[str], sku: str, model: str) -> None:
    """Two tables that fit a terminal: volumes with costs, and who carries the scarcity value."""
    from scenarios.library_table import change_words, money_words

    first = found.iloc[0]
    head(f"Accelerators energised, millions, and change against {first['scenario']}; costs in {years[-1]}, USD")
    rows = []
    for row in found.to_dict("records"):
        volumes = [change_words(row[f"energised_{y}"], first[f"energised_{y}"]) for y in years]
        rows.append(
            [row["scenario"], *volumes, money_words(row["usd_per_gpu_hour"]), money_words(row["usd_per_mtoken"])]
        )
    table(["scenario", *years, "hour", "Mtoken"], rows)
    line(f"hour: a sold hour of {sku}, scarcity included; Mtoken: a million output tokens of {model} on it.")
    head("Stages with most of the scarcity value of the year")
    cells = [
        [r["scenario"], *(str(r[f"rents_{y}"] or "-") for y in years)] for r in found.fillna("").to_dict("records")
    ]
    table(["scenario", *years], cells, words=1 + len(years))
    for row in found.to_dict("records"):
        if row["problem"] and row["problem"] == row["problem"]:
            line(f"{row['scenario']}: {row['problem']}")
