"""The requests of a driver and the answers of the host: one line in each direction, over a socket in the nodes' folder.

    request                     answer

    check {}                    found {what is wrong with each machine}
    power {name, way}           done {}
    run {name, argv}            done {code, output, errors}
    add {the node's spec}       node {what Terraform reads}   or   ending
    remove {uid, name}          kept   or, after the stack's last node,   last
    remove {uid, count}         the same; removes every node whose number is `count` or higher
    ping {}                     here
    any request that fails      error {why}

The socket has a relative path: an absolute one may be longer than the 108 bytes (104 on macOS) that the system allows. So the
caller's working directory must be the nodes' folder. This file imports as little as it can: every driver loads it.
"""

from __future__ import annotations

import _socket  # `socket` imports selectors and enum, which would cost every driver 8 ms of processor time

SOCKET = "control.sock"

_PIECE = 1 << 16


class HostAbsent(Exception):
    """No host is listening, or it exited before it answered. The request may be repeated."""


class HostStuck(Exception):
    """A host exists, but it did not answer in time."""


class ControlRefused(Exception):
    """The host answered that it cannot do what was requested. The message is its reason."""


class DriverError(Exception):
    """A node could not be brought up or taken down. The message says why."""


def ask(verb: str, spec: str, *, timeout_s: float, at: str = SOCKET) -> tuple[str, str]:
    """Send a request to the host of the current folder. Return the first word of its answer, and the text after that word.

    `at`: the host's socket. Raises HostAbsent, HostStuck or ControlRefused.
    """
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        line.settimeout(timeout_s)
        line.connect(at)
        line.sendall(f"{verb} {spec}\n".encode())
        reply = _read_line(line)
    except TimeoutError as error:
        raise HostStuck(f"no answer within {timeout_s:.0f} s") from error
    except OSError as error:
        raise HostAbsent(str(error)) from error
    finally:
        line.close()
    if not reply.endswith("\n"):
        raise HostAbsent("the connection was closed before the answer")
    word, _, document = reply.strip().partition(" ")
    if word == "error":
        raise ControlRefused(document)
    return word, document


def _read_line(line: _socket.socket) -> str:
    """Return everything up to the end of the line, or to the end of the connection."""
    line_bytes = bytearray()
    while not line_bytes.endswith(b"\n") and (piece := line.recv(_PIECE)):
        line_bytes += piece
    return line_bytes.decode()
