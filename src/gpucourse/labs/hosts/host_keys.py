"""Who a machine is: its host key is known to the learner's SSH, or the learner says yes to its fingerprint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpucourse.labs.results import Stranger, UnknownHosts
from gpucourse.model.node import Node
from gpucourse.remote.fleet import do_on_each, values
from gpucourse.remote.ssh import fetch_host_key


def with_host_keys(nodes: Sequence[Node], said: Mapping[str, str], trust: Sequence[str]) -> list[Node]:
    """The nodes, each with the host key that it must show from now on. `said`: what the learner called each, by name.

    Raises UnknownHosts for those that nobody vouches for, UnreachableError where one does not answer.
    """
    unknown = [node for node in nodes if not node.host_key]
    shown = {node.name: key for node, key in zip(unknown, values(do_on_each(unknown, fetch_host_key)), strict=True)}
    strangers = [
        Stranger(said=said[name], fingerprint=fingerprint)
        for name, (_, fingerprint) in shown.items()
        if fingerprint not in trust
    ]
    if strangers:
        raise UnknownHosts(strangers)
    return [replace(node, host_key=shown[node.name][0]) if node.name in shown else node for node in nodes]
