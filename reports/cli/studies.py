"""`wafer2token sample`, `sensitivity`, `compare` and `breakeven`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reports.cli.exits import print_json
from reports.cli.run import parse_sets
from supply.files import whole_text

__all__ = ["breakeven_verb", "compare_verb", "sample_verb", "sensitivity_verb", "split_names"]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def split_names(text: str | None) -> list[str] | None:
    """`a, b` as names; nothing as None.

    >>> split_names("yield, power")
    ['yield', 'power']
    """
    return [part.strip() for part in text.split(",") if part.strip()] if text else None


def sample_verb(scenario: str, sets: Sequence[str], out: Path | None, as_json: bool, **options: Any) -> None:
    """Draw the uncertain inputs and print means, quantiles and how often each limit binds."""
    from scenarios.sample import sample

    outputs = options.pop("outputs")
    done = sample(scenario, sets=parse_sets(sets), out=out, progress=_say, **options)
    found = done.json(outputs)
    if as_json:
        print_json(_finite(found))
        return
    shown = outputs or _scenario_outputs(scenario, done.names)
    print(f"{found['draws']} draws, {found['failed']} without an optimum")
    print(f"{'output':44} {'mean':>12} {'5 %':>12} {'median':>12} {'95 %':>12} {'error':>10}")
    for name in shown:
        s = done.summary(name)
        print(f"{name:44} {s['mean']:12.5g} {s['q05']:12.5g} {s['q50']:12.5g} {s['q95']:12.5g} {s['mc_error']:10.2g}")
    for period, share in found["binding_share"].items():
        print(
            f"{period}: "
            + ", ".join(
                f"{r} in {100 * v:.0f} % of draws" for r, v in sorted(share.items(), key=lambda item: -item[1])[:3]
            )
        )


def _scenario_outputs(scenario: str, names: Sequence[str]) -> list[str]:
    from scenarios.load import load_scenario

    return list(load_scenario(scenario).file.outputs) or list(names)[:12]


def sensitivity_verb(scenario: str, sets: Sequence[str], out: Path | None, as_json: bool, **options: Any) -> None:
    """Rank the inputs by how far they move the outputs."""
    from scenarios.sensitivity import sensitivity

    found = _finite(sensitivity(scenario, sets=parse_sets(sets), progress=_say, **options).json())
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        with whole_text(out / f"sensitivity_{options['method']}.json") as stream:
            stream.write(json.dumps(found, indent=1) + "\n")
    if as_json:
        print_json(found)
        return
    print(f"{found['method']}, {found['evaluations']} solves")
    for name, rows in found["outputs"].items():
        print(f"\n{name} (nominal {found['nominal'].get(name)})")
        for row in rows[:15]:
            print("  " + "  ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{v}" for k, v in row.items()))


def compare_verb(first: str, second: str, as_json: bool, outputs: list[str] | None) -> None:
    """Split the change between two scenarios or runs over the inputs that differ."""
    from scenarios.compare import compare
    from scenarios.runs import Run

    pair = [Run.open(text) if Path(text).is_dir() else text for text in (first, second)]
    found = compare(pair[0], pair[1], outputs=outputs)
    if as_json:
        print_json(_finite(found.json()))
        return
    for line in found.words:
        print(line)
    for name, row in found.outputs.items():
        print(f"\n{name}: {row['first']:.6g} to {row['second']:.6g}, change {row['change']:+.6g}")
        for part, value in list(row["parts"].items())[:10]:
            print(f"  {part:48} {value:+.6g}")


def breakeven_verb(scenario: str, sets: Sequence[str], target_input: str, target: str, as_json: bool) -> None:
    """Find the value of an input at which an output reaches a target."""
    from scenarios.breakeven import breakeven

    found = breakeven(scenario, target_input, target, sets=parse_sets(sets))
    if as_json:
        print_json(found.json())
        return
    times = f"{found.scale:.4g} times its value in every period; first period " if found.scale != 1 else ""
    unique = "" if found.unique else f"; not unique: {', '.join(f'{v:.6g}' for v in found.all_values)}"
    print(
        f"{found.output} is {found.target:.6g} at {found.input} = {times}{found.value:.6g} {found.unit} "
        f"(now {found.nominal_input:.6g}, which gives {found.nominal_output:.6g}){unique}"
    )


def _finite(value: Any) -> Any:
    """NaN (no figure) as None, numpy numbers as plain ones, so that the object is valid JSON."""
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and value != value else value
