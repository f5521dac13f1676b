"""The public address of this computer: the only address that can reach the nodes' SSH port."""

from __future__ import annotations

import http.client
import ipaddress
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping

from gpucourse.errors import MissingError, UsageError

CHECKIP = "https://checkip.amazonaws.com"
VARIABLE = "GPUCOURSE_CHECKIP_URL"
TIMEOUT_S = 5.0
_HINT = "set it with --ssh-cidr ADDRESS/32 (your IPv4 address as web sites see it)"
_MAX_ANSWER = 256
_EXAMPLES = tuple(  # reserved for documentation (RFC 5737): no host has one of these, so they open nothing
    ipaddress.IPv4Network(text) for text in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")
)


def fetch(url: str) -> str:
    """Return the text at `url`, at most its first 256 bytes. Raises OSError."""
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:  # noqa: S310  (https, or the user's own URL)
        text: bytes = answer.read(_MAX_ANSWER)
    return text.decode("ascii", errors="replace").strip()


def caller_cidr(environ: Mapping[str, str], ask: Callable[[str], str] = fetch) -> str:
    """Return this computer's public IPv4 address as a /32.

    The environment variable GPUCOURSE_CHECKIP_URL names another page to query. Raises MissingError if the address cannot be
    determined or is not IPv4, UsageError if it is not public.
    """
    url = environ.get(VARIABLE) or CHECKIP
    try:
        answer = ask(url)
    except (OSError, urllib.error.URLError, http.client.HTTPException, ValueError) as error:
        raise MissingError(f"cannot determine this computer's address: {url} {_find_reason(error)}", hint=_HINT) from error
    try:
        address = ipaddress.ip_address(answer)
    except ValueError as error:
        raise MissingError(f"{url} answered with something other than an address: {answer[:60]!r}", hint=_HINT) from error
    if address.version == 6:
        raise MissingError(f"{url} sees an IPv6 address ({address}); the labs use only IPv4", hint=_HINT)
    return validate_cidr(f"{address}/32")


def _find_reason(error: Exception) -> str:
    """Return why the page could not be read, as the end of a sentence. For a URLError, this is the reason inside the error."""
    if isinstance(error, urllib.error.HTTPError):
        return f"answers with HTTP {error.code}"
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, socket.gaierror):
        return "cannot be looked up: is this computer online, and does its DNS work?"
    if isinstance(reason, TimeoutError):
        return f"does not answer within {TIMEOUT_S:.0f} s"
    words = reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason)
    return f"cannot be reached ({words})"


def validate_cidr(text: str) -> str:
    """Return `text` as ADDRESS/32 if it is one public IPv4 address. Only this address will reach SSH.

    Raises UsageError for any other text, such as a wider range, a private address or IPv6.
    """
    try:
        network = ipaddress.ip_network(text.strip())
    except ValueError as error:
        raise UsageError(f"'{text}' is not an address: {error}", hint=_HINT) from error
    if network.version == 6:
        raise UsageError(f"{text} is IPv6, but the labs use only IPv4", hint=_HINT)
    if network.num_addresses != 1:
        raise UsageError(f"{text} would open SSH to {network.num_addresses:,} addresses", hint=_HINT)
    address = network.network_address
    if not address.is_global and not any(address in example for example in _EXAMPLES):
        raise UsageError(f"{text} is not a public internet address, so AWS never sees it", hint=_HINT)
    return str(network)
