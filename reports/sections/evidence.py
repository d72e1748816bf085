"""Sections: what could overturn the answer, where others stand, and the track record."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from reports.blocks import Cell, Section, Table
from reports.catalogue import say
from reports.context import Context
from reports.figures import econ
from reports.figures.cases import scoreboard
from reports.sections.limits import scope
from reports.spans import Words, join
from reports.tables import records
from reports.wording import brief, count, in_sentence, listing, percent, plain, stage_title
from scenarios.break_evens import FARTHEST

__all__ = ["accuracy_section", "break_even", "others_section", "overturn_section", "overturning", "record_words"]

BAND = 0.9

_GROUPS = {"nvidia": "NVIDIA", "amd": "AMD", "google": "Google TPU", "aws": "AWS Trainium"}
_SCHEMES = {"pair": "model and accelerator", "hardware": "accelerator", "family": "hardware family"}
_METRICS = {"tpot": "time per output token", "ttft": "time to first token"}
_SLICES = {
    "closed/tpot": "Served, time per output token", "closed/ttft": "Served, time to first token",
    "closed/ttft at most 10x unloaded": "Served, first token, moderate load", "fixed/prefill": "Fixed batch, prefill",
    "fixed/tpot": "Fixed batch, time per token", "mlperf/rate": "MLPerf, rate", "offline/rate": "Offline, rate",
    "open/rate": "Open arrivals, rate", "local/decode": "Local, decode", "local/prefill": "Local, prefill",
    "local/batch": "Local, batch",
}  # fmt: skip


def overturn_section(c: Context) -> Section | None:
    """The tornado and the table of weak inputs."""
    table = c.table("headline")
    if table is None or "energised_base" not in table:
        return None
    year, base = str(table["year"].iloc[0]), float(table["energised_base"].iloc[0])
    s = Section("overturn")
    flips = int(table["flips"].sum())
    fields = {"year": year, "stage": stage_title(str(table["stage_base"].iloc[0])), "base": count(base)}
    verdict = say("overturn.some_flip" if flips else "overturn.none_flip", flips=flips, all=len(table))
    s.paragraphs.append(join(" ", [say("overturn.how", **fields), verdict, say("overturn.pairs")]))
    s.paragraphs.append(join(" ", [*overturning(c), say("page.searched", times=brief(FARTHEST))]))
    drawn = table.dropna(subset=["energised_low", "energised_high"])
    shown = pd.DataFrame(
        {
            "title": drawn["title"],
            "at_low": drawn["energised_low"] / 1e6,
            "at_high": drawn["energised_high"] / 1e6,
            "low_input": drawn["low_input"],
            "high_input": drawn["high_input"],
        }
    )
    s.figures.append(econ.headline_tornado(shown, base / 1e6, say("overturn.axis", year=year), scope(c)))
    s.tables.append(_overturn_table(table, year))
    return s


def overturning(c: Context, top: int = 3) -> list[str]:
    """The inputs that could overturn the answer, a sentence each: its range, where another stage becomes the
    costliest, and where a tenth of the accelerators is lost; the ends of the result where no break-even was sought."""
    table = c.table("headline")
    if table is None or "energised_base" not in table:
        return []
    return [_in_words(r) for r in records(table.head(top))]


def _in_words(r: Any) -> str:
    """One input.

    A multiple above 1 is a value above the base, except where the number shown falls as the driver grows.
    """
    unit = f" {r.input_unit}" if r.input_unit else ""
    low, high, base = (_input(v) for v in (r.low_input, r.high_input, r.base_input))
    kind = say(f"overturn.kind_{str(r.kind).replace(' ', '_')}")
    title = in_sentence(str(r.title))
    head = say("overturn.input", title=title, low=low, high=high, unit=unit, base=base, kind=kind)
    head = Words([head]).capitalized()
    at, stage = break_even(r)
    if pd.isna(getattr(r, "searched_from", math.nan)):
        if at is not None:
            return say("overturn.flips", input=head, stage=stage_title(stage), at=_edge(at, r))
        ends = sorted((r.energised_low, r.energised_high))
        return say("overturn.ends", input=head, low=count(ends[0], 2), high=count(ends[1], 2))
    fall = say("overturn.no_fall")
    if pd.notna(r.fall_at):
        fall = say(f"overturn.fall_{_side(r.fall_at, r)}", at=_edge(r.fall_at, r))
    if at is None:
        return say(
            "overturn.no_break", input=head, first=_edge(r.searched_from, r), last=_edge(r.searched_to, r), fall=fall
        )
    return say(f"overturn.break_{_side(at, r)}", input=head, at=_edge(at, r), stage=stage_title(stage), fall=fall)


def break_even(r: Any) -> tuple[float | None, str]:
    """The value at which another stage becomes the costliest, and that stage: within the range, else beyond it."""
    if r.flips and pd.notna(r.flips_at):
        return r.flips_at, r.stage_low if r.stage_low != r.stage_base else r.stage_high
    return (None, "") if pd.isna(r.break_at) else (r.break_at, r.break_stage)


def _side(value: float, r: Any) -> str:
    return "above" if value > r.base_input else "below"


def _edge(value: float, r: Any) -> str:
    """A break-even with its unit, the words in brackets after the unit left out."""
    unit = str(r.input_unit).partition(" (")[0]
    return join("", [_input(value), f" {unit}" if unit and unit != "fraction" else ""])


def _input(value: float) -> str:
    """A value of an input in a sentence: millions in words."""
    return count(value) if abs(value) >= 999_500 else brief(value)


def _overturn_table(table: pd.DataFrame, year: str) -> Table:
    rows = []
    for r in records(table):
        weak = r.kind == "illustrative"
        rows.append(
            [
                Cell(str(r.title), mark=weak),
                str(r.kind),
                (brief(r.low_input), r.low_input),
                (brief(r.base_input), r.base_input),
                (brief(r.high_input), r.high_input),
                str(r.input_unit) or "-",
                _million(r.energised_low),
                _million(r.energised_high),
                _stages(r),
                *_breaks(r),
            ]
        )
    return Table.of(
        f"Weak inputs by how far they move the energised accelerators of {year}",
        [
            "Input",
            "Kind",
            "#Low",
            "#Base",
            "#High",
            "Unit",
            "#Million energised at low",
            "#at high",
            "Costliest stage",
            *say("overturn.last_columns").split(" | "),
        ],
        rows,
        note=say("overturn.table_note", year=year, times=brief(FARTHEST)),
        folded=len(rows) > 20,
        short="weak_inputs",
    )


def _stages(r: Any) -> str:
    ends = [(stage_title(s), end) for s, end in ((r.stage_low, "low"), (r.stage_high, "high")) if s != r.stage_base]
    return listing([f"{s} at {end}" for s, end in ends]) or "unchanged"


def _million(value: float) -> tuple[str, float | None]:
    return ("no plan", None) if pd.isna(value) else (f"{value / 1e6:.2f}", value / 1e6)


def _breaks(r: Any) -> list[Any]:
    """Where another stage becomes the costliest, and where a tenth of the accelerators is lost."""
    searched = pd.notna(r.searched_from)
    at, _ = break_even(r)
    nowhere = say("overturn.nowhere" if searched else "overturn.not_within" if not r.flips else "overturn.at_an_end")
    change: Any = nowhere if at is None else (plain(at), at)
    fall: Any = "-" if not searched else (plain(r.fall_at), r.fall_at)
    return [change, say("overturn.nowhere") if searched and pd.isna(r.fall_at) else fall]


def others_section(c: Context) -> Section | None:
    """Epoch AI's unit estimates and the CoWoS balance beside the run."""
    table = c.table("shipments")
    if table is None:
        return None
    s = Section("others", "Where others stand")
    table = table.assign(label=table["group"].map(_GROUPS).fillna(table["group"]), ours=table["ours"].clip(lower=0.0))
    table = table.sort_values(["year", "theirs"], ascending=[True, False])
    s.figures.append(econ.others_compared(table, f"finished units of whole calendar years, world; {scope(c)}"))
    s.paragraphs += [_misses(table)]
    rows = [
        [
            r.label,
            r.year,
            (f"{r.ours / 1e3:,.0f}", r.ours),
            (f"{r.theirs / 1e3:,.0f}", r.theirs),
            f"{r.low / 1e3:,.0f} to {r.high / 1e3:,.0f}",
            (plain(r.ours / r.theirs, 2), r.ours / r.theirs),
            "yes" if r.low <= r.ours <= r.high else "no",
        ]
        for r in records(table)
    ]
    s.tables.append(
        Table.of(
            "Finished accelerators beside Epoch AI's estimates, thousand a year",
            ["Designer", "Year", "#This run", "#Epoch AI", "#Their 90 % interval", "#Ratio", "Inside"],
            rows,
            note="Epoch AI, AI Chip Sales (CC BY 4.0), quarterly medians summed; the "
            "interval is the sum of the quarterly ends, so it is wide. "
            "An outcome: no "
            "shipment estimate is an input after the opening date, and nothing was tuned to it.",
            short="epoch",
        )
    )
    balance = c.table("cowos_balance")
    if balance is not None:
        s.tables.append(_balance(balance))
        r = balance.iloc[-1]
        s.paragraphs.append(
            f"CoWoS balance: the wafers that NVIDIA's estimated {r['year']} units need are "
            f"{count(r['wafers_from_units'])}; its share of what the lines "
            f"could make is {count(r['wafers_from_capacity'])}, {plain(r['ratio'], 2)} times as much. The two rest "
            "on different sources and are "
            "shown with their gap."
        )
    return s


