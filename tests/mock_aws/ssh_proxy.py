"""Connect to the node behind an instance, as `ssh -o ProxyCommand` runs it: `python ssh_proxy.py ADDRESSES HOST PORT`.

It uses only the standard library, so that it starts fast. A connection to an unknown address is refused, as by a machine that
is off.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from pathlib import Path

CHUNK = 1 << 16


def main(arguments: list[str]) -> int:
    """Return the exit code: 0 after a connection that ended, 1 if the node does not answer."""
    file, host, port = arguments
    text = json.loads(Path(file).read_text(encoding="utf-8"))
    if port != "22" or host not in text:
        sys.stderr.write(f"connect to {host} port {port}: no answer\n")
        return 1
    try:
        line = socket.create_connection((text[host]["host"], text[host]["port"]))
    except OSError as error:
        sys.stderr.write(f"connect to {host} port {port}: {error}\n")
        return 1
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    threading.Thread(target=_send, args=(line,), daemon=True).start()
    _receive(line)
    return 0


def _send(line: socket.socket) -> None:
    try:
        while data := os.read(0, CHUNK):
            line.sendall(data)
        line.shutdown(socket.SHUT_WR)
    except OSError:
        return


def _receive(line: socket.socket) -> None:
    try:
        while data := line.recv(CHUNK):
            view = memoryview(data)
            while view:
                view = view[os.write(1, view) :]
    except OSError:
        return


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)  # the other thread may be blocked in a read that never ends
