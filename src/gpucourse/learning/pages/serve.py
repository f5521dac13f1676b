"""Serves the page over HTTP on loopback. A browser on another computer can reach it through an SSH tunnel.

Every user of this computer can reach a port on loopback. So the address contains a random word, and no request without it is
served.

An open page has a stream of events: the same address with `?events=STAMP`. The policy of a served page allows this stream; the
policy of the file on disk allows no connection.
"""

from __future__ import annotations

import io
import secrets
import select
import sys
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from gpucourse.outside.files import file_inside, read_bounded
from gpucourse.outside.names import OutsideError

ADDRESS = "127.0.0.1"
HOSTS = frozenset({ADDRESS, "localhost"})
"""The host names that a request may contain. Requests with any other name are refused, such as those from a web page whose
name resolves to loopback."""

MAX_BYTES = 64 << 20  # limit in bytes for one file
MAX_STREAMS = 16  # pages that are followed at the same time
EVENT_S = 0.5  # how often a stream asks for events
PATIENCE_S = 10.0  # ends a request that would never end, and a stream that is not read
HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
POLICY, LIVE_POLICY = b"default-src &#39;none&#39;;", b"default-src &#39;none&#39;; connect-src &#39;self&#39;;"
"""The beginning of a page's content security policy, both on disk and as served."""

Follow = Callable[[str, str], Iterator[bytes]]
"""A function that yields the events of the page with this path and stamp, without end. An item may be empty."""


def find_stamp(file: Path) -> str:
    """Return a word that changes whenever the page does, or an empty string if there is no such page."""
    try:
        return f"{file.lstat().st_mtime_ns:x}"
    except OSError:
        return ""


class PageServer(ThreadingHTTPServer):
    """Serves the files of one folder, and the events that `follow` yields, to clients that know the token."""

    daemon_threads = True

    def __init__(self, folder: Path, follow: Follow, *, event_s: float = EVENT_S) -> None:
        self.folder, self.follow, self.event_s = folder, follow, event_s
        self.token = secrets.token_urlsafe(24)
        self.streams = threading.BoundedSemaphore(MAX_STREAMS)
        self.closing = threading.Event()
        super().__init__((ADDRESS, 0), _Request)

    @property
    def port(self) -> int:
        """Return the port that the system chose."""
        return self.server_port

    @property
    def url(self) -> str:
        """Return the address of the first page."""
        return f"http://{ADDRESS}:{self.port}/{self.token}/index.html"

    def server_close(self) -> None:
        """Close the port, and end all streams."""
        self.closing.set()
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report errors in this program. Print nothing about a client that disconnected, or that no longer reads."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class _Request(SimpleHTTPRequestHandler):
    server: PageServer
    timeout = PATIENCE_S

    def version_string(self) -> str:
        """Return a name that does not reveal the versions of this computer's software."""
        return "gpucourse"

    def log_message(self, *_: object) -> None:
        """Print nothing, because the requested path contains the token."""

    def do_GET(self) -> None:
        """Send a page, or its events until the client disconnects or the server stops."""
        _, is_stream, stamp = self.path.partition("?events=")
        page = self._find_page() if is_stream else None
        if page is None:
            super().do_GET()
        elif not self.server.streams.acquire(blocking=False):
            self._send_headers(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain")
        else:
            try:
                self._send_headers(HTTPStatus.OK, "text/event-stream")
                self._send_events(page, stamp)
            finally:
                self.server.streams.release()

    def _send_events(self, page: str, stamp: str) -> None:
        for events in self.server.follow(page, stamp):
            self.wfile.write(events)
            has_left = select.select([self.connection], [], [], 0)[0]  # a client that has sent its request sends nothing more
            if has_left or self.server.closing.wait(self.server.event_s):
                return

    def send_head(self) -> io.BytesIO:
        """Send the headers, and return the body. GET sends the body; HEAD does not."""
        data = self._read()
        body = b"There is no such page.\n" if data is None else data
        status = HTTPStatus.NOT_FOUND if data is None else HTTPStatus.OK
        self._send_headers(status, "text/html", {"Content-Length": str(len(body))})
        return io.BytesIO(body)

    def _send_headers(self, status: HTTPStatus, kind: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": f"{kind}; charset=utf-8", **HEADERS, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()

    def _find_page(self) -> str | None:
        """Return the path of the page in the folder, or None if the token or the host is wrong, or if it is not a page."""
        host, _, _ = self.headers.get("Host", "").partition(":")
        _, _, path = self.path.partition("/")
        token, _, name = path.partition("?")[0].partition("/")
        if host.lower() not in HOSTS or not secrets.compare_digest(token.encode(), self.server.token.encode()):
            return None
        name = unquote(name) or "index.html"
        if not name.endswith(".html"):
            return None
        try:
            file_inside(self.server.folder, name)
        except OutsideError:
            return None
        return name

    def _read(self) -> bytes | None:
        """Return the page as it is served, with its stamp, or None if there is no such page."""
        if (name := self._find_page()) is None:
            return None
        file = self.server.folder / name
        stamp = find_stamp(file)  # read first: a page that is replaced now has an old stamp, and is then loaded again
        try:
            data = read_bounded(file, MAX_BYTES)
        except (OSError, OutsideError):
            return None
        head, policy, body = data.partition(POLICY)
        if policy:
            head = head.replace(b"<head>", f'<head><meta name="live" content="{stamp}">'.encode(), 1)
        return head + (LIVE_POLICY if policy else b"") + body
