"""`open --serve`: the page over HTTP on loopback, for clients that know the token."""

from __future__ import annotations

import http.client
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpucourse.learning.pages.serve import MAX_STREAMS, PageServer, find_stamp
from tests.waiting import STUCK_S, until


def follow(place: str, stamp: str) -> Iterator[bytes]:
    """Yield an event with the page's name and stamp, then empty items without end."""
    yield f"event: name\ndata: {place} {stamp}\n\n".encode()
    while True:
        yield b""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PageServer]:
    folder = tmp_path / "page"
    folder.joinpath("runs").mkdir(parents=True)
    folder.joinpath("index.html").write_text("<title>first</title>")
    folder.joinpath("runs", "a.html").write_text("<title>run</title>")
    folder.joinpath("notes.txt").write_text("text")
    tmp_path.joinpath("secret.html").write_text("secret")
    folder.joinpath("link.html").symlink_to(tmp_path / "secret.html")
    with PageServer(folder, follow, event_s=0.01) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server: PageServer, path: str, *, host: str = "127.0.0.1", method: str = "GET") -> tuple[int, bytes, dict[str, str]]:
    """Return the status, the body and the headers of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=STUCK_S)
    connection.request(method, path, headers={"Host": host})
    answer = connection.getresponse()
    body, headers = answer.read(), dict(answer.getheaders())
    connection.close()
    return answer.status, body, headers


def test_serve_answers_with_the_page_for_the_token(server: PageServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.url == f"http://127.0.0.1:{server.port}/{server.token}/index.html"
    assert len(server.token) >= 32
    for path, words in (("", b"first"), ("index.html", b"first"), ("runs/a.html?x=1", b"run")):
        status, body, headers = ask(server, f"/{server.token}/{path}", host=f"localhost:{server.port}")
        assert (status, words in body) == (200, True)
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert ask(server, f"/{server.token}/index.html", method="HEAD")[:2] == (200, b"")


def test_serve_without_the_token_or_outside_the_folder_answers_not_found(server: PageServer) -> None:
    address = f"/{server.token}"
    paths = [
        "/",
        "/index.html",
        "/x/index.html",
        f"{address[:-1]}/index.html",
        address.upper() + "/index.html",
    ]
    paths += [
        f"{address}/../secret.html",
        f"{address}/%2e%2e/secret.html",
        f"{address}//etc/passwd",
        f"{address}/link.html",
        f"{address}/notes.txt",
    ]
    paths += [f"{address}/runs", f"{address}/.gpucourse-page", f"{address}/no.html", f"{address}/%00.html"]
    for path in paths:
        status, body, _ = ask(server, path)
        assert (status, body) == (404, b"There is no such page.\n"), path
    assert ask(server, f"{address}/index.html", host="evil.example")[0] == 404
    assert ask(server, f"{address}/index.html", method="POST")[0] == 501


@pytest.mark.parametrize("host", ["[::1", "[", "::1", "localhost@evil.example", "127.0.0.1.evil.example", "", "\xff"])
def test_serve_for_another_host_name_answers_not_found(
    server: PageServer, host: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ask(server, f"/{server.token}/index.html", host=host)[0] == 404
    assert capfd.readouterr() == ("", "")


def open_stream(server: PageServer, path: str, host: str = "127.0.0.1") -> http.client.HTTPResponse:
    """Return the response to a request for events, after its headers have arrived."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=STUCK_S)
    connection.request("GET", path, headers={"Host": host})
    return connection.getresponse()


def test_serve_streams_events_to_at_most_16_pages_until_it_ends(server: PageServer) -> None:
    address = f"/{server.token}/runs/a.html?events=7f"
    answers = [open_stream(server, address) for _ in range(MAX_STREAMS)]
    assert {(answer.status, answer.headers["Content-Type"]) for answer in answers} == {
        (200, "text/event-stream; charset=utf-8")
    }
    assert [answers[0].readline() for _ in range(2)] == [b"event: name\n", b"data: runs/a.html 7f\n"]
    assert open_stream(server, address).status == 503
    for path, host in ((address[2:], "127.0.0.1"), (address.replace("a.html", "no.html"), ""), (address, "evil.example")):
        assert open_stream(server, f"/{path.lstrip('/')}", host).status == 404
    answers.pop().close()
    until(lambda: open_stream(server, address).status == 200, "a page that was closed makes room")
    server.server_close()
    assert answers[0].read() == b"\n"


def test_find_stamp_lets_only_a_served_page_connect(server: PageServer) -> None:
    file = server.folder / "index.html"
    file.write_text('<html><head><meta content="default-src &#39;none&#39;; script-src x"><p>default-src &#39;none&#39;;')
    _, body, _ = ask(server, f"/{server.token}/index.html")
    assert body.decode() == (
        f'<html><head><meta name="live" content="{find_stamp(file)}">'
        '<meta content="default-src &#39;none&#39;; connect-src &#39;self&#39;; script-src x"><p>default-src &#39;none&#39;;'
    )


class _Watched(PageServer):
    """Reports when a request ended with an error."""

    def __init__(self, folder: Path) -> None:
        self.failed = threading.Event()
        super().__init__(folder, follow)

    def handle_error(self, request: Any, client_address: Any) -> None:
        super().handle_error(request, client_address)
        self.failed.set()


def test_serve_prints_nothing_when_a_client_resets_its_connection(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with _Watched(tmp_path) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(b"GET /")
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close() then sends a reset
        server.handle_request()
        assert server.failed.wait(STUCK_S)
    assert capfd.readouterr() == ("", "")
