"""Editions of the report: choice files, translations, and bands from a stored sample."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reports.catalogue import english, read_catalogue
from reports.choices import apply_choices, read_choices
from reports.context import Context
from reports.draws import SampleError, add_draws, binding_shares, draws_section, open_draws, quantiles
from reports.market_report import Report, make_report, render_html
from scenarios.errors import ScenarioError
from scenarios.runner import run
from scenarios.runs import Run
from scenarios.sample import Sample, sample

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture(scope="module")
def small() -> Run:
    return run("small")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty draws of the small scenario, stored."""
    made = sample("small", 20, out=tmp_path_factory.mktemp("draws"))
    assert made.folder is not None
    return made.folder


@pytest.fixture(scope="module")
def usual(small: Run) -> Report:
    return make_report([small])


def fresh(report: Report) -> Report:
    """A copy whose titles can be changed; drawings and rows are shared."""
    sections = [replace(s, tables=[replace(t) for t in s.tables]) for s in report.sections]
    return replace(report, sections=sections, words=dict(report.words))


def write(folder: Path, text: str, name: str = "choices.yaml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_an_edition_has_its_sections_title_logo_and_notes(usual: Report, tmp_path: Path) -> None:
    (tmp_path / "logo.png").write_bytes(PIXEL)
    text = "title: Outlook <i>x</i>\nlogo: logo.png\nnotes: ['<img src=x onerror=alert(1)>', '=cmd()']\n"
    path = write(tmp_path, text + "sections: [supply, {id: binds, title: 'Limits & prices'}, inputs]\n")
    made = apply_choices(fresh(usual), read_choices(path))
    assert [s.id for s in made.sections] == ["notes", "supply", "binds", "inputs"]
    page = render_html(made)
    assert "<h1>Outlook &lt;i&gt;x&lt;/i&gt;</h1>" in page and "<h2>Limits &amp; prices</h2>" in page
    assert "<img src=x" not in page and "&lt;img src=x onerror=alert(1)&gt;" in page
    assert f'<img src="data:image/png;base64,{base64.b64encode(PIXEL).decode()}" alt=""' in page
    assert "Sections left out by choice: " in page and "Power;" in page
    assert made.answer == usual.answer  # the first page is no matter of choice


def test_all_problems_of_a_choice_file_come_at_once(tmp_path: Path) -> None:
    (tmp_path / "logo.png").write_text("not a picture")
    path = write(
        tmp_path,
        "titel: x\ntitle: 7\nlogo: logo.png\nnotes: [a, 3]\nsections: [bindz, supply, supply, 7]\ntext: no.yaml\n",
    )
    with pytest.raises(ScenarioError) as caught:
        read_choices(path)
    said = [str(p).removeprefix(str(path)) for p in caught.value.problems]
    for line, words in ((1, "titel: no such key; did you mean title"), (2, "title: 7 is not a text"),
                        (3, "no PNG, JPEG, GIF or SVG"), (4, "notes.1: 3 is not a text"), (5, "did you mean binds"),
                        (5, "given twice"), (5, "7: write a section name"), (6, "no file 'no.yaml'")):  # fmt: skip
        assert any(s.startswith(f":{line}:") and words in s for s in said), (line, words, said)
    assert len(said) == 8


def test_a_section_that_the_run_cannot_fill_is_an_error(usual: Report, tmp_path: Path) -> None:
    path = write(tmp_path, "sections: [market, supply, draws]\n")
    with pytest.raises(ScenarioError) as caught:
        apply_choices(fresh(usual), read_choices(path))
    assert [p.path for p in caught.value.problems] == ["sections.draws", "sections.market"]
    assert "--report" in str(caught.value)


def test_make_report_takes_a_choice_file(tmp_path: Path) -> None:
    made = make_report(
        [run("course_11_1")], choices=read_choices(write(tmp_path, "title: Course\nsections: [binds]\n"))
    )
    assert made.title == "Course" and [s.id for s in made.sections] == ["binds", "notes"]


def test_labels_of_the_first_page_are_words_of_the_catalogue(usual: Report) -> None:
    assert {line.label for line in usual.answer} <= set(english().group("first_page").values())


def test_a_translation_changes_words_and_keeps_numbers(usual: Report, small: Run, tmp_path: Path) -> None:
    write(tmp_path, "language: de\nsections: {supply: Wie viele}\nsupply: {loose_split: Nur Summen lesen.}\n"
          "numbers: {million: '{n} Mio.'}\n"
          "tables: {finished_by_year: {caption: 'Fertig, {unit}', columns: 'Produkt | Entwickler | {years}'}}\n",
          "de.yaml")  # fmt: skip
    made = make_report([small], choices=read_choices(write(tmp_path, "text: de.yaml\n")))
    ours = next(s for s in made.sections if s.id == "supply")
    theirs = next(s for s in usual.sections if s.id == "supply")
    assert ours.title == "Wie viele" and "Nur Summen lesen." in ours.paragraphs
    assert ours.tables[0].caption.startswith("Fertig, ") and ours.tables[0].columns[0].title == "Produkt"
    assert ours.tables[0].rows == theirs.tables[0].rows
    assert "Mio." in made.answer[0].text and "million" not in made.answer[0].text
    assert '<html lang="de">' in render_html(made)
    assert english()["sections.supply"] == "How many accelerators"


def test_a_translation_changes_headlines_and_subtitles_of_figures(usual: Report, small: Run, tmp_path: Path) -> None:
    text = """language: de
stage_heads: {power: Strom}
figures:
  accelerators: {two_energised: "In Betrieb: {first} ({year}), {last} ({end})", alt: "Stapel. {headline}."}
  binding_timeline:
    breaks: "{stage} knapp ab {since}"
    before: "{stage} knapp ab {since}, vorher {earlier}"
    throughout: "{stage} immer knapp"
  utilisation: {subtitle: "Auslastung; {scope}"}
"""
    write(tmp_path, text, "de.yaml")
    made = make_report([small], choices=read_choices(write(tmp_path, "text: de.yaml\n")))
    ours, theirs = ({f.id: f for f in report.figures} for report in (made, usual))
    numbers = [re.findall(r"[\d.]+", cards["accelerators"].headline) for cards in (ours, theirs)]
    assert ours["accelerators"].headline.startswith("In Betrieb: ") and numbers[0] == numbers[1]
    assert ours["accelerators"].alt == f"Stapel. {ours['accelerators'].headline}."
    assert "knapp" in ours["binding_timeline"].headline and "Strom" in ours["binding_timeline"].svg
    assert ours["utilisation"].subtitle.startswith("Auslastung; ")
    assert "In Betrieb: " in render_html(made)


def test_all_problems_of_a_translation_come_at_once(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "language: 5\nsektions: {a: b}\nsections: {supplies: x, power: ''}\n"
        "tables: {hours: {caption: 'in {year}', columns: A | B}}\n",
    )
    with pytest.raises(ScenarioError) as caught:
        read_catalogue(path)
    said = str(caught.value)
    for words in ("5 is not a language code", "did you mean sections", "did you mean supply", "write the words",
                  "{year} is not filled in", "keep the columns"):  # fmt: skip
        assert words in said
    assert len(caught.value.problems) == 6


# ---- draws


def hand_made() -> Sample:
    """Four draws of two limits and one product over two periods."""
    names = ["rent:fab@2026-Q1", "rent:cowos@2026-Q1", "energised:a@2026-Q1", "energised:b@2026-Q1"]
    values = np.array([[1.0, 0, 1, 10], [1, 1, 2, 20], [0, 2, 3, 30], [0, 0, 4, 40]])
    return Sample("small", "0" * 64, names, values, {}, np.zeros(4))


def test_binding_shares_count_draws_by_hand() -> None:
    found = binding_shares(hand_made(), {"fab": "fab", "cowos": "packaging"}, ["2026-Q1"])
    assert dict(zip(found["stage"], found["share"], strict=True)) == {"fab": 0.5, "packaging": 0.5, "nothing": 0.25}


def test_quantiles_are_of_the_sum_over_products() -> None:
    table, paths = quantiles(hand_made(), "energised", ["2026-Q1"])
    assert table["q50"].tolist() == [27.5] and set(paths.iloc[0]) <= {11, 22, 33, 44}
    with pytest.raises(SampleError, match="no finished"):
        quantiles(hand_made(), "finished", ["2026-Q1"])


def test_section_of_draws_says_of_draws_and_matches_the_sample(small: Run, drawn: Path) -> None:
    c = Context(small)
    held = open_draws(drawn, c)
    section = draws_section(c, held)
    assert "of draws" in section.paragraphs[0] and "probab" not in " ".join(section.paragraphs)
    assert drawn.name in section.paragraphs[1]
    median = float(np.median(held.column(f"energised:*@{c.periods[-1]}")))
    assert section.tables[0].rows[-1][3].value == pytest.approx(median, rel=1e-12)
    assert all(len(f.headline.split()) <= 10 and f.alt for f in section.figures)


def test_with_draws_the_first_sentence_carries_their_band(usual: Report, small: Run, drawn: Path) -> None:
    c = Context(small)
    held, made = open_draws(drawn, c), fresh(usual)
    made.answer = list(usual.answer)
    add_draws(made, c, held)
    low = float(np.quantile(held.column(f"energised:*@{c.this_year}"), 0.05))
    assert f"(90 % of draws: {low / 1e6:.2g} to" in made.answer[0].text and "over 20 draws" in made.answer[0].text
    assert [s.id for s in made.sections][:3] == ["rule", "binds", "draws"]
    absent = [r[0].text for s in made.sections for t in s.tables for r in t.rows if t.short == "limits_of_this_edition"]
    assert absent and "Shares of draws" not in absent


def test_a_sample_of_another_scenario_is_refused(drawn: Path) -> None:
    with pytest.raises(SampleError, match="'small', but the run is of 'course_11_1'; make one with"):
        make_report([run("course_11_1")], sample=drawn)
