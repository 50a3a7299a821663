"""The server of the live page: one page and one stream of events, to this machine alone.

Events are those of server-sent events (WHATWG HTML, section 9.2), each a JSON object as `Seen.news` gives it.
"""

import contextlib
import json
import secrets
import threading
from collections.abc import Generator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

from aqmlab.errors import BadInput
from aqmlab.runs import noted
from aqmlab.watch.seen import Seen, Told

HOST = "127.0.0.1"

LOOK_S = 0.25
"""How often notes are read, and somebody hears what is new at most."""

PATIENCE_S = 2.0
"""How long those who look are waited for, when all is over."""

SIGN_OF_LIFE_S = 10.0
"""A comment is sent after so long a silence: a browser that is gone is found out."""


class Watch:
    """Follows notes, and serves what they say at `address` until it is closed."""

    def __init__(self, notes: Path, port: int = 0) -> None:
        self.seen = Seen()
        self._news = threading.Condition()
        self._is_closing = False
        self._streams = 0
        self._notes = notes
        self.over = threading.Event()
        """Set when the work is over, or when who did it is gone."""
        try:
            self._file = notes.open("rb")
        except OSError:
            raise BadInput(f"{notes}: is over already; expected runs under way") from None
        try:
            self._server = ThreadingHTTPServer((HOST, port), _handler(self))
        except OSError as error:
            self._file.close()
            raise BadInput(f"--port {port}: {error.strerror or error}; expected a port that is free") from None
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self.address = f"http://{HOST}:{self.port}/"
        self._rest = b""
        self._threads = [
            threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True),
            threading.Thread(target=self._follow, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Tells those who look what there is yet, and ends."""
        with self._news:
            self._read()
            self._is_closing = True
            self._news.notify_all()
            self._news.wait_for(lambda: not self._streams, PATIENCE_S)
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join()
        self._file.close()

    def _follow(self) -> None:
        while True:
            with self._news:
                if self._is_closing:
                    return
                # Asked before the notes are read: what is written last is read, too.
                is_written = noted.is_written(self._notes)
                if self._read():
                    self._news.notify_all()
                if self.seen.is_over or not is_written:
                    self.seen.is_over = True
                    self.over.set()
                    self._news.notify_all()
                    return
                self._news.wait_for(lambda: self._is_closing, LOOK_S)

    def _read(self) -> bool:
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError):  # a line cut short by a full disk
                self.seen.add(json.loads(line))
        return bool(lines)

    def events(self) -> Generator[bytes]:
        """What somebody is told who begins to look now, event by event."""
        told: Told = {}
        with self._news:
            self._streams += 1
        try:
            while True:
                with self._news:
                    news, is_last = self.seen.news(told), self._is_closing or self.seen.is_over
                yield f"data: {json.dumps(news, separators=(',', ':'))}\n\n".encode()
                if is_last:
                    return
                with self._news:
                    is_news = self._is_closing or self._news.wait(SIGN_OF_LIFE_S)
                if not is_news:
                    yield b": still there\n\n"
        finally:
            with self._news:
                self._streams -= 1
                self._news.notify_all()


def page(nonce: str) -> str:
    """The page, with the style of all pages."""
    text = files("aqmlab.watch").joinpath("page.html").read_text(encoding="utf-8")
    style = files("aqmlab.report").joinpath("style.css").read_text(encoding="utf-8")
    return text.replace("/* style */", style).replace("NONCE", nonce)


def _handler(watch: Watch) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers a browser of this machine."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """The page, or its events."""
            port = watch.port
            if self.headers.get("Host") not in (f"{HOST}:{port}", f"localhost:{port}"):
                self._refuse(HTTPStatus.FORBIDDEN)  # a page from elsewhere that calls this machine by a name of its own
            elif self.path == "/":
                self._page()
            elif self.path == "/events":
                self._events()
            else:
                self._refuse(HTTPStatus.NOT_FOUND)

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing: the terminal is the runs'."""

        def _refuse(self, why: HTTPStatus) -> None:
            self.send_response(why)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _page(self) -> None:
            nonce = secrets.token_urlsafe(16)
            body = page(nonce).encode()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header(
                "Content-Security-Policy",
                f"default-src 'none'; connect-src 'self'; img-src data:; style-src 'nonce-{nonce}'; "
                f"script-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            )
            self.end_headers()
            self.wfile.write(body)

        def _events(self) -> None:
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Cache-Control", "no-store")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            events = watch.events()
            # A browser that is gone.
            with contextlib.suppress(ConnectionError), contextlib.closing(events):
                for event in events:
                    self.wfile.write(event)
                    self.wfile.flush()

    return Handler
