"""Every number of the page carries its value, is rounded from it, and leads to a formula or to a source."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

import pytest

from reports.catalogue import english
from reports.context import Context
from reports.market_report import make_report, render_html
from reports.sections.changes import causes_of, change_words, changes_section
from reports.spans import Number, pieces
from reports.traces import FORMULAS, of_section, of_table
from scenarios.runner import run
from scenarios.runs import Run

SCALES = {"billion": 1e9, "million": 1e6, "thousand": 1e3, "%": 0.01}
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
#: Numbers in names and times, which are no results: periods, dates, products, models, identities.
NAMES = re.compile(
    r"HiGHS [\d.]+|"
    r"\d{4}-(?:Q\d|\d\d-\d\d|\d\d)|\b20\d\d\b|[A-Za-z_]+[-.]?\d[\w.-]*|\d+(?:\.\d+)*[A-Za-z]\w*|[0-9a-f]{12,64}|\b\d[\w.]*(?=-\w)"
)


@dataclass
class Page(HTMLParser):
    """Tagged numbers with their values, untagged text by tag, ids and addresses."""

    data: list[tuple[str, float]] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    stack: list[str] = field(default_factory=list)
    value: float | None = None
    section: str = ""

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = dict(attrs)
        if tag == "data":
            self.value = float(held["value"] or "nan")
        if held.get("id"):
            self.ids.add(str(held["id"]))
        if tag == "a":
            self.links.append(held.get("href") or "")
        if tag == "section":
            self.section = str(held.get("id"))
        if tag in ("p", "svg", "table", "dl", "footer", "style"):
            self.stack.append(tag)
        if tag == "p":
            self.loose.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "data":
            self.value = None
        if self.stack and self.stack[-1] == tag:
            self.stack.pop()

    def handle_data(self, data: str) -> None:
        if self.value is not None:
            self.data.append((data, self.value))
        elif self.stack == ["p"]:
            self.loose[-1] += data


@pytest.fixture(scope="module")
def small() -> Run:
    return run("small")


@pytest.fixture(scope="module")
def earlier() -> Run:
    edits = [("resources.cowos.capacity", {"scale": 0.9}), ("costs.power_used_of_peak", {"scale": 1.03})]
    return run("small", edits)


@pytest.fixture(scope="module")
def page(small: Run, earlier: Run) -> Page:
    held = Page()
    held.feed(render_html(make_report([small, earlier], previous=earlier)))
    return held


def printed(text: str) -> tuple[float, float] | None:
    """The number that a text shows and half a unit of its last digit; None for words such as `same` or a dash."""
    found = NUMBER.search(text)
    if found is None:
        return None
    digits = found[0].replace(",", "")
    word = text[found.end() :].strip("\N{NO-BREAK SPACE} ").split(" ")[0]
    scale = SCALES.get(word, 1.0)
    digits, _, power = digits.partition("e")
    scale *= 10.0 ** int(power or 0)
    decimals = len(digits.partition(".")[2])
    zeros = len(digits) - len(digits.rstrip("0")) if "." not in digits else 0
    return float(digits) * scale, 0.5 * scale * 10.0 ** (zeros - decimals)


def test_every_tagged_number_is_its_value_at_the_printed_rounding(page: Page) -> None:
    wrong, seen = [], 0
    for text, value in page.data:
        shown = printed(text)
        if shown is None:
            continue
        seen += 1
        near = [
            value * k for k in (1, 100, 1e-3, 1e-6)
        ]  # columns in percent, thousands and millions say so in their title
        if min(abs(shown[0] - v) for v in near) > shown[1] * (1 + 1e-6):
            wrong.append((text, value))
    assert seen > 1500
    assert not wrong, wrong[:10]


def test_numbers_in_sentences_are_tagged_or_words_of_the_catalogue(page: Page, small: Run) -> None:
    known = {n for words in english().words.values() for n in NUMBER.findall(words)}
    names = " ".join(map(str, small.table("names")["title"])) + " ".join(
        str(f["source"]) for f in Context(small).facts.values()
    )
    known |= set(NUMBER.findall(names + str(small.manifest["notes"]["scenario"])))
    loose = [(n, p[:90]) for p in page.loose for n in NUMBER.findall(NAMES.sub(" ", p)) if n not in known]
    assert not loose, loose[:10]
    assert any(NUMBER.search(p) for p in page.loose)


def test_every_table_and_section_of_numbers_leads_to_its_formula(small: Run) -> None:
    report = make_report([small, small], previous=small)
    for section in report.sections:
        names = of_section(section)
        for table in section.tables:
            numbers = any(cell.value is not None for row in table.rows for cell in row)
            assert of_table(table.short) or not numbers, f"no formula behind table {table.short or table.caption!r}"
            names += of_table(table.short)
        assert set(names) <= set(FORMULAS)
    assert set(FORMULAS) == {k.partition(".")[0] for k in english().group("made")}


def test_sentences_of_changes_hold_the_numbers_of_both_runs(small: Run, earlier: Run) -> None:
    c, before = Context(small), Context(earlier)
    causes = causes_of(c, before)
    output = f"energised:*@{c.this_year}"
    now, then = (x.total("energised", c.this_year) for x in (c, before))
    told = [p.value for p in pieces(change_words(c, before, causes)) if isinstance(p, Number)]
    parts = sorted((x.parts[output] for x in causes.causes), key=lambda v: -abs(v))[:3]
    assert told[:3] == pytest.approx([then, now, now / then - 1])
    assert len(parts) > 1 and set(parts) <= set(told)
    table = next(t for t in changes_section(c, before, causes).tables if t.short == "changes")
    changes = {row[0].text: row[3].value for row in table.rows}
    assert changes[f"Energised {c.this_year}"] == pytest.approx(now / then - 1)


def test_links_within_the_page_arrive(page: Page) -> None:
    inner = [x[1:] for x in page.links if x.startswith("#")]
    assert len(inner) > 40
    assert set(inner) <= page.ids
    assert {f"made-{name}" for name in FORMULAS} <= page.ids


def test_cells_of_costs_are_the_numbers_of_the_run(small: Run) -> None:
    report, c = make_report([small]), Context(small)
    held = small.results[small.results["period"] == c.now]
    tables = {t.short: t for s in report.sections for t in s.tables}
    for short, quantities in (("tokens", ["uncached_input", "cache_read", "output"]), ("tasks", None)):
        names = [f"usd_per_mtoken_{q}" for q in quantities] if quantities else ["usd_per_verified_task"]
        theirs = set(held.loc[held["quantity"].isin(names), "value"])
        ours = [cell.value for row in tables[short].rows for cell in row if cell.value is not None]
        assert ours and set(ours) <= theirs
