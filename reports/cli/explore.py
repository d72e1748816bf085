"""`wafer2token discover`, `resilience`, `map` and `compare-all`: studies over many solves of one or many scenarios."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.cli.exits import print_json
from reports.cli.run import parse_sets
from supply.files import whole_text

if TYPE_CHECKING:
    from scenarios.resolve import Resolved

__all__ = ["compare_all_verb", "discover_verb", "map_verb", "parse_recover", "parse_span", "resilience_verb"]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _plain(value: Any) -> Any:
    """NaN and infinity (no figure, no plan) as None, so that the object is valid JSON."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and (value != value or abs(value) == float("inf")) else value


def discover_verb(scenario: str, target: str, sets: Sequence[str], out: Path | None, as_json: bool, **how: Any) -> None:
    """Print the rules for a target, with coverage and density."""
    from scenarios.discovery import discover

    found = discover(scenario, target, sets=parse_sets(sets), out=out, progress=_say, **how)
    if as_json:
        print_json(_plain(found.json()))
        return
    print(
        f"{found.target} in {100 * found.share:.0f} % of {found.draws} draws"
        + (f"; {found.note}" if found.note else "")
    )
    for rule in found.rules:
        low, high = rule.density_interval
        print(f"\nwhen {rule.words()}")
        print(f"  density {rule.density:.2f} [{low:.2f}, {high:.2f}]: share of these draws in which it happens")
        low, high = rule.coverage_interval
        print(f"  coverage {rule.coverage:.2f} [{low:.2f}, {high:.2f}]: share of all such draws that are here")


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

    table = resilience(
        scenario, start, longest=longest, recover=parse_recover(recover), sites=sites, sets=parse_sets(sets),
        progress=_say,
    )  # fmt: skip
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        with whole_text(out / "resilience.csv") as stream:
            table.to_csv(stream, index=False)
    if as_json:
        print_json({"scenario": scenario, "sites": _plain(table.to_dict("records"))})
        return
    heads = f"{'survives':>9} {'loss of one':>12} {'out':>4} {'loss':>12} {'share':>7} {'price':>11}"
    print(f"{'':2} {'site or stage':16} {heads}")
    for row in table.to_dict("records"):
        survives = f"{row['time_to_survive']}" + ("+" if row["at_least"] else "")
        price = "" if row["price"] != row["price"] else f"{row['price']:.4g}"
        print(
            f"{row['rank']:2} {row['id']:16} {survives:>9} {row['loss_one_period']:12.4g} {row['time_to_recover']:4} "
            f"{row['loss']:12.4g} {100 * row['loss_share']:6.2f}% {price:>11}"
        )


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

    found = grid(scenario, x, y, outputs=outputs, steps=steps, span=parse_span(span), sets=parse_sets(sets))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in (("map.json", json.dumps(_plain(found), indent=1) + "\n"), ("map.csv", _long(found))):
            with whole_text(out / name) as stream:
                stream.write(text)
        _map_figures(found, scenario, parse_sets(sets), out)
    if as_json:
        print_json(_plain(found))
        return
    for name, table in [*found["outputs"].items(), ("binds hardest", found["binding"])]:
        print(f"\n{name}: columns {x}, rows {y}, both times")
        print(f"{'':8}" + "".join(f"{s:>14.3g}" for s in found["x_scale"]))
        for scale, row in zip(found["y_scale"], table, strict=True):
            cells = (f"{v:>14.4g}" if isinstance(v, float) else f"{v or '-':>14}" for v in row)
            print(f"{scale:<8.3g}" + "".join(cells))


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

    found = compare_all(list(scenarios) or None, years=years, sku=sku, model=model, out=out, progress=_say)
    if out is not None:
        for name, text in (("compare_all.csv", found.to_csv(index=False)), ("compare_all.md", markdown(found))):
            with whole_text(out / name) as stream:
                stream.write(text)
    if as_json:
        print_json({"scenarios": json.loads(found.to_json(orient="records"))})
    else:
        print(markdown(found), end="")
