"""The first page says what the run's tables say: stages, periods, shares, volumes, ranges, digits and signs."""

from __future__ import annotations

import copy
import re
from datetime import date
from pathlib import Path

import pandas as pd
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
from scenarios.report_tables import track_record
from scenarios.runner import run
from scenarios.runs import Run, main_limit
from scenarios.yardsticks import yardsticks
from supply.facts import catalog

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
    watch = headline.watched(made.answer, model, now, "h100", "b200")
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
    """Period -> stage as a reader takes it from the sentence about the scarcest stage."""
    names = {stage_title(s).lower(): s for s in [*STAGES, "server", "rack", "test", "datacenter"]} | {"nothing": ""}
    found = re.match(
        r"The scarcest stage is (?P<stage>[\w ]+?) (?:in|from) (?P<first>\d{4}-Q\d)(?: to (?P<last>\S+?))?( on)?"
        r"(?:, except (?P<gaps>[^.]+))?\.(?: Before it: (?P<before>[^.]+)\.)?",
        text,
    )
    assert found, text
    start = periods.index(found["first"])
    single = f" in {found['first']}" in text.partition(".")[0].partition(",")[0]
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
def test_the_sentence_about_the_scarcest_limit_gives_back_every_period(leaders: list[str]) -> None:
    periods = [f"{2024 + k // 4}-Q{k % 4 + 1}" for k in range(len(leaders))]
    read = told(stages_in_words(leaders, periods), periods)
    assert {p: read.get(p, "") for p in periods} == dict(zip(periods, leaders, strict=True))


def test_stages_and_periods_are_those_of_the_table_of_rents(studied: Run, page: dict[str, str]) -> None:
    """All of them in the terminal; the page leaves those before the last one to its figure."""
    rent = studied.table("binding").groupby(["period", "stage"])["rent"].sum()
    periods = [p["period"] for p in studied.answer["periods"]]
    largest = {p: str(rent[p].idxmax()) if p in rent.index.get_level_values(0) else "" for p in periods}
    read = told(answer_lines(studied)[0].text, periods)
    assert {p: read.get(p, "") for p in periods} == largest
    short = told(page[STOPS][page[STOPS].index("The scarcest stage is") :], periods)
    assert short and all(largest[p] == stage for p, stage in short.items())
    assert "Before it" not in page[STOPS]


def test_shares_are_those_of_the_year(studied: Run, page: dict[str, str]) -> None:
    held = studied.table("binding")
    rent = held[held["period"].str.startswith("2026")].groupby("stage")["rent"].sum().sort_values(ascending=False)
    shares = rent / rent.sum()
    found = re.search(r"In 2026 ([\w ]+) has (\d+)\N{NO-BREAK SPACE}%[^.]* of that value", page[STOPS])
    assert found and found[1] == stage_title(str(shares.index[0]))
    assert int(found[2]) == round(100 * shares.iloc[0])
    rest = page[STOPS][found.end() :].partition(". ")[0]
    assert [s for s in shares.index[1:] if stage_title(s) in rest] == [s for s in shares.index[1:] if shares[s] >= 0.05]


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
        for sentence in re.split(r"(?<=[A-Za-z)0-9%])\. (?=[A-Z(])", text):
            assert len(sentence.split()) <= 42, sentence


def test_the_price_of_a_limit_is_called_marginal_value_with_its_range(studied: Run, page: dict[str, str]) -> None:
    main = main_limit(studied.answer, "2026-Q4")
    assert main is not None
    power = main["stage"] == "power"
    native = main["price"]["lasting"] if power else main["price"]["native"]
    text = page["What one more is worth."]
    assert (
        "marginal value" in text
        and "at fixed product values" in text
        and bool(re.search(r"from 2026-Q4 to 20\d\d, has", text)) == power
    )
    assert "Nobody pays that today" in text
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
    newest = float(rows.loc[rows["subject"] == "b200", "value"].iloc[0])
    held = studied.table("headline")
    assert held["newest"].iloc[0] == "b200" and newest > printed
    assert held["newest_scarcity_base"].iloc[0] == pytest.approx(newest, rel=1e-6)
    assert held["h100e_base"].iloc[0] == pytest.approx(total(studied, "energised_h100e", "2026"), rel=1e-9)


def test_a_moved_input_lies_on_the_stated_side_of_its_break_even(studied: Run, page: dict[str, str]) -> None:
    text = page["What could overturn it."]
    rows = list(studied.table("headline").head(3).itertuples())
    assert sum(f"({k}) " in text for k in (1, 2, 3)) == len(rows) == 3
    for row in rows:
        at, stage = break_even(row)
        if at is not None:
            side = "above" if at > row.base_input else "below"
            assert re.search(rf"{stage_title(stage)} scarcest {side} [\d.,]+", text)
        else:
            assert "no change of stage from" in text


