"""Sections: what could overturn the answer, where others stand, and the track record."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from reports.blocks import Cell, Section, Table
from reports.catalogue import say, spoken
from reports.context import Context
from reports.figures import econ
from reports.figures.cases import scoreboard
from reports.sections.limits import scope
from reports.sections.outside import gap_sentences, gap_tables
from reports.spans import Number, Words, join
from reports.tables import records
from reports.wording import brief, brief_limit, count, listing, percent, plain, stage_title
from scenarios.break_evens import FARTHEST

__all__ = ["accuracy_section", "break_even", "others_section", "overturn_section", "overturning", "record_words"]

BAND = 0.9

_GROUPS = {"nvidia": "NVIDIA", "amd": "AMD", "google": "Google TPU", "aws": "AWS Trainium"}
_RESIDUALS = ("gap", "primal_residual", "dual_residual", "complementarity")


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
    s.paragraphs.append(join(" ", [*overturning(c), say("overturn.searched", times=brief(FARTHEST))]))
    drawn = table.dropna(subset=["energised_low", "energised_high"])
    shown = pd.DataFrame(
        {
            "title": drawn["title"],
            "at_low": drawn["energised_low"] / 1e6,
            "at_high": drawn["energised_high"] / 1e6,
            "low_input": drawn["low_input"],
            "high_input": drawn["high_input"],
            "input_unit": drawn["input_unit"],
        }
    )
    if int(((shown["at_low"] - base / 1e6) * (shown["at_high"] - base / 1e6) > 0).sum()):
        s.paragraphs.append(say("overturn.one_side"))
    s.figures.append(econ.headline_tornado(shown, base / 1e6, say("overturn.axis", year=year), scope(c)))
    s.tables.append(_overturn_table(table, year))
    return s


def overturning(c: Context, top: int = 3) -> list[str]:
    """The inputs that could overturn the answer, a sentence each: its range, where another stage becomes the
    scarcest, and where a tenth of the accelerators is lost; the ends of the result where no break-even was sought."""
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
    title = brief_limit(str(r.title))
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
    """The value at which another stage becomes the scarcest, and that stage: within the range, else beyond it."""
    if r.flips and pd.notna(r.flips_at):
        return r.flips_at, r.stage_low if r.stage_low != r.stage_base else r.stage_high
    return (None, "") if pd.isna(r.break_at) else (r.break_at, r.break_stage)


def _side(value: float, r: Any) -> str:
    return "above" if value > r.base_input else "below"


def _edge(value: float, r: Any) -> str:
    """A break-even with its unit, the words in brackets after the unit left out.

    Two digits; a third, as many as the search is worth, where rounding would hide how far it lies from the base or
    from an end of the range.
    """
    unit = str(r.input_unit).partition(" (")[0]
    nearest = min(abs(value - end) for end in (r.low_input, r.base_input, r.high_input))
    shown = _input(value, 2 if abs(float(f"{value:.1e}") - value) <= nearest / 4 else 3)
    return join("", [shown, f" {unit}" if unit and unit != "fraction" else ""])


def _input(value: float, digits: int = 3) -> str:
    """A value of an input in a sentence: millions in words."""
    return (count if abs(value) >= 999_500 else brief)(value, digits)


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
    return Table.named("weak_inputs", rows, folded=len(rows) > 20, year=year, times=brief(FARTHEST))


def _stages(r: Any) -> str:
    ends = [(stage_title(s), end) for s, end in ((r.stage_low, "low"), (r.stage_high, "high")) if s != r.stage_base]
    return listing([say(f"overturn.stage_at_{end}", stage=s) for s, end in ends]) or say("overturn.unchanged")


def _million(value: float) -> tuple[str, float | None]:
    return (say("overturn.no_plan"), None) if pd.isna(value) else (f"{value / 1e6:.2f}", value / 1e6)


def _breaks(r: Any) -> list[Any]:
    """Where another stage becomes the scarcest, and where a tenth of the accelerators is lost."""
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
    s = Section("others")
    table = table.assign(label=table["group"].map(_GROUPS).fillna(table["group"]), ours=table["ours"].clip(lower=0.0))
    table = table.sort_values(["year", "theirs"], ascending=[True, False])
    s.figures.append(econ.others_compared(table, say("others.subtitle", scope=scope(c))))
    explained = gap_sentences(c, _GROUPS)
    s.paragraphs += [_misses(table, opening=not explained), *explained]
    rows = [
        [
            r.label,
            r.year,
            (f"{r.ours / 1e3:,.0f}", r.ours),
            (f"{r.theirs / 1e3:,.0f}", r.theirs),
            _span(r.low, r.high),
            (plain(r.ours / r.theirs, 2), r.ours / r.theirs),
            say("others.yes" if r.low <= r.ours <= r.high else "others.no"),
        ]
        for r in records(table)
    ]
    s.tables += [Table.named("epoch", rows), *gap_tables(c, _GROUPS)]
    balance = c.table("cowos_balance")
    if balance is not None:
        s.tables.append(_balance(balance))
        r = balance.iloc[-1]
        held = {name: count(r[f"wafers_from_{name}"]) for name in ("units", "capacity")}
        s.paragraphs.append(say("others.balance", year=str(r["year"]), ratio=plain(r["ratio"], 2), **held))
    return s


def _span(low: float, high: float) -> str:
    """Two ends in thousands."""
    return say("others.span", low=Number(f"{low / 1e3:,.0f}", low / 1e3), high=Number(f"{high / 1e3:,.0f}", high / 1e3))


def _misses(table: pd.DataFrame, opening: bool) -> str:
    missed = {"low": table[table["ours"] < table["low"]], "high": table[table["ours"] > table["high"]]}
    inside = len(table) - sum(len(t) for t in missed.values())
    parts = [say("others.inside", inside=inside, all=len(table))]
    for side, found in missed.items():
        if len(found):
            shares = [
                say("others.share", label=r.label, year=str(r.year), share=percent(r.ours / r.theirs))
                for r in records(found)
            ]
            parts.append(say(f"others.missed_{side}", shares=join("; ", shares)))
    return join(" ", [*parts, *([say("others.opening")] if opening else [])])


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
    return Table.named("cowos_balance", rows)


def accuracy_section(c: Context) -> Section:
    """Solver evidence and checks, the backtest scoreboard, and the engine's accuracy table."""
    s = Section("record")
    checks = c.run.checks
    bad = checks[~checks["passed"]]
    evidence = c.answer["evidence"]
    sizes = {k: Number(f"{evidence[k]:.1e}", evidence[k]) for k in _RESIDUALS}
    s.paragraphs.append(
        say(
            "record.evidence",
            checks=len(checks),
            failed=len(bad),
            rows=evidence["rows"],
            columns=evidence["columns"],
            solver=evidence["solver"],
            **sizes,
        )
    )
    if len(bad):
        names = [f"{r.check} {r.subject} {r.period}".strip() for r in records(bad.head(5))]
        s.warnings.append(say("record.failed", names="; ".join(names)))
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
        return say("record.none")
    yearly = summary[(summary["level"] == "designer") & (summary["span"] == "year")].sort_values("origin")
    parts = join("; ", [_origin_words(r) for r in records(yearly)])
    short = bool((yearly["coverage_high"] < BAND).any())
    return join(" ", [say("record.backtest", parts=parts), *([say("record.short")] if short else [])])


