"""Examining machines that belong to the learner."""

from __future__ import annotations

import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.errors import MissingError, NoAnswer
from gpucourse.labs.hosts.nodes import _examine, enter
from gpucourse.remote.fleet import Fleet
from tests.parts import need
from tests.unit.labs.aws.fakes import context_in
from tests.unit.remote.test_host_probe import HEAD, LocalLink


def make_fleet(tmp_path: Path, transport: object, names: list[str]) -> Fleet:
    """Return connections to machines of these names, each with a home folder of its own."""
    nodes = [replace(HEAD, name=f"node{number}", typed=name) for number, name in enumerate(names)]
    links = {}
    for node in nodes:
        (tmp_path / node.name).mkdir()
        links[node.name] = LocalLink(tmp_path / node.name)
        links[node.name].node = node
    return Fleet(transport, nodes, links=links)  # type: ignore[arg-type]  # nothing is connected


def test_examine_takes_the_python_that_is_named_for_one_machine(tmp_path: Path) -> None:
    context, _events = context_in(tmp_path)
    (tmp_path / "other").symlink_to(sys.executable)
    pythons = {"node_python": sys.executable, "host_pythons": {"fin@h3:2222": str(tmp_path / "other")}}
    context.opened.settings = context.settings.model_copy(update=pythons)
    entered = _examine(context, make_fleet(tmp_path, context.transport, ["ann@h1", "fin@h3:2222"]))
    assert [host.node.python for host in entered] == [sys.executable, str(tmp_path / "other")]


def test_examine_names_the_setting_for_a_machine_without_that_python(tmp_path: Path) -> None:
    context, _events = context_in(tmp_path)
    context.opened.settings = context.settings.model_copy(update={"node_python": "/opt/absent/python"})
    with pytest.raises(MissingError, match=r"fin@h3 has no Python 3\.8 or newer") as caught:
        _examine(context, make_fleet(tmp_path, context.transport, ["fin@h3"]))
    assert "host_pythons: {fin@h3: /home/me/venv/bin/python}" in str(caught.value.hint)


def test_enter_says_how_to_try_a_machine_with_plain_ssh(tmp_path: Path) -> None:
    need("ssh")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    context, _events = context_in(tmp_path)
    with pytest.raises(NoAnswer, match=f"me@127.0.0.1:{port} does not answer SSH .*connection refused") as caught:
        enter(context, [f"me@127.0.0.1:{port}"], key=None, trust=[])
    assert caught.value.hint == f"test it with plain ssh: ssh -p {port} me@127.0.0.1"
    assert "node0" not in caught.value.what