@pytest.mark.parametrize("rolling", [True, False])
def test_a_range_of_another_plan_is_not_printed(studied: Run, rolling: bool, tmp_path: Path) -> None:
    """The study starts from foresight: beside a number that it did not start from there is no range."""
    table = studied.table("headline")
    factor = 1.5 if rolling else 1.0
    tables = {**studied.tables, "headline": table.assign(energised_base=table["energised_base"] * factor)}
    other = Run(studied.manifest, studied.answer, None, tables, studied.solution, studied.resolved)
    text = first_page(Context(other))[0].text
    assert bool(re.search(r"accelerators \([\d.]+ to", text)) is not rolling


def seen_on(studied: Run, day: str, **tables: pd.DataFrame) -> Context:
    """The run as a reader of another day sees it, some of its tables replaced."""
    manifest = {**studied.manifest, "as_of": day}
    made = Run(manifest, studied.answer, None, {**studied.tables, **tables}, studied.solution, studied.resolved)
    return Context(made)


def lines(c: Context) -> dict[str, str]:
    return {line.label: line.text for line in first_page(c)}


def with_power_only(studied: Run, **tables: pd.DataFrame) -> Context:
    """The run with the limits of power as the only ones that bind now."""
    c = seen_on(studied, "2026-11-30", **tables)
    c.run.answer = copy.deepcopy(studied.answer)
    for period in c.run.answer["periods"]:
        period["binding"] = [b for b in period["binding"] if b["stage"] == "power"]
    return c


def total(run_: Run, quantity: str, when: str) -> float:
    rows = run_.results[run_.results["quantity"] == quantity]
    return float(rows.loc[rows["period"].str.startswith(when), "value"].sum())


def test_two_years_tell_counts_computing_and_what_was_made_before(studied: Run) -> None:
    text = lines(seen_on(studied, "2025-11-15"))["The answer."]
    for year in ("2025", "2026"):
        part = text[text.index(f"In {year}") :]
        numbers = [size(n, u) for n, u in re.findall(r"(\d[\d,.]*)( million)", part)][:3]
        wanted = [total(studied, q, year) for q in ("energised", "energised_h100e", "finished")]
        assert numbers == pytest.approx(wanted, rel=0.05)
    more = [y for y in ("2025", "2026") if total(studied, "energised", y) > 1.05 * total(studied, "finished", y)]
    assert ("the rest was made earlier" in text) == bool(more)


def test_more_energised_than_finished_is_explained(studied: Run) -> None:
    results = studied.results.copy()
    late = (results["quantity"] == "finished") & results["period"].str.startswith("2026")
    results.loc[late, "value"] *= 0.5
    text = lines(seen_on(studied, "2025-11-15", results=results))["The answer."]
    assert "In 2026 more are energised than finished; the rest was made earlier." in text


def test_computing_that_grows_while_the_count_stands_still_is_explained(studied: Run) -> None:
    results = studied.results.copy()
    late = (results["quantity"] == "energised") & results["period"].str.startswith("2026")
    results.loc[late, "value"] *= total(studied, "energised", "2025") / total(studied, "energised", "2026")
    text = lines(seen_on(studied, "2025-11-15", results=results))["The answer."]
    rise = total(studied, "energised_h100e", "2026") / total(studied, "energised_h100e", "2025") - 1
    found = re.search(r"Newer products lift computing by ([\d.]+)\N{NO-BREAK SPACE}%", text)
    assert rise > 0.1 and found and float(found[1]) == pytest.approx(100 * rise, rel=0.05)


def test_stages_in_an_hour_are_those_of_the_figure(studied: Run, page: dict[str, str]) -> None:
    held = studied.table("binding")
    rent = held.groupby(["period", "stage"])["rent"].sum().unstack(fill_value=0.0)
    share = rent.div(rent.sum(axis=1), axis=0)
    scarce = re.search(r"scarcity of ([\w ]+) adds", page["What it costs."])
    assert scarce
    named = [s for s in share.columns if stage_title(s) in scarce[1]]
    assert named and all(share.loc["2026-Q4", s] > 0.005 for s in named)


def test_why_power_is_short_and_what_a_buyer_lacks(studied: Run) -> None:
    binding = studied.table("binding")
    only = lines(seen_on(studied, "2026-11-30", binding=binding[binding["stage"] == "power"]))[STOPS]
    free, built = (total(studied, q, "2026-Q4") / 1e3 for q in ("without_power_rows_mw", "built_mw"))
    found = re.search(r"chips could fill ([\d.]+)\sGW in 2026-Q4, not ([\d.]+)\sGW", only)
    assert found and [float(found[1]), float(found[2])] == pytest.approx([free, built], rel=0.05)
    assert "powered places are short; chips alone add little" in only
    chips = lines(seen_on(studied, "2026-11-30", binding=binding[binding["stage"] != "power"]))[STOPS]
    assert "chips are short; powered places alone add little" in chips and "chips could fill" not in chips


