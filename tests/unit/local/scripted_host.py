"""A host of simulated nodes that answers from a script, and the description of a node."""

from __future__ import annotations

import getpass
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gpucourse.local import control
from gpucourse.local.hosted import Spec
from tests.waiting import STUCK_S


def make_spec(uid: str, **options: Any) -> Spec:
    usual = {
        "name": "node0",
        "role": "head",
        "user": getpass.getuser(),
        "python": sys.executable,
        "public_key": "ssh-ed25519 A",
    }
    return Spec.read({**usual, "uid": uid, **options})


@contextmanager
def host(folder: Path, answers: dict[str, list[str | None]]) -> Iterator[list[str]]:
    """Yield a socket in the folder that returns the next answer for each verb. None: it does not answer until the client gives
    up.
    """
    heard: list[str] = []
    silent: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(control.SOCKET)
        server.listen()

        def serve() -> None:
            while True:
                try:
                    line, _ = server.accept()
                except OSError:
                    return
                with line.makefile() as reader:
                    verb = reader.readline().split(" ")[0]
                heard.append(verb)
                answer = answers[verb].pop(0)
                if answer is None:
                    silent.append(line)
                    continue
                with line:
                    line.sendall(answer.encode())

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield heard
        server.shutdown(socket.SHUT_RDWR)
        thread.join(STUCK_S)
    for line in silent:
        line.close()
    (folder / control.SOCKET).unlink()