def _misses(table: pd.DataFrame) -> str:
    low = [
        f"{r.label} {r.year} ({percent(r.ours / r.theirs)} of the estimate)" for r in records(table) if r.ours < r.low
    ]
    high = [f"{r.label} {r.year} ({percent(r.ours / r.theirs)})" for r in records(table) if r.ours > r.high]
    inside = len(table) - len(low) - len(high)
    text = f"{inside} of {len(table)} yearly totals lie inside Epoch AI's 90 % interval."
    if low:
        text += f" Below it: {'; '.join(low)}."
    if high:
        text += f" Above it: {'; '.join(high)}."
    opening = (
        "Shortfalls in the first year come partly from the opening: what was in the making is itself an assumption."
    )
    return f"{text} {opening}"


def _balance(balance: pd.DataFrame) -> Table:
    rows = [
        [
            str(r.year),
            (f"{r.wafers_from_units:,.0f}", r.wafers_from_units),
            (f"{r.wafers_from_capacity:,.0f}", r.wafers_from_capacity),
            (plain(r.ratio), r.ratio),
        ]
        for r in records(balance)
    ]
    return Table.of(
        "CoWoS wafers for NVIDIA: from its units and from the lines, wafers a year",
        ["Year", "#Needed by Epoch AI's units", "#Capacity times NVIDIA's share", "#Ratio"],
        rows,
        note="Units over packages per wafer at yield 1, against capacity that the lines could run times "
        "the share reported for NVIDIA.",
        short="cowos_balance",
    )


