"""The PDF: the words and numbers of the page, nothing read as markup, nothing outside its margins."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib.image as mpimg
import numpy as np
import pypdf
import pytest

from reports.blocks import Section, Table
from reports.market_report import Report, make_report, render_html
from reports.pdf import LONGEST_TABLE, RANKED_ROWS, MissingExtraError, column_widths, render_pdf, write_pdf
from scenarios.runner import run
from scenarios.runs import Run


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run("small", out=tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def report(small: Run) -> Report:
    return make_report([small])


@pytest.fixture(scope="module")
def pdf(report: Report) -> bytes:
    return render_pdf(report)


def squeezed(text: str) -> str:
    """Text without the spaces and joins that a page break or a line break puts in."""
    return re.sub(r"[\s\u2060\u00ad-]+", "", text).replace("\u00a0", "")


@pytest.fixture(scope="module")
def words(pdf: bytes) -> str:
    return squeezed(" ".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(pdf)).pages))


def test_the_first_page_holds_the_statements_and_the_first_figure_and_no_more(report: Report, pdf: bytes) -> None:
    pages = [squeezed(page.extract_text()) for page in pypdf.PdfReader(io.BytesIO(pdf)).pages]
    assert all(squeezed(f"{line.label} {line.text}") in pages[0] for line in report.answer)
    assert report.lead is not None and squeezed(report.lead.headline) in pages[0]
    assert squeezed(report.sections[0].title) not in pages[0] and squeezed(report.sections[0].title) in pages[1]


def printed(report: Report) -> list[Table]:
    return [t for s in report.sections for t in s.tables if not t.folded or len(t.rows) <= LONGEST_TABLE]


def test_answer_sections_and_captions_are_all_there(report: Report, words: str) -> None:
    for line in report.answer:
        assert squeezed(line.label) in words and squeezed(line.text) in words
    for section in report.sections:
        assert squeezed(section.title) in words
        assert all(squeezed(p) in words for p in section.paragraphs)
        assert all(squeezed(f.headline) in words for f in section.figures)
    assert all(squeezed(t.caption) in words for t in printed(report))


def test_numbers_are_those_of_the_page_and_of_the_run(small: Run, report: Report, words: str) -> None:
    page = squeezed(re.sub(r"<[^>]+>", " ", render_html(report)))
    count = 0
    for table in printed(report):
        for row in table.rows:
            for cell, column in zip(row, table.columns, strict=True):
                if column.number and cell.value is not None:
                    assert squeezed(cell.text) in words and squeezed(cell.text) in page
                    count += 1
    assert count > 150
    finished = next(t for t in printed(report) if t.caption.startswith("Finished accelerators by year"))
    held = small.results[small.results["quantity"] == "finished"]
    for row in finished.rows[:-1]:
        names = small.table("names")
        sku = names.loc[(names["kind"] == "sku") & (names["title"] == row[0].text), "id"].iloc[0]
        for cell, column in zip(row[2:], finished.columns[2:], strict=True):
            mine = held[(held["sku"] == sku) & held["period"].str.startswith(column.title)]["value"].sum()
            assert (cell.value or 0.0) == pytest.approx(mine / 1e3, rel=1e-12)


def test_figures_stand_in_their_own_section(report: Report, words: str) -> None:
    after_contents = words[words.rindex(squeezed(report.sections[0].title)) :]
    place = 0
    for section in report.sections:
        for text in (section.title, *section.paragraphs, *(f.headline for f in section.figures)):
            place = after_contents.index(squeezed(text), place)
    assert sum(len(s.figures) for s in report.sections) >= 5


def test_contents_name_every_section_and_its_page(report: Report, pdf: bytes) -> None:
    pages = [squeezed(page.extract_text()) for page in pypdf.PdfReader(io.BytesIO(pdf)).pages]
    listed = dict(re.findall(r"([^.]+?)\.{3,}(\d+)", pages[1].removeprefix("Contents")))
    assert list(listed) == [squeezed(s.title) for s in report.sections]
    assert all(title in pages[int(number) - 1] for title, number in listed.items())


def test_hash_and_whole_source_line_are_printed_once(report: Report, pdf: bytes, words: str) -> None:
    pages = [squeezed(page.extract_text()) for page in pypdf.PdfReader(io.BytesIO(pdf)).pages]
    hashed = squeezed(re.findall(r"SHA-256 (\w{64})", report.footer)[0])
    assert [k for k, text in enumerate(pages, 1) if hashed in text] == [len(pages)]
    assert squeezed(report.source_line) in pages[0] and words.count(squeezed(report.source_line)) == 1
    assert words.count(squeezed(f"Source: run {report.run_id}.")) == len(report.figures) - 1


def test_a_broken_table_has_its_title_again_on_every_page(report: Report) -> None:
    rows = [[f"row {k:03d}", (f"{k}", float(k))] for k in range(150)]
    table = Table.of("Tall", ["name", "#n"], rows)
    one = Report(**{**vars(report), "sections": [Section("overturn", "Overturn", tables=[table])], "lead": None})
    pages = [squeezed(p.extract_text()) for p in pypdf.PdfReader(io.BytesIO(render_pdf(one))).pages]
    held = [text for text in pages if re.search(r"row\d{3}", text)]
    assert len(held) >= 3 and "Tall(continued)" not in held[0] and "Tallname" in held[0]
    assert all("Tall(continued)name" in text for text in held[1:])


def test_the_same_report_gives_the_same_bytes(report: Report, pdf: bytes) -> None:
    assert render_pdf(report) == pdf


def test_it_is_tagged_titled_and_has_alternative_texts(report: Report, pdf: bytes) -> None:
    reader = pypdf.PdfReader(io.BytesIO(pdf))
    assert reader.metadata is not None and reader.metadata.title == report.title
    root = reader.trailer["/Root"]
    assert root["/MarkInfo"]["/Marked"] and root["/Lang"] == "en"
    assert len(reader.outline) == len(report.sections)
    assert b"/URI" not in re.sub(rb"\(https?://[^)]*\)", b"", pdf) or all(
        str(a.get_object()["/A"]["/URI"]).startswith("http")
        for page in reader.pages
        for a in page.get("/Annots", [])
        if "/A" in a.get_object() and "/URI" in a.get_object()["/A"]
    )


def test_markup_in_words_is_shown_as_words(tmp_path: Path) -> None:
    (tmp_path / "hostile.yaml").write_text(
        'extends: course_11_1\ntitle: "=cmd() #eval(1) *bold* <img onerror=alert(1)> $x$ [a] \\\\ @b `c`"\n',
        encoding="utf-8",
    )
    path = write_pdf([run(tmp_path / "hostile.yaml")], tmp_path / "deep" / "hostile.pdf")
    text = pypdf.PdfReader(path).pages[0].extract_text()
    assert squeezed("=cmd() #eval(1) *bold* <img onerror=alert(1)> $x$ [a] \\ @b `c`") in squeezed(text)


def test_tables_that_are_too_long_are_named_with_where_they_are(report: Report, words: str) -> None:
    long = [t for s in report.sections for t in s.tables if t.folded and len(t.rows) > LONGEST_TABLE]
    gone = [t for t in long if t.short not in RANKED_ROWS]
    assert gone
    for table in gone:
        assert squeezed(f"{table.caption}: {len(table.rows):,} rows, in the HTML page and the workbook") in words


def test_of_a_ranked_table_the_first_rows_are_printed(report: Report) -> None:
    rows = [[f"input {k:03d}", (f"{k}", float(k))] for k in range(90)]
    table = Table.of("Weak", ["name", "#n"], rows, folded=True, short="weak_inputs")
    one = Report(**{**vars(report), "sections": [Section("overturn", "Overturn", tables=[table])], "lead": None})
    text = squeezed(" ".join(p.extract_text() for p in pypdf.PdfReader(io.BytesIO(render_pdf(one))).pages))
    assert "input019" in text and "input020" not in text
    assert squeezed("The first 20 of 90 rows; all are in the HTML page and the workbook.") in text


def test_without_typst_the_extra_is_named(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "typst", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'wafer2token\[pdf\]'"):
        render_pdf(report)


def test_columns_share_the_page() -> None:
    narrow = Table.of("t", ["name", "#n"], [["a", ("1.0", 1.0)]])
    assert column_widths(narrow) == [0, 0]
    wide = Table.of("t", ["Reason", "#n", "Long"], [["x" * 40, ("1,000,000", 1e6), "word " * 60]])
    shares = column_widths(wide)
    assert all(shares) and shares[2] > shares[0] > shares[1] > len("1,000,000")
    assert Section("a", "b").tables == []


@pytest.mark.pdf
def test_pages_keep_their_margins(pdf: bytes, tmp_path: Path) -> None:
    if shutil.which("pdftoppm") is None:
        pytest.skip("pdftoppm (poppler-utils) is not installed: pages are not looked at")
    (tmp_path / "a.pdf").write_bytes(pdf)
    subprocess.run(["pdftoppm", "-r", "40", "-gray", "-png", "a.pdf", "p"], cwd=tmp_path, check=True)
    pages = sorted(tmp_path.glob("p-*.png"))
    assert len(pages) == len(pypdf.PdfReader(io.BytesIO(pdf)).pages)
    margin = round(15 / 25.4 * 40)
    for path in pages:
        picture = np.asarray(mpimg.imread(path))
        assert picture.min() < 0.5, f"{path.name} is empty"
        sides = np.concatenate([picture[:, :margin].ravel(), picture[:, -margin:].ravel(), picture[:margin].ravel()])
        assert sides.min() > 0.97, f"{path.name}: something is outside the margins"
