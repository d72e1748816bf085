"""Run inside a closed network: the app, a moved slider and a report page; prints every address that was asked for."""

from __future__ import annotations

import json
import re
import socket
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from reports.cli.view import start_server

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def main(browser: str, log: str, report: str) -> None:
    """Ask the app and the report for what they show."""
    server = start_server("course_11_1")
    seen: list[str] = []
    errors: list[str] = []
    try:
        with sync_playwright() as playwright:
            opened = playwright.chromium.launch(executable_path=browser, args=[*FLAGS, f"--log-net-log={log}"])
            page = opened.new_page()
            page.on("request", lambda request: seen.append(request.url))
            page.on("websocket", lambda link: seen.append(link.url))
            page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
            page.goto(server.address)
            page.wait_for_selector("#w2t-value", timeout=200_000)
            before = page.inner_text("#w2t-value")
            page.get_by_role("slider", name=re.compile("CoWoS")).first.press("PageDown")
            page.wait_for_function(
                "v => document.querySelector('#w2t-value').innerText !== v", arg=before, timeout=60_000
            )
            after = page.inner_text("#w2t-value")
            page.goto(Path(report).as_uri())
            words = len(page.inner_text("body"))
            opened.close()
    finally:
        server.stop()
    print(json.dumps({"seen": seen, "errors": errors, "values": [before, after], "words": words, "open": _open()}))


def _open() -> bool:
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex(("192.0.2.1", 80)) == 0


if __name__ == "__main__":
    main(*sys.argv[1:])
