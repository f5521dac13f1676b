"""Turn the names that the learner typed into nodes: connect to the machines and examine them. Nothing is changed on them.

A host key must be known to the learner's SSH, or the learner must accept its fingerprint.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gpucourse.context import Context
from gpucourse.errors import MissingError, NoAnswer, OtherHostKey, UsageError
from gpucourse.labs.results import Stranger, UnknownHosts
from gpucourse.model.event import NodeEvent
from gpucourse.model.node import Node
from gpucourse.ports import Link
from gpucourse.remote.fleet import Fleet, Outcome, do_on_each, values
from gpucourse.remote.host_probe import PYTHONS, HostFacts, look
from gpucourse.remote.keys import ensure_client_key
from gpucourse.remote.ssh import KeyRefused, fetch_host_key
from gpucourse.remote.ssh_config import SshRoute, find_ssh_route
from gpucourse.units import format_bytes

if TYPE_CHECKING:
    from gpucourse.workspace.settings import Settings


MAX_KEYS = 4  # a server closes the connection after six keys that it does not accept

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class EnteredHost:
    """A machine that accepts the login: its node, and the facts about it."""

    node: Node
    facts: HostFacts


def enter(
    context: Context, hosts: Sequence[str], *, key: Path | None, trust: Sequence[str], former: Sequence[Node] = ()
) -> tuple[list[EnteredHost], Fleet]:
    """Connect to every machine with the first key that it accepts, and examine it. Return the machines and a fleet, which keeps
    the connections open.

    `key`: a private key to use instead of the workspace's own and those in the learner's SSH configuration.
    `former`: the recorded nodes. A machine among them keeps its recorded host key, and the private key that it accepted.

    Raises UsageError for an invalid list, UnknownHosts, UnreachableError, and MissingError if a machine lacks something.
    """
    routes = [find_ssh_route(host, context.environ) for host in hosts]
    ensure_client_key(context.paths.client_key)
    former_by_address = {(node.user, node.address, node.port): node for node in former}
    nodes = [_pin_former_key(_node(context.settings, index, route), former_by_address) for index, route in enumerate(routes)]
    nodes = pin_host_keys(nodes, trust)
    routes_by_name = {node.name: route for node, route in zip(nodes, routes, strict=True)}
    outcomes = do_on_each(nodes, lambda node: _open(context, node, routes_by_name[node.name], key))
    links = {outcome.node.name: outcome.value for outcome in outcomes if outcome.value is not None}
    fleet = Fleet(context.transport, [link.node for link in links.values()], links=links)
    try:
        _check_answers(outcomes)
        entered = _examine(context, fleet)
    except BaseException:
        fleet.close()
        raise
    fleet.describe_again([host.node for host in entered])
    return entered, fleet


def _examine(context: Context, fleet: Fleet) -> list[EnteredHost]:
    settings, start_s = context.settings, time.monotonic()

    def look_at(link: Link) -> HostFacts:
        python = settings.host_pythons.get(link.node.typed, settings.node_python)
        return look(link, (python,) if python else PYTHONS)

    facts = values(fleet.do_on_each(look_at))
    seconds = time.monotonic() - start_s
    _check_distinct(fleet.nodes, facts)
    entered: list[EnteredHost] = []
    for node, host_facts in zip(fleet.nodes, facts, strict=True):
        gpus = len(host_facts.gpus)
        detail = f"{host_facts.hostname}, {gpus} x {host_facts.gpus[0]}" if gpus else f"{host_facts.hostname}, no GPU"
        detail += f", {host_facts.python} ({host_facts.version}), {format_bytes(host_facts.disk_free_bytes)} free"
        context.watch(NodeEvent(node=node.typed, step="look", ok=True, seconds=seconds, detail=detail))
        complete_node = replace(
            node,
            gpus=gpus,
            instance_type=host_facts.gpus[0] if gpus else "no GPU",
            python=host_facts.python,
            private_address="",
        )
        entered.append(EnteredHost(node=complete_node, facts=host_facts))
    return entered


def _node(settings: Settings, index: int, route: SshRoute) -> Node:
    return Node(
        name=f"node{index}",
        role="head" if index == 0 else "worker",
        address=route.address,
        port=route.port,
        private_address="",
        user=route.user,
        gpus=0,
        instance_type="",
        python="",
        mode="hosts",
        host_key=next(iter(route.host_keys), ""),
        other_host_keys=route.host_keys[1:],
        proxy=route.proxy or settings.ssh_proxy_command,
        typed=route.typed,
    )


def _pin_former_key(node: Node, former_by_address: Mapping[tuple[str, str, int], Node]) -> Node:
    former = former_by_address.get((node.user, node.address, node.port))
    if former is None:
        return node
    pinned = node if node.host_key else former
    return replace(node, host_key=pinned.host_key, other_host_keys=pinned.other_host_keys, key=former.key)


def _keys(node: Node, route: SshRoute, key: Path | None) -> list[str]:
    """Return the private keys in the order in which to try them. An empty name means the workspace's own key."""
    if key is not None:
        return [str(key.expanduser().absolute())]
    return list(dict.fromkeys([node.key, "", *map(str, route.keys)]))[:MAX_KEYS]


