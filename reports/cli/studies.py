"""`wafer2token sample`, `sensitivity`, `compare` and `breakeven`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.cli.exits import plain, print_json
from reports.cli.sets import parse_sets
from reports.cli.terminal import amount, head, line, say, table, whole
from supply.files import whole_text

if TYPE_CHECKING:
    from scenarios.resolve import Resolved

__all__ = ["breakeven_verb", "compare_verb", "sample_verb", "sensitivity_verb", "split_names"]

#: Inputs of a tornado or a list of indices that are printed; `--json` and `--out` hold all.
SHOWN = 15
#: Parts of a change that are printed.
PARTS = 10


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
    edits = parse_sets(sets)
    done = sample(scenario, sets=edits, out=out, progress=say, **options)
    found = done.json(outputs)
    if as_json:
        print_json(plain(found))
        return
    from scenarios.output_words import output_unit, output_words
    from scenarios.study import default_outputs

    resolved = _resolved(scenario, edits)
    failed = f", {found['failed']} of them without a plan" if found["failed"] else ""
    line(f"{resolved.scenario.title}: {found['draws']} draws of the uncertain inputs{failed}.")
    head("Outputs over the draws")
    rows = []
    for name in outputs or default_outputs(resolved):
        s = done.summary(name)
        words = f"{output_words(name, resolved.network)} [{output_unit(name, resolved.network)}]"
        rows.append([words, *(amount(s[key]) for key in ("mean", "q05", "q50", "q95", "mc_error"))])
    table(["output", "mean", "5 %", "median", "95 %", "+- mean"], rows)
    line("In 90 % of the draws an output lies between its 5 % and 95 %. +- mean: standard error of the mean.")
    _print_leaders(found["binding_share"], resolved)
    line()
    if done.folder is not None:
        whole(f"sample: {done.folder}")
        line("Next: report RUN --sample FOLDER draws the bands over time.")
    else:
        line("Not stored: --out DIR keeps every draw for a report.")


def _print_leaders(shares: Mapping[str, Mapping[str, float]], resolved: Resolved) -> None:
    """By period the limits that have the largest scarcity value most often."""
    head("Limit with the largest scarcity value, share of the draws")
    rows = []
    for period, share in shares.items():
        order = sorted(share.items(), key=lambda item: (-item[1], item[0]))[:3]
        names = [(resolved.network.resources[r].title or r, v) for r, v in order]
        rows.append([period, "; ".join(f"{title} {100 * v:.0f} %" for title, v in names)])
    table(["period", "limits"], rows, words=2)


def _resolved(scenario: str, sets: Sequence[tuple[str, Any]] = ()) -> Resolved:
    from scenarios.load import load_scenario
    from scenarios.resolve import resolve

    return resolve(load_scenario(scenario, sets))


def sensitivity_verb(scenario: str, sets: Sequence[str], out: Path | None, as_json: bool, **options: Any) -> None:
    """Rank the inputs by how far they move the outputs."""
    from scenarios.sensitivity import sensitivity

    found = plain(sensitivity(scenario, sets=parse_sets(sets), progress=say, **options).json())
    path = None
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        path = out / f"sensitivity_{options['method']}.json"
        with whole_text(path) as stream:
            stream.write(json.dumps(found, indent=1) + "\n")
    if as_json:
        print_json(found)
        return
    line(f"{found['scenario']}: {options['method']}, {found['evaluations']} solves.")
    for name, rows in found["outputs"].items():
        unit, nominal = found["units"][name], found["nominal"].get(name)
        head(f"{found['titles'][name]}: {amount(nominal)} {unit} as the scenario stands")
        if options["method"] == "tornado":
            _print_tornado(rows, found["slope_unit"])
        else:
            _print_indices(rows, options["method"])
    line()
    line("Outputs are those that the scenario names; --outputs takes others, quarters and months too (see `check "
         f"{scenario} --outputs`).")  # fmt: skip
    if path is not None:
        whole(f"written: {path}")
    else:
        line("Not stored: --out DIR writes all inputs as JSON.")


def _print_tornado(rows: Sequence[Mapping[str, Any]], slope_unit: str) -> None:
    """What each input does to an output at its ends; inputs that do nothing are counted only."""
    moving = [r for r in rows if not (r["low"] == r["high"] == r["nominal"])]
    cells = []
    for row in moving[:SHOWN]:
        ends = ""
        if "input_unit" in row:
            ends = f", {amount(row['low_input'])} to {amount(row['high_input'])} {row['input_unit']}"
        mark = " *" if row["one_sided"] else ""
        cells.append([f"{row['title']}{ends}{mark}", *(amount(row[k]) for k in ("low", "high", "slope"))])
    table(["input, from its low to its high end", "at low", "at high", "worth"], cells)
    periods = sorted({r["input_period"] for r in moving[:SHOWN] if "input_period" in r})
    notes = [f"Input values are those of {' or '.join(periods)}."] if periods else []
    notes.append(f"worth: {slope_unit}, at today's prices of the limits (no further solve); the same for every output.")
    if any(r["one_sided"] for r in moving[:SHOWN]):
        notes.append("* both ends move the output the same way: the middle is a turning point.")
    if len(rows) > len(cells):
        still = len(rows) - len(moving)
        notes.append(f"{len(moving) - len(cells)} more inputs move it less, {still} not at all.")
    for note in notes:
        line(note)


def _print_indices(rows: Sequence[Mapping[str, Any]], method: str) -> None:
    """Indices of the inputs with their half widths."""
    names = {
        "morris": ("mean effect", "Mean absolute effect over the range of the input, in the unit of the output."),
        "pawn": ("distance", "Median Kolmogorov-Smirnov distance, 0 (no effect) to 1."),
        "sobol": ("first", "first: share of the variance from the input alone; total: with its interactions."),
    }
    name, meaning = names[method]
    heads = ["input", name, *(["+-", "total", "+-"] if method == "sobol" else ["+-"] if method == "morris" else [])]
    keys = ["first", *(["first_ci", "total", "total_ci"] if method == "sobol" else ["first_ci"])][: len(heads) - 1]
    table(heads, [[r["title"], *(amount(r[k]) for k in keys)] for r in rows[:SHOWN]])
    line(meaning + (" +-: half of the 95 % interval." if method != "pawn" else ""))


def compare_verb(first: str, second: str, as_json: bool, outputs: list[str] | None) -> None:
    """Split the change between two scenarios or runs over the inputs that differ."""
    from scenarios.compare import compare
    from scenarios.load import load_scenario
    from scenarios.output_words import output_unit, output_words
    from scenarios.resolve import resolve
    from scenarios.runs import Run

    pair = [Run.open(text) if Path(text).is_dir() else text for text in (first, second)]
    found = compare(pair[0], pair[1], outputs=outputs)
    if as_json:
        print_json(plain(found.json()))
        return
    a, b = (Path(text) / "scenario.yaml" if Path(text).is_dir() else text for text in (first, second))
    old, resolved = load_scenario(a, name=found.first), resolve(load_scenario(b, name=found.second))
    line(f"From {found.first} ({old.title})")
    line(f"to {found.second} ({resolved.scenario.title}).")
    for name, row in found.outputs.items():
        share = f", {100 * row['change'] / row['first']:+.1f} %" if row["first"] and row["change"] else ""
        change = f"{amount(row['first'])} to {amount(row['second'])} {output_unit(name, resolved.network)}"
        head(f"{output_words(name, resolved.network)}: {change}{share}")
        _print_parts(row, resolved)
    for scenario, values in found.only.items():
        head(f"only in {scenario}")
        for name, value in values.items():
            told = f"{output_words(name, resolved.network)}: {amount(value)} {output_unit(name, resolved.network)}"
            line(told, indent=2)
    for name in found.absent:
        line(f"{output_words(name, resolved.network)}: neither has it; not run then, or of unknown cost")
    _print_newly_binding(found.binding, resolved)
    line()
    how = "exact (every subset solved)" if found.exact else "from sampled orders of change"
    line(f"Parts are Shapley values, {how}: the mean effect of an input over all orders in which the inputs could "
         "have changed. They add up to the whole change.")  # fmt: skip


def _print_parts(row: Mapping[str, Any], resolved: Resolved) -> None:
    parts = [(group, value) for group, value in row["parts"].items() if value != 0]
    if not parts:
        line("nothing that matters to it changed", indent=2)
        return
    rows = [
        [group_title(group, resolved), signed(value), signed(row["alone"][group])]
        for group, value in parts[:PARTS]
    ]  # fmt: skip
    if len(parts) > PARTS:
        rows.append([f"{len(parts) - PARTS} more inputs", signed(sum(v for _, v in parts[PARTS:])), ""])
    table(["part of the change", "part", "alone"], rows)


def signed(value: float) -> str:
    """A change with its sign.

    >>> signed(-2000.0), signed(1.25e6), signed(0.0)
    ('-2,000', '+1.25 M', '0')
    """
    return f"+{amount(value)}" if value > 0 else amount(value)


def group_title(group: str, resolved: Resolved) -> str:
    """A changed group (`resources.cowos`) by the title of its thing, with what it is.

    >>> from scenarios.load import load_scenario
    >>> from scenarios.resolve import resolve
    >>> group_title("resources.cowos", resolve(load_scenario("course_11_1")))
    'CoWoS (resources.cowos)'
    """
    if group == "structure":
        return "structure: parts and windows that differ, and numbers that only one side has"
    from scenarios.titles import path_title

    head_, _, name = group.partition(".")
    network = resolved.network
    held: Any = getattr(network, head_, {}) if head_ in ("resources", "fleet", "processes", "materials") else {}
    title = held[name].title if name in held else "" if head_ != "costs" else path_title(group, network)
    return f"{title} ({group})" if title else group


def _print_newly_binding(binding: Mapping[str, Mapping[str, Sequence[str]]], resolved: Resolved) -> None:
    """Periods in which other limits bind, equal neighbours joined."""
    if not binding:
        return
    head("Limits that bind in one of the two only")
    title = {r: row.title or r for r, row in resolved.network.resources.items()}
    rows: list[list[str]] = []
    for period, sets in binding.items():
        words = ["; ".join(title.get(r, r) for r in sets[k]) or "-" for k in ("only_first", "only_second")]
        if rows and rows[-1][1:] == words:
            rows[-1][0] = f"{rows[-1][0].partition(' to ')[0]} to {period}"
        else:
            rows.append([period, *words])
    table(["period", "no longer", "newly"], rows, words=3)


def breakeven_verb(scenario: str, sets: Sequence[str], target_input: str, target: str, as_json: bool) -> None:
    """Find the value of an input at which an output reaches a target."""
    from scenarios.breakeven import breakeven

    found = breakeven(scenario, target_input, target, sets=parse_sets(sets))
    if as_json:
        print_json(found.json())
        return
    unit = found.unit
    line(f"{found.output_title} reaches {amount(found.target)} {found.output_unit} "
         f"when {found.input_title} is {found.scale:.4g} times its value in every period: "
         f"{amount(found.value)} instead of {amount(found.nominal_input)} {unit} in {found.period}.")  # fmt: skip
    line(f"As the scenario stands the output is {amount(found.nominal_output)} {found.output_unit}.")
    line(f"Tried from {amount(found.bracket[0])} to {amount(found.bracket[1])} {unit}.")
    if not found.unique:
        line(f"Not unique: also at {', '.join(amount(v) for v in found.all_values if v != found.value)} {unit}.")
    whole(f"Next: wafer2token run {scenario} --set '{found.input}={{scale: {found.scale:.4g}}}'")
