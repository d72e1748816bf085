"""The door of the app: raw requests against the started server, each wrong in one way."""

from __future__ import annotations

import http.client
import re
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest

from reports.app_guard import Guard
from reports.app_server import _stay_here
from reports.cli.view import Server, start_server

pytest.importorskip("marimo")

READ_API, RUN_API = "/api/version", "/api/kernel/run"
SECRETS = (b"root:", b"[project]", b"@app.cell", b"def _(")


@dataclass
class Door:
    server: Server
    cookie: str

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server.port}"

    def ask(self, path: str, method: str = "GET", body: bytes = b"", **changed: str | None) -> tuple[int, bytes]:
        """A request as the page makes it, with headers changed or (None) left out."""
        wanted = {"Host": self.host, "Origin": f"http://{self.host}", "Cookie": self.cookie}
        wanted |= {k.replace("_", "-").title(): v for k, v in changed.items()}  # type: ignore[misc]
        link = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=20)
        try:
            link.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in wanted.items():
                if value is not None:
                    link.putheader(name, value)
            link.putheader("Content-Length", str(len(body)))
            link.endheaders(body)
            answer = link.getresponse()
            return answer.status, answer.read()
        finally:
            link.close()

    def knock(self, path: str = "/ws?session_id=s_test", **changed: str | None) -> int:
        """Status of a websocket handshake: 101 is an open socket."""
        wanted = {"Host": self.host, "Origin": f"http://{self.host}", "Cookie": self.cookie}
        wanted |= {k.title(): v for k, v in changed.items()}  # type: ignore[misc]
        lines = [f"GET {path} HTTP/1.1", *(f"{k}: {v}" for k, v in wanted.items() if v is not None)]
        lines += ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"]
        lines += ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "", ""]
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as link:
            link.sendall("\r\n".join(lines).encode())
            return int(link.recv(4096).split(b" ", 2)[1])


@pytest.fixture(scope="module")
def door() -> Iterator[Door]:
    server = start_server("course_11_1")
    try:
        link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        link.request("GET", f"/?access_token={server.token}&power=110")
        answer = link.getresponse()
        assert (answer.status, answer.getheader("Location")) == (303, "/?power=110"), "the token leaves the address"
        given = str(answer.getheader("Set-Cookie"))
        link.close()
        assert "HttpOnly" in given and "SameSite=Strict" in given and server.token not in given
        name, morsel = next(iter(SimpleCookie(given).items()))
        yield Door(server, f"{name}={morsel.value}")
    finally:
        server.stop()


def test_the_page_opens_with_the_cookie_under_each_name_of_this_machine(door: Door) -> None:
    for name in ("127.0.0.1", "localhost", "[::1]"):
        host = f"{name}:{door.server.port}"
        status, body = door.ask("/", host=host, origin=f"http://{host}")
        assert status == 200 and b"<html" in body.lower()
    assert door.ask("/", origin=None)[0] == 200, "a browser names no origin when an address is typed"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1:{port}.evil.example",
        "localhost.evil.example:{port}",
        "2130706433:{port}",
        "0.0.0.0:{port}",
        "127.0.0.1:{port}, evil.example",
        "",
    ],
)
def test_a_wrong_host_is_refused(door: Door, host: str) -> None:
    """DNS rebinding: the name in the request is the attacker's."""
    host = host.format(port=door.server.port)
    for path in ("/", READ_API, f"/?access_token={door.server.token}"):
        assert door.ask(path, host=host, origin=f"http://{host}")[0] in (400, 403), path
        assert door.ask(path, host=host, origin=None)[0] in (400, 403), path
    assert door.knock(host=host, origin=f"http://{host}") in (400, 403)


def test_a_request_without_a_host_or_with_two_is_refused(door: Door) -> None:
    assert door.ask("/", host=None)[0] in (400, 403)
    text = f"GET / HTTP/1.1\r\nHost: {door.host}\r\nHost: evil.example\r\nCookie: {door.cookie}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", door.server.port), timeout=20) as link:
        link.sendall(text.encode())
        assert int(link.recv(4096).split(b" ", 2)[1]) in (400, 403)


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "",
        "https://127.0.0.1:{port}",
        "http://127.0.0.1",
        "http://127.0.0.1:1",
        "http://localhost:{port}",
        "http://127.0.0.1:{port}.evil.example",
    ],
)
def test_a_wrong_origin_is_refused(door: Door, origin: str) -> None:
    origin = origin.format(port=door.server.port)
    assert door.ask("/", origin=origin)[0] == 403
    assert door.ask("/api/kernel/set_ui_element_value", "POST", b"{}", origin=origin)[0] == 403
    assert door.knock(origin=origin) == 403