def _origin_words(r: Any) -> str:
    return say(
        "record.origin",
        origin=r.origin,
        hits=int(r.hits),
        scored=int(r.scored),
        low=percent(r.coverage_low),
        high=percent(r.coverage_high),
        score=plain(r.score / r.score_last, 2),
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
            _span(r.outcome_low, r.outcome_high),
            (f"{r.value / 1e3:,.0f}", r.value),
            _span(r.low, r.high),
            say("record.hit" if r.inside else "record.miss"),
            ("-", None) if pd.isna(r.naive_last) else (f"{r.naive_last / 1e3:,.0f}", r.naive_last),
            str(r.reason).replace("hbm ", "HBM ") or "-",
        ]
        for r in records(scores)
    ]
    return [Table.named("backtest", rows)]


def _slice(name: str) -> str:
    """What was asked, in words; a kernel by its own name."""
    head, _, what = name.partition("/")
    named = spoken().group("record.slices").get(f"{head}_{what}".replace(" ", "_"))
    return named or f"{head}, {what}".replace("_", " ").capitalize()


def _accuracy(table: pd.DataFrame) -> Table:
    rows = []
    for r in records(table):
        roof = ("-", None) if pd.isna(r.roofline_mape) else (f"{r.roofline_mape:.0f}", r.roofline_mape)
        rows.append(
            [
                _slice(r.slice),
                spoken().group("record.schemes").get(r.left_out, r.left_out),
                (f"{r.rows}", float(r.rows)),
                (f"{r.mape:.0f}", r.mape),
                (f"{r.median:.0f}", r.median),
                (f"{r.p90:.0f}", r.p90),
                (f"{r.bias:.2f}", r.bias),
                (f"{r.coverage:.0f}", r.coverage),
                roof,
            ]
        )
    return Table.named("accuracy", rows, folded=True)
