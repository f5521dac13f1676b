"""Establishing which machine answers: the learner's SSH knows its host key, or the learner accepts its fingerprint. Also
explains what to type if the machine does not answer, or shows another key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from gpucourse.errors import NoAnswer, OtherHostKey
from gpucourse.labs.results import Stranger, UnknownHosts
from gpucourse.model.node import Node
from gpucourse.remote.fleet import Outcome, do_on_each, values
from gpucourse.remote.ssh import fetch_host_key
from gpucourse.remote.ssh_config import SshRoute

T = TypeVar("T")


def check_answers(outcomes: Sequence[Outcome[T]]) -> None:
    """Raise the error of the machines that failed, if any; if some do not answer at all, it says how to try those by plain
    ssh."""
    try:
        values(outcomes)
    except NoAnswer as error:
        silent = [outcome.node.typed for outcome in outcomes if isinstance(outcome.error, NoAnswer)]
        tries = " or ".join(f"ssh {_words(name)}" for name in silent[:4])
        raise NoAnswer(error.what, hint=f"see whether plain ssh gets there: {tries}") from error


def _words(name: str) -> str:
    """Return a machine's name as arguments of plain ssh."""
    host, colon, port = name.rpartition(":")
    return f"-p {port} {host}" if colon and port.isdecimal() and not host.endswith(":") else name


def with_host_keys(nodes: Sequence[Node], trust: Sequence[str]) -> list[Node]:
    """Return the nodes, each with the host key that it must show from now on.

    Raises UnknownHosts for those whose key is not trusted, UnreachableError if one does not answer.
    """
    unknown = [node for node in nodes if not node.host_key]
    outcomes = do_on_each(unknown, fetch_host_key)
    check_answers(outcomes)
    shown = {outcome.node.name: outcome.take() for outcome in outcomes}
    strangers = [
        Stranger(said=node.typed, fingerprint=shown[node.name][1]) for node in unknown if shown[node.name][1] not in trust
    ]
    if strangers:
        raise UnknownHosts(strangers)
    return [replace(node, host_key=shown[node.name][0]) if node.name in shown else node for node in nodes]


def explain_other_key(error: OtherHostKey, node: Node, route: SshRoute) -> OtherHostKey:
    """Return the same error with advice: the expected key is in the learner's known hosts, or in the lab's record."""
    if len(route.host_keys) > 1:
        hint = f"if one more machine answers as {route.known_as}, compare this key with the one that its owner publishes, then "
        add = f"ssh-keyscan -p {route.port} {route.address} >> ~/.ssh/known_hosts"
        return OtherHostKey(error.what, hint=f"{hint}{add}. If not, it is a stranger")
    if route.host_keys:
        way = f"ssh-keygen -R '{route.known_as}' forgets the old key; then log in once with plain ssh"
    else:
        way = "gpucourse destroy N --forget-unreachable forgets the lab and with it the old key; then deploy again"
    return OtherHostKey(error.what, hint=f"if you know that {node.typed} was reinstalled: {way}. If not, it is another machine")