def _open(context: Context, node: Node, route: SshRoute, key: Path | None) -> Link:
    """Return a connection to a machine, made with the first key that it accepts."""
    keys = _keys(node, route, key)
    cause, start_s = "", time.monotonic()
    for candidate_key in keys:
        candidate = replace(node, key=candidate_key)
        try:
            link = context.transport.connect(candidate)
        except OtherHostKey as error:
            raise explain_other_key(error, node, route) from error
        except KeyRefused:
            continue
        except MissingError as error:  # a key with a passphrase, or of an unsupported kind
            if len(keys) == 1:
                raise
            cause = f" ({error.what})"
            continue
        seconds = time.monotonic() - start_s
        detail = candidate_key or "this workspace's own key"
        context.watch(NodeEvent(node=node.typed, step="ssh", ok=True, seconds=seconds, detail=detail))
        return link
    port, asks_agent = f" -p {node.port}" if node.port != 22 else "", "SSH_AUTH_SOCK" in context.environ
    give = f"ssh-copy-id -i '{context.paths.client_key}.pub'{port} {node.user}@{node.address}"
    agent = ". Keys that only ssh-agent holds are not used: later commands have to log in without it" if asks_agent else ""
    raise KeyRefused(
        f"{node.typed} accepts none of the keys that were tried{cause}",
        hint=f"give it this workspace's key: {give}; or name a key that it accepts: --key FILE{agent}",
    )


def _check_distinct(nodes: Sequence[Node], facts: Sequence[HostFacts]) -> None:
    """Check that the machines are distinct. Raises UsageError if one is named twice or if several share a home folder."""
    names_by_identity: dict[tuple[str, str], str] = {}
    homes: dict[tuple[str, str], str] = {}
    for node, host_facts in zip(nodes, facts, strict=True):
        name = node.typed
        if host_facts.identity in names_by_identity:
            raise UsageError(
                f"{names_by_identity[host_facts.identity]} and {name} are the same machine", hint="name each machine once"
            )
        if host_facts.home in homes and host_facts.home[1]:
            raise UsageError(
                f"{homes[host_facts.home]} and {name} share the home folder {host_facts.home[0]}",
                hint="each needs its own home folder for the files of its ranks; for a Slurm cluster: --target slurm",
            )
        names_by_identity[host_facts.identity] = homes[host_facts.home] = name


def _check_answers(outcomes: Sequence[Outcome[T]]) -> None:
    """Raise an error for the machines that failed, if any did.

    If some do not answer, the hint says how to try them with plain ssh.
    """
    try:
        values(outcomes)
    except NoAnswer as error:
        silent = [outcome.node.typed for outcome in outcomes if isinstance(outcome.error, NoAnswer)]
        tries = " or ".join(f"ssh {_list_ssh_words(name)}" for name in silent[:4])
        raise NoAnswer(error.what, hint=f"test it with plain ssh: {tries}") from error


def _list_ssh_words(name: str) -> str:
    """Return a machine's name as arguments of plain ssh."""
    host, colon, port = name.rpartition(":")
    return f"-p {port} {host}" if colon and port.isdecimal() and not host.endswith(":") else name


def pin_host_keys(nodes: Sequence[Node], trust: Sequence[str]) -> list[Node]:
    """Return the nodes, each with the host key that it must show from now on.

    Raises UnknownHosts for the machines whose key is not trusted, UnreachableError if a machine does not answer.
    """
    unknown = [node for node in nodes if not node.host_key]
    outcomes = do_on_each(unknown, fetch_host_key)
    _check_answers(outcomes)
    host_keys = {outcome.node.name: outcome.take() for outcome in outcomes}
    strangers = [
        Stranger(typed=node.typed, fingerprint=host_keys[node.name][1])
        for node in unknown
        if host_keys[node.name][1] not in trust
    ]
    if strangers:
        raise UnknownHosts(strangers)
    return [replace(node, host_key=host_keys[node.name][0]) if node.name in host_keys else node for node in nodes]


def explain_other_key(error: OtherHostKey, node: Node, route: SshRoute) -> OtherHostKey:
    """Return the error with advice. The advice depends on where the expected key comes from: known hosts or the lab's
    record."""
    if len(route.host_keys) > 1:
        hint = f"if another machine answers as {route.known_as}, compare this key with the one that its owner publishes, then "
        add = f"ssh-keyscan -p {route.port} {route.address} >> ~/.ssh/known_hosts"
        return OtherHostKey(error.what, hint=f"{hint}{add}. If not, do not trust it")
    if route.host_keys:
        way = f"ssh-keygen -R '{route.known_as}' forgets the old key; then log in once with plain ssh"
    else:
        way = "gpucourse destroy N --forget-unreachable forgets the lab and with it the old key; then deploy again"
    return OtherHostKey(error.what, hint=f"if you know that {node.typed} was reinstalled: {way}. If not, do not trust it")
