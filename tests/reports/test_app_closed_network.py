"""The app and the report without a network: nothing is asked for outside 127.0.0.1, by the page or by the program."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from reports.cli.view import start_server
from reports.market_report import write_report
from scenarios.runner import run

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("closed_network.py")
CHROMIUM = next((p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None)


def closed() -> list[str] | None:
    """Command that runs another in a network of its own with nothing but loopback; None where that is not permitted."""
    if not (shutil.which("unshare") and shutil.which("ip")):
        return None
    shell = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    for flags in (["-n"], ["-rn"]):
        command = ["unshare", *flags, *shell]
        if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
            return command
    return None


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path")
def test_app_and_report_work_in_a_closed_network(tmp_path: Path) -> None:
    pytest.importorskip("playwright", reason="playwright is not installed")
    before = closed()
    if before is None:
        pytest.skip("no network namespace may be made here (unshare -n)")
    stored = run("course_11_1", out=tmp_path)
    report = Path(write_report([stored], tmp_path / "report"))
    log = tmp_path / "net.json"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [*before, sys.executable, str(SCRIPT), str(CHROMIUM), str(log), str(report)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=400, env=environment, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["open"] is False, "the network is closed"
    assert found["values"] == ["10,000", "9,000"] and found["words"] > 2000
    asked = {(urlsplit(u).scheme, urlsplit(u).hostname) for u in found["seen"]}
    assert {a for a in asked if a[0] not in ("data", "blob", "file")} == {("http", "127.0.0.1"), ("ws", "127.0.0.1")}
    assert found["errors"] == []
    # one event a line; what the browser asks for by itself (its updates) has no page as its initiator
    events = log.read_text(encoding="utf-8", errors="replace").splitlines()
    mine = "\n".join(e for e in events if '"initiator":"' in e and '"initiator":"not an origin"' not in e)
    by_page = re.findall(r'"url":"(?:https?|wss?)://([^/":]+)', mine)
    assert len(by_page) > 5 and set(by_page) == {"127.0.0.1"}, "the record of the browser itself"


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace to watch the calls with")
def test_the_program_connects_to_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All cells run when a page opens its socket; every connect call of the process and its children is recorded."""
    client = pytest.importorskip("websockets.sync.client", reason="websockets is not installed")
    record = tmp_path / "calls"
    spy = tmp_path / "spy"
    spy.write_text(
        f'#!/bin/sh\nexec strace -f -qq -e trace=connect -o {record} {sys.executable} "$@"\n', encoding="utf-8"
    )
    spy.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(spy))
    server = start_server("course_11_1")
    try:
        link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        link.request("GET", f"/?access_token={server.token}")
        answer = link.getresponse()
        cookie = str(answer.getheader("Set-Cookie")).split(";")[0]
        answer.read()
        link.request("GET", "/", headers={"Cookie": cookie})
        assert link.getresponse().read()
        address, origin = f"ws://127.0.0.1:{server.port}/ws?session_id=s_closed", f"http://127.0.0.1:{server.port}"
        with client.connect(
            address, additional_headers={"Cookie": cookie}, origin=origin, max_size=None, open_timeout=60
        ) as page:
            while "w2t-value" not in str(page.recv(timeout=200)):
                pass
        link.close()
    finally:
        server.stop()
    assert _hosts(record) <= {"127.0.0.1", "::1"}
    subprocess.run([spy, "-c", "import socket; socket.socket().connect_ex(('127.0.0.2', 9))"], check=True, timeout=60)
    assert _hosts(record) == {"127.0.0.2"}, "the record does see a connection where there is one"


def _hosts(record: Path) -> set[str]:
    return set(re.findall(r'inet_(?:addr|pton)\((?:AF_INET6?, )?"([^"]+)"', record.read_text(encoding="utf-8")))
