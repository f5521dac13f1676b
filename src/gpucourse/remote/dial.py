"""Open the connection that carries SSH, directly or through a command that connects to the node's SSH server."""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import threading

from gpucourse.errors import NoAnswer, UnreachableError
from gpucourse.model.node import Node


def dial(node: Node, timeout_s: float) -> socket.socket:
    """Return a connection to a node's SSH server, through the node's proxy command if it has one. Raises UnreachableError."""
    if node.proxy:
        return _connect_through(node)
    try:
        sock = socket.create_connection((node.address, node.port), timeout_s)
    except OSError as error:
        raise make_no_answer_error(node, str(error.strerror or error).lower()) from error
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def make_no_answer_error(node: Node, reason: str) -> NoAnswer:
    """Return the error for a node whose SSH server does not answer."""
    return NoAnswer(
        f"{node.label} does not answer SSH at {node.address}:{node.port}: {reason}",
        hint="gpucourse status shows which nodes are alive; gpucourse deploy brings a dead one back",
    )


def proxy_command(node: Node) -> list[str]:
    """Return the words of a node's proxy command, with %h, %p, %r and %% replaced as in OpenSSH. Raises ValueError if it is not
    a command."""
    tokens = {"%h": node.address, "%p": str(node.port), "%r": node.user, "%%": "%"}
    if not node.proxy.strip() or "\0" in node.proxy:
        raise ValueError("it names no program")
    return [re.sub("%.", lambda match: tokens.get(match.group(), match.group()), word) for word in shlex.split(node.proxy)]


def _connect_through(node: Node) -> socket.socket:
    """Return a socket whose other end is the node's proxy command. The command ends when the socket is closed.

    Raises UnreachableError if the command cannot be started. If the command cannot reach the node, it closes its end, and the
    SSH handshake fails.
    """
    try:
        words = proxy_command(node)
    except ValueError as error:  # only if a person edited the record: the settings refuse such a command
        raise UnreachableError(
            f"{node.label} does not answer: its proxy command cannot be used: {error}",
            hint="fix ssh_proxy_command in gpucourse.yaml, then type deploy again",
        ) from error
    near_end, far_end = socket.socketpair()
    try:
        end = far_end.fileno()
        child = subprocess.Popen(words, stdin=end, stdout=end, stderr=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        near_end.close()
        raise UnreachableError(
            f"{node.label} does not answer: the proxy command {words[0]} cannot be started: {error.strerror or error}",
            hint="fix ssh_proxy_command in gpucourse.yaml",
        ) from error
    finally:
        far_end.close()
    threading.Thread(target=child.wait, name=f"proxy-{node.name}", daemon=True).start()  # so that it leaves no zombie
    return near_end
