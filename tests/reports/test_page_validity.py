"""The page as browsers, validators and screen readers take it.

Own checks run everywhere. The Nu HTML checker and axe run where both are found: install them with
`npm install vnu-jar axe-core` in any folder and name that folder in PAGE_CHECKERS.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal

import pytest

from reports.market_report import make_report, render_html
from scenarios.runner import run

FOLDER = Path(os.environ.get("PAGE_CHECKERS", "no folder named"))
VNU = FOLDER / "node_modules" / "vnu-jar" / "build" / "dist" / "vnu.jar"
AXE = FOLDER / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = next((p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None)
HELP = "set PAGE_CHECKERS to a folder where `npm install vnu-jar axe-core` was run"
#: Contrast that WCAG 2.1 AA asks of text.
LEAST_CONTRAST = 4.5


@pytest.fixture(scope="module")
def page() -> str:
    return render_html(make_report([run("small")]))


class Elements(HTMLParser):
    """Tags with attributes and their text, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.open: list[int] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), []))
        if tag not in ("meta", "br", "img", "use", "path"):
            self.open.append(len(self.found) - 1)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.found[self.open.pop()][0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        for place in self.open:
            self.found[place][2].append(data)


@pytest.fixture(scope="module")
def elements(page: str) -> Elements:
    held = Elements()
    held.feed(re.sub(r"<svg.*?</svg>", "", page, flags=re.S))
    return held


def test_language_title_landmarks_and_skip_link(elements: Elements, page: str) -> None:
    tags = [t for t, _, _ in elements.found]
    assert all(tags.count(t) == 1 for t in ("html", "title", "header", "main", "footer", "nav", "h1"))
    assert elements.found[tags.index("html")][1]["lang"] == "en"
    assert "".join(elements.found[tags.index("title")][2]).strip()
    first_link = next(a for t, a, _ in elements.found if t == "a")
    assert first_link["href"] == "#answer" and 'id="answer"' in page
    assert 'name="viewport"' in page and "user-scalable" not in page


def test_headings_go_down_one_level_at_a_time(elements: Elements) -> None:
    levels = [int(t[1]) for t, _, _ in elements.found if re.fullmatch(r"h[1-6]", t)]
    assert levels[0] == 1 and len(levels) > 10
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    assert all("".join(text).strip() for t, _, text in elements.found if re.fullmatch(r"h[1-6]", t))


def test_tables_have_captions_and_headers_with_scope(elements: Elements) -> None:
    tags = [t for t, _, _ in elements.found]
    assert tags.count("table") == tags.count("caption") > 10
    heads = [(a, "".join(text)) for t, a, text in elements.found if t == "th"]
    assert heads and all(a.get("scope") == "col" and text.strip() for a, text in heads)
    wide = [a for t, a, _ in elements.found if t == "div" and a.get("class") == "wide"]
    assert len(wide) == tags.count("table") and all(a.get("tabindex") == "0" and a.get("aria-label") for a in wide)


def test_links_and_pictures_have_words(elements: Elements) -> None:
    for tag, attributes, text in elements.found:
        if tag == "a":
            assert len("".join(text).strip()) > 1, attributes
        if tag == "img" or attributes.get("role") == "img":
            assert "alt" in attributes or attributes.get("aria-label")


def luminance(colour: str) -> float:
    """Relative luminance of `#rgb` or `#rrggbb` (WCAG 2.1)."""
    digits = colour.lstrip("#")
    digits = "".join(2 * d for d in digits) if len(digits) == 3 else digits
    parts = [int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_by_a_known_value() -> None:
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#777", "#fff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_colour_stands_out_on_every_ground(page: str, scheme: str) -> None:
    style = re.search(r"<style>(.*?)</style>", page, re.S)[1]  # type: ignore[index]
    light, dark = style.split("@media screen and (prefers-color-scheme: dark)")
    names = dict(re.findall(r"--(\w+): (#[0-9a-f]{3,6})", light))
    if scheme == "dark":
        changed = dict(re.findall(r"--(\w+): (#[0-9a-f]{3,6})", dark))
        assert set(changed) == set(names)
        names = changed
    inks = {names[v] for v in re.findall(r"(?<!-)\bcolor: var\(--(\w+)\)", light)}
    grounds = {names[v] for v in re.findall(r"background: var\(--(\w+)\)", light)}
    assert not re.findall(r"(?<!-)\b(?:color|background): #", light), "a colour that the dark page cannot turn"
    assert len(inks) >= 4 and len(grounds) >= 3
    low = [(i, g) for i in inks for g in grounds if contrast(i, g) < LEAST_CONTRAST]
    assert not low


def test_the_dark_page_turns_every_colour_of_the_figures(page: str) -> None:
    drawings = "".join(re.findall(r"<svg.*?</svg>", page, re.S))
    named = set(re.findall(r"var\(--c([0-9a-f]{6}),#\1\)", drawings))
    turned = dict(re.findall(r"--c([0-9a-f]{6}):(#[0-9a-f]{6});", page))
    assert len(named) > 20 and set(turned) == named
    assert not re.findall(r"(?<!,)#[0-9a-f]{6}\b", drawings), "a colour that is the same on both pages"
    texts = set(re.findall(r"<text[^>]*fill: var\(--c([0-9a-f]{6})", drawings))
    texts -= {"ffffff"}  # stands on filled cells
    assert texts and all(contrast(c, "#fff") >= LEAST_CONTRAST for c in texts)
    assert all(contrast(turned[c], "#121212") >= LEAST_CONTRAST for c in texts)


def test_links_lead_to_every_section_before_the_answer_and_back(page: str, elements: Elements) -> None:
    sections = [str(a["id"]) for t, a, _ in elements.found if t == "section" and a["id"] != "answer"]
    links = [str(a["href"]) for t, a, _ in elements.found if t == "a"]
    assert links[1 : 1 + len(sections)] == [f"#{s}" for s in sections]
    assert page.index("<nav") < page.index('id="answer"') and links.count("#top") == len(sections)
    assert elements.found[[t for t, _, _ in elements.found].index("body")][1]["id"] == "top"


@pytest.mark.checkers
@pytest.mark.skipif(not VNU.is_file() or shutil.which("java") is None, reason=f"no Nu HTML checker or no java: {HELP}")
def test_the_nu_html_checker_finds_nothing(page: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    done = subprocess.run(
        ["java", "-jar", str(VNU), "--format", "json", str(tmp_path / "page.html")], capture_output=True, text=True
    )
    assert json.loads(done.stderr)["messages"] == []


@pytest.mark.checkers
@pytest.mark.skipif(not AXE.is_file() or CHROMIUM is None, reason=f"no axe or no chromium: {HELP}")
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (800, "dark")])
def test_axe_finds_no_violation(page: str, tmp_path: Path, width: int, scheme: Literal["light", "dark"]) -> None:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    with api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        view.goto((tmp_path / "page.html").as_uri())
        view.add_script_tag(content=AXE.read_text(encoding="utf-8"))
        found = view.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice']})")
        across = view.evaluate("document.documentElement.scrollWidth")
        browser.close()
    assert [(v["id"], v["nodes"][0]["html"][:120]) for v in found["violations"]] == []
    assert across <= width, "the page scrolls sideways"
