"""The report page: numbers equal the run's tables, all is escaped, nothing is fetched, words agree with the data."""

from __future__ import annotations

import copy
import re
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from reports.answer_text import answer_lines, terminal_lines
from reports.blocks import Section, Table
from reports.context import Context, PlaceholderError
from reports.market_report import Report, make_report, render_html, write_report
from reports.sections.changes import change_words
from reports.wording import stage_title
from scenarios.report_tables import track_record
from scenarios.runner import run
from scenarios.runs import Run

VOID = {"meta", "br", "wbr", "hr", "img", "link", "input", "path", "use", "rect", "stop", "line", "circle"}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The small scenario with the cheap tables, read back from its folder."""
    stored = run("small", out=tmp_path_factory.mktemp("runs"))
    assert stored.folder is not None
    return Run.open(stored.folder)


@pytest.fixture(scope="module")
def course() -> Run:
    return run("course_11_1")


@pytest.fixture(scope="module")
def report(small: Run) -> Report:
    return make_report([small])


@pytest.fixture(scope="module")
def page(report: Report) -> str:
    return render_html(report)


def section(report: Report, name: str) -> Section:
    return next(s for s in report.sections if s.id == name)


def table(report: Report, short: str) -> Table:
    return next(t for s in report.sections for t in s.tables if t.short == short)


class Outline(HTMLParser):
    """Tags left open, ids, addresses, headings and cells of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[tuple[str, str, str]] = []
        self.tags: list[str] = []
        self.cells: list[str] = []
        self.attributes: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.append(dict(attrs))
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "xlink:href", "action", "data", "poster", "srcset"):
                self.addresses.append((tag, name, value or ""))
        if tag == "td":
            self.cells.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self.open and self.open[-1] == tag, f"</{tag}> closes <{self.open[-1] if self.open else 'nothing'}>"
        self.open.pop()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if "td" in self.open:
            self.cells[-1] += data


@pytest.fixture(scope="module")
def outline(page: str) -> Outline:
    parser = Outline()
    parser.feed(page)
    return parser


def test_tags_close_and_ids_are_unique(outline: Outline) -> None:
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))
    assert outline.tags.count("h1") == 1


def test_nothing_is_fetched_and_only_sources_are_linked(outline: Outline, page: str) -> None:
    for tag, name, value in outline.addresses:
        outside = value.startswith(("http", "//"))
        assert not outside or (tag, name) == ("a", "href"), (tag, name, value)
    assert not {"script", "link", "iframe", "img", "object", "embed"} & set(outline.tags)
    assert "@import" not in page and not re.search(r"url\((?!#)", page)
    assert len(page.encode()) < 6_000_000


def test_every_figure_has_an_alternative_text_and_headline_of_ten_words(report: Report, outline: Outline) -> None:
    drawn = [a for t, a in zip(outline.tags, outline.attributes, strict=True) if t == "div" and a.get("role") == "img"]
    assert len(drawn) == len(report.figures) >= 6
    assert all(len(a["aria-label"] or "") > 30 for a in drawn)
    for figure in report.figures:
        assert len(figure.headline.split()) <= 12, figure.headline
        assert figure.headline in figure.alt
        assert len(figure.data) > 0


def test_every_table_cell_is_on_the_page_as_the_report_holds_it(report: Report, outline: Outline) -> None:
    cells = [c for s in report.sections for t in s.tables for row in t.rows for c in row]
    shown = [c.removesuffix("*") for c in outline.cells]
    assert shown == [c.text for c in cells]


def number(text: str) -> float:
    return float(text.replace(",", ""))


def test_yearly_numbers_equal_the_results_at_their_rounding(report: Report, small: Run) -> None:
    results = small.results
    years = sorted({p[:4] for p in results["period"]})
    for quantity in ("finished", "energised"):
        held = table(report, f"{quantity}_by_year")
        scale = 1e3 if "thousand" in held.caption else 1.0
        rows = results[results["quantity"] == quantity]
        for k, year in enumerate(years):
            total = rows.loc[rows["period"].str.startswith(year), "value"].sum() / scale
            printed = held.rows[-1][2 + k].text
            assert number(printed) == pytest.approx(total, abs=0.5 + 1e-9)