def test_scarcity_of_power_is_told_for_the_product_whose_cost_is_told(studied: Run) -> None:
    resolved = studied.resolved
    assert resolved is not None
    page = lines(with_power_only(studied, **yardsticks(resolved, date(2026, 11, 30))))
    text = page["What one more is worth."]
    assert re.search(r"from 2026-Q4 to 20\d\d, has", text) and "per GPU-hour of NVIDIA H100" in text
    usd = [float(n) for n in re.findall(r"USD ([\d.]+)(?: \([^)]+\))? per [Gmc]", text)]
    at = studied.results[(studied.results["period"] == "2026-Q4") & (studied.results["sku"] == "h100")]
    held = at.drop_duplicates("quantity").set_index("quantity")["value"]
    share = held["scarcity_usd_per_gpu_hour"] / held["usd_per_gpu_hour"]
    agent = next(
        t for t in studied.answer["tasks"] if (t["sku"], t["period"], t["task"]) == ("h100", "2026-Q4", "coding")
    )
    wanted = [
        held["scarcity_usd_per_gpu_hour"],
        share * held["usd_per_mtoken_output"],
        share * (agent["usd_per_verified_task"] - agent["review_usd"]),
    ]
    assert usd == pytest.approx(wanted, rel=0.05)
    assert "The facility, not deducted, costs USD 18 million (15 to 20 million) per MW to build" in text
    assert "Goldman Sachs" in text


def test_the_yardstick_is_the_fact_and_only_once_it_is_known(studied: Run) -> None:
    resolved = studied.resolved
    assert resolved is not None
    row = yardsticks(resolved, date(2026, 11, 30))["yardsticks"].iloc[0]
    fact = catalog()[row["fact_ids"]]
    assert (row["value"], row["low"], row["high"], row["origin"]) == (fact.number, *fact.range, "Goldman Sachs")
    assert row["stage"] == "power" and fact.unit == "USD/MW"
    assert yardsticks(resolved, date(2025, 1, 1)) == {}


def test_the_newest_product_stands_beside_the_reference_in_both_years(studied: Run) -> None:
    c = seen_on(studied, "2025-11-15")
    text = lines(c)["What it costs."]
    sums = studied.results[studied.results["quantity"] == "energised"]
    newest = str(sums[sums["period"].str.startswith("2026")].groupby("subject")["value"].sum().idxmax())
    assert f"{c.short(newest)}, most energised in 2026" in text
    words = {"h100": r"In 2026-Q4 an hour of NVIDIA H100 costs USD ([\d.]+) \("}
    words[newest] = r"with scarcity in 2025-Q4, USD ([\d.]+) \([^)]+\) in 2026-Q4"
    for sku, said in words.items():
        row = c.value_at("usd_per_gpu_hour", sku, "2026-Q4")
        found = re.search(said, text)
        assert row is not None and found and float(found[1]) == pytest.approx(row["value"], rel=0.05)


def test_an_assumed_amount_lends_no_digits_to_a_task(page: dict[str, str]) -> None:
    task = next(s for s in page["What it costs."].split(". ") if s.startswith("A coding task"))
    assert "(assumed: USD 10)" in task and not re.search(r"10\.\d", task)


def test_how_sure_stands_in_one_place_and_says_what_the_record_says(studied: Run) -> None:
    held = track_record()
    text = lines(seen_on(studied, "2026-11-30", **held))["How sure we are."]
    yearly = held["backtest_summary"]
    yearly = yearly[(yearly["level"] == "designer") & (yearly["span"] == "year")]
    assert yearly["hits"].sum() < 0.9 * yearly["scored"].sum()
    assert "no confidence intervals" in text and "So true errors exceed the ranges" in text
    hits = " and ".join(f"{int(row.hits)} of {int(row.scored)}" for row in yearly.itertuples())
    assert f"Plans made with the knowledge of 2024 and 2025 held {hits} yearly totals" in text
    scores = re.search(r"scored ([\d.]+) and ([\d.]+) times the last value held", text)
    assert scores
    naive = (yearly["score"] / yearly["score_last"]).tolist()
    assert [float(n) for n in scores.groups()] == pytest.approx(naive, rel=0.05)
    missed = held["backtest"]
    missed = missed[(missed["level"] == "designer") & (missed["span"] == "year") & ~missed["inside"].astype(bool)]
    low = missed[missed["outcome"] > missed["high"]]
    laid = low["stage"].value_counts()
    words = f"{len(low)} of {len(missed)} misses were too low, {laid.iloc[0]} for want of {stage_title(laid.index[0])}"
    assert words in text
    good = {**held, "backtest_summary": held["backtest_summary"].assign(hits=held["backtest_summary"]["scored"])}
    assert "true errors" not in lines(seen_on(studied, "2026-11-30", **good))["How sure we are."]
    whole = " ".join(lines(seen_on(studied, "2026-11-30")).values())
    assert whole.count("illustrative assumption") == 1 and "--" not in whole


