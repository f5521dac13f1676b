"""Machines that are not who they were: what the learner is told to type."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpucourse.errors import OtherHostKey
from gpucourse.labs.hosts.nodes import explain_other_key
from gpucourse.remote.ssh_config import SshRoute
from tests.unit.remote.test_slurm_refusals import HEAD as NODE


@pytest.mark.parametrize(
    ("known", "says"),
    [
        (("ssh-ed25519 AAAA",), "ssh-keygen -R '[h1]:2222'"),
        ((), "gpucourse destroy N --forget-unreachable"),
        (("ssh-ed25519 AAAA", "ssh-ed25519 BBBB"), "ssh-keyscan -p 2222 h1 >> ~/.ssh/known_hosts"),
    ],
)
def test_explain_other_key_says_how_to_forget_the_old_one(known: tuple[str, ...], says: str) -> None:
    route = SshRoute(typed="h1", address="h1", port=2222, user="me", host_keys=known, known_as="[h1]:2222")
    error = explain_other_key(OtherHostKey("what"), replace(NODE, typed="h1"), route)
    assert says in error.hint
    assert error.what == "what"
