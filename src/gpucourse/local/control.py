"""What a driver and the host say to each other: one JSON line there, one back, over a socket in the nodes' folder.

The socket is named by a relative path: an absolute one may be longer than the 108 bytes (104 on macOS) that the system allows.
So whoever asks must have made the folder its working directory.
"""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

from gpucourse.local.layout import SOCKET

if TYPE_CHECKING:
    from typing import Any


class NobodyAnswers(Exception):
    """No host listens, or it went away before it answered. What was asked may be asked again."""


class HostStuck(Exception):
    """There is a host, and it did not answer in time."""


class Refused(Exception):
    """The host answered that it cannot; its reason is the message."""


def ask(request: dict[str, object], *, timeout_s: float) -> dict[str, Any]:
    """Ask the host of the current folder. Raises NobodyAnswers, HostStuck or Refused."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(timeout_s)
        try:
            line.connect(SOCKET)
            line.sendall(json.dumps(request).encode() + b"\n")
            with line.makefile("rb") as reader:
                said = reader.readline()
        except TimeoutError as error:
            raise HostStuck(f"no answer in {timeout_s:.0f} s") from error
        except OSError as error:
            raise NobodyAnswers(str(error)) from error
    if not said.endswith(b"\n"):
        raise NobodyAnswers("it hung up")
    answer: dict[str, Any] = json.loads(said)
    if "error" in answer:
        raise Refused(str(answer["error"]))
    return answer
