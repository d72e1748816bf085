"""The process of the app: marimo's page behind `reports.app_guard`, on 127.0.0.1 (`python -m reports.app_server`)."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from reports.app_guard import Guard

__all__ = ["HOST", "main"]

HOST = "127.0.0.1"


def main(text: str) -> None:
    """Serve until ended. `text`: JSON of port, token and what to show, from standard input (not a command line)."""
    asked = json.loads(text)
    sys.addaudithook(_stay_here)
    with tempfile.TemporaryDirectory(prefix="wafer2token-app-") as home:
        # the settings of a user's own notebooks (styles, plugins, addresses) are none of this app
        os.environ.update({"XDG_CONFIG_HOME": home, "MARIMO_SKIP_UPDATE_CHECK": "1"})
        os.chdir(home)
        _serve(int(asked["port"]), str(asked["token"]), dict(asked["shown"]))


def _stay_here(event: str, given: tuple[Any, ...]) -> None:
    """Audit hook: no connection leaves this machine, whatever a library means to look up.

    >>> _stay_here("socket.connect", (None, ("127.0.0.1", 80)))
    >>> _stay_here("socket.connect", (None, ("192.0.2.1", 80)))
    Traceback (most recent call last):
    PermissionError: the app opens no connection to other machines: 192.0.2.1
    """
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = given[1]
        host = address[0] if isinstance(address, tuple) and address else None  # a path is a local socket
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        host = given[0]
    else:
        return
    name = host.decode("latin-1") if isinstance(host, bytes) else host
    if name not in (None, "", "localhost", "::1") and not str(name).startswith("127."):
        raise PermissionError(f"the app opens no connection to other machines: {name}")


def _serve(port: int, token: str, shown: dict[str, str]) -> None:
    import marimo
    import uvicorn

    from reports import app_link

    app_link.SERVED.update(shown)
    page = str(Path(__file__).with_name("app.py"))
    head = (Path(__file__).parent / "templates" / "app_head.html").read_text(encoding="utf-8")
    inner = marimo.create_asgi_app(quiet=True, include_code=False, html_head=head).with_app(path="", root=page).build()
    guard = Guard(inner, port, token)
    uvicorn.run(
        guard,
        host=HOST,
        port=port,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=2,
    )


if __name__ == "__main__":
    main(sys.stdin.readline())
