"""The app in a headless Chromium: loads, answers the keyboard, compares, downloads, and keeps to itself."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reports.cli.view import Server, _shown, start_server
from scenarios.load import load_scenario
from scenarios.runner import run

if TYPE_CHECKING:
    from playwright.sync_api import Page

CHROMIUM = next((p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None)
VALUE = "#w2t-value"
SLOW_MS = 120_000.0


def missing() -> str:
    """Why there is no browser to test with; empty where there is one."""
    if CHROMIUM is None:
        return "no chromium on the path"
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "playwright is not installed"
    return ""


needs_browser = pytest.mark.skipif(bool(missing()), reason=missing() or "there is one")


@dataclass
class Window:
    page: Page
    server: Server
    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    def value(self) -> str:
        return self.page.inner_text(VALUE)

    def changed_from(self, before: str) -> str:
        self.page.wait_for_function(
            "v => { const e = document.querySelector('#w2t-value'); return e && e.innerText !== v }",
            arg=before,
            timeout=SLOW_MS,
        )
        return self.value()

    def press(self, slider: int, key: str) -> str:
        before = self.value()
        handle = self.page.get_by_role("slider").nth(slider)
        handle.focus()
        handle.press(key)
        return self.changed_from(before)


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    server = start_server("small")
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
            page = browser.new_page(viewport={"width": 1440, "height": 1000}, accept_downloads=True)
            found = Window(page, server)
            page.on("console", lambda m: found.errors.append(m.text) if m.type == "error" else None)
            page.on("pageerror", lambda e: found.errors.append(str(e)))
            page.on("request", lambda r: None if _local(r.url) else found.outside.append(r.url))
            page.goto(server.address)
            page.wait_for_selector(VALUE, timeout=SLOW_MS)
            yield found
            browser.close()
    finally:
        server.stop()


def _local(url: str) -> bool:
    return url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:"))


@pytest.mark.browser
@needs_browser
def test_a_slider_moves_by_keyboard_and_the_number_follows(window: Window) -> None:
    before = window.value()
    assert before.endswith("million")
    more = window.press(0, "PageUp")
    assert float(more.split()[0]) > float(before.split()[0])
    assert "Moved: Energised power 110 % of base" in window.page.inner_text("body")
    spoken = window.page.get_by_role("slider", name="Energised power, % of base").first
    assert spoken.get_attribute("aria-valuenow") == "110"
    assert window.page.get_by_label("Energised power, % of base value input").first.input_value() == "110"
    window.press(0, "Home")
    assert spoken.get_attribute("aria-valuenow") == spoken.get_attribute("aria-valuemin")


@pytest.mark.browser
@needs_browser
def test_reset_undo_pin_and_compare(window: Window) -> None:
    page = window.page
    base = at_base(window)
    moved = window.press(0, "PageDown")
    page.get_by_role("button", name="Pin this case").click()
    page.wait_for_selector("th:text-is('pinned')", timeout=SLOW_MS)
    table = page.inner_text("table:has(th:text-is('pinned'))")
    line = next(row for row in table.splitlines() if row.startswith("Accelerators energised in 2026"))
    assert base in line and line.count(moved) == 2
    page.get_by_role("button", name="Undo").click()
    assert window.changed_from(moved) == base
    page.get_by_role("button", name="Unpin").click()
    page.wait_for_selector("th:text-is('pinned')", state="detached", timeout=SLOW_MS)


@pytest.mark.browser
@needs_browser
def test_presets_and_the_reset_of_one_slider(window: Window) -> None:
    page = window.page
    base = at_base(window)
    page.get_by_label("Preset").first.select_option(label="Energised power at the low end of its sources")
    low = window.changed_from(base)
    assert float(low.split()[0]) < float(base.split()[0])
    page.get_by_label("Year shown").first.select_option(label="2025")
    other = window.changed_from(low)
    assert "Moved: Energised power" in page.inner_text("body"), "another year keeps the sliders"
    page.get_by_label("Year shown").first.select_option(label="2026")
    assert window.changed_from(other) == low
    page.get_by_role("button", name="Reset Energised power").click()
    assert window.changed_from(low) == base


@pytest.mark.browser
@needs_browser
def test_the_scenario_file_and_the_link_hold_the_case(window: Window, tmp_path: Path) -> None:
    page = window.page
    shown = window.press(0, "PageUp")
    with page.expect_download(timeout=SLOW_MS) as waiting:
        page.get_by_text("Download the scenario").first.click()
    path = tmp_path / "case.yaml"
    waiting.value.save_as(path)
    assert [e.pattern for e in load_scenario(path).edits] == ["power"]
    total = run(path, prices=False, costs=False).output("energised:*@2026")
    assert f"{total / 1e6:.4g}" == f"{float(shown.split()[0]):.4g}"
    page.wait_for_url("**power=110**", timeout=SLOW_MS)
    page.get_by_label("Tokens of").first.select_option(label="DeepSeek-V3")
    page.wait_for_url("**model=deepseek_v3**", timeout=SLOW_MS)
    page.get_by_label("Task").first.select_option(label="Chat")
    page.wait_for_url("**task=chat**", timeout=SLOW_MS)
    page.goto(page.url)
    page.wait_for_selector("caption:has-text('Model: DeepSeek-V3. Task: chat.')", timeout=SLOW_MS)
    assert window.value() == shown
    page.get_by_label("Tokens of").first.select_option(label="Llama-3.1-70B")
    page.wait_for_url(re.compile(r"^((?!model=).)*task=chat((?!model=).)*$"), timeout=SLOW_MS)


ACTIVE = """() => {
  let e = document.activeElement;
  while (e && e.shadowRoot && e.shadowRoot.activeElement) e = e.shadowRoot.activeElement;
  const box = e.getBoundingClientRect(), look = getComputedStyle(e);
  const role = e.getAttribute('role') || e.tagName.toLowerCase();
  return [role, e.innerText || '', box.x, box.y + window.scrollY, look.outlineStyle, parseFloat(look.outlineWidth)];
}"""


def at_base(window: Window) -> str:
    if "All sliders are at the base" not in window.page.inner_text("body"):
        before = window.value()
        window.page.get_by_role("button", name="Reset all").click()
        window.changed_from(before)
    return window.value()


@pytest.mark.browser
@needs_browser
def test_tab_reaches_every_control_in_order_and_shows_where_it_is(window: Window) -> None:
    page = window.page
    at_base(window)
    rounds: list[list[list[Any]]] = [[], []]  # the first ends where the page ends, wherever it began
    for stops in rounds:
        for _ in range(90):
            page.keyboard.press("Tab")
            stop = page.evaluate(ACTIVE)
            if stop[0] == "body":
                break
            stops.append(stop)
    stops = rounds[1]
    kinds = [s[0] for s in stops]
    assert kinds.count("slider") == 8 and kinds.count("summary") == 1
    first = kinds.index("slider")
    assert kinds[first : first + 6] == ["slider", "input", "button"] * 2, "slider, its number, its reset"
    words = [w for _, text, *_ in stops for w in [text.split("\n")[0]] if w]
    wanted = [
        "Undo",
        "Reset all",
        "Pin this case",
        "Unpin",
        "Download the scenario",
        "What do I get?",
        "What do I need?",
    ]
    wanted += ["Band of the headline", "Rank the inputs", "Make the report of this case", "Cancel"]
    assert [w for w in words if w in wanted] == wanted
    heights = [y for kind, _, x, y, *_ in stops if kind == "slider"]
    assert heights == sorted(heights), "from top to bottom"
    assert [s for s in stops if s[4] == "none" or s[5] < 2] == [], "a ring of two pixels or more on each"


@pytest.mark.browser
@needs_browser
def test_every_control_has_a_name_for_a_screen_reader(window: Window) -> None:
    link = window.page.context.new_cdp_session(window.page)
    nodes = link.send("Accessibility.getFullAXTree")["nodes"]
    roles = ("slider", "textbox", "spinbutton", "button", "combobox", "link", "DisclosureTriangle", "image")
    found = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n.get("ignored")]
    controls = [(role, name) for role, name in found if role in roles]
    assert len(controls) > 50
    assert [c for c in controls if not c[1].strip() or "<" in c[1]] == []
    assert {"Energised power, % of base", "Reset Energised power", "Show or hide the sliders"} <= {
        n for _, n in controls
    }


@pytest.mark.browser
@needs_browser
def test_each_key_moves_the_slider_as_it_should(window: Window) -> None:
    page = window.page
    at_base(window)
    slider = page.get_by_role("slider").first
    low, high = (float(str(slider.get_attribute(f"aria-value{end}"))) for end in ("min", "max"))
    position = 100.0
    moves = [("ArrowRight", 1), ("ArrowUp", 1), ("ArrowLeft", -1), ("ArrowDown", -2), ("PageUp", 10), ("PageDown", -10)]
    for key, step in moves:
        for _ in range(2 if step == -2 else 1):
            window.press(0, key)
        position += step
        assert float(str(slider.get_attribute("aria-valuenow"))) == position, key
    window.press(0, "End")
    assert float(str(slider.get_attribute("aria-valuenow"))) == high
    window.press(0, "Home")
    assert float(str(slider.get_attribute("aria-valuenow"))) == low


@pytest.mark.browser
@needs_browser
def test_buttons_work_by_enter_and_space(window: Window) -> None:
    page = window.page
    base = at_base(window)
    moved = window.press(0, "PageUp")
    page.get_by_role("button", name="Pin this case").press("Enter")
    page.wait_for_selector("th:text-is('pinned')", timeout=SLOW_MS)
    page.get_by_role("button", name="Reset Energised power").press("Space")
    assert window.changed_from(moved) == base
    page.get_by_role("button", name="Undo").press("Enter")
    assert window.changed_from(base) == moved
    page.get_by_role("button", name="Unpin").press("Space")
    page.wait_for_selector("th:text-is('pinned')", state="detached", timeout=SLOW_MS)
    with page.expect_download(timeout=SLOW_MS) as waiting:
        page.get_by_role("link", name="Download the scenario").press("Enter")
    assert waiting.value.suggested_filename == "small_case.yaml"
    page.locator("summary").press("Enter")
    assert page.locator("details[open] table caption").inner_text().startswith("Accelerators energised")
    page.locator("summary").press("Space")
    assert page.locator("details[open]").count() == 0


@pytest.mark.browser
@needs_browser
def test_a_change_is_announced_politely_and_the_old_answer_is_greyed(window: Window) -> None:
    """The live region is there before the change and stays; while the solve runs the output is dimmed."""
    page = window.page
    at_base(window)
    page.evaluate("""() => {
      window.live = document.querySelector('#w2t-value').closest('[aria-live=polite]');
      window.grey = 0;
      const look = () => {
        if (document.querySelector('.marimo-output-stale #w2t-value')) window.grey += 1;
        window.timer = requestAnimationFrame(look);
      };
      look();
    }""")
    window.press(0, "PageUp")
    assert page.evaluate("() => window.live.isConnected && window.live.innerText.includes('110 % of base')")
    page.evaluate("() => cancelAnimationFrame(window.timer)")
    assert page.evaluate("() => window.grey") > 0


@pytest.mark.browser
@needs_browser
def test_amounts_targets_and_cancel(window: Window) -> None:
    page = window.page
    base = at_base(window)
    page.get_by_role("button", name="What do I get?").press("Enter")
    answer = page.locator(".w2t-answer")
    answer.first.wait_for(timeout=SLOW_MS)
    assert base in answer.first.inner_text() and "no change against the base" in answer.first.inner_text()
    target = page.get_by_role("textbox", name="Target", exact=True)
    target.fill("90000000000")
    target.press("Enter")
    page.get_by_role("button", name="What do I need?").press("Enter")
    page.get_by_text("Not reachable.").wait_for(timeout=SLOW_MS)
    page.get_by_role("button", name="Band of the headline").press("Enter")
    page.get_by_text("Drawing all uncertain inputs").wait_for(timeout=SLOW_MS)
    page.get_by_role("button", name="Cancel").press("Enter")
    page.get_by_text("Cancelled; nothing was changed.").wait_for(timeout=SLOW_MS)


@pytest.mark.browser
@needs_browser
def test_the_page_follows_the_system_into_the_dark(window: Window) -> None:
    page = window.page
    ink = "() => ['.w2t-head', 'body'].map(s => getComputedStyle(document.querySelector(s)).color).join()"
    light = page.evaluate(ink)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"before => ({ink})() !== before", arg=light, timeout=SLOW_MS)
    page.emulate_media(color_scheme="light")
    page.wait_for_function(f"before => ({ink})() === before", arg=light, timeout=SLOW_MS)


@pytest.mark.browser
@needs_browser
def test_nothing_leaves_the_machine_and_nothing_fails(window: Window) -> None:
    window.page.set_viewport_size({"width": 1440, "height": 900})
    picture = window.page.screenshot()
    assert len(picture) > 30_000, "the page is not blank"
    assert window.errors == [] and window.outside == []


#: Text of the page, text inside its controls, and what stands there as mark-up but was made of words.
EVERYTHING = """() => {
  const inside = [], marks = [];
  const walk = root => {
    for (const e of root.querySelectorAll('*')) {
      if (e.matches('img[src=x], [onerror], a[href^="javascript"]')) marks.push(e.outerHTML);
      if (e.matches('strong, b, code') && /^(bold|x)$/.test(e.innerText)) marks.push(e.outerHTML);
      if (e.matches('script') && e.textContent.startsWith('window.pwned')) marks.push(e.outerHTML);
      if (!e.shadowRoot) continue;
      inside.push([...e.shadowRoot.children].map(c => c.innerText || '').join(' '));
      walk(e.shadowRoot);
    }
  };
  walk(document);
  return {marks, page: document.body.innerText, inside: inside.join(' ')};
}"""
WORDS = {
    "markup": '<img src=x onerror="window.pwned=1">',
    "script": "</script><script>window.pwned=2</script>",
    "formula": "=cmd|'/c calc'!A1",
    "markdown": "**bold** [go](javascript:window.pwned=3) `x`",
}


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A scenario whose title, note, product and limits, and so its sliders, are made of such words."""
    made = {
        "title": " ".join(WORDS.values()),
        "note": " ".join(WORDS.values()),
        "horizon": {"start": "2026-Q1", "periods": 2},
        "objective": "units",
        "materials": {"die": {"unit": "die", "title": WORDS["markup"]}},
        "resources": {k: {"stage": "fab", "title": w, "capacity": "10 die/quarter"} for k, w in WORDS.items()},
        "processes": {
            "make": {
                "stage": "fab",
                "output": {"die": 1},
                "uses": dict.fromkeys(WORDS, "1 die"),
                "title": WORDS["script"],
            }
        },
        "demand": {"die": {"price": "1 USD/die"}},
    }
    path = tmp_path / "<img src=x onerror=window.pwned=4> **bold**.yaml"
    path.write_text(json.dumps(made), encoding="utf-8")  # JSON is YAML
    return path


