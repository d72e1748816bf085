"""The door of the app: who may ask it, and for what.

A page in any browser of this machine can send requests to 127.0.0.1, also under a name of its own that it lets point
there (DNS rebinding). So every request must name the app by its own address (Host), come from its own page (Origin) and
bring the token; and it may ask only for what a running app needs, so that nothing of an editor is there to be found.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

__all__ = ["Guard"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

TOKEN = "access_token"
#: All that a page in run mode asks for: itself, its own static files, the files it made, its answers.
_READ = re.compile(
    r"/|/favicon\.ico|/manifest\.json|/(logo|apple-touch-icon|android-chrome-\d+x\d+)\.png|/public-files-sw\.js"
    r"|/assets/[\w.@-]+|/files-[\w.@-]+|/@file/\d+-[\w.-]+|/health|/api/version"
)
_WRITE = re.compile(r"/api/kernel/(set_ui_element_value|function_call)")
_SOCKET = "/ws"
#: The browser may fetch from nowhere else, whatever a page holds; and no other page may frame this one.
_HEADERS = {
    "content-security-policy": "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self' "
    "ws://{host} data: blob:; frame-ancestors 'none'; base-uri 'self'; form-action 'self'",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """ASGI application around another one: 403 or 404 for all that is not the page of this app on this machine."""

    def __init__(self, inner: Application, port: int, token: str) -> None:
        self.inner = inner
        self.token = token
        self.pass_key = secrets.token_urlsafe(32)  # the cookie: another secret, so that it never stands in a link
        self.cookie = f"wafer2token_{port}"
        self.hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it with a reason."""
        if scope["type"] == "lifespan":
            await self.inner(scope, receive, send)
            return
        headers = _headers(scope)
        reason = self.objection(scope["type"], scope.get("method", "GET"), headers)
        if reason is None and (token := self._given_token(scope)) is not None:
            if _same(token, self.token):
                await self._enter(scope, send)
                return
            reason = "wrong token: open the address that the program printed"
        if reason is None and not self._known(headers):
            reason = "no token: open the address that the program printed"
        if reason is not None:
            await _refuse(scope, receive, send, 403, reason)
        elif not self.may_ask(scope["type"], scope.get("method", "GET"), _path(scope)):
            await _refuse(scope, receive, send, 404, "there is nothing here")
        else:
            await self.inner(scope, receive, _with_headers(send, headers["host"]))

    def objection(self, kind: str, method: str, headers: dict[str, str]) -> str | None:
        """Why the address or the page that asks is not this app; None where it is.

        >>> guard = Guard(None, 8000, "secret")
        >>> guard.objection("http", "GET", {"host": "127.0.0.1:8000"})
        >>> guard.objection("http", "GET", {"host": "evil.example:8000"})
        'wrong host'
        >>> guard.objection("websocket", "GET", {"host": "127.0.0.1:8000", "origin": "http://evil.example"})
        'wrong origin'
        """
        host = headers.get("host", "")
        if host not in self.hosts:
            return "wrong host"
        origin = headers.get("origin")
        needed = kind == "websocket" or method not in ("GET", "HEAD")
        if origin != f"http://{host}" and (needed or origin is not None):
            return "wrong origin"
        embedded = headers.get("sec-fetch-mode", "navigate") != "navigate"
        if embedded and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return "asked for by another page"
        return None

    @staticmethod
    def may_ask(kind: str, method: str, path: str) -> bool:
        """Whether a running app answers this: its page and files, its inputs, its one socket.

        >>> Guard.may_ask("http", "POST", "/api/kernel/set_ui_element_value")
        True
        >>> Guard.may_ask("http", "POST", "/api/kernel/run"), Guard.may_ask("websocket", "GET", "/terminal/ws")
        (False, False)
        """
        if kind == "websocket":
            return path == _SOCKET
        allowed = _READ if method in ("GET", "HEAD") else _WRITE if method == "POST" else None
        return allowed is not None and ".." not in path and allowed.fullmatch(path) is not None

    def _known(self, headers: dict[str, str]) -> bool:
        try:
            held = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return held is not None and _same(held.value, self.pass_key)

    def _given_token(self, scope: Scope) -> str | None:
        if scope["type"] != "http" or scope["method"] != "GET" or _path(scope) != "/":
            return None
        return next((v for k, v in _query(scope) if k == TOKEN), None)

    async def _enter(self, scope: Scope, send: Send) -> None:
        """Give the cookie and show the same page without the token in its address."""
        rest = urlencode([(k, v) for k, v in _query(scope) if k != TOKEN])
        cookie = f"{self.cookie}={self.pass_key}; Path=/; HttpOnly; SameSite=Strict"
        headers = [
            (b"location", f"/{'?' + rest if rest else ''}".encode("latin-1")),
            (b"set-cookie", cookie.encode()),
            (b"cache-control", b"no-store"),
            (b"referrer-policy", b"no-referrer"),
            (b"content-length", b"0"),
        ]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def _headers(scope: Scope) -> dict[str, str]:
    """Headers by name; one that is given twice counts as wrong, never as the first or the last."""
    out: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        out[key] = f"{out[key]}, {text}" if key in out else text
    return out


def _path(scope: Scope) -> str:
    return str(scope["path"])


def _query(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)


def _same(given: str, held: str) -> bool:
    """Whether two secrets are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), held.encode())


def _with_headers(send: Send, host: str) -> Send:
    more = [(k.encode(), v.replace("{host}", host).encode()) for k, v in _HEADERS.items()]

    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            kept = [(k, v) for k, v in message.get("headers", []) if not k.lower().startswith(b"access-control-")]
            message = {**message, "headers": [*kept, *more]}
        await send(message)

    return sending


async def _refuse(scope: Scope, receive: Receive, send: Send, status: int, reason: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 4403, "reason": reason})  # before accept: HTTP 403
        return
    body = f"{reason}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope.get("method") == "HEAD" else body})
