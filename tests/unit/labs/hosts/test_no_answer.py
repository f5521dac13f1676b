"""Machines that nobody reaches: the learner is sent to plain ssh."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from gpucourse.errors import NoAnswer
from gpucourse.labs.hosts.deploy import _enter_hosts
from tests.unit.labs.aws.fakes import context_in


def test_a_machine_that_does_not_answer_is_to_be_tried_with_plain_ssh(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    context, _events = context_in(tmp_path)
    with pytest.raises(NoAnswer, match="connection refused") as caught:
        _enter_hosts(context, [f"me@127.0.0.1:{port}"], None, [], [])
    assert caught.value.hint == f"see whether plain ssh gets there: ssh -p {port} me@127.0.0.1"