@pytest.mark.browser
@needs_browser
def test_hostile_words_are_shown_as_words(window: Window, hostile: Path) -> None:
    """Nothing runs, no mark-up of theirs is in the page, and each can be read as it was written."""
    server = start_server(str(hostile))
    browser = window.page.context.browser
    assert browser is not None
    page = browser.new_page()
    wrong: list[str] = []
    page.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: wrong.append(str(e)))
    try:
        page.goto(server.address)
        page.wait_for_selector(VALUE, timeout=SLOW_MS)
        handle = page.get_by_role("slider").first
        handle.focus()
        handle.press("PageDown")
        page.wait_for_function("() => document.body.innerText.includes('Moved: ')", timeout=SLOW_MS)
        page.get_by_role("button", name="What do I get?").press("Enter")
        page.locator(".w2t-answer").first.wait_for(timeout=SLOW_MS)
        page.get_by_role("button", name="Rank the inputs").press("Enter")
        page.get_by_text("at the low end").first.wait_for(timeout=SLOW_MS)
        shown = page.evaluate(EVERYTHING)
        assert page.evaluate("() => window.pwned") is None
        assert shown["marks"] == [], shown["marks"]
        for word in WORDS.values():
            assert word in shown["page"] and word in shown["inside"], word
        assert wrong == []
    finally:
        page.close()
        server.stop()


def test_every_cell_runs_without_a_browser() -> None:
    """As a script the notebook runs all its cells."""
    app = Path(__file__).parents[2] / "reports" / "app.py"
    command = [sys.executable, "-W", "ignore", str(app), "--scenario", "course_11_1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_wrong_target_is_an_error_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no library scenario of this name; did you mean small"):
        _shown("smal")
    with pytest.raises(ValueError, match="is not a run: it has no manifest"):
        _shown(str(tmp_path))
    stored = run("course_11_1", out=tmp_path)
    assert _shown(str(stored.folder)) == {"run": str(stored.folder)}
    assert _shown("base") == {"scenario": "base"}
