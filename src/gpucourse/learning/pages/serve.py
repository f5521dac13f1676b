"""Serves the page over HTTP on loopback. A browser on another computer can reach it through an SSH tunnel.

Every user of this computer can reach a port on loopback. So the address contains a random word, and no request without it is
served.
"""

from __future__ import annotations

import io
import secrets
import sys
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from gpucourse.outside.files import file_inside, read_bounded
from gpucourse.outside.names import OutsideError

ADDRESS = "127.0.0.1"
HOSTS = frozenset({ADDRESS, "localhost"})
"""Host names that a request may contain. This refuses web pages whose names resolve to loopback."""

MAX_BYTES = 64 << 20  # limit in bytes for one file
PATIENCE_S = 10.0  # ends a request that would never end
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class PageServer(ThreadingHTTPServer):
    """Serves the files of one folder to clients that know the token."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = secrets.token_urlsafe(24)
        super().__init__((ADDRESS, 0), _Request)

    @property
    def port(self) -> int:
        """Return the port that the system chose."""
        return self.server_port

    @property
    def url(self) -> str:
        """Return the address of the first page."""
        return f"http://{ADDRESS}:{self.port}/{self.token}/index.html"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report errors in this program. Print nothing about a client that disconnected."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Request(SimpleHTTPRequestHandler):
    server: PageServer
    timeout = PATIENCE_S

    def version_string(self) -> str:
        """Return a name that does not reveal the versions of this computer's software."""
        return "gpucourse"

    def log_message(self, *_: object) -> None:
        """Print nothing, because the requested path contains the token."""

    def send_head(self) -> io.BytesIO:
        """Send the headers, and return the body. GET sends the body; HEAD does not."""
        data = self._read() if self._is_for_us() else None
        self.send_response(HTTPStatus.OK if data is not None else HTTPStatus.NOT_FOUND)
        body = b"There is no such page.\n" if data is None else data
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return io.BytesIO(body)

    def _is_for_us(self) -> bool:
        name, _, _ = self.headers.get("Host", "").partition(":")
        return name.lower() in HOSTS

    def _read(self) -> bytes | None:
        """Return the file for the path, or None if the token is wrong, or if the path is not a page."""
        _, _, path = self.path.partition("/")
        token, _, name = path.partition("?")[0].partition("/")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            return None
        name = unquote(name) or "index.html"
        if not name.endswith(".html"):
            return None
        try:
            return read_bounded(file_inside(self.server.folder, name), MAX_BYTES)
        except (OSError, OutsideError):
            return None