def test_what_changes_something_must_name_its_origin(door: Door) -> None:
    assert door.ask("/api/kernel/set_ui_element_value", "POST", b"{}", origin=None)[0] == 403
    assert door.knock(origin=None) == 403


def test_a_part_of_another_page_is_refused(door: Door) -> None:
    for site in ("cross-site", "same-site"):
        status, _ = door.ask("/assets/any.js", sec_fetch_site=site, sec_fetch_mode="no-cors", origin=None)
        assert status == 403
    assert door.ask("/", sec_fetch_site="cross-site", sec_fetch_mode="navigate", origin=None)[0] == 200


@pytest.mark.parametrize("path", ["/", READ_API, "/health", "/assets/x.js", "/@file/1-x.txt", RUN_API, "/auth/login"])
def test_no_token_no_entry(door: Door, path: str) -> None:
    name = door.cookie.split("=")[0]
    for cookie in (None, "", f"{name}=", f"{name}=wrong", f"{name}={door.server.token}", f"other={door.cookie[9:]}"):
        status, body = door.ask(path, cookie=cookie)
        assert status == 403 and b"token" in body, (path, cookie)
    assert door.knock(cookie=None) == 403 and door.knock(cookie=f"{name}=wrong") == 403


@pytest.mark.parametrize("given", ["", "wrong", "{token}x", "%C3%A9", "%00", "x&access_token={token}"])
def test_a_wrong_token_is_refused_even_with_the_cookie(door: Door, given: str) -> None:
    status, body = door.ask("/?access_token=" + given.format(token=door.server.token))
    assert status == 403 and b"wrong token" in body


def test_the_token_opens_the_page_only(door: Door) -> None:
    for path in (READ_API, RUN_API, "/ws"):
        assert door.ask(f"{path}?access_token={door.server.token}", cookie=None)[0] == 403
    assert door.knock(f"/ws?access_token={door.server.token}", cookie=None) == 403


def test_secrets_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[bytes, bytes]] = []

    def compare(a: bytes, b: bytes) -> bool:
        seen.append((a, b))
        return a == b

    monkeypatch.setattr("reports.app_guard.hmac.compare_digest", compare)
    guard = Guard(_nothing, 8000, "secret")
    assert guard._known({"cookie": f"{guard.cookie}={guard.pass_key}"})
    assert not guard._known({"cookie": f"{guard.cookie}=guess"}) and len(seen) == 2
    assert guard.pass_key != Guard(_nothing, 8000, "secret").pass_key


async def _nothing(*_: Any) -> None:
    raise AssertionError("must not be reached")


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/..%2f..%2fetc/passwd",
        "/assets/..%2f..%2fapp.py",
        "/assets/../../../../pyproject.toml",
        "/@file/..%2f..%2fetc%2fpasswd",
        "/@file/9999-..%2f..%2f..%2fetc%2fpasswd",
        "/@file//etc/passwd",
        "/public/..%2f..%2fpyproject.toml",
        "/public/app.py",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/assets/%252e%252e%252fapp.py",
        "/assets/..%5c..%5capp.py",
        "/?file=/etc/passwd",
        "/?file=../app_server.py",
        "http://evil.example/",
        "/app.py",
        "/assets/%00",
    ],
)
def test_no_file_by_the_address(door: Door, path: str) -> None:
    status, body = door.ask(path)
    assert status in (400, 404) or path.startswith("/?file="), path
    assert not any(secret in body for secret in SECRETS), path


EDITOR = [
    ("POST", "/api/kernel/run"),
    ("POST", "/api/kernel/save"),
    ("POST", "/api/kernel/execute"),
    ("POST", "/api/kernel/scratchpad/run"),
    ("POST", "/api/kernel/read_code"),
    ("POST", "/api/kernel/restart_session"),
    ("POST", "/api/kernel/shutdown"),
    ("POST", "/api/kernel/save_user_config"),
    ("POST", "/api/files/list_files"),
    ("POST", "/api/files/file_details"),
    ("POST", "/api/files/create"),
    ("GET", "/api/files/download"),
    ("POST", "/api/packages/add"),
    ("POST", "/api/export/html"),
    ("POST", "/api/secrets/create"),
    ("POST", "/api/ai/completion"),
    ("GET", "/api/status"),
    ("GET", "/api/usage"),
    ("GET", "/auth/token"),
    ("GET", "/auth/login"),
]