def test_inputs_have_the_means_of_this_year_and_the_next(report: Report, small: Run) -> None:
    c = Context(small)
    held = table(report, "inputs")
    first = [k for k, column in enumerate(held.columns) if column.title.startswith("Mean ")]
    years = [held.columns[k].title.removeprefix("Mean ") for k in first]
    assert years == [y for y in (c.this_year, c.next_year) if y]
    several = 0
    for row in held.rows:
        rows = small.inputs[small.inputs["path"] == row[0].text]
        for k, year in zip(first, years, strict=True):
            seen = [rows.loc[(rows["period"] <= p) & (p <= rows["to"]), "value"] for p in c.periods if p[:4] == year]
            mean = pd.concat(seen).mean()
            assert pd.isna(mean) if row[k].value is None else row[k].value == pytest.approx(mean)
            several += row[k].text not in ("same", "-")
    assert several > 20


def test_hours_equal_the_results(report: Report, small: Run) -> None:
    c = Context(small)
    results = small.results
    held = results[(results["quantity"] == "owner_usd_per_gpu_hour") & (results["period"] == c.now)]
    by_title = {c.title(s): v for s, v in zip(held["subject"], held["value"], strict=True)}
    rows = table(report, "hours").rows
    assert len(rows) == len(by_title) > 2
    for row in rows:
        assert row[2].value == pytest.approx(by_title[row[0].text])
        assert number(row[2].text) == pytest.approx(by_title[row[0].text], rel=0.05)
        assert (row[2].value or 0) + (row[4].value or 0) == pytest.approx(row[5].value)


def test_prices_equal_the_answer_and_scale_with_the_lasting_price(report: Report, small: Run) -> None:
    answers = [(p["period"], b) for p in small.json()["periods"] for b in p["binding"]]
    rows = table(report, "prices").rows
    assert len(rows) == len(answers) > 5
    for row, (period, b) in zip(rows, answers, strict=True):
        assert row[0].text == period and row[1].text == b["title"]
        assert row[2].value == pytest.approx(b["price"]["native"])
        usd = b["price"]["usd_per_gpu_hour"]
        if usd is not None and b["stage"] != "power":
            assert row[5].value == pytest.approx(usd)
        if usd is not None and b["stage"] == "power":
            assert row[5].value == pytest.approx(b["price"]["lasting_usd_per_gpu_hour"])


def test_binding_headline_names_the_stage_with_the_largest_rent(report: Report, small: Run) -> None:
    binding = small.table("binding")
    rent = binding.groupby(["period", "stage"])["rent"].sum()
    last = max(binding["period"])
    leader = rent[last].idxmax()
    assert report.lead is not None
    word = {"power": "Power", "hbm": "HBM memory", "packaging": "Packaging", "fab": "Wafers", "rack": "Racks"}[leader]
    assert report.lead.headline.startswith(word)
    spans = Context(small).stage_spans
    assert next(s for s in spans if s.first <= last <= s.last).stage == leader
    stated = next(line.text for line in answer_lines(small) if line.label == "What binds:")
    named = [s for s in spans if s.stage][-1]
    assert stated.startswith(f"The scarcest stage is {stage_title(named.stage)} ")


def test_shares_of_a_contract_count_with_the_stage_of_their_capacity(small: Run) -> None:
    held = small.table("binding")
    contracts = held[held["kind"] == "contract"]
    assert len(contracts) and set(contracts["stage"]) == {"packaging"}
    assert all("share of" in t for t in contracts["title"])
    assert (held["rent"] > 0).all()


def test_rents_of_capacities_and_shares_add_up_to_those_of_the_solution(small: Run) -> None:
    held = small.table("binding")
    results = small.results
    used = results[results["quantity"] == "used"].set_index(["subject", "period"])["value"]
    rents = results[results["quantity"] == "rent"].set_index(["subject", "period"])["value"]
    ours = held.groupby(["period", "stage"])["rent"].sum()
    stages = results[results["quantity"] == "rent"].set_index(["subject", "period"])["stage"]
    live = rents[used.reindex(rents.index) > 0]
    theirs = live.groupby([live.index.get_level_values("period"), stages.reindex(live.index)]).sum()
    theirs = theirs[theirs > 0]
    assert len(theirs) > 8
    pd.testing.assert_series_equal(ours, theirs, check_names=False, rtol=1e-9)


def test_first_page_states_seven_things_and_marks_illustrative_inputs(report: Report) -> None:
    labels = [line.label for line in report.answer]
    assert len(labels) >= 7
    text = " ".join(line.text for line in report.answer)
    weak, *more = re.findall(r"(\d+) of \d+ input numbers rest at least partly on an illustrative assumption", text)
    assert not more
    marked = [row[0] for row in table(report, "inputs").rows if row[0].mark]
    assert len(marked) == int(weak) > 10


