"""The connection to a node that is not reachable directly: a command whose standard input and output lead to its SSH server."""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import threading

from gpucourse.errors import UnreachableError
from gpucourse.model.node import Node


def connect_through(node: Node, timeout_s: float) -> socket.socket:
    """Return a socket whose other end is the node's proxy command. The command ends when the socket is closed.

    Raises UnreachableError if the command cannot be started. One that cannot reach the node closes its end, and the handshake
    fails.
    """
    try:
        words = command(node)
    except ValueError as error:  # only in a record that was changed by hand: the settings refuse such a command
        raise UnreachableError(
            f"{node.label} does not answer: its proxy command cannot be used: {error}",
            hint="fix ssh_proxy_command in gpucourse.yaml, then type deploy again",
        ) from error
    ours, theirs = socket.socketpair()
    try:
        end = theirs.fileno()
        child = subprocess.Popen(words, stdin=end, stdout=end, stderr=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        ours.close()
        raise UnreachableError(
            f"{node.label} does not answer: the proxy command {words[0]} cannot be started: {error.strerror or error}",
            hint="fix ssh_proxy_command in gpucourse.yaml",
        ) from error
    finally:
        theirs.close()
    threading.Thread(target=child.wait, name=f"proxy-{node.name}", daemon=True).start()  # so that it leaves no zombie
    ours.settimeout(timeout_s)
    return ours


def command(node: Node) -> list[str]:
    """Return the words of a node's proxy command, with %h, %p, %r and %% filled in as OpenSSH does. Raises ValueError if it is
    not a command."""
    tokens = {"%h": node.address, "%p": str(node.port), "%r": node.user, "%%": "%"}
    if not node.proxy.strip() or "\0" in node.proxy:
        raise ValueError("it names no program")
    return [re.sub("%.", lambda match: tokens.get(match.group(), match.group()), word) for word in shlex.split(node.proxy)]
