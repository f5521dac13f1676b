"""Nodes, in the form that every target provides. Code below the launch plan does not depend on the target."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Mode = str
"""The kind of a run's nodes, as in its record: SIMULATED, or the name of the target."""
SIMULATED: Mode = "local"
CERTAIN_OF_GPU = frozenset({"aws", "here"})
"""The targets whose labs always have a GPU. Existing machines may have none."""
Role = Literal["head", "worker"]
Way = Literal["", "openssh", "here"]
"""How this computer reaches a node: with the SSH library, with the ssh command, or without SSH because this computer is the
node.
"""


def is_simulated(mode: Mode) -> bool:
    """Return whether nodes with that mode are simulated. A run on simulated nodes is no evidence of what a GPU does."""
    return mode == SIMULATED


@dataclass(frozen=True, kw_only=True)
class Node:
    """One machine that answers SSH.

    `address` and `port`: those at which this computer reaches the node.
    `private_address`: the address at which the other nodes reach it.
    `python`: the interpreter on the node that has the course's packages.
    `host_key`: the node's public SSH key (`ssh-ed25519 AAAA...`).
    `other_host_keys`: keys of other machines at the same address, such as the login nodes of a cluster.
    `mode`: decides what counts as evidence. `local` is a simulated node.
    `proxy`: a command whose standard input and output lead to the node's SSH server, like OpenSSH's ProxyCommand with %h and
    %p. It is empty if the node is reached directly.
    `key`: the private key on this computer. It is empty for the workspace's key.
    `typed`: the name that the learner typed for their own machine.
    `way`: how this computer reaches it.
    """

    name: str
    role: Role
    address: str
    port: int
    private_address: str
    user: str
    gpus: int
    instance_type: str
    python: str
    mode: Mode
    host_key: str = ""
    proxy: str = ""
    key: str = ""
    typed: str = ""
    other_host_keys: tuple[str, ...] = ()
    way: Way = ""

    @property
    def label(self) -> str:
        """Return the node's name in messages: the name that the learner typed, otherwise the name in the lab."""
        return self.typed or self.name

    @property
    def login(self) -> str:
        """Return the user and address to log in with: as the learner typed them if the ssh command resolves the name."""
        return self.typed if self.way and self.typed else f"{self.user}@{self.address}:{self.port}"

    @property
    def ssh_words(self) -> tuple[str, ...]:
        """Return the words to type in front of a command to run it on the node. There are none for this computer."""
        if self.way == "here":
            return ()
        place, _, port = self.login.rpartition(":")
        if not port.isdigit():
            return ("ssh", self.login)
        return ("ssh", *(() if port == "22" else ("-p", port)), place.replace("[", "").replace("]", ""))

    @property
    def is_simulated(self) -> bool:
        """Return whether the node is a process or a namespace on this computer."""
        return is_simulated(self.mode)


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """The nodes of one stack, head first."""

    stack: str
    nodes: tuple[Node, ...] = field(default_factory=tuple)

    @property
    def head(self) -> Node:
        """Return the node where the others meet: the head, or the first node if none is marked as the head."""
        return next((node for node in self.nodes if node.role == "head"), self.nodes[0])

    def find_node(self, name: str) -> Node | None:
        """Return the node of that name, or None."""
        return next((node for node in self.nodes if node.name == name), None)