def test_the_terminal_says_what_the_page_says(studied: Run, page: dict[str, str]) -> None:
    whole = " ".join(page.values()).lower()
    for line in answer_lines(studied)[:4]:
        for sentence in line.text.split(". "):
            assert sentence.lower().rstrip(".") in whole or sentence.startswith("Before it")


def test_all_limits_together_and_the_nearest_break_even_are_told(studied: Run) -> None:
    """Power leads, its joint ends change the stage, and its break-even lies 2 % beyond its range."""
    table = studied.table("headline").assign(flips=False, flips_at=float("nan"), break_at=float("nan"))
    table.loc[0, "title"] = "Energised AI power in United States"
    table.loc[0, ["base_input", "low_input", "high_input", "break_at"]] = [20.0, 15.0, 25.0, 25.5]
    table["break_stage"] = "packaging"
    joint = pd.DataFrame(
        {
            "stage_base": "power",
            "end": ["low", "high"],
            "limits": 4,
            "stage": ["power", "packaging"],
            "energised": [5e6, 12e6],
        }
    )
    text = lines(seen_on(studied, "2026-11-30", headline=table, headline_joint=joint))["What could overturn it."]
    assert "one source) alone changes the scarcest stage of 2026; US AI power comes within 2\N{NO-BREAK SPACE}%" in text
    assert "energised power (4) at their high ends 12 million are energised and advanced packaging is scarcest" in text
    assert "at their low ends 5.0 million, energised power" in text
    assert "advanced packaging scarcest above 25.5 GW" in text
    assert "plan with foresight" not in text
    other = table.assign(energised_base=table["energised_base"] * 1.2)
    assert (
        "plan with foresight, which" in lines(seen_on(studied, "2026-11-30", headline=other))["What could overturn it."]
    )


@pytest.mark.parametrize(
    ("price", "words"), [(0.5, "below owner cost"), (2.5, "below the sum"), (9.0, "above the sum")]
)
def test_the_contract_price_stands_beside_the_owner_cost(studied: Run, price: float, words: str) -> None:
    rows = [("H100", "list", 4.0, 7.0), ("H100", "contract", price, 2.0), ("GB200", "contract", 9.9, 5.0)]
    market = pd.DataFrame(rows, columns=["chip", "price_kind", "usd_per_gpu_hour", "quotes"])
    market = market.assign(low=market["usd_per_gpu_hour"] - 0.1, high=market["usd_per_gpu_hour"] + 0.1)
    text = lines(seen_on(studied, "2026-11-30", market=market))["What it costs."]
    sentence = next(s for s in text.split(". ") if s.startswith("Contracts trade"))
    assert f"USD {price:.1f}" in sentence and "2 quotes" in sentence and words in sentence


def test_contract_shares_that_bind_lines_with_room_are_told(studied: Run) -> None:
    text = lines(seen_on(studied, "2026-11-30"))[STOPS]
    found = re.search(r"most of what binds in advanced packaging: .* at most (\d+)\N{NO-BREAK SPACE}% used", text)
    use = studied.results[(studied.results["quantity"] == "utilisation") & (studied.results["subject"] == "cowos")]
    held = studied.table("binding")
    held = held[(held["kind"] == "contract") & held["period"].str.startswith("2026")]
    most = use[use["period"].isin(held["period"])]["value"].max()
    assert found and int(found[1]) == round(100 * most) < 100
    full = studied.results.copy()
    full.loc[(full["quantity"] == "utilisation") & (full["subject"] == "cowos"), "value"] = 1.0
    assert "contract shares" not in lines(seen_on(studied, "2026-11-30", results=full))[STOPS]


def test_designers_of_whom_nothing_is_made_and_products_that_are_retired_are_named(studied: Run) -> None:
    results = studied.results.copy()
    late = results["period"].str.startswith("2026")
    amd = results["subject"].isin(["mi300x"]) & late & (results["quantity"] == "finished")
    hours = results["quantity"].isin(["owner_usd_per_gpu_hour", "usd_per_gpu_hour"])
    results = results[~(hours & (results["subject"] == "h100") & late)]
    results.loc[amd.reindex(results.index, fill_value=False), "value"] = 0.0
    page = lines(seen_on(studied, "2025-11-15", results=results))
    assert "nothing of AMD is made in 2026" in page["The answer."]
    assert re.search(r"By 2026-Q4 the plan has retired every NVIDIA H100", page["What it costs."])