def test_answer_of_the_course_example(course: Run) -> None:
    lines = {line.label: line.text for line in answer_lines(course)}
    assert lines["How many:"] == "10,000 accelerators finished in 2026-Q1."
    assert "gives 1 accelerator" in lines["What one more is worth:"]
    assert "CoWoS" in lines["What one more is worth:"]
    assert lines["What binds:"].startswith("The scarcest stage is advanced packaging")
    assert lines["How sure:"].startswith("none of the 12")


def test_terminal_lines_fit_eighty_columns(small: Run, course: Run) -> None:
    for one in (small, course):
        lines = terminal_lines(one)
        assert max(map(len, lines)) <= 80
        assert sum(not line.startswith("  ") for line in lines) == 5


NASTY = "<script>alert(\"x\")</script><img src=x onerror=alert(1)> & 'quoted' =cmd()"


def test_titles_notes_and_facts_are_shown_as_text(course: Run) -> None:
    hurt = copy.copy(course)
    hurt.manifest = copy.deepcopy(course.manifest)
    hurt.answer = copy.deepcopy(course.answer)
    hurt.manifest["title"] = NASTY
    hurt.manifest["notes"] = {"scenario": NASTY, "warnings": []}
    hurt.manifest["facts"] = {
        NASTY: {
            "value": NASTY,
            "unit": "x",
            "kind": "published",
            "source": NASTY,
            "url": "javascript:alert(1)",
            "known_on": "2026-01-01",
        }
    }
    hurt.tables = {
        **course.tables,
        "inputs": course.inputs.assign(note=NASTY),
        "names": course.table("names").assign(title=NASTY),
    }
    text = render_html(make_report([hurt]))
    parser = Outline()
    parser.feed(text)
    assert parser.open == []
    assert not {"script", "img"} & set(parser.tags)
    assert not any("javascript" in value for _, _, value in parser.addresses)
    assert not any(key.startswith("on") for a in parser.attributes for key in a)
    assert "&lt;script&gt;" in text


def test_placeholders_are_refused(course: Run) -> None:
    hurt = copy.copy(course)
    hurt.tables = {**course.tables, "inputs": course.inputs.assign(kind="placeholder")}
    with pytest.raises(PlaceholderError, match=r"rests on 12 placeholder.*replace each by a fact"):
        make_report([hurt])


def test_track_record_tells_hits_and_misses_alike(course: Run) -> None:
    held = track_record()
    scored = copy.copy(course)
    scored.tables = {**course.tables, **held}
    made = make_report([scored])
    rows = table(made, "backtest").rows
    designers = held["backtest"][held["backtest"]["level"] == "designer"]
    assert len(rows) == len(designers) >= 8
    hits = [row for row in rows if row[7].text == "hit"]
    assert len(hits) == int(designers["inside"].sum()) < len(rows)
    stated = next(line.text for line in made.answer if line.label.startswith("How sure"))
    first = designers[designers["origin"] == min(designers["origin"])]
    assert f"{int(first['inside'].sum())} of {len(first)} and " in stated


def test_report_file_figures_and_data(course: Run, tmp_path: Path) -> None:
    said: list[str] = []
    path = write_report([course], tmp_path / "out", progress=said.append)
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>") and said
    saved = sorted((tmp_path / "out" / f"{course.id}-figures").iterdir())
    assert {p.suffix for p in saved} == {".svg", ".png", ".csv"}
    drawn = pd.read_csv(next(p for p in saved if p.name == "accelerators.csv"))
    assert drawn["value"].sum() == 10000
    assert not list((tmp_path / "out").glob(".*.tmp"))


def test_change_since_an_earlier_run(course: Run) -> None:
    more = run("course_11_1", [("resources.cowos.capacity", {"scale": 1.2})])
    assert change_words(Context(course), Context(course)).startswith("Nothing")
    text = change_words(Context(more), Context(course))
    assert "10,000" in text and "12,000 now (+20.0 %)" in text and "CoWoS +2,000 (assumption, 100" in text
    made = make_report([more, course], previous=course)
    assert [s.id for s in made.sections if s.id in ("compare", "changes")] == ["compare", "changes"]
    assert render_html(made).count("12,000") >= 2
