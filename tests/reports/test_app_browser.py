"""The app in a headless Chromium: loads, answers the keyboard, compares, downloads, and keeps to itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
import urllib.error
import urllib.request
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
SLOW_MS = 40_000.0


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
    if "All sliders are at the base" not in page.inner_text("body"):
        before = window.value()
        page.get_by_role("button", name="Reset all").click()
        window.changed_from(before)
    base = window.value()
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
    if "All sliders are at the base" not in page.inner_text("body"):
        before = window.value()
        page.get_by_role("button", name="Reset all").click()
        window.changed_from(before)
    base = window.value()
    page.get_by_label("Preset").first.select_option(label="Energised power at the low end of its sources")
    low = window.changed_from(base)
    assert float(low.split()[0]) < float(base.split()[0])
    page.get_by_label("Year shown").first.select_option(label="2025")
    other = window.changed_from(low)
    assert "Moved: Energised power" in page.inner_text("body"), "another year keeps the sliders"
    page.get_by_label("Year shown").first.select_option(label="2026")
    assert window.changed_from(other) == low
    page.get_by_role("button", name="↺").first.click()
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
    page.goto(page.url)
    page.wait_for_selector(VALUE, timeout=SLOW_MS)
    assert window.value() == shown


@pytest.mark.browser
@needs_browser
def test_nothing_leaves_the_machine_and_nothing_fails(window: Window) -> None:
    window.page.set_viewport_size({"width": 1440, "height": 900})
    picture = window.page.screenshot()
    assert len(picture) > 30_000, "the page is not blank"
    assert window.errors == [] and window.outside == []


@pytest.mark.browser
@needs_browser
def test_no_entry_without_the_token_and_no_file_by_the_address(window: Window) -> None:
    root = f"http://127.0.0.1:{window.server.port}"
    for path in ("/api/status", "/@file/1-x.txt", "/api/files/list_files"):
        assert _status(root + path) in (401, 403, 404, 405), path
    assert "access_token" in window.server.address and len(window.server.token) >= 32
    inside = f"?access_token={window.server.token}"
    for path in ("/@file/..%2f..%2f..%2fetc%2fpasswd", "/public/..%2f..%2fpyproject.toml", "/assets/..%2f..%2fapp.py"):
        status, body = _get(root + path + inside)
        assert status >= 400 or (b"root:" not in body and b"[project]" not in body and b"@app.cell" not in body), path


@pytest.mark.browser
@needs_browser
def test_it_listens_on_loopback_only(window: Window) -> None:
    table = Path("/proc/net/tcp")
    if not table.is_file():
        pytest.skip("no /proc/net/tcp to read listeners from")
    local = [line.split()[1] for line in table.read_text().splitlines()[1:] if line.split()[3] == "0A"]
    mine = [address.split(":")[0] for address in local if int(address.split(":")[1], 16) == window.server.port]
    assert mine == ["0100007F"], "127.0.0.1 in the byte order of the kernel, and no other listener"


def _status(url: str) -> int:
    return _get(url)[0]


def _get(url: str) -> tuple[int, bytes]:
    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *given: Any) -> None:
            return None

    try:
        with urllib.request.build_opener(Stay).open(url, timeout=20) as answer:
            return int(answer.status), answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return (401 if error.code in (302, 303, 307) else error.code), error.read()


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
