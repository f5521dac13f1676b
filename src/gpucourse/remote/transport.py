"""Choose how to reach a node: with the SSH library, with the ssh command, or by a process on this computer. Only this file
chooses."""

from __future__ import annotations

import os
from pathlib import Path

from gpucourse.model.node import Node, Way
from gpucourse.ports import Link
from gpucourse.remote.patience import CONNECT_S


class NodeTransport:
    """The transport that opens links, each in the `way` that the node's record names. Implements ports.Transport.

    `key_file`: the private key for nodes that name none and are reached by the SSH library.
    """

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file

    def connect(self, node: Node, *, timeout_s: float = CONNECT_S, shared: str = "") -> Link:
        """Connect to a node. Raises UnreachableError, and MissingError if a key or ssh is missing."""
        if node.way == "here":
            from gpucourse.remote.process_channel import LocalLink

            return LocalLink(node, shared)
        if node.way == "openssh":
            from gpucourse.remote import openssh

            return openssh.connect(node, timeout_s=timeout_s, shared=shared)
        from gpucourse.remote.ssh import SshTransport

        return SshTransport(self._key_file).connect(node, timeout_s=timeout_s, shared=shared)


def choose_way(login: str) -> Way:
    """Return the way to reach the login node of a cluster: the ssh command, or a process on this computer if this computer is
    that node.

    `login`: a name as for ssh; empty for this computer.
    """
    return "openssh" if login else "here"


def list_terminal_words(node: Node, config: Path, command: str = "", *, terminal: bool = False) -> list[str]:
    """Return the program and arguments that open a shell on a node for a person, or run one command line there.

    `config`: the SSH configuration of the node's lab.
    `terminal`: whether the command needs a terminal. A shell has one anyway.

    Raises MissingError if OpenSSH's client is not installed.
    """
    line = [command] if command else []
    if node.way == "here":
        shell = os.environ.get("SHELL") or "/bin/sh"
        return ["/bin/sh", "-c", command] if command else [shell, "-l"]
    from gpucourse.remote.ssh_config import find_program

    options = ["-tt", "-q"] if terminal else []
    if node.way == "openssh":
        from gpucourse.remote import openssh

        return [*openssh.list_words(node, options), *line]
    return [find_program("ssh"), *options, "-F", str(config), node.name, *line]
