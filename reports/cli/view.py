"""`wafer2token view [RUN or SCENARIO]`: the interactive app on this machine only."""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from reports.app_server import HOST
from reports.cli.exits import print_json

__all__ = ["Server", "start_server", "view_verb"]

#: Seconds until the first page may be served on a slow machine.
PATIENCE = 90.0


class ViewError(ValueError):
    """The app cannot be started; the message says what to do."""


class Server:
    """A running app: its address with the token, and its process."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, token: str) -> None:
        self.process = process
        self.port = port
        self.token = token

    @property
    def address(self) -> str:
        """Address to open; the token in it lets one in, nothing else does."""
        return f"http://{HOST}:{self.port}/?access_token={self.token}"

    def stop(self) -> None:
        """End the app."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        if self.process.stderr is not None:
            self.process.stderr.close()


def view_verb(target: str, port: int | None, open_browser: bool, as_json: bool) -> None:
    """Serve the app until interrupted; print the address with its token."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # a polite end of this process ends the app too
    server = start_server(target, port)
    try:
        if as_json:
            print_json({"url": server.address, "host": HOST, "port": server.port, "pid": server.process.pid})
            sys.stdout.flush()
        else:
            print(
                f"{server.address}\nonly this machine can reach it, and only with this address; Ctrl-C ends it",
                flush=True,
            )
        if open_browser:
            import webbrowser

            webbrowser.open(server.address)
        server.process.wait()
    finally:
        server.stop()


def start_server(target: str = "base", port: int | None = None) -> Server:
    """Start the app for a library scenario, a scenario file or a finished run folder, and wait until it answers.

    It listens on 127.0.0.1 only, with a random token that is given to it by standard input (never on a command line).

    Raises:
        ViewError: marimo is not installed, or the app does not start.
        ScenarioError: there is no such scenario. RunFolderError: the folder is not a finished run.
    """
    if importlib.util.find_spec("marimo") is None:
        raise ViewError("the app needs marimo: install wafer2token[app]")
    shown = _shown(target)
    chosen = port or _free_port()
    token = secrets.token_urlsafe(24)
    asked = {"port": chosen, "token": token, "shown": shown}
    command = [sys.executable, "-W", "ignore", "-m", "reports.app_server"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=_environment()
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(asked).encode() + b"\n")
    process.stdin.close()
    server = Server(process, chosen, token)
    _wait(server)
    return server


def _environment() -> dict[str, str]:
    """This process's own, with this package on the path: the app runs in an empty folder."""
    here = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(x for x in (here, os.environ.get("PYTHONPATH", "")) if x)
    return {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}


def _shown(target: str) -> dict[str, str]:
    """Checked before anything starts, so that a wrong name is an error of the verb and not an empty page."""
    if Path(target).is_dir():
        from scenarios.run_store import check_complete

        check_complete(Path(target))
        return {"run": str(Path(target).resolve())}
    from scenarios.locate import find

    found = find(target)
    return {"scenario": str(found.resolve()) if Path(target).suffix in (".yaml", ".yml") else target}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _wait(server: Server) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if server.process.poll() is not None:
            said = server.process.stderr.read().decode(errors="replace") if server.process.stderr else ""
            raise ViewError(f"the app did not start: {said.strip()[-400:] or 'no reason given'}")
        with socket.socket() as probe:
            probe.settimeout(1.0)
            if probe.connect_ex((HOST, server.port)) == 0:
                return
        time.sleep(0.1)
    server.stop()
    raise ViewError(f"the app did not answer within {PATIENCE:.0f} s")
