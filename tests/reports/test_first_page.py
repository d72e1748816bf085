"""The first page says what the run's tables say: stages, periods, shares, volumes, ranges, digits and signs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import scenarios.headline as headline
from reports.answer_text import answer_lines, stages_in_words
from reports.context import Context
from reports.first_page import first_page
from reports.sections.evidence import break_even
from reports.wording import stage_title
from scenarios.costing import build_cost_model
from scenarios.horizon import nearest_period
from scenarios.runner import run
from scenarios.runs import Run, main_limit

STUDIED = ("Energised AI power in United States", "Watts that a plan reserves", "Share of CoWoS", "Rental price")
STOPS = "What stops more, and when."
STAGES = ["hbm", "power", "packaging", "fab"]
NUMBER = r"(\d[\d,]*(?:\.\d+)?)"
RANGED = re.compile(rf"{NUMBER}( \w+)?(?: accelerators)?(?:\N{{NO-BREAK SPACE}}%)? \({NUMBER} to {NUMBER}")


@pytest.fixture(scope="module")
def studied() -> Run:
    """The small scenario with a study of four of its weak inputs."""
    made = run("small")
    resolved, solution = made.resolved, made.solution
    assert resolved is not None and solution is not None
    now = nearest_period([p["period"] for p in made.answer["periods"]], made.manifest["as_of"])
    model = build_cost_model(resolved, solution)
    watch = headline.watched(made.answer, model, now, "h100")
    with pytest.MonkeyPatch.context() as patch:
        every = headline.weak_inputs
        patch.setattr(headline, "weak_inputs", lambda r: [w for w in every(r) if w.title.startswith(STUDIED)])
        made.tables["headline"] = headline.headline_study(resolved, now[:4], watch=watch)
    return made


@pytest.fixture(scope="module")
def page(studied: Run) -> dict[str, str]:
    return {line.label: line.text for line in first_page(Context(studied))}


def size(text: str, unit: str | None) -> float:
    return float(text.replace(",", "")) * {" million": 1e6, " billion": 1e9, " thousand": 1e3}.get(unit or "", 1.0)


def told(text: str, periods: list[str]) -> dict[str, str]:
    """Period -> stage as a reader takes it from the sentence about the costliest limit."""
    names = {stage_title(s).lower(): s for s in [*STAGES, "server", "rack", "test", "datacenter"]} | {"nothing": ""}
    found = re.match(
        r"(?P<stage>[\w ]+) is the costliest limit (?:in|from) (?P<first>\d{4}-Q\d)(?: to (?P<last>\S+?))?( on)?"
        r"(?:, except (?P<gaps>[^.]+))?\.(?: Before it: (?P<before>[^.]+)\.)?",
        text,
    )
    assert found, text
    start = periods.index(found["first"])
    single = f"limit in {found['first']}" in text
    end = periods.index(found["last"]) if found["last"] else start if single else len(periods) - 1
    out = dict.fromkeys(periods[start : end + 1], names[found["stage"].lower()])
    for part in re.findall(r"([A-Za-z][\w ]*?) in ((?:\d{4}-Q\d(?:, | and )?)+)", found["gaps"] or ""):
        name = part[0].removeprefix("and ")
        out |= dict.fromkeys(re.findall(r"\d{4}-Q\d", part[1]), names[name.lower()])
    for name, times in re.findall(r"([A-Za-z][\w ]*?) \(([^)]+)\)", found["before"] or ""):
        for span in times.split(", "):
            first, _, last = span.partition(" to ")
            inside = periods[periods.index(first) : periods.index(last or first) + 1]
            out |= dict.fromkeys(inside, names[name.removeprefix("and ").lower()])
    return out


@given(st.lists(st.sampled_from([*STAGES, ""]), min_size=1, max_size=12).filter(any))
@settings(max_examples=150, deadline=None)
def test_the_sentence_about_the_costliest_limit_gives_back_every_period(leaders: list[str]) -> None:
    periods = [f"{2024 + k // 4}-Q{k % 4 + 1}" for k in range(len(leaders))]
    read = told(stages_in_words(leaders, periods), periods)
    assert {p: read.get(p, "") for p in periods} == dict(zip(periods, leaders, strict=True))


def test_stages_and_periods_are_those_of_the_table_of_rents(studied: Run, page: dict[str, str]) -> None:
    rent = studied.table("binding").groupby(["period", "stage"])["rent"].sum()
    periods = [p["period"] for p in studied.answer["periods"]]
    largest = {p: str(rent[p].idxmax()) if p in rent.index.get_level_values(0) else "" for p in periods}
    read = told(page[STOPS], periods)
    assert {p: read.get(p, "") for p in periods} == largest


def test_shares_are_those_of_the_year(studied: Run, page: dict[str, str]) -> None:
    held = studied.table("binding")
    rent = held[held["period"].str.startswith("2026")].groupby("stage")["rent"].sum().sort_values(ascending=False)
    shares = rent / rent.sum()
    found = re.search(r"In 2026 ([\w ]+) carries (\d+)\N{NO-BREAK SPACE}%", page[STOPS])
    assert found and found[1] == stage_title(str(shares.index[0]))
    assert int(found[2]) == round(100 * shares.iloc[0])


def test_volumes_and_their_ranges_are_those_of_the_tables(studied: Run, page: dict[str, str]) -> None:
    text, table = page["The answer."], studied.table("headline")
    found = list(RANGED.finditer(text))
    assert len(found) == 3
    for match, name in zip(found, ("energised", "energised_h100e", "finished"), strict=True):
        quantity = name.removeprefix("energised_")
        rows = studied.results[studied.results["quantity"] == name]
        total = rows.loc[rows["period"].str.startswith("2026"), "value"].sum()
        assert size(match[1], match[2]) == pytest.approx(total, rel=0.05)
        ends = table[[f"{quantity}_{end}" for end in ("base", "low", "high")]]
        unit = " million" if "million" in text[match.end() : match.end() + 10] else None
        assert size(match[3], unit) == pytest.approx(ends.min().min(), rel=0.05)
        assert size(match[4], unit) == pytest.approx(ends.max().max(), rel=0.05)


def test_every_headline_number_has_a_range_that_holds_it(page: dict[str, str]) -> None:
    wanted = {"The answer.": 3, "What one more is worth.": 4, "What it costs.": 5}
    for label, least in wanted.items():
        found = list(RANGED.finditer(page[label]))
        assert len(found) >= least, page[label]
        for match in found:
            value, low, high = (float(match[k].replace(",", "")) for k in (1, 3, 4))
            assert low <= value <= high, match[0]


def test_digits_follow_the_range(page: dict[str, str]) -> None:
    """Two significant digits where the range exceeds 10 % of the value."""
    seen = 0
    for text in page.values():
        for match in RANGED.finditer(text):
            value, low, high = (float(match[k].replace(",", "")) for k in (1, 3, 4))
            if high - low > 0.1 * value:
                digits = match[1].replace(".", "").replace(",", "").lstrip("0").rstrip("0")
                assert len(digits) <= 2, match[0]
                seen += 1
    assert seen >= 8


def test_no_sentence_is_longer_than_forty_words(studied: Run, page: dict[str, str]) -> None:
    for text in [*page.values(), *(line.text for line in answer_lines(studied))]:
        for sentence in re.split(r"(?<=[a-z)0-9%])\. (?=[A-Z(])", text):
            assert len(sentence.split()) <= 42, sentence


def test_the_price_of_a_limit_is_called_marginal_value_with_its_range(studied: Run, page: dict[str, str]) -> None:
    main = main_limit(studied.answer, "2026-Q4")
    assert main is not None
    power = main["stage"] == "power"
    native = main["price"]["lasting"] if power else main["price"]["native"]
    text = page["What one more is worth."]
    assert "marginal value" in text and "at fixed product values" in text and ("and kept" in text) == power
    match = RANGED.search(text)
    assert match is not None
    assert size(match[1], match[2]) == pytest.approx(native, rel=0.05)
    row = studied.table("headline").iloc[0]
    assert row["price_base"] == pytest.approx(native, rel=1e-6) and row["limit"] == main["resource"]


def test_scarcity_of_the_study_is_that_of_the_run(studied: Run) -> None:
    table = studied.results
    rows = table[(table["quantity"] == "scarcity_usd_per_gpu_hour") & (table["period"] == "2026-Q4")]
    printed = float(rows.loc[rows["subject"] == "h100", "value"].iloc[0])
    assert studied.table("headline")["scarcity_base"].iloc[0] == pytest.approx(printed, rel=1e-6)


def test_a_moved_input_lies_on_the_stated_side_of_its_break_even(studied: Run, page: dict[str, str]) -> None:
    text = page["What could overturn it."]
    rows = list(studied.table("headline").head(3).itertuples())
    assert sum(f"({k}) " in text for k in (1, 2, 3)) == len(rows) == 3
    for row in rows:
        at, stage = break_even(row)
        if at is not None:
            side = "above" if at > row.base_input else "below"
            assert re.search(rf"{side} [\d.,]+( \S+)? the costliest stage becomes {stage_title(stage)}", text)
        else:
            assert "no value from" in text


@pytest.mark.parametrize("rolling", [True, False])
def test_a_range_of_another_plan_is_not_printed(studied: Run, rolling: bool, tmp_path: Path) -> None:
    """The study starts from foresight: beside a number that it did not start from there is no range."""
    table = studied.table("headline")
    factor = 1.5 if rolling else 1.0
    tables = {**studied.tables, "headline": table.assign(energised_base=table["energised_base"] * factor)}
    other = Run(studied.manifest, studied.answer, None, tables, studied.solution, studied.resolved)
    text = first_page(Context(other))[0].text
    assert bool(re.search(r"accelerators \([\d.]+ to", text)) is not rolling
