"""Machines that nobody reaches, or that are not who they were: what the learner is told to type."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.errors import NoAnswer, OtherHostKey
from gpucourse.labs.hosts.nodes import enter, explain_other_key
from gpucourse.remote.ssh_config import SshRoute
from tests.unit.labs.aws.fakes import context_in
from tests.unit.remote.test_slurm_refusals import HEAD as NODE


def test_enter_says_how_to_try_a_machine_with_plain_ssh(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    context, _events = context_in(tmp_path)
    with pytest.raises(NoAnswer, match=f"me@127.0.0.1:{port} does not answer SSH .*connection refused") as caught:
        enter(context, [f"me@127.0.0.1:{port}"], key=None, trust=[])
    assert caught.value.hint == f"see whether plain ssh gets there: ssh -p {port} me@127.0.0.1"
    assert "node0" not in caught.value.what


@pytest.mark.parametrize(
    ("known", "says"),
    [
        (("ssh-ed25519 AAAA",), "ssh-keygen -R '[h1]:2222'"),
        ((), "gpucourse destroy N --forget-unreachable"),
        (("ssh-ed25519 AAAA", "ssh-ed25519 BBBB"), "ssh-keyscan -p 2222 h1 >> ~/.ssh/known_hosts"),
    ],
)
def test_explain_other_key_says_how_to_forget_the_old_one(known: tuple[str, ...], says: str) -> None:
    route = SshRoute(said="h1", address="h1", port=2222, user="me", host_keys=known, known_as="[h1]:2222")
    error = explain_other_key(OtherHostKey("what"), replace(NODE, typed="h1"), route)
    assert says in error.hint
    assert error.what == "what"