def accuracy_section(c: Context) -> Section:
    """Solver evidence and checks, the backtest scoreboard, and the engine's accuracy table."""
    s = Section("record", "Track record and checks")
    checks = c.run.checks
    bad = checks[~checks["passed"]]
    evidence = c.answer["evidence"]
    s.paragraphs.append(
        f"{len(checks)} checks, {len(bad)} failed. Optimum: {evidence['rows']:,} rows, {evidence['columns']:,} "
        f"columns, {evidence['solver']}; relative gap "
        f"{evidence['gap']:.1e}, primal residual {evidence['primal_residual']:.1e}, dual residual "
        f"{evidence['dual_residual']:.1e}, "
        f"complementarity {evidence['complementarity']:.1e}. Every printed price lies between the gain of a little "
        "more and the loss of a little less."
    )
    if len(bad):
        names = "; ".join(f"{r.check} {r.subject} {r.period}".strip() for r in records(bad.head(5)))
        s.warnings.append(f"Failed checks: {names}.")
    s.paragraphs.append(record_words(c))
    if (scores := c.table("backtest")) is not None:
        s.figures.append(scoreboard(scores[scores["level"] == "designer"], scope(c)))
    s.tables += _backtest(c)
    table = c.table("accuracy")
    if table is not None:
        s.tables.append(_accuracy(table))
    return s