@pytest.mark.parametrize(("method", "path"), EDITOR)
def test_nothing_of_an_editor_is_there(door: Door, method: str, path: str) -> None:
    status, body = door.ask(path, method, b'{"cellIds": ["x"], "codes": ["print(1)"], "path": "/"}')
    assert status == 404 and body == b"there is nothing here\n"


def test_only_what_a_running_app_needs_is_answered() -> None:
    """Every route that the installed marimo has, named by itself."""
    router = pytest.importorskip("marimo._server.api.router")
    found = set()
    for route in router.build_routes():
        inner = getattr(route, "routes", None) or [route]
        for one in inner:
            path = getattr(route, "path", "") * (one is not route) + getattr(one, "path", "")
            kinds = getattr(one, "methods", None)
            for method in kinds or {"socket"}:
                kind = "http" if kinds else "websocket"
                if Guard.may_ask(kind, method, re.sub(r"\{[^}]*\}", "x", path)) and method != "HEAD":
                    found.add((method, path))
    writes = {p for m, p in found if m == "POST"}
    assert writes == {"/api/kernel/set_ui_element_value", "/api/kernel/function_call"}
    assert {p for m, p in found if m == "socket"} == {"/ws"}


def test_sockets_other_than_the_answers_are_refused(door: Door) -> None:
    assert door.knock() == 101
    for path in ("/terminal/ws", "/ws_sync", "/lsp/pylsp", "/lsp/copilot", "/"):
        assert door.knock(path) == 403, path


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(door: Door, method: str) -> None:
    assert door.ask("/", method)[0] in (404, 405)
    assert door.ask("/", method, origin="http://evil.example")[0] == 403


def test_the_browser_is_told_to_stay_here(door: Door) -> None:
    link = http.client.HTTPConnection("127.0.0.1", door.server.port, timeout=20)
    link.request("GET", "/", headers={"Host": door.host, "Cookie": door.cookie, "Origin": f"http://{door.host}"})
    answer = link.getresponse()
    policy = str(answer.getheader("Content-Security-Policy"))
    assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy and "http:" not in policy
    assert answer.getheader("X-Frame-Options") == "DENY"
    assert not [k for k, _ in answer.getheaders() if k.lower().startswith("access-control-")]
    link.close()


def test_it_listens_on_loopback_only(door: Door) -> None:
    for name, mine in (("tcp", ["0100007F"]), ("tcp6", [])):
        table = Path("/proc/net") / name
        if not table.is_file():
            pytest.skip(f"no {table} to read listeners from")
        local = [line.split()[1] for line in table.read_text().splitlines()[1:] if line.split()[3] == "0A"]
        found = [a.split(":")[0] for a in local if int(a.split(":")[1], 16) == door.server.port]
        assert found == mine, "127.0.0.1 in the byte order of the kernel, and no other listener"


def test_the_token_stands_on_no_command_line_and_in_no_environment(door: Door) -> None:
    folder = Path(f"/proc/{door.server.process.pid}")
    if not folder.is_dir():
        pytest.skip("no /proc to read the process from")
    assert door.server.token.encode() not in (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
    assert len(door.server.token) >= 32


@pytest.mark.parametrize("event", ["socket.connect", "socket.sendto"])
def test_the_program_refuses_to_connect_outward(event: str) -> None:
    for address in (("192.0.2.1", 80), ("2001:db8::1", 80, 0, 0), ("example.com", 443)):
        with pytest.raises(PermissionError, match="opens no connection to other machines"):
            _stay_here(event, (None, address))
    for inside in (("127.0.0.1", 80), ("::1", 80, 0, 0), "/run/x.sock"):
        _stay_here(event, (None, inside))
    with pytest.raises(PermissionError):
        _stay_here("socket.getaddrinfo", ("example.com", 443, 0, 0, 0))


def test_the_end_of_the_server_frees_the_port() -> None:
    server = start_server("course_11_1")
    server.stop()
    time.sleep(0.1)
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", server.port)) != 0
