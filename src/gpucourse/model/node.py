"""Nodes, in the form that every stack provides. The code below the launch plan does not depend on the target that made them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Mode = str
"""The kind of the nodes of a run, as in its record: SIMULATED, or the name of their target."""
SIMULATED: Mode = "local"
CERTAIN_OF_GPU = frozenset({"aws", "here"})
"""The targets whose labs always have a GPU. Machines that existed before may have none."""
Role = Literal["head", "worker"]


def is_simulated(mode: Mode) -> bool:
    """Return whether nodes with that mode are simulated, so that a run on them is no evidence of what a GPU does."""
    return mode == SIMULATED


@dataclass(frozen=True, kw_only=True)
class Node:
    """One machine that answers SSH.

    This computer reaches the node at `address` and `port`, and the other nodes reach it at `private_address`. `python` is the
    interpreter on the node that has the course's packages. `host_key` is its public SSH key (`ssh-ed25519 AAAA...`);
    `other_host_keys` are those of other machines that answer at the same address, as the login nodes of a cluster may do.
    `mode` only decides what may count as evidence: `local` is a simulated node. `proxy` is a command whose standard input and
    output lead to the node's SSH server (like OpenSSH's ProxyCommand, with %h and %p); it is empty if the node is reached
    directly. `key` is the private key on this computer for the node; it is empty for the workspace's key. `typed` is the name
    that the learner typed for their own machine.
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

    @property
    def label(self) -> str:
        """Return its name in messages: the name that the learner typed, or else its name in the lab."""
        return self.typed or self.name

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
        """Return the node at which the others meet; the first node if none is marked as the head."""
        return next((node for node in self.nodes if node.role == "head"), self.nodes[0])

    def find_node(self, name: str) -> Node | None:
        """Return the node of that name, or None."""
        return next((node for node in self.nodes if node.name == name), None)