def record_words(c: Context) -> str:
    """How earlier forecasts did, or that there is no backtest."""
    summary = c.table("backtest_summary")
    if summary is None:
        return "This report holds no backtest, so its bands have not earned the word chance."
    yearly = summary[(summary["level"] == "designer") & (summary["span"] == "year")].sort_values("origin")
    parts = [_origin_words(r) for r in records(yearly)]
    short = bool((yearly["coverage_high"] < BAND).any())
    verdict = "The bands hold less than they say: read them as spreads, not as chances." if short else ""
    text = f"Backtest, knowing only what was known on the day: {'; '.join(parts)}."
    return f"{text} A score below 1 beats the naive forecast. {verdict}".strip()


def _origin_words(r: Any) -> str:
    share = f"95 % interval of that share {percent(r.coverage_low)} to {percent(r.coverage_high)}"
    score = f"score {plain(r.score / r.score_last, 2)} times that of the last value held"
    return (
        f"from {r.origin} {r.hits:.0f} of {r.scored} yearly totals of designers inside the 90 % band ({share}), {score}"
    )


def _backtest(c: Context) -> list[Table]:
    scores = c.table("backtest")
    if scores is None:
        return []
    scores = scores[scores["level"] == "designer"].sort_values(
        ["origin", "period", "outcome"], ascending=[True, True, False]
    )
    rows = [
        [
            r.origin,
            r.title,
            r.period,
            (f"{r.outcome / 1e3:,.0f}", r.outcome),
            f"{r.outcome_low / 1e3:,.0f} to {r.outcome_high / 1e3:,.0f}",
            (f"{r.value / 1e3:,.0f}", r.value),
            f"{r.low / 1e3:,.0f} to {r.high / 1e3:,.0f}",
            "hit" if r.inside else "miss",
            ("-", None) if pd.isna(r.naive_last) else (f"{r.naive_last / 1e3:,.0f}", r.naive_last),
            str(r.reason).replace("hbm ", "HBM ") or "-",
        ]
        for r in records(scores)
    ]
    columns = [
        "Known up to",
        "Designer",
        "Year",
        "#Outcome",
        "#Its band",
        "#Forecast",
        "#90 % of draws",
        "Inside",
        "#Last value held",
        "Why it missed",
    ]
    note = (
        "Outcome: Epoch AI's estimate. Forecast: median of the draws of a rolling plan that knows only facts dated "
        "before the day; inputs not "
        "known then are illustrative stand-ins. Products and quarters: wafer2token backtest."
    )
    return [Table.of("Backtest: finished accelerators a year, thousand", columns, rows, note=note, short="backtest")]


def _slice(name: str) -> str:
    """What was asked, in words."""
    head, _, what = name.partition("/")
    words = f"{head}, {_METRICS.get(what, what)}".replace("_", " ")
    return _SLICES.get(name, f"{words[:1].upper()}{words[1:]}")


def _accuracy(table: pd.DataFrame) -> Table:
    rows = []
    for r in records(table):
        roof = ("-", None) if pd.isna(r.roofline_mape) else (f"{r.roofline_mape:.0f}", r.roofline_mape)
        rows.append(
            [
                _slice(r.slice),
                _SCHEMES.get(r.left_out, r.left_out),
                (f"{r.rows}", float(r.rows)),
                (f"{r.mape:.0f}", r.mape),
                (f"{r.median:.0f}", r.median),
                (f"{r.p90:.0f}", r.p90),
                (f"{r.bias:.2f}", r.bias),
                (f"{r.coverage:.0f}", r.coverage),
                roof,
            ]
        )
    return Table.of(
        "Accuracy of the per-token engine on measurements left out of its fit",
        [
            "What",
            "Left out",
            "#Rows",
            "#Mean error, %",
            "#Median, %",
            "#90th percentile, %",
            "#Bias, ratio",
            "#In 90 % band, %",
            "#Plain roofline, %",
        ],
        rows,
        note="Error: absolute relative error of the prediction. Bias: median of predicted over measured.",
        folded=True,
        short="accuracy",
    )
