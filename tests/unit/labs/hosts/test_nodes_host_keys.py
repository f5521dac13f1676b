"""Machines that show another host key than before: what the learner is told to type."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpucourse.errors import OtherHostKey
from gpucourse.labs.hosts import nodes
from gpucourse.labs.hosts.nodes import explain_other_key
from gpucourse.labs.results import UnknownHosts
from gpucourse.remote.ssh_config import SshRoute
from tests.unit.remote.test_slurm_refusals import HEAD as NODE


@pytest.mark.parametrize(
    ("host_keys", "message"),
    [
        (("ssh-ed25519 AAAA",), "ssh-keygen -R '[h1]:2222'"),
        ((), "gpucourse destroy N --forget-unreachable"),
        (("ssh-ed25519 AAAA", "ssh-ed25519 BBBB"), "ssh-keyscan -p 2222 h1 >> ~/.ssh/known_hosts"),
    ],
)
def test_explain_other_key_says_how_to_forget_the_old_one(host_keys: tuple[str, ...], message: str) -> None:
    route = SshRoute(typed="h1", address="h1", port=2222, user="me", host_keys=host_keys, known_as="[h1]:2222")
    error = explain_other_key(OtherHostKey("what"), replace(NODE, typed="h1"), route)
    assert message in error.hint
    assert error.what == "what"


def test_pin_host_keys_asks_before_it_trusts_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    known_host, new = (
        replace(NODE, name="node0", host_key="ssh-ed25519 AAAA"),
        replace(NODE, name="node1", typed="h1", host_key=""),
    )
    monkeypatch.setattr(nodes, "fetch_host_key", lambda _node: ("ssh-ed25519 BBBB", "SHA256:b"))
    with pytest.raises(UnknownHosts) as caught:
        nodes.pin_host_keys([known_host, new], trust=[])
    assert [(stranger.typed, stranger.fingerprint) for stranger in caught.value.strangers] == [("h1", "SHA256:b")]
    assert nodes.pin_host_keys([known_host, new], trust=["SHA256:b"]) == [known_host, replace(new, host_key="ssh-ed25519 BBBB")]
