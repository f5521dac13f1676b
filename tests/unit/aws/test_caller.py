from __future__ import annotations

import socket
import urllib.error
from email.message import Message

import pytest

from gpucourse.aws.caller import CHECKIP, caller_cidr, validate_cidr
from gpucourse.errors import MissingError, UsageError


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (
            urllib.error.URLError(socket.gaierror(-2, "Name or service not known")),
            "cannot be looked up: is this computer online",
        ),
        (urllib.error.URLError(ConnectionRefusedError(111, "Connection refused")), "cannot be reached (Connection refused)"),
        (urllib.error.URLError(TimeoutError("timed out")), "does not answer within 5 s"),
        (urllib.error.HTTPError(CHECKIP, 503, "Service Unavailable", Message(), None), "answers with HTTP 503"),
        (ValueError("unknown url type: 'x'"), "cannot be reached (unknown url type: 'x')"),
    ],
)
def test_caller_cidr_describes_a_page_that_fails_in_a_sentence(problem: Exception, message: str) -> None:
    def silent(_url: str) -> str:
        raise problem

    with pytest.raises(MissingError) as caught:
        caller_cidr({}, silent)
    assert f"cannot determine this computer's address: {CHECKIP} {message}" in caught.value.what
    assert "--ssh-cidr" in caught.value.hint


@pytest.mark.parametrize("message", ["<html>sign in to the hotel</html>", "", "300.1.1.1", "2001:4860:4860::8888"])
def test_caller_cidr_is_one_ipv4_address_or_an_error(message: str) -> None:
    assert caller_cidr({}, lambda url: {CHECKIP: "18.220.1.2"}[url]) == "18.220.1.2/32"
    with pytest.raises(MissingError, match="address"):
        caller_cidr({}, lambda _url: message)


@pytest.mark.parametrize(
    "text",
    ["0.0.0.0/0", "18.220.1.2/31", "10.0.0.1/32", "127.0.0.1/32", "169.254.169.254/32", "100.64.0.1/32", "::1/128", "me"],
)
def test_validate_cidr_accepts_one_public_ipv4_address_alone(text: str) -> None:
    assert validate_cidr(" 18.220.1.2 ") == validate_cidr("18.220.1.2/32") == "18.220.1.2/32"
    with pytest.raises(UsageError):
        validate_cidr(text)
