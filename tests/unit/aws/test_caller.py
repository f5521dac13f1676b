from __future__ import annotations

import socket
import threading
import urllib.error
from collections.abc import Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from gpucourse.aws.caller import CHECKIP, caller_cidr, validate_cidr
from gpucourse.errors import MissingError, UsageError


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (
            urllib.error.URLError(socket.gaierror(-2, "Name or service not known")),
            "has no address here: is this computer online",
        ),
        (urllib.error.URLError(ConnectionRefusedError(111, "Connection refused")), "cannot be reached (Connection refused)"),
        (urllib.error.URLError(TimeoutError("timed out")), "does not answer within 5 s"),
        (urllib.error.HTTPError(CHECKIP, 503, "Service Unavailable", Message(), None), "answers with HTTP 503"),
        (ValueError("unknown url type: 'x'"), "cannot be reached (unknown url type: 'x')"),
    ],
)
def test_caller_cidr_describes_a_page_that_fails_in_a_sentence(problem: Exception, said: str) -> None:
    def silent(_url: str) -> str:
        raise problem

    with pytest.raises(MissingError) as caught:
        caller_cidr({}, silent)
    assert f"cannot learn this computer's address: {CHECKIP} {said}" in caught.value.what
    assert "--ssh-cidr" in caught.value.hint


@pytest.mark.parametrize("said", ["<html>sign in to the hotel</html>", "", "300.1.1.1", "2001:4860:4860::8888"])
def test_caller_cidr_is_one_ipv4_address_or_an_error(said: str) -> None:
    assert caller_cidr({}, lambda url: {CHECKIP: "18.220.1.2"}[url]) == "18.220.1.2/32"
    with pytest.raises(MissingError, match="address"):
        caller_cidr({}, lambda _url: said)


@pytest.mark.parametrize(
    "text",
    ["0.0.0.0/0", "18.220.1.2/31", "10.0.0.1/32", "127.0.0.1/32", "169.254.169.254/32", "100.64.0.1/32", "::1/128", "me"],
)
def test_validate_cidr_accepts_one_public_ipv4_address_alone(text: str) -> None:
    assert validate_cidr(" 18.220.1.2 ") == validate_cidr("18.220.1.2/32") == "18.220.1.2/32"
    with pytest.raises(UsageError):
        validate_cidr(text)


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"203.0.113.7\n")

    def log_message(self, *_words: object) -> None: ...


@pytest.fixture
def page() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_caller_cidr_reads_a_page_over_http(page: str) -> None:
    assert caller_cidr({"GPUCOURSE_CHECKIP_URL": page}) == "203.0.113.7/32"
