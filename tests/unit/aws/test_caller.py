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


def test_caller_cidr_is_a_range_of_one_address() -> None:
    assert caller_cidr({}, lambda url: {CHECKIP: "18.220.1.2"}[url]) == "18.220.1.2/32"


def test_caller_cidr_asks_the_page_that_the_environment_names() -> None:
    asked: list[str] = []

    def ask(url: str) -> str:
        asked.append(url)
        return "203.0.113.9"

    assert caller_cidr({"GPUCOURSE_CHECKIP_URL": "http://127.0.0.1:1/ip"}, ask) == "203.0.113.9/32"
    assert asked == ["http://127.0.0.1:1/ip"]


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
def test_caller_cidr_refuses_what_is_no_ipv4_address(said: str) -> None:
    with pytest.raises(MissingError, match="address"):
        caller_cidr({}, lambda _url: said)


@pytest.mark.parametrize(
    "text",
    ["0.0.0.0/0", "18.220.1.2/31", "10.0.0.1/32", "127.0.0.1/32", "169.254.169.254/32", "100.64.0.1/32", "::1/128", "me"],
)
def test_validate_cidr_refuses_anything_but_one_public_address(text: str) -> None:
    with pytest.raises(UsageError):
        validate_cidr(text)


@pytest.mark.parametrize("text", ["18.220.1.2", "18.220.1.2/32", " 18.220.1.2/32 "])
def test_validate_cidr_accepts_one_public_address(text: str) -> None:
    assert validate_cidr(text) == "18.220.1.2/32"


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


def test_validate_cidr_says_that_the_labs_speak_ipv4_when_it_is_ipv6() -> None:
    with pytest.raises(UsageError, match="is IPv6, and the labs speak IPv4"):
        validate_cidr("2001:db8::1/128")
